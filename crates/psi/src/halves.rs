//! What set intersection and keyword search have in common: all up to the keys and outputs of the OPRF, and the end.
//!
//! ```text
//! Sender: X                                       Receiver: Y
//! offline: the setup of the OPRF
//! 0. both: sizes, seed                            (module agree)
//! 1. hash functions h_1, h_2, h_3, the code and the salt of the items from the seed
//! 2.                                              a cuckoo table of Y
//!    <--- number of the attempt that placed all --
//! 3. <------------ rows of the OPRF -------------  (module oprf)
//! 4. and 5.                                       (modules intersect, lookup)
//!    ---------------------- end ----------------->
//!                                       if both get the result:
//! 6. <------ a bit for each place of step 4 ------
//!    <--------------------- end ------------------
//! ```
//!
//! Figure 3 with these changes: both parties draw the hash functions; a table that does not hold all items is built again
//! with the next functions that follow from the seed (nothing is dropped, and which items were in the way is not said; that
//! it happened, with probability 2^-40, is said); step 6 names places instead of items; and each party ends with a block
//! that follows from the seed, so that one which sent more or less than its sizes say is found out.

use volery_channel::{Channel, SessionId};
use volery_primitives::cuckoo::Hasher;
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;
use volery_primitives::{Block, bits};

use crate::agree::{Agreement, Role, misbehaved};
use crate::code::Code;
use crate::error::Result;
use crate::items::{Items, check_distinct, digests};
use crate::offer::{Offer, PIECE};
use crate::oprf;
use crate::params::{Parameters, Variant};
use crate::placement::{ATTEMPTS, Own, Placement};
use crate::watch::{Phase, Watch};

/// Places whose bits go out at a time in step 6.
const SHARED: usize = 1 << 20;

/// What both parties settle beforehand. Equal on both sides: a caller compares it in the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// How the receiver's items are placed.
    pub variant: Variant,
    /// Whether the sender learns which of its items are common as well.
    pub both: bool,
}

/// The sender of set intersection and keyword search, after the offline phase.
///
/// A call that fails drops it, and with it all its secrets.
pub struct Sender {
    oprf: oprf::Sender,
    session: SessionId,
    rng: Prg,
}

/// The sender when it has the keys of the OPRF.
pub(crate) struct SenderHalf {
    pub(crate) parameters: Parameters,
    pub(crate) offer: Offer,
    pub(crate) rng: Prg,
    code: Code,
    keys: oprf::Keys,
    hasher: Hasher,
    agreement: Agreement,
}

impl Sender {
    /// The offline phase, which needs nothing but the session.
    ///
    /// # Errors
    /// If the channel fails, or the peer was caught cheating.
    pub fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        let oprf = oprf::Sender::setup(session, rng.fork("setup"), channel)?;
        Ok(Self { oprf, session, rng })
    }

    /// Steps 0 to 3. `note` is a number that the receiver gets.
    pub(crate) fn begin(
        mut self,
        items: &(impl Items + ?Sized),
        note: u64,
        settings: Settings,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<SenderHalf> {
        let (session, rng) = (self.session, &mut self.rng);
        watch.begin(Phase::Agree, 0);
        let agreement = Agreement::reach(Role::Sender, items.len(), note, session, rng, channel)?;
        let parameters = Parameters::new(
            settings.variant,
            agreement.sender_items,
            agreement.receiver_items,
        );
        watch.begin(Phase::Hash, items.len() as u64);
        let mut done = |steps: usize| watch.done(steps as u64);
        let digests = digests(&agreement.salt(), items, &mut done);
        let code = Code::new(&agreement.code(), parameters.width);
        watch.begin(Phase::Encode, items.len() as u64);
        let (distinct, mut offer) = rayon::join(
            || check_distinct(&digests),
            || Offer::shuffled(&digests, rng),
        );
        distinct?;
        drop(digests);
        let mut attempt = [0];
        let mut instances = 0;
        if !parameters.trivial() {
            let mut done = |steps: usize| watch.done(steps as u64);
            offer.encode(&parameters, &code, &self.oprf, &mut done)?;
            channel.recv(&mut attempt)?; // step 2
            if attempt[0] >= ATTEMPTS {
                return Err(misbehaved("it names hash functions that there are not"));
            }
            instances = parameters.instances();
        }
        watch.begin(Phase::Rows, instances as u64);
        let mut done = |steps: usize| watch.done(steps as u64);
        let keys = self
            .oprf
            .extend_watched(&code, instances, &mut done, channel)?; // step 3
        Ok(SenderHalf {
            hasher: Hasher::new(agreement.cuckoo(attempt[0]), parameters.bins),
            parameters,
            offer,
            rng: self.rng,
            code,
            keys,
            agreement,
        })
    }
}

impl SenderHalf {
    /// Step 4: hands the outputs of the OPRF to `send`, piece by piece: the first place of the piece, and for each of the
    /// sets the outputs on the items from there on.
    pub(crate) fn answer(
        &mut self,
        watch: &mut dyn Watch,
        mut send: impl FnMut(&Offer, usize, &[Vec<Block>], &mut Prg) -> Result<()>,
    ) -> Result<()> {
        let items = self.parameters.sender_items as usize;
        watch.begin(Phase::Match, items as u64);
        if self.parameters.trivial() {
            return Ok(());
        }
        let mut sets = vec![vec![Block::ZERO; PIECE.min(items)]; self.parameters.sets()];
        for first in (0..items).step_by(PIECE) {
            let places = first..items.min(first + PIECE);
            let bins = self.offer.bins(&self.hasher, places.clone());
            for (set, out) in sets.iter_mut().enumerate() {
                out.truncate(places.len());
                let oprf = (&self.code, &self.keys);
                self.offer
                    .outputs(set, places.clone(), &bins, oprf, &self.parameters, out);
            }
            send(&self.offer, first, &sets, &mut self.rng)?;
            watch.done(places.end as u64);
        }
        Ok(())
    }

    /// The end: the numbers of this party's common items, ascending, if both parties get the result.
    pub(crate) fn end(
        self,
        settings: Settings,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Option<Vec<usize>>> {
        channel.send(&self.agreement.end(Role::Sender))?;
        let items = self.parameters.sender_items as usize;
        let mut common = Vec::new();
        if settings.both && !self.parameters.trivial() {
            watch.begin(Phase::Share, items as u64);
            let mut bytes = vec![0; SHARED.min(items).div_ceil(8)];
            for first in (0..items).step_by(SHARED) {
                let places = SHARED.min(items - first);
                let bytes = &mut bytes[..places.div_ceil(8)];
                channel.recv(bytes)?; // step 6
                let named = (0..8 * bytes.len()).filter(|&place| bits::bit(bytes, place));
                for place in named {
                    if place >= places {
                        return Err(misbehaved("it names more places than there are items"));
                    }
                    common.push(self.offer.item(first + place));
                }
                watch.done((first + places) as u64);
            }
            if common.len() as u64 > self.parameters.receiver_items {
                return Err(misbehaved("it has more common items than items"));
            }
            common.sort_unstable();
        }
        let mut end = [0; 16];
        channel.recv(&mut end)?;
        if end != self.agreement.end(Role::Receiver) {
            return Err(misbehaved(
                "it sent more or less than the sizes of the sets ask for",
            ));
        }
        Ok(settings.both.then_some(common))
    }
}

/// The receiver of set intersection and keyword search, after the offline phase.
///
/// A call that fails drops it, and with it all its secrets.
pub struct Receiver {
    oprf: oprf::Receiver,
    session: SessionId,
    rng: Prg,
}

/// The receiver when it has its outputs of the OPRF.
pub(crate) struct ReceiverHalf {
    pub(crate) parameters: Parameters,
    /// What the sender said beside its size.
    pub(crate) note: u64,
    pub(crate) own: Own,
    /// The outputs themselves, by instance, where they were asked for.
    pub(crate) outputs: Option<Buffer<Block>>,
    placement: Placement,
    agreement: Agreement,
    /// A bit for each item of this party: whether it was found.
    common: Vec<u8>,
    /// Step 6: a bit for each of the sender's places so far, whether its item was found, if the sender gets the result.
    places: Option<Vec<u8>>,
}

impl Receiver {
    /// The offline phase, which needs nothing but the session.
    ///
    /// # Errors
    /// If the channel fails, or the peer was caught cheating.
    pub fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        let oprf = oprf::Receiver::setup(session, rng.fork("setup"), channel)?;
        Ok(Self { oprf, session, rng })
    }

    /// Steps 0 to 3. `tags` makes, in place, what the sender sends of an output from the output; with `keep` the outputs
    /// themselves are kept.
    pub(crate) fn begin(
        mut self,
        items: &(impl Items + ?Sized),
        settings: Settings,
        keep: bool,
        tags: impl Fn(&mut [Block]),
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<ReceiverHalf> {
        let (session, rng) = (self.session, &mut self.rng);
        watch.begin(Phase::Agree, 0);
        let agreement = Agreement::reach(Role::Receiver, items.len(), 0, session, rng, channel)?;
        let parameters = Parameters::new(
            settings.variant,
            agreement.sender_items,
            agreement.receiver_items,
        );
        watch.begin(Phase::Hash, items.len() as u64);
        let mut done = |steps: usize| watch.done(steps as u64);
        let digests = digests(&agreement.salt(), items, &mut done);
        let code = Code::new(&agreement.code(), parameters.width);
        watch.begin(Phase::Place, 0);
        let (distinct, placement) = rayon::join(
            || check_distinct(&digests),
            || Placement::find(&agreement, &parameters, &digests),
        );
        distinct?;
        let placement = placement?;
        let mut own = Own::new(&placement, &parameters);
        let mut instances = 0;
        if !parameters.trivial() {
            channel.send(&[placement.attempt])?; // step 2
            instances = parameters.instances();
        }
        let mut outputs = keep.then(|| Buffer::zeroed(instances));
        watch.begin(Phase::Rows, instances as u64);
        let ask = |first: usize, inputs: &mut [Block]| placement.inputs(&digests, first, inputs);
        let mut scratch = vec![Block::ZERO; oprf::MESSAGE.min(instances)];
        let take = |first: usize, values: &[Block]| {
            if let Some(outputs) = &mut outputs {
                outputs[first..][..values.len()].copy_from_slice(values);
            }
            let scratch = &mut scratch[..values.len()];
            scratch.copy_from_slice(values);
            tags(scratch);
            own.take(&placement, first, scratch);
            watch.done((first + values.len()) as u64);
        };
        self.oprf
            .extend_streamed(&code, instances, ask, take, channel)?; // step 3
        Ok(ReceiverHalf {
            note: agreement.note,
            parameters,
            own,
            outputs,
            placement,
            agreement,
            common: vec![0; items.len().div_ceil(8)],
            places: settings.both.then(Vec::new),
        })
    }
}

impl ReceiverHalf {
    /// Step 5: lets `receive` get the sender's pieces, given the first place and the number of places of each. It calls
    /// [`ReceiverHalf::look_up`] with what it got.
    pub(crate) fn listen(
        &mut self,
        watch: &mut dyn Watch,
        mut receive: impl FnMut(&mut Self, usize, usize) -> Result<()>,
    ) -> Result<()> {
        let items = self.parameters.sender_items as usize;
        watch.begin(Phase::Match, items as u64);
        if self.parameters.trivial() {
            return Ok(());
        }
        for first in (0..items).step_by(PIECE) {
            let places = PIECE.min(items - first);
            if let Some(bits) = &mut self.places {
                bits.resize((first + places).div_ceil(8), 0);
            }
            receive(self, first, places)?;
            watch.done((first + places) as u64);
        }
        Ok(())
    }

    /// Finds this party's outputs among the tags of set `set` for the places from `first` on. Returns the place within the
    /// piece, and the instance, of each.
    ///
    /// # Errors
    /// If an item is found twice: an honest sender's outputs are all different, as its items are.
    pub(crate) fn look_up(
        &mut self,
        set: usize,
        first: usize,
        tags: &[u8],
    ) -> Result<Vec<(usize, usize)>> {
        let found = self.own.find(set, tags);
        for &(place, instance) in &found {
            let item = self.item(instance);
            if bits::bit(&self.common, item) {
                return Err(misbehaved("two of its outputs are for the same item"));
            }
            bits::set(&mut self.common, item, true);
            if let Some(places) = &mut self.places {
                bits::set(places, first + place, true);
            }
        }
        Ok(found)
    }

    /// Number of the item at an instance at which something was found.
    pub(crate) fn item(&self, instance: usize) -> usize {
        let (item, _) = self
            .placement
            .item(instance)
            .expect("only instances with an item are looked up");
        item
    }

    /// The end: the numbers of this party's common items, ascending.
    pub(crate) fn end(self, watch: &mut dyn Watch, channel: &mut Channel) -> Result<Vec<usize>> {
        let mut end = [0; 16];
        channel.recv(&mut end)?;
        if end != self.agreement.end(Role::Sender) {
            return Err(misbehaved(
                "it sent more or less than the sizes of the sets ask for",
            ));
        }
        if let Some(places) = &self.places {
            let items = self.parameters.sender_items;
            watch.begin(Phase::Share, items);
            for (piece, bytes) in places.chunks(SHARED / 8).enumerate() {
                channel.send(bytes)?; // step 6
                watch.done(items.min(((piece + 1) * SHARED) as u64));
            }
        }
        channel.send(&self.agreement.end(Role::Receiver))?;
        channel.flush()?;
        let items = 0..self.parameters.receiver_items as usize;
        Ok(items
            .filter(|&item| bits::bit(&self.common, item))
            .collect())
    }
}

/// The first `bytes` bytes of each block.
pub(crate) fn write_cut(blocks: &[Block], bytes: usize, out: &mut [u8]) {
    for (out, block) in out.chunks_exact_mut(bytes).zip(blocks) {
        out.copy_from_slice(&block.to_bytes()[..bytes]);
    }
}

#[cfg(test)]
mod cheating;
#[cfg(test)]
mod tests;
