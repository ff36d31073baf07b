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
        group.bench_function(format!("ctr/{cpu}"), |b| {
            b.iter(|| keys[0].ctr(7, black_box(&mut out)));
        });
        group.bench_function(format!("feed_forward/{cpu}"), |b| {
            b.iter(|| keys[0].feed_forward(black_box(&x), black_box(&mut out)));
        });
        // Per child.
        group.bench_function(format!("double/{cpu}"), |b| {
            b.iter(|| double(&keys, black_box(&x[..BLOCKS / 2]), black_box(&mut out)));
        });
        // Per parent.
        group.bench_function(format!("leaf_pairs/{cpu}"), |b| {
            b.iter(|| leaf_pairs(&keys[0], black_box(&x), black_box(&mut words)));
        });
        // Per child.
        group.bench_function(format!("split/{cpu}"), |b| {
            let parents = &x[..BLOCKS / 2];
            b.iter(|| split(&keys[0], black_box(parents), black_box(&mut out), Block::ALL_ONES));
        });
        // Per parent.
        group.bench_function(format!("hash_words/{cpu}"), |b| {
            b.iter(|| hash_words(&keys[0], black_box(&x), black_box(&mut words)));
        });
        // Per child.
        group.bench_function(format!("hash_pairs/{cpu}"), |b| {
            b.iter(|| hash_pairs(&keys[0], black_box(&x[..BLOCKS / 2]), black_box(&mut out)));
        });
        group.bench_function(format!("rekeyed/{cpu}"), |b| {
            b.iter(|| rekeyed_on(cpu, black_box(&x), black_box(&mut out)));
        });
        // Per output.
        group.bench_function(format!("gf128_combine of four/{cpu}"), |b| {
            b.iter(|| {
                gf128_combine_on(cpu, black_box([&x[..]; 4]), [s; 4], black_box(&mut out));
            });
        });
        group.bench_function(format!("lowest_bits/{cpu}"), |b| {
            b.iter(|| lowest_bits_on(cpu, black_box(&x), black_box(&mut bits)));
        });
        group.bench_function(format!("transpose/{cpu}"), |b| {
            b.iter(|| transpose_128_on(cpu, black_box(&x), black_box(&mut out)));
        });
        group.bench_function(format!("gf128_axpy/{cpu}"), |b| {
            b.iter(|| gf128_axpy_on(cpu, black_box(&mut out), s, black_box(&x)));
        });
        group.bench_function(format!("gf128_inner_product/{cpu}"), |b| {
            b.iter(|| gf128_inner_product_on(cpu, black_box(&x), black_box(&out)));
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
        let points = || Points::from_uniform_on(cpu, &strings);
        let mut encodings = vec![[0; ENCODED]; ELEMENTS];
        points().encode_doubles(&mut encodings);
        group.bench_function(format!("from_uniform/{cpu}"), |b| b.iter(points));
        group.bench_function(format!("decode/{cpu}"), |b| {
            b.iter(|| Points::decode_on(cpu, black_box(&encodings)));
        });
        group.bench_function(format!("multiply/{cpu}"), |b| {
            let mut points = points();
            b.iter(|| points.multiply(black_box(&scalars[0])));
        });
        group.bench_function(format!("multiples/{cpu}"), |b| {
            let point = Points::from_uniform_on(cpu, &strings[..1]);
            b.iter(|| point.multiples(black_box(&scalars)));
        });
        group.bench_function(format!("of_generator/{cpu}"), |b| {
            b.iter(|| Points::of_generator_on(cpu, black_box(&scalars)));
        });
        group.bench_function(format!("encode_doubles/{cpu}"), |b| {
            let points = points();
            b.iter(|| points.encode_doubles(black_box(&mut encodings)));
        });
        group.bench_function(format!("Montgomery multiply/{cpu}"), |b| {
            b.iter(|| curve25519::multiply_on(cpu, &coordinates, black_box(&coordinates)));
        });
    }
    group.finish();
}

criterion_group!(benches, kernels, curve, cuckoo);
criterion_main!(benches);
