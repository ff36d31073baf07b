//! Errors in files of records, with hints for the user.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::format::Format;
use crate::key::KeyType;
use crate::lake::Lake;

/// The result of a step on one file.
pub(crate) type Result<T, E = Problem> = std::result::Result<T, E>;

/// The reason why a file could not be read, or its matching rows not be written: the file and the
/// problem.
///
/// Its text is `FILE: problem and position`, or `FILE is ..`; [`hint`](Self::hint) gives a remedy.
/// Neither contains field contents: rows are named by their number, columns by their name.
#[derive(Debug)]
pub struct Error {
    file: PathBuf,
    problem: Box<Problem>,
}

impl Error {
    /// The error for a problem with `file`.
    pub fn new(file: &Path, problem: Problem) -> Self {
        Self { file: file.to_owned(), problem: Box::new(problem) }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The problem.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The remedy for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        self.problem.hint()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = self.problem.to_string();
        // Where the file is the subject of the sentence, no colon stands between it and its verb.
        let is_subject =
            ["is ", "has ", "was ", "could "].iter().any(|verb| problem.starts_with(verb));
        let colon = if is_subject { "" } else { ":" };
        write!(f, "{}{colon} {problem}", self.file.display())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&*self.problem)
    }
}

/// A problem with a file, an option or an output.
///
/// Rows are counted from 1, the header not counted; row 0 is the header. Lines are counted from 1
/// as an editor does.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file does not exist, or reading is not permitted.
    #[error("could not be opened: {0}")]
    Open(#[source] io::Error),

    /// The operating system reported an error while the file was read.
    #[error("could not be read: {0}")]
    Read(#[source] io::Error),

    /// The format is read from files only, or in builds with the feature `columnar` only.
    #[error("is {0}, which this build cannot read")]
    NotBuilt(&'static str),

    /// Standard input could not be copied to a temporary file.
    #[error("could not be copied to a temporary file: {0}")]
    Spool(#[source] io::Error),

    /// A compressed file that is not text.
    #[error("is compressed as a whole, and is not text")]
    PackedTable,

    /// No key column was named.
    #[error("no key column is named")]
    NoKey,

    /// The file is empty, without even a header.
    #[error("is empty")]
    Empty,

    /// A column is named twice.
    #[error("column {} is named twice in the {place}", quoted(name))]
    NamedTwice {
        /// The column.
        name: String,
        /// The key or the payload.
        place: &'static str,
    },

    /// The payload has too many columns, or their names are too long.
    #[error("the payload has more columns, or longer names, than can be described")]
    TooManyValues,

    /// A key column is empty or null.
    #[error("row {row} has no key: column {} is empty", quoted(column))]
    EmptyKey {
        /// The row.
        row: u64,
        /// The first key column that is empty.
        column: String,
    },

    /// Two rows have the same key.
    #[error("{}{second} have the same key", earlier(*first, first_file.as_deref()))]
    DuplicateKey {
        /// The first row with this key.
        first: u64,
        /// Its file, if it is another one.
        first_file: Option<PathBuf>,
        /// The next one.
        second: u64,
    },

    /// A field cannot be read as the requested type.
    #[error("column {} of row {row} is not {}", quoted(column), wanted.with_article())]
    Unreadable {
        /// The row.
        row: u64,
        /// The column.
        column: String,
        /// The type.
        wanted: KeyType,
    },

    /// A normaliser refused a field.
    #[error("column {} of row {row} is malformed for {normaliser}: {cause}", quoted(column))]
    NotNormal {
        /// The row.
        row: u64,
        /// The column.
        column: String,
        /// The name of the normaliser.
        normaliser: String,
        /// The cause.
        cause: &'static str,
    },

    /// A rule cannot be parsed. Holds the reason.
    #[error("key {}: {reason}", quoted(rule))]
    Rule {
        /// The rule, or the part of it.
        rule: String,
        /// The reason.
        reason: String,
    },

    /// A column has a type that cannot be a payload.
    #[error("column {} is of type {found}, which cannot be sent", quoted(column))]
    UnsupportedValue {
        /// The column.
        column: String,
        /// Its type.
        found: String,
    },

    /// A value cannot be sent.
    #[error("column {} of row {row} {reason}", quoted(column))]
    Value {
        /// The row.
        row: u64,
        /// The column.
        column: String,
        /// The reason.
        reason: &'static str,
    },

    /// The values of a row are longer than the limit.
    #[error("the values of row {row} have more than {limit} bytes")]
    ValueTooLong {
        /// The row.
        row: u64,
        /// The limit.
        limit: u64,
    },

    /// A column has no text form.
    #[error("column {} is of type {found}, which has no form as text", quoted(column))]
    NoText {
        /// The column.
        column: String,
        /// Its type.
        found: String,
    },

    /// The file is inconsistent, or uses features that this version does not support: the message
    /// has the cause.
    #[error("{}", damage(*format, &**source, column.as_deref(), *part, *after))]
    Damaged {
        /// The format.
        format: Format,
        /// The column, if it is known.
        column: Option<String>,
        /// The row group or the record batch, counted from 1; none in front of them all.
        part: Option<usize>,
        /// Number of rows that were readable at least.
        after: u64,
        /// The error of the library. It may quote from the file, so the message does not
        /// include it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The file changed between reading it and writing its matching rows, or while it was read.
    #[error("has changed while it was in use")]
    Changed,

    /// A field, or the name of a column in row 0, is not UTF-8, as it must be in this format.
    #[error(
        "column {column} of {} is not UTF-8 and cannot be written to {}",
        place(*row),
        file_of(*format)
    )]
    NotUtf8 {
        /// The row.
        row: u64,
        /// The column, counted from 1.
        column: usize,
        /// The format of the output.
        format: Format,
    },

    /// The matching rows could not be written.
    #[error("the matching rows could not be written: {0}")]
    Output(#[source] io::Error),

    /// A problem that only its text tells from others.
    #[error("{what}")]
    Refused {
        /// The message.
        what: String,
        /// The remedy, if there is one.
        remedy: Option<String>,
    },
}

/// A problem, and its remedy, where only the text tells it from others.
pub(crate) fn refuse(what: impl fmt::Display, remedy: impl fmt::Display) -> Problem {
    Problem::Refused { what: what.to_string(), remedy: Some(remedy.to_string()) }
}

/// The problem of a file that does not begin like one of its format.
#[cfg(feature = "columnar")]
pub(crate) fn not_a(format: Format) -> Problem {
    refuse(
        format_args!("is not {}", file_of(format)),
        "check the file; the name of a text file with a header ends in .csv, .tsv or .txt",
    )
}

/// The problem of a file whose end is missing.
#[cfg(feature = "columnar")]
pub(crate) fn cut_short(format: Format) -> Problem {
    let of = file_of(format);
    let what = format_args!("is cut short: it begins as {of} and does not end as one");
    refuse(what, "copy or write it again")
}

pub(crate) fn damaged(
    format: Format,
    after: u64,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Problem {
    Problem::Damaged { format, column: None, part: None, after, source: source.into() }
}

const COPY: &str = "copy the file again, or write it again";
const REWRITE: &str = "write it again with a current tool, such as pyarrow or DuckDB";
const SMALLER: &str = "write it again with smaller pages, dictionaries or batches";

/// The causes of damage: a piece of the text of the library's error, or of this crate's; what the
/// message says, where a part of the file is `it`; and what to do. The first one counts.
const CAUSES: [(&str, &str, &str); 20] = [
    ("footer is", "its footer is malformed", COPY),
    ("Unexpected Encoding", "it has an unknown encoding", REWRITE),
    ("Unexpected CompressionCodec", "it has an unknown compression", REWRITE),
    ("CRC", "a checksum of it is wrong", COPY),
    ("page header", "a page header of it is malformed", COPY),
    ("claims", "it states more than its bytes can hold", COPY),
    ("limit", "it has more values, or longer ones, than volery reads at once", SMALLER),
    ("longer than the file", "it reaches beyond the end of the file", COPY),
    ("end of stream", "it ends too early", COPY),
    ("failed to fill", "it ends too early", COPY),
    ("EOF", "it ends too early", COPY),
    ("lacks a column", "it lacks a column", COPY),
    ("rows", "it has more or fewer rows than the file states", COPY),
    ("External", "it cannot be decompressed", COPY),
    ("root as message", "a message of it is malformed", COPY),
    ("missing its data", "a message of it is malformed", COPY),
    ("NYI", "it has a feature of the format that volery does not read", REWRITE),
    ("supported", "it has a type or a feature that volery does not read", REWRITE),
    ("UNKNOWN", "it has an unknown type", REWRITE),
    ("time is out of range", "it has a time that is out of range", REWRITE),
];

/// The cause of damage in words, and what to do.
fn cause(source: &dyn std::error::Error, part: Option<usize>) -> (&'static str, &'static str) {
    let text = source.to_string();
    let other = match part {
        Some(_) => "its values cannot be decoded",
        None => "the description of its columns is malformed",
    };
    let found = CAUSES.iter().find(|(piece, ..)| text.contains(piece));
    found.map_or((other, COPY), |(_, said, remedy)| (*said, *remedy))
}

/// The message of damage: of which part of the file, and the cause.
fn damage(
    format: Format,
    source: &(dyn std::error::Error + 'static),
    column: Option<&str>,
    part: Option<usize>,
    after: u64,
) -> String {
    let (said, remedy) = cause(source, part);
    let kind = if remedy == COPY { "damaged" } else { "not readable" };
    let name = if format == Format::Arrow { "record batch" } else { "row group" };
    match (column, part) {
        (Some(column), Some(part)) => {
            format!("is {kind} in column {} of {name} {part}: {said}", quoted(column))
        }
        (_, Some(part)) => format!("is {kind} in {name} {part}, after row {after}: {said}"),
        (_, None) => format!("is {kind}: {said}"),
    }
}

impl Problem {
    /// The remedy for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        let fixed = |text: &str| Some(text.to_owned());
        match self {
            Self::Refused { remedy, .. } => remedy.clone(),
            // As the libraries for compressed files report it.
            Self::Read(e) if matches!(e.kind(), UnexpectedEof | InvalidInput | InvalidData) => {
                fixed("its compression ends too early or is damaged: copy or write it again")
            }
            Self::Open(_) | Self::Read(_) | Self::Spool(_) | Self::Output(_) => None,
            Self::NotBuilt(_) => fixed("convert it to .csv, or .csv.gz"),
            Self::PackedTable => fixed("only text files are compressed as a whole: unpack it"),
            Self::NotNormal { .. } => {
                fixed("correct the row; --malformed skip leaves such rows out")
            }
            Self::Rule { .. } => fixed(RULE),
            Self::NoKey => {
                fixed("name the key column, or several with commas in between: --key COLUMN")
            }
            Self::Empty => {
                fixed("copy or write it again; of a text file the first line must name the columns")
            }
            Self::NamedTwice { .. } => fixed("name each column once"),
            Self::TooManyValues => fixed("name fewer columns"),
            Self::EmptyKey { .. } => fixed("--empty-keys skip leaves such rows out"),
            Self::DuplicateKey { .. } => {
                fixed("--duplicates dedup keeps the first row of each key")
            }
            Self::Unreadable { wanted, .. } => fixed(wanted.form()),
            Self::UnsupportedValue { .. } => fixed(
                "cast it: payload is boolean, integer, float, decimal, date, time, timestamp, text, \
                 binary or UUID, in columns that are not nested",
            ),
            Self::Value { .. } => {
                fixed("correct the row, or name the encoding of a text file with --encoding")
            }
            Self::ValueTooLong { .. } => fixed("shorten them, or name fewer columns"),
            Self::NoText { .. } => {
                fixed("write the matching rows to a .parquet file, or drop the column")
            }
            Self::Damaged { source, part, .. } => fixed(cause(&**source, *part).1),
            Self::Changed => fixed("leave the file alone until the run is over, and start again"),
            Self::NotUtf8 { .. } => fixed(
                "write the matching rows to a .csv file, or name the file's encoding with --encoding",
            ),
        }
    }
}

/// The hint to write a table as plain Parquet.
pub(crate) fn export(lake: Lake, table: &str) -> String {
    format!("write the table as plain Parquet first: {}", lake.export(table))
}

/// The hint for a missing column, depending on the requested name and the columns of the file.
pub(crate) fn missing_hint(name: &str, columns: &[&str]) -> Option<String> {
    if let [only] = columns
        && let Some(found) = only.chars().find(|c| [',', ';', '\t', '|'].contains(c))
    {
        return Some(format!("is the delimiter {found:?}? set it with --delimiter"));
    }
    let close = columns.iter().find(|column| column.trim().eq_ignore_ascii_case(name.trim()));
    if let Some(close) = close {
        return Some(format!("case and spaces count: did you mean {}?", quoted(close)));
    }
    let distance = |column: &&&str| strsim::damerau_levenshtein(name, column);
    // Short names are too close to everything.
    let near = columns.iter().filter(|column| distance(column) <= name.chars().count().min(8) / 4);
    if let Some(near) = near.min_by_key(distance) {
        return Some(format!("did you mean {}?", quoted(near)));
    }
    name.contains(':').then(|| RULE.to_owned())
}

/// The remedy for text that its encoding does not have.
pub(crate) const NAME_ENCODING: &str = "name the encoding the file was written in with --encoding";

/// The words that may be behind the colon of a key column.
const RULE: &str = "after the colon, give a type (text, binary, integer, decimal, boolean, date, \
    timestamp, datetime, uuid) or names of normalisers joined with '+'; enclose a name that contains a \
    comma or colon in double quotes";

/// A file of this format, with its article.
pub(crate) fn file_of(format: Format) -> &'static str {
    match format {
        Format::Csv | Format::Tsv => "a text file",
        Format::Parquet => "a Parquet file",
        Format::Arrow => "an Arrow file",
    }
}

fn earlier(row: u64, file: Option<&Path>) -> String {
    match file {
        None => format!("rows {row} and "),
        Some(file) => format!("row {row} of {} and row ", file.display()),
    }
}

/// The maximum number of characters shown of a column's name, and of columns shown.
const SHOWN: (usize, usize) = (64, 40);

/// A column's name for messages: quoted, with control characters escaped, shortened.
pub(crate) fn quoted(name: &str) -> String {
    let mut shown: String = name.chars().take(SHOWN.0).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

pub(crate) fn listed(columns: &[&str]) -> String {
    let mut text =
        columns.iter().take(SHOWN.1).map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    if columns.len() > SHOWN.1 {
        text += &format!(" and {} more", columns.len() - SHOWN.1);
    }
    text
}

pub(crate) fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

pub(crate) fn place(row: u64) -> String {
    match row {
        0 => "the header".to_owned(),
        row => format!("row {row}"),
    }
}
