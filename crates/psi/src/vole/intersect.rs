//! Private set intersection.

use volery_channel::{Channel, Role};

use super::{INTERSECTION, Parameters, Party, Receiver, Sender, Settings};
use crate::error::Result;
use crate::items::Items;
use crate::watch::Watch;

/// The sender's result.
pub type SenderResult = crate::results::SenderResult<Parameters>;

/// The receiver's result.
pub type ReceiverResult = crate::results::ReceiverResult<Parameters>;

impl Sender {
    /// Lets the receiver learn which of its items are among these. The call fixes the items, which
    /// must be distinct.
    ///
    /// # Panics
    /// If both are to learn the result of the malicious form.
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
        let (parameters, common) = self.party.intersect(items, settings, watch, channel)?;
        Ok(SenderResult { parameters, common })
    }
}

impl Receiver {
    /// Learns which of these items are among the sender's. The call fixes the items, which must be
    /// distinct. Fails and panics as [`Sender::intersect`] does.
    pub fn intersect(
        self,
        items: &(impl Items + ?Sized),
        settings: Settings,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<ReceiverResult> {
        let (parameters, common) = self.party.intersect(items, settings, watch, channel)?;
        let common = common.expect("the receiver learns the result");
        Ok(ReceiverResult { parameters, common })
    }
}

impl Party {
    /// The parameters and, if this party learns them, the numbers of its common items.
    fn intersect(
        self,
        items: &(impl Items + ?Sized),
        settings: Settings,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<(Parameters, Option<Vec<usize>>)> {
        let terms = (INTERSECTION, settings);
        let begun = self.begin(items, 0, terms, watch, channel)?;
        let parameters = begun.parameters.clone();
        let mut done = begun.evaluate(false, watch, channel)?;
        let evaluates = (done.role == Role::Sender) != parameters.exchanged;
        let common = if !evaluates {
            let matches = done.find(watch, channel)?;
            Some(done.end_encoding(&matches, settings.both, watch, channel)?)
        } else if settings.both {
            let tags = done.send_placed_tags(watch, channel)?;
            done.end_evaluating(Some(&tags), watch, channel)?
        } else {
            done.send_tags(watch, channel)?;
            done.end_evaluating(None, watch, channel)?
        };
        Ok((parameters, common))
    }
}
