//! A ring of one's own, here the integers modulo `15 * 2^27 + 1` ("BabyBear"), with MACs in its
//! extension of degree 4; and the extensions of this project.

use bytemuck::{Pod, Zeroable};
use volery_channel::{Role, Session, run_two_parties};
use volery_field::{
    Extended, Extension, ExtensionOf as _, F2, Field, Fp31, Fp31x4, Fp64, Fp64x2, Gf128, Ring,
    element, prime_field,
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

/// Remainders by a public constant: multiplications. 2^64 is `TOP` modulo the prime.
const fn reduce(x: u128) -> Bear {
    const TOP: u64 = u64::MAX % P as u64 + 1;
    let (low, high) = (x as u64 % P as u64, (x >> 64) as u64 % P as u64);
    Bear(((low + high * TOP) % P as u64) as u32)
}

element!(Bear: |x, y|
    reduce(u128::from(x.0) + u128::from(y.0)),
    reduce(u128::from(x.0) + u128::from(P - y.0)),
    reduce(u128::from(x.0) * u128::from(y.0)),
    reduce(u128::from(P - x.0))
);
prime_field!(Bear(u32): "babybear", 31 bits, 2 words, u128 sums, reduce);

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
