//! Rules: lists of key columns with types and normalisers.

use std::fmt::Write;

use arrow_schema::{Field, Schema};

use crate::cell::{key_type, type_name};
use crate::error::{Problem, Result, listed, missing_hint, quoted, refuse};
use crate::key::KeyType;
use crate::normal::{KeyKind, Normaliser};

/// A rule of matching: key columns, each with a type and normalisers. Parsed, and not yet bound to
/// a table.
#[derive(Debug, Clone)]
pub struct Rule {
    arguments: Vec<Argument>,
}

#[derive(Debug, Clone)]
struct Argument {
    /// The whole argument, if it was without quotes: a column of this name takes precedence.
    whole: Option<String>,
    name: String,
    spec: Spec,
    /// The reason why what follows the colon is not a specification.
    wrong: Option<String>,
}

/// The words that follow the colon of a key column.
#[derive(Debug, Clone, Default)]
struct Spec {
    wanted: Option<KeyType>,
    normalisers: Vec<Normaliser>,
}

impl Rule {
    /// Parses key columns with commas in between, each `NAME` or `NAME:SPEC`. A name with a comma
    /// or a colon is written in double quotes, a quote in it twice. SPEC is a type (`text`,
    /// `binary`, `integer`, `decimal`, `boolean`, `date`, `timestamp`, `datetime`, `uuid`), or
    /// names of normalisers with `+` in between, with or without `text` first. A column whose name
    /// equals a whole argument without quotes takes precedence.
    ///
    /// # Errors
    /// If a quote does not close, a name is empty, or a quoted name has an unknown SPEC; an unknown
    /// SPEC behind a name without quotes is an error of [`Reader::new`](crate::Reader::new), unless
    /// there is a column of the whole name.
    pub fn parse(text: &str) -> Result<Self> {
        let mut arguments = Vec::new();
        let mut rest = Some(text);
        while let Some(text) = rest {
            let argument;
            (argument, rest) = match text.strip_prefix('"') {
                Some(quoted) => parse_quoted(quoted).map_err(|reason| wrong(text, reason))?,
                None => parse_plain(text),
            };
            if argument.name.is_empty() {
                return Err(match text {
                    "" if arguments.is_empty() => Problem::NoKey,
                    _ => wrong(text, "a name is empty"),
                });
            }
            arguments.push(argument);
        }
        Ok(Self { arguments })
    }

    /// The key columns among those of a table.
    pub(crate) fn bind(&self, schema: &Schema) -> Result<Vec<KeyColumn>> {
        let mut keys: Vec<KeyColumn> = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            let key = argument.bind(schema)?;
            if keys.iter().any(|earlier| earlier.column == key.column) {
                let name = schema.field(key.column).name().clone();
                return Err(Problem::NamedTwice { name, place: "key" });
            }
            keys.push(key);
        }
        Ok(keys)
    }
}

fn wrong(rule: &str, reason: impl Into<String>) -> Problem {
    Problem::Rule { rule: rule.to_owned(), reason: reason.into() }
}

/// An argument behind its quote, and what follows its comma.
fn parse_quoted(text: &str) -> Result<(Argument, Option<&str>), String> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let (part, behind) = rest.split_once('"').ok_or("a quote does not close")?;
        name.push_str(part);
        match behind.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => {
                rest = behind;
                break;
            }
        }
    }
    let (spec, rest) = match rest.split_once(',') {
        Some((spec, rest)) => (spec, Some(rest)),
        None => (rest, None),
    };
    let spec = match spec {
        "" => Spec::default(),
        spec => Spec::parse(spec.strip_prefix(':').ok_or("text follows a closing quote")?)?,
    };
    let argument = Argument { whole: None, name, spec, wrong: None };
    Ok((argument, rest))
}

/// An argument without quotes, and what follows its comma.
fn parse_plain(text: &str) -> (Argument, Option<&str>) {
    let (whole, rest) = match text.split_once(',') {
        Some((whole, rest)) => (whole, Some(rest)),
        None => (text, None),
    };
    let (name, spec) = match whole.rsplit_once(':') {
        Some((name, spec)) => (name, Spec::parse(spec)),
        None => (whole, Ok(Spec::default())),
    };
    let (spec, wrong) = match spec {
        Ok(spec) => (spec, None),
        Err(reason) => (Spec::default(), Some(reason)),
    };
    let argument = Argument { whole: Some(whole.to_owned()), name: name.to_owned(), spec, wrong };
    (argument, rest)
}

impl Spec {
    fn parse(text: &str) -> Result<Self, String> {
        let mut spec = Self::default();
        for (i, part) in text.split('+').enumerate() {
            if let Some(wanted) = KeyType::named(part) {
                if i > 0 {
                    return Err(format!("the type {part} is not first"));
                }
                spec.wanted = Some(wanted);
                continue;
            }
            if !matches!(spec.wanted, None | Some(KeyType::Text)) {
                return Err("only text has normalisers".to_owned());
            }
            if spec.gives() != KeyType::Text {
                return Err(format!("{part} needs a text, and follows a {}", spec.gives()));
            }
            let normaliser = Normaliser::parse(part).map_err(|unknown| unknown.to_string())?;
            spec.normalisers.push(normaliser);
        }
        Ok(spec)
    }

    /// The type of the result of the normalisers.
    fn gives(&self) -> KeyType {
        match self.normalisers.last().map(Normaliser::gives) {
            Some(KeyKind::Date) => KeyType::Date,
            Some(KeyKind::Text) | None => KeyType::Text,
        }
    }
}

impl Argument {
    fn bind(&self, schema: &Schema) -> Result<KeyColumn> {
        let whole = self.whole.as_deref().and_then(|whole| schema.index_of(whole).ok());
        let (column, spec) = match (whole, &self.wrong, &self.whole) {
            (Some(column), ..) => (column, Spec::default()),
            (None, None, _) => (find(schema, &self.name)?, self.spec.clone()),
            (None, Some(reason), whole) => match schema.index_of(&self.name) {
                Ok(_) => return Err(wrong(whole.as_deref().unwrap_or_default(), reason)),
                Err(_) => return Err(missing(schema, whole.as_deref().unwrap_or_default())),
            },
        };
        let field = schema.field(column);
        let mut key =
            KeyColumn { column, kind: KeyType::Text, normalisers: spec.normalisers.clone() };
        key.kind = match spec.normalisers.is_empty() {
            true => check(field, spec.wanted)?,
            false => {
                check(field, Some(KeyType::Text))?;
                spec.gives()
            }
        };
        Ok(key)
    }
}

/// The type as which a column is read.
fn check(field: &Field, wanted: Option<KeyType>) -> Result<KeyType> {
    let is_float = matches!(type_name(field), "float16" | "float" | "double");
    match (key_type(field), wanted) {
        (Some(found), None) => Ok(found),
        (Some(found), Some(wanted)) if found.reads_as(wanted) => Ok(wanted),
        (Some(found), Some(wanted)) => {
            let column = quoted(field.name());
            let what = format_args!("column {column} is {found} and cannot be read as {wanted}");
            Err(refuse(
                what,
                format_args!("{column}:text reads it as text; the other party must do the same"),
            ))
        }
        (None, Some(KeyType::Integer)) if is_float => Ok(KeyType::Integer),
        (None, _) => {
            let (column, found) = (quoted(field.name()), type_name(field));
            let what = format_args!("column {column} is of type {found}, which cannot be a key");
            Err(refuse(
                what,
                "keys are text, binary, integer, decimal, boolean, date, timestamp, datetime or \
                 uuid (and floats that are integers, with :integer)",
            ))
        }
    }
}

/// The column called `name`, counted from 0.
pub(crate) fn find(schema: &Schema, name: &str) -> Result<usize> {
    schema.index_of(name).map_err(|_| missing(schema, name))
}

fn missing(schema: &Schema, name: &str) -> Problem {
    let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let what = format!("there is no column {}; the columns are {}", quoted(name), listed(&columns));
    Problem::Refused { what, remedy: missing_hint(name, &columns) }
}

/// A key column of a table: its index, its type in the key, and the normalisers before that.
#[derive(Debug, Clone)]
pub(crate) struct KeyColumn {
    pub(crate) column: usize,
    pub(crate) kind: KeyType,
    pub(crate) normalisers: Vec<Normaliser>,
}

/// The rules of a table as the other party must have them: key columns with commas in between,
/// rules with ` or `.
pub(crate) fn describe(rules: &[Vec<KeyColumn>]) -> String {
    let mut text = String::new();
    for (i, keys) in rules.iter().enumerate() {
        for (j, key) in keys.iter().enumerate() {
            text += match (i, j) {
                (0, 0) => "",
                (_, 0) => " or ",
                _ => ",",
            };
            // Writing into memory does not fail.
            let _ = write!(text, "{}", key.kind);
            for normaliser in &key.normalisers {
                let _ = write!(text, "+{}", normaliser.name());
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use arrow_schema::DataType;

    use super::*;

    fn bound(rule: &str) -> Result<(Vec<usize>, String)> {
        let names = ["id", "id:integer", "a:b", "day", "a,b", "c\"d", "x:lower"];
        let field = |name| crate::cell::field(name);
        let mut fields: Vec<Field> = names.into_iter().map(field).collect();
        fields.push(Field::new("n", DataType::Int16, true));
        fields.push(Field::new("f", DataType::Float64, true));
        let keys = Rule::parse(rule)?.bind(&Schema::new(fields))?;
        let columns = keys.iter().map(|key| key.column).collect();
        Ok((columns, describe(&[keys])))
    }

    #[test]
    fn columns_are_found_by_the_whole_argument_first() {
        for (rule, columns, description) in [
            ("id:integer", vec![1], "text"),
            ("\"id\":integer", vec![0], "integer"),
            ("a:b:text,id,day:date", vec![2, 0, 3], "text,text,date"),
            ("\"a,b\",\"a:b\":lower", vec![4, 2], "text,text+lower/v1"),
            ("\"c\"\"d\",x:lower", vec![5, 6], "text,text"),
            ("day:text+trim+lower", vec![3], "text+trim/v1+lower/v1"),
            ("n,f:integer", vec![7, 8], "integer,integer"),
            ("n:trim", vec![7], "text+trim/v1"),
        ] {
            assert_eq!(bound(rule).unwrap(), (columns, description.to_owned()), "{rule}");
        }
    }

    #[test]
    fn rules_that_are_none() {
        let said = |rule| bound(rule).unwrap_err().to_string();
        for (rule, message) in [
            ("", "no key column is named"),
            ("id,", r#"key "": a name is empty"#),
            (",id", r#"key ",id": a name is empty"#),
            ("\"id", r#"key "\"id": a quote does not close"#),
            ("\"id\"x", r#"key "\"id\"x": text follows a closing quote"#),
            ("day,\"day\":date", r#"column "day" is named twice in the key"#),
            ("f", r#"column "f" is of type double, which cannot be a key"#),
            ("f:text", r#"column "f" is of type double, which cannot be a key"#),
            ("n:date", r#"column "n" is integer and cannot be read as date"#),
            ("id:trim+integer", r#"key "id:trim+integer": the type integer is not first"#),
            ("id:integer+trim", r#"key "id:integer+trim": only text has normalisers"#),
        ] {
            assert_eq!(said(rule), message, "{rule}");
        }
        assert!(said("nowhere").starts_with(r#"there is no column "nowhere""#));
        assert!(said("nowhere:date").starts_with(r#"there is no column "nowhere""#));
        assert!(said("nowhere:time").starts_with(r#"there is no column "nowhere:time""#));
        assert!(said("day:time").starts_with(r#"key "day:time": "#));
        assert!(said("\"day\":time").starts_with(r#"key "\"day\":time": "#));
    }
}
