//! Both parties of an intersection over TCP on this machine, with the times of their phases.
//!
//! Two threads, one a party, each with its own `rayon` pool; the setup with its base OTs is timed
//! with the rest. A run takes as long as its slower party. For the fastest run the program prints
//! when each phase of each party began and ended.
//!
//! ```sh
//! cargo run --release -p volery-psi --example pair -- [LOG_ITEMS] [RUNS] [THREADS_A_PARTY]
//! ```

#![allow(clippy::print_stdout, reason = "the output is its purpose")]

use std::sync::Barrier;
use std::time::{Duration, Instant};

use volery_channel::{Channel, Error as ChannelError, SessionId, run_two_parties_tcp};
use volery_primitives::prg::Prg;
use volery_psi::{Phase, Receiver, Result, Sender, Settings, Watch};

/// The time at which each phase began, from the start of the run.
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

/// Runs one party, and returns the times of its phases.
fn timed(
    barrier: &Barrier,
    party: impl FnOnce(Prg, &mut Clock) -> Result<()>,
) -> Result<Vec<(&'static str, Duration)>> {
    let rng = Prg::from_os().map_err(ChannelError::Io)?;
    barrier.wait();
    let mut clock = Clock {
        start: Instant::now(),
        phases: Vec::new(),
    };
    clock.mark("setup");
    party(rng, &mut clock)?;
    clock.mark("end");
    Ok(clock.phases)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let log: u32 = arguments.next().map_or(Ok(20), |log| log.parse())?;
    let runs: usize = arguments.next().map_or(Ok(5), |runs| runs.parse())?;
    let threads: usize = arguments.next().map_or(Ok(1), |count| count.parse())?;
    let n = 1_u128 << log;
    let items = |from: u128| -> Vec<[u8; 16]> {
        let spread = |i: u128| i.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        (from..from + n).map(|i| spread(i).to_le_bytes()).collect()
    };
    let (ours, theirs) = (items(0), items(n / 2));
    let pool = || rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pools = [pool()?, pool()?];
    let (session, settings) = (SessionId::from_bytes([7; 32]), Settings::default());

    let mut times = Vec::new();
    let mut fastest: Option<(Duration, [Vec<_>; 2])> = None;
    for _ in 0..runs {
        let barrier = Barrier::new(2);
        let send = |channel: &mut Channel| {
            timed(&barrier, |rng, clock| {
                let sender = Sender::setup(session, rng, channel)?;
                sender.intersect(&ours[..], settings, clock, channel)?;
                Ok(())
            })
        };
        let receive = |channel: &mut Channel| {
            timed(&barrier, |rng, clock| {
                let receiver = Receiver::setup(session, rng, channel)?;
                let received = receiver.intersect(&theirs[..], settings, clock, channel)?;
                assert!(received.common.iter().copied().eq(0..n as usize / 2));
                Ok(())
            })
        };
        let (sent, received) = run_two_parties_tcp(
            |channel| pools[0].install(|| send(channel)),
            |channel| pools[1].install(|| receive(channel)),
        );
        let phases = [sent?, received?];
        let ends = phases.iter().filter_map(|phases| phases.last());
        let slower = ends.map(|(_, end)| *end).max().unwrap_or_default();
        times.push(slower);
        if fastest.as_ref().is_none_or(|(time, _)| slower < *time) {
            fastest = Some((slower, phases));
        }
    }
    times.sort();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    if let Some((_, [sender, receiver])) = fastest {
        for (party, phases) in [("sender", sender), ("receiver", receiver)] {
            println!("{party}");
            for pair in phases.windows(2) {
                let [from, to] = [pair[0].1, pair[1].1].map(milliseconds);
                println!(
                    "    {from:8.1} to {to:8.1} ms, {:7.1}: {}",
                    to - from,
                    pair[0].0
                );
            }
        }
        println!(
            "2^{log} items a side, {threads} threads a party, the slower party: median {:.1} ms, {:.1} to {:.1}",
            milliseconds(times[times.len() / 2]),
            milliseconds(times[0]),
            milliseconds(times[times.len() - 1]),
        );
    }
    Ok(())
}
