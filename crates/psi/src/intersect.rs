//! Private set intersection: Figure 3 of Kolesnikov, Kumaresan, Rosulek, Trieu, *Efficient Batched
//! Oblivious PRF with Applications to Private Set Intersection*, CCS 2016.
//!
//! ```text
//! Sender (Alice): X                               Receiver (Bob): Y
//! 0. to 3. sizes, seed, cuckoo table, OPRF        (module session)
//! 4. H_i = F_{h_i(x)}(x | i) for i = 1, 2, 3
//!    S_j = F_{bins + j}(x) for each place j of the stash
//!    ------ H_1, H_2, H_3, S_1, .. in pieces ---->
//!                                                 5. y is common if its instance's output is in
//!                                                    the set of its bin, or of its stash place
//! 6. and the end
//! ```
//!
//! The outputs are cut to `v` bits, so that any of the compared pairs is equal by chance only with
//! probability 2^-40. They are sent in pieces of the sender's items, in a secret random order, and
//! within a piece set after set: the receiver looks up a piece while the sender computes the next.
//!
//! Leakage: each party learns the size of the other's set; the receiver learns which of its items
//! the sender has; with [`Settings::both`] the sender learns which of its items the receiver has.
//!
//! Security: **semi-honest**. A receiver that deviates can learn whether the sender has items of
//! its choice beyond the size it stated. A sender that deviates can make the result wrong, and
//! learn from the consequences of a wrong result; it does not learn whether the receiver noticed
//! anything before the receiver has sent all that it sends to an honest sender.
//!
//! Cost: besides the setup, 3 messages from the receiver (commitment, opening with the rows, end)
//! and 2 from the sender (opening, outputs), whose commitment goes with its last one of the setup;
//! `Parameters::row_bytes` and 113 bytes from the receiver, `Parameters::tag_bytes` and 112 from
//! the sender, and with `both` a bit for each item of the sender. If a set is empty, 112 bytes each
//! way.

use volery_channel::Channel;

use crate::error::Result;
use crate::items::Items;
use crate::params::Parameters;
use crate::partition::at_a_time;
use crate::sender_set::{Outputs, PIECE};
use crate::session::{Protocol, Receiver, Sender, Settings};
use crate::truncate::write_cut;
use crate::watch::Watch;

/// The sender's result.
pub type SenderResult = crate::results::SenderResult<Parameters>;

/// The receiver's result.
pub type ReceiverResult = crate::results::ReceiverResult<Parameters>;

impl Sender {
    /// Lets the receiver learn which of its items are among these. The call fixes the items, which
    /// must be distinct.
    ///
    /// # Errors
    /// [`Error::Duplicate`](crate::Error::Duplicate) if two items are equal; if there are too many;
    /// if the channel fails, or the peer does not follow the protocol.
    pub fn intersect(
        self,
        items: &(impl Items + ?Sized),
        settings: Settings,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<SenderResult> {
        let terms = (Protocol::Intersection, settings);
        let mut session = self.begin(items, 0, terms, watch, channel)?;
        let parameters = session.parameters.clone();
        let cut = |set: &mut Outputs| {
            set.message.resize(set.values.len() * parameters.tag, 0);
            let values = set.values.iter().copied();
            write_cut(values, parameters.tag, &mut set.message);
        };
        session.answer_with(watch, cut, |_, _, sets, _| {
            for set in sets {
                channel.send(&set.message)?; // step 4
            }
            channel.flush()?;
            Ok(())
        })?;
        let common = session.end(settings, watch, channel)?;
        Ok(SenderResult { parameters, common })
    }
}

impl Receiver {
    /// Learns which of these items are among the sender's. The call fixes the items, which must be
    /// distinct. Fails as [`Sender::intersect`] does.
    pub fn intersect(
        self,
        items: &(impl Items + ?Sized),
        settings: Settings,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<ReceiverResult> {
        let terms = (Protocol::Intersection, settings);
        let mut session = self.begin(items, terms, None, watch, channel)?;
        let parameters = session.parameters.clone();
        let mut tags = Vec::new();
        let pieces = at_a_time(parameters.sender_items as usize / PIECE);
        session.listen_to(pieces, watch, |session, _, first, places| {
            tags.resize(places * parameters.sets() * parameters.tag, 0);
            channel.recv(&mut tags)?; // step 4
            session.look_up_all(first, places, &tags); // step 5
            Ok(())
        })?;
        let common = session.end(watch, channel)?;
        Ok(ReceiverResult { parameters, common })
    }
}
