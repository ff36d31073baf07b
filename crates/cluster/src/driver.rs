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

use volery_channel::{Channel, Error as ChannelError, Hello, SessionId, Stats};
use volery_matching::steps::{
    Agreement, Folder, HandshakeResult, LocalManifest, Proposal, hex, own,
};
use volery_matching::totals::Noise;
use volery_matching::{Error, Outcome, PreparedTable, Progress, Result};
use volery_primitives::prg::Prg;
use volery_tables::Duplicates;

use crate::error::misbehaved;
use crate::folder;
use crate::manifest::{Manifest, Secrets, WorkerSettings, announced};
use crate::stats::ClusterStats;
use crate::task::Task;

/// A side asks for shards by its rows, whose keys it has not counted yet: the most rows of a key,
/// on average, for which that is accepted.
const ROWS_OF_A_KEY: u32 = 16;

/// Tells the peer that this side has the manifest, or the totals.
const WRITTEN: u8 = 0x57;

/// A side whose table is in a cluster: what its driver knows of it.
#[derive(Clone, Debug)]
pub struct ClusterTable {
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

impl ClusterTable {
    /// The digest of the table and of the settings, in hexadecimal.
    pub(crate) fn digest(&self, task: &Task) -> String {
        // The digest of the table has the policy's effect.
        let mut oracle = own(self.digest.as_bytes(), &task.hello(&self.keys), Duplicates::Keep);
        if let Some((line, _)) = &self.payload {
            // mutant(digest-columns): drop
            oracle.absorb(line.as_bytes());
        }
        hex(&oracle.finish32())
    }
}

/// The state of a run at a side that is started again.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResumeState<'a> {
    /// The manifest.
    pub manifest: Option<&'a Manifest>,
    /// Whether a shard was begun.
    pub begun: bool,
}

/// The secrets of a side: those of an earlier start, if there are some for this table and these
/// settings, or new ones; in a run for totals this side's noise is among them. They are to be kept
/// before the sides meet.
///
/// # Errors
/// If the operating system has no random numbers.
pub fn secrets(
    task: impl Into<Task>,
    facts: &ClusterTable,
    earlier: Option<&Secrets>,
) -> Result<Secrets> {
    let task = task.into();
    let digest = facts.digest(&task);
    if let Some(earlier) = earlier.filter(|earlier| earlier.digest == digest) {
        return Ok(earlier.clone());
    }
    let noise = match &task {
        Task::Rows(_) => None,
        Task::Totals(settings) => {
            let mut rng = Prg::from_os().map_err(ChannelError::from)?;
            Some(Noise::sample(settings, &mut rng))
        }
    };
    Secrets::draw(digest, noise)
}

/// Agrees with the other side's driver. `secrets` are those of [`secrets`](fn@secrets), kept before
/// the sides met. `keep` puts the manifest into this side's storage before the other side goes on;
/// it is not called if both have the same manifest already. In a run for totals `facts` has one
/// size and no payload.
///
/// # Errors
/// If the channel fails, the sides differ, the earlier manifest is of another table or other terms,
/// a total could leave 64 bits, or `keep` fails.
pub fn agree(
    task: impl Into<Task>,
    (facts, secrets): (&ClusterTable, &Secrets),
    (terms, shards): (WorkerSettings, Option<u32>),
    earlier: ResumeState<'_>,
    channel: &mut Channel,
    keep: &mut dyn FnMut(&Manifest) -> Result<()>,
) -> Result<Manifest> {
    let task = &task.into();
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
    let proposal = Proposal {
        role: task.role(),
        hello: hello(task.hello(&facts.keys), &terms, shards),
        own: LocalManifest { rows: facts.rows, dedup: false },
        lookup: task.is_lookup(),
        payload: facts.payload.clone(),
        names: 0,
        least: shards.unwrap_or_else(|| terms.shards(announced(largest))),
        earlier: earlier.manifest.map(|one| (one.id(), one.buckets())),
        begun: earlier.begun,
    };
    let commitment = secrets.commitment(facts.rows);
    let (met, terms) = meet(&proposal, (terms, shards), commitment, &mut rng, channel)?;
    if let (true, Some(manifest)) = (met.resumed, earlier.manifest) {
        written(channel)?;
        return Ok(manifest.clone());
    }
    let key = proposal.key(&met, &mut rng, channel)?;
    let sizes: Vec<_> = facts.sizes.iter().copied().map(announced).collect();
    let agreement = proposal.settle(&met, key, &sizes, channel)?;
    let manifest = settled(agreement, terms, shards)?;
    // So that no worker meets parameters that do not exist.
    manifest.check(task)?;
    keep(&manifest)?;
    written(channel)?;
    Ok(manifest)
}

/// The first message of a side of a run with workers.
fn hello(mut hello: Hello, terms: &WorkerSettings, shards: Option<u32>) -> Hello {
    let shards = shards.map_or("by size".to_owned(), |shards| shards.to_string());
    hello.fields.extend([
        ("--run", terms.run.clone()),
        ("--workers", terms.workers.to_string()),
        ("--shards", shards),
    ]);
    hello
}

/// Step 1, and the commitments of both sides to their tables, which the terms get.
fn meet(
    proposal: &Proposal,
    (mut terms, shards): (WorkerSettings, Option<u32>),
    ours: [u8; 32],
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<(HandshakeResult, WorkerSettings)> {
    let met = proposal.meet(rng, channel)?;
    // The handshake has compared the texts.
    // mutant(match-asked): false
    if shards.is_some_and(|shards| met.their_least != shards) {
        return Err(misbehaved("it asks for another number of shards than --shards"));
    }
    if !met.resumed {
        // Before the key is tossed. They are never opened between the sides: they are a record for
        // a dispute about which table took part.
        let mut theirs = [0; 32];
        channel.send(&ours)?;
        channel.recv(&mut theirs)?;
        terms.commitments = proposal.role.sides([ours, theirs]);
    }
    Ok((met, terms))
}

/// The manifest, if the peer did not ask for too many shards.
fn settled(agreement: Agreement, terms: WorkerSettings, shards: Option<u32>) -> Result<Manifest> {
    // Each shard is filled up, and a malicious receiver can test keys with what fills it up: many
    // shards of a small set would make room for many.
    let keys = agreement.sizes().iter().flatten().copied().max();
    let most = terms.shards(keys.unwrap_or(0)).saturating_mul(ROWS_OF_A_KEY);
    // mutant(match-shards): false
    if shards.is_none() && agreement.buckets() > most {
        return Err(misbehaved(
            "it asks for too many shards for these numbers of keys; if a table has many rows of each key, give --shards on both sides",
        ));
    }
    Ok(Manifest::new(agreement, terms))
}

/// Checks that a manifest is of a run with these terms.
pub(crate) fn check(manifest: &Manifest, terms: &WorkerSettings) -> Result<()> {
    let changed = |what| Err(Error::Manifest(format!("of this run was made with {what}")));
    match manifest.terms() {
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
    send_written(channel)?;
    recv_written(channel)
}

/// Tells the peer that this side has them.
pub(crate) fn send_written(channel: &mut Channel) -> Result<()> {
    Ok(channel.send(&[WRITTEN])?)
}

/// Waits until the peer has them.
pub(crate) fn recv_written(channel: &mut Channel) -> Result<()> {
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

fn kept(side: &PreparedTable) -> &Folder {
    side.kept().expect("a run of several workers has a folder")
}

/// Agrees with the other side's driver on a run of several workers, whose folder this side keeps,
/// after [`take_back`](crate::take_back).
///
/// # Errors
/// The errors of [`agree`]; if workers still have folders of their own.
///
/// # Panics
/// If the side keeps no folder.
pub fn agree_on_workers(
    side: &mut PreparedTable,
    (terms, shards): (WorkerSettings, Option<u32>),
    channel: &mut Channel,
    progress: &mut dyn Progress,
) -> Result<Manifest> {
    const PHASE: &str = "agreeing on settings and sizes";
    let mut rng = Prg::from_os().map_err(ChannelError::from)?;
    folder::check_taken_back(kept(side))?;
    let earlier = manifest_of(side, &terms)?;
    progress.begin(PHASE, 0);
    let secrets = match &earlier {
        Some(_) => kept(side).read_secrets(Secrets::from_json)?,
        None => None,
    };
    let secrets = match secrets {
        Some(secrets) => secrets,
        None => Secrets::draw(side.identity().to_owned(), None)?,
    };
    let mut proposal = side.proposal()?;
    proposal.hello = hello(proposal.hello, &terms, shards);
    proposal.least = shards.unwrap_or_else(|| terms.shards(announced(side.rows())));
    proposal.earlier = earlier.as_ref().map(|one| (one.id(), one.buckets()));
    let commitment = secrets.commitment(side.rows());
    let (met, terms) = meet(&proposal, (terms, shards), commitment, &mut rng, channel)?;
    if let (true, Some(manifest)) = (met.resumed, earlier) {
        written(channel)?;
        return Ok(manifest);
    }
    side.forget()?;
    let key = proposal.key(&met, &mut rng, channel)?;
    let sizes = side.divide(&key, met.buckets, progress)?;
    progress.begin(PHASE, 0);
    let sizes: Vec<_> = sizes.into_iter().map(announced).collect();
    let agreement = proposal.settle(&met, key, &sizes, channel)?;
    let manifest = settled(agreement, terms, shards)?;
    manifest.capacities()?;
    side.keep(&manifest, &manifest.to_json(), &secrets.to_json())?;
    written(channel)?;
    Ok(manifest)
}

/// The manifest of an earlier attempt of a side, if it is of these terms.
///
/// # Errors
/// If there is one of others; those of the folder.
pub fn manifest_of(side: &PreparedTable, terms: &WorkerSettings) -> Result<Option<Manifest>> {
    if !side.has_earlier() {
        return Ok(None);
    }
    let manifest = kept(side).read_record(Manifest::from_json)?;
    if let Some(manifest) = &manifest {
        check(manifest, terms)?;
    }
    Ok(manifest)
}

/// Gives each worker of the run a folder with its shards and a manifest, for workers that other
/// machines run; returns these folders. [`take_back`](crate::take_back) undoes it.
///
/// # Errors
/// Errors of the folder.
///
/// # Panics
/// If the side keeps no folder.
pub fn hand_out(side: &PreparedTable, manifest: &Manifest) -> Result<Vec<PathBuf>> {
    folder::hand_out(kept(side), manifest)
}

/// The outcome of a run whose workers have all finished.
///
/// # Errors
/// Errors of the folder.
///
/// # Panics
/// If the side keeps no folder.
pub fn into_outcome(
    side: PreparedTable,
    manifest: &Manifest,
    worked: &ClusterStats,
) -> Result<Outcome> {
    let protocol = side.settings().protocol();
    let attempts = kept(&side).most_attempts()?;
    let (matches, finish) = side.into_results(manifest)?;
    Ok(Outcome {
        session: SessionId::from_bytes(manifest.id()),
        protocol: protocol.expect("workers run a protocol that is named"),
        choice: None,
        parameters: manifest.parameters()?,
        buckets: manifest.buckets(),
        sizes: manifest.sizes().to_vec(),
        capacities: manifest.capacities()?,
        resumed: worked.resumed,
        attempts: attempts.max(1),
        longest: manifest.payload().map(|(_, longest)| longest),
        setup: worked.setup,
        online: worked.online,
        setup_traffic: Stats::default(),
        traffic: worked.traffic,
        matches,
        finish,
    })
}
