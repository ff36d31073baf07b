//! Writes initial inputs of the fuzz targets for messages into `fuzz/corpus`: edits of each kind,
//! of each protocol. Those of the targets for files are files, and need no program.
//!
//! `cargo run -p volery-testing --example fuzz_seeds [FOLDER]`; then `fuzz/shrink` keeps those that
//! reach new code.

use std::fs;
use std::path::{Path, PathBuf};

use volery_channel::Role;
use volery_testing::{fuzz, registry};

/// Named inputs of one target.
type Seeds = Vec<(String, Vec<u8>)>;

fn main() -> std::io::Result<()> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let folder = std::env::args_os().nth(1).map_or(beside, PathBuf::from);
    for (target, seeds) in [("handshake", handshake()), ("wire", wire()), ("identity", identity())]
    {
        let folder = folder.join(target);
        fs::create_dir_all(&folder)?;
        for (name, bytes) in seeds {
            fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}

fn named(name: impl Into<String>, parts: &[&[u8]]) -> (String, Vec<u8>) {
    let name: String = name.into();
    (name.replace([' ', '/', ','], "-"), parts.concat())
}

/// An edit of each kind, in the form of `volery_testing::fuzz`.
const EDITS: [(&str, &[u8]); 10] = [
    ("honest", &[0]),
    ("flip", &[0, 0, 20, 0, 1]),
    ("overwrite", &[0, 1, 13, 0, 4, 255, 255, 255, 255]),
    ("insert", &[0, 2, 40, 0, 2, 7, 7]),
    ("delete", &[0, 3, 12, 0, 5, 0]),
    ("truncate", &[0, 4, 9, 0x80]),
    ("move", &[0, 5, 0, 0, 32, 0, 32, 0]),
    ("fill", &[0, 6, 32, 0, 32, 0, 255]),
    ("repeat", &[0, 7, 12, 0, 7, 0]),
    ("raw", &[1, 4, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
];

fn handshake() -> Seeds {
    let mut seeds: Seeds = EDITS.iter().map(|(name, edit)| named(*name, &[&[255], edit])).collect();
    seeds.push(named("http", &[&[0, 1, 0, 0], b"HTTP/1.1 400 Bad Request\r\n"]));
    seeds.push(named("byte by byte", &[&[0, 0]]));
    seeds
}

fn identity() -> Seeds {
    let print = "0000-0000-0000-0000-0000-0000-0000-0000-0000";
    let mut seeds = vec![
        named("fingerprint", &[&[0], print.as_bytes()]),
        named("fingerprint in words", &[&[0], "p3XK o0iL lu--".as_bytes()]),
        named(
            "no identity",
            &[&[1], b"-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"],
        ),
        named("honest", &[&[5, 0, 0]]),
        named("one bit", &[&[5, 1, 200, 0, 1, 0]]),
        named("another bit", &[&[5, 0, 1, 200, 0, 128]]),
        named("cut", &[&[5, 4, 0, 5, 0]]),
        named("cut later", &[&[5, 0, 4, 9, 7]]),
    ];
    for (mode, name) in [(2, "file"), (3, "hello"), (4, "answer")] {
        let edits = EDITS.iter();
        seeds.extend(edits.map(|(edit, bytes)| named(format!("{name} {edit}"), &[&[mode], bytes])));
    }
    seeds
}

fn wire() -> Seeds {
    let mut seeds = Seeds::new();
    for (i, protocol) in registry().iter().enumerate() {
        for side in Role::ALL {
            let start = fuzz::wire_input(protocol, side);
            // Other tests cover the honest bytes of a protocol; each protocol gets one or two of
            // the edits here.
            for j in [0, 7] {
                let (name, edit) = EDITS[1 + (2 * i + side as usize + j) % (EDITS.len() - 1)];
                let name = format!("{} {side:?} {name}", protocol.name);
                seeds.push(named(name, &[&start, edit]));
            }
        }
    }
    seeds
}
