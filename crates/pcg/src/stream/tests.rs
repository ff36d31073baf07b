//! Rounds against a direct computation from the papers, from the same base and the same randomness:
//! every leaf by its own path from the root, every column of the code separately, every point in
//! its bins.

use std::collections::{BTreeMap, BTreeSet};

use volery_channel::memory;
use volery_field::{ExtensionOf as _, Fp31, Fp31x4, Fp61, Fp64, Fp64x2, Gf128, Ring, Z64};
use volery_primitives::{Block, aes::Aes128, cuckoo, prg::Prg, ro::RandomOracle};

use crate::{
    Kind, Noise, Plan, PlanOptions, Security, Trees,
    correlation::{Correlation, Cot, Subfield, Vole},
    ggm::Growth,
    malicious::stage::{Stage, tree_ots},
    malicious::{FEW, MANY, SESSION, Setup, honest, plan_of, rng},
    plan::Step,
    wire,
};

/// Correlations of both parties, `w = u*x + v`, without the bits that carry `u`.
struct Lines<K: Correlation> {
    u: Vec<K::Base>,
    v: Vec<K::Ring>,
    w: Vec<K::Ring>,
}

fn without_carrier<K: Correlation>(element: K::Ring) -> K::Ring {
    if K::CARRIES { K::Ring::from_block(wire::pack(element) & !Block::ONE) } else { element }
}

/// A public value of the round.
fn public(domain: &'static str, round: u64, growth: Option<Growth>) -> Block {
    let mut oracle = RandomOracle::new(domain);
    oracle.absorb(SESSION.as_bytes()).absorb_u64(round);
    if let Some(growth) = growth {
        oracle.absorb(&[growth as u8]);
    }
    oracle.finish_block()
}

/// The ten rows that column `i` of the code adds up.
fn column(code: &Aes128, k: usize, i: usize) -> impl Iterator<Item = usize> {
    let block = |number: usize| u128::from(code.encrypt(Block::from(number as u128)));
    (10 * i..10 * i + 10).map(move |index| {
        if k.is_power_of_two() {
            let (cut, piece, word) = (index / 24, index % 24 / 8, index % 8);
            let half = (block(4 * cut + word / 2) >> (64 * (word % 2))) as u64;
            return (half >> (21 * piece)) as usize % k;
        }
        let number = (block(index / 4) >> (32 * (index % 4))) as u32;
        ((u64::from(number) * k as u64) >> 32) as usize
    })
}

/// A tree: the points of the domain of its leaves, and its growth.
struct Tree {
    points: Vec<usize>,
    depth: u32,
    /// The key of the first permutation.
    seed: Block,
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
            R::from_block(Block::from(u128::from([block.low(), block.high()][side])))
        };
        let mut node = self.root;
        for level in 1..=self.depth {
            if level == self.depth && R::WORDS > 2 {
                let node = node ^ Block::from((leaf & 1) as u128);
                let block = |number: usize| {
                    let key = Aes128::new(self.seed ^ Block::from(number as u128));
                    let (high, low) = (u128::from(node.high()), u128::from(node.low()));
                    let node = Block::from((high ^ low) << 64 | high);
                    key.encrypt(node) ^ node
                };
                let blocks = (0..R::WORDS / 2).map(block);
                let words: Vec<_> = blocks.flat_map(|block| [block.low(), block.high()]).collect();
                return R::from_words(&words);
            }
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
    (round, step): (u64, Step),
    delta: Block,
    rng: &mut Prg,
) -> Vec<Tree> {
    let growth = K::growth(plan.trees());
    let mut points = vec![Vec::new(); step.trees];
    // The bins of the first round of an instance serve the others too.
    let key = public("volery cuckoo hashing of the noise", 0, None);
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
    let keys = Aes128::new(public("volery ggm tree keys", round, Some(growth)));
    let each = if growth == Growth::Ggm { 2 } else { 1 };
    let seed = |number: usize| keys.encrypt(Block::from(number as u128));
    let key = |number| Aes128::new(seed(number));
    let mut roots = vec![Block::ZERO; step.trees];
    rng.fill_blocks(&mut roots);
    // A spare leaf, for a bin without a point, except in the GGM trees of the 2019 paper.
    let paper = plan.trees() == Trees::Ggm && plan.security() == Security::SemiHonest;
    let spare = plan.noise() == Noise::Uniform && (K::CARRIES || !paper);
    let tree = |(number, points): (usize, Vec<usize>)| {
        let leaves = points.len() + usize::from(spare);
        Tree {
            depth: leaves.next_power_of_two().ilog2().max(1),
            seed: seed(each * number),
            keys: [key(each * number), key(each * number + each - 1)],
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
    let mut choices = choices.iter();
    let mut place = |tree: &Tree, rng: &mut Prg| {
        if plan.trees() == Trees::Ggm {
            return tree.points[rng.below(tree.points.len() as u64) as usize];
        }
        let path = choices.by_ref().take(tree.depth as usize);
        tree.points[path.fold(0, |at, choice| 2 * at + usize::from(!choice))]
    };
    let mut places = BTreeSet::new();
    if plan.noise() == Noise::Regular {
        places.extend(trees.iter().map(|tree| place(tree, rng)));
    }
    while plan.noise() == Noise::Uniform && places.len() < step.set.t {
        places.insert(rng.below(step.n as u64) as usize);
    }
    places.into_iter().map(|place| (place, K::noise(rng))).collect()
}

/// Two instances have noise at the same place of a block as often as by chance.
fn assert_unrelated(step: Step, places: Vec<usize>) {
    if step.instances == 1 || step.trees < 100 {
        return;
    }
    let mut equal = 0;
    for block in places.chunks(step.instances) {
        for (b, place) in block.iter().enumerate() {
            equal += block[..b].iter().filter(|other| *other == place).count();
        }
    }
    let pairs = step.trees * (step.instances - 1) / 2;
    let mean = pairs as f64 / step.set.block() as f64;
    assert!((equal as f64 - mean).abs() < 5.0 * mean.sqrt(), "{equal} of {pairs}: {mean}");
}

/// All outputs of a round; `x` and `delta` are the key holder's.
fn round<K: Correlation>(
    plan: &Plan,
    (number, step): (u64, Step),
    base: &Lines<K>,
    (x, delta, choices): (K::Ring, Block, &[bool]),
    (key_rng, value_rng): (&mut Prg, &mut Prg),
) -> Lines<K> {
    let trees = trees::<K>(plan, (number, step), delta, key_rng);
    let noise = noise::<K>(plan, step, &trees, choices, value_rng);
    assert_unrelated(step, noise.keys().map(|place| place % step.set.block()).collect());
    let code = Aes128::new(public("volery lpn code", number, None));
    let mut r = vec![K::Ring::ZERO; step.n];
    for tree in &trees {
        for (leaf, point) in tree.points.iter().enumerate() {
            r[*point] += without_carrier::<K>(tree.leaf(leaf));
        }
    }
    let mut lines = Lines { u: Vec::new(), v: Vec::new(), w: Vec::new() };
    let (of, size) = (step.instances, step.set.block());
    for (place, r) in r.into_iter().enumerate().take(step.keep + step.deliver) {
        // The instance of the place, and its column of the code.
        let (b, i) = (place / size % of, place / (of * size) * size + place % size);
        let mu = noise.get(&place).copied().unwrap_or(K::Base::ZERO);
        // The factor of the last five rows, where ones do not generate the ring.
        let last = K::Base::from_block(code.encrypt(Block::from((1 << 64) + i as u128)));
        let (mut u, mut v, mut w) = (mu, r - x.mul_base(mu), r);
        for (j, row) in column(&code, step.set.k, i).enumerate() {
            let factor = if K::Base::GENERATED_BY_ONE || j < 5 { K::Base::ONE } else { last };
            let row = row * of + b;
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
    lines
}

/// `n` correlations of the stream against those of the papers. Returns the number of rounds.
fn check<K: Stage>((noise, trees, security): (Noise, Trees, Security), n: usize) -> usize {
    let plan = plan_of(K::KIND, security, trees, noise, n);
    check_plan::<K>(&plan, &[n])
}

fn check_plan<K: Stage>(plan: &Plan, pieces: &[usize]) -> usize {
    const DEALER: u128 = 4;
    let n: usize = pieces.iter().sum();
    let (left, right) = memory::pair();
    let ends = honest::<K>(Setup::Dealt(DEALER), plan, pieces, left, right);
    ends.assert_right(&format!("{plan:?}"));
    let (key, value) = K::deal(plan, DEALER);
    let (delta, dealt) = tree_ots(DEALER);
    let delta = if K::CARRIES { wire::pack(key.x) } else { delta };
    let (u, v): (Vec<_>, Vec<_>) = value.base.iter().map(|pair| K::apart(*pair)).unzip();
    let v = v.into_iter().map(without_carrier::<K>).collect();
    let mut base = Lines::<K> { u, v, w: key.base.to_vec() };
    let (mut number, mut done, mut key_rng, mut value_rng) = (0, 0, rng(81), rng(82));
    while done < n {
        let step = plan.step(number, done as u64);
        // Of correlated OT, the spare ones of the base serve the trees.
        let spare = base.u[step.secret()..].iter().map(|u| *u == K::Base::ONE);
        let choices = if K::CARRIES { spare.collect() } else { dealt.clone() };
        let (secrets, rngs) = ((key.x, delta, &choices[..]), (&mut key_rng, &mut value_rng));
        let mut lines = round(plan, (number as u64, step), &base, secrets, rngs);
        for i in step.keep..(step.keep + step.deliver).min(step.keep + n - done) {
            let at = done + i - step.keep;
            let ((u, v), w) = (ends.line[at], ends.w[at]);
            let same = u == lines.u[i] && without_carrier::<K>(v) == lines.v[i];
            assert!(same && w == lines.w[i], "output {at}, {plan:?}");
        }
        lines.u.truncate(step.keep);
        base = lines;
        done += step.deliver;
        number += 1;
    }
    number
}

#[test]
fn rounds_as_in_the_papers() {
    for noise in [Noise::Regular, Noise::Uniform] {
        for trees in [Trees::Half, Trees::Ggm] {
            for security in [Security::SemiHonest, Security::Malicious] {
                let modes = (noise, trees, security);
                check::<Cot>(modes, FEW);
                check::<Vole<Fp61>>(modes, FEW);
                check::<Vole<Gf128>>(modes, FEW);
                check::<Subfield<Fp31x4, Fp31>>(modes, FEW);
                check::<Subfield<Fp64x2, Fp64>>(modes, FEW);
                if security == Security::SemiHonest {
                    check::<Vole<Z64>>(modes, FEW);
                }
            }
        }
        // The reserve of one round is the base of the next.
        assert_eq!(check::<Cot>((noise, Trees::Half, Security::Malicious), MANY), 2);
    }
}

/// Each instance of a bundle is one by itself, with its rows of the base and its trees, under the
/// code of all. Draws end anywhere in a block; a round ends in the middle of a draw.
#[test]
fn bundles_as_in_the_papers() {
    for security in [Security::SemiHonest, Security::Malicious] {
        for (trees, instances) in [(Trees::Half, 2), (Trees::Half, 4), (Trees::Ggm, 4)] {
            let plan = |kind| plan_of(kind, security, trees, Noise::Regular, FEW);
            let (few, pieces) = (|kind| plan(kind).with_instances(instances), [3, 60, FEW - 64, 1]);
            check_plan::<Cot>(&few(Cot::KIND), &pieces);
            check_plan::<Vole<Fp61>>(&few(Vole::<Fp61>::KIND), &pieces);
            check_plan::<Vole<Gf128>>(&few(Vole::<Gf128>::KIND), &pieces);
            let kind = Subfield::<Fp31x4, Fp31>::KIND;
            check_plan::<Subfield<Fp31x4, Fp31>>(&few(kind), &pieces);
            if security == Security::SemiHonest {
                check_plan::<Vole<Z64>>(&few(Vole::<Z64>::KIND), &pieces);
            }
        }
        let pieces = [1000, 60_001, 18_999];
        for trees in [Trees::Half, Trees::Ggm] {
            let plan = plan_of(Kind::Cot, security, trees, Noise::Regular, 80_000);
            assert_eq!(check_plan::<Cot>(&plan.with_instances(4), &pieces), 2);
        }
    }
    // A set of everyday, whose rows are a power of two.
    let options = PlanOptions {
        total: Some(3_100_000),
        set: Some("b10"),
        instances: Some(4),
        ..PlanOptions::default()
    };
    let plan = Plan::new(Kind::Cot, &options).expect("b10 serves bits");
    check_plan::<Cot>(&plan, &[1, 4095, 1_000_000, 2_095_904]);
}
