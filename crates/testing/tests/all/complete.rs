//! The registry is complete: it runs every public function of the library that takes a channel.

mod apart;
mod run;

use std::fs;
use std::path::{Path, PathBuf};

use volery_testing::complete::{Coverage, sources, words};
use volery_testing::registry;

use apart::{NO_PROTOCOL, WITHIN};
use run::RUN;

/// The crates without a channel: the word `Channel` does not occur in them.
const SILENT: [&str; 3] = ["field", "primitives", "tables"];

/// Not of the library: this crate, one of tests alone, and the benchmarks.
const OTHERS: [&str; 3] = ["testing", "leak", "lab"];

/// The crates of the library by name, and their source folders.
fn crates() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let (_, members) = manifest.split_once("members = [").unwrap();
    let (members, _) = members.split_once(']').unwrap();
    let mut folders = Vec::new();
    for member in members.split(',') {
        let member = member.trim().trim_matches('"');
        match member.strip_suffix("/*") {
            None => folders.push(root.join(member)),
            Some(folder) => {
                let entries = fs::read_dir(root.join(folder)).unwrap();
                folders.extend(entries.map(|entry| entry.unwrap().path()));
            }
        }
    }
    folders.retain(|folder| folder.join("Cargo.toml").exists());
    let name = |folder: &Path| folder.file_name().unwrap().to_str().unwrap().to_owned();
    let named = |folder: PathBuf| (name(&folder), folder.join("src"));
    let mut crates: Vec<_> = folders.into_iter().map(named).collect();
    crates.retain(|(name, _)| !OTHERS.contains(&name.as_str()));
    assert!(crates.len() > 8, "{crates:?}");
    crates
}

/// Runs a check on the crates that use a channel.
fn check(run: impl FnOnce(&Coverage<'_>)) {
    let mut crates = crates();
    crates.retain(|(name, _)| !SILENT.contains(&name.as_str()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    run(&Coverage {
        crates: &crates,
        run: RUN,
        no_protocol: NO_PROTOCOL,
        within: WITHIN,
        registry: &[source.join("registry.rs"), source.join("registry")],
    });
}

#[test]
fn every_function_with_a_channel_is_in_the_registry() {
    check(|coverage| {
        // A working scan finds these.
        let found = coverage.functions();
        assert!(found.contains("pcg::cot::Sender::extend") && found.len() > 80);
        coverage.assert_listed(&registry());
    });
}

#[test]
fn silent_crates_do_not_know_the_channel() {
    let crates = crates();
    for name in SILENT {
        let (_, folder) = crates.iter().find(|(of, _)| of == name).unwrap();
        for (path, text) in sources(folder) {
            assert!(!words(&text).any(|word| word == "Channel"), "{path:?}");
        }
    }
}

#[test]
fn every_listed_function_is_called() {
    check(|coverage| coverage.assert_called());
}
