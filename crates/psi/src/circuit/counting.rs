//! The rows of [`counting`](crate::counting) about circuit-PSI.

use volery_channel::run_two_parties;

use super::*;
use crate::counting::{Count, bits_of, numbered};
use crate::failure::Scale;
use crate::vole::counting::overflows;

fn parameters(scale: Scale, sizes: [u64; 2]) -> Parameters {
    Parameters::with_scale(scale, Settings::default(), sizes)
}

/// The digests of two disjoint sets.
fn sets(agreement: &Agreement) -> [Buffer<Block>; 2] {
    let [n, m] = [agreement.sender_items, agreement.receiver_items];
    [0..n, n..n + m].map(|items| digests(&agreement.salt(), &numbered(items), &mut |_| ()))
}

/// Sets of which a bin of the OPRF overflows.
pub(crate) fn bins() -> Count {
    let scale = Scale { bin: 64, rarer: -36, ..Scale::RUN };
    let sizes = [300, 256];
    let parameters = parameters(scale, sizes);
    assert_eq!(parameters.oprf.bins, 4);
    let bits = bits_of(&parameters.failures(), "a bin overflows");
    Count::whether(20_000, [bits, 1.5], |trial| {
        let agreement = Agreement::numbered(trial, sizes);
        let [y, x] = sets(&agreement);
        let placed = BinInputs::new(&agreement, &parameters, &y).expect("there is one slice");
        let full = |inputs: &[Block]| overflows(inputs, &parameters.oprf);
        let inputs = place(&agreement, &parameters, &x).map(|(_, inputs, _)| inputs);
        full(&placed.inputs) || inputs.is_ok_and(|inputs| full(&inputs))
    })
}

/// Sets that do not fit into the table.
pub(crate) fn table(items: u64, runs: u64) -> Count {
    let scale = Scale { rarer: -35, ..Scale::RUN };
    let sizes = [5, items];
    let parameters = parameters(scale, sizes);
    let what = "the receiver's items do not fit into the cuckoo table";
    let bits = bits_of(&parameters.failures(), what);
    Count::whether(runs, [bits, 2.0], |trial| {
        let agreement = Agreement::numbered(trial, sizes);
        let [_, x] = sets(&agreement);
        place(&agreement, &parameters, &x).is_err()
    })
}

/// Sets of which a slice has too many hints.
pub(crate) fn slices() -> Count {
    let scale = Scale { slice: 100, rarer: -41, ..Scale::RUN };
    let sizes = [400, 300];
    let parameters = parameters(scale, sizes);
    let bits = bits_of(&parameters.failures(), "a slice has too many hints");
    Count::whether(20_000, [bits, 4.0], |trial| {
        let agreement = Agreement::numbered(trial, sizes);
        let [y, _] = sets(&agreement);
        BinInputs::new(&agreement, &parameters, &y).is_err()
    })
}

/// Bins of disjoint sets that a run with short values takes for common: a trial is a bin.
pub(crate) fn values() -> Count {
    const SIZES: [u64; 2] = [20_000; 2];
    let settings = Settings::default();
    let of = |[n, m]: [u64; 2]| {
        let mut parameters = Parameters::new(settings, n, m);
        parameters.value_bits = 9;
        parameters
    };
    let parameters = of(SIZES);
    let what = "the values of a bin are equal and its items are not";
    let bits = bits_of(&parameters.failures(), what) + (parameters.bins as f64).log2();
    let chances = parameters.bins as u64;
    Count::in_turn(1, chances, [bits, 0.1], |trial| {
        let session = SessionId::from_bytes([trial as u8; 32]);
        let rng = |role| Prg::new(Block::from_words(trial, role as u64));
        let [n, m] = SIZES;
        let (sent, received) = run_two_parties(
            |channel| -> Result<Vec<u8>> {
                let (own, items) = ((session, rng(Role::Sender)), numbered(0..n));
                let mut party = Sender::with(of, (&items, &[]), settings, own, &mut (), channel)?;
                let slice = party.next(channel)?.expect("a slice");
                assert!(party.next(channel)?.is_none());
                Ok(slice.bits.to_vec())
            },
            |channel| -> Result<Vec<u8>> {
                let (own, items) = ((session, rng(Role::Receiver)), numbered(n..n + m));
                let mut party = Receiver::with(of, (&items, &[]), settings, own, &mut (), channel)?;
                let slice = party.next(channel)?.expect("a slice");
                assert!(party.next(channel)?.is_none());
                Ok(slice.bits.to_vec())
            },
        );
        let mut bits = sent.expect("the run ends");
        bits::xor_into(&mut bits, &received.expect("the run ends"));
        let equal = (0..parameters.bins).filter(|bin| bits::bit(&bits, *bin));
        equal.count() as u64
    })
}
