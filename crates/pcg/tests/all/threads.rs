//! The number of threads of a party changes only the time: neither its outputs, nor its messages,
//! nor the faults that it detects.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use volery_channel::{
    Channel, Error, Transport, memory, run_two_channels, run_two_parties, tamper::Tampered,
};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_ot::{CotReceiver as _, CotSender as _, softspoken::SmallField};
use volery_pcg::{
    Base, Kind, Noise, Plan, PlanOptions, Protocol, Security, cot, vole, vole::VoleRing,
};
use volery_primitives::Block;

use crate::common::{SESSION, Step, cot_receiver, cot_sender, rng, vole_receiver, vole_sender};

/// More than a run of trees for each of eight threads, and no round number.
const N: usize = 300_007;

/// Draws with calls of different lengths.
const CALLS: [usize; 4] = [1, 70_000, 131_072, N - 70_000 - 131_072 - 1];

/// Threads of the two parties; the first are compared with the others.
const THREADS: [[usize; 2]; 5] = [[1, 1], [2, 2], [3, 1], [1, 8], [8, 3]];

/// A party, which returns the blocks that it makes.
type Party<'a> = &'a (dyn Fn(&mut Channel) -> Vec<Block> + Sync);

fn check(name: &str, [left, right]: [Party<'_>; 2]) {
    let run = |party: Party<'_>, threads: usize, channel: &mut Channel| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(|| {
            channel.record_transcript();
            let made = party(channel);
            channel.flush().unwrap();
            (made, channel.transcript().unwrap().sent)
        })
    };
    let mut first = None;
    for threads in THREADS {
        let now: [_; 2] = run_two_parties(
            |channel| run(left, threads[0], channel),
            |channel| run(right, threads[1], channel),
        )
        .into();
        let first = first.get_or_insert_with(|| now.clone());
        for (party, (now, first)) in now.iter().zip(first).enumerate() {
            assert!(now.1 == first.1, "{name}: what party {party} sends, {threads:?}");
            assert!(now.0 == first.0, "{name}: what party {party} makes, {threads:?}");
        }
    }
}

fn packed<R: Ring>(elements: &[R]) -> Vec<Block> {
    let mut bytes = Vec::new();
    R::write(elements, &mut bytes);
    bytes.resize(bytes.len().next_multiple_of(16), 0);
    let blocks = bytes.as_chunks().0.iter();
    blocks.map(|block| Block::from_bytes(*block)).collect()
}

fn plan(kind: Kind, security: Security, noise: Noise, protocol: Protocol) -> Plan {
    let options =
        PlanOptions { total: Some(N as u64), security, noise, protocol, ..PlanOptions::default() };
    Plan::new(kind, &options).unwrap()
}

fn check_cot(security: Security, noise: Noise, protocol: Protocol) {
    let plan = plan(Kind::Cot, security, noise, protocol);
    check_cot_plan(&format!("{noise}, {protocol}"), &plan);
}

fn check_cot_plan(name: &str, plan: &Plan) {
    let steps = CALLS.map(Step::Draw);
    let receiver = |channel: &mut Channel| {
        let (u, mut w) = cot_receiver(plan, &steps, channel);
        w.extend(u.into_iter().map(|u| Block::from(u128::from(u))));
        w
    };
    check(
        &format!("{} cot, {name}", plan.security()),
        [&|channel| cot_sender(plan, None, &steps, channel).1, &receiver],
    );
}

fn check_vole<R: VoleRing>(security: Security, protocol: Protocol) {
    let plan = plan(Kind::Vole(R::FIELD), security, Noise::Regular, protocol);
    check_vole_plan::<R>(&protocol.to_string(), &plan);
}

fn check_vole_plan<R: VoleRing>(name: &str, plan: &Plan) {
    let sender = |channel: &mut Channel| {
        let (u, v) = vole_sender::<R>(plan, &CALLS, channel);
        packed(&[u, v].concat())
    };
    check(
        &format!("{} {}, {name}", plan.security(), R::NAME),
        [&sender, &|channel| packed(&vole_receiver::<R>(plan, &CALLS, channel).1)],
    );
}

#[test]
fn correlated_ot() {
    for security in [Security::SemiHonest, Security::Malicious] {
        check_cot(security, Noise::Regular, Protocol::Primal);
    }
    check_cot(Security::Malicious, Noise::Uniform, Protocol::Primal);
}

/// Substreams, with draws from one, from all, and from some of their rounds.
#[test]
fn substreams() {
    for security in [Security::SemiHonest, Security::Malicious] {
        check_cot_plan("substreams", &in_substreams(Kind::Cot, security));
    }
    check_vole_plan::<Fp61>(
        "substreams",
        &in_substreams(Kind::Vole(Fp61::FIELD), Security::Malicious),
    );
    check_vole_plan::<Gf128>(
        "substreams",
        &in_substreams(Kind::Vole(Gf128::FIELD), Security::SemiHonest),
    );
}

/// A plan of several rounds in three substreams.
fn in_substreams(kind: Kind, security: Security) -> Plan {
    let (total, set, substreams) = (Some(N as u64), Some("r14"), Some(3));
    let options = PlanOptions { total, security, set, substreams, ..PlanOptions::default() };
    let plan = Plan::new(kind, &options).unwrap();
    assert!(plan.describe().ends_with("*3"), "{}", plan.describe());
    plan
}

#[test]
fn vector_ole() {
    check_vole::<Fp61>(Security::Malicious, Protocol::Primal);
    check_vole::<Gf128>(Security::Malicious, Protocol::Primal);
    check_vole::<Z64>(Security::SemiHonest, Protocol::Primal);
}

#[test]
fn low_communication() {
    for security in [Security::SemiHonest, Security::Malicious] {
        check_cot(security, Noise::Regular, Protocol::LowCommunication);
    }
    check_vole::<Fp61>(Security::Malicious, Protocol::LowCommunication);
}

#[test]
fn ot_extension() {
    for (security, base) in [
        (Security::Malicious, Base::SoftSpoken(SmallField::Bits2)),
        (Security::Malicious, Base::SoftSpoken(SmallField::Bits8)),
        (Security::SemiHonest, Base::SoftSpoken(SmallField::Bits4)),
    ] {
        check_cot(security, Noise::Regular, Protocol::Direct(base));
    }
}

/// One bit of the sender's messages is flipped, in the trees of the last round: a party detects it
/// with any number of threads, in the check.
#[test]
fn a_change_is_caught_by_any_number_of_threads() {
    for protocol in [Protocol::Primal, Protocol::LowCommunication] {
        let plan = plan(Kind::Cot, Security::Malicious, Noise::Regular, protocol);
        let run = |threads: usize, flipped: Option<u64>| {
            let pool = || rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let (left, right) = memory::pair();
            let left = match flipped {
                Some(byte) => Channel::new(Tampered::flip(left, byte, 4)),
                None => Channel::new(left),
            };
            let ((sent, stats), (received, _)) = run_two_channels(
                left,
                Channel::new(right),
                |channel| {
                    pool().install(|| {
                        let mut sender = cot::Sender::setup(&plan, None, SESSION, rng(1), channel)?;
                        sender.extend(&mut vec![Block::ZERO; N], channel)?;
                        channel.flush()
                    })
                },
                |channel| {
                    pool().install(|| {
                        let mut receiver = cot::Receiver::setup(&plan, SESSION, rng(2), channel)?;
                        let (mut u, mut w) = (vec![0; N.div_ceil(8)], vec![Block::ZERO; N]);
                        receiver.extend(&mut u, &mut w, channel)
                    })
                },
            );
            ([sent, received], stats.bytes_sent)
        };
        let (results, sent) = run(1, None);
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        for threads in [1, 3, 8] {
            // The last round ends with its check, of less than 200 bytes, and the trees come before
            // that.
            for before in [1000, 40_000] {
                let (results, _) = run(threads, Some(sent - before));
                let caught = |result| matches!(result, &Err(Error::PeerMisbehaved(_)));
                assert!(results.iter().any(caught), "{threads} threads: {results:?}");
            }
        }
    }
}

/// What `prepare` says can be drawn without a message, in whatever substream; after the total
/// nothing is exchanged, though another substream has its last round to make.
#[test]
fn substreams_are_prepared_in_turn() {
    prepared_in_turn(&in_substreams(Kind::Cot, Security::Malicious));
    let options = PlanOptions { total: Some(4), set: Some("r14"), ..PlanOptions::default() };
    let options = PlanOptions { substreams: Some(3), ..options };
    prepared_in_turn(&Plan::new(Kind::Cot, &options).unwrap());
}

fn prepared_in_turn(plan: &Plan) {
    let total = plan.total().unwrap() as usize;
    let whole = |draw: &mut dyn FnMut(Option<usize>, &mut Channel) -> usize,
                 channel: &mut Channel| {
        let mut left = total;
        while left > 0 {
            let ready = draw(None, channel);
            assert!((1..=left).contains(&ready), "{ready} of {left}");
            let before = channel.stats();
            draw(Some(ready), channel);
            assert_eq!(channel.stats(), before, "no message");
            left -= ready;
        }
        let before = channel.stats();
        assert_eq!(draw(None, channel), 0);
        assert_eq!(channel.stats(), before, "no message");
    };
    run_two_parties(
        |channel| {
            let mut sender = cot::Sender::setup(plan, None, SESSION, rng(1), channel).unwrap();
            let mut draw = |count: Option<usize>, channel: &mut Channel| match count {
                None => sender.prepare(channel).unwrap(),
                Some(count) => {
                    sender.extend(&mut vec![Block::ZERO; count], channel).unwrap();
                    count
                }
            };
            whole(&mut draw, channel);
        },
        |channel| {
            let mut receiver = cot::Receiver::setup(plan, SESSION, rng(2), channel).unwrap();
            let mut draw = |count: Option<usize>, channel: &mut Channel| match count {
                None => receiver.prepare(channel).unwrap(),
                Some(count) => {
                    let (mut u, mut w) = (vec![0; count.div_ceil(8)], vec![Block::ZERO; count]);
                    receiver.extend(&mut u, &mut w, channel).unwrap();
                    count
                }
            };
            whole(&mut draw, channel);
        },
    );
}

/// Changes the first long message of the second substream.
struct InOneSubstream<T>(T);

impl<T: Transport> Transport for InOneSubstream<T> {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        let mut bytes = bytes.to_vec();
        // Substream, kind, length; then the data.
        if bytes.len() > 10_000 && bytes[..4] == [1, 0, 0, 0] {
            let length = u32::from_le_bytes(*bytes[4..].first_chunk().unwrap()) as usize;
            assert_eq!(length, bytes.len() - 8, "one frame at a time");
            bytes[5000] ^= 4;
        }
        self.0.write(&bytes, timeout)
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.0.read(bytes, timeout)
    }
}

/// Changes, or cuts the connection at, a message of the first substream.
struct AtMessage<T> {
    inner: T,
    message: usize,
    cut: bool,
    /// Whether the setup is done.
    on: Arc<AtomicBool>,
    seen: AtomicUsize,
}

impl<T: Transport> Transport for AtMessage<T> {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        let mut bytes = bytes.to_vec();
        let of_first = bytes.len() > 8 && bytes[..4] == [0; 4] && self.on.load(Ordering::SeqCst);
        if of_first && self.seen.fetch_add(1, Ordering::SeqCst) == self.message {
            if self.cut {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let place = usize::midpoint(8, bytes.len());
            bytes[place] ^= 4;
        }
        self.inner.write(&bytes, timeout)
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.inner.read(bytes, timeout)
    }
}

/// Whatever the value holder says or does not say in one substream is an error in the others at
/// each of their steps, though they share the OTs' `delta` with it; also where they have not begun.
#[test]
fn a_failed_source_of_ots_is_an_error_in_all_substreams() {
    let plan = in_substreams(Kind::Vole(Fp61::FIELD), Security::Malicious);
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let cases = [1, 3].into_iter().flat_map(|threads| (0..4).map(move |m| (threads, m)));
    for ((threads, message), cut) in cases.flat_map(|case| [(case, false), (case, true)]) {
        let on = Arc::new(AtomicBool::new(false));
        let (left, right) = memory::pair();
        let (on_too, seen) = (Arc::clone(&on), AtomicUsize::new(0));
        let left = AtMessage { inner: left, message, cut, on: on_too, seen };
        let (_, (key, _)) = run_two_channels(
            Channel::new(left),
            Channel::new(right),
            |channel| {
                pool(3).install(|| {
                    let mut sender = vole::Sender::<Fp61>::setup(&plan, SESSION, rng(1), channel)?;
                    on.store(true, Ordering::SeqCst);
                    sender.extend(&mut vec![Fp61::ZERO; N], &mut vec![Fp61::ZERO; N], channel)
                })
            },
            |channel| {
                pool(threads).install(|| {
                    let mut receiver =
                        vole::Receiver::<Fp61>::setup(&plan, None, SESSION, rng(2), channel)?;
                    receiver.extend(&mut vec![Fp61::ZERO; N], channel)
                })
            },
        );
        assert!(key.is_err(), "message {message}, {threads} threads, cut: {cut}");
    }
}

/// A party is caught in one substream: all end, nothing is returned, and nothing is drawn any more.
#[test]
fn a_change_in_one_substream_ends_all() {
    let plan = in_substreams(Kind::Cot, Security::Malicious);
    for threads in [1, 3] {
        let pool = || rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (left, right) = memory::pair();
        let ((sent, _), (received, _)) = run_two_channels(
            Channel::new(InOneSubstream(left)),
            Channel::new(right),
            |channel| {
                pool().install(|| {
                    let mut sender = cot::Sender::setup(&plan, None, SESSION, rng(1), channel)?;
                    let result = sender.extend(&mut vec![Block::ONE; N], channel);
                    assert!(matches!(
                        sender.extend(&mut [Block::ONE], channel),
                        Err(Error::Broken)
                    ));
                    result
                })
            },
            |channel| {
                pool().install(|| {
                    let mut receiver = cot::Receiver::setup(&plan, SESSION, rng(2), channel)?;
                    let (mut u, mut w) = (vec![1; N.div_ceil(8)], vec![Block::ONE; N]);
                    let result = receiver.extend(&mut u, &mut w, channel);
                    assert!(u.iter().all(|u| *u == 0) && w.iter().all(|w| *w == Block::ZERO));
                    let (mut other, _peer) = Channel::memory_pair();
                    let again = receiver.extend(&mut [0], &mut [Block::ONE], &mut other);
                    assert!(matches!(again, Err(Error::Broken)));
                    result
                })
            },
        );
        assert!(sent.is_err() && received.is_err(), "{sent:?} {received:?}");
        let caught = |result| matches!(result, &Err(Error::PeerMisbehaved(_)));
        assert!([&sent, &received].into_iter().any(caught), "{sent:?} {received:?}");
    }
}
