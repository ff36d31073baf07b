//! The results of a run in memory, for callers that are not a shell.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

/// The result of a matching. A side that gets no rows has only a report, and so have `--dry-run`
/// and other results than rows, whose numbers are in it.
#[derive(Default)]
pub struct MatchResult {
    /// The report, a JSON object.
    pub report: String,
    /// The number of matching rows.
    pub count: Option<u64>,
    /// The matching rows of this side's table, counted from 0, ascending.
    pub indices: Option<Vec<u64>>,
    /// For each of them the key by which it matched: 1 for `--key`, 2 for the first `--or`.
    pub rules: Option<Vec<u32>>,
    /// The rows of the output. Columns of text files are strings.
    pub rows: Option<(SchemaRef, Vec<RecordBatch>)>,
    /// Of `--result shares`, this side's.
    pub shares: Option<Shares>,
}

/// The shares of a matching, for each place.
pub struct Shares {
    /// 0 or 1: by XOR with the peer's, whether the key of the place is common.
    pub matches: Vec<u8>,
    /// For each column its name and the shares, to be added to the peer's modulo `2^64`: the
    /// columns of the sender as `sender_1` and so on, then those of the receiver.
    pub columns: Vec<(String, Vec<u64>)>,
    /// At the receiver the number of the row of the place, counted from 0; -1 where there is none.
    pub rows: Option<Vec<i64>>,
    /// The text that a run with files writes to `shares.json`.
    pub description: String,
}

impl MatchResult {
    pub(crate) fn of(report: String) -> Self {
        Self { report, ..Self::default() }
    }
}

/// Correlations that follow each other, as one party has them. An element of `gf128`, and every
/// element of a COT but `u`, is two words, the low one first; one of `fp61` and `z64` is one.
pub struct Part {
    /// The index of the first correlation.
    pub first: u64,
    /// Their number.
    pub count: usize,
    /// `x` or `delta`, the same in all parts, at the party that has it.
    pub key: Option<Vec<u64>>,
    /// `u`, at the party that has it.
    pub values: Option<Values>,
    /// `v` at the sender, `w` at the receiver; of random OTs the messages.
    pub column: Vec<u64>,
    /// With a card named as the device all arrays but the key, by their letters, in place of the
    /// others.
    #[cfg(feature = "gpu")]
    pub on_card: Vec<(&'static str, volery_pcg::card::dlpack::Array)>,
}

/// The values `u`.
pub enum Values {
    /// 0 or 1 each, of a COT.
    Bits(Vec<u8>),
    /// Of a VOLE.
    Words(Vec<u64>),
}
