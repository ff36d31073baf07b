//! Payload: typed columns that one party sends to the other, row by row as bytes.

use arrow_array::ArrayRef;
use arrow_schema::{FieldRef, Fields};

/// The maximum length in bytes of the payload of a row.
pub const LONGEST_PAYLOAD: usize = 1 << 20;

/// The names and types of payload columns.
///
/// The types are boolean, int64, uint64, float64, decimal, date, timestamp, time, text and binary;
/// narrower integers and floats widen, and columns of text files are text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadSchema;

impl PayloadSchema {
    /// Names and types as one line of text, for the handshake.
    pub fn line(&self) -> String {
        todo!()
    }

    /// The schema of a line, which may come from the peer: at most 64 KiB and 1024 columns.
    ///
    /// # Errors
    /// If it is not such a line.
    pub fn parse(line: &str) -> Result<Self, DamagedPayload> {
        let _ = line;
        todo!()
    }

    /// The columns, all nullable.
    pub fn fields(&self) -> Fields {
        Fields::from(Vec::<FieldRef>::new())
    }

    /// The columns of these rows, in the order of [`fields`](Self::fields): null where there is no
    /// payload. The bytes may come from the peer. The rows of one call should be bounded: their
    /// texts together may have at most 2^31 - 1 bytes a column.
    ///
    /// # Errors
    /// If a row is not a payload of this schema.
    pub fn decode<'b>(
        &self,
        rows: impl IntoIterator<Item = Option<&'b [u8]>>,
    ) -> Result<Vec<ArrayRef>, DamagedPayload> {
        let _ = rows.into_iter().count();
        todo!()
    }
}

/// Bytes or a line that are not a payload or its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the payload is damaged: {0}")]
pub struct DamagedPayload(pub(crate) &'static str);
