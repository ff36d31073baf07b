//! Batched oblivious PRF, private set intersection and keyword search.
#![forbid(unsafe_code)]

mod agree;
pub mod code;
mod error;
mod halves;
mod index;
pub mod intersect;
pub mod items;
pub mod lookup;
mod offer;
pub mod oprf;
pub mod params;
mod placement;
mod watch;

pub use error::{Error, Result};
pub use halves::{Receiver, Sender, Settings};
pub use items::Items;
pub use params::{Parameters, Variant};
pub use watch::{Phase, Watch};
