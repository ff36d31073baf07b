//! Correlated OTs, a vector OLE and a set intersection, one after another over one authenticated connection.
//!
//! ```text
//! cargo run --release --example several
//! ```
//!
//! Both parties are threads of this process here. Between two machines each has the [`Identity`] that `volery keygen` made,
//! and the other's fingerprint as text; the rest is the same.

use std::error::Error;
use std::thread;
use std::time::{Duration, SystemTime};

use volery::channel::tls::{self, Fingerprint, Identity, Listener};
use volery::channel::{Channel, Hello, SessionId, handshake};
use volery::field::{Fp61, Ring};
use volery::ot::{CotReceiver, CotSender};
use volery::pcg::{Link, Plan, Security, cot, vole};
use volery::primitives::{Block, bits, prg::Prg};
use volery::psi::{self, Settings};

const N: usize = 1000;
const TIMEOUT: Duration = Duration::from_secs(60);

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let day = SystemTime::now()..SystemTime::now() + Duration::from_secs(86_400);
    let alice = Identity::generate("alice", day.clone())?;
    let bob = Identity::generate("bob", day)?;
    let (alice_print, bob_print) = (alice.fingerprint(), bob.fingerprint());

    let listener = Listener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let connecting = thread::spawn(move || receiver(&address, &bob, alice_print));
    let sender = sender(&listener, &alice, bob_print);
    let common = connecting.join().expect("a party does not panic")?;
    sender?;
    show(&format!("both have {}", common.join(", ")));
    Ok(())
}

fn sender(listener: &Listener, identity: &Identity, peer: Fingerprint) -> Outcome<()> {
    let mut channel = listener.accept(identity, peer, TIMEOUT, |_| ())?;
    let channel = &mut channel;

    let plan = cot::plan(Some(N as u64), Link::default(), Security::Malicious)?;
    let session = begin("cot", "sender", Some(&plan), channel)?;
    let mut sender = cot::Sender::setup(&plan, None, session, Prg::from_os()?, channel)?;
    let mut v = vec![Block::ZERO; N];
    sender.extend(&mut v, channel)?;

    let plan = vole::plan::<Fp61>(Some(N as u64), Link::default(), Security::Malicious)?;
    let session = begin("vole", "sender", Some(&plan), channel)?;
    let mut sender = vole::Sender::setup(&plan, session, Prg::from_os()?, channel)?;
    let (mut u, mut v) = (vec![Fp61::ZERO; N], vec![Fp61::ZERO; N]);
    sender.extend(&mut u, &mut v, channel)?;

    let session = begin("psi", "sender", None, channel)?;
    let sender = psi::Sender::setup(session, Prg::from_os()?, channel)?;
    let items = ["ash", "birch", "cedar"];
    sender.intersect(&items[..], Settings::default(), &mut (), channel)?;
    channel.flush()?;
    Ok(())
}

fn receiver(address: &str, identity: &Identity, peer: Fingerprint) -> Outcome<Vec<&'static str>> {
    let mut channel = tls::connect(address, identity, peer, TIMEOUT)?;
    let channel = &mut channel;

    let plan = cot::plan(Some(N as u64), Link::default(), Security::Malicious)?;
    let session = begin("cot", "receiver", Some(&plan), channel)?;
    let mut receiver = cot::Receiver::setup(&plan, session, Prg::from_os()?, channel)?;
    let (mut u, mut w) = (vec![0; bits::bytes_for(N)], vec![Block::ZERO; N]);
    receiver.extend(&mut u, &mut w, channel)?;

    let plan = vole::plan::<Fp61>(Some(N as u64), Link::default(), Security::Malicious)?;
    let session = begin("vole", "receiver", Some(&plan), channel)?;
    let mut receiver = vole::Receiver::setup(&plan, None, session, Prg::from_os()?, channel)?;
    let mut w = vec![Fp61::ZERO; N];
    receiver.extend(&mut w, channel)?;

    let session = begin("psi", "receiver", None, channel)?;
    let receiver = psi::Receiver::setup(session, Prg::from_os()?, channel)?;
    let items = ["cedar", "oak", "ash", "yew"];
    let received = receiver.intersect(&items[..], Settings::default(), &mut (), channel)?;
    channel.flush()?;
    Ok(received.common.iter().map(|&item| items[item]).collect())
}

/// Each protocol begins with a handshake of its own: both are about to run the same, and its session is fresh.
fn begin(
    protocol: &'static str,
    role: &'static str,
    plan: Option<&Plan>,
    channel: &mut Channel,
) -> Outcome<SessionId> {
    let fields = plan.map(|plan| ("parameters", plan.describe()));
    let hello = Hello {
        protocol,
        role,
        fields: fields.into_iter().collect(),
    };
    let mut nonce = [0; 32];
    Prg::from_os()?.fill_bytes(&mut nonce);
    Ok(handshake(channel, &hello, nonce)?)
}

#[expect(clippy::print_stdout, reason = "an example says what it found")]
fn show(line: &str) {
    println!("{line}");
}

#[cfg(test)]
mod tests {
    #[test]
    fn three_protocols_share_a_connection() {
        super::main().expect("all three run");
    }
}
