//! Correlated OTs between two processes, with the library alone.
//!
//! ```text
//! cargo run --release --example cot -- sender   127.0.0.1:7000 1000000
//! cargo run --release --example cot -- receiver 127.0.0.1:7000 1000000
//! ```
//!
//! The sender ends with a random `delta` and `v`, the receiver with random bits `u` and `w = v + u*delta`. Hashed, one pair
//! of messages and one choice of them are left: a random OT. A real program would use them; here each side prints the
//! first of its half, so that one can check it by hand.

use std::env;
use std::error::Error;
use std::time::Duration;

use volery::channel::{Channel, Hello, SessionId, handshake, tcp};
use volery::ot::{CotReceiver, CotSender};
use volery::pcg::{Kind, Link, Plan, Wishes, cot};
use volery::primitives::{Block, bits, prg::Prg};

/// Nothing from the peer for this long ends the run.
const TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().collect();
    let [_, role, address, n] = &arguments[..] else {
        return Err("usage: cot sender|receiver HOST:PORT N".into());
    };
    let n: usize = n.parse()?;
    // Both sides must make the same plan; the handshake checks that they did. What is not said here is what a user
    // wants most often: malicious security, regular noise.
    let wishes = Wishes {
        total: Some(n as u64),
        link: Link {
            bits_per_second: 1e9,
            round_trip: 1e-3,
        },
        ..Wishes::default()
    };
    let plan = Plan::new(Kind::Cot, &wishes)?;
    match role.as_str() {
        "sender" => sender(address, n, &plan),
        "receiver" => receiver(address, n, &plan),
        _ => Err("the role is sender or receiver".into()),
    }
}

fn sender(address: &str, n: usize, plan: &Plan) -> Result<(), Box<dyn Error>> {
    let mut channel = tcp::listen(address, TIMEOUT)?;
    let session = begin(&mut channel, "sender", n, plan)?;

    let mut sender = cot::Sender::setup(plan, None, session, Prg::from_os()?, &mut channel)?;
    let mut v = vec![Block::ZERO; n];
    // A long stream is drawn in pieces: any lengths, the same on both sides.
    sender.extend(&mut v, &mut channel)?;
    channel.flush()?;

    if let Some(v) = v.first() {
        show(&format!(
            "delta = {}, v[0] = {}",
            hex(sender.delta()),
            hex(*v)
        ));
    }
    Ok(())
}

fn receiver(address: &str, n: usize, plan: &Plan) -> Result<(), Box<dyn Error>> {
    let mut channel = tcp::connect(address, TIMEOUT)?;
    let session = begin(&mut channel, "receiver", n, plan)?;

    let mut receiver = cot::Receiver::setup(plan, session, Prg::from_os()?, &mut channel)?;
    let (mut u, mut w) = (vec![0; bits::bytes_for(n)], vec![Block::ZERO; n]);
    receiver.extend(&mut u, &mut w, &mut channel)?;
    channel.flush()?;

    if let Some(w) = w.first() {
        let bit = u8::from(bits::bit(&u, 0));
        show(&format!("u[0] = {bit}, w[0] = {}", hex(*w)));
    }
    Ok(())
}

/// The first message both ways: the two sides must be about to run the same thing.
fn begin(
    channel: &mut Channel,
    role: &'static str,
    n: usize,
    plan: &Plan,
) -> Result<SessionId, Box<dyn Error>> {
    let hello = Hello {
        protocol: "example cot",
        role,
        fields: vec![
            ("n", n.to_string()),
            ("security", plan.security().to_string()),
            ("noise", plan.noise().to_string()),
            ("parameters", plan.describe()),
        ],
    };
    let mut nonce = [0; 32];
    Prg::from_os()?.fill_bytes(&mut nonce);
    Ok(handshake(channel, &hello, nonce)?)
}

fn hex(block: Block) -> String {
    format!("{:032x}", u128::from(block))
}

#[expect(clippy::print_stdout, reason = "an example says what it made")]
fn show(line: &str) {
    println!("{line}");
}
