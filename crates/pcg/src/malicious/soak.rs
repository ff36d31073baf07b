//! A million honest rounds, none of which aborts.
//!
//! Rounds of tiny made-up instances: trees of 8 leaves side by side, and bins of a few points. A
//! fault with a rate of one in a hundred thousand rounds shows here.

use volery_channel::{Channel, memory, run_two_channels};
use volery_field::{ExtensionOf, Fp61, Gf128, Ring};
use volery_ot::convert;
use volery_primitives::{Block, prg::Prg};

use super::{
    Base, SESSION, Stage, deal_base, prgs, rng,
    stage::{deal_ots, random_choices},
};
use crate::{
    Trees, check,
    correlation::{Cot, Vole},
    ggm::Growth,
    mpcot::{self, Cells, Layout, Public},
    spcot::Points,
};

/// The two parties' part of a dealer's output for one round.
struct DealtCorrelations<K: Stage> {
    base: Base<K>,
    q: Vec<Block>,
    t: Vec<Block>,
    mask: Vec<(K::Ring, K::Ring)>,
}

fn deal<K: Stage>(layout: &Layout, round: u64) -> DealtCorrelations<K> {
    let mut dealer = rng(1 << 64 | u128::from(round));
    let base = deal_base::<K>(K::VALUES * layout.batch().trees(), &mut dealer);
    let random = |_| (K::Ring::random(&mut dealer), K::Ring::random(&mut dealer));
    let mask = (0..check::repetitions::<K::Ring>()).map(random).collect();
    let choices = random_choices(layout.batch().levels(), &mut dealer);
    let (q, t) = deal_ots(base.delta, choices.into_iter(), &mut dealer);
    DealtCorrelations { base, q, t, mask }
}

fn context(round: u64) -> check::Context {
    check::Context { session: SESSION, round }
}

fn draws<K: Stage>(layout: &Layout, trees: Trees) -> bool {
    layout.is_regular() && K::growth(trees) != Growth::Ggm
}

/// The key holder's round; its leaves go to the other party, which compares.
fn key_holder<K: Stage>(
    layout: &Layout,
    trees: Trees,
    number: u64,
    rng: &mut Prg,
    channel: &mut Channel,
) -> volery_channel::Result<()> {
    let dealt = deal::<K>(layout, number);
    let (ot, _) = K::buffered(dealt.base.delta, &dealt.q, &dealt.t);
    let mut ot = convert::Sender::new(ot, SESSION);
    let public = Public { layout, prgs: &prgs::<K>(trees, number) };
    let points = if draws::<K>(layout, trees) { Points::Random } else { Points::Chosen(&[]) };
    channel.bind();
    let (x, spare, leaves) = (dealt.base.x, &dealt.base.key_spare, layout.leaves(None));
    let r = mpcot::send::<K>(public, points, x, spare, leaves, rng, &mut ot, channel)?;
    let mask: Vec<_> = dealt.mask.iter().map(|(u, v)| *u * x + *v).collect();
    let batch = layout.batch();
    check::key_holder(context(number), batch, x, &r[..], &mask, rng, channel)?;
    crate::wire::send(&r, channel)?;
    channel.flush()
}

/// The value holder's.
fn value_holder<K: Stage>(
    layout: &Layout,
    trees: Trees,
    number: u64,
    rng: &mut Prg,
    channel: &mut Channel,
) -> volery_channel::Result<()> {
    let dealt = deal::<K>(layout, number);
    let (_, ot) = K::buffered(dealt.base.delta, &dealt.q, &dealt.t);
    let mut ot = convert::Receiver::new(ot, SESSION);
    let public = Public { layout, prgs: &prgs::<K>(trees, number) };
    let batch = layout.batch();
    let places: Vec<_> = (0..batch.trees())
        .map(|tree| rng.below(batch.leaves_of(tree).len() as u64) as usize)
        .collect();
    let points = if draws::<K>(layout, trees) { Points::Random } else { Points::Chosen(&places) };
    let values: Vec<_> = (0..batch.trees()).map(|_| K::noise(rng)).collect();
    channel.bind();
    let (spare, leaves) = (&dealt.base.value_spare, layout.leaves(None));
    let (m, alphas) =
        mpcot::receive::<K>(public, points, &values, spare, leaves, &mut ot, channel)?;
    let (context, mask) = (context(number), &dealt.mask);
    check::value_holder(context, batch, &alphas, &values, &m[..], mask, rng, channel)?;
    let mut r = vec![K::Ring::ZERO; batch.leaves()];
    crate::wire::recv(&mut r, "an element", channel)?;
    for tree in 0..batch.trees() {
        for (i, place) in batch.leaves_of(tree).enumerate() {
            let value =
                if i == alphas[tree] { dealt.base.x.mul_base(values[tree]) } else { K::Ring::ZERO };
            assert!(r[place] - m[place] == value, "round {number}, tree {tree}");
        }
    }
    Ok(())
}

/// Rounds one after the other, of all kinds in turn; most of them of correlated OT.
fn soak(rounds: u64) {
    let regular = Layout::regular(4, 8);
    let cuckoo = Layout::cuckoo(24, 2, 40, Block::from(5), Cells::Complete);
    let mode = |number: u64| {
        let layout = if number & 1 == 0 { &regular } else { &cuckoo };
        let trees = if number & 2 == 0 { Trees::Half } else { Trees::Ggm };
        (layout, trees, number >> 2 & 7)
    };
    let pool = || rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let (left, right) = memory::pair();
    run_two_channels(
        Channel::new(left),
        Channel::new(right),
        |channel| {
            pool().expect("a thread").install(|| {
                let mut rng = rng(41);
                for number in 0..rounds {
                    let (layout, trees, kind) = mode(number);
                    match kind {
                        0 => key_holder::<Vole<Fp61>>(layout, trees, number, &mut rng, channel),
                        1 => key_holder::<Vole<Gf128>>(layout, trees, number, &mut rng, channel),
                        _ => key_holder::<Cot>(layout, trees, number, &mut rng, channel),
                    }
                    .unwrap_or_else(|error| panic!("round {number}: {error}"));
                }
            });
        },
        |channel| {
            pool().expect("a thread").install(|| {
                let mut rng = rng(42);
                for number in 0..rounds {
                    let (layout, trees, kind) = mode(number);
                    match kind {
                        0 => value_holder::<Vole<Fp61>>(layout, trees, number, &mut rng, channel),
                        1 => value_holder::<Vole<Gf128>>(layout, trees, number, &mut rng, channel),
                        _ => value_holder::<Cot>(layout, trees, number, &mut rng, channel),
                    }
                    .unwrap_or_else(|error| panic!("round {number}: {error}"));
                }
            });
        },
    );
}

/// A thousand; `VOLERY_SOAK_ROUNDS` makes it more.
#[test]
fn honest_rounds_never_abort() {
    let rounds = std::env::var("VOLERY_SOAK_ROUNDS")
        .map_or(1000, |rounds| rounds.parse().expect("a number of rounds"));
    soak(rounds);
}
