//! A semi-private array: the entries are secret-shared, and one party knows the index of each
//! access. Section 7.3 of the 2019 paper, "Partially Private Distributed ORAM".
//!
//! FLORAM (Doerner and shelat, *Scaling ORAM for Secure Computation*, CCS 2017) reads from a copy
//! that is masked by a PRF and held by both, writes by a distributed point function to shares,
//! evaluates the PRF in a garbled circuit, and renews the masked copy every sqrt(n) accesses. The
//! paper replaces the point functions by known-index SPFSS. That makes a *write* easy: on plain
//! additive shares each party adds its expansion, and no write-only ORAM is needed ([`dense`]). It
//! does not give a *read*: the entry of a shared vector at an index that P1 must not learn is an
//! inner product of shares, and one party's expansion carries no information about the other's
//! shares. So there are two structures:
//!
//! * [`dense`], the paper's: additions only, and then the whole vector of shares;
//! * this one, for reads and writes: a tree of buckets as in Path ORAM (Stefanov, van Dijk, Shi,
//!   Fletcher, Ren, Yu, Devadas, CCS 2013). The holder of the indices plays the client, which knows
//!   the position of every block; the memory is secret-shared, and the holder moves blocks that it
//!   does not see through the oblivious switching network [`crate::switching`].
//!
//! There are `2^L` leaves, `L = max(1, ceil(log2 n) - 1)`, `Z = 4` blocks a bucket, and a stash of
//! `S = min(n, 140)` blocks, of which slot 0 is the *front*: the most recently accessed block. Each
//! block that was ever accessed has a leaf, uniform and known to P2 only, and lies in a bucket on
//! the path to that leaf, or in the stash. One access, of index `i`:
//!
//! ```text
//! P1 (partner)                            P2 (holder): i
//! 0. <---- n, the ring, S, whether it is loaded, crossing ---->     before the first access
//! 1.                                      x = the leaf of i, or a random one if it has none
//!         <---- operation, x ----         a new random leaf for i
//! 2. wires: the shares of the stash, of the path to x from the root down, and a zero
//! 3.                                      a permutation of the wires: block i to the front, or the
//!                                         zero if i was never accessed; the others as deep on the
//!                                         path as their leaves allow, the rest into the stash;
//!                                         wires without a block anywhere
//! 4. ------------------------ switching, P2's permutation ------------------------
//! 5. the wires return to their slots; the last one is dropped
//! 6. read: s_1                            s_2, the shares of the front
//!    open: ---- s_1 ---->                 s_1 + s_2
//!    write: the front becomes the shares given; add: they are added
//! ```
//!
//! | P1 calls | P2 calls | |
//! |---|---|---|
//! | [`Partner::read`] | [`Holder::read`] | the entry, shared |
//! | [`Partner::open`] | [`Holder::open`] | the entry, to P2 |
//! | [`Partner::open`] | [`Holder::replace`] | the entry, to P2, who computes a new one from it |
//! | [`Partner::write`] | [`Holder::write`] | the entry becomes a shared value |
//! | [`Partner::add`] | [`Holder::add`] | the entry, shared, and then a shared value is added |
//!
//! Both parties must make calls of the same line, or of the two lines `read` and `add`. P2 names
//! one of three operations in step 1, because `read` and `add` are the same to P1 and on the wire:
//! a `read` is an `add` of zero. With `open`, too, P2 hides whether it writes. P1 refuses an
//! operation that differs from its own before it changes anything, with a
//! [`Mismatch`](volery_channel::Error::Mismatch) that names both, and its array is unusable
//! afterwards; P2 sees that the other side disconnected. In step 0, which is part of `load` or else
//! of the first access, each party gets the `Mismatch`.
//!
//! An array starts with zeros ([`Holder::zeros`]) or with values that P2 knows
//! ([`Holder::from_known`]), both without a message before the first access, or with shared values
//! ([`Holder::load`]), through one large network of about `3.5*n` wires: at `n = 2^20`, 612 MB in a
//! 64-bit ring from P1, and 154 MB with the OTs from P2.
//!
//! The shares that `read` returns are those of the front until the next access; opening them to the
//! other party reveals the entry and nothing else, because each access re-masks everything it
//! touches.
//!
//! Security: semi-honest. P1 learns `n`, the number of accesses, the table line of each one, and
//! leaves: `x` is uniform and independent of all indices, because it was drawn at the last access
//! of `i` and has been used since only to choose among permutations that P1 does not see (step 4).
//! P2 learns the entries that `open` returns. By extrapolation, not by proof or count, the stash
//! overflows with a probability below 2^-60 an access: [`stash`] documents the evidence and its
//! limits. Then P2 stops, with an error, before it sends anything of that access; the array is
//! lost, and P1 learns that P2 stopped. A malicious P1 can add errors in step 4 that depend on
//! single switches, and so on indices; it would learn about them from whether the results are
//! wrong. A malicious P2 gains nothing over the choice of other indices: a switching network copies
//! nothing, so P2 sees one entry for each `open`, and overwritten entries are in no wire; it can
//! lose or mix up entries. P2's indices and leaves select addresses and branches in P2's own
//! memory: a process that shares a cache with P2 could learn about them.
//!
//! Cost: step 0 takes 32 bytes each way. An access takes 2 messages, one each way, if the source of
//! OTs sends only from P2 or not at all. There are `w = S + 4*(L + 1) + 1` wires and `s =`
//! [`switches`](crate::switching::switches)`(w)` switches: beside the OTs, `5 + ceil(s/8)` bytes
//! from P2, and from P1 `s` ring elements and one more for `open`. At `n = 2^20` there are 221
//! wires and 1,513 switches: 12,307 bytes in a 64-bit ring, and 3,168 for SoftSpoken OT with `k =
//! 8`. Computation: that of the OTs. Only the memory grows faster than the logarithm of `n`.
//!
//! Memory: `4*(2^(L+1) - 1) + S` shares at each party, about `4*n` if `n` is a power of two, and at
//! P2 as many entry numbers of 4 bytes and `n` leaves of 4 bytes: with `n = 2^20` and 8-byte
//! elements, 32 MiB and 52 MiB.
//!
//! # Examples
//!
//! A thousand words between two parties. A real run takes its session from the handshake and its
//! seeds from [`Prg::from_os`](volery_primitives::prg::Prg::from_os).
//!
//! ```
//! use volery_apps::array::{Error, Holder, Partner};
//! use volery_channel::{SessionId, run_two_parties};
//! use volery_field::Z64;
//! use volery_ot::{convert, softspoken::{self, SmallField}};
//! use volery_primitives::{Block, prg::Prg};
//!
//! let session = SessionId::from_bytes([7; 32]);
//! let (done, value) = run_two_parties(
//!     |channel| -> Result<(), Error> {
//!         let rng = Prg::new(Block::from(1));
//!         let cot = softspoken::Sender::setup(None, SmallField::Bits8, session, rng, channel)?;
//!         let mut ot = convert::Sender::new(cot, session);
//!         let mut array = Partner::<Z64>::new(1000);
//!         array.write(Z64::new(20), &mut ot, channel)?; // its share
//!         Ok(array.open(&mut ot, channel)?)
//!     },
//!     |channel| -> Result<Z64, Error> {
//!         let rng = Prg::new(Block::from(2));
//!         let cot = softspoken::Receiver::setup(SmallField::Bits8, session, rng, channel)?;
//!         let mut ot = convert::Receiver::new(cot, session);
//!         let mut array = Holder::zeros(1000, Prg::new(Block::from(3)));
//!         array.write(123, Z64::new(22), &mut ot, channel)?; // the other does not learn 123
//!         array.open(123, &mut ot, channel)
//!     },
//! );
//! done?;
//! assert_eq!(value?, Z64::new(42));
//! # Ok::<_, Error>(())
//! ```

pub mod dense;
mod load;
mod map;
mod meet;
mod memory;
pub mod stash;

#[cfg(test)]
mod tests;

use crate::switching;
use volery_channel::Channel;
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_pcg::wire;
use volery_primitives::prg::Prg;

use map::{Map, Shape};
use meet::{Operation, Start};
use memory::Memory;

/// The reason why an access failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Communication with the peer failed, or the peer does not follow the protocol.
    #[error(transparent)]
    Channel(#[from] volery_channel::Error),

    /// The index is past the end of the array. Nothing was sent, and the array is unchanged.
    #[error("the index is past the end of the array, whose entries are 0 to {}", length - 1)]
    PastTheEnd {
        /// Entries of the array.
        length: usize,
    },

    /// The stash is full. Nothing of this access was sent, but the array is unusable for both
    /// parties.
    #[error(
        "the stash of the array is full, which is estimated to happen less than once in 2^60 accesses: its entries are lost, so \
         start again with a new array"
    )]
    StashFull,
}

/// The result of an access.
pub type Result<T> = std::result::Result<T, Error>;

/// P1: holds shares and moves them.
///
/// Its memory is wiped when it is dropped.
pub struct Partner<R: Ring> {
    memory: Memory<R>,
}

/// P2: holds shares, and knows the indices and the position of each entry.
///
/// Its memory is wiped when it is dropped.
pub struct Holder<R: Ring> {
    memory: Memory<R>,
    map: Map,
}

impl<R: Ring> Partner<R> {
    /// An array of `n` zeros, or of values that the holder knows.
    ///
    /// # Panics
    /// If `n` is 0 or above 2^30.
    pub fn new(n: usize) -> Self {
        Self { memory: Memory::zeros(Shape::new(n)) }
    }

    /// An array with the shared values of which `values` are P1's shares. The holder gives its own
    /// shares.
    ///
    /// # Panics
    /// If there are no values, or more than 2^30.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails; [`Mismatch`](volery_channel::Error::Mismatch) if
    /// the holder loads another number of values or has another ring, or loads none.
    pub fn load<C: CotSender>(
        values: &[R],
        ot: &mut convert::Sender<C>,
        channel: &mut Channel,
    ) -> volery_channel::Result<Self> {
        let mut array = Self::new(values.len());
        load::send(values, &mut array.memory, ot, channel)?;
        Ok(array)
    }

    /// Entries of the array.
    pub fn length(&self) -> usize {
        self.memory.shape.length()
    }

    /// P1's share of the entry.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails, or the holder sent no leaf;
    /// [`Mismatch`](volery_channel::Error::Mismatch) if it has another array or calls another
    /// operation; [`Broken`](volery_channel::Error::Broken) after an access that failed.
    pub fn read<C: CotSender>(
        &mut self,
        ot: &mut convert::Sender<C>,
        channel: &mut Channel,
    ) -> volery_channel::Result<R> {
        self.add(R::ZERO, ot, channel)
    }

    /// Opens the entry to the holder, which may set it to another value. Fails as
    /// [`read`](Self::read) does.
    pub fn open<C: CotSender>(
        &mut self,
        ot: &mut convert::Sender<C>,
        channel: &mut Channel,
    ) -> volery_channel::Result<()> {
        self.bring(Operation::Open, ot, channel)?;
        wire::send(&self.memory.shares[..1], channel)?; // step 6
        channel.flush()?;
        self.memory.finish();
        Ok(())
    }

    /// Sets the entry to the value of which `share` is P1's share. Fails as [`read`](Self::read)
    /// does.
    pub fn write<C: CotSender>(
        &mut self,
        share: R,
        ot: &mut convert::Sender<C>,
        channel: &mut Channel,
    ) -> volery_channel::Result<()> {
        self.bring(Operation::Write, ot, channel)?;
        self.memory.shares[0] = share;
        self.memory.finish();
        Ok(())
    }

    /// Returns P1's share of the entry, then adds the value of which `share` is P1's share. Fails
    /// as [`read`](Self::read) does.
    pub fn add<C: CotSender>(
        &mut self,
        share: R,
        ot: &mut convert::Sender<C>,
        channel: &mut Channel,
    ) -> volery_channel::Result<R> {
        self.bring(Operation::Read, ot, channel)?;
        let before = self.memory.shares[0];
        self.memory.shares[0] = before + share;
        self.memory.finish();
        Ok(before)
    }

    /// Steps 0 to 5.
    fn bring<C: CotSender>(
        &mut self,
        operation: Operation,
        ot: &mut convert::Sender<C>,
        channel: &mut Channel,
    ) -> volery_channel::Result<()> {
        self.memory.use_up()?;
        // mutant(array-agree-partner): drop
        self.memory.agree(Start::Array, channel)?; // step 0
        let mut theirs = [0];
        let mut leaf = [0; 4];
        channel.recv(&mut theirs)?; // step 1
        // mutant(array-operation): drop
        operation.meets(theirs[0])?;
        channel.recv(&mut leaf)?;
        let leaf = u32::from_le_bytes(leaf);
        // mutant(array-leaf): false
        if leaf >= self.memory.shape.leaves() {
            return Err(volery_channel::Error::PeerMisbehaved(
                "the holder of an array sent a leaf out of range",
            ));
        }
        let mut wires = self.memory.wires(leaf); // step 2
        switching::send(&mut wires, ot, channel)?; // step 4
        self.memory.put_back(leaf, &wires); // step 5
        Ok(())
    }
}

impl<R: Ring> Holder<R> {
    /// An array of `n` zeros. The leaves come from `rng`.
    ///
    /// # Panics
    /// If `n` is 0 or above 2^30.
    pub fn zeros(n: usize, rng: Prg) -> Self {
        let shape = Shape::new(n);
        Self { memory: Memory::zeros(shape), map: Map::empty(shape, rng) }
    }

    /// An array with values that the holder knows. The partner calls [`Partner::new`], and no
    /// message is sent.
    ///
    /// # Panics
    /// If there are no values, or more than 2^30.
    ///
    /// # Errors
    /// [`Error::StashFull`].
    pub fn from_known(values: &[R], rng: Prg) -> Result<Self> {
        let mut array = Self::zeros(values.len(), rng);
        let sources = array.map.place_all()?;
        for (slot, source) in array.memory.shape.loaded().zip(sources.iter()) {
            array.memory.shares[slot] = values.get(*source).copied().unwrap_or(R::ZERO);
        }
        Ok(array)
    }

    /// An array with the shared values of which `values` are P2's shares. The partner gives its own
    /// shares.
    ///
    /// # Panics
    /// If there are no values, or more than 2^30.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails, or the partner sent a value that is not an
    /// element of the ring; [`Error::StashFull`]; [`Mismatch`](volery_channel::Error::Mismatch) if
    /// the partner loads another number of values or has another ring, or loads none.
    pub fn load<C: CotReceiver>(
        values: &[R],
        rng: Prg,
        ot: &mut convert::Receiver<C>,
        channel: &mut Channel,
    ) -> Result<Self> {
        let mut array = Self::zeros(values.len(), rng);
        let sources = array.map.place_all()?;
        load::receive(values, &sources, &mut array.memory, ot, channel)?;
        Ok(array)
    }

    /// Entries of the array.
    pub fn length(&self) -> usize {
        self.memory.shape.length()
    }

    /// P2's share of the entry `index`.
    ///
    /// # Errors
    /// [`Error::PastTheEnd`], and then nothing was sent. If the channel or the source of OTs fails,
    /// or the partner sent a value that is not an element of the ring;
    /// [`Mismatch`](volery_channel::Error::Mismatch) if it has another array; [`Error::StashFull`];
    /// [`Broken`](volery_channel::Error::Broken) after an access that failed.
    pub fn read<C: CotReceiver>(
        &mut self,
        index: usize,
        ot: &mut convert::Receiver<C>,
        channel: &mut Channel,
    ) -> Result<R> {
        self.add(index, R::ZERO, ot, channel)
    }

    /// The entry `index`. Fails as [`read`](Self::read) does.
    pub fn open<C: CotReceiver>(
        &mut self,
        index: usize,
        ot: &mut convert::Receiver<C>,
        channel: &mut Channel,
    ) -> Result<R> {
        self.replace(index, |value| value, ot, channel)
    }

    /// Returns the entry `index` and replaces it by the result of `change`. The partner sees an
    /// [`open`](Self::open). Fails as [`read`](Self::read) does.
    pub fn replace<C: CotReceiver>(
        &mut self,
        index: usize,
        change: impl FnOnce(R) -> R,
        ot: &mut convert::Receiver<C>,
        channel: &mut Channel,
    ) -> Result<R> {
        self.bring(index, Operation::Open, ot, channel)?;
        let mut share = [R::ZERO];
        // mutant(array-canonical): ignore
        wire::recv(&mut share, "the share of an entry is not in canonical form", channel)?; // step 6
        let value = share[0] + self.memory.shares[0];
        self.memory.shares[0] += change(value) - value;
        self.memory.finish();
        Ok(value)
    }

    /// Sets the entry `index` to the value of which `share` is P2's share. Fails as
    /// [`read`](Self::read) does.
    pub fn write<C: CotReceiver>(
        &mut self,
        index: usize,
        share: R,
        ot: &mut convert::Receiver<C>,
        channel: &mut Channel,
    ) -> Result<()> {
        self.bring(index, Operation::Write, ot, channel)?;
        self.memory.shares[0] = share;
        self.memory.finish();
        Ok(())
    }

    /// Returns P2's share of the entry `index`, then adds the value of which `share` is P2's share.
    /// Fails as [`read`](Self::read) does.
    pub fn add<C: CotReceiver>(
        &mut self,
        index: usize,
        share: R,
        ot: &mut convert::Receiver<C>,
        channel: &mut Channel,
    ) -> Result<R> {
        self.bring(index, Operation::Read, ot, channel)?;
        let before = self.memory.shares[0];
        self.memory.shares[0] = before + share;
        self.memory.finish();
        Ok(before)
    }

    /// Steps 0 to 5.
    fn bring<C: CotReceiver>(
        &mut self,
        index: usize,
        operation: Operation,
        ot: &mut convert::Receiver<C>,
        channel: &mut Channel,
    ) -> Result<()> {
        let length = self.length();
        if index >= length {
            return Err(Error::PastTheEnd { length });
        }
        self.memory.use_up()?;
        let (leaf, sources) = self.map.access(index)?; // steps 1, 3
        self.memory.agree(Start::Array, channel)?; // step 0
        channel.send(&[operation as u8])?;
        channel.send(&leaf.to_le_bytes())?;
        let mut wires = self.memory.wires(leaf); // step 2
        switching::receive(sources, &mut wires, ot, channel)?; // step 4
        self.memory.put_back(leaf, &wires); // step 5
        Ok(())
    }
}
