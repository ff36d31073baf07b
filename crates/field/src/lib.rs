//! The rings of volery: elements, and operations on whole slices of them.
//!
//! | type | ring | wire bytes per element |
//! |---|---|---|
//! | [`Fp61`] | the integers modulo the prime `2^61 - 1` | 8 |
//! | [`Z64`] | the integers modulo `2^64` | 8 |
//! | [`Gf128`] | `GF(2^128) = GF(2)[X] / (X^128 + X^7 + X^2 + X + 1)` | 16 |
//! | [`F2`] | the field of two elements | 1/8 |
//!
//! [`Ring`] is the interface of generic protocols. [`ExtensionOf`] relates the ring of the values
//! `u` of a correlation `w = u*x + v` to the ring of `x`, `v` and `w`: every ring over itself, and
//! [`Gf128`] over [`F2`].
//!
//! # Secrets
//!
//! No operation branches on a value, uses one as an index, or takes a time that depends on one,
//! except: `==`, [`Fp61::new`] and [`Display`](core::fmt::Display), which are for tests and public
//! values (use [`subtle::ConstantTimeEq`] for secrets), and [`Ring::random_noise`], which draws
//! again after a zero. [`Debug`](core::fmt::Debug) prints the name of the type and never the value;
//! `Display` prints the value, on explicit request.
//!
//! ```
//! use volery_field::{Fp61, Ring};
//!
//! let x = Fp61::reduce(1 << 60);
//! assert_eq!((x + x).to_string(), "1"); // 2^61 = 1 modulo 2^61 - 1
//! assert_eq!(format!("{x:?}"), "Fp61(..)");
//! assert_eq!(Fp61::sum(&[x, x, Fp61::ONE]), Fp61::reduce(2));
//! ```
#![forbid(unsafe_code)]

mod boilerplate;
mod f2;
mod fp61;
mod gf128;
mod ring;
mod z64;

#[cfg(test)]
mod axioms;

pub use f2::F2;
pub use fp61::Fp61;
pub use gf128::Gf128;
pub use ring::{ExtensionOf, NotCanonical, Ring};
pub use z64::Z64;
