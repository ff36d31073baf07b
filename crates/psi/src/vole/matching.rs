//! Steps 7 to 9: the tags of one party, and the other's search for its own among them.

use volery_channel::Channel;
use volery_primitives::pages::Buffer;
use volery_primitives::{Block, bits};
use zeroize::Zeroizing;

use super::{Evaluation, Form};
use crate::error::{Result, misbehaved};
use crate::watch::{Phase, Watch};

/// Tags that are read at a time.
const PIECE: usize = 1 << 13;

/// Tags whose bits are sent at a time in step 9.
const SHARED: usize = 1 << 20;

/// The places of the items of the evaluator's tags, in the order of the tags.
pub(super) type TagPlaces = Zeroizing<Vec<u32>>;

/// The result of the encoder's search: for each tag that was found, its number and the place of the
/// own item.
pub(super) type Matches = Zeroizing<Vec<(u32, u32)>>;

impl Evaluation {
    /// Step 7: sends the tags.
    pub(super) fn send_tags(&mut self, watch: &mut dyn Watch, channel: &mut Channel) -> Result<()> {
        watch.begin(Phase::Match, self.parameters.sides()[0]);
        if !self.parameters.trivial() {
            let bits = self.parameters.tag_bits;
            let tags = self.set.sorted(&mut []).map(|(output, _)| tag(output, bits));
            self.parameters.tags().send(tags, channel)?;
        }
        channel.flush()?;
        self.evaluator = None;
        Ok(())
    }

    /// Step 7: sends the tags, and returns where their items are.
    pub(super) fn send_placed_tags(
        &mut self,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<TagPlaces> {
        let items = self.parameters.sides()[0];
        watch.begin(Phase::Match, items);
        self.evaluator = None;
        let mut places = Zeroizing::new(Vec::new());
        if self.parameters.trivial() {
            return Ok(places);
        }
        places.reserve_exact(items as usize);
        let bits = self.parameters.tag_bits;
        let mut unsorted = Buffer::zeroed(self.set.blocks.len());
        let tags = self.set.sorted(&mut unsorted).map(|(output, place)| {
            places.push(place);
            tag(output, bits)
        });
        self.parameters.tags().send(tags, channel)?;
        channel.flush()?;
        Ok(places)
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
        let bits = self.parameters.tag_bits;
        let mut places = Buffer::zeroed(self.set.blocks.len());
        let mut own = self.set.sorted(&mut places);
        let distinct = self.parameters.form == Form::Malicious;
        let mut reader = self.parameters.tags().receive(distinct);
        let mut received = Vec::new();
        let mut equal = Zeroizing::new(vec![(0, 0); PIECE + 1]);
        let mut number = 0;
        while number < theirs as usize {
            reader.read(PIECE, &mut received, channel)?;
            let mut left = &received[..];
            while let (false, (ours @ [_, ..], places)) = (left.is_empty(), own.peek()) {
                let ours = &ours[..ours.len().min(PIECE)];
                let first = number + received.len() - left.len();
                let (passed, own_passed, count) =
                    pass((left, bits), (ours, places), first, &mut equal);
                found.extend_from_slice(&equal[..count]);
                left = &left[passed..];
                own.take_next(own_passed);
            }
            number += received.len();
            watch.done(number as u64);
        }
        Ok(found)
    }

    /// The end of the evaluator: the numbers of its common items, ascending, if both parties get
    /// the result.
    pub(super) fn end_evaluating(
        &self,
        shared: Option<&TagPlaces>,
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
                    let place = tags
                        .get(number)
                        .ok_or_else(|| misbehaved("it named a tag beyond this party's items"))?;
                    common.push(self.set.number(*place as usize));
                }
            }
            // mutant(vole-too-many): false
            if common.len() as u64 > self.parameters.sides()[1] {
                return Err(misbehaved("it reported more common items than it has items"));
            }
            common = self.set.ascending(common.into_iter());
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
        let common = matches.iter().map(|(_, place)| self.set.number(*place as usize));
        Ok(self.set.ascending(common))
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

/// Passes over two ascending lists to the end of one of them, the tags of the peer and the own
/// outputs cut to as many `bits`: how many of each were passed, and how many are equal. Of those
/// `equal` gets the number, from `first` on, and the own place. Without a branch on a comparison,
/// half of which no processor would predict.
fn pass(
    (theirs, bits): (&[u128], u32),
    (ours, places): (&[Block], &[u32]),
    first: usize,
    equal: &mut [(u32, u32)],
) -> (usize, usize, usize) {
    let places = &places[..ours.len()];
    let (mut passed, mut own_passed, mut count) = (0, 0, 0);
    while let (Some(&theirs), Some(&own)) = (theirs.get(passed), ours.get(own_passed)) {
        let own = tag(own, bits);
        equal[count] = ((first + passed) as u32, places[own_passed]);
        count += usize::from(own == theirs);
        own_passed += usize::from(own <= theirs);
        passed += usize::from(own > theirs);
    }
    (passed, own_passed, count)
}

/// The encoder's tags in their order, with the places.
#[cfg(test)]
pub(super) fn own_tags(set: &mut super::bins::BinnedSet, bits: u32) -> Vec<(u128, usize)> {
    let mut places = vec![0; set.blocks.len()];
    set.sorted(&mut places).map(|(own, place)| (tag(own, bits), place as usize)).collect()
}

/// The tag of an output: its highest `bits` bits.
#[inline]
pub(super) fn tag(output: Block, bits: u32) -> u128 {
    // mutant(vole-tag-bits): `(128 - bits)` => `$0 & if $ON { !3 } else { !0 }`
    u128::from(output) >> (128 - bits)
}
