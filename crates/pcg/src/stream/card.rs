//! Rounds on a CUDA card: the protocol of [`primal`], with the same messages; the trees, the sums
//! of the check and the code are by `volery-gpu`.
//!
//! | step | where |
//! |---|---|
//! | the rounds before the one that repeats | processor |
//! | OTs, hashes of messages, coefficients of the check, noise | processor |
//! | trees, their sums, leaves | card; the sums of levels come down, masked here |
//! | the sum of each tree in the check | card; the sum over the trees here |
//! | outputs, the base of the next round | card; what OTs and check use of the base comes down |
//!
//! The leaves of a round stay on the card until the next: outputs that are drawn later are made
//! from them. Outputs go to memory of the card ([`CardOut`]), or by a small window of it to that of
//! the processor. A checked round starts the kernel of its first outputs when the sums of the check
//! are there, and the parties exchange the messages of the check meanwhile; a failed check wipes
//! these outputs, as on the processor.
//!
//! Memory: 16 or 8 bytes a leaf and an eighth of it, and the bases of this round and the next.

use std::marker::PhantomData;
use std::mem::take;
use std::sync::Arc;

use volery_channel::{Channel, Error, Result};
use volery_field::Ring;
use volery_gpu::{self as gpu, Code, Entry, Leaf, Memory, Outputs, Pinned, Trees};
use volery_primitives::{Block, Wiped, pages::Buffer};
use zeroize::{Zeroize, Zeroizing};

use super::{
    AnyRounds, KeyRole, KeySubstream, Role, Substream, ValueRole, ValueSubstream, primal,
    rounds::Round,
};
use crate::{
    Plan,
    check::{self, Coefficients, Factors},
    correlation::{Correlation, OutputMut, VoleSlices},
    ggm::TreePrgs,
    mpcot::{self, Layout, Public},
    plan::Step,
    spcot::{self, Points, Trees as _},
    tree_batch::TreeBatch,
    wire,
};

/// Entries that come down from a card at a time.
const WINDOW: usize = 1 << 22;

/// An error of a card as one of a stream.
pub(crate) fn failed(error: gpu::Error) -> Error {
    Error::Card(error.to_string())
}

/// Memory of a card for outputs, for any role.
pub(crate) struct CardOut<'a> {
    pub(crate) out: Outputs<'a>,
    pub(crate) entry: Entry,
    /// The card; `None` only of no memory.
    pub(crate) device: Option<&'a gpu::Device>,
}

impl OutputMut for CardOut<'_> {
    fn none() -> Self {
        let out = Outputs::Entries(gpu::Part::none());
        Self { out, entry: Entry::Cot, device: None }
    }

    fn count(&self) -> usize {
        self.out.count(self.entry)
    }

    fn split_at(self, at: usize) -> (Self, Self) {
        let Self { out, entry, device } = self;
        let (first, rest) = out.split_at(entry, at);
        (Self { out: first, entry, device }, Self { out: rest, entry, device })
    }
}

/// A party whose outputs stay on a card; `S` is its secret.
pub(crate) struct CardRole<S>(PhantomData<S>);

impl<S: Zeroize + Copy + Send + 'static> Role for CardRole<S> {
    type Secret = S;
    type Out<'a> = CardOut<'a>;
    type Part<'a> = CardOut<'a>;

    fn count(out: &CardOut<'_>) -> usize {
        out.count()
    }

    fn part<'a>(out: &'a mut CardOut<'_>) -> CardOut<'a> {
        CardOut { out: out.out.again(), entry: out.entry, device: out.device }
    }

    /// A card that fails has no outputs.
    fn wipe(out: &mut CardOut<'_>) {
        if let Some(device) = out.device {
            let _failed = out.out.wipe(device);
        }
    }
}

impl<K: Correlation> KeyRole<K> for CardRole<K::Ring> {
    fn rounds(plan: Plan, substream: KeySubstream<K>, x: K::Ring) -> Result<AnyRounds<Self>> {
        let card = plan.device().number()?;
        let Substream { session, rng, ot, base } = substream;
        let rounds = primal::KeyHolder::<K>::new(plan, session, rng, x, ot, base);
        Ok(Box::new(Wiped::new(KeyHolder::new(rounds, card)?)))
    }
}

impl<K: Correlation> ValueRole<K> for CardRole<()> {
    fn rounds(plan: Plan, substream: ValueSubstream<K>) -> Result<AnyRounds<Self>> {
        let card = plan.device().number()?;
        let Substream { session, rng, ot, base } = substream;
        let rounds = primal::ValueHolder::<K>::new(plan, session, rng, ot, base);
        Ok(Box::new(Wiped::new(ValueHolder::new(rounds, card)?)))
    }
}

/// Memory for outputs, wherever it is.
pub(crate) trait Destination: OutputMut {
    /// Fills it with the outputs of a round from `first` on.
    fn fill(self, card: &mut Card, first: usize) -> gpu::Result<()>;
}

impl Destination for CardOut<'_> {
    fn fill(mut self, card: &mut Card, first: usize) -> gpu::Result<()> {
        card.encode(first, &mut self.out)
    }
}

impl<R: Ring> Destination for &mut [R] {
    fn fill(self, card: &mut Card, first: usize) -> gpu::Result<()> {
        let words = R::as_words_mut(self).expect("elements of cards are words");
        let entry = card.entry;
        let mut window = card.window(words.len().min(WINDOW * entry.words()))?;
        for (number, words) in words.chunks_mut(WINDOW * entry.words()).enumerate() {
            let mut out = Outputs::Entries(window.part(0..words.len()));
            card.encode(first + number * WINDOW, &mut out)?;
            window.read(0, words)?;
        }
        card.window = Some(window);
        Ok(())
    }
}

impl<K: Correlation> Destination for VoleSlices<'_, K> {
    fn fill(self, card: &mut Card, first: usize) -> gpu::Result<()> {
        let half = card.entry.words() / 2;
        let (u, v) = (K::Base::as_words_mut(self.u), K::Ring::as_words_mut(self.v));
        let (u, v) = u.zip(v).expect("elements of cards are words");
        let len = u.len().min(WINDOW * half);
        let mut window = card.window(2 * len)?;
        let parts = u.chunks_mut(WINDOW * half).zip(v.chunks_mut(WINDOW * half));
        for (number, (u, v)) in parts.enumerate() {
            let (first_half, rest) = window.all().split_at(len);
            let (out_u, out_v) = (first_half.split_at(u.len()).0, rest.split_at(v.len()).0);
            card.encode(first + number * WINDOW, &mut Outputs::Apart(out_u, out_v))?;
            window.read(0, u)?;
            window.read(len, v)?;
        }
        card.window = Some(window);
        Ok(())
    }
}

/// A card with the current round of a party.
pub(crate) struct Card {
    device: gpu::Device,
    leaf: Leaf,
    entry: Entry,
    trees: Option<Trees>,
    code: Option<Code>,
    /// The base of the current round, and that of the next.
    base: Memory<u64>,
    next_base: Memory<u64>,
    window: Option<Memory<u64>>,
    /// The entries of the base that the OTs and the check use.
    spare: Option<Pinned<u64>>,
    /// The outputs of the round that have not been drawn.
    next: usize,
    end: usize,
}

impl Card {
    fn new(number: usize, leaf: Leaf, entry: Entry) -> gpu::Result<Self> {
        let device = gpu::Device::open(number)?;
        Ok(Self {
            leaf,
            entry,
            trees: None,
            code: None,
            base: Memory::zeroed(&device, 0)?,
            next_base: Memory::zeroed(&device, 0)?,
            window: None,
            spare: None,
            next: 0,
            end: 0,
            device,
        })
    }

    /// Takes the base that the last round left here, or else the one of the processor. Returns
    /// those of its entries that are not secrets of the code; they go back to `spare`.
    fn take_base(
        &mut self,
        round: &Round,
        base: impl FnOnce() -> Zeroizing<Vec<u64>>,
    ) -> gpu::Result<Pinned<u64>> {
        let (secret, need) = (round.step.secret(), round.step.need);
        let words = self.entry.words();
        if self.next_base.is_empty() {
            self.base = Memory::of(&self.device, &base())?;
        } else {
            std::mem::swap(&mut self.base, &mut self.next_base);
        }
        let len = (need - secret) * words;
        let mut spare = match self.spare.take() {
            Some(spare) if spare.len() == len => spare,
            _ => Pinned::zeroed(&self.device, len)?,
        };
        self.base.read(secret * words, &mut spare)?;
        Ok(spare)
    }

    /// The trees of the round, in the memory of the last one if there are as many.
    fn trees(&mut self, batch: &TreeBatch) -> gpu::Result<&mut Trees> {
        if self.trees.as_ref().is_none_or(|trees| trees.trees() != batch.trees()) {
            self.trees = None;
            let depth = batch.shape(0).depth();
            self.trees = Some(Trees::new(&self.device, self.leaf, depth, batch.trees())?);
        }
        Ok(self.trees.as_mut().expect("it is there now"))
    }

    fn begin(&mut self, step: Step, code: Code) -> gpu::Result<()> {
        self.code = Some(code);
        let len = step.keep * self.entry.words();
        if self.next_base.len() != len {
            self.next_base = Memory::zeroed(&self.device, len)?;
        }
        (self.next, self.end) = (step.keep, step.keep + step.deliver);
        Ok(())
    }

    /// The first outputs: the base of the next round, and as many as there is memory for.
    fn first(&mut self, out: impl Destination) -> gpu::Result<()> {
        let Self { code, base, trees, next_base, .. } = self;
        encode(code, base, trees, 0, &mut Outputs::Entries(next_base.all()))?;
        self.draw(out)
    }

    fn draw(&mut self, out: impl Destination) -> gpu::Result<()> {
        let (first, count) = (self.next, out.count());
        assert!(count <= self.end - first, "more outputs than are left");
        self.next += count;
        out.fill(self, first)
    }

    fn encode(&self, first: usize, out: &mut Outputs<'_>) -> gpu::Result<()> {
        encode(&self.code, &self.base, &self.trees, first, out)
    }

    /// A window of at least so many words.
    fn window(&mut self, words: usize) -> gpu::Result<Memory<u64>> {
        match self.window.take() {
            Some(window) if window.len() >= words => Ok(window),
            _ => Memory::zeroed(&self.device, words),
        }
    }
}

/// The outputs from `first` on of the round that has these.
fn encode(
    code: &Option<Code>,
    base: &Memory<u64>,
    trees: &Option<Trees>,
    first: usize,
    out: &mut Outputs<'_>,
) -> gpu::Result<()> {
    let (Some(code), Some(trees)) = (code, trees) else { unreachable!("a round is under way") };
    code.encode(base, trees, first, out)
}

/// The leaves of a round on a card, under its check, after which it makes the first outputs.
struct Leaves<'a, D> {
    card: &'a mut Card,
    out: Option<D>,
}

impl<R: Ring, D: Destination> check::Leaves<R> for Leaves<'_, D> {
    fn fold(
        &mut self,
        _batch: &TreeBatch,
        coefficients: &Coefficients<R>,
    ) -> Result<Zeroizing<Vec<R>>> {
        let trees = self.card.trees.as_ref().expect("a round is under way");
        let mut sums = Zeroizing::new(vec![R::ZERO; coefficients.0.len()]);
        match &coefficients.0[..] {
            [Factors { trees: factors, places }] => {
                let products =
                    trees.inner_products(bytemuck::cast_slice(places)).map_err(failed)?;
                for (factor, product) in factors.iter().zip(products.iter()) {
                    sums[0] += *factor * R::from_block(*product);
                }
            }
            [first, second] => {
                let places = [first, second].map(|factors| bytemuck::cast_slice(&factors.places));
                let products = trees.inner_products_61(places).map_err(failed)?;
                for (tree, products) in products.iter().enumerate() {
                    for (repetition, product) in products.iter().enumerate() {
                        let factor = coefficients.0[repetition].trees[tree];
                        sums[repetition] += factor * R::from_words(&[*product]);
                    }
                }
            }
            _ => unreachable!("a check is done once or twice"),
        }
        let out = self.out.take().expect("the leaves are looked at once");
        self.card.first(out).map_err(failed)?;
        Ok(sums)
    }
}

/// Rounds before the one that repeats, its trees while their messages are exchanged, and the card.
struct Party<B, T> {
    before: B,
    card: Card,
    /// The trees of the round, until all their messages are exchanged.
    trees: Option<T>,
    /// Their public side.
    public: Option<(Arc<Layout>, TreePrgs)>,
}

impl<B, T> Party<B, T> {
    fn new(before: B, number: usize, leaf: Leaf, entry: Entry) -> Result<Self> {
        let card = Card::new(number, leaf, entry).map_err(failed)?;
        Ok(Self { before, card, trees: None, public: None })
    }
}

/// The holder of `x`.
pub(crate) struct KeyHolder<K: Correlation>(Party<primal::KeyHolder<K>, spcot::Sender<K::Ring>>);

impl<K: Correlation> KeyHolder<K> {
    /// The rounds on that card.
    ///
    /// # Errors
    /// If the card cannot be opened.
    pub(crate) fn new(before: primal::KeyHolder<K>, number: usize) -> Result<Self> {
        let on = K::ON_CARD.expect("a kind that cards make");
        Party::new(before, number, on.leaf, on.key).map(Self)
    }

    fn next<D: Destination>(&mut self, out: D, channel: &mut Channel) -> Result<D> {
        let Party { before, card, .. } = &mut self.0;
        if !before.rounds.repeats() {
            let before: &mut dyn super::Rounds<super::KeyHolder<K>> = before;
            before.next_round(&mut [], channel)?;
            return Ok(out);
        }
        before.forget_round();
        let round = before.rounds.next();
        let checked = before.rounds.checked();
        let first = &mut before.base;
        let words = || Zeroizing::new(bytemuck::cast_slice(&take(first)[..]).to_vec());
        let pinned = card.take_base(&round, words).map_err(failed)?;
        let mut copy = Buffer::default();
        let spare = K::elements_of(&pinned, &mut copy);
        let Round { step, layout, code, prgs, context } = round;
        let batch = layout.batch();
        K::feed_key(&mut before.ot, &spare[..K::LEVELS * batch.levels()])?;
        if checked {
            channel.bind();
        }
        // Setup, steps 2 and 3
        let (x, rng, ot) = (*before.x, &mut before.rng, &mut before.ot);
        let mut trees = spcot::Sender::new(batch, rng, ot)?;
        let mut keys = vec![Block::ZERO; batch.trees()];
        prgs.half_keys(0, &mut keys);
        let (roots, delta) = trees.roots();
        let grown = card.trees(batch).and_then(|grown| grown.grow(&keys, roots, delta));
        let (left, right) = grown.map_err(failed)?;
        trees.add_sums((batch, &prgs), left, right);
        let public = Public { layout: &layout, prgs: &prgs };
        mpcot::begin_send::<K>(&mut trees, public, Points::Random, x, spare, ot, channel)?;
        let code = Code::new(&card.device, card.entry, code, step.instances, step.set.k);
        code.and_then(|code| card.begin(step, code)).map_err(failed)?;
        self.0.trees = Some(trees);
        self.0.public = Some((Arc::clone(&layout), prgs));
        // The base of the next round, and the outputs of this one
        let now = step.deliver.min(out.count());
        self.reach(if checked { usize::MAX } else { step.keep + now }, channel)?;
        let Party { before, card, .. } = &mut self.0;
        let (now, rest) = out.split_at(now);
        if checked {
            let mask = K::key_mask(spare);
            let leaves = Leaves { card, out: Some(now) };
            check::key_holder(context, batch, x, leaves, &mask, &mut before.rng, channel)?;
        } else {
            card.first(now).map_err(failed)?;
        }
        self.0.card.spare = Some(pinned);
        self.0.card.device.wait().map_err(failed)?;
        Ok(rest)
    }

    /// Sends the messages of the trees that outputs before `place` need.
    fn reach(&mut self, place: usize, channel: &mut Channel) -> Result<()> {
        let Party { trees, public, .. } = &mut self.0;
        let Some((layout, prgs)) = public else { return Ok(()) };
        let some = trees.as_mut().expect("the trees of the round");
        some.exchange_until((layout.batch(), prgs), place, channel)
    }
}

/// The holder of `u` and `v`.
pub(crate) struct ValueHolder<K: Correlation>(
    Party<primal::ValueHolder<K>, spcot::Receiver<K::Ring>>,
);

impl<K: Correlation> ValueHolder<K> {
    /// The rounds on that card.
    ///
    /// # Errors
    /// If the card cannot be opened.
    pub(crate) fn new(before: primal::ValueHolder<K>, number: usize) -> Result<Self> {
        let on = K::ON_CARD.expect("a kind that cards make");
        Party::new(before, number, on.leaf, on.value).map(Self)
    }

    fn next<D: Destination>(&mut self, out: D, channel: &mut Channel) -> Result<D> {
        let Party { before, card, .. } = &mut self.0;
        if !before.rounds.repeats() {
            before.set_up::<&mut [K::Pair]>(&mut [], channel)?;
            return Ok(out);
        }
        before.forget_round();
        let round = before.rounds.next();
        let checked = before.rounds.checked();
        let first = &mut before.base;
        let words = || {
            let base = take(first);
            let mut words = Zeroizing::new(Vec::with_capacity(4 * base.len()));
            base.iter().for_each(|pair| K::push_words(*pair, &mut words));
            words
        };
        let pinned = card.take_base(&round, words).map_err(failed)?;
        let mut copy = Buffer::default();
        let spare = K::pairs_of(&pinned, &mut copy);
        let Round { step, layout, code, prgs, context } = round;
        let batch = layout.batch();
        K::feed_value(&mut before.ot, &spare[..K::LEVELS * batch.levels()]);
        if checked {
            channel.bind();
        }
        // Setup, steps 1 to 3
        let noise = (0..step.trees).map(|_| K::noise(&mut before.rng));
        let values: Zeroizing<Vec<K::Base>> = Zeroizing::new(noise.collect());
        let (public, ot) = (Public { layout: &layout, prgs: &prgs }, &mut before.ot);
        let trees = mpcot::begin_receive::<K>(public, Points::Random, &values, spare, ot, channel)?;
        let alphas = trees.alphas.clone();
        card.trees(batch).map_err(failed)?;
        let mut code = Code::new(&card.device, card.entry, code, step.instances, step.set.k)
            .map_err(failed)?;
        if card.leaf != Leaf::Correlated {
            let place = |(tree, alpha)| (batch.leaves_of(tree).start + alpha) as u64;
            let places: Vec<_> = alphas.iter().copied().enumerate().map(place).collect();
            let values: Vec<_> = values.iter().map(|value| wire::pack(*value)).collect();
            let (places, values) = (Zeroizing::new(places), Zeroizing::new(values));
            code = code.with_noise(&places, &values).map_err(failed)?;
        }
        card.begin(step, code).map_err(failed)?;
        self.0.trees = Some(trees);
        self.0.public = Some((Arc::clone(&layout), prgs));
        // The base of the next round, and the outputs of this one
        let now = step.deliver.min(out.count());
        self.reach(if checked { usize::MAX } else { step.keep + now }, channel)?;
        let Party { before, card, .. } = &mut self.0;
        let (now, rest) = out.split_at(now);
        if checked {
            let mask = K::value_mask(spare);
            let (leaves, rng) = (Leaves { card, out: Some(now) }, &mut before.rng);
            check::value_holder(context, batch, &alphas, &values, leaves, &mask, rng, channel)?;
        } else {
            card.first(now).map_err(failed)?;
        }
        self.0.card.spare = Some(pinned);
        self.0.card.device.wait().map_err(failed)?;
        Ok(rest)
    }

    /// Receives the messages of the trees that outputs before `place` need, and rebuilds these
    /// trees: step 5 of Figure 6.
    fn reach(&mut self, place: usize, channel: &mut Channel) -> Result<()> {
        let Party { card, trees, public, .. } = &mut self.0;
        let Some((layout, prgs)) = public else { return Ok(()) };
        let trees = trees.as_mut().expect("the trees of the round");
        let public = (layout.batch(), &*prgs);
        let first = trees.next();
        trees.exchange_until(public, place, channel)?;
        let new = first..trees.next();
        if new.is_empty() {
            return Ok(());
        }
        let rebuilt = card.trees(public.0).and_then(|grown| {
            grown.grow_punctured(first, new.len(), |to| {
                trees.write_punctured(public, new.clone(), to);
            })
        });
        rebuilt.map_err(failed)
    }
}

/// Waits for a card when it is dropped, also after an error or a panic: what is written to then is
/// the caller's.
struct Finish(gpu::Device);

impl Drop for Finish {
    fn drop(&mut self) {
        let _failed = self.0.wait();
    }
}

macro_rules! rounds {
    ($holder:ident) => {
        impl<K: Correlation, R: Role> super::Rounds<R> for $holder<K>
        where
            for<'a> R::Part<'a>: Destination,
        {
            fn left(&self) -> usize {
                self.0.card.end - self.0.card.next
            }

            fn finished(&self) -> bool {
                self.0.before.rounds.finished()
            }

            fn next_round<'a>(
                &mut self,
                out: R::Part<'a>,
                channel: &mut Channel,
            ) -> Result<R::Part<'a>> {
                let _finish = Finish(self.0.card.device.clone());
                self.next(out, channel)
            }

            fn exchange(&mut self, channel: &mut Channel) -> Result<()> {
                self.reach(usize::MAX, channel)
            }

            fn draw(&mut self, out: R::Part<'_>, channel: &mut Channel) -> Result<()> {
                let _finish = Finish(self.0.card.device.clone());
                self.reach(self.0.card.next + out.count(), channel)?;
                let card = &mut self.0.card;
                card.draw(out).and_then(|()| card.device.wait()).map_err(failed)
            }
        }
    };
}

rounds!(KeyHolder);
rounds!(ValueHolder);
