//! The reasons why no plan exists.

use std::fmt;

use super::{
    MAX_SUBSTREAMS,
    kind::{Base, Kind},
};
use crate::{Device, lpn::estimate::Field};

/// The reason why no plan exists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// This correlation has no malicious form.
    NotMalicious,
    /// No set with that name exists for this kind of correlation and this noise.
    NoSuchSet(String),
    /// No set for this kind of correlation and this noise may have as many instances in lockstep.
    NoSuchInstances(usize),
    /// A plan has 1 to [`MAX_SUBSTREAMS`](super::MAX_SUBSTREAMS) substreams.
    NoSuchSubstreams(usize),
    /// The named set makes at most this many correlations at once.
    SetTooSmall(u64),
    /// A card has no part in the plan, of which this is the [description](super::Plan::describe).
    NotOnCards(String),
    /// This build computes on the processor only.
    NoCards,
    /// The last of several cards comes before the first.
    NoSuchCards(Device),
    /// No vector OLE exists over this ring, or none with this noise.
    NoSuchRing(Field),
    /// This base does not make correlations of this kind, or not with this security.
    NoSuchBase(Base),
    /// Dual LPN with unsupported noise, or on unsupported trees.
    NotDual,
    /// Values `u` of this many bits do not exist: they exist over `gf128` only, from 8 to 128.
    NoSuchValueBits(u32),
    /// Fewer bits of `u` than those of the ring have no malicious form.
    ValueBitsNotMalicious,
    /// Fewer bits of `u` than those of the ring do not work with primal LPN.
    ValueBitsNotPrimal,
}

impl Kind {
    /// Refuses a kind that is no vector OLE.
    pub(super) fn exists(self) -> Result<(), PlanError> {
        match self {
            Self::Cot | Self::Vole(Field::Fp61 | Field::Z64Odd | Field::Gf128) => Ok(()),
            Self::Vole(Field::Open(field)) if field.noise_bits >= 31 && field.bits >= 60 => Ok(()),
            Self::Vole(field) => Err(PlanError::NoSuchRing(field)),
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMalicious => f.write_str(
                "vector OLE over z64 is secure against semi-honest parties only: the consistency check needs a field, \
                 and the known check for this ring has not been shown to leak nothing",
            ),
            Self::NoSuchSet(name) => write!(
                f,
                "no parameters named '{name}' for this kind of correlation and this noise"
            ),
            Self::NoSuchInstances(number) => {
                write!(f, "no parameters have {number} instances in lockstep for this kind of correlation and this noise")
            }
            Self::NoSuchSubstreams(number) => write!(f, "{number} substreams: from 1 to {MAX_SUBSTREAMS}"),
            Self::NotOnCards(plan) => write!(
                f,
                "a card computes primal LPN with a set from b10 to b13 on half-trees, over f2, fp61 and gf128, and \
                 the plan is {plan}: name such a set, on both sides"
            ),
            Self::NoSuchCards(device) => write!(f, "{device}: the last card comes before the first"),
            Self::NoCards => f.write_str("this build computes on the processor only: build it with the feature gpu"),
            Self::NoSuchBase(base) => {
                write!(f, "{base} does not make this kind of correlation with this security")
            }
            Self::SetTooSmall(n) => write!(f, "these parameters make at most {n} correlations"),
            Self::NoSuchRing(Field::Z64Uniform) => f.write_str(
                "no parameters for vector OLE over z64 with uniform noise values: even values are no noise modulo 2",
            ),
            Self::NoSuchRing(Field::Gf128Binary) => f.write_str(
                "no parameters for vector OLE over gf128 with a code of zeros and ones: linear algebra would break them",
            ),
            Self::NotDual => f.write_str("dual LPN requires regular noise, half-trees, and f2, fp61, z64 or gf128"),
            Self::NoSuchValueBits(bits) => write!(
                f,
                "no values of {bits} bits: vector OLE over gf128 has 8 to 128, other correlations have no choice"
            ),
            Self::ValueBitsNotMalicious => f.write_str(
                "values of fewer than 128 bits are secure against semi-honest parties only: the consistency check \
                 does not show that the other bits are zero",
            ),
            Self::ValueBitsNotPrimal => f.write_str(
                "values of fewer than 128 bits need a code of zeros and ones, which primal LPN over gf128 does not \
                 have: use low-communication or a base",
            ),
            Self::NoSuchRing(field) => write!(f, "vector OLE over {field} is not supported"),
        }
    }
}

impl std::error::Error for PlanError {}
