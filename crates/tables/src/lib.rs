//! Tables of records: reads keys and payload from text, Parquet and Arrow files, and writes
//! selected rows to new ones.
//!
//! A [`Table`] is one file or several, or batches in memory; its rows come as Arrow record batches.
//! [`Records::read`] reads the key columns and returns the [`Item`] of each row by each [`Rule`];
//! [`Table::select`] reads the wanted rows again, and a [`Sink`] writes them.
//!
//! ```
//! use volery_tables::{Format, Inputs, Output, Packing, Reading, Records, Rule, Sink, Table};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("people.csv");
//! std::fs::write(&path, "name,born\nAda,1815-12-10\nKurt,1906-04-28\n")?;
//! let table = Table::open(&Inputs { paths: vec![path], ..Inputs::default() })?;
//! let reading = Reading { rules: vec![Rule::parse("name,born:date")?], ..Reading::default() };
//! let records = Records::read(&table, &reading)?;
//! assert_eq!(records.items[0].len(), 2);
//!
//! let output = Output { format: Format::Csv, packing: Packing::None, like: Some(&table) };
//! let mut sink = Sink::new(Vec::new(), output, table.schema())?;
//! let wanted = |row: u64| records.rows[0][row as usize] == Some(1);
//! let mut scan = table.select(&wanted)?;
//! while let Some(batch) = scan.next()? {
//!     sink.write(&batch.rows).map_err(|problem| table.error(&batch, problem))?;
//! }
//! assert_eq!(sink.finish()?, b"name,born\nKurt,1906-04-28\n");
//! # Ok(())
//! # }
//! ```
//!
//! # Keys
//!
//! All key columns of a rule together make one key. It is the concatenation, over the key columns
//! in the order they are named, of
//!
//! ```text
//! tag (1 byte) | length of the content (8 bytes, little-endian) | content
//! ```
//!
//! and the [`Item`] is a hash of it.
//!
//! | type | tag | content | text it is read from | columns that have it |
//! |---|---|---|---|---|
//! | `text` | 1 | the bytes of the field | any | strings, fields of text files |
//! | `binary` | 2 | the bytes of the field | any | binary of any kind |
//! | `integer` | 3 | decimal ASCII: `-` if below zero, no leading zero, zero is `0` | digits, with a sign or not, no space | integers of any width, decimals of scale 0 |
//! | `boolean` | 4 | one byte, 0 or 1 | `true` or `false`, in any case of letters | boolean |
//! | `date` | 5 | days since 1970-01-01, 8 bytes, two's complement, little-endian | `YYYY-MM-DD` | date |
//! | `timestamp` | 6 | nanoseconds since 1970-01-01T00:00:00Z, 16 bytes, two's complement, little-endian | RFC 3339, with `Z` or an offset | timestamp with a time zone |
//! | `datetime` | 7 | the same, of the clock and the calendar | `YYYY-MM-DDTHH:MM:SS`, with a fraction or not, or with a space for the `T` | timestamp without a time zone |
//! | `decimal` | 8 | as of `integer`, then a point and digits, without a zero at the end, if there are any | digits, with a point and digits or not, with a sign or not | decimal |
//! | `uuid` | 9 | 16 bytes, those of the first digits first | 32 hexadecimal digits, also with hyphens, in braces, or behind `urn:uuid:` | UUIDs of Parquet and Arrow (`arrow.uuid`) |
//!
//! The lengths make it injective: `("ab", "c")` and `("a", "bc")` differ, and so do the text `1`
//! and the integer 1. A column written `NAME:TYPE` is read as that type: strings as any type, UUIDs
//! as binary, other types also as their text, decimals as integers if all are, integers as
//! decimals, and floats only as integers, which all must be. Text is only changed by normalisers:
//! case, spaces and leading zeros count. [`Rule::parse`] says how rules are written.
//!
//! # Rules
//!
//! Rows are counted from 1 without the header, in each file. An error names the file, and the row
//! or the column, never a field.
//!
//! | what | rule |
//! |---|---|
//! | file | a regular file, by its name text (`.csv`, `.tsv`, `.txt`, each also with `.gz` or `.zst`), Parquet (`.parquet`) or Arrow IPC (`.arrow`, `.arrows`, `.ipc`, `.feather`), unless its first bytes say another format or compression; standard input (`-`) is copied to an unnamed temporary file first; at most 2^32 - 1 distinct keys |
//! | several files | have the same columns, of the same types, in the same order |
//! | folder | its files `.parquet`, at any depth, in the order of their names; names that begin with `.` or `_` are left out, but folders `_name=value` are not. Folders `name=value` below it are columns behind those of the files, unless the files have them: integers if all values are, otherwise text; `%XX` is a byte, and `__HIVE_DEFAULT_PARTITION__` null |
//! | Delta table | a folder with `_delta_log`, named alone: the rows of its newest version or of [`Inputs::as_of`], by checkpoints and commits, with the columns of its schema; a file without a column has nulls there. Partition columns are integers, booleans, dates or text. A table that needs a feature of readers beyond version 1 is refused by its name, but for `timestampNtz`, `v2Checkpoint` and `vacuumProtocolCheck` |
//! | Iceberg, Hudi | refused, and so is any file in the folder of such a table or of a Delta table, or with a note of theirs: it may have rows that were deleted; with [`Inputs::plain_files`] they are read as they are |
//! | pattern | a path that does not exist, with `*`, `?` or `[`: the files and folders that it matches, in the order of their names |
//! | header | text files begin with one, in UTF-8; names are unique; a file without a header is an error, a file with only a header has no items |
//! | line ends | LF, CRLF or CR, in any mixture; the last one may be missing |
//! | blank lines | are not rows and not counted; a notice gives their number. In a file of one column an empty field is written `""` |
//! | quoting | unless [`Inputs::quote`] is [`Quote::None`], a field that begins with `"` ends with one, and `""` in it stands for one; in other fields quotes are ordinary bytes |
//! | a quote that never closes, text after a closing quote | an error with the row and the line |
//! | ragged row | an error with both numbers of fields |
//! | long row | a row of a text file has at most 64 MiB, so that a missing quote does not use all memory |
//! | byte-order mark | that of UTF-8, or of the named encoding, is removed with a notice; any other is an error |
//! | encoding | none is assumed: fields are bytes, NUL included. With [`Inputs::encoding`] the file becomes UTF-8 while it is read, and malformed text is an error |
//! | empty key | a key column is empty or null: an error, or left out ([`EmptyKeys`]); with several rules, the row has no part in that rule |
//! | malformed key | a key column cannot be read as its type, or a normaliser refuses it: an error, or left out ([`Malformed`]) |
//! | duplicate key | a row of the same item, an error that names both rows, or left out ([`Duplicates`]) |
//! | payload | at most [`LONGEST_PAYLOAD`] bytes a row; fields of text files must be UTF-8; of several rows of an item, the first one's |
//! | Parquet | compressed with snappy, zstd, gzip or lz4 or not at all; not encrypted. The types are those of Parquet: a schema of Arrow in the file is not read. Timestamps of 96 bits are read in microseconds |
//! | Arrow | compressed with zstd or lz4 or not at all |
//! | damage | a truncated or damaged file is an error where it is read: columns that are not named are not decoded. The libraries panic at some damage: such a panic becomes an error, and a panic hook in front of the existing one suppresses its message |
//! | change | a file is recognized by length, time, inode number, columns, and number of rows: any difference is an error |
//!
//! # Output
//!
//! The output has whole rows, in their order, under the header.
//!
//! | from | to | |
//! |---|---|---|
//! | text | text | fields keep their bytes, in UTF-8 if an encoding was named; they are quoted where needed and lines end in LF. The delimiter stays if both have the same [`Format`]; otherwise it is a comma, in `.tsv` a tab. [`Quote::None`] holds for the output, too: fields are as they were, and one of the sender with a delimiter or a line end is left empty |
//! | text | Parquet, Arrow | every column is a string, never null; a field that is not UTF-8 is an error |
//! | Parquet | Parquet | columns keep their types, nested ones too, except timestamps of 96 bits and columns stored in ways that are not written any more (decimals of variable length, lists of two levels), which get the usual form. The file keeps its metadata; if there are other columns, the entry `ARROW:schema` is made anew, of the types that it noted and those of the others. The compression is that of the first column |
//! | Arrow | Parquet | columns keep their types as far as Parquet has them, and the schema of Arrow is noted, as it is from text; compressed with snappy |
//! | Parquet, Arrow | Arrow | the file format, without compression. Dictionaries become their values, intervals of Parquet 12 bytes; the types of Arrow that a Parquet file notes (large strings, time zones) are not read |
//! | Parquet, Arrow | text | null is empty, binary hexadecimal, a UUID in lower case with hyphens, dates, times and intervals are ISO 8601, in UTC if they have a time zone; nested columns are an error |
#![forbid(unsafe_code)]

#[cfg(not(feature = "columnar"))]
mod absent;
mod cell;
#[cfg(feature = "columnar")]
mod columnar;
mod delimited;
mod encoding;
mod error;
mod format;
#[cfg(feature = "columnar")]
mod guard;
#[cfg(feature = "columnar")]
mod ipc;
mod key;
mod lake;
pub mod normal;
mod paths;
mod payload;
mod reader;
mod records;
mod retype;
mod rule;
mod sink;
mod system;
mod table;
mod varint;

#[cfg(not(feature = "columnar"))]
use absent::{columnar, ipc};
pub use cell::is_field;
pub use encoding::{Encoding, UnknownEncoding};
pub use error::{Error, Problem};
pub use format::{Format, Packing};
pub use key::KeyType;
pub use lake::Lake;
pub use normal::Normaliser;
pub use payload::{DamagedPayload, LONGEST_PAYLOAD, PayloadSchema};
pub use reader::{
    ColumnLint, Counts, Duplicates, EmptyKeys, Finding, Item, Lint, Malformed, NAMED_ROWS, Reader,
    Reading, RuleCounts, RuleLint, Texts,
};
pub use records::Records;
pub use rule::Rule;
pub use sink::{Output, Sink, column_texts, text_rows, text_schema};
pub use table::{Batch, Inputs, Quote, Scan, Table};
