//! Totals of a run that several workers on each side share.
//!
//! ```text
//! drivers: settings, key of the shards, sizes                       (module `driver`)
//!          each alone: an item for each key, its value and group, divided into shards
//! workers: sessions in which shards were finished at both sides   <-->
//!          for each other shard: shares of its totals, which stay here    (circuit-PSI)
//! drivers: handshake: manifest, hash of the sessions of all shards  <-->
//!          each alone: adds up its shares of all shards, and its noise
//!          comparison with the minimum, and opening of the sums   <--> (circuit::opening)
//!          both have the totals                                   <-->
//! ```
//!
//! A key is in one shard, so that a sum over the common keys is that of the shards' sums. A shard
//! opens nothing and compares nothing: what is learnt is that of a run of one process.
//!
//! **Attempts.** Shares of two executions do not fit together: their sum is random. Shares are kept
//! with the session of their execution; workers repeat a shard unless both sides have it of one
//! session, and a repeated shard replaces shares as a whole.
//!
//! **Noise** is drawn from a seed in this side's manifest: sums that are opened again, after a
//! connection broke, have the same noise, and say nothing new.

use std::io;
use std::path::Path;
use volery_channel::{Channel, Error as ChannelError, Hello, Role, SessionId, Stats, handshake};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use volery_psi::circuit;
use volery_tables::Duplicates;
use web_time::Instant;
use zeroize::Zeroizing;

use super::compute::{Noise, Opener, Shares, Total, open, shares};
use super::plan::Protocol;
use super::run::{Outcome, Parameters};
use super::settings::Settings;
use super::side::{Side, Values};
use crate::driver::{Earlier, Facts, WorkedBy, agree_on, check as check_terms, written};
use crate::error::{Error, Result};
use crate::keys::Keys;
use crate::manifest::{Manifest, Terms, hex};
use crate::parts::{Journal, SESSION, session_of};
use crate::progress::Progress;
use crate::side::own;
use crate::task::Task;
use crate::work::{Part, Work};
use crate::worker::{MANIFEST, Worked};

/// The name under which the handshake compares which executions the shares are of.
pub const SHARES: &str = "the executions of the shards";

/// Items of sender and receiver of circuit-PSI in each shard.
fn items(manifest: &Manifest, settings: &Settings) -> Result<[u64; 2]> {
    let [sender, receiver] = manifest.capacities()?[0];
    let items = sender.max(receiver);
    if items > circuit::MAX_ITEMS {
        let most = circuit::MAX_ITEMS;
        return Err(volery_psi::Error::TooMany { items, most }.into());
    }
    Ok(match settings.in_bins() {
        Role::Receiver => [sender, receiver],
        Role::Sender => [receiver, sender],
    })
}

/// Refuses a run of which a total could leave 64 bits, or a shard has too many keys.
pub(crate) fn check(manifest: &Manifest, settings: &Settings) -> Result<()> {
    settings.check_range(manifest.sizes[0])?;
    items(manifest, settings).map(drop)
}

/// A worker's shards that are not finished in one session on both sides.
pub(crate) fn work(
    manifest: &Manifest,
    settings: &Settings,
    (journal, load): (&dyn Journal, &dyn Fn(Part) -> Result<Keys>),
    shards: &[Part],
    (connection, mut rng): (SessionId, Prg),
    channel: &mut Channel,
    progress: &mut dyn Progress,
) -> Result<Worked> {
    let announced = items(manifest, settings)?;
    let [sender, receiver] = manifest.capacities()?[0];
    let size = match settings.role {
        Role::Sender => sender,
        Role::Receiver => receiver,
    };
    let mut ours = Vec::new();
    for &part in shards {
        ours.push(journal.session_of_shares(part)?.unwrap_or_default());
    }
    channel.send(ours.as_flattened())?;
    let mut theirs = vec![[0; SESSION]; ours.len()];
    channel.recv(theirs.as_flattened_mut())?;
    let mut worked = Worked {
        shards: shards.len() as u64,
        ..Worked::default()
    };
    progress.begin("matching shards", worked.shards);
    for (number, &part) in shards.iter().enumerate() {
        if ours[number] != [0; SESSION] && ours[number] == theirs[number] {
            worked.resumed += 1;
        } else {
            let session = session_of(connection, part);
            journal.begin(part, session)?;
            let keys = load(part)?;
            let values = Values::of_shard(&keys, settings, size, &mut rng)?;
            drop(keys);
            let own = (session, rng.fork("shard"));
            let parts = manifest.executions();
            let (_, shares) = shares(settings, parts, announced, &values, own, channel, &mut ())?;
            let mut found = Zeroizing::new(session.as_bytes().to_vec());
            found.extend(shares.words().flat_map(u64::to_le_bytes));
            journal.put_shares(part, session, &found)?;
        }
        progress.done(number as u64 + 1);
    }
    Ok(worked)
}

/// A side whose keys several workers share, and the folder of its run.
pub struct Driver {
    side: Side,
    work: Work,
    earlier: Option<Manifest>,
}

impl Driver {
    /// A side that has read its table, and the folder in which its run is or will be.
    ///
    /// # Errors
    /// Those of the folder; if it has the run of another table or other settings.
    pub fn new(side: Side, folder: &Path) -> Result<Self> {
        let work = Work::kept(folder)?;
        let earlier = work.manifest()?;
        match &earlier {
            None => work.clear()?,
            Some(earlier) if earlier.own.digest == digest(&side) => {}
            Some(_) => {
                return Err(Error::OtherRun {
                    path: work.path().to_owned(),
                    what: "it has the progress of a run with another table or other settings",
                });
            }
        }
        Ok(Self {
            side,
            work,
            earlier,
        })
    }

    /// The side.
    #[must_use]
    pub fn side(&self) -> &Side {
        &self.side
    }

    /// The manifest of an earlier attempt, if it is of these terms.
    ///
    /// # Errors
    /// If there is one of others.
    pub fn manifest_of(&self, terms: &Terms) -> Result<Option<&Manifest>> {
        if let Some(earlier) = &self.earlier {
            check_terms(earlier, terms)?;
        }
        Ok(self.earlier.as_ref())
    }

    /// Agrees with the other side's driver, and divides the keys into shards.
    ///
    /// # Errors
    /// As [`driver::agree`](crate::driver::agree); if a total could leave 64 bits.
    pub fn agree(
        &mut self,
        terms: Terms,
        shards: Option<u32>,
        channel: &mut Channel,
        progress: &mut dyn Progress,
    ) -> Result<Manifest> {
        self.manifest_of(&terms)?;
        progress.begin("agreeing on settings and sizes", 0);
        let (side, work) = (&self.side, &self.work);
        let manifest = self.earlier.take();
        let earlier = Earlier {
            manifest: manifest.as_ref(),
            begun: manifest.is_some() && work.most_attempts()? > 0,
        };
        let facts = Facts {
            keys: side.summary.key_description.clone(),
            sizes: vec![side.summary.keys],
            payload: None,
            digest: digest(side),
            rows: side.summary.rows,
        };
        let keep = &mut |manifest: &Manifest| {
            if earlier.manifest.is_some() {
                // The peer had not written its manifest: both begin anew.
                work.forget()?;
                work.clear()?;
            }
            let mut spool = work.spool(0, true)?;
            side.values.write(&mut spool)?;
            spool.finish()?;
            work.divide(0, true, (&manifest.key, manifest.buckets), progress)?;
            work.put_manifest(manifest)
        };
        let (settings, terms) = (&side.settings, (terms, shards));
        let manifest = agree(settings, &facts, terms, earlier, channel, keep)?;
        self.earlier = Some(manifest.clone());
        Ok(manifest)
    }

    /// The totals that an earlier attempt has opened, and perhaps the peer has not.
    ///
    /// # Errors
    /// Those of the folder.
    pub fn opened(&self) -> Result<Option<Vec<Total>>> {
        let Some(bytes) = self.work.totals()? else {
            return Ok(None);
        };
        let read = serde_json::from_slice(&bytes).map_err(io::Error::from);
        read.map(Some).map_err(Error::work(self.work.path()))
    }

    /// Opens the totals with the other side's driver, when all workers have finished.
    ///
    /// # Errors
    /// If the channel fails, or the shares of the two sides are of different executions.
    pub fn open(
        &self,
        manifest: &Manifest,
        channel: &mut Channel,
        progress: &mut dyn Progress,
    ) -> Result<Vec<Total>> {
        let mut all = Vec::new();
        for shard in 0..manifest.buckets {
            let found = self.work.found((0, shard))?.map(Zeroizing::new);
            all.push(found.ok_or_else(|| missing(self.work.path()))?);
        }
        let keep = &mut |totals: &[Total]| {
            let text = serde_json::to_vec(totals).expect("numbers serialise");
            self.work.put_totals(&Zeroizing::new(text))
        };
        let found = (self.work.path(), &all[..]);
        open_shards(
            &self.side.settings,
            manifest,
            found,
            channel,
            keep,
            progress,
        )
    }

    /// The outcome of a run whose workers did this. `traffic` is that of the opening.
    ///
    /// # Errors
    /// If the manifest has no parameters.
    pub fn outcome(
        &self,
        manifest: &Manifest,
        worked: &WorkedBy,
        (totals, traffic, start): (Vec<Total>, Stats, Instant),
    ) -> Result<Outcome> {
        outcome(
            &self.side.settings,
            manifest,
            worked,
            (totals, traffic, start),
        )
    }

    /// Removes what the run left, when its result is written; a mark says that it is complete.
    ///
    /// # Errors
    /// Those of the folder.
    pub fn finish(self) -> Result<()> {
        self.work.complete()?;
        self.work.clear()
    }
}

/// Agrees with the other side's driver on a run for totals, as
/// [`driver::agree`](crate::driver::agree) does on one for rows. `facts` has one size and no
/// payload.
///
/// # Errors
/// As [`driver::agree`](crate::driver::agree); if a total could leave 64 bits.
pub fn agree(
    settings: &Settings,
    facts: &Facts,
    terms: (Terms, Option<u32>),
    earlier: Earlier<'_>,
    channel: &mut Channel,
    keep: &mut dyn FnMut(&Manifest) -> Result<()>,
) -> Result<Manifest> {
    let task = Task::Totals(Box::new(settings.clone()));
    agree_on(&task, facts, terms, earlier, channel, keep)
}

fn missing(path: &Path) -> Error {
    Error::OtherRun {
        path: path.to_owned(),
        what: "the result of a part is missing",
    }
}

/// Opens the totals with the other side's driver, when all workers have finished. `found` has a
/// place for messages, and what the workers kept of each shard, in the order of the shards. `keep`
/// puts the totals into this side's storage before the other side goes on.
///
/// # Errors
/// If a shard is missing or cut short, the channel or `keep` fails, or the shares of the two sides
/// are of different executions.
pub fn open_shards(
    settings: &Settings,
    manifest: &Manifest,
    (place, found): (&Path, &[Zeroizing<Vec<u8>>]),
    channel: &mut Channel,
    keep: &mut dyn FnMut(&[Total]) -> Result<()>,
    progress: &mut dyn Progress,
) -> Result<Vec<Total>> {
    progress.begin("opening the result", 0);
    let seed = manifest.own.noise.map(Zeroizing::new).ok_or_else(|| {
        Error::Manifest("has no seed of noise: this side did not make it".to_owned())
    })?;
    let noise = Noise::sample(settings, &mut Prg::new(Block::from_bytes(*seed)));
    if found.len() != manifest.buckets as usize {
        return Err(missing(place));
    }
    let mut shares = Shares::zero(settings);
    let mut sessions = RandomOracle::new("volery matching: sessions of all shards");
    for found in found {
        let (session, words) = found
            .split_first_chunk::<SESSION>()
            .ok_or_else(|| missing(place))?;
        sessions.absorb(session);
        if !shares.add(words) {
            return Err(Error::work(place)(io::ErrorKind::UnexpectedEof.into()));
        }
    }
    let sessions = hex(&sessions.finish32()[..16]);
    let mut rng = Prg::from_os().map_err(ChannelError::from)?;
    let mut nonce = [0; 32];
    rng.fill_bytes(&mut nonce);
    let hello = Hello {
        protocol: "opening of totals",
        role: settings.role.name(),
        fields: vec![(MANIFEST, manifest.id_text()), (SHARES, sessions)],
    };
    let session = handshake(channel, &hello, nonce)?;
    let comparisons = match settings.minimum {
        0 => 0,
        _ => settings.totals(),
    };
    let own = (session, rng.fork("opening"));
    let form = settings.form();
    let mut opener: Box<dyn Opener> = if settings.role == settings.in_bins() {
        use circuit::opening::Receiver;
        Box::new(Receiver::setup(comparisons, form, own, channel)?)
    } else {
        use circuit::opening::Sender;
        Box::new(Sender::setup(comparisons, form, own, channel)?)
    };
    let totals = open(&mut *opener, settings, shares, &noise, channel)?;
    keep(&totals)?;
    written(channel)?;
    Ok(totals)
}

/// The outcome of a run whose workers did this. `traffic` is that of the opening, which began at
/// `start`.
///
/// # Errors
/// If the manifest has no parameters.
pub fn outcome(
    settings: &Settings,
    manifest: &Manifest,
    worked: &WorkedBy,
    (totals, traffic, start): (Vec<Total>, Stats, Instant),
) -> Result<Outcome> {
    let [sender, receiver] = items(manifest, settings)?;
    let parts = manifest.executions();
    let circuit = circuit::Settings {
        parts,
        ..settings.circuit()
    };
    let parameters = circuit::Parameters::new(circuit, sender, receiver);
    Ok(Outcome {
        session: SessionId::from_bytes(manifest.id()),
        protocol: Protocol::Circuit(settings.form()),
        choice: None,
        parameters: Parameters::Circuit(parameters),
        sizes: manifest.sizes[0],
        setup: worked.setup,
        online: worked.online + start.elapsed(),
        setup_traffic: Stats::default(),
        traffic: Stats {
            bytes_sent: worked.traffic.bytes_sent + traffic.bytes_sent,
            bytes_received: worked.traffic.bytes_received + traffic.bytes_received,
            messages_sent: worked.traffic.messages_sent + traffic.messages_sent,
            messages_received: worked.traffic.messages_received + traffic.messages_received,
            ..Stats::default()
        },
        totals,
    })
}

/// What this side's run depends on, in hexadecimal.
fn digest(side: &Side) -> String {
    let hello = side.settings.hello(&side.summary.key_description);
    // The digest has the policy's effect: each key stands once.
    let mut oracle = own(&side.summary.digest, &hello, Duplicates::Keep);
    oracle
        .absorb_u64(side.summary.keys)
        .absorb_u64(side.summary.duplicates);
    hex(&oracle.finish32())
}
