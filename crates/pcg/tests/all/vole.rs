//! Vector-OLE of every size, and at the ends of rounds.

use volery_channel::run_two_parties;
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_pcg::{
    Kind, Noise, Plan, PlanOptions, Protocol, Security, Trees, lpn::set_named, vole::VoleRing,
};

use crate::common::{ReceivedVoles, SentVoles, assert_voles, vole_receiver, vole_sender};

fn plan<R: VoleRing>(n: usize, noise: Noise, security: Security) -> Plan {
    let options = PlanOptions {
        total: Some(n as u64),
        noise,
        security,
        protocol: if n < 4500 { Protocol::Auto } else { Protocol::Primal },
        ..PlanOptions::default()
    };
    Plan::new(Kind::Vole(R::FIELD), &options).unwrap()
}

/// The plans over the ring.
fn securities<R: VoleRing>() -> impl Iterator<Item = Security> {
    let malicious = (R::NAME != Z64::NAME).then_some(Security::Malicious);
    std::iter::once(Security::SemiHonest).chain(malicious)
}

fn run<R: VoleRing>(plan: &Plan, draws: &[usize]) -> (SentVoles<R>, ReceivedVoles<R>) {
    run_two_parties(
        |channel| vole_sender(plan, draws, channel),
        |channel| vole_receiver(plan, draws, channel),
    )
}

fn check<R: VoleRing>(plan: &Plan, n: usize) {
    assert_voles(&run::<R>(plan, &[n]));
}

#[test]
fn every_size() {
    fn of_ring<R: VoleRing>() {
        let plan = |n, noise| plan::<R>(n, noise, Security::SemiHonest);
        for noise in [Noise::Regular, Noise::Uniform] {
            for n in [0, 1, 4000, 4001, 4609, 17_537, 134_145] {
                check::<R>(&plan(n, noise), n);
            }
        }
        let draws = [0, 1, 2, 47, 48, 49, 10_007, 1, 10_000, 9856];
        assert_voles(&run::<R>(&plan(30_011, Noise::Regular), &draws));
    }
    of_ring::<Fp61>();
    of_ring::<Z64>();
    of_ring::<Gf128>();
}

#[test]
#[should_panic(expected = "a plan for z64")]
fn a_plan_is_for_one_ring() {
    let plan = plan::<Fp61>(5, Noise::Regular, Security::SemiHonest);
    run::<Z64>(&plan, &[3]);
}

/// Around a whole instance, and around the outputs of a round that reserves a base for the next.
#[test]
fn around_the_ends_of_rounds() {
    fn small<R: VoleRing>() {
        for (security, trees) in securities::<R>()
            .flat_map(|security| [Trees::Half, Trees::Ggm].map(|trees| (security, trees)))
        {
            let set = set_named("r14").unwrap();
            let mask = usize::from(security == Security::Malicious);
            let made = set.n - set.k - set.t - mask;
            for end in [set.n, made + set.n] {
                for total in [end - 1, end, end + 1] {
                    let options = PlanOptions {
                        total: Some(total as u64),
                        security,
                        trees,
                        set: Some(set.name),
                        ..PlanOptions::default()
                    };
                    check::<R>(&Plan::new(Kind::Vole(R::FIELD), &options).unwrap(), total);
                }
            }
        }
    }
    small::<Fp61>();
    small::<Z64>();
    small::<Gf128>();
}

/// The 80-bit instances of the 2019 paper, one round on a base by Gilboa's multiplication.
#[test]
fn the_papers_instances() {
    let plan = |field, n| Plan::paper80(field, n as u64).unwrap();
    check::<Fp61>(&plan(Fp61::FIELD, 1 << 14), 1 << 14);
    check::<Z64>(&plan(Z64::FIELD, 1 << 16), 1 << 16);
}
