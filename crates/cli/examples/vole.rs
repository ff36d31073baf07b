//! A vector OLE between two processes, with the library alone.
//!
//! ```text
//! cargo run --release --example vole -- sender   127.0.0.1:7000 1000000
//! cargo run --release --example vole -- receiver 127.0.0.1:7000 1000000
//! ```
//!
//! The sender ends with random `u, v`, the receiver with a random `x` and `w = u*x + v`. A real program would use them;
//! here each side prints one correlation of its half, so that one can check it by hand.

use std::env;
use std::error::Error;
use std::time::Duration;

use volery::channel::{Hello, SessionId, handshake, tcp};
use volery::field::{Fp61, Ring};
use volery::pcg::{Link, Security, vole};
use volery::primitives::prg::Prg;

/// Nothing from the peer for this long ends the run.
const TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().collect();
    let [_, role, address, n] = &arguments[..] else {
        return Err("usage: vole sender|receiver HOST:PORT N".into());
    };
    let n: usize = n.parse()?;
    match role.as_str() {
        "sender" => sender(address, n),
        "receiver" => receiver(address, n),
        _ => Err("the role is sender or receiver".into()),
    }
}

fn sender(address: &str, n: usize) -> Result<(), Box<dyn Error>> {
    let mut channel = tcp::listen(address, TIMEOUT)?;
    // Both sides must make the same plan; the handshake checks that they did.
    let plan = vole::plan::<Fp61>(Some(n as u64), Link::default(), Security::Malicious)?;
    let session = begin(&mut channel, "sender", n, plan.describe())?;

    let mut sender = vole::Sender::<Fp61>::setup(&plan, session, Prg::from_os()?, &mut channel)?;
    let (mut u, mut v) = (vec![Fp61::ZERO; n], vec![Fp61::ZERO; n]);
    sender.extend(&mut u, &mut v, &mut channel)?;
    channel.flush()?;

    if let (Some(u), Some(v)) = (u.first(), v.first()) {
        show(&format!("u[0] = {u}, v[0] = {v}"));
    }
    Ok(())
}

fn receiver(address: &str, n: usize) -> Result<(), Box<dyn Error>> {
    let mut channel = tcp::connect(address, TIMEOUT)?;
    let plan = vole::plan::<Fp61>(Some(n as u64), Link::default(), Security::Malicious)?;
    let session = begin(&mut channel, "receiver", n, plan.describe())?;

    let mut receiver =
        vole::Receiver::<Fp61>::setup(&plan, None, session, Prg::from_os()?, &mut channel)?;
    let mut w = vec![Fp61::ZERO; n];
    // A long stream is drawn in pieces: any lengths, the same on both sides.
    receiver.extend(&mut w, &mut channel)?;
    channel.flush()?;

    if let Some(w) = w.first() {
        show(&format!("x = {}, w[0] = {w}", receiver.x()));
    }
    Ok(())
}

/// The first message both ways: the two sides must be about to run the same thing.
fn begin(
    channel: &mut volery::channel::Channel,
    role: &'static str,
    n: usize,
    parameters: String,
) -> Result<SessionId, Box<dyn Error>> {
    let hello = Hello {
        protocol: "example vole over fp61",
        role,
        fields: vec![("n", n.to_string()), ("parameters", parameters)],
    };
    let mut nonce = [0; 32];
    Prg::from_os()?.fill_bytes(&mut nonce);
    Ok(handshake(channel, &hello, nonce)?)
}

#[expect(clippy::print_stdout, reason = "an example says what it made")]
fn show(line: &str) {
    println!("{line}");
}
