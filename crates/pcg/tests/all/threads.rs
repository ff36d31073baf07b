//! The number of threads of a party changes only the time: neither its outputs, nor its messages,
//! nor the faults that it detects. Two streams on two substreams of one connection equal the
//! streams that run alone.

use std::thread;
use std::time::Duration;

use volery_channel::tamper::Tampered;
use volery_channel::{Channel, SessionId, memory, mux, run_two_channels, tcp};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_ot::{
    CotReceiver, CotSender, iknp,
    softspoken::{self, SmallField},
};
use volery_pcg::{
    Error, Kind, Noise, Plan, PlanOptions, Protocol, Result, Security, cot,
    vole::{self, VoleRing},
};
use volery_primitives::{Block, bits, prg::Prg};

const SESSION: SessionId = SessionId::from_bytes([6; 32]);

/// More than a run of trees for each of eight threads, and no round number.
const N: usize = 300_007;

/// Threads of the two parties; the first are compared with the others.
const THREADS: [[usize; 2]; 5] = [[1, 1], [2, 2], [3, 1], [1, 8], [8, 3]];

/// The outputs of a party, and the hash of its messages.
type RunOutput = Result<(Vec<Block>, [u8; 32])>;

type Party<'a> = &'a (dyn Fn(&mut Channel) -> Result<Vec<Block>> + Sync);

/// A run with `threads` threads for each party.
fn run(
    [left, right]: [Party<'_>; 2],
    threads: [usize; 2],
    channels: [Channel; 2],
) -> [RunOutput; 2] {
    let party = |party: Party<'_>, threads: usize, channel: &mut Channel| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(|| {
            channel.record_transcript();
            let made = party(channel)?;
            channel.flush()?;
            Ok((made, channel.transcript().unwrap().sent))
        })
    };
    let [one, other] = channels;
    let ((left, _), (right, _)) = run_two_channels(
        one,
        other,
        |channel| party(left, threads[0], channel),
        |channel| party(right, threads[1], channel),
    );
    [left, right]
}

fn check(name: &str, parties: [Party<'_>; 2]) {
    let mut first = None;
    for threads in THREADS {
        let now = run(parties, threads, Channel::memory_pair().into()).map(Result::unwrap);
        let first = first.get_or_insert_with(|| now.clone());
        for (party, (now, first)) in now.iter().zip(first).enumerate() {
            assert!(now.1 == first.1, "{name}: what party {party} sends, {threads:?}");
            assert!(now.0 == first.0, "{name}: what party {party} makes, {threads:?}");
        }
    }
}

fn rng(seed: u128) -> Prg {
    Prg::new(Block::from(seed))
}

/// Draws with calls of different lengths.
const CALLS: [usize; 4] = [1, 70_000, 131_072, N - 70_000 - 131_072 - 1];

fn cot_sender(mut sender: impl CotSender, channel: &mut Channel) -> Result<Vec<Block>> {
    let mut v = vec![Block::ZERO; N];
    let mut rest = &mut v[..];
    for n in CALLS {
        sender.extend(rest.split_off_mut(..n).unwrap(), channel)?;
    }
    Ok(v)
}

fn cot_receiver(mut receiver: impl CotReceiver, channel: &mut Channel) -> Result<Vec<Block>> {
    let mut w = vec![Block::ZERO; N];
    let mut choices = Vec::new();
    let mut rest = &mut w[..];
    for n in CALLS {
        let mut u = vec![0; bits::bytes_for(n)];
        receiver.extend(&mut u, rest.split_off_mut(..n).unwrap(), channel)?;
        choices.extend(u.into_iter().map(|byte| Block::from(u128::from(byte))));
    }
    w.extend(choices);
    Ok(w)
}

fn cot_stream(
    plan: &Plan,
    session: SessionId,
    channel: &mut Channel,
    sends: bool,
) -> Result<Vec<Block>> {
    if sends {
        let sender = cot::Sender::setup(plan, None, session, rng(1), channel)?;
        cot_sender(sender, channel)
    } else {
        let receiver = cot::Receiver::setup(plan, session, rng(2), channel)?;
        cot_receiver(receiver, channel)
    }
}

fn packed<R: Ring>(elements: &[R]) -> Vec<Block> {
    let mut bytes = Vec::new();
    R::write(elements, &mut bytes);
    bytes.resize(bytes.len().next_multiple_of(16), 0);
    let blocks = bytes.as_chunks().0.iter();
    blocks.map(|block| Block::from_bytes(*block)).collect()
}

fn vole_stream<R: VoleRing>(
    plan: &Plan,
    session: SessionId,
    channel: &mut Channel,
    sends: bool,
) -> Result<Vec<Block>> {
    let mut w = vec![R::ZERO; N];
    let mut rest = &mut w[..];
    if sends {
        let mut u = vec![R::ZERO; N];
        let mut others = &mut u[..];
        let mut sender = vole::Sender::<R>::setup(plan, session, rng(1), channel)?;
        for n in CALLS {
            let (u, v) = (others.split_off_mut(..n), rest.split_off_mut(..n));
            sender.extend(u.unwrap(), v.unwrap(), channel)?;
        }
        return Ok(packed(&[u, w].concat()));
    }
    let mut receiver = vole::Receiver::<R>::setup(plan, None, session, rng(2), channel)?;
    for n in CALLS {
        receiver.extend(rest.split_off_mut(..n).unwrap(), channel)?;
    }
    Ok(packed(&w))
}

fn plan(kind: Kind, security: Security, noise: Noise, protocol: Protocol) -> Plan {
    let options =
        PlanOptions { total: Some(N as u64), security, noise, protocol, ..PlanOptions::default() };
    Plan::new(kind, &options).unwrap()
}

fn check_cot(security: Security, noise: Noise, protocol: Protocol) {
    let plan = plan(Kind::Cot, security, noise, protocol);
    let party = |sends| {
        let plan = &plan;
        move |channel: &mut Channel| cot_stream(plan, SESSION, channel, sends)
    };
    check(&format!("{security} cot, {noise}, {protocol}"), [&party(true), &party(false)]);
}

fn check_vole<R: VoleRing>(security: Security, protocol: Protocol) {
    let plan = plan(Kind::Vole(R::FIELD), security, Noise::Regular, protocol);
    let party = |sends| {
        let plan = &plan;
        move |channel: &mut Channel| vole_stream::<R>(plan, SESSION, channel, sends)
    };
    check(&format!("{security} {}, {protocol}", R::NAME), [&party(true), &party(false)]);
}

#[test]
fn correlated_ot() {
    for security in [Security::SemiHonest, Security::Malicious] {
        check_cot(security, Noise::Regular, Protocol::Primal);
    }
    check_cot(Security::Malicious, Noise::Uniform, Protocol::Primal);
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
    for settings in
        [SmallField::Bits2.into(), SmallField::Bits8.into(), SmallField::Bits4.unchecked()]
    {
        check(
            &format!("{settings:?}"),
            [
                &|channel| {
                    let sender =
                        softspoken::Sender::setup(None, settings, SESSION, rng(1), channel)?;
                    cot_sender(sender, channel)
                },
                &|channel| {
                    let receiver = softspoken::Receiver::setup(settings, SESSION, rng(2), channel)?;
                    cot_receiver(receiver, channel)
                },
            ],
        );
    }
    check(
        "iknp",
        [
            &|channel| cot_sender(iknp::Sender::setup(None, SESSION, rng(1), channel)?, channel),
            &|channel| cot_receiver(iknp::Receiver::setup(SESSION, rng(2), channel)?, channel),
        ],
    );
}

/// One bit of a party's messages is flipped, in the trees of the last round: the other detects it
/// with any number of threads, in the check.
#[test]
fn a_change_is_caught_by_any_number_of_threads() {
    let options = |protocol| plan(Kind::Cot, Security::Malicious, Noise::Regular, protocol);
    for plan in [options(Protocol::Primal), options(Protocol::LowCommunication)] {
        let party = |sends| {
            let plan = &plan;
            move |channel: &mut Channel| cot_stream(plan, SESSION, channel, sends)
        };
        let parties: [Party<'_>; 2] = [&party(true), &party(false)];
        let [sent, _] = lengths(parties);
        for threads in [[1, 1], [3, 3], [8, 1]] {
            // The last round ends with its check, of less than 200 bytes, and the trees come before
            // that.
            for before in [1000, 40_000] {
                let (left, right) = memory::pair();
                let left = Tampered::flip(left, sent - before, 4);
                let made = run(parties, threads, [Channel::new(left), Channel::new(right)]);
                assert!(
                    made.iter().any(|made| matches!(made, Err(Error::PeerMisbehaved(_)))),
                    "{threads:?}: {:?}",
                    made.map(|made| made.map(|_| ()))
                );
            }
        }
    }
}

/// The number of bytes that each party sends.
fn lengths(parties: [Party<'_>; 2]) -> [u64; 2] {
    let (left, right) = Channel::memory_pair();
    let ((left, sent), (right, received)) =
        run_two_channels(left, right, |channel| parties[0](channel), |channel| parties[1](channel));
    left.unwrap();
    right.unwrap();
    [sent.bytes_sent, received.bytes_sent]
}

/// Correlated OTs and a vector OLE at the same time over one TCP connection, and each alone with
/// the session of its substream.
#[test]
fn two_streams_on_two_substreams() {
    let cot_plan = plan(Kind::Cot, Security::Malicious, Noise::Regular, Protocol::Primal);
    let vole_plan =
        plan(Kind::Vole(Fp61::FIELD), Security::Malicious, Noise::Regular, Protocol::Primal);
    let timeout = Duration::from_secs(60);
    let listener = tcp::Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let party = |channel: Channel, sends: bool| {
        let [mut first, mut second] = mux::split(channel, SESSION).unwrap();
        let sessions = [first.session(), second.session()];
        let (cot, vole) = thread::scope(|scope| {
            let cot = scope.spawn(|| {
                let session = first.session();
                let made = cot_stream(&cot_plan, session, first.channel(), sends).unwrap();
                first.channel().flush().unwrap();
                made
            });
            let session = second.session();
            // In the opposite direction on the second substream.
            let vole = vole_stream::<Fp61>(&vole_plan, session, second.channel(), !sends).unwrap();
            second.channel().flush().unwrap();
            (cot.join().unwrap(), vole)
        });
        (sessions, cot, vole)
    };
    let (left, right) = thread::scope(|scope| {
        let connecting = scope.spawn(|| party(tcp::connect(address, timeout).unwrap(), true));
        let channel = listener.accept_channel(timeout, |_| ()).unwrap();
        let right = party(channel, false);
        (connecting.join().unwrap(), right)
    });
    assert_eq!(left.0, right.0);
    let [first, second] = left.0;
    let alone = |parties: [Party<'_>; 2]| {
        let made = run(parties, [1, 1], Channel::memory_pair().into());
        made.map(|made| made.unwrap().0)
    };
    let cot = alone([&|channel| cot_stream(&cot_plan, first, channel, true), &|channel| {
        cot_stream(&cot_plan, first, channel, false)
    }]);
    let vole =
        alone([&|channel| vole_stream::<Fp61>(&vole_plan, second, channel, true), &|channel| {
            vole_stream::<Fp61>(&vole_plan, second, channel, false)
        }]);
    assert!([left.1, right.1] == cot, "correlated OTs");
    assert!([right.2, left.2] == vole, "vector OLE");
}
