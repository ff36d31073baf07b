//! What is measured beside the protocols of the paper.

use volery_experiments::baselines::{Sizes, naive, pssz};
use volery_psi::{Parameters, Variant};

use super::published::Protocol;

/// A protocol of ours on items of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// Exchanging hashes: insecure.
    Naive,
    /// On items of so many bits.
    Pssz(u32),
    /// BaRK-OPRF, on items of 128 bits; no other length costs more or less.
    Bark(Variant),
}

impl Candidate {
    /// What stands beside a protocol of the paper in the columns "here" and "volery", for items of `bits` bits.
    pub(super) fn beside(protocol: Protocol, bits: u32) -> [Option<Self>; 2] {
        match protocol {
            Protocol::Naive => [Some(Self::Naive), None],
            Protocol::Pssz => [Some(Self::Pssz(bits)), None],
            Protocol::Bark => [
                Some(Self::Bark(Variant::KkrtPaper)),
                Some(Self::Bark(Variant::Kkrt)),
            ],
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
    pub(super) fn item_bits(self) -> u32 {
        match self {
            Self::Pssz(bits) => bits,
            Self::Naive | Self::Bark(_) => 128,
        }
    }

    /// The plan of PSSZ: what was published.
    pub(super) fn pssz_plan(sizes: Sizes, bits: u32) -> pssz::Plan {
        pssz::Plan::new(sizes, bits, pssz::HashIndex::Hashed)
    }

    /// Bytes of both directions without the setup, by a formula: that of the paper, and for the default of this
    /// program what its own parameters put into it.
    pub(super) fn formula(self, items: usize) -> f64 {
        let sizes = same(items);
        match self {
            Self::Naive => naive::bytes(sizes) as f64,
            Self::Pssz(bits) => pssz::published_bytes(items, bits),
            Self::Bark(variant) => {
                let parameters = parameters(variant, items);
                (parameters.row_bytes() + parameters.tag_bytes()) as f64
            }
        }
    }

    /// In a few words, what a run with so many items is made of.
    pub(super) fn describe(self, items: usize) -> String {
        match self {
            Self::Naive => format!("hashes of {} bits", 8 * naive::hash_bytes(same(items))),
            Self::Pssz(bits) => {
                let plan = Self::pssz_plan(same(items), bits);
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
}

/// As many items on both sides.
pub(super) fn same(items: usize) -> Sizes {
    Sizes {
        sender: items,
        receiver: items,
    }
}

/// Those of BaRK-OPRF for as many items on both sides.
pub(super) fn parameters(variant: Variant, items: usize) -> Parameters {
    Parameters::new(variant, items as u64, items as u64)
}
