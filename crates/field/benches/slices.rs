//! Whole-slice operations on 2^16 elements.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_primitives::{Block, prg::Prg};

const ELEMENTS: usize = 1 << 16;

fn ring<R: Ring>(criterion: &mut Criterion) {
    let mut prg = Prg::new(Block::ONE);
    let mut acc = vec![R::ZERO; ELEMENTS];
    let mut x = vec![R::ZERO; ELEMENTS];
    R::random_slice(&mut prg, &mut acc);
    R::random_slice(&mut prg, &mut x);
    let s = R::random(&mut prg);

    let mut group = criterion.benchmark_group(R::NAME);
    group
        .throughput(Throughput::Elements(ELEMENTS as u64))
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(300));
    group.bench_function("add_slice", |bencher| {
        bencher.iter(|| R::add_slice(&mut acc, black_box(&x)));
    });
    group.bench_function("sum", |bencher| bencher.iter(|| R::sum(black_box(&x))));
    group.bench_function("axpy", |bencher| {
        bencher.iter(|| R::axpy(&mut acc, black_box(s), black_box(&x)));
    });
    group.bench_function("inner_product", |bencher| {
        bencher.iter(|| R::inner_product(black_box(&acc), black_box(&x)));
    });
    group.bench_function("random_slice", |bencher| {
        bencher.iter(|| R::random_slice(&mut prg, &mut acc));
    });
    group.finish();
}

criterion_group!(slices, ring::<Fp61>, ring::<Z64>, ring::<Gf128>);
criterion_main!(slices);
