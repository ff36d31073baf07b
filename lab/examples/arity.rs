//! Benefit of a higher arity: known-index point functions by half-trees and by GGM trees of arity
//! 2, 4, 8 and 16, over four links.
//!
//! The 2019 paper implements binary trees, and conjectures in its conclusion that (k-1)-out-of-k OT
//! for larger k gains efficiency. This measures Protocol 3 on trees of all arities
//! ([`volery_bench::kary`]) beside the half-trees that the streams of this project use
//! ([`volery_pcg::spcot`]).
//!
//! ```text
//! cargo run --profile dist --example arity [-- fp61 | z64 | gf128]
//! ```
//!
//! Both parties run in this process, one thread each, over TCP on the loopback interface, slowed
//! down to the named rate and round trip. The setup of the OT extension (SoftSpoken,
//! malicious-secure) is done before the clock starts; what each run sends for its OTs is in the
//! times and in the bytes. Times are medians of five, from the first byte to the last leaf of
//! either party.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints tables for whoever runs it"
)]

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use volery_bench::kary::{self, Arity};
use volery_channel::tcp::{Listener, Stream};
use volery_channel::{Channel, SessionId, run_two_channels, shaped};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_ot::{
    convert,
    softspoken::{self, SmallField},
};
use volery_pcg::{
    Error, Result,
    ggm::{Growth, Scratch, Shape, TreePrgs, expand},
    spcot,
    tree_batch::TreeBatch,
    wire,
};
use volery_primitives::{
    Block,
    aes::{Aes128, double},
    pages::Buffer,
    prg::Prg,
};

const SESSION: SessionId = SessionId::from_bytes([6; 32]);
const TIMEOUT: Duration = Duration::from_secs(60);
const RUNS: usize = 5;

/// Name, and bits a second and milliseconds to the peer and back.
const LINKS: [(&str, Option<(u64, u64)>); 4] = [
    ("loopback", None),
    ("1Gbit,1ms", Some((1_000_000_000, 1))),
    ("100Mbit,20ms", Some((100_000_000, 20))),
    ("10Mbit,50ms", Some((10_000_000, 50))),
];

/// Trees, and the leaves of each as a power of two.
const WORK: [(usize, u32); 7] = [
    (1, 10),
    (1, 14),
    (1, 17),
    (1, 20),
    (100, 10),
    (100, 13),
    (1000, 13),
];

/// The trees.
#[derive(Clone, Copy)]
enum Method {
    Half,
    Kary(Arity),
}

const METHODS: [Method; 5] = [
    Method::Half,
    Method::Kary(Arity::Two),
    Method::Kary(Arity::Four),
    Method::Kary(Arity::Eight),
    Method::Kary(Arity::Sixteen),
];

impl Method {
    fn name(self) -> String {
        match self {
            Self::Half => "half".to_owned(),
            Self::Kary(arity) => format!("k = {arity}"),
        }
    }

    /// AES calls a leaf in a tree of this many leaves.
    fn aes_calls<R: Ring>(self, leaves: usize) -> f64 {
        match self {
            // One call for the two children of a seed; hashed leaves.
            Self::Half => 0.5 + R::WORDS as f64 / 2.0,
            Self::Kary(arity) => {
                kary::Shape::new(leaves, arity).aes_calls::<R>() as f64 / leaves as f64
            }
        }
    }
}

/// One run as one party saw it.
struct Run {
    start: Instant,
    end: Instant,
    bytes: u64,
}

/// P1.
struct Sender {
    ot: convert::Sender<softspoken::Sender>,
    rng: Prg,
}

impl Sender {
    fn setup(channel: &mut Channel) -> Result<Self> {
        let mut rng = Prg::new(Block::new(1));
        let (field, seed) = (SmallField::default(), rng.fork("ot"));
        let cot = softspoken::Sender::setup(None, field, SESSION, seed, channel)?;
        Ok(Self {
            ot: convert::Sender::new(cot, SESSION),
            rng,
        })
    }

    fn run<R: Ring>(
        &mut self,
        method: Method,
        (trees, size): (usize, usize),
        number: u64,
        leaves: &mut [R],
        channel: &mut Channel,
    ) -> Result<Run> {
        let (beta, before) = (vec![R::ONE; trees], channel.stats());
        channel.send(&[1])?;
        channel.recv(&mut [0; 1])?;
        let start = Instant::now();
        let (rng, ot) = (&mut self.rng, &mut self.ot);
        match method {
            Method::Half => {
                let batch = TreeBatch::regular(trees, size);
                let prgs = TreePrgs::growing(Growth::PseudoCorrelated, SESSION, number);
                let (trees, points) = ((&batch, &prgs), spcot::Points::Chosen(&[]));
                spcot::send(trees, points, &beta, leaves, rng, ot, channel)?;
            }
            Method::Kary(arity) => {
                let batch = kary::punctured_ot::TreeBatch::regular(trees, size, arity);
                let prgs = kary::TreePrgs::new(SESSION, number, arity);
                kary::spfss::send((&batch, &prgs), &beta, leaves, rng, ot, channel)?;
            }
        }
        let end = Instant::now();
        let bytes = (channel.stats() - before).bytes_sent - 1;
        wire::send(&[R::sum(leaves)], channel)?;
        channel.flush()?;
        Ok(Run { start, end, bytes })
    }
}

/// P2.
struct Receiver {
    ot: convert::Receiver<softspoken::Receiver>,
    rng: Prg,
}

impl Receiver {
    fn setup(channel: &mut Channel) -> Result<Self> {
        let mut rng = Prg::new(Block::new(2));
        let (field, seed) = (SmallField::default(), rng.fork("ot"));
        let cot = softspoken::Receiver::setup(field, SESSION, seed, channel)?;
        Ok(Self {
            ot: convert::Receiver::new(cot, SESSION),
            rng,
        })
    }

    fn run<R: Ring>(
        &mut self,
        method: Method,
        (trees, size): (usize, usize),
        number: u64,
        leaves: &mut [R],
        channel: &mut Channel,
    ) -> Result<Run> {
        let (beta, before) = (vec![R::ONE; trees], channel.stats());
        let alphas: Vec<_> = (0..trees)
            .map(|_| self.rng.below(size as u64) as usize)
            .collect();
        channel.recv(&mut [0; 1])?;
        channel.send(&[1])?;
        channel.flush()?;
        let (start, ot) = (Instant::now(), &mut self.ot);
        match method {
            Method::Half => {
                let batch = TreeBatch::regular(trees, size);
                let prgs = TreePrgs::growing(Growth::PseudoCorrelated, SESSION, number);
                let (trees, points) = ((&batch, &prgs), spcot::Points::Chosen(&alphas));
                spcot::receive(trees, points, &beta, leaves, ot, channel)?;
            }
            Method::Kary(arity) => {
                let batch = kary::punctured_ot::TreeBatch::regular(trees, size, arity);
                let prgs = kary::TreePrgs::new(SESSION, number, arity);
                let public = (&batch, &prgs);
                kary::spfss::receive(public, &alphas, &beta, leaves, ot, channel)?;
            }
        }
        let end = Instant::now();
        let bytes = (channel.stats() - before).bytes_sent - 1;
        let mut sum = [R::ZERO];
        wire::recv(&mut sum, "a sum is not in canonical form", channel)?;
        // Each tree has the value 2 at one point.
        let values = beta.iter().fold(R::ZERO, |sum, beta| sum + *beta + R::ONE);
        if sum[0] - R::sum(leaves) != values {
            return Err(Error::PeerMisbehaved("the leaves of the parties differ"));
        }
        Ok(Run { start, end, bytes })
    }
}

/// All runs of one party: for each work and method the first is to warm up.
macro_rules! all_runs {
    ($party:ident, $ring:ident, $channel:ident) => {{
        let mut party = $party::setup($channel)?;
        let most = WORK.iter().map(|(trees, log)| trees << log).max();
        let mut leaves = Buffer::<$ring>::zeroed(most.unwrap_or(0));
        let (mut runs, mut done) = (Vec::new(), 0);
        for (trees, log) in WORK {
            let leaves = &mut leaves[..trees << log];
            for method in METHODS {
                for number in 0..=RUNS {
                    done += 1;
                    let run = party.run(method, (trees, 1 << log), done, leaves, $channel)?;
                    if number > 0 {
                        runs.push(run);
                    }
                }
            }
        }
        Ok::<_, Error>(runs)
    }};
}

/// Both endpoints of a link.
fn link(shape: Option<(u64, u64)>) -> Result<[Channel; 2]> {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let left = Stream::connect(listener.local_addr()?, TIMEOUT)?;
    let ends = [left, listener.accept(TIMEOUT)?];
    Ok(match shape {
        None => ends.map(|end| Channel::with_timeout(end, Some(TIMEOUT))),
        Some((rate, round_trip)) => ends.map(|end| {
            let end = shaped(end, rate, Duration::from_millis(round_trip));
            Channel::with_timeout(end, Some(TIMEOUT))
        }),
    })
}

/// The parallel steps of a party on one thread.
fn alone<T: Send>(party: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("the system gives a thread").install(party)
}

/// Median milliseconds, and bytes of both parties, for each work and method.
fn measure<R: Ring>(shape: Option<(u64, u64)>) -> Result<Vec<(f64, u64)>> {
    let [left, right] = link(shape)?;
    let ((sent, _), (received, _)) = run_two_channels(
        left,
        right,
        |channel| alone(|| all_runs!(Sender, R, channel)),
        |channel| alone(|| all_runs!(Receiver, R, channel)),
    );
    let (sent, received) = (sent?, received?);
    let medians = sent
        .chunks(RUNS)
        .zip(received.chunks(RUNS))
        .map(|(p1, p2)| {
            let mut times: Vec<_> = p1
                .iter()
                .zip(p2)
                .map(|(p1, p2)| p1.end.max(p2.end) - p1.start.min(p2.start))
                .collect();
            times.sort_unstable();
            let bytes = p1[0].bytes + p2[0].bytes;
            (times[RUNS / 2].as_secs_f64() * 1e3, bytes)
        });
    Ok(medians.collect())
}

/// The least nanoseconds that `work` takes, of some tries.
fn nanoseconds(mut work: impl FnMut()) -> f64 {
    let once = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e9
    };
    (0..15).map(once).fold(f64::INFINITY, f64::min)
}

/// The speed of this machine alone, on one thread.
fn calibrate<R: Ring>() {
    const PARENTS: usize = 1 << 11;
    const TIMES: usize = 200;
    let keys = [1, 2].map(|key| Aes128::new(Block::new(key)));
    let (parents, mut children) = (vec![Block::ONE; PARENTS], vec![Block::ZERO; 2 * PARENTS]);
    let time = nanoseconds(|| {
        for _ in 0..TIMES {
            black_box(double(&keys, black_box(&parents), &mut children));
        }
    });
    let blocks = (2 * PARENTS * TIMES) as f64;
    println!("AES: {:.0} million blocks a second", blocks / time * 1e3);
    println!();
    println!("Growing a tree, no protocol:  AES calls a leaf, ns a leaf");
    print!("{:>14}", "leaves");
    METHODS
        .iter()
        .for_each(|method| print!("{:>14}", method.name()));
    println!();
    for log in [10, 13, 17, 20] {
        let n = 1 << log;
        let mut leaves = Buffer::<R>::zeroed(n);
        print!("{:>14}", format!("2^{log}"));
        for method in METHODS {
            let time = match method {
                Method::Half => {
                    let prgs = TreePrgs::growing(Growth::PseudoCorrelated, SESSION, 0);
                    let (prg, mut scratch) = (prgs.tree(0), Scratch::default());
                    let (shape, root) = (Shape::new(n), Block::new(7));
                    nanoseconds(|| {
                        let delta = Block::new(9);
                        black_box(expand(&prg, shape, root, delta, &mut leaves, &mut scratch));
                    })
                }
                Method::Kary(arity) => {
                    let prg = kary::TreePrgs::new(SESSION, 0, arity).tree(0);
                    let (shape, mut scratch) = (kary::Shape::new(n, arity), Default::default());
                    let (mut sums, root) = (vec![Block::ZERO; shape.sums()], Block::new(7));
                    nanoseconds(|| {
                        let (leaves, sums) = (&mut leaves[..], &mut sums[..]);
                        black_box(kary::expand(&prg, shape, root, leaves, sums, &mut scratch));
                    })
                }
            };
            let (calls, time) = (method.aes_calls::<R>(n), time / n as f64);
            print!("{:>14}", format!("{calls:.2}, {time:.2}"));
        }
        println!();
    }
}

/// A table with a row for each work; `best` names at its end the column with the least time.
fn table(title: &str, rows: &[Vec<f64>], digits: usize) {
    println!();
    println!("{title}");
    print!("{:>14}", "trees x leaves");
    METHODS
        .iter()
        .for_each(|method| print!("{:>11}", method.name()));
    println!("   least");
    for ((trees, log), row) in WORK.iter().zip(rows) {
        print!("{:>14}", format!("{trees} x 2^{log}"));
        row.iter().for_each(|value| print!("{value:>11.digits$}"));
        let least = |row: &[f64]| {
            let all = row.iter().copied().enumerate();
            all.min_by(|(_, a), (_, b)| a.total_cmp(b))
                .unwrap_or((0, 0.0))
        };
        let (place, value) = least(row);
        let (arity, of_arities) = least(&row[1..]);
        let gain = 100.0 * (1.0 - of_arities / row[1]);
        println!(
            "   {} ({:.0} % below half); of the arities {} ({gain:.0} % below 2)",
            METHODS[place].name(),
            100.0 * (1.0 - value / row[0]),
            Arity::ALL[arity],
        );
    }
}

fn report<R: Ring>() -> Result<()> {
    println!("Point functions over {}, one thread a party", R::NAME);
    alone(calibrate::<R>);
    for (number, (name, shape)) in LINKS.into_iter().enumerate() {
        let results = measure::<R>(shape)?;
        let rows = |value: fn(&(f64, u64)) -> f64| -> Vec<Vec<f64>> {
            let rows = results.chunks(METHODS.len());
            rows.map(|row| row.iter().map(value).collect()).collect()
        };
        if number == 0 {
            let bytes = rows(|(_, bytes)| *bytes as f64);
            table("Bytes of both parties, OTs included", &bytes, 0);
        }
        let times = rows(|(time, _)| *time);
        table(&format!("{name}: milliseconds"), &times, 2);
    }
    Ok(())
}

fn main() -> ExitCode {
    let ring = std::env::args().nth(1);
    let outcome = match ring.as_deref() {
        None | Some("fp61") => report::<Fp61>(),
        Some("z64") => report::<Z64>(),
        Some("gf128") => report::<Gf128>(),
        Some(_) => {
            eprintln!("usage: arity [fp61 | z64 | gf128]");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
