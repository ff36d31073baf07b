//! Set intersection and keyword search between two processes, using only the library.
//!
//! ```text
//! cargo run --release -p volery --example psi -- sender 127.0.0.1:7000 banana=yellow cherry=red
//! cargo run --release -p volery --example psi -- receiver 127.0.0.1:7000 banana cherry date
//! ```
//!
//! The receiver first learns which of its words the sender has, then, in a second session, the
//! values of these words. The sender learns only the number of the receiver's words. Both trust the
//! other to follow the protocol (semi-honest security). The connection is not encrypted, so the
//! address must be on this machine, or at the near end of a tunnel.

use std::env;
use std::error::Error;
use std::time::Duration;

use volery::channel::{Channel, Role, Session, tcp};
use volery::psi::{Receiver, Sender, Settings};

/// The run ends after this long without data from the peer.
const TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [role, address, words @ ..] = &arguments[..] else {
        return Err("usage: psi sender|receiver HOST:PORT WORD[=VALUE]..".into());
    };
    match role.parse()? {
        Role::Sender => sender(&mut tcp::listen(address, TIMEOUT)?, words),
        Role::Receiver => {
            for line in receiver(&mut tcp::connect(address, TIMEOUT)?, words)? {
                show(&line);
            }
            Ok(())
        }
    }
}

fn sender(channel: &mut Channel, words: &[String]) -> Result<(), Box<dyn Error>> {
    let pairs = words.iter().map(|word| word.split_once('=').unwrap_or((word, "")));
    let (words, values): (Vec<&str>, Vec<&str>) = pairs.unzip();

    // The setup needs no words: it can run before they are known.
    let settings = Settings::default();
    let mut session = Session::begin(channel, &settings.hello("intersection", Role::Sender))?;
    let sender = Sender::start(&mut session)?;
    // `()` ignores the progress. The words must be different: equal ones are an error.
    let sent = sender.intersect(&words, settings, &mut (), &mut session)?;
    session.flush()?;
    show(&format!("the receiver has {} words", sent.parameters.receiver_items));

    // A sender serves one call; the next call begins with its own session.
    session.next(&settings.hello("look-up", Role::Sender))?;
    let sender = Sender::start(&mut session)?;
    sender.answer(&words, &values, settings, &mut (), &mut session)?;
    session.flush()?;
    Ok(())
}

fn receiver(channel: &mut Channel, words: &[String]) -> Result<Vec<String>, Box<dyn Error>> {
    let settings = Settings::default();
    let mut session = Session::begin(channel, &settings.hello("intersection", Role::Receiver))?;
    let receiver = Receiver::start(&mut session)?;
    let received = receiver.intersect(words, settings, &mut (), &mut session)?;
    let common = received.common.iter().map(|&item| format!("{}: both have it", words[item]));
    let mut lines: Vec<String> = common.collect();

    session.next(&settings.hello("look-up", Role::Receiver))?;
    let receiver = Receiver::start(&mut session)?;
    let found = receiver.search(words, settings, &mut (), &mut session)?;
    session.flush()?;
    for (&item, value) in found.items.iter().zip(&found.values) {
        lines.push(format!("{} = {}", words[item], String::from_utf8_lossy(value)));
    }
    Ok(lines)
}

#[expect(clippy::print_stdout, reason = "an example prints its result")]
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
        let expected =
            ["banana: both have it", "cherry: both have it", "banana = yellow", "cherry = red"];
        assert_eq!(received.unwrap(), expected);
    }
}
