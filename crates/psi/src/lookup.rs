//! Keyword search, also called string-select OT: the sender has a value for each keyword, the
//! receiver learns the values of its keywords that the sender has. Section 1.1 of the BaRK-OPRF
//! paper.
//!
//! ```text
//! Sender: keywords x with values                  Receiver: keywords y
//! 0. to 3. sizes, seed, cuckoo table, OPRF        (module session)
//! 4. K random for each x
//!    in each set: G(F(x), x) = tag, mask
//!    --- tags, masks + K, value encrypted by K --->
//!                                                 5. finds its tag, decrypts: K = mask + block
//! 6. and the end
//! ```
//!
//! `F` outputs 128 bits, and `G` is `AES_F(c) + c` at two points `c`: the first block is cut to the
//! tag, the second one masks the key `K` of the item's value. So each value is sent once, however
//! many sets there are. Values are padded to the length of the longest one, which the receiver
//! learns; the length in two bytes and the value are encrypted by AES under `K` in counter mode.
//! The points are `g + x` and its complement, with `g` from the seed and `x` the input of the OPRF,
//! and the counters begin at `g` plus the place of the item: no two outputs of this or another run
//! use AES at the same point (except those of one item for the places of a stash), so a guess of
//! `F` or `K` is a guess of one of them.
//!
//! Leakage: each party learns the size of the other's set; the receiver learns which of its
//! keywords the sender has, their values, and the length of the longest value of all; with
//! [`Settings::both`] the sender learns which keywords were found.
//!
//! Security: **semi-honest**, as [`intersect`](crate::intersect). Values are not authenticated, and
//! a length beyond the longest is cut to it. Every ciphertext is that of a value, so that none is
//! an error which depends on whether its item is common.
//!
//! Cost: as `intersect`; the sender also sends 16 bytes for each tag, and for each item the length
//! of the longest value plus 2 bytes: [`value_bytes`].

use rayon::prelude::*;
use volery_channel::Channel;
use volery_primitives::Block;
use volery_primitives::aes::{Aes128, rekeyed};
use zeroize::Zeroizing;

use crate::agree::Agreement;
use crate::error::{Error, Result, misbehaved};
use crate::items::Items;
use crate::params::Parameters;
use crate::session::{Protocol, Receiver, Sender, Settings};
use crate::truncate::write_cut;
use crate::watch::Watch;

/// The maximum length of a value in bytes.
pub const MAX_VALUE: usize = 1 << 14;

/// Bytes of values that a receiver takes at a time.
const PIECE: usize = 1 << 20;

/// Bytes that hold the length of a value.
pub(crate) const LENGTH: usize = 2;

/// Bytes that the sender sends in addition to the tags of an intersection, if no set is empty and
/// the longest value has `longest` bytes.
pub const fn value_bytes(parameters: &Parameters, longest: usize) -> u64 {
    if parameters.trivial() {
        return 0;
    }
    parameters.evaluations() * 16 + parameters.sender_items * (LENGTH + longest) as u64
}

/// The sender's result.
pub type LookupSenderResult = crate::results::LookupSenderResult<Parameters>;

/// The receiver's result.
pub type LookupReceiverResult = crate::results::LookupReceiverResult<Parameters>;

impl Sender {
    /// Lets the receiver learn the values of its keywords that are among these. The call fixes
    /// keywords and values; the keywords must be distinct.
    ///
    /// # Panics
    /// If the numbers of keywords and values differ.
    ///
    /// # Errors
    /// [`Error::LongValue`] if a value is longer than [`MAX_VALUE`] bytes; else as
    /// [`Sender::intersect`].
    pub fn answer(
        self,
        keywords: &(impl Items + ?Sized),
        values: &(impl Items + ?Sized),
        settings: Settings,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<LookupSenderResult> {
        assert_eq!(keywords.len(), values.len(), "a value for each keyword");
        let longest = longest(values)?;
        let terms = (Protocol::Search, settings);
        let mut session = self.begin(keywords, longest as u64, terms, watch, channel)?;
        let (parameters, base) = (session.parameters.clone(), session.search());
        let mut tags = Vec::new();
        let mut ciphertexts = Vec::new();
        session.answer(watch, |sender_set, first, sets, rng| {
            let mut keys = Zeroizing::new(vec![Block::ZERO; sets[0].values.len()]);
            rng.fill_blocks(&mut keys);
            for set in sets {
                let (mut blocks, mut masks) = (set.values.clone(), keys.clone());
                split(base, &set.inputs, &mut blocks, &mut masks);
                tags.resize(blocks.len() * parameters.tag, 0);
                write_cut(blocks.iter().copied(), parameters.tag, &mut tags);
                channel.send(&tags)?; // step 4
                channel.send_blocks(&masks)?;
            }
            let size = LENGTH + longest;
            ciphertexts.resize(keys.len() * size, 0);
            ciphertexts.par_chunks_exact_mut(size).zip(&keys[..]).enumerate().for_each(
                |(i, (out, &key))| {
                    let place = first + i;
                    encrypt(key, base, place, values.item(sender_set.item(place)), out);
                },
            );
            channel.send(&ciphertexts)?;
            channel.flush()?;
            Ok(())
        })?;
        let found = session.end(settings, watch, channel)?;
        Ok(LookupSenderResult { parameters, longest, found })
    }
}

impl Receiver {
    /// Learns the values of its keywords that the sender has. The call fixes the keywords, which
    /// must be distinct. Fails as [`Receiver::intersect`] does.
    pub fn search(
        self,
        keywords: &(impl Items + ?Sized),
        settings: Settings,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<LookupReceiverResult> {
        let derive =
            |agreement: &Agreement, inputs: &[Block], tags: &mut [Block], masks: &mut [Block]| {
                split(agreement.search(), inputs, tags, masks);
            };
        let terms = (Protocol::Search, settings);
        let mut session = self.begin(keywords, terms, Some(&derive), watch, channel)?;
        let (parameters, base) = (session.parameters.clone(), session.search());
        let longest = usize::try_from(session.note).unwrap_or(usize::MAX);
        // mutant(psi-long-values): false
        if longest > MAX_VALUE {
            return Err(misbehaved("it announced values longer than the maximum"));
        }
        let size = LENGTH + longest;
        let mut tags = Vec::new();
        let mut values = Vec::new();
        let mut ciphertexts = Zeroizing::new(Vec::new());
        session.listen(watch, |session, watch, first, places| {
            tags.resize(places * parameters.tag, 0);
            let mut masked = vec![Block::ZERO; places];
            // An honest sender has at most one of this party's items at each place.
            let mut keys = Zeroizing::new(Vec::with_capacity(places));
            for set in 0..parameters.sets() {
                channel.recv(&mut tags)?; // step 4
                channel.recv_blocks(&mut masked)?;
                for (place, item) in session.look_up(set, first, &tags) {
                    // step 5
                    let key = masked[place] ^ session.kept[item];
                    keys.push((place, item, key));
                }
            }
            keys.sort_unstable_by_key(|(place, ..)| *place);
            let mut keys = keys.iter().peekable();
            for start in (0..places).step_by(at_a_time(size)) {
                // Found values are decrypted in place.
                let count = at_a_time(size).min(places - start);
                ciphertexts.resize(count * size, 0);
                channel.recv(&mut ciphertexts)?;
                while let Some(&(place, item, key)) = keys.next_if(|key| key.0 < start + count) {
                    watch.touched(1);
                    let ciphertext = &mut ciphertexts[(place - start) * size..][..size];
                    let value = decrypt(key, base, first + place, ciphertext);
                    values.push((item, value.to_vec()));
                }
            }
            Ok(())
        })?;
        let items = session.end(watch, channel)?;
        values.sort_by_key(|(item, _)| *item);
        Ok(LookupReceiverResult {
            parameters,
            longest,
            items,
            values: values.into_iter().map(|(_, value)| value).collect(),
        })
    }
}

/// Values that a receiver takes at a time: no more bytes of memory than these are touched on the
/// sender's word about the length of its values, before they have come.
pub(crate) const fn at_a_time(size: usize) -> usize {
    let values = PIECE / size;
    if values == 0 { 1 } else { values }
}

/// As many bytes from the peer. Memory grows with what has arrived.
pub(crate) fn receive(bytes: usize, channel: &mut Channel) -> Result<Vec<u8>> {
    let mut received = Vec::new();
    while received.len() < bytes {
        let start = received.len();
        received.resize(bytes.min(start + PIECE), 0);
        channel.recv(&mut received[start..])?;
    }
    Ok(received)
}

/// Bytes of the longest value.
pub(crate) fn longest(values: &(impl Items + ?Sized)) -> Result<usize> {
    let mut longest = 0;
    for item in 0..values.len() {
        let bytes = values.item(item).len();
        if bytes > MAX_VALUE {
            return Err(Error::LongValue { item, bytes, most: MAX_VALUE });
        }
        longest = longest.max(bytes);
    }
    Ok(longest)
}

/// `G` of each output, given the inputs: its first block, from which the tag is cut, replaces the
/// output; its second block is added to the mask.
pub(crate) fn split(base: Block, inputs: &[Block], outputs: &mut [Block], masks: &mut [Block]) {
    const LANES: usize = 256;
    let mut pool = Zeroizing::new([[Block::ZERO; LANES]; 2]);
    let [first, second] = &mut *pool;
    let chunks = inputs.chunks(LANES).zip(outputs.chunks_mut(LANES));
    for ((inputs, outputs), masks) in chunks.zip(masks.chunks_mut(LANES)) {
        let (first, second) = (&mut first[..inputs.len()], &mut second[..inputs.len()]);
        for ((first, second), &input) in first.iter_mut().zip(&mut *second).zip(inputs) {
            (*first, *second) = (base ^ input, !(base ^ input));
        }
        rekeyed(outputs, first);
        rekeyed(outputs, second);
        outputs.copy_from_slice(first);
        for (mask, &second) in masks.iter_mut().zip(&*second) {
            *mask ^= second;
        }
    }
}

/// Blocks of a key stream at a time.
const STREAM: usize = 32;

/// Adds the key stream for the item at a place.
pub(crate) fn add_stream(key: Block, base: Block, place: usize, bytes: &mut [u8]) {
    // Far enough apart that no two streams overlap, whatever the length of a value.
    let start = u128::from(base).wrapping_add((place as u128) << 64);
    let aes = Aes128::new(key);
    let mut stream = Zeroizing::new([Block::ZERO; STREAM]);
    for (i, bytes) in bytes.chunks_mut(16 * STREAM).enumerate() {
        let stream = &mut stream[..bytes.len().div_ceil(16)];
        let counter = start.wrapping_add((i * STREAM) as u128);
        aes.ctr(counter, stream);
        for (byte, stream) in bytes.iter_mut().zip(Block::as_bytes(stream)) {
            *byte ^= stream;
        }
    }
}

/// The length and the value, padded with zeros, plus the stream of the key.
pub(crate) fn encrypt(key: Block, base: Block, place: usize, value: &[u8], out: &mut [u8]) {
    out.fill(0);
    out[..LENGTH].copy_from_slice(&(value.len() as u16).to_le_bytes());
    out[LENGTH..][..value.len()].copy_from_slice(value);
    add_stream(key, base, place, out);
}

/// The value in a ciphertext. Every ciphertext has one, so that an invalid length tells the sender
/// nothing about its item.
pub(crate) fn decrypt(key: Block, base: Block, place: usize, ciphertext: &mut [u8]) -> &[u8] {
    add_stream(key, base, place, ciphertext);
    cut(ciphertext)
}

/// The value behind its length, which is cut to what there is.
pub(crate) fn cut(plain: &[u8]) -> &[u8] {
    let (length, value) = plain.split_first_chunk().expect("a length in front");
    let length = usize::from(u16::from_le_bytes(*length));
    // mutant(psi-value-length): `length.min(value.len())` => `length`
    &value[..length.min(value.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(number: u128) -> Block {
        Block::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
    }

    /// `G` as in the module documentation, around the number of blocks computed at a time.
    #[test]
    fn tags_and_masks_at_points_of_their_own() {
        let base = block(99);
        for n in [0, 1, 2, 255, 256, 257, 1009] {
            let inputs: Vec<_> = (0..n).map(|i| block(3 * i)).collect();
            let outputs: Vec<_> = (0..n).map(|i| block(3 * i + 1)).collect();
            let keys: Vec<_> = (0..n).map(|i| block(3 * i + 2)).collect();
            let (mut tags, mut masks) = (outputs.clone(), keys.clone());
            split(base, &inputs, &mut tags, &mut masks);
            for (i, &output) in outputs.iter().enumerate() {
                let aes = Aes128::new(output);
                let point = base ^ inputs[i];
                assert_eq!(tags[i], aes.encrypt(point) ^ point);
                assert_eq!(masks[i], aes.encrypt(!point) ^ !point ^ keys[i]);
            }
        }
    }

    #[test]
    fn a_value_is_encrypted_for_its_place() {
        let (key, base) = (block(1), block(2));
        for length in [0, 1, 13, 14, 15, 509, 510, 511, 1000, MAX_VALUE] {
            let value = vec![7; length];
            let mut out = vec![9; LENGTH + MAX_VALUE];
            encrypt(key, base, 5, &value, &mut out);
            // The first block by hand: the length, then the value.
            let counter = Block::new(u128::from(base).wrapping_add(5 << 64));
            let mut first = Aes128::new(key).encrypt(counter).to_bytes();
            first[0] ^= length as u8;
            first[1] ^= (length >> 8) as u8;
            first[2..].iter_mut().take(length).for_each(|byte| *byte ^= 7);
            assert_eq!(out[..16], first);
            let mut elsewhere = out.clone();
            assert_eq!(decrypt(key, base, 5, &mut out), value);
            // Of another stream even the empty value has another length, but for 2^-16.
            assert_ne!(decrypt(key, base, 6, &mut elsewhere), value);
        }
    }
}
