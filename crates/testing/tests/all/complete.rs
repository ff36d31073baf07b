//! The registry is complete: each file with a public function that takes a channel has a protocol
//! that runs it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use volery_testing::{honest, registry};

/// Files of the crates with protocols, and a protocol of the registry that runs them.
const FILES: &[(&str, &str)] = &[
    ("apps/array.rs", "additions to a vector"),
    ("apps/fixed.rs", "formats of real numbers"),
    ("apps/linear.rs", "matrix product, fp61"),
    ("apps/linear/product.rs", "matrix product, z64, shared"),
    ("apps/linear/shape.rs", "shapes of a product"),
    ("apps/mpfss.rs", "points and shared values, dropping"),
    ("apps/offline.rs", "batch of vector-OLEs"),
    ("apps/ope.rs", "polynomial at points"),
    ("apps/switching.rs", "permutation"),
    ("ot/base.rs", "base OT"),
    ("ot/convert.rs", "OT of chosen strings"),
    ("ot/softspoken/fork.rs", "batch of vector-OLEs, gf128"),
    ("ot/softspoken/mod.rs", "softspoken 8"),
    // Needs a card: `pcg/tests/all/card.rs`.
    ("pcg/card.rs", "cot, malicious, regular, half"),
    ("pcg/cot.rs", "cot, malicious, regular, half"),
    // With lanes in `pcg/tests/all/mistakes.rs`.
    ("pcg/cot/shared_setup.rs", "cot, malicious, regular, half"),
    ("pcg/derandomize.rs", "chosen inputs"),
    ("pcg/gilboa.rs", "checked product, fp61"),
    ("pcg/reproduction/mod.rs", "point function"),
    ("pcg/reproduction/punctured_ot.rs", "random OT of n - 1"),
    ("pcg/spcot.rs", "half-trees, hashed"),
    ("pcg/stream/mod.rs", "cot, malicious, regular, half"),
    ("pcg/vole.rs", "vole fp61, malicious, regular, half"),
    ("pcg/vole/shared_setup.rs", "batch of vector-OLEs"),
    ("pcg/wire.rs", "chosen inputs"),
    ("psi/circuit.rs", "circuit, fast"),
    ("psi/circuit/opening.rs", "circuit opening"),
    ("psi/count.rs", "count"),
    ("psi/dh.rs", "dh intersection"),
    ("psi/intersect.rs", "intersection"),
    ("psi/lookup.rs", "search"),
    ("psi/oprf.rs", "oprf"),
    ("psi/served.rs", "served query"),
    ("psi/served/filter.rs", "served query"),
    ("psi/served/meeting.rs", "served query"),
    ("psi/session.rs", "intersection"),
    ("psi/vole/intersect.rs", "vole intersection, malicious"),
    ("psi/vole/lookup.rs", "vole search, malicious"),
    ("psi/vole/oprf.rs", "vole oprf, malicious"),
];

/// Functions that the registry does not call itself: a protocol calls them, by the interface of all
/// matches too, or they send a constant and their crate tests a peer that differs.
const WITHIN: [&str; 12] = [
    "extend_streamed",
    "extend_watched",
    "greet",
    "intersect",
    "keep",
    "recv",
    "search",
    "send_file",
    "setup_for_scalar",
    "setup_from_ots",
    "setup_with",
    "turn_away",
];

/// The Rust files below a folder that are not for tests alone.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if ["tests", "malicious", "testing"].contains(&name) {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// The names of the public functions of a text that take a channel.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.split("pub fn ").skip(1).filter_map(|rest| {
        let head = &rest[..rest.find(['{', ';'])?];
        let name = &head[..head.find(['(', '<'])?];
        head.contains("&mut Channel").then_some(name)
    })
}

#[test]
fn every_file_with_a_channel_has_a_protocol() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let calls: String = sources(&own.join("src/registry"))
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let (mut files, mut uncalled) = (BTreeSet::new(), BTreeSet::new());
    for name in ["apps", "ot", "pcg", "psi"] {
        let folder = own.join("..").join(name).join("src");
        for path in sources(&folder) {
            let text = fs::read_to_string(&path).unwrap();
            let called = |function: &str| {
                [".", "::"].iter().any(|before| {
                    let call = format!("{before}{function}");
                    calls.contains(&format!("{call}(")) || calls.contains(&format!("{call}::<"))
                })
            };
            for function in functions(&text) {
                let file = path.strip_prefix(&folder).unwrap().to_str().unwrap();
                files.insert(format!("{name}/{file}"));
                if !called(function) {
                    uncalled.insert(function.to_owned());
                }
            }
        }
    }
    let listed: BTreeSet<_> = FILES.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(files, listed, "add a protocol to the registry, and a row here");
    let registry = registry();
    for (file, protocol) in FILES {
        let known = registry.iter().any(|of| of.name == *protocol);
        assert!(known, "{file}: the registry has no protocol {protocol:?}");
    }
    let within: BTreeSet<_> = WITHIN.map(str::to_owned).into();
    assert_eq!(uncalled, within, "the registry calls the others");
}

/// Between honest parties, which always exchange the same messages.
#[test]
fn honest_parties_agree_and_repeat_themselves() {
    honest::assert_agreement(&registry());
}
