//! Keyword search: the sender has a value for each keyword, the receiver learns the values of its
//! keywords that the sender has.
//!
//! The tag is the first block of `H`, as in the intersection; the second block is the key of the
//! value. After the tags the sender sends the values in the order of the tags, padded to the length
//! of the longest one, which the receiver learns, and encrypted as in [`crate::lookup`]. Values are
//! not authenticated: a malicious sender may give any value for a keyword that it has, and each
//! ciphertext is one.

use rayon::prelude::*;
use volery_channel::Channel;
use volery_primitives::Block;
use volery_primitives::ro::RandomOracle;
use zeroize::Zeroizing;

use super::{Evaluation, Parameters, Receiver, SEARCH, Sender, Settings};
use crate::error::{Result, misbehaved};
use crate::items::Items;
use crate::lookup::{LENGTH, MAX_VALUE, at_a_time, decrypt, encrypt, longest};
use crate::watch::Watch;

/// Values that the sender encrypts and sends at a time.
const PIECE: usize = 1 << 13;

/// The sender's result.
pub type LookupSenderResult = crate::results::LookupSenderResult<Parameters>;

/// The receiver's result.
pub type LookupReceiverResult = crate::results::LookupReceiverResult<Parameters>;

impl Sender {
    /// Lets the receiver learn the values of its keywords that are among these. The call fixes
    /// keywords and values; the keywords must be distinct.
    ///
    /// # Panics
    /// If the numbers of keywords and values differ, or both are to learn the result of the
    /// malicious form.
    ///
    /// # Errors
    /// [`Error::LongValue`](crate::Error::LongValue) if a value is longer than [`MAX_VALUE`] bytes;
    /// else as [`Sender::intersect`].
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
        let said = longest as u64;
        let begun = self.party.begin(keywords, said, (SEARCH, settings), watch, channel)?;
        let mut done = begun.evaluate(true, watch, channel)?;
        let tags = done.send_placed_tags(watch, channel)?;
        let (base, size) = (done.base(), LENGTH + longest);
        let mut ciphertexts = Vec::new();
        for (piece, places) in tags.chunks(PIECE).enumerate() {
            ciphertexts.resize(places.len() * size, 0);
            ciphertexts.par_chunks_exact_mut(size).zip(places).enumerate().for_each(
                |(number, (out, &place))| {
                    let place = place as usize;
                    let value = values.item(done.set.number(place));
                    let number = piece * PIECE + number;
                    encrypt(done.second[place], base, number, value, out);
                },
            );
            channel.send(&ciphertexts)?;
        }
        channel.flush()?;
        let shared = settings.both.then_some(&tags);
        let found = done.end_evaluating(shared, watch, channel)?;
        Ok(LookupSenderResult { parameters: done.parameters, longest, found })
    }
}

impl Receiver {
    /// Learns the values of its keywords that the sender has. The call fixes the keywords, which
    /// must be distinct. Fails as [`Receiver::intersect`] does.
    ///
    /// # Panics
    /// If both are to learn the result of the malicious form.
    pub fn search(
        self,
        keywords: &(impl Items + ?Sized),
        settings: Settings,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<LookupReceiverResult> {
        let begun = self.party.begin(keywords, 0, (SEARCH, settings), watch, channel)?;
        let longest = usize::try_from(begun.agreement.note).unwrap_or(usize::MAX);
        // mutant(vole-long-values): false
        if longest > MAX_VALUE {
            return Err(misbehaved("it announced values longer than the maximum"));
        }
        let mut done = begun.evaluate(true, watch, channel)?;
        let matches = done.find(watch, channel)?;
        let (base, size) = (done.base(), LENGTH + longest);
        let mut values = Vec::with_capacity(matches.len());
        let mut ciphertexts = Zeroizing::new(Vec::new());
        let mut found =
            matches.iter().map(|&(number, place)| (number as usize, place as usize)).peekable();
        let items = match done.parameters.trivial() {
            true => 0,
            false => done.parameters.sender_items as usize,
        };
        for first in (0..items).step_by(at_a_time(size)) {
            let count = at_a_time(size).min(items - first);
            ciphertexts.resize(count * size, 0);
            channel.recv(&mut ciphertexts)?;
            while let Some((number, place)) = found.next_if(|(number, _)| *number < first + count) {
                let ciphertext = &mut ciphertexts[(number - first) * size..][..size];
                watch.touched(1);
                let value = decrypt(done.second[place], base, number, ciphertext);
                // mutant(whole-value-error): insert `if $ON && value.len() == longest { return
                //     Err(misbehaved("a mutant")); }`
                values.push((done.set.number(place), value.to_vec()));
            }
        }
        let items = done.end_encoding(&matches, settings.both, watch, channel)?;
        values.sort_by_key(|(item, _)| *item);
        Ok(LookupReceiverResult {
            parameters: done.parameters,
            longest,
            items,
            values: values.into_iter().map(|(_, value)| value).collect(),
        })
    }
}

impl Evaluation {
    /// Separates the key streams of a search from those of all others.
    pub(super) fn base(&self) -> Block {
        RandomOracle::new("volery vole psi: values")
            .absorb(&self.agreement.derive("values", 0))
            .finish_block()
    }
}
