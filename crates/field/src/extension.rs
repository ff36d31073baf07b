//! Extensions of a field by the root of a polynomial: `B[X] / (X^D - sum TOP[i] X^i)`.
#![allow(clippy::multiple_bound_locations, reason = "a derived `Pod` needs it on the type")]

use core::array;
use core::fmt;

use bytemuck::{Pod, Zeroable};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use volery_primitives::Block;

use crate::ring::{ExtensionOf, NotCanonical, Ring, assert_same_length};

/// The highest degree of an extension.
const LARGEST: usize = 8;

/// A field with an [`Extension`] of degree `D`, at most 8.
pub trait Extended<const D: usize>: Ring + Pod {
    /// The name of the extension, as [`Ring::NAME`].
    const EXTENSION: &'static str;
    /// `X^D` is the sum of `TOP[i] * X^i`. The polynomial `X^D - sum TOP[i] X^i` must have no
    /// factor over the field.
    const TOP: [Self; D];
}

/// An element of the extension of `B` of degree `D`: the coefficients of `1, X, .., X^(D-1)`.
///
/// It must fit into 16 bytes, and its memory must hold canonical values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Extension<B: Pod, const D: usize>(pub [B; D]);

/// The sums of all coefficients.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(transparent)]
pub struct Sums<L: Pod, const D: usize>([L; D]);

impl<L: Default + Pod, const D: usize> Default for Sums<L, D> {
    fn default() -> Self {
        Self([L::default(); D])
    }
}

impl<B: Ring + Pod, const D: usize> Default for Extension<B, D> {
    fn default() -> Self {
        Self([B::ZERO; D])
    }
}

/// The coefficients of the product.
fn product<B: Extended<D>, const D: usize>(x: [B; D], y: [B; D]) -> [B; D] {
    let mut sums = [B::ZERO; 2 * LARGEST];
    for (i, x) in x.iter().enumerate() {
        for (sum, y) in sums[i..].iter_mut().zip(y) {
            *sum += *x * y;
        }
    }
    for i in (D..2 * D - 1).rev() {
        for (j, top) in B::TOP.iter().enumerate() {
            // Public: a coefficient of the polynomial.
            if *top != B::ZERO {
                let term = sums[i] * *top;
                sums[i - D + j] += term;
            }
        }
    }
    array::from_fn(|i| sums[i])
}

crate::element!(@generic [B: Extended<D>, const D: usize] Extension<B, D>: |x, y|
    Self(array::from_fn(|i| x.0[i] + y.0[i])),
    Self(array::from_fn(|i| x.0[i] - y.0[i])),
    Self(product(x.0, y.0)),
    Self(x.0.map(|x| -x))
);

impl<B: Ring + Pod, const D: usize> ConstantTimeEq for Extension<B, D> {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0[..].ct_eq(&other.0[..])
    }
}

impl<B: Ring + Pod, const D: usize> ConditionallySelectable for Extension<B, D> {
    #[inline(always)]
    fn conditional_select(a: &Self, b: &Self, choice: Choice) -> Self {
        Self(array::from_fn(|i| B::conditional_select(&a.0[i], &b.0[i], choice)))
    }
}

/// Prints the coefficients, that of 1 first.
impl<B: Ring + Pod, const D: usize> fmt::Display for Extension<B, D> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(i, x)| {
            let between = if i == 0 { "" } else { " " };
            write!(formatter, "{between}{x}")
        })
    }
}

impl<B: Extended<D>, const D: usize> Ring for Extension<B, D> {
    const ZERO: Self = Self([B::ZERO; D]);
    const ONE: Self = {
        assert!(D >= 2 && D <= LARGEST && size_of::<Self>() <= 16, "degree 2 to 8, 16 bytes");
        let mut one = [B::ZERO; D];
        one[0] = B::ONE;
        Self(one)
    };
    const NAME: &'static str = B::EXTENSION;
    const BITS: u32 = D as u32 * B::BITS;
    const BYTES: usize = D * B::BYTES;
    const WORDS: usize = D * B::WORDS;
    const GENERATED_BY_ONE: bool = false;

    type Lazy = Sums<B::Lazy, D>;
    const LAZY_MAX: usize = B::LAZY_MAX;

    #[inline(always)]
    fn lazy_add(sum: Self::Lazy, x: Self) -> Self::Lazy {
        Sums(array::from_fn(|i| B::lazy_add(sum.0[i], x.0[i])))
    }

    #[inline(always)]
    fn lazy_fold(sum: Self::Lazy) -> Self::Lazy {
        Sums(sum.0.map(B::lazy_fold))
    }

    #[inline(always)]
    fn lazy_finish(sum: Self::Lazy) -> Self {
        Self(sum.0.map(B::lazy_finish))
    }

    type LazyPair = [Self::Lazy; 2];

    #[inline(always)]
    fn pair_add([a, b]: Self::LazyPair, [x, y]: [Self; 2]) -> Self::LazyPair {
        [Self::lazy_add(a, x), Self::lazy_add(b, y)]
    }

    #[inline(always)]
    fn pair_fold(sums: Self::LazyPair) -> Self::LazyPair {
        sums.map(Self::lazy_fold)
    }

    #[inline(always)]
    fn pair_finish(sums: Self::LazyPair) -> [Self; 2] {
        sums.map(Self::lazy_finish)
    }

    #[inline(always)]
    fn from_block(block: Block) -> Self {
        let (all, bits) = (u128::from(block), 8 * size_of::<B>());
        let mask = u128::MAX >> (128 - bits);
        Self(array::from_fn(|i| B::from_block(Block::from(all >> (i * bits) & mask))))
    }

    #[inline(always)]
    fn from_words(words: &[u64]) -> Self {
        assert_same_length(words.len(), Self::WORDS);
        Self(array::from_fn(|i| B::from_words(&words[i * B::WORDS..(i + 1) * B::WORDS])))
    }

    #[inline(always)]
    fn bit(self, i: u32) -> Choice {
        self.0[(i / B::BITS) as usize].bit(i % B::BITS)
    }

    #[inline(always)]
    fn power_of_two(i: u32) -> Self {
        let mut power = Self::ZERO;
        power.0[(i / B::BITS) as usize] = B::power_of_two(i % B::BITS);
        power
    }

    fn write(xs: &[Self], out: &mut Vec<u8>) {
        xs.iter().for_each(|x| B::write(&x.0, out));
    }

    fn read(bytes: &[u8], out: &mut [Self]) -> Result<(), NotCanonical> {
        assert_same_length(bytes.len(), Self::encoded_len(out.len()));
        let mut elements = bytes.chunks_exact(Self::BYTES).zip(out);
        let read = elements.try_for_each(|(bytes, out)| B::read(bytes, &mut out.0));
        read.map_err(|_| NotCanonical { ring: Self::NAME })
    }
}

impl<B: Extended<D>, const D: usize> ExtensionOf<B> for Extension<B, D> {
    const DEGREE: usize = D;

    fn basis(i: usize) -> Self {
        let mut power = Self::ZERO;
        power.0[i] = B::ONE;
        power
    }

    #[inline(always)]
    fn embed(b: B) -> Self {
        let mut element = Self::ZERO;
        element.0[0] = b;
        element
    }

    #[inline(always)]
    fn mul_base(self, b: B) -> Self {
        Self(self.0.map(|x| x * b))
    }

    fn axpy_base(acc: &mut [Self], s: Self, x: &[B]) {
        assert_same_length(acc.len(), x.len());
        for (acc, &x) in acc.iter_mut().zip(x) {
            *acc += s.mul_base(x);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Field, Fp31, Fp31x4, Fp64, Fp64x2, Gf128, Ring, axioms};

    #[test]
    fn the_laws_of_a_ring_hold() {
        axioms::ring::<Fp31>();
        axioms::ring::<Fp64>();
        axioms::extension_ring::<Fp31x4, Fp31>();
        axioms::extension_ring::<Fp64x2, Fp64>();
    }

    /// `X` generates no smaller field: `X^(q^i) != X` for `0 < i < D`, and equals it for `D`. A
    /// polynomial with a factor would have zero divisors, so that not all have inverses.
    #[test]
    fn the_polynomials_have_no_factor() {
        fn check<R: Field>(x: R, order: u128, degree: u32) {
            let mut power = x;
            for i in 1..=degree {
                power = power.pow(order);
                assert_eq!(power == x, i == degree, "{} at {i}", R::NAME);
            }
        }
        let x = |i: usize| if i == 1 { Fp31::ONE } else { Fp31::ZERO };
        check(crate::Extension(std::array::from_fn(x)), Fp31::MODULUS.into(), 4);
        check(crate::Extension([Fp64::ZERO, Fp64::ONE]), Fp64::MODULUS.into(), 2);
        axioms::field::<Fp31x4>();
        axioms::field::<Fp64x2>();
        axioms::field::<Gf128>();
    }

    #[test]
    fn edges_agree_with_remainders() {
        let (p, q) = (u64::from(Fp31::MODULUS), u128::from(Fp64::MODULUS));
        for a in [0, 1, 2, p - 1, p, p + 1, 2 * p, u64::from(u32::MAX), 1 << 62, u64::MAX] {
            assert_eq!(u64::from(Fp31::reduce(a).value()), a % p, "{a}");
        }
        let edges = [0, 1, (1 << 32) - 1, 1 << 32, q - 1, q, (1 << 64) - 1, 1 << 64, 1 << 96];
        let more = [q * q - 1, q * q, (1 << 96) - 1, u128::MAX - (1 << 32), u128::MAX];
        for a in edges.into_iter().chain(more) {
            assert_eq!(u128::from(Fp64::reduce(a).value()), a % q, "{a}");
        }
        for a in edges.map(Fp64::reduce) {
            for b in edges.map(Fp64::reduce) {
                let [x, y] = [a, b].map(|x| u128::from(x.value()));
                assert_eq!(u128::from((a + b).value()), (x + y) % q);
                assert_eq!(u128::from((a - b).value()), (q + x - y) % q);
                assert_eq!(u128::from((a * b).value()), x * y % q);
            }
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for value in [Fp31::MODULUS, 1 << 31, u32::MAX] {
            let mut bytes = [0; 16];
            bytes[12..].copy_from_slice(&value.to_le_bytes());
            assert!(Fp31::read(&bytes, &mut [Fp31::ZERO; 4]).is_err());
            assert!(Fp31x4::read(&bytes, &mut [Fp31x4::ZERO]).is_err());
        }
        for value in [Fp64::MODULUS, u64::MAX] {
            let mut bytes = [0; 16];
            bytes[8..].copy_from_slice(&value.to_le_bytes());
            assert!(Fp64::read(&bytes, &mut [Fp64::ZERO; 2]).is_err());
            assert!(Fp64x2::read(&bytes, &mut [Fp64x2::ZERO]).is_err());
        }
    }
}
