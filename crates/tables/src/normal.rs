//! Normalisers of key columns: the text of a field becomes the form in which both parties write it.
//!
//! A normaliser is a named function with a version, such as `email/v1`. A version never changes:
//! what a version gives for a text is fixed by `data/normalisers.json`, with the vectors that every
//! implementation has to meet, and by the data that this file names (version 18.0.0 of Unicode,
//! version 9.0.42 of the numbering plans of libphonenumber). New data that give anything else make
//! a new version. Two parties compare the names with versions before a run.
//!
//! ```
//! use volery_tables::normal::{Normaliser, Outcome};
//!
//! # fn main() -> Result<(), volery_tables::normal::UnknownNormaliser> {
//! let phone = Normaliser::parse("e164=DE")?;
//! assert_eq!(phone.name(), "e164=DE/v1");
//! let mut out = String::new();
//! assert_eq!(phone.apply("(0)30 / 1234-567", &mut out), Outcome::Changed);
//! assert_eq!(out, "+49301234567");
//! assert_eq!(phone.apply("110", &mut out), Outcome::Malformed);
//! # Ok(())
//! # }
//! ```

mod day;
mod email;
mod phone;
mod text;

use day::Format;
use phone::Phone;

/// The version of Unicode behind version 1 of every normaliser.
pub const UNICODE: &str = "18.0.0";

/// The version of the numbering plans, those of libphonenumber, behind version 1 of `e164`.
pub const NUMBERING_PLANS: &str = "9.0.42";

/// The type of the keys that a normaliser gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// A text.
    Text,
    /// A day, written `YYYY-MM-DD`.
    Date,
}

/// The result of a normaliser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The text was in normal form.
    Same,
    /// The normal form differs from the text.
    Changed,
    /// The text is none of what the normaliser reads, such as an address without `@`.
    Malformed,
    /// The text is empty, or nothing of it remains.
    Empty,
}

/// A normaliser has a name and a version, and possibly an argument. All versions that exist are 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Normaliser(Function);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Function {
    /// The index in [`TEXT`].
    Text(usize),
    Email,
    Phone(Phone),
    Date(Format),
}

/// A normaliser as help and documentation list it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NormaliserHelp {
    /// Its name, with a placeholder for its argument: `lower`, `e164=REGION`.
    pub name: &'static str,
    /// A line that says what it does.
    pub description: &'static str,
}

const EMAIL: NormaliserHelp = NormaliserHelp {
    name: "email",
    description: "an address such as Ada@Example.ORG in lower case, its domain in ASCII; dots and +tags stay",
};

const PHONE: NormaliserHelp = NormaliserHelp {
    name: "e164=REGION",
    description: "a telephone number, as dialled in that region, in the form +491511234567",
};

const DATE: NormaliserHelp = NormaliserHelp {
    name: "date=FORMAT",
    description: "a date written in that format, such as %d.%m.%Y, as a date",
};

/// Appends the normal form of a text.
type TextFunction = fn(&str, &mut String);

/// The normalisers from text to text that accept every text and take no argument.
const TEXT: [(NormaliserHelp, TextFunction); 9] = [
    (
        NormaliserHelp { name: "trim", description: "white space at both ends is removed" },
        text::trim,
    ),
    (
        NormaliserHelp {
            name: "collapse",
            description: "every run of white space is one space; none is left at either end",
        },
        text::collapse,
    ),
    (
        NormaliserHelp {
            name: "visible",
            description: "characters that cannot be seen are removed, such as zero-width spaces",
        },
        text::visible,
    ),
    (
        NormaliserHelp {
            name: "lower",
            description: "upper and lower case are equal, in every script; ß is ss",
        },
        text::lower,
    ),
    (
        NormaliserHelp {
            name: "nfc",
            description: "one spelling of accented characters: Unicode normalisation form C",
        },
        text::nfc,
    ),
    (
        NormaliserHelp {
            name: "nfkc",
            description: "the same for full-width letters, ligatures and superscripts: form KC",
        },
        text::nfkc,
    ),
    (
        NormaliserHelp {
            name: "digits",
            description: "only the decimal digits, of any script, as 0 to 9",
        },
        text::digits,
    ),
    (
        NormaliserHelp { name: "alnum", description: "only letters, with their marks, and digits" },
        text::alnum,
    ),
    (
        NormaliserHelp {
            name: "name",
            description: "only the letters of a name, without accents, upper case or spaces",
        },
        text::name,
    ),
];

impl Normaliser {
    /// Reads the name of a normaliser, with its argument and its version, if there is one: `email`,
    /// `email/v1`, `e164=DE`.
    ///
    /// # Errors
    /// If there is no such normaliser, argument or version.
    pub fn parse(spec: &str) -> Result<Self, UnknownNormaliser> {
        // An argument may have slashes: date=%d/%m/%Y.
        let (unversioned, version) = match spec.rsplit_once("/v") {
            Some((rest, digits)) if is_number(digits) => (rest, Some(digits)),
            _ => (spec, None),
        };
        let (name, argument) = match unversioned.split_once('=') {
            Some((name, argument)) => (name, Some(argument)),
            None => (unversioned, None),
        };
        let plain = TEXT.iter().position(|(listed, _)| listed.name == name);
        let function = match (name, argument, plain) {
            ("email", None, _) => Function::Email,
            (_, None, Some(index)) => Function::Text(index),
            ("email", Some(_), _) | (_, Some(_), Some(_)) => {
                return Err(UnknownNormaliser(format!(
                    "'{name}' takes no argument: write '{name}'"
                )));
            }
            ("e164", Some(region), _) => {
                Function::Phone(Phone::parse(region).map_err(UnknownNormaliser)?)
            }
            ("e164", None, _) => {
                return Err(UnknownNormaliser(
                    "'e164' needs the region to assume for numbers without a country code, for \
                     example e164=DE"
                        .to_owned(),
                ));
            }
            ("date", Some(format), _) => {
                Function::Date(Format::parse(format).map_err(UnknownNormaliser)?)
            }
            _ => return Err(UnknownNormaliser::name(name)),
        };
        if let Some(version) = version.filter(|&version| version != "1") {
            return Err(UnknownNormaliser(format!(
                "this program has no version {version} of '{name}', only version 1: \
                 write '{unversioned}/v1'"
            )));
        }
        Ok(Self(function))
    }

    /// The name with argument and version, as the parties compare it: `email/v1`, `e164=DE/v1`.
    pub fn name(&self) -> String {
        match &self.0 {
            Function::Text(index) => format!("{}/v1", TEXT[*index].0.name),
            Function::Email => "email/v1".to_owned(),
            Function::Phone(phone) => format!("e164={}/v1", phone.region()),
            Function::Date(format) => format!("date={format}/v1"),
        }
    }

    /// The type of what it gives.
    pub fn gives(&self) -> KeyKind {
        match self.0 {
            Function::Date(_) => KeyKind::Date,
            _ => KeyKind::Text,
        }
    }

    /// Writes the normal form of `text` to `out`, in place of what is there. `out` is empty
    /// where the outcome is [`Outcome::Malformed`] or [`Outcome::Empty`].
    pub fn apply(&self, text: &str, out: &mut String) -> Outcome {
        out.clear();
        let read = match &self.0 {
            Function::Text(index) => {
                TEXT[*index].1(text, out);
                Some(())
            }
            // The others are empty exactly where nothing but white space is.
            _ if text.trim().is_empty() => Some(()),
            Function::Email => email::apply(text, out),
            Function::Phone(phone) => phone.apply(text, out),
            Function::Date(format) => format.apply(text, out),
        };
        if read.is_none() {
            out.clear();
            Outcome::Malformed
        } else if out.is_empty() {
            Outcome::Empty
        } else if out == text {
            Outcome::Same
        } else {
            Outcome::Changed
        }
    }

    /// The cause for which the normaliser refused `text`.
    pub(crate) fn cause(&self, text: &str) -> &'static str {
        match &self.0 {
            Function::Email => email::cause(text),
            Function::Phone(phone) => phone.cause(text),
            Function::Text(_) | Function::Date(_) => "another form, or no such day",
        }
    }

    /// All normalisers.
    pub fn all() -> impl Iterator<Item = NormaliserHelp> {
        let text = TEXT.into_iter().map(|(listed, _)| listed);
        [EMAIL, PHONE, DATE].into_iter().chain(text)
    }
}

fn is_number(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
}

/// There is no such normaliser; the text says why and what there is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownNormaliser(String);

impl UnknownNormaliser {
    fn name(name: &str) -> Self {
        let names: Vec<_> = Normaliser::all().map(|listed| listed.name).collect();
        Self(format!("there is no normaliser '{name}'; there are: {}", names.join(", ")))
    }
}
