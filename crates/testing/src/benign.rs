//! Benign deviations: faults of a corrupted party that do no harm in a maliciously secure protocol,
//! and why.

use volery_channel::Role;

use crate::fault::{Fault, FaultKind};
use crate::{Attack, Model, Protocol, Verdict};

/// The outcome of an attack that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The outcome [`Verdict::Wrong`].
    Wrong,
    /// The outcome [`Verdict::PeerFailed`].
    PeerFailed,
}

struct Row {
    protocols: &'static [&'static str],
    corrupted: Role,
    /// The test whether a fault may have the outcome.
    faults: fn(Fault) -> bool,
    outcome: Outcome,
    why: &'static str,
}

const ANY: fn(Fault) -> bool = |_| true;

const VOLE_PSI: &[&str] =
    &["vole intersection, malicious", "vole search, malicious", "vole oprf, malicious"];

/// All benign deviations.
///
/// The corrupted parties of the harness run honest code on messages that they did not send, so a
/// changed input of theirs shows as a result inconsistent with the peer's, or as their own error.
const TABLE: &[Row] = &[
    Row {
        protocols: &["base OT"],
        corrupted: Role::Sender,
        faults: ANY,
        outcome: Outcome::Wrong,
        why: "endemic OT: a sender chooses its own keys; another group element selects others",
    },
    Row {
        protocols: &["base OT"],
        corrupted: Role::Receiver,
        faults: ANY,
        outcome: Outcome::Wrong,
        why: "endemic OT: a receiver chooses its own key; other group elements select another, or none",
    },
    Row {
        protocols: &[
            "correlated OT, chosen choices",
            "random OT, chosen choices",
            "OT of chosen blocks",
            "OT of chosen strings",
        ],
        corrupted: Role::Receiver,
        faults: ANY,
        outcome: Outcome::Wrong,
        why: "a changed d is another choice of the receiver",
    },
    Row {
        protocols: &["OT of chosen blocks", "OT of chosen strings"],
        corrupted: Role::Sender,
        faults: ANY,
        outcome: Outcome::Wrong,
        why: "a changed message is another input of the sender",
    },
    Row {
        protocols: &["chosen inputs", "chosen input"],
        corrupted: Role::Sender,
        faults: ANY,
        outcome: Outcome::Wrong,
        why: "a changed correction is another input of the sender",
    },
    Row {
        protocols: &[
            "softspoken 1",
            "softspoken 2",
            "softspoken 4",
            "softspoken 8",
            "cot, malicious, few",
        ],
        corrupted: Role::Sender,
        faults: ANY,
        outcome: Outcome::PeerFailed,
        why: "the receiver gets no message after the base OT, in which the sender chose other keys, or none: it learns less",
    },
    Row {
        protocols: &[
            "checked product, fp61",
            "vole fp61, malicious, few",
            "vole gf128, malicious, few",
            "batch of vector-OLEs",
            "batch of vector-OLEs, gf128",
            "polynomial at points",
        ],
        corrupted: Role::Receiver,
        faults: ANY,
        outcome: Outcome::PeerFailed,
        why: "the sender hears nothing after the challenge; a key holder whose base OT or challenge is another one finds that \
              its own check fails, and has learned a combination that a random entry masks",
    },
    Row {
        protocols: &["polynomial at points"],
        corrupted: Role::Sender,
        faults: ANY,
        outcome: Outcome::Wrong,
        why: "a changed correction is another polynomial of the sender",
    },
    Row {
        protocols: &["polynomial at points"],
        corrupted: Role::Sender,
        faults: ANY,
        outcome: Outcome::PeerFailed,
        why: "the receiver has all it waits for and never reads the rest of a lengthened message",
    },
    Row {
        protocols: &["polynomial at points"],
        corrupted: Role::Receiver,
        faults: ANY,
        outcome: Outcome::Wrong,
        why: "a changed delta is another point of the receiver",
    },
    Row {
        protocols: &["dh intersection", "dh search"],
        corrupted: Role::Receiver,
        faults: ANY,
        outcome: Outcome::PeerFailed,
        why: "the sender hears nothing after the polynomial; another one is another set of the receiver, who learns at the \
              end that it was changed",
    },
    Row {
        protocols: VOLE_PSI,
        corrupted: Role::Sender,
        faults: |fault| {
            matches!((fault.message, fault.kind), (4, FaultKind::Flip { at: ..32, .. }))
        },
        outcome: Outcome::Wrong,
        why: "an evaluator that has other hash functions than it told, by r_Y of step 3c, evaluates another function",
    },
    Row {
        protocols: VOLE_PSI,
        corrupted: Role::Sender,
        faults: |fault| {
            matches!((fault.message, fault.kind), (5, FaultKind::Flip { at: 32.., .. }))
        },
        outcome: Outcome::Wrong,
        why: "a changed tag or value, after s_Y of step 5a, is another item or value of the sender",
    },
];

/// Why an attack with this verdict is harmless; `None` if it is not.
///
/// An error of the honest party and a right result are always harmless. For a semi-honest protocol,
/// so is a wrong result. A panic never is.
#[must_use]
pub fn benign(protocol: &Protocol, attack: Attack, verdict: &Verdict) -> Option<&'static str> {
    let outcome = match verdict {
        Verdict::Refused(_) => return Some("refused"),
        Verdict::Right => return Some("the fault changed nothing"),
        Verdict::Panicked(_) => return None,
        Verdict::Wrong => Outcome::Wrong,
        Verdict::PeerFailed(_) => Outcome::PeerFailed,
    };
    if protocol.model == Model::SemiHonest {
        return Some("the protocol is semi-honest");
    }
    let mut rows = TABLE
        .iter()
        .filter(|row| row.corrupted == attack.corrupted && row.outcome == outcome)
        .filter(|row| (row.faults)(attack.fault));
    rows.find(|row| row.protocols.contains(&protocol.name.as_str())).map(|row| row.why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_about_maliciously_secure_protocols_of_the_registry() {
        let registry = crate::registry();
        for name in TABLE.iter().flat_map(|row| row.protocols) {
            let protocol = registry.iter().find(|protocol| protocol.name == *name);
            assert!(protocol.is_some_and(|protocol| protocol.model == Model::Malicious), "{name}");
        }
    }
}
