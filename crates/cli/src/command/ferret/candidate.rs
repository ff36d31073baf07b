//! What is measured beside the protocols of the paper.

use volery_ot::softspoken::SmallField;
use volery_pcg::{Kind, Link as PlanLink, Noise, Plan, PlanError, Security, Wishes};

use super::published::{Protocol, Rate};

/// A protocol of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// Semi-honest OT extension.
    Iknp,
    /// Maliciously secure OT extension with the traffic of KOS.
    SoftSpoken,
    /// The paper's own: Table 2 on GGM trees.
    Ferret(Noise, Security),
    /// What this program does by default.
    Volery(Noise, Security),
}

/// How [`Candidate::SoftSpoken`] cuts up `delta`.
pub(super) const SOFTSPOKEN: SmallField = SmallField::Bits1;

impl Candidate {
    /// What stands beside a protocol of the paper in the columns "here" and "volery".
    pub(super) fn beside(protocol: Protocol, security: Security) -> [Option<Self>; 2] {
        let both = |noise| [Self::Ferret(noise, security), Self::Volery(noise, security)].map(Some);
        match protocol {
            Protocol::Alsz13 => [Some(Self::Iknp), None],
            Protocol::Kos15 => [Some(Self::SoftSpoken), None],
            Protocol::Bcg19a => [None, None],
            Protocol::FerretReg => both(Noise::Regular),
            Protocol::FerretUni => both(Noise::Uniform),
        }
    }

    /// The same with regular noise, where there is noise.
    pub(super) fn with_regular_noise(self) -> Self {
        match self {
            Self::Ferret(_, security) => Self::Ferret(Noise::Regular, security),
            Self::Volery(_, security) => Self::Volery(Noise::Regular, security),
            Self::Iknp | Self::SoftSpoken => self,
        }
    }

    /// One word.
    pub(super) fn name(self) -> String {
        match self {
            Self::Iknp => "iknp".to_owned(),
            Self::SoftSpoken => "softspoken1".to_owned(),
            Self::Ferret(noise, security) => format!("ferret-{noise}-{security}"),
            Self::Volery(noise, security) => format!("volery-{noise}-{security}"),
        }
    }

    /// The plan of a stream without end over a link; none where there is no LPN.
    pub(super) fn plan(self, rate: Rate, round_trip: f64) -> Result<Option<Plan>, PlanError> {
        match self {
            Self::Iknp | Self::SoftSpoken => Ok(None),
            Self::Ferret(noise, security) => Ok(Some(Plan::ferret(None, noise, security))),
            Self::Volery(noise, security) => Plan::new(
                Kind::Cot,
                &Wishes {
                    noise,
                    security,
                    link: PlanLink {
                        bits_per_second: rate.bits_per_second(),
                        round_trip,
                    },
                    ..Wishes::default()
                },
            )
            .map(Some),
        }
    }

    /// Bits that a correlated OT sends where there is no LPN to save them.
    pub(super) fn bits_without_lpn(self) -> Option<f64> {
        match self {
            Self::Iknp => Some(128.0),
            Self::SoftSpoken => Some(127.0),
            Self::Ferret(..) | Self::Volery(..) => None,
        }
    }
}
