//! The rings of vector OLEs, by name.

use std::ffi::OsStr;
use std::fmt;

use volery_options::{AllowedValue, parse};

/// A ring, by its name on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RingName {
    /// The integers modulo 2^61 - 1.
    #[default]
    Fp61,
    /// The integers modulo 2^64.
    Z64,
    /// Binary polynomials modulo X^128 + X^7 + X^2 + X + 1.
    Gf128,
}

impl RingName {
    /// All names, with their help.
    pub(crate) const ALLOWED: &[AllowedValue] = &[
        ("fp61", "The integers modulo 2^61 - 1"),
        ("z64", "The integers modulo 2^64"),
        ("gf128", "Binary polynomials modulo X^128 + X^7 + X^2 + X + 1"),
    ];

    /// The ring of this name.
    pub(crate) fn of(value: &OsStr) -> Result<Self, String> {
        let all = [Self::Fp61, Self::Z64, Self::Gf128];
        parse::choice(value, &all.map(|ring| (ring.name(), ring)))
    }

    fn name(self) -> &'static str {
        Self::ALLOWED[self as usize].0
    }
}

impl fmt::Display for RingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Runs an expression with `$R` standing for the type that a [`RingName`] names.
macro_rules! with_ring {
    ($name:expr, $R:ident => $body:expr) => {
        match $name {
            $crate::ring::RingName::Fp61 => {
                type $R = volery_field::Fp61;
                $body
            }
            $crate::ring::RingName::Z64 => {
                type $R = volery_field::Z64;
                $body
            }
            $crate::ring::RingName::Gf128 => {
                type $R = volery_field::Gf128;
                $body
            }
        }
    };
}
pub(crate) use with_ring;
