//! Errors of cards.

use thiserror::Error;

/// The result of work on a card.
pub type Result<T> = std::result::Result<T, Error>;

/// A card that is not there, or fails.
#[derive(Debug, Error)]
pub enum Error {
    /// There is no driver that runs the kernels. Holds what is wrong.
    #[error("{0}: install the driver of NVIDIA from version 525 on, or compute on the processor")]
    NoDriver(&'static str),

    /// The driver has no card of that number.
    #[error("there is no card number {ordinal}: the driver has {count} (numbers begin with 0)")]
    NoCard {
        /// The number that was asked for.
        ordinal: usize,
        /// The cards that the driver has.
        count: usize,
    },

    /// The card is too old. Holds its compute capability.
    #[error("the card has compute capability {0}, and the kernels need 8.0 (Ampere, from 2020)")]
    OldCard(String),

    /// The card has less free memory than the work needs.
    #[error("the memory of the card is used up: end other programs on it, or take a smaller set")]
    OutOfMemory,

    /// Anything else that the driver reports.
    #[error("the card could not {what}: {error}")]
    Failed {
        /// The work that failed.
        what: &'static str,
        /// The code of the driver.
        error: String,
    },
}
