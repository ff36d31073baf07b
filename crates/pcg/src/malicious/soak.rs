//! A million honest rounds, none of which aborts.
//!
//! Rounds of tiny made-up instances: trees of 8 leaves side by side, and bins of a few points. A
//! fault with a rate of one in a hundred thousand rounds shows here.

use volery_channel::{Channel, Result, run_two_parties};
use volery_field::{ExtensionOf as _, Fp61, Gf128, Ring};
use volery_ot::convert;
use volery_primitives::{Block, prg::Prg};

use super::{
    SESSION, Stage, deal_base, prgs, rng,
    stage::{deal_ots, random_choices},
};
use crate::{
    Trees, check,
    correlation::{Cot, Vole},
    ggm::Growth,
    mpcot::{Cells, Layout},
    reproduction::{receive_trees, send_trees},
    spcot::Points,
    wire,
};

/// A round of the party that has the key, which then sends its leaves, or of the other, which
/// compares them with its own. That one's places are `alphas`, or random. Both parties have a
/// dealer's base.
pub(super) fn round<K: Stage>(
    has_key: bool,
    (layout, trees): (&Layout, Trees),
    alphas: Option<&[usize]>,
    number: u64,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<()> {
    let batch = layout.batch();
    let mut dealer = super::rng(1 << 64 | u128::from(number));
    let base = deal_base::<K>(K::VALUES * batch.trees(), &mut dealer);
    let random = |_| (K::Ring::random(&mut dealer), K::Ring::random(&mut dealer));
    let mask: Vec<_> = (0..check::repetitions::<K::Ring>()).map(random).collect();
    let choices = random_choices(batch.levels(), &mut dealer);
    let (q, t) = deal_ots(base.delta, choices.into_iter(), &mut dealer);
    let (key_ot, value_ot) = K::buffered(base.delta, &q, &t);
    let context = check::Context { session: SESSION, round: number };
    let public = (batch, &prgs::<K>(trees, number));
    let drawn = layout.is_regular() && K::growth(trees) != Growth::Ggm;
    let points = |chosen| if drawn { Points::Random } else { Points::Chosen(chosen) };
    let x = base.x;
    channel.bind();
    if has_key {
        let mut ot = convert::Sender::new(key_ot, SESSION);
        let beta = K::key_shares(x, &base.key_spare, batch.trees(), channel)?;
        let mut r = layout.leaves(None);
        send_trees(public, points(&[]), &beta, &mut r, rng, &mut ot, channel)?;
        let mask: Vec<_> = mask.iter().map(|(u, v)| *u * x + *v).collect();
        check::key_holder(context, batch, x, &r[..], &mask, rng, channel)?;
        wire::send(&r, channel)?;
        return channel.flush();
    }
    let mut ot = convert::Receiver::new(value_ot, SESSION);
    let places: Vec<_> = (0..batch.trees())
        .map(|tree| rng.below(batch.leaves_of(tree).len() as u64) as usize)
        .collect();
    let points = points(alphas.unwrap_or(&places));
    let values: Vec<_> = (0..batch.trees()).map(|_| K::noise(rng)).collect();
    let beta = K::value_shares(&values, &base.value_spare, channel)?;
    let mut m = layout.leaves(None);
    let alphas = receive_trees(public, points, &beta, &mut m, &mut ot, channel)?;
    check::value_holder(context, batch, &alphas, &values, &m[..], &mask, rng, channel)?;
    let mut r = vec![K::Ring::ZERO; batch.leaves()];
    wire::recv(&mut r, "an element", channel)?;
    for tree in 0..batch.trees() {
        for (i, place) in batch.leaves_of(tree).enumerate() {
            let value = if i == alphas[tree] { x.mul_base(values[tree]) } else { K::Ring::ZERO };
            assert!(r[place] - m[place] == value, "round {number}, tree {tree}");
        }
    }
    Ok(())
}

/// Rounds of all kinds in turn, most of them of correlated OT. A thousand; `VOLERY_SOAK_ROUNDS`
/// makes it more.
#[test]
fn honest_rounds_never_abort() {
    let rounds = std::env::var("VOLERY_SOAK_ROUNDS")
        .map_or(1000, |rounds| rounds.parse().expect("a number of rounds"));
    let regular = Layout::regular(4, 8);
    let cuckoo = Layout::cuckoo(24, 2, 40, Block::from(5), Cells::Complete);
    let party = |has_key: bool, channel: &mut Channel| {
        let mut rng = rng(41 + u128::from(has_key));
        for number in 0..rounds {
            let layout = if number & 1 == 0 { &regular } else { &cuckoo };
            let mode = (layout, if number & 2 == 0 { Trees::Half } else { Trees::Ggm });
            match number >> 2 & 7 {
                0 => round::<Vole<Fp61>>(has_key, mode, None, number, &mut rng, channel),
                1 => round::<Vole<Gf128>>(has_key, mode, None, number, &mut rng, channel),
                _ => round::<Cot>(has_key, mode, None, number, &mut rng, channel),
            }
            .unwrap_or_else(|error| panic!("round {number}: {error}"));
        }
    };
    let party = |has_key: bool, channel: &mut Channel| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        pool.expect("a thread").install(|| party(has_key, channel));
    };
    run_two_parties(|channel| party(true, channel), |channel| party(false, channel));
}
