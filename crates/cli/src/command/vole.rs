//! `volery vole`: one party's half of n correlations `w = u*x + v`, as files.

use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use indicatif::ProgressBar;
use volery_channel::Channel;
use volery_pcg::vole::VoleRing;
use volery_pcg::{Noise, Plan, Security};

use super::options::{
    Common, EndpointArguments, Parameters, RingName, Voice, parse_count, plan_for, security_words,
    with_ring,
};
use crate::exit::{Failure, Status};
use crate::npy::{Writer, shape};
use crate::output::Folder;
use crate::party::{self, Buffer, Job, Outcome};
use crate::report::{Report, Seconds, peak_memory};

/// Make this party's half of n correlations w = u*x + v with a peer, and write it as NumPy files
///
/// The sender gets random u and v (u.npy, v.npy), the receiver a random x and w (x.npy, w.npy). Both sides are started
/// with the same --n, --ring, --security, --noise and --parameters.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which half this party gets
    #[arg(long)]
    role: Role,

    #[command(flatten)]
    endpoint: EndpointArguments,

    /// How many correlations
    #[arg(long, value_parser = parse_count, allow_negative_numbers = true)]
    n: u64,

    /// The ring of the values
    #[arg(long, default_value = "fp61")]
    ring: RingName,

    /// Against whom the run is secure; malicious security is not there yet
    #[arg(long, default_value_t = Security::SemiHonest)]
    security: Security,

    /// Where the LPN noise sits: one non-zero a block (regular), or anywhere (uniform) [default: regular]
    #[arg(long)]
    noise: Option<Noise>,

    /// Where the sizes of the LPN instances come from; 'volery params list' shows them
    #[arg(long, default_value = "default")]
    parameters: Parameters,

    /// The folder for this party's half; appears when the run is done
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Replace the output folder of an earlier run
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    common: Common,
}

/// Which half a party gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Role {
    /// Gets u and v.
    Sender,
    /// Gets x and w.
    Receiver,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    with_ring!(arguments.ring, R => run_over::<R>(arguments))
}

fn run_over<R: VoleRing>(arguments: &Arguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let voice = common.voice();
    let (n, security) = (arguments.n, arguments.security);
    let plan = plan_for::<R>(n, arguments.noise, security, arguments.parameters)?;
    let endpoint = arguments.endpoint.endpoint()?;
    let folder = Folder::prepare("--out", &arguments.out, arguments.force)?;
    folder.check_space("--n", output_bytes::<R>(arguments.role, n))?;
    let place = common.prepare_report()?;
    let pool = common.pool()?;

    let mut channel = endpoint.open(common.timeout(), voice)?;
    let start = Instant::now();
    let progress = voice.progress(n);
    let job = Job {
        n,
        plan: &plan,
        security,
    };
    let mut run = Run {
        job,
        folder: &folder,
        channel: &mut channel,
        listener: Spoken { voice, progress },
    };
    let outcome = pool.install(|| match arguments.role {
        Role::Sender => run.send::<R>(),
        Role::Receiver => run.receive::<R>(),
    })?;
    run.listener.progress.finish_and_clear();

    let mut report = report::<R>(arguments, &plan, &outcome);
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    write_own_report(&folder, &report)?;
    let target = folder.target().to_owned();
    folder.commit()?;
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    report.peak_rss_bytes = peak_memory();
    place.write(&report)?;
    voice.say(summary(
        &report,
        &security_words(security, &plan),
        &outcome,
        &target.display(),
    ));
    Ok(())
}

/// What a run needs until its files are written.
struct Run<'a> {
    job: Job<'a>,
    folder: &'a Folder,
    channel: &'a mut Channel,
    listener: Spoken,
}

impl Run<'_> {
    fn send<R: VoleRing>(&mut self) -> Result<Outcome, Failure> {
        let arrays = [self.array::<R>("u.npy")?, self.array::<R>("v.npy")?];
        let outcome = write_beside(arrays, |put| {
            party::send::<R>(self.job, self.channel, &mut self.listener, put)
        })?;
        self.conclude(outcome)
    }

    fn receive<R: VoleRing>(&mut self) -> Result<Outcome, Failure> {
        let arrays = [self.array::<R>("w.npy")?];
        let mut x_array = Some(Array::<R>::create(self.folder, "x.npy", 1)?);
        let outcome = write_beside(arrays, |put| {
            party::receive::<R>(self.job, self.channel, &mut self.listener, |x, w| {
                if let Some(mut array) = x_array.take() {
                    array.write(&[x])?;
                    array.finish()?;
                }
                put(w)
            })
        })?;
        self.conclude(outcome)
    }

    fn array<R: VoleRing>(&self, name: &'static str) -> Result<Array<R>, Failure> {
        Array::create(self.folder, name, self.job.n)
    }

    fn conclude<R, const K: usize>(
        &mut self,
        (outcome, arrays): (Outcome, [Array<R>; K]),
    ) -> Result<Outcome, Failure>
    where
        R: VoleRing,
    {
        party::conclude(self.channel)?;
        for array in arrays {
            array.finish()?;
        }
        Ok(Outcome {
            traffic: self.channel.stats(),
            ..outcome
        })
    }
}

/// One array on its way, with its path for messages.
struct Array<R> {
    path: PathBuf,
    writer: Writer<R>,
}

impl<R: VoleRing> Array<R> {
    fn create(folder: &Folder, name: &'static str, n: u64) -> Result<Self, Failure> {
        // Messages name the file where it will be, not where it is while it is written.
        let path = folder.target().join(name);
        let writer =
            Writer::new(folder.create(name)?, n).map_err(|error| Failure::file(&path, error))?;
        Ok(Self { path, writer })
    }

    fn write(&mut self, elements: &[R]) -> Result<(), Failure> {
        self.writer
            .write(elements)
            .map_err(|error| Failure::file(&self.path, error))
    }

    fn finish(self) -> Result<(), Failure> {
        self.writer
            .finish()
            .map_err(|error| Failure::file(&self.path, error))
    }
}

/// Runs `body` while another thread writes what `body` puts, so that the disk and the computation do not wait for each
/// other. At most three steps are in memory.
fn write_beside<R: VoleRing, T, const K: usize>(
    mut arrays: [Array<R>; K],
    body: impl FnOnce(
        &mut dyn FnMut([Buffer<R>; K]) -> Result<[Buffer<R>; K], Failure>,
    ) -> Result<T, Failure>,
) -> Result<(T, [Array<R>; K]), Failure> {
    let (full, to_write) = mpsc::sync_channel::<[Buffer<R>; K]>(1);
    let (written, empty) = mpsc::channel::<[Buffer<R>; K]>();
    thread::scope(|scope| {
        let writer = scope.spawn(move || {
            for buffers in to_write {
                for (array, buffer) in arrays.iter_mut().zip(&buffers) {
                    array.write(buffer)?;
                }
                // The other side has stopped listening only when it wants no more buffers.
                let _ = written.send(buffers);
            }
            Ok(arrays)
        });
        let mut in_flight = 0;
        let result = body(&mut |buffers| {
            let room = buffers[0].capacity();
            // The writer stops early only on an error, which joining it gives.
            let stopped = |_| Failure::new(Status::Other, "the output could not be written");
            full.send(buffers).map_err(stopped)?;
            in_flight += 1;
            if in_flight < 3 {
                return Ok([(); K].map(|()| party::buffer(room as u64)));
            }
            empty
                .recv()
                .map_err(|_| stopped(mpsc::SendError([(); K].map(|()| party::buffer(0)))))
        });
        drop(full);
        let arrays = writer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (result, arrays) {
            (Ok(result), Ok(arrays)) => Ok((result, arrays)),
            (_, Err(failure)) | (Err(failure), Ok(_)) => Err(failure),
        }
    })
}

/// Speaks of the phases and moves the progress bar.
struct Spoken {
    voice: Voice,
    progress: ProgressBar,
}

impl party::Listener for Spoken {
    fn phase(&mut self, what: &str) {
        self.progress.suspend(|| self.voice.explain(what));
    }

    fn done(&mut self, count: usize) {
        self.progress.inc(count as u64);
    }
}

/// Bytes of the files of a run.
fn output_bytes<R: VoleRing>(role: Role, n: u64) -> u64 {
    let arrays = match role {
        Role::Sender => 2,
        Role::Receiver => 1,
    };
    n.saturating_mul(arrays * R::BYTES as u64)
}

fn report<R: VoleRing>(arguments: &Arguments, plan: &Plan, outcome: &Outcome) -> Report {
    let traffic = outcome.traffic;
    let arrays: &[(&str, u64)] = match arguments.role {
        Role::Sender => &[("u", arguments.n), ("v", arguments.n)],
        Role::Receiver => &[("x", 1), ("w", arguments.n)],
    };
    let arrays = arrays.iter().map(|&(letter, n)| {
        let entry = serde_json::json!({ "file": format!("{letter}.npy"), "dtype": "uint64", "shape": shape::<R>(n) });
        (letter.to_owned(), entry)
    });
    Report {
        role: Some(arguments.role.name().to_owned()),
        n: Some(arguments.n),
        ring: Some(R::NAME.to_owned()),
        security: Some(arguments.security.to_string()),
        noise: Some(plan.noise().to_string()),
        parameters: Some(plan.describe()),
        assumption: Some(plan.assumption()),
        bytes_sent: Some(traffic.bytes_sent),
        bytes_received: Some(traffic.bytes_received),
        messages: Some(traffic.messages_sent + traffic.messages_received),
        seconds: Seconds {
            setup: Some(outcome.setup.as_secs_f64()),
            extend: Some(outcome.extend.as_secs_f64()),
            ..Seconds::default()
        },
        peak_rss_bytes: peak_memory(),
        result: serde_json::Map::from_iter([
            ("session".to_owned(), party::hex(outcome.session).into()),
            ("security_bits".to_owned(), plan.claimed_bits().into()),
            (
                "setup_bytes_sent".to_owned(),
                outcome.setup_traffic.bytes_sent.into(),
            ),
            (
                "setup_bytes_received".to_owned(),
                outcome.setup_traffic.bytes_received.into(),
            ),
            (
                "arrays".to_owned(),
                serde_json::Value::Object(arrays.collect()),
            ),
        ]),
        ..Report::new("vole")
    }
}

/// Puts the report beside the arrays: they do not say by themselves over which ring they are.
fn write_own_report(folder: &Folder, report: &Report) -> Result<(), Failure> {
    use std::io::Write as _;
    let mut file = folder.create("report.json")?;
    file.write_all(&report.to_json())
        .and_then(|()| file.sync_all())
        .map_err(|error| Failure::file(&folder.target().join("report.json"), error))
}

/// The line that a run ends with.
fn summary(
    report: &Report,
    security: &str,
    outcome: &Outcome,
    target: &dyn std::fmt::Display,
) -> String {
    let n = report.n.unwrap_or_default();
    let traffic = outcome.traffic;
    let each = |value: f64| if n == 0 { 0.0 } else { value / n as f64 };
    let bytes = traffic.bytes_sent + traffic.bytes_received;
    format!(
        "{}: {n} correlations over {}, {}, in {:.3} s ({:.1} ns each), {} bytes sent, {} received ({:.2} bits each), in {target}",
        report.role.as_deref().unwrap_or_default(),
        report.ring.as_deref().unwrap_or_default(),
        security,
        report.seconds.total.unwrap_or_default(),
        each(outcome.total().as_secs_f64() * 1e9),
        traffic.bytes_sent,
        traffic.bytes_received,
        each(8.0 * bytes as f64),
    )
}
