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

/// What a party computes its rounds on. The parties choose it apart: neither messages nor outputs
/// depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Device {
    /// The processor.
    #[default]
    Processor,
    /// A CUDA card if there is one and it can compute the rounds of the plan, otherwise the
    /// processor.
    Auto,
    /// The CUDA card of that number, from 0. It needs the feature `gpu`.
    Cuda(usize),
    /// The CUDA cards from the first number to the last, to which the substreams of a plan are
    /// dealt in turn. Their outputs come down to memory of the processor.
    Cards(usize, usize),
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

impl Device {
    /// The device of a substream.
    pub(crate) fn of_substream(self, number: usize) -> Self {
        match self {
            Self::Cards(first, last) => {
                let more = (last - first).saturating_add(1);
                Self::Cuda(first + number % more)
            }
            one => one,
        }
    }

    /// The card for outputs that stay on one.
    #[cfg(feature = "gpu")]
    pub(crate) fn number(self) -> volery_channel::Result<usize> {
        match self {
            Self::Cuda(number) => Ok(number),
            Self::Auto => Ok(0),
            // no mutant: a caller's mistake
            Self::Cards(..) => Err(volery_channel::Error::Card(
                "outputs stay on one card: name one as the device".to_owned(),
            )),
            // no mutant: a caller's mistake
            Self::Processor => Err(volery_channel::Error::Card(
                "outputs on a card need a plan for one: name it as the device".to_owned(),
            )),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Processor => f.pad("cpu"),
            Self::Auto => f.pad("auto"),
            Self::Cuda(number) => f.pad(&format!("cuda:{number}")),
            Self::Cards(first, last) => f.pad(&format!("cuda:{first}-{last}")),
        }
    }
}

/// `cuda` is `cuda:0`.
impl FromStr for Device {
    type Err = ParseSettingError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s {
            "cpu" => return Ok(Self::Processor),
            "auto" => return Ok(Self::Auto),
            "cuda" => return Ok(Self::Cuda(0)),
            _ => {}
        }
        let numbers = s.strip_prefix("cuda:").and_then(|numbers| match numbers.split_once('-') {
            None => numbers.parse().ok().map(Self::Cuda),
            Some((first, last)) => match (first.parse().ok()?, last.parse().ok()?) {
                (first, last) if first < last => Some(Self::Cards(first, last)),
                _ => None,
            },
        });
        numbers.ok_or_else(|| ParseSettingError::new(s, "cpu, auto, cuda:NUMBER, cuda:FIRST-LAST"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_names() {
        let cards = Device::Cards(1, 3);
        for device in [Device::Processor, Device::Auto, Device::Cuda(0), Device::Cuda(12), cards] {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        let dealt: Vec<_> = (0..5).map(|number| cards.of_substream(number)).collect();
        assert_eq!(dealt, [1, 2, 3, 1, 2].map(Device::Cuda));
        assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
        for wrong in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:1-1", "cuda:2-", "CUDA"] {
            assert!(wrong.parse::<Device>().is_err(), "{wrong}");
        }
    }
}
