//! A run, from the opened table to the matches.
//!
//! ```text
//! each alone: reads its table: an item for each row and rule            Side::read
//! handshake: settings, types and normalisers of the keys
//! 1. progress of an earlier attempt, least number of buckets      <-->
//! 2. key of the buckets, tossed by commitment                     <-->  unless there is one bucket
//!    each alone: divides its items
//! 3. distinct keys by rule; the sender's columns, longest payload <-->
//! 4. the protocol, by sizes and link                              (module `choice` of volery_psi)
//! 5. finished parts                                               <-->  where a run is resumed
//! 6. for each rule, for each bucket: the protocol on both sets    (crate volery_psi)
//! 7. both have all results                                        <-->  where a run is resumed
//! ```
//!
//! **Sizes.** With several buckets each set is filled up with random items to a capacity that
//! follows from the number of distinct keys alone, so the distribution of the keys over the buckets
//! stays hidden. By the second rule and later ones the receiver takes part with the rows that have
//! not matched, filled up to the number of keys that all its rows have: the sender does not learn
//! how many matched. So each side learns of the other's table the number of distinct keys by each
//! rule, and of a lookup the names and types of the columns, and the length of the longest payload.
//!
//! **The key of the buckets** is tossed when both tables have been read, so nobody can choose keys
//! that fall into one bucket.
//!
//! **Time** is not hidden: a receiver with more matches takes longer to write them before it goes
//! on with the next part.
//!
//! **Failures.** All executions together fail with the probability for which one has parameters:
//! each gets as many bits more as there are executions.
//!
//! **Resumption.** A part that is begun again runs in another session with fresh randomness. A
//! malicious receiver may take part with another set each time, so parts are begun at most
//! [`ATTEMPTS`](crate::error::ATTEMPTS) times.

use std::ops::Sub;
use std::time::{Duration, Instant};

use volery_channel::link::{Side as LinkSide, estimate};
use volery_channel::{Channel, Error as ChannelError, Link, Role, SessionId, Stats, handshake};
use volery_okvs::bin_capacity;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use volery_psi::choice::{Candidate, Protocol, Task, candidates};
use volery_psi::lookup::MAX_VALUE;
use volery_psi::params::MAX_ITEMS;
use volery_tables::PayloadSchema;

use crate::error::{Result, misbehaved};
use crate::keys::{FRAME, Keys, Set, Values, unframe};
use crate::matches::{Collected, RowSet, append};
use crate::parameters::Parameters;
use crate::progress::{Inner, Progress};
use crate::protocol::execute;
use crate::settings::{PROGRESS, Verb};
use crate::side::{MAX_BUCKETS, Side};
use crate::work::{Agreed, Part, VERSION, Work};

/// Least nanoseconds for each item, which bounds the time spent on measuring the link.
const EACH: u64 = 100;

/// Bits of the failure probability of the run that are left to overflowing buckets.
const OVERFLOW: f64 = 42.0;

/// The longest line of names and types of the payload, in bytes.
const LONGEST_LINE: usize = 1 << 16;

/// Tells the peer in step 7 that all results are on disk.
const DONE: u8 = 0x56;

/// What a run cost and gave.
pub struct Outcome {
    /// The session, public and the same on both sides.
    pub session: SessionId,
    /// The protocol.
    pub protocol: Protocol,
    /// Why, if it was chosen.
    pub choice: Option<Choice>,
    /// The parameters of the last execution, the same for all of a rule; none if nothing was left
    /// to do.
    pub parameters: Option<Parameters>,
    /// Buckets of each rule.
    pub buckets: u32,
    /// Distinct keys of sender and receiver, rule by rule.
    pub sizes: Vec<[u64; 2]>,
    /// Items of sender and receiver in each execution, rule by rule.
    pub capacities: Vec<[u64; 2]>,
    /// Parts that an earlier attempt had finished.
    pub resumed: u32,
    /// The most times that any part was begun.
    pub attempts: u32,
    /// Lookup: bytes of the longest payload.
    pub longest: Option<usize>,
    /// Up to the choice of the protocol.
    pub setup: Duration,
    /// After it.
    pub online: Duration,
    /// Traffic of `setup`, and of base OTs.
    pub setup_traffic: Stats,
    /// All traffic.
    pub traffic: Stats,
    /// The matching rows, if this side gets them.
    pub matches: Option<Matches>,
    work: Option<Work>,
}

/// The matching rows of this side.
pub struct Matches {
    pub(crate) collected: Collected,
    /// The columns that the sender's payload has.
    pub(crate) payload: Option<PayloadSchema>,
}

impl Matches {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.collected.total()
    }

    /// Number of rows by the rule that they matched by first.
    #[must_use]
    pub fn by_rule(&self) -> &[u64] {
        &self.collected.by_rule
    }

    /// The columns of the payload.
    #[must_use]
    pub fn payload(&self) -> Option<&PayloadSchema> {
        self.payload.as_ref()
    }
}

/// The protocols that were compared, and for what.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The sizes of one execution.
    pub task: Task,
    /// The link.
    pub link: Link,
    /// The fastest first.
    pub candidates: Vec<Candidate>,
}

impl Side {
    /// Steps 1 to 7, over a new connection.
    ///
    /// # Errors
    /// If the channel or a protocol fails, or a file.
    pub fn run(mut self, channel: &mut Channel, progress: &mut dyn Progress) -> Result<Outcome> {
        let start = Instant::now();
        progress.begin("agreeing on settings and sizes", 0);
        let mut rng = Prg::from_os().map_err(ChannelError::from)?;
        let mut nonce = [0; 32];
        rng.fill_bytes(&mut nonce);
        let hello = self.settings.hello(&self.key_description);
        let session = handshake(channel, &hello, nonce)?;
        let (resumed, buckets) = self.compare_progress(channel)?;
        let agreed = match resumed {
            true => self.earlier.clone().expect("there is progress"),
            false => {
                let key = match buckets {
                    // It divides nothing, and names the run.
                    1 => *session.as_bytes(),
                    _ => toss(self.settings.role, session, &mut rng, channel)?,
                };
                let sizes = self.divide(&key, buckets, progress)?;
                progress.begin("agreeing on settings and sizes", 0);
                self.compare_sizes(key, buckets, &sizes, channel)?
            }
        };
        let (line, longest) = match &agreed.payload {
            Some((line, longest)) => (Some(line.as_str()), Some(*longest)),
            None => (None, None),
        };
        let payload = self.peer_payload(line)?;
        let parts = u64::from(buckets) * self.rules as u64;
        let bits = OVERFLOW + (2.0 * self.rules as f64).log2();
        let capacity = |keys| match buckets {
            1 => keys,
            _ => bin_capacity(keys, buckets.into(), bits) as u64,
        };
        let capacities: Vec<_> = agreed
            .sizes
            .iter()
            .map(|sizes| sizes.map(capacity))
            .collect();
        if capacities.iter().flatten().any(|&items| items > MAX_ITEMS) {
            let items = capacities.iter().flatten().copied().max().unwrap_or(0);
            let most = MAX_ITEMS;
            return Err(volery_psi::Error::TooMany { items, most }.into());
        }
        let (protocol, choice) = self.choose(&capacities, channel)?;
        if let Some(choice) = &choice {
            progress.note(&choice.why());
        }
        if let (Some(work), false) = (&self.work, resumed)
            && self.earlier_kept()
        {
            work.put_agreed(&agreed)?;
        }
        let (both_keep, done) = self.compare_parts(buckets, channel)?;
        let (setup, setup_traffic) = (start.elapsed(), channel.stats());

        let several = parts > 1;
        if several {
            progress.begin("matching buckets", parts);
        }
        let mut collected = self.collected()?;
        let mut parameters = None;
        let mut setups = Vec::new();
        let mut finished = 0;
        for rule in 0..self.rules {
            let earlier = collected.set.clone();
            let mut in_memory = Vec::new();
            for bucket in 0..buckets {
                let part = (rule, bucket);
                if !done[rule * buckets as usize + bucket as usize] {
                    let id = part_session(session, part);
                    if let Some(work) = self.work.as_ref().filter(|_| self.earlier_kept()) {
                        work.begin(part, id)?;
                    }
                    let keys = self.load(part)?;
                    let run = (protocol, id, rng.fork("part"), parts);
                    let sizes = capacities[rule];
                    let longest = longest.unwrap_or(0);
                    let watch = &mut Inner {
                        progress: &mut *progress,
                        shown: !several,
                    };
                    let (found, by, setup) =
                        self.part(run, &keys, &earlier, (sizes, longest), watch, channel)?;
                    parameters = Some(by);
                    setups.push(setup);
                    match &self.work {
                        Some(work) if self.settings.gets_rows() => {
                            if !work.has_found(part) {
                                work.put_found(part, &found)?;
                            }
                        }
                        _ => in_memory.push(found),
                    }
                }
                finished += 1;
                if several {
                    progress.done(finished);
                }
            }
            if self.settings.gets_rows() {
                self.collect(rule, buckets, &in_memory, &mut collected)?;
            }
        }
        if both_keep {
            self.conclude(channel)?;
        }
        let mut attempts = 1;
        if let Some(work) = &self.work {
            let begun = work.attempts()?;
            let count = |part: &Part| begun.iter().filter(|one| *one == part).count() as u32;
            attempts = self
                .parts(buckets)
                .map(|part| count(&part))
                .max()
                .unwrap_or(1);
        }
        let matches = self
            .settings
            .gets_rows()
            .then_some(Matches { collected, payload });
        let traffic = channel.stats();
        let online = setups.into_iter().fold(traffic - setup_traffic, Sub::sub);
        Ok(Outcome {
            session,
            protocol,
            choice,
            parameters,
            buckets,
            sizes: agreed.sizes,
            capacities,
            resumed: done.iter().filter(|done| **done).count() as u32,
            attempts: attempts.max(1),
            longest,
            setup,
            online: start.elapsed() - setup,
            setup_traffic: traffic - online,
            traffic,
            matches,
            work: self.work,
        })
    }

    /// Step 1. Whether both have progress of the same run, and the number of buckets.
    fn compare_progress(&mut self, channel: &mut Channel) -> Result<(bool, u32)> {
        let mut id = [0; 32];
        let (mut begun, mut least) = (false, self.wanted());
        if let (Some(work), Some(earlier)) = (&self.work, &self.earlier) {
            id = earlier.id();
            begun = !work.attempts()?.is_empty();
            least = least.max(earlier.buckets);
        }
        channel.send(&id)?;
        channel.send(&[begun.into()])?;
        channel.send(&least.to_le_bytes())?;
        let (mut theirs, mut their_begun, mut their_least) = ([0; 32], [0], [0; 4]);
        channel.recv(&mut theirs)?;
        channel.recv(&mut their_begun)?;
        channel.recv(&mut their_least)?;
        let their_least = u32::from_le_bytes(their_least);
        if their_least > MAX_BUCKETS || their_begun[0] > 1 {
            return Err(misbehaved("its first numbers are malformed"));
        }
        if let Some(earlier) = self.earlier.as_ref().filter(|_| theirs == id) {
            return Ok((true, earlier.buckets));
        }
        if begun || their_begun == [1] {
            let ours = if begun {
                "the progress of a run"
            } else {
                "none"
            };
            return Err(ChannelError::Mismatch {
                field: PROGRESS.to_owned(),
                ours: ours.to_owned(),
                theirs: "another, or none".to_owned(),
            }
            .into());
        }
        if let (Some(work), Some(earlier)) = (&self.work, self.earlier.take()) {
            // The peer had not written its agreement: both begin anew.
            work.forget()?;
            for rule in 0..self.rules {
                work.join(rule, earlier.buckets)?;
            }
        }
        Ok((false, least.max(their_least).max(1)))
    }

    /// Step 3.
    fn compare_sizes(
        &self,
        key: [u8; 32],
        buckets: u32,
        ours: &[u64],
        channel: &mut Channel,
    ) -> Result<Agreed> {
        for size in ours {
            channel.send(&size.to_le_bytes())?;
        }
        let lookup = self.settings.verb == Verb::Lookup;
        if let (true, Some(payload)) = (lookup, &self.payload) {
            let line = payload.line();
            channel.send(&(line.len() as u32).to_le_bytes())?;
            channel.send(line.as_bytes())?;
            channel.send(&(self.longest as u32).to_le_bytes())?;
        }
        let mut sizes = Vec::new();
        for &ours in ours {
            let mut theirs = [0; 8];
            channel.recv(&mut theirs)?;
            let theirs = u64::from_le_bytes(theirs);
            if theirs > MAX_ITEMS.saturating_mul(buckets.into()) {
                return Err(misbehaved("it announced a set larger than the maximum"));
            }
            sizes.push(match self.settings.role {
                Role::Sender => [ours, theirs],
                Role::Receiver => [theirs, ours],
            });
        }
        let payload = match (lookup, self.settings.role) {
            (false, _) => None,
            (true, Role::Sender) => {
                let payload = self
                    .payload
                    .as_ref()
                    .expect("a sender of a lookup has columns");
                Some((payload.line(), self.longest))
            }
            (true, Role::Receiver) => {
                let mut number = || -> Result<usize> {
                    let mut number = [0; 4];
                    channel.recv(&mut number)?;
                    Ok(u32::from_le_bytes(number) as usize)
                };
                let length = number()?;
                if length > LONGEST_LINE {
                    return Err(misbehaved("its list of columns is too long"));
                }
                let mut line = vec![0; length];
                channel.recv(&mut line)?;
                let mut longest = [0; 4];
                channel.recv(&mut longest)?;
                let longest = u32::from_le_bytes(longest) as usize;
                let line = String::from_utf8(line)
                    .map_err(|_| misbehaved("its list of columns is not UTF-8"))?;
                if longest + FRAME > MAX_VALUE {
                    return Err(misbehaved("it announced values longer than the maximum"));
                }
                Some((line, longest))
            }
        };
        Ok(Agreed {
            version: VERSION,
            own: self.own(),
            key,
            buckets,
            sizes,
            payload,
        })
    }

    /// The receiver's view of the sender's columns.
    pub(crate) fn peer_payload(&self, line: Option<&str>) -> Result<Option<PayloadSchema>> {
        match (self.settings.role, line) {
            (Role::Receiver, Some(line)) => {
                let schema = PayloadSchema::parse(line);
                Ok(Some(schema.map_err(|_| {
                    misbehaved("its list of columns is malformed")
                })?))
            }
            _ => Ok(None),
        }
    }

    /// Step 4.
    fn choose(
        &self,
        capacities: &[[u64; 2]],
        channel: &mut Channel,
    ) -> Result<(Protocol, Option<Choice>)> {
        let settings = &self.settings;
        if let Some(protocol) = settings.name.protocol(settings.security) {
            return Ok((protocol, None));
        }
        let largest = |side: usize| {
            capacities
                .iter()
                .map(|sizes| sizes[side])
                .max()
                .unwrap_or(0)
        };
        let [sender_items, receiver_items] = [largest(0), largest(1)];
        let link = match settings.link {
            Some(link) => link,
            None => {
                let side = match settings.role {
                    Role::Sender => LinkSide::IsMeasured,
                    Role::Receiver => LinkSide::Measures,
                };
                let work = Duration::from_nanos((sender_items + receiver_items) * EACH);
                estimate(channel, side, work)?
            }
        };
        let task = settings.task([sender_items, receiver_items]);
        let candidates = candidates(&task, link);
        let best = candidates.first().expect("the settings were checked");
        let protocol = best.protocol;
        let choice = Choice {
            task,
            link,
            candidates,
        };
        Ok((protocol, Some(choice)))
    }

    /// Step 5: whether both keep their progress, and the parts that need not run, bucket by bucket
    /// of each rule.
    fn compare_parts(&self, buckets: u32, channel: &mut Channel) -> Result<(bool, Vec<bool>)> {
        let count = buckets as usize * self.rules;
        let kept = [u8::from(self.earlier_kept())];
        let mut their_kept = [0];
        channel.send(&kept)?;
        channel.recv(&mut their_kept)?;
        if kept != [1] || their_kept != [1] {
            return Ok((false, vec![false; count]));
        }
        let work = self.work.as_ref().expect("progress is in a folder");
        let mut ours = vec![0; count.div_ceil(8)];
        for (i, part) in self.parts(buckets).enumerate() {
            // The sender has nothing to keep unless it gets rows.
            let done = !self.settings.gets_rows() || work.has_found(part);
            ours[i / 8] |= u8::from(done) << (i % 8);
        }
        channel.send(&ours)?;
        let mut theirs = vec![0; ours.len()];
        channel.recv(&mut theirs)?;
        let bit = |bits: &[u8], i: usize| bits[i / 8] >> (i % 8) & 1 == 1;
        let done = (0..count).map(|i| bit(&ours, i) && bit(&theirs, i));
        Ok((true, done.collect()))
    }

    /// Step 6 for one part: the matches, as in [`append`].
    fn part(
        &self,
        (protocol, id, mut rng, parts): (Protocol, SessionId, Prg, u64),
        keys: &Keys,
        earlier: &RowSet,
        ([sender_items, receiver_items], longest): ([u64; 2], usize),
        watch: &mut Inner<'_>,
        channel: &mut Channel,
    ) -> Result<(Vec<u8>, Parameters, Stats)> {
        let role = self.settings.role;
        let size = match role {
            Role::Sender => sender_items,
            Role::Receiver => receiver_items,
        };
        let takes_part = |row| role == Role::Sender || !earlier.contains(row);
        let set = Set::new(keys, takes_part, size, &mut rng)?;
        let answers = (self.settings.verb, role) == (Verb::Lookup, Role::Sender);
        let values = answers.then(|| Values::new(&set, longest));
        let run = (id, rng.fork("protocol"), parts);
        let executed = execute(
            protocol,
            &self.settings,
            run,
            &set,
            values.as_ref(),
            watch,
            channel,
        )?;
        if executed.parameters.sizes() != [sender_items, receiver_items] {
            let what = "its set has another size than it announced";
            return Err(misbehaved(what));
        }
        if let Some(said) = executed.longest
            && size > 0
            && role == Role::Receiver
            && sender_items > 0
            && said != longest + FRAME
        {
            return Err(misbehaved(
                "its values have another length than it announced",
            ));
        }
        let mut found = Vec::new();
        for (i, place) in executed.common.unwrap_or_default().into_iter().enumerate() {
            let Some(item) = set.item_at(place) else {
                continue;
            };
            // A malformed value is kept as an empty one, which is of no columns: an error now would
            // tell the sender that one of its items matched. It follows when rows are written.
            let payload = executed.values.get(i).and_then(|value| unframe(value));
            let payload = payload.unwrap_or_default();
            for row in keys.rows_of(item) {
                append(&mut found, row, payload);
            }
        }
        Ok((found, executed.parameters, executed.setup))
    }

    /// Step 7, where both keep their progress.
    fn conclude(&self, channel: &mut Channel) -> Result<()> {
        let Some(work) = &self.work else {
            return Ok(());
        };
        let mut byte = [0];
        let mut hear = |channel: &mut Channel| -> Result<()> {
            channel.recv(&mut byte)?;
            match byte {
                [DONE] => Ok(()),
                _ => Err(misbehaved("it sent an unexpected final message")),
            }
        };
        match self.settings.role {
            Role::Receiver => {
                channel.send(&[DONE])?;
                hear(channel)
            }
            Role::Sender => {
                hear(channel)?;
                if !self.settings.gets_rows() {
                    work.complete()?;
                }
                channel.send(&[DONE])?;
                Ok(channel.flush()?)
            }
        }
    }
}

/// The end of a run whose output was written: removes the items and results on disk.
pub struct Finish(pub(crate) Option<Work>);

impl Finish {
    /// Removes them; what a resumed run leaves says that it is complete.
    ///
    /// # Errors
    /// Those of the folder.
    pub fn finish(self) -> Result<()> {
        let Some(work) = self.0 else { return Ok(()) };
        if work.is_kept() {
            work.complete()?;
            work.clear()?;
        }
        Ok(())
    }
}

impl Outcome {
    /// The end of the run, for when the output is written, and the rest.
    #[must_use]
    pub fn split(mut self) -> (Finish, Self) {
        (Finish(self.work.take()), self)
    }
}

/// Step 2: a key that neither party chose.
fn toss(role: Role, session: SessionId, rng: &mut Prg, channel: &mut Channel) -> Result<[u8; 32]> {
    let commit = |role: Role, share: &[u8; 32]| {
        RandomOracle::new("volery matching: commitment")
            .absorb(session.as_bytes())
            .absorb(role.name().as_bytes())
            .absorb(share)
            .finish32()
    };
    let mut ours = [0; 32];
    rng.fill_bytes(&mut ours);
    channel.send(&commit(role, &ours))?;
    let mut committed = [0; 32];
    channel.recv(&mut committed)?;
    channel.send(&ours)?;
    let mut theirs = [0; 32];
    channel.recv(&mut theirs)?;
    if committed != commit(role.other(), &theirs) {
        return Err(misbehaved("its opening does not match its commitment"));
    }
    let [sender, receiver] = match role {
        Role::Sender => [ours, theirs],
        Role::Receiver => [theirs, ours],
    };
    Ok(RandomOracle::new("volery matching: key of the buckets")
        .absorb(session.as_bytes())
        .absorb(&sender)
        .absorb(&receiver)
        .finish32())
}

/// The session of a part: another one in each connection.
fn part_session(session: SessionId, (rule, bucket): Part) -> SessionId {
    let mut oracle = RandomOracle::new("volery matching: part");
    oracle.absorb(session.as_bytes());
    oracle.absorb_u64(rule as u64).absorb_u64(bucket.into());
    SessionId::from_bytes(oracle.finish32())
}
