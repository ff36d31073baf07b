//! The role of a party.

use std::fmt;
use std::str::FromStr;

/// The role of a party. Each protocol defines what its sender and receiver hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The sender.
    Sender,
    /// The receiver.
    Receiver,
}

impl Role {
    /// Both roles, in this order.
    pub const ALL: [Self; 2] = [Self::Sender, Self::Receiver];

    /// The role of the peer.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }

    /// The values of this side and the peer as those of sender and receiver, or the other way
    /// round.
    #[must_use]
    pub fn sides<T>(self, [own, peer]: [T; 2]) -> [T; 2] {
        match self {
            Self::Sender => [own, peer],
            Self::Receiver => [peer, own],
        }
    }

    /// The role in one word: in a [`Hello`](crate::Hello), on a command line, in a report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Role {
    type Err = ParseRoleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|role| role.name() == text)
            .ok_or_else(|| ParseRoleError(text.to_owned()))
    }
}

/// A text that is not a [`Role`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a role: use sender or receiver")]
pub struct ParseRoleError(String);
