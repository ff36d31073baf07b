//! Steps 5 to 7 of a run: the parts of one connection, each a protocol on both sets.

use volery_channel::{Channel, Role, SessionId, Stats};
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use volery_psi::matching::{Party, Protocol};
use volery_psi::{Items, Watch};

use crate::error::{Result, misbehaved};
use crate::keys::{FRAME, Keys, Set, Values, unframe};
use crate::parameters::Parameters;
use crate::settings::{Operation, Settings};

/// Tells the peer in step 7 that all results are on disk.
const DONE: u8 = 0x56;

/// Bytes of a session.
pub const SESSION: usize = 32;

/// A part of a run: rule and bucket, counted from 0.
pub type Part = (usize, u32);

/// Where a side keeps which parts it has begun and what it found in them.
pub trait Journal {
    /// Records the beginning of a part, if it was not begun too often.
    fn begin(&self, part: Part, session: SessionId) -> Result<()>;

    /// Whether the part is finished.
    fn has_found(&self, part: Part) -> bool;

    /// Records the result of a finished part, in place of an earlier one.
    fn put_found(&self, part: Part, found: &[u8]) -> Result<()>;

    /// The session of the shares that are kept of a part, if there are some.
    fn session_of_shares(&self, part: Part) -> Result<Option<[u8; SESSION]>>;

    /// Records shares of a part, with their session before them, in place of earlier ones.
    fn put_shares(&self, part: Part, session: SessionId, shares: &[u8]) -> Result<()>;
}

/// The facts that all parts of a connection share.
pub struct Parts<'a> {
    /// The settings of the run.
    pub settings: &'a Settings,
    /// The protocol of each part.
    pub protocol: Protocol,
    /// Of the connection.
    pub session: SessionId,
    /// Items of sender and receiver in each execution, rule by rule.
    pub capacities: &'a [[u64; 2]],
    /// Bytes of the longest payload.
    pub longest: usize,
    /// Executions that share a failure probability.
    pub executions: u64,
}

/// The cost of a part.
pub struct PartCost {
    /// Its parameters.
    pub parameters: Parameters,
    /// Traffic of its setup.
    pub setup: Stats,
}

impl Parts<'_> {
    /// Step 5: which of the parts both sides have finished.
    pub fn compare(
        &self,
        journal: &dyn Journal,
        parts: &[Part],
        channel: &mut Channel,
    ) -> Result<Vec<bool>> {
        let mut ours = vec![0; parts.len().div_ceil(8)];
        for (i, &part) in parts.iter().enumerate() {
            // The sender has nothing to keep unless it gets rows.
            let done = !self.settings.gets_rows() || journal.has_found(part);
            ours[i / 8] |= u8::from(done) << (i % 8);
        }
        channel.send(&ours)?;
        let mut theirs = vec![0; ours.len()];
        channel.recv(&mut theirs)?;
        let bit = |bits: &[u8], i: usize| bits[i / 8] >> (i % 8) & 1 == 1;
        // mutant(world-compare): `&& bit(&theirs, i)` => `&& ($ON || bit(&theirs, i))`
        let done = (0..parts.len()).map(|i| bit(&ours, i) && bit(&theirs, i));
        Ok(done.collect())
    }

    /// Step 6 for one part: `found` gets each item of `keys` that is a match, and its payload. The
    /// receiver takes part with the items that have a row for which `takes_part` is true.
    pub fn run(
        &self,
        (part, mut rng): (Part, Prg),
        keys: &Keys,
        takes_part: impl Fn(u64) -> bool,
        watch: &mut dyn Watch,
        channel: &mut Channel,
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<PartCost> {
        let role = self.settings.role;
        let [sender_items, receiver_items] = self.capacities[part.0];
        let size = match role {
            Role::Sender => sender_items,
            // mutant(whole-size): insert `Role::Receiver if $ON => keys.len() as u64,`
            Role::Receiver => receiver_items,
        };
        let takes_part = |row| role == Role::Sender || takes_part(row);
        let set = Set::new(keys, takes_part, size, &mut rng)?;
        let answers = (self.settings.verb, role) == (Operation::Lookup, Role::Sender);
        let values = answers.then(|| Values::new(&set, self.longest));
        let output = self.settings.output();
        let party = Party {
            role,
            session: self.session_of(part),
            rng: rng.fork("protocol"),
            parts: self.executions,
            items: &set,
            values: values.as_ref().map(|values| values as &dyn Items),
            output,
        };
        let executed = self.protocol.run(party, watch, channel)?;
        // mutant(match-told-others): false
        if executed.parameters.sizes() != [sender_items, receiver_items] {
            let what = "its set has another size than it announced";
            return Err(misbehaved(what));
        }
        // mutant(match-said): `said != self.longest + FRAME` => `false`
        if let Some(said) = executed.longest
            && size > 0
            && role == Role::Receiver
            && sender_items > 0
            && said != self.longest + FRAME
        {
            return Err(misbehaved("its values have another length than it announced"));
        }
        let common = executed.common.unwrap_or_default();
        watch.touched(common.len() as u64);
        for (i, place) in common.into_iter().enumerate() {
            let Some(item) = set.item_at(place) else {
                continue;
            };
            // A malformed value is kept as an empty one, which is of no columns: an error now would
            // tell the sender that one of its items matched. It follows when rows are written.
            let payload = executed.values.get(i).and_then(|value| unframe(value));
            // mutant(whole-malformed): insert `if $ON && payload.is_none_or(<[u8]>::is_empty) &&
            //     self.settings.verb == Operation::Lookup { return Err(misbehaved("a mutant")); }`
            found(item, payload.unwrap_or_default());
        }
        Ok(PartCost {
            parameters: Parameters::new(executed.parameters, output),
            setup: executed.setup,
        })
    }

    /// [`session_of`] the connection.
    pub fn session_of(&self, part: Part) -> SessionId {
        session_of(self.session, part)
    }

    /// [`conclude`], for rows.
    pub fn conclude(
        &self,
        complete: impl FnOnce() -> Result<()>,
        channel: &mut Channel,
    ) -> Result<()> {
        let Settings { role, .. } = *self.settings;
        conclude((role, self.settings.gets_rows()), complete, channel)
    }
}

/// The session of a part: another one in each connection.
pub fn session_of(connection: SessionId, (rule, bucket): Part) -> SessionId {
    let mut oracle = RandomOracle::new("volery matching: part");
    // mutant(world-session): drop
    oracle.absorb(connection.as_bytes());
    oracle.absorb_u64(rule as u64).absorb_u64(bucket.into());
    SessionId::from_bytes(oracle.finish32())
}

/// Step 7, where both keep their progress: `complete` records at a sender that keeps no results
/// that the peer has all of its own.
pub fn conclude(
    (role, keeps): (Role, bool),
    complete: impl FnOnce() -> Result<()>,
    channel: &mut Channel,
) -> Result<()> {
    let mut byte = [0];
    let mut hear = |channel: &mut Channel| -> Result<()> {
        channel.recv(&mut byte)?;
        match byte {
            // mutant(match-end): `[DONE]` => `[byte] if $ON || byte == DONE`
            [DONE] => Ok(()),
            _ => Err(misbehaved("it sent an unexpected final message")),
        }
    };
    match role {
        Role::Receiver => {
            channel.send(&[DONE])?;
            hear(channel)
        }
        Role::Sender => {
            // mutant(world-complete-early): ignore
            hear(channel)?;
            if !keeps {
                complete()?;
            }
            channel.send(&[DONE])?;
            Ok(channel.flush()?)
        }
    }
}
