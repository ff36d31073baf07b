//! Changes of bytes in transit lead to an error or to right outputs: never to a panic, a hang, or
//! two parties that continue with wrong correlations. Attacks by a peer that knows the protocol are
//! in the unit tests `malicious` of the crate.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use volery_channel::{Channel, SessionId, Transport, memory, run_two_channels};
use volery_field::{Fp61, Gf128};
use volery_ot::{CotReceiver, CotSender};
use volery_pcg::{
    Error, Kind, Link, Noise, Plan, PlanOptions, Result, Security, Trees, cot,
    vole::{self, VoleRing},
};
use volery_primitives::{Block, bits, prg::Prg};

const N: usize = 200;

fn session() -> SessionId {
    SessionId::from_bytes([5; 32])
}

fn rng(seed: u128) -> Prg {
    Prg::new(Block::from(seed))
}

/// A change of a stream of bytes at one position.
#[derive(Clone, Copy, Debug)]
enum Change {
    Nothing,
    /// One bit.
    Flip(u8),
    /// The connection ends.
    Cut,
    /// This many bytes are not sent.
    Drop(usize),
    /// This many zeros are inserted.
    Insert(usize),
    /// This many bytes are sent twice.
    Repeat(usize),
    /// This many bytes are exchanged with as many that follow.
    Swap(usize),
}

/// A transport that changes its party's bytes at one position.
struct Changed<T> {
    inner: T,
    at: u64,
    change: Change,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    offset: u64,
    /// Bytes held back to be exchanged.
    held: VecDeque<u8>,
    cut: bool,
}

impl<T> Changed<T> {
    fn new(inner: T, at: u64, change: Change) -> Self {
        Self {
            inner,
            at,
            change,
            state: Mutex::default(),
        }
    }
}

impl<T: Transport> Changed<T> {
    /// The bytes sent for one byte of the party.
    fn change(&self, state: &mut State, byte: u8, out: &mut Vec<u8>) {
        let place = state.offset.checked_sub(self.at);
        state.offset += 1;
        let Some(place) = place.map(|place| place as usize) else {
            return out.push(byte);
        };
        match self.change {
            Change::Flip(bit) if place == 0 => out.push(byte ^ 1 << bit),
            Change::Drop(n) if place < n => (),
            Change::Insert(n) if place == 0 => {
                out.resize(out.len() + n, 0);
                out.push(byte);
            }
            Change::Repeat(n) if place < n => {
                out.push(byte);
                state.held.push_back(byte);
                if place + 1 == n {
                    out.extend(state.held.drain(..));
                }
            }
            Change::Swap(n) if place < n => state.held.push_back(byte),
            Change::Swap(n) if place < 2 * n => {
                out.push(byte);
                if place + 1 == 2 * n {
                    out.extend(state.held.drain(..));
                }
            }
            _ => out.push(byte),
        }
    }
}

impl<T: Transport> Transport for Changed<T> {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = Vec::with_capacity(bytes.len());
        for byte in bytes {
            if state.offset == self.at && matches!(self.change, Change::Cut) {
                state.cut = true;
                break;
            }
            self.change(&mut state, *byte, &mut out);
        }
        if !out.is_empty() {
            self.inner.write(&out, timeout)?;
        }
        if state.cut {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        // Held-back bytes cannot wait for bytes that follow the answer.
        let held: Vec<_> = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.held.drain(..).collect()
        };
        if !held.is_empty() {
            self.inner.write(&held, timeout)?;
        }
        self.inner.read(bytes, timeout)
    }
}

/// Both parties of a correlation, each with setup and one draw of [`N`].
trait Correlation {
    /// The result of a party.
    type Key: Send;
    type Value: Send;
    const KIND: Kind;

    fn key(plan: &Plan, channel: &mut Channel) -> Result<Self::Key>;
    fn value(plan: &Plan, channel: &mut Channel) -> Result<Self::Value>;
    fn right(key: &Self::Key, value: &Self::Value) -> bool;
}

struct Cot;

struct Vole<R>(R);

impl Correlation for Cot {
    type Key = (Block, Vec<Block>);
    type Value = (Vec<u8>, Vec<Block>);
    const KIND: Kind = Kind::Cot;

    fn key(plan: &Plan, channel: &mut Channel) -> Result<Self::Key> {
        let mut sender = cot::Sender::setup(plan, None, session(), rng(1), channel)?;
        let mut v = vec![Block::ZERO; N];
        let drawn = sender.extend(&mut v, channel);
        if drawn.is_err() {
            assert!(v.iter().all(|v| *v == Block::ZERO), "nothing is given");
            for n in [0, 1, N] {
                let again = sender.extend(&mut v[..n], channel);
                assert!(matches!(again, Err(Error::Broken)), "{again:?}");
            }
        }
        drawn.map(|()| (sender.delta(), v))
    }

    fn value(plan: &Plan, channel: &mut Channel) -> Result<Self::Value> {
        let mut receiver = cot::Receiver::setup(plan, session(), rng(2), channel)?;
        let (mut u, mut w) = (vec![0; bits::bytes_for(N)], vec![Block::ZERO; N]);
        let drawn = receiver.extend(&mut u, &mut w, channel);
        if drawn.is_err() {
            assert!(w.iter().all(|w| *w == Block::ZERO), "nothing is given");
            for n in [0, 1, N] {
                let again = receiver.extend(&mut u[..bits::bytes_for(n)], &mut w[..n], channel);
                assert!(matches!(again, Err(Error::Broken)), "{again:?}");
            }
        }
        drawn.map(|()| (u, w))
    }

    fn right((delta, v): &Self::Key, (u, w): &Self::Value) -> bool {
        let shift = |i| Block::select_mask(bits::bit(u, i)) & *delta;
        (0..N).all(|i| w[i] == v[i] ^ shift(i))
    }
}

impl<R: VoleRing> Correlation for Vole<R> {
    type Key = (R, Vec<R>);
    type Value = (Vec<R>, Vec<R>);
    const KIND: Kind = Kind::Vole(R::FIELD);

    fn key(plan: &Plan, channel: &mut Channel) -> Result<Self::Key> {
        let mut receiver = vole::Receiver::<R>::setup(plan, None, session(), rng(1), channel)?;
        let mut w = vec![R::ZERO; N];
        let drawn = receiver.extend(&mut w, channel);
        if drawn.is_err() {
            assert!(w.iter().all(|w| *w == R::ZERO), "nothing is given");
            for n in [0, 1, N] {
                let again = receiver.extend(&mut w[..n], channel);
                assert!(matches!(again, Err(Error::Broken)), "{again:?}");
            }
        }
        drawn.map(|()| (receiver.x(), w))
    }

    fn value(plan: &Plan, channel: &mut Channel) -> Result<Self::Value> {
        let mut sender = vole::Sender::<R>::setup(plan, session(), rng(2), channel)?;
        let (mut u, mut v) = (vec![R::ZERO; N], vec![R::ZERO; N]);
        let drawn = sender.extend(&mut u, &mut v, channel);
        if drawn.is_err() {
            assert!(u.iter().chain(&v).all(|value| *value == R::ZERO));
            for n in [0, 1, N] {
                let again = sender.extend(&mut u[..n], &mut v[..n], channel);
                assert!(matches!(again, Err(Error::Broken)), "{again:?}");
            }
        }
        drawn.map(|()| (u, v))
    }

    fn right((x, w): &Self::Key, (u, v): &Self::Value) -> bool {
        (0..N).all(|i| w[i] == u[i] * *x + v[i])
    }
}

/// The outcome of a run.
#[derive(Debug, PartialEq)]
enum End {
    Right,
    Wrong,
    Failed,
    /// A party timed out.
    TimedOut,
}

fn run<K: Correlation>(
    plans: [&Plan; 2],
    key_end: impl Transport + 'static,
    value_end: impl Transport + 'static,
    patience: Duration,
) -> (End, [Option<Error>; 2]) {
    let ((key, _), (value, _)) = run_two_channels(
        Channel::with_timeout(key_end, Some(patience)),
        Channel::with_timeout(value_end, Some(patience)),
        |channel| K::key(plans[0], channel),
        |channel| K::value(plans[1], channel),
    );
    match (key, value) {
        (Ok(key), Ok(value)) if K::right(&key, &value) => (End::Right, [None, None]),
        (Ok(_), Ok(_)) => (End::Wrong, [None, None]),
        (key, value) => {
            let errors = [key.err(), value.err()];
            let timed_out = |error: &Option<Error>| matches!(error, Some(Error::TimedOut(_)));
            let end = if errors.iter().any(timed_out) {
                End::TimedOut
            } else {
                End::Failed
            };
            (end, errors)
        }
    }
}

const LONG: Duration = Duration::from_secs(100);
/// For runs in which both parties wait for each other.
const SHORT: Duration = Duration::from_millis(500);

const SLOW: Link = Link {
    bits_per_second: 1e5,
    round_trip: 1e-3,
};

/// A plan whose base sends few bits, with a round for few correlations.
fn plan(kind: Kind, trees: Trees) -> Plan {
    let options = PlanOptions {
        total: Some(N as u64),
        security: Security::Malicious,
        trees,
        link: SLOW,
        set: Some("r14"),
        ..PlanOptions::default()
    };
    Plan::new(kind, &options).unwrap()
}

/// The bytes of an honest run: those of the key holder, and those of the value holder.
fn lengths<K: Correlation>(plan: &Plan) -> [u64; 2] {
    let (left, right) = memory::pair();
    let ((key, sent), (value, received)) = run_two_channels(
        Channel::with_timeout(left, Some(LONG)),
        Channel::with_timeout(right, Some(LONG)),
        |channel| K::key(plan, channel).unwrap(),
        |channel| K::value(plan, channel).unwrap(),
    );
    assert!(K::right(&key, &value));
    [sent.bytes_sent, received.bytes_sent]
}

/// One change in the bytes of the key holder (0) or the value holder (1).
fn changed<K: Correlation>(plan: &Plan, who: usize, at: u64, change: Change) -> End {
    let (key_end, value_end) = memory::pair();
    let places = [0, 1].map(|party| if party == who { at } else { u64::MAX });
    let patience = match change {
        Change::Drop(_) => SHORT,
        _ => LONG,
    };
    let key_end = Changed::new(key_end, places[0], change);
    let value_end = Changed::new(value_end, places[1], change);
    run::<K>([plan; 2], key_end, value_end, patience).0
}

#[test]
fn each_change_does_exactly_what_it_says() {
    let plan = plan(Kind::Cot, Trees::Half);
    for change in [
        Change::Nothing,
        Change::Flip(3),
        Change::Cut,
        Change::Drop(3),
    ] {
        // Past the end of the sent bytes
        assert_eq!(changed::<Cot>(&plan, 0, 1 << 40, change), End::Right);
    }
    let sent = |change| {
        let (near, far) = memory::pair();
        let near = Changed::new(near, 2, change);
        let _ = near.write(b"abcd", None);
        let _ = near.write(b"efgh", None);
        drop(near);
        let mut got = vec![0; 20];
        let mut count = 0;
        while let Ok(n @ 1..) = far.read(&mut got[count..], None) {
            count += n;
        }
        got.truncate(count);
        got
    };
    assert_eq!(sent(Change::Flip(0)), b"abbdefgh");
    assert_eq!(sent(Change::Cut), b"ab");
    assert_eq!(sent(Change::Drop(3)), b"abfgh");
    assert_eq!(sent(Change::Insert(2)), b"ab\0\0cdefgh");
    assert_eq!(sent(Change::Repeat(3)), b"abcdecdefgh");
    assert_eq!(sent(Change::Swap(3)), b"abfghcde");
}

/// All the changes, at positions all over the stream and dense at its end, where the round and its
/// check are.
fn sweep<K: Correlation>(trees: Trees, seed: u128, places: u64) {
    let plan = plan(K::KIND, trees);
    let lengths = lengths::<K>(&plan);
    let mut random = rng(seed);
    let mut ends = [0; 4];
    for who in [0, 1] {
        let length = lengths[who];
        let last = [length - 1, length - 17, length - 33, length - 49];
        let near = (0..places).map(|_| length - 1 - random.below(length.min(900)));
        let near: Vec<_> = near.collect();
        let far = (0..places).map(|_| random.below(length));
        let at: Vec<_> = far.chain(near).chain(last).chain([0]).collect();
        for (number, at) in at.into_iter().enumerate() {
            let flip = Change::Flip(random.below(8) as u8);
            let others = [
                Change::Cut,
                Change::Insert(1),
                Change::Insert(16),
                Change::Repeat(16),
                Change::Repeat(8),
                Change::Swap(16),
                Change::Swap(32),
                Change::Drop(1 + 15 * (number % 2)),
            ];
            for change in [flip, others[(number + who) % others.len()]] {
                let end = changed::<K>(&plan, who, at, change);
                let what = format!("{trees}: {change:?} at {at} of {length} from {who}");
                assert_ne!(end, End::Wrong, "{what}");
                if !matches!(change, Change::Drop(_)) {
                    assert_ne!(end, End::TimedOut, "{what}");
                }
                // The messages of a round and its check are all bound and all checked.
                if matches!(change, Change::Flip(_)) && length - at <= 80 {
                    assert_eq!(end, End::Failed, "{what}");
                }
                ends[end as usize] += 1;
            }
        }
    }
    assert!(ends[End::Failed as usize] > 2 * places, "{ends:?}");
}

#[test]
fn cot_on_half_trees() {
    sweep::<Cot>(Trees::Half, 11, 10);
}

#[test]
fn cot_on_ggm_trees() {
    sweep::<Cot>(Trees::Ggm, 12, 6);
}

#[test]
fn fp61_on_half_trees() {
    sweep::<Vole<Fp61>>(Trees::Half, 13, 5);
}

#[test]
fn fp61_on_ggm_trees() {
    sweep::<Vole<Fp61>>(Trees::Ggm, 14, 3);
}

#[test]
fn gf128_on_half_trees() {
    sweep::<Vole<Gf128>>(Trees::Half, 15, 1);
}

/// If the plans differ, the setup ends with an error, whatever the first messages look like.
#[test]
fn plans_that_differ() {
    fn check<K: Correlation>(options: &[PlanOptions<'_>]) {
        let plans: Vec<_> = options
            .iter()
            .map(|options| Plan::new(K::KIND, options).unwrap())
            .collect();
        let bound = |plan: &Plan| (plan.describe(), plan.security(), plan.total());
        for key in &plans {
            for value in &plans {
                let (left, right) = memory::pair();
                let same = bound(key) == bound(value);
                let patience = if same { LONG } else { SHORT };
                let (end, errors) = run::<K>([key, value], left, right, patience);
                let what = format!("{:?} and {:?}: {errors:?}", bound(key), bound(value));
                if same {
                    assert_eq!(end, End::Right, "{what}");
                } else {
                    assert!(errors[0].is_some(), "{what}");
                    // In a plan without rounds the value holder ends before the key holder has
                    // checked.
                    let waits = !value.schedule().is_empty();
                    assert!(errors[1].is_some() || !waits, "{what}");
                }
            }
        }
    }
    let malicious = PlanOptions {
        total: Some(N as u64),
        set: Some("r14"),
        ..PlanOptions::default()
    };
    let options = [
        malicious,
        PlanOptions {
            security: Security::SemiHonest,
            ..malicious
        },
        PlanOptions {
            total: Some(N as u64 + 1),
            ..malicious
        },
        PlanOptions {
            trees: Trees::Ggm,
            ..malicious
        },
        PlanOptions {
            noise: Noise::Uniform,
            set: Some("u14"),
            ..malicious
        },
        // Another base
        PlanOptions {
            link: SLOW,
            ..malicious
        },
        // No rounds
        PlanOptions {
            set: None,
            ..malicious
        },
        PlanOptions {
            set: Some("r17"),
            ..malicious
        },
    ];
    check::<Cot>(&options);
    check::<Vole<Fp61>>(&options[..7]);
    check::<Vole<Gf128>>(&options[..7]);
}
