//! The measurements of the parts, one function per kernel.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::{Link, machine::fastest, parties};
use bytemuck::Zeroable;
use volery_channel::{SessionId, run_two_parties};
use volery_field::Ring;
use volery_ot::{convert, softspoken};
use volery_pcg::Trees;
use volery_pcg::correlation::Correlation as Pipeline;
use volery_pcg::ggm::{self, PuncturedSums, Scratch, TreePrgs};
use volery_pcg::lpn::{Entry, GROUP, Group, LocalCode};
use volery_pcg::tree_batch::TreeBatch;
use volery_primitives::{Aligned, Block, aes::Aes128, bits, pages::Buffer, prg::Prg};

use super::OT_FIELD;
use crate::Result;
use crate::parties::pool;

/// A session id used only for measurements.
const SESSION: SessionId = SessionId::from_bytes([0; 32]);
/// The size of one call of a kernel: leaves, outputs, or OTs.
const BATCH: usize = 1 << 16;

/// Nanoseconds per leaf: grown from roots, and rebuilt from opened sums (any sums: the execution is
/// the same).
pub(super) fn trees<P: Pipeline>(block: usize) -> (f64, f64) {
    let batch = TreeBatch::regular(BATCH.div_ceil(block), block);
    let mut prgs = TreePrgs::growing(P::growth(Trees::Half), SESSION, 0);
    if P::CARRIES {
        prgs = prgs.with_cleared_leaves();
    }
    let mut leaves = Buffer::<P::Ring>::zeroed(batch.leaves());
    let mut scratch = Scratch::default();
    let shape = batch.shape(0);
    let grown = fastest(batch.leaves(), || {
        for (tree, leaves) in leaves.chunks_mut(block).enumerate() {
            let root = black_box(Block::from(tree as u128));
            let sums = ggm::expand(
                &prgs.tree(tree),
                shape,
                root,
                Block::ONE,
                leaves,
                &mut scratch,
            );
            black_box(&sums.leaf);
        }
        black_box(&*leaves);
    });
    let opened = PuncturedSums {
        alpha: block / 3,
        inner: vec![Block::ONE; shape.depth() as usize - 1],
        leaf: P::Ring::ONE,
    };
    let rebuilt = fastest(batch.leaves(), || {
        for (tree, leaves) in leaves.chunks_mut(block).enumerate() {
            let sums = black_box(&opened);
            let prg = prgs.tree(tree);
            black_box(ggm::expand_punctured(&prg, shape, sums, leaves, &mut scratch).0);
        }
        black_box(&*leaves);
    });
    (grown, rebuilt)
}

/// Nanoseconds per leaf: the random linear combination of the check.
pub(super) fn fold<R: Ring>(block: usize) -> f64 {
    let mut rng = Prg::new(Block::ZERO);
    let mut coefficients = vec![R::ZERO; block];
    let mut leaves = Buffer::<R>::zeroed(BATCH.next_multiple_of(block));
    R::random_slice(&mut rng, &mut coefficients);
    R::random_slice(&mut rng, &mut leaves);
    fastest(leaves.len(), || {
        let trees = black_box(&leaves).chunks(block);
        black_box(trees.fold(R::ZERO, |sum, leaves| {
            sum + R::inner_product(&coefficients, leaves)
        }));
    })
}

/// Nanoseconds per output: the positions of its column in a table of entries `E`.
pub(super) fn indices<E: Entry>(k: usize) -> f64 {
    let code = LocalCode::new(Block::ONE, k);
    let mut columns = Group::<E>::new(k);
    let groups = BATCH / GROUP;
    fastest(groups * GROUP, || {
        for group in 0..groups {
            columns.fill(&code, group);
            black_box(&mut columns);
        }
    })
}

/// Nanoseconds per output: the factor of its column, and its products with as many sums of entries.
pub(super) fn factors<R: Ring>(parts: usize) -> f64 {
    let aes = Aes128::new(Block::ONE);
    let mut blocks = [Block::ZERO; GROUP];
    let Aligned([factors, entries, sums]) = &mut Aligned([[R::ONE; GROUP]; 3]);
    fastest(GROUP, || {
        aes.ctr(0, black_box(&mut blocks));
        R::from_blocks(&blocks, factors);
        for _ in 0..parts {
            R::add_products([factors], [black_box(&*entries)], sums);
        }
        black_box(&*sums);
    })
}

/// The tables that the key holder and the value holder read: `k` random entries each.
pub(super) fn tables<P: Pipeline>(k: usize) -> (Buffer<P::Ring>, Buffer<P::Pair>) {
    let mut rng = Prg::new(Block::ONE);
    let mut single = Buffer::<P::Ring>::zeroed(k);
    P::Ring::random_slice(&mut rng, &mut single);
    let mut pairs = Buffer::zeroed(k);
    for (pair, &entry) in pairs.iter_mut().zip(single.iter()) {
        *pair = P::pair(P::Base::random(&mut rng), entry);
    }
    (single, pairs)
}

/// Nanoseconds per output of the local linear code: as one loop, and in pieces.
pub(super) struct Encoding {
    /// Indices and gather.
    pub(super) whole: f64,
    /// Ten entries at known positions, their sum with a share, written.
    pub(super) gather: f64,
    /// One random read from a table of this size.
    pub(super) read: f64,
}

impl Encoding {
    /// With the entries of `table`, and outputs made by `finish` from a sum and a share.
    pub(super) fn of<E: Entry + Zeroable, R: Ring, O: Copy + Zeroable>(
        table: &Buffer<E>,
        finish: impl Fn(E::Sum, R) -> O,
    ) -> Self {
        let (k, table) = (table.len(), &table[..]);
        let mut shares = Buffer::<R>::zeroed(BATCH);
        shares.fill(R::ZERO);
        let mut out = Buffer::<O>::zeroed(BATCH);
        let code = LocalCode::new(Block::ONE, k);
        let mut first = 0;
        let whole = fastest(BATCH, || {
            code.encode(black_box(table), first, BATCH, |i, sum| {
                out[i] = finish(sum, shares[i]);
            });
            first += BATCH;
            black_box(&out[..]);
        });

        // Few enough that reading the positions takes hardly any time, many enough to reach most of
        // the table.
        let groups: Vec<_> = (0..BATCH / 8 / GROUP)
            .map(|number| {
                let mut columns = Group::<E>::new(k);
                columns.fill(&code, number);
                columns
            })
            .collect();
        let gather = fastest(groups.len() * GROUP, || {
            for (number, columns) in groups.iter().enumerate() {
                let first = number * GROUP;
                columns.sums(black_box(table), 0..GROUP, |i, sum| {
                    out[first + i] = finish(sum, shares[first + i]);
                });
            }
            black_box(&out[..]);
        });
        Self {
            whole,
            gather,
            read: match size_of::<E>() {
                8 => reads(k, |sum: u64, entry: u64| sum ^ entry),
                16 => reads(k, |sum: Block, entry: Block| sum ^ entry),
                _ => reads(k, |sum: [Block; 2], entry: [Block; 2]| {
                    [sum[0] ^ entry[0], sum[1] ^ entry[1]]
                }),
            },
        }
    }
}

/// Nanoseconds per read of a random one of `k` entries, with positions known beforehand, so that
/// many are in flight.
fn reads<T: Copy + Zeroable>(k: usize, add: impl Fn(T, T) -> T) -> f64 {
    let mut table = Buffer::<T>::zeroed(k);
    // Memory that was never written may be a single zero page mapped many times.
    table.fill(T::zeroed());
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

/// Nanoseconds per block: its lowest bit, packed.
pub(super) fn choice_bits() -> f64 {
    let mut blocks = vec![Block::ZERO; BATCH];
    Prg::new(Block::ONE).fill_blocks(&mut blocks);
    let mut packed = vec![0; bits::bytes_for(BATCH)];
    fastest(BATCH, || {
        bits::lowest_bits(black_box(&blocks), &mut packed);
        black_box(&packed);
    })
}

/// Nanoseconds per correlated OT between two threads.
pub(super) fn ots() -> Result<f64> {
    const TIMES: usize = 6;
    let pools = [pool(1)?, pool(1)?];
    let (sent, received) = run_two_parties(
        |channel| {
            pools[0].install(|| {
                let rng = Prg::new(Block::ZERO);
                let cot = softspoken::Sender::setup(None, OT_FIELD, SESSION, rng, channel)?;
                let mut ot = convert::Sender::new(cot, SESSION);
                let mut out = vec![Block::ZERO; BATCH];
                (0..TIMES).try_for_each(|_| ot.correlated(&mut out, channel))
            })
        },
        |channel| {
            pools[1].install(|| {
                let rng = Prg::new(Block::ONE);
                let cot = softspoken::Receiver::setup(OT_FIELD, SESSION, rng, channel)?;
                let mut ot = convert::Receiver::new(cot, SESSION);
                let (mut choices, mut out) = (vec![0; BATCH / 8], vec![Block::ZERO; BATCH]);
                let mut best = Duration::MAX;
                for _ in 0..TIMES {
                    let start = Instant::now();
                    ot.correlated(&mut choices, &mut out, channel)?;
                    best = best.min(start.elapsed());
                }
                volery_ot::Result::Ok(best)
            })
        },
    );
    sent?;
    Ok(received?.as_secs_f64() * 1e9 / BATCH as f64)
}

/// Nanoseconds per byte of the link: measured on loopback; the given rate elsewhere.
pub(super) fn transport(link: &Link, timeout: Duration) -> Result<f64> {
    const CHUNKS: usize = 256;
    if let Link::Shaped { rate, .. } = *link {
        return Ok(8e9 / rate as f64);
    }
    let ((), best) = parties::run_both(
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
