//! The rows of [`counting`](crate::counting) about VOLE-PSI.

use volery_channel::{Role, SessionId, run_two_parties};
use volery_primitives::Block;
use volery_primitives::prg::Prg;

use super::bins::BinnedSet;
use super::{Form, Parameters, Receiver, Sender, Settings};
use crate::agree::Agreement;
use crate::counting::{Count, bits_of, numbered};
use crate::failure::Scale;
use crate::items::digests;

/// Whether a bin of these inputs of the OPRF overflows.
pub(crate) fn overflows(inputs: &[Block], parameters: &Parameters) -> bool {
    BinnedSet::of(inputs, parameters).is_err()
}

/// Sets of which a bin overflows.
pub(crate) fn bins() -> Count {
    let scale = Scale { bin: 50, rarer: -36, ..Scale::RUN };
    let [n, m] = [600, 400];
    let parameters = Parameters::with_scale(scale, 1, Form::Fast, false, [n, m]);
    assert_eq!(parameters.bins, 8);
    let bits = bits_of(&parameters.failures(), "a bin overflows");
    Count::whether(10_000, [bits, 1.5], |trial| {
        let salt = Agreement::numbered(trial, [n, m]).salt();
        let full = |items| BinnedSet::new(&salt, &numbered(items), &parameters, &mut ()).is_err();
        full(0..n) || full(n..n + m)
    })
}

/// Items that are taken for encoded ones because of their short hash values. The formula adds up
/// all pairs of items; an item that is not encoded meets one value only.
pub(crate) fn values() -> Count {
    let scale = Scale { rarer: -35, ..Scale::RUN };
    let [n, m] = [256, 2];
    let parameters = Parameters::with_scale(scale, 1, Form::Low, false, [n, m]);
    let what = "two different items have the same hash value";
    let bits = bits_of(&parameters.failures(), what);
    Count::of(16_000, 1, [bits, 1.1], |trial| {
        let agreement = Agreement::numbered(trial, [n, m]);
        let functions = parameters.functions(&agreement, 0, &[]);
        let [y, x] =
            [0..n, n..n + m].map(|items| digests(&agreement.salt(), &numbered(items), &mut |_| ()));
        let band = &functions.band;
        let [mut expected, mut decoded] = [(); 2].map(|()| vec![Block::ZERO; y.len()]);
        let mut values = vec![Block::ZERO; x.len()];
        functions.values(&x, &mut values);
        let mut columns = vec![Block::ZERO; parameters.columns];
        let encoded = band.encode(&band.rows(&x), &values, &mut columns);
        encoded.expect("two items");
        band.decode(&band.rows(&y), &columns, &mut decoded);
        functions.values(&y, &mut expected);
        let equal = expected.iter().zip(&decoded).filter(|(a, b)| a == b);
        equal.count() as u64
    })
}

/// The receiver's items that an intersection of disjoint sets has, with short tags: a trial is an
/// item.
pub(crate) fn tags() -> Count {
    let [n, m] = [1 << 6, 1 << 14];
    let scale = Scale { rarer: -45, ..Scale::RUN };
    let parameters = Parameters::with_scale(scale, 1, Form::Fast, false, [n, m]);
    let bits = bits_of(&parameters.failures(), "two different items have the same tag");
    Count::in_turn(8, m, [bits + (m as f64).log2(), 0.1], |trial| {
        let session = SessionId::from_bytes([trial as u8; 32]);
        let rng = |role| Prg::new(Block::from_words(trial, role as u64));
        let mut sender = Sender::new(session, rng(Role::Sender));
        let mut receiver = Receiver::new(session, rng(Role::Receiver));
        (sender.party.scale, receiver.party.scale) = (scale, scale);
        let settings = Settings { form: Form::Fast, both: false };
        let (sent, received) = run_two_parties(
            |channel| sender.intersect(&numbered(0..n), settings, &mut (), channel),
            |channel| receiver.intersect(&numbered(n..n + m), settings, &mut (), channel),
        );
        assert_eq!(sent.expect("the run ends").parameters, parameters);
        received.expect("the run ends").common.len() as u64
    })
}
