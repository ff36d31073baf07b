//! Tables of records: keys out of CSV and Parquet files, matching rows into new ones.
//!
//! [`read`] takes the key columns of a file and gives its [`Records`]: one key an item, in the order of the rows.
//! [`Records::write_matches`] reads the file once more and writes the rows of the items that matched. Nothing of the
//! rows is in memory but the keys and, if asked for, the values of one column.
//!
//! ```
//! use volery_records::{Format, Output, Reading, read};
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
//! All key columns together make one key. It is the concatenation, over the key columns in the order they are named, of
//!
//! ```text
//! tag (1 byte) | length of the content (8 bytes, little-endian) | content
//! ```
//!
//! | type | tag | content | columns of a text file | columns of a Parquet file |
//! |---|---|---|---|---|
//! | `text` | 1 | the bytes of the field | all, unless said otherwise | string (plain, large, view, dictionary) |
//! | `binary` | 2 | the bytes of the field | on request | binary of any kind |
//! | `integer` | 3 | decimal ASCII: `-` if below zero, no leading zero, zero is `0` | digits, with a sign or not, no space | signed and unsigned, any width |
//! | `boolean` | 4 | one byte, 0 or 1 | `true` or `false`, in any case of letters | boolean |
//! | `date` | 5 | days since 1970-01-01, 8 bytes, two's complement, little-endian | `YYYY-MM-DD` | date (32 bits) |
//!
//! The lengths make it injective: `("ab", "c")` and `("a", "bc")` differ, and so do the text `1` and the integer 1.
//! Text is never normalised: case, spaces and leading zeros count. A column written `NAME:TYPE` is read as that type:
//! strings of any file as any type, the other types of Parquet also as their text. A column that is called exactly
//! like the whole argument is the one that is meant.
//!
//! # Rules
//!
//! Rows are counted from 1 without the header. An error names the file, and the row or the column, never a field.
//!
//! | what | rule |
//! |---|---|
//! | file | a regular file, by its name text (`.csv`, `.tsv`, `.txt`) or Parquet (`.parquet`); at most 2^32 - 1 rows |
//! | header | text files begin with one; no name twice; a file without one is an error, one with nothing else has no items |
//! | line ends | LF, CRLF or CR, in any mixture; the last one may be missing |
//! | blank lines | are no rows and not counted; a notice says how many. In a file of one column an empty field is written `""` |
//! | quoting | a field that begins with `"` ends with one, and `""` in it stands for one; in other fields quotes are bytes like others |
//! | a quote that never closes, text behind a closing quote | an error with the row and the line |
//! | ragged row | an error with both numbers of fields |
//! | long row | a row of a text file has at most 64 MiB, so that a forgotten quote does not take all memory |
//! | byte-order mark | that of UTF-8, or of the encoding named, is removed with a notice; any other is an error |
//! | encoding | none is assumed: fields are bytes, NUL included. With [`Reading::encoding`] the file becomes UTF-8 while it is read, and what is malformed is an error |
//! | empty key | a key column is empty or null: an error, or left out ([`EmptyKeys`]) |
//! | duplicate key | an error that names both rows, or the first row is kept ([`Duplicates`]) |
//! | value | at most [`LONGEST_VALUE`] bytes; may be empty, and is if null. Strings are as they are, other types of Parquet as in text output |
//! | Parquet | compressed with snappy, zstd, gzip or lz4 or not at all; not encrypted. What is cut short or damaged is an error. The Parquet library panics at some damage: such a panic becomes an error, and a hook in front of the panic hook keeps silent about it |
//! | change | the file is known again by length, time, number, columns and rows, and each matching row by its key: any difference is an error |
//!
//! # Output
//!
//! The matching rows whole, in the order of the file, under its header. Rows left out as duplicates never match.
//!
//! | from | to | |
//! |---|---|---|
//! | text | text | fields keep their bytes, in UTF-8 if an encoding was named; they are quoted where needed and lines end in LF. The delimiter stays if both names are of the same [`Format`]; else it is a comma, in `.tsv` a tab |
//! | text | Parquet | every column is a string, never null; a field that is not UTF-8 is an error |
//! | Parquet | Parquet | columns keep their types, the schema its metadata, and the compression is that of the first column |
//! | Parquet | text | null is empty, binary hexadecimal, dates and times are ISO 8601, in UTC where they have a time zone; nested columns are an error |
//!
//! A column that is appended is a string column in Parquet if all its values are UTF-8, else binary.
//! [`Reading::output`] makes what cannot be written an error of [`read`].
#![forbid(unsafe_code)]

mod collect;
mod columnar;
mod delimited;
mod encoding;
mod error;
mod format;
mod key;
mod records;
mod strings;
mod write;

pub use encoding::{Encoding, UnknownEncoding};
pub use error::{Error, Problem};
pub use format::Format;
pub use key::KeyType;
pub use records::{Counts, Duplicates, EmptyKeys, LONGEST_VALUE, Reading, Records, read};
pub use strings::ByteStrings;
pub use write::{Extra, Output, Written};
