//! Values out of their range are refused by name, as the user of a protocol receives them. The
//! crates test elements that are not canonical where they are read.

use std::time::Duration;

use volery_channel::Error;
use volery_channel::Role::{self, Receiver, Sender};
use volery_testing::fault::{Fault, FaultKind};
use volery_testing::{Attack, Protocol, Verdict, messages, registry};

fn run(protocol: &Protocol, corrupted: Role, message: usize, kind: FaultKind) -> Verdict {
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

/// Bits and bytes without a meaning.
#[test]
fn values_out_of_range_are_refused() {
    let registry = registry();
    let unused = "unused bits of the corrected choices are not zero";
    for (name, (corrupted, message), from_end, mask, expected) in [
        ("correlated OT, chosen choices", (Receiver, 0), 1, 0x20, unused),
        ("random OT, chosen choices", (Receiver, 0), 1, 0x40, unused),
        ("OT of chosen blocks", (Receiver, 0), 1, 0x80, unused),
        ("OT of chosen strings", (Receiver, 0), 1, 0x80, unused),
        ("points in blocks", (Receiver, 0), 1, 0x80, unused),
        ("point function", (Receiver, 0), 1, 0x20, unused),
        (
            "cot, malicious, few",
            (Sender, 0),
            8193,
            0x80,
            "the position of the carrier bit is not below 128",
        ),
        ("dh search", (Receiver, 2), 1, 0x80, "a coefficient is not below 2^255 - 19"),
    ] {
        let protocol = registry.iter().find(|protocol| protocol.name == name).unwrap();
        let (lengths, _) = &messages(protocol)[corrupted as usize];
        let at = lengths[message] - from_end;
        let verdict = run(protocol, corrupted, message, FaultKind::Flip { at, mask });
        assert_refused(protocol, at, &verdict, expected);
    }
}
