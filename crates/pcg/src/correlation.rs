//! The output of the pipeline: a kind of correlation `w = u*x + v`.
//!
//! One party, the *key holder*, has `x` and `w`; the other, the *value holder*, has `u` and `v`. A
//! vector-OLE calls the key holder its receiver; a correlated OT calls it its sender, its `x`
//! `delta`, its `w` `v`, and the value holder's `v` `w`. (In characteristic 2 the relation is
//! symmetric.)
//!
//! | | vector-OLE over `R` | correlated OT |
//! |---|---|---|
//! | `u` in | `R` | F_2 |
//! | `x`, `v`, `w` in | `R` | F_2^128 |
//! | noise values | random | 1 |
//! | leaves of half-trees | hashed | correlated |
//! | OTs for the trees | from a separate extension, with another `delta` | its own earlier outputs |
//! | a tree consumes | one correlation for its value, and the OTs | the OTs |
//! | the check consumes | one correlation, over a small field two | 128 correlations, packed into one over F_2^128 |
//!
//! Correlated OTs carry their choice bit `u` in the lowest bit of the value holder's block: `x` has
//! that bit set, the key holder's blocks have it clear. The additions include it for free, and it
//! costs `x` one of its 128 bits.

use volery_channel::{Channel, Result};
use volery_field::{ExtensionOf, F2, Gf128, Ring};
#[cfg(feature = "gpu")]
use volery_gpu::{Entry as CardEntry, Leaf};
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::{
    Aligned, Block, BlockSum, bits, pages::Buffer, prefetch::prefetch_to_write,
};
use zeroize::Zeroizing;

use crate::{
    Trees, check, cot_buffer, derandomize,
    ggm::Growth,
    lpn::{Entry, GROUP, LocalCode, Pair, SubPair, SubSums, dual::Term},
};

/// What a card makes for a kind of correlation.
#[cfg(feature = "gpu")]
#[derive(Clone, Copy)]
pub struct CardKind {
    pub(crate) leaf: Leaf,
    pub(crate) key: CardEntry,
    pub(crate) value: CardEntry,
}

/// A kind of correlation and its parameters.
pub trait Correlation: Sized + 'static {
    /// The ring of `u`.
    type Base: Ring;
    /// The ring of `x`, `v` and `w`.
    type Ring: ExtensionOf<Self::Base>;
    /// The value holder's `u` and `v` at one place.
    type Pair: Entry + Term;
    /// The key holder's source of OTs for the trees.
    type KeyOt: CotSender + Send;
    /// The value holder's.
    type ValueOt: CotReceiver + Send;

    /// Correlations that a tree consumes in addition to its OTs.
    const VALUES: usize;
    /// Correlations that an OT of a tree consumes.
    const LEVELS: usize;
    /// Correlations that the check consumes.
    const MASK: usize;
    /// Whether the lowest bit of the leaves is reserved for `u`.
    const CARRIES: bool;
    /// The value at the spare leaf of a tree without a point.
    const EMPTY: Self::Base;

    /// What a card makes for it, if one does.
    #[cfg(feature = "gpu")]
    const ON_CARD: Option<CardKind>;

    /// The words of a pair, as a card has them.
    #[cfg(feature = "gpu")]
    fn push_words(pair: Self::Pair, words: &mut Vec<u64>);

    /// The pairs of these words: the same memory, or else `copy`.
    #[cfg(feature = "gpu")]
    fn pairs_of<'a>(words: &'a [u64], copy: &'a mut Pairs<Self>) -> &'a [Self::Pair];

    /// The elements of these words, likewise.
    #[cfg(feature = "gpu")]
    fn elements_of<'a>(words: &'a [u64], copy: &'a mut Buffer<Self::Ring>) -> &'a [Self::Ring] {
        let words = words.chunks_exact(Self::Ring::WORDS);
        *copy = Buffer::zeroed(words.len());
        copy.iter_mut().zip(words).for_each(|(to, words)| *to = Self::Ring::from_words(words));
        copy
    }

    /// The kind of tree of that setting here.
    fn growth(trees: Trees) -> Growth;

    /// `u` and `v` side by side.
    fn pair(u: Self::Base, v: Self::Ring) -> Self::Pair;

    /// Expansion: the sum of the code and the share of the noise vector.
    fn sum(code: <Self::Pair as Entry>::Sum, share: Self::Ring) -> Self::Pair;

    /// Expansion of some outputs: of `B` instances in turn those of the code from column `first`
    /// on, equally many, with their shares of the noise vector.
    #[inline(always)]
    fn encode<P: PairsMut<Self>, const B: usize>(
        code: &LocalCode,
        table: &[[Self::Pair; B]],
        first: usize,
        shares: &[Self::Ring],
        out: &mut P,
    ) {
        let count = shares.len() / B;
        code.encode(table, first, count, |i, sums| {
            for (b, sum) in sums.into_iter().enumerate() {
                let place = b * count + i;
                out.put(place, Self::sum(sum, shares[place]));
            }
        });
    }

    /// Likewise for the key holder.
    #[inline(always)]
    fn encode_key<const B: usize>(
        code: &LocalCode,
        table: &[[Self::Ring; B]],
        first: usize,
        shares: &[Self::Ring],
        out: &mut [Self::Ring],
    ) {
        let count = out.len() / B;
        code.encode(table, first, count, |i, sums| {
            for (b, sum) in sums.into_iter().enumerate() {
                let place = b * count + i;
                out[place] = Self::Ring::lazy_finish(Self::Ring::lazy_add(sum, shares[place]));
            }
        });
    }

    /// The shares of a noise vector as pairs, where they contain its values themselves; otherwise
    /// the shares again.
    ///
    /// # Errors
    /// The shares, where they are not pairs.
    fn pairs(shares: Buffer<Self::Ring>) -> std::result::Result<Pairs<Self>, Buffer<Self::Ring>>;

    /// Adds a noise value to `u`, unless the share already contains it.
    fn add_noise(pair: &mut Self::Pair, value: Self::Base);

    /// A value of the noise.
    fn noise(rng: &mut volery_primitives::prg::Prg) -> Self::Base;

    /// A value of the noise of a plan with these [`value_bits`](crate::PlanOptions::value_bits).
    ///
    /// # Panics
    /// If there are any for correlated OT.
    fn noise_of(value_bits: Option<u32>, rng: &mut volery_primitives::prg::Prg) -> Self::Base {
        assert_eq!(value_bits, None, "values in the whole ring");
        Self::noise(rng)
    }

    /// Key holder: its shares of `y*x` for the value `y` of each tree, from the spare correlations.
    fn key_shares(
        x: Self::Ring,
        spare: &[Self::Ring],
        trees: usize,
        channel: &mut Channel,
    ) -> Result<Zeroizing<Vec<Self::Ring>>>;

    /// Value holder: its shares, for the given values.
    fn value_shares(
        values: &[Self::Base],
        spare: &[Self::Pair],
        channel: &mut Channel,
    ) -> Result<Zeroizing<Vec<Self::Ring>>>;

    /// Key holder: puts spare correlations into the source of the trees' OTs.
    fn feed_key(ot: &mut convert::Sender<Self::KeyOt>, spare: &[Self::Ring]) -> Result<()>;

    /// Value holder: likewise.
    fn feed_value(ot: &mut convert::Receiver<Self::ValueOt>, spare: &[Self::Pair]);

    /// Key holder: the `w` of the correlations with `u` in the large ring that mask the check, from
    /// the last spare correlations.
    fn key_mask(spare: &[Self::Ring]) -> Zeroizing<Vec<Self::Ring>>;

    /// Value holder: their `u` and `v`.
    fn value_mask(spare: &[Self::Pair]) -> Zeroizing<Vec<(Self::Ring, Self::Ring)>>;
}

/// Vector-OLE over `R`.
pub struct Vole<R>(std::marker::PhantomData<R>);

/// Vector-OLE with `u` in a field `B` and the rest in an extension `R` of it.
pub struct Subfield<R, B>(std::marker::PhantomData<(R, B)>);

/// Correlated OT.
pub struct Cot;

/// A kind of vector-OLE: the OTs for its trees are from a separate extension.
pub trait VoleKind:
    Correlation<KeyOt = Box<dyn CotSender + Send>, ValueOt = Box<dyn CotReceiver + Send>>
{
    /// `u` and `v` of a pair.
    fn parts(pair: Self::Pair) -> (Self::Base, Self::Ring);
}

impl<R: Ring> VoleKind for Vole<R> {
    #[inline(always)]
    fn parts(pair: Pair<R>) -> (R, R) {
        (pair.u, pair.v)
    }
}

impl<B: Ring, R: ExtensionOf<B>> VoleKind for Subfield<R, B> {
    #[inline(always)]
    fn parts(pair: SubPair<B, R>) -> (B, R) {
        (pair.u, pair.v)
    }
}

/// Inputs of trees and masks of checks in a vector-OLE, whose spare correlations they consume.
macro_rules! vole_shares {
    ($B:ty, $R:ty) => {
        fn key_shares(
            x: $R,
            spare: &[$R],
            trees: usize,
            channel: &mut Channel,
        ) -> Result<Zeroizing<Vec<$R>>> {
            let mut shares = Zeroizing::new(spare[..trees].to_vec());
            derandomize::receive_input::<$B, $R>(x, &mut shares, channel)?;
            Ok(shares)
        }

        fn value_shares(
            values: &[$B],
            spare: &[Self::Pair],
            channel: &mut Channel,
        ) -> Result<Zeroizing<Vec<$R>>> {
            let spare = &spare[..values.len()];
            let u: Zeroizing<Vec<_>> = Zeroizing::new(spare.iter().map(|pair| pair.u).collect());
            derandomize::send_input(values, &u, channel)?;
            Ok(Zeroizing::new(spare.iter().map(|pair| -pair.v).collect()))
        }

        fn feed_key(_ot: &mut convert::Sender<Self::KeyOt>, _spare: &[$R]) -> Result<()> {
            Ok(())
        }

        fn feed_value(_ot: &mut convert::Receiver<Self::ValueOt>, _spare: &[Self::Pair]) {}

        fn key_mask(spare: &[$R]) -> Zeroizing<Vec<$R>> {
            let masks =
                spare[spare.len() - Self::MASK..].chunks_exact(<$R as ExtensionOf<$B>>::DEGREE);
            Zeroizing::new(masks.map(<$R as ExtensionOf<$B>>::combine).collect())
        }

        fn value_mask(spare: &[Self::Pair]) -> Zeroizing<Vec<($R, $R)>> {
            let combine = |parts: &[Self::Pair]| {
                let all = |part: fn(&Self::Pair) -> $R| {
                    let parts = Zeroizing::new(parts.iter().map(part).collect::<Vec<_>>());
                    <$R as ExtensionOf<$B>>::combine(&parts)
                };
                (all(|pair| <$R>::embed(pair.u)), all(|pair| pair.v))
            };
            let masks =
                spare[spare.len() - Self::MASK..].chunks_exact(<$R as ExtensionOf<$B>>::DEGREE);
            Zeroizing::new(masks.map(combine).collect())
        }
    };
}

impl<R: Ring> Correlation for Vole<R> {
    type Base = R;
    type Ring = R;
    type Pair = Pair<R>;
    type KeyOt = Box<dyn CotSender + Send>;
    type ValueOt = Box<dyn CotReceiver + Send>;

    const VALUES: usize = 1;
    const LEVELS: usize = 0;
    const MASK: usize = check::repetitions::<R>();
    const CARRIES: bool = false;
    const EMPTY: R = R::ZERO;

    #[cfg(feature = "gpu")]
    const ON_CARD: Option<CardKind> = match R::BITS {
        61 => {
            Some(CardKind { leaf: Leaf::Words, key: CardEntry::Key61, value: CardEntry::Pairs61 })
        }
        128 => Some(CardKind {
            leaf: Leaf::Hashed,
            key: CardEntry::Key128,
            value: CardEntry::Pairs128,
        }),
        _ => None,
    };

    #[cfg(feature = "gpu")]
    fn push_words(pair: Pair<R>, words: &mut Vec<u64>) {
        words.extend_from_slice(bytemuck::cast_slice(&[pair.u, pair.v]));
    }

    #[cfg(feature = "gpu")]
    fn pairs_of<'a>(words: &'a [u64], copy: &'a mut Pairs<Self>) -> &'a [Pair<R>] {
        let words = words.chunks_exact(2 * R::WORDS);
        *copy = Buffer::zeroed(words.len());
        for (to, words) in copy.iter_mut().zip(words) {
            let (u, v) = words.split_at(R::WORDS);
            *to = Pair::new(R::from_words(u), R::from_words(v));
        }
        copy
    }

    fn growth(trees: Trees) -> Growth {
        match trees {
            Trees::Ggm => Growth::Ggm,
            Trees::Half => Growth::PseudoCorrelated,
        }
    }

    fn pair(u: R, v: R) -> Pair<R> {
        Pair::new(u, v)
    }

    #[inline(always)]
    fn sum(code: R::LazyPair, share: R) -> Pair<R> {
        let [u, v] = R::pair_finish(R::pair_add(code, [R::ZERO, share]));
        Pair::new(u, v)
    }

    #[inline(always)]
    fn encode<P: PairsMut<Self>, const B: usize>(
        code: &LocalCode,
        table: &[[Pair<R>; B]],
        first: usize,
        shares: &[R],
        out: &mut P,
    ) {
        let count = shares.len() / B;
        if !R::GENERATED_BY_ONE {
            return code.encode_over(table, first, count, |b, i, [u, v]: [&mut [R]; 2]| {
                let place = b * count + i;
                out.soon(place + AHEAD);
                R::add_slice(v, &shares[place..place + v.len()]);
                out.put_slices(place, u, v);
            });
        }
        let Aligned([u, v]) = &mut Aligned([[R::ZERO; GROUP]; 2]);
        code.encode_slices(table, first, count, |b, i, sums| {
            let place = b * count + i;
            out.soon(place + AHEAD);
            let (u, v) = (&mut u[..sums.len()], &mut v[..sums.len()]);
            R::pair_finish_slice(sums, &shares[place..place + sums.len()], u, v);
            out.put_slices(place, u, v);
        });
    }

    #[inline(always)]
    fn encode_key<const B: usize>(
        code: &LocalCode,
        table: &[[R; B]],
        first: usize,
        shares: &[R],
        out: &mut [R],
    ) {
        let count = out.len() / B;
        if !R::GENERATED_BY_ONE {
            return code.encode_over(table, first, count, |b, i, [w]: [&mut [R]; 1]| {
                let place = b * count + i;
                soon(out, place + AHEAD);
                R::add_slice(w, &shares[place..place + w.len()]);
                out[place..place + w.len()].copy_from_slice(w);
            });
        }
        code.encode_slices(table, first, count, |b, i, sums| {
            let place = b * count + i;
            soon(out, place + AHEAD);
            let to = place + sums.len();
            R::finish_slice(sums, &shares[place..to], &mut out[place..to]);
        });
    }

    fn pairs(shares: Buffer<R>) -> std::result::Result<Pairs<Self>, Buffer<R>> {
        // no mutant: the other kind of memory, no error
        Err(shares)
    }

    fn add_noise(pair: &mut Pair<R>, value: R) {
        *pair = Pair::new(pair.u + value, pair.v);
    }

    fn noise(rng: &mut volery_primitives::prg::Prg) -> R {
        R::random_noise(rng)
    }

    /// Zero, too: the argument at the option needs uniform values.
    fn noise_of(value_bits: Option<u32>, rng: &mut volery_primitives::prg::Prg) -> R {
        match value_bits {
            None => Self::noise(rng),
            Some(bits) => R::from_block(rng.block() & Block::new(u128::MAX >> (128 - bits))),
        }
    }

    vole_shares!(R, R);
}

impl<B: Ring, R: ExtensionOf<B>> Correlation for Subfield<R, B> {
    type Base = B;
    type Ring = R;
    type Pair = SubPair<B, R>;
    type KeyOt = Box<dyn CotSender + Send>;
    type ValueOt = Box<dyn CotReceiver + Send>;

    const VALUES: usize = 1;
    const LEVELS: usize = 0;
    const MASK: usize = check::repetitions::<R>() * R::DEGREE;
    const CARRIES: bool = false;
    const EMPTY: B = {
        assert!(B::GENERATED_BY_ONE, "a code of ones hides nothing beyond the ring that one spans");
        B::ZERO
    };

    #[cfg(feature = "gpu")]
    const ON_CARD: Option<CardKind> = None;

    #[cfg(feature = "gpu")]
    fn push_words(_pair: SubPair<B, R>, _words: &mut Vec<u64>) {
        unreachable!("no card makes these")
    }

    #[cfg(feature = "gpu")]
    fn pairs_of<'a>(_words: &'a [u64], _copy: &'a mut Pairs<Self>) -> &'a [SubPair<B, R>] {
        unreachable!("no card makes these")
    }

    fn growth(trees: Trees) -> Growth {
        Vole::<R>::growth(trees)
    }

    fn pair(u: B, v: R) -> SubPair<B, R> {
        SubPair::new(u, v)
    }

    #[inline(always)]
    fn sum(code: SubSums<B::Lazy, R::Lazy>, share: R) -> SubPair<B, R> {
        SubPair::new(B::lazy_finish(code.u), R::lazy_finish(R::lazy_add(code.v, share)))
    }

    fn pairs(shares: Buffer<R>) -> std::result::Result<Pairs<Self>, Buffer<R>> {
        // no mutant: the other kind of memory, no error
        Err(shares)
    }

    fn add_noise(pair: &mut SubPair<B, R>, value: B) {
        *pair = SubPair::new(pair.u + value, pair.v);
    }

    fn noise(rng: &mut volery_primitives::prg::Prg) -> B {
        B::random_noise(rng)
    }

    vole_shares!(B, R);
}

impl Correlation for Cot {
    type Base = F2;
    type Ring = Gf128;
    type Pair = Gf128;
    type KeyOt = cot_buffer::Sender;
    type ValueOt = cot_buffer::Receiver;

    const VALUES: usize = 0;
    const LEVELS: usize = 1;
    const MASK: usize = 128;
    const CARRIES: bool = true;
    const EMPTY: F2 = F2::ONE;

    #[cfg(feature = "gpu")]
    const ON_CARD: Option<CardKind> =
        Some(CardKind { leaf: Leaf::Correlated, key: CardEntry::Cot, value: CardEntry::Cot });

    #[cfg(feature = "gpu")]
    fn push_words(pair: Gf128, words: &mut Vec<u64>) {
        words.extend_from_slice(bytemuck::cast_slice(&[pair]));
    }

    #[cfg(feature = "gpu")]
    fn pairs_of<'a>(words: &'a [u64], _copy: &'a mut Pairs<Self>) -> &'a [Gf128] {
        bytemuck::cast_slice(words)
    }

    #[cfg(feature = "gpu")]
    fn elements_of<'a>(words: &'a [u64], _copy: &'a mut Buffer<Gf128>) -> &'a [Gf128] {
        bytemuck::cast_slice(words)
    }

    fn growth(trees: Trees) -> Growth {
        match trees {
            Trees::Ggm => Growth::Ggm,
            Trees::Half => Growth::Correlated,
        }
    }

    fn pair(u: F2, v: Gf128) -> Gf128 {
        let carried = Block::new(u128::from(u.value()));
        Gf128::new((v.value() & !Block::ONE) | carried)
    }

    #[inline(always)]
    fn sum(code: BlockSum, share: Gf128) -> Gf128 {
        Gf128::new(code.plus(share.value()).block())
    }

    fn pairs(shares: Buffer<Gf128>) -> std::result::Result<Pairs<Self>, Buffer<Gf128>> {
        Ok(shares)
    }

    /// The leaf at a noise place carries it.
    fn add_noise(_pair: &mut Gf128, _value: F2) {}

    fn noise(_rng: &mut volery_primitives::prg::Prg) -> F2 {
        F2::ONE
    }

    fn key_shares(
        x: Gf128,
        _spare: &[Gf128],
        trees: usize,
        _channel: &mut Channel,
    ) -> Result<Zeroizing<Vec<Gf128>>> {
        Ok(Zeroizing::new(vec![x; trees]))
    }

    fn value_shares(
        values: &[F2],
        _spare: &[Gf128],
        _channel: &mut Channel,
    ) -> Result<Zeroizing<Vec<Gf128>>> {
        Ok(Zeroizing::new(vec![Gf128::ZERO; values.len()]))
    }

    fn feed_key(ot: &mut convert::Sender<cot_buffer::Sender>, spare: &[Gf128]) -> Result<()> {
        ot.source()?.feed(bytemuck::cast_slice(spare));
        Ok(())
    }

    fn feed_value(ot: &mut convert::Receiver<cot_buffer::Receiver>, spare: &[Gf128]) {
        ot.source().feed(bytemuck::cast_slice(spare));
    }

    /// Packing: `sum X^i q_i`.
    fn key_mask(spare: &[Gf128]) -> Zeroizing<Vec<Gf128>> {
        Zeroizing::new(vec![packed_last(spare)])
    }

    /// Packing: `sum X^i r_i` and `sum X^i t_i`.
    fn value_mask(spare: &[Gf128]) -> Zeroizing<Vec<(Gf128, Gf128)>> {
        let spare = &spare[spare.len() - 128..];
        let mut u = Zeroizing::new([0; 16]);
        bits::lowest_bits(bytemuck::cast_slice(spare), &mut u[..]);
        let u = Gf128::new(Block::from_bytes(*u));
        Zeroizing::new(vec![(u, packed_last(spare))])
    }
}

/// The last 128 blocks, packed.
fn packed_last(spare: &[Gf128]) -> Gf128 {
    let blocks: &[Block] = bytemuck::cast_slice(spare);
    let blocks = blocks.last_chunk::<128>();
    let blocks = blocks.expect("128 blocks for the check");
    Gf128::new(packed(blocks))
}

/// Up to 128 correlations with `u` in F_2 as one with `u` in F_2^128: `sum X^i blocks[i]`.
pub(crate) fn packed(blocks: &[Block]) -> Block {
    let horner = |sum: Gf128, block: &Block| sum * Gf128::power_of_two(1) + Gf128::new(*block);
    blocks.iter().rev().fold(Gf128::ZERO, horner).value()
}

/// Memory for outputs.
pub trait OutputMut: Sized + Send {
    /// Memory for no outputs.
    fn none() -> Self;
    /// The number of outputs that fit.
    fn count(&self) -> usize;
    /// The memory of the first `at` outputs, and that of the others.
    ///
    /// # Panics
    /// If fewer fit.
    fn split_at(self, at: usize) -> (Self, Self);
}

impl<T: Send> OutputMut for &mut [T] {
    fn none() -> Self {
        &mut []
    }

    fn count(&self) -> usize {
        <[T]>::len(self)
    }

    fn split_at(self, at: usize) -> (Self, Self) {
        self.split_at_mut(at)
    }
}

/// Memory for the value holder's outputs.
pub trait PairsMut<K: Correlation>: OutputMut {
    /// Puts a pair at `place`.
    fn put(&mut self, place: usize, pair: K::Pair);
    /// Pairs from `place` on.
    #[inline(always)]
    fn put_slices(&mut self, place: usize, u: &[K::Base], v: &[K::Ring]) {
        for (i, (u, v)) in u.iter().zip(v).enumerate() {
            self.put(place + i, K::pair(*u, *v));
        }
    }
    /// Announces that a group of places from `place` on will be written soon.
    #[inline(always)]
    fn soon(&mut self, _place: usize) {}
    /// Adds a noise value to `u` at `place`, unless the share already contains it.
    fn add_noise(&mut self, place: usize, value: K::Base);
}

/// From a group of outputs to the group to prefetch: with reads at random places the processor does
/// not detect that outputs are written in order.
/// are written in order.
const AHEAD: usize = 2 * GROUP;

#[inline(always)]
fn soon<T>(out: &mut [T], place: usize) {
    let len = out.len();
    prefetch_to_write(&mut out[place.min(len)..(place + GROUP).min(len)]);
}

impl<K: Correlation> PairsMut<K> for &mut [K::Pair] {
    #[inline(always)]
    fn put(&mut self, place: usize, pair: K::Pair) {
        self[place] = pair;
    }

    fn add_noise(&mut self, place: usize, value: K::Base) {
        K::add_noise(&mut self[place], value);
    }
}

/// `u` and `v` apart.
pub struct VoleSlices<'a, K: Correlation> {
    pub(crate) u: &'a mut [K::Base],
    pub(crate) v: &'a mut [K::Ring],
}

impl<K: Correlation> OutputMut for VoleSlices<'_, K> {
    fn none() -> Self {
        Self { u: &mut [], v: &mut [] }
    }

    fn count(&self) -> usize {
        self.u.len()
    }

    fn split_at(self, at: usize) -> (Self, Self) {
        let (u_0, u_1) = self.u.split_at_mut(at);
        let (v_0, v_1) = self.v.split_at_mut(at);
        (VoleSlices { u: u_0, v: v_0 }, VoleSlices { u: u_1, v: v_1 })
    }
}

impl<K: VoleKind> PairsMut<K> for VoleSlices<'_, K> {
    #[inline(always)]
    fn put(&mut self, place: usize, pair: K::Pair) {
        (self.u[place], self.v[place]) = K::parts(pair);
    }

    #[inline(always)]
    fn put_slices(&mut self, place: usize, u: &[K::Base], v: &[K::Ring]) {
        self.u[place..place + u.len()].copy_from_slice(u);
        self.v[place..place + v.len()].copy_from_slice(v);
    }

    #[inline(always)]
    fn soon(&mut self, place: usize) {
        soon(self.u, place);
        soon(self.v, place);
    }

    fn add_noise(&mut self, place: usize, value: K::Base) {
        self.u[place] += value;
    }
}

/// Memory for the value holder's correlations.
pub type Pairs<K> = Buffer<<K as Correlation>::Pair>;
