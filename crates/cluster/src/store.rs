//! The shards, the journal and the results of a worker in the care of the process that started it.

use std::collections::BTreeMap;
use std::io;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use volery_channel::SessionId;
use volery_matching::steps::{Journal, Part, Rows, SESSION, hex};
use volery_matching::totals::{self, payload};
use volery_matching::{ATTEMPTS, Error, Result};

use crate::task::Task;

/// The shards and the journal of a worker, in the care of the process that started it. An object is
/// there whole or not at all.
pub trait Store: Sync {
    /// The items of a shard: in each batch a column `item` of 16 bytes; at the sender of a lookup a
    /// column `payload`, as the reader of tables makes them; for totals a column `value` of Int64
    /// where this side has values, and `group` of Int32 where it has the groups, -1 for none. The
    /// items are distinct.
    ///
    /// # Errors
    /// If they cannot be had.
    fn shard(&self, rule: usize, shard: u32) -> io::Result<Vec<RecordBatch>>;

    /// The names of the objects that begin with `prefix`.
    ///
    /// # Errors
    /// If they cannot be had.
    fn list(&self, prefix: &str) -> io::Result<Vec<String>>;

    /// Keeps an object under a new name.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if there is an object of this name; others if it cannot be
    /// kept.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
}

/// The items of batches, or nothing if they are not as a [`Store`] has to give them.
pub(crate) fn items(batches: &[RecordBatch], with_payload: bool) -> Option<Rows> {
    let mut rows = Rows::new(with_payload);
    let mut row = 0;
    for batch in batches {
        let items = batch.column_by_name("item")?.as_fixed_size_binary_opt()?;
        let payload = match with_payload {
            true => Some(batch.column_by_name("payload")?.as_binary_opt::<i32>()?),
            false => None,
        };
        for i in 0..items.len() {
            let item = items.value(i).try_into().ok()?;
            rows.push(item, row, payload.map_or(&[][..], |all| all.value(i)));
            row += 1;
        }
    }
    Some(rows)
}

/// The items of batches with their values and groups, or nothing if they are not as a [`Store`] has
/// to give them: a value is within the bound, and a group one of the settings, or -1.
pub(crate) fn valued_items(batches: &[RecordBatch], settings: &totals::Settings) -> Option<Rows> {
    let mut rows = Rows::new(true);
    let mut row = 0;
    for batch in batches {
        let column = |name| {
            let column = batch.column_by_name(name)?;
            (column.null_count() == 0).then_some(column)
        };
        let items = column("item")?.as_fixed_size_binary_opt()?;
        let values = match settings.column {
            Some(_) => Some(column("value")?.as_primitive_opt::<Int64Type>()?),
            None => None,
        };
        let groups = match settings.group_by {
            Some(_) => Some(column("group")?.as_primitive_opt::<Int32Type>()?),
            None => None,
        };
        for i in 0..items.len() {
            let item = items.value(i).try_into().ok()?;
            let value = values.map_or(0, |all| all.value(i));
            let group = groups.map_or(-1, |all| all.value(i));
            // mutant(store-groups): `group == -1` => `true`
            let is_group = group == -1 || (0..settings.groups.len() as i32).contains(&group);
            // mutant(store-bound): false
            if value.unsigned_abs() > settings.bound || !is_group {
                return None;
            }
            rows.push(item, row, &payload(value, group)[..]);
            row += 1;
        }
    }
    Some(rows)
}

/// Appends a match to the bytes in which a store keeps the matches of a shard: item, length of the
/// payload, payload.
pub(crate) fn append_item(out: &mut Vec<u8>, item: &[u8], payload: &[u8]) {
    out.extend_from_slice(item);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(payload);
}

/// The matches in the bytes of a shard that a store kept: items and payload.
pub(crate) fn found_items(mut bytes: &[u8]) -> Result<Vec<([u8; 16], &[u8])>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let mut next = || {
            let (item, rest) = bytes.split_first_chunk::<16>()?;
            let (length, rest) = rest.split_first_chunk::<4>()?;
            let (payload, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            bytes = rest;
            Some((*item, payload))
        };
        let cut = || Error::work("found".as_ref())(io::ErrorKind::UnexpectedEof.into());
        all.push(next().ok_or_else(cut)?);
    }
    Ok(all)
}

/// The journal of a worker whose results are objects of a store:
///
/// | object | content |
/// |---|---|
/// | `begun/R-SSSSS.N` | the session in which shard S of rule R was begun for the Nth time |
/// | `found/R-SSSSS.aA` | the matches that attempt A found |
/// | `done/R-SSSSS.aA.json` | the name and digest of that object, written after it |
///
/// For totals in place of the last two:
///
/// | object | content |
/// |---|---|
/// | `found/R-SSSSS.aA.SESSION` | this session in bytes, and the shares that attempt A made in it; those of the highest attempt count |
pub(crate) struct Objects<'a> {
    store: &'a dyn Store,
    rule: usize,
    attempt: u64,
    /// The finished shards; of totals with the highest attempt, and the session of its shares.
    done: BTreeMap<u32, (u64, [u8; SESSION])>,
}

impl<'a> Objects<'a> {
    pub(crate) fn new(
        store: &'a dyn Store,
        (rule, attempt): (usize, u64),
        task: &Task,
    ) -> Result<Self> {
        let prefix = match task {
            Task::Rows(_) => format!("done/{rule}-"),
            Task::Totals(_) => format!("found/{rule}-"),
        };
        let names = store.list(&prefix).map_err(Error::work(prefix.as_ref()))?;
        let parse = |name: &String| {
            let mut parts = name.strip_prefix(&prefix)?.split('.');
            let shard: u32 = parts.next()?.parse().ok()?;
            let attempt: u64 = parts.next()?.strip_prefix('a')?.parse().ok()?;
            let session = match task {
                Task::Rows(_) => [0; SESSION],
                Task::Totals(_) => unhex(parts.next()?)?,
            };
            Some((shard, (attempt, session)))
        };
        let mut done = BTreeMap::new();
        for (shard, found) in names.iter().filter_map(parse) {
            let place = done.entry(shard).or_insert(found);
            *place = found.max(*place);
        }
        Ok(Self { store, rule, attempt, done })
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let put = self.store.put(name, bytes);
        put.map_err(Error::work(name.as_ref()))
    }
}

impl Journal for Objects<'_> {
    fn begin(&self, (rule, shard): Part, session: SessionId) -> Result<()> {
        let session = hex(session.as_bytes());
        // mutant(match-begun): `ATTEMPTS` => `ATTEMPTS + if $ON { 9 } else { 0 }`
        for times in 1..=ATTEMPTS {
            let name = format!("begun/{rule}-{shard:05}.{times}");
            match self.store.put(&name, session.as_bytes()) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                put => return put.map_err(Error::work(name.as_ref())),
            }
        }
        Err(Error::TooManyAttempts {
            path: format!("begun/{rule}-{shard:05}").into(),
            part: shard as usize + 1,
        })
    }

    fn has_found(&self, (rule, shard): Part) -> bool {
        rule == self.rule && self.done.contains_key(&shard)
    }

    fn put_found(&self, (rule, shard): Part, found: &[u8]) -> Result<()> {
        let attempt = self.attempt;
        let name = format!("found/{rule}-{shard:05}.a{attempt}");
        self.put(&name, found)?;
        let mut hash = volery_primitives::ro::StreamHash::default();
        hash.update(found);
        let done = serde_json::json!({
            "found": name,
            "bytes": found.len(),
            "blake3": hex(&hash.finish32()),
        });
        let name = format!("done/{rule}-{shard:05}.a{attempt}.json");
        self.put(&name, done.to_string().as_bytes())
    }

    fn session_of_shares(&self, (_, shard): Part) -> Result<Option<[u8; SESSION]>> {
        Ok(self.done.get(&shard).map(|(_, session)| *session))
    }

    fn put_shares(&self, (rule, shard): Part, session: SessionId, shares: &[u8]) -> Result<()> {
        let (attempt, session) = (self.attempt, hex(session.as_bytes()));
        self.put(&format!("found/{rule}-{shard:05}.a{attempt}.{session}"), shares)
    }
}

/// The bytes that [`hex`] wrote.
fn unhex(text: &str) -> Option<[u8; SESSION]> {
    let (digits, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let mut bytes = [0; SESSION];
    if digits.len() != bytes.len() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(digits) {
        *byte = u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}
