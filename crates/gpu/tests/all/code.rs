//! The local code, and what is made of its outputs.

use volery_field::{Fp61, Gf128, Ring};
use volery_gpu::{
    Code, Device, Entry, Leaf, Memory, Outputs, Trees, exchange_bit, hash_chosen, hash_pairs,
    take_bits,
};
use volery_lpn::{LocalCode, Pair, Parts};
use volery_primitives::{Block, hash::Tweaked};

use super::{blocks, device, random, words};

const DEPTH: u32 = 9;
const SIZE: usize = 1 << DEPTH;
const ROWS: usize = 1 << 12;

/// The outputs of all instances in order, with the leaves of the trees: the parts of each.
fn plain<R: Ring, E: Parts<R, P>, const P: usize, const B: usize>(
    seed: Block,
    table: &[E],
    leaves: &[R],
) -> Vec<[R; P]> {
    let code = LocalCode::new(seed, ROWS);
    let (rows, _) = table.as_chunks::<B>();
    let columns = leaves.len() / B;
    let mut out = vec![[R::ZERO; P]; leaves.len()];
    code.encode_over(rows, 0, columns, |b, first, sums: [&mut [R]; P]| {
        for i in 0..sums[0].len() {
            let column = first + i;
            let place = (column / SIZE * B + b) * SIZE + column % SIZE;
            for (part, sums) in sums.iter().enumerate() {
                out[place][part] = sums[i];
            }
            // The share belongs to `v`, the last.
            out[place][P - 1] += leaves[place];
        }
    });
    out
}

fn check<R: Ring, E: Parts<R, P>, const P: usize, const B: usize>(
    entry: Entry,
    element: fn(Block) -> R,
    make: fn([R; P]) -> E,
    bytes: fn(R) -> Vec<u64>,
    cot: bool,
) {
    let device = device();
    let leaf = match entry {
        Entry::Cot => Leaf::Correlated,
        Entry::Key128 | Entry::Pairs128 => Leaf::Hashed,
        Entry::Key61 | Entry::Pairs61 => Leaf::Words,
    };
    let count = 2 * B;
    let mut trees = Trees::new(&device, leaf, DEPTH, count).unwrap();
    trees.grow(&random(1, count), &random(2, count), Block::from(9)).unwrap();
    let leaves: Vec<u64> = trees.leaves().unwrap().to_vec();
    let leaves: Vec<R> = match leaf {
        Leaf::Words => leaves.iter().map(|word| element(Block::from(u128::from(*word)))).collect(),
        _ => blocks(&leaves).into_iter().map(element).collect(),
    };
    let elements: Vec<R> = random(3, ROWS * B * P).into_iter().map(element).collect();
    let parts = elements.as_chunks::<P>().0;
    let table: Vec<E> = parts.iter().map(|parts| make(*parts)).collect();
    let flat: Vec<u64> = elements.iter().flat_map(|element| bytes(*element)).collect();
    let on_card = Memory::of(&device, &flat).unwrap();
    let seed = random(4, 1)[0];
    let mut expected = if cot {
        // All entries of the code are one.
        plain_cot::<R, E, P, B>(seed, &table, &leaves)
    } else {
        plain::<R, E, P, B>(seed, &table, &leaves)
    };
    let mut code = Code::new(&device, entry, seed, B, ROWS).unwrap();
    if P == 2 {
        let places = [0, 5, SIZE as u64 + 1, (count * SIZE) as u64 - 1];
        let values = random(6, places.len());
        code = code
            .with_noise(
                &places,
                &values.iter().map(|value| reduced(element, bytes, *value)).collect::<Vec<_>>(),
            )
            .unwrap();
        for (place, value) in places.iter().zip(&values) {
            expected[*place as usize][0] += element(*value);
        }
    }
    let total = count * SIZE;
    for (first, end) in
        [(0, total), (0, 1), (1, 2), (511, 513), (37, total - 41), (total - 1, total)]
    {
        let what = format!("{entry:?} x {B}, {first} to {end}");
        let range = &expected[first..end];
        let mut out = Memory::zeroed(&device, range.len() * entry.words()).unwrap();
        code.encode(&on_card, &trees, first, &mut Outputs::Entries(out.all())).unwrap();
        let all = range.iter().flat_map(|parts| parts.iter().flat_map(|part| bytes(*part)));
        assert!(read(&out) == all.collect::<Vec<_>>(), "{what}");
        if P == 2 {
            let half = entry.words() / 2;
            let mut apart = [0, 1].map(|_| Memory::zeroed(&device, range.len() * half).unwrap());
            let [u, v] = &mut apart;
            code.encode(&on_card, &trees, first, &mut Outputs::Apart(u.all(), v.all())).unwrap();
            for (part, memory) in apart.iter().enumerate() {
                let all = range.iter().flat_map(|parts| bytes(parts[part]));
                assert!(read(memory) == all.collect::<Vec<_>>(), "{what}, part {part}");
            }
        }
    }
}

/// A value as the card takes it.
fn reduced<R>(element: fn(Block) -> R, bytes: fn(R) -> Vec<u64>, value: Block) -> Block {
    let words = bytes(element(value));
    Block::from_words(words[0], words.get(1).copied().unwrap_or(0))
}

fn plain_cot<R: Ring, E: Parts<R, P>, const P: usize, const B: usize>(
    seed: Block,
    table: &[E],
    leaves: &[R],
) -> Vec<[R; P]> {
    let code = LocalCode::new(seed, ROWS);
    let mut out = vec![[R::ZERO; P]; leaves.len()];
    code.encode(table.as_chunks::<B>().0, 0, leaves.len() / B, |column, sums| {
        for (b, sum) in sums.into_iter().enumerate() {
            let place = (column / SIZE * B + b) * SIZE + column % SIZE;
            out[place] = E::finish(sum);
            out[place][P - 1] += leaves[place];
        }
    });
    out
}

fn read(memory: &Memory<u64>) -> Vec<u64> {
    let mut out = vec![0; memory.len()];
    memory.read(0, &mut out).unwrap();
    out
}

fn check_all<const B: usize>() {
    let of_block = |value: Gf128| words(&[value.value()]);
    let of_word = |value: Fp61| vec![value.value()];
    let word = |block: Block| Fp61::reduce(block.low());
    check::<Gf128, Gf128, 1, B>(Entry::Cot, Gf128::new, |[w]| w, of_block, true);
    check::<Gf128, Gf128, 1, B>(Entry::Key128, Gf128::new, |[w]| w, of_block, false);
    check::<Gf128, Pair<Gf128>, 2, B>(
        Entry::Pairs128,
        Gf128::new,
        |[u, v]| Pair::new(u, v),
        of_block,
        false,
    );
    check::<Fp61, Fp61, 1, B>(Entry::Key61, word, |[w]| w, of_word, false);
    check::<Fp61, Pair<Fp61>, 2, B>(Entry::Pairs61, word, |[u, v]| Pair::new(u, v), of_word, false);
}

#[test]
#[ignore = "needs a card"]
fn outputs_are_those_of_the_processor() {
    check_all::<1>();
    check_all::<2>();
    check_all::<4>();
}

/// Hashes, choice bits and carriers, of awkward numbers of OTs.
#[test]
#[ignore = "needs a card"]
fn random_ots_are_those_of_the_processor() {
    let device = device();
    let start = random(7, 1)[0];
    let delta = random(8, 1)[0];
    for (count, first) in [(1, 0), (31, 1), (33, 1 << 32), (1000, 5), (100_000, u64::MAX - 7)] {
        let blocks = random(count as u128, count);
        let mut memory = Memory::of(&device, &blocks).unwrap();
        let mut bits = Memory::zeroed(&device, count.div_ceil(32)).unwrap();
        for bit in [0, 1, 31, 32, 77, 127] {
            take_bits(&device, &memory.all(), bit, &mut bits.all()).unwrap();
            let mut out = vec![0u32; bits.len()];
            bits.read(0, &mut out).unwrap();
            for (i, block) in blocks.iter().enumerate() {
                let expected = u128::from(*block) >> bit & 1;
                assert_eq!(u128::from(out[i / 32] >> (i % 32) & 1), expected, "bit {bit} of {i}");
            }
        }
        check_exchange(&device, &blocks);
        // The tweaks of a long stream do not reach 2^64.
        let first = first.min(u64::MAX - count as u64);
        let mut pairs = Memory::zeroed(&device, 2 * count).unwrap();
        hash_pairs(&device, start, first, delta, &memory.all(), &mut pairs.all()).unwrap();
        let mut got = vec![[Block::ZERO; 2]; count];
        pairs.read(0, got.as_flattened_mut()).unwrap();
        let mut expected: Vec<_> = blocks.iter().map(|block| [*block, *block ^ delta]).collect();
        Tweaked::new(start).hash_pairs(u128::from(first), &mut expected);
        assert!(got == expected, "{count} pairs");
        hash_chosen(&device, start, first, &mut memory.all()).unwrap();
        let mut got = vec![Block::ZERO; count];
        memory.read(0, &mut got).unwrap();
        assert!(got.iter().zip(&expected).all(|(got, pair)| *got == pair[0]), "{count} chosen");
    }
}

fn check_exchange(device: &Device, blocks: &[Block]) {
    for other in [0, 1, 31, 32, 77, 127] {
        let mut memory = Memory::of(device, blocks).unwrap();
        exchange_bit(device, &mut memory.all(), other).unwrap();
        let mut got = vec![Block::ZERO; blocks.len()];
        memory.read(0, &mut got).unwrap();
        for (got, block) in got.iter().zip(blocks) {
            let (got, block) = (u128::from(*got), u128::from(*block));
            let differ = (block ^ block >> other) & 1;
            assert_eq!(got, block ^ differ ^ differ << other, "bit {other}");
        }
    }
}
