//! The cheaper of PSSZ and BaRK-OPRF.
//!
//! Kolesnikov, Kumaresan, Rosulek, Trieu, *Efficient Batched Oblivious PRF with Applications to
//! Private Set Intersection*, CCS 2016, section 5.3 and Table 1: the two differ in the cost of a
//! bin in bits of the OT matrix, `32*l'` for PSSZ with the effective length `l' = l - log2 n`, and
//! the width `k` of the code for BaRK-OPRF. PSSZ wins for short items in large sets.
//!
//! [`Cost::Fractional`] counts as the table does. PSSZ cannot run a fraction of an OT: it takes 256
//! bits for each byte that `l'` has begun, [`Cost::Whole`]. Of the rows of Table 1 that changes
//! one: at 2^20 items of 32 bits the table has PSSZ ahead with 384 bits to 448, while whole OTs
//! take 512, and Tables 3 and 5 show BaRK-OPRF ahead.

use volery_channel::{Channel, SessionId};
use volery_primitives::{Block, prg::Prg};
use volery_psi::{Parameters, Result, Settings, Variant};

use crate::baselines::Sizes;
use crate::baselines::pssz::{self, HashIndex};

/// A protocol to pick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// [`pssz`].
    Pssz,
    /// BaRK-OPRF, of `volery-psi`.
    Bark,
}

/// The method of counting the OTs of PSSZ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// As in Table 1: 32 bits for each bit of the effective length.
    Fractional,
    /// As it runs: 256 bits for each byte.
    Whole,
}

/// Bits of the OT matrix that PSSZ takes for a bin, with `items` items of `bits` bits.
#[must_use]
pub fn pssz_bits(items: usize, bits: u32, cost: Cost) -> f64 {
    let effective = (f64::from(bits) - (items.max(1) as f64).log2()).max(0.0);
    match cost {
        Cost::Fractional => 32.0 * effective,
        // The contents of a bin are compared by at least one OT.
        Cost::Whole => 256.0 * (effective / 8.0).ceil().max(1.0),
    }
}

/// The cheaper protocol for `items` items of `bits` bits, where the code of BaRK-OPRF has `width`
/// bits; BaRK-OPRF if both cost the same.
#[must_use]
pub fn choose(items: usize, bits: u32, width: usize, cost: Cost) -> Choice {
    if pssz_bits(items, bits, cost) < width as f64 {
        Choice::Pssz
    } else {
        Choice::Bark
    }
}

/// The parameters that both parties agree on beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// To be run by PSSZ.
    Pssz(pssz::Plan),
    /// To be run by BaRK-OPRF, with the settings of `volery-psi`.
    Bark(Settings),
}

impl Plan {
    /// The plan for sets of these sizes, of items below 2^`item_bits`, with the cheaper protocol
    /// for the receiver's number of items; `variant` is that of BaRK-OPRF, `index` that of PSSZ.
    ///
    /// # Panics
    /// As [`pssz::Plan::new`].
    #[must_use]
    pub fn new(
        sizes: Sizes,
        item_bits: u32,
        cost: Cost,
        variant: Variant,
        index: HashIndex,
    ) -> Self {
        let parameters = Parameters::new(variant, sizes.sender as u64, sizes.receiver as u64);
        match choose(sizes.receiver, item_bits, parameters.width, cost) {
            Choice::Pssz => Self::Pssz(pssz::Plan::new(sizes, item_bits, index)),
            Choice::Bark => Self::Bark(Settings {
                variant,
                both: false,
            }),
        }
    }
}

/// The party whose set stays hidden except for the common items.
pub enum Sender {
    /// Running PSSZ.
    Pssz(Box<pssz::Sender>, pssz::Plan),
    /// Running BaRK-OPRF.
    Bark(Box<volery_psi::Sender>, Settings),
}

impl Sender {
    /// The part that can run before the items are known.
    ///
    /// # Errors
    /// Those of the protocol.
    pub fn setup(plan: &Plan, session: SessionId, rng: Prg, channel: &mut Channel) -> Result<Self> {
        Ok(match plan {
            Plan::Pssz(plan) => {
                let sender = pssz::Sender::setup(session, rng, channel)?;
                Self::Pssz(Box::new(sender), plan.clone())
            }
            Plan::Bark(settings) => {
                let sender = volery_psi::Sender::setup(session, rng, channel)?;
                Self::Bark(Box::new(sender), *settings)
            }
        })
    }

    /// Lets the receiver find the common items.
    ///
    /// # Panics
    /// As [`pssz::Sender::run`].
    ///
    /// # Errors
    /// Those of the protocol.
    pub fn run(self, items: &[Block], channel: &mut Channel) -> Result<()> {
        match self {
            Self::Pssz(mut sender, plan) => sender.run(items, &plan, channel)?,
            Self::Bark(sender, settings) => {
                sender.intersect(&bytes(items), settings, &mut (), channel)?;
            }
        }
        Ok(())
    }
}

/// The party that learns which of its items are common.
pub enum Receiver {
    /// Running PSSZ.
    Pssz(Box<pssz::Receiver>, pssz::Plan),
    /// Running BaRK-OPRF.
    Bark(Box<volery_psi::Receiver>, Settings),
}

impl Receiver {
    /// The part that can run before the items are known, as the peer of [`Sender::setup`].
    ///
    /// # Errors
    /// Those of the protocol.
    pub fn setup(plan: &Plan, session: SessionId, rng: Prg, channel: &mut Channel) -> Result<Self> {
        Ok(match plan {
            Plan::Pssz(plan) => {
                let receiver = pssz::Receiver::setup(session, rng, channel)?;
                Self::Pssz(Box::new(receiver), plan.clone())
            }
            Plan::Bark(settings) => {
                let receiver = volery_psi::Receiver::setup(session, rng, channel)?;
                Self::Bark(Box::new(receiver), *settings)
            }
        })
    }

    /// Finds the common items: their numbers, ascending.
    ///
    /// # Panics
    /// As [`pssz::Receiver::run`].
    ///
    /// # Errors
    /// Those of the protocol.
    pub fn run(self, items: &[Block], channel: &mut Channel) -> Result<Vec<usize>> {
        match self {
            Self::Pssz(mut receiver, plan) => Ok(receiver.run(items, &plan, channel)?),
            Self::Bark(receiver, settings) => {
                let received = receiver.intersect(&bytes(items), settings, &mut (), channel)?;
                Ok(received.common)
            }
        }
    }
}

/// The items in the form that BaRK-OPRF takes.
fn bytes(items: &[Block]) -> Vec<[u8; 16]> {
    items.iter().map(|item| item.to_bytes()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::baselines::cases::cases;

    /// Every row of Table 1: set size, item length, the printed costs of PSSZ and of BaRK-OPRF.
    const TABLE_1: [(u32, u32, f64, usize); 15] = [
        (8, 32, 768.0, 424),
        (8, 64, 1792.0, 424),
        (8, 128, 3840.0, 424),
        (12, 32, 640.0, 432),
        (12, 64, 1664.0, 432),
        (12, 128, 3712.0, 432),
        (16, 32, 576.0, 440),
        (16, 64, 1536.0, 440),
        (16, 128, 3584.0, 440),
        (20, 32, 384.0, 448),
        (20, 64, 1408.0, 448),
        (20, 128, 3456.0, 448),
        (24, 32, 256.0, 448),
        (24, 64, 1280.0, 448),
        (24, 128, 3328.0, 448),
    ];

    #[test]
    fn every_row_of_table_1() {
        for (log, bits, printed, width) in TABLE_1 {
            let items = 1 << log;
            // The row prints 576; 32 * (32 - 16) is 512. The winner is the same.
            let computed = if (log, bits) == (16, 32) {
                512.0
            } else {
                printed
            };
            let cost = pssz_bits(items, bits, Cost::Fractional);
            assert!(
                (cost - computed).abs() < 1e-9,
                "2^{log}, {bits} bits: {cost}"
            );
            let winner = if printed < width as f64 {
                Choice::Pssz
            } else {
                Choice::Bark
            };
            let chosen = choose(items, bits, width, Cost::Fractional);
            assert_eq!(chosen, winner, "2^{log}, {bits} bits");
            // The two rows in bold for PSSZ.
            assert_eq!(winner == Choice::Pssz, bits == 32 && log >= 20);
            let whole = choose(items, bits, width, Cost::Whole);
            assert_eq!(whole == chosen, (log, bits) != (20, 32));
        }
    }

    #[test]
    fn whole_ots_are_those_that_run() {
        for (log, bits, ..) in TABLE_1 {
            // Items that are not shortened first.
            if bits == 32 {
                let sizes = Sizes {
                    sender: 1 << log,
                    receiver: 1 << log,
                };
                let plan = pssz::Plan::new(sizes, bits, HashIndex::Hashed);
                let whole = pssz_bits(1 << log, bits, Cost::Whole);
                assert!((whole - 256.0 * plan.bin_ots() as f64).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn no_length_and_no_set_is_too_small() {
        assert_eq!(choose(0, 1, 424, Cost::Whole), Choice::Pssz);
        assert_eq!(choose(1 << 20, 8, 448, Cost::Fractional), Choice::Pssz);
        assert_eq!(choose(1 << 20, 8, 448, Cost::Whole), Choice::Pssz);
        assert_eq!(choose(1 << 20, 34, 448, Cost::Fractional), Choice::Bark);
    }

    /// The code's width as `volery-psi` computes it is that of Table 1.
    #[test]
    fn widths_are_those_of_the_table() {
        for (log, _, _, width) in TABLE_1 {
            let parameters = Parameters::new(Variant::KkrtPaper, 1 << log, 1 << log);
            assert_eq!(parameters.width, width);
        }
    }

    #[test]
    fn both_protocols_give_the_intersection() {
        let session = SessionId::from_bytes([4; 32]);
        let mut picked = [false; 2];
        // Fifteen bits are few enough for PSSZ with many items.
        for (bits, variant) in [(15, Variant::Kkrt), (64, Variant::KkrtPaper)] {
            for case in cases(bits) {
                let index = HashIndex::Chosen;
                let plan = &Plan::new(case.sizes(), bits, Cost::Whole, variant, index);
                picked[usize::from(matches!(plan, Plan::Bark(_)))] = true;
                let (sent, received) = volery_channel::run_two_parties(
                    |channel| {
                        let rng = Prg::new(Block::new(1));
                        Sender::setup(plan, session, rng, channel)?.run(&case.sender, channel)
                    },
                    |channel| {
                        let rng = Prg::new(Block::new(2));
                        Receiver::setup(plan, session, rng, channel)?.run(&case.receiver, channel)
                    },
                );
                sent.unwrap();
                assert_eq!(received.unwrap(), case.common(), "{}", case.name);
            }
        }
        assert_eq!(picked, [true, true]);
    }
}
