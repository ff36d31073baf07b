//! Base OT and OT extension, both parties on this machine over memory.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a failed unwrap is a failed benchmark"
)]

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use volery_channel::{SessionId, run_two_parties};
use volery_ot::softspoken::{self, SmallField};
use volery_ot::{CotReceiver, CotSender, base, iknp};
use volery_primitives::Block;
use volery_primitives::prg::Prg;

const SESSION: SessionId = SessionId::from_bytes([1; 32]);
const N: usize = 1 << 18;

fn rng(seed: u128) -> Prg {
    Prg::new(Block::from(seed))
}

fn bench_base(criterion: &mut Criterion) {
    criterion.bench_function("base OT, 128", |bencher| {
        bencher.iter(|| {
            run_two_parties(
                |channel| base::send(128, SESSION, &mut rng(1), channel).unwrap(),
                |channel| base::receive(&[0x5a; 16], 128, SESSION, &mut rng(2), channel).unwrap(),
            )
        });
    });
}

/// `rounds` extensions of `N` after the setup; the time of the slower party.
fn extend(
    rounds: u64,
    sender: &mut (impl CotSender + Send),
    receiver: &mut (impl CotReceiver + Send),
) -> Duration {
    let (left, right) = run_two_parties(
        |channel| {
            let mut v = vec![Block::ZERO; N];
            let start = Instant::now();
            for _ in 0..rounds {
                sender.extend(&mut v, channel).unwrap();
            }
            start.elapsed()
        },
        |channel| {
            let (mut u, mut w) = (vec![0; N / 8], vec![Block::ZERO; N]);
            let start = Instant::now();
            for _ in 0..rounds {
                receiver.extend(&mut u, &mut w, channel).unwrap();
            }
            start.elapsed()
        },
    );
    left.max(right)
}

fn bench_extension(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("extension, 2^18");
    group.throughput(Throughput::Elements(N as u64));
    for field in SmallField::ALL {
        let (mut sender, mut receiver) = run_two_parties(
            |channel| softspoken::Sender::setup(None, field, SESSION, rng(1), channel).unwrap(),
            |channel| softspoken::Receiver::setup(field, SESSION, rng(2), channel).unwrap(),
        );
        group.bench_function(format!("softspoken {}", field.bits()), |bencher| {
            bencher.iter_custom(|rounds| extend(rounds, &mut sender, &mut receiver));
        });
    }
    let (mut sender, mut receiver) = run_two_parties(
        |channel| iknp::Sender::setup(None, SESSION, rng(1), channel).unwrap(),
        |channel| iknp::Receiver::setup(SESSION, rng(2), channel).unwrap(),
    );
    group.bench_function("iknp", |bencher| {
        bencher.iter_custom(|rounds| extend(rounds, &mut sender, &mut receiver));
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = bench_base, bench_extension
}
criterion_main!(benches);
