//! Every protocol, with a peer's bytes as input.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use volery_channel::{Channel, Error, Role, memory};

use super::Script;
use super::edits::edited;
use super::replay::{Recorder, Replay};
use crate::{Model, Output, Protocol, registry};

/// A protocol of the registry, its number in inputs, and the lazily recorded run of its honest
/// parties.
struct Scene {
    protocol: Protocol,
    number: u16,
    honest: OnceLock<Honest>,
}

/// An honest run: the bytes sent by the left and the right party, and their results.
struct Honest {
    sent: [Vec<u8>; 2],
    found: Mutex<[Output; 2]>,
}

impl Scene {
    fn honest(&self) -> &Honest {
        self.honest.get_or_init(|| {
            let (left, right) = memory::pair();
            let ((left, left_sent), (right, right_sent)) =
                (Recorder::new(left), Recorder::new(right));
            let party = |side, end| self.protocol.run(side, &mut Channel::new(end));
            let (left, right) = thread::scope(|scope| {
                let left = scope.spawn(|| party(Role::Sender, left));
                let right = party(Role::Receiver, right);
                (left.join().expect("an honest party does not panic"), right)
            });
            let right = right.expect("honest parties finish");
            Honest {
                sent: [left_sent.bytes(), right_sent.bytes()],
                found: Mutex::new([left.expect("honest parties finish"), right]),
            }
        })
    }
}

/// All protocols, in the order of their numbers.
fn scenes() -> &'static [Scene] {
    static SCENES: OnceLock<Vec<Scene>> = OnceLock::new();
    SCENES.get_or_init(|| {
        let scene = |protocol: Protocol| Scene {
            number: number(&protocol.name),
            protocol,
            honest: OnceLock::new(),
        };
        let mut scenes: Vec<Scene> = registry().into_iter().map(scene).collect();
        scenes.sort_by_key(|scene| scene.number);
        scenes
    })
}

/// Depends on the name alone, so that corpus inputs keep their meaning when a protocol is added.
fn number(name: &str) -> u16 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = name.bytes().fold(0x811c_9dc5, step);
    (hash ^ hash >> 16) as u16
}

/// A peer's bytes against one side of a protocol.
///
/// Two bytes select the protocol, one the side, one the piece size of the bytes; the rest are the
/// changes of the honest peer's bytes.
///
/// # Panics
/// If a guarantee is broken: see [the module](super).
pub fn wire(data: &[u8]) {
    let mut script = Script(data);
    let (number, side) = (script.word(), script.byte());
    let piece = match usize::from(script.byte()) {
        0 => usize::MAX,
        piece => piece,
    };
    let scenes = scenes();
    let next = scenes.partition_point(|scene| scene.number < number);
    let scene = &scenes[next % scenes.len()];
    let side = Role::ALL[usize::from(side & 1)];
    let honest = scene.honest();
    let sent = &honest.sent[side.other() as usize];
    let theirs = edited(sent, &mut script);

    let mut channel = Channel::new(Replay::new(theirs.clone(), piece));
    let result = scene.protocol.run(side, &mut channel);
    let name = &scene.protocol.name;
    let mut found = honest.found.lock().unwrap_or_else(PoisonError::into_inner);
    match result {
        Ok(ours) => {
            let used = channel.stats().bytes_received as usize;
            let is_honest = theirs[..used] == sent[..];
            let honest = std::mem::replace(&mut found[side as usize], ours);
            let holds = scene.protocol.agree(&found[0], &found[1]);
            found[side as usize] = honest;
            assert!(holds || !is_honest, "{name}: the honest bytes give another result");
            assert!(
                holds || !is_checked(&scene.protocol, side),
                "{name}: a deviation was not detected"
            );
        }
        Err(error) => {
            let is_whole = theirs.starts_with(sent);
            assert!(!is_whole, "{name}: the honest bytes are refused: {error}");
            let text = error.to_string();
            assert!(!text.chars().any(char::is_control), "the message has no control characters");
            let expected = matches!(
                error,
                Error::Disconnected
                    | Error::PeerMisbehaved(_)
                    | Error::Mismatch { .. }
                    | Error::Broken
            );
            assert!(expected, "{name}: a peer cannot cause this error: {error:?}");
        }
    }
}

/// Whether this side checks every message of its peer, so that modified bytes cannot lead to a
/// result that differs from the honest one. Other sides may return a result consistent with the
/// modified bytes.
fn is_checked(protocol: &Protocol, side: Role) -> bool {
    let name = protocol.name.as_str();
    let checks = match side {
        Role::Sender => name.starts_with("softspoken") || name.starts_with("cot"),
        Role::Receiver => {
            name.starts_with("dh") || name.starts_with("cot") && !name.ends_with("few")
        }
    };
    checks && protocol.model == Model::Malicious
}
