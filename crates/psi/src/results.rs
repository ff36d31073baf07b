//! The results of the parties after a run: the same for all protocols, whose parameters are `P`.

use std::fmt;

use volery_channel::Stats;

use crate::matching::{Outcome, Parameters};

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

impl<P: Parameters + 'static> From<Sent<P>> for Outcome {
    fn from(sent: Sent<P>) -> Self {
        Self { common: sent.common, ..Self::with(sent.parameters) }
    }
}

impl<P: Parameters + 'static> From<Received<P>> for Outcome {
    fn from(received: Received<P>) -> Self {
        Self { common: Some(received.common), ..Self::with(received.parameters) }
    }
}

impl<P: Parameters + 'static> From<Answered<P>> for Outcome {
    fn from(answered: Answered<P>) -> Self {
        Self {
            common: answered.found,
            longest: Some(answered.longest),
            ..Self::with(answered.parameters)
        }
    }
}

impl<P: Parameters + 'static> From<Found<P>> for Outcome {
    fn from(found: Found<P>) -> Self {
        Self {
            common: Some(found.items),
            values: found.values,
            longest: Some(found.longest),
            ..Self::with(found.parameters)
        }
    }
}

impl Outcome {
    /// These parameters, and no result.
    pub(crate) fn with(parameters: impl Parameters + 'static) -> Self {
        Self {
            parameters: Box::new(parameters),
            common: None,
            values: Vec::new(),
            longest: None,
            count: None,
            setup: Stats::default(),
        }
    }
}
