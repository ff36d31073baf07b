//! Files with the filter of a server's items.

use std::sync::OnceLock;

use volery_channel::run_two_parties;
use volery_primitives::ro::{RandomOracle, StreamHash};
use volery_psi::served::{Budget, Client, Filter, Key, Label, Server, prepare};

use super::Script;
use crate::fixtures::rng;

/// The most items that a fuzzed file may have.
const MOST: u64 = 1 << 16;

/// Bytes of the header: format, key, items, queries, version.
const HEADER: usize = 88;

/// Bytes of a file, or edits of one.
///
/// # Panics
/// If a file that is read is not written unchanged, or two readers differ about it.
pub fn filter(data: &[u8]) {
    let mut script = Script(data);
    let mode = script.byte();
    if mode == 0 {
        return check(script.rest());
    }
    let items: Vec<_> = (0..u64::from(script.byte())).map(u64::to_le_bytes).collect();
    let good = prepare(&key(), &items[..], 1 + u64::from(script.word()), &mut ());
    let mut file = Vec::new();
    let written = good.and_then(|good| good.write(&mut file));
    written.expect("a small set fits");
    let edits = script.rest();
    for edit in edits.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % file.len();
        // The key stays, so that the checks after it are reached.
        if !(8..40).contains(&place) {
            file[place] ^= edit[2];
        }
    }
    if mode % 2 == 0 {
        relabel(&mut file);
    }
    check(&file);
    if edits.len() < 3 && mode % 2 == 1 {
        assert!(Filter::from_bytes(&file, MOST).is_ok(), "an honest file is refused");
    }
}

fn key() -> Key {
    static BYTES: OnceLock<[u8; 32]> = OnceLock::new();
    let bytes = BYTES.get_or_init(|| *Key::random(&mut rng(7)).to_bytes());
    Key::from_bytes(bytes).expect("the bytes of a key")
}

/// The right version for the contents.
fn relabel(file: &mut [u8]) {
    let number = |at: usize| {
        let bytes = file[at..].first_chunk().expect("the header is there");
        u64::from_le_bytes(*bytes)
    };
    let mut body = StreamHash::default();
    body.update(&file[HEADER..]);
    let version = RandomOracle::new("volery psi served: filter")
        .absorb(&file[8..40])
        .absorb_u64(number(40))
        .absorb_u64(number(48))
        .absorb(&body.finish32())
        .finish32();
    file[56..HEADER].copy_from_slice(&version);
}

fn check(file: &[u8]) {
    let read = Filter::from_bytes(file, MOST);
    let label = Label::of_file(&mut &*file, MOST);
    let Ok(read) = read else { return };
    let label = label.expect("a filter has a label");
    assert_eq!(label, *read.label());
    assert!(read.items() <= MOST && read.bytes() == file.len() as u64);
    let mut again = Vec::new();
    read.write(&mut again).expect("memory takes it");
    assert!(again == file, "a filter changes when it is written");
    // A lookup stays within it, whatever its tags are.
    let Ok(server) = Server::new(key(), &label) else {
        return;
    };
    let (_, queried) = run_two_parties(
        |channel| server.answer(&mut rng(2), &Budget::new(9), &mut (), channel),
        |channel| {
            let items: Vec<_> = (0..3_u64).map(u64::to_le_bytes).collect();
            Client::new(&read, rng(3)).query(&items[..], &mut (), channel)
        },
    );
    assert!(queried.is_ok());
}
