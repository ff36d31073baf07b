//! Vector-OLE over TCP, its statistics, its cost, and what it puts on the wire.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use volery_channel::{
    Channel, SessionId, memory, run_two_channels, run_two_parties, run_two_parties_tcp,
    tamper::Tampered,
};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_pcg::{
    Error, Noise, Plan, Security,
    vole::{self, Receiver, Sender, VoleRing},
};
use volery_primitives::{Block, cuckoo, prg::Prg};

fn plan<R: VoleRing>(n: usize, noise: Noise) -> Plan {
    vole::plan::<R>(Some(n as u64), noise, Security::SemiHonest).unwrap()
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

#[test]
fn over_tcp() {
    fn check<R: VoleRing>(n: usize, noise: Noise) {
        let plan = plan::<R>(n, noise);
        assert_vole(&outputs(run_two_parties_tcp(
            |channel| sender::<R>(&plan, n, 1, channel),
            |channel| receiver::<R>(&plan, n, 2, channel),
        )));
    }
    for noise in [Noise::Regular, Noise::Uniform] {
        for n in [0, 1, 5003, 100_003] {
            check::<Fp61>(n, noise);
            check::<Z64>(n, noise);
            check::<Gf128>(n, noise);
        }
    }
}

/// One more than a whole instance, and one more than what a round hands out when it keeps a base for the next.
#[test]
fn around_the_ends_of_rounds() {
    let set = volery_pcg::lpn::set_named("b12").unwrap();
    let round = set.n - set.k - set.t;
    for n in [2_396_160, 2_396_161, round, round + 1, set.n, set.n + 1] {
        let plan = plan::<Fp61>(n, Noise::Regular);
        assert_vole(&outputs(run_two_parties(
            |channel| sender::<Fp61>(&plan, n, 1, channel),
            |channel| receiver::<Fp61>(&plan, n, 2, channel),
        )));
    }
}

/// The number of threads changes nothing but the time.
#[test]
fn threads_make_no_difference() {
    let n = 300_000;
    let plan = plan::<Z64>(n, Noise::Uniform);
    let run = |threads| {
        let pool = || {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap()
        };
        outputs(run_two_parties(
            |channel| pool().install(|| sender::<Z64>(&plan, n, 1, channel)),
            |channel| pool().install(|| receiver::<Z64>(&plan, n, 2, channel)),
        ))
    };
    let (one, three) = (run(1), run(3));
    assert_vole(&one);
    assert!(one.u == three.u && one.v == three.v && one.w == three.w && one.x == three.x);
}

/// A peer whose messages are changed on their way, at any place: an error or a wrong result, never a panic or a hang.
#[test]
fn changed_messages_never_panic() {
    let n = 6000;
    let plan = plan::<Fp61>(n, Noise::Regular);
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
        // Half of them near the end of the stream, where the messages are short and many.
        let at = if number % 4 < 2 {
            offsets.below(length)
        } else {
            length - 1 - offsets.below(length.min(20_000))
        };
        let (left, right) = memory::pair();
        let flip = 1 << offsets.below(8);
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
                let mut sender = Sender::<Fp61>::setup(&plan, session(), rng, channel)?;
                let (mut u, mut v) = (vec![Fp61::ZERO; n], vec![Fp61::ZERO; n]);
                sender.extend(&mut u, &mut v, channel)?;
                Ok::<_, Error>((u, v))
            },
            |channel| {
                let rng = Prg::new(Block::from(2));
                let mut receiver = Receiver::<Fp61>::setup(&plan, None, session(), rng, channel)?;
                let mut w = vec![Fp61::ZERO; n];
                receiver.extend(&mut w, channel)?;
                Ok::<_, Error>((receiver.x(), w))
            },
        );
        let harmless = match (sent, received) {
            (Ok((u, v)), Ok((x, w))) => (0..n).all(|i| w[i] == u[i] * x + v[i]),
            _ => false,
        };
        harmful += u32::from(!harmless);
    }
    // Harmless are corrections of Gilboa's multiplication that belong to a zero bit of x, and messages of an OT that the
    // receiver did not choose: about half of each.
    assert!(harmful >= 15, "{harmful} of 60 changes did any harm");
}

/// The 80-bit instances of the 2019 paper, one round on a base that Gilboa's multiplication made.
#[test]
fn the_papers_instances() {
    fn check<R: VoleRing>(n: usize) {
        let plan = Plan::paper80(R::FIELD, n as u64).unwrap();
        assert_vole(&outputs(run_two_parties(
            |channel| sender::<R>(&plan, n, 1, channel),
            |channel| receiver::<R>(&plan, n, 2, channel),
        )));
    }
    check::<Fp61>(1 << 14);
    check::<Z64>(1 << 16);
}

/// Several rounds of the largest instance, drawn in pieces.
#[test]
fn a_long_stream() {
    let plan = vole::plan::<Fp61>(None, Noise::Regular, Security::SemiHonest).unwrap();
    let (pieces, piece) = (13, 1_000_003);
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
        let plan = plan::<Z64>(n, noise);
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
                // Mean 255, standard deviation 22.6: six of them up or down.
                assert!((chi - 255.0).abs() < 136.0, "{name}: chi-square {chi}");
            }
            let mut sorted: Vec<_> = values.iter().map(|value| value.value()).collect();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), n, "{name}: two values alike");
        }
    }
}

/// The bytes of a run follow from its plan: what the docs of the parts say each costs, added up.
#[test]
fn the_cost_is_that_of_the_parts() {
    fn check<R: VoleRing>(n: usize, noise: Noise) {
        let plan = plan::<R>(n, noise);
        let (stats, _) = run_two_parties(
            |channel| {
                sender::<R>(&plan, n, 1, channel);
                channel.stats()
            },
            |channel| drop(receiver::<R>(&plan, n, 2, channel)),
        );
        // Base OTs: a point from the sender, two for each OT from the receiver; SoftSpoken's and gilboa's.
        let bits = u64::from(R::BITS);
        let softspoken_setup = 16 * 7 * 32 + 17 * 32;
        let (mut sent, mut received) = (32 + softspoken_setup + 32, 64 * 128 + 64 * bits);
        let element = R::BYTES as u64;
        // Each rung of the ladder once: the base by gilboa, then rounds.
        let description = plan.describe();
        let rungs: Vec<(&str, u64)> = description
            .split('+')
            .skip(1)
            .map(|rung| rung.split_once('x').unwrap())
            .map(|(name, trees)| (name, trees.parse().unwrap()))
            .collect();
        let first = volery_pcg::lpn::set_named(rungs[0].0).unwrap();
        sent += (first.k as u64 + rungs[0].1) * bits * element;
        for (name, trees) in rungs {
            let set = volery_pcg::lpn::set_named(name).unwrap();
            let levels = match noise {
                Noise::Regular => trees * u64::from(set.block().ilog2()),
                _ => {
                    assert_eq!(trees as usize, cuckoo::bins_for(set.t, 40));
                    return; // the sizes of the bins, and so the depths of the trees, depend on the hash key
                }
            };
            sent += trees * element; // d
            sent += levels.div_ceil(8); // choices
            let batches = levels.div_ceil(1 << 15);
            sent += 15 * (levels.div_ceil(128) + batches) * 16 + 48 * batches; // SoftSpoken's corrections and check
            received += levels * 32 + trees * element; // level sums, R_beta
        }
        assert_eq!(
            (stats.bytes_sent, stats.bytes_received),
            (sent, received),
            "{description}"
        );
    }
    check::<Fp61>(10_000, Noise::Regular);
    check::<Z64>(100_000, Noise::Regular);
    check::<Gf128>(200_000, Noise::Regular);
    check::<Fp61>(10_000, Noise::Uniform);
}

/// From nothing, 2^20 correlations over fp61: below 5 MB both ways; in a long stream below 1 bit each.
#[test]
fn the_bytes_stay_in_their_bounds() {
    let n = 1 << 20;
    let plan = plan::<Fp61>(n, Noise::Regular);
    let (stats, _) = run_two_parties(
        |channel| {
            sender::<Fp61>(&plan, n, 1, channel);
            channel.stats()
        },
        |channel| drop(receiver::<Fp61>(&plan, n, 2, channel)),
    );
    let bytes = stats.bytes_sent + stats.bytes_received;
    assert!(bytes < 5_000_000, "{bytes} bytes");
    // A round of the stream: b12, its base kept back from the round before.
    let set = volery_pcg::lpn::set_named("b12").unwrap();
    let levels = set.t * 12;
    let bits = 8 * (levels * 34 + set.t * 16) + levels + 8 * 15 * 16 + 48 * 8;
    let outputs = set.n - set.k - set.t;
    assert!(bits < outputs, "{bits} bits for {outputs} outputs");
}

#[test]
fn an_object_whose_call_failed_stays_failed() {
    let n = 50_000;
    let plan = plan::<Fp61>(n, Noise::Regular);
    run_two_parties(
        |channel| {
            let rng = Prg::new(Block::from(1));
            let mut sender = Sender::<Fp61>::setup(&plan, session(), rng, channel).unwrap();
            let (mut u, mut v) = (vec![Fp61::ZERO; 10], vec![Fp61::ZERO; 10]);
            // A channel whose peer is gone.
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

/// Protocol, ring and plan; the first 16 bytes of the BLAKE3 hash of what the sender sent, and of what the receiver
/// sent.
const TRANSCRIPTS: [(&str, &str, &str); 8] = [
    (
        "fp61 3000 regular",
        "d63a1430e0cce2be72ce8c72cc8ccc9b",
        "80d0ae705837a696d9cb367e20817b7d",
    ),
    (
        "fp61 20000 regular",
        "cdb4132b03ec304604b054293f1410cf",
        "9ecd272682fcbbd30a6d54bfbb89e24d",
    ),
    (
        "fp61 200000 regular",
        "0058d79188f98f58b6b1bb81259745d8",
        "d2b240d02a342117cc248745d9a3c524",
    ),
    (
        "fp61 20000 uniform",
        "b372e574e0380168573f6302d3c89c8f",
        "1564db8c5da392844f8fc72c7391312d",
    ),
    (
        "z64 20000 regular",
        "728dfb8f7735300d5f0965dd0d3064d0",
        "ee28746046bd305238df9aaa8c02b643",
    ),
    (
        "z64 20000 uniform",
        "277ef1d78102bb94f17e10d2f0777a4c",
        "2642911530db3088ab52db84a8d1823e",
    ),
    (
        "gf128 20000 regular",
        "f3a4436ac33fc7493a6ca4850c860510",
        "01e2b5f21f781bc47181bf450a5f05b3",
    ),
    (
        "gf128 20000 uniform",
        "8e01e41922d0c1282759b7b0faa52be1",
        "e045cfe23ef2da1cc3efcc0e6b514bc3",
    ),
];

#[test]
fn transcripts() {
    fn hashes<R: VoleRing>(n: usize, noise: Noise) -> (String, String) {
        let plan = plan::<R>(n, noise);
        let hex = |channel: &Channel| {
            channel.transcript().unwrap().sent[..16]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect()
        };
        run_two_parties(
            |channel| {
                channel.record_transcript();
                sender::<R>(&plan, n, 1, channel);
                hex(channel)
            },
            |channel| {
                channel.record_transcript();
                receiver::<R>(&plan, n, 2, channel);
                hex(channel)
            },
        )
    }
    let mut differing = String::new();
    for (name, sent, received) in TRANSCRIPTS {
        let mut words = name.split(' ');
        let ring = words.next().unwrap();
        let n = words.next().unwrap().parse().unwrap();
        let noise = words.next().unwrap().parse().unwrap();
        let now = match ring {
            "fp61" => hashes::<Fp61>(n, noise),
            "z64" => hashes::<Z64>(n, noise),
            _ => hashes::<Gf128>(n, noise),
        };
        if now != (sent.to_owned(), received.to_owned()) {
            differing += &format!("    (\"{name}\", \"{}\", \"{}\"),\n", now.0, now.1);
        }
    }
    assert!(
        differing.is_empty(),
        "the bytes on the wire have changed; now they are\n{differing}"
    );
}
