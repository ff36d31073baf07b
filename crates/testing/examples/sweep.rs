//! Flips one bit of every byte of every message of the protocols, and prints the flips that were
//! not harmless.
//!
//! `sweep [NAME [POSITIONS]]`: protocols whose name contains `NAME`; of a message of more than
//! `POSITIONS` bytes (default 1,000), only this many, evenly spread. Exits with 1 if there was a
//! finding.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use volery_channel::Role;
use volery_testing::fault::{Fault, FaultKind};
use volery_testing::{Attack, Protocol, benign, messages, registry};

const WORKERS: usize = 8;

const TIMEOUT: Duration = Duration::from_secs(3);

fn attacks(protocol: &Protocol, places: usize) -> Vec<Attack> {
    let mut attacks = Vec::new();
    for (corrupted, (lengths, _)) in Role::ALL.into_iter().zip(messages(protocol)) {
        for (message, length) in (0..).zip(lengths) {
            let count = length.min(places);
            attacks.extend((0..count).map(|i| {
                let at = i * length / count;
                let mask = 1 << ((at + i) % 8);
                let kind = FaultKind::Flip { at, mask };
                let fault = Fault { message, kind };
                Attack { corrupted, fault }
            }));
        }
    }
    attacks
}

#[expect(clippy::print_stdout, reason = "the report of this tool")]
fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let places = arguments.next().and_then(|places| places.parse().ok()).unwrap_or(1000);
    let mut findings = 0;
    let mut total = 0;
    for protocol in registry() {
        if !protocol.name.contains(&name) {
            continue;
        }
        let attacks = attacks(&protocol, places);
        let next = AtomicUsize::new(0);
        let ends = Mutex::new(BTreeMap::new());
        let found = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| {
                    while let Some(attack) = attacks.get(next.fetch_add(1, Ordering::SeqCst)) {
                        let verdict = attack.run(&protocol, TIMEOUT);
                        let mut ends = ends.lock().expect("the lock is not poisoned");
                        *ends.entry(verdict.name()).or_insert(0) += 1;
                        if benign(&protocol, *attack, &verdict).is_none() {
                            let line = format!("{attack:?}: {verdict:?}");
                            found.lock().expect("the lock is not poisoned").push(line);
                        }
                    }
                });
            }
        });
        let (ends, found) = (ends.into_inner(), found.into_inner());
        let (ends, found) =
            (ends.expect("the lock is not poisoned"), found.expect("the lock is not poisoned"));
        println!(
            "{} ({:?}): {} flips, {ends:?}, {} findings",
            protocol.name,
            protocol.model,
            attacks.len(),
            found.len()
        );
        for line in &found {
            println!("  {line}");
        }
        findings += found.len();
        total += attacks.len();
    }
    println!("{total} flips, {findings} findings");
    ExitCode::from(u8::from(findings > 0))
}
