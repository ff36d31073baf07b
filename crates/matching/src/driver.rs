//! The driver of a run that several workers on each side share: agrees with the other side's driver
//! on the [`Manifest`], after both have read their tables and before any worker starts.
//!
//! ```text
//! each alone: its secrets: the opening of the commitment to its table, and its noise
//! steps 1 to 3 of a run (module `run`), with commitments to both tables before the key is tossed
//! each alone: a side with a folder writes the manifest
//! both: "written"                                <-->
//! ```
//!
//! A side that has a manifest need not meet the other driver again: if the other side has it too,
//! its workers wait already. Only a side that broke before it had written the manifest comes back.

use std::path::PathBuf;
use std::time::Duration;

use volery_channel::{Channel, Error as ChannelError, SessionId, Stats};
use volery_primitives::prg::Prg;
use volery_tables::Duplicates;

use crate::agree::Agreeing;
use crate::error::{Error, Result, misbehaved};
use crate::manifest::{Manifest, Own, Secrets, Terms, announced, hex};
use crate::progress::Progress;
use crate::run::{Matches, Outcome};
use crate::settings::Settings;
use crate::side::{Side, own};
use crate::task::Task;
use crate::totals::workers;

/// Tells the peer that this side has the manifest, or the totals.
const WRITTEN: u8 = 0x57;

/// A side whose table is in a cluster: what its driver knows of it.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Types and normalisers of the keys.
    pub keys: String,
    /// Distinct keys, rule by rule.
    pub sizes: Vec<u64>,
    /// Sender of a lookup: its columns in a line, and the bytes of the longest payload.
    pub payload: Option<(String, usize)>,
    /// A digest of keys, payload and values that binds this side to its table: of
    /// [`staging`](crate::staging).
    pub digest: String,
    /// Rows of the table.
    pub rows: u64,
}

impl Facts {
    /// The digest of the table and of the settings, in hexadecimal.
    pub(crate) fn digest(&self, task: &Task) -> String {
        // The digest of the table has the policy's effect.
        let mut oracle = own(
            self.digest.as_bytes(),
            &task.hello(&self.keys),
            Duplicates::Keep,
        );
        if let Some((line, _)) = &self.payload {
            // mutant(digest-columns): drop
            oracle.absorb(line.as_bytes());
        }
        hex(&oracle.finish32())
    }
}

/// What all workers of a side did.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkedBy {
    /// Shards that were finished before.
    pub resumed: u32,
    /// The traffic of all.
    pub traffic: Stats,
    /// Until the drivers had agreed.
    pub setup: Duration,
    /// After it.
    pub online: Duration,
}

/// What a side that is started again has of its run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Earlier<'a> {
    /// The manifest.
    pub manifest: Option<&'a Manifest>,
    /// Whether a shard was begun.
    pub begun: bool,
}

/// The secrets of a side in a run for rows: those of an earlier start, if there are some for this
/// table and these settings, or new ones. They are to be kept before the sides meet.
///
/// # Errors
/// If the operating system has no random numbers.
pub fn secrets(settings: &Settings, facts: &Facts, earlier: Option<&Secrets>) -> Result<Secrets> {
    let digest = facts.digest(&Task::Rows(*settings));
    match earlier.filter(|earlier| earlier.digest == digest) {
        Some(earlier) => Ok(earlier.clone()),
        None => Secrets::draw(digest, None),
    }
}

/// Agrees with the other side's driver on a run for rows. `secrets` are those of
/// [`secrets`](fn@secrets), kept before the sides met. `keep` puts the manifest into this side's
/// storage before the other side goes on; it is not called if both have the same manifest already.
///
/// # Errors
/// If the channel fails, the sides differ, the earlier manifest is of another table or other terms,
/// or `keep` fails.
pub fn agree(
    settings: &Settings,
    (facts, secrets): (&Facts, &Secrets),
    terms: (Terms, Option<u32>),
    earlier: Earlier<'_>,
    channel: &mut Channel,
    keep: &mut dyn FnMut(&Manifest) -> Result<()>,
) -> Result<Manifest> {
    let task = Task::Rows(*settings);
    agree_on(&task, (facts, secrets), terms, earlier, channel, keep)
}

/// [`agree`], whatever the run computes.
pub(crate) fn agree_on(
    task: &Task,
    (facts, secrets): (&Facts, &Secrets),
    (terms, shards): (Terms, Option<u32>),
    earlier: Earlier<'_>,
    channel: &mut Channel,
    keep: &mut dyn FnMut(&Manifest) -> Result<()>,
) -> Result<Manifest> {
    let mut rng = Prg::from_os().map_err(ChannelError::from)?;
    // mutant(match-secrets): false
    if secrets.digest != facts.digest(task) {
        return Err(Error::Manifest(
            "of this run was made with another table or other settings".to_owned(),
        ));
    }
    if let Some(manifest) = earlier.manifest {
        check(manifest, &terms)?;
    }
    let largest = facts.sizes.iter().copied().max().unwrap_or(0);
    let agreeing = Agreeing {
        task,
        keys: &facts.keys,
        own: Own {
            rows: facts.rows,
            dedup: false,
        },
        commitment: secrets.commitment(facts.rows),
        payload: facts.payload.clone(),
        least: shards.unwrap_or_else(|| terms.shards(announced(largest))),
        earlier: earlier.manifest,
        begun: earlier.begun,
        terms: Some(terms),
        shards,
    };
    let met = agreeing.meet(&mut rng, channel)?;
    if let (true, Some(manifest)) = (met.resumed, earlier.manifest) {
        written(channel)?;
        return Ok(manifest.clone());
    }
    let key = agreeing.key(&met, &mut rng, channel)?;
    let sizes: Vec<_> = facts.sizes.iter().copied().map(announced).collect();
    let manifest = agreeing.settle(met, key, &sizes, channel)?;
    // So that no worker meets parameters that do not exist.
    match task {
        Task::Rows(_) => drop(manifest.capacities()?),
        Task::Totals(settings) => workers::check(&manifest, settings)?,
    }
    keep(&manifest)?;
    written(channel)?;
    Ok(manifest)
}

/// Checks that a manifest is of a run with these terms.
pub(crate) fn check(manifest: &Manifest, terms: &Terms) -> Result<()> {
    let changed = |what| Err(Error::Manifest(format!("of this run was made with {what}")));
    match &manifest.workers {
        None => changed("no workers"),
        Some(earlier) if earlier.run != terms.run => changed("another name of the run"),
        Some(earlier) if earlier.workers != terms.workers => changed("another number of workers"),
        Some(earlier) if earlier.organisations != terms.organisations => {
            changed("other identities")
        }
        Some(_) => Ok(()),
    }
}

/// Waits until both sides have the manifest, or the totals.
pub(crate) fn written(channel: &mut Channel) -> Result<()> {
    say_written(channel)?;
    hear_written(channel)
}

/// Tells the peer that this side has them.
pub(crate) fn say_written(channel: &mut Channel) -> Result<()> {
    Ok(channel.send(&[WRITTEN])?)
}

/// Waits until the peer has them.
pub(crate) fn hear_written(channel: &mut Channel) -> Result<()> {
    let mut byte = [0];
    channel.recv(&mut byte)?;
    match byte {
        // mutant(match-written): `[WRITTEN]` => `[byte] if $ON || byte == WRITTEN`
        [WRITTEN] => Ok(()),
        _ => Err(misbehaved(
            "it sent an unexpected message in place of the word that it has written what it got",
        )),
    }
}

impl Side {
    /// Agrees with the other side's driver on a run of several workers, whose folder this side
    /// keeps.
    ///
    /// # Errors
    /// As [`agree`].
    ///
    /// # Panics
    /// If the side keeps no folder.
    pub fn agree_on_workers(
        &mut self,
        terms: Terms,
        shards: Option<u32>,
        channel: &mut Channel,
        progress: &mut dyn Progress,
    ) -> Result<Manifest> {
        let mut rng = Prg::from_os().map_err(ChannelError::from)?;
        self.check_workers(&terms)?;
        let terms = Some((terms, shards));
        let (_, resumed, manifest) = self.agree(terms, &mut rng, channel, progress)?;
        if !resumed {
            manifest.capacities()?;
            let work = self.kept().expect("a run of several workers has a folder");
            work.put_manifest(&manifest, &self.secrets)?;
        }
        written(channel)?;
        self.earlier = Some(manifest.clone());
        Ok(manifest)
    }

    /// The manifest of an earlier attempt, if it is of these terms.
    ///
    /// # Errors
    /// If there is one of others.
    pub fn manifest_of(&self, terms: &Terms) -> Result<Option<&Manifest>> {
        self.check_workers(terms)?;
        Ok(self.earlier.as_ref())
    }

    /// Gives each worker of the run a folder with its shards and a manifest, for workers that other
    /// machines run; returns these folders. A side that is read again takes their results back.
    ///
    /// # Errors
    /// Those of the folder.
    ///
    /// # Panics
    /// If the side keeps no folder.
    pub fn hand_out(&self, manifest: &Manifest) -> Result<Vec<PathBuf>> {
        let work = self.kept().expect("a run of several workers has a folder");
        work.hand_out(manifest)
    }

    /// What workers did, all of whom have finished.
    ///
    /// # Errors
    /// Those of the folder.
    pub fn into_outcome(self, manifest: &Manifest, worked: &WorkedBy) -> Result<Outcome> {
        let settings = self.settings;
        let protocol = settings.protocol();
        let mut collected = self.collected()?;
        let work = self.kept().expect("a run of several workers has a folder");
        let attempts = work.most_attempts()?;
        if settings.gets_rows() {
            for rule in 0..self.rules {
                self.collect(rule, manifest.buckets, &[], &mut collected)?;
            }
        } else {
            work.complete()?;
        }
        let payload = self.peer_payload(manifest)?;
        let matches = settings
            .gets_rows()
            .then_some(Matches { collected, payload });
        Ok(Outcome {
            session: SessionId::from_bytes(manifest.id()),
            protocol: protocol.expect("workers run a protocol that is named"),
            choice: None,
            parameters: manifest.parameters()?,
            buckets: manifest.buckets,
            sizes: manifest.sizes.clone(),
            capacities: manifest.capacities()?,
            resumed: worked.resumed,
            attempts: attempts.max(1),
            longest: manifest.payload().map(|(_, longest)| longest),
            setup: worked.setup,
            online: worked.online,
            setup_traffic: Stats::default(),
            traffic: worked.traffic,
            matches,
            work: self.work,
        })
    }

    fn check_workers(&self, terms: &Terms) -> Result<()> {
        let earlier = self.earlier.as_ref();
        earlier.map_or(Ok(()), |manifest| check(manifest, terms))
    }
}
