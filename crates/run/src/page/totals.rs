//! The parts of the page about one number, or one for each group, over the common keys.

use serde_json::Value;

use super::markup::{Markup, element};
use super::words::{count, things};
use super::{Page, list, note, number, section, text, whole};

/// A number of a total as the report has it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Page<'_> {
    /// The name of the total, if the run was for one.
    pub(crate) fn kind(&self) -> Option<&str> {
        text(&self.result["kind"]).filter(|_| self.matching())
    }

    fn noisy(&self) -> bool {
        !self.result["noise"].is_null()
    }

    /// The result in one sentence.
    pub(crate) fn total_headline(&self) -> Option<String> {
        let kind = self.kind()?;
        let result = self.result;
        if kind == "shares" {
            let places = whole(&result["shares"]["places"]).unwrap_or_default();
            return Some(format!("Each side has shares of {}", things(places, "place")));
        }
        let about = if self.noisy() { "About " } else { "" };
        let groups = list(&result["groups"]).len() as u64;
        Some(if groups > 0 {
            format!("A {kind} over the common keys of {}", things(groups, "group"))
        } else if result["below_minimum"] == true {
            "There are fewer common keys than the minimum".to_owned()
        } else if let (Some(found), "count") = (result["count"].as_i64(), kind) {
            match whole(&result["count"]) {
                Some(found) => format!("{about}{} on both sides", things(found, "key")),
                None => format!("About {found} keys on both sides"),
            }
        } else if let (Some(mean), "mean") = (result["mean"].as_f64(), kind) {
            format!("{about}{mean:.4} is the mean over the common keys")
        } else if let Some(sum) = text(&result["sum"]) {
            format!("{about}{sum} is the {kind} over the common keys")
        } else {
            format!("A {kind} over the common keys was computed")
        })
    }

    /// The sentence below the headline.
    pub(crate) fn total_lead(&self) -> Option<String> {
        let kind = self.kind()?;
        let (own, peer) = self.sizes_of_sets()?;
        let to = match (text(&self.result["to"]).unwrap_or_default(), self.role()) {
            _ if kind == "shares" => "Neither side learned which keys are common.",
            ("both", _) => "The result went to both sides.",
            (to, role) if to == role => "The result went to this side alone.",
            _ => "The result went to the peer; this side gets none.",
        };
        Some(format!(
            "This side had {}, the peer {}. {to}",
            things(own, "distinct key"),
            count(peer)
        ))
    }

    /// The numbers, and what bounds and hides them.
    pub(crate) fn totals(&self) -> Option<Markup> {
        self.kind()?;
        let result = self.result;
        let groups = list(&result["groups"]);
        let totals = match groups {
            [] => std::slice::from_ref(self.total()?),
            groups => groups,
        };
        let names = [("count", "Count"), ("sum", "Sum"), ("mean", "Mean")];
        let columns = names.into_iter();
        let columns: Vec<_> = columns
            .filter(|(field, _)| totals.iter().any(|total| !total[*field].is_null()))
            .collect();
        let heading = |name: &str| element("th", &[("scope", "col")], name);
        let head = std::iter::once(heading("Group"))
            .chain(columns.iter().map(|(_, name)| heading(name)))
            .chain([heading("Below the minimum")]);
        let rows = totals.iter().map(|total| {
            let group = text(&total["group"]).unwrap_or("all common keys");
            let below =
                if total["below_minimum"] == true { "yes: nothing was opened" } else { "no" };
            let cells = std::iter::once(element("th", &[("scope", "row")], group))
                .chain(columns.iter().map(|(field, _)| number(shown(&total[*field]))))
                .chain([element("td", &[], below)]);
            element("tr", &[], cells.collect::<Markup>())
        });
        let table = element(
            "table",
            &[("class", "stack")],
            [
                element("thead", &[], element("tr", &[], head.collect::<Markup>())),
                element("tbody", &[], rows.collect::<Markup>()),
            ],
        );
        let mut notes = vec![match whole(&result["minimum"]) {
            None | Some(0) => "There was no minimum.".to_owned(),
            Some(minimum) => format!("The minimum was {}.", things(minimum, "common key")),
        }];
        if let Some(bound) = text(&result["bound"]) {
            notes.push(format!("A key’s value was at most {bound}, without its sign."));
        }
        for part in ["count", "sum"] {
            let noise = &result["noise"][part];
            if let Some(mechanism) = text(&noise["mechanism"]) {
                let sensitivity = shown(&noise["sensitivity"]);
                notes.push(format!(
                    "A {part} has {mechanism}, for a change of {sensitivity} by a common key."
                ));
            }
        }
        if let Some(epsilon) = result["epsilon"].as_f64() {
            let delta = result["delta"].as_f64();
            let delta = delta.map_or(String::new(), |delta| format!(" and delta {delta}"));
            notes.push(format!("Differential privacy has epsilon {epsilon}{delta} for one run."));
        }
        Some(section("totals", "The result", [table, note(notes.join(" "))]))
    }

    /// The fields of a total without groups, if this side knows something of it.
    fn total(&self) -> Option<&Value> {
        let there = ["count", "sum"].iter().any(|field| !self.result[*field].is_null());
        let value = self.report.get("result")?;
        (there || value["below_minimum"] == true).then_some(value)
    }
}
