//! `volery params list`.

use volery_pcg::lpn::{self, Level, LpnSet};
use volery_run::choices::{field_name, fields};
use volery_run::failure::Result;
use volery_run::report::Report;
use volery_run::reporter::Reporter;

use super::super::options::Common;
use super::super::table::table;

pub(super) fn run(common: &Common, reporter: &Reporter) -> Result<()> {
    let place = common.prepare_report(reporter)?;
    reporter.output(&format!("{}\n", list()))?;
    let mut report = Report::new("params", reporter);
    let sets: Vec<_> = lpn::sets().iter().map(json).collect();
    report.result.insert("sets".to_owned(), sets.into());
    place.write(&report).map(drop)
}

/// A set in the form of the report.
fn json(set: &LpnSet) -> serde_json::Value {
    let levels = set.fields.iter().filter_map(|field| {
        let Level { bits, attack } = set.level(*field)?;
        Some(serde_json::json!({ "field": field.to_string(), "bits": bits, "attack": attack }))
    });
    serde_json::json!({
        "name": set.name, "n": set.n, "k": set.k, "t": set.t, "noise": set.noise.to_string(),
        "fields": set.fields.iter().copied().map(field_name).collect::<Vec<_>>(),
        "claimed_bits": set.claim, "computed_bits": set.weakest().bits, "attack": set.weakest().attack,
        "levels": levels.collect::<Vec<_>>(),
        "gf128_with_binary_code": set.with_binary_code().map(
            |Level { bits, attack }| serde_json::json!({ "bits": bits, "attack": attack }),
        ),
        "paper": set.paper, "source": set.source, "date": set.date,
    })
}

fn list() -> String {
    let rows = lpn::sets().iter().map(|set| {
        let Level { bits, attack } = set.weakest();
        [
            set.name.to_owned(),
            set.n.to_string(),
            set.k.to_string(),
            set.t.to_string(),
            set.noise.to_string(),
            fields(set),
            format!("{} bits", set.claim),
            format!("{bits:.1}"),
            attack.to_owned(),
            set.with_binary_code().map_or("-".to_owned(), |level| format!("{:.1}", level.bits)),
            if set.paper { "paper" } else { "own" }.to_owned(),
            set.source.to_owned(),
            set.date.to_owned(),
        ]
    });
    table(
        [
            "name", ">n", ">k", ">t", "noise", "rings", ">claims", ">holds", "attack", ">binary",
            "whose", "source", "date",
        ],
        rows,
    ) + NOTE
}

/// An explanation of the column `binary`.
const NOTE: &str = "

binary: the bits that gf128 would hold if its code had entries 0 and 1. An attacker could then
look at the 128 coordinates of a round as so many rounds over f2 with their noise in the same
places. The code of gf128 has random factors, which rules that out.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_of_a_binary_code_is_explained() {
        let text = list();
        assert!(
            text.contains("34.1") && text.contains("\n\nbinary: the bits that gf128 would hold")
        );
    }
}
