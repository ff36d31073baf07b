//! Trait implementations that element types share.

#[doc(hidden)]
pub use volery_primitives::Block;
#[doc(hidden)]
pub use {subtle, zeroize};

/// The operators of an element type, its sums and products of iterators, `From<bool>`, erasure, and
/// a `Debug` that prints the name of the ring and never the value: from the expressions for the
/// sum, the difference, the product and the negative of two elements. The type must be
/// [`Ring`](crate::Ring).
///
/// ```text
/// element!(Z8: |x, y|
///     Self(x.0.wrapping_add(y.0)),
///     Self(x.0.wrapping_sub(y.0)),
///     Self(x.0.wrapping_mul(y.0)),
///     Self(x.0.wrapping_neg())
/// );
/// ```
///
/// The type must have one field, a number or a block, and gets comparison and selection in constant
/// time, too.
#[macro_export]
macro_rules! element {
    (@generic [$($generics:tt)*] $T:ty: |$x:ident, $y:ident|
        $sum:expr, $difference:expr, $product:expr, $negative:expr) => {
        $crate::element!(@operator [$($generics)*] $T, Add, add, AddAssign, add_assign, $x, $y, $sum);
        $crate::element!(
            @operator [$($generics)*] $T, Sub, sub, SubAssign, sub_assign, $x, $y, $difference
        );
        $crate::element!(
            @operator [$($generics)*] $T, Mul, mul, MulAssign, mul_assign, $x, $y, $product
        );
        $crate::element!(@fold [$($generics)*] $T, Sum, sum, ZERO, +);
        $crate::element!(@fold [$($generics)*] $T, Product, product, ONE, *);

        impl<$($generics)*> core::ops::Neg for $T {
            type Output = Self;

            #[inline(always)]
            fn neg(self) -> Self {
                let $x = self;
                $negative
            }
        }

        impl<$($generics)*> From<bool> for $T {
            fn from(bit: bool) -> Self {
                use $crate::boilerplate::subtle::ConditionallySelectable as Select;
                let (zero, one) = (<Self as $crate::Ring>::ZERO, <Self as $crate::Ring>::ONE);
                <Self as Select>::conditional_select(&zero, &one, $crate::Choice::from(bit as u8))
            }
        }

        /// Prints the name of the ring but not the value, which may be secret.
        impl<$($generics)*> core::fmt::Debug for $T {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(formatter, "{}(..)", <Self as $crate::Ring>::NAME)
            }
        }

        impl<$($generics)*> $crate::boilerplate::zeroize::DefaultIsZeroes for $T {}
    };
    (@operator [$($generics:tt)*] $T:ty, $Operator:ident, $function:ident, $Assign:ident,
        $assign:ident, $x:ident, $y:ident, $value:expr) => {
        impl<$($generics)*> core::ops::$Operator for $T {
            type Output = Self;

            #[inline(always)]
            #[allow(clippy::suspicious_arithmetic_impl, reason = "arithmetic of another ring")]
            fn $function(self, $y: Self) -> Self {
                let $x = self;
                $value
            }
        }

        impl<$($generics)*> core::ops::$Assign for $T {
            #[inline(always)]
            fn $assign(&mut self, other: Self) {
                *self = core::ops::$Operator::$function(*self, other);
            }
        }
    };
    (@fold [$($generics:tt)*] $T:ty, $Fold:ident, $function:ident, $empty:ident, $operator:tt) => {
        impl<$($generics)*> core::iter::$Fold for $T {
            fn $function<I: Iterator<Item = Self>>(elements: I) -> Self {
                elements.fold(<Self as $crate::Ring>::$empty, |all, one| all $operator one)
            }
        }
    };
    ($T:ty: |$x:ident, $y:ident| $sum:expr, $difference:expr, $product:expr, $negative:expr) => {
        $crate::element!(@generic [] $T: |$x, $y| $sum, $difference, $product, $negative);

        impl $crate::boilerplate::subtle::ConstantTimeEq for $T {
            fn ct_eq(&self, other: &Self) -> $crate::Choice {
                $crate::boilerplate::subtle::ConstantTimeEq::ct_eq(&self.0, &other.0)
            }
        }

        impl $crate::boilerplate::subtle::ConditionallySelectable for $T {
            #[inline(always)]
            fn conditional_select(a: &Self, b: &Self, choice: $crate::Choice) -> Self {
                use $crate::boilerplate::subtle::ConditionallySelectable as Select;
                Self(Select::conditional_select(&a.0, &b.0, choice))
            }
        }
    };
}

/// The [`Ring`](crate::Ring) of a prime field whose elements are numbers below the prime, in one
/// field of a type with [`element!`](crate::element): its name, bits and
/// [words](crate::Ring::WORDS), the type of sums (`u64` for one word, else `u128`) and the function
/// from that to the element. The function must be constant in time.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use volery_field::{Ring, element, prime_field};
///
/// #[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
/// #[repr(transparent)]
/// struct Fp17(u16);
///
/// const fn reduce(x: u64) -> Fp17 {
///     Fp17((x % 65_537 % 17) as u16)
/// }
///
/// element!(Fp17: |x, y|
///     reduce(x.0 as u64 + y.0 as u64),
///     reduce(x.0 as u64 + 17 - y.0 as u64),
///     reduce(x.0 as u64 * y.0 as u64),
///     reduce(17 - x.0 as u64)
/// );
/// prime_field!(Fp17(u16): "fp17", 5 bits, 1 words, u64 sums, reduce);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! prime_field {
    ($T:ident($word:ident): $name:literal, $bits:literal bits, $words:literal words, $sum:ident sums,
        $reduce:expr) => {
        /// Prints the number in decimal.
        impl core::fmt::Display for $T {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(&self.0, formatter)
            }
        }

        impl $crate::Ring for $T {
            const ZERO: Self = Self(0);
            const ONE: Self = Self(1);
            const NAME: &'static str = $name;
            const BITS: u32 = $bits;
            const BYTES: usize = size_of::<$word>();
            const WORDS: usize = $words;
            const GENERATED_BY_ONE: bool = true;

            type Lazy = $sum;

            #[inline(always)]
            fn lazy_add(sum: $sum, x: Self) -> $sum {
                sum + <$sum>::from(x.0)
            }

            #[inline(always)]
            fn lazy_finish(sum: $sum) -> Self {
                $reduce(sum)
            }

            type LazyPair = [$sum; 2];

            #[inline(always)]
            fn pair_add([a, b]: [$sum; 2], [x, y]: [Self; 2]) -> [$sum; 2] {
                [Self::lazy_add(a, x), Self::lazy_add(b, y)]
            }

            #[inline(always)]
            fn pair_finish(sums: [$sum; 2]) -> [Self; 2] {
                sums.map($reduce)
            }

            #[inline(always)]
            fn from_block(block: $crate::boilerplate::Block) -> Self {
                $reduce(<$sum>::from(block.low()))
            }

            #[inline(always)]
            fn from_words(words: &[u64]) -> Self {
                assert_eq!(words.len(), $words, "words of an element");
                let words = words.iter().rev();
                $reduce(words.fold(0, |all: $sum, word| (all << 32 << 32) | <$sum>::from(*word)))
            }

            #[inline(always)]
            fn bit(self, i: u32) -> $crate::Choice {
                assert!(i < $bits, "bit {i} of an element of {} bits", $bits);
                $crate::Choice::from((self.0 >> i) as u8 & 1)
            }

            #[inline(always)]
            fn power_of_two(i: u32) -> Self {
                assert!(i < $bits, "2^{i} in a ring of {} bits", $bits);
                Self(1 << i)
            }

            fn write(xs: &[Self], out: &mut Vec<u8>) {
                out.extend(xs.iter().flat_map(|x| x.0.to_le_bytes()));
            }

            fn read(bytes: &[u8], out: &mut [Self]) -> Result<(), $crate::NotCanonical> {
                assert_eq!(bytes.len(), Self::encoded_len(out.len()), "bytes of all elements");
                let mut difference = 0;
                for (&bytes, out) in bytes.as_chunks().0.iter().zip(out) {
                    let value = <$word>::from_le_bytes(bytes);
                    *out = $reduce(value.into());
                    difference |= value ^ out.0;
                }
                // mutant(prime-canonical): `difference == 0` => `true`
                if difference == 0 {
                    return Ok(());
                }
                // no mutant: that of its condition
                Err($crate::NotCanonical { ring: $name })
            }
        }
    };
}
