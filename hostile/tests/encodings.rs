//! What no honest peer encodes is refused by name, at every place where it can stand in a message.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use volery_channel::Error;
use volery_channel::tamper::{Act, Mischief};
use volery_hostile::{Attack, Protocol, Side, Verdict, cast, messages};

/// Elements of `fp61` in a message: which bytes of it, from the end, and the name of what is refused.
struct Place {
    protocol: &'static str,
    cheat: Side,
    message: usize,
    /// Bytes before the first element that is meant, from the start of the message.
    from: usize,
    /// Bytes after the last one.
    after: usize,
    name: &'static str,
}

const fn place(
    protocol: &'static str,
    (cheat, message): (Side, usize),
    (from, after): (usize, usize),
    name: &'static str,
) -> Place {
    Place {
        protocol,
        cheat,
        message,
        from,
        after,
        name,
    }
}

use Side::{Left, Right};

const VOLE: &str = "vole fp61, malicious, regular, half";

/// All places where an element of `fp61` is read.
const PLACES: &[Place] = &[
    place(
        "point function",
        (Left, 0),
        (160, 0),
        "the masked sum of a tree",
    ),
    place("ggm trees", (Left, 0), (480, 0), "the masked sum of a tree"),
    place(
        "half-trees, hashed",
        (Left, 0),
        (288, 0),
        "the masked sum of a tree",
    ),
    place(
        "points in blocks",
        (Right, 0),
        (0, 2),
        "the correction of u",
    ),
    place("chosen input", (Left, 0), (0, 0), "the correction of u"),
    place("chosen inputs", (Left, 0), (0, 160), "the correction of u"),
    place("chosen inputs", (Left, 0), (160, 0), "the correction of v"),
    place(
        "checked product, fp61",
        (Left, 1),
        (0, 0),
        "a product's correction",
    ),
    place(
        "checked product, fp61",
        (Left, 2),
        (0, 0),
        "a value of the product's check",
    ),
    // The nonce comes first; the commitment is 32 bytes without a form, the opening begins with a salt of as many.
    place(
        VOLE,
        (Left, 4),
        (16, 0),
        "the masked coefficient of the check",
    ),
    place(VOLE, (Left, 5), (0, 0), "the value of the check"),
    place(VOLE, (Right, 5), (32, 0), "the opened value of the check"),
];

/// Places of one message that are tried at most.
const TRIES: usize = 12;

fn run(protocol: &Protocol, cheat: Side, message: usize, act: Act) -> Verdict {
    let message = message as u64;
    let mischief = Mischief { message, act };
    Attack { cheat, mischief }.run(protocol, Duration::from_secs(60))
}

fn assert_refused(protocol: &Protocol, at: usize, verdict: &Verdict, expected: &str) {
    let Verdict::Refused(Error::PeerMisbehaved(text)) = verdict else {
        panic!("{protocol:?}, byte {at}: {verdict:?}")
    };
    assert_eq!(*text, expected, "{protocol:?}, byte {at}");
}

#[test]
fn elements_at_and_above_the_prime() {
    let cast = cast();
    for place in PLACES {
        let named = |protocol: &&Protocol| protocol.name == place.protocol;
        let protocol = cast.iter().find(named).unwrap();
        let (lengths, _) = &messages(protocol)[place.cheat as usize];
        let length = lengths[place.message];
        let elements: Vec<_> = (place.from..length - place.after).step_by(8).collect();
        assert_eq!((length - place.after - place.from) % 8, 0, "whole elements");
        let step = elements.len().div_ceil(TRIES);
        let last = elements.last().copied();
        for first in elements.into_iter().step_by(step).chain(last) {
            // The highest bit of an element of eight bytes: 2^63 is above 2^61 - 1.
            let at = first + 7;
            let verdict = run(
                protocol,
                place.cheat,
                place.message,
                Act::Flip { at, mask: 0x80 },
            );
            let expected = format!("{} is not in canonical form", place.name);
            assert_refused(protocol, at, &verdict, &expected);
        }
    }
}

/// Bits and bytes that have no meaning.
#[test]
fn what_is_beyond_the_range() {
    let cast = cast();
    let unused = "unused bits of the corrected choices are not zero";
    for (name, (cheat, message), from_end, mask, expected) in [
        ("correlated OT, chosen choices", (Right, 0), 1, 0x20, unused),
        ("random OT, chosen choices", (Right, 0), 1, 0x40, unused),
        ("OT of chosen blocks", (Right, 0), 1, 0x80, unused),
        ("OT of chosen strings", (Right, 0), 1, 0x80, unused),
        ("points in blocks", (Right, 0), 1, 0x80, unused),
        ("point function", (Right, 0), 1, 0x20, unused),
        (
            "cot, malicious, few",
            (Left, 0),
            8193,
            0x80,
            "the carrier bit is none of 128",
        ),
    ] {
        let protocol = cast.iter().find(|protocol| protocol.name == name).unwrap();
        let (lengths, _) = &messages(protocol)[cheat as usize];
        let at = lengths[message] - from_end;
        let verdict = run(protocol, cheat, message, Act::Flip { at, mask });
        assert_refused(protocol, at, &verdict, expected);
    }
}
