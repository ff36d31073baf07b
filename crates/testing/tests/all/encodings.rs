//! Non-canonical encodings are refused by name, at every position of a message where they can
//! occur.

use std::time::Duration;

use volery_channel::Error;
use volery_testing::fault::{Fault, FaultKind};
use volery_testing::{Attack, Protocol, Side, Verdict, messages, registry};

/// Elements of `fp61` in a message: their byte range, and the name in the error.
struct Place {
    protocol: &'static str,
    corrupted: Side,
    message: usize,
    /// Bytes before the first such element, from the start of the message.
    from: usize,
    /// Bytes after the last one.
    after: usize,
    name: &'static str,
}

const fn place(
    protocol: &'static str,
    (corrupted, message): (Side, usize),
    (from, after): (usize, usize),
    name: &'static str,
) -> Place {
    Place {
        protocol,
        corrupted,
        message,
        from,
        after,
        name,
    }
}

use Side::{Left, Right};

const VOLE: &str = "vole fp61, malicious, regular, half";

/// All positions where an element of `fp61` is read.
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
    // The nonce comes first; the commitment is 32 bytes without a fixed form; the opening begins
    // with a salt of 32 bytes.
    place(
        VOLE,
        (Left, 4),
        (16, 0),
        "the masked coefficient of the check",
    ),
    place(VOLE, (Left, 5), (0, 0), "the value of the check"),
    place(VOLE, (Right, 5), (32, 0), "the opened value of the check"),
];

/// The most positions of one message that are tried.
const TRIES: usize = 12;

fn run(protocol: &Protocol, corrupted: Side, message: usize, kind: FaultKind) -> Verdict {
    let message = message as u64;
    let fault = Fault { message, kind };
    Attack { corrupted, fault }.run(protocol, Duration::from_secs(60))
}

fn assert_refused(protocol: &Protocol, at: usize, verdict: &Verdict, expected: &str) {
    let Verdict::Refused(Error::PeerMisbehaved(text)) = verdict else {
        panic!("{protocol:?}, byte {at}: {verdict:?}")
    };
    assert_eq!(*text, expected, "{protocol:?}, byte {at}");
}

#[test]
fn elements_at_and_above_the_prime() {
    let registry = registry();
    for place in PLACES {
        let named = |protocol: &&Protocol| protocol.name == place.protocol;
        let protocol = registry.iter().find(named).unwrap();
        let (lengths, _) = &messages(protocol)[place.corrupted as usize];
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
                place.corrupted,
                place.message,
                FaultKind::Flip { at, mask: 0x80 },
            );
            let expected = format!("{} is not in canonical form", place.name);
            assert_refused(protocol, at, &verdict, &expected);
        }
    }
}

/// Bits and bytes without a meaning.
#[test]
fn values_out_of_range_are_refused() {
    let registry = registry();
    let unused = "unused bits of the corrected choices are not zero";
    for (name, (corrupted, message), from_end, mask, expected) in [
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
            "the position of the carrier bit is not below 128",
        ),
        (
            "dh search",
            (Right, 2),
            1,
            0x80,
            "a coefficient is not below 2^255 - 19",
        ),
    ] {
        let protocol = registry
            .iter()
            .find(|protocol| protocol.name == name)
            .unwrap();
        let (lengths, _) = &messages(protocol)[corrupted as usize];
        let at = lengths[message] - from_end;
        let verdict = run(protocol, corrupted, message, FaultKind::Flip { at, mask });
        assert_refused(protocol, at, &verdict, expected);
    }
}
