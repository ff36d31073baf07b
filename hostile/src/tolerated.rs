//! What a cheat may do to a maliciously secure protocol, and why it harms nobody.

use crate::{Model, Protocol, Side, Verdict};

/// How an attack that was not refused ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// As [`Verdict::Wrong`].
    Wrong,
    /// As [`Verdict::Unheard`].
    Unheard,
}

struct Row {
    protocols: &'static [&'static str],
    cheat: Side,
    end: End,
    why: &'static str,
}

/// All that is tolerated.
///
/// The cheats of the harness run honest code on what they did not say, so that a changed input of theirs shows as a
/// result that does not belong to the peer's, or as an error of theirs.
const TABLE: &[Row] = &[
    Row {
        protocols: &["base OT"],
        cheat: Side::Left,
        end: End::Wrong,
        why: "endemic OT: a sender chooses its own keys; another group element chooses others",
    },
    Row {
        protocols: &["base OT"],
        cheat: Side::Right,
        end: End::Wrong,
        why: "endemic OT: a receiver chooses its own key; other group elements choose another, or none",
    },
    Row {
        protocols: &[
            "correlated OT, chosen choices",
            "random OT, chosen choices",
            "OT of chosen blocks",
            "OT of chosen strings",
        ],
        cheat: Side::Right,
        end: End::Wrong,
        why: "a changed d is another choice of the receiver",
    },
    Row {
        protocols: &["OT of chosen blocks", "OT of chosen strings"],
        cheat: Side::Left,
        end: End::Wrong,
        why: "a changed message is another input of the sender",
    },
    Row {
        protocols: &["chosen inputs", "chosen input"],
        cheat: Side::Left,
        end: End::Wrong,
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
        cheat: Side::Left,
        end: End::Unheard,
        why: "the receiver hears nothing after the base OT, in which the sender chose other keys, or none: it learns less",
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
        cheat: Side::Right,
        end: End::Unheard,
        why: "the sender hears nothing after the challenge; a key holder whose base OT or challenge is another one finds that \
              its own check fails, and has learned a combination that a random entry masks",
    },
    Row {
        protocols: &["polynomial at points"],
        cheat: Side::Left,
        end: End::Wrong,
        why: "a changed correction is another polynomial of the sender",
    },
    Row {
        protocols: &["polynomial at points"],
        cheat: Side::Left,
        end: End::Unheard,
        why: "the receiver has all it waits for: what else a lengthened message has is never read",
    },
    Row {
        protocols: &["polynomial at points"],
        cheat: Side::Right,
        end: End::Wrong,
        why: "a changed delta is another point of the receiver",
    },
];

/// Why an attack that ended like this is harmless; `None` if it is not.
///
/// An error of the honest party and a right result always are. Of a semi-honest protocol a wrong result is, too. A
/// panic never is.
#[must_use]
pub fn tolerated(protocol: &Protocol, cheat: Side, verdict: &Verdict) -> Option<&'static str> {
    let end = match verdict {
        Verdict::Refused(_) => return Some("refused"),
        Verdict::Right => return Some("it changed nothing"),
        Verdict::Panicked(_) => return None,
        Verdict::Wrong => End::Wrong,
        Verdict::Unheard(_) => End::Unheard,
    };
    if protocol.model == Model::SemiHonest {
        return Some("the protocol is semi-honest");
    }
    let mut rows = TABLE
        .iter()
        .filter(|row| row.cheat == cheat && row.end == end);
    rows.find(|row| row.protocols.contains(&protocol.name.as_str()))
        .map(|row| row.why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_about_maliciously_secure_protocols_of_the_cast() {
        let cast = crate::cast();
        for name in TABLE.iter().flat_map(|row| row.protocols) {
            let protocol = cast.iter().find(|protocol| protocol.name == *name);
            assert!(
                protocol.is_some_and(|protocol| protocol.model == Model::Malicious),
                "{name}"
            );
        }
    }
}
