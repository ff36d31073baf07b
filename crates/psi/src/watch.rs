//! How a run tells where it is.

/// A part of a run that takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Waiting for the peer, and agreeing on sizes and a seed.
    Agree,
    /// Hashing this party's items.
    Hash,
    /// Receiver: building the cuckoo table.
    Place,
    /// Sender: putting its items in a random order, and looking for equal ones.
    Encode,
    /// The rows of the OPRF, from the receiver to the sender.
    Rows,
    /// The outputs of the OPRF, from the sender to the receiver, who looks for its own.
    Match,
    /// The result, where both parties get it.
    Share,
}

impl Phase {
    /// All of them, in their order in a run.
    pub const ALL: [Self; 7] = [
        Self::Agree,
        Self::Hash,
        Self::Place,
        Self::Encode,
        Self::Rows,
        Self::Match,
        Self::Share,
    ];

    /// What is being done, in a few words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agree => "agreeing with the peer",
            Self::Hash => "hashing items",
            Self::Place => "placing items",
            Self::Encode => "ordering items",
            Self::Rows => "oblivious evaluation",
            Self::Match => "matching",
            Self::Share => "sharing the result",
        }
    }
}

/// Somebody who watches a run. `()` does not look.
pub trait Watch {
    /// A phase begins, of `steps` steps; the one before is over.
    fn begin(&mut self, phase: Phase, steps: u64);

    /// So many steps of the phase are done by now.
    fn done(&mut self, steps: u64);
}

impl Watch for () {
    fn begin(&mut self, _: Phase, _: u64) {}

    fn done(&mut self, _: u64) {}
}
