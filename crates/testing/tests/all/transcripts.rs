//! Transcripts of seeded runs: a change of any byte is detected here, and the row names the
//! protocol.
//!
//! A row of the table has the first 16 bytes of the BLAKE3 hash of the left party's bytes (the
//! sender), the same for the right party (the receiver), and the name of the run. The rows of the
//! registry are its protocols, in its order; those of a crate are larger runs, with all settings of
//! the crate. After an intended change of the wire format, the failing test prints the current
//! rows.

mod ot;
mod pcg;
mod psi;

use volery_channel::Channel;
use volery_primitives::{Block, prg::Prg};
use volery_psi::circuit::Circuit;
use volery_psi::matching::PROTOCOLS;
use volery_psi::vole::Form;
use volery_testing::registry;
use volery_testing::transcript::{self, assert_unchanged, hashes};

const TABLE: &str = include_str!("transcripts/table.txt");

/// The rows below the headline of this name.
fn section(name: &str) -> &'static str {
    let headline = format!("# {name}\n");
    let (_, rows) = TABLE.split_once(&headline).unwrap();
    let end = rows.find("# ").unwrap_or(rows.len());
    &rows[..end]
}

/// The names of the rows of a section.
fn names(section: &'static str) -> impl Iterator<Item = &'static str> {
    section.lines().map(|row| row.splitn(3, ' ').nth(2).unwrap())
}

/// Runs each row of a section, by its name.
fn check(name: &str, run: fn(&str) -> [String; 2]) {
    let table = section(name);
    assert_unchanged(table, names(table).map(|name| (name.to_owned(), run(name))));
}

/// The hashes of two parties with the seeds 1 and 2.
fn seeded(
    sender: impl FnOnce(Prg, &mut Channel) + Send,
    receiver: impl FnOnce(Prg, &mut Channel) + Send,
) -> [String; 2] {
    hashes(
        |channel| sender(Prg::new(Block::from(1)), channel),
        |channel| receiver(Prg::new(Block::from(2)), channel),
    )
}

#[test]
fn no_row_is_left_out() {
    let sections = ["registry", "ot", "pcg", "psi"].map(|name| section(name).lines().count());
    let headlines = sections.len();
    assert_eq!(TABLE.lines().count(), headlines + sections.iter().sum::<usize>());
    assert!(sections.into_iter().all(|rows| rows > 0), "{sections:?}");
}

/// Of every protocol for two sets.
#[test]
fn every_matching_has_a_row() {
    let mut rows = psi::protocols(names(section("psi")));
    for form in Form::ALL {
        let name = format!("circuit, {}", form.name());
        if names(section("registry")).any(|row| row == name) {
            rows.insert(format!("{:?}", Circuit(form)));
        }
    }
    assert_eq!(rows, PROTOCOLS.map(|protocol| format!("{protocol:?}")).into());
}

#[test]
fn the_registry_sends_what_it_sent() {
    let rows = registry().into_iter().map(|protocol| {
        let hashes = transcript::of(&protocol);
        (protocol.name, hashes)
    });
    assert_unchanged(section("registry"), rows);
}

#[test]
fn ot_sends_what_it_sent() {
    check("ot", ot::run);
}

#[test]
fn pcg_sends_what_it_sent() {
    check("pcg", pcg::run);
}

#[test]
fn psi_sends_what_it_sent() {
    check("psi", psi::run);
}
