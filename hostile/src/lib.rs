//! Every protocol of the library, to be run against peers that cheat, stall and go away.
//!
//! [`cast`](cast()) lists the protocols as data: what each promises, its two parties with fixed seeds and small sizes,
//! and what their results must satisfy together. Two honest parties always exchange the same messages, so that a test
//! can count on message number `i`. An [`Attack`] spoils one of them.
//!
//! ```
//! use volery_channel::Channel;
//! use volery_hostile::{Side, cast};
//!
//! let cast = cast();
//! let protocol = cast.iter().find(|protocol| protocol.name == "base OT").expect("it is there");
//! let (mut left, mut right) = Channel::memory_pair();
//! let (left, right) = std::thread::scope(|scope| {
//!     let left = scope.spawn(move || protocol.run(Side::Left, &mut left));
//!     let right = protocol.run(Side::Right, &mut right);
//!     (left.join().expect("no panic"), right)
//! });
//! assert!(protocol.agree(&left?, &right?));
//! # Ok::<_, volery_channel::Error>(())
//! ```

#![forbid(unsafe_code)]

mod cast;
pub mod fuzz;
mod protocol;
mod tolerated;
mod trial;

pub use cast::cast;
pub use protocol::{Model, Output, Protocol, Side};
pub use tolerated::tolerated;
pub use trial::{Attack, Verdict, changes, messages, silences};
