//! Benchmarks of volery: a harness, and the evaluation of three papers.
//!
//! The harness runs both parties of a protocol in one process with a link between them, repeats
//! each measurement, and keeps figures that can be compared with published ones, with those of
//! another machine, and with those of another day:
//!
//! | module | |
//! |---|---|
//! | `link` | the link between the parties: loopback, TLS, or a rate and a round-trip time |
//! | `parties` | both parties in two threads, and the stopwatch of each |
//! | `machine` | the speed of the machine, measured in the same run |
//! | `memory` | the allocator settings, and the peak memory of a run |
//! | `measurement` | a key, phases, samples |
//! | `streams` | both parties of a stream of correlations |
//! | `runner` | a list of cells, measured in turn; predicts the duration of a run |
//! | `results` | the file of results, from which an interrupted run continues |
//!
//! `papers` runs the tables and figures of the papers. The folder `published` holds the published
//! figures, one file for each table or figure, with its source, the machine of the paper, and every
//! difference. `lab/tables.py` and `lab/report.py` make tables, plots and pages of the results.

#![forbid(unsafe_code)]

pub mod command;
mod error;
mod link;
mod machine;
mod measurement;
mod memory;
mod papers;
mod parties;
mod published;
mod results;
mod runner;
mod streams;

use error::{Error, Result};
use link::Link;
use machine::Machine;
