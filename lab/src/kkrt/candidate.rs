//! The measured protocols, compared with those of the paper.

use crate::Link;
use crate::runner::Forecast;
use volery_psi::{Parameters, Variant};

use super::published::Protocol;
use crate::baselines::{Sizes, naive, pssz};

/// A protocol of ours on items of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// Exchanging hashes: insecure.
    Naive,
    /// On items of this many bits.
    Pssz(u32),
    /// BaRK-OPRF, on items of 128 bits; no other length costs more or less.
    Bark(Variant),
}

impl Candidate {
    /// All of them.
    pub(super) const ALL: [Self; 6] = [
        Self::Naive,
        Self::Pssz(32),
        Self::Pssz(64),
        Self::Pssz(128),
        Self::Bark(Variant::KkrtPaper),
        Self::Bark(Variant::Kkrt),
    ];

    /// BaRK-OPRF with the paper's parameters, and with those of this program.
    pub(super) const BARK: [Self; 2] = [Self::Bark(Variant::KkrtPaper), Self::Bark(Variant::Kkrt)];

    /// The protocols for the columns `here` and `volery` beside a protocol of the paper, for items
    /// of `bits` bits.
    pub(super) const fn beside(protocol: Protocol, bits: u32) -> [Option<Self>; 2] {
        match protocol {
            Protocol::Naive => [Some(Self::Naive), None],
            Protocol::Pssz => [Some(Self::Pssz(bits)), None],
            Protocol::Bark => [Some(Self::BARK[0]), Some(Self::BARK[1])],
        }
    }

    /// One word.
    pub(super) fn name(self) -> String {
        match self {
            Self::Naive => "naive".to_owned(),
            Self::Pssz(bits) => format!("pssz-{bits}"),
            Self::Bark(variant) => variant.name().to_owned(),
        }
    }

    /// Bits of the items it is measured on.
    pub(super) const fn item_bits(self) -> u32 {
        match self {
            Self::Pssz(bits) => bits,
            Self::Naive | Self::Bark(_) => 128,
        }
    }

    /// The computational security it claims, in bits.
    pub(super) const fn security_bits(self) -> Option<u32> {
        match self {
            Self::Naive => None,
            Self::Pssz(_) | Self::Bark(_) => Some(128),
        }
    }

    /// The plan of PSSZ, as published.
    pub(super) fn pssz_plan(items: usize, bits: u32) -> pssz::Plan {
        pssz::Plan::new(same(items), bits, pssz::HashIndex::Hashed)
    }

    /// Bytes of both directions without the setup, by a formula: that of the paper or, for the
    /// default of this program, the same formula with its own parameters.
    pub(super) fn formula(self, items: usize) -> f64 {
        match self {
            Self::Naive => naive::bytes(same(items)) as f64,
            Self::Pssz(bits) => pssz::published_bytes(items, bits),
            Self::Bark(variant) => {
                let parameters = parameters(variant, items);
                (parameters.row_bytes() + parameters.tag_bytes()) as f64
            }
        }
    }

    /// The parameters of a run with this many items, in a few words.
    pub(super) fn describe(self, items: usize) -> String {
        match self {
            Self::Naive => format!("hashes of {} bits", 8 * naive::hash_bytes(same(items))),
            Self::Pssz(bits) => {
                let plan = Self::pssz_plan(items, bits);
                format!(
                    "3 hash functions, {} bins of {} OTs, stash {} of {} OTs, outputs of {} bits",
                    plan.bins(),
                    plan.bin_ots(),
                    plan.stash(),
                    plan.stash_ots(),
                    8 * plan.value_bytes()
                )
            }
            Self::Bark(variant) => parameters(variant, items).to_string(),
        }
    }

    /// The cost of a run.
    ///
    /// The time does not grow with the number of items alone: a small set over a slow link is
    /// mostly setup and round trips. So the work is the whole estimate, and a measured smaller size
    /// scales it.
    pub(super) fn forecast(self, items: usize, link: &Link) -> Forecast {
        const SETUP: f64 = 0.03;
        let (setup, nanoseconds, round_trips) = match self {
            Self::Naive => (0.0, 400.0, 0.5),
            Self::Pssz(32) => (SETUP, 1500.0, 2.0),
            Self::Pssz(64) => (SETUP, 2500.0, 2.0),
            Self::Pssz(_) => (SETUP, 3000.0, 2.0),
            Self::Bark(Variant::KkrtPaper) => (SETUP, 700.0, 2.5),
            Self::Bark(_) => (SETUP, 600.0, 2.5),
        };
        let seconds = setup + nanoseconds * 1e-9 * items as f64;
        let bytes = self.formula(items);
        let on_the_link = link.seconds_for(bytes) + round_trips * link.round_trip_seconds();
        Forecast {
            seconds,
            bytes,
            round_trips,
            work: seconds + on_the_link,
        }
    }
}

/// As many items on both sides.
pub(super) const fn same(items: usize) -> Sizes {
    Sizes {
        sender: items,
        receiver: items,
    }
}

/// Those of BaRK-OPRF for as many items on both sides.
pub(super) fn parameters(variant: Variant, items: usize) -> Parameters {
    Parameters::new(variant, items as u64, items as u64)
}

#[cfg(test)]
mod tests {
    use super::super::published::Setting;
    use super::*;

    #[test]
    fn names_are_one_word_each_and_different() {
        let mut names = Candidate::ALL.map(Candidate::name).to_vec();
        assert!(names.iter().all(|name| !name.contains(' ')));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Candidate::ALL.len());
    }

    /// Sixteen times as many items take not more than sixteen times as long, and over a slow link
    /// much less at first.
    #[test]
    fn small_sets_are_not_scaled_up_as_large_ones() {
        for setting in Setting::ALL {
            let link = setting.link();
            for candidate in Candidate::ALL {
                let work = |log: u32| candidate.forecast(1 << log, &link).work;
                let growth = |log: u32| work(log + 4) / work(log);
                let least = if setting == Setting::Wan { 1.5 } else { 16.0 };
                assert!((1.0..least).contains(&growth(8)), "{}", growth(8));
                assert!((8.0..18.0).contains(&growth(20)), "{}", growth(20));
            }
        }
    }
}
