//! The honest parties, with a dealer's base, and as a user would run them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use volery_channel::{Channel, Error, Result, SessionId};
use volery_field::{ExtensionOf, F2, Gf128, Ring};
use volery_ot::{CotReceiver, CotSender, convert, softspoken};
use volery_primitives::{Block, bits, pages::Buffer, prg::Prg, ro::RandomOracle};
use zeroize::Zeroizing;

use super::{Line, SESSION, rng};
use crate::{
    Base, Kind, Plan,
    agree::{self, End},
    correlation::{Correlation, Cot, Pairs, VoleKind},
    cot, cot_buffer,
    stream::{self, Failure, Role, Source, Stream, party, primal},
    vole::{self, VoleRing, base},
};

/// A key holder at the start of its rounds.
pub(crate) struct Key<K: Correlation> {
    pub(crate) x: K::Ring,
    pub(crate) ot: convert::Sender<K::KeyOt>,
    pub(crate) base: Buffer<K::Ring>,
    pub(crate) session: SessionId,
}

/// A value holder at the start of its rounds.
pub(crate) struct Value<K: Correlation> {
    pub(crate) ot: convert::Receiver<K::ValueOt>,
    pub(crate) base: Pairs<K>,
}

/// `x`, the outputs of the draws that did not fail, and the final result.
pub(crate) type KeyEnd<K> =
    (Option<<K as Correlation>::Ring>, Vec<<K as Correlation>::Ring>, Result<()>);

type ValueEnd<K> = (Line<K>, Result<()>);

/// A kind of correlation, with both parties of it.
pub(crate) trait Stage: Correlation {
    const KIND: Kind;

    /// The state of both parties when the rounds begin.
    fn deal(plan: &Plan, seed: u128) -> (Key<Self>, Value<Self>);

    /// The same for a key holder, by the setup that a user would run.
    fn set_up(plan: &Plan, channel: &mut Channel) -> Result<Key<Self>>;

    fn apart(pair: Self::Pair) -> (Self::Base, Self::Ring);

    /// OTs for the trees, with the choice bits in the lowest bits.
    fn buffered(delta: Block, q: &[Block], t: &[Block]) -> (Self::KeyOt, Self::ValueOt);

    /// The user's own objects. If a call fails, it has returned nothing, and so do all later ones.
    fn real_key_holder(plan: &Plan, pieces: &[usize], channel: &mut Channel) -> KeyEnd<Self>;

    fn real_value_holder(plan: &Plan, pieces: &[usize], channel: &mut Channel) -> ValueEnd<Self>;
}

/// A value holder that keeps `u` and `v` in pairs.
struct PairHolder<K>(std::marker::PhantomData<K>);

impl<K: Correlation> Role for PairHolder<K> {
    type Secret = ();
    type Out<'a> = &'a mut [K::Pair];
    type Part<'a> = &'a mut [K::Pair];

    fn count(out: &Self::Out<'_>) -> usize {
        out.len()
    }

    fn part<'a>(out: &'a mut Self::Out<'_>) -> Self::Part<'a> {
        out
    }

    fn wipe(out: &mut Self::Out<'_>) {
        out.fill(K::pair(K::Base::ZERO, K::Ring::ZERO));
    }
}

/// Correlated OTs with the choice bits in the lowest bits.
pub(crate) fn deal_ots(
    delta: Block,
    choices: impl Iterator<Item = bool>,
    rng: &mut Prg,
) -> (Vec<Block>, Vec<Block>) {
    let row = |choice: bool| {
        let q = rng.block().with_lsb(false);
        (q, q ^ (Block::select_mask(choice) & delta))
    };
    choices.map(row).unzip()
}

pub(crate) fn random_choices(count: usize, rng: &mut Prg) -> Vec<bool> {
    (0..count).map(|_| rng.next_u64() & 1 == 1).collect()
}

impl<K: Stage> Key<K> {
    /// Follows the protocol.
    pub(crate) fn honest(self, plan: &Plan, pieces: &[usize], channel: &mut Channel) -> KeyEnd<K> {
        let (x, mut outputs) = (self.x, Vec::new());
        let key = party::Key { x: Zeroizing::new(x), rng: rng(81), ot: self.ot };
        let plan = plan.clone();
        let rounds =
            primal::rounds::<K, _, stream::KeyHolder<K>>(plan, self.session, key, self.base);
        let secret = K::Ring::ZERO;
        let mut stream = Stream::new(Source::Rounds(rounds), secret, None, Failure::default());
        for piece in pieces {
            let mut w = vec![K::Ring::ZERO; *piece];
            if let Err(error) = stream.extend(&mut w, channel) {
                assert!(w.iter().all(|w| *w == K::Ring::ZERO), "nothing is given");
                return (Some(x), outputs, Err(error));
            }
            outputs.append(&mut w);
        }
        (Some(x), outputs, Ok(()))
    }
}

impl<K: Stage> Value<K> {
    /// Follows the protocol.
    pub(crate) fn run(self, plan: &Plan, pieces: &[usize], channel: &mut Channel) -> ValueEnd<K> {
        let mut outputs = Vec::new();
        let value = party::Value { rng: rng(82), ot: self.ot, value_bits: None };
        let rounds = primal::rounds::<K, _, PairHolder<K>>(plan.clone(), SESSION, value, self.base);
        let mut stream = Stream::new(Source::Rounds(rounds), (), None, Failure::default());
        for piece in pieces {
            let mut pairs = Buffer::<K::Pair>::zeroed(*piece);
            let nothing = K::apart(pairs[0]);
            if let Err(error) = stream.extend(&mut pairs[..], channel) {
                let untouched = pairs.iter().all(|pair| K::apart(*pair) == nothing);
                assert!(untouched, "nothing is given");
                return (outputs, Err(error));
            }
            outputs.extend(pairs.iter().map(|pair| K::apart(*pair)));
        }
        (outputs, Ok(()))
    }
}

impl Stage for Cot {
    const KIND: Kind = Kind::Cot;

    fn deal(plan: &Plan, seed: u128) -> (Key<Self>, Value<Self>) {
        let mut rng = rng(seed);
        let delta = rng.block().with_lsb(true);
        let choices = random_choices(plan.base_count(), &mut rng);
        let (q, t) = deal_ots(delta, choices.into_iter(), &mut rng);
        let mut keys = Buffer::zeroed(q.len());
        keys.copy_from_slice(bytemuck::cast_slice(&q));
        let mut pairs = Buffer::zeroed(t.len());
        pairs.copy_from_slice(bytemuck::cast_slice(&t));
        let key = Key {
            x: Gf128::new(delta),
            ot: convert::Sender::new(cot_buffer::Sender::new(delta), SESSION),
            base: keys,
            session: SESSION,
        };
        let ot = convert::Receiver::new(cot_buffer::Receiver::default(), SESSION);
        (key, Value { ot, base: pairs })
    }

    fn set_up(plan: &Plan, channel: &mut Channel) -> Result<Key<Self>> {
        let part = |name| {
            let mut oracle = RandomOracle::new("volery cot part");
            oracle.absorb(&[0]); // the carrier bit
            plan.session(oracle, SESSION, name)
        };
        let Base::SoftSpoken(field) = plan.base() else {
            unreachable!("the base of malicious correlated OT");
        };
        let delta = rng(1).block().with_lsb(true);
        agree::start(End::Key, SESSION, plan, channel)?;
        channel.send(&[0])?;
        let mut base =
            softspoken::Sender::setup(Some(delta), field, part("base"), rng(2), channel)?;
        let mut q = Buffer::<Gf128>::zeroed(plan.base_count());
        base.extend(bytemuck::cast_slice_mut(&mut q[..]), channel)?;
        for q in q.iter_mut() {
            *q = Self::pair(F2::ZERO, *q);
        }
        Ok(Key {
            x: Gf128::new(delta),
            ot: convert::Sender::new(cot_buffer::Sender::new(delta), part("ot hash")),
            base: q,
            session: part("rounds"),
        })
    }

    fn apart(pair: Gf128) -> (F2, Gf128) {
        (F2::new(pair.value().lsb()), pair)
    }

    fn buffered(
        delta: Block,
        q: &[Block],
        t: &[Block],
    ) -> (cot_buffer::Sender, cot_buffer::Receiver) {
        let (mut sender, mut receiver) =
            (cot_buffer::Sender::new(delta), cot_buffer::Receiver::default());
        sender.feed(q);
        receiver.feed(t);
        (sender, receiver)
    }

    fn real_key_holder(plan: &Plan, pieces: &[usize], channel: &mut Channel) -> KeyEnd<Self> {
        let mut sender = match cot::Sender::setup(plan, None, SESSION, rng(3), channel) {
            Ok(sender) => sender,
            Err(error) => return (None, Vec::new(), Err(error)),
        };
        let (x, mut outputs) = (Gf128::new(sender.delta()), Vec::new());
        for piece in pieces {
            let mut v = vec![Block::ZERO; *piece];
            if let Err(error) = sender.extend(&mut v, channel) {
                assert!(v.iter().all(|v| *v == Block::ZERO), "nothing is given");
                let again = sender.extend(&mut v[..1], channel);
                assert!(matches!(again, Err(Error::Broken)), "{again:?}");
                assert!(matches!(sender.prepare(channel), Err(Error::Broken)));
                let delta = AssertUnwindSafe(|| sender.delta());
                assert!(catch_unwind(delta).is_err(), "delta is not to be had");
                return (Some(x), outputs, Err(error));
            }
            outputs.extend(v.into_iter().map(Gf128::new));
        }
        (Some(x), outputs, Ok(()))
    }

    fn real_value_holder(plan: &Plan, pieces: &[usize], channel: &mut Channel) -> ValueEnd<Self> {
        let mut receiver = match cot::Receiver::setup(plan, SESSION, rng(4), channel) {
            Ok(receiver) => receiver,
            Err(error) => return (Vec::new(), Err(error)),
        };
        let mut outputs = Vec::new();
        for piece in pieces {
            let mut w = vec![Block::ZERO; *piece];
            let mut u = vec![0; bits::bytes_for(*piece)];
            if let Err(error) = receiver.extend(&mut u, &mut w, channel) {
                assert!(w.iter().all(|w| *w == Block::ZERO), "nothing is given");
                assert!(u.iter().all(|u| *u == 0), "nothing is given");
                let again = receiver.extend(&mut u[..1], &mut w[..1], channel);
                assert!(matches!(again, Err(Error::Broken)), "{again:?}");
                assert!(matches!(receiver.prepare(channel), Err(Error::Broken)));
                return (outputs, Err(error));
            }
            let pair = |(i, w): (usize, &Block)| (F2::new(bits::bit(&u, i)), Gf128::new(*w));
            outputs.extend(w.iter().enumerate().map(pair));
        }
        (outputs, Ok(()))
    }
}

/// More OTs than the trees of any round here have levels.
const OTS: usize = 8000;

/// The level sum of the half-trees of a dealer's vector OLE, and the choice bits of their OTs.
pub(crate) fn tree_ots(seed: u128) -> (Block, Vec<bool>) {
    let mut rng = rng(!seed);
    (rng.block().with_lsb(true), random_choices(OTS, &mut rng))
}

/// The parties of a kind.
type Receiver<K> = vole::Receiver<<K as Correlation>::Ring, <K as Correlation>::Base>;
type Sender<K> = vole::Sender<<K as Correlation>::Ring, <K as Correlation>::Base>;

impl<K: VoleKind> Stage for K
where
    K::Ring: VoleRing<K::Base, Kind = K>,
{
    const KIND: Kind = Kind::Vole(<K::Ring as VoleRing<K::Base>>::FIELD);

    fn deal(plan: &Plan, seed: u128) -> (Key<Self>, Value<Self>) {
        let mut rng = rng(seed);
        let x = K::Ring::random(&mut rng);
        let count = plan.base_count();
        let (mut keys, mut pairs) = (Buffer::zeroed(count), Buffer::zeroed(count));
        for (w, pair) in keys.iter_mut().zip(pairs.iter_mut()) {
            let (u, v) = (K::Base::random(&mut rng), K::Ring::random(&mut rng));
            *w = x.mul_base(u) + v;
            *pair = Self::pair(u, v);
        }
        let (delta, choices) = tree_ots(seed);
        let (q, t) = deal_ots(delta, choices.into_iter(), &mut rng);
        let (sender, receiver) = Self::buffered(delta, &q, &t);
        let key =
            Key { x, ot: convert::Sender::new(sender, SESSION), base: keys, session: SESSION };
        let ot = convert::Receiver::new(receiver, SESSION);
        (key, Value { ot, base: pairs })
    }

    fn set_up(plan: &Plan, channel: &mut Channel) -> Result<Key<Self>> {
        let part = |name| {
            let mut oracle = RandomOracle::new("volery vole part");
            oracle.absorb(K::Ring::NAME.as_bytes());
            plan.session(oracle, SESSION, name)
        };
        let x = K::Ring::random(&mut rng(1));
        let field = softspoken::SmallField::Bits8;
        agree::start(End::Key, SESSION, plan, channel)?;
        let cot = softspoken::Sender::setup(None, field, part("ot"), rng(2), channel)?;
        let mut source = base::key::<K::Base, K::Ring>(plan, x, part("base"), rng(5), channel)?;
        let mut w = Buffer::zeroed(plan.base_count());
        source.draw(&mut w, &mut rng(6), channel)?;
        let cot: Self::KeyOt = Box::new(cot);
        Ok(Key {
            x,
            ot: convert::Sender::new(cot, part("ot hash")),
            base: w,
            session: part("rounds"),
        })
    }

    fn apart(pair: K::Pair) -> (K::Base, K::Ring) {
        K::parts(pair)
    }

    fn buffered(delta: Block, q: &[Block], t: &[Block]) -> (Self::KeyOt, Self::ValueOt) {
        let (sender, receiver) = Cot::buffered(delta, q, t);
        (Box::new(sender), Box::new(receiver))
    }

    fn real_key_holder(plan: &Plan, pieces: &[usize], channel: &mut Channel) -> KeyEnd<Self> {
        let mut receiver = match Receiver::<K>::setup(plan, None, SESSION, rng(3), channel) {
            Ok(receiver) => receiver,
            Err(error) => return (None, Vec::new(), Err(error)),
        };
        let (x, mut outputs) = (receiver.x(), Vec::new());
        for piece in pieces {
            let mut w = vec![K::Ring::ZERO; *piece];
            if let Err(error) = receiver.extend(&mut w, channel) {
                assert!(w.iter().all(|w| *w == K::Ring::ZERO), "nothing is given");
                let again = receiver.extend(&mut w[..1], channel);
                assert!(matches!(again, Err(Error::Broken)), "{again:?}");
                assert!(matches!(receiver.prepare(channel), Err(Error::Broken)));
                let again = AssertUnwindSafe(|| receiver.x());
                assert!(catch_unwind(again).is_err(), "x is not to be had");
                return (Some(x), outputs, Err(error));
            }
            outputs.append(&mut w);
        }
        (Some(x), outputs, Ok(()))
    }

    fn real_value_holder(plan: &Plan, pieces: &[usize], channel: &mut Channel) -> ValueEnd<Self> {
        let mut sender = match Sender::<K>::setup(plan, SESSION, rng(4), channel) {
            Ok(sender) => sender,
            Err(error) => return (Vec::new(), Err(error)),
        };
        let mut outputs = Vec::new();
        for piece in pieces {
            let (mut u, mut v) = (vec![K::Base::ZERO; *piece], vec![K::Ring::ZERO; *piece]);
            if let Err(error) = sender.extend(&mut u, &mut v, channel) {
                assert!(u.iter().all(|u| *u == K::Base::ZERO), "nothing is given");
                assert!(v.iter().all(|v| *v == K::Ring::ZERO), "nothing is given");
                let again = sender.extend(&mut u[..1], &mut v[..1], channel);
                assert!(matches!(again, Err(Error::Broken)), "{again:?}");
                assert!(matches!(sender.prepare(channel), Err(Error::Broken)));
                return (outputs, Err(error));
            }
            outputs.extend(u.into_iter().zip(v));
        }
        (outputs, Ok(()))
    }
}
