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

use volery_channel::{Channel, Error, Result, SessionId};
use volery_field::Ring;
use volery_gpu::{self as gpu, Code, Entry, Leaf, Memory, Outputs, Pinned, Trees};
use volery_primitives::{Block, Wiped, pages::Buffer};
use zeroize::{Zeroize, Zeroizing};

use super::{
    AnyRounds, KeyRole, KeySubstream, Role, Substream, ValueRole, ValueSubstream,
    party::{Key, Noise, Party, Value},
    primal,
    rounds::Round,
};
use crate::{
    Plan,
    check::{self, Coefficients, Factors},
    correlation::{CardKind, Correlation, OutputMut, Pairs, VoleSlices},
    ggm::TreePrgs,
    mpcot::{self, Layout},
    plan::Step,
    spcot::{Exchange as _, Messages, Opening, Points, Public, Roots, Sums},
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
        let key = Key { x: Zeroizing::new(x), rng, ot };
        rounds::<K, _, Self>(plan, session, key, base, card)
    }
}

impl<K: Correlation> ValueRole<K> for CardRole<()> {
    fn rounds(plan: Plan, substream: ValueSubstream<K>) -> Result<AnyRounds<Self>> {
        let card = plan.device().number()?;
        let Substream { session, rng, ot, base } = substream;
        let value = Value { rng, ot, value_bits: None };
        rounds::<K, _, Self>(plan, session, value, base, card)
    }
}

/// The rounds of `plan` on the card of that number, with the base of the first.
///
/// # Errors
/// If the card cannot be opened.
pub(crate) fn rounds<K: Correlation, P: OnCard<K>, R: Role>(
    plan: Plan,
    session: SessionId,
    party: P,
    base: Buffer<P::Entry>,
    number: usize,
) -> Result<AnyRounds<R>>
where
    for<'a> R::Part<'a>: Destination,
{
    let kind = K::ON_CARD.expect("a kind that cards make");
    let card = Card::new(number, kind.leaf, P::entry(kind)).map_err(failed)?;
    let before = primal::Holder::new(plan, session, party, base);
    Ok(Box::new(Wiped::new(Holder { before, card, round: None })))
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

/// A party whose rounds a card makes.
pub(crate) trait OnCard<K: Correlation>: Party<K> {
    /// Its side of the messages of the trees.
    type Trees: Send;

    /// Its part of a correlation on a card.
    fn entry(kind: CardKind) -> Entry;

    /// The words of a base, as a card has them.
    fn words(base: Buffer<Self::Entry>) -> Zeroizing<Vec<u64>>;

    /// The entries of these words: the same memory, or else `copy`.
    fn entries<'a>(words: &'a [u64], copy: &'a mut Buffer<Self::Entry>) -> &'a [Self::Entry];

    /// Setup, steps 1 and 2, but for the messages of the trees.
    fn begin_on(
        &mut self,
        card: &mut Card,
        public: Public<'_>,
        spare: &[Self::Entry],
        channel: &mut Channel,
    ) -> Result<(Self::Trees, Self::Noise)>;

    /// The code with the noise, where the leaves do not contain it.
    fn add_noise(code: Code, leaf: Leaf, noise: &Self::Noise) -> gpu::Result<Code>;

    /// Exchanges the messages of the trees that outputs before `place` need, and expands those
    /// trees that are not.
    fn reach(
        trees: &mut Self::Trees,
        card: &mut Card,
        public: Public<'_>,
        place: usize,
        channel: &mut Channel,
    ) -> Result<()>;
}

impl<K: Correlation> OnCard<K> for Key<K> {
    type Trees = Messages<K::Ring>;

    fn entry(kind: CardKind) -> Entry {
        kind.key
    }

    fn words(base: Buffer<K::Ring>) -> Zeroizing<Vec<u64>> {
        Zeroizing::new(bytemuck::cast_slice(&base[..]).to_vec())
    }

    fn entries<'a>(words: &'a [u64], copy: &'a mut Buffer<K::Ring>) -> &'a [K::Ring] {
        K::elements_of(words, copy)
    }

    fn begin_on(
        &mut self,
        card: &mut Card,
        public: Public<'_>,
        spare: &[K::Ring],
        channel: &mut Channel,
    ) -> Result<(Messages<K::Ring>, ())> {
        let (Self { x, rng, ot }, (batch, prgs)) = (self, public);
        let roots = Roots::new(batch, rng, ot)?;
        let mut keys = vec![Block::ZERO; batch.trees()];
        prgs.half_keys(0, &mut keys);
        let (secrets, delta) = roots.secrets();
        let grown = card.trees(batch).and_then(|grown| grown.grow(&keys, secrets, delta));
        let (left, right) = grown.map_err(failed)?;
        let sums = Sums::new(public, left, right);
        let masks = mpcot::begin_send::<K>(public, Points::Random, **x, spare, ot, channel)?;
        Ok((masks.mask(batch, sums), ()))
    }

    fn add_noise(code: Code, _leaf: Leaf, _noise: &()) -> gpu::Result<Code> {
        Ok(code)
    }

    fn reach(
        messages: &mut Messages<K::Ring>,
        _card: &mut Card,
        public: Public<'_>,
        place: usize,
        channel: &mut Channel,
    ) -> Result<()> {
        messages.send_until(public, place, channel)
    }
}

impl<K: Correlation> OnCard<K> for Value<K> {
    type Trees = Opening<K::Ring>;

    fn entry(kind: CardKind) -> Entry {
        kind.value
    }

    fn words(base: Pairs<K>) -> Zeroizing<Vec<u64>> {
        let mut words = Zeroizing::new(Vec::with_capacity(4 * base.len()));
        base.iter().for_each(|pair| K::push_words(*pair, &mut words));
        words
    }

    fn entries<'a>(words: &'a [u64], copy: &'a mut Pairs<K>) -> &'a [K::Pair] {
        K::pairs_of(words, copy)
    }

    fn begin_on(
        &mut self,
        card: &mut Card,
        public: Public<'_>,
        spare: &[K::Pair],
        channel: &mut Channel,
    ) -> Result<(Opening<K::Ring>, Noise<K>)> {
        let (opened, opener, noise) = self.begin(public, spare, false, channel)?;
        card.trees(public.0).map_err(failed)?;
        Ok(((opened, opener), noise))
    }

    fn add_noise(code: Code, leaf: Leaf, noise: &Noise<K>) -> gpu::Result<Code> {
        if leaf == Leaf::Correlated {
            return Ok(code);
        }
        let points = noise.points.iter();
        let (places, values): (Vec<_>, Vec<_>) =
            points.map(|(place, value)| (*place as u64, wire::pack(*value))).unzip();
        let (places, values) = (Zeroizing::new(places), Zeroizing::new(values));
        code.with_noise(&places, &values)
    }

    /// Step 5 of Figure 6.
    fn reach(
        (opened, opener): &mut Opening<K::Ring>,
        card: &mut Card,
        public: Public<'_>,
        place: usize,
        channel: &mut Channel,
    ) -> Result<()> {
        let first = opener.next();
        opener.receive_until(opened, public, place, channel)?;
        let new = first..opener.next();
        if new.is_empty() {
            return Ok(());
        }
        let rebuilt = card.trees(public.0).and_then(|grown| {
            grown.grow_punctured(first, new.len(), |to| opened.write(public, new.clone(), to))
        });
        rebuilt.map_err(failed)
    }
}

/// A party's rounds: on the processor before the one that repeats, and then on the card.
struct Holder<K: Correlation, P: OnCard<K>> {
    before: primal::Holder<K, P>,
    card: Card,
    /// The messages of the trees of the round, and their public side.
    round: Option<(P::Trees, Arc<Layout>, TreePrgs)>,
}

impl<K: Correlation, P: OnCard<K>> Holder<K, P> {
    fn next<D: Destination>(&mut self, out: D, channel: &mut Channel) -> Result<D> {
        let Self { before, card, .. } = self;
        if !before.rounds.repeats() {
            before.set_up::<&mut [P::Entry]>(&mut [], channel)?;
            return Ok(out);
        }
        before.forget_round();
        let (round, checked) = (before.rounds.next(), before.rounds.checked());
        let first = &mut before.base;
        let pinned = card.take_base(&round, || P::words(take(first))).map_err(failed)?;
        let mut copy = Buffer::default();
        let spare = P::entries(&pinned, &mut copy);
        let Round { step, layout, code, prgs, context } = round;
        let batch = layout.batch();
        before.party.feed(&spare[..K::LEVELS * batch.levels()])?;
        if checked {
            channel.bind();
        }
        // Setup, steps 1 and 2
        let (trees, noise) = before.party.begin_on(card, (batch, &prgs), spare, channel)?;
        let code = Code::new(&card.device, card.entry, code, step.instances, step.set.k);
        let code = code.and_then(|code| P::add_noise(code, card.leaf, &noise));
        code.and_then(|code| card.begin(step, code)).map_err(failed)?;
        self.round = Some((trees, Arc::clone(&layout), prgs));
        // Setup, step 3; the base of the next round, and the outputs of this one
        let now = step.deliver.min(out.count());
        self.reach(if checked { usize::MAX } else { step.keep + now }, channel)?;
        let Self { before, card, .. } = self;
        let (now, rest) = out.split_at(now);
        if checked {
            let (mask, leaves) = (P::mask(spare), Leaves { card, out: Some(now) });
            before.party.check((context, batch), &noise, leaves, &mask, channel)?;
        } else {
            card.first(now).map_err(failed)?;
        }
        card.spare = Some(pinned);
        card.device.wait().map_err(failed)?;
        Ok(rest)
    }

    /// [`OnCard::reach`] of the current round, if a card makes it.
    fn reach(&mut self, place: usize, channel: &mut Channel) -> Result<()> {
        let Some((trees, layout, prgs)) = &mut self.round else { return Ok(()) };
        P::reach(trees, &mut self.card, (layout.batch(), prgs), place, channel)
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

impl<K: Correlation, P: OnCard<K>, R: Role> super::Rounds<R> for Holder<K, P>
where
    for<'a> R::Part<'a>: Destination,
{
    fn left(&self) -> usize {
        self.card.end - self.card.next
    }

    fn finished(&self) -> bool {
        self.before.rounds.finished()
    }

    fn next_round<'a>(&mut self, out: R::Part<'a>, channel: &mut Channel) -> Result<R::Part<'a>> {
        let _finish = Finish(self.card.device.clone());
        self.next(out, channel)
    }

    fn exchange(&mut self, channel: &mut Channel) -> Result<()> {
        self.reach(usize::MAX, channel)
    }

    fn draw(&mut self, out: R::Part<'_>, channel: &mut Channel) -> Result<()> {
        let _finish = Finish(self.card.device.clone());
        self.reach(self.card.next + out.count(), channel)?;
        let card = &mut self.card;
        card.draw(out).and_then(|()| card.device.wait()).map_err(failed)
    }
}
