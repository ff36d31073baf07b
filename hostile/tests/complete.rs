//! No protocol is forgotten: every public function of the library that talks is run by a member of the cast.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "complete/apart.rs"]
mod apart;
#[path = "complete/run.rs"]
mod run;
#[path = "complete/scan.rs"]
mod scan;

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use apart::{NO_PROTOCOL, WITHIN};
use run::RUN;
use scan::{collect, sources, words};
use volery_hostile::cast;

/// The crates that do not talk: the word `Channel` is nowhere in them.
const SILENT: [&str; 3] = ["field", "primitives", "records"];

/// The crates of the workspace by name, but for this one, and their source folders.
fn crates() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let members = r#"members = ["crates/*", "experiments", "hostile"]"#;
    assert!(manifest.contains(members), "other members: scan them, too");
    let mut folders = vec![root.join("experiments")];
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        folders.push(entry.unwrap().path());
    }
    folders.retain(|folder| folder.join("Cargo.toml").exists());
    let name = |folder: &Path| folder.file_name().unwrap().to_str().unwrap().to_owned();
    folders
        .into_iter()
        .map(|folder| (name(&folder), folder.join("src")))
        .collect()
}

#[test]
fn every_function_that_talks_is_in_the_cast() {
    let mut found = BTreeSet::new();
    for (name, folder) in crates() {
        if !SILENT.contains(&name.as_str()) {
            collect(&name, &folder, &mut found);
        }
    }
    // What this scan must see, or it sees nothing.
    assert!(found.contains("pcg::cot::Sender::extend") && found.len() > 80);

    let members: HashSet<_> = cast().into_iter().map(|protocol| protocol.name).collect();
    let mut listed = BTreeSet::new();
    for (member, functions) in RUN {
        assert!(members.contains(*member), "{member:?} is not in the cast");
        listed.extend(functions.iter().map(|function| (*function).to_owned()));
    }
    for (_, functions) in NO_PROTOCOL {
        listed.extend(functions.iter().map(|function| (*function).to_owned()));
    }
    let missing: Vec<_> = found.difference(&listed).collect();
    assert!(
        missing.is_empty(),
        "these functions talk to a peer, and nothing attacks them: {missing:#?}\nAdd a protocol that calls each of them to \
         hostile/src/cast, and a row to the table RUN of this test; or, if it is no protocol, a row with the reason to \
         NO_PROTOCOL."
    );
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(
        gone.is_empty(),
        "these functions are listed here and are nowhere: {gone:#?}\nTake them out of the tables."
    );
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

/// A function of the table is called: a file of the cast calls its name and has the one before it, of its type or its
/// module. Those that are called from within are called in the file that is named.
#[test]
fn what_is_listed_is_called() {
    let hostile = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut texts: Vec<_> = sources(&hostile.join("cast"))
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    texts.push(fs::read_to_string(hostile.join("cast.rs")).unwrap());
    let crates = crates();
    let mut inner: BTreeSet<&str> = BTreeSet::new();
    for (file, functions) in WITHIN {
        let (name, rest) = file.split_once('/').unwrap();
        let (_, folder) = crates.iter().find(|(of, _)| of == name).unwrap();
        let text = fs::read_to_string(folder.join(rest)).unwrap();
        for function in *functions {
            let name = function.rsplit("::").next().unwrap();
            assert!(scan::calls(&text, name), "{file} does not call {function}");
            inner.insert(function);
        }
    }
    let mut uncalled = Vec::new();
    for function in RUN.iter().flat_map(|(_, functions)| *functions) {
        let mut path = function.rsplit("::");
        let (name, owner) = (path.next().unwrap(), path.next().unwrap());
        let direct = texts
            .iter()
            .any(|text| scan::calls(text, name) && words(text).any(|word| word == owner));
        if !direct && !inner.remove(function) {
            uncalled.push(function);
        }
    }
    assert!(
        uncalled.is_empty(),
        "no member of the cast calls these: {uncalled:#?}"
    );
    assert!(inner.is_empty(), "these need no row in WITHIN: {inner:#?}");
}
