//! Errors in files of records, with hints for the user.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::format::Format;
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

    /// The format is read from files only, or in builds with the feature `columnar` only.
    #[error("is {0}, which this build cannot read")]
    NotBuilt(&'static str),

    /// Standard input could not be copied to a temporary file.
    #[error("could not be copied to a temporary file: {0}")]
    Spool(#[source] io::Error),

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

    /// An option for text files was given for another file.
    #[error("{} has no {option}", file_of(*format))]
    TextOnly {
        /// The format of the file.
        format: Format,
        /// The option.
        option: &'static str,
    },

    /// No file is named.
    #[error("no file is named")]
    NoInput,

    /// No file has a name of this pattern.
    #[error("no such file, and no file matches this pattern")]
    NoMatch,

    /// A folder without Parquet files.
    #[error("is a folder without .parquet files")]
    EmptyFolder,

    /// Folders in folders beyond the limit, as links that lead back make them.
    #[error("folders are nested too deeply here")]
    TooDeep,

    /// Standard input without a format.
    #[error("the format of standard input is not named")]
    NoFormat,

    /// Standard input, or a file, is named twice.
    #[error("is named twice")]
    InputTwice,

    /// A file of another format than the first one. Holds the first one.
    #[error("has another format than {}", .0.display())]
    OtherFormat(PathBuf),

    /// A file with other columns than the first one.
    #[error("column {column} is {found}; in {} it is {expected}", first.display())]
    OtherColumn {
        /// The column, counted from 1.
        column: usize,
        /// Its name and type.
        found: String,
        /// The name and type in the first file.
        expected: String,
        /// The first file.
        first: PathBuf,
    },

    /// The file is empty, without even a header.
    #[error("is empty: there is no header")]
    Empty,

    /// A requested column is not in the file.
    #[error("there is no column {}; the columns are {}", quoted(name), listed(columns))]
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

    /// A column is named twice in the payload.
    #[error("column {} is named twice in the payload", quoted(name))]
    ValueTwice {
        /// The column.
        name: String,
    },

    /// The payload has too many columns, or their names are too long.
    #[error("the payload has more columns, or longer names, than can be described")]
    TooManyValues,

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
    #[error("column {} of row {row} is malformed for {normaliser}", quoted(column))]
    NotNormal {
        /// The row.
        row: u64,
        /// The column.
        column: String,
        /// The name of the normaliser.
        normaliser: String,
    },

    /// A rule cannot be parsed. Holds the reason.
    #[error("key {}: {reason}", quoted(rule))]
    Rule {
        /// The rule, or the part of it.
        rule: String,
        /// The reason.
        reason: String,
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

    /// The file does not begin like one of its format.
    #[error("is not {}", file_of(*.0))]
    NotA(Format),

    /// The end of the file is missing. Holds the format.
    #[error("is cut short: it begins as {} and does not end as one", file_of(*.0))]
    CutShort(Format),

    /// The Parquet file is encrypted.
    #[error("is an encrypted Parquet file")]
    Encrypted,

    /// The file is inconsistent, or uses features that this version does not support.
    #[error(
        "is damaged, or uses a part of the {} that is not supported, after row {after}",
        standard(*format)
    )]
    Damaged {
        /// The format.
        format: Format,
        /// Number of rows that were readable at least.
        after: u64,
        /// The error of the library. It may quote from the file, so the message does not
        /// include it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// A column has an unsupported compression.
    #[error("column {} is compressed with {codec}, which is not supported", quoted(column))]
    Compression {
        /// The column.
        column: String,
        /// The name of the compression.
        codec: String,
    },

    /// There are more distinct keys than the limit.
    #[error("has more than {limit} distinct keys")]
    TooManyKeys {
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

    /// A batch in memory with other columns than those of the table.
    #[error("batch {batch} has other columns, or of other types, than the table")]
    OtherBatch {
        /// The batch, counted from 1.
        batch: usize,
    },

    /// The name of a column, counted from 1, is not UTF-8.
    #[error("the name of column {column} is not UTF-8")]
    NameNotUtf8 {
        /// The column.
        column: usize,
    },

    /// A column has a type that this format does not have. Holds the column.
    #[error("column {} of type {found} cannot be written to {}", quoted(column), file_of(*format))]
    NoForm {
        /// The column.
        column: String,
        /// Its type.
        found: String,
        /// The format of the output.
        format: Format,
    },

    /// The matching rows could not be written.
    #[error("the matching rows could not be written: {0}")]
    Output(#[source] io::Error),
}

pub(crate) fn damaged(
    format: Format,
    after: u64,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Problem {
    let source = source.into();
    Problem::Damaged { format, after, source }
}

impl Problem {
    /// The remedy for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        let fixed = |text: &str| Some(text.to_owned());
        match self {
            Self::Open(_) | Self::Folder | Self::Read(_) | Self::Spool(_) | Self::Output(_) => None,
            Self::NotBuilt(_) => fixed("convert it to .csv, or .csv.gz"),
            Self::NotAFile => fixed("write it to a file first: it is read twice"),
            Self::UnknownExtension => fixed(
                "the known names end in .csv, .tsv, .txt (text with a header; also .csv.gz, .csv.zst), \
                     .parquet, or .arrow",
            ),
            Self::PackedTable => fixed("only text files are compressed as a whole: unpack it"),
            Self::NoInput => fixed("name a file: --input FILE"),
            Self::NoMatch => fixed("check the name; * and ? in it stand for any characters"),
            Self::EmptyFolder => {
                fixed("a folder is a table of Parquet files: name other files one by one")
            }
            Self::TooDeep => fixed("look for a link to a folder above it"),
            Self::NoFormat => fixed("name it: csv, tsv, parquet or arrow"),
            Self::InputTwice => fixed("name it once"),
            Self::OtherFormat(_) => fixed("the files of a table are of one format"),
            Self::OtherColumn { .. } => {
                fixed("the files of a table have the same columns, in the same order")
            }
            Self::NotNormal { .. } => {
                fixed("correct the row; --malformed skip leaves such rows out")
            }
            Self::Rule { .. } => fixed(RULE),
            Self::OtherBatch { .. } => fixed("give all batches the same columns"),
            Self::NameNotUtf8 { .. } => {
                fixed("name the encoding the file was written in with --encoding")
            }
            Self::NoForm { .. } => fixed("write another format, or drop the column"),
            Self::NoKey => {
                fixed("name the key column, or several with commas in between: --key COLUMN")
            }
            Self::Delimiter(_) => {
                fixed("a delimiter is one ASCII character, such as , ; | or a tab")
            }
            Self::TextOnly { option, .. } => Some(format!("leave out --{option}")),
            Self::Empty => fixed("the first line must name the columns"),
            Self::MissingColumn { name, columns } => missing_hint(name, columns),
            Self::KeyTwice { .. } => fixed("name each key column once"),
            Self::ValueTwice { .. } => fixed("name each column once"),
            Self::TooManyValues => fixed("name fewer columns"),
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
            Self::WideMark { label, readable: true } => Some(format!("--encoding {label}")),
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
                KeyType::Timestamp => {
                    "a timestamp is written YYYY-MM-DDTHH:MM:SSZ, or with an offset for Z"
                        .to_owned()
                }
                KeyType::Datetime => "a datetime is written YYYY-MM-DDTHH:MM:SS".to_owned(),
                KeyType::Decimal => {
                    "a decimal number is digits with or without a point and a sign".to_owned()
                }
                KeyType::Text | KeyType::Binary => {
                    format!("use the column as it is: {}", quoted(column))
                }
            }),
            Self::UnsupportedKey { .. } => fixed(
                "keys are text, binary, integer, decimal, boolean, date, timestamp or datetime (and \
                 floats that are integers, with :integer)",
            ),
            Self::Conversion { column, .. } => Some(format!(
                "{}:text reads it as text; the other party must do the same",
                quoted(column)
            )),
            Self::UnsupportedValue { .. } => fixed(
                "payload is boolean, integer, float, decimal, date, time, timestamp, text or binary",
            ),
            Self::Value { .. } => {
                fixed("correct the row, or name the encoding of a text file with --encoding")
            }
            Self::ValueTooLong { .. } => fixed("shorten them, or name fewer columns"),
            Self::NoText { .. } => {
                fixed("write the matching rows to a .parquet file, or drop the column")
            }
            Self::NotA(_) => fixed("check the file; text with a header ends in .csv, .tsv or .txt"),
            Self::CutShort(_) => fixed("copy or write it again"),
            Self::Encrypted => fixed("write it again without encryption"),
            Self::Damaged { .. } => fixed("write it again, with a current tool"),
            Self::Compression { .. } => {
                fixed("write it again with snappy, zstd, gzip or lz4, or without compression")
            }
            Self::TooManyKeys { .. } => fixed("split the input"),
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
        return Some(format!("is the delimiter {found:?}? name it with --delimiter"));
    }
    let close = columns.iter().find(|column| column.trim().eq_ignore_ascii_case(name.trim()));
    if let Some(close) = close {
        return Some(format!("case and spaces count: did you mean {}?", quoted(close)));
    }
    name.contains(':').then(|| RULE.to_owned())
}

/// The words that may be behind the colon of a key column.
const RULE: &str = "after the colon, give a type (text, binary, integer, decimal, boolean, date, \
    timestamp, datetime) or names of normalisers joined with '+'; enclose a name that contains a \
    comma or colon in double quotes";

/// A file of this format, with its article.
fn file_of(format: Format) -> &'static str {
    match format {
        Format::Csv | Format::Tsv => "a text file",
        Format::Parquet => "a Parquet file",
        Format::Arrow => "an Arrow file",
    }
}

/// The name of a format.
fn standard(format: Format) -> &'static str {
    match format {
        Format::Csv | Format::Tsv => "text format",
        Format::Parquet => "Parquet format",
        Format::Arrow => "Arrow IPC format",
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

fn listed(columns: &[String]) -> String {
    let mut text =
        columns.iter().take(SHOWN.1).map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
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
