//! Correlated OT and vector-OLE from dual LPN in every ring.

use volery_channel::{Stats, run_two_parties};
use volery_field::{Fp61, Gf128, Z64};
use volery_ot::{CotReceiver, CotSender};
use volery_pcg::{Kind, Plan, PlanOptions, Protocol, Security, cot, vole::VoleRing};
use volery_primitives::{Block, bits};

use crate::common::{
    SESSION, Step, assert_cots, assert_voles, cot_receiver, cot_sender, rng, total, vole_receiver,
    vole_sender,
};

fn plan(kind: Kind, security: Security, total: Option<u64>) -> Plan {
    let options = PlanOptions {
        total,
        security,
        protocol: Protocol::LowCommunication,
        ..PlanOptions::default()
    };
    Plan::new(kind, &options).unwrap()
}

/// The first instance can be prepared, with all of its messages, and drawn afterwards.
#[test]
fn correlated_ots() {
    for security in [Security::SemiHonest, Security::Malicious] {
        for (steps, delta) in [
            (&[1].map(Step::Draw)[..], None),
            (&[1000, 1, 63, 20_000].map(Step::Draw), Some(Block::from(0xabcd << 64))),
            (&[Step::Prepare, Step::Draw(40_000), Step::Draw(5000)], None),
        ] {
            let total = total(steps) as u64;
            let plan = plan(Kind::Cot, security, Some(total));
            let cots = run_two_parties(
                |channel| cot_sender(&plan, delta, steps, channel),
                |channel| cot_receiver(&plan, steps, channel),
            );
            assert_cots(&cots);
            let mut sorted = cots.0.1;
            sorted.sort_unstable_by_key(|v| u128::from(*v));
            sorted.dedup();
            assert_eq!(sorted.len() as u64, total, "all different");
        }
    }
}

fn voles<R: VoleRing>(security: Security, draws: &[usize]) {
    let total = draws.iter().sum::<usize>();
    let plan = plan(Kind::Vole(R::FIELD), security, Some(total as u64));
    let voles = run_two_parties(
        |channel| vole_sender::<R>(&plan, draws, channel),
        |channel| vole_receiver::<R>(&plan, draws, channel),
    );
    assert_voles(&voles);
    let zeros = voles.0.0.iter().filter(|u| **u == R::ZERO).count();
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
                    |channel| drop(cot_sender(&plan, None, &[Step::Draw(n)], channel)),
                    |channel| {
                        cot_receiver(&plan, &[Step::Draw(n)], channel);
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

fn vole_stats<R: VoleRing>(plan: &Plan, n: usize) -> Stats {
    let (_, stats) = run_two_parties(
        |channel| drop(vole_sender::<R>(plan, &[n], channel)),
        |channel| {
            vole_receiver::<R>(plan, &[n], channel);
            channel.stats()
        },
    );
    stats
}

/// The table of the document, row by row.
#[test]
fn the_document_has_the_traffic_of_the_plans() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/low-communication.md");
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

/// A stream longer than one instance: the reserve of one is the base of the next.
#[test]
fn a_second_instance() {
    let largest = 1 << 25;
    let total = largest + 1000;
    let plan = plan(Kind::Cot, Security::SemiHonest, Some(total as u64));
    let ((delta, v), (u, w)) = run_two_parties(
        |channel| {
            let mut sender = cot::Sender::setup(&plan, None, SESSION, rng(1), channel).unwrap();
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
            let mut receiver = cot::Receiver::setup(&plan, SESSION, rng(2), channel).unwrap();
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
