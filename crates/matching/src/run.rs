//! A run, from the opened table to the matches.
//!
//! ```text
//! each alone: reads its table: an item for each row and rule            PreparedTable::read
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
use std::time::Duration;

use volery_channel::{Channel, Error as ChannelError, SessionId, Stats};
use volery_primitives::prg::Prg;
pub use volery_psi::choice::Choice;
use volery_psi::matching::Protocol;

use volery_os::time::Instant;

use crate::error::Result;
use crate::folder::{Finish, Folder};
use crate::matches::{Matches, append};
use crate::parameters::Parameters;
use crate::parts::{Journal as _, Parts};
use crate::progress::{Inner, Progress};
use crate::side::PreparedTable;

/// Least nanoseconds for each item, which bounds the time spent on measuring the link.
const EACH: u64 = 100;

/// The result and the cost of a run.
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
    /// The end of the run, for when the output is written.
    pub finish: Finish,
}

impl PreparedTable {
    /// Steps 1 to 7, over a new connection.
    pub fn run(mut self, channel: &mut Channel, progress: &mut dyn Progress) -> Result<Outcome> {
        let start = Instant::now();
        let mut rng = Prg::from_os().map_err(ChannelError::from)?;
        if self.earlier.as_ref().is_some_and(|one| one.is_divided) {
            return Err(self.other_run("it has the progress of a run with workers"));
        }
        let (session, resumed, agreement) = self.agree(&mut rng, channel, progress)?;
        let longest = agreement.payload().map(|(_, longest)| longest);
        let payload = self.peer_payload(&agreement)?;
        let buckets = agreement.buckets();
        let capacities = agreement.capacities()?;
        let (protocol, choice) = self.choose(&capacities, channel)?;
        if let Some(choice) = &choice {
            progress.note(&choice.why());
        }
        if let Some(work) = self.kept().filter(|_| !resumed) {
            let secrets = serde_json::json!({ "digest": self.identity }).to_string();
            work.put_record(&agreement.to_json(&()), &secrets)?;
        }
        let parts = Parts {
            settings: &self.settings,
            protocol,
            session,
            capacities: &capacities,
            longest: longest.unwrap_or(0),
            executions: agreement.executions(),
        };
        let all: Vec<_> = self.parts(buckets).collect();
        let both_keep = self.compare_kept(channel)?;
        let done = match self.kept().filter(|_| both_keep) {
            Some(work) => parts.compare(work, &all, channel)?,
            None => vec![false; all.len()],
        };
        let (setup, setup_traffic) = (start.elapsed(), channel.stats());

        let several = all.len() > 1;
        if several {
            progress.begin("matching buckets", all.len() as u64);
        }
        let mut collected = self.collected()?;
        let mut parameters = None;
        let mut setups = Vec::new();
        let mut finished = 0;
        for rule in 0..self.rules {
            let earlier = collected.set.clone();
            // mutant(whole-enough): insert `if $ON && collected.total() == self.rows { break; }`
            let mut in_memory = Vec::new();
            for bucket in 0..buckets {
                let part = (rule, bucket);
                if !done[rule * buckets as usize + bucket as usize] {
                    if let Some(work) = self.kept() {
                        work.begin(part, parts.session_of(part))?;
                    }
                    let keys = self.load(part)?;
                    let watch = &mut Inner { progress: &mut *progress, shown: !several };
                    let mut found = Vec::new();
                    let ran = parts.run(
                        (part, rng.fork("part")),
                        &keys,
                        |row| !earlier.contains(row),
                        watch,
                        channel,
                        &mut |item, payload| {
                            for row in keys.rows_of(item) {
                                append(&mut found, row, payload);
                            }
                        },
                    )?;
                    parameters = Some(ran.parameters);
                    setups.push(ran.setup);
                    match &self.work {
                        Some(work) if self.settings.gets_rows() => {
                            // mutant(whole-nothing-found): `(part)` => `(part) && !($ON &&
                            //     found.is_empty())`
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
        if let Some(work) = self.kept().filter(|_| both_keep) {
            parts.conclude(|| work.complete(), channel)?;
        }
        let attempts = self.work.as_ref().map_or(Ok(1), Folder::most_attempts)?;
        let matches = self.settings.gets_rows().then_some(Matches { collected, payload });
        let traffic = channel.stats();
        let online = setups.into_iter().fold(traffic - setup_traffic, Sub::sub);
        Ok(Outcome {
            session,
            protocol,
            choice,
            parameters,
            buckets,
            sizes: agreement.sizes().to_vec(),
            capacities,
            resumed: done.iter().filter(|done| **done).count() as u32,
            attempts,
            longest,
            setup,
            online: start.elapsed() - setup,
            setup_traffic: traffic - online,
            traffic,
            matches,
            finish: Finish(self.work),
        })
    }

    /// Step 4.
    fn choose(
        &self,
        capacities: &[[u64; 2]],
        channel: &mut Channel,
    ) -> Result<(Protocol, Option<Choice>)> {
        let settings = &self.settings;
        let largest = |side: usize| capacities.iter().map(|sizes| sizes[side]).max().unwrap_or(0);
        let task = settings.task([largest(0), largest(1)]);
        let how = (settings.link, settings.role, EACH);
        settings.name.decide(&task, how, channel)
    }

    /// Before step 5: whether both keep their progress.
    fn compare_kept(&self, channel: &mut Channel) -> Result<bool> {
        let kept = [u8::from(self.kept().is_some())];
        let mut their_kept = [0];
        channel.send(&kept)?;
        channel.recv(&mut their_kept)?;
        Ok(kept == [1] && their_kept == [1])
    }
}

impl Outcome {
    /// The end of the run, for when the output is written, and the rest.
    #[must_use]
    pub fn split(mut self) -> (Finish, Self) {
        (std::mem::take(&mut self.finish), self)
    }
}
