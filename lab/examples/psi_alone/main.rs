//! The work of each party of an intersection alone, by number of threads.
//!
//! Both parties run once, and the bytes each receives are recorded. Then each runs again alone
//! against the recording, with the same seeds and therefore the same messages: the time is that of
//! its own computation, independent of the other party, whose threads do not compete for the
//! machine. With `kkrt` each phase is shown with the time of its kernels, each measured alone in
//! the same run: the least that one thread needs.
//!
//! ```sh
//! cargo run --profile dist --example psi_alone -- [LOG_ITEMS] [THREADS,..] [PROTOCOL]
//! ```
//!
//! A protocol is `kkrt` or a form of `vole`: `malicious`, `fast`, `low-communication`.

#![allow(clippy::print_stdout, reason = "its output is what it is for")]

mod limits;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use volery_channel::{Channel, Role, SessionId, Transport, memory, run_two_channels};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::kkrt::Kkrt;
use volery_psi::matching::{Matching, Output, Party};
use volery_psi::vole::Vole;
use volery_psi::{Parameters, Phase, Result, Variant, Watch};

use limits::Units;

/// Runs of each measurement; the fastest counts.
const RUNS: usize = 3;

type Record = Arc<Mutex<Vec<u8>>>;

/// A transport that records the received bytes.
struct Recording<T> {
    inner: T,
    received: Record,
}

impl<T: Transport> Transport for Recording<T> {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        self.inner.write(bytes, timeout)
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        let count = self.inner.read(bytes, timeout)?;
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        received.extend_from_slice(&bytes[..count]);
        Ok(count)
    }
}

/// A transport that replays a recording and discards written bytes.
struct Replayed {
    bytes: Arc<Vec<u8>>,
    next: Mutex<usize>,
}

impl Transport for Replayed {
    fn write(&self, _: &[u8], _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], _: Option<Duration>) -> io::Result<usize> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let count = bytes.len().min(self.bytes.len() - *next);
        bytes[..count].copy_from_slice(&self.bytes[*next..*next + count]);
        *next += count;
        Ok(count)
    }
}

/// When each phase began.
#[derive(Default)]
struct Clock {
    phases: Vec<(Phase, Instant)>,
}

impl Watch for Clock {
    fn begin(&mut self, phase: Phase, _: u64) {
        self.phases.push((phase, Instant::now()));
    }

    fn done(&mut self, _: u64) {}
}

/// The time of a run from the beginning of the online phase.
struct Measured {
    total: Duration,
    phases: Vec<(Phase, Duration)>,
}

/// One party's run; an offline phase of its own, which only KKRT has, is not timed.
fn run(
    protocol: &dyn Matching,
    role: Role,
    items: &Vec<[u8; 16]>,
    channel: &mut Channel,
) -> Result<Measured> {
    let mut clock = Clock::default();
    let party = Party {
        role,
        session: SessionId::from_bytes([7; 32]),
        rng: Prg::new(Block::new(role as u128)),
        parts: 1,
        items,
        values: None,
        output: Output::Items {
            both: false,
            search: false,
        },
    };
    protocol.run(party, &mut clock, channel)?;
    let end = Instant::now();
    let ends = clock.phases.iter().skip(1).map(|(_, start)| *start);
    let phases = clock.phases.iter().zip(ends.chain([end]));
    let start = clock.phases.first().map_or(end, |(_, start)| *start);
    Ok(Measured {
        total: end - start,
        phases: phases
            .map(|((phase, start), end)| (*phase, end - *start))
            .collect(),
    })
}

/// The bytes each party receives in a run of both.
fn record(protocol: &dyn Matching, sets: &[Vec<[u8; 16]>; 2]) -> Result<[Arc<Vec<u8>>; 2]> {
    let records = [Record::default(), Record::default()];
    let (left, right) = memory::pair();
    let recording = |inner, record: &Record| {
        Channel::new(Recording {
            inner,
            received: Arc::clone(record),
        })
    };
    let ((sent, _), (received, _)) = run_two_channels(
        recording(left, &records[0]),
        recording(right, &records[1]),
        |channel| run(protocol, Role::Sender, &sets[0], channel),
        |channel| run(protocol, Role::Receiver, &sets[1], channel),
    );
    sent?;
    received?;
    Ok(records.map(|record| {
        let mut bytes = record.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::new(std::mem::take(&mut *bytes))
    }))
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let log: u32 = arguments.next().map_or(Ok(20), |log| log.parse())?;
    let threads = arguments.next().unwrap_or_else(|| "1,2".to_owned());
    let form = arguments.next().filter(|name| name != "kkrt");
    let protocol: &dyn Matching = match &form {
        None => &Kkrt(Variant::Kkrt),
        Some(form) => &Vole(form.parse()?),
    };
    let n = 1_u128 << log;
    let items = |from: u128| -> Vec<[u8; 16]> {
        let spread = |i: u128| i.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        (from..from + n).map(|i| spread(i).to_le_bytes()).collect()
    };
    let sets = [items(0), items(n / 2)];
    let records = record(protocol, &sets)?;

    let parameters = Parameters::new(Variant::Kkrt, n as u64, n as u64);
    let units = match form {
        None => Some(Units::measure(n as usize, &parameters)),
        Some(_) => None,
    };
    println!("2^{log} items a side, {protocol}; the fastest of {RUNS} runs, nanoseconds an item");
    for ((party, items), bytes) in Role::ALL.into_iter().zip(&sets).zip(&records) {
        let mut first = None;
        for count in threads.split(',') {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(count.parse()?)
                .build()?;
            let runs = (0..RUNS).map(|_| {
                let mut channel = Channel::new(Replayed {
                    bytes: Arc::clone(bytes),
                    next: Mutex::new(0),
                });
                pool.install(|| run(protocol, party, items, &mut channel))
            });
            let runs = runs.collect::<Result<Vec<_>>>()?;
            let Some(best) = runs.into_iter().min_by_key(|run| run.total) else {
                continue;
            };
            let each = |time: Duration| time.as_secs_f64() * 1e9 / n as f64;
            let total = each(best.total);
            let ratio = *first.get_or_insert(total) / total;
            println!("{party:?}, {count} threads: {total:.1}, {ratio:.2} times as fast");
            let mut limits = 0.0;
            for (phase, time) in best.phases {
                let time = each(time);
                let limit = units
                    .as_ref()
                    .map(|units| units.limit(party, phase, &parameters));
                match limit.flatten() {
                    Some((limit, uses)) => {
                        limits += limit;
                        let ratio = time / limit;
                        println!(
                            "    {phase:?} {time:.1}, at least {limit:.1}, ratio {ratio:.2}: {uses}"
                        );
                    }
                    None => println!("    {phase:?} {time:.1}"),
                }
            }
            if limits > 0.0 {
                println!("    all at least {limits:.1}, ratio {:.2}", total / limits);
            }
        }
    }
    Ok(())
}
