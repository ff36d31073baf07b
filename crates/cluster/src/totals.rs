//! Totals of a run that several workers on each side share.
//!
//! ```text
//! drivers: each alone: its noise, which it keeps
//!          settings, key of the shards, sizes                     <--> (module `driver`)
//!          each alone: an item for each key, its value and group, divided into shards
//! workers: sessions in which shards were finished at both sides   <-->
//!          for each other shard: shares of its totals, which stay here    (circuit-PSI)
//! drivers: handshake: manifest, hash of the sessions of all shards  <-->
//!          each alone: adds up its shares of all shards, and its noise
//!          comparison with the minimum, and opening of the sums   <--> (circuit::opening)
//!          each alone: keeps the totals
//!          both have the totals; a side that gets none speaks last  <-->
//! ```
//!
//! A key is in one shard, so that a sum over the common keys is that of the shards' sums. A shard
//! opens nothing and compares nothing: what is learnt is that of a run of one process.
//!
//! **Attempts.** Shares of two executions do not fit together: their sum is random. Shares are kept
//! with the session of their execution; workers repeat a shard unless both sides have it of one
//! session, and a repeated shard replaces shares as a whole.
//!
//! **Noise.** A side draws and keeps its noise before it meets the other side's driver
//! ([`Secrets`]). The time of a sample depends on its value, and no message of the run waits for
//! one; sums that are opened again, after a connection broke, have the same noise, and say nothing
//! new. Workers do not get it.

use std::io;
use std::path::{Path, PathBuf};

use volery_channel::{Channel, Error as ChannelError, Hello, Role, SessionId, Stats, handshake};
use volery_matching::steps::{Folder, SESSION, hex};
use volery_matching::totals::{Outcome, Parameters, PreparedTable, Settings, Shares, Total, open};
use volery_matching::{Error, Progress, Result};
use volery_os::time::Instant;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use volery_psi::circuit::opening::Opening;
use zeroize::Zeroizing;

use crate::driver::{
    ClusterTable, ResumeState, agree, check as check_terms, recv_written, send_written, written,
};
use crate::folder::{self, has_note, put_note, take_back};
use crate::manifest::{MANIFEST, Manifest, Secrets, WorkerSettings};
use crate::stats::ClusterStats;

/// The name under which the handshake compares which executions the shares are of.
pub const SHARES: &str = "the executions of the shards";

/// The file of totals that were opened.
const TOTALS: &str = "totals.json";

/// The note that the other side has its totals, too.
const TOLD: &str = "totals.told";

/// The facts that a driver puts into its side's storage while it opens totals.
#[derive(Clone, Copy, Debug)]
pub enum Keep<'t> {
    /// The totals, before the other side goes on.
    Totals(&'t [Total]),
    /// That the other side has its totals, too, and does not come back for them.
    Told,
}

/// Totals that an earlier start has opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedTotals {
    /// The totals.
    pub totals: Vec<Total>,
    /// Whether the other side has them, too: [`Keep::Told`].
    pub told: bool,
}

/// A side whose keys several workers share, and the folder of its run.
pub struct Driver {
    side: PreparedTable,
    work: Folder,
    secrets: Secrets,
    earlier: Option<Manifest>,
}

impl Driver {
    /// A side that has read its table, and the folder in which its run is or will be. The folder
    /// has this side's noise from here on.
    ///
    /// # Errors
    /// Errors of the folder; if it has the run of another table or other settings.
    pub fn new(side: PreparedTable, folder: &Path) -> Result<Self> {
        take_back(folder)?;
        let work = Folder::kept(folder)?;
        let earlier = work.read_record(Manifest::from_json)?;
        let kept = work.read_secrets(Secrets::of_folder)?.flatten();
        let digest = facts(&side).digest(&side.settings().into());
        // mutant(totals-redrawn): `kept.digest == digest` => `!$ON && ($ON[totals-other-noise] ||
        //     $0)`
        // mutant(totals-other-noise): in totals-redrawn
        let secrets = match kept.filter(|kept| kept.digest == digest) {
            Some(kept) => kept,
            None if earlier.is_none() => Secrets::draw(digest, Some(side.noise().clone()))?,
            None => {
                return Err(Error::OtherRun {
                    path: work.path().to_owned(),
                    what: "it has the progress of a run with another table or other settings",
                });
            }
        };
        if earlier.is_none() {
            work.clear()?;
            work.put_secrets(&secrets.to_json())?;
        }
        Ok(Self { side, work, secrets, earlier })
    }

    /// The side.
    pub fn side(&self) -> &PreparedTable {
        &self.side
    }

    /// The manifest of an earlier attempt, if it is of these terms.
    ///
    /// # Errors
    /// If there is one of others.
    pub fn manifest_of(&self, terms: &WorkerSettings) -> Result<Option<Manifest>> {
        if let Some(earlier) = &self.earlier {
            check_terms(earlier, terms)?;
        }
        Ok(self.earlier.clone())
    }

    /// Agrees with the other side's driver, and divides the keys into shards.
    ///
    /// # Errors
    /// The errors of [`driver::agree`](crate::driver::agree); if a total could leave 64 bits.
    pub fn agree(
        &mut self,
        terms: WorkerSettings,
        shards: Option<u32>,
        channel: &mut Channel,
        progress: &mut dyn Progress,
    ) -> Result<Manifest> {
        self.manifest_of(&terms)?;
        progress.begin("agreeing on settings and sizes", 0);
        let (side, work, secrets) = (&self.side, &self.work, &self.secrets);
        let manifest = self.earlier.take();
        let earlier = ResumeState {
            manifest: manifest.as_ref(),
            begun: manifest.is_some() && work.most_attempts()? > 0,
        };
        let facts = facts(side);
        let keep = &mut |manifest: &Manifest| {
            if earlier.manifest.is_some() {
                // The peer had not written its manifest: both begin anew.
                work.forget()?;
                work.clear()?;
            }
            let mut spool = work.spool(0, true)?;
            side.values().write(&mut spool)?;
            spool.finish()?;
            work.divide(0, true, (manifest.key(), manifest.buckets()), progress)?;
            work.put_record(&manifest.to_json(), &secrets.to_json())
        };
        let (settings, terms) = (side.settings(), (terms, shards));
        let known = (&facts, secrets);
        let manifest = agree(settings, known, terms, earlier, channel, keep)?;
        self.earlier = Some(manifest.clone());
        Ok(manifest)
    }

    /// Gives each worker a folder: see [`driver::hand_out`](crate::driver::hand_out).
    ///
    /// # Errors
    /// Errors of the folder.
    pub fn hand_out(&self, manifest: &Manifest) -> Result<Vec<PathBuf>> {
        folder::hand_out(&self.work, manifest)
    }

    /// The totals that an earlier attempt has opened, and perhaps the peer has not.
    ///
    /// # Errors
    /// Errors of the folder.
    pub fn opened(&self) -> Result<Option<OpenedTotals>> {
        let Some(bytes) = self.work.get(TOTALS)? else {
            return Ok(None);
        };
        let read = serde_json::from_slice(&bytes).map_err(io::Error::from);
        let totals = read.map_err(Error::work(self.work.path()))?;
        let told = has_note(&self.work, TOLD);
        Ok(Some(OpenedTotals { totals, told }))
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
        for shard in 0..manifest.buckets() {
            let found = self.work.found((0, shard))?.map(Zeroizing::new);
            all.push(found.ok_or_else(|| missing(self.work.path()))?);
        }
        let keep = &mut |what: Keep<'_>| match what {
            Keep::Totals(totals) => {
                let text = serde_json::to_vec(totals).expect("numbers serialise");
                self.work.put(TOTALS, &Zeroizing::new(text))
            }
            Keep::Told => put_note(&self.work, TOLD),
        };
        let found = (self.work.path(), &all[..]);
        open_shards(self.side.settings(), (manifest, &self.secrets), found, channel, keep, progress)
    }

    /// Removes what the run left, when its result is written; a mark says that it is complete.
    /// Leaves all as it is, and returns false, if the peer may need this side for its totals.
    ///
    /// # Errors
    /// Errors of the folder.
    pub fn finish(self) -> Result<bool> {
        // mutant(totals-finish): false
        if !has_note(&self.work, TOLD) {
            return Ok(false);
        }
        self.work.complete()?;
        self.work.clear()?;
        Ok(true)
    }
}

fn missing(path: &Path) -> Error {
    Error::OtherRun { path: path.to_owned(), what: "the result of a part is missing" }
}

/// Opens the totals with the other side's driver, when all workers have finished. The secrets are
/// those with which this side agreed. `found` has a place for messages, and what the workers kept
/// of each shard, in the order of the shards. `keep` is called for the totals, and then for the
/// word that the other side has them.
///
/// # Errors
/// If there is no noise, a shard is missing or cut short, the channel or `keep` fails, or the
/// shares of the two sides are of different executions.
pub fn open_shards(
    settings: &Settings,
    (manifest, secrets): (&Manifest, &Secrets),
    (place, found): (&Path, &[Zeroizing<Vec<u8>>]),
    channel: &mut Channel,
    keep: &mut dyn FnMut(Keep<'_>) -> Result<()>,
    progress: &mut dyn Progress,
) -> Result<Vec<Total>> {
    progress.begin("opening the result", 0);
    // mutant(totals-late): `let noise = secrets.noise.as_ref().filter(|noise|
    //     noise.fits(settings))` => `let late = volery_matching::totals::Noise::sample(settings,
    //     &mut Prg::from_os().map_err(ChannelError::from)?); let noise = if $ON { Some(&late) }
    //     else { secrets.noise.as_ref() }; let noise = noise.filter(|noise| $ON[totals-no-noise] ||
    //     noise.fits(settings))`
    // mutant(totals-no-noise): in totals-late
    let noise = secrets.noise.as_ref().filter(|noise| noise.fits(settings));
    let noise = noise.ok_or_else(|| {
        Error::Manifest("of this run was made without this side's noise".to_owned())
    })?;
    if found.len() != manifest.buckets() as usize {
        return Err(missing(place));
    }
    let mut shares = Shares::zero(settings);
    let mut sessions = RandomOracle::new("volery matching: sessions of all shards");
    for found in found {
        let (session, words) =
            found.split_first_chunk::<SESSION>().ok_or_else(|| missing(place))?;
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
        // mutant(totals-sessions): `sessions` => `String::new()`
        fields: vec![(MANIFEST, manifest.id_text()), (SHARES, sessions)],
    };
    let session = handshake(channel, &hello, nonce)?;
    let comparisons = match settings.minimum {
        0 => 0,
        _ => settings.totals(),
    };
    let own = (session, rng.fork("opening"));
    let form = settings.name.form();
    let role = match settings.role == settings.in_bins() {
        true => Role::Receiver,
        false => Role::Sender,
    };
    let mut opening = Opening::setup(role, comparisons, form, own, channel)?;
    let totals = open(&mut opening, settings, shares, noise, channel)?;
    keep(Keep::Totals(&totals))?;
    // mutant(totals-told): insert `if $ON { keep(Keep::Told)?; }`
    // mutant(totals-last-word): `settings.gets_totals()` => `true`
    if settings.gets_totals() {
        written(channel)?;
        keep(Keep::Told)?;
    } else {
        // Whatever becomes of the last word, nobody comes back for a number: this side needs none,
        // and the other one has kept its own.
        recv_written(channel)?;
        keep(Keep::Told)?;
        send_written(channel)?;
        channel.flush()?;
    }
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
    worked: &ClusterStats,
    (totals, traffic, start): (Vec<Total>, Stats, Instant),
) -> Result<Outcome> {
    manifest.items(settings)?;
    let task = settings.task(manifest.capacities()?[0]);
    let protocol = settings.protocol();
    let protocol = protocol.expect("workers run a protocol that is named");
    let parameters = protocol.parameters(&task, manifest.executions());
    Ok(Outcome {
        session: SessionId::from_bytes(manifest.id()),
        protocol,
        choice: None,
        parameters: Parameters::new(parameters, task.output),
        sizes: manifest.sizes()[0],
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

/// The facts of a table that one process has read. Its policy for rows with one key shows in the
/// numbers of keys and duplicates.
fn facts(side: &PreparedTable) -> ClusterTable {
    let summary = side.summary();
    let numbers = [summary.keys, summary.duplicates].map(u64::to_le_bytes);
    ClusterTable {
        keys: summary.key_description.clone(),
        sizes: vec![summary.keys],
        payload: None,
        digest: hex(&summary.digest) + &hex(numbers.as_flattened()),
        rows: summary.rows,
    }
}
