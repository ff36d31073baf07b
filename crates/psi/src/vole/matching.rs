//! Steps 7 to 9: the tags of one party, and the other's search for its own among them.

use volery_channel::Channel;
use volery_primitives::pages::Buffer;
use volery_primitives::{Block, bits};
use zeroize::{Zeroize, Zeroizing};

use super::bins::BinnedSet;
use super::sort::sort_by_key;
use super::{Evaluation, Form};
use crate::error::{Result, misbehaved};
use crate::watch::{Phase, Watch};

/// Tags that are read at a time.
const PIECE: usize = 1 << 13;

/// Tags whose bits are sent at a time in step 9.
const SHARED: usize = 1 << 20;

/// An output of the OPRF, from which the tag is cut, with the place of its item.
#[derive(Clone, Copy, Default, Zeroize)]
pub(super) struct PlacedTag {
    high: u64,
    low: u64,
    pub(super) place: u32,
}

/// The tags of the evaluator in their order, with the places of the items.
pub(super) type PlacedTags = Zeroizing<Vec<PlacedTag>>;

/// The result of the encoder's search: for each tag that was found, its number and the place of the
/// own item.
pub(super) type Matches = Zeroizing<Vec<(u32, u32)>>;

impl Evaluation {
    /// Step 7: sends the tags and drops the set.
    pub(super) fn send_tags(&mut self, watch: &mut dyn Watch, channel: &mut Channel) -> Result<()> {
        watch.begin(Phase::Match, self.parameters.sides()[0]);
        if !self.parameters.trivial() {
            let outputs = self.set.take_sorted();
            let bits = self.parameters.tag_bits;
            let tags = outputs.blocks().iter().map(|output| tag(*output, bits));
            self.parameters.tags().send(tags, channel)?;
        }
        channel.flush()?;
        Ok(())
    }

    /// Step 7: sends the tags, and returns where their items are.
    pub(super) fn send_placed_tags(
        &self,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<PlacedTags> {
        watch.begin(Phase::Match, self.parameters.sides()[0]);
        let mut tags = Zeroizing::new(Vec::new());
        if self.parameters.trivial() {
            return Ok(tags);
        }
        tags.reserve_exact(self.parameters.sides()[0] as usize);
        tags.extend(self.set.all_places().map(|place| {
            let output = self.set.blocks[place];
            PlacedTag { high: output.high(), low: output.low(), place: place as u32 }
        }));
        let output = |placed: &PlacedTag| Block::from_words(placed.low, placed.high);
        sort_by_key(&mut tags, |placed| u128::from(output(placed)));
        let bits = self.parameters.tag_bits;
        let sorted = tags.iter().map(|placed| tag(output(placed), bits));
        self.parameters.tags().send(sorted, channel)?;
        channel.flush()?;
        Ok(tags)
    }

    /// Step 8: the own tags among those of the evaluator.
    ///
    /// In the malicious form its tags are distinct: two equal ones are an error, whatever this
    /// party's items are. Otherwise an evaluator that repeats one tag would learn whether that item
    /// is common: from an error here, or from the parts of a larger run that no longer follow. In
    /// the other forms short tags of different items may be equal, and the first one counts.
    pub(super) fn find(&mut self, watch: &mut dyn Watch, channel: &mut Channel) -> Result<Matches> {
        let [theirs, ours] = self.parameters.sides();
        watch.begin(Phase::Match, theirs);
        let mut found = Zeroizing::new(Vec::new());
        if self.parameters.trivial() {
            return Ok(found);
        }
        // No tag is found twice, so the list never reallocates.
        found.reserve_exact(theirs.min(ours) as usize);
        let own = OwnTags::new(&mut self.set, self.parameters.tag_bits);
        let mut own = own.iter().peekable();
        let distinct = self.parameters.form == Form::Malicious;
        let mut reader = self.parameters.tags().receive(distinct);
        let mut received = Vec::new();
        let mut number = 0;
        while number < theirs as usize {
            reader.read(PIECE, &mut received, channel)?;
            for &tag in &received {
                while own.next_if(|own| own.tag < tag).is_some() {}
                while let Some(own) = own.next_if(|own| own.tag == tag) {
                    found.push((number as u32, own.place));
                }
                number += 1;
            }
            watch.done(number as u64);
        }
        Ok(found)
    }

    /// The end of the evaluator: the numbers of its common items, ascending, if both parties get
    /// the result.
    pub(super) fn end_evaluating(
        &self,
        shared: Option<&PlacedTags>,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Option<Vec<usize>>> {
        let words = self.parameters.words();
        channel.send(&self.agreement.end(self.role, &words))?;
        let mut common = Vec::new();
        if let Some(tags) = shared {
            watch.begin(Phase::Share, tags.len() as u64);
            let mut bytes = vec![0; SHARED.min(tags.len()).div_ceil(8)];
            for tags in tags.chunks(SHARED) {
                let bytes = &mut bytes[..tags.len().div_ceil(8)];
                channel.recv(bytes)?; // step 9
                for number in (0..8 * bytes.len()).filter(|&number| bits::bit(bytes, number)) {
                    // mutant(vole-beyond): insert `if $ON && number >= tags.len() { continue; }`
                    let tag = tags
                        .get(number)
                        .ok_or_else(|| misbehaved("it named a tag beyond this party's items"))?;
                    common.push(self.set.number(tag.place as usize));
                }
            }
            // mutant(vole-too-many): false
            if common.len() as u64 > self.parameters.sides()[1] {
                return Err(misbehaved("it reported more common items than it has items"));
            }
            common.sort_unstable();
        }
        self.expect_end(channel)?;
        Ok(shared.map(|_| common))
    }

    /// The end of the encoder: the numbers of its common items, ascending.
    pub(super) fn end_encoding(
        &self,
        matches: &Matches,
        both: bool,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Vec<usize>> {
        self.expect_end(channel)?;
        if both && !self.parameters.trivial() {
            let tags = self.parameters.sides()[0] as usize;
            watch.begin(Phase::Share, tags as u64);
            let mut bytes = vec![0; SHARED.min(tags).div_ceil(8)];
            let mut found = matches.iter().peekable();
            for first in (0..tags).step_by(SHARED) {
                let bytes = &mut bytes[..SHARED.min(tags - first).div_ceil(8)];
                bytes.fill(0);
                let within = |(number, _): &&(u32, u32)| *number as usize - first < SHARED;
                while let Some((number, _)) = found.next_if(within) {
                    bits::set(bytes, *number as usize - first, true);
                }
                channel.send(bytes)?; // step 9
            }
        }
        let words = self.parameters.words();
        channel.send(&self.agreement.end(self.role, &words))?;
        channel.flush()?;
        // mutant(whole-set-error): insert `if $ON && matches.len() > 1 { return
        //     Err(crate::error::misbehaved("a mutant")); }`
        let mut common: Vec<_> =
            matches.iter().map(|(_, place)| self.set.number(*place as usize)).collect();
        common.sort_unstable();
        Ok(common)
    }

    pub(super) fn expect_end(&self, channel: &mut Channel) -> Result<()> {
        let mut end = [0; 16];
        channel.recv(&mut end)?;
        let words = self.parameters.words();
        // mutant(vole-end): false
        if end != self.agreement.end(self.role.other(), &words) {
            return Err(misbehaved("it sent more or less data than the set sizes require"));
        }
        Ok(())
    }
}

/// The tags of the encoder in ascending order, with the places of their items.
struct OwnTags<'a> {
    /// Of each tag the highest 96 bits that are not zero in all tags, then the place in 32 bits.
    sorted: &'a [Block],
    /// By place, the lower bits of the tags, if there are any.
    lower: Buffer<u32>,
    /// Their number.
    lower_bits: u32,
}

/// A tag of the encoder.
struct OwnTag {
    tag: u128,
    place: u32,
}

impl<'a> OwnTags<'a> {
    /// Replaces the outputs.
    fn new(set: &'a mut BinnedSet, bits: u32) -> Self {
        let lower_bits = bits.saturating_sub(96);
        let mut lower = Buffer::zeroed(if lower_bits > 0 { set.blocks.len() } else { 0 });
        let mut count = 0;
        for bin in 0..set.bins() {
            for place in set.places(bin) {
                let tag = tag(set.blocks[place], bits);
                if lower_bits > 0 {
                    lower[place] = (tag & ((1 << lower_bits) - 1)) as u32;
                }
                // The places ascend, and so no output is overwritten before it is read.
                set.blocks[count] = Block::new(tag >> lower_bits << 32 | place as u128);
                count += 1;
            }
        }
        let sorted = &mut set.blocks[..count];
        let known = 96 - (bits - lower_bits);
        sort_by_key(sorted, |block| u128::from(*block) << known);
        if lower_bits > 0 {
            // The few tags that differ in the lower bits alone.
            let of = |block: Block| (u128::from(block) >> 32, lower[block.low() as u32 as usize]);
            for end in 1..count {
                let mut at = end;
                while at > 0
                    && sorted[at - 1].high() == sorted[at].high()
                    && of(sorted[at - 1]) > of(sorted[at])
                {
                    sorted.swap(at - 1, at);
                    at -= 1;
                }
            }
        }
        Self { sorted, lower, lower_bits }
    }

    fn iter(&self) -> impl Iterator<Item = OwnTag> {
        self.sorted.iter().map(|block| {
            let place = block.low() as u32;
            let mut tag = u128::from(*block) >> 32 << self.lower_bits;
            if let Some(lower) = self.lower.get(place as usize) {
                tag |= u128::from(*lower);
            }
            OwnTag { tag, place }
        })
    }
}

/// The encoder's tags in their order, with the places.
#[cfg(test)]
pub(super) fn own_tags(set: &mut BinnedSet, bits: u32) -> Vec<(u128, usize)> {
    let own = OwnTags::new(set, bits);
    own.iter().map(|own| (own.tag, own.place as usize)).collect()
}

/// The tag of an output: its highest `bits` bits.
#[inline]
pub(super) fn tag(output: Block, bits: u32) -> u128 {
    // mutant(vole-tag-bits): `(128 - bits)` => `$0 & if $ON { !3 } else { !0 }`
    u128::from(output) >> (128 - bits)
}
