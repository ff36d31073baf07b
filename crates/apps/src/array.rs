//! A shared vector with additions at an index that only one party knows: section 7.3 of the 2019
//! paper, "Partially Private Distributed ORAM".
//!
//! FLORAM (Doerner and shelat, *Scaling ORAM for Secure Computation*, CCS 2017) writes by a
//! distributed point function to shares. The paper replaces it by known-index SPFSS: on additive
//! shares each party adds its expansion.
//!
//! ```text
//! P1 (partner): v_1, beta_1               P2 (holder): v_2, i, beta_2
//! 0. <---- n and the ring, crossing ---->                           before the first addition
//! 1. ------------------------ spcot, one half-tree, hashed leaves ------------------------
//!    r                                    m, equal to r but for r_i - m_i = beta_1 + beta_2
//! 2. v_1 + r                              v_2 - m
//! ```
//!
//! so that `v_1 + v_2` has `beta_1 + beta_2` added at `i` and is re-masked everywhere. If the
//! parties hold shares of an entry, they set it by adding the difference.
//!
//! The construction serves additions; the only read is that of the whole vector,
//! [`into_shares`](Holder::into_shares). A private read is not offered: the entry at an index that
//! P1 must not learn is an inner product of two shared vectors, and an expansion at one party
//! carries no information about the shares of the other.
//!
//! Security: semi-honest, that of [`volery_pcg::spcot`]: P1 learns that something was added, P2
//! nothing. A malicious P1 can add errors that depend on the path to `i`; a malicious P2 can add to
//! another entry, to one only. P2's index selects an address in P2's own memory.
//!
//! Cost: 16 bytes each way for step 0. An addition takes 2 messages, one each way. With `h = max(1,
//! ceil(log2 n))`, beside `h` correlated OTs: `ceil(h/8)` bytes from P2, and from P1 `16*(h + 1)`
//! and a ring element. At `n = 2^20` in a 64-bit ring that is 3 and 344 bytes. Computation: in
//! 64-bit rings one AES call an entry, and two passes over memory. Memory: two vectors of shares at
//! each party.

#[cfg(test)]
mod tests;

use volery_channel::{Channel, SessionId};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_pcg::{
    ggm::{Growth, TreePrgs},
    spcot::{self, Points},
    tree_batch::TreeBatch,
};
use volery_primitives::{pages::Buffer, prg::Prg, ro::RandomOracle};
use zeroize::Zeroizing;

use crate::{
    agree,
    error::{Error, Result},
};

/// P1, which does not know the indices.
///
/// Its memory is wiped when it is dropped.
pub struct Partner<R: Ring> {
    vector: Vector<R>,
    rng: Prg,
}

/// P2, which knows the indices.
///
/// Its memory is wiped when it is dropped.
pub struct Holder<R: Ring> {
    vector: Vector<R>,
}

impl<R: Ring> Partner<R> {
    /// The vector of which `shares` are P1's shares. No other vector of the same parties may use
    /// the same `session` or the same OTs.
    ///
    /// # Panics
    /// If there are no shares, or more than 2^40.
    pub fn new(shares: Vec<R>, session: SessionId, rng: Prg) -> Self {
        Self { vector: Vector::new(shares, session), rng }
    }

    /// Adds the value of which `share` is P1's share, at the holder's index.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails; [`Mismatch`](volery_channel::Error::Mismatch) if
    /// the holder has another number of entries or another ring;
    /// [`Broken`](volery_channel::Error::Broken) after a call that failed.
    pub fn add<C: CotSender>(
        &mut self,
        share: R,
        ot: &mut convert::Sender<C>,
        channel: &mut Channel,
    ) -> volery_channel::Result<()> {
        let vector = &mut self.vector;
        let prgs = vector.use_up(channel)?;
        let trees = (&vector.batch, &prgs);
        let points = Points::Chosen(&[]);
        spcot::send(trees, points, &[share], &mut vector.leaves, &mut self.rng, ot, channel)?; // step 1
        let n = vector.shares.len();
        R::add_slice(&mut vector.shares, &vector.leaves[..n]); // step 2
        vector.usable = true;
        Ok(())
    }

    /// P1's shares of the vector.
    #[must_use]
    pub fn into_shares(self) -> Zeroizing<Vec<R>> {
        self.vector.shares
    }
}

impl<R: Ring> Holder<R> {
    /// The vector of which `shares` are P2's shares. No other vector of the same parties may use
    /// the same `session` or the same OTs.
    ///
    /// # Panics
    /// If there are no shares, or more than 2^40.
    pub fn new(shares: Vec<R>, session: SessionId) -> Self {
        Self { vector: Vector::new(shares, session) }
    }

    /// Adds to the entry `index` the value of which `share` is P2's share.
    ///
    /// # Errors
    /// [`Error::Input`] if there is no such entry, and then nothing was sent and the vector is
    /// unchanged. If the channel or the source of OTs fails, or the partner sent a value that is
    /// not an element of the ring; [`Mismatch`](volery_channel::Error::Mismatch) if it has another
    /// number of entries or another ring; [`Broken`](volery_channel::Error::Broken) after a call
    /// that failed.
    pub fn add<C: CotReceiver>(
        &mut self,
        index: usize,
        share: R,
        ot: &mut convert::Receiver<C>,
        channel: &mut Channel,
    ) -> Result<()> {
        let vector = &mut self.vector;
        let n = vector.shares.len();
        if index >= n {
            return Err(Error::Input(format!(
                "the index is past the end of the vector, whose entries are 0 to {}",
                n - 1
            )));
        }
        let prgs = vector.use_up(channel)?;
        let trees = (&vector.batch, &prgs);
        let points = Points::Chosen(&[index]);
        spcot::receive(trees, points, &[share], &mut vector.leaves, ot, channel)?; // step 1
        R::sub_slice(&mut vector.shares, &vector.leaves[..n]); // step 2
        vector.usable = true;
        Ok(())
    }

    /// P2's shares of the vector.
    #[must_use]
    pub fn into_shares(self) -> Zeroizing<Vec<R>> {
        self.vector.shares
    }
}

/// The part common to both parties.
struct Vector<R: Ring> {
    shares: Zeroizing<Vec<R>>,
    /// One complete tree.
    batch: TreeBatch,
    leaves: Buffer<R>,
    session: SessionId,
    /// Number of trees so far: each has its own AES keys.
    trees: u64,
    /// Whether the parties' vectors were compared and agree.
    agreed: bool,
    usable: bool,
}

impl<R: Ring> Vector<R> {
    fn new(shares: Vec<R>, session: SessionId) -> Self {
        let leaves = shares.len().next_power_of_two().max(2);
        assert!(!shares.is_empty(), "a vector must have at least one entry");
        let mut oracle = RandomOracle::new("volery array: dense");
        // mutant(array-session): drop
        oracle.absorb(session.as_bytes());
        Self {
            shares: Zeroizing::new(shares),
            batch: TreeBatch::regular(1, leaves),
            leaves: Buffer::zeroed(leaves),
            session: SessionId::from_bytes(oracle.finish32()),
            trees: 0,
            agreed: false,
            usable: true,
        }
    }

    /// Marks the begin of an addition; runs step 0 before the first.
    fn use_up(&mut self, channel: &mut Channel) -> volery_channel::Result<TreePrgs> {
        // mutant(array-poisoned): false
        if !std::mem::take(&mut self.usable) {
            return Err(volery_channel::Error::Broken);
        }
        if !self.agreed {
            // mutant(array-length): `self.shares.len() as u64` => `0`
            let numbers = [("the number of entries", self.shares.len() as u64)];
            // mutant(array-agree): drop
            agree::same_over::<R>(None, &numbers, channel)?;
            self.agreed = true;
        }
        // mutant(array-tree-number): drop
        self.trees += 1;
        Ok(TreePrgs::growing(Growth::PseudoCorrelated, self.session, self.trees))
    }
}
