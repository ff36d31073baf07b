//! The shares of one party.

use volery_channel::{Channel, Error, Result};
use volery_field::Ring;
use zeroize::Zeroizing;

use super::{
    map::Shape,
    meet::{self, Start},
};

/// The stash, and the buckets from the root down.
pub(super) struct Memory<R: Ring> {
    pub(super) shape: Shape,
    pub(super) shares: Zeroizing<Vec<R>>,
    /// Whether the parties' arrays were compared and agree.
    agreed: bool,
    /// False in the middle of an access.
    usable: bool,
}

impl<R: Ring> Memory<R> {
    pub(super) fn zeros(shape: Shape) -> Self {
        Self {
            shape,
            shares: Zeroizing::new(vec![R::ZERO; shape.slots()]),
            agreed: false,
            usable: true,
        }
    }

    /// Marks the begin of an access; [`finish`](Self::finish) undoes it.
    pub(super) fn use_up(&mut self) -> Result<()> {
        // mutant(array-poisoned): false
        if !std::mem::take(&mut self.usable) {
            return Err(Error::Broken);
        }
        Ok(())
    }

    /// Marks the end of an access, when nothing can fail any more.
    pub(super) fn finish(&mut self) {
        self.usable = true;
    }

    /// Runs step 0, unless it was done.
    pub(super) fn agree(&mut self, start: Start, channel: &mut Channel) -> Result<()> {
        if !self.agreed {
            // mutant(array-agree): drop
            meet::same::<R>(start, self.shape.length(), self.shape.stash(), channel)?;
            self.agreed = true;
        }
        Ok(())
    }

    /// Step 2.
    pub(super) fn wires(&self, leaf: u32) -> Zeroizing<Vec<R>> {
        let mut wires = Zeroizing::new(Vec::with_capacity(self.shape.wires()));
        wires.extend(self.shape.on_path(leaf).map(|slot| self.shares[slot]));
        wires.push(R::ZERO);
        wires
    }

    /// Step 5.
    pub(super) fn put_back(&mut self, leaf: u32, wires: &[R]) {
        for (slot, wire) in self.shape.on_path(leaf).zip(wires) {
            self.shares[slot] = *wire;
        }
    }
}
