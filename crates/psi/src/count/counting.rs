//! The row of [`counting`](crate::counting) about the number of common items.

use super::*;
use crate::counting::{Count, bits_of, numbered};
use crate::items::digests;
use crate::matching::Parameters as _;

/// Pairs of different items with one tag: a trial is an item of the receiver.
pub(crate) fn tags() -> Count {
    let [n, m] = [256; 2];
    let parameters = Parameters::with_bits(0, n, m);
    let what = "two different items have the same tag";
    let bits = bits_of(&parameters.failures(), what) + (m as f64).log2();
    Count::of(60, m, [bits, 0.1], |trial| {
        let agreement = Agreement::numbered(trial, [n, m]);
        let items = numbered(0..n + m);
        let run = Run {
            digests: digests(&agreement.salt(), &items, &mut |_| ()),
            agreement,
            parameters,
            transcript: StreamHash::default(),
        };
        let half = half(&scalar(&mut Prg::new(Block::new(trial.into()))));
        let mut points = vec![[0; ENCODED]; items.len()];
        run.points(&run.digests, &half, &mut points);
        let mut outputs = vec![Block::ZERO; items.len()];
        run.hash(&points, &mut outputs);
        let tags: Vec<_> = outputs.iter().map(|&output| parameters.truncate(output)).collect();
        let (ours, theirs) = tags.split_at(n as usize);
        let equal = |tag: &u128| ours.iter().filter(|ours| *ours == tag).count() as u64;
        theirs.iter().map(equal).sum()
    })
}
