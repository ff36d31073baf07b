//! The kernels of a vector-OLE, each alone: the time of a leaf of a tree, and of the sum of a
//! column for tables of the sizes in use. `cargo bench -p volery-pcg`.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use volery_channel::SessionId;
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_pcg::{
    ggm::TreePrgs,
    lpn::{
        LocalCode, Pair,
        dual::{Compression, Term},
    },
    punctured_ot::Trees,
    tree_batch::TreeBatch,
};
use volery_primitives::{Block, pages::Buffer, prg::Prg};

fn trees<R: Ring>(criterion: &mut Criterion) {
    let batch = TreeBatch::regular(16, 1 << 12);
    let prgs = TreePrgs::new(SessionId::from_bytes([1; 32]), 0);
    let mut rng = Prg::new(Block::from(1));
    let mut leaves = vec![R::ZERO; batch.leaves()];
    let mut group = criterion.benchmark_group("tree leaf");
    group.throughput(Throughput::Elements(batch.leaves() as u64));
    group.bench_function(R::NAME, |bencher| {
        bencher.iter(|| {
            let trees = Trees::grow(&batch, &prgs, &mut rng, &mut leaves);
            black_box((trees.totals[0], &leaves));
        });
    });
}

fn columns<R: Ring>(criterion: &mut Criterion) {
    let n = 1 << 16;
    let mut rng = Prg::new(Block::from(2));
    let mut group = criterion.benchmark_group(format!("column of {}", R::NAME));
    group.throughput(Throughput::Elements(n as u64));
    for log_k in [16, 17, 18] {
        let k = 1 << log_k;
        let code = LocalCode::new(Block::from(3), k);
        let mut single = Buffer::zeroed(k);
        R::random_slice(&mut rng, &mut single);
        let mut pairs = Buffer::zeroed(k);
        for (pair, entry) in pairs.iter_mut().zip(single.iter()) {
            *pair = Pair {
                u: *entry,
                v: *entry,
            };
        }
        let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
        let mut first = 0;
        group.bench_function(format!("receiver, k = 2^{log_k}"), |bencher| {
            bencher.iter(|| {
                code.encode(&single, first, n, |i, sum| v[i] = R::lazy_finish(sum));
                first += n;
                black_box(&v);
            });
        });
        group.bench_function(format!("sender, k = 2^{log_k}"), |bencher| {
            bencher.iter(|| {
                code.encode(&pairs, first, n, |i, sums| {
                    [u[i], v[i]] = R::pair_finish(sums);
                });
                first += n;
                black_box((&u, &v));
            });
        });
    }
}

fn kernels(criterion: &mut Criterion) {
    trees::<Fp61>(criterion);
    trees::<Z64>(criterion);
    trees::<Gf128>(criterion);
    columns::<Fp61>(criterion);
    columns::<Gf128>(criterion);
}

/// The code of dual LPN, from `256/93 n` values to `n` outputs.
fn compress<T: Term>(criterion: &mut Criterion, name: &str, value: impl Fn(u64) -> T) {
    let mut group = criterion.benchmark_group(format!("dual LPN of {name}"));
    group.sample_size(10);
    for log_n in [14, 20] {
        let len = (1usize << log_n).div_ceil(93) * 256;
        let n = len / 256 * 93;
        let mut values = Buffer::zeroed(len);
        for (i, place) in (0..).zip(values.iter_mut()) {
            *place = value(i);
        }
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(format!("n = 2^{log_n}"), |bencher| {
            bencher.iter(|| {
                let mut code = Compression::new(Block::from(3), len);
                code.absorb(&values);
                let mut left = n;
                while left > 0 {
                    left -= black_box(code.draw(left)).len();
                }
            });
        });
    }
}

fn all_compress(criterion: &mut Criterion) {
    let block = |i| Gf128::new(Block::from(u128::from(i)));
    compress(criterion, "gf128", block);
    compress(criterion, "fp61", Fp61::reduce);
    compress(criterion, "z64", Z64::new);
    compress(criterion, "pairs of fp61", |i| Pair {
        u: Fp61::reduce(i),
        v: Fp61::reduce(i + 1),
    });
}

criterion_group!(benches, kernels, all_compress);
criterion_main!(benches);
