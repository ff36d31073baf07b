//! Runs that several workers on each side share: who they are, and how they meet.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use volery_channel::gateway::{self, Ticket};
use volery_channel::tcp::Patience;
use volery_channel::tls::{Fingerprint, Identity, Peer};
use volery_channel::{Channel, Error, Role, Stats};
use volery_cluster::totals::{self as cluster_totals, OpenedTotals};
use volery_cluster::{ClusterStats, MANIFEST, Manifest, Task, WorkerSettings, driver};
use volery_matching::totals::Total;
use volery_matching::{MAX_BUCKETS, PreparedTable, Progress, totals};
use volery_options::parse;
use volery_os::time::wall_clock;
use volery_primitives::ro::RandomOracle;

use crate::failure::{Failure, Result, Status};
use crate::progress::PhaseProgress;
use crate::proxy::{self, ProxyOption};
use crate::reporter::Reporter;

/// How long the run certificates of workers are valid.
const DAY: Duration = Duration::from_secs(86_400);

/// The most that the clock of the other side may be behind.
const SLOW_CLOCK: Duration = Duration::from_secs(3600);

/// How long a side looks for the peer's driver that has a manifest, or the word that the peer has
/// its totals: usually it is not there, because it is past this point.
pub const BRIEFLY: Duration = Duration::from_secs(5);

/// The most workers of a side.
const MAX_WORKERS: u32 = 4096;

volery_options::options! {
    /// The options of a run with workers.
    pub struct ClusterOptions {
        /// Gateway at which the workers of both sides meet: the address of 'volery gateway'
        required gateway: String [String::new(), "Workers", "HOST:PORT", parse::string];

        /// Name of the run, the same on both sides: 1 to 64 letters, digits, '.', '_' or '-'. A new
        /// run has a new name
        required run: String [String::new(), "Workers", "NAME", run_name];

        /// Workers of each side, the same on both
        required workers: u32 [1, "Workers", "W", |value| parse::whole(value, 1, MAX_WORKERS)];

        /// Number of shards, the same on both sides [default: by the number of keys]
        once shards: u32 ["Workers", "B", |value| parse::whole(value, 1, MAX_BUCKETS)];
    }
}

fn run_name(value: &OsStr) -> Result<String, String> {
    let text = parse::utf8(value)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    match text.len() {
        1..=64 if text.chars().all(allowed) && !text.starts_with('.') => Ok(text.to_owned()),
        _ => Err("a name has 1 to 64 letters, digits, '.', '_' or '-'".to_owned()),
    }
}

/// The driver of a side of a run.
pub enum Driver<'a> {
    /// For the matching rows.
    Rows(&'a mut PreparedTable),
    /// For totals.
    Totals(&'a mut cluster_totals::Driver),
}

impl Driver<'_> {
    /// The role of the side.
    pub fn role(&self) -> Role {
        match self {
            Self::Rows(side) => side.settings().role,
            Self::Totals(driver) => driver.side().settings().role,
        }
    }

    /// The terms that it brings.
    pub fn terms(
        &self,
        arguments: &ClusterOptions,
        identity: (&Identity, Fingerprint),
    ) -> Result<WorkerSettings> {
        let (task, keys) = match self {
            Self::Rows(side) => (Task::Rows(*side.settings()), side.key_description()),
            Self::Totals(driver) => {
                let side = driver.side();
                let task = Task::Totals(Box::new(side.settings().clone()));
                (task, &*side.summary().key_description)
            }
        };
        arguments.terms(&task, keys, identity)
    }

    /// The manifest of an earlier attempt, if it is of these terms.
    ///
    /// # Errors
    /// If there is one of others.
    pub fn manifest_of(&self, terms: &WorkerSettings) -> volery_matching::Result<Option<Manifest>> {
        match self {
            Self::Rows(side) => driver::manifest_of(side, terms),
            Self::Totals(driver) => driver.manifest_of(terms),
        }
    }

    /// Agrees with the peer's.
    pub fn agree(
        &mut self,
        (terms, shards): (WorkerSettings, Option<u32>),
        channel: &mut Channel,
        progress: &mut dyn Progress,
    ) -> volery_matching::Result<Manifest> {
        match self {
            Self::Rows(side) => driver::agree_on_workers(side, (terms, shards), channel, progress),
            Self::Totals(driver) => driver.agree(terms, shards, channel, progress),
        }
    }

    /// Gives each worker a folder of its own.
    pub fn hand_out(&self, manifest: &Manifest) -> volery_matching::Result<Vec<PathBuf>> {
        match self {
            Self::Rows(side) => driver::hand_out(side, manifest),
            Self::Totals(driver) => driver.hand_out(manifest),
        }
    }
}

/// The workers of one side of a run: they do its shards.
pub trait Workers {
    /// The folder of the run.
    fn folder(&self) -> &Path;

    /// Agrees with the peer's driver and runs the workers; returns the manifest, what they did, and
    /// that for a report. Nothing if the workers are left to something else.
    fn run(
        &self,
        side: &mut Driver<'_>,
        pool: &crate::options::Pool,
        told: &mut PhaseProgress<'_>,
    ) -> Result<Option<(Manifest, ClusterStats, Value)>>;

    /// [`run`](Self::run) for totals, and opens them with the peer's driver; returns their outcome,
    /// and what is for a report.
    fn totals(
        &self,
        driver: &mut cluster_totals::Driver,
        pool: &crate::options::Pool,
        told: &mut PhaseProgress<'_>,
    ) -> Result<Option<(totals::Outcome, Value)>>;
}

/// The fingerprints of sender and receiver.
fn organisations(role: Role, (identity, peer): (&Identity, Fingerprint)) -> [String; 2] {
    let [own, peer] = [identity.fingerprint(), peer].map(|print| print.to_string());
    role.sides([own, peer])
}

/// Meets the peer's driver and opens totals with it by `open`, when all workers have finished;
/// returns them, and the traffic. `meeting` is without a worker. `opened`: those of an earlier
/// start, which stand if the peer has its own, or if this side gets totals (`gets`) and the peer
/// does not come. `open` keeps totals.
pub fn open_totals(
    meeting: &Meeting<'_>,
    certifier: &Identity,
    (wait, timeout): (Duration, Duration),
    (opened, gets): (Option<OpenedTotals>, bool),
    reporter: &Reporter,
    open: impl FnOnce(&mut Channel) -> Result<Vec<Total>>,
) -> Result<(Vec<Total>, Stats)> {
    let meeting = Meeting {
        // At a place of its own: a driver that comes back may still look for an agreement.
        worker: Some(meeting.terms.workers),
        ..*meeting
    };
    let wait = match &opened {
        Some(OpenedTotals { told: true, .. }) => BRIEFLY.min(wait),
        // The peer may come back for its totals.
        _ => wait,
    };
    let certificate = meeting.certificate(certifier)?;
    reporter.begin("connecting");
    let met = meeting.meet(&certificate, (wait, timeout), reporter);
    reporter.end();
    let is_there = met.is_ok();
    let ended = met.and_then(|mut channel| {
        let totals = open(&mut channel)?;
        Ok((totals, channel.stats()))
    });
    match (ended, opened) {
        // mutant(totals-alone): `told || gets && !is_there` => `true`
        (Err(failure), Some(OpenedTotals { totals, told }))
            if failure.is_network() && (told || gets && !is_there) =>
        {
            Ok((totals, Stats::default()))
        }
        (ended, _) => ended,
    }
}

impl ClusterOptions {
    /// The gateway.
    pub fn gateway(&self) -> &str {
        &self.gateway
    }

    /// The name of the run.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The terms of a run, if workers can run its protocol.
    pub fn terms(
        &self,
        task: &Task,
        keys: &str,
        identity: (&Identity, Fingerprint),
    ) -> Result<WorkerSettings> {
        let (role, protocol) = match task {
            Task::Rows(settings) => (settings.role, "vole"),
            Task::Totals(settings) => (settings.role, "circuit"),
        };
        let sides = organisations(role, identity);
        let terms = WorkerSettings::new(task.clone(), keys, &self.run, self.workers, sides);
        terms.map_err(|what| {
            let hint = format_args!("choose --protocol {protocol} on both sides");
            Failure::usage("--protocol", what).with_hint(hint)
        })
    }
}

/// A worker of a side, or its driver, about to meet the peer's.
pub struct Meeting<'a> {
    /// The address of the gateway.
    pub gateway: &'a str,
    /// The proxy on the way to it, if it is given.
    pub proxy: Option<&'a ProxyOption>,
    /// The terms of the run.
    pub terms: &'a WorkerSettings,
    /// The role of this side.
    pub role: Role,
    /// None: the driver.
    pub worker: Option<u32>,
    /// The number of the attempt: see [`attempt`].
    pub attempt: u64,
}

/// The peer's was not at the gateway while this side waited there.
pub struct AbsentPeer(pub Failure);

/// The number of an attempt that begins now: higher than that of any before.
pub fn attempt() -> u64 {
    let since = wall_clock().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(1, |since| since.as_millis() as u64)
}

/// The remedy where the manifests of two workers differ.
pub(crate) fn disagreement(field: &str) -> Option<&'static str> {
    (field == MANIFEST).then_some(
        "the two sides are in different runs of this name: give a new run a new name on both sides",
    )
}

impl Meeting<'_> {
    fn ticket(&self) -> Ticket {
        let WorkerSettings { run, organisations, .. } = self.terms;
        let mut oracle = RandomOracle::new("volery cluster: run");
        oracle.absorb(run.as_bytes());
        for organisation in organisations {
            oracle.absorb(organisation.as_bytes());
        }
        Ticket {
            run: oracle.finish32(),
            side: self.role,
            worker: self.worker,
            attempt: self.attempt,
        }
    }

    /// A run certificate for this worker.
    pub fn certificate(&self, identity: &Identity) -> Result<Identity> {
        let now = wall_clock();
        let validity = now.checked_sub(SLOW_CLOCK).unwrap_or(now)..now + DAY;
        Ok(identity.issue(&self.ticket().name(), validity)?)
    }

    /// The channel to the peer's.
    pub fn meet(
        &self,
        certificate: &Identity,
        times: (Duration, Duration),
        reporter: &Reporter,
    ) -> Result<Channel> {
        let met = self.find(certificate, times, reporter)?;
        met.map_err(|absent| absent.0)
    }

    /// Does what [`meet`](Self::meet) does, and tells when this side waited to the end and the peer
    /// was not there.
    pub fn find(
        &self,
        certificate: &Identity,
        (wait, timeout): (Duration, Duration),
        reporter: &Reporter,
    ) -> Result<Result<Channel, AbsentPeer>> {
        let [sender, receiver] = &self.terms.organisations;
        let (own, peer) = match self.role {
            Role::Sender => (sender, receiver),
            Role::Receiver => (receiver, sender),
        };
        if certificate.organisation().to_string() != *own {
            return Err(Failure::usage("--ticket", "it is of another identity than the run"));
        }
        let fingerprint: Fingerprint = peer.parse().map_err(|error| {
            Failure::usage("--manifest", format_args!("the peer's fingerprint: {error}"))
        })?;
        let route = proxy::route(self.gateway, self.proxy)?;
        let ticket = self.ticket();
        let peer = Peer::of_run(fingerprint, ticket.name());
        let patience = Patience {
            wait,
            timeout,
            cancel: reporter.cancel().clone(),
            queue: volery_channel::QUEUE_BOUND,
        };
        let met = gateway::meet(route, &ticket, certificate, &peer, patience);
        let late = |what: &dyn std::fmt::Display| {
            let what = format_args!("--gateway {}: {what}", self.gateway);
            Failure::new(Status::Network, what)
                .with_hint("check that the gateway runs, that its address is right, and that the other side has started the same run; --wait TIME waits longer")
        };
        match met {
            Ok(channel) => Ok(Ok(channel)),
            Err(error @ Error::Absent(_)) => Ok(Err(AbsentPeer(late(&error)))),
            Err(Error::TimedOut(what)) => Err(late(&what)),
            Err(Error::Io(error)) => Err(Failure::new(
                Status::Network,
                format_args!("--gateway {}: {error}", self.gateway),
            )),
            Err(error) => Err(error.into()),
        }
    }
}
