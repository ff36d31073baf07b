//! No peer tells two inputs of an honest party apart, by one execution or by a whole run, but for
//! what [`LISTED`] says.

mod psi;
mod runs;

use std::collections::BTreeSet;

use volery_testing::worlds::{Act, Deviation, Difference, Scenario};

/// Faults of each scenario that run without `VOLERY_ATTACKS=all`. Edits always run.
const FAULTS: usize = 12;

/// A difference that there may be in the scenarios whose names contain one of `names`.
struct Row {
    names: &'static [&'static str],
    is: fn(Difference) -> bool,
    why: &'static str,
    /// Where the peer learns something by it: words of SECURITY.md that tell users.
    told: Option<&'static str>,
}

/// All differences. Bytes may differ where a mask or a function hides what they are made from.
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

fn listed(scenario: &Scenario, difference: Difference) -> Option<usize> {
    LISTED.iter().position(|row| {
        (row.is)(difference) && row.names.iter().any(|name| scenario.name.contains(name))
    })
}

/// The deviations that are tried.
fn chosen(scenario: &Scenario) -> Vec<Deviation> {
    if !scenario.malicious {
        return Vec::new();
    }
    let all = std::env::var_os("VOLERY_ATTACKS").is_some();
    let deviations = scenario.deviations();
    let (edits, faults): (Vec<_>, Vec<_>) = deviations
        .into_iter()
        .partition(|of| matches!(of.act, Act::Edit(..)));
    let step = if all {
        1
    } else {
        faults.len().div_ceil(FAULTS).max(1)
    };
    // Beginning at another place in each scenario.
    let first = scenario.name.len() % step;
    edits
        .into_iter()
        .chain(faults.into_iter().skip(first).step_by(step))
        .collect()
}

/// Compares the worlds of each scenario, without and with deviations. Returns the rows that were
/// needed.
fn assert_alike(scenarios: &[Scenario]) -> BTreeSet<usize> {
    let mut used = BTreeSet::new();
    let mut wrong = Vec::new();
    for scenario in scenarios {
        let deviations = chosen(scenario).into_iter().map(Some);
        for deviation in std::iter::once(None).chain(deviations) {
            for difference in scenario.compare(deviation.as_ref()) {
                match listed(scenario, difference) {
                    Some(row) => _ = used.insert(row),
                    None => wrong.push(format!("{}: {difference:?}, {deviation:?}", scenario.name)),
                }
            }
        }
    }
    wrong.dedup();
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    used
}

/// Rows for which no scenario of a list has a use are gone from the table.
fn assert_needed(used: &BTreeSet<usize>, of_runs: bool) {
    for (number, row) in LISTED.iter().enumerate() {
        if row.names.iter().any(|name| name.contains(" by ")) == of_runs {
            assert!(used.contains(&number), "nothing needs the row: {}", row.why);
        }
    }
}

#[test]
fn executions() {
    assert_needed(&assert_alike(&psi::all()), false);
}

#[test]
fn whole_runs() {
    assert_needed(&assert_alike(&runs::all()), true);
}

/// What a peer may learn is in SECURITY.md, in the words of the table.
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
