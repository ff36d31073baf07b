//! The measurements of the parts, one function a kernel.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytemuck::Zeroable;
use volery_channel::{SessionId, run_two_parties};
use volery_ot::flavour;
use volery_ot::softspoken::{self, SmallField};
use volery_pcg::forest::Forest;
use volery_pcg::ggm::{self, PuncturedSums, Scratch, TreePrgs};
use volery_pcg::lpn::{LocalCode, Pair, WEIGHT};
use volery_pcg::rot::Trees;
use volery_pcg::vole::VoleRing;
use volery_primitives::{Block, pages::Buffer, prg::Prg};

use crate::calibration::fastest;
use crate::command::options::pool;
use crate::exit::Failure;
use crate::link::{self, Link};

/// A session for measurements alone.
const SESSION: SessionId = SessionId::from_bytes([0; 32]);
/// The OT extension that a stream uses.
pub(super) const OT_FIELD: SmallField = SmallField::Bits8;
/// What a kernel works on in one go: leaves, outputs, or OTs.
const BATCH: usize = 1 << 16;

/// Nanoseconds a leaf: grown from roots, and rebuilt from opened sums (any sums: the course is the same).
pub(super) fn trees<R: VoleRing>(block: usize) -> (f64, f64) {
    let forest = Forest::regular(BATCH.div_ceil(block), block);
    let prgs = TreePrgs::new(SESSION, 0);
    let mut rng = Prg::new(Block::ZERO);
    let mut leaves = Buffer::<R>::zeroed(forest.leaves());
    let grown = fastest(forest.leaves(), || {
        let trees = Trees::grow(&forest, &prgs, &mut rng, &mut leaves);
        black_box((&trees.totals, &*leaves));
    });
    let shape = forest.shape(0);
    let opened = PuncturedSums {
        alpha: block / 3,
        inner: vec![Block::ONE; shape.depth() as usize - 1],
        leaf: R::ONE,
    };
    let mut scratch = Scratch::default();
    let rebuilt = fastest(forest.leaves(), || {
        for (tree, leaves) in leaves.chunks_mut(block).enumerate() {
            let prg = prgs.tree(tree);
            let sums = black_box(&opened);
            black_box(ggm::expand_punctured(&prg, shape, sums, leaves, &mut scratch).0);
        }
        black_box(&*leaves);
    });
    (grown, rebuilt)
}

/// Nanoseconds an output of the local linear code with `k` rows: the sender's, the receiver's.
pub(super) fn columns<R: VoleRing>(k: usize) -> [f64; 2] {
    let code = LocalCode::new(Block::ONE, k);
    let mut single = Buffer::<R>::zeroed(k);
    R::random_slice(&mut Prg::new(Block::ONE), &mut single);
    let mut pairs = Buffer::zeroed(k);
    for (pair, &entry) in pairs.iter_mut().zip(single.iter()) {
        *pair = Pair { u: entry, v: entry };
    }
    let [mut u, mut v] = [(); 2].map(|()| vec![R::ZERO; BATCH]);
    let mut first = 0;
    let sender = fastest(BATCH, || {
        code.encode(&pairs, first, BATCH, |i, (sum_u, sum_v)| {
            u[i] = R::lazy_finish(sum_u);
            v[i] = R::lazy_finish(sum_v);
        });
        first += BATCH;
        black_box((&u, &v));
    });
    let receiver = fastest(BATCH, || {
        code.encode(&single, first, BATCH, |i, sum| v[i] = R::lazy_finish(sum));
        first += BATCH;
        black_box(&v);
    });
    [sender, receiver]
}

/// Nanoseconds that an output takes at best: the sender's, the receiver's.
pub(super) fn column_limits<R: VoleRing>(k: usize, aes: f64) -> [f64; 2] {
    // The code cuts a block into six places where `k` is a power of two, into four elsewhere.
    let places_a_block = if k.is_power_of_two() { 6.0 } else { 4.0 };
    let xor = |sum: Block, entry: Block| sum ^ entry;
    let reads = if R::WORDS == 1 {
        [reads(k, xor), reads(k, |sum: u64, entry: u64| sum ^ entry)]
    } else {
        let xor_two = |sum: [Block; 2], entry: [Block; 2]| [sum[0] ^ entry[0], sum[1] ^ entry[1]];
        [reads(k, xor_two), reads(k, xor)]
    };
    reads.map(|read| WEIGHT as f64 * (read + aes / places_a_block))
}

/// Nanoseconds a read of a random one of `k` entries, the places known beforehand, so that many are in flight.
fn reads<T: Copy + Zeroable>(k: usize, add: impl Fn(T, T) -> T) -> f64 {
    let table = Buffer::<T>::zeroed(k);
    let mut rng = Prg::new(Block::ONE);
    let places: Vec<_> = (0..2 * BATCH).map(|_| rng.below(k as u64) as u32).collect();
    fastest(places.len(), || {
        let table = black_box(&table[..]);
        black_box(
            places
                .iter()
                .fold(T::zeroed(), |sum, &place| add(sum, table[place as usize])),
        );
    })
}

/// Nanoseconds an OT of chosen blocks between two threads.
pub(super) fn ots() -> Result<f64, Failure> {
    const TIMES: usize = 6;
    let pools = [pool(1)?, pool(1)?];
    let (sent, received) = run_two_parties(
        |channel| {
            pools[0].install(|| {
                let rng = Prg::new(Block::ZERO);
                let cot = softspoken::Sender::setup(None, OT_FIELD, SESSION, rng, channel)?;
                let mut ot = flavour::Sender::new(cot, SESSION);
                let messages = vec![[Block::ONE; 2]; BATCH];
                (0..TIMES).try_for_each(|_| ot.chosen(&messages, channel))
            })
        },
        |channel| {
            pools[1].install(|| {
                let rng = Prg::new(Block::ONE);
                let cot = softspoken::Receiver::setup(OT_FIELD, SESSION, rng, channel)?;
                let mut ot = flavour::Receiver::new(cot, SESSION);
                let (choices, mut out) = (vec![0x5a; BATCH / 8], vec![Block::ZERO; BATCH]);
                let mut best = Duration::MAX;
                for _ in 0..TIMES {
                    let start = Instant::now();
                    ot.chosen(&choices, &mut out, channel)?;
                    best = best.min(start.elapsed());
                }
                volery_ot::Result::Ok(best)
            })
        },
    );
    sent?;
    Ok(received?.as_secs_f64() * 1e9 / BATCH as f64)
}

/// Nanoseconds a byte of the link: measured on loopback; the rate asked for elsewhere.
pub(super) fn transport(link: &Link, timeout: Duration) -> Result<f64, Failure> {
    const CHUNKS: usize = 256;
    if let Link::Shaped { rate, .. } = *link {
        return Ok(8e9 / rate as f64);
    }
    let ((), best) = link::run_both(
        link,
        timeout,
        |channel| {
            let chunk = vec![1; BATCH];
            (0..=CHUNKS).try_for_each(|_| channel.send(&chunk))?;
            Ok(channel.flush()?)
        },
        |channel| {
            let mut chunk = vec![0; BATCH];
            channel.recv(&mut chunk)?;
            let start = Instant::now();
            (0..CHUNKS).try_for_each(|_| channel.recv(&mut chunk))?;
            Ok(start.elapsed())
        },
    )?;
    Ok(best.as_secs_f64() * 1e9 / (CHUNKS * BATCH) as f64)
}
