//! The agreement of the two sides of a run before its first part.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use volery_channel::Error as ChannelError;
use volery_okvs::bin_capacity;
use volery_primitives::ro::RandomOracle;
use volery_psi::params::MAX_ITEMS;
use volery_tables::PayloadSchema;

use crate::error::Result;
use crate::settings::NAMES;

/// The most buckets of a run.
pub const MAX_BUCKETS: u32 = 1 << 14;

/// The version of the layout of this and of the folder of a run.
const VERSION: u32 = 3;

/// Bits of the failure probability of the run that are left to overflowing buckets.
const OVERFLOW: f64 = 42.0;

/// The agreement of both sides: the same on both sides but for `own`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    version: u32,
    /// Of this side alone.
    pub own: LocalManifest,
    key: [u8; 32],
    buckets: u32,
    sizes: Vec<[u64; 2]>,
    payload: Option<(String, usize)>,
    /// Whether the parts are those of several processes. Read only: such a run has a record of its
    /// own, of which this is a part.
    #[serde(rename = "workers", skip_serializing, default, deserialize_with = "some")]
    pub(crate) is_divided: bool,
}

/// Whether there is a value.
fn some<'de, D: Deserializer<'de>>(of: D) -> Result<bool, D::Error> {
    Ok(Option::<IgnoredAny>::deserialize(of)?.is_some())
}

/// The facts that one side alone knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalManifest {
    /// Rows of the table.
    pub rows: u64,
    /// Whether only the first row of a key takes part.
    pub dedup: bool,
}

/// An agreement with what a run of several processes adds to it; `()` adds nothing.
#[derive(Serialize)]
struct Record<'a, T> {
    #[serde(flatten)]
    agreement: &'a Agreement,
    workers: T,
}

/// Reads a record that begins with an agreement.
///
/// # Errors
/// If it is none, or of another version; in words.
pub fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, &'static str> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let Ok(Versioned { version }) = serde_json::from_slice(text) else {
        return Err("it is not a manifest of this program");
    };
    if version != VERSION {
        return Err("it was made by another version of this program");
    }
    serde_json::from_slice(text).map_err(|_| "it is not a manifest of this program")
}

impl Agreement {
    /// An agreement on these numbers of keys of sender and receiver, rule by rule, and these
    /// columns of the payload, with the bytes of the longest.
    pub fn new(
        own: LocalManifest,
        (key, buckets): ([u8; 32], u32),
        sizes: Vec<[u64; 2]>,
        payload: Option<(String, usize)>,
    ) -> Self {
        Self { version: VERSION, own, key, buckets, sizes, payload, is_divided: false }
    }

    /// Whether there is a bucket and a rule: an agreement that was read from a file may lack them.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.buckets == 0 || self.sizes.is_empty() {
            return Err("it is a manifest without buckets or keys");
        }
        Ok(())
    }

    /// The agreement as text, with what a run of several processes adds to it. It holds the key
    /// that divides both sides' keys: for this side only.
    pub fn to_json(&self, workers: &impl Serialize) -> String {
        let record = Record { agreement: self, workers };
        serde_json::to_string_pretty(&record).expect("numbers and text serialise")
    }

    /// A name of what was agreed on, with what a run of several processes adds to it: the same on
    /// both sides.
    pub fn id(&self, workers: &impl Serialize) -> [u8; 32] {
        let shared = Self { own: LocalManifest::default(), ..self.clone() };
        let record = Record { agreement: &shared, workers };
        RandomOracle::new("volery matching: run")
            .absorb(&serde_json::to_vec(&record).expect("numbers and text serialise"))
            .finish32()
    }

    /// The key of the buckets.
    pub fn key(&self) -> &[u8; 32] {
        &self.key
    }

    /// Buckets of each rule.
    pub fn buckets(&self) -> u32 {
        self.buckets
    }

    /// The number of rules.
    pub fn rules(&self) -> usize {
        self.sizes.len()
    }

    /// Keys of sender and receiver, rule by rule; in a run of several processes each side's,
    /// rounded up.
    pub fn sizes(&self) -> &[[u64; 2]] {
        &self.sizes
    }

    /// The columns of the payload in a line, and the bytes of the longest.
    pub fn payload(&self) -> Option<(&str, usize)> {
        let payload = self.payload.as_ref();
        payload.map(|(line, longest)| (line.as_str(), *longest))
    }

    /// Checks that the receiver has a name for each column of the payload, if it has any.
    ///
    /// # Errors
    /// If it has another number of names.
    pub fn check_names(&self, names: usize) -> Result<()> {
        let payload = self.payload.as_ref().and_then(|(line, _)| PayloadSchema::parse(line).ok());
        payload.map_or(Ok(()), |payload| check_names(names, &payload))
    }

    /// Executions of the protocol in the whole run.
    pub fn executions(&self) -> u64 {
        u64::from(self.buckets) * self.sizes.len() as u64
    }

    /// Items of sender and receiver in each execution, rule by rule.
    ///
    /// # Errors
    /// If they are more than a protocol takes.
    pub fn capacities(&self) -> Result<Vec<[u64; 2]>> {
        let bits = OVERFLOW + (2.0 * self.sizes.len() as f64).log2();
        let capacity = |keys| capacity(keys, self.buckets, bits);
        let capacities: Vec<_> = self.sizes.iter().map(|keys| keys.map(capacity)).collect();
        let items = capacities.iter().flatten().copied().max().unwrap_or(0);
        let most = MAX_ITEMS;
        if items > most {
            return Err(volery_psi::Error::TooMany { items, most }.into());
        }
        Ok(capacities)
    }
}

/// Checks that there is a name for each column, or none.
pub(crate) fn check_names(names: usize, payload: &PayloadSchema) -> Result<()> {
    let columns = payload.fields().len();
    if names == 0 || names == columns {
        return Ok(());
    }
    let [ours, theirs] = [names, columns].map(|number| number.to_string());
    Err(ChannelError::Mismatch { field: NAMES.to_owned(), ours, theirs }.into())
}

/// The most keys of a bucket, but with probability `2^-bits`.
fn capacity(keys: u64, buckets: u32, bits: f64) -> u64 {
    match buckets {
        1 => keys,
        // mutant(matching-buckets): `bits` => `bits - if $ON { 3.0 } else { 0.0 }`
        buckets => bin_capacity(keys, buckets.into(), bits) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Entry, buckets};

    /// Buckets overflow as rarely as their size says, and not much more rarely.
    #[test]
    fn overflows_of_buckets_by_counting() {
        const KEYS: u64 = 500;
        const BUCKETS: u32 = 8;
        const TRIALS: u64 = 8000;
        let entry = |number: u64| {
            let mut item = [0; 16];
            item[..8].copy_from_slice(&number.to_le_bytes());
            Entry { item, place: 0 }
        };
        let entries: Vec<_> = (0..KEYS).map(entry).collect();
        for bits in [5.0, 7.0] {
            let most = capacity(KEYS, BUCKETS, bits);
            let overflows = |trial: &u64| {
                let mut oracle = RandomOracle::new("a test's key of buckets");
                let mut counts = [0; BUCKETS as usize];
                for bucket in buckets(&oracle.absorb_u64(*trial).finish32(), &entries, BUCKETS) {
                    counts[bucket as usize] += 1;
                }
                counts.into_iter().any(|count| count > most)
            };
            let seen = (0..TRIALS).filter(overflows).count() as f64;
            // Five standard deviations; a bucket of one key less may do with half the probability.
            let most = TRIALS as f64 * f64::exp2(-bits);
            let least = most / 3.0;
            assert!(seen <= most + 5.0 * most.sqrt(), "2^-{bits}: {seen}");
            assert!(seen >= least - 5.0 * least.sqrt() && least > 20.0, "2^-{bits}: {seen}");
        }
    }

    /// The name is a hash of this text, whose order is that of the wire.
    #[test]
    fn the_name_of_an_agreement_has_one_text() {
        let own = LocalManifest { rows: 5, dedup: true };
        let payload = Some(("a:text".to_owned(), 10));
        let agreement = Agreement::new(own, ([1; 32], 8), vec![[100, 200]], payload);
        let key = ["1"; 32].join(",");
        for (workers, text) in [(None, "null"), (Some(7), "7")] {
            let text = format!(
                r#"{{"version":3,"own":{{"rows":0,"dedup":false}},"key":[{key}],"buckets":8,"sizes":[[100,200]],"payload":["a:text",10],"workers":{text}}}"#
            );
            let mut oracle = RandomOracle::new("volery matching: run");
            oracle.absorb(text.as_bytes());
            assert_eq!(agreement.id(&workers), oracle.finish32());
            let read: Agreement = parse(agreement.to_json(&workers).as_bytes()).unwrap();
            assert_eq!(read.own, agreement.own);
            assert_eq!(read.id(&workers), agreement.id(&workers));
            assert_eq!(read.is_divided, workers.is_some());
        }
        assert_eq!(agreement.id(&()), agreement.id(&None::<()>));
    }
}
