//! Why there is no plan.

use std::fmt;

use super::Base;
use crate::lpn::estimate::Field;

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// The malicious form of this correlation does not exist.
    NotMalicious,
    /// No set of that name is made for this kind of correlation and this noise.
    NoSuchSet(String),
    /// The named set makes at most this many correlations at once.
    SetTooSmall(u64),
    /// There is no vector OLE over this ring, or none with this noise.
    NoSuchRing(Field),
    /// Correlations of this kind are not made in this way, or not with this security.
    NoSuchBase(Base),
    /// Low communication with other noise, or on other trees, than it is made for.
    NotDual,
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
            Self::NoSuchBase(base) => {
                write!(f, "{base} does not make this kind of correlation with this security")
            }
            Self::SetTooSmall(n) => write!(f, "these parameters make at most {n} correlations"),
            Self::NoSuchRing(Field::Z64Uniform) => f.write_str(
                "no parameters for vector OLE over z64 with noise of any values: even ones are no noise modulo 2",
            ),
            Self::NoSuchRing(Field::Gf128Binary) => f.write_str(
                "no parameters for vector OLE over gf128 with a code of zeros and ones: linear algebra would break them",
            ),
            Self::NotDual => f.write_str("low communication has regular noise, on half-trees"),
            Self::NoSuchRing(field) => write!(f, "there is no vector OLE over {field}"),
        }
    }
}

impl std::error::Error for PlanError {}
