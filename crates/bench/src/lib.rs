//! The benchmark harness: two parties with a link between them, measured again and again, and figures that can be compared
//! with published ones, with those of another machine, and with those of another day.
//!
//! | room | |
//! |---|---|
//! | [`link`] | what lies between the parties: loopback, TLS, a rate and a round trip |
//! | [`parties`] | both parties in two threads, and the watch of each |
//! | [`machine`] | what the machine can do, measured in the same run |
//! | [`measurement`] | what was measured: a key, phases, samples, their median and range |
//! | [`runner`] | a list of cells, measured in turn, as often as asked for; what would take too long is foretold |
//! | [`results`] | the file of it all, which an interrupted run goes on from |
//! | [`compare`] | what got faster or slower between two such files |
//! | [`page`] | tables and plots as text, HTML, SVG, Markdown and CSV |
//!
//! What is measured is said elsewhere: a [`runner::Cell`] brings a function that runs both parties once and gives a
//! [`measurement::Sample`].

#![forbid(unsafe_code)]

pub mod compare;
mod error;
pub mod link;
pub mod machine;
pub mod measurement;
pub mod page;
pub mod parties;
pub mod results;
pub mod runner;

pub use error::{Error, Result};
pub use link::Link;
pub use machine::Machine;
