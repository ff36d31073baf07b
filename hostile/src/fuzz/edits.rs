//! What a hostile peer sends instead of what an honest one would have.

use super::Script;

/// The most edits of one input.
const EDITS: usize = 24;

/// The bytes that `script` makes of the `honest` ones: edits of them, or raw bytes behind a part of them.
pub(super) fn edited(honest: &[u8], script: &mut Script<'_>) -> Vec<u8> {
    if script.byte() & 1 == 1 {
        let kept = place(script, honest.len());
        return [&honest[..kept], script.rest()].concat();
    }
    let mut bytes = honest.to_vec();
    for _ in 0..EDITS {
        if script.is_empty() {
            break;
        }
        edit(&mut bytes, honest, script);
    }
    bytes
}

/// A place in `length` bytes, or at their end. Counted from the end where the highest bit says so: messages there have
/// places of their own that do not depend on what comes before.
fn place(script: &mut Script<'_>, length: usize) -> usize {
    let word = usize::from(script.word());
    let distance = (word & 0x7fff) % (length + 1);
    match word >> 15 {
        0 => distance,
        _ => length - distance,
    }
}

fn edit(bytes: &mut Vec<u8>, honest: &[u8], script: &mut Script<'_>) {
    let kind = script.byte();
    let length = bytes.len();
    let at = place(script, length);
    let run = |count: usize| at..length.min(at + count);
    match kind % 8 {
        0 => {
            let mask = script.byte();
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= mask;
            }
        }
        1 => {
            let count = usize::from(script.byte());
            let new = script.take(count);
            let run = run(new.len());
            bytes[run.clone()].copy_from_slice(&new[..run.len()]);
        }
        2 => {
            let count = usize::from(script.byte());
            bytes.splice(at..at, script.take(count).iter().copied());
        }
        3 => drop(bytes.drain(run(usize::from(script.word())))),
        4 => bytes.truncate(at),
        5 => {
            // Something that was right elsewhere.
            let from = place(script, honest.len());
            let count = usize::from(script.word());
            let copied = &honest[from..honest.len().min(from + count)];
            let run = run(copied.len());
            bytes[run.clone()].copy_from_slice(&copied[..run.len()]);
        }
        6 => {
            let count = usize::from(script.word());
            let value = script.byte();
            bytes[run(count)].fill(value);
        }
        _ => {
            // The same again.
            let again = bytes[run(usize::from(script.word()))].to_vec();
            bytes.splice(at..at, again);
        }
    }
}
