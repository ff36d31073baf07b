//! The choices a user of a correlation makes.

use std::{fmt, str::FromStr};

/// What the other party may do and still learn nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Security {
    /// The other party follows the protocol and only looks at what it received.
    SemiHonest,
    /// The other party may do anything; a failed check ends the run before anything is released.
    #[default]
    Malicious,
}

/// Where the LPN noise sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Noise {
    /// One non-zero value in each of `t` blocks of equal size.
    #[default]
    Regular,
    /// `t` non-zero values anywhere, placed by cuckoo hashing (Protocol 5).
    Uniform,
}

/// Which trees stand under the noise: see [`crate::ggm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Trees {
    /// Those of the papers: two AES calls and two blocks for each level's OT.
    Ggm,
    /// Half-trees: one of each.
    #[default]
    Half,
}

/// A setting that is none of the known names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseSettingError {
    given: String,
    known: &'static str,
}

impl ParseSettingError {
    pub(crate) fn new(given: &str, known: &'static str) -> Self {
        Self {
            given: given.to_owned(),
            known,
        }
    }
}

impl fmt::Display for ParseSettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is none of: {}", self.given, self.known)
    }
}

impl std::error::Error for ParseSettingError {}

impl fmt::Display for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::SemiHonest => "semi-honest",
            Self::Malicious => "malicious",
        })
    }
}

impl FromStr for Security {
    type Err = ParseSettingError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s {
            "semi-honest" => Ok(Self::SemiHonest),
            "malicious" => Ok(Self::Malicious),
            _ => Err(ParseSettingError {
                given: s.to_owned(),
                known: "semi-honest, malicious",
            }),
        }
    }
}

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
            _ => Err(ParseSettingError {
                given: s.to_owned(),
                known: "regular, uniform",
            }),
        }
    }
}

impl fmt::Display for Trees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ggm => "ggm",
            Self::Half => "half",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for security in [Security::SemiHonest, Security::Malicious] {
            assert_eq!(security.to_string().parse(), Ok(security));
        }
        for noise in [Noise::Regular, Noise::Uniform] {
            assert_eq!(noise.to_string().parse(), Ok(noise));
        }
        let error = "exact".parse::<Noise>().expect_err("not a name");
        assert_eq!(error.to_string(), "'exact' is none of: regular, uniform");
    }
}
