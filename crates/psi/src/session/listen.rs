//! Step 5: the receiver gets the sender's outputs and looks for its own.

use volery_primitives::bits;
use zeroize::Zeroizing;

use super::ReceiverSession;
use crate::error::Result;
use crate::sender_set::PIECE;
use crate::watch::{Phase, Watch};

impl ReceiverSession {
    /// Step 5: calls `receive` for each of the sender's pieces, with the first place and the number
    /// of places. `receive` gets the piece and passes it to [`ReceiverSession::look_up`].
    pub(crate) fn listen(
        &mut self,
        watch: &mut dyn Watch,
        receive: impl FnMut(&mut Self, &mut dyn Watch, usize, usize) -> Result<()>,
    ) -> Result<()> {
        self.listen_to(1, watch, receive)
    }

    /// [`ReceiverSession::listen`] for a given number of pieces at a time.
    pub(crate) fn listen_to(
        &mut self,
        pieces: usize,
        watch: &mut dyn Watch,
        mut receive: impl FnMut(&mut Self, &mut dyn Watch, usize, usize) -> Result<()>,
    ) -> Result<()> {
        let items = self.parameters.sender_items as usize;
        watch.begin(Phase::Match, items as u64);
        if self.parameters.trivial() {
            return Ok(());
        }
        for first in (0..items).step_by(pieces * PIECE) {
            let places = items.min(first + pieces * PIECE) - first;
            if let Some(bits) = &mut self.places {
                bits.resize((first + places).div_ceil(8), 0);
            }
            receive(self, watch, first, places)?;
            watch.done((first + places) as u64);
        }
        Ok(())
    }

    /// Finds this party's outputs among the tags of set `set` for the places from `first` on.
    /// Returns the place within the piece and the item of each match that is new.
    pub(crate) fn look_up(&mut self, set: usize, first: usize, tags: &[u8]) -> Vec<(usize, usize)> {
        let mut found = self.table.find(set, tags);
        found.retain(|&(place, item)| self.note(first + place, item));
        found
    }

    /// [`ReceiverSession::look_up`] for all sets of some pieces that begin at place `first`, in the
    /// order received: piece after piece, and within a piece set after set.
    pub(crate) fn look_up_all(&mut self, first: usize, places: usize, tags: &[u8]) {
        let tag = self.parameters.tag;
        let pieces = (0..places).step_by(PIECE);
        let count = |piece: usize| PIECE.min(places - piece);
        let mut sets = Vec::new();
        let mut rest = tags;
        for piece in pieces {
            for set in 0..self.parameters.sets() {
                let tags;
                (tags, rest) = rest.split_at(count(piece) * tag);
                sets.push((piece, (set, tags)));
            }
        }
        let (starts, sets): (Vec<_>, Vec<_>) = sets.into_iter().unzip();
        let found = Zeroizing::new(self.table.find_all(&sets));
        for (number, found) in found.iter() {
            for &(place, item) in found {
                self.note(first + starts[*number] + place, item);
            }
        }
    }

    /// Records an item that was found at a place of the sender. Returns whether it is new.
    fn note(&mut self, place: usize, item: usize) -> bool {
        // mutant(psi-twice): `bits::bit(&self.common, item)` => `false`
        let new = !bits::bit(&self.common, item);
        if new {
            bits::set(&mut self.common, item, true);
            if let Some(places) = &mut self.places {
                bits::set(places, place, true);
            }
        }
        new
    }
}
