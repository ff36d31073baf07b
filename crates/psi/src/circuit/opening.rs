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
use super::{COMPARISONS, Opener, Recipient, at_least, call, gmw, open, part};
use crate::error::Result;
use crate::vole::Form;

/// A party that compares and opens. A failed call wipes it, and every later one is refused.
pub struct Opening {
    role: Role,
    state: Option<Box<State>>,
}

struct State {
    gates: Option<Gates>,
    /// Comparisons that are left.
    left: usize,
}

/// The gates of the sender, and of the receiver.
#[allow(clippy::large_enum_variant, reason = "a run has one of these")]
enum Gates {
    Sender(gmw::Receiver),
    Receiver(gmw::Sender),
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

impl Opening {
    /// Prepares as many comparisons, the same number and form at both parties, for a session that
    /// no other object uses and this party's role and randomness.
    ///
    /// # Panics
    /// If the form is the malicious one, or there are more than [`COMPARISONS`].
    ///
    /// # Errors
    /// If the channel fails, or the peer does not follow the protocol.
    pub fn setup(
        role: Role,
        comparisons: usize,
        form: Form,
        (session, rng): (SessionId, Prg),
        channel: &mut Channel,
    ) -> Result<Self> {
        let session = part(session, "opening");
        let gates = match (plan(comparisons, form), role) {
            (None, _) => None,
            (Some(plan), Role::Sender) => {
                Some(Gates::Sender(gmw::Receiver::setup(&plan, session, rng, channel)?))
            }
            (Some(plan), Role::Receiver) => {
                Some(Gates::Receiver(gmw::Sender::setup(&plan, session, rng, channel)?))
            }
        };
        let state = Some(Box::new(State { gates, left: comparisons }));
        Ok(Self { role, state })
    }
}

impl Opener for Opening {
    fn at_least(&mut self, share: u64, least: u64, channel: &mut Channel) -> Result<bool> {
        call(&mut self.state, |state| {
            assert!(state.left > 0, "more comparisons than were set up");
            state.left -= 1;
            match state.gates.as_mut().expect("there are comparisons") {
                Gates::Sender(gates) => at_least(gates, share, least, channel),
                Gates::Receiver(gates) => at_least(gates, share, least, channel),
            }
        })
    }

    fn open(
        &mut self,
        shares: &[u64],
        to: Recipient,
        channel: &mut Channel,
    ) -> Result<Option<Vec<u64>>> {
        call(&mut self.state, |_| open(self.role, shares, to, channel))
    }
}

#[cfg(test)]
mod tests {
    use volery_channel::run_two_parties_with_stats;
    use volery_primitives::Block;

    use super::*;

    /// The answers that a party gets: each total compared with each bound, and the opened totals.
    type Learned = (Vec<bool>, Option<Vec<u64>>);

    /// Both parties, and the bytes in both directions.
    fn run(shares: [&[u64]; 2], least: &[u64], form: Form, to: Recipient) -> ([Learned; 2], u64) {
        let party = |role: Role, channel: &mut Channel| {
            let shares = shares[role as usize];
            let own = (SessionId::from_bytes([9; 32]), Prg::new(Block::new(role as u128)));
            let count = shares.len() * least.len();
            let mut party = Opening::setup(role, count, form, own, channel).unwrap();
            let mut said = Vec::new();
            for share in shares {
                for least in least {
                    said.push(party.at_least(*share, *least, channel).unwrap());
                }
            }
            (said, party.open(shares, to, channel).unwrap())
        };
        let ((sent, stats), (received, _)) = run_two_parties_with_stats(
            |channel| party(Role::Sender, channel),
            |channel| party(Role::Receiver, channel),
        );
        ([sent, received], stats.bytes_sent + stats.bytes_received)
    }

    /// Comparisons of each total with each bound, and the opening.
    #[test]
    fn comparisons_and_openings_are_those_of_the_sums() {
        let totals = [0_u64, 1, 4, 5, 1 << 31, (1 << 31) + 1, (1 << 62) + 5, (-3_i64) as u64];
        let least = [0_u64, 1, 5, 1 << 31, (1 << 31) + 1, (1 << 62) + 5, (1 << 63) - 3];
        let masked = |total: &u64| 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(total | 1);
        let left = totals.each_ref().map(masked);
        let right = totals.each_ref().map(|total| total.wrapping_sub(masked(total)));
        let compared =
            totals.iter().flat_map(|total| least.map(|least| *total as i64 >= least as i64));
        let compared: Vec<_> = compared.collect();
        for form in [Form::Fast, Form::Low] {
            for to in [Recipient::Sender, Recipient::Receiver, Recipient::Both] {
                let (learned, _) = run([&left, &right], &least, form, to);
                let gets = [to != Recipient::Receiver, to != Recipient::Sender];
                for ((said, opened), gets) in learned.into_iter().zip(gets) {
                    assert_eq!(said, compared);
                    assert_eq!(opened, gets.then(|| totals.to_vec()));
                }
            }
        }
    }

    #[test]
    fn without_comparisons_only_the_opening_is_sent_and_its_length_depends_on_no_value() {
        let sent =
            |share: u64, least: &[u64]| run([&[share], &[0]], least, Form::Fast, Recipient::Both).1;
        assert_eq!(sent(1, &[]), 16);
        assert_eq!(sent(1, &[3, 3]), sent(1 << 40, &[3, 3]));
    }
}
