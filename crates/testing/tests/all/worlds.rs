//! No peer tells two inputs of an honest party apart, by one execution or by a whole run, but for
//! what [`LISTED`] says.

mod harness;
mod psi;
mod runs;

use std::collections::BTreeSet;

use harness::{Act, Deviation, Difference, Network, Scenario, Work};
use runs::Kind;
use volery_channel::Role;

/// Faults of each scenario that run without `VOLERY_ATTACKS=all`. Edits always run.
const FAULTS: usize = 8;

/// Differences after which no more are looked for.
const ENOUGH: usize = 4;

/// A difference that there may be in the scenarios whose names contain one of `names`.
struct Row {
    names: &'static [&'static str],
    is: fn(Difference) -> bool,
    why: &'static str,
    /// Where the peer learns something by it: words of SECURITY.md that tell users.
    told: Option<&'static str>,
}

/// All differences but those of [`MASKED`].
const LISTED: &[Row] = &[
    Row {
        names: &["search"],
        is: |one| matches!(one, Difference::Work | Difference::LastWork),
        why: "values of common items are decrypted before the next message",
        told: Some("for the values of common items, before its next message"),
    },
    Row {
        names: &["psi by ", "lookup by "],
        is: |one| matches!(one, Difference::Work | Difference::LastWork),
        why: "rows that match are written before the next part",
        told: Some("a receiver with more of them takes longer to write them"),
    },
    Row {
        names: &["served query: client"],
        is: |one| one == Difference::LastWork,
        why: "tags with the high part of an item are compared after the last message",
        told: Some("by less than 64 comparisons an item"),
    },
    Row {
        names: &["served query: client"],
        is: |one| one == Difference::Bytes(0),
        why: "elements are blinded by random scalars",
        told: None,
    },
    Row {
        names: &["served query: server"],
        is: |one| one == Difference::Bytes(0),
        why: "tags of the filter are outputs of a function under the server's key",
        told: None,
    },
];

/// Writes of the receiver and of the sender whose bytes may differ. The receiver's hide its items
/// by a mask that is used once: of an encoding by the vector OLE, of rows by OT, of a polynomial by
/// its random values; bits of the result for both are in the order of tags, which is random. The
/// sender's are outputs of a function that the receiver does not know, or encrypted by one. In
/// circuit-PSI all that follows the hints is masked by shares. A name that ends with a space is
/// that of several protocols.
const MASKED: &[(&str, [&[usize]; 2])] = &[
    ("vole intersection, malicious", [&[9], &[12]]),
    ("vole search, malicious", [&[9], &[12, 13]]),
    ("vole intersection, fast", [&[8], &[10]]),
    ("vole search, fast", [&[8], &[10, 11]]),
    ("vole intersection, fast, for both", [&[8, 9], &[10]]),
    ("vole search, fast, for both", [&[8, 9], &[10, 11]]),
    ("vole intersection, low-communication", [&[13], &[19]]),
    ("vole search, low-communication", [&[13], &[19, 20]]),
    ("vole intersection, low-communication, for both", [&[13, 14], &[19]]),
    ("vole search, low-communication, for both", [&[13, 14], &[19, 20]]),
    ("kkrt ", [&[6], &[5]]),
    ("dh ", [&[2], &[3]]),
    ("count", [&[2], &[2]]),
    (
        "circuit, fast",
        [&[8, 18, 21, 24, 25, 26, 27, 28, 29, 31], &[19, 22, 25, 26, 27, 28, 30, 32, 33]],
    ),
    (
        "circuit, low-communication",
        [&[13, 29, 30, 31, 32, 33, 34, 35, 36, 37], &[34, 35, 36, 37, 38, 39, 40, 41, 42]],
    ),
];

/// The sender's items in its worlds: two are common, the others the receiver lacks.
const SENDERS: [&str; 2] = ["others that the receiver lacks", "yet others"];

/// The items or rows of the parties of a run.
struct Inputs<T> {
    /// The receiver's worlds, and what it has in each of them.
    receivers: &'static [&'static str],
    receiver: fn(usize) -> Vec<T>,
    /// The receiver's where the sender learns which are common: the same two in all worlds.
    shown: fn(usize) -> Vec<T>,
    /// The sender's in the worlds of [`SENDERS`].
    sender: fn(usize) -> Vec<T>,
    /// The items of the peer in this role.
    peer: fn(Role) -> Vec<T>,
}

/// Both honest parties of a run, each against a peer that follows it. `both`: whether the sender
/// learns which of its items are common.
fn scenarios<T: 'static>(
    name: &str,
    [malicious, both]: [bool; 2],
    inputs: &'static Inputs<T>,
    run: impl Fn(Role, &[T], &mut Network, Work) + Clone + Send + Sync + 'static,
) -> [Scenario; 2] {
    [Role::Receiver, Role::Sender].map(|role| {
        let (worlds, own) = match (role, both) {
            (Role::Receiver, false) => (inputs.receivers, inputs.receiver),
            (Role::Receiver, true) => (&SENDERS[..], inputs.shown),
            (Role::Sender, _) => (&SENDERS[..], inputs.sender),
        };
        let (honest, peer, other) = (run.clone(), run.clone(), role.other());
        Scenario::new(
            format!("{name}: {role}"),
            malicious,
            worlds,
            move |world, network: &mut Network| {
                let work = network.work();
                honest(role, &own(world), network, work);
            },
            move |network: &mut Network| {
                peer(other, &(inputs.peer)(other), network, Work::default());
            },
        )
    })
}

/// Whether a write may have other bytes.
fn masked(scenario: &Scenario, write: usize) -> bool {
    let Some((protocol, role)) = scenario.name.rsplit_once(": ") else {
        return false;
    };
    MASKED.iter().any(|(name, [receiver, sender])| {
        let is = match name.strip_suffix(' ') {
            Some(word) => protocol.split(' ').next() == Some(word),
            None => protocol == *name,
        };
        is && (if role == "receiver" { receiver } else { sender }).contains(&write)
    })
}

fn listed(scenario: &Scenario, difference: Difference) -> Option<usize> {
    LISTED.iter().position(|row| {
        (row.is)(difference) && row.names.iter().any(|name| scenario.name.contains(name))
    })
}

fn chosen(scenario: &Scenario) -> Vec<Deviation> {
    if !scenario.malicious {
        return Vec::new();
    }
    let all = std::env::var_os("VOLERY_ATTACKS").is_some();
    let deviations = scenario.deviations();
    let (edits, faults): (Vec<_>, Vec<_>) =
        deviations.into_iter().partition(|of| matches!(of.act, Act::Edit(..)));
    let step = if all { 1 } else { faults.len().div_ceil(FAULTS).max(1) };
    // Beginning at another place in each scenario.
    let first = scenario.name.len() % step;
    edits.into_iter().chain(faults.into_iter().skip(first).step_by(step)).collect()
}

/// Compares the worlds of each scenario, without and with deviations. Every row that names one of
/// them has to be needed.
fn assert_alike(scenarios: &[Scenario]) {
    let (mut used, mut wrong) = (BTreeSet::new(), Vec::new());
    for scenario in scenarios {
        let deviations = chosen(scenario).into_iter().map(Some);
        for deviation in std::iter::once(None).chain(deviations) {
            assert!(wrong.len() < ENOUGH, "{}", wrong.join("\n"));
            for difference in scenario.compare(deviation.as_ref()) {
                match (difference, listed(scenario, difference)) {
                    (_, Some(row)) => _ = used.insert(row),
                    (Difference::Bytes(write), None) if masked(scenario, write) => {}
                    (_, None) => {
                        wrong.push(format!("{}: {difference:?}, {deviation:?}", scenario.name))
                    }
                }
            }
        }
    }
    let count = wrong.len();
    assert!(wrong.is_empty(), "{count} differences:\n{}", wrong.join("\n"));
    for (number, row) in LISTED.iter().enumerate() {
        let named = |scenario: &Scenario| row.names.iter().any(|name| scenario.name.contains(name));
        if scenarios.iter().any(named) {
            assert!(used.contains(&number), "nothing needs this: {}", row.why);
        }
    }
}

#[test]
fn executions_by_vole() {
    assert_alike(&psi::by_vole());
}

#[test]
fn executions_by_others() {
    assert_alike(&psi::by_others());
}

#[test]
fn a_server_and_its_clients() {
    assert_alike(&psi::served());
}

#[test]
fn runs_of_one_part() {
    assert_alike(&runs::rows_by(Kind::OnePart));
}

#[test]
fn runs_of_several_rules() {
    assert_alike(&runs::rows_by(Kind::Rules));
}

#[test]
fn runs_of_several_buckets() {
    assert_alike(&runs::rows_by(Kind::Buckets));
}

#[test]
fn runs_that_are_resumed() {
    assert_alike(&runs::rows_by(Kind::Resumed));
}

#[test]
fn runs_of_several_workers() {
    assert_alike(&runs::rows_by(Kind::Workers));
}

#[test]
fn totals_and_shares() {
    assert_alike(&runs::all_sums());
}

/// SECURITY.md tells what a peer may learn, in the words of the table.
#[test]
fn differences_are_told() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for row in LISTED {
        if let Some(told) = row.told {
            assert!(text.contains(told), "{told}");
        }
    }
}
