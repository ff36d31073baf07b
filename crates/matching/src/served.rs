//! Queries to a server that prepared a large table once ([`volery_psi::served`]).
//!
//! ```text
//! Server: the filter of its keys                 Client: a side that has read its table
//! handshake: variant, types and normalisers of the keys
//!    ---- label of the filter, rest of the budget ------->
//!    <--- fetches the filter, or has it ------------------
//!    ---- the filter ------------------------------------>   only if it fetches
//!    <--- queries, and answers with proofs -------------->
//! ```

use std::time::Duration;

use volery_channel::{Channel, Error as ChannelError, Hello, Role, Session, SessionId, Stats};
use volery_primitives::ro::StreamHash;
use volery_psi::served::meeting::Welcome;
use volery_psi::served::{self, Client, Filter, Label, SetBuilder};
use volery_psi::{Error as PsiError, Items};
use volery_tables::{Counts, Reader, Reading, Table};

use volery_os::time::Instant;

use crate::error::{Error, Result};
use crate::folder::Finish;
use crate::keys::Keys;
use crate::matches::{Matches, append};
use crate::progress::{Inner, Progress};
use crate::settings::KEYS;
use crate::side::{LONGEST_KEYS, PreparedTable};

/// The most keys of a server. A filter of as many takes 1.3 GB, at the client in memory.
pub const MAX_KEYS: u64 = 1 << 27;

/// The first message of both sides. `keys` describes the key columns without their names.
pub fn hello(role: Role, keys: &str) -> Hello {
    let mut hello = served::hello(role);
    hello.fields.push((KEYS, keys.to_owned()));
    hello
}

/// The facts that each side learns in a query, one sentence each, without a full stop.
pub fn revealed() -> Vec<String> {
    [
        "the server learns how many distinct keys this side asks for, and the number and types of its key columns, and no key",
        "this side learns how many distinct keys the server has, and which of its own keys are among them",
        "secure against a malicious peer: the server proves in each answer that it used the key of its filter, so that it answers all clients of one filter alike; but nothing shows that the tags in the filter are of keys that it has",
        "a client can ask for any keys that it can think of, as many as its budget allows, today and again later: the server's budgets are the bound (result.budget_left of the report)",
    ]
    .map(str::to_owned)
    .into()
}

/// The result of a query.
pub struct QueryResult {
    /// The session, public and the same on both sides.
    pub session: SessionId,
    /// The filter.
    pub label: Label,
    /// Whether it was fetched.
    pub fetched: bool,
    /// Different keys of this side.
    pub items: u64,
    /// Keys that this side may still ask for, as the server says; `None` if there is no limit.
    pub left: Option<u64>,
    /// Up to the first query: the handshake, and the filter if it was fetched.
    pub setup: Duration,
    /// After it.
    pub online: Duration,
    /// Traffic of `setup`.
    pub setup_traffic: Stats,
    /// All traffic.
    pub traffic: Stats,
    /// The matching rows.
    pub matches: Matches,
    /// The end of the run, for when the output is written.
    pub finish: Finish,
}

struct DistinctKeys<'a>(&'a Keys);

impl Items for DistinctKeys<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn item(&self, index: usize) -> &[u8] {
        self.0.item(index)
    }
}

impl PreparedTable {
    /// Asks a server for the keys of this side, which has one rule and is in memory. `filter` is
    /// the one from an earlier run; without it the server's is fetched, if it has at most
    /// `most_items`, and given to `keep` before anything is asked. So it is where the server has
    /// another key and `follow`, which gets both public keys, agrees.
    ///
    /// # Errors
    /// If the server has another filter than `filter`, or refuses; if the channel fails; those of
    /// `follow` and `keep`.
    ///
    /// # Panics
    /// If the side has several rules, or keys on disk.
    pub fn ask<E: From<Error>>(
        self,
        filter: Option<Filter>,
        most_items: u64,
        follow: impl FnOnce([&[u8]; 2]) -> Result<bool, E>,
        keep: impl FnOnce(&Filter) -> Result<(), E>,
        channel: &mut Channel,
        progress: &mut dyn Progress,
    ) -> Result<QueryResult, E> {
        assert_eq!(self.rules, 1, "a server has keys of one kind");
        let start = Instant::now();
        progress.begin("agreeing on settings and sizes", 0);
        let hello = hello(Role::Receiver, &self.key_description);
        let mut session = Session::begin(&mut *channel, &hello).map_err(Error::from)?;
        let (id, rng, channel) = session.parts();
        let welcome = Welcome::receive(most_items, channel).map_err(Error::from)?;
        let kept = match filter {
            None => None,
            Some(filter) => match welcome.keep(filter.label(), channel) {
                Err(PsiError::OtherKey { .. })
                    if follow([filter.label().public(), welcome.label.public()])? =>
                {
                    None
                }
                kept => Some(kept.map(|()| filter).map_err(Error::from)?),
            },
        };
        let fetched = kept.is_none();
        let filter = match kept {
            Some(filter) => filter,
            None => {
                progress.begin("fetching the filter", 0);
                let filter = welcome.fetch(channel).map_err(Error::from)?;
                keep(&filter)?;
                filter
            }
        };
        let (setup, setup_traffic) = (start.elapsed(), channel.stats());
        let keys = self.load((0, 0))?;
        let watch = &mut Inner { progress, shown: true };
        let client = Client::new(&filter, rng);
        let queried = client.query(&DistinctKeys(&keys), watch, channel);
        let queried = queried.map_err(Error::from)?;
        let mut found = Vec::new();
        for &item in &queried.common {
            for row in keys.rows_of(item) {
                append(&mut found, row, &[]);
            }
        }
        let mut collected = self.collected()?;
        collected.take(0, &found)?;
        let items = keys.len() as u64;
        Ok(QueryResult {
            session: id,
            label: *filter.label(),
            fetched,
            items,
            left: if items == 0 { welcome.left } else { queried.left },
            setup,
            online: start.elapsed() - setup,
            setup_traffic,
            traffic: channel.stats(),
            matches: Matches { collected, payload: None },
            finish: Finish(None),
        })
    }
}

/// A table that a server has read.
#[derive(Clone, Debug)]
pub struct TableSummary {
    /// BLAKE3 of the keys of all rows in their order.
    pub digest: [u8; 32],
    /// Types and normalisers of the keys.
    pub keys: String,
    /// Counts of empty, malformed and changed keys.
    pub counts: Counts,
}

/// Reads the keys of a server's table, piece by piece, and prepares them if `preparing` is given.
/// `cancelled` is asked from time to time.
///
/// # Errors
/// Errors of the table and of files; [`ChannelError::Cancelled`].
pub fn read(
    table: &Table,
    reading: &Reading,
    mut preparing: Option<&mut SetBuilder<'_>>,
    cancelled: &dyn Fn() -> bool,
    progress: &mut dyn Progress,
) -> Result<TableSummary> {
    let mut reader = Reader::new(table, reading)?;
    let keys = reader.key_description();
    if keys.len() > LONGEST_KEYS {
        return Err(Error::LongKeys);
    }
    let phase = match preparing {
        Some(_) => "preparing keys",
        None => "reading keys",
    };
    progress.begin(phase, table.bytes());
    let mut digest = StreamHash::default();
    let mut scan = table.scan(&reader.columns())?;
    let (mut items, mut present, mut hashed) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(batch) = scan.next()? {
        if cancelled() {
            return Err(ChannelError::Cancelled.into());
        }
        items.clear();
        reader.items(&batch, 0, &mut items)?;
        present.clear();
        hashed.clear();
        for item in &items {
            hashed.push(u8::from(item.is_some()));
            if let Some(item) = item {
                hashed.extend_from_slice(item);
                present.push(*item);
            }
        }
        digest.update(&hashed);
        if let Some(preparing) = &mut preparing {
            preparing.add(&present[..])?;
        }
        progress.done(batch.done_bytes);
    }
    table.check_unchanged()?;
    Ok(TableSummary { digest: digest.finish32(), keys, counts: reader.counts().clone() })
}
