//! Measures an OT extension between two parties over loopback TCP, one thread each, both in this
//! process.
//!
//! ```text
//! cargo run --profile dist --example stream -- \
//!     softspoken4 malicious 30000000 [RUNS [MBIT MS]]
//! ```
//!
//! `MBIT MS` simulates a link of that rate and round-trip time between the two; the connection is
//! made before.
//!
//! Protocols: `softspoken1`, `softspoken2`, `softspoken4`, `softspoken8`, with `semi-honest`
//! unchecked, and `iknp`, which is `semi-honest` only. Each run uses a fresh connection, and the
//! outputs go into one reused buffer. The program prints the medians over the runs, of the slower
//! party: the setup (connection and base OTs) in ms, the time per output after that in ns, and the
//! total from connection to `n` outputs in ms; then the bytes sent by the two parties.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for measuring: a failure ends it, and its output is its purpose"
)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use volery_channel::tcp::{Listener, Stream};
use volery_channel::{Channel, SessionId, shaped};
use volery_ot::softspoken::{self, Settings, SmallField};
use volery_ot::{CotReceiver, CotSender, iknp};
use volery_primitives::Block;
use volery_primitives::prg::Prg;

const SESSION: SessionId = SessionId::from_bytes([1; 32]);
/// Outputs asked for at a time.
const CHUNK: usize = 1 << 16;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Bits per second, and the round-trip time.
type Link = Option<(u64, Duration)>;

/// The protocol to run.
#[derive(Clone, Copy)]
struct Task {
    protocol: Protocol,
    n: usize,
    link: Link,
}

#[derive(Clone, Copy)]
enum Protocol {
    SoftSpoken(Settings),
    Iknp,
}

/// The measurements of one party in one run.
#[derive(Clone, Copy)]
struct Times {
    setup: f64,
    total: f64,
    sent: u64,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (task, runs) = parse(&args).expect("PROTOCOL semi-honest|malicious N [RUNS [MBIT MS]]");
    let n = task.n;
    let mut slower = Vec::new();
    let mut sent = [0; 2];
    for _ in 0..runs {
        let times = run(task);
        sent = times.map(|times| times.sent);
        let [a, b] = times;
        slower.push((a.setup.max(b.setup), a.total.max(b.total)));
    }
    let setup = median(slower.iter().map(|run| run.0));
    let total = median(slower.iter().map(|run| run.1));
    let each = median(slower.iter().map(|run| run.1 - run.0)) * 1e9 / n as f64;
    println!(
        "{} n={n} runs={runs} setup_ms={:.3} ns={each:.3} total_ms={:.3} sent={}/{}",
        args[..2].join(" "),
        setup * 1e3,
        total * 1e3,
        sent[0],
        sent[1]
    );
}

fn parse(args: &[String]) -> Option<(Task, usize)> {
    let field = |bits| {
        SmallField::ALL
            .into_iter()
            .find(|field| field.bits() == bits)
    };
    let name = args.first()?;
    let (bits, security) = (name.strip_prefix("softspoken"), args.get(1)?.as_str());
    let protocol = match (bits, security) {
        (Some(bits), "malicious") => {
            Protocol::SoftSpoken(Settings::from(field(bits.parse().ok()?)?))
        }
        (Some(bits), "semi-honest") => Protocol::SoftSpoken(field(bits.parse().ok()?)?.unchecked()),
        (None, "semi-honest") if name == "iknp" => Protocol::Iknp,
        _ => return None,
    };
    let n = args.get(2)?.parse::<f64>().ok()? as usize;
    let runs = args.get(3).map_or(Some(3), |runs| runs.parse().ok())?;
    let link = match (args.get(4), args.get(5)) {
        (Some(rate), Some(trip)) => Some((
            rate.parse::<u64>().ok()? * 1_000_000,
            Duration::from_millis(trip.parse().ok()?),
        )),
        _ => None,
    };
    Some((Task { protocol, n, link }, runs))
}

/// One connection.
fn run(task: Task) -> [Times; 2] {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        let left = scope.spawn(|| alone("sender", || sender(task, &listener)));
        let right = scope.spawn(|| alone("receiver", || receiver(task, address)));
        [left.join().unwrap(), right.join().unwrap()]
    })
}

/// Runs a party with all its work on the calling thread.
fn alone<T: Send>(name: &'static str, party: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    pool.thread_name(|_| name.into())
        .build()
        .unwrap()
        .install(party)
}

fn sender(task: Task, listener: &Listener) -> Times {
    let mut v = vec![Block::ONE; CHUNK];
    let start = Instant::now();
    let stream = listener.accept(TIMEOUT).unwrap();
    let channel = &mut channel(stream, task.link);
    let rng = Prg::new(Block::from(1));
    let mut cot: Box<dyn CotSender> = match task.protocol {
        Protocol::SoftSpoken(settings) => {
            Box::new(softspoken::Sender::setup(None, settings, SESSION, rng, channel).unwrap())
        }
        Protocol::Iknp => Box::new(iknp::Sender::setup(None, SESSION, rng, channel).unwrap()),
    };
    let setup = start.elapsed().as_secs_f64();
    each_chunk(task.n, |len| cot.extend(&mut v[..len], channel).unwrap());
    times(start, setup, channel)
}

fn receiver(task: Task, address: SocketAddr) -> Times {
    let (mut u, mut w) = (vec![1; CHUNK / 8], vec![Block::ONE; CHUNK]);
    let start = Instant::now();
    let stream = Stream::connect(address, TIMEOUT).unwrap();
    let channel = &mut channel(stream, task.link);
    let rng = Prg::new(Block::from(2));
    let mut cot: Box<dyn CotReceiver> = match task.protocol {
        Protocol::SoftSpoken(settings) => {
            Box::new(softspoken::Receiver::setup(settings, SESSION, rng, channel).unwrap())
        }
        Protocol::Iknp => Box::new(iknp::Receiver::setup(SESSION, rng, channel).unwrap()),
    };
    let setup = start.elapsed().as_secs_f64();
    each_chunk(task.n, |len| {
        let bytes = len.div_ceil(8);
        cot.extend(&mut u[..bytes], &mut w[..len], channel).unwrap();
    });
    times(start, setup, channel)
}

fn channel(stream: Stream, link: Link) -> Channel {
    match link {
        Some((rate, trip)) => Channel::with_timeout(shaped(stream, rate, trip), Some(TIMEOUT)),
        None => Channel::with_timeout(stream, Some(TIMEOUT)),
    }
}

fn each_chunk(n: usize, mut make: impl FnMut(usize)) {
    for first in (0..n).step_by(CHUNK) {
        make(CHUNK.min(n - first));
    }
}

fn times(start: Instant, setup: f64, channel: &Channel) -> Times {
    Times {
        setup,
        total: start.elapsed().as_secs_f64(),
        sent: channel.stats().bytes_sent,
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
