//! The texts of a run for totals: its plan, its report, its numbers and its last lines.

use serde_json::{Value, json};
use volery_channel::Role;
use volery_matching::totals::{Kind, Outcome, PreparedTable, Settings, Total, decimal};
use volery_psi::noise::Mechanism;
use volery_tables::{Format, Packing};

use crate::failure::Result;
use crate::matching::arguments::MatchingArguments;
use crate::matching::cost::{Prediction, add_cost, choice, failures};
use crate::randomness::hex;
use crate::report::Report;
use crate::reporter::{Reporter, many, object};

/// The settings of the result, and what is known of it before the run. `no_group`: rows in none of
/// the groups, at the side that has them.
pub(crate) fn settings_of(settings: &Settings, no_group: Option<u64>) -> Value {
    let has_sum = settings.kind.has_sum();
    let privacy = settings.privacy.as_ref();
    let noise = |mechanism: Option<Mechanism>, number: usize, sensitivity: String| {
        mechanism.map(|mechanism| {
            let sides = [Role::Sender, Role::Receiver].into_iter();
            let added_by = sides.filter(|side| settings.adds(*side)[number]);
            json!({
                "mechanism": mechanism.to_string(),
                "scale": mechanism.scale(),
                "sensitivity": sensitivity,
                "added_by": added_by.map(Role::name).collect::<Vec<_>>(),
            })
        })
    };
    let unit = decimal(settings.unit().unwrap_or(0) as i64, settings.sum_decimals());
    let noise = privacy.map(|privacy| {
        json!({
            "count": noise(privacy.count, 0, "1".to_owned()),
            "sum": noise(privacy.sum, 1, unit),
        })
    });
    json!({
        "kind": settings.kind.name(),
        "to": settings.to.name(),
        "column_at": settings.holder.map(Role::name),
        "bound": has_sum.then(|| decimal(settings.bound as i64, settings.decimals)),
        "decimals": has_sum.then_some(settings.decimals),
        "minimum": settings.minimum,
        "epsilon": privacy.map(|privacy| privacy.epsilon.to_f64()),
        "delta": privacy.and_then(|privacy| privacy.delta.map(|delta| delta.to_f64())),
        "noise": noise,
        "groups_at": settings.grouped.map(Role::name),
        "rows_in_no_group": no_group,
    })
}

/// The numbers of a total.
fn total_of(settings: &Settings, total: &Total) -> Value {
    json!({
        "below_minimum": total.below_minimum,
        "count": total.count,
        // As text: exact, whatever reads it.
        "sum": total.sum.map(|sum| decimal(sum, settings.sum_decimals())),
        "mean": total.mean(settings),
    })
}

/// Adds the result, what the run cost, and how sure it is.
pub(crate) fn add_outcome(report: &mut Report, settings: &Settings, outcome: &Outcome) {
    let [items, peer_items] = settings.role.sides(outcome.sizes);
    add_cost(report, [outcome.traffic, outcome.setup_traffic], [outcome.setup, outcome.online]);
    let parameters = &outcome.parameters;
    report.parameters = Some(parameters.describe());
    report.assumption = Some(parameters.assumption());
    match settings.grouped {
        None => {
            let total = outcome.totals.first();
            let total = total.map(|total| object(total_of(settings, total)));
            report.result.extend(total.unwrap_or_default());
        }
        Some(_) => {
            let groups = settings.groups.iter().zip(&outcome.totals);
            let groups = groups.map(|(group, total)| {
                let mut fields = object(total_of(settings, total));
                fields.insert("group".to_owned(), group.as_str().into());
                fields
            });
            let groups: Vec<_> = groups.collect();
            let below = outcome.totals.iter().any(|total| total.below_minimum);
            let fields = json!({ "below_minimum": below, "groups": groups });
            report.result.extend(object(fields));
        }
    }
    report.result.extend(object(json!({
        "session": hex(outcome.session.as_bytes()),
        "protocol": outcome.protocol.name(),
        "choice": outcome.choice.as_ref().map(choice),
        "items": items,
        "peer_items": peer_items,
        "failures": failures(parameters.failures().into_iter(), 0.0),
        "failure_log2": -parameters.failure_bits(),
        "statistical_bits": parameters.failure_bits(),
        "memory_bytes": parameters.memory(settings.role),
    })));
    let rules = report.result.get_mut("rules");
    if let Some(Value::Object(rule)) = rules.and_then(|rules| rules.get_mut(0)) {
        rule.insert("peer_keys".to_owned(), peer_items.into());
    }
}

/// The numbers for standard output: a line for each, or CSV with a row for each group.
pub(crate) fn numbers(settings: &Settings, outcome: &Outcome) -> String {
    if settings.grouped.is_some() {
        let mut out = Vec::new();
        let written = outcome.write(settings, &mut out, (Format::Csv, Packing::None));
        written.expect("numbers have a form as text");
        return String::from_utf8(out).expect("names and numbers are UTF-8");
    }
    let mut lines = String::new();
    for total in &outcome.totals {
        if total.below_minimum {
            lines += &format!("below_minimum {}\n", settings.minimum);
        }
        if let Some(count) = total.count {
            lines += &format!("count {count}\n");
        }
        if let Some(sum) = total.sum {
            let name = match settings.kind {
                Kind::SumProduct => settings.kind.name(),
                _ => "sum",
            };
            lines += &format!("{name} {}\n", decimal(sum, settings.sum_decimals()));
        }
        if let Some(mean) = total.mean(settings) {
            lines += &format!("mean {mean}\n");
        }
    }
    lines
}

/// The last lines of a run.
pub(crate) fn summary(settings: &Settings, report: &Report, outcome: &Outcome) -> Vec<String> {
    let role = settings.role.name();
    let [items, peer] = settings.role.sides(outcome.sizes);
    let noisy = match settings.privacy {
        Some(_) => ", with noise,",
        None => "",
    };
    let mut lines = Vec::new();
    let below = outcome.totals.iter().filter(|total| total.below_minimum);
    match (below.count(), settings.grouped) {
        (0, _) => {}
        (_, None) => lines.push(format!(
            "{role}: the number of common keys{noisy} is below {}; nothing was opened",
            settings.minimum
        )),
        (below, Some(_)) => lines.push(format!(
            "{role}: of {below} of {}, the number of common keys{noisy} is below {}; nothing of \
             these was opened",
            many(settings.totals() as u64, "group"),
            settings.minimum
        )),
    }
    let whose = match settings.gets_totals() {
        true => "",
        false => " for the peer",
    };
    lines.push(format!(
        "{role}: {}{whose} of {} here and {peer} at the peer, using {}, semi-honest, in {:.3} s, {} \
         bytes sent, {} received",
        settings.kind.name(),
        many(items, "key"),
        outcome.protocol,
        report.seconds.total.unwrap_or_default(),
        outcome.traffic.bytes_sent,
        outcome.traffic.bytes_received,
    ));
    lines
}

/// The cost of a run: for people, and as a report.
pub(crate) fn plan(
    arguments: &MatchingArguments,
    side: &PreparedTable,
    revealed: &[String],
    reporter: &Reporter,
) -> Result<(String, Report)> {
    let settings = side.settings();
    let own = side.summary().keys;
    let peer = arguments.peer_rows.unwrap_or(own);
    let prediction = Prediction {
        arguments,
        rows: side.summary().rows,
        keys: [own, peer],
        security: "semi-honest".to_owned(),
        plan: side.plan(peer, arguments.link.unwrap_or_default())?,
        own: many(own, "distinct key"),
        has_columns: false,
        without: "reading files",
    };
    let fields = object(settings_of(settings, side.rows_in_no_group()));
    Ok(prediction.tell(revealed, fields, reporter))
}
