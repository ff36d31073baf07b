//! Tables of records: reads keys from CSV and Parquet files, and writes matching rows to new ones.
//!
//! [`read`] reads the key columns of a file and returns its [`Records`]: one key an item, in the
//! order of the rows. [`Records::write_matches`] reads the file again and writes the rows of the
//! matching items. Only the keys and, on request, the values of one column are in memory.
//!
//! ```
//! use volery_tables::{Format, Output, Reading, read};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("people.csv");
//! std::fs::write(&path, "name,born\nAda,1815-12-10\nKurt,1906-04-28\n")?;
//! let reading = Reading { keys: vec!["name".into(), "born:date".into()], ..Reading::default() };
//! let records = read(&path, &reading, &mut |_done, _of| {})?;
//! assert_eq!(records.keys().len(), 2);
//!
//! let mut file = Vec::new();
//! let output = Output { file: &mut file, format: Format::Csv, extra: None };
//! records.write_matches(&[1], output, &mut |_done, _of| {})?;
//! assert_eq!(file, b"name,born\nKurt,1906-04-28\n");
//! # Ok(())
//! # }
//! ```
//!
//! # Keys
//!
//! All key columns together make one key. It is the concatenation, over the key columns in the
//! order they are named, of
//!
//! ```text
//! tag (1 byte) | length of the content (8 bytes, little-endian) | content
//! ```
//!
//! | type | tag | content | columns of a text file | columns of a Parquet file |
//! |---|---|---|---|---|
//! | `text` | 1 | the bytes of the field | all, unless said otherwise | string or JSON |
//! | `binary` | 2 | the bytes of the field | on request | binary of any kind |
//! | `integer` | 3 | decimal ASCII: `-` if below zero, no leading zero, zero is `0` | digits, with a sign or not, no space | signed and unsigned, any width |
//! | `boolean` | 4 | one byte, 0 or 1 | `true` or `false`, in any case of letters | boolean |
//! | `date` | 5 | days since 1970-01-01, 8 bytes, two's complement, little-endian | `YYYY-MM-DD` | date (32 bits) |
//!
//! The lengths make it injective: `("ab", "c")` and `("a", "bc")` differ, and so do the text `1`
//! and the integer 1. Text is never normalised: case, spaces and leading zeros count. A column
//! written `NAME:TYPE` is read as that type: strings of any file as any type, the other types of
//! Parquet also as their text. A column whose name equals the whole argument takes precedence.
//!
//! # Rules
//!
//! Rows are counted from 1 without the header. An error names the file, and the row or the column,
//! never a field.
//!
//! | what | rule |
//! |---|---|
//! | file | a regular file, by its name text (`.csv`, `.tsv`, `.txt`) or Parquet (`.parquet`); at most 2^32 - 1 rows |
//! | header | text files begin with one; names are unique; a file without a header is an error, a file with only a header has no items |
//! | line ends | LF, CRLF or CR, in any mixture; the last one may be missing |
//! | blank lines | are not rows and not counted; a notice gives their number. In a file of one column an empty field is written `""` |
//! | quoting | a field that begins with `"` ends with one, and `""` in it stands for one; in other fields quotes are ordinary bytes |
//! | a quote that never closes, text after a closing quote | an error with the row and the line |
//! | ragged row | an error with both numbers of fields |
//! | long row | a row of a text file has at most 64 MiB, so that a missing quote does not use all memory |
//! | byte-order mark | that of UTF-8, or of the named encoding, is removed with a notice; any other is an error |
//! | encoding | none is assumed: fields are bytes, NUL included. With [`Reading::encoding`] the file becomes UTF-8 while it is read, and malformed text is an error |
//! | empty key | a key column is empty or null: an error, or left out ([`EmptyKeys`]) |
//! | duplicate key | an error that names both rows, or the first row is kept ([`Duplicates`]) |
//! | value | at most [`LONGEST_VALUE`] bytes; may be empty; null is empty. Strings are unchanged, other types of Parquet as in text output |
//! | Parquet | compressed with snappy, zstd, gzip or lz4 or not at all; not encrypted. A truncated or damaged file is an error where it is read: columns that are not named, and rows that do not match, are not decoded. The Parquet library panics at some damage: such a panic becomes an error, and a panic hook in front of the existing one suppresses its message |
//! | change | the file is recognized by length, time, inode number, columns and rows, and each matching row by its key: any difference is an error |
//!
//! # Output
//!
//! The output has the complete matching rows, in the order of the file, under its header. Rows left
//! out as duplicates never match.
//!
//! | from | to | |
//! |---|---|---|
//! | text | text | fields keep their bytes, in UTF-8 if an encoding was named; they are quoted where needed and lines end in LF. The delimiter stays if both names have the same [`Format`]; otherwise it is a comma, in `.tsv` a tab |
//! | text | Parquet | every column is a string, never null; a field that is not UTF-8 is an error |
//! | Parquet | Parquet | columns keep their types, nested ones too, and the file keeps its metadata, except the entry `ARROW:schema` if a column is appended: it would lack that column. The compression is that of the first column |
//! | Parquet | text | null is empty, binary hexadecimal, dates, times and intervals are ISO 8601, in UTC if they have a time zone; nested columns are an error |
//!
//! An appended column is a string column in Parquet if all its values are UTF-8, otherwise binary.
//! With [`Reading::output`], columns that cannot be written are already an error of [`read`].
#![forbid(unsafe_code)]

mod cell;
mod columnar;
mod delimited;
mod encoding;
mod error;
mod format;
mod ipc;
mod key;
pub mod normal;
mod paths;
mod payload;
mod reader;
mod records;
mod rule;
mod sink;
mod strings;
mod table;

pub use cell::is_field;
pub use encoding::{Encoding, UnknownEncoding};
pub use error::{Error, Problem};
pub use format::{Format, Packing};
pub use key::KeyType;
pub use normal::Normaliser;
pub use payload::{DamagedPayload, LONGEST_PAYLOAD, PayloadSchema};
pub use reader::{
    ColumnLint, Counts, Duplicates, EmptyKeys, Item, Lint, Malformed, NAMED_ROWS, Reader, Reading,
    Refusal, RuleCounts, RuleLint,
};
pub use records::Records;
pub use rule::Rule;
pub use sink::{Output, Sink};
pub use strings::ByteStrings;
pub use table::{Batch, Inputs, Scan, Table};
