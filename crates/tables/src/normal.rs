//! Normalisers: functions of a text that give texts with one meaning one form.

use std::fmt;

/// The type of what a normaliser gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// A text.
    Text,
    /// A day, as `YYYY-MM-DD`.
    Date,
}

/// What a normaliser did with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The text has its normal form already.
    Same,
    /// The normal form is another text.
    Changed,
    /// The text is not of the kind that the normaliser is for.
    Malformed,
    /// Nothing is left of the text.
    Empty,
}

/// There is no such normaliser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown;

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no such normaliser")
    }
}

/// A normaliser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Normaliser {
    lower: bool,
}

impl Normaliser {
    /// The normaliser of this name, such as `lower`, `email/v1` or `e164=DE`.
    ///
    /// # Errors
    /// If there is none.
    pub fn parse(spec: &str) -> Result<Self, Unknown> {
        match spec {
            "trim" | "trim/v1" => Ok(Self { lower: false }),
            "lower" | "lower/v1" => Ok(Self { lower: true }),
            _ => Err(Unknown),
        }
    }

    /// The name with the version.
    pub fn name(&self) -> String {
        if self.lower { "lower/v1" } else { "trim/v1" }.to_owned()
    }

    /// The type of what it gives.
    pub fn gives(&self) -> KeyKind {
        KeyKind::Text
    }

    /// Writes the normal form of `text` to `out`.
    pub fn apply(&self, text: &str, out: &mut String) -> Outcome {
        out.clear();
        match self.lower {
            true => out.extend(text.chars().flat_map(char::to_lowercase)),
            false => out.push_str(text.trim()),
        }
        match out.as_str() {
            "" => Outcome::Empty,
            changed if changed != text => Outcome::Changed,
            _ => Outcome::Same,
        }
    }
}
