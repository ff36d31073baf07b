//! Vector-OLE over gf128 whose `u` have fewer bits: from packed bases and from dual LPN.

use volery_channel::{Channel, Role, Stats, run_two_channels, run_two_parties};
use volery_field::{Fp61, Gf128, Z64};
use volery_ot::softspoken::SmallField;
use volery_pcg::{
    Base, Error, Kind, Plan, PlanError, PlanOptions, Protocol, Security,
    vole::{Receiver, Sender, VoleRing, shared_setup},
};

use crate::common::{SESSION, assert_voles, rng, vole_receiver, vole_sender};

const DIRECT: Protocol = Protocol::Direct(Base::Packed(SmallField::Bits2));
const PROTOCOLS: [Protocol; 2] = [DIRECT, Protocol::LowCommunication];

fn options(protocol: Protocol, value_bits: Option<u32>, total: usize) -> PlanOptions<'static> {
    PlanOptions {
        total: Some(total as u64),
        security: Security::SemiHonest,
        protocol,
        value_bits,
        ..PlanOptions::default()
    }
}

fn plan(protocol: Protocol, value_bits: Option<u32>, total: usize) -> Plan {
    Plan::new(Kind::Vole(Gf128::FIELD), &options(protocol, value_bits, total)).unwrap()
}

/// Checks `w = u*x + v` for `n` correlations drawn in two pieces, and returns `u` and the counters
/// of the sender's channel.
fn run(plan: &Plan, n: usize) -> (Vec<u128>, Stats) {
    let draws = [n / 3, n - n / 3];
    let ((sent, stats), received) = run_two_parties(
        |channel| (vole_sender(plan, &draws, channel), channel.stats()),
        |channel| vole_receiver(plan, &draws, channel),
    );
    let voles = (sent, received);
    assert_voles(&voles);
    let ((u, v), (_, w)) = voles;
    let wide = |values: &[Gf128]| values.iter().any(|v| u128::from(v.value()) >> 127 == 1);
    assert!(n < 1000 || (wide(&v) && wide(&w)), "v and w in all of gf128");
    (u.iter().map(|u| u.value().into()).collect(), stats)
}

/// Bits from `l` on are zero, those below are random, and the traffic is the predicted one.
#[test]
fn values_have_their_bits() {
    for protocol in PROTOCOLS {
        for bits in [8, 64, 72, 80, 88, 127] {
            for n in [0, 1, 1000, 300_000] {
                let plan = plan(protocol, Some(bits), n);
                assert_eq!(plan.value_bits(), Some(bits));
                let (u, stats) = run(&plan, n);
                assert!(u.iter().all(|u| u >> bits == 0), "{}", plan.describe());
                for bit in 0..if n < 1000 { 0 } else { bits } {
                    let ones = u.iter().filter(|u| *u >> bit & 1 == 1).count() as f64;
                    let (mean, deviation) = (n as f64 / 2.0, (n as f64).sqrt() / 2.0);
                    assert!(
                        (ones - mean).abs() < 7.0 * deviation,
                        "bit {bit}: {ones} ones of {n}, {}",
                        plan.describe()
                    );
                }
                if let Some(stated) = plan.dual_bytes() {
                    let bytes = stats.bytes_sent + stats.bytes_received;
                    assert!((stated..stated + 30_000).contains(&bytes), "{bytes} {stated}");
                }
            }
        }
    }
}

/// A base sends a bit in proportion to those of its values: the prediction counts it, and so does
/// the base of dual LPN.
#[test]
fn fewer_bits_send_less() {
    let n = 100_000;
    let predicted = |protocol, bits| {
        let options = options(protocol, bits, n);
        let all = Plan::candidates(Kind::Vole(Gf128::FIELD), &options).unwrap();
        (all[0].bytes, all[0].seconds)
    };
    let (whole, short) = (predicted(DIRECT, None), predicted(DIRECT, Some(64)));
    assert!((0.50..0.51).contains(&(short.0 / whole.0)), "{short:?} {whole:?}");
    assert!(short.1 < whole.1, "{short:?} {whole:?}");
    let dual = Protocol::LowCommunication;
    let [whole, short] = [None, Some(64)].map(|bits| plan(dual, bits, n));
    let trees = whole.dual().unwrap().trees;
    let saved = whole.dual_bytes().unwrap() - short.dual_bytes().unwrap();
    assert_eq!(saved, 15 * 64 / 8 * trees as u64);
    let less = predicted(dual, None).0 - predicted(dual, Some(64)).0;
    assert!((saved as f64..2.0 * saved as f64).contains(&less), "{less}");
}

/// `docs/low-communication.md` has the traffic of 80 bits.
#[test]
fn the_document_has_the_traffic() {
    let n = 1 << 20;
    let [whole, short] = [None, Some(80)].map(|bits| {
        let bytes = plan(Protocol::LowCommunication, bits, n).dual_bytes().unwrap();
        format!("{:.2}", 8.0 * bytes as f64 / n as f64)
    });
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/low-communication.md");
    let page = std::fs::read_to_string(path).unwrap();
    let says = format!("2^20 correlations take {short} bits each in place of {whole}.");
    assert!(page.contains(&says), "{says}");
}

/// 128 bits are the whole ring; any other number is in the name of the plan.
#[test]
fn plans_name_their_bits() {
    for protocol in PROTOCOLS {
        let [whole, all, short] = [None, Some(128), Some(80)].map(|bits| plan(protocol, bits, 5));
        assert_eq!(all.describe(), whole.describe());
        assert_eq!(all.value_bits(), None);
        assert_eq!(all.hello(Role::Sender).fields, whole.hello(Role::Sender).fields);
        let name = whole.describe();
        let (base, rest) = name.split_at("packed8".len());
        assert_eq!(short.describe(), format!("{base}/80{rest}"));
    }
    // Without a name of a protocol only the bases remain.
    let auto = options(Protocol::Auto, Some(80), 1 << 24);
    let all = Plan::candidates(Kind::Vole(Gf128::FIELD), &auto).unwrap();
    assert!(all.len() > 1 && all.iter().all(|one| one.plan.is_direct()));
}

#[test]
fn refused_bits() {
    let refused = |kind, options| Plan::candidates(kind, &options).unwrap_err();
    let gf128 = Kind::Vole(Gf128::FIELD);
    for protocol in PROTOCOLS {
        for bits in [0, 1, 7, 129, u32::MAX] {
            let error = refused(gf128, options(protocol, Some(bits), 5));
            assert_eq!(error, PlanError::NoSuchValueBits(bits));
        }
        let malicious =
            PlanOptions { security: Security::Malicious, ..options(protocol, Some(80), 5) };
        assert_eq!(refused(gf128, malicious), PlanError::ValueBitsNotMalicious);
    }
    let named = PlanOptions { set: Some("b10"), ..options(Protocol::Auto, Some(80), 5) };
    for primal in [named, options(Protocol::Primal, Some(80), 5)] {
        assert_eq!(refused(gf128, primal), PlanError::ValueBitsNotPrimal);
    }
    for kind in [Kind::Cot, Kind::Vole(Fp61::FIELD), Kind::Vole(Z64::FIELD)] {
        for bits in [61, 64, 80, 128] {
            let error = refused(kind, options(Protocol::Auto, Some(bits), 5));
            assert_eq!(error, PlanError::NoSuchValueBits(bits));
        }
    }
}

/// Parties with different numbers of bits do not get past the setup, even where nothing else
/// differs.
#[test]
fn other_bits_are_noticed_in_the_setup() {
    for (protocol, others) in PROTOCOLS.into_iter().zip([[80, 88], [64, 80]]) {
        let plans = others.map(|bits| plan(protocol, Some(bits), 1000));
        let (left, right) = Channel::memory_pair();
        let ((sender, _), (receiver, _)) = run_two_channels(
            left,
            right,
            |channel| Sender::<Gf128>::setup(&plans[0], SESSION, rng(1), channel).map(drop),
            |channel| Receiver::<Gf128>::setup(&plans[1], None, SESSION, rng(2), channel).map(drop),
        );
        assert!(matches!(receiver, Err(Error::Mismatch { .. })), "{receiver:?}");
        assert!(matches!(sender, Err(Error::Mismatch { .. })), "{sender:?}");
        let (left, right) = Channel::memory_pair();
        let ((sender, _), (receiver, _)) = run_two_channels(
            left,
            right,
            |channel| {
                let mut shared = shared_setup::Sender::setup(SESSION, rng(1), channel).unwrap();
                Sender::<Gf128>::setup_with(&mut shared, &plans[0], rng(3), channel).map(drop)
            },
            |channel| {
                let mut shared = shared_setup::Receiver::setup(SESSION, rng(2), channel).unwrap();
                let (plan, rng) = (&plans[1], rng(4));
                Receiver::<Gf128>::setup_with(&mut shared, plan, None, rng, channel).map(drop)
            },
        );
        assert!(matches!(receiver, Err(Error::Mismatch { .. })), "{receiver:?}");
        assert!(matches!(sender, Err(Error::Mismatch { .. })), "{sender:?}");
    }
}
