//! Vector-OLE over TCP, at the ends of rounds, in long streams; its statistics.

use volery_channel::{Channel, run_two_parties, run_two_parties_tcp};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_pcg::{
    Error, Kind, Link, Noise, Plan, PlanOptions, Protocol, Security, Trees,
    lpn::set_named,
    vole::{self, Receiver, Sender, VoleRing},
};

use crate::common::{
    ReceivedVoles, SESSION, SentVoles, assert_voles, rng, vole_receiver, vole_sender,
};

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
#[should_panic(expected = "no more correlations than the plan was made for")]
fn no_more_than_planned() {
    let plan = plan::<Fp61>(5, Noise::Regular, Security::SemiHonest);
    run::<Fp61>(&plan, &[3, 3]);
}

#[test]
#[should_panic(expected = "a plan for z64")]
fn a_plan_is_for_one_ring() {
    let plan = plan::<Fp61>(5, Noise::Regular, Security::SemiHonest);
    run::<Z64>(&plan, &[3]);
}

#[test]
fn over_tcp() {
    fn check<R: VoleRing>(n: usize, noise: Noise) {
        for security in securities::<R>() {
            let plan = plan::<R>(n, noise, security);
            assert_voles(&run_two_parties_tcp(
                |channel| vole_sender::<R>(&plan, &[n], channel),
                |channel| vole_receiver::<R>(&plan, &[n], channel),
            ));
        }
    }
    for noise in [Noise::Regular, Noise::Uniform] {
        for n in [0, 1, 5003, 100_003] {
            check::<Fp61>(n, noise);
            check::<Z64>(n, noise);
            check::<Gf128>(n, noise);
        }
    }
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

/// A whole instance of the largest set, and one more.
#[test]
fn around_the_end_of_a_large_round() {
    let set = set_named("b12").unwrap();
    for total in [set.n, set.n + 1] {
        let options = PlanOptions {
            total: Some(total as u64),
            set: Some(set.name),
            ..PlanOptions::default()
        };
        check::<Fp61>(&Plan::new(Kind::Vole(Fp61::FIELD), &options).unwrap(), total);
    }
}

/// The 80-bit instances of the 2019 paper, one round on a base by Gilboa's multiplication.
#[test]
fn the_papers_instances() {
    let plan = |field, n| Plan::paper80(field, n as u64).unwrap();
    check::<Fp61>(&plan(Fp61::FIELD, 1 << 14), 1 << 14);
    check::<Z64>(&plan(Z64::FIELD, 1 << 16), 1 << 16);
}

/// Several rounds of large instances, drawn in pieces.
#[test]
fn a_long_stream() {
    long_stream(Security::SemiHonest);
    long_stream(Security::Malicious);
}

fn long_stream(security: Security) {
    let plan = vole::plan::<Fp61>(None, Link::default(), security).unwrap();
    let (pieces, piece) = (5, 1_000_003);
    run_two_parties(
        |channel| {
            let mut sender = Sender::<Fp61>::setup(&plan, SESSION, rng(1), channel).unwrap();
            let (mut u, mut v) = (vec![Fp61::ZERO; piece], vec![Fp61::ZERO; piece]);
            for _ in 0..pieces {
                sender.extend(&mut u, &mut v, channel).unwrap();
                // For the receiver's check only.
                let mut bytes = Vec::new();
                Fp61::write(&u, &mut bytes);
                Fp61::write(&v, &mut bytes);
                channel.send(&bytes).unwrap();
                channel.flush().unwrap();
            }
        },
        |channel| {
            let mut receiver =
                Receiver::<Fp61>::setup(&plan, None, SESSION, rng(2), channel).unwrap();
            let mut w = vec![Fp61::ZERO; piece];
            let (mut u, mut v) = (w.clone(), w.clone());
            for number in 0..pieces {
                receiver.extend(&mut w, channel).unwrap();
                let mut bytes = vec![0; 8 * piece];
                for values in [&mut u, &mut v] {
                    channel.recv(&mut bytes).unwrap();
                    Fp61::read(&bytes, values).unwrap();
                }
                let x = receiver.x();
                assert!((0..piece).all(|i| w[i] == u[i] * x + v[i]), "piece {number}");
            }
        },
    );
}

/// The values look uniform: chi-square over the top byte of each vector, and no two alike.
#[test]
fn outputs_look_random() {
    let n = 200_000;
    for noise in [Noise::Regular, Noise::Uniform] {
        let plan = plan::<Z64>(n, noise, Security::SemiHonest);
        let ((u, v), (_, w)) = run::<Z64>(&plan, &[n]);
        for (name, values) in [("u", &u), ("v", &v), ("w", &w)] {
            for shift in [0, 56] {
                let mut count = [0u32; 256];
                for value in values {
                    count[(value.value() >> shift) as usize & 255] += 1;
                }
                let mean = n as f64 / 256.0;
                let chi: f64 = count.iter().map(|c| (f64::from(*c) - mean).powi(2) / mean).sum();
                // Mean 255, standard deviation 22.6: six standard deviations in each direction.
                assert!((chi - 255.0).abs() < 136.0, "{name}: chi-square {chi}");
            }
            let mut sorted: Vec<_> = values.iter().map(|value| value.value()).collect();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), n, "{name}: two values alike");
        }
    }
}

#[test]
fn an_object_whose_call_failed_stays_failed() {
    let n = 50_000;
    let plan = plan::<Fp61>(n, Noise::Regular, Security::Malicious);
    run_two_parties(
        |channel| {
            let mut sender = Sender::<Fp61>::setup(&plan, SESSION, rng(1), channel).unwrap();
            let (mut u, mut v) = (vec![Fp61::ZERO; 10], vec![Fp61::ZERO; 10]);
            // A channel without a peer.
            let (mut lonely, peer) = Channel::memory_pair();
            drop(peer);
            assert!(matches!(sender.extend(&mut u, &mut v, &mut lonely), Err(Error::Disconnected)));
            assert!(matches!(sender.extend(&mut u, &mut v, channel), Err(Error::Broken)));
        },
        |channel| {
            let mut receiver =
                Receiver::<Fp61>::setup(&plan, None, SESSION, rng(2), channel).unwrap();
            let mut w = vec![Fp61::ZERO; 10];
            let (mut lonely, peer) = Channel::memory_pair();
            drop(peer);
            assert!(matches!(receiver.extend(&mut w, &mut lonely), Err(Error::Disconnected)));
            assert!(matches!(receiver.extend(&mut w, channel), Err(Error::Broken)));
        },
    );
}
