//! The program: its subcommands between two processes, wrong invocations, malicious peers.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod adversary;
mod common;
mod correlations;
mod embed;
mod gateway;
mod lint;
mod lookup;
mod messages;
mod numbers;
mod output;
mod page;
mod params;
mod psi;
mod secrets;
mod serve;
mod shares;
mod tls;
mod totals;
mod web;
mod workers;
