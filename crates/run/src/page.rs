//! The report of a run as a page: one HTML file with its style and its charts, which loads nothing
//! and runs no script.
//!
//! The page is made from the JSON of `--report`, so that a report of an earlier run, or of a failed
//! one, gives a page too. A field that is missing leaves its part of the page out; the last part
//! lists all fields. `page.html` is the template with the words; this module has the numbers as
//! people read them. Every value is escaped.

mod words;

use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value as Field, context};
use serde_json::Value;

use crate::failure::visible;

/// The page of a report.
pub fn render(report: &Value) -> String {
    let mut fields = Vec::new();
    flatten("", report, &mut fields);
    let values = context! {
        report => Field::from(Serde(report)),
        command => report["command"].as_str().unwrap_or("run"),
        style => include_str!("page/style.css"),
        fields => fields,
    };
    let page = environment().render_named_str("page", include_str!("page/page.html"), values);
    page.expect("the template takes every report") + "\n"
}

/// The template's functions. None of them fails: a report may have any value in any field.
fn environment() -> Environment<'static> {
    let mut page = Environment::new();
    page.set_undefined_behavior(UndefinedBehavior::Chainable);
    page.set_auto_escape_callback(|_| AutoEscape::Html);
    page.set_formatter(|out, _, value| {
        match value.is_none() || value.is_undefined() {
            true => {}
            false if value.is_safe() => write!(out, "{value}")?,
            false => out.write_str(&escape(&value.to_string()))?,
        }
        Ok(())
    });
    page.add_filter("whole", |value: Field| whole(&value));
    page.add_filter("text", |value: Field| {
        value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    });
    page.add_filter("list", list);
    page.add_filter("shown", |value: Field| match value.is_none() || value.is_undefined() {
        true => "–".to_owned(),
        false => number(&value).map_or_else(|| value.to_string(), |number| number.to_string()),
    });
    page.add_filter("has", |all: Field, field: &str| list(all).iter().any(|one| has(one, field)));
    page.add_filter("count", |value: Field| words::count(whole(&value).unwrap_or(0)));
    page.add_filter("things", |value: Field, noun: &str| {
        words::things(whole(&value).unwrap_or(0), noun)
    });
    page.add_filter("bytes", |value: Field| words::bytes(whole(&value).unwrap_or(0)));
    page.add_filter("seconds", |value: Field| words::seconds(real(&value)));
    page.add_filter("share", |part: Field, all: Field| words::share(real(&part), real(&all)));
    page.add_filter("one_in", |log2: Field| words::one_in(real(&log2)));
    page.add_filter("exponent", |log2: Field| format!("{:.1}", real(&log2)).replace('-', "−"));
    page.add_filter("places", |value: Field, places: usize| format!("{:.places$}", real(&value)));
    page.add_filter("minute", |date: &str| minute(date));
    page.add_filter("start", |from: Field, to: Field, all: Field| {
        percent(span(&from, &to, &all).0)
    });
    page.add_filter("extent", |from: Field, to: Field, all: Field| {
        percent(span(&from, &to, &all).1)
    });
    page.add_filter("spans", spans);
    page
}

/// A whole number that is not negative.
fn whole(value: &Field) -> Option<u64> {
    (value.is_integer()).then(|| u64::try_from(value.clone()).ok()).flatten()
}

fn number(value: &Field) -> Option<f64> {
    (value.kind() == ValueKind::Number).then(|| f64::try_from(value.clone()).ok()).flatten()
}

fn real(value: &Field) -> f64 {
    number(value).unwrap_or(0.0)
}

/// The entries of a list; of anything else none.
fn list(value: Field) -> Vec<Field> {
    match value.kind() {
        ValueKind::Seq => value.try_iter().into_iter().flatten().collect(),
        _ => Vec::new(),
    }
}

/// Whether a field of an object has a value.
fn has(object: &Field, field: &str) -> bool {
    object.get_attr(field).is_ok_and(|value| !value.is_none() && !value.is_undefined())
}

/// The names and seconds of phases, and where each begins and ends.
fn spans(phases: Field) -> Vec<Field> {
    let mut start = 0.0;
    let spans = list(phases).into_iter().filter_map(|phase| {
        let name = phase.get_attr("name").ok()?;
        let seconds = number(&phase.get_attr("seconds").ok()?)?;
        let from = start;
        start += seconds.max(0.0);
        name.as_str()?;
        Some(context! { name, seconds, from, to => start })
    });
    spans.collect()
}

/// The begin and the length of a bar as parts of an axis.
fn span(from: &Field, to: &Field, all: &Field) -> (f64, f64) {
    let all = real(all);
    let part = |end: &Field| if all > 0.0 { (real(end) / all).clamp(0.0, 1.0) } else { 0.0 };
    let (from, to) = (part(from), part(to));
    // What is there stays visible, however short.
    let wide = if to > from { (to - from).max(0.004) } else { 0.0 };
    (from.min(1.0 - wide), wide)
}

fn percent(part: f64) -> String {
    format!("{:.2}%", 100.0 * part)
}

/// A point in time as in ISO 8601, without its seconds; any other text as it is.
fn minute(date: &str) -> String {
    match (date.split_once('T'), date.strip_suffix('Z')) {
        (Some((day, time)), Some(_)) if time.is_char_boundary(5) && time.len() > 5 => {
            format!("{day} {} UTC", &time[..5])
        }
        _ => date.to_owned(),
    }
}

/// Escapes a text; characters that show nothing are written as their code points.
fn escape(text: &str) -> String {
    let mut out = visible(text);
    // The first one is in all others.
    let all = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;"), ("'", "&#39;")];
    for (character, name) in all {
        out = out.replace(character, name);
    }
    out
}

/// The names and values of all fields, with the path of each.
fn flatten(path: &str, value: &Value, rows: &mut Vec<[String; 2]>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(&format!("{path}{dot}{name}"), value, rows);
            }
        }
        Value::Array(entries) if !entries.is_empty() => {
            for (index, value) in entries.iter().enumerate() {
                flatten(&format!("{path}[{index}]"), value, rows);
            }
        }
        Value::Null => {}
        Value::String(text) => rows.push([path.to_owned(), text.clone()]),
        value => rows.push([path.to_owned(), value.to_string()]),
    }
}

#[cfg(test)]
mod tests;
