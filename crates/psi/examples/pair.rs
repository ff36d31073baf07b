//! Both parties of an intersection over TCP on this machine, with the times of their phases.
//!
//! Two threads, one a party, each with its own `rayon` pool; the setup with its base OTs is timed
//! with the rest. A run takes as long as its slower party. For the fastest run the program prints
//! when each phase of each party began and ended.
//!
//! ```sh
//! cargo run --release -p volery-psi --example pair -- [LOG_ITEMS] [RUNS] [THREADS] [PROTOCOL]..
//! ```
//!
//! `LOG_ITEMS` is that of both sets, or `SENDER:RECEIVER`, such as `20:14`.
//!
//! A protocol is `kkrt`, `dh`, `count`, `circuit`, which counts too, or a form of `vole`:
//! `malicious`, `fast`, `low-communication`. With several the runs take turns.

#![allow(clippy::print_stdout, reason = "the output is its purpose")]

use std::sync::Barrier;
use std::time::{Duration, Instant};

use volery_channel::{Channel, Error as ChannelError, Role, SessionId, Stats, run_two_parties_tcp};
use volery_primitives::prg::Prg;
use volery_psi::circuit::Circuit;
use volery_psi::count::Count;
use volery_psi::dh::Dh;
use volery_psi::kkrt::Kkrt;
use volery_psi::matching::{Matching, Output, Party};
use volery_psi::vole::{Form, Vole};
use volery_psi::{Phase, Result, Variant, Watch};

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

/// The times of the phases, and the traffic.
type Run = (Vec<(&'static str, Duration)>, Stats);

/// Runs one party, and returns the times of its phases.
fn timed(barrier: &Barrier, party: impl FnOnce(Prg, &mut Clock) -> Result<Stats>) -> Result<Run> {
    let rng = Prg::from_os().map_err(ChannelError::Io)?;
    barrier.wait();
    let mut clock = Clock { start: Instant::now(), phases: Vec::new() };
    clock.mark("setup");
    let stats = party(rng, &mut clock)?;
    clock.mark("end");
    Ok((clock.phases, stats))
}

/// The results by the name on the command line: a count by `count` and `circuit`, else items.
fn output(name: &str) -> Output {
    match name {
        "count" | "circuit" => Output::count(Role::Receiver),
        _ => Output::Items { both: false, search: false },
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let log = arguments.next().unwrap_or_else(|| "20".to_owned());
    let (sender_log, receiver_log) = log.split_once(':').unwrap_or((&log, &log));
    let (n, m) = (1_u128 << sender_log.parse::<u32>()?, 1_u128 << receiver_log.parse::<u32>()?);
    let runs: usize = arguments.next().map_or(Ok(5), |runs| runs.parse())?;
    let threads: usize = arguments.next().map_or(Ok(1), |count| count.parse())?;
    let items = |from: u128, count: u128| -> Vec<[u8; 16]> {
        let spread = |i: u128| i.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        (from..from + count).map(|i| spread(i).to_le_bytes()).collect()
    };
    let (ours, theirs) = (items(0, n), items(n / 2, m));
    let expected = m.min(n - n / 2) as usize;
    let pool = || rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pools = [pool()?, pool()?];
    let mut protocols: Vec<String> = arguments.collect();
    if protocols.is_empty() {
        protocols.push("kkrt".to_owned());
    }
    let session = SessionId::from_bytes([7; 32]);
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let mut times = vec![Vec::new(); protocols.len()];
    let mut last = vec![None; protocols.len()];
    for run in 0..runs * protocols.len() {
        let number = run % protocols.len();
        let output = output(&protocols[number]);
        let protocol: &dyn Matching = match &protocols[number][..] {
            "count" => &Count,
            "circuit" => &Circuit(Form::Fast),
            "kkrt" => &Kkrt(Variant::Kkrt),
            "dh" => &Dh,
            form => &Vole(form.parse()?),
        };
        let barrier = Barrier::new(2);
        let party = |role, items, channel: &mut Channel| {
            timed(&barrier, |rng, clock| {
                let party = Party { role, session, rng, parts: 1, items, values: None, output };
                let outcome = protocol.run(party, clock, channel)?;
                if role == Role::Receiver {
                    let common = outcome.common.unwrap_or_default();
                    assert!(common.iter().copied().eq(0..common.len()));
                    let count = outcome.count.unwrap_or(common.len() as u64);
                    assert_eq!(count, expected as u64);
                }
                Ok(channel.stats())
            })
        };
        let (sent, received) = run_two_parties_tcp(
            |channel| pools[0].install(|| party(Role::Sender, &ours, channel)),
            |channel| pools[1].install(|| party(Role::Receiver, &theirs, channel)),
        );
        let parties = [sent?, received?];
        let ends = parties.iter().filter_map(|(phases, _)| phases.last());
        let slower = ends.map(|(_, end)| *end).max().unwrap_or_default();
        times[number].push(slower);
        if times[number].iter().min() == Some(&slower) {
            last[number] = Some(parties);
        }
    }
    for ((protocol, times), last) in protocols.iter().zip(&mut times).zip(last) {
        times.sort();
        let Some([sender, receiver]) = last else {
            continue;
        };
        let bytes = sender.1.bytes_sent + sender.1.bytes_received;
        for (party, (phases, _)) in [("sender", sender), ("receiver", receiver)] {
            println!("{protocol}, {party}");
            for pair in phases.windows(2) {
                let [from, to] = [pair[0].1, pair[1].1].map(milliseconds);
                println!("    {from:8.1} to {to:8.1} ms, {:7.1}: {}", to - from, pair[0].0);
            }
        }
        println!(
            "{protocol}, 2^{log} items, {threads} threads a party: {bytes} bytes, {:.2} an item of \
             the larger set; the slower party: median {:.1} ms, {:.1} to {:.1}",
            bytes as f64 / n.max(m) as f64,
            milliseconds(times[times.len() / 2]),
            milliseconds(times[0]),
            milliseconds(times[times.len() - 1]),
        );
    }
    Ok(())
}
