//! Errors in files of records, with hints for the user.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::key::KeyType;

/// The reason why a file could not be read, or its matching rows not be written: the file and the
/// problem.
///
/// Its text is `FILE: problem and position`; [`hint`](Self::hint) gives a remedy. Neither contains
/// field contents: rows are named by their number, columns by their name.
#[derive(Debug)]
pub struct Error {
    file: PathBuf,
    problem: Box<Problem>,
}

impl Error {
    pub(crate) fn new(file: &Path, problem: Problem) -> Self {
        Self {
            file: file.to_owned(),
            problem: Box::new(problem),
        }
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
        write!(f, "{}: {}", self.file.display(), self.problem)
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

    /// The file is a folder.
    #[error("is a folder, not a file")]
    Folder,

    /// The file is a pipe or a device. Such a file cannot be read a second time, for the matching
    /// rows.
    #[error("is not a regular file")]
    NotAFile,

    /// The operating system reported an error while the file was read.
    #[error("could not be read: {0}")]
    Read(#[source] io::Error),

    /// The extension of the file name is missing or unknown.
    #[error("the name does not say what kind of file this is")]
    UnknownExtension,

    /// A compressed file that is not text.
    #[error("is compressed as a whole, and is not text")]
    PackedTable,

    /// No key column was named.
    #[error("no key column is named")]
    NoKey,

    /// The delimiter is a quote, the end of a line, or not ASCII.
    #[error("byte {0} cannot be a delimiter")]
    Delimiter(u8),

    /// An option for text files was given for a Parquet file. Holds the option.
    #[error("a Parquet file has no {0}")]
    TextOnly(&'static str),

    /// The file is empty, without even a header.
    #[error("is empty: there is no header")]
    Empty,

    /// A requested column is not in the file.
    #[error(
        "there is no column {}; the columns are {}",
        quoted(name),
        listed(columns)
    )]
    MissingColumn {
        /// The requested column.
        name: String,
        /// The columns of the file.
        columns: Vec<String>,
    },

    /// A column is named twice among the key columns.
    #[error("column {} is named twice in the key", quoted(name))]
    KeyTwice {
        /// The column.
        name: String,
    },

    /// Two columns have the same name.
    #[error("columns {first} and {second} have the same name, {}", quoted(name))]
    DuplicateHeader {
        /// The name.
        name: String,
        /// The first column of that name, counted from 1.
        first: usize,
        /// The next one.
        second: usize,
    },

    /// A row has more or fewer fields than the header.
    #[error(
        "row {row} has {}, the header has {expected}",
        counted(*found, "field")
    )]
    Ragged {
        /// The row.
        row: u64,
        /// Its number of fields.
        found: u64,
        /// The header's.
        expected: u64,
    },

    /// A quoted field is not closed before the end of the file.
    #[error("a quote that opens in {}, on line {line}, never closes", place(*row))]
    OpenQuote {
        /// The row in which the quote opens.
        row: u64,
        /// The line in which it opens.
        line: u64,
    },

    /// Something other than a delimiter or the end of the line follows the quote that closes a
    /// field.
    #[error("there is text after a closing quote in {}, on line {line}", place(*row))]
    AfterQuote {
        /// The row.
        row: u64,
        /// The line.
        line: u64,
    },

    /// A row is longer than the limit: almost always because of a quote that never closes.
    #[error("{} is longer than {} MiB; it begins on line {line}", place(*row), limit >> 20)]
    RowTooLong {
        /// The row.
        row: u64,
        /// The line in which it begins.
        line: u64,
        /// The limit in bytes.
        limit: u64,
    },

    /// The file begins with the byte-order mark of an encoding that must be named.
    #[error("is {label}, by its byte-order mark")]
    WideMark {
        /// The name of the encoding.
        label: &'static str,
        /// Whether it can be read when it is named.
        readable: bool,
    },

    /// The byte-order mark does not belong to the named encoding.
    #[error("is {found} by its byte-order mark, not {declared}")]
    MarkDisagrees {
        /// The named encoding.
        declared: &'static str,
        /// The encoding of the mark.
        found: &'static str,
    },

    /// The bytes are invalid in the named encoding.
    #[error("{} is not valid {encoding}", place(*row))]
    Malformed {
        /// The row with the malformed bytes.
        row: u64,
        /// The encoding.
        encoding: &'static str,
    },

    /// A key column is empty or null.
    #[error("row {row} has no key: column {} is empty", quoted(column))]
    EmptyKey {
        /// The row.
        row: u64,
        /// The first key column that is empty.
        column: String,
    },

    /// Two rows have the same key.
    #[error("rows {first} and {second} have the same key")]
    DuplicateKey {
        /// The first row with this key.
        first: u64,
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

    /// A column has a type that cannot be a key.
    #[error("column {} is of type {found}, which cannot be a key", quoted(column))]
    UnsupportedKey {
        /// The column.
        column: String,
        /// Its type.
        found: String,
    },

    /// A column has a type that cannot be read as the requested one.
    #[error("column {} is {found} and cannot be read as {wanted}", quoted(column))]
    Conversion {
        /// The column.
        column: String,
        /// Its type.
        found: KeyType,
        /// The requested type.
        wanted: KeyType,
    },

    /// A value is longer than the limit for look-ups.
    #[error("the value of row {row} has {found} bytes, more than {limit}")]
    ValueTooLong {
        /// The row.
        row: u64,
        /// Its length in bytes.
        found: u64,
        /// The limit.
        limit: u64,
    },

    /// A column of the Parquet file has no text form.
    #[error(
        "column {} is of type {found}, which has no form as text",
        quoted(column)
    )]
    NoText {
        /// The column.
        column: String,
        /// Its type.
        found: String,
    },

    /// The file does not begin like a Parquet file.
    #[error("is not a Parquet file")]
    NotParquet,

    /// The end of the Parquet file is missing.
    #[error("is cut short: it begins as a Parquet file and does not end as one")]
    CutShort,

    /// The Parquet file is encrypted.
    #[error("is an encrypted Parquet file")]
    Encrypted,

    /// The Parquet file is inconsistent, or uses features that this version does not support.
    #[error(
        "is damaged, or uses a part of the Parquet format that is not supported, after row {after}"
    )]
    Damaged {
        /// Number of rows that were readable at least.
        after: u64,
        /// The error of the Parquet library. It may quote from the file, so the message does not
        /// include it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// A column has an unsupported compression.
    #[error(
        "column {} is compressed with {codec}, which is not supported",
        quoted(column)
    )]
    Compression {
        /// The column.
        column: String,
        /// The name of the compression.
        codec: String,
    },

    /// There are more rows than the limit.
    #[error("has more than {limit} rows")]
    TooManyRows {
        /// The limit.
        limit: u64,
    },

    /// The file changed between reading it and writing its matching rows, or while it was read.
    #[error("has changed while it was in use")]
    Changed,

    /// The file already has a column with the name of the added one.
    #[error("there is a column {} already", quoted(name))]
    ColumnTaken {
        /// The column.
        name: String,
    },

    /// A field, or the name of a column in row 0, is not UTF-8 and cannot go into a text column of
    /// a Parquet file.
    #[error(
        "column {column} of {} is not UTF-8 and cannot be written to a Parquet file",
        place(*row)
    )]
    NotUtf8 {
        /// The row.
        row: u64,
        /// The column, counted from 1.
        column: usize,
    },

    /// The matching rows could not be written.
    #[error("the matching rows could not be written: {0}")]
    Output(#[source] io::Error),
}

impl Problem {
    /// The remedy for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        let fixed = |text: &str| Some(text.to_owned());
        match self {
            Self::Open(_) | Self::Folder | Self::Read(_) | Self::Output(_) => None,
            Self::NotAFile => fixed("write it to a file first: it is read twice"),
            Self::UnknownExtension => {
                fixed("the known names end in .csv, .tsv, .txt (text with a header) or .parquet")
            }
            Self::PackedTable => fixed("only text files are compressed as a whole: unpack it"),
            Self::NoKey => {
                fixed("name the key column, or several with commas in between: --key COLUMN")
            }
            Self::Delimiter(_) => {
                fixed("a delimiter is one ASCII character, such as , ; | or a tab")
            }
            Self::TextOnly(option) => Some(format!("leave out --{option}")),
            Self::Empty => fixed("the first line must name the columns"),
            Self::MissingColumn { name, columns } => missing_hint(name, columns),
            Self::KeyTwice { .. } => fixed("name each key column once"),
            Self::DuplicateHeader { .. } => fixed("rename one of them"),
            Self::Ragged { .. } => fixed(
                "quote fields that hold the delimiter, or name the right one with --delimiter",
            ),
            Self::OpenQuote { .. } | Self::RowTooLong { .. } => {
                fixed("a quote within a quoted field is written twice")
            }
            Self::AfterQuote { .. } => fixed(
                "a field with quotes in it is quoted as a whole, and its quotes are written twice",
            ),
            Self::WideMark {
                label,
                readable: true,
            } => Some(format!("--encoding {label}")),
            Self::WideMark { .. } => fixed("convert it to UTF-8"),
            Self::MarkDisagrees { found, .. } => Some(format!("--encoding {found}")),
            Self::Malformed { .. } => {
                fixed("name the encoding the file was written in with --encoding")
            }
            Self::EmptyKey { .. } => fixed("--empty-keys skip leaves such rows out"),
            Self::DuplicateKey { .. } => {
                fixed("--duplicates dedup keeps the first row of each key")
            }
            Self::Unreadable { column, wanted, .. } => Some(match wanted {
                KeyType::Integer => {
                    "an integer is decimal digits with or without a sign, and no space".to_owned()
                }
                KeyType::Boolean => "a boolean is true or false".to_owned(),
                KeyType::Date => "a date is written YYYY-MM-DD".to_owned(),
                KeyType::Text | KeyType::Binary => {
                    format!("use the column as it is: {}", quoted(column))
                }
            }),
            Self::UnsupportedKey { .. } => fixed(
                "keys are text, binary, integer, boolean or date: add a column of such a type to the file",
            ),
            Self::Conversion { column, .. } => Some(format!(
                "{column}:text reads it as text; the other party must do the same"
            )),
            Self::ValueTooLong { limit, .. } => Some(format!(
                "values have at most {limit} bytes: shorten them, or use another column"
            )),
            Self::NoText { .. } => {
                fixed("write the matching rows to a .parquet file, or drop the column")
            }
            Self::NotParquet => {
                fixed("check the file; text with a header ends in .csv, .tsv or .txt")
            }
            Self::CutShort => fixed("copy or write it again"),
            Self::Encrypted => fixed("write it again without encryption"),
            Self::Damaged { .. } => fixed("write it again, with a current tool"),
            Self::Compression { .. } => {
                fixed("write it again with snappy, zstd, gzip or lz4, or without compression")
            }
            Self::TooManyRows { .. } => fixed("split the file"),
            Self::Changed => fixed("leave the file alone until the run is over, and start again"),
            Self::ColumnTaken { .. } => fixed("rename the column of the file"),
            Self::NotUtf8 { .. } => fixed(
                "write the matching rows to a .csv file, or name the file's encoding with --encoding",
            ),
        }
    }
}

/// The hint for a missing column, depending on the requested name and the columns of the file.
fn missing_hint(name: &str, columns: &[String]) -> Option<String> {
    if let [only] = columns
        && let Some(found) = only.chars().find(|c| [',', ';', '\t', '|'].contains(c))
    {
        return Some(format!(
            "is the delimiter {found:?}? name it with --delimiter"
        ));
    }
    let close = columns
        .iter()
        .find(|column| column.trim().eq_ignore_ascii_case(name.trim()));
    if let Some(close) = close {
        return Some(format!(
            "case and spaces count: did you mean {}?",
            quoted(close)
        ));
    }
    name.rsplit_once(':').map(|_| {
        "a type behind the colon is one of text, binary, integer, boolean and date".to_owned()
    })
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

fn listed(columns: &[String]) -> String {
    let mut text = columns
        .iter()
        .take(SHOWN.1)
        .map(|name| quoted(name))
        .collect::<Vec<_>>()
        .join(", ");
    if columns.len() > SHOWN.1 {
        text += &format!(" and {} more", columns.len() - SHOWN.1);
    }
    text
}

fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn place(row: u64) -> String {
    match row {
        0 => "the header".to_owned(),
        row => format!("row {row}"),
    }
}
