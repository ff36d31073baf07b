//! Private matching of the records of two tables.
//!
//! The sender has a table, the receiver another one. The receiver gets its rows whose keys are
//! among the sender's, in a *lookup* with columns of the sender. Module [`run`](mod@run) has the
//! steps, and what each side learns.
//!
//! ```
//! use volery_channel::{Role, run_two_parties};
//! use volery_matching::{Columns, StorageOptions, ProtocolChoice, Settings, PreparedTable, Operation};
//! use volery_tables::{Format, Inputs, Packing, Reading, Rule, Table};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = |name: &str| folder.path().join(name);
//! std::fs::write(path("sender.csv"), "mail,city\nada@x.org,Rome\nkurt@x.org,Oslo\n")?;
//! std::fs::write(path("receiver.csv"), "id,email\n1,zoe@x.org\n2,ADA@x.org\n")?;
//! let side = |role, name: &str, rule: &str, values: &[&str]| {
//!     let table = Table::open(&Inputs { paths: vec![path(name)], ..Inputs::default() })?;
//!     let reading = Reading {
//!         rules: vec![Rule::parse(rule)?],
//!         values: values.iter().map(|name| name.to_string()).collect(),
//!         ..Reading::default()
//!     };
//!     let protocol = ProtocolChoice::Auto;
//!     let settings = Settings::new(Operation::Lookup, role, protocol, None, false, None)?;
//!     let storage = StorageOptions::default();
//!     let side = PreparedTable::read(&table, &reading, &settings, &storage, &mut ())?;
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>((table, side))
//! };
//! let (_, sender) = side(Role::Sender, "sender.csv", "mail:lower", &["city"])?;
//! let (table, receiver) = side(Role::Receiver, "receiver.csv", "email:lower", &[])?;
//! let (sent, received) = run_two_parties(
//!     |channel| sender.run(channel, &mut ()),
//!     |channel| receiver.run(channel, &mut ()),
//! );
//! sent?;
//! let matches = received?.matches.expect("the receiver gets rows");
//! let mut out = Vec::new();
//! let format = (Format::Csv, Packing::None);
//! matches.write(&table, &Columns::default(), &mut out, format, &mut ())?;
//! assert_eq!(out, b"id,email,city\n2,ADA@x.org,Rome\n");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod agree;
mod agreement;
mod error;
mod folder;
mod keyed;
mod keys;
mod matches;
pub mod options;
mod output;
mod parameters;
mod parts;
mod plan;
mod progress;
mod protocol_choice;
pub mod run;
pub mod served;
mod settings;
pub mod shares;
mod side;
pub mod steps;
mod system;
pub mod totals;

pub use agreement::MAX_BUCKETS;
pub use error::{ATTEMPTS, Error, KeyError, Result, ValueError};
pub use folder::Finish;
pub use keyed::Summary;
pub use matches::Matches;
pub use options::{Options, ResultKind};
pub use output::{Columns, WriteError, WrittenRows};
pub use parameters::{Parameters, Partitioning, revealed};
pub use plan::Plan;
pub use progress::Progress;
pub use run::{Choice, Outcome};
pub use settings::{
    BOTH, KEYS, NAMES, Operation, PROGRESS, ProtocolChoice, RESULT, Settings, SettingsError,
};
pub use side::{MAX_RULES, PreparedTable, StorageOptions};
