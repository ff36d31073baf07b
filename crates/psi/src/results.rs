//! The results of the parties after a run: the same for all protocols, whose parameters are `P`.

use std::fmt;

use volery_channel::Stats;

use crate::matching::{Outcome, Parameters};

/// The sender's result of an intersection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderResult<P> {
    /// The sizes and the parameters derived from them.
    pub parameters: P,
    /// The numbers of its items that are common, ascending, if both parties get the result.
    pub common: Option<Vec<usize>>,
}

/// The receiver's result of an intersection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverResult<P> {
    /// The sizes and the parameters derived from them.
    pub parameters: P,
    /// The numbers of its items that are common, ascending.
    pub common: Vec<usize>,
}

/// The sender's result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupSenderResult<P> {
    /// The sizes and the parameters derived from them.
    pub parameters: P,
    /// Bytes of the longest value, which the receiver learns.
    pub longest: usize,
    /// The numbers of its keywords that were found, ascending, if both parties get the result.
    pub found: Option<Vec<usize>>,
}

/// The receiver's result of a search. `Debug` shows no value.
#[derive(Clone, PartialEq, Eq)]
pub struct LookupReceiverResult<P> {
    /// The sizes and the parameters derived from them.
    pub parameters: P,
    /// Bytes of the sender's longest value.
    pub longest: usize,
    /// The numbers of its keywords that the sender has, ascending.
    pub items: Vec<usize>,
    /// The value of each, in the same order.
    pub values: Vec<Vec<u8>>,
}

impl<P> fmt::Debug for LookupReceiverResult<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LookupReceiverResult({} values, ..)", self.values.len())
    }
}

impl<P: Parameters + 'static> From<SenderResult<P>> for Outcome {
    fn from(sent: SenderResult<P>) -> Self {
        Self { common: sent.common, ..Self::with(sent.parameters) }
    }
}

impl<P: Parameters + 'static> From<ReceiverResult<P>> for Outcome {
    fn from(received: ReceiverResult<P>) -> Self {
        Self { common: Some(received.common), ..Self::with(received.parameters) }
    }
}

impl<P: Parameters + 'static> From<LookupSenderResult<P>> for Outcome {
    fn from(answered: LookupSenderResult<P>) -> Self {
        Self {
            common: answered.found,
            longest: Some(answered.longest),
            ..Self::with(answered.parameters)
        }
    }
}

impl<P: Parameters + 'static> From<LookupReceiverResult<P>> for Outcome {
    fn from(found: LookupReceiverResult<P>) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_value() {
        let values = vec![b"SECRET".to_vec()];
        let found = LookupReceiverResult { parameters: (), longest: 6, items: vec![0], values };
        for text in [format!("{found:?}"), format!("{found:#?}")] {
            assert_eq!(text, "LookupReceiverResult(1 values, ..)");
        }
    }
}
