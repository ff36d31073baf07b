//! The facts of a table that a side has read.

use volery_tables::Counts;

/// For messages and reports of a run that reads one key: totals, and shares.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Rows of the table.
    pub rows: u64,
    /// Distinct keys.
    pub keys: u64,
    /// Rows whose key an earlier row has.
    pub duplicates: u64,
    /// Counts of empty, malformed and changed keys.
    pub counts: Counts,
    /// Types and normalisers of the key, for people.
    pub key_description: String,
    /// BLAKE3 of items, values and groups of all rows in their order: as
    /// [`PreparedTable::digest`](crate::PreparedTable::digest).
    pub digest: [u8; 32],
}
