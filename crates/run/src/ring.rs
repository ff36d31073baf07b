//! The rings of vector OLEs, by name.

volery_options::choices! {
    /// A ring, by its name on the command line.
    pub enum RingName {
        /// The integers modulo 2^61 - 1
        Fp61 = "fp61",
        /// The integers modulo 2^64
        Z64 = "z64",
        /// Binary polynomials modulo X^128 + X^7 + X^2 + X + 1
        Gf128 = "gf128",
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
