//! Tables of a run by one key: an item for each row, and bytes beside it.

use volery_channel::{Channel, Error as ChannelError, Hello, SessionId, handshake};
use volery_os::time::Instant;
use volery_primitives::prg::Prg;
use volery_primitives::ro::StreamHash;
use volery_psi::circuit;
use volery_tables::{Counts, Item, Reader, Reading, Table, Texts};
use zeroize::Zeroizing;

use crate::error::{Error, KeyError, Result};
use crate::keys::{Keys, Rows, reserve};
use crate::progress::Progress;
use crate::side::in_file;

/// The longest description of the key, in bytes: it is in the first message, beside more settings
/// than that of a run for rows.
pub const LONGEST_KEYS: usize = 2048;

/// The facts of a table that a side has read, for messages and reports of a run that reads one
/// key: totals, and shares.
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

/// Reads the key and the columns of texts. `beside` gets these columns and the number of a row in
/// the batch and in the table, and writes the `bytes` that belong to the row.
///
/// # Panics
/// If there is another number of rules than one, or columns of a payload.
pub(crate) fn read_keyed(
    table: &Table,
    reading: &Reading,
    bytes: usize,
    mut beside: impl FnMut(&[Texts], (usize, u64), &mut [u8]) -> Result<()>,
    progress: &mut dyn Progress,
) -> Result<(Keys, Summary)> {
    assert!(
        reading.rules.len() == 1 && reading.values.is_empty(),
        "totals and shares are by one key"
    );
    let mut reader = Reader::new(table, reading)?;
    if reader.key_description().len() > LONGEST_KEYS {
        return Err(Error::LongKeys);
    }
    progress.begin("reading keys and values", table.bytes());
    let mut digest = StreamHash::default();
    let mut scan = table.scan(&reader.columns())?;
    let mut rows = Rows::new(true);
    let (mut items, mut hashed) = (Vec::new(), Zeroizing::new(Vec::new()));
    let mut payload = Zeroizing::new(vec![0; bytes]);
    let mut count = 0;
    while let Some(batch) = scan.next()? {
        hashed.clear();
        reader.items(&batch, 0, &mut items)?;
        reserve(&mut hashed, items.len() * (1 + size_of::<Item>() + bytes));
        let texts = (0..reading.texts.len()).map(|which| reader.texts(&batch, which));
        let texts: Vec<_> = texts.collect::<std::result::Result<_, _>>()?;
        for (row, item) in items.iter().enumerate() {
            hashed.push(u8::from(item.is_some()));
            let Some(item) = item else { continue };
            let number = batch.row_number(row);
            beside(&texts, (row, number), &mut payload)?;
            hashed.extend_from_slice(item);
            hashed.extend_from_slice(&payload);
            rows.push(*item, number, &payload);
        }
        digest.update(&hashed);
        count += batch.rows.num_rows() as u64;
        progress.done(batch.done_bytes);
    }
    table.check_unchanged()?;
    progress.begin("sorting keys", 0);
    let keys = Keys::new(rows, 0, reading.duplicates);
    let keys = keys.map_err(|error| in_file(table, error))?;
    let summary = Summary {
        rows: count,
        keys: keys.len() as u64,
        duplicates: keys.duplicates,
        counts: reader.counts().clone(),
        key_description: reader.key_description(),
        digest: digest.finish32(),
    };
    Ok((keys, summary))
}

/// A party of circuit-PSI.
pub(crate) enum Party {
    Sender(circuit::Sender),
    Receiver(circuit::Receiver),
}

impl Party {
    pub(crate) fn parameters(&self) -> &circuit::Parameters {
        match self {
            Self::Sender(party) => party.parameters(),
            Self::Receiver(party) => party.parameters(),
        }
    }

    pub(crate) fn next(&mut self, channel: &mut Channel) -> Result<Option<circuit::Slice>> {
        Ok(match self {
            Self::Sender(party) => party.next(channel)?,
            Self::Receiver(party) => party.next(channel)?,
        })
    }
}

/// The handshake of a run by one key, with the time and the randomness from which it begins.
pub(crate) fn begin(
    hello: &Hello,
    channel: &mut Channel,
    progress: &mut dyn Progress,
) -> Result<(Instant, Prg, SessionId)> {
    let start = Instant::now();
    let mut rng = Prg::from_os().map_err(ChannelError::from)?;
    progress.begin("agreeing on settings and sizes", 0);
    let mut nonce = [0; 32];
    rng.fill_bytes(&mut nonce);
    Ok((start, rng, handshake(channel, hello, nonce)?))
}

/// An error of the rows of one key, the first of which is `row`.
pub(crate) fn unfit(table: &Table, row: u64, why: KeyError) -> Error {
    let (path, row) = table.place(row);
    Error::KeyOfRows { path: path.to_owned(), row, why }
}

/// Adds up the values of the rows of a key, 8 bytes for each of `sums`; returns its first row.
pub(crate) fn add_up(keys: &Keys, item: usize, sums: &mut [i128]) -> u64 {
    sums.fill(0);
    for (_, payload) in keys.payloads_of(item) {
        for (sum, value) in sums.iter_mut().zip(payload.as_chunks().0) {
            *sum += i128::from(i64::from_le_bytes(*value));
        }
    }
    keys.rows_of(item).next().expect("a key has a row")
}

/// The columns whose sums are beyond the bound.
pub(crate) fn beyond(sums: &[i128], bound: u64) -> impl Iterator<Item = usize> {
    let all = sums.iter().enumerate();
    all.filter(move |(_, sum)| sum.unsigned_abs() > bound.into()).map(|(column, _)| column)
}
