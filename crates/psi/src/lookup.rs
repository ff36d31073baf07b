//! Keyword search, also called string-select OT: the sender has a value for each keyword, the receiver learns the values of
//! its keywords that the sender has. Section 1.1 of the BaRK-OPRF paper.
//!
//! ```text
//! Sender: keywords x with values                  Receiver: keywords y
//! 0. to 3. sizes, seed, cuckoo table, OPRF        (module halves)
//! 4. K random for each x
//!    in each set: G(F(x)) = tag, mask
//!    --- tags, masks + K, value encrypted by K --->
//!                                                 5. finds its tag, K = mask + what is there, decrypts
//! 6. and the end
//! ```
//!
//! `F` gives 128 bits, and `G` is AES under them: its first block is cut to the tag, its second one masks the key `K` of the
//! item's value. So a value is sent once, however many sets there are. Values are padded to the length of the longest one,
//! which the receiver learns; `G` under `K` encrypts the length in two bytes and the value.
//!
//! What a party learns: each the size of the other's set; the receiver which of its keywords the sender has, their values,
//! and the length of the longest value of all; with [`Settings::both`] the sender which keywords were found.
//!
//! Security: **semi-honest**, as [`intersect`](crate::intersect). Values are not authenticated.
//!
//! Cost: as `intersect`, and from the sender 16 more bytes for each tag and 2 more than the longest value for each item.

use rayon::prelude::*;
use volery_channel::Channel;
use volery_primitives::Block;
use volery_primitives::aes::rekeyed;
use volery_primitives::prg::Prg;
use zeroize::Zeroizing;

use crate::agree::misbehaved;
use crate::error::{Error, Result};
use crate::halves::{Receiver, ReceiverHalf, Sender, Settings, write_cut};
use crate::items::Items;
use crate::params::Parameters;
use crate::watch::Watch;

/// The most bytes of a value.
pub const MAX_VALUE: usize = 1024;

/// Bytes that hold the length of a value.
const LENGTH: usize = 2;

/// What the sender has at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The sizes, and what followed from them.
    pub parameters: Parameters,
    /// Bytes of the longest value, which the receiver learns.
    pub longest: usize,
    /// With [`Settings::both`] the numbers of its keywords that were found, ascending.
    pub found: Option<Vec<usize>>,
}

/// What the receiver has at the end. `Debug` shows no value.
#[derive(Clone, PartialEq, Eq)]
pub struct Found {
    /// The sizes, and what followed from them.
    pub parameters: Parameters,
    /// Bytes of the sender's longest value.
    pub longest: usize,
    /// The numbers of its keywords that the sender has, ascending.
    pub items: Vec<usize>,
    /// The value of each, in the same order.
    pub values: Vec<Vec<u8>>,
}

impl std::fmt::Debug for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Found({} values, ..)", self.values.len())
    }
}

impl Sender {
    /// Lets the receiver learn the values of its keywords that are among these. Keywords and values are fixed by this
    /// call; the keywords are different.
    ///
    /// # Panics
    /// If there is not one value for each keyword.
    ///
    /// # Errors
    /// [`Error::LongValue`] if a value is longer than [`MAX_VALUE`] bytes; else as [`Sender::intersect`].
    pub fn answer(
        self,
        keywords: &(impl Items + ?Sized),
        values: &(impl Items + ?Sized),
        settings: Settings,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Answered> {
        assert_eq!(keywords.len(), values.len(), "a value for each keyword");
        let longest = longest(values)?;
        let mut half = self.begin(keywords, longest as u64, settings, watch, channel)?;
        let parameters = half.parameters.clone();
        let (mut tags, mut masks) = (Vec::new(), Vec::new());
        let mut ciphertexts = Vec::new();
        half.answer(watch, |offer, first, sets, rng| {
            let mut keys = Zeroizing::new(vec![Block::ZERO; sets[0].len()]);
            rng.fill_blocks(&mut keys);
            for outputs in sets {
                masks.clone_from(outputs);
                add_masks(&mut masks, &keys);
                let mut blocks = outputs.clone();
                make_tags(&mut blocks);
                tags.resize(outputs.len() * parameters.tag, 0);
                write_cut(&blocks, parameters.tag, &mut tags);
                channel.send(&tags)?; // step 4
                channel.send_blocks(&masks)?;
            }
            let size = LENGTH + longest;
            ciphertexts.resize(keys.len() * size, 0);
            ciphertexts
                .par_chunks_exact_mut(size)
                .zip(&keys[..])
                .enumerate()
                .for_each(|(i, (out, &key))| {
                    encrypt(key, values.item(offer.item(first + i)), out);
                });
            channel.send(&ciphertexts)?;
            channel.flush()?;
            Ok(())
        })?;
        let found = half.end(settings, watch, channel)?;
        Ok(Answered {
            parameters,
            longest,
            found,
        })
    }
}

impl Receiver {
    /// Learns the values of its keywords that the sender has. The keywords are fixed by this call, and different.
    ///
    /// # Errors
    /// As [`Receiver::intersect`].
    pub fn search(
        self,
        keywords: &(impl Items + ?Sized),
        settings: Settings,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Found> {
        let mut half = self.begin(keywords, settings, true, make_tags, watch, channel)?;
        let parameters = half.parameters.clone();
        let longest = usize::try_from(half.note).unwrap_or(usize::MAX);
        if longest > MAX_VALUE {
            return Err(misbehaved("its values are longer than values can be"));
        }
        let size = LENGTH + longest;
        let (mut tags, mut ciphertexts) = (Vec::new(), Vec::new());
        let mut values = Vec::new();
        half.listen(watch, |half, first, places| {
            tags.resize(places * parameters.tag, 0);
            let mut masked = vec![Block::ZERO; places];
            let mut keys = Vec::new();
            for set in 0..parameters.sets() {
                channel.recv(&mut tags)?; // step 4
                channel.recv_blocks(&mut masked)?;
                let found = half.look_up(set, first, &tags)?; // step 5
                keys.extend(found.into_iter().map(|(place, instance)| {
                    (place, instance, unmask(half, instance, masked[place]))
                }));
            }
            ciphertexts.resize(places * size, 0);
            channel.recv(&mut ciphertexts)?;
            for (place, instance, key) in keys {
                let value = decrypt(key, &mut ciphertexts[place * size..][..size])?;
                values.push((half.item(instance), value));
            }
            Ok(())
        })?;
        let items = half.end(watch, channel)?;
        values.sort_by_key(|(item, _)| *item);
        Ok(Found {
            parameters,
            longest,
            items,
            values: values.into_iter().map(|(_, value)| value).collect(),
        })
    }
}

/// Bytes of the longest value.
fn longest(values: &(impl Items + ?Sized)) -> Result<usize> {
    let mut longest = 0;
    for item in 0..values.len() {
        let bytes = values.item(item).len();
        if bytes > MAX_VALUE {
            return Err(Error::LongValue {
                item,
                bytes,
                most: MAX_VALUE,
            });
        }
        longest = longest.max(bytes);
    }
    Ok(longest)
}

/// The first block of `G` under each output, from which the tag is cut.
fn make_tags(outputs: &mut [Block]) {
    expand(outputs, Block::ZERO);
}

/// The second block of `G` under each output, plus the key of the item.
fn add_masks(outputs: &mut [Block], keys: &[Block]) {
    expand(outputs, Block::ONE);
    for (mask, &key) in outputs.iter_mut().zip(keys) {
        *mask ^= key;
    }
}

/// `AES(counter) + counter` under each block, in its place.
fn expand(keys: &mut [Block], counter: Block) {
    const LANES: usize = 256;
    let mut out = [Block::ZERO; LANES];
    for keys in keys.chunks_mut(LANES) {
        let out = &mut out[..keys.len()];
        out.fill(counter);
        rekeyed(keys, out);
        keys.copy_from_slice(out);
    }
}

/// The key of an item from what the sender sent for the output of an instance.
fn unmask(half: &ReceiverHalf, instance: usize, masked: Block) -> Block {
    let outputs = half.outputs.as_ref().expect("they were asked for");
    let mut key = [outputs[instance]];
    add_masks(&mut key, &[masked]);
    key[0]
}

/// The length and the value, padded with zeros, plus the stream of the key.
fn encrypt(key: Block, value: &[u8], out: &mut [u8]) {
    Prg::new(key).fill_bytes(out);
    let length = (value.len() as u16).to_le_bytes();
    for (out, byte) in out.iter_mut().zip(length.iter().chain(value)) {
        *out ^= byte;
    }
}

/// The value in a ciphertext.
fn decrypt(key: Block, ciphertext: &mut [u8]) -> Result<Vec<u8>> {
    let mut stream = Zeroizing::new(vec![0; ciphertext.len()]);
    Prg::new(key).fill_bytes(&mut stream);
    for (byte, stream) in ciphertext.iter_mut().zip(stream.iter()) {
        *byte ^= stream;
    }
    let (length, value) = ciphertext.split_at(LENGTH);
    let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
    let value = value
        .get(..length)
        .ok_or_else(|| misbehaved("a value is longer than it said"))?;
    Ok(value.to_vec())
}
