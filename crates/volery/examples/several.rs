//! Correlated OTs, a vector OLE and a set intersection, one after another over one authenticated
//! connection.
//!
//! ```text
//! cargo run --release -p volery --example several
//! ```
//!
//! Here both parties are threads of one process. Between two machines, each party uses its
//! [`Identity`] made by `volery keygen` and the other's fingerprint as text; the rest is the same.

use std::thread;
use std::time::{Duration, SystemTime};

use volery::channel::tls::{Fingerprint, Identity, Listener};
use volery::prelude::{Session, *};
use volery::psi::{self, Settings};

const N: usize = 1000;
const TIMEOUT: Duration = Duration::from_secs(60);

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let day = SystemTime::now()..SystemTime::now() + Duration::from_secs(86_400);
    let alice = Identity::generate("alice", day.clone())?;
    let bob = Identity::generate("bob", day)?;
    let (alice_print, bob_print) = (alice.fingerprint(), bob.fingerprint());

    let listener = Listener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let connecting = thread::spawn(move || receiver(&address, &bob, alice_print));
    let sender = sender(&listener, &alice, bob_print);
    let common = connecting.join().expect("the receiver thread does not panic")?;
    sender?;
    show(&format!("common items: {}", common.join(", ")));
    Ok(())
}

fn sender(listener: &Listener, identity: &Identity, peer: Fingerprint) -> Outcome<()> {
    let channel = listener.accept(identity, peer, TIMEOUT, |_| ())?;

    let plan = cot::plan(Some(N as u64), Link::default(), Security::Malicious);
    let mut session = Session::begin(channel, &plan.hello(Role::Sender))?;
    let mut sender = cot::Sender::start(&plan, None, &mut session)?;
    let mut v = vec![Block::ZERO; N];
    sender.extend(&mut v, &mut session)?;

    let plan = vole::plan::<Fp61>(Some(N as u64), Link::default(), Security::Malicious)?;
    session.next(&plan.hello(Role::Sender))?;
    let mut sender = vole::Sender::start(&plan, &mut session)?;
    let (mut u, mut v) = (vec![Fp61::ZERO; N], vec![Fp61::ZERO; N]);
    sender.extend(&mut u, &mut v, &mut session)?;

    let settings = Settings::default();
    session.next(&settings.hello("intersection", Role::Sender))?;
    let sender = psi::Sender::start(&mut session)?;
    let items = ["ash", "birch", "cedar"];
    sender.intersect(&items[..], settings, &mut (), &mut session)?;
    session.flush()?;
    Ok(())
}

fn receiver(address: &str, identity: &Identity, peer: Fingerprint) -> Outcome<Vec<&'static str>> {
    let channel = tls::connect(address, identity, peer, TIMEOUT)?;

    let plan = cot::plan(Some(N as u64), Link::default(), Security::Malicious);
    let mut session = Session::begin(channel, &plan.hello(Role::Receiver))?;
    let mut receiver = cot::Receiver::start(&plan, &mut session)?;
    let (mut u, mut w) = (vec![0; bits::bytes_for(N)], vec![Block::ZERO; N]);
    receiver.extend(&mut u, &mut w, &mut session)?;

    let plan = vole::plan::<Fp61>(Some(N as u64), Link::default(), Security::Malicious)?;
    session.next(&plan.hello(Role::Receiver))?;
    let mut receiver = vole::Receiver::start(&plan, None, &mut session)?;
    let mut w = vec![Fp61::ZERO; N];
    receiver.extend(&mut w, &mut session)?;

    let settings = Settings::default();
    session.next(&settings.hello("intersection", Role::Receiver))?;
    let receiver = psi::Receiver::start(&mut session)?;
    let items = ["cedar", "oak", "ash", "yew"];
    let received = receiver.intersect(&items[..], settings, &mut (), &mut session)?;
    session.flush()?;
    Ok(received.common.iter().map(|&item| items[item]).collect())
}

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn show(line: &str) {
    println!("{line}");
}

#[cfg(test)]
mod tests {
    #[test]
    fn three_protocols_share_a_connection() {
        super::main().expect("all three protocols succeed");
    }
}
