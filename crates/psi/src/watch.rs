//! Progress reports of a run.

/// A phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Waiting for the peer, and agreeing on sizes and a seed.
    Agree,
    /// Hashing this party's items.
    Hash,
    /// Receiver: building the cuckoo table.
    Place,
    /// Sender: shuffling its items, and looking for equal ones.
    Encode,
    /// The setup of the vector OLE.
    Correlate,
    /// The rows of the OPRF, from the receiver to the sender.
    Rows,
    /// The outputs of the OPRF, from the sender to the receiver, which looks for its own.
    Match,
    /// The result, if both parties get it.
    Share,
}

impl Phase {
    /// A short description of the phase.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agree => "agreeing with the peer",
            Self::Hash => "hashing items",
            Self::Place => "placing items",
            Self::Encode => "ordering items",
            Self::Correlate => "making correlations",
            Self::Rows => "oblivious evaluation",
            Self::Match => "matching",
            Self::Share => "sharing the result",
        }
    }
}

/// An observer of a run. `()` ignores all reports.
pub trait Watch {
    /// A phase of `steps` steps begins; the previous phase is over.
    fn begin(&mut self, phase: Phase, steps: u64);

    /// `steps` steps of the phase are done by now.
    fn done(&mut self, steps: u64);

    /// As many items were touched since the last message: work whose amount depends on this
    /// party's items. For tests, which compare what a peer can observe.
    fn touched(&mut self, _items: u64) {}
}

impl Watch for () {
    fn begin(&mut self, _: Phase, _: u64) {}

    fn done(&mut self, _: u64) {}
}
