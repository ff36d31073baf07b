//! Time per block of the kernels, at every processor level.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use curve25519_dalek::Scalar;
use volery_primitives::Block;
use volery_primitives::aes::{
    Aes128, double, hash_pairs, hash_words, leaf_pairs, rekeyed_on, split,
};
use volery_primitives::bits::lowest_bits_on;
use volery_primitives::clmul::{gf128_axpy_on, gf128_combine_on, gf128_inner_product_on};
use volery_primitives::cpu::Cpu;
use volery_primitives::cuckoo::{Hasher, Table, bins_for};
use volery_primitives::curve25519;
use volery_primitives::prg::Prg;
use volery_primitives::ristretto::{ENCODED, Points};
use volery_primitives::transpose::transpose_128_on;

/// Blocks per call: input and output fit in a level-1 cache.
const BLOCKS: usize = 1024;

fn kernels(criterion: &mut Criterion) {
    let mut prg = Prg::new(Block::ONE);
    let mut x = vec![Block::ZERO; BLOCKS];
    prg.fill_blocks(&mut x);
    let s = prg.block();
    let mut out = vec![Block::ZERO; BLOCKS];
    let mut words = vec![0; 2 * BLOCKS];
    let mut bits = vec![0; BLOCKS / 8];

    let mut group = criterion.benchmark_group("blocks");
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .throughput(Throughput::Elements(BLOCKS as u64));
    for cpu in Cpu::available() {
        let keys = [1, 2].map(|key| Aes128::with_cpu(Block::new(key), cpu));
        let half = &x[..BLOCKS / 2];
        let mut time = |kernel: &str, run: &mut dyn FnMut()| {
            group.bench_function(format!("{kernel}/{cpu}"), |b| b.iter(&mut *run));
        };
        time("ctr", &mut || keys[0].ctr(7, black_box(&mut out)));
        time("feed_forward", &mut || keys[0].feed_forward(black_box(&x), black_box(&mut out)));
        // Per child.
        time("double", &mut || _ = double(&keys, black_box(half), black_box(&mut out)));
        // Per parent.
        time("leaf_pairs", &mut || leaf_pairs(&keys[0], black_box(&x), black_box(&mut words)));
        // Per child.
        time("split", &mut || {
            split(&keys[0], black_box(half), black_box(&mut out), Block::ALL_ONES);
        });
        // Per parent.
        time("hash_words", &mut || hash_words(&keys[0], black_box(&x), black_box(&mut words)));
        // Per child.
        time("hash_pairs", &mut || _ = hash_pairs(&keys[0], black_box(half), black_box(&mut out)));
        time("rekeyed", &mut || rekeyed_on(cpu, black_box(&x), black_box(&mut out)));
        // Per output.
        time("gf128_combine of four", &mut || {
            gf128_combine_on(cpu, black_box([&x[..]; 4]), [s; 4], black_box(&mut out));
        });
        time("lowest_bits", &mut || lowest_bits_on(cpu, black_box(&x), black_box(&mut bits)));
        time("transpose", &mut || transpose_128_on(cpu, black_box(&x), black_box(&mut out)));
        time("gf128_axpy", &mut || gf128_axpy_on(cpu, black_box(&mut out), s, black_box(&x)));
        time("gf128_inner_product", &mut || {
            black_box(gf128_inner_product_on(cpu, black_box(&x), black_box(&out)));
        });
    }
    group.finish();
}

fn cuckoo(criterion: &mut Criterion) {
    const ITEMS: usize = 1 << 14;
    let mut items = vec![Block::ZERO; ITEMS];
    Prg::new(Block::ONE).fill_blocks(&mut items);
    let hasher = Hasher::new(Block::ONE, bins_for(ITEMS, 40));
    let mut group = criterion.benchmark_group("cuckoo");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .throughput(Throughput::Elements(ITEMS as u64));
    group.bench_function("build", |b| {
        b.iter(|| Table::build(&hasher, black_box(&items)));
    });
    group.finish();
}

/// Elements per call, as in base OT.
const ELEMENTS: usize = 32;

fn curve(criterion: &mut Criterion) {
    let mut prg = Prg::new(Block::ONE);
    let mut strings = vec![[0; 64]; ELEMENTS];
    prg.fill_bytes(strings.as_flattened_mut());
    let scalars: Vec<_> = strings.iter().map(Scalar::from_bytes_mod_order_wide).collect();
    let coordinates: Vec<_> = scalars.iter().map(|scalar| scalar.to_bytes()).collect();
    let mut group = criterion.benchmark_group("elements of Ristretto255");
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .throughput(Throughput::Elements(ELEMENTS as u64));
    for cpu in Cpu::available() {
        let mut time = |what: &str, run: &mut dyn FnMut()| {
            group.bench_function(format!("{what}/{cpu}"), |b| b.iter(&mut *run));
        };
        let points = || Points::from_uniform_on(cpu, &strings);
        let mut encodings = vec![[0; ENCODED]; ELEMENTS];
        points().encode_doubles(&mut encodings);
        time("from_uniform", &mut || drop(points()));
        time("decode", &mut || drop(Points::decode_on(cpu, black_box(&encodings))));
        let mut products = points();
        time("multiply", &mut || products.multiply(black_box(&scalars[0])));
        let one = Points::from_uniform_on(cpu, &strings[..1]);
        time("multiples", &mut || drop(one.multiples(black_box(&scalars))));
        time("of_generator", &mut || drop(Points::of_generator_on(cpu, black_box(&scalars))));
        let points = points();
        time("encode_doubles", &mut || points.encode_doubles(black_box(&mut encodings)));
        time("Montgomery multiply", &mut || {
            drop(curve25519::multiply_on(cpu, &coordinates, black_box(&coordinates)));
        });
    }
    group.finish();
}

criterion_group!(benches, kernels, curve, cuckoo);
criterion_main!(benches);
