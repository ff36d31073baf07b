//! Rounds against a direct computation from the papers, from the same base and the same randomness:
//! every leaf by its own path from the root, every column of the code separately, every point in
//! its bins. Also the traffic of a round.

use std::collections::BTreeMap;

use volery_channel::{SessionId, Stats, run_two_parties};
use volery_field::{ExtensionOf, F2, Fp61, Gf128, Ring, Z64};
use volery_ot::{CotReceiver, convert, ideal};
use volery_primitives::{
    Block, aes::Aes128, bits, cuckoo, pages::Buffer, prg::Prg, ro::RandomOracle,
};

use super::{Failure, Role, Source, Stream, primal};
use crate::{
    Kind, Link, Noise, Plan, PlanOptions, Security, Trees,
    correlation::{Correlation, Cot, Vole},
    cot_buffer,
    ggm::Growth,
    plan::Step,
    vole::VoleRing,
    wire,
};

/// A value holder that keeps `u` and `v` in pairs.
pub(crate) struct PairHolder<K>(std::marker::PhantomData<K>);

impl<K: Correlation> Role for PairHolder<K> {
    type Secret = ();
    type Out<'a> = &'a mut [K::Pair];
    type Part<'a> = &'a mut [K::Pair];

    fn count(out: &Self::Out<'_>) -> usize {
        out.len()
    }

    fn part<'a>(out: &'a mut Self::Out<'_>) -> Self::Part<'a> {
        out
    }

    fn wipe(out: &mut Self::Out<'_>) {
        out.fill(K::pair(K::Base::ZERO, K::Ring::ZERO));
    }
}

/// The unlimited stream of a value holder, from rounds of primal LPN.
pub(crate) fn pairs_of<K: Correlation>(
    rounds: primal::ValueHolder<K>,
) -> Stream<PairHolder<K>, primal::ValueHolder<K>> {
    Stream::new(Source::Rounds(rounds), (), None, Failure::default())
}

/// The unlimited stream of a key holder.
pub(crate) fn keys_of<K: Correlation>(
    rounds: primal::KeyHolder<K>,
) -> Stream<super::KeyHolder<K>, primal::KeyHolder<K>> {
    let x = K::Ring::ZERO;
    Stream::new(Source::Rounds(rounds), x, None, Failure::default())
}

const SESSION: SessionId = SessionId::from_bytes([3; 32]);

/// The level sum of the half-trees of a vector OLE, and the seed of the dealer of its OTs.
const DELTA: u128 = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;
const DEALER: u128 = 4;

/// Correlations of both parties, `w = u*x + v`; where `u` is carried, except for the lowest bit of
/// `v` and `w`.
struct Lines<K: Correlation> {
    u: Vec<K::Base>,
    v: Vec<K::Ring>,
    w: Vec<K::Ring>,
}

/// A kind of correlation as in the papers.
struct PaperCorrelation<K: Correlation> {
    x: K::Ring,
    /// The level sum of the half-trees.
    delta: Block,
    /// The choice bits of the OTs for the trees, from the rest of the base.
    choices: fn(&[K::Base], usize) -> Vec<bool>,
    /// `u` in an output.
    u: fn(&K::Pair) -> K::Base,
    /// `v` in an output.
    v: fn(&K::Pair) -> K::Ring,
}

/// Bytes of a round from the key holder, and from the value holder.
type Bytes = (u64, u64);

fn without_carrier<K: Correlation>(element: K::Ring) -> K::Ring {
    if K::CARRIES { K::Ring::from_block(wire::pack(element) & !Block::ONE) } else { element }
}

/// A public value of the round.
fn public(domain: &'static str, round: u64) -> Block {
    let mut oracle = RandomOracle::new(domain);
    oracle.absorb(SESSION.as_bytes()).absorb_u64(round);
    oracle.finish_block()
}

/// Entry `j` of column `i` of the code: one, except the last five where ones do not generate the
/// ring.
fn factor<R: Ring>(code: &Aes128, i: usize, j: usize) -> R {
    match R::GENERATED_BY_ONE || j < 5 {
        true => R::ONE,
        false => R::from_block(code.encrypt(Block::from((1 << 64) + i as u128))),
    }
}

/// The ten rows that column `i` of the code adds up.
fn column(code: &Aes128, k: usize, i: usize) -> impl Iterator<Item = usize> {
    let block = |number: usize| u128::from(code.encrypt(Block::from(number as u128)));
    (10 * i..10 * i + 10).map(move |index| {
        if k.is_power_of_two() {
            // Pieces of 21 bits: of eight words the lowest pieces, then the middle ones, then the
            // highest.
            let (cut, piece, word) = (index / 24, index / 8 % 3, index % 8);
            let word = block(4 * cut + word / 2) >> (64 * (word % 2));
            (word >> (21 * piece)) as usize & (k - 1)
        } else {
            let number = (block(index / 4) >> (32 * (index % 4))) as u32;
            ((u64::from(number) * k as u64) >> 32) as usize
        }
    })
}

/// A tree: the points of the domain of its leaves, and its growth.
struct Tree {
    points: Vec<usize>,
    depth: u32,
    keys: [Aes128; 2],
    growth: Growth,
    root: Block,
    delta: Block,
}

impl Tree {
    /// Leaf number `leaf`, by its path from the root.
    fn leaf<R: Ring>(&self, leaf: usize) -> R {
        let forward = |key: usize, s: Block| self.keys[key].encrypt(s) ^ s;
        let hash = |s: Block| {
            let (high, low) = (u128::from(s.high()), u128::from(s.low()));
            forward(0, Block::from((high ^ low) << 64 | high))
        };
        let word = |block: Block, side: usize| {
            let word = if side == 0 { block.low() } else { block.high() };
            R::from_block(Block::from(u128::from(word)))
        };
        let mut node = self.root;
        for level in 1..=self.depth {
            let side = leaf >> (self.depth - level) & 1;
            let (last, of_words) = (level == self.depth, R::WORDS == 1);
            node = match self.growth {
                Growth::Ggm if last && of_words => return word(forward(0, node), side),
                Growth::Ggm => forward(side, node),
                Growth::PseudoCorrelated if last && of_words => return word(hash(node), side),
                Growth::PseudoCorrelated if last => hash(node ^ Block::from(side as u128)),
                _ if level == 1 => node ^ Block::select_mask(side == 1) & self.delta,
                _ => hash(node) ^ Block::select_mask(side == 1) & node,
            };
        }
        R::from_block(node)
    }
}

/// The trees of a round.
fn trees<K: Correlation>(
    plan: &Plan,
    step: Step,
    round: u64,
    delta: Block,
    rng: &mut Prg,
) -> Vec<Tree> {
    let growth = K::growth(plan.trees());
    let mut points = vec![Vec::new(); step.trees];
    // The bins of the first round of an instance serve the others too.
    let key = public("volery cuckoo hashing of the noise", 0);
    let hasher = cuckoo::Hasher::new(key, step.trees.max(3));
    for point in 0..step.n {
        if plan.noise() == Noise::Regular {
            points[point / step.set.block()].push(point);
        } else {
            for bin in hasher.bins(Block::from(point as u128)) {
                points[bin as usize].push(point);
            }
        }
    }
    let mut oracle = RandomOracle::new("volery ggm tree keys");
    oracle.absorb(SESSION.as_bytes()).absorb_u64(round).absorb(&[growth as u8]);
    let keys = Aes128::new(oracle.finish_block());
    let key = |number: usize| Aes128::new(keys.encrypt(Block::from(number as u128)));
    let mut roots = vec![Block::ZERO; step.trees];
    rng.fill_blocks(&mut roots);
    // A spare leaf, for a bin without a point, except in the GGM trees of the 2019 paper.
    let paper = plan.trees() == Trees::Ggm && plan.security() == Security::SemiHonest;
    let spare = plan.noise() == Noise::Uniform && (K::CARRIES || !paper);
    let tree = |(number, points): (usize, Vec<usize>)| {
        let leaves = points.len() + usize::from(spare);
        Tree {
            depth: leaves.next_power_of_two().ilog2().max(1),
            keys: match growth {
                Growth::Ggm => [key(2 * number), key(2 * number + 1)],
                _ => [key(number), key(number)],
            },
            growth,
            root: roots[number],
            delta,
            points,
        }
    };
    points.into_iter().enumerate().map(tree).collect()
}

/// The noise of a round: positions and values.
fn noise<K: Correlation>(
    plan: &Plan,
    step: Step,
    trees: &[Tree],
    choices: &[bool],
    rng: &mut Prg,
) -> BTreeMap<usize, K::Base> {
    let places: Vec<_> = match (plan.noise(), plan.trees()) {
        (Noise::Regular, Trees::Half) => {
            let mut choices = choices.iter();
            let path = |tree: &Tree| {
                let step = |at, choice: &bool| 2 * at + usize::from(!choice);
                let path = choices.by_ref().take(tree.depth as usize);
                tree.points[path.fold(0, step)]
            };
            trees.iter().map(path).collect()
        }
        (Noise::Regular, Trees::Ggm) => trees
            .iter()
            .map(|tree| tree.points[rng.below(tree.points.len() as u64) as usize])
            .collect(),
        (Noise::Uniform, _) => {
            let mut places = std::collections::BTreeSet::new();
            while places.len() < step.set.t {
                places.insert(rng.below(step.n as u64) as usize);
            }
            places.into_iter().collect()
        }
    };
    places.into_iter().map(|place| (place, K::noise(rng))).collect()
}

/// All outputs of a round, and its traffic.
fn round<K: Correlation>(
    reading: &PaperCorrelation<K>,
    plan: &Plan,
    (number, step): (u64, Step),
    base: &Lines<K>,
    (key_rng, value_rng): (&mut Prg, &mut Prg),
) -> (Lines<K>, Bytes) {
    let trees = trees::<K>(plan, step, number, reading.delta, key_rng);
    let levels: usize = trees.iter().map(|tree| tree.depth as usize).sum();
    assert!(levels <= step.levels, "the plan's bound");
    let k = step.set.k;
    let choices = (reading.choices)(&base.u[k..], levels);
    let noise = noise::<K>(plan, step, &trees, &choices, value_rng);
    let code = Aes128::new(public("volery lpn code", number));
    let mut r = vec![K::Ring::ZERO; step.n];
    for tree in &trees {
        for (leaf, point) in tree.points.iter().enumerate() {
            r[*point] += without_carrier::<K>(tree.leaf(leaf));
        }
    }
    let mut lines = Lines { u: Vec::new(), v: Vec::new(), w: Vec::new() };
    for (i, r) in r.into_iter().enumerate().take(step.keep + step.deliver) {
        let mu = noise.get(&i).copied().unwrap_or(K::Base::ZERO);
        let (mut u, mut v, mut w) = (mu, r - reading.x.mul_base(mu), r);
        for (j, row) in column(&code, k, i).enumerate() {
            let factor = factor::<K::Base>(&code, i, j);
            u += base.u[row] * factor;
            v += base.v[row].mul_base(factor);
            w += base.w[row].mul_base(factor);
        }
        lines.u.push(u);
        lines.v.push(without_carrier::<K>(v));
        lines.w.push(w);
    }
    if plan.security() == Security::Malicious {
        key_rng.fill_bytes(&mut [0; 32]); // the salt of the check
        let _nonce = value_rng.block();
    }
    (lines, bytes::<K>(plan, trees.len(), levels))
}

/// The traffic of a round from the docs of the parts, without its OTs.
fn bytes<K: Correlation>(plan: &Plan, trees: usize, levels: usize) -> Bytes {
    let element = <K::Ring as Ring>::BYTES;
    let drawn = plan.noise() == Noise::Regular && plan.trees() == Trees::Half;
    let choices = if drawn { 0 } else { bits::bytes_for(levels) };
    let (mut key, mut value) = match K::growth(plan.trees()) {
        Growth::Correlated => (16 * levels, choices),
        Growth::PseudoCorrelated => (16 * levels + trees * (16 + element), choices),
        Growth::Ggm => (32 * levels + trees * element, choices),
    };
    value += K::VALUES * trees * element;
    if plan.security() == Security::Malicious {
        let elements = crate::check::repetitions::<K::Ring>() * element;
        key += 32 + 32 + elements;
        value += 16 + elements + elements;
    }
    (key as u64, value as u64)
}

/// `n` correlations of the stream against those of the papers.
fn check<K: Correlation>(
    reading: &PaperCorrelation<K>,
    plan: &Plan,
    n: usize,
    key_ot: K::KeyOt,
    value_ot: K::ValueOt,
) {
    let count = plan.base_count();
    let mut dealer = Prg::new(Block::from(6));
    let mut base = Lines::<K> {
        u: (0..count).map(|_| K::Base::random(&mut dealer)).collect(),
        v: (0..count).map(|_| K::Ring::random(&mut dealer)).collect(),
        w: Vec::new(),
    };
    let mut pairs = Buffer::zeroed(count);
    let mut keys = Buffer::zeroed(count);
    for i in 0..count {
        let w = reading.x.mul_base(base.u[i]) + base.v[i];
        base.w.push(without_carrier::<K>(w));
        keys[i] = base.w[i];
        pairs[i] = K::pair(base.u[i], base.v[i]);
    }
    let (mut key_rng, mut value_rng) = (Prg::new(Block::from(7)), Prg::new(Block::from(8)));
    let ((w, sent), (out, received)) = run_two_parties(
        |channel| {
            let ot = convert::Sender::new(key_ot, SESSION);
            let rng = Prg::new(Block::from(7));
            let rounds =
                primal::KeyHolder::<K>::new(plan.clone(), SESSION, rng, reading.x, ot, keys);
            let mut stream = keys_of::<K>(rounds);
            let mut w = vec![K::Ring::ZERO; n];
            stream.extend(&mut w, channel).expect("an honest peer");
            (w, channel.stats())
        },
        |channel| {
            let ot = convert::Receiver::new(value_ot, SESSION);
            let rng = Prg::new(Block::from(8));
            let rounds = primal::ValueHolder::<K>::new(plan.clone(), SESSION, rng, ot, pairs);
            let mut stream = pairs_of::<K>(rounds);
            let mut out = Buffer::<K::Pair>::zeroed(n);
            stream.extend(&mut out[..], channel).expect("an honest peer");
            (out, channel.stats())
        },
    );
    let (mut number, mut done, mut expected) = (0, 0, (0, 0));
    while done < n {
        let step = plan.step(number, done as u64);
        let rngs = (&mut key_rng, &mut value_rng);
        let (mut lines, bytes) = round(reading, plan, (number as u64, step), &base, rngs);
        for i in step.keep..(step.keep + step.deliver).min(step.keep + n - done) {
            let at = done + i - step.keep;
            assert!(w[at] == lines.w[i], "w of output {at}");
            assert!(
                (reading.u)(&out[at]) == lines.u[i] && (reading.v)(&out[at]) == lines.v[i],
                "output {at}"
            );
        }
        lines.u.truncate(step.keep);
        base = lines;
        expected = (expected.0 + bytes.0, expected.1 + bytes.1);
        done += step.deliver;
        number += 1;
    }
    let both = |stats: Stats| (stats.bytes_sent, stats.bytes_received);
    assert_eq!(both(sent), expected, "{plan:?}");
    assert_eq!(both(received), (expected.1, expected.0));
}

fn plan(kind: Kind, modes: (Noise, Trees, Security), set: &str, total: Option<u64>) -> Plan {
    let (noise, trees, security) = modes;
    let options = PlanOptions {
        total,
        noise,
        trees,
        security,
        // With cheap bits and slow messages, the base is made at once.
        link: Link { bits_per_second: 1e15, round_trip: 1.0 },
        set: Some(set),
        ..PlanOptions::default()
    };
    let plan = Plan::new(kind, &options).expect("a plan");
    assert_eq!(plan.schedule().len(), 1, "one instance");
    plan
}

fn every_mode() -> impl Iterator<Item = (Noise, Trees, Security)> {
    let securities = [Security::SemiHonest, Security::Malicious].into_iter();
    securities.flat_map(|security| {
        [Noise::Regular, Noise::Uniform]
            .into_iter()
            .flat_map(move |noise| [Trees::Half, Trees::Ggm].map(|trees| (noise, trees, security)))
    })
}

/// The smallest set for the noise, and a few outputs of it.
fn small(noise: Noise) -> (&'static str, u64) {
    match noise {
        Noise::Regular => ("r14", 200),
        Noise::Uniform => ("u14", 200),
    }
}

fn cot(plan: &Plan, n: usize) {
    let delta = Prg::new(Block::from(5)).block() | Block::ONE;
    let reading = PaperCorrelation::<Cot> {
        x: Gf128::new(delta),
        delta,
        choices: |spare, levels| spare[..levels].iter().map(|u| *u == F2::ONE).collect(),
        u: |pair| F2::new(u128::from(pair.value()) & 1 == 1),
        v: |pair| without_carrier::<Cot>(*pair),
    };
    let ot = (cot_buffer::Sender::new(delta), cot_buffer::Receiver::default());
    check(&reading, plan, n, ot.0, ot.1);
}

fn vole<R: VoleRing>(plan: &Plan, n: usize) {
    let reading = PaperCorrelation::<Vole<R>> {
        x: R::random(&mut Prg::new(Block::from(5))),
        delta: Block::from(DELTA),
        choices: |_, levels| {
            let (_, mut ot) = ideal::pair(Block::from(DELTA), Block::from(DEALER));
            let (mut nowhere, _) = volery_channel::Channel::memory_pair();
            let mut u = vec![0; bits::bytes_for(levels)];
            ot.extend(&mut u, &mut vec![Block::ZERO; levels], &mut nowhere).expect("a dealer");
            bits::unpack(&u, levels)
        },
        u: |pair| pair.u,
        v: |pair| pair.v,
    };
    let ot = ideal::pair(Block::from(DELTA), Block::from(DEALER));
    check(&reading, plan, n, Box::new(ot.0), Box::new(ot.1));
}

#[test]
fn correlated_ot_as_in_the_papers() {
    for modes in every_mode() {
        let (set, n) = small(modes.0);
        cot(&plan(Kind::Cot, modes, set, Some(n)), n as usize);
    }
}

/// The indices of a code whose `k` is a power of two are taken from the stream differently.
#[test]
fn a_table_of_a_power_of_two() {
    let modes = (Noise::Regular, Trees::Half, Security::Malicious);
    let plan = plan(Kind::Cot, modes, "b10", Some(1500));
    assert!(plan.schedule()[0].k.is_power_of_two());
    cot(&plan, 1500);
}

/// The reserve of one round is the base of the next.
#[test]
fn a_second_round_as_in_the_papers() {
    for noise in [Noise::Regular, Noise::Uniform] {
        let modes = (noise, Trees::Half, Security::Malicious);
        cot(&plan(Kind::Cot, modes, small(noise).0, None), 20_000);
    }
}

#[test]
fn vector_ole_as_in_the_papers() {
    for modes in every_mode() {
        let (set, n) = small(modes.0);
        let plan = |kind| plan(kind, modes, set, Some(n));
        vole::<Fp61>(&plan(Kind::Vole(Fp61::FIELD)), n as usize);
        vole::<Gf128>(&plan(Kind::Vole(Gf128::FIELD)), n as usize);
        if modes.2 == Security::SemiHonest {
            vole::<Z64>(&plan(Kind::Vole(Z64::FIELD)), n as usize);
        }
    }
}
