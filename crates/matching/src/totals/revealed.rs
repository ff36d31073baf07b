//! The facts that each side learns.

use volery_channel::Role;
use volery_psi::circuit::Recipient;

use super::decimal::decimal;
use super::settings::{Kind, Settings};
use crate::parameters::Partitioning;

/// The facts that each side learns in a run with these settings, and the security: one sentence
/// each, without a full stop.
pub fn revealed(settings: &Settings, divided: Partitioning) -> Vec<String> {
    let Settings { kind, to, minimum, role, .. } = *settings;
    let rounded = match divided {
        Partitioning::Shards => " (rounded up to three digits)",
        Partitioning::No | Partitioning::Buckets => "",
    };
    let mut lines = vec![format!(
        "each side learns how many distinct keys the other has{rounded}, and the number and types \
         of its key columns"
    )];
    if divided == Partitioning::Shards {
        lines.push(
            "each side learns the number of shards that the other asks for, by its number of keys, \
             and when a worker of the other starts again; the shards are filled up to equal sizes, \
             and nothing is opened of one of them"
                .to_owned(),
        );
    }
    let (noisy, plus) = match settings.privacy {
        Some(_) => ("noisy ", ", with noise"),
        None => ("", ""),
    };
    let of = match settings.grouped {
        Some(_) => " of each group",
        None => "",
    };
    let who = match (to, role) {
        (Recipient::Both, _) => "both sides learn",
        (Recipient::Sender, Role::Sender) | (Recipient::Receiver, Role::Receiver) => {
            "this side learns"
        }
        _ => "the peer learns",
    };
    let holder = settings.holder.unwrap_or(Role::Receiver).name();
    let what = match kind {
        Kind::Count => format!("the number of common keys{of}"),
        Kind::Sum => format!("the sum of the {holder}'s column over the common keys{of}"),
        Kind::Mean => format!(
            "the number of common keys{of} and the sum of the {holder}'s column over them, from \
             which the mean follows"
        ),
        Kind::SumProduct => {
            format!("the sum of the products of both columns over the common keys{of}")
        }
    };
    lines.push(format!("{who} {what}{plus}"));
    if minimum > 0 {
        lines.push(format!(
            "both sides learn whether the {noisy}number of common keys{of} is below {minimum}; \
             where it is, nothing else is opened"
        ));
    }
    if let Some(grouped) = settings.grouped {
        lines.push(format!(
            "both sides have named the groups; which keys are in which is known to the {grouped} \
             alone",
            grouped = grouped.name()
        ));
    }
    lines.extend(noise(settings));
    lines.push(
        match (to, role) {
            (Recipient::Both, _) => "neither side learns which keys are common",
            (Recipient::Sender, Role::Sender) | (Recipient::Receiver, Role::Receiver) => {
                "neither side learns which keys are common, and the peer nothing more"
            }
            _ => "neither side learns which keys are common, and this side nothing more",
        }
        .to_owned(),
    );
    lines.push(
        "secure against a semi-honest peer: a peer that does not follow the protocol can learn more, or \
         falsify the result; repeated runs with sets that differ in a few keys tell about these"
            .to_owned(),
    );
    lines
}

/// The noise, and the facts that it protects.
fn noise(settings: &Settings) -> Vec<String> {
    let Some(privacy) = &settings.privacy else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    let whose = |number: usize| {
        let sides = [Role::Sender, Role::Receiver].map(|role| settings.adds(role)[number]);
        match sides {
            [true, true] => "each side adds its own",
            [true, false] => "the sender adds it",
            _ => "the receiver adds it",
        }
    };
    let unit = settings.unit().unwrap_or(0);
    let totals = [
        ("count", privacy.count, "1".to_owned()),
        ("sum", privacy.sum, decimal(unit as i64, settings.sum_decimals())),
    ];
    for (number, (name, mechanism, sensitivity)) in totals.into_iter().enumerate() {
        let Some(mechanism) = mechanism else { continue };
        let units = match (number, settings.sum_decimals()) {
            (1, decimals @ 1..) => format!(" in units of 10^-{decimals}"),
            _ => String::new(),
        };
        lines.push(format!(
            "each {name} has {mechanism}{units}, {}; a common key more or less changes it by at \
             most {sensitivity}",
            whose(number)
        ));
    }
    let delta = privacy.delta.map_or(String::new(), |delta| format!(" and delta {delta}"));
    lines.push(format!(
        "the result is differentially private with epsilon {}{delta} against whoever learns \
         something of it: for a common key more or less, with the number of distinct keys of each \
         side known",
        privacy.epsilon
    ));
    lines
}
