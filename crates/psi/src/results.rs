//! What the parties have after a run: the same for all protocols, whose parameters are `P`.

use std::fmt;

/// The sender's result of an intersection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent<P> {
    /// The sizes and the parameters derived from them.
    pub parameters: P,
    /// The numbers of its items that are common, ascending, if both parties get the result.
    pub common: Option<Vec<usize>>,
}

/// The receiver's result of an intersection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received<P> {
    /// The sizes and the parameters derived from them.
    pub parameters: P,
    /// The numbers of its items that are common, ascending.
    pub common: Vec<usize>,
}

/// The sender's result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered<P> {
    /// The sizes and the parameters derived from them.
    pub parameters: P,
    /// Bytes of the longest value, which the receiver learns.
    pub longest: usize,
    /// The numbers of its keywords that were found, ascending, if both parties get the result.
    pub found: Option<Vec<usize>>,
}

/// The receiver's result of a search. `Debug` shows no value.
#[derive(Clone, PartialEq, Eq)]
pub struct Found<P> {
    /// The sizes and the parameters derived from them.
    pub parameters: P,
    /// Bytes of the sender's longest value.
    pub longest: usize,
    /// The numbers of its keywords that the sender has, ascending.
    pub items: Vec<usize>,
    /// The value of each, in the same order.
    pub values: Vec<Vec<u8>>,
}

impl<P> fmt::Debug for Found<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Found({} values, ..)", self.values.len())
    }
}
