//! The row of [`counting`](crate::counting) about filters.

use volery_primitives::Block;
use volery_primitives::prg::Prg;

use super::super::voprf::GENERATOR;
use super::*;
use crate::counting::{Count, bits_of};

const QUERIES: u64 = 1 << 10;

/// A filter of so many outputs.
fn filter(bits: u32, items: u64, rng: &mut Prg) -> Filter {
    let mut outputs: Vec<_> = (0..items).map(|_| u128::from(rng.block())).collect();
    outputs.sort_unstable();
    let layout = Layout::with_bits(bits, items, QUERIES);
    Filter::with_layout(layout, (GENERATOR, QUERIES), &outputs)
}

pub(crate) fn failures() -> Vec<Failure> {
    filter(STATISTICAL, 5, &mut Prg::new(Block::ONE)).failures()
}

/// Queries of items that are not there, answered with yes: a trial is a query.
pub(crate) fn false_yes() -> Count {
    let of = |trial: u64| {
        let mut rng = Prg::new(Block::new(trial.into()));
        (filter(0, 300, &mut rng), rng)
    };
    let what = "a query is answered with a false yes";
    let bits = bits_of(&of(0).0.failures(), what) + (QUERIES as f64).log2();
    Count::of(100, QUERIES, [bits, 0.1], |trial| {
        let (filter, mut rng) = of(trial);
        let yes = (0..QUERIES).filter(|_| filter.find(rng.block().into()).0);
        yes.count() as u64
    })
}
