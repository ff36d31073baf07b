//! Mistakes of a caller have names, small draws from a base are made together, and several
//! correlated OTs share a setup.

use volery_channel::{Channel, Error, Hello, Role, Session, run_two_parties, run_two_unchecked};
use volery_field::{Fp61, Ring};
use volery_ot::{CotReceiver, CotSender};
use volery_pcg::{Kind, Link, Plan, PlanOptions, Security, cot, vole};
use volery_primitives::{Block, bits, prg::Prg};

use crate::common::{SESSION, assert_cots, rng};

fn plan(total: Option<u64>) -> Plan {
    cot::plan(total, Link::default(), Security::Malicious)
}

fn draw_v(n: usize, sender: &mut cot::Sender, channel: &mut Channel) -> Result<Vec<Block>, Error> {
    let mut v = vec![Block::ZERO; n];
    sender.extend(&mut v, channel).map(|()| v)
}

fn draw_w(
    n: usize,
    receiver: &mut cot::Receiver,
    channel: &mut Channel,
) -> Result<(Vec<bool>, Vec<Block>), Error> {
    let (mut u, mut w) = (vec![0xff; bits::bytes_for(n)], vec![Block::ZERO; n]);
    receiver.extend(&mut u, &mut w, channel)?;
    assert!(n.is_multiple_of(8) || u[n / 8] >> (n % 8) == 0, "unused bits are zero");
    Ok((bits::unpack(&u, n), w))
}

fn assert_drawn(error: Error, numbers: [&str; 2]) {
    let Error::Mismatch { field, ours, theirs } = error else { panic!("{error}") };
    assert_eq!((&*field, [&*ours, &*theirs]), ("the number drawn so far", numbers));
}

/// 300 here and 200 there: the next message says so, whether rounds or the base make the outputs.
#[test]
fn other_draws_are_noticed_before_the_next_outputs() {
    let rounds = PlanOptions { set: Some("r14"), total: None, ..PlanOptions::default() };
    let rounds = Plan::new(Kind::Cot, &rounds).unwrap();
    for (plan, next) in [(rounds, 30_000), (plan(Some(5_000)), 3_000)] {
        run_two_unchecked(
            |channel| {
                let mut sender = cot::Sender::setup(&plan, None, SESSION, rng(1), channel).unwrap();
                draw_v(200, &mut sender, channel).unwrap();
                sender.agree(channel).unwrap();
                draw_v(100, &mut sender, channel).unwrap();
                assert_eq!(sender.drawn(), 300);
                assert_drawn(draw_v(next, &mut sender, channel).unwrap_err(), ["300", "200"]);
                let again = draw_v(1, &mut sender, channel);
                assert!(matches!(again, Err(Error::Broken)));
            },
            |channel| {
                let mut receiver = cot::Receiver::setup(&plan, SESSION, rng(2), channel).unwrap();
                draw_w(200, &mut receiver, channel).unwrap();
                receiver.agree(channel).unwrap();
                assert_drawn(draw_w(next, &mut receiver, channel).unwrap_err(), ["200", "300"]);
            },
        );
    }
}

/// More than the total is an error of the call, after which the object is as before.
#[test]
fn no_more_than_planned() {
    let plan = vole::plan::<Fp61>(Some(5), Link::default(), Security::Malicious).unwrap();
    run_two_parties(
        |channel| {
            let mut sender = vole::Sender::<Fp61>::setup(&plan, SESSION, rng(1), channel).unwrap();
            for n in [3, 2] {
                let (mut u, mut v) = (vec![Fp61::ZERO; 3], vec![Fp61::ZERO; 3]);
                let left = sender.remaining().unwrap() as usize;
                if left < 3 {
                    let refused = sender.extend(&mut u, &mut v, channel);
                    assert!(matches!(refused, Err(Error::Usage(_))), "{refused:?}");
                }
                sender.extend(&mut u[..n], &mut v[..n], channel).unwrap();
            }
            assert_eq!((sender.remaining(), sender.drawn()), (Some(0), 5));
        },
        |channel| {
            let mut receiver =
                vole::Receiver::<Fp61>::setup(&plan, None, SESSION, rng(2), channel).unwrap();
            let mut w = vec![Fp61::ZERO; 6];
            assert!(matches!(receiver.extend(&mut w, channel), Err(Error::Usage(_))));
            receiver.extend(&mut w[..3], channel).unwrap();
            receiver.extend(&mut w[3..5], channel).unwrap();
            assert_eq!(receiver.remaining(), Some(0));
        },
    );
}

/// Both the same end, another order of objects, another plan: a mistake, and not a deviation.
#[test]
fn what_the_parties_start_is_compared() {
    fn started(role: Role, first: bool, plan: &Plan, channel: &mut Channel) -> Error {
        let hello = Hello { protocol: "test", role: role.name(), fields: Vec::new() };
        let mut session = Session::begin(channel, &hello).unwrap();
        if first {
            session.parts();
        }
        match role {
            Role::Sender => cot::Sender::start(plan, None, &mut session).err(),
            _ => cot::Receiver::start(plan, &mut session).err(),
        }
        .unwrap()
    }
    let (one, other) = (plan(Some(100)), plan(Some(101)));
    let field = |error: Error| match error {
        Error::Mismatch { field, .. } => field,
        // The first to notice has closed.
        Error::Disconnected => "gone".to_owned(),
        error => panic!("{error}"),
    };
    for (expected, first, theirs) in [
        ("the session, or the number of objects started on it", true, &one),
        ("the plan", false, &other),
    ] {
        let (sender, receiver) = run_two_unchecked(
            |channel| field(started(Role::Sender, first, &one, channel)),
            |channel| field(started(Role::Receiver, false, theirs, channel)),
        );
        assert!([&sender, &receiver].iter().all(|field| [expected, "gone"].contains(&&***field)));
        assert!(sender == expected || receiver == expected, "{sender}, {receiver}");
    }
    let (left, right) = run_two_unchecked(
        |channel| cot::Sender::setup(&one, None, SESSION, rng(1), channel).err().unwrap(),
        |channel| cot::Sender::setup(&one, None, SESSION, rng(2), channel).err().unwrap(),
    );
    for error in [left, right] {
        assert!(error.to_string().contains("start one of them in the other role"), "{error}");
    }
    let fp61 = vole::plan::<Fp61>(Some(100), Link::default(), Security::Malicious).unwrap();
    let (left, right) = run_two_unchecked(
        |channel| cot::Sender::setup(&one, None, SESSION, rng(1), channel).err().unwrap(),
        |channel| vole::Sender::<Fp61>::setup(&fp61, SESSION, rng(2), channel).err().unwrap(),
    );
    for (error, names) in [(left, ["cot", "fp61"]), (right, ["fp61", "cot"])] {
        let Error::Mismatch { field, ours, theirs } = error else { panic!("{error}") };
        assert_eq!((&*field, [&*ours, &*theirs]), ("the kind of correlation", names));
    }
}

/// Single draws from a base are those of one draw, at about its bytes.
#[test]
fn small_draws_are_made_together() {
    let n = 2_500;
    let plan = plan(Some(n as u64));
    assert!(plan.schedule().is_empty());
    let pieces = |most: u64| {
        let mut random = Prg::new(Block::from(9));
        let mut left = n;
        std::iter::from_fn(move || {
            let piece = left.min(1 + random.below(most) as usize);
            left -= piece;
            (piece > 0).then_some(piece)
        })
    };
    for (most, bytes) in [(1, 90_000), (40, 90_000), (1_500, 90_000), (n as u64, 90_000)] {
        let (sent, received) = run_two_parties(
            |channel| {
                let mut sender = cot::Sender::setup(&plan, None, SESSION, rng(1), channel).unwrap();
                let draw = |piece| draw_v(piece, &mut sender, channel).unwrap();
                let v: Vec<_> = pieces(most).flat_map(draw).collect();
                let stats = channel.stats();
                assert!(stats.bytes_sent + stats.bytes_received < bytes, "{stats:?} at {most}");
                (sender.delta(), v)
            },
            |channel| {
                let mut receiver = cot::Receiver::setup(&plan, SESSION, rng(2), channel).unwrap();
                let (mut u, mut w) = (Vec::new(), Vec::new());
                for piece in pieces(most) {
                    let (more_u, more_w) = draw_w(piece, &mut receiver, channel).unwrap();
                    u.extend(more_u);
                    w.extend(more_w);
                }
                (u, w)
            },
        );
        assert_cots(&(sent, received));
    }
}

/// Lanes of one setup: one delta, other correlations, whatever their plans; the failure of one ends
/// all.
#[test]
fn correlated_ots_share_a_setup() {
    let plans = [100, 40_000, 100].map(|total| plan(Some(total)));
    let draw = |plan: &Plan| plan.total().unwrap() as usize;
    let (sent, received) = run_two_unchecked(
        |channel| {
            let shared = &mut cot::shared_setup::Sender::setup(None, SESSION, rng(1), channel);
            let shared = shared.as_mut().unwrap();
            let lane = |(i, plan): (usize, &Plan)| {
                let rng = rng(10 + i as u128);
                let mut lane = cot::Sender::setup_with(shared, plan, rng, channel).unwrap();
                (lane.delta(), draw_v(draw(plan), &mut lane, channel).unwrap())
            };
            let lanes: Vec<_> = plans.iter().enumerate().map(lane).collect();
            let other = cot::Sender::setup_with(shared, &plans[0], rng(20), channel);
            assert!(matches!(other.err(), Some(Error::Mismatch { .. })));
            let broken = cot::Sender::setup_with(shared, &plans[0], rng(21), channel);
            assert!(matches!(broken.err(), Some(Error::Broken)));
            lanes
        },
        |channel| {
            let mut shared = cot::shared_setup::Receiver::setup(SESSION, rng(2), channel).unwrap();
            let lane = |(i, plan): (usize, &Plan)| {
                let rng = rng(30 + i as u128);
                let mut lane = cot::Receiver::setup_with(&mut shared, plan, rng, channel).unwrap();
                draw_w(draw(plan), &mut lane, channel).unwrap()
            };
            let lanes: Vec<_> = plans.iter().enumerate().map(lane).collect();
            let other = cot::Receiver::setup_with(&mut shared, &plans[1], rng(40), channel);
            assert!(matches!(other.err(), Some(Error::Mismatch { .. })));
            lanes
        },
    );
    assert!(sent.iter().all(|lane| lane.0 == sent[0].0) && sent[0].1 != sent[2].1);
    sent.into_iter().zip(received).for_each(|lane| assert_cots(&lane));
}
