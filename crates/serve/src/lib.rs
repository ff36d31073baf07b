//! The prepared server: prepares a large table once, keeps it in a store, and answers the
//! queries of many clients within their budgets. Only on Unix: the store has files that only their
//! owner can read.

#![cfg(unix)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod clients;
mod metrics;
mod service;
mod spent;
mod store;

pub use service::{Arguments, ServeOptions, has, run};
