//! The kinds of correlation that have plans, and the bases of each.

use std::fmt;

use volery_ot::softspoken::SmallField;

use crate::lpn::estimate::Field;

/// The correlation of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Correlated OT.
    Cot,
    /// Vector-OLE over the ring of this field of the estimator.
    Vole(Field),
}

/// The source of the base correlations of the first round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// By correlated OT in the ring: [`crate::gilboa`].
    Gilboa,
    /// By OT extension: `SoftSpokenOT`, with its checks unless the plan is for semi-honest parties.
    SoftSpoken(SmallField),
    /// By OT extension with `x` as its difference, 128 correlated OTs per element of F_2^128, or
    /// one for each of its [`value_bits`](super::PlanOptions::value_bits); always with the checks.
    Packed(SmallField),
}

impl Kind {
    /// The ring of the noise in the estimator.
    #[must_use]
    pub fn field(self) -> Field {
        match self {
            Self::Cot => Field::F2,
            Self::Vole(field) => field,
        }
    }

    /// In one word: `cot` or `vole`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cot => "cot",
            Self::Vole(_) => "vole",
        }
    }

    pub(super) fn bases(self) -> Vec<Base> {
        let fields = || SmallField::ALL.into_iter();
        match self {
            Self::Cot => fields().map(Base::SoftSpoken).collect(),
            Self::Vole(Field::Gf128) => fields().map(Base::Packed).collect(),
            Self::Vole(_) => vec![Base::Gilboa],
        }
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gilboa => f.pad("gilboa"),
            Self::SoftSpoken(field) => write!(f, "softspoken{}", field.bits()),
            Self::Packed(field) => write!(f, "packed{}", field.bits()),
        }
    }
}
