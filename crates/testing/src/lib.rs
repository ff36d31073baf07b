//! Adversary tests: every protocol of the library against peers that deviate, stall and disconnect.
//!
//! [`registry`](registry()) lists the protocols as data: the model of each, its two parties with
//! fixed seeds and small sizes, and the relation of their results. Two honest parties always
//! exchange the same messages, so a test can refer to message number `i`. An [`Attack`] tampers
//! with one message.
//!
//! ```
//! use volery_channel::{Channel, Role};
//! use volery_testing::registry;
//!
//! let registry = registry();
//! let mut protocols = registry.iter();
//! let protocol = protocols.find(|of| of.name == "base OT").expect("it is in the registry");
//! let (mut left, mut right) = Channel::memory_pair();
//! let (left, right) = std::thread::scope(|scope| {
//!     let left = scope.spawn(move || protocol.run(Role::Sender, &mut left));
//!     let right = protocol.run(Role::Receiver, &mut right);
//!     (left.join().expect("no panic"), right)
//! });
//! assert!(protocol.agree(&left?, &right?));
//! # Ok::<_, volery_channel::Error>(())
//! ```
//!
//! # Modules
//!
//! * [`registry`](registry()): the protocols of the library, on the [`fixtures`];
//! * [`fault`]: fault injection, a transport that tampers with one message;
//! * [`Attack`]: one attack; [`attacks`]: all attacks on a list of protocols, with bounds on time
//!   and memory;
//! * [`benign`](benign()): benign deviations, with the reason why each is harmless;
//! * [`mod@matches`]: matches of two sets by the protocols for them;
//! * [`honest`]: honest parties agree, and repeat exactly;
//! * [`transcript`]: hashes of the bytes sent, for a table;
//! * [`fuzz`]: fuzz entry points.
//!
//! The functions take lists of [`Protocol`]s, so that another workspace can run its own protocols
//! through the same tests.
//!
//! # Test programs
//!
//! * `all`: agreement, completeness and encodings of the registry; the corpora of the fuzz targets;
//!   the one table of transcripts; worlds that a peer must not tell apart;
//! * `attacks`: every fault of every message, in a process whose heap is measured;
//! * `world`: whole runs, and deviating parties of any protocol, while machines, disks and networks
//!   fail;
//! * `sessions`: hundreds of sessions leave nothing behind in a process.
//!
//! Malicious parties that deviate in one step need private items of their crate. They are unit
//! tests: the modules `malicious` of `volery-pcg` and of `volery-psi` (in `session`), and the tests
//! of `softspoken` in `volery-ot`.

#![forbid(unsafe_code)]

pub mod attacks;
mod benign;
pub mod fault;
pub mod fixtures;
pub mod fuzz;
pub mod honest;
pub mod matches;
mod protocol;
mod registry;
pub mod transcript;
mod trial;

pub use benign::benign;
pub use protocol::{Model, Output, Protocol};
pub use registry::registry;
pub use trial::{Attack, Verdict, changes, messages, silences};
