use volery_field::{F2, Fp61, Gf128, Z64};
use volery_primitives::prg::Prg;

use super::{
    scatter::{PARTS, shuffle},
    *,
};

fn drawn<T: Term>(mut code: Compression<T>, pieces: usize) -> Vec<T> {
    let mut out = Vec::new();
    while out.len() < code.outputs() {
        let count = pieces.min(code.outputs() - out.len());
        out.extend_from_slice(code.draw(count));
    }
    out
}

pub(super) fn random<R: Ring>(seed: u128, n: usize) -> Vec<R> {
    let mut out = vec![R::ZERO; n];
    R::random_slice(&mut Prg::new(Block::from(seed)), &mut out);
    out
}

pub(super) fn on_threads<T: Send>(threads: usize, f: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("threads").install(f)
}

/// The code against its definition, with input and output in pieces and in place, on one thread and
/// on several.
fn check<R: Ring>(blocks: usize) {
    let (len, n) = (256 * blocks, 93 * blocks);
    let seed = Block::from(n as u128 + 1);
    let e = random::<R>(2, len);
    let expected = plain::compress(seed, &e);
    for threads in [1, 2, 3, 8] {
        for pieces in [(len, n), (len / 3 / 8 * 8 + 8, 5_000), (1 << 9, 100)] {
            let out = on_threads(threads, || {
                let mut code = Compression::new(seed, len);
                for e in e.chunks(pieces.0) {
                    code.absorb(e);
                }
                drawn(code, pieces.1)
            });
            assert!(out == expected, "{} of {n}, {pieces:?}", R::NAME);
        }
        let mut memory = Buffer::zeroed(Compression::<R>::memory_len(len));
        memory[..len].copy_from_slice(&e);
        let code = on_threads(threads, || Compression::of_first(seed, len, memory));
        assert!(drawn(code, n) == expected, "in place");
    }
    let pairs: Vec<_> = e.iter().map(|v| Pair { u: -*v, v: *v }).collect();
    let mut code = Compression::new(seed, len);
    code.absorb(&pairs);
    for (pair, x) in drawn(code, n).iter().zip(expected) {
        assert!(pair.v == x && pair.u == -x);
    }
}

#[test]
fn the_code_is_its_definition() {
    // One bucket and several, whole ones and others, and chunks that are not full.
    for blocks in [1, 2, 3, 32, 65, 157] {
        check::<Gf128>(blocks);
        check::<Fp61>(blocks);
        check::<Z64>(blocks);
    }
    // As many buckets as all threads fill together, with parts that are not full, and more
    check::<Gf128>(32 * FEWEST + 5);
    check::<Fp61>(32 * FEWEST);
    check::<Z64>(32 * 4 * FEWEST - 3);
}

#[test]
fn several_threads_take_little_more_memory() {
    for count in (0..10).map(|log| 1 << log).filter(|count| *count >= FEWEST) {
        let len = count * BUCKET;
        let most = match count {
            FEWEST => len / 10,
            _ => len / 20,
        };
        let sorter = Sorter::<Z64>::new(count);
        assert!(PARTS * sorter.part() <= most, "{count}");
    }
}

#[test]
fn the_transposed_code_is_the_code() {
    for blocks in [1, 3, 97] {
        let seed = Block::from(5);
        let (message, e) = (random::<F2>(3, 93 * blocks), random::<F2>(4, 256 * blocks));
        let bits = |values: &[F2]| {
            values
                .iter()
                .map(|value| *value == F2::ONE)
                .collect::<Vec<_>>()
        };
        let product =
            |a: &[bool], b: &[bool]| a.iter().zip(b).filter(|(a, b)| **a && **b).count() % 2;
        let x = plain::compress(seed, &e);
        let word = plain::encode(seed, &bits(&message));
        assert_eq!(
            product(&word, &bits(&e)),
            product(&bits(&message), &bits(&x))
        );
    }
}

/// Four elements in four chosen bucket places: all orders, equally often.
#[test]
fn permutations_are_uniform() {
    for len in [5usize, 6] {
        let orders: usize = (1..=len).product();
        let mut hits = std::collections::HashMap::new();
        let runs = 40 * orders;
        for run in 0..runs {
            let order = on_buckets(Block::from(run as u128), len, 4);
            *hits.entry(order).or_insert(0u32) += 1;
        }
        let mean = runs as f64 / orders as f64;
        let missing = (orders - hits.len()) as f64 * mean;
        let square = |hits: &u32| (f64::from(*hits) - mean).powi(2) / mean;
        let chi = hits.values().map(square).sum::<f64>() + missing;
        let (expected, spread) = (orders as f64 - 1.0, 6.0 * (2.0 * orders as f64).sqrt());
        assert!((chi - expected).abs() < spread, "chi-square {chi} of {len}");
    }
}

/// The order in which numbers leave the given buckets.
fn on_buckets(seed: Block, len: usize, count: usize) -> Vec<u64> {
    let aes = Aes128::new(seed);
    let mut store = Store::new(Buffer::zeroed(Store::<Z64>::memory_len(len, count)), 0);
    let mut buckets = Buckets::new(0, count);
    // Running sums of these are 1, 2, and so on.
    store.put(&mut buckets, &vec![Z64::ONE; len], &aes);
    let mut out = Vec::new();
    for bucket in 0..count {
        let mut elements = vec![Z64::ZERO; buckets.len(bucket)];
        store.copy(&buckets, bucket, &mut elements);
        shuffle(&mut elements, (0, bucket), &aes);
        out.extend(elements.iter().map(|value| value.value()));
        store.free(&mut buckets, bucket);
    }
    out
}

/// A long permutation: from each sixteenth of the places to each, equally often, and no neighbours
/// stay together.
#[test]
fn long_permutations_mix() {
    let len = 1 << 17;
    let order = on_buckets(Block::from(77), len, buckets_for(len));
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert!(sorted.iter().copied().eq(1..=len as u64), "a permutation");
    let mut hits = [[0u32; 16]; 16];
    for (to, from) in order.iter().enumerate() {
        hits[to * 16 / len][(*from as usize - 1) * 16 / len] += 1;
    }
    let mean = len as f64 / 256.0;
    let square = |hits: &u32| (f64::from(*hits) - mean).powi(2) / mean;
    let chi: f64 = hits.iter().flatten().map(square).sum();
    // 225 degrees of freedom
    assert!(
        (chi - 225.0).abs() < 6.0 * 450f64.sqrt(),
        "chi-square {chi}"
    );
    let neighbours = order
        .windows(2)
        .filter(|pair| pair[0].abs_diff(pair[1]) == 1);
    assert!(neighbours.count() < 20, "two on average");
}

#[test]
#[should_panic(expected = "all values have been absorbed")]
fn nothing_is_drawn_too_early() {
    let mut code = Compression::new(Block::ONE, 256);
    code.absorb(&[Z64::ONE; 248]);
    code.draw(1);
}

#[test]
#[should_panic(expected = "more than all outputs")]
fn no_more_than_all_is_drawn() {
    let mut code = Compression::new(Block::ONE, 256);
    code.absorb(&[Z64::ONE; 256]);
    assert_eq!(code.draw(1000).len(), 93);
    code.draw(1);
}

#[test]
#[should_panic(expected = "more than all values")]
fn no_more_than_all_values_are_absorbed() {
    let mut code = Compression::new(Block::ONE, 256);
    code.absorb(&[Z64::ONE; 264]);
}
