//! Workers on machines that share a folder: processes of this program, or of something else.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Deserialize;
use serde_json::{Value, json};
use volery_channel::tls::{Fingerprint, Identity};
use volery_channel::{Cancel, Role};
use volery_cluster::totals::{Driver as TotalsDriver, outcome};
use volery_cluster::worker::{Place, Worker};
use volery_cluster::{ClusterStats, Manifest};
use volery_matching::{Progress as _, totals};
use volery_os::sync::mpsc::{Sender, channel};
use volery_os::thread;
use volery_os::time::{Duration, Instant};
use volery_run::cluster::{
    BRIEFLY, ClusterOptions, Driver, Meeting, Workers, attempt, open_totals,
};
use volery_run::failure::{Failure, Result, Status};
use volery_run::matching::arguments::MatchingArguments;
use volery_run::progress::PhaseProgress;
use volery_run::proxy::ProxyOption;
use volery_run::reporter::{Reporter, many};
use volery_run::system;

use crate::flat::Flat;

/// How often a worker is started again without a shard finished in between.
const STARTS: u32 = 3;

/// One of the steps of a run, for engines that run the workers themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Step {
    /// Reads the table, meets the peer, and divides the keys into shards; the workers can start
    Prepare,
    /// Writes the result of the workers
    Collect,
}

/// The options of a run with workers on machines that share a folder.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(super) cluster: Flat<ClusterOptions>,

    /// Do one step only, and leave the workers to something else: the pods of 'volery k8s', say
    #[arg(long, value_enum)]
    step: Option<Step>,
}

/// The workers of a run, before it begins: processes of this machine.
pub(super) struct LocalWorkers<'a> {
    arguments: &'a ClusterOptions,
    step: Option<Step>,
    /// The words that start this program again.
    own: &'a [OsString],
    matching: &'a MatchingArguments,
    identity: Identity,
    peer: Fingerprint,
    folder: &'a Path,
    reporter: &'a Reporter,
}

/// A line of a worker.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Progress { done: u64 },
    Worked(Counts),
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Counts {
    resumed: u64,
    bytes_sent: u64,
    bytes_received: u64,
    messages: u64,
    seconds: f64,
    peak_rss_bytes: Option<u64>,
}

impl Workers for LocalWorkers<'_> {
    fn run(
        &self,
        side: &mut Driver<'_>,
        pool: &volery_run::options::Pool,
        told: &mut PhaseProgress<'_>,
    ) -> Result<Option<(Manifest, ClusterStats, Value)>> {
        let start = Instant::now();
        let role = side.role();
        let manifest = match self.step {
            Some(Step::Collect) => self.worked(side)?,
            _ => self.agree(side, pool, told)?,
        };
        let setup = start.elapsed();
        let mut all = Vec::new();
        match self.step {
            Some(Step::Prepare) => {
                self.prepare_workers(side, &manifest)?;
                return Ok(None);
            }
            Some(Step::Collect) => {}
            None => {
                for rule in 0..manifest.rules() {
                    all.push(self.rule(&manifest, role, rule, told)?);
                }
            }
        }
        let counts = all.iter().flatten();
        let mut worked =
            ClusterStats { setup, online: start.elapsed() - setup, ..ClusterStats::default() };
        for one in counts.clone() {
            worked.resumed += one.resumed as u32;
            worked.traffic.bytes_sent += one.bytes_sent;
            worked.traffic.bytes_received += one.bytes_received;
            worked.traffic.messages_sent += one.messages;
        }
        let terms = manifest.terms();
        let peak = counts.clone().filter_map(|one| one.peak_rss_bytes).max();
        let seconds: Vec<_> = counts.map(|one| one.seconds).collect();
        let report = json!({
            "name": terms.map(|terms| &terms.run),
            "manifest": manifest.id_text(),
            "workers": terms.map(|terms| terms.workers),
            "shards": manifest.buckets(),
            "gateway": self.arguments.gateway(),
            "seconds_of_workers": seconds,
            "peak_rss_bytes_of_a_worker": peak,
        });
        Ok(Some((manifest, worked, report)))
    }

    fn totals(
        &self,
        driver: &mut TotalsDriver,
        pool: &volery_run::options::Pool,
        told: &mut PhaseProgress<'_>,
    ) -> Result<Option<(totals::Outcome, Value)>> {
        let Some((manifest, worked, run)) = self.run(&mut Driver::Totals(driver), pool, told)?
        else {
            return Ok(None);
        };
        let start = Instant::now();
        let meeting = self.meeting(&manifest, driver.side().settings().role, None, attempt());
        let times = (self.matching.endpoint.wait, self.matching.common.timeout);
        let opened = driver.opened()?;
        let (totals, traffic) = open_totals(
            &meeting,
            &self.identity,
            times,
            (opened, driver.side().settings().gets_totals()),
            self.reporter,
            |channel| {
                let ran = pool.install(|| driver.open(&manifest, channel, told));
                told.end();
                Ok(ran?)
            },
        )?;
        let settings = driver.side().settings();
        let outcome = outcome(settings, &manifest, &worked, (totals, traffic, start))?;
        Ok(Some((outcome, run)))
    }

    fn folder(&self) -> &Path {
        self.folder
    }
}

impl<'a> LocalWorkers<'a> {
    /// Checks the options.
    pub(super) fn prepare(
        arguments: &'a RunArguments,
        own: &'a [OsString],
        matching: &'a MatchingArguments,
        reporter: &'a Reporter,
    ) -> Result<Self> {
        let folder = matching.resume.as_deref().ok_or_else(|| {
            Failure::usage("--resume", "a run with workers requires it")
                .with_hint("name a folder: the shards and the results of the workers are in it")
        })?;
        let (identity, peer) = matching.endpoint.at_gateway(reporter)?;
        Ok(Self {
            arguments: &arguments.cluster,
            step: arguments.step,
            own,
            matching,
            identity,
            peer,
            folder,
            reporter,
        })
    }

    /// Gives each worker a folder with its shards, a manifest and its certificate.
    fn prepare_workers(&self, side: &Driver<'_>, manifest: &Manifest) -> Result<()> {
        let terms = manifest.terms().expect("the run has workers");
        for (folder, worker) in side.hand_out(manifest)?.iter().zip(0..) {
            let certificate =
                self.meeting(manifest, side.role(), Some(worker), 0).certificate(&self.identity)?;
            write_private(&ticket(folder, worker), certificate.to_pem())?;
        }
        self.reporter.say(format_args!(
            "prepared {} for {}, whose certificates are valid for a day",
            many(manifest.buckets().into(), "shard"),
            many(terms.workers.into(), "worker")
        ));
        Ok(())
    }

    /// The manifest of a run whose workers have all finished.
    fn worked(&self, side: &Driver<'_>) -> Result<Manifest> {
        let identity = (&self.identity, self.peer);
        let terms = side.terms(self.arguments, identity)?;
        let folder = self.folder.display();
        let manifest = side.manifest_of(&terms)?.ok_or_else(|| {
            Failure::usage("--step", format_args!("{folder}: this run was not prepared"))
                .with_hint("run the same command with --step prepare, then the workers")
        })?;
        for rule in 0..manifest.rules() {
            for worker in 0..terms.workers {
                let place = Place::Folder(self.folder);
                let one = Worker::new(&manifest, side.role(), rule, worker, 0, place)?;
                if !one.is_complete()? {
                    let what =
                        format_args!("{folder}: worker {worker} has not finished rule {rule}");
                    return Err(Failure::new(Status::Other, what)
                        .with_hint("start that worker again, and collect when all have finished"));
                }
            }
        }
        Ok(manifest)
    }

    fn meeting<'m>(
        &'m self,
        manifest: &'m Manifest,
        role: Role,
        worker: Option<u32>,
        attempt: u64,
    ) -> Meeting<'m> {
        Meeting {
            gateway: self.arguments.gateway(),
            proxy: self.matching.endpoint.proxy.as_ref(),
            terms: manifest.terms().expect("the run has workers"),
            role,
            worker,
            attempt,
        }
    }

    fn agree(
        &self,
        side: &mut Driver<'_>,
        pool: &volery_run::options::Pool,
        told: &mut PhaseProgress<'_>,
    ) -> Result<Manifest> {
        let identity = (&self.identity, self.peer);
        let terms = side.terms(self.arguments, identity)?;
        let earlier = side.manifest_of(&terms)?;
        let wait = match earlier {
            Some(_) => BRIEFLY.min(self.matching.endpoint.wait),
            None => self.matching.endpoint.wait,
        };
        let meeting = Meeting {
            gateway: self.arguments.gateway(),
            proxy: self.matching.endpoint.proxy.as_ref(),
            terms: &terms,
            role: side.role(),
            worker: None,
            attempt: attempt(),
        };
        let certificate = meeting.certificate(&self.identity)?;
        self.reporter.tell(format_args!(
            "connecting to the peer at {}, for at most {wait:?}",
            self.arguments.gateway()
        ));
        self.reporter.begin("connecting");
        let met = meeting.meet(&certificate, (wait, self.matching.common.timeout), self.reporter);
        self.reporter.end();
        match (met, earlier) {
            (Ok(mut channel), _) => {
                let terms = (terms, self.arguments.shards);
                let agreed = pool.install(|| side.agree(terms, &mut channel, told));
                told.end();
                Ok(agreed?)
            }
            // The peer's driver is past this point.
            (Err(failure), Some(manifest)) if failure.status() == Status::Network => Ok(manifest),
            (Err(failure), _) => Err(failure),
        }
    }

    /// Runs all workers for one rule.
    fn rule(
        &self,
        manifest: &Manifest,
        role: Role,
        rule: usize,
        told: &mut PhaseProgress<'_>,
    ) -> Result<Vec<Counts>> {
        told.begin("matching shards", manifest.buckets().into());
        let stop = AtomicBool::new(false);
        let (events, lines) = channel();
        let workers = self.arguments.workers;
        let results = thread::scope(|scope| {
            let supervise = |worker| {
                let (events, stop) = (events.clone(), &stop);
                scope.spawn(move || {
                    let result = self.supervise(manifest, role, rule, worker, &events, stop);
                    if result.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    result
                })
            };
            let running: Vec<_> = (0..workers).map(supervise).collect();
            drop(events);
            let mut done = vec![0; workers as usize];
            for (worker, count) in lines {
                done[worker as usize] = count;
                told.done(done.iter().sum());
            }
            let joined = running.into_iter().map(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.collect::<Vec<_>>()
        });
        told.end();
        // The first failure that is not of a worker that was stopped for another's sake.
        let (mut counts, mut failures) = (Vec::new(), Vec::new());
        for result in results {
            match result {
                Ok(one) => counts.push(one),
                Err(failure) => failures.push(failure),
            }
        }
        failures.sort_by_key(|failure| failure.message() == STOPPED);
        match failures.into_iter().next() {
            Some(failure) => Err(failure),
            None => Ok(counts),
        }
    }

    /// Runs one worker, and starts it again where the connection broke or it was killed.
    fn supervise(
        &self,
        manifest: &Manifest,
        role: Role,
        rule: usize,
        worker: u32,
        events: &Sender<(u32, u64)>,
        stop: &AtomicBool,
    ) -> Result<Counts> {
        let ticket = ticket(self.folder, worker);
        let (mut vain, mut most) = (0, 0);
        let mut last = 0;
        let result = loop {
            let attempt = attempt().max(last + 1);
            last = attempt;
            let meeting = self.meeting(manifest, role, Some(worker), attempt);
            let certificate = meeting.certificate(&self.identity)?;
            write_private(&ticket, certificate.to_pem())?;
            let words = self.words(role, rule, worker, attempt, &ticket);
            let mut finished = 0;
            let proxy = self.matching.endpoint.proxy.as_ref();
            let run = start(self.own, &words, proxy).and_then(|child| {
                follow(child, stop, self.reporter.cancel(), &mut |done| {
                    finished = done;
                    let _ = events.send((worker, done));
                })
            });
            let failure = match run {
                Ok(counts) => break Ok(counts),
                Err(failure) => failure,
            };
            // Those that were finished before count as well, and are no progress.
            vain = if finished > most { 1 } else { vain + 1 };
            most = most.max(finished);
            let passes = matches!(failure.status(), Status::Network);
            if !passes || vain == STARTS || stop.load(Ordering::Relaxed) {
                break Err(failure);
            }
            self.reporter
                .caution(format_args!("restarting worker {worker}: {}", failure.message()));
            if self.reporter.cancel().sleep(Duration::from_millis(250 << vain)).is_err() {
                break Err(failure);
            }
        };
        // A key that nobody needs any more.
        let _ = fs::remove_file(&ticket);
        result
    }

    fn words(
        &self,
        role: Role,
        rule: usize,
        worker: u32,
        attempt: u64,
        ticket: &Path,
    ) -> Vec<String> {
        let common = &self.matching.common;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let share = (cores / self.arguments.workers as usize).max(1);
        let threads = common.threads.map_or(share, usize::from);
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        let options = [
            ("manifest", path(self.folder.join("run.json"))),
            ("ticket", path(ticket.to_owned())),
            ("role", role.name().to_owned()),
            ("gateway", self.arguments.gateway().to_owned()),
            ("worker", worker.to_string()),
            ("rule", rule.to_string()),
            ("attempt", attempt.to_string()),
            ("work", path(self.folder.to_owned())),
            ("wait", seconds(self.matching.endpoint.wait)),
            ("timeout", seconds(common.timeout)),
            ("threads", threads.to_string()),
        ];
        let options = options.map(|(name, value)| format!("--{name}={value}"));
        let fixed = ["worker", "--with-parent", "--quiet"].map(str::to_owned);
        fixed.into_iter().chain(options).collect()
    }
}

/// The file of a worker's run certificate.
fn ticket(folder: &Path, worker: u32) -> PathBuf {
    folder.join(format!("ticket-{worker}"))
}

fn seconds(time: Duration) -> String {
    format!("{}s", time.as_secs_f64().ceil())
}

/// The last line about a worker that was stopped.
const STOPPED: &str = "stopped, because another worker failed";

/// The URL of a proxy is in the environment: it may hold a password, and all users see the words.
fn start(own: &[OsString], words: &[String], proxy: Option<&ProxyOption>) -> Result<Child> {
    let program = match own {
        [] => env::current_exe().map(|file| vec![file.into_os_string()]),
        own => Ok(own.to_vec()),
    };
    let program = program.map_err(|error| {
        Failure::new(
            Status::Other,
            format_args!("cannot find the volery executable to start workers: {error}"),
        )
    })?;
    let child = Command::new(&program[0])
        .args(&program[1..])
        .args(words)
        .envs(proxy.map(|proxy| ("VOLERY_PROXY", proxy.text())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    child.map_err(|error| {
        let program = Path::new(&program[0]).display();
        Failure::new(Status::Other, format_args!("{program}: {error}"))
    })
}

/// Waits for the end of a worker.
fn follow(
    mut child: Child,
    stop: &AtomicBool,
    cancel: &Cancel,
    progress: &mut dyn FnMut(u64),
) -> Result<Counts> {
    let (sender, lines) = channel();
    let out = BufReader::new(child.stdout.take().expect("it was piped"));
    let errors = BufReader::new(child.stderr.take().expect("it was piped"));
    let reading = thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            if let Ok(line) = serde_json::from_str::<Line>(&line)
                && sender.send(line).is_err()
            {
                return;
            }
        }
    });
    let said = thread::spawn(move || errors.lines().map_while(Result::ok).collect::<Vec<_>>());
    let mut counts = None;
    let mut take = |line| match line {
        Line::Progress { done } => progress(done),
        Line::Worked(worked) => counts = Some(worked),
    };
    let mut stopped = false;
    let status = loop {
        if let Ok(line) = lines.recv_timeout(Duration::from_millis(50)) {
            take(line);
        }
        if !stopped && (stop.load(Ordering::Relaxed) || cancel.is_cancelled()) {
            stopped = true;
            let _ = child.kill();
        }
        match child.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => break status,
            Err(error) => return Err(Failure::new(Status::Other, error)),
        }
    };
    let _ = reading.join();
    lines.try_iter().for_each(take);
    let said = said.join().unwrap_or_default();
    if stopped {
        return Err(Failure::new(Status::Other, STOPPED));
    }
    match (status.code(), counts) {
        (Some(0), Some(counts)) => Ok(counts),
        (None, _) => {
            let signal = system::signal(status).unwrap_or(0);
            // Only what somebody else did to it may be tried again: SIGKILL and SIGTERM.
            let status = match signal {
                9 | 15 => Status::Network,
                _ => Status::Other,
            };
            let what = format_args!("signal {signal} ended the worker");
            Err(Failure::new(status, what).with_hint("look at the memory of this machine"))
        }
        (code, _) => {
            let with = |start: &str| {
                let found = said.iter().find_map(|line| line.strip_prefix(start));
                found.map(str::to_owned)
            };
            let what = with("error: ").unwrap_or_else(|| said.join(" "));
            let failure = Failure::new(Status::of_code(code), what);
            Err(match with("hint: ") {
                Some(hint) => failure.with_hint(hint),
                None => failure,
            })
        }
    }
}

/// Writes a file that only its owner can read.
fn write_private(path: &Path, text: &str) -> Result<()> {
    let write = || {
        match fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        system::create_private(path)?.write_all(text.as_bytes())
    };
    write().map_err(|error| Failure::file(path, error))
}
