//! The settings of a correlation that its user chooses.

use std::{fmt, str::FromStr};

use volery_lpn::ParseSettingError;

/// The behaviour of the other party under which it still learns nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Security {
    /// The other party follows the protocol and only evaluates the messages it received.
    SemiHonest,
    /// The other party may deviate arbitrarily; a failed check ends the run before any output is
    /// released.
    #[default]
    Malicious,
}

/// The trees of the noise: see [`crate::ggm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Trees {
    /// The trees of the papers: two AES calls and two blocks for each level's OT.
    Ggm,
    /// Half-trees: one of each.
    #[default]
    Half,
}

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
            _ => Err(ParseSettingError::new(s, "semi-honest, malicious")),
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
