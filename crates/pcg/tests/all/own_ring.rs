//! A ring of one's own, here the integers modulo `15 * 2^27 + 1` ("BabyBear"), with MACs in its
//! extension of degree 4; and the extensions of this project.

use bytemuck::{Pod, Zeroable};
use volery_channel::{Role, Session, run_two_parties};
use volery_field::{
    Choice, Extended, Extension, ExtensionOf, F2, Field, Fp31, Fp31x4, Fp64, Fp64x2, Gf128,
    NotCanonical, Ring, element,
};
use volery_pcg::{
    Kind, Plan, PlanOptions, Protocol, Security,
    vole::{
        Receiver, Sender, SubfieldBase, VoleReceiver as _, VoleRing, VoleSender as _, bits,
        subfield_plan,
    },
};
use volery_primitives::Block;

use crate::common::{SESSION, rng};

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
struct Bear(u32);

const P: u32 = 15 * (1 << 27) + 1;

/// From `0..2p` to `0..p`, without a branch.
fn once(x: u32) -> u32 {
    let less = x.wrapping_sub(P);
    less.wrapping_add(P & 0u32.wrapping_sub(less >> 31))
}

fn reduce(x: u64) -> Bear {
    // By a public constant: a multiplication.
    Bear((x % u64::from(P)) as u32)
}

element!(Bear: |x, y|
    Bear(once(x.0 + y.0)),
    Bear(once(x.0 + P - y.0)),
    reduce(u64::from(x.0) * u64::from(y.0)),
    Bear(once(P - x.0))
);

impl std::fmt::Display for Bear {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Ring for Bear {
    const ZERO: Self = Self(0);
    const ONE: Self = Self(1);
    const NAME: &'static str = "babybear";
    const BITS: u32 = 31;
    const BYTES: usize = 4;
    const WORDS: usize = 2;
    const GENERATED_BY_ONE: bool = true;

    type Lazy = u64;

    fn lazy_add(sum: u64, x: Self) -> u64 {
        sum + u64::from(x.0)
    }

    fn lazy_finish(sum: u64) -> Self {
        reduce(sum)
    }

    type LazyPair = [u64; 2];

    fn pair_add([a, b]: [u64; 2], [x, y]: [Self; 2]) -> [u64; 2] {
        [Self::lazy_add(a, x), Self::lazy_add(b, y)]
    }

    fn pair_finish(sums: [u64; 2]) -> [Self; 2] {
        sums.map(reduce)
    }

    fn from_block(block: Block) -> Self {
        reduce(block.low())
    }

    fn from_words(words: &[u64]) -> Self {
        // 2^64 = 2^32 * 2^32 for the high word: at a distance of 2^-97 from uniform.
        reduce(u64::from(reduce(words[1]).0) * u64::from(reduce(u64::MAX).0 + 1)) + reduce(words[0])
    }

    fn bit(self, i: u32) -> Choice {
        assert!(i < Self::BITS, "bit {i} of 31");
        Choice::from((self.0 >> i) as u8 & 1)
    }

    fn power_of_two(i: u32) -> Self {
        assert!(i < Self::BITS, "2^{i} of 31 bits");
        Self(1 << i)
    }

    fn write(xs: &[Self], out: &mut Vec<u8>) {
        xs.iter().for_each(|x| out.extend(x.0.to_le_bytes()));
    }

    fn read(bytes: &[u8], out: &mut [Self]) -> Result<(), NotCanonical> {
        let mut canonical = true;
        for (bytes, out) in bytes.chunks_exact(4).zip(out) {
            let value = u32::from_le_bytes(bytes.try_into().unwrap());
            canonical &= value < P;
            *out = reduce(value.into());
        }
        canonical.then_some(()).ok_or(NotCanonical { ring: Self::NAME })
    }
}

impl Extended<4> for Bear {
    const EXTENSION: &'static str = "babybearx4";
    // X^4 = 11
    const TOP: [Self; 4] = [Self(11), Self(0), Self(0), Self(0)];
}

impl Field for Bear {
    const ORDER_LESS_TWO: u128 = P as u128 - 2;
}

impl SubfieldBase for Bear {}

type Bearx4 = Extension<Bear, 4>;

fn check<B: Ring, R: VoleRing<B>>(plan: &Plan, draws: &[usize]) {
    let ((u, v), (x, w)) = run_two_parties(
        |channel| {
            let mut sender = Sender::<R, B>::setup(plan, SESSION, rng(1), channel).unwrap();
            let (mut us, mut vs) = (Vec::new(), Vec::new());
            for n in draws {
                let (mut u, mut v) = (vec![B::ZERO; *n], vec![R::ZERO; *n]);
                sender.extend(&mut u, &mut v, channel).unwrap();
                us.extend(u);
                vs.extend(v);
            }
            (us, vs)
        },
        |channel| {
            let mut receiver =
                Receiver::<R, B>::setup(plan, None, SESSION, rng(2), channel).unwrap();
            let mut ws = Vec::new();
            for n in draws {
                let mut w = vec![R::ZERO; *n];
                receiver.extend(&mut w, channel).unwrap();
                ws.extend(w);
            }
            (receiver.x(), ws)
        },
    );
    for (i, w) in w.iter().enumerate() {
        assert!(*w == x.mul_base(u[i]) + v[i], "{i} over {}, {}", R::NAME, plan.describe());
    }
    assert_eq!(u.len(), draws.iter().sum::<usize>());
}

fn sizes<B: Ring, R: VoleRing<B>>() {
    for security in [Security::SemiHonest, Security::Malicious] {
        for total in [1, 100, 4_001] {
            let plan = subfield_plan::<R, B>(Some(total), volery_pcg::Link::default(), security);
            check::<B, R>(&plan.unwrap(), &[total as usize]);
        }
        for (set, instances) in [("r14", None), ("b10", Some(2))] {
            let options = PlanOptions {
                total: Some(1_600_000),
                set: Some(set),
                instances,
                security,
                ..PlanOptions::default()
            };
            let plan = Plan::new(Kind::Vole(R::FIELD), &options).unwrap();
            let draws: &[usize] = if set == "r14" { &[1, 30_000, 7] } else { &[1_599_900, 100] };
            check::<B, R>(&plan, draws);
        }
    }
    let options = PlanOptions { protocol: Protocol::LowCommunication, ..PlanOptions::default() };
    assert!(Plan::new(Kind::Vole(R::FIELD), &options).is_err(), "only rings of ours");
}

#[test]
fn extensions_of_ours() {
    sizes::<Fp31, Fp31x4>();
    sizes::<Fp64, Fp64x2>();
}

/// Correlated OT by the names of a vector OLE.
#[test]
fn bits_with_macs() {
    let plan = volery_pcg::cot::plan(Some(1_001), volery_pcg::Link::default(), Security::Malicious);
    let hello = |role: Role| plan.hello(role);
    let x = Gf128::new(Block::from(7));
    let ((u, v), (held, w)) = run_two_parties(
        |channel| {
            let mut session = Session::begin(channel, &hello(Role::Receiver)).unwrap();
            let mut sender = bits::Sender::start(&plan, &mut session).unwrap();
            let (mut u, mut v) = (vec![F2::ZERO; 1_001], vec![Gf128::ZERO; 1_001]);
            sender.extend(&mut u, &mut v, &mut session).unwrap();
            (u, v)
        },
        |channel| {
            let mut session = Session::begin(channel, &hello(Role::Sender)).unwrap();
            let mut receiver = bits::Receiver::start(&plan, Some(x), &mut session).unwrap();
            let mut w = vec![Gf128::ZERO; 1_001];
            receiver.extend(&mut w, &mut session).unwrap();
            (receiver.x(), w)
        },
    );
    assert!(held == x && u.contains(&F2::ZERO) && u.contains(&F2::ONE));
    assert!((0..1_001).all(|i| w[i] == x.mul_base(u[i]) + v[i]));
}

#[test]
fn a_ring_of_ones_own() {
    sizes::<Bear, Bearx4>();
}
