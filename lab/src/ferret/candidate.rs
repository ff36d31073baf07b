//! The measured protocols, compared with those of the paper, and their approximate cost.

use crate::Link;
use crate::runner::Forecast;
use volery_ot::softspoken::SmallField;
use volery_pcg::plan::RoundSize;
use volery_pcg::{Base, Kind, Noise, Plan, PlanError, PlanOptions, Security, Trees};

use super::published::Protocol;

/// A protocol of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// Semi-honest OT extension.
    Iknp,
    /// Maliciously secure OT extension with a bit less traffic than KOS.
    SoftSpoken,
    /// The paper's own: Table 2 on GGM trees.
    Ferret(Noise, Security),
    /// The default of volery.
    Volery(Noise, Security),
}

/// The field size by which [`Candidate::SoftSpoken`] splits `delta`.
pub(super) const SOFTSPOKEN: SmallField = SmallField::Bits1;

/// Approximate seconds of base OTs and of the rest of a setup except the rounds.
const SETUP_SECONDS: f64 = 0.05;

/// Round trips of base OTs and OT extension, and of a round; about.
const SETUP_TRIPS: f64 = 6.0;
const ROUND_TRIPS: f64 = 4.0;

impl Candidate {
    /// The protocols for the columns "here" and "volery" beside a protocol of the paper.
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

    /// The same with regular noise, if there is noise.
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

    /// For the legend of a plot, and for sentences.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Iknp => "IKNP, here",
            Self::SoftSpoken => "SoftSpokenOT k = 1, here",
            Self::Ferret(Noise::Uniform, _) => "Ferret-Uni, here",
            Self::Ferret(..) => "Ferret-Reg, here",
            Self::Volery(Noise::Uniform, _) => "Ferret-Uni, volery",
            Self::Volery(..) => "Ferret-Reg, volery",
        }
    }

    /// The plan of an unbounded stream over a link; `None` without LPN.
    ///
    /// # Errors
    /// If there are no parameters for it.
    pub(super) fn plan(self, link: &Link) -> Result<Option<Plan>, PlanError> {
        match self {
            Self::Iknp | Self::SoftSpoken => Ok(None),
            Self::Ferret(noise, security) => Ok(Some(Plan::ferret(None, noise, security))),
            Self::Volery(noise, security) => {
                let wishes = PlanOptions {
                    noise,
                    security,
                    link: link.for_plan(),
                    protocol: volery_pcg::Protocol::Primal,
                    ..PlanOptions::default()
                };
                Plan::new(Kind::Cot, &wishes).map(Some)
            }
        }
    }

    /// Bits that a correlated OT sends without LPN.
    pub(super) const fn bits_without_lpn(self) -> Option<f64> {
        match self {
            Self::Iknp => Some(128.0),
            Self::SoftSpoken => Some(127.0),
            Self::Ferret(..) | Self::Volery(..) => None,
        }
    }

    /// Nanoseconds that a correlated OT takes, about.
    const fn nanoseconds(self) -> f64 {
        match self {
            Self::Iknp | Self::SoftSpoken => 30.0,
            Self::Ferret(Noise::Uniform, _) => 200.0,
            Self::Ferret(..) => 100.0,
            Self::Volery(Noise::Uniform, _) => 90.0,
            Self::Volery(..) => 45.0,
        }
    }

    /// The cost of a run that makes `makes` correlated OTs, in a cell of `n`: whole rounds where
    /// there are rounds, and one before them.
    pub(super) fn forecast(self, plan: Option<&Plan>, n: u64, makes: u64) -> Forecast {
        let (cots, bits, rounds) = match plan {
            Some(plan) => rounds(plan, makes),
            None => (makes as f64, 0.0, 0.0),
        };
        let bits = bits + cots * self.bits_without_lpn().unwrap_or(0.0);
        Forecast {
            seconds: SETUP_SECONDS + cots * self.nanoseconds() * 1e-9,
            bytes: bits / 8.0,
            round_trips: SETUP_TRIPS + ROUND_TRIPS * rounds,
            work: n as f64,
        }
    }
}

/// The outputs and traffic of the rounds of a run, and their number. Of the sets before the last,
/// only the base of the first is counted in the traffic.
fn rounds(plan: &Plan, makes: u64) -> (f64, f64, f64) {
    let ladder = plan.schedule();
    let [Some(first), Some(last)] = [ladder.first(), ladder.last()] else {
        return (makes as f64, 0.0, 0.0);
    };
    let sizes = [last.n, last.k, last.t];
    let round = RoundSize::new(plan.kind(), plan.security(), plan.noise(), sizes);
    let each_level = match plan.trees() {
        Trees::Ggm => 256.0,
        _ => 128.0,
    };
    let base = match plan.base() {
        Base::SoftSpoken(field) | Base::Packed(field) => (field.trees() - 1) as f64,
        Base::Iknp | Base::Gilboa => 128.0,
    };
    // With uniform noise, trees of emptier bins have fewer levels than a round counts with.
    let least_levels = match plan.noise() {
        Noise::Uniform => 0.9 * round.levels as f64,
        _ => round.levels as f64,
    };
    let handed_out = (round.n - round.base) as f64;
    let count = 1.0 + (makes as f64 / handed_out).ceil();
    let bits = base * first.k as f64 + count * least_levels * each_level;
    (count * handed_out, bits, count + (ladder.len() - 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from Table 2: 13 levels of two blocks, and 36,288 OTs of 127 bits for the first
    /// secret.
    #[test]
    fn what_two_rounds_of_the_paper_send() {
        let candidate = Candidate::Ferret(Noise::Regular, Security::Malicious);
        let plan = Plan::ferret(None, Noise::Regular, Security::Malicious);
        let forecast = candidate.forecast(Some(&plan), 10_000_000, 10_000_000);
        let bits = 2.0 * 1319.0 * 13.0 * 256.0 + 36_288.0 * 127.0;
        assert!((forecast.bytes - bits / 8.0).abs() < 1.0, "{forecast:?}");
        assert!((1.0..10.0).contains(&forecast.seconds), "{forecast:?}");
    }

    #[test]
    fn extension_sends_what_it_makes() {
        let forecast = Candidate::Iknp.forecast(None, 1000, 10);
        assert!((forecast.bytes - 160.0).abs() < 1e-9 && forecast.work > 999.0);
    }
}
