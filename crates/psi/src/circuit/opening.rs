//! Opening shares that other executions computed: an execution without items, for sums of shares of
//! several ones.
//!
//! ```text
//! 1. correlated OTs for the comparisons          (module gmw)
//! 2. whether a shared value is at least a bound  <-->
//! 3. shared values, to whom they are for         <-->
//! ```
//!
//! The roles, the comparison and the opening are those of [`circuit`](super): a party that was its
//! sender is the sender here.
//!
//! Security: semi-honest, as there.
//!
//! Cost: that of a setup of correlated OTs, if there is a comparison; then as there.

use volery_channel::{Channel, Role, SessionId};
use volery_pcg::{Kind, Plan, PlanOptions};
use volery_primitives::prg::Prg;

use super::params::LINK;
use super::{COMPARISONS, Recipient, call, gmw, open, open_bit, part};
use crate::error::Result;
use crate::vole::Form;

/// The party that was the sender. A failed call wipes it, and every later one is refused.
pub struct Sender {
    state: Option<Box<Gates<gmw::Receiver>>>,
}

/// The party that was the receiver. As [`Sender`].
pub struct Receiver {
    state: Option<Box<Gates<gmw::Sender>>>,
}

struct Gates<P> {
    party: Option<P>,
    /// Comparisons that are left.
    left: usize,
}

/// The plan of the correlated OTs; `None` without comparisons.
fn plan(comparisons: usize, form: Form) -> Option<Plan> {
    assert!(form != Form::Malicious, "there is no malicious form");
    assert!(comparisons <= COMPARISONS, "more than COMPARISONS comparisons");
    let options = PlanOptions {
        total: Some((comparisons * gmw::COMPARISON) as u64),
        security: form.security(),
        link: LINK,
        protocol: form.protocol(),
        ..PlanOptions::default()
    };
    let first = || {
        let candidates = Plan::candidates(Kind::Cot, &options);
        let candidates = candidates.expect("correlated OT has a plan for either security");
        candidates.into_iter().next().map(|best| best.plan)
    };
    (comparisons > 0).then(|| first().expect("`candidates` returns one plan at least"))
}

impl<P: gmw::Party> Gates<P> {
    /// A share of whether the sum of both inputs is negative.
    fn is_negative(&mut self, input: u64, channel: &mut Channel) -> Result<bool> {
        assert!(self.left > 0, "more comparisons than were set up");
        self.left -= 1;
        let party = self.party.as_mut().expect("there are comparisons");
        Ok(gmw::is_negative(party, input, channel)?)
    }
}

impl Sender {
    /// Prepares as many comparisons, the same number and form at both parties, for a session that
    /// no other object uses and this party's randomness.
    ///
    /// # Panics
    /// If the form is the malicious one, or there are more than [`COMPARISONS`].
    ///
    /// # Errors
    /// If the channel fails, or the peer does not follow the protocol.
    pub fn setup(
        comparisons: usize,
        form: Form,
        (session, rng): (SessionId, Prg),
        channel: &mut Channel,
    ) -> Result<Self> {
        let session = part(session, "opening");
        let party = match plan(comparisons, form) {
            None => None,
            Some(plan) => Some(gmw::Receiver::setup(&plan, session, rng, channel)?),
        };
        let left = comparisons;
        let state = Some(Box::new(Gates { party, left }));
        Ok(Self { state })
    }

    /// Like [`circuit::Sender::at_least`](super::Sender::at_least).
    ///
    /// # Panics
    /// If `least` is `2^63` or more, or there are more calls than comparisons were set up.
    ///
    /// # Errors
    /// See [`setup`](Self::setup); an error of the channel if an earlier call failed.
    pub fn at_least(&mut self, share: u64, least: u64, channel: &mut Channel) -> Result<bool> {
        assert!(least < 1 << 63, "a bound below 2^63");
        call(&mut self.state, |gates| {
            let negative = gates.is_negative(share.wrapping_sub(least), channel)?;
            open_bit(!negative, channel)
        })
    }

    /// Like [`circuit::Sender::open`](super::Sender::open).
    ///
    /// # Errors
    /// See [`at_least`](Self::at_least).
    pub fn open(
        &mut self,
        shares: &[u64],
        to: Recipient,
        channel: &mut Channel,
    ) -> Result<Option<Vec<u64>>> {
        call(&mut self.state, |_| open(Role::Sender, shares, to, channel))
    }
}

impl Receiver {
    /// Like [`Sender::setup`].
    ///
    /// # Panics
    /// See [`Sender::setup`].
    ///
    /// # Errors
    /// See [`Sender::setup`].
    pub fn setup(
        comparisons: usize,
        form: Form,
        (session, rng): (SessionId, Prg),
        channel: &mut Channel,
    ) -> Result<Self> {
        let session = part(session, "opening");
        let party = match plan(comparisons, form) {
            None => None,
            Some(plan) => Some(gmw::Sender::setup(&plan, session, rng, channel)?),
        };
        let left = comparisons;
        let state = Some(Box::new(Gates { party, left }));
        Ok(Self { state })
    }

    /// Like [`Sender::at_least`].
    ///
    /// # Panics
    /// See [`Sender::at_least`].
    ///
    /// # Errors
    /// See [`Sender::at_least`].
    pub fn at_least(&mut self, share: u64, least: u64, channel: &mut Channel) -> Result<bool> {
        assert!(least < 1 << 63, "a bound below 2^63");
        call(&mut self.state, |gates| {
            let negative = gates.is_negative(share, channel)?;
            open_bit(negative, channel)
        })
    }

    /// Like [`Sender::open`].
    ///
    /// # Errors
    /// See [`Sender::at_least`].
    pub fn open(
        &mut self,
        shares: &[u64],
        to: Recipient,
        channel: &mut Channel,
    ) -> Result<Option<Vec<u64>>> {
        call(&mut self.state, |_| open(Role::Receiver, shares, to, channel))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use volery_channel::{run_two_parties, run_two_parties_with_stats};
    use volery_primitives::Block;

    use super::*;

    const SESSION: SessionId = SessionId::from_bytes([9; 32]);

    fn rng(seed: u128) -> Prg {
        Prg::new(Block::new(seed))
    }

    /// Comparisons of each total with each bound, and the opening.
    #[test]
    fn comparisons_and_openings_are_those_of_the_sums() {
        let totals = [0_u64, 1, 4, 5, 6, 1 << 62, (-3_i64) as u64];
        let least = [5_u64, 0, 1 << 40];
        for form in [Form::Fast, Form::Low] {
            for to in [Recipient::Sender, Recipient::Receiver, Recipient::Both] {
                let mask = 0x9e37_79b9_7f4a_7c15_u64;
                let (left, right): (Vec<_>, Vec<_>) = totals
                    .iter()
                    .map(|total| (mask.wrapping_mul(*total | 1), *total))
                    .map(|(share, total)| (share, total.wrapping_sub(share)))
                    .unzip();
                let count = totals.len() * least.len();
                let ((said, opened), (heard, gotten)) = run_two_parties(
                    |channel| {
                        let own = (SESSION, rng(1));
                        let mut party = Sender::setup(count, form, own, channel).unwrap();
                        let mut said = Vec::new();
                        for share in &left {
                            for least in least {
                                said.push(party.at_least(*share, least, channel).unwrap());
                            }
                        }
                        (said, party.open(&left, to, channel).unwrap())
                    },
                    |channel| {
                        let own = (SESSION, rng(2));
                        let mut party = Receiver::setup(count, form, own, channel).unwrap();
                        let mut said = Vec::new();
                        for share in &right {
                            for least in least {
                                said.push(party.at_least(*share, least, channel).unwrap());
                            }
                        }
                        (said, party.open(&right, to, channel).unwrap())
                    },
                );
                let expected: Vec<_> = totals
                    .iter()
                    .flat_map(|total| least.map(|least| *total as i64 >= least as i64))
                    .collect();
                assert_eq!(said, expected);
                assert_eq!(heard, expected);
                assert_eq!(opened.is_some(), to != Recipient::Receiver);
                assert_eq!(gotten.is_some(), to != Recipient::Sender);
                for opened in [opened, gotten].into_iter().flatten() {
                    assert_eq!(opened, totals);
                }
            }
        }
    }

    #[test]
    fn without_comparisons_only_the_opening_is_sent_and_its_length_depends_on_no_value() {
        let sent = |share: u64, comparisons: usize| {
            let own = |seed| (SESSION, rng(seed));
            let ((_, stats), _) = run_two_parties_with_stats(
                |channel| {
                    let mut party =
                        Sender::setup(comparisons, Form::Fast, own(1), channel).unwrap();
                    for _ in 0..comparisons {
                        party.at_least(share, 3, channel).unwrap();
                    }
                    party.open(&[share], Recipient::Both, channel).unwrap();
                },
                |channel| {
                    let mut party =
                        Receiver::setup(comparisons, Form::Fast, own(2), channel).unwrap();
                    for _ in 0..comparisons {
                        party.at_least(0, 3, channel).unwrap();
                    }
                    party.open(&[0], Recipient::Both, channel).unwrap();
                },
            );
            [stats.bytes_sent, stats.bytes_received]
        };
        assert_eq!(sent(1, 0), [8, 8]);
        assert_eq!(sent(1, 2), sent(1 << 40, 2));
    }
}
