//! The compression function of BLAKE3, one lane after the other.

use crate::keyed::{
    FLAGS, INITIAL, KEY_WORDS, LANES, Lanes, Message, OUT_WORDS, SCHEDULE, STEPS, WORDS,
};

/// The first words of the compression of each lane's message.
pub(crate) fn compress(key: &[u32; KEY_WORDS], message: &Message) -> [Lanes; OUT_WORDS] {
    let mut out = [[0; LANES]; OUT_WORDS];
    for lane in 0..LANES {
        let words = message.words.map(|word| word[lane]);
        let hash = compress_one(key, &words, message.bytes[lane]);
        for (out, word) in out.iter_mut().zip(hash) {
            out[lane] = word;
        }
    }
    out
}

fn compress_one(key: &[u32; KEY_WORDS], message: &[u32; WORDS], bytes: u32) -> [u32; OUT_WORDS] {
    let mut state = [0; WORDS];
    state[..8].copy_from_slice(key);
    state[8..12].copy_from_slice(&INITIAL);
    // The number of the chunk is zero.
    state[14] = bytes;
    state[15] = FLAGS;
    for schedule in SCHEDULE {
        for (step, words) in STEPS.iter().zip(schedule.as_chunks::<2>().0) {
            mix(&mut state, *step, words.map(|word| message[word]));
        }
    }
    std::array::from_fn(|i| state[i] ^ state[i + 8])
}

/// The function G.
fn mix(state: &mut [u32; WORDS], [a, b, c, d]: [usize; 4], message: [u32; 2]) {
    for (word, [first, second]) in message.into_iter().zip([[16, 12], [8, 7]]) {
        state[a] = state[a].wrapping_add(state[b]).wrapping_add(word);
        state[d] = (state[d] ^ state[a]).rotate_right(first);
        state[c] = state[c].wrapping_add(state[d]);
        state[b] = (state[b] ^ state[c]).rotate_right(second);
    }
}
