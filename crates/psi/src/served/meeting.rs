//! The exchange before a query: the server names its filter, and the client may fetch it.
//!
//! ```text
//! Server                                       Client
//!    ---- verdict, rest, seconds; label ------>
//!    <-------- 1: fetches, or 0 ---------------
//!    ---- the filter -------------------------->   if it fetches
//! ```
//!
//! A refusal has zeros in place of the label, and ends the connection.

use volery_channel::Channel;

use super::filter::HEADER;
use super::{ANSWERED, Filter, Label, NONE, Refusal, accepted, refused, verdict};
use crate::error::{Error, Result, misbehaved};

/// Server: says which filter it has, and how many items the client may ask for (`None`: no limit).
/// Returns whether the client fetches the filter: then [`Filter::send`] or [`Label::send_file`]
/// follows.
///
/// # Errors
/// If the channel fails, or the client does not follow the protocol.
pub fn greet(label: &Label, left: Option<u64>, channel: &mut Channel) -> Result<bool> {
    channel.send(&verdict(ANSWERED, left.unwrap_or(NONE), None))?;
    channel.send(&label.to_bytes())?;
    let mut choice = [0];
    channel.recv(&mut choice)?;
    match choice {
        [0] => Ok(false),
        [1] => Ok(true),
        // mutant(psi-meeting-choice): insert `_ if $ON => Ok(false),`
        _ => Err(misbehaved("its choice about the filter is none that there is")),
    }
}

/// Server: tells a client why it is not served. The connection then ends.
///
/// # Errors
/// If the channel fails.
pub fn turn_away(refusal: &Refusal, channel: &mut Channel) -> Result<()> {
    channel.send(&refused(refusal))?;
    channel.send(&[0; HEADER])?;
    Ok(channel.flush()?)
}

/// Client: what the server said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The label of its filter.
    pub label: Label,
    /// Items that the client may ask for; `None` if there is no limit.
    pub left: Option<u64>,
}

impl Welcome {
    /// Receives it. A filter with more than `most_items` items is refused.
    ///
    /// # Errors
    /// [`Error::Budget`] or [`Error::Later`] if the server refuses; [`Error::Filter`] if its filter
    /// cannot be used; if the channel fails, or the server does not follow the protocol.
    pub fn receive(most_items: u64, channel: &mut Channel) -> Result<Self> {
        let left = accepted(channel)?;
        let mut label = [0; HEADER];
        channel.recv(&mut label)?;
        let label = Label::from_bytes(&label, most_items)?;
        Ok(Self { label, left })
    }

    /// Fetches the filter.
    ///
    /// # Errors
    /// See [`Filter::receive`]; if it is not the one that the server named.
    pub fn fetch(&self, channel: &mut Channel) -> Result<Filter> {
        channel.send(&[1])?;
        let filter = Filter::receive(self.label.items(), channel)?;
        // mutant(psi-meeting-fetched): false
        if *filter.label() != self.label {
            return Err(misbehaved("its filter is not the one that it named"));
        }
        Ok(filter)
    }

    /// Goes on with a filter from earlier.
    ///
    /// # Errors
    /// [`Error::OtherKey`] or [`Error::OtherVersion`] if it is not the server's; nothing was sent
    /// then. If the channel fails.
    pub fn keep(&self, filter: &Label, channel: &mut Channel) -> Result<()> {
        // mutant(psi-meeting-key): false
        if filter.public() != self.label.public() {
            let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect();
            return Err(Error::OtherKey {
                ours: hex(filter.public()),
                theirs: hex(self.label.public()),
            });
        }
        // mutant(psi-meeting-version): false
        if filter.version() != self.label.version() {
            return Err(Error::OtherVersion);
        }
        Ok(channel.send(&[0])?)
    }
}
