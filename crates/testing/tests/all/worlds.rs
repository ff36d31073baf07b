//! No peer tells two inputs of an honest party apart, by one execution or by a whole run, but for
//! what [`LISTED`] says.

mod psi;
mod runs;

use std::collections::BTreeSet;

use volery_testing::worlds::{Act, Deviation, Difference, Scenario};

/// Faults of each scenario that run without `VOLERY_ATTACKS=all`. Edits always run.
const FAULTS: usize = 12;

/// A difference that there may be, where every scenario whose name contains one of `names` has it.
struct Row {
    names: &'static [&'static str],
    differences: &'static [Difference],
    why: &'static str,
    /// Words of SECURITY.md that tell users.
    told: &'static str,
}

const LISTED: &[Row] = &[];

fn listed(scenario: &Scenario, difference: Difference) -> Option<usize> {
    LISTED.iter().position(|row| {
        row.names.iter().any(|name| scenario.name.contains(name))
            && row.differences.contains(&difference)
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
        eprintln!("{}", scenario.name);
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

#[test]
fn executions() {
    assert_alike(&psi::all());
}

#[test]
fn whole_runs() {
    assert_alike(&runs::all());
}
