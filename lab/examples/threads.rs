//! The speedup by threads: a stream for several numbers of threads of each party.
//!
//! Both parties run once, and the example records what each receives. Then each runs again against
//! the record, with the same seeds and therefore the same messages, while nothing else runs: so the
//! time is that of its own computation, and its threads do not share the machine with those of the
//! other party. The last column has both parties at once over TCP, for machines with enough
//! processors for both. Each party reuses one output buffer; the setup is not timed.
//!
//! ```sh
//! cargo run --profile dist --example threads -- [LOG_N] [THREADS,..] [STREAM,..]
//! ```
//!
//! Streams: the names of protocols as in `--protocol`, for correlated OT; with `fp61-`, `gf128-` or
//! `z64-` in front, for vector OLE. Times are nanoseconds per output, the fastest of three runs; in
//! brackets, the speedup over the first number of threads.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for measuring: a failure ends it, and its output is its purpose"
)]

#[path = "timing/replay.rs"]
mod replay;

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

use volery_channel::tcp::{Listener, Stream};
use volery_channel::{Channel, SessionId};
use volery_field::{Fp61, Gf128, Z64};
use volery_ot::{
    CotReceiver, CotSender, iknp,
    softspoken::{self, SmallField},
};
use volery_pcg::lpn::estimate::Field;
use volery_pcg::vole::{self, VoleRing};
use volery_pcg::{Kind, Plan, PlanOptions, Protocol, Result, Security, cot};
use volery_primitives::{Block, bits::bytes_for, prg::Prg};

use replay::{Recording, record, replay};

/// Runs of each measurement; the fastest counts.
const RUNS: usize = 3;

/// Outputs drawn at a time.
const STEP: usize = 1 << 17;

const SESSION: SessionId = SessionId::from_bytes([7; 32]);
const TIMEOUT: Duration = Duration::from_secs(60);
const BEFOREHAND: Duration = Duration::from_millis(50);

/// The defaults without arguments.
const STREAMS: &str =
    "iknp,softspoken2,softspoken4,softspoken8,primal,low-communication,fp61-primal,gf128-primal";

/// The kind of stream.
#[derive(Clone, Copy)]
struct Task<'a> {
    stream: &'a str,
    n: usize,
}

#[derive(Clone, Copy, Debug)]
enum Party {
    Sender,
    Receiver,
}

/// Seconds that the party takes to draw all, after its setup.
fn run(task: Task<'_>, party: Party, channel: &mut Channel) -> Result<f64> {
    match task.stream.split_once('-') {
        Some(("fp61", protocol)) => draw_vole::<Fp61>(task, protocol, party, channel),
        Some(("gf128", protocol)) => draw_vole::<Gf128>(task, protocol, party, channel),
        Some(("z64", protocol)) => draw_vole::<Z64>(task, protocol, party, channel),
        _ => draw_cot(task, party, channel),
    }
}

/// The cheapest plan of that protocol.
fn plan(kind: Kind, protocol: &str, n: usize, security: Security) -> Plan {
    let protocol: Protocol = protocol.parse().expect("the name of a protocol");
    let options = PlanOptions {
        total: Some(n as u64),
        security,
        protocol,
        ..PlanOptions::default()
    };
    Plan::new(kind, &options).unwrap()
}

fn draw_cot(Task { stream, n }: Task<'_>, party: Party, channel: &mut Channel) -> Result<f64> {
    let field = SmallField::ALL
        .into_iter()
        .find(|field| stream == format!("softspoken{}", field.bits()));
    match party {
        Party::Sender => {
            let rng = Prg::new(Block::from(1));
            let mut sender: Box<dyn CotSender> = match field {
                Some(field) => Box::new(softspoken::Sender::setup(
                    None, field, SESSION, rng, channel,
                )?),
                None if stream == "iknp" => {
                    Box::new(iknp::Sender::setup(None, SESSION, rng, channel)?)
                }
                None => {
                    let plan = plan(Kind::Cot, stream, n, Security::Malicious);
                    Box::new(cot::Sender::setup(&plan, None, SESSION, rng, channel)?)
                }
            };
            let mut v = vec![Block::ZERO; STEP.min(n)];
            timed(n, |step| sender.extend(&mut v[..step], channel))
        }
        Party::Receiver => {
            let rng = Prg::new(Block::from(2));
            let mut receiver: Box<dyn CotReceiver> = match field {
                Some(field) => Box::new(softspoken::Receiver::setup(field, SESSION, rng, channel)?),
                None if stream == "iknp" => Box::new(iknp::Receiver::setup(SESSION, rng, channel)?),
                None => {
                    let plan = plan(Kind::Cot, stream, n, Security::Malicious);
                    Box::new(cot::Receiver::setup(&plan, SESSION, rng, channel)?)
                }
            };
            let (mut u, mut w) = (vec![0; bytes_for(STEP)], vec![Block::ZERO; STEP.min(n)]);
            timed(n, |step| {
                receiver.extend(&mut u[..bytes_for(step)], &mut w[..step], channel)
            })
        }
    }
}

fn draw_vole<R: VoleRing>(
    task: Task<'_>,
    protocol: &str,
    party: Party,
    channel: &mut Channel,
) -> Result<f64> {
    let security = match R::FIELD {
        Field::Z64Odd => Security::SemiHonest,
        _ => Security::Malicious,
    };
    let plan = plan(Kind::Vole(R::FIELD), protocol, task.n, security);
    match party {
        Party::Sender => {
            let rng = Prg::new(Block::from(1));
            let mut sender = vole::Sender::<R>::setup(&plan, SESSION, rng, channel)?;
            let (mut u, mut v) = (
                vec![R::ZERO; STEP.min(task.n)],
                vec![R::ZERO; STEP.min(task.n)],
            );
            timed(task.n, |step| {
                sender.extend(&mut u[..step], &mut v[..step], channel)
            })
        }
        Party::Receiver => {
            let rng = Prg::new(Block::from(2));
            let mut receiver = vole::Receiver::<R>::setup(&plan, None, SESSION, rng, channel)?;
            let mut w = vec![R::ZERO; STEP.min(task.n)];
            timed(task.n, |step| receiver.extend(&mut w[..step], channel))
        }
    }
}

/// Draws `n` in steps.
fn timed(n: usize, mut draw: impl FnMut(usize) -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    let mut left = n;
    while left > 0 {
        let step = left.min(STEP);
        draw(step)?;
        left -= step;
    }
    Ok(start.elapsed().as_secs_f64())
}

/// The messages that each party receives.
fn recorded(task: Task<'_>) -> [Recording; 2] {
    let party = |party| move |channel: &mut Channel| run(task, party, channel).unwrap();
    let (sender, receiver) = (party(Party::Sender), party(Party::Receiver));
    [record(sender, receiver).1, record(receiver, sender).1]
}

/// A party in a pool of `threads` threads, which are busy beforehand: a system takes a while to
/// give each a separate processor.
fn with_threads(
    name: &str,
    threads: usize,
    task: Task<'_>,
    party: Party,
    channel: &mut Channel,
) -> f64 {
    let name = format!("{name}-{party:?}");
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(move |_| name.clone());
    let pool = pool.build().unwrap();
    let start = Instant::now();
    pool.broadcast(|_| {
        while start.elapsed() < BEFOREHAND {
            hint::spin_loop();
        }
    });
    pool.install(|| run(task, party, channel)).unwrap()
}

/// A party against the record.
fn alone(threads: usize, task: Task<'_>, party: Party, recording: &Recording) -> f64 {
    let mut channel = replay(recording.clone(), recording.len());
    with_threads("alone", threads, task, party, &mut channel)
}

/// Both parties over TCP; the slower one's time.
fn together(threads: usize, task: Task<'_>) -> f64 {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let mut channel = Channel::new(Stream::connect(address, TIMEOUT).unwrap());
            with_threads("both", threads, task, Party::Receiver, &mut channel)
        });
        let mut channel = Channel::new(listener.accept(TIMEOUT).unwrap());
        let sender = with_threads("both", threads, task, Party::Sender, &mut channel);
        sender.max(receiver.join().unwrap())
    })
}

fn fastest(mut measure: impl FnMut() -> f64) -> f64 {
    (0..RUNS).map(|_| measure()).fold(f64::INFINITY, f64::min)
}

fn main() {
    let mut args = std::env::args().skip(1);
    let log: u32 = args.next().map_or(23, |log| log.parse().unwrap());
    let threads = args.next().unwrap_or_else(|| "1,2,4".into());
    let threads: Vec<usize> = threads.split(',').map(|t| t.parse().unwrap()).collect();
    let streams = args.next().unwrap_or_else(|| STREAMS.into());
    let processors = thread::available_parallelism().map_or(1, usize::from);
    println!("2^{log} outputs, {processors} processors; nanoseconds an output");
    println!("stream              threads   sender alone  receiver alone    both over TCP");
    for stream in streams.split(',') {
        let n = 1 << log;
        let task = Task { stream, n };
        let [to_sender, to_receiver] = recorded(task);
        let mut first: Option<[f64; 3]> = None;
        for &threads in &threads {
            let measured = [
                fastest(|| alone(threads, task, Party::Sender, &to_sender)),
                fastest(|| alone(threads, task, Party::Receiver, &to_receiver)),
                fastest(|| together(threads, task)),
            ];
            let first = *first.get_or_insert(measured);
            let columns = measured.iter().zip(first).map(|(seconds, first)| {
                let each = seconds * 1e9 / n as f64;
                format!("  {each:7.2} ({:5.2})", first / seconds)
            });
            println!("{stream:20}{threads:6}{}", columns.collect::<String>());
        }
    }
}
