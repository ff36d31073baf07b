//! The options of a call, in the words of JavaScript.

use std::fmt::Display;
use std::str::FromStr;

use serde::Deserialize;
use volery_channel::Role;
use volery_matching::{MAX_RULES, Name, Settings, Verb, What, totals};
use volery_tables::{Duplicates, EmptyKeys, Format, Inputs, Malformed, Reading, Rule};

use crate::failure::Failure;

/// What is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
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
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[expect(
    missing_docs,
    reason = "they are described in the types of the package"
)]
pub struct Options {
    pub call: Call,
    pub key: Vec<String>,
    pub or: Vec<String>,
    pub format: Option<String>,
    pub delimiter: Option<String>,
    pub encoding: Option<String>,
    pub empty_keys: Option<String>,
    pub malformed: Option<String>,
    pub duplicates: Option<String>,
    pub protocol: Option<String>,
    pub security: Option<String>,
    pub link: Option<String>,
    pub both: bool,
    pub value_names: Vec<String>,
    pub out: bool,
    pub minimum: Option<u64>,
    pub epsilon: Option<String>,
    pub delta: Option<String>,
}

/// The column of keys that are not in a table.
pub(crate) const COLUMN: &str = "key";

/// The choice of this name, or the first.
fn choose<T: Copy>(option: &str, name: Option<&String>, all: &[(&str, T)]) -> Result<T, Failure> {
    let Some(name) = name else {
        return Ok(all[0].1);
    };
    let found = all.iter().find(|(other, _)| other == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
        Failure::usage(option, format_args!("choose one of {}", names.join(", ")))
    })
}

fn parse<T: FromStr>(option: &str, text: Option<&String>) -> Result<Option<T>, Failure>
where
    T::Err: Display,
{
    let parsed = text.map(|text| text.parse());
    parsed
        .transpose()
        .map_err(|error| Failure::usage(option, error))
}

impl Options {
    /// How to read the table.
    pub(crate) fn inputs(&self) -> Result<Inputs, Failure> {
        let delimiter = match self.delimiter.as_deref().map(str::as_bytes) {
            None => None,
            Some(b"tab" | b"\\t") => Some(b'\t'),
            Some([byte]) => Some(*byte),
            Some(_) => {
                let what = "a delimiter is one ASCII character, or 'tab'";
                return Err(Failure::usage("delimiter", what));
            }
        };
        let formats = [
            (None, Some(Format::Csv)),
            (Some("csv"), Some(Format::Csv)),
            (Some("tsv"), Some(Format::Tsv)),
        ];
        let format = match self.format.as_deref() {
            None => None,
            name => {
                let found = formats.iter().find(|(other, _)| *other == name);
                let found = found.ok_or_else(|| Failure::usage("format", "choose csv or tsv"))?;
                found.1
            }
        };
        Ok(Inputs {
            paths: Vec::new(),
            delimiter,
            encoding: parse("encoding", self.encoding.as_ref())?,
            format,
        })
    }

    /// How to read the keys; of a list of keys there is one column.
    pub(crate) fn reading(&self, list: bool) -> Result<Reading, Failure> {
        let mut key = self.key.join(",");
        if list && (key.is_empty() || key.starts_with(':')) {
            key = format!("{COLUMN}{key}");
        }
        if key.is_empty() {
            let hint = "name the column, such as \"email:email\" or \"phone:e164=DE\"";
            return Err(Failure::usage("key", "is missing").with_hint(hint));
        }
        let texts = std::iter::once(("key", &key)).chain(self.or.iter().map(|or| ("or", or)));
        let mut rules = Vec::new();
        for (option, text) in texts {
            rules.push(Rule::parse(text).map_err(|problem| Failure::usage(option, problem))?);
        }
        if rules.len() > MAX_RULES {
            let what = format_args!("{} keys given; a run has at most {MAX_RULES}", rules.len());
            return Err(Failure::usage("or", what));
        }
        let what = match self.call {
            Call::Match | Call::Lookup => None,
            Call::Query => Some("a server has keys of one kind"),
            Call::Count => Some("keys are counted by one kind of key"),
        };
        if let Some(what) = what.filter(|_| rules.len() > 1) {
            return Err(Failure::usage("or", what).with_hint("remove or"));
        }
        let empty_keys = [("error", EmptyKeys::Error), ("skip", EmptyKeys::Skip)];
        let malformed = [("error", Malformed::Error), ("skip", Malformed::Skip)];
        let duplicates = [
            ("keep", Duplicates::Keep),
            ("error", Duplicates::Error),
            ("dedup", Duplicates::Dedup),
        ];
        Ok(Reading {
            rules,
            empty_keys: choose("emptyKeys", self.empty_keys.as_ref(), &empty_keys)?,
            malformed: choose("malformed", self.malformed.as_ref(), &malformed)?,
            duplicates: choose("duplicates", self.duplicates.as_ref(), &duplicates)?,
            ..Reading::default()
        })
    }

    /// The settings that both sides of a count share.
    pub(crate) fn count_settings(&self) -> Result<totals::Settings, Failure> {
        let all = [
            ("auto", Name::Auto),
            ("dh", Name::Dh),
            ("circuit", Name::Circuit),
            ("circuit-low", Name::CircuitLow),
        ];
        let options = totals::Options {
            name: choose("protocol", self.protocol.as_ref(), &all)?,
            both: self.both,
            security: parse("security", self.security.as_ref())?,
            minimum: self.minimum,
            epsilon: self.epsilon.clone(),
            delta: self.delta.clone(),
            link: parse("link", self.link.as_ref())?,
            ..totals::Options::default()
        };
        Ok(totals::Settings::new(What::Count, Role::Receiver, options)?)
    }

    /// The settings that both sides share.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        let verb = match self.call {
            Call::Match | Call::Query | Call::Count => Verb::Psi,
            Call::Lookup => Verb::Lookup,
        };
        let security = parse("security", self.security.as_ref())?;
        let link = parse("link", self.link.as_ref())?;
        let all = [
            ("auto", Name::Auto),
            ("vole", Name::Vole),
            ("vole-low", Name::VoleLow),
            ("kkrt", Name::Kkrt),
            ("kkrt-paper", Name::KkrtPaper),
            ("dh", Name::Dh),
        ];
        let name = match self.call {
            Call::Query => Name::Served,
            _ => choose("protocol", self.protocol.as_ref(), &all)?,
        };
        let (both, role) = (self.both, Role::Receiver);
        Ok(Settings::new(verb, role, name, security, both, link)?)
    }
}
