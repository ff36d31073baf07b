//! Tables of records: keys out of CSV and Parquet files, matching rows into new ones.
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
