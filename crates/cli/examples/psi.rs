//! Set intersection and keyword search between two processes, with the library alone.
//!
//! ```text
//! cargo run --release --example psi -- sender   127.0.0.1:7000 apple=green banana=yellow cherry=red
//! cargo run --release --example psi -- receiver 127.0.0.1:7000 banana cherry date
//! ```
//!
//! The receiver first learns which of its words the sender has, then, in a second session, the values of these words. The
//! sender learns how many words the receiver has, and nothing else. Both trust the other to follow the protocol
//! (semi-honest security); what is sent in clear is protected from nobody else, so the address is on this machine, or at
//! the near end of a tunnel.

use std::env;
use std::error::Error;
use std::time::Duration;

use volery::channel::{Channel, Hello, SessionId, handshake, tcp};
use volery::primitives::prg::Prg;
use volery::psi::{Receiver, Sender, Settings};

/// Nothing from the peer for this long ends the run.
const TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [role, address, words @ ..] = &arguments[..] else {
        return Err("usage: psi sender|receiver HOST:PORT WORD[=VALUE]..".into());
    };
    match role.as_str() {
        "sender" => sender(&mut tcp::listen(address, TIMEOUT)?, words),
        "receiver" => {
            for line in receiver(&mut tcp::connect(address, TIMEOUT)?, words)? {
                show(&line);
            }
            Ok(())
        }
        _ => Err("the role is sender or receiver".into()),
    }
}

fn sender(channel: &mut Channel, words: &[String]) -> Result<(), Box<dyn Error>> {
    let pairs = words
        .iter()
        .map(|word| word.split_once('=').unwrap_or((word, "")));
    let (words, values): (Vec<&str>, Vec<&str>) = pairs.unzip();

    // The setup needs no words: it can be done before they are there.
    let session = begin(channel, "example psi", "sender")?;
    let sender = Sender::setup(session, Prg::from_os()?, channel)?;
    // `()` watches the progress, and looks away. The words must be different: equal ones are an error.
    let sent = sender.intersect(&words, Settings::default(), &mut (), channel)?;
    channel.flush()?;
    show(&format!(
        "the receiver has {} words",
        sent.parameters.receiver_items
    ));

    // A sender serves one call; the next one begins with a session of its own.
    let session = begin(channel, "example lookup", "sender")?;
    let sender = Sender::setup(session, Prg::from_os()?, channel)?;
    sender.answer(&words, &values, Settings::default(), &mut (), channel)?;
    channel.flush()?;
    Ok(())
}

fn receiver(channel: &mut Channel, words: &[String]) -> Result<Vec<String>, Box<dyn Error>> {
    let session = begin(channel, "example psi", "receiver")?;
    let receiver = Receiver::setup(session, Prg::from_os()?, channel)?;
    let received = receiver.intersect(words, Settings::default(), &mut (), channel)?;
    let common = received
        .common
        .iter()
        .map(|&item| format!("{}: both have it", words[item]));
    let mut lines: Vec<String> = common.collect();

    let session = begin(channel, "example lookup", "receiver")?;
    let receiver = Receiver::setup(session, Prg::from_os()?, channel)?;
    let found = receiver.search(words, Settings::default(), &mut (), channel)?;
    channel.flush()?;
    for (&item, value) in found.items.iter().zip(&found.values) {
        lines.push(format!(
            "{} = {}",
            words[item],
            String::from_utf8_lossy(value)
        ));
    }
    Ok(lines)
}

/// The first message both ways: the two sides must be about to run the same thing.
fn begin(
    channel: &mut Channel,
    protocol: &'static str,
    role: &'static str,
) -> Result<SessionId, Box<dyn Error>> {
    let hello = Hello {
        protocol,
        role,
        fields: vec![("settings", format!("{:?}", Settings::default()))],
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
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn the_receiver_finds_what_both_have() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let (sent, received) = volery::channel::run_two_parties_tcp(
            |channel| {
                sender(channel, &words("apple=green banana=yellow cherry=red"))
                    .map_err(|e| e.to_string())
            },
            |channel| receiver(channel, &words("banana cherry date")).map_err(|e| e.to_string()),
        );
        sent.unwrap();
        let expected = [
            "banana: both have it",
            "cherry: both have it",
            "banana = yellow",
            "cherry = red",
        ];
        assert_eq!(received.unwrap(), expected);
    }
}
