//! The interface that protocols use for a ring.

use core::fmt::{self, Debug, Display};
use core::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use bytemuck::{NoUninit, Pod, Zeroable};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use volery_primitives::{Block, gather::Lanes, prg::Prg};
use zeroize::{DefaultIsZeroes, Zeroize};

/// Bytes that do not encode ring elements: a value out of range, or a bit set in the padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotCanonical {
    /// [`Ring::NAME`] of the ring whose elements were expected.
    pub ring: &'static str,
}

impl Display for NotCanonical {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "a received value is not the canonical form of an element of {}",
            self.ring
        )
    }
}

impl core::error::Error for NotCanonical {}

/// A finite commutative ring with one, its elements always in canonical form.
///
/// [`ZERO`](Self::ZERO) is all zero bytes, so zeroed memory is a slice of zeros.
///
/// Unless an operation says otherwise, its time and memory accesses depend on lengths only, never
/// on values.
///
/// # Panics
/// The functions on several slices panic if the lengths differ.
pub trait Ring:
    Copy
    + Default
    + Eq
    + Debug
    + Display
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + ConstantTimeEq
    + ConditionallySelectable
    + DefaultIsZeroes
    + NoUninit
    + Zeroable
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The name of the ring on the command line and in handshakes, such as `"fp61"`: of this ring
    /// alone.
    const NAME: &'static str;
    /// Bits of a canonical value.
    const BITS: u32;
    /// Bytes of one element on the wire; 1 for `f2`, whose slices are packed eight to a byte: the
    /// length of a slice on the wire is [`encoded_len`](Self::encoded_len).
    const BYTES: usize;
    /// Number of 64-bit words that [`from_words`](Self::from_words) takes for one element, at most
    /// 8: as many as make it nearly uniform.
    const WORDS: usize;

    /// Whether every element is a sum of ones. This is false for `gf128`: code that only adds and
    /// subtracts, such as a code of zeros and ones, stays in the cosets of smaller rings in it.
    const GENERATED_BY_ONE: bool;

    /// A running sum that is not reduced at each step; the default value is the empty sum. See
    /// [`lazy_add`](Self::lazy_add).
    type Lazy: Pod + Default + Send + Sync;

    /// Maximum number of elements added to a [`Lazy`](Self::Lazy) sum that is empty or has just
    /// been [folded](Self::lazy_fold): 7 for `fp61`, no limit for the others.
    const LAZY_MAX: usize = usize::MAX;

    /// [`Lazy`](Self::Lazy) sums of ten in words, for the kernels that add them; the reduction is
    /// [`lazy_fold`](Self::lazy_fold). `None`: no kernel does.
    const LANES: Option<Lanes> = None;

    /// `sum + x`, without a reduction.
    ///
    /// A sum of more than [`LAZY_MAX`](Self::LAZY_MAX) elements needs a
    /// [`lazy_fold`](Self::lazy_fold) after each `LAZY_MAX` of them. Without it, the result is
    /// wrong (with overflow checks, as in tests, the addition panics). A sum of ten, exact in every
    /// ring:
    ///
    /// ```
    /// use volery_field::{Fp61, Ring};
    ///
    /// fn sum_of_ten<R: Ring>(x: &[R; 10]) -> R {
    ///     let mut sum = R::Lazy::default();
    ///     for &x in &x[..5] {
    ///         sum = R::lazy_add(sum, x);
    ///     }
    ///     sum = R::lazy_fold(sum);
    ///     for &x in &x[5..] {
    ///         sum = R::lazy_add(sum, x);
    ///     }
    ///     R::lazy_finish(sum)
    /// }
    /// let largest = Fp61::ZERO - Fp61::ONE;
    /// assert_eq!(sum_of_ten(&[largest; 10]), Fp61::ZERO - Fp61::reduce(10));
    /// ```
    fn lazy_add(sum: Self::Lazy, x: Self) -> Self::Lazy;

    /// The same sum, with capacity for [`LAZY_MAX`](Self::LAZY_MAX) more elements.
    #[inline(always)]
    fn lazy_fold(sum: Self::Lazy) -> Self::Lazy {
        sum
    }

    /// The canonical value of the sum.
    fn lazy_finish(sum: Self::Lazy) -> Self;

    /// Two running sums side by side, each as a [`Lazy`](Self::Lazy) one.
    type LazyPair: Pod + Default + Send + Sync;

    /// Adds the two elements to the two sums; as [`lazy_add`](Self::lazy_add).
    fn pair_add(sums: Self::LazyPair, x: [Self; 2]) -> Self::LazyPair;

    /// The same sums, with the capacity that [`lazy_fold`](Self::lazy_fold) gives each.
    #[inline(always)]
    fn pair_fold(sums: Self::LazyPair) -> Self::LazyPair {
        sums
    }

    /// The canonical values of the sums.
    fn pair_finish(sums: Self::LazyPair) -> [Self; 2];

    /// `out[i]` is the canonical value of `sums[i] + x[i]`; each sum must have capacity for one
    /// more element.
    fn finish_slice(sums: &[Self::Lazy], x: &[Self], out: &mut [Self]) {
        assert_same_length(sums.len(), x.len());
        assert_same_length(sums.len(), out.len());
        for ((out, &sum), &x) in out.iter_mut().zip(sums).zip(x) {
            *out = Self::lazy_finish(Self::lazy_add(sum, x));
        }
    }

    /// The canonical values of pairs of sums: the first ones in `u`; the second ones, plus `y[i]`,
    /// in `v`. Each second sum must have capacity for one more element.
    fn pair_finish_slice(sums: &[Self::LazyPair], y: &[Self], u: &mut [Self], v: &mut [Self]) {
        for len in [y.len(), u.len(), v.len()] {
            assert_same_length(sums.len(), len);
        }
        for (((u, v), &sums), &y) in u.iter_mut().zip(v).zip(sums).zip(y) {
            [*u, *v] = Self::pair_finish(Self::pair_add(sums, [Self::ZERO, y]));
        }
    }

    /// The image of a block: the element whose memory begins the block if there is one, and some
    /// element for all other blocks. For uniform elements take [`from_words`](Self::from_words): of
    /// a uniform block this image is uniform, or nearly so, in the following rings only.
    ///
    /// `gf128` takes the block itself, `z64` its low 64 bits, `f2` its lowest bit. `fp61` takes the
    /// low 64 bits modulo `2^61 - 1`, at statistical distance less than `2^-61` from uniform.
    fn from_block(block: Block) -> Self;

    /// The images [`from_block`](Self::from_block) of `blocks`, in `out`.
    fn from_blocks(blocks: &[Block], out: &mut [Self]) {
        assert_same_length(blocks.len(), out.len());
        for (out, &block) in out.iter_mut().zip(blocks) {
            *out = Self::from_block(block);
        }
    }

    /// The elements as the blocks of [`from_block`](Self::from_block), if elements are represented
    /// as blocks and their sum is that of the blocks; only `gf128`.
    fn as_blocks_mut(_elements: &mut [Self]) -> Option<&mut [Block]> {
        None
    }

    /// The memory of elements as words, if it is [`WORDS`](Self::WORDS) words for each. What is
    /// written there must be canonical: otherwise results are wrong, but memory stays safe.
    fn as_words_mut(_elements: &mut [Self]) -> Option<&mut [u64]> {
        None
    }

    /// The image of [`WORDS`](Self::WORDS) words, low word first: uniform, or nearly so, when the
    /// words are, at statistical distance less than `2^-60`.
    ///
    /// # Panics
    /// If `words.len()` is not `WORDS`.
    fn from_words(words: &[u64]) -> Self;

    /// The images [`from_words`](Self::from_words) of each [`WORDS`](Self::WORDS) of `words`, in
    /// `out`.
    ///
    /// # Panics
    /// If `words.len()` is not `WORDS * out.len()`.
    fn from_words_slice(words: &[u64], out: &mut [Self]) {
        assert_same_length(words.len(), Self::WORDS * out.len());
        for (out, words) in out.iter_mut().zip(words.chunks_exact(Self::WORDS)) {
            *out = Self::from_words(words);
        }
    }

    /// Computes the images of [`from_words_slice`](Self::from_words_slice); returns their sums at
    /// even and at odd indices.
    fn from_words_sides(words: &[u64], out: &mut [Self]) -> [Self; 2] {
        Self::from_words_slice(words, out);
        Self::sum_sides(out)
    }

    /// A random element, with the distribution of [`from_words`](Self::from_words).
    fn random(prg: &mut Prg) -> Self {
        let mut words = [0; 8];
        let used = &mut words[..Self::WORDS];
        fill_words(prg, used);
        let out = Self::from_words(used);
        words.zeroize();
        out
    }

    /// Random elements, independent and distributed as [`random`](Self::random).
    ///
    /// The use of the stream of `prg` depends on `out.len()`: one call for `n` elements and two
    /// calls for `n` in total need not give the same elements.
    fn random_slice(prg: &mut Prg, out: &mut [Self]) {
        const BUFFER: usize = 512;
        let mut buffer = [0; BUFFER];
        for out in out.chunks_mut(BUFFER / Self::WORDS) {
            let words = &mut buffer[..Self::WORDS * out.len()];
            fill_words(prg, words);
            Self::from_words_slice(words, out);
        }
        buffer.zeroize();
    }

    /// A random noise value of a learning-parity-with-noise sample: a uniform non-zero element of a
    /// field, a uniform odd one of `z64`.
    ///
    /// Modulo 2 an even noise value vanishes: with uniform values in `Z_2^64` an adversary who
    /// reduces the samples modulo 2 would face only about half of the noise. Odd values keep all of
    /// it (Liu, Wang, Yang, Yu, *The Hardness of LPN over Any Integer Ring and Field for PCG
    /// Applications*, ePrint 2022/712).
    ///
    /// Draws again after a zero, so the time reveals discarded zeros but nothing about the returned
    /// value.
    fn random_noise(prg: &mut Prg) -> Self {
        loop {
            let x = Self::random(prg);
            if !bool::from(x.ct_eq(&Self::ZERO)) {
                return x;
            }
        }
    }

    /// Bit `i` of the canonical value: `x` is the sum of `bit(i) * power_of_two(i)` over all
    /// `i < BITS`.
    ///
    /// # Panics
    /// If `i >= BITS`.
    fn bit(self, i: u32) -> Choice;

    /// `2^i`; in `gf128`, `X^i`; in an extension, the powers of two times each power of `X`.
    ///
    /// # Panics
    /// If `i >= BITS`.
    fn power_of_two(i: u32) -> Self;

    /// Bytes of `n` elements on the wire: `n * BYTES`, for `f2` `n / 8` rounded up.
    fn encoded_len(n: usize) -> usize {
        n * Self::BYTES
    }

    /// Appends the canonical encoding of `xs` to `out`:
    /// [`encoded_len`](Self::encoded_len)`(xs.len())` bytes, each element little endian; `f2`
    /// bit-packed, low bit first, the padding zero.
    fn write(xs: &[Self], out: &mut Vec<u8>);

    /// Reads `out.len()` elements from their canonical encoding.
    ///
    /// # Errors
    /// If `bytes` is not an output of [`write`](Self::write). The contents of `out` are then
    /// unspecified.
    ///
    /// # Panics
    /// If `bytes.len()` is not [`encoded_len`](Self::encoded_len)`(out.len())`.
    fn read(bytes: &[u8], out: &mut [Self]) -> Result<(), NotCanonical>;

    /// `acc[i] += x[i]`.
    fn add_slice(acc: &mut [Self], x: &[Self]) {
        assert_same_length(acc.len(), x.len());
        for (acc, &x) in acc.iter_mut().zip(x) {
            *acc += x;
        }
    }

    /// `acc[i] -= x[i]`.
    fn sub_slice(acc: &mut [Self], x: &[Self]) {
        assert_same_length(acc.len(), x.len());
        for (acc, &x) in acc.iter_mut().zip(x) {
            *acc -= x;
        }
    }

    /// `self^exponent`. The time depends on the exponent, which must be public.
    #[must_use]
    fn pow(self, exponent: u128) -> Self {
        let bits = (0..u128::BITS - exponent.leading_zeros()).rev();
        bits.fold(Self::ONE, |power, i| match exponent >> i & 1 {
            0 => power * power,
            _ => power * power * self,
        })
    }

    /// The sum of all elements.
    fn sum(x: &[Self]) -> Self {
        x.iter().fold(Self::ZERO, |sum, &x| sum + x)
    }

    /// The sum of the elements at even indices, and that of those at odd indices.
    fn sum_sides(x: &[Self]) -> [Self; 2] {
        // The number of pairs that a lazy sum takes between two folds, in every ring.
        const PAIRS: usize = 6;
        let (pairs, last) = x.as_chunks::<2>();
        let mut sides = Self::LazyPair::default();
        for group in pairs.chunks(PAIRS) {
            for pair in group {
                sides = Self::pair_add(sides, *pair);
            }
            sides = Self::pair_fold(sides);
        }
        if let [left] = last {
            sides = Self::pair_add(sides, [*left, Self::ZERO]);
        }
        Self::pair_finish(sides)
    }

    /// `acc[i] += s * x[i]`.
    fn axpy(acc: &mut [Self], s: Self, x: &[Self]) {
        assert_same_length(acc.len(), x.len());
        for (acc, &x) in acc.iter_mut().zip(x) {
            *acc += s * x;
        }
    }

    /// `out[j] += ` the sum of `a[i][j] * b[i][j]` over all `i`.
    fn add_products<const N: usize>(a: [&[Self]; N], b: [&[Self]; N], out: &mut [Self]) {
        for (a, b) in a.into_iter().zip(b) {
            assert_same_length(a.len(), out.len());
            assert_same_length(b.len(), out.len());
            for (out, (&a, &b)) in out.iter_mut().zip(a.iter().zip(b)) {
                *out += a * b;
            }
        }
    }

    /// The sum of `a[i] * b[i]`.
    fn inner_product(a: &[Self], b: &[Self]) -> Self {
        assert_same_length(a.len(), b.len());
        a.iter().zip(b).fold(Self::ZERO, |sum, (&a, &b)| sum + a * b)
    }
}

/// A ring in which every element but zero has an inverse.
pub trait Field: Ring {
    /// The number of elements, less two.
    const ORDER_LESS_TWO: u128;

    /// The inverse; zero of zero. In constant time.
    #[must_use]
    fn inverse(self) -> Self {
        self.pow(Self::ORDER_LESS_TWO)
    }
}

/// A ring that contains the ring `B`: in a correlation `w = u*x + v`, `u` lies in `B` and `x`, `v`,
/// `w` in this ring. Its functions on several slices panic if the lengths differ.
pub trait ExtensionOf<B: Ring>: Ring {
    /// The elements of a basis: as many elements of `B` make one of this ring.
    const DEGREE: usize;

    /// Element `i` of the basis, `X^i`.
    ///
    /// # Panics
    /// If `i >= DEGREE`.
    fn basis(i: usize) -> Self;

    /// The sum of `basis(i) * parts[i]`. Of correlations `w = u*x + v` with `u` in `B` it is one
    /// with `u` in this ring, for each of its vectors.
    ///
    /// # Panics
    /// If `parts.len()` is not [`DEGREE`](Self::DEGREE).
    #[must_use]
    fn combine(parts: &[Self]) -> Self {
        assert_same_length(parts.len(), Self::DEGREE);
        let terms = (0..).zip(parts).map(|(i, part)| Self::basis(i) * *part);
        terms.fold(Self::ZERO, |sum, term| sum + term)
    }

    /// The element `b` of the base ring as an element of this one.
    fn embed(b: B) -> Self;

    /// `self * embed(b)`.
    #[must_use]
    fn mul_base(self, b: B) -> Self;

    /// `acc[i] += s * embed(x[i])`.
    fn axpy_base(acc: &mut [Self], s: Self, x: &[B]);
}

impl<R: Ring> ExtensionOf<R> for R {
    const DEGREE: usize = 1;

    fn basis(i: usize) -> Self {
        assert_eq!(i, 0, "a ring is an extension of degree 1 of itself");
        Self::ONE
    }

    #[inline(always)]
    fn embed(b: R) -> Self {
        b
    }

    #[inline(always)]
    fn mul_base(self, b: R) -> Self {
        self * b
    }

    fn axpy_base(acc: &mut [Self], s: Self, x: &[R]) {
        Self::axpy(acc, s, x);
    }
}

/// Random words, the same on every machine.
fn fill_words(prg: &mut Prg, words: &mut [u64]) {
    prg.fill_bytes(bytemuck::cast_slice_mut(words));
    for word in words {
        *word = u64::from_le(*word);
    }
}

/// Checks that two slices have equal lengths.
#[inline(always)]
#[track_caller]
pub(crate) fn assert_same_length(left: usize, right: usize) {
    assert_eq!(left, right, "slices of different lengths");
}
