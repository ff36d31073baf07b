//! Trait implementations shared by every element type.

/// Implements the assigning operators, `Debug` without the value, erasure, and constant-time
/// comparison and selection for a type that wraps one value with these traits.
macro_rules! element_boilerplate {
    ($ring:ident) => {
        impl core::ops::AddAssign for $ring {
            #[inline(always)]
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl core::ops::SubAssign for $ring {
            #[inline(always)]
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }

        impl core::ops::MulAssign for $ring {
            #[inline(always)]
            fn mul_assign(&mut self, other: Self) {
                *self = *self * other;
            }
        }

        /// Prints the name of the type but not the value, which may be secret.
        impl core::fmt::Debug for $ring {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                formatter.write_str(concat!(stringify!($ring), "(..)"))
            }
        }

        impl zeroize::DefaultIsZeroes for $ring {}

        impl subtle::ConstantTimeEq for $ring {
            fn ct_eq(&self, other: &Self) -> subtle::Choice {
                subtle::ConstantTimeEq::ct_eq(&self.0, &other.0)
            }
        }

        impl subtle::ConditionallySelectable for $ring {
            fn conditional_select(a: &Self, b: &Self, choice: subtle::Choice) -> Self {
                Self(subtle::ConditionallySelectable::conditional_select(&a.0, &b.0, choice))
            }
        }
    };
}

pub(crate) use element_boilerplate;

/// The operators of an element: sum, difference, product and negative.
macro_rules! operators {
    ($T:ty: |$x:ident, $y:ident| $sum:expr, $difference:expr, $product:expr, $negative:expr) => {
        operators!($T, Add, add, $x, $y, $sum);
        operators!($T, Sub, sub, $x, $y, $difference);
        operators!($T, Mul, mul, $x, $y, $product);

        impl core::ops::Neg for $T {
            type Output = Self;

            #[inline(always)]
            fn neg(self) -> Self {
                let $x = self;
                $negative
            }
        }
    };
    ($T:ty, $Operator:ident, $function:ident, $x:ident, $y:ident, $value:expr) => {
        impl core::ops::$Operator for $T {
            type Output = Self;

            #[inline(always)]
            #[allow(clippy::suspicious_arithmetic_impl, reason = "arithmetic modulo 2")]
            fn $function(self, $y: Self) -> Self {
                let $x = self;
                $value
            }
        }
    };
}

pub(crate) use operators;
