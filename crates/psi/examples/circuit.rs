//! Circuit-PSI between both parties over TCP on this machine: a sum over the common items, opened
//! only if there are enough of them, with bytes and times.
//!
//! Two threads, one a party, each with its own `rayon` pool of one thread; the setup with its base
//! OTs is timed with the rest.
//!
//! ```sh
//! cargo run --release -p volery-psi --example circuit -- LOG_ITEMS RUNS PAYLOAD WEIGHTS FORM
//! ```
//!
//! `PAYLOAD` is the number of the sender's columns, `WEIGHTS` that of the receiver's; the sum of
//! the first column of either is opened. With two columns of weights the last is one of ones, and
//! its sum is compared with 50 first.

#![allow(clippy::print_stdout, reason = "the output is its purpose")]

use std::sync::Barrier;
use std::time::{Duration, Instant};

use volery_channel::{Channel, Error as ChannelError, SessionId, Stats, run_two_parties_tcp};
use volery_primitives::prg::Prg;
use volery_psi::circuit::{Receiver, Sender, Settings, Slice, To};
use volery_psi::vole::Form;
use volery_psi::{Phase, Result, Watch};

/// The fewest common items whose sum is opened.
const LEAST: u64 = 50;

/// The time at which each phase began.
struct Clock {
    start: Instant,
    phases: Vec<(&'static str, Duration)>,
}

impl Clock {
    fn mark(&mut self, what: &'static str) {
        self.phases.push((what, self.start.elapsed()));
    }
}

impl Watch for Clock {
    fn begin(&mut self, phase: Phase, _: u64) {
        self.mark(phase.name());
    }

    fn done(&mut self, _: u64) {}
}

/// The opened sum, the times of the phases, and the traffic.
type Run = (Option<u64>, Clock, Stats);

fn add(sums: &mut [u64; 2], slice: &Slice, count: bool) {
    let column = slice.payload.first().or(slice.weights.first());
    if let Some(column) = column {
        sums[0] = sums[0].wrapping_add(Slice::sum(column));
    }
    if let (true, Some(ones)) = (count, slice.weights.last()) {
        sums[1] = sums[1].wrapping_add(Slice::sum(ones));
    }
}

fn send(
    items: &[[u8; 16]],
    payload: &[&[u64]],
    settings: Settings,
    channel: &mut Channel,
) -> Result<Run> {
    let (mut clock, rng) = begin()?;
    let own = (SESSION, rng);
    let mut sender = Sender::setup(items, payload, settings, own, &mut clock, channel)?;
    clock.mark("slices");
    let (mut sums, count) = ([0; 2], settings.weights > 1);
    while let Some(slice) = sender.next(channel)? {
        add(&mut sums, &slice, count);
    }
    clock.mark("opening");
    let enough = !count || sender.at_least(sums[1], LEAST, channel)?;
    if enough {
        sender.open(&sums[..1], To::Receiver, channel)?;
    }
    clock.mark("end");
    Ok((None, clock, channel.stats()))
}

fn receive(
    items: &[[u8; 16]],
    weights: &[&[u64]],
    settings: Settings,
    channel: &mut Channel,
) -> Result<Run> {
    let (mut clock, rng) = begin()?;
    let own = (SESSION, rng);
    let mut receiver = Receiver::setup(items, weights, settings, own, &mut clock, channel)?;
    clock.mark("slices");
    let (mut sums, count) = ([0; 2], settings.weights > 1);
    while let Some(slice) = receiver.next(channel)? {
        add(&mut sums, &slice, count);
    }
    clock.mark("opening");
    let enough = !count || receiver.at_least(sums[1], LEAST, channel)?;
    let sum = if enough {
        receiver.open(&sums[..1], To::Receiver, channel)?
    } else {
        None
    };
    clock.mark("end");
    Ok((sum.map(|sums| sums[0]), clock, channel.stats()))
}

const SESSION: SessionId = SessionId::from_bytes([7; 32]);

fn begin() -> Result<(Clock, Prg)> {
    let rng = Prg::from_os().map_err(ChannelError::Io)?;
    let (start, phases) = (Instant::now(), Vec::new());
    Ok((Clock { start, phases }, rng))
}

/// The processor time of all threads so far, in seconds; zero where the system does not say.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Numbers 14 and 15 of the line, in hundredths of a second; the name of the program may have
    // spaces.
    let (_, rest) = stat.rsplit_once(')').unwrap_or_default();
    let fields = rest.split_whitespace().skip(11).take(2);
    fields
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| -> std::result::Result<usize, std::num::ParseIntError> {
        arguments.next().map_or(Ok(default), |text| text.parse())
    };
    let (log, runs, payload, weights) = (number(20)?, number(3)?, number(0)?, number(1)?);
    let form = arguments
        .next()
        .map_or(Ok(Form::Fast), |form| form.parse())?;
    let settings = Settings {
        form,
        payload,
        weights,
        ..Settings::default()
    };
    let n = 1_u64 << log;
    let items = |from: u64| -> Vec<[u8; 16]> {
        let spread = |i: u64| u128::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        (from..from + n).map(|i| spread(i).to_le_bytes()).collect()
    };
    let (ours, theirs) = (items(0), items(n / 2));
    let values: Vec<u64> = (0..n)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    let ones = vec![1; n as usize];
    let mut columns = vec![&values[..]; weights.max(1)];
    if weights > 1 {
        columns[weights - 1] = &ones[..];
    }
    let expected = match (payload, weights) {
        (0, 0) => 0,
        (0, _) => Slice::sum(&values[..(n - n / 2) as usize]),
        _ => Slice::sum(&values[(n / 2) as usize..]),
    };
    for _ in 0..runs {
        let barrier = Barrier::new(2);
        let pool = || rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let (one, two) = (pool()?, pool()?);
        let (start, before) = (Instant::now(), processor_time());
        let (sent, received) = run_two_parties_tcp(
            |channel| {
                barrier.wait();
                one.install(|| send(&ours, &vec![&values[..]; payload], settings, channel))
            },
            |channel| {
                barrier.wait();
                two.install(|| receive(&theirs, &columns[..weights], settings, channel))
            },
        );
        let time = start.elapsed();
        let processor = (processor_time() - before) / 2.0;
        let ((_, clock, _), (sum, other, stats)) = (sent?, received?);
        assert_eq!(sum, Some(expected), "the sum in the clear");
        let bytes = (stats.bytes_sent + stats.bytes_received) as f64;
        println!(
            "{form}: {:.2} bytes and {:.2} us an item, of which {:.2} us processor time a party; {} turns",
            bytes / n as f64,
            time.as_secs_f64() * 1e6 / n as f64,
            processor * 1e6 / n as f64,
            stats.turns
        );
        for (party, clock) in [("sender", clock), ("receiver", other)] {
            let phases = clock.phases.iter();
            let phases: Vec<_> = phases
                .map(|(name, at)| format!("{name} {:.2}", at.as_secs_f64()))
                .collect();
            println!("  {party}: {} s", phases.join(", "));
        }
    }
    Ok(())
}
