//! How often a random band matrix lacks full rank: draws matrices, eliminates, counts.
//!
//! ```text
//! cargo run --release -p volery-okvs --example failures -- --plan > crates/okvs/data/failures.csv
//! cargo run --release -p volery-okvs --example failures -- 110 1024 64 1000000 1
//! ```
//!
//! The first line counts the cells of the file of the crate again; two numbers behind `--plan`
//! choose a part of its rows. The second is one cell: expansion in percent, items, width,
//! matrices, seed. A matrix depends on its cell, its number and the seed, never on the threads.
//! The matrices are those of `Shape::of`: a uniform start for each row, a first bit of 1, then
//! `width - 1` random bits. The generator needs to be good in statistics only.
#![allow(clippy::print_stdout, reason = "its output is its purpose")]

use std::ops::BitXorAssign;

use rayon::prelude::*;
use volery_okvs::Shape;

/// The seed of the file.
pub(crate) const SEED: u64 = 1;

/// A row of the file: a cell of the plan, and its count.
pub(crate) struct Cell {
    pub(crate) percent: usize,
    pub(crate) shape: Shape,
    pub(crate) matrices: u64,
    #[allow(dead_code, reason = "the tests compare it")]
    pub(crate) failures: u64,
}

/// The rows of the file.
pub(crate) fn cells() -> Vec<Cell> {
    let cell = |line: &str| {
        let fields = line.split(',').map(|field| field.parse().expect("a number"));
        let fields: Vec<u64> = fields.collect();
        let [percent, items, columns, width, matrices, failures] = fields[..] else {
            panic!("{line}");
        };
        let [percent, items, columns, width] =
            [percent, items, columns, width].map(|number| number as usize);
        Cell { percent, shape: Shape { items, columns, width }, matrices, failures }
    };
    include_str!("../data/failures.csv").lines().skip(2).map(cell).collect()
}

/// xoshiro256++ (Blackman, Vigna: Scrambled linear pseudorandom number generators, 2021).
struct Rng([u64; 4]);

impl Rng {
    /// The state is four outputs of splitmix64, as its authors advise.
    fn new(seed: u64) -> Self {
        Self([1, 2, 3, 4].map(|i| mix(seed.wrapping_add(GOLDEN.wrapping_mul(i)))))
    }

    #[inline]
    fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of splitmix64.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A row of up to `64 * N` bits, from its first 1 on: bit 0 is the column of that 1.
#[derive(Clone, Copy, PartialEq)]
struct Row<const N: usize>([u64; N]);

impl<const N: usize> BitXorAssign for Row<N> {
    #[inline]
    fn bitxor_assign(&mut self, other: Self) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a ^= b;
        }
    }
}

impl<const N: usize> Row<N> {
    const ZERO: Self = Self([0; N]);

    /// A first 1 and `width - 1` random bits.
    #[inline]
    fn draw(rng: &mut Rng, width: usize) -> Self {
        let mut row = [0; N];
        for (i, word) in row.iter_mut().enumerate() {
            let bits = width.saturating_sub(64 * i).min(64);
            if bits > 0 {
                *word = rng.next() >> (64 - bits);
            }
        }
        row[0] |= 1;
        Self(row)
    }

    /// Shifts the row to its first 1 and says by how much; the row is not zero.
    #[inline]
    fn normalize(&mut self) -> usize {
        let mut total = 0;
        while self.0[0] == 0 {
            self.0.rotate_left(1);
            total += 64;
        }
        let zeros = self.0[0].trailing_zeros();
        if zeros > 0 {
            let next = self.0;
            for (i, word) in self.0.iter_mut().enumerate() {
                let high = next.get(i + 1).map_or(0, |next| next << (64 - zeros));
                *word = *word >> zeros | high;
            }
        }
        total + zeros as usize
    }
}

/// Draws one matrix; whether a row vanishes in the elimination.
///
/// The starts are counted, not sorted, and a row is drawn when its column is reached. `pivots` is
/// a ring: only the columns of one band are in reach.
fn vanishes<const N: usize>(
    rng: &mut Rng,
    shape: &Shape,
    starts: &mut [u8],
    pivots: &mut [Row<N>],
) -> bool {
    let (zero, mask) = (Row::ZERO, pivots.len() - 1);
    starts.fill(0);
    pivots.fill(zero);
    for _ in 0..shape.items {
        let start = (u128::from(rng.next()) * starts.len() as u128) >> 64;
        starts[start as usize] += 1;
    }
    for (column, &count) in starts.iter().enumerate() {
        for _ in 0..count {
            let mut row = Row::draw(rng, shape.width);
            let mut at = column;
            loop {
                let pivot = &mut pivots[at & mask];
                if *pivot == zero {
                    *pivot = row;
                    break;
                }
                row ^= *pivot;
                if row == zero {
                    return true;
                }
                at += row.normalize();
            }
        }
        pivots[column & mask] = zero;
    }
    false
}

/// The matrices of one cell that lack full rank.
///
/// # Panics
/// If the width is 0 or above 256.
pub(crate) fn failures(shape: &Shape, matrices: u64, seed: u64) -> u64 {
    match shape.width {
        1..=64 => count::<1>(shape, matrices, seed),
        65..=128 => count::<2>(shape, matrices, seed),
        129..=256 => count::<4>(shape, matrices, seed),
        width => panic!("width {width}: 1 to 256"),
    }
}

fn count<const N: usize>(shape: &Shape, matrices: u64, seed: u64) -> u64 {
    let cell = [shape.items, shape.columns, shape.width]
        .iter()
        .fold(mix(seed), |hash, &part| mix(hash.wrapping_add(GOLDEN) ^ part as u64));
    let starts = shape.columns - shape.width + 1;
    let ring = shape.width.next_power_of_two();
    let block = (1 << 22) / shape.items as u64 + 1;
    (0..matrices.div_ceil(block))
        .into_par_iter()
        .map_init(
            || (vec![0; starts], vec![Row::<N>::ZERO; ring]),
            |(starts, pivots), part| {
                let numbers = part * block..((part + 1) * block).min(matrices);
                let failed = numbers.filter(|&number| {
                    let rng = &mut Rng::new(mix(cell.wrapping_add(number)));
                    vanishes(rng, shape, starts, pivots)
                });
                failed.count() as u64
            },
        )
        .sum()
}

fn line(percent: usize, shape: &Shape, matrices: u64, seed: u64) {
    let failed = failures(shape, matrices, seed);
    let Shape { items, columns, width } = shape;
    println!("{percent},{items},{columns},{width},{matrices},{failed}");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    if arguments.first().is_some_and(|first| first == "--plan") {
        println!("# examples/failures.rs --plan, seed {SEED}");
        println!("percent,items,columns,width,matrices,failures");
        let from = numbers.first().map_or(0, |&from| from as usize);
        let plan = cells();
        let to = numbers.get(1).map_or(plan.len(), |&to| to as usize);
        for cell in &plan[from..to] {
            line(cell.percent, &cell.shape, cell.matrices, SEED);
        }
        return;
    }
    let &[percent, items, width, matrices, seed] = &numbers[..] else {
        panic!("--plan [FROM TO], or: PERCENT ITEMS WIDTH MATRICES SEED");
    };
    let shape = Shape::of(percent as usize, width as usize, items as usize);
    line(percent as usize, &shape, matrices, seed);
}
