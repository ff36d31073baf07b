//! The steps shared by set intersection and keyword search: everything up to the keys and outputs
//! of the OPRF, and the end.
//!
//! ```text
//! Sender: X                                       Receiver: Y
//! offline: the setup of the OPRF
//! 0. both: sizes, settings, seed, committed to    (module agree)
//! 1. hash functions h_1, h_2, h_3, the code and the salt of the items from the seed
//! 2.                                              a cuckoo table of Y
//!    <--- number of the successful attempt ------
//! 3. <------------ rows of the OPRF -------------  (module oprf)
//! 4. and 5.                                       (modules intersect, lookup)
//!    ---------------------- end ----------------->
//!                                       if both get the result:
//! 6. <------ a bit for each place of step 4 ------
//!    <--------------------- end ------------------
//! ```
//!
//! Changes to Figure 3: both parties draw the hash functions; if a table does not hold all items,
//! it is rebuilt with the next functions derived from the seed (no item is dropped; the sender
//! learns that a rebuild happened, which has probability 2^-40, but not which items caused it);
//! step 6 names places instead of items; and each party ends with a block derived from the seed and
//! the parameters, which exposes a party that sent more or less than its sizes imply.
//!
//! No error of the receiver depends on its items: it would tell the sender about one of them, now
//! or by the parts of a larger run that no longer follow. Of two outputs for one item the first
//! counts.

mod listen;

use std::borrow::BorrowMut;
use std::cell::RefCell;

use rayon::prelude::*;
use volery_channel::{Channel, Hello, Role, Session, SessionId};
use volery_primitives::cuckoo::Hasher;
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use volery_primitives::{Block, bits};
use zeroize::Zeroizing;

use crate::agree::{Agreement, Terms};
use crate::code::Code;
use crate::duplicates::check_duplicates;
use crate::error::{Result, misbehaved};
use crate::items::{self, Items, digests};
use crate::oprf;
use crate::params::{Parameters, Variant};
use crate::partition::{at_a_time, several};
use crate::receiver_table::{ATTEMPTS, ItemTags, Placement, ReceiverTable};
use crate::sender_set::{Oprf, Outputs, PIECE, SenderSet};
use crate::shuffle::Shuffle;
use crate::watch::{Phase, Watch};

/// Places whose bits are sent at a time in step 6.
const SHARED: usize = 1 << 20;

/// The settings of a run. Equal on both sides: a caller compares them in the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The placement of the receiver's items.
    pub variant: Variant,
    /// Whether the sender learns which of its items are common as well.
    pub both: bool,
}

impl Settings {
    /// This party's hello for the handshake of a run with these settings; `protocol` names the
    /// protocol that both are about to run, such as `intersection`.
    #[must_use]
    pub fn hello(self, protocol: &'static str, role: Role) -> Hello {
        Hello {
            protocol,
            role: role.name(),
            fields: vec![("variant", self.variant.to_string()), ("both", self.both.to_string())],
        }
    }

    /// The terms compared with the peer's: the protocol's name and these settings.
    fn terms(self, protocol: Protocol, parts: u64) -> Terms {
        // mutant(psi-terms-protocol): `protocol.name().as_bytes()` => `b""`
        // mutant(psi-terms-variant): `self.variant.name().as_bytes()` => `b""`
        // mutant(psi-terms-both): `self.both` => `false`
        let terms = RandomOracle::new("volery psi: terms")
            .absorb(protocol.name().as_bytes())
            .absorb(self.variant.name().as_bytes())
            .absorb(&[self.both.into()])
            .absorb_u64(parts)
            .finish32();
        *terms.first_chunk().expect("32 bytes")
    }
}

/// The protocols built on these sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Intersection,
    Search,
}

impl Protocol {
    const fn name(self) -> &'static str {
        match self {
            Self::Intersection => "intersection",
            Self::Search => "search",
        }
    }
}

/// Step 1: derives the parameters and the code from the sizes and the seed.
fn settle(agreement: &Agreement, settings: Settings, parts: u64) -> (Parameters, Code) {
    let parameters = Parameters::one_of(
        parts,
        settings.variant,
        agreement.sender_items,
        agreement.receiver_items,
    );
    let code = Code::new(&agreement.code(), parameters.width);
    (parameters, code)
}

/// The sender of set intersection and keyword search, after the offline phase.
///
/// A failed call drops it with all its secrets.
pub struct Sender {
    oprf: oprf::Sender,
    session: SessionId,
    rng: Prg,
    /// Executions that share a failure probability of `2^-40`.
    parts: u64,
}

/// The sender once it has the keys of the OPRF.
pub(crate) struct SenderSession {
    pub(crate) parameters: Parameters,
    pub(crate) sender_set: SenderSet,
    pub(crate) rng: Prg,
    oprf: Oprf,
    hasher: Hasher,
    agreement: Agreement,
}

impl Sender {
    /// [`setup`](Self::setup) on a session, with a fresh session id and fresh randomness. Fails as
    /// [`setup`](Self::setup) does.
    pub fn start(session: &mut Session<impl BorrowMut<Channel>>) -> Result<Self> {
        let (id, rng, channel) = session.parts();
        Self::setup(id, rng, channel)
    }

    /// The offline phase, which needs only the session.
    ///
    /// # Errors
    /// If the channel fails, or a check finds that the peer deviated from the protocol.
    pub fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        let oprf = oprf::Sender::setup(session, rng.fork("setup"), channel)?;
        Ok(Self { oprf, session, rng, parts: 1 })
    }

    /// Makes this one of `parts` executions of a larger run, in all of which together anything
    /// fails with probability `2^-40`; the same at both parties.
    #[must_use]
    pub const fn one_of(mut self, parts: u64) -> Self {
        self.parts = parts;
        self
    }

    /// Steps 0 to 3. The receiver gets the number `note`.
    pub(crate) fn begin(
        mut self,
        items: &(impl Items + ?Sized),
        note: u64,
        (protocol, settings): (Protocol, Settings),
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<SenderSession> {
        watch.begin(Phase::Agree, 0);
        let terms = settings.terms(protocol, self.parts);
        let (role, said) = (Role::Sender, (items.len(), note));
        let agreement = Agreement::reach(role, self.session, &mut self.rng, terms, said, channel)?;
        let (parameters, code) = settle(&agreement, settings, self.parts); // step 1
        let sender_set = sender_set(&agreement.salt(), items, &mut self.rng, watch)?;
        let mut attempt = [0];
        let mut instances = 0;
        if !parameters.trivial() {
            channel.recv(&mut attempt)?; // step 2
            // mutant(psi-functions): false
            if attempt[0] >= ATTEMPTS {
                return Err(misbehaved("it selected an unknown set of hash functions"));
            }
            instances = parameters.instances();
        }
        watch.begin(Phase::Rows, instances as u64);
        let mut done = |steps: usize| watch.done(steps as u64);
        let keys = self.oprf.extend_watched(&code, instances, &mut done, channel)?; // step 3
        Ok(SenderSession {
            hasher: Hasher::new(agreement.cuckoo(attempt[0]), parameters.bins),
            parameters,
            sender_set,
            rng: self.rng,
            oprf: Oprf { sender: self.oprf, code, keys },
            agreement,
        })
    }
}

/// The items in a random order, checked to be distinct.
fn sender_set(
    salt: &[u8; 32],
    items: &(impl Items + ?Sized),
    rng: &mut Prg,
    watch: &mut dyn Watch,
) -> Result<SenderSet> {
    watch.begin(Phase::Hash, items.len() as u64);
    let mut shuffle = Shuffle::new(items.len(), rng);
    let piece = items::piece(items.len());
    let mut blocks = Zeroizing::new(vec![Block::ZERO; piece.min(items.len())]);
    for first in (0..items.len()).step_by(piece) {
        let blocks = &mut blocks[..piece.min(items.len() - first)];
        items::hash(salt, items, first, blocks);
        shuffle.take(blocks);
        watch.done((first + blocks.len()) as u64);
    }
    watch.begin(Phase::Encode, items.len() as u64);
    let sender_set = SenderSet::new(shuffle.finish(rng));
    check_duplicates(sender_set.digests(), |place| sender_set.item(place))?;
    watch.done(items.len() as u64);
    Ok(sender_set)
}

/// Runs `work` for the pieces that begin at `firsts`; a single piece runs on one
/// thread, which its own parallel work shares with the others.
fn each<T: Send>(
    pieces: &mut [T],
    firsts: impl Iterator<Item = usize>,
    work: impl Fn(usize, &mut T) -> volery_ot::Result<()> + Sync,
) -> Result<()> {
    let mut pieces: Vec<_> = firsts.zip(pieces).collect();
    Ok(pieces.par_iter_mut().try_for_each(|(first, piece)| work(*first, piece))?)
}

impl SenderSession {
    /// Separates the tags and masks of one keyword search from those of all others.
    pub(crate) fn search(&self) -> Block {
        self.agreement.search()
    }

    /// Step 4: passes the outputs of the OPRF to `send`, piece by piece: the first place of the
    /// piece, and for each set the outputs on the items from that place on.
    pub(crate) fn answer(
        &mut self,
        watch: &mut dyn Watch,
        send: impl FnMut(&SenderSet, usize, &[Outputs], &mut Prg) -> Result<()>,
    ) -> Result<()> {
        self.answer_with(watch, |_| (), send)
    }

    /// [`SenderSession::answer`], where `finish` first processes the outputs of each set, on
    /// several threads.
    pub(crate) fn answer_with(
        &mut self,
        watch: &mut dyn Watch,
        finish: impl Fn(&mut Outputs) + Sync,
        mut send: impl FnMut(&SenderSet, usize, &[Outputs], &mut Prg) -> Result<()>,
    ) -> Result<()> {
        let items = self.parameters.sender_items as usize;
        watch.begin(Phase::Match, items as u64);
        if self.parameters.trivial() {
            return Ok(());
        }
        let (sender_set, parameters) = (&self.sender_set, &self.parameters);
        let sets = || (0..parameters.sets()).map(|_| Outputs::default());
        let mut pieces: Vec<Vec<_>> = Vec::new();
        pieces.resize_with(at_a_time(items / PIECE), || sets().collect());
        let places = |first: usize| first..items.min(first + PIECE);
        for start in (0..items).step_by(PIECE * pieces.len()) {
            let firsts = (start..items).step_by(PIECE);
            let (oprf, hasher) = (&self.oprf, &self.hasher);
            each(&mut pieces, firsts.clone(), |first, sets| {
                let bins = sender_set.bins(hasher, places(first));
                sender_set.outputs(places(first), &bins, oprf, parameters, &finish, sets)
            })?;
            for (first, sets) in firsts.zip(&pieces) {
                send(sender_set, first, sets, &mut self.rng)?;
                watch.done(places(first).end as u64);
            }
        }
        Ok(())
    }

    /// The end: the numbers of this party's common items, ascending, if both parties get the
    /// result.
    pub(crate) fn end(
        self,
        settings: Settings,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Option<Vec<usize>>> {
        channel.send(&self.agreement.end(Role::Sender, &self.parameters.words()))?;
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
                    // mutant(psi-places): false
                    if place >= places {
                        return Err(misbehaved("it named a place beyond the sender's items"));
                    }
                    common.push(self.sender_set.item(first + place));
                }
                watch.done((first + places) as u64);
            }
            // mutant(psi-too-many): false
            if common.len() as u64 > self.parameters.receiver_items {
                return Err(misbehaved("it reported more common items than it has items"));
            }
            common.sort_unstable();
        }
        let mut end = [0; 16];
        channel.recv(&mut end)?;
        // mutant(psi-end-receiver): false
        if end != self.agreement.end(Role::Receiver, &self.parameters.words()) {
            return Err(misbehaved("it sent more or less data than the set sizes require"));
        }
        Ok(settings.both.then_some(common))
    }
}

/// The receiver of set intersection and keyword search, after the offline phase.
///
/// A failed call drops it with all its secrets.
pub struct Receiver {
    oprf: oprf::Receiver,
    session: SessionId,
    rng: Prg,
    /// Executions that share a failure probability of `2^-40`.
    parts: u64,
}

/// The receiver once it has its outputs of the OPRF.
pub(crate) struct ReceiverSession {
    pub(crate) parameters: Parameters,
    /// The number that the sender sent along with its size.
    pub(crate) note: u64,
    pub(crate) table: ReceiverTable,
    /// The block that `derive` kept for each item.
    pub(crate) kept: Buffer<Block>,
    agreement: Agreement,
    /// For each item of this party, a bit that tells whether it was found.
    common: Vec<u8>,
    /// Step 6, if the sender gets the result: for each of the sender's places so far, a bit that
    /// tells whether its item was found.
    places: Option<Vec<u8>>,
}

/// Converts outputs of the OPRF to tags and to blocks kept for later: given the inputs, the outputs
/// (overwritten with the tags) and space for the kept blocks.
pub(crate) type Derive<'a> = &'a dyn Fn(&Agreement, &[Block], &mut [Block], &mut [Block]);

impl Receiver {
    /// [`setup`](Self::setup) on a session, with a fresh session id and fresh randomness. Fails as
    /// [`setup`](Self::setup) does.
    pub fn start(session: &mut Session<impl BorrowMut<Channel>>) -> Result<Self> {
        let (id, rng, channel) = session.parts();
        Self::setup(id, rng, channel)
    }

    /// The offline phase, which needs only the session.
    ///
    /// # Errors
    /// If the channel fails, or a check finds that the peer deviated from the protocol.
    pub fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        let oprf = oprf::Receiver::setup(session, rng.fork("setup"), channel)?;
        Ok(Self { oprf, session, rng, parts: 1 })
    }

    /// Makes this one of `parts` executions of a larger run, in all of which together anything
    /// fails with probability `2^-40`; the same at both parties.
    #[must_use]
    pub const fn one_of(mut self, parts: u64) -> Self {
        self.parts = parts;
        self
    }

    /// Steps 0 to 3. `derive` converts the outputs to the tags that the sender sends and to blocks
    /// kept for later; without it the outputs are the tags, and nothing is kept.
    pub(crate) fn begin(
        mut self,
        items: &(impl Items + ?Sized),
        (protocol, settings): (Protocol, Settings),
        derive: Option<Derive<'_>>,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<ReceiverSession> {
        watch.begin(Phase::Agree, 0);
        let terms = settings.terms(protocol, self.parts);
        let (role, said) = (Role::Receiver, (items.len(), 0));
        let agreement = Agreement::reach(role, self.session, &mut self.rng, terms, said, channel)?;
        let (parameters, code) = settle(&agreement, settings, self.parts); // step 1
        watch.begin(Phase::Hash, items.len() as u64);
        let digests = digests(&agreement.salt(), items, &mut |steps| {
            watch.done(steps as u64);
        });
        watch.begin(Phase::Place, 0);
        let distinct = || check_duplicates(&digests, |item| item);
        let find = || Placement::find(&agreement, &parameters, &digests);
        let placement = if several() {
            // One thread builds the table, however many threads there are.
            let (placement, distinct) = rayon::join(find, distinct);
            distinct?;
            placement?
        } else {
            // Before the table: with many equal items building it takes long.
            distinct()?;
            find()?
        };
        let taking = RefCell::new(ItemTags::new(digests, &parameters));
        let mut instances = 0;
        if !parameters.trivial() {
            channel.send(&[placement.attempt])?; // step 2
            instances = parameters.instances();
        }
        let keeps = derive.map_or(0, |_| items.len());
        let mut kept = Buffer::zeroed(keeps);
        watch.begin(Phase::Rows, instances as u64);
        let ask = |first: usize, inputs: &mut [Block]| {
            taking.borrow().inputs(&placement, first, inputs);
        };
        let scratch = || Zeroizing::new(vec![Block::ZERO; oprf::size(instances).min(instances)]);
        let (mut tags, mut masks) = (scratch(), scratch());
        let take = |first: usize, inputs: &[Block], outputs: &[Block]| {
            let mut taking = taking.borrow_mut();
            let n = outputs.len();
            match derive {
                None => taking.take(&placement, first, outputs),
                Some(derive) => {
                    tags[..n].copy_from_slice(outputs);
                    masks[..n].fill(Block::ZERO);
                    derive(&agreement, inputs, &mut tags[..n], &mut masks[..n]);
                    for (instance, mask) in (first..).zip(&masks[..n]) {
                        if let Some((item, _)) = placement.item(instance) {
                            kept[item] = *mask;
                        }
                    }
                    taking.take(&placement, first, &tags[..n]);
                }
            }
            watch.done((first + n) as u64);
        };
        self.oprf.extend_streamed(&code, instances, ask, take, channel)?; // step 3
        Ok(ReceiverSession {
            note: agreement.note,
            parameters,
            table: taking.into_inner().finish(),
            kept,
            agreement,
            common: vec![0; items.len().div_ceil(8)],
            places: settings.both.then(Vec::new),
        })
    }
}

impl ReceiverSession {
    /// Separates the tags and masks of one keyword search from those of all others.
    pub(crate) fn search(&self) -> Block {
        self.agreement.search()
    }

    /// The end: the numbers of this party's common items, ascending.
    pub(crate) fn end(self, watch: &mut dyn Watch, channel: &mut Channel) -> Result<Vec<usize>> {
        let mut end = [0; 16];
        channel.recv(&mut end)?;
        // mutant(psi-end-sender): false
        if end != self.agreement.end(Role::Sender, &self.parameters.words()) {
            return Err(misbehaved("it sent more or less data than the set sizes require"));
        }
        if let Some(places) = &self.places {
            let items = self.parameters.sender_items;
            watch.begin(Phase::Share, items);
            for (piece, bytes) in places.chunks(SHARED / 8).enumerate() {
                channel.send(bytes)?; // step 6
                watch.done(items.min(((piece + 1) * SHARED) as u64));
            }
        }
        channel.send(&self.agreement.end(Role::Receiver, &self.parameters.words()))?;
        channel.flush()?;
        let items = 0..self.parameters.receiver_items as usize;
        Ok(items.filter(|&item| bits::bit(&self.common, item)).collect())
    }
}

#[cfg(test)]
pub(crate) mod counting;
#[cfg(test)]
mod malicious;
#[cfg(test)]
mod tests;
