//! The rings of volery: elements, and operations on whole slices of them.
//!
//! | type | ring | wire bytes per element |
//! |---|---|---|
//! | [`Fp61`] | the integers modulo the prime `2^61 - 1` | 8 |
//! | [`Z64`] | the integers modulo `2^64` | 8 |
//! | [`Gf128`] | `GF(2^128) = GF(2)[X] / (X^128 + X^7 + X^2 + X + 1)` | 16 |
//! | [`F2`] | the field of two elements | 1/8 |
//! | [`Fp31`], [`Fp31x4`] | the integers modulo `2^31 - 1`; their extension of degree 4 | 4, 16 |
//! | [`Fp64`], [`Fp64x2`] | those modulo `2^64 - 2^32 + 1`; their extension of degree 2 | 8, 16 |
//!
//! [`Ring`] is the interface of generic protocols, [`Field`] has inverses. [`ExtensionOf`] relates
//! the ring of the values `u` of a correlation `w = u*x + v` to the ring of `x`, `v` and `w`: every
//! ring over itself, [`Gf128`] over [`F2`], and an [`Extension`] over its base.
//!
//! The traits are open: a program can bring its own ring. [`element!`] implements the operators,
//! [`prime_field!`] the rest for a prime field, and [`Extended`] makes an extension of it.
//!
//! # Secrets
//!
//! No operation branches on a value, uses one as an index, or takes a time that depends on one,
//! except: `==`, [`Hash`](core::hash::Hash), [`Fp61::new`] and [`Display`](core::fmt::Display), for
//! tests and public values (use [`subtle::ConstantTimeEq`] for secrets), and
//! [`Ring::random_noise`], which draws again after a zero. [`Debug`](core::fmt::Debug) prints the
//! name of the ring and never the value; `Display` prints the value, on explicit request.
//!
//! ```
//! use volery_field::{Fp61, Ring};
//!
//! let x = Fp61::reduce(1 << 60);
//! assert_eq!((x + x).to_string(), "1"); // 2^61 = 1 modulo 2^61 - 1
//! assert_eq!(format!("{x:?}"), "fp61(..)");
//! assert_eq!(Fp61::sum(&[x, x, Fp61::ONE]), Fp61::reduce(2));
//! ```
#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod boilerplate;
mod extension;
mod f2;
mod fp31;
mod fp61;
mod fp64;
mod gf128;
mod ring;
mod z64;

#[cfg(test)]
mod axioms;

pub use extension::{Extended, Extension};
pub use f2::F2;
pub use fp31::{Fp31, Fp31x4};
pub use fp61::Fp61;
pub use fp64::{Fp64, Fp64x2};
pub use gf128::Gf128;
pub use ring::{ExtensionOf, Field, NotCanonical, Ring};
pub use subtle::{Choice, ConstantTimeEq};
pub use z64::Z64;
