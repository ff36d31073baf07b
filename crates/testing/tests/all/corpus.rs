//! Runs every input of the corpora in `fuzz/corpus` without a fuzzer.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use volery_testing::fuzz::TARGETS;

/// The most bytes that all corpora together may have.
const LIMIT: u64 = 200_000;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn no_input_of_a_corpus_breaks_a_guarantee() {
    let mut bytes = 0;
    for (target, run) in TARGETS {
        let folder = fuzz().join("corpus").join(target);
        let inputs = names(&folder);
        assert!(inputs.len() > 10, "{target} has {} inputs", inputs.len());
        for name in inputs {
            let input = fs::read(folder.join(&name)).unwrap();
            bytes += input.len() as u64;
            let result = catch_unwind(|| run(&input));
            assert!(result.is_ok(), "{target}/{name}, see above");
        }
    }
    assert!(bytes <= LIMIT, "the corpora have {bytes} bytes");
}

#[test]
fn no_input_is_too_short() {
    for (_, run) in TARGETS {
        for n in 0..8 {
            run(&[0x55; 8][..n]);
            run(&[0xff; 8][..n]);
        }
    }
}

#[test]
fn every_target_is_handed_to_the_fuzzer() {
    let mut expected: Vec<_> = TARGETS.map(|(name, _)| format!("{name}.rs")).into();
    expected.sort();
    assert_eq!(names(&fuzz().join("fuzz_targets")), expected);
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    let smoke = fs::read_to_string(fuzz().join("smoke")).unwrap();
    for (name, _) in TARGETS {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        assert!(smoke.contains(name), "{name}");
    }
}
