//! The header says the same as the library.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::status::Status;

const HEADER: &str = include_str!("../include/volery.h");

/// The header without comments.
fn declarations() -> String {
    let mut rest = HEADER;
    let mut text = String::new();
    while let Some((before, comment)) = rest.split_once("/*") {
        text += before;
        rest = comment.split_once("*/").unwrap().1;
    }
    text + rest
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

/// The files of this crate and their texts, except this one.
fn sources() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let paths = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut sources: Vec<_> =
        paths.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect();
    sources.retain(|(name, _)| name != "header.rs");
    sources
}

#[test]
fn every_function_is_in_the_header_and_every_one_there_exists() {
    let declarations = declarations();
    let declared: BTreeSet<_> = declarations
        .split('(')
        .filter_map(|before| words(before).last())
        .filter(|name| name.starts_with("volery_"))
        .collect();
    let sources = sources();
    let marked = |text: &str| text.matches("#[unsafe(no_mangle)]").count();
    let number: usize = sources.iter().map(|(_, text)| marked(text)).sum();
    let exported: BTreeSet<_> = sources
        .iter()
        .flat_map(|(_, text)| text.split("#[unsafe(no_mangle)]\nextern \"C\" fn ").skip(1))
        .filter_map(|rest| words(rest).next())
        .collect();
    assert_eq!(declared, exported);
    assert_eq!(exported.len(), number);
    assert!(number > 25, "{number}");
}

/// The C test calls them, so that it does not compile or fails if an argument is another.
#[test]
fn the_c_test_calls_every_function() {
    let test = include_str!("../tests/interface.c");
    let declarations = declarations();
    for name in declarations.split('(').filter_map(|text| words(text).last()) {
        assert!(!name.starts_with("volery_") || test.contains(&format!("{name}(")), "{name}");
    }
}

/// The number of a constant of the header.
fn constant(name: &str) -> i32 {
    let declarations = declarations();
    let start = format!("{name} = ");
    let (_, rest) = declarations.split_once(&start).unwrap();
    words(rest).next().unwrap().parse().unwrap()
}

#[test]
fn the_statuses_have_the_numbers_of_the_header() {
    let numbers = [Status::Other, Status::Usage, Status::Peer, Status::Network, Status::Settings];
    let names = ["OTHER", "USAGE", "PEER", "NETWORK", "SETTINGS"];
    assert_eq!(constant("VOLERY_OK"), 0);
    for (name, status) in names.into_iter().zip(numbers) {
        assert_eq!(constant(&format!("VOLERY_{name}")), status as i32);
    }
}

#[test]
fn the_version_is_that_of_the_crate() {
    let line = format!("#define VOLERY_VERSION \"{}\"\n", env!("CARGO_PKG_VERSION"));
    assert!(HEADER.contains(&line));
}

#[test]
fn pointers_are_handled_in_one_module() {
    for (name, text) in sources() {
        let code = text.lines().filter(|line| !line.trim().starts_with("//"));
        let unsafe_code = code.filter(|line| {
            words(line).any(|word| word == "unsafe") && line.trim() != "#[unsafe(no_mangle)]"
        });
        assert!(name == "raw.rs" || unsafe_code.count() == 0, "{name}");
    }
}
