//! Correlated randomness between two parties who do not trust each other, and protocols built on
//! it.
//!
//! Two parties generate correlations, and neither learns the other's part:
//!
//! | | sender | receiver | |
//! |---|---|---|---|
//! | vector OLE ([`vole`]) | vectors `u, v` | random `x`, vector `w` | `w = u*x + v` over a ring |
//! | correlated OT ([`cot`]) | random `delta`, blocks `v` | bits `u`, blocks `w` | `w = v + u*delta` in GF(2)^128 |
//!
//! ```
//! use volery::prelude::*;
//!
//! let plan = vole::plan::<Fp61>(Some(1000), Link::default(), Security::Malicious)?;
//! let (sender, receiver) = run_two_parties(
//!     |channel| {
//!         let mut session = Session::begin(channel, &plan.hello(Role::Sender))?;
//!         let mut sender = vole::Sender::start(&plan, &mut session)?;
//!         let (mut u, mut v) = (vec![Fp61::ZERO; 1000], vec![Fp61::ZERO; 1000]);
//!         sender.extend(&mut u, &mut v, &mut session)?;
//!         Ok::<_, Error>((u, v))
//!     },
//!     |channel| {
//!         let mut session = Session::begin(channel, &plan.hello(Role::Receiver))?;
//!         let mut receiver = vole::Receiver::start(&plan, None, &mut session)?;
//!         let mut w = vec![Fp61::ZERO; 1000];
//!         receiver.extend(&mut w, &mut session)?;
//!         Ok::<_, Error>((receiver.x(), w))
//!     },
//! );
//! let ((u, v), (x, w)) = (sender?, receiver?);
//! assert!((0..1000).all(|i| w[i] == u[i] * x + v[i]));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! Two processes use [`channel::tcp`] on one machine, [`channel::tls`] between two machines, or
//! their own transport ([`channel::Transport`]) in place of
//! [`run_two_parties`](channel::run_two_parties). The examples `gmw`, `quicksilver` and `sessions`
//! are complete programs.
//!
//! # Who holds what
//!
//! | | holds | in [`cot`] | in [`vole`] | as an OT |
//! |---|---|---|---|---|
//! | key holder | `delta` or `x`, and one vector | `Sender` | `Receiver` | sends two messages |
//! | value holder | `u`, and one vector | `Receiver` | `Sender` | chooses one |
//!
//! Both modules have the aliases `KeyHolder` and `ValueHolder`. In a zero-knowledge proof the
//! verifier is the key holder, and `u` are the prover's values.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `tcp` (default) | connections within one machine |
//! | `tls` | connections between two machines; needs a C compiler |
//! | `psi` | private set intersection, private look-ups, the batched OPRF |
//! | `apps` | polynomial evaluation, linear algebra, additions at private indices |
//! | `mpc` | 1-of-N OT, OLE, multiplication triples, saved batches |
//! | `tables` | reads keys from text, Parquet and Arrow files and writes rows |
//! | `matching` | `psi` and `tables`: whole matching runs, as those of the program |
//! | `tokio` | protocols over async streams, inside a tokio runtime |
//! | `testing` | ideal functionalities, tampered channels and assertions for tests; insecure |
//! | `gpu` | correlated OT and vector OLE on CUDA cards; needs NVIDIA's driver at run time only |
//!
//! No feature changes what a protocol does.
//!
//! # Security
//!
//! Malicious security is the default where such a protocol exists; see [`Security`](pcg::Security).
//! `SECURITY.md` in the repository states the assumptions, the levels, and what is not covered.

#![forbid(unsafe_code)]

/// Blocks, AES, hashes, generators, cuckoo hashing.
pub use volery_primitives as primitives;

/// Rings and whole-slice operations.
pub use volery_field as field;

/// The channel between the two parties: transports, handshake, sessions.
pub use volery_channel as channel;

/// Oblivious transfer.
pub use volery_ot as ot;

/// Pseudorandom correlation generators: trees, LPN, plans.
pub use volery_pcg as pcg;

/// Protocols inside a tokio runtime.
#[cfg(feature = "tokio")]
pub use volery_channel::tokio;

pub use volery_pcg::{cot, vole};

/// Correlations whose outputs stay in the memory of a CUDA card.
#[cfg(feature = "gpu")]
pub use volery_pcg::card;

/// Private set intersection, private look-ups, oblivious PRF.
#[cfg(feature = "psi")]
pub use volery_psi as psi;

/// Polynomial evaluation, linear algebra, additions at private indices.
#[cfg(feature = "apps")]
pub use volery_apps as apps;

/// Building blocks of two-party computation: 1-of-N OT, OLE, multiplication triples, saved batches.
#[cfg(feature = "mpc")]
pub use volery_mpc as mpc;

/// Whole matching runs on the records of two tables.
#[cfg(feature = "matching")]
pub use volery_matching as matching;

/// Matching runs that several machines of each side share.
#[cfg(feature = "matching")]
pub use volery_cluster as cluster;

/// Reads keys from text, Parquet and Arrow files and writes rows.
#[cfg(feature = "tables")]
pub use volery_tables as tables;

#[cfg(feature = "testing")]
pub mod testing;

/// The items that most programs use.
pub mod prelude {
    pub use volery_channel::{
        Channel, Error, Hello, Link, Role, Session, SessionId, Transport, handshake, queued,
        run_two_parties, run_two_unchecked,
    };
    pub use volery_field::{
        ConstantTimeEq, ExtensionOf, F2, Field, Fp31, Fp31x4, Fp61, Fp64, Fp64x2, Gf128, Ring, Z64,
    };
    pub use volery_ot::{CotReceiver, CotSender, convert};
    pub use volery_pcg::{
        Device, Kind, Plan, PlanOptions, Security, cot,
        vole::{self, VoleReceiver, VoleRing, VoleSender},
    };
    pub use volery_primitives::{Block, bits, prg::Prg};

    #[cfg(feature = "tcp")]
    pub use volery_channel::tcp;
    #[cfg(feature = "tls")]
    pub use volery_channel::tls;
}

/// The examples of the READMEs, compiled and run by the documentation tests.
#[cfg(doctest)]
mod readmes {
    #[doc = include_str!("../../../README.md")]
    struct RepositoryReadme;

    #[doc = include_str!("../README.md")]
    struct CrateReadme;

    #[doc = include_str!("../../../docs/library.md")]
    struct LibraryGuide;
}
