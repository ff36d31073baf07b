//! Vector-OLE over TCP, at the ends of rounds, in long streams; its statistics, and the effects of
//! changed messages.

use volery_channel::{
    Channel, SessionId, memory, run_two_channels, run_two_parties, run_two_parties_tcp,
    tamper::Tampered,
};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_pcg::{
    Error, Kind, Link, Noise, Plan, PlanOptions, Protocol, Security, Trees,
    lpn::set_named,
    vole::{self, Receiver, Sender, VoleRing},
};
use volery_primitives::{Block, prg::Prg};

fn plan<R: VoleRing>(n: usize, noise: Noise, security: Security) -> Plan {
    let options = PlanOptions {
        total: Some(n as u64),
        noise,
        security,
        protocol: if n < 4500 {
            Protocol::Auto
        } else {
            Protocol::Primal
        },
        ..PlanOptions::default()
    };
    Plan::new(Kind::Vole(R::FIELD), &options).unwrap()
}

/// The plans over the ring.
fn securities<R: VoleRing>() -> impl Iterator<Item = Security> {
    let malicious = (R::NAME != Z64::NAME).then_some(Security::Malicious);
    std::iter::once(Security::SemiHonest).chain(malicious)
}

/// The sender's `u, v` and the receiver's `x, w`.
struct Outputs<R> {
    u: Vec<R>,
    v: Vec<R>,
    x: R,
    w: Vec<R>,
}

fn session() -> SessionId {
    SessionId::from_bytes([5; 32])
}

/// The sender's side: `n` correlations in one draw.
fn sender<R: VoleRing>(
    plan: &Plan,
    n: usize,
    seed: u128,
    channel: &mut Channel,
) -> (Vec<R>, Vec<R>) {
    let rng = Prg::new(Block::from(seed));
    let mut sender = Sender::<R>::setup(plan, session(), rng, channel).unwrap();
    let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
    sender.extend(&mut u, &mut v, channel).unwrap();
    (u, v)
}

/// The receiver's side.
fn receiver<R: VoleRing>(plan: &Plan, n: usize, seed: u128, channel: &mut Channel) -> (R, Vec<R>) {
    let rng = Prg::new(Block::from(seed));
    let mut receiver = Receiver::<R>::setup(plan, None, session(), rng, channel).unwrap();
    let mut w = vec![R::ZERO; n];
    receiver.extend(&mut w, channel).unwrap();
    (receiver.x(), w)
}

type Sent<R> = (Vec<R>, Vec<R>);
type Received<R> = (R, Vec<R>);

fn outputs<R>(((u, v), (x, w)): (Sent<R>, Received<R>)) -> Outputs<R> {
    Outputs { u, v, x, w }
}

fn assert_vole<R: VoleRing>(outputs: &Outputs<R>) {
    for (i, w) in outputs.w.iter().enumerate() {
        assert!(
            *w == outputs.u[i] * outputs.x + outputs.v[i],
            "correlation {i} over {}",
            R::NAME
        );
    }
}

fn check<R: VoleRing>(plan: &Plan, n: usize) {
    assert_vole(&outputs(run_two_parties(
        |channel| sender::<R>(plan, n, 1, channel),
        |channel| receiver::<R>(plan, n, 2, channel),
    )));
}

#[test]
fn over_tcp() {
    fn check<R: VoleRing>(n: usize, noise: Noise) {
        for security in securities::<R>() {
            let plan = plan::<R>(n, noise, security);
            assert_vole(&outputs(run_two_parties_tcp(
                |channel| sender::<R>(&plan, n, 1, channel),
                |channel| receiver::<R>(&plan, n, 2, channel),
            )));
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
        check::<Fp61>(
            &Plan::new(Kind::Vole(Fp61::FIELD), &options).unwrap(),
            total,
        );
    }
}

/// The number of threads changes only the time.
#[test]
fn threads_make_no_difference() {
    fn check<R: VoleRing>(noise: Noise, security: Security) {
        let n = 300_000;
        let plan = plan::<R>(n, noise, security);
        let run = |threads| {
            let pool = || {
                rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .unwrap()
            };
            outputs(run_two_parties(
                |channel| pool().install(|| sender::<R>(&plan, n, 1, channel)),
                |channel| pool().install(|| receiver::<R>(&plan, n, 2, channel)),
            ))
        };
        let (one, three) = (run(1), run(3));
        assert_vole(&one);
        assert!(one.u == three.u && one.v == three.v && one.w == three.w && one.x == three.x);
    }
    check::<Z64>(Noise::Uniform, Security::SemiHonest);
    check::<Fp61>(Noise::Regular, Security::Malicious);
}

/// A peer whose messages are changed in transit, at any place: never a panic or a hang.
/// Semi-honest, an error or a wrong result; malicious, never a wrong result.
#[test]
fn changed_messages_never_panic() {
    for security in securities::<Fp61>() {
        let n = 6000;
        let options = PlanOptions {
            total: Some(n as u64),
            security,
            set: Some("r14"),
            ..PlanOptions::default()
        };
        let plan = Plan::new(Kind::Vole(Fp61::FIELD), &options).unwrap();
        let (clean, _) = run_two_parties(
            |channel| {
                sender::<Fp61>(&plan, n, 1, channel);
                channel.stats()
            },
            |channel| drop(receiver::<Fp61>(&plan, n, 2, channel)),
        );
        let mut offsets = Prg::new(Block::from(77));
        let mut harmful = 0;
        for number in 0..60 {
            let from_sender = number % 2 == 0;
            let length = if from_sender {
                clean.bytes_sent
            } else {
                clean.bytes_received
            };
            // Half of them near the end of the stream, which has many short messages.
            let at = if number % 4 < 2 {
                offsets.below(length)
            } else {
                length - 1 - offsets.below(length.min(20_000))
            };
            let flip = 1 << offsets.below(8);
            let (sent, received) = with_a_flip(&plan, n, from_sender, at, flip);
            let harmless = match (sent, received) {
                (Ok((u, v)), Ok((x, w))) => {
                    let right = (0..n).all(|i| w[i] == u[i] * x + v[i]);
                    assert!(right || security == Security::SemiHonest, "byte {at}");
                    right
                }
                _ => false,
            };
            harmful += u32::from(!harmless);
        }
        // Harmless are corrections of Gilboa's multiplication that belong to a zero bit of x, about
        // half of them, and the one message of a tree's last level for the side that the path
        // takes.
        assert!(harmful >= 15, "{harmful} of 60 changes did any harm");
    }
}

/// One bit of a party's messages changed in transit.
fn with_a_flip(
    plan: &Plan,
    n: usize,
    from_sender: bool,
    at: u64,
    flip: u8,
) -> (Result<Sent<Fp61>, Error>, Result<Received<Fp61>, Error>) {
    let (left, right) = memory::pair();
    let (left, right) = if from_sender {
        (
            Channel::new(Tampered::flip(left, at, flip)),
            Channel::new(right),
        )
    } else {
        (
            Channel::new(left),
            Channel::new(Tampered::flip(right, at, flip)),
        )
    };
    let ((sent, _), (received, _)) = run_two_channels(
        left,
        right,
        |channel| {
            let rng = Prg::new(Block::from(1));
            let mut sender = Sender::<Fp61>::setup(plan, session(), rng, channel)?;
            let (mut u, mut v) = (vec![Fp61::ZERO; n], vec![Fp61::ZERO; n]);
            sender.extend(&mut u, &mut v, channel)?;
            Ok((u, v))
        },
        |channel| {
            let rng = Prg::new(Block::from(2));
            let mut receiver = Receiver::<Fp61>::setup(plan, None, session(), rng, channel)?;
            let mut w = vec![Fp61::ZERO; n];
            receiver.extend(&mut w, channel)?;
            Ok((receiver.x(), w))
        },
    );
    (sent, received)
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
            let rng = Prg::new(Block::from(1));
            let mut sender = Sender::<Fp61>::setup(&plan, session(), rng, channel).unwrap();
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
            let rng = Prg::new(Block::from(2));
            let mut receiver =
                Receiver::<Fp61>::setup(&plan, None, session(), rng, channel).unwrap();
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
                assert!(
                    (0..piece).all(|i| w[i] == u[i] * x + v[i]),
                    "piece {number}"
                );
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
        let outputs = outputs(run_two_parties(
            |channel| sender::<Z64>(&plan, n, 11, channel),
            |channel| receiver::<Z64>(&plan, n, 12, channel),
        ));
        for (name, values) in [("u", &outputs.u), ("v", &outputs.v), ("w", &outputs.w)] {
            for shift in [0, 56] {
                let mut count = [0u32; 256];
                for value in values {
                    count[(value.value() >> shift) as usize & 255] += 1;
                }
                let mean = n as f64 / 256.0;
                let chi: f64 = count
                    .iter()
                    .map(|c| (f64::from(*c) - mean).powi(2) / mean)
                    .sum();
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
            let rng = Prg::new(Block::from(1));
            let mut sender = Sender::<Fp61>::setup(&plan, session(), rng, channel).unwrap();
            let (mut u, mut v) = (vec![Fp61::ZERO; 10], vec![Fp61::ZERO; 10]);
            // A channel without a peer.
            let (mut lonely, peer) = Channel::memory_pair();
            drop(peer);
            assert!(matches!(
                sender.extend(&mut u, &mut v, &mut lonely),
                Err(Error::Disconnected)
            ));
            assert!(matches!(
                sender.extend(&mut u, &mut v, channel),
                Err(Error::Broken)
            ));
        },
        |channel| {
            let rng = Prg::new(Block::from(2));
            let mut receiver =
                Receiver::<Fp61>::setup(&plan, None, session(), rng, channel).unwrap();
            let mut w = vec![Fp61::ZERO; 10];
            let (mut lonely, peer) = Channel::memory_pair();
            drop(peer);
            assert!(matches!(
                receiver.extend(&mut w, &mut lonely),
                Err(Error::Disconnected)
            ));
            assert!(matches!(
                receiver.extend(&mut w, channel),
                Err(Error::Broken)
            ));
        },
    );
}
