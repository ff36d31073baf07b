//! The program: its subcommands between two processes, wrong invocations, malicious peers.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod adversary;
mod bad_input;
mod common;
mod cot;
mod embed;
mod gateway;
mod killed;
mod lint;
mod lookup;
mod messages;
mod numbers;
mod page;
mod params;
mod psi;
mod psi_bad_input;
mod psi_join;
mod retailer;
mod serve;
mod serve_load;
mod shares;
mod tls;
mod totals;
mod vole;
mod web;
mod workers;
