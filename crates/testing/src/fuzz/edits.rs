//! Malicious messages: edits of the bytes of an honest peer.

use super::Script;

/// The most edits of one input.
const EDITS: usize = 24;

/// Applies `script` to the `honest` bytes: edits of them, or raw bytes after a prefix of them.
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

/// A position in `length` bytes, or at their end. If the highest bit is set, it counts from the
/// end: positions of the last messages then do not depend on the length of what precedes them.
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
            // Bytes that were valid elsewhere.
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
            // A repetition.
            let again = bytes[run(usize::from(script.word()))].to_vec();
            bytes.splice(at..at, again);
        }
    }
}
