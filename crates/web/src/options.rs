//! The options of a call, by their names in JavaScript.

use std::ffi::OsString;

use serde_json::{Map, Value};
use volery_matching::options::Options as Matching;
use volery_matching::{Operation, ProtocolChoice, ResultKind, Settings, totals};
use volery_options::OptionSet as _;
use volery_tables::{Format, Inputs, Reading};

use crate::failure::{Failure, Result};

/// The operation that is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Call {
    /// The matching rows, with `volery psi`.
    #[default]
    Match,
    /// The matching rows with columns of the peer, with `volery lookup`.
    Lookup,
    /// The matching rows, with `volery serve`.
    Query,
    /// The number of common keys alone, with `volery psi --result count`.
    Count,
}

/// The options of a call: those of the program, as `web/index.d.ts` describes them.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The operation.
    pub call: Call,
    /// Whether the caller wants the rows as a file.
    pub out: bool,
    pub(crate) matching: Matching,
    /// The names of the options that were given.
    given: Vec<String>,
}

/// The options of a call in a browser, in snake case; `value_names` is `value_name`.
pub(crate) const NAMES: [&str; 18] = [
    "key",
    "or",
    "format",
    "delimiter",
    "encoding",
    "quote",
    "empty_keys",
    "malformed",
    "duplicates",
    "drop_repeated",
    "protocol",
    "security",
    "link",
    "both",
    "value_names",
    "minimum",
    "epsilon",
    "delta",
];

/// The column of keys that are not in a table.
pub(crate) const COLUMN: &str = "key";

/// A name of JavaScript in snake case.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// A list of names as one value: a name with a comma or a quote stands in double quotes.
fn listed(names: &[String]) -> String {
    let quoted = names.iter().map(|name| match name.contains([',', '"']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.clone(),
    });
    quoted.collect::<Vec<_>>().join(",")
}

/// The texts of a value: of a list each of its elements.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.clone()],
        Value::Array(all) => all.iter().flat_map(texts).collect(),
        other => vec![other.to_string()],
    }
}

impl Options {
    /// Reads a JSON object.
    pub fn parse(object: &Map<String, Value>) -> Result<Self> {
        let mut options = Self::default();
        for (name, value) in object {
            let texts = texts(value);
            match name.as_str() {
                "call" => {
                    options.call = match texts.first().map(String::as_str) {
                        None | Some("match") => Call::Match,
                        Some("lookup") => Call::Lookup,
                        Some("query") => Call::Query,
                        Some("count") => Call::Count,
                        _ => return Err(Failure::usage(name, "no such call")),
                    };
                    continue;
                }
                "out" => {
                    options.out = value == &Value::Bool(true);
                    continue;
                }
                _ => {}
            }
            let snake = snake(name);
            if !NAMES.contains(&&*snake) {
                return Err(Failure::usage(name, "there is no such option"));
            }
            let (snake, texts) = match snake.as_str() {
                "value_names" if texts.is_empty() => continue,
                "value_names" => ("value_name", vec![listed(&texts)]),
                other => (other, texts),
            };
            for text in texts {
                let set = options.matching.set(snake, &OsString::from(text));
                set.map_err(|what| Failure::usage(name, what))?;
                options.given.push(name.clone());
            }
        }
        if options.call == Call::Query {
            options.matching.protocol = ProtocolChoice::Served;
        }
        Ok(options)
    }

    /// Whether the option was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.given.iter().any(|given| given == name)
    }

    /// How to read the table.
    pub(crate) fn inputs(&self) -> Result<Inputs> {
        match self.matching.format {
            None | Some(Format::Csv | Format::Tsv) => {}
            Some(_) => return Err(Failure::usage("format", "choose csv or tsv")),
        }
        Ok(self.matching.inputs())
    }

    /// How to read the keys; of a list of keys there is one column.
    pub(crate) fn reading(&self, list: bool) -> Result<Reading> {
        let mut matching = self.matching.clone();
        let mut key = matching.key.join(",");
        if list && (key.is_empty() || key.starts_with(':')) {
            key = format!("{COLUMN}{key}");
        }
        if key.is_empty() {
            let hint = "name the column, such as \"email:email\" or \"phone:e164=DE\"";
            return Err(Failure::usage("key", "is missing").with_hint(hint));
        }
        matching.key = vec![key];
        let what = match self.call {
            Call::Match | Call::Lookup => None,
            Call::Query => Some("a server has keys of one kind"),
            Call::Count => Some("keys are counted by one kind of key"),
        };
        if let Some(what) = what.filter(|_| !matching.or.is_empty()) {
            return Err(Failure::usage("or", what).with_hint("remove or"));
        }
        Ok(matching.reading()?)
    }

    /// The settings that both sides of a count share.
    pub(crate) fn count_settings(&self) -> Result<totals::Settings> {
        let matching = Matching { result: ResultKind::Count, ..self.matching.clone() };
        Ok(matching.totals()?)
    }

    /// The settings that both sides share.
    pub(crate) fn settings(&self) -> Result<Settings> {
        let verb = match self.call {
            Call::Match | Call::Query | Call::Count => Operation::Psi,
            Call::Lookup => Operation::Lookup,
        };
        if self.call != Call::Query && self.matching.protocol == ProtocolChoice::Served {
            return Err(Failure::usage("protocol", "is of the call query"));
        }
        Ok(self.matching.settings(verb)?)
    }
}

#[cfg(test)]
mod tests {
    use volery_matching::options::Options as Matching;
    use volery_options::OptionSet as _;

    use super::{NAMES, snake};

    /// The names of the options that `index.d.ts` declares, one a line: `  emptyKeys?: ..`.
    fn declared() -> Vec<String> {
        let text = include_str!("../../../web/index.d.ts");
        let names = text.lines().filter_map(|line| line.split_once("?: "));
        names.map(|(name, _)| snake(name.trim())).collect()
    }

    #[test]
    fn options_have_types_and_are_those_of_a_matching() {
        let declared = declared();
        let known = Matching::describe();
        for name in NAMES {
            assert!(declared.iter().any(|one| one == name), "index.d.ts lacks {name}");
            // The one name of JavaScript that is another one in the program.
            let of_matching = if name == "value_names" { "value_name" } else { name };
            assert!(known.iter().any(|one| one.name == of_matching), "{name}");
        }
    }
}
