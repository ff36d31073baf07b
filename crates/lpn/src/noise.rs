//! The positions of the noise of an LPN instance.

use std::{fmt, str::FromStr};

/// The distribution of the LPN noise positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Noise {
    /// One non-zero value in each of `t` blocks of equal size.
    #[default]
    Regular,
    /// `t` non-zero values at any positions, placed by cuckoo hashing (*Distributed Vector-OLE*,
    /// Protocol 5).
    Uniform,
}

/// A setting with an unknown name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseSettingError {
    given: String,
    known: &'static str,
}

impl ParseSettingError {
    /// The error for `given`, which is not in `known`, a list of names.
    #[must_use]
    pub fn new(given: &str, known: &'static str) -> Self {
        Self { given: given.to_owned(), known }
    }
}

impl fmt::Display for ParseSettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is none of: {}", self.given, self.known)
    }
}

impl std::error::Error for ParseSettingError {}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Regular => "regular",
            Self::Uniform => "uniform",
        })
    }
}

impl FromStr for Noise {
    type Err = ParseSettingError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s {
            "regular" => Ok(Self::Regular),
            "uniform" => Ok(Self::Uniform),
            _ => Err(ParseSettingError::new(s, "regular, uniform")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for noise in [Noise::Regular, Noise::Uniform] {
            assert_eq!(noise.to_string().parse(), Ok(noise));
        }
        let error = "exact".parse::<Noise>().expect_err("not a name");
        assert_eq!(error.to_string(), "'exact' is none of: regular, uniform");
    }
}
