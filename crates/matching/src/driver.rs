//! The driver of a run that several workers on each side share: agrees with the other side's driver
//! on the [`Manifest`], after both have read their tables and before any worker starts.
//!
//! ```text
//! steps 1 to 3 of a run (module `run`), with commitments to both tables before the key is tossed
//! each alone: a side with a folder writes the manifest
//! both: "written"                                <-->
//! ```
//!
//! A side that has a manifest need not meet the other driver again: if the other side has it too,
//! its workers wait already. Only a side that broke before it had written the manifest comes back.

use std::time::Duration;

use volery_channel::{Channel, Error as ChannelError, SessionId, Stats};
use volery_primitives::prg::Prg;

use crate::agree::Agreeing;
use crate::error::{Error, Result, misbehaved};
use crate::manifest::{Manifest, Own, Terms, announced};
use crate::progress::Progress;
use crate::run::{Matches, Outcome};
use crate::settings::Settings;
use crate::side::Side;
use crate::task::Task;
use crate::totals::workers;

/// Tells the peer that this side has the manifest.
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
    /// A digest of keys and payload, equal for equal tables.
    pub digest: String,
    /// Rows of the table.
    pub rows: u64,
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

/// Agrees with the other side's driver on a run for rows. `keep` puts the manifest into this side's
/// storage before the other side goes on; it is not called if both have the same manifest already.
///
/// # Errors
/// If the channel fails, the sides differ, the earlier manifest is of another table or other terms,
/// or `keep` fails.
pub fn agree(
    settings: &Settings,
    facts: &Facts,
    terms: (Terms, Option<u32>),
    earlier: Earlier<'_>,
    channel: &mut Channel,
    keep: &mut dyn FnMut(&Manifest) -> Result<()>,
) -> Result<Manifest> {
    agree_on(&Task::Rows(*settings), facts, terms, earlier, channel, keep)
}

/// [`agree`], whatever the run computes.
pub(crate) fn agree_on(
    task: &Task,
    facts: &Facts,
    (terms, shards): (Terms, Option<u32>),
    earlier: Earlier<'_>,
    channel: &mut Channel,
    keep: &mut dyn FnMut(&Manifest) -> Result<()>,
) -> Result<Manifest> {
    let mut rng = Prg::from_os().map_err(ChannelError::from)?;
    let mut opening = [0; 32];
    rng.fill_bytes(&mut opening);
    let noise = match task {
        Task::Rows(_) => None,
        Task::Totals(_) => {
            let mut seed = [0; 16];
            rng.fill_bytes(&mut seed);
            Some(seed)
        }
    };
    if let Some(manifest) = earlier.manifest {
        check(manifest, &terms)?;
        if manifest.own.digest != facts.digest {
            return Err(Error::Manifest(
                "of this run was made with another table".to_owned(),
            ));
        }
    }
    let largest = facts.sizes.iter().copied().max().unwrap_or(0);
    let agreeing = Agreeing {
        task,
        keys: &facts.keys,
        own: Own {
            digest: facts.digest.clone(),
            rows: facts.rows,
            dedup: false,
            opening,
            noise,
        },
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

/// Waits until both sides have the manifest.
pub(crate) fn written(channel: &mut Channel) -> Result<()> {
    let mut byte = [0];
    channel.send(&[WRITTEN])?;
    channel.recv(&mut byte)?;
    match byte {
        [WRITTEN] => Ok(()),
        _ => Err(misbehaved(
            "it sent an unexpected message after the manifest",
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
            work.put_manifest(&manifest)?;
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

    /// What workers did, all of whom have finished.
    ///
    /// # Errors
    /// Those of the folder.
    pub fn into_outcome(self, manifest: &Manifest, worked: &WorkedBy) -> Result<Outcome> {
        let settings = self.settings;
        let protocol = settings.name.protocol(settings.security);
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
