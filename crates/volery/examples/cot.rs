//! Correlated OTs between two processes, using only the library.
//!
//! ```text
//! cargo run --release -p volery --example cot -- sender   127.0.0.1:7000 1000000
//! cargo run --release -p volery --example cot -- receiver 127.0.0.1:7000 1000000
//! ```
//!
//! The sender gets a random `delta` and `v`, the receiver random bits `u` and `w = v + u*delta`.
//! Hashing turns each correlation into a random OT: a pair of messages and a choice of one of them.
//! A real program would use them; here each side prints the first of its part, so that the relation
//! can be checked by hand.

use std::env;
use std::time::Duration;

use volery::pcg::{Kind, PlanOptions};
use volery::prelude::*;

/// The run ends after this long without data from the peer.
const TIMEOUT: Duration = Duration::from_secs(60);

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = env::args().collect();
    let [_, role, address, n] = &arguments[..] else {
        return Err("usage: cot sender|receiver HOST:PORT N".into());
    };
    let n: usize = n.parse()?;
    // Both sides must make the same plan; the handshake checks this. The options left out have
    // their usual values: malicious security, regular noise.
    let wishes = PlanOptions {
        total: Some(n as u64),
        link: Link { bits_per_second: 1e9, round_trip: 1e-3 },
        ..PlanOptions::default()
    };
    let plan = Plan::new(Kind::Cot, &wishes)?;
    match role.parse()? {
        Role::Sender => sender(address, n, &plan),
        Role::Receiver => receiver(address, n, &plan),
    }
}

fn sender(address: &str, n: usize, plan: &Plan) -> Outcome {
    let channel = tcp::listen(address, TIMEOUT)?;
    // Both sides must be about to run the same protocol.
    let mut session = Session::begin(channel, &plan.hello(Role::Sender))?;

    let mut sender = cot::Sender::start(plan, None, &mut session)?;
    let mut v = vec![Block::ZERO; n];
    // A long stream is drawn in pieces of any length, the same on both sides.
    sender.extend(&mut v, &mut session)?;
    session.flush()?;

    if let Some(v) = v.first() {
        show(&format!("delta = {}, v[0] = {}", hex(sender.delta()), hex(*v)));
    }
    Ok(())
}

fn receiver(address: &str, n: usize, plan: &Plan) -> Outcome {
    let channel = tcp::connect(address, TIMEOUT)?;
    let mut session = Session::begin(channel, &plan.hello(Role::Receiver))?;

    let mut receiver = cot::Receiver::start(plan, &mut session)?;
    let (mut u, mut w) = (vec![0; bits::bytes_for(n)], vec![Block::ZERO; n]);
    receiver.extend(&mut u, &mut w, &mut session)?;
    session.flush()?;

    if let Some(w) = w.first() {
        let bit = u8::from(bits::bit(&u, 0));
        show(&format!("u[0] = {bit}, w[0] = {}", hex(*w)));
    }
    Ok(())
}

fn hex(block: Block) -> String {
    format!("{:032x}", u128::from(block))
}

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn show(line: &str) {
    println!("{line}");
}
