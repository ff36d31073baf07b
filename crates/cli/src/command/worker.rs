//! `volery worker`: does its shards of a run that several workers share. Every engine starts this
//! process: `volery run-local`, a task of Spark or Ray, a pod of Kubernetes.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use serde::Deserialize;
use serde_json::json;
use volery_channel::Role;
use volery_channel::tls::Identity;
use volery_cluster::worker::{Place, Worker};
use volery_cluster::{Manifest, Store, WorkerStats};
use volery_matching::Progress;
use volery_options::values;
use volery_os::sync::mpsc::{Receiver, channel};
use volery_os::sync::{Mutex, PoisonError};
use volery_os::thread;
use volery_run::cluster::{Meeting, attempt};
use volery_run::failure::{Failure, Result, Status};
use volery_run::identity::read_private;
use volery_run::memory::peak_memory;
use volery_run::progress::PhaseProgress;
use volery_run::proxy::ProxyOption;
use volery_run::report::{Report, Seconds};
use volery_run::reporter::{Reporter, many};
use volery_run::system::is_pipe;

use super::options::{Common, role};
use crate::exit::print;

/// How long a side that has all its results looks for the peer.
const BRIEFLY: Duration = Duration::from_secs(10);

/// Do one worker's shards of a run that several workers on each side share
///
/// The drivers of both sides have made the manifest: 'volery run-local', or volery.spark in Python.
/// Worker w of W does the shards w, w + W, .. of one key with worker w of the other side, and keeps
/// its results in --work. A worker that is started again goes on where the last one ended. Exit
/// status 4 means: start it again.
#[derive(Clone, Debug, clap::Args)]
#[command(
    override_usage = "volery worker --manifest <FILE> --ticket <FILE> --worker <W> --work <DIR> .."
)]
pub(crate) struct Arguments {
    /// The manifest of the run
    #[arg(long, value_name = "FILE")]
    manifest: PathBuf,

    /// The run certificate of this worker, with its key; the driver makes it
    #[arg(long, value_name = "FILE")]
    ticket: PathBuf,

    /// Role of this side
    #[arg(long, value_parser = role("Holds the set that the peer's keys are matched against", "Gets the result"))]
    role: Role,

    /// The gateway at which the workers of both sides meet
    #[arg(long, value_name = "HOST:PORT")]
    gateway: String,

    /// The number of this worker, counted from 0
    #[arg(long, value_name = "W")]
    worker: u32,

    /// The key by which it matches: 0 for --key, 1 for the first --or
    #[arg(long, value_name = "R", default_value_t = 0)]
    rule: usize,

    /// A number that is higher each time that this worker is started [default: milliseconds since
    /// 1970]
    #[arg(long, value_name = "A")]
    attempt: Option<u64>,

    /// The folder with this side's shards; '-': the process that started this one has them, and
    /// answers requests on standard output by standard input
    #[arg(long, value_name = "DIR")]
    work: PathBuf,

    /// How long to wait for the gateway and for the peer's worker, such as 90s, 10m or 1h
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = values::time)]
    wait: Duration,

    /// Connect to the gateway through this proxy, as for 'volery psi'
    #[arg(
        long,
        value_name = "URL",
        value_parser = OsStringValueParser::new().try_map(|text| ProxyOption::parse(&text)),
    )]
    proxy: Option<ProxyOption>,

    /// End with the process that started this one, which holds standard input open and gets lines
    /// of progress
    #[arg(long, hide = true)]
    with_parent: bool,

    #[command(flatten)]
    common: Common,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<()> {
    let common = &arguments.common;
    let report_place = common.prepare_report(reporter)?;
    let pool = common.pool()?;
    let refused = |what: &dyn std::fmt::Display| {
        let path = arguments.manifest.display();
        Failure::usage("--manifest", format_args!("{path}: {what}"))
    };
    let text = fs::read(&arguments.manifest).map_err(|error| refused(&error))?;
    let manifest = Manifest::from_json(&text).map_err(|what| refused(&what))?;
    let terms = manifest.terms().ok_or_else(|| refused(&"it is not of a run with workers"))?;
    let certificate = certificate(&arguments.ticket)?;
    let attempt = arguments.attempt.unwrap_or_else(attempt);
    let meeting = Meeting {
        gateway: &arguments.gateway,
        proxy: arguments.proxy.as_ref(),
        terms,
        role: arguments.role,
        worker: Some(arguments.worker),
        attempt,
    };
    let parent = (arguments.with_parent || arguments.work == Path::new("-")).then(Parent::watch);
    let place = match &parent {
        Some(parent) if arguments.work == Path::new("-") => Place::Store(parent),
        _ => Place::Folder(&arguments.work),
    };
    let (role, rule) = (arguments.role, arguments.rule);
    let worker = Worker::new(&manifest, role, rule, arguments.worker, attempt, place)?;
    let mut worked = WorkerStats::default();
    if worker.is_complete()? {
        reporter.say("this worker has finished this key before");
    } else {
        let has_all = worker.has_all_results()?;
        // Only the peer's word is missing: usually it is not there any more. With --both it may
        // lack results of its own.
        let wait = match has_all && !manifest.is_both() {
            true => BRIEFLY,
            false => arguments.wait,
        };
        reporter.tell(format_args!(
            "connecting to the peer's worker at {}, for at most {wait:?}",
            arguments.gateway
        ));
        match meeting.find(&certificate, (wait, common.timeout), reporter) {
            // The peer's has all results, too, or will find this side's.
            Ok(Err(_)) if has_all => worker.complete()?,
            Ok(Err(absent)) => return Err(absent.0),
            // Where the peer keeps results, it may be there, and need this side for its own.
            // mutant(worker-absent): `!manifest.is_both()` => `true`
            Err(failure) if has_all && !manifest.is_both() && failure.is_network() => {
                worker.complete()?;
            }
            Err(failure) => return Err(failure),
            Ok(Ok(mut channel)) => {
                reporter.explain("connected");
                let mut told = PhaseProgress::new(reporter);
                let mut lines = parent.as_ref().map(|parent| Lines { parent, of: 0 });
                let ran = pool.install(|| match &mut lines {
                    Some(lines) => worker.run(&mut channel, lines),
                    None => worker.run(&mut channel, &mut told),
                });
                match ran.map_err(Failure::from) {
                    Ok(ran) => worked = ran,
                    // A peer that was there lacks results of its own, where it has some: it comes
                    // back for them.
                    Err(failure)
                        if has_all
                            && !manifest.is_both()
                            && failure.status() == Status::Network =>
                    {
                        worker.complete()?;
                    }
                    Err(failure) => return Err(failure),
                }
                told.end();
            }
        }
    }
    if let Some(parent) = &parent {
        let traffic = worked.traffic;
        parent
            .tell(&json!({ "worked": {
                "shards": worked.shards,
                "resumed": worked.resumed,
                "found": worked.found,
                "bytes_sent": traffic.bytes_sent,
                "bytes_received": traffic.bytes_received,
                "messages": traffic.messages_sent + traffic.messages_received,
                "seconds": worked.seconds,
                "peak_rss_bytes": peak_memory(),
            }}))
            .map_err(|error| {
                Failure::new(Status::Other, format_args!("standard output: {error}"))
            })?;
    }
    report_place.write(&report(arguments, &manifest, &worked, reporter))?;
    reporter.say(format_args!(
        "worker {}: {}, {} before",
        arguments.worker,
        many(worked.shards, "shard"),
        worked.resumed
    ));
    Ok(())
}

fn report(
    arguments: &Arguments,
    manifest: &Manifest,
    worked: &WorkerStats,
    reporter: &Reporter,
) -> Report {
    let mut report = Report {
        role: Some(arguments.role.name().to_owned()),
        bytes_sent: Some(worked.traffic.bytes_sent),
        bytes_received: Some(worked.traffic.bytes_received),
        messages: Some(worked.traffic.messages_sent + worked.traffic.messages_received),
        seconds: Seconds { total: Some(worked.seconds), ..Seconds::default() },
        peak_rss_bytes: peak_memory(),
        ..Report::new("worker", reporter)
    };
    let result = [
        ("manifest", json!(manifest.id_text())),
        ("worker", json!(arguments.worker)),
        ("rule", json!(arguments.rule)),
        ("shards", json!(worked.shards)),
        ("resumed", json!(worked.resumed)),
    ];
    let result = result.map(|(name, value)| (name.to_owned(), value));
    report.result.extend(result);
    report
}

/// The run certificate in a file, or in a pipe of the process that started this one.
fn certificate(path: &Path) -> Result<Identity> {
    let refused = |what: &dyn std::fmt::Display| {
        Failure::usage("--ticket", format_args!("{}: {what}", path.display()))
    };
    let is_pipe = fs::metadata(path).is_ok_and(|data| is_pipe(&data));
    let pem = match is_pipe {
        true => {
            let mut pem = zeroize::Zeroizing::new(String::with_capacity(1 << 14));
            let read =
                File::open(path).and_then(|file| file.take(1 << 14).read_to_string(&mut pem));
            read.map(|_| pem)
        }
        false => read_private(path, false),
    };
    let pem = pem.map_err(|error| refused(&error))?;
    Identity::from_pem(&pem).map_err(|error| refused(&error))
}

/// The process that started this one.
struct Parent {
    /// Its answers: the line, and the bytes behind it.
    answers: Mutex<Receiver<(Answer, Vec<u8>)>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    bytes: Option<usize>,
    names: Vec<String>,
    done: bool,
    exists: bool,
    error: Option<String>,
}

impl Parent {
    /// Reads its answers, and ends this process when it has gone.
    fn watch() -> Self {
        let (sender, answers) = channel();
        thread::spawn(move || {
            let mut input = BufReader::new(io::stdin());
            loop {
                match read_answer(&mut input) {
                    Ok(Some(answer)) => match sender.send(answer) {
                        Ok(()) => {}
                        Err(_) => return,
                    },
                    Ok(None) => break,
                    Err(error) => {
                        let what = format_args!("standard input: {error}");
                        print(&Failure::new(Status::Other, what));
                        break;
                    }
                }
            }
            // What the peer sees is a closed connection.
            process::exit(Status::Other as i32);
        });
        Self { answers: Mutex::new(answers) }
    }

    fn tell(&self, line: &serde_json::Value) -> io::Result<()> {
        self.write(line, &[])
    }

    fn write(&self, line: &serde_json::Value, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{line}")?;
        out.write_all(bytes)?;
        out.flush()
    }

    fn ask(&self, request: &serde_json::Value, bytes: &[u8]) -> io::Result<(Answer, Vec<u8>)> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        self.write(request, bytes)?;
        let (answer, bytes) = answers.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
        match answer.error {
            Some(error) => Err(io::Error::other(error)),
            None => Ok((answer, bytes)),
        }
    }
}

/// The next answer; nothing at the end.
fn read_answer(input: &mut impl io::BufRead) -> io::Result<Option<(Answer, Vec<u8>)>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let answer: Answer = serde_json::from_str(&line)?;
    let mut bytes = vec![0; answer.bytes.unwrap_or(0)];
    input.read_exact(&mut bytes)?;
    Ok(Some((answer, bytes)))
}

impl Store for Parent {
    fn shard(&self, _rule: usize, shard: u32) -> io::Result<Vec<RecordBatch>> {
        let (_, bytes) = self.ask(&json!({ "shard": shard }), &[])?;
        let stream = StreamReader::try_new(&bytes[..], None).map_err(io::Error::other)?;
        stream.collect::<Result<_, _>>().map_err(io::Error::other)
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<String>> {
        let (answer, _) = self.ask(&json!({ "list": prefix }), &[])?;
        Ok(answer.names)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let request = json!({ "put": name, "bytes": bytes.len() });
        match self.ask(&request, bytes)?.0 {
            Answer { exists: true, .. } => Err(io::ErrorKind::AlreadyExists.into()),
            Answer { done: true, .. } => Ok(()),
            _ => Err(io::Error::other("it was not kept")),
        }
    }
}

/// Tells the process that started this one how far it is.
struct Lines<'a> {
    parent: &'a Parent,
    of: u64,
}

impl Progress for Lines<'_> {
    fn begin(&mut self, _: &'static str, steps: u64) {
        self.of = steps;
    }

    fn done(&mut self, steps: u64) {
        // One that does not read will be noticed at the next request.
        let _ = self.parent.tell(&json!({ "progress": { "done": steps, "of": self.of } }));
    }
}
