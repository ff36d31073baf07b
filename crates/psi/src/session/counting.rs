//! The rows of [`counting`](crate::counting) about the protocol of CCS 2016.

use volery_channel::run_two_parties;

use super::tests::dealt;
use super::*;
use crate::code::{BLOCKS, DISTANCE};
use crate::counting::{Count, bits_of, numbered};
use crate::failure::Scale;
use crate::items::{digests, input};
use crate::matching::Parameters as _;
use crate::receiver_table::Placement;

/// The receiver's items that an intersection of disjoint sets has, with tags of two bytes: a trial
/// is an item.
pub(crate) fn tags() -> Count {
    let [n, m] = [256, 1024];
    let settings = Settings { variant: Variant::Short, both: false };
    let failures = Parameters::new(settings.variant, n, m).failures();
    let bits = bits_of(&failures, "a false match");
    Count::in_turn(16, m, [bits + (m as f64).log2(), 0.1], |trial| {
        let (sender, receiver) = dealt(trial.into());
        let (sent, received) = run_two_parties(
            |channel| sender.intersect(&numbered(0..n), settings, &mut (), channel),
            |channel| receiver.intersect(&numbered(n..n + m), settings, &mut (), channel),
        );
        sent.expect("the run ends");
        received.expect("the run ends").common.len() as u64
    })
}

/// Sets that the first hash functions do not place.
pub(crate) fn table() -> Count {
    let scale = Scale { rarer: -34, ..Scale::RUN };
    let sizes = [5, 8];
    let parameters = Parameters::with_scale(scale, 1, Variant::Kkrt, sizes);
    let what = "the items do not fit into a cuckoo table";
    let bits = bits_of(&parameters.failures(), what);
    Count::whether(20_000, [bits, 2.0], |trial| {
        let agreement = Agreement::numbered(trial, sizes);
        let digests = digests(&agreement.salt(), &numbered(0..sizes[1]), &mut |_| ());
        let placed = Placement::find(&agreement, &parameters, &digests);
        placed.map_or(true, |placed| placed.attempt > 0)
    })
}

/// Sets of which one of the sender's items has a code word close to that of the receiver's item,
/// under any hash function.
pub(crate) fn code() -> Count {
    let scale = Scale { rarer: -35, ..Scale::RUN };
    let parameters = Parameters::with_scale(scale, 1, Variant::Kkrt, [1, 1]);
    let what = "outputs of the code are not pseudorandom";
    let bits = bits_of(&parameters.failures(), what);
    Count::of(20_000, 1, [bits, 0.1], |trial| {
        let agreement = Agreement::numbered(trial, [1, 1]);
        let code = Code::new(&agreement.code(), parameters.width);
        let digests = digests(&agreement.salt(), &numbered(0..2), &mut |_| ());
        let close = (0..parameters.sets()).filter(|set| {
            let inputs = [digests[0], digests[1]].map(|digest| input(digest, *set));
            let mut distance = 0;
            for block in 0..BLOCKS {
                let mut words = [Block::ZERO; 2];
                code.encode(block, &inputs, &mut words);
                distance += u128::from(words[0] ^ words[1]).count_ones() as usize;
            }
            distance < DISTANCE
        });
        close.count() as u64
    })
}
