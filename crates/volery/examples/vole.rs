//! A vector OLE between two processes, using only the library.
//!
//! ```text
//! cargo run --release -p volery --example vole -- sender   127.0.0.1:7000 1000000
//! cargo run --release -p volery --example vole -- receiver 127.0.0.1:7000 1000000
//! ```
//!
//! The sender gets random `u, v`, the receiver a random `x` and `w = u*x + v`. A real program would
//! use them; here each side prints its part of one correlation, so that the relation can be checked
//! by hand.

use std::env;
use std::time::Duration;

use volery::prelude::*;

/// The run ends after this long without data from the peer.
const TIMEOUT: Duration = Duration::from_secs(60);

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = env::args().collect();
    let [_, role, address, n] = &arguments[..] else {
        return Err("usage: vole sender|receiver HOST:PORT N".into());
    };
    let n: usize = n.parse()?;
    match role.parse()? {
        Role::Sender => sender(address, n),
        Role::Receiver => receiver(address, n),
    }
}

fn sender(address: &str, n: usize) -> Outcome {
    // Both sides must make the same plan; the handshake checks this.
    let plan = vole::plan::<Fp61>(Some(n as u64), Link::default(), Security::Malicious)?;
    let channel = tcp::listen(address, TIMEOUT)?;
    let mut session = Session::begin(channel, &plan.hello(Role::Sender))?;

    let mut sender = vole::Sender::start(&plan, &mut session)?;
    let (mut u, mut v) = (vec![Fp61::ZERO; n], vec![Fp61::ZERO; n]);
    sender.extend(&mut u, &mut v, &mut session)?;
    session.flush()?;

    if let (Some(u), Some(v)) = (u.first(), v.first()) {
        show(&format!("u[0] = {u}, v[0] = {v}"));
    }
    Ok(())
}

fn receiver(address: &str, n: usize) -> Outcome {
    let plan = vole::plan::<Fp61>(Some(n as u64), Link::default(), Security::Malicious)?;
    let channel = tcp::connect(address, TIMEOUT)?;
    let mut session = Session::begin(channel, &plan.hello(Role::Receiver))?;

    let mut receiver = vole::Receiver::start(&plan, None, &mut session)?;
    let mut w = vec![Fp61::ZERO; n];
    // A long stream is drawn in pieces of any length, the same on both sides.
    receiver.extend(&mut w, &mut session)?;
    session.flush()?;

    if let Some(w) = w.first() {
        show(&format!("x = {}, w[0] = {w}", receiver.x()));
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn show(line: &str) {
    println!("{line}");
}
