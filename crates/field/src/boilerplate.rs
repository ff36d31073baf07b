//! Trait implementations that element types share.

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
