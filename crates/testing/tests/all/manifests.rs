//! No build of the library or the program includes test tools.

use std::fs;
use std::path::Path;

/// The feature `testing` makes faults, transcripts, the trusted dealer, seeds in place of the
/// system's randomness and messages of dishonest senders public. A crate enables it among its
/// dev-dependencies only. This crate, itself a dev-dependency only, always enables it. The feature
/// `simulation` is for the worlds of this crate's tests alone.
#[test]
fn only_tests_enable_the_feature_testing() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut with_feature = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else {
            continue;
        };
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let mut section = "";
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            }
            if section == "[features]" && line.starts_with("testing =") {
                // That of the library hands them on, to the tests of programs.
                let tools = line.matches("volery-").count() == line.matches("/testing\"").count();
                assert!(tools, "{name}: it adds tools of tests and nothing else");
                with_feature.push(name.clone());
                continue;
            }
            let of_tests = section == "[dev-dependencies]" || name == "testing";
            let asks = line.contains("\"testing\"") || line.contains("volery-testing.workspace");
            assert!(of_tests || !asks, "{name}: {section} {line}");
            let of_worlds = section == "[dev-dependencies]" && name == "testing";
            assert!(of_worlds || !line.contains("\"simulation\""), "{name}: {section} {line}");
        }
    }
    with_feature.sort();
    assert_eq!(with_feature, ["channel", "ot", "pcg", "primitives", "psi", "volery"]);
}
