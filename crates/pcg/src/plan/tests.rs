use volery_ot::softspoken::SmallField;

use super::*;

const KINDS: [Kind; 4] =
    [Kind::Cot, Kind::Vole(Field::Fp61), Kind::Vole(Field::Z64Odd), Kind::Vole(Field::Gf128)];

fn links() -> [Link; 3] {
    let link = |bits_per_second, round_trip| Link { bits_per_second, round_trip };
    [Link::default(), link(1e8, 0.02), link(1e6, 0.1)]
}

/// Each substream makes an equal part, and their number is a part of what both parties must have in
/// common.
#[test]
fn substreams_are_named_and_described() {
    let plan = |total, substreams| {
        let options = PlanOptions { total, set: Some("b11"), substreams, ..PlanOptions::default() };
        Plan::new(Kind::Cot, &options)
    };
    let (one, five) = (plan(Some(1_000_003), None).unwrap(), plan(Some(1_000_003), Some(5)));
    let five = five.unwrap();
    assert_eq!((one.substreams(), five.substreams()), (1, 5));
    assert!(!one.describe().contains('*'));
    assert!(five.describe().ends_with("*5"), "{}", five.describe());
    assert_eq!((five.total(), five.substream(0).total()), (Some(1_000_003), Some(200_001)));
    for substreams in [0, MAX_SUBSTREAMS + 1] {
        let refused = plan(None, Some(substreams));
        assert!(matches!(refused, Err(PlanError::NoSuchSubstreams(_))));
    }
}

fn plan(kind: Kind, total: Option<u64>, noise: Noise, link: Link) -> Plan {
    let security = match kind {
        Kind::Vole(Field::Z64Odd) => Security::SemiHonest,
        _ => Security::Malicious,
    };
    let options = PlanOptions { total, noise, security, link, ..PlanOptions::default() };
    Plan::new(kind, &options).unwrap()
}

/// The base of a round is the reserve of the round before, and the outputs add up to the total.
fn check(plan: &Plan, wanted: u64) {
    if plan.schedule.is_empty() {
        return;
    }
    let (plan, wanted) = (&plan.substream(0), wanted.div_ceil(plan.substreams() as u64));
    let (mut delivered, mut number, mut store) = (0, 0, plan.base_count());
    while delivered < wanted {
        let step = plan.step(number, delivered);
        assert!(step.need <= store, "round {number} of {plan:?}");
        assert!(step.keep + step.deliver <= step.n && step.n <= step.set.n * step.instances);
        store = step.keep;
        delivered += step.deliver as u64;
        number += 1;
        assert!(step.deliver > 0 || number < plan.schedule.len(), "progress");
    }
    if plan.total == Some(wanted) {
        assert_eq!(delivered, wanted);
    }
}

#[test]
fn rounds_feed_each_other() {
    for (kind, noise, link) in KINDS.into_iter().flat_map(|kind| {
        [Noise::Regular, Noise::Uniform]
            .into_iter()
            .flat_map(move |noise| links().map(|link| (kind, noise, link)))
    }) {
        for total in [0, 1, 4609, 18_689, 134_145, 870_401, 2_396_161, 10_000_000, 1 << 24, 1 << 40]
        {
            let plan = plan(kind, Some(total), noise, link);
            check(&plan, total.min(1 << 27));
            assert_eq!(plan.claimed_bits(), 128);
        }
        check(&plan(kind, None, noise, link), 100_000_000);
    }
    for total in [1, 1 << 14, 1 << 20, 1 << 24] {
        let plan = Plan::paper80(Field::Fp61, total).unwrap();
        check(&plan, total);
        assert!((56..64).contains(&plan.claimed_bits()));
    }
    for noise in [Noise::Regular, Noise::Uniform] {
        for security in [Security::SemiHonest, Security::Malicious] {
            check(&Plan::ferret(Some(10_000_000), noise, security), 10_000_000);
            check(&Plan::ferret(None, noise, security), 100_000_000);
        }
    }
}

/// No plan holds a set that is short of 128 bits in its ring, or one of a paper, unless requested
/// by the name of the paper.
#[test]
fn default_plans_hold_128_bits() {
    let around = |log: u32| [(1u64 << log) - 1, 1 << log, (1 << log) + 1].map(Some);
    let totals: Vec<_> = (0..=40).flat_map(around).chain([None]).collect();
    let link = |bits_per_second, round_trip| Link { bits_per_second, round_trip };
    let extremes = [link(1e3, 10.0), link(1e6, 0.0), link(1e12, 0.0)];
    let links = links().into_iter().chain(extremes);
    for link in links {
        for kind in KINDS {
            for noise in [Noise::Regular, Noise::Uniform] {
                for security in [Security::SemiHonest, Security::Malicious] {
                    for total in totals.iter().copied() {
                        let options =
                            PlanOptions { total, noise, security, link, ..PlanOptions::default() };
                        let Ok(plan) = Plan::new(kind, &options) else {
                            assert_eq!(
                                (kind, security),
                                (Kind::Vole(Field::Z64Odd), Security::Malicious)
                            );
                            continue;
                        };
                        assert!(plan.security_bits() >= 128.0, "{plan:?}");
                        assert_eq!(plan.claimed_bits(), 128);
                        for set in plan.schedule() {
                            assert!(!set.paper, "{plan:?}");
                            let level = set.level(kind.field()).unwrap();
                            assert!(level.bits >= 128.0, "{plan:?}");
                        }
                    }
                }
            }
        }
    }
}

/// Weaker plans are available by the name of the paper, and state their level.
#[test]
fn less_than_128_bits_by_name_only() {
    for set in sets().iter().filter(|set| set.weakest().bits < 128.0) {
        assert!(set.paper && set.claim < 128, "{}", set.name);
        for kind in KINDS {
            for security in [Security::SemiHonest, Security::Malicious] {
                let options = PlanOptions {
                    set: Some(set.name),
                    noise: set.noise,
                    security,
                    ..PlanOptions::default()
                };
                assert!(Plan::new(kind, &options).is_err(), "{}", set.name);
            }
        }
    }
    let plan = Plan::paper80(Field::Z64Odd, 1 << 20).unwrap();
    assert_eq!(plan.security_bits(), 63.6);
    let says = "63.6 bits for the weakest set, paper80-20 over z64, by domain reduction";
    assert!(plan.assumption().ends_with(says), "{}", plan.assumption());
    let plan = Plan::ferret(None, Noise::Regular, Security::Malicious);
    assert_eq!(plan.security_bits(), 85.1);
    let says = "85.1 bits for the weakest set, ferret-reg-setup over f2, by domain reduction";
    assert!(plan.assumption().ends_with(says), "{}", plan.assumption());
}

/// Few correlations use no LPN, nor do any on a fast link; the slower the link, the more is
/// computed to send less.
#[test]
fn the_plan_follows_from_number_and_link() {
    let name = |total, link| plan(Kind::Cot, Some(total), Noise::Regular, link).name();
    let [lan, wan, slow] = links();
    for link in [Link::LOOPBACK, lan, wan, slow] {
        let few = name(1000, link);
        assert!(few.starts_with("softspoken"), "{few}");
    }
    assert_eq!(name(1000, slow), "softspoken8");
    let many = |link| name(100_000_000, link);
    assert!(many(Link::LOOPBACK).starts_with("softspoken"));
    assert!(many(lan).starts_with("primal"), "{}", many(lan));
    assert_eq!(many(slow), "primal-b13");
}

/// Dual LPN is used where it is named, and nowhere else: on no link, because a peer can make a link
/// arbitrarily slow.
#[test]
fn dual_lpn_by_name_only() {
    let rates = (3..=12).flat_map(|log| [1.0, 3.0].map(|digit| digit * 10f64.powi(log)));
    let links: Vec<_> = rates
        .flat_map(|bits_per_second| {
            [0.0, 1e-4, 1e-3, 0.02, 0.2, 10.0]
                .map(|round_trip| Link { bits_per_second, round_trip })
        })
        .collect();
    let totals: Vec<_> = (10..=27).map(|log| Some(1 << log)).chain([None]).collect();
    let protocols = [Protocol::Auto, Protocol::Primal, Protocol::LowCommunication];
    for kind in KINDS {
        for (security, protocol) in [Security::SemiHonest, Security::Malicious]
            .into_iter()
            .flat_map(|security| protocols.map(|protocol| (security, protocol)))
        {
            for (&total, &link) in
                totals.iter().flat_map(|total| links.iter().map(move |link| (total, link)))
            {
                let options =
                    PlanOptions { total, security, link, protocol, ..PlanOptions::default() };
                let all = match Plan::candidates(kind, &options) {
                    Err(PlanError::NotMalicious) => continue,
                    all => all.unwrap(),
                };
                let named = protocol == Protocol::LowCommunication;
                for Candidate { plan, .. } in all {
                    assert_eq!(plan.dual().is_some(), named, "{plan:?} for {options:?}");
                    assert_eq!(plan.protocol() == protocol, named || protocol == Protocol::Primal);
                    assert_eq!(plan.describe().contains("dual-ec"), named);
                    assert_eq!(plan.assumption().contains("expand-convolute"), named);
                }
            }
        }
    }
}

/// `docs/protocols.md` lists the replacement of dual LPN where dual LPN was the fastest.
#[test]
fn the_predictions_of_the_docs() {
    let docs = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocols.md"));
    let digits = |seconds: f64| match seconds {
        100.0.. => format!("{seconds:.0} s"),
        10.0.. => format!("{seconds:.1} s"),
        _ => format!("{seconds:.2} s"),
    };
    let links = [("1Mbit,50ms", 1e6, 0.05), ("10Mbit,20ms", 1e7, 0.02)];
    let mut missing = Vec::new();
    for (place, log) in [(0, 5), (0, 6), (0, 7), (0, 8), (0, 9), (1, 5), (1, 6)] {
        let (name, bits_per_second, round_trip) = links[place];
        let best = |protocol| {
            let options = PlanOptions {
                total: Some(10u64.pow(log)),
                protocol,
                link: Link { bits_per_second, round_trip },
                ..PlanOptions::default()
            };
            Plan::candidates(Kind::Cot, &options).unwrap().remove(0)
        };
        let (auto, low) = (best(Protocol::Auto), best(Protocol::LowCommunication));
        let [ours, theirs] = [auto.seconds, low.seconds].map(digits);
        let row = format!("| {name} | 10^{log} | `{}` | {ours} | {theirs} |", auto.plan.name());
        if !docs.contains(&row) {
            missing.push(row);
        }
    }
    assert!(missing.is_empty(), "missing: {missing:#?}");
}

/// The predictions grow with the number, and with a worse link; the plan is the first of the
/// candidates.
#[test]
fn what_is_predicted() {
    for (kind, security) in KINDS.into_iter().flat_map(|kind| {
        [Security::SemiHonest, Security::Malicious].map(|security| (kind, security))
    }) {
        let predicted = |total, link: Link| {
            let options =
                PlanOptions { total: Some(total), security, link, ..PlanOptions::default() };
            let all = Plan::candidates(kind, &options)?;
            assert!(all.is_sorted_by(|a, b| a.seconds <= b.seconds));
            assert_eq!(all[0].plan.describe(), Plan::new(kind, &options)?.describe());
            let mut names: Vec<_> = all.iter().map(|one| one.plan.name()).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), all.len(), "each has its own name");
            let mut named = all.clone();
            let low = PlanOptions { protocol: Protocol::LowCommunication, ..options };
            named.extend(Plan::candidates(kind, &low)?);
            for one in &named {
                let options = PlanOptions {
                    protocol: one.plan.protocol(),
                    set: one.plan.schedule().last().map(|set| set.name),
                    instances: one.plan.schedule().last().map(|_| one.plan.instances()),
                    ..options
                };
                let alone = Plan::candidates(kind, &options)?;
                assert_eq!(alone.len(), 1);
                assert_eq!(alone[0].plan.describe(), one.plan.describe());
            }
            Ok::<_, PlanError>(all[0].seconds)
        };
        if predicted(1, Link::default()) == Err(PlanError::NotMalicious) {
            continue;
        }
        let slower = Link { bits_per_second: 1e6, ..Link::default() };
        let farther = Link { round_trip: 0.3, ..Link::default() };
        let mut before = 0.0;
        for total in [0, 1, 1000, 100_000, 10_000_000, 1_000_000_000, 1 << 40] {
            let now = predicted(total, Link::default()).unwrap();
            assert!(now >= before, "{kind:?} {total}");
            before = now;
            for worse in [slower, farther] {
                assert!(predicted(total, worse).unwrap() > now);
            }
        }
    }
}

#[test]
fn every_protocol_has_its_name() {
    for name in ["auto", "primal", "low-communication", "gilboa", "packed2"] {
        assert_eq!(name.parse::<Protocol>().unwrap().to_string(), name);
    }
    // A name of an earlier version.
    assert!("expand-convolute".parse::<Protocol>().is_err());
    let error = "ferret".parse::<Protocol>().unwrap_err().to_string();
    assert!(error.starts_with("'ferret' is none of: auto, primal, "), "{error}");
    let direct = |kind, base, security| {
        let options = PlanOptions {
            total: Some(1),
            protocol: Protocol::Direct(base),
            security,
            ..PlanOptions::default()
        };
        Plan::new(kind, &options).map(|plan| plan.name())
    };
    let softspoken = Base::SoftSpoken(SmallField::Bits8);
    assert_eq!(direct(Kind::Cot, softspoken, Security::SemiHonest).unwrap(), "softspoken8");
    for (kind, base) in [
        (Kind::Cot, Base::Gilboa),
        (Kind::Vole(Field::Fp61), Base::SoftSpoken(SmallField::Bits8)),
        (Kind::Vole(Field::Gf128), Base::Gilboa),
    ] {
        let refused = direct(kind, base, Security::Malicious).unwrap_err();
        assert_eq!(refused, PlanError::NoSuchBase(base));
    }
    for protocol in
        [Protocol::LowCommunication, Protocol::Direct(Base::SoftSpoken(SmallField::Bits8))]
    {
        let options = PlanOptions { set: Some("b10"), protocol, ..PlanOptions::default() };
        let refused = Plan::new(Kind::Cot, &options).unwrap_err();
        assert_eq!(refused, PlanError::NoSuchSet("b10".to_owned()));
    }
}

#[test]
fn a_set_can_be_named() {
    let named = |name: &'static str, kind, noise| {
        Plan::new(
            kind,
            &PlanOptions {
                set: Some(name),
                noise,
                total: Some(10_000_000),
                ..PlanOptions::default()
            },
        )
    };
    for name in ["r14", "b10", "b11", "b12", "b13"] {
        let plan = named(name, Kind::Cot, Noise::Regular).unwrap();
        assert_eq!(plan.schedule().last().unwrap().name, name);
        check(&plan, 10_000_000);
    }
    for (name, kind, noise) in [
        ("b13", Kind::Vole(Field::Fp61), Noise::Regular),
        ("b13", Kind::Cot, Noise::Uniform),
        ("b14", Kind::Cot, Noise::Regular),
        ("ferret-reg", Kind::Cot, Noise::Regular),
        ("paper80-20", Kind::Vole(Field::Fp61), Noise::Uniform),
    ] {
        let refused = named(name, kind, noise).unwrap_err();
        assert_eq!(refused, PlanError::NoSuchSet(name.to_owned()));
    }
}

#[test]
fn what_does_not_exist_is_refused() {
    let refused = Plan::new(Kind::Vole(Field::Z64Odd), &PlanOptions::default());
    assert_eq!(refused.unwrap_err(), PlanError::NotMalicious);
    for field in [Field::F2, Field::Z64Uniform, Field::Gf128Binary] {
        let options = PlanOptions { security: Security::SemiHonest, ..PlanOptions::default() };
        let refused = Plan::new(Kind::Vole(field), &options).unwrap_err();
        assert_eq!(refused, PlanError::NoSuchRing(field));
        assert_eq!(Plan::paper80(field, 1).unwrap_err(), refused);
    }
    let refused = Plan::paper80(Field::Fp61, (1 << 24) + 1);
    assert_eq!(refused.unwrap_err(), PlanError::SetTooSmall(1 << 24));
}

/// Equal instances are counted, not visited: the same ones, for any total that remains for the last
/// two.
#[test]
fn instances_in_a_row_are_counted() {
    let low = |kind, total| {
        let options = PlanOptions {
            total: Some(total),
            protocol: Protocol::LowCommunication,
            security: Security::SemiHonest,
            ..PlanOptions::default()
        };
        Plan::new(kind, &options).unwrap()
    };
    for kind in KINDS {
        let step = low(kind, u64::MAX).dual_step(0);
        let (deliver, keep) = (step.deliver as u64, step.keep as u64);
        assert!(keep > 0);
        let near = |total: u64| [total - 1, total, total + 1];
        let many = (1..=5).flat_map(|many| [many * deliver, many * deliver + keep]);
        for total in many.flat_map(near).chain(near(5000)) {
            let plan = low(kind, total);
            let (mut expected, mut delivered) = (Vec::new(), 0);
            while delivered < total {
                let step = plan.dual_step(delivered);
                expected.push(step);
                delivered += step.deliver as u64;
            }
            let counted: Vec<_> = plan.dual_steps(total).collect();
            assert!(counted.len() <= 4, "{total}: {counted:?}");
            let one_by_one = counted
                .iter()
                .flat_map(|(step, alike)| std::iter::repeat_n(*step, *alike as usize));
            assert!(one_by_one.eq(expected.iter().copied()), "{kind:?} {total}");
        }
        // So many cannot be visited one by one; the base is negligible beside them.
        let huge = low(kind, u64::MAX);
        let each = huge.instance_bytes(step.shape) as u64;
        let counted = huge.dual_bytes().unwrap() / each;
        let instances = u64::MAX / deliver;
        let about = instances..instances + instances / 1_000_000;
        assert!(about.contains(&counted), "{kind:?}: {counted}");
    }
}

/// Bundles where the total fills one; a plan says how many instances it has, and what they hold.
#[test]
fn instances_are_chosen_and_described() {
    let of = |kind, total, set, instances| {
        let options = PlanOptions { total, set, instances, ..PlanOptions::default() };
        Plan::new(kind, &options)
    };
    for total in [1, 100_000, 1_000_000, 1_500_000] {
        assert_eq!(of(Kind::Cot, Some(total), None, None).unwrap().instances(), 1);
    }
    for kind in [Kind::Cot, Kind::Vole(Field::Fp61)] {
        let plan = of(kind, None, None, None).unwrap();
        assert!(plan.instances() > 1, "{}", plan.describe());
        assert!(plan.describe().ends_with(&format!("/{}", plan.instances())));
        let alone = of(kind, None, Some("b10"), Some(1)).unwrap();
        let two = of(kind, None, Some("b10"), Some(2)).unwrap();
        assert_ne!(alone.describe(), two.describe());
        assert!(kind != Kind::Cot || alone.security_bits() - 1.0 == two.security_bits());
    }
    for (set, instances) in [(Some("b11"), 3), (Some("r14"), 2), (Some("b13"), 4), (None, 8)] {
        let error = of(Kind::Cot, None, set, Some(instances)).unwrap_err();
        assert_eq!(error, PlanError::NoSuchInstances(instances));
    }
}
