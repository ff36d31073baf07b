//! Correlated OT and vector-OLE from dual LPN in every ring, over memory and TCP.

use volery_channel::{Channel, SessionId, run_two_parties, run_two_parties_tcp};
use volery_field::{Fp61, Gf128, Z64};
use volery_ot::{CotReceiver, CotSender};
use volery_pcg::{
    Kind, Noise, Plan, PlanError, PlanOptions, Protocol, Security, Trees, cot,
    vole::{self, VoleRing},
};
use volery_primitives::{Block, bits, prg::Prg};

const SESSION: SessionId = SessionId::from_bytes([9; 32]);

fn plan(kind: Kind, security: Security, total: Option<u64>) -> Plan {
    let options = PlanOptions {
        total,
        security,
        protocol: Protocol::LowCommunication,
        ..PlanOptions::default()
    };
    Plan::new(kind, &options).unwrap()
}

type Cots = ((Block, Vec<Block>), (Vec<u8>, Vec<Block>));

fn cot_sender(
    plan: &Plan,
    delta: Option<Block>,
    draws: &[usize],
    channel: &mut Channel,
) -> (Block, Vec<Block>) {
    let mut sender =
        cot::Sender::setup(plan, delta, SESSION, Prg::new(Block::from(1)), channel).unwrap();
    let mut v = vec![Block::ZERO; draws.iter().sum()];
    let mut rest = &mut v[..];
    for n in draws {
        let now;
        (now, rest) = rest.split_at_mut(*n);
        sender.extend(now, channel).unwrap();
    }
    (sender.delta(), v)
}

fn cot_receiver(plan: &Plan, draws: &[usize], channel: &mut Channel) -> (Vec<u8>, Vec<Block>) {
    let mut receiver =
        cot::Receiver::setup(plan, SESSION, Prg::new(Block::from(2)), channel).unwrap();
    let (mut choices, mut w) = (Vec::new(), Vec::new());
    for n in draws {
        let (mut u, mut now) = (vec![0; bits::bytes_for(*n)], vec![Block::ZERO; *n]);
        receiver.extend(&mut u, &mut now, channel).unwrap();
        choices.extend(bits::unpack(&u, *n));
        w.extend(now);
    }
    (choices.iter().map(|u| u8::from(*u)).collect(), w)
}

fn assert_cots(((delta, v), (u, w)): Cots) {
    assert_eq!(v.len(), w.len());
    for i in 0..v.len() {
        let u_delta = if u[i] == 1 { delta } else { Block::ZERO };
        assert!(w[i] == v[i] ^ u_delta, "correlated OT {i}");
    }
    let ones = u.iter().filter(|u| **u == 1).count();
    let (n, six) = (v.len() as f64, 3.0 * (v.len() as f64).sqrt());
    assert!((ones as f64 - n / 2.0).abs() <= six, "{ones} ones of {n}");
    let mut sorted = v;
    sorted.sort_unstable_by_key(|v| u128::from(*v));
    sorted.dedup();
    assert_eq!(sorted.len() as f64, n, "all different");
}

#[test]
fn correlated_ots() {
    for security in [Security::SemiHonest, Security::Malicious] {
        for (draws, delta) in [
            (&[1][..], None),
            (&[1000, 1, 63, 20_000], Some(Block::from(0xabcd << 64))),
            (&[40_000, 5000], None),
        ] {
            let total = draws.iter().sum::<usize>() as u64;
            let plan = plan(Kind::Cot, security, Some(total));
            assert_cots(run_two_parties(
                |channel| cot_sender(&plan, delta, draws, channel),
                |channel| cot_receiver(&plan, draws, channel),
            ));
        }
    }
}

#[test]
fn correlated_ots_over_tcp() {
    let plan = plan(Kind::Cot, Security::Malicious, Some(10_000));
    assert_cots(run_two_parties_tcp(
        |channel| cot_sender(&plan, None, &[10_000], channel),
        |channel| cot_receiver(&plan, &[10_000], channel),
    ));
}

fn voles<R: VoleRing>(security: Security, draws: &[usize]) {
    let total = draws.iter().sum::<usize>();
    let plan = plan(Kind::Vole(R::FIELD), security, Some(total as u64));
    let ((u, v), (x, w)) = run_two_parties(
        |channel| {
            let mut sender =
                vole::Sender::<R>::setup(&plan, SESSION, Prg::new(Block::from(1)), channel)
                    .unwrap();
            let (mut u, mut v) = (vec![R::ZERO; total], vec![R::ZERO; total]);
            let mut first = 0;
            for n in draws {
                let (u, v) = (&mut u[first..first + n], &mut v[first..first + n]);
                sender.extend(u, v, channel).unwrap();
                first += n;
            }
            (u, v)
        },
        |channel| {
            let rng = Prg::new(Block::from(2));
            let mut receiver =
                vole::Receiver::<R>::setup(&plan, None, SESSION, rng, channel).unwrap();
            let mut w = vec![R::ZERO; total];
            let mut rest = &mut w[..];
            assert!(receiver.prepare(channel).unwrap() >= draws[0]);
            for n in draws {
                let now;
                (now, rest) = rest.split_at_mut(*n);
                receiver.extend(now, channel).unwrap();
            }
            (receiver.x(), w)
        },
    );
    for i in 0..total {
        assert!(w[i] == u[i] * x + v[i], "vector-OLE {i} over {}", R::NAME);
    }
    let zeros = u.iter().filter(|u| **u == R::ZERO).count();
    assert_eq!(zeros, 0, "no u is zero, but for a probability of 2^-40");
}

#[test]
fn vector_oles() {
    voles::<Fp61>(Security::SemiHonest, &[3000, 7]);
    voles::<Fp61>(Security::Malicious, &[60_000]);
    voles::<Gf128>(Security::SemiHonest, &[100]);
    voles::<Gf128>(Security::Malicious, &[1000]);
    voles::<Z64>(Security::SemiHonest, &[3000, 10_000]);
}

#[test]
fn refused_plans() {
    let low = PlanOptions {
        protocol: Protocol::LowCommunication,
        ..PlanOptions::default()
    };
    let refused = |options: PlanOptions<'_>| Plan::new(Kind::Cot, &options).unwrap_err();
    let uniform = PlanOptions {
        noise: Noise::Uniform,
        ..low
    };
    let ggm = PlanOptions {
        trees: Trees::Ggm,
        ..low
    };
    let set = PlanOptions {
        set: Some("b10"),
        ..low
    };
    assert_eq!(refused(uniform), PlanError::NotDual);
    assert_eq!(refused(ggm), PlanError::NotDual);
    assert_eq!(refused(set), PlanError::NoSuchSet("b10".to_owned()));
    let z64 = Plan::new(Kind::Vole(Z64::FIELD), &low).unwrap_err();
    assert_eq!(z64, PlanError::NotMalicious);
}

#[test]
fn plans_say_what_they_are() {
    let cots = plan(Kind::Cot, Security::Malicious, Some(1 << 20));
    assert_eq!(cots.describe(), "softspoken8+dual-ec12x408+13x52");
    assert!(!cots.is_direct() && cots.schedule().is_empty());
    assert_eq!(cots.claimed_bits(), 128);
    assert_eq!(cots.statistical_bits(), Some(63));
    assert!((129.0..129.2).contains(&cots.security_bits()));
    for part in [
        "dual LPN with an expand-convolute code of estimated distance",
        "129.1 bits over f2, by linear tests at a distance of 0.10",
    ] {
        assert!(cots.assumption().contains(part), "{}", cots.assumption());
    }
    let fp61 = Kind::Vole(Fp61::FIELD);
    let voles = plan(fp61, Security::SemiHonest, Some(1 << 20));
    assert_eq!(voles.describe(), "gilboa+dual-ec11x930+12x47");
}

/// Several instances, the base of each reserved by the one before; drawn in pieces, of which the
/// test compares only the last ones.
#[test]
fn traffic_is_what_the_plan_says() {
    for (kind, security, log) in [
        (Kind::Cot, Security::SemiHonest, 14),
        (Kind::Cot, Security::Malicious, 18),
        (Kind::Vole(Fp61::FIELD), Security::Malicious, 14),
        (Kind::Vole(Fp61::FIELD), Security::SemiHonest, 17),
        (Kind::Vole(Z64::FIELD), Security::SemiHonest, 14),
        (Kind::Vole(Gf128::FIELD), Security::Malicious, 14),
    ] {
        let n = 1usize << log;
        let plan = plan(kind, security, Some(n as u64));
        let sent = match kind {
            Kind::Cot => {
                let (_, stats) = run_two_parties(
                    |channel| drop(cot_sender(&plan, None, &[n], channel)),
                    |channel| {
                        cot_receiver(&plan, &[n], channel);
                        channel.stats()
                    },
                );
                stats
            }
            Kind::Vole(field) if field == Fp61::FIELD => vole_stats::<Fp61>(&plan, n),
            Kind::Vole(field) if field == Z64::FIELD => vole_stats::<Z64>(&plan, n),
            Kind::Vole(_) => vole_stats::<Gf128>(&plan, n),
        };
        let bytes = sent.bytes_sent + sent.bytes_received;
        let stated = plan.dual_bytes().unwrap();
        assert!(
            (stated..stated + 30_000).contains(&bytes),
            "{kind:?}, {security}, 2^{log}: {bytes} bytes, stated {stated} and a setup"
        );
    }
}

fn vole_stats<R: VoleRing>(plan: &Plan, n: usize) -> volery_channel::Stats {
    let (_, stats) = run_two_parties(
        |channel| {
            let rng = Prg::new(Block::from(1));
            let mut sender = vole::Sender::<R>::setup(plan, SESSION, rng, channel).unwrap();
            sender
                .extend(&mut vec![R::ZERO; n], &mut vec![R::ZERO; n], channel)
                .unwrap();
        },
        |channel| {
            let rng = Prg::new(Block::from(2));
            let mut receiver =
                vole::Receiver::<R>::setup(plan, None, SESSION, rng, channel).unwrap();
            receiver.extend(&mut vec![R::ZERO; n], channel).unwrap();
            channel.stats()
        },
    );
    stats
}

/// The table of the document, row by row.
#[test]
fn the_document_has_the_traffic_of_the_plans() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/low-communication.md"
    );
    let page = std::fs::read_to_string(path).unwrap();
    let mut expected = String::new();
    for log in (14..=26).step_by(2) {
        let each = |kind, security| {
            let n = 1u64 << log;
            let plan = plan(kind, security, Some(n));
            format!("{:.2}", 8.0 * plan.dual_bytes().unwrap() as f64 / n as f64)
        };
        let cells = [
            each(Kind::Cot, Security::Malicious),
            each(Kind::Vole(Fp61::FIELD), Security::Malicious),
            each(Kind::Vole(Z64::FIELD), Security::SemiHonest),
            each(Kind::Vole(Gf128::FIELD), Security::Malicious),
        ];
        expected += &format!("| 2^{log} | {} |\n", cells.join(" | "));
    }
    assert!(page.contains(&expected), "the table is now\n{expected}");
}

/// All traffic of both parties for 2^24 COTs, setup included: at most 0.08 bits each.
#[test]
fn less_than_a_tenth_of_a_bit() {
    // Larger than the setup of a small run in the test above, which does not depend on the number.
    const SETUP: u64 = 14_000;
    let small = plan(Kind::Cot, Security::Malicious, Some(1000));
    let (_, stats) = run_two_parties(
        |channel| drop(cot_sender(&small, None, &[1000], channel)),
        |channel| {
            cot_receiver(&small, &[1000], channel);
            channel.stats()
        },
    );
    let sent = stats.bytes_sent + stats.bytes_received;
    assert!(sent < small.dual_bytes().unwrap() + SETUP, "{sent} bytes");
    let large = plan(Kind::Cot, Security::Malicious, Some(1 << 24));
    let bits = 8.0 * (large.dual_bytes().unwrap() + SETUP) as f64 / f64::from(1 << 24);
    assert!(bits < 0.08, "{bits} bits each");
}

/// A stream longer than one instance: the reserve of one is the base of the next.
#[test]
fn a_second_instance() {
    let largest = 1 << 25;
    let total = largest + 1000;
    let plan = plan(Kind::Cot, Security::SemiHonest, Some(total as u64));
    let ((delta, v), (u, w)) = run_two_parties(
        |channel| {
            let rng = Prg::new(Block::from(1));
            let mut sender = cot::Sender::setup(&plan, None, SESSION, rng, channel).unwrap();
            let mut v = vec![Block::ZERO; 1 << 20];
            let mut left = total;
            while left > 0 {
                v.truncate(left.min(v.len()));
                sender.extend(&mut v, channel).unwrap();
                left -= v.len();
            }
            (sender.delta(), v)
        },
        |channel| {
            let rng = Prg::new(Block::from(2));
            let mut receiver = cot::Receiver::setup(&plan, SESSION, rng, channel).unwrap();
            let (mut u, mut w) = (Vec::new(), vec![Block::ZERO; 1 << 20]);
            let mut left = total;
            while left > 0 {
                w.truncate(left.min(w.len()));
                u = vec![0; bits::bytes_for(w.len())];
                receiver.extend(&mut u, &mut w, channel).unwrap();
                left -= w.len();
            }
            (u, w)
        },
    );
    assert!(!v.is_empty());
    for i in 0..v.len() {
        let u_delta = if bits::bit(&u, i) { delta } else { Block::ZERO };
        assert!(w[i] == v[i] ^ u_delta);
    }
}
