//! The OPRF, set intersection and keyword search, both parties on this machine over memory.
//! `cargo bench -p volery-psi`.
#![allow(clippy::unwrap_used, missing_docs, reason = "a failed unwrap is a failed benchmark")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use volery_channel::{Channel, SessionId, run_two_parties};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::code::Code;
use volery_psi::{Receiver, Sender, Settings, Variant, oprf};

const SESSION: SessionId = SessionId::from_bytes([1; 32]);

/// Instances in a run of the OPRF.
const INSTANCES: usize = 1 << 16;

fn rng(seed: u128) -> Prg {
    Prg::new(Block::new(seed))
}

fn items(from: usize, to: usize) -> Vec<[u8; 16]> {
    (from..to).map(|i| (i as u128).to_le_bytes()).collect()
}

/// Both parties after the offline phase.
fn set_up() -> (Sender, Receiver) {
    run_two_parties(
        |channel| Sender::setup(SESSION, rng(1), channel).unwrap(),
        |channel| Receiver::setup(SESSION, rng(2), channel).unwrap(),
    )
}

fn offline(criterion: &mut Criterion) {
    criterion.bench_function("offline phase", |bencher| bencher.iter(set_up));
}

/// Rows and outputs, each party alone: the other's messages are ready in advance, or are discarded.
fn rows(criterion: &mut Criterion) {
    let (mut sender, mut receiver) = run_two_parties(
        |channel| oprf::Sender::setup(SESSION, rng(1), channel).unwrap(),
        |channel| oprf::Receiver::setup(SESSION, rng(2), channel).unwrap(),
    );
    let code = Code::new(&[3; 32], 448);
    let mut inputs = vec![Block::ZERO; INSTANCES];
    rng(3).fill_blocks(&mut inputs);
    let mut outputs = inputs.clone();
    let mut group = criterion.benchmark_group("oprf");
    group.throughput(Throughput::Elements(INSTANCES as u64));
    group.bench_function("receiver, an instance", |bencher| {
        bencher.iter_batched(
            Channel::memory_pair,
            |(mut near, far)| {
                receiver.extend(&code, &inputs, &mut outputs, &mut near).unwrap();
                (near, far)
            },
            BatchSize::PerIteration,
        );
    });
    let message = vec![0; INSTANCES * code.width() / 8];
    group.bench_function("sender, an instance", |bencher| {
        bencher.iter_batched(
            || {
                let (mut near, far) = Channel::memory_pair();
                near.send(&message).unwrap();
                near.flush().unwrap();
                (near, far)
            },
            |(near, mut far)| {
                let keys = sender.extend(&code, INSTANCES, &mut far).unwrap();
                (near, far, keys)
            },
            BatchSize::PerIteration,
        );
    });
    let (mut near, mut far) = Channel::memory_pair();
    near.send(&message).unwrap();
    near.flush().unwrap();
    let keys = sender.extend(&code, INSTANCES, &mut far).unwrap();
    group.bench_function("sender, the code word of an input", |bencher| {
        bencher.iter(|| {
            sender.shift(&code, &inputs, &mut outputs).unwrap();
            black_box(&outputs);
        });
    });
    // Spread over the table, as bins are.
    let mut rng = rng(4);
    let places: Vec<_> = (0..INSTANCES).map(|_| rng.below(INSTANCES as u64) as u32).collect();
    group.bench_function("sender, an output", |bencher| {
        bencher.iter(|| {
            keys.evaluate_shifted(&code, &places, &inputs, &mut outputs);
            black_box(&outputs);
        });
    });
    group.finish();
}

/// The online phase for two sets of `n` items, half of them common.
fn intersect(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("intersect");
    group.sample_size(10);
    for log in [10, 16] {
        let n = 1 << log;
        let (ours, theirs) = (items(0, n), items(n / 2, n + n / 2));
        group.throughput(Throughput::Elements(n as u64));
        for variant in Variant::ALL {
            let settings = Settings { variant, both: false };
            group.bench_function(format!("{variant}, 2^{log}"), |bencher| {
                bencher.iter_batched(
                    set_up,
                    |(sender, receiver)| {
                        run_two_parties(
                            |channel| sender.intersect(&ours, settings, &mut (), channel).unwrap(),
                            |channel| {
                                receiver.intersect(&theirs, settings, &mut (), channel).unwrap()
                            },
                        )
                    },
                    BatchSize::PerIteration,
                );
            });
        }
    }
    group.finish();
}

/// The online phase for 2^14 keywords on either side, with values of 32 bytes.
fn lookup(criterion: &mut Criterion) {
    let n = 1 << 14;
    let (keywords, wanted) = (items(0, n), items(n / 2, n + n / 2));
    let values = vec![[7; 32]; n];
    let settings = Settings::default();
    let mut group = criterion.benchmark_group("lookup");
    group.sample_size(10);
    group.throughput(Throughput::Elements(n as u64));
    group.bench_function("2^14", |bencher| {
        bencher.iter_batched(
            set_up,
            |(sender, receiver)| {
                run_two_parties(
                    |channel| {
                        sender.answer(&keywords, &values, settings, &mut (), channel).unwrap()
                    },
                    |channel| receiver.search(&wanted, settings, &mut (), channel).unwrap(),
                )
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, offline, rows, intersect, lookup);
criterion_main!(benches);
