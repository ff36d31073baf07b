//! Scatter ("Scatter-Init"): from index-value pairs to a dense vector; and back, [`gather`].
//!
//! Section 7.1.1 of the 2019 paper. The holder knows the indices, the values are additively shared, and so is the vector.
//!
//! ```text
//! helper (P1): values1                    holder (P2): indices, values2
//! With Repeats::Add:
//! 1. ---- the shares in the order of the indices: a switching network over the pairs ----
//! With Repeats::Add and Repeats::AddRuns:
//! 2.                                      s_j: whether pair j + 1 has the index of pair j
//!    acc_0 = value_0;  for each j:  moved_j = s_j*acc_j (products),  acc_(j+1) = value_(j+1) + moved_j
//!    value_j <- acc_j - moved_j: the last pair of an index has the sum of all, the others zero
//! 3. Way::Trees:    ---- known-indices MPFSS, where only the last pair of each index has a point (mpfss::general) ----
//!    Way::Network:  ---- a switching network over max(count, length) wires: each sum to its index ----
//! ```
//!
//! Which way is taken in step 3 follows from the sizes ([`Public::way`]): trees for few pairs in a long vector, a network
//! where there are about as many pairs as entries.
//!
//! The helper is the OT sender. The parties first tell each other what is [`Public`]; where it differs, both get an error
//! that names it.
//!
//! Security: semi-honest. The helper learns nothing of the indices, not even whether some are equal; nobody learns anything
//! of the values. What both know is `length`, `count` and the policies. With [`Overflow::Abort`] the helper learns with probability
//! 2^-40 that the indices did not fit; with [`Overflow::Drop`] some entries are wrong with that probability
//! ([`mpfss::general`](volery_pcg::mpfss::general)); the way over the network never fails. A malicious helper can put other
//! values into the vector. The holder's indices index and branch in its own memory, and the holder sorts them between the public
//! numbers and its first message, which takes a time that depends on them: a helper that times this message may learn something
//! of their order, and of how many are equal.
//! Cost: 40 bytes in both directions for the ring and what is public. In products ([`volery_pcg::products`]), 2 messages for
//! each 2^20 of them: step 1 `switches(count)`, step 2 `count - 1`, step 3 that of
//! [`mpfss::general`](volery_pcg::mpfss::general), or `switches(max(count, length))`.

pub mod gather;
mod runs;

#[cfg(test)]
mod tests;

use volery_channel::Channel;
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, flavour};
use volery_pcg::{mpfss::general, switching};
use volery_primitives::prg::Prg;
use zeroize::Zeroizing;

use crate::{
    agree,
    error::{Error, Result},
};

pub use volery_pcg::mpfss::general::Overflow;

/// What it means when two pairs have the same index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// The holder is refused.
    Refuse,
    /// Their values add up.
    Add,
    /// Their values add up, and the pairs of an index stand next to each other, which saves step 1.
    AddRuns,
}

/// How the values get to their places; see [`Public::way`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a tree for each pair: cheap for few pairs.
    Trees,
    /// By a switching network over all entries: cheap for many pairs.
    Network,
}

/// What both parties know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Public {
    /// Entries of the vector.
    pub length: usize,
    /// Index-value pairs.
    pub count: usize,
    /// Whether an index may be there twice.
    pub repeats: Repeats,
    /// What happens when hashing fails.
    pub overflow: Overflow,
}

impl Public {
    /// How step 3 is done: the way that sends fewer bytes, beside those of the OTs.
    ///
    /// # Panics
    /// If there are more entries or pairs than [`LARGEST`].
    #[must_use]
    pub fn way<R: Ring>(&self) -> Way {
        assert!(
            self.length.max(self.count) <= LARGEST,
            "entries and pairs that can be counted"
        );
        let product = 8 * R::BYTES as u64 + 1;
        let trees = general::expected(self.length, self.count);
        let trees = trees.switches as u64 * product
            + trees.levels as u64 * 129
            + trees.bins as u64 * (8 * R::BYTES as u64 + 128);
        let network = switching::switches(self.length.max(self.count)) as u64 * product;
        if network <= trees {
            Way::Network
        } else {
            Way::Trees
        }
    }

    /// Tells the peer, and compares.
    fn agree<R: Ring>(&self, channel: &mut Channel) -> Result<()> {
        let numbers = [
            ("the entries of the vector", self.length as u64),
            ("the index-value pairs", self.count as u64),
            ("the policy for repeated indices", self.repeats as u64),
            ("the policy for failed hashing", self.overflow as u64),
        ];
        Ok(agree::same_over::<R>(None, &numbers, channel)?)
    }
}

/// The most entries and the most pairs: the leaves of the trees are numbered with 32 bits.
pub const LARGEST: usize = 1 << 28;

/// # Errors
/// If there are pairs, but no entries; or more of either than [`LARGEST`].
fn check_length(length: usize, count: usize) -> Result<()> {
    if length.max(count) > LARGEST {
        return Err(Error::TooLarge {
            what: "the entries of a vector, or the indices into it",
            bits: LARGEST.ilog2(),
        });
    }
    if length == 0 && count > 0 {
        return Err(Error::Empty(
            "there are indices, but the vector has no entries",
        ));
    }
    Ok(())
}

/// Helper: from its shares of the values to its shares of the vector.
///
/// # Panics
/// If there are not `count` values.
///
/// # Errors
/// [`Error::Empty`], [`Error::TooLarge`], before anything is sent; if the parties disagree on what is public or on the ring;
/// [`Error::Hashing`] by that policy; if the channel or the source of OTs fails.
pub fn send<R: Ring, C: CotSender>(
    public: Public,
    values: &[R],
    rng: &mut Prg,
    ot: &mut flavour::Sender<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    check_length(public.length, public.count)?;
    assert_eq!(values.len(), public.count, "a value for each pair");
    public.agree::<R>(channel)?;
    send_by(public.way::<R>(), public, values, rng, ot, channel)
}

/// Holder: as [`send`], with the index of each value.
///
/// # Panics
/// If there are not `count` indices and values.
///
/// # Errors
/// Before anything of the pairs is sent: [`Error::Index`], [`Error::Repeated`], [`Error::Runs`]; the helper finds the channel
/// closed. Else as [`send`], and if the helper sent what is no element of the ring.
pub fn receive<R: Ring, C: CotReceiver>(
    public: Public,
    indices: &[usize],
    values: &[R],
    rng: &mut Prg,
    ot: &mut flavour::Receiver<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    check_length(public.length, public.count)?;
    assert_eq!(indices.len(), public.count, "an index for each pair");
    assert_eq!(values.len(), public.count, "a value for each pair");
    public.agree::<R>(channel)?;
    receive_by(public.way::<R>(), public, indices, values, rng, ot, channel)
}

/// The values, with room for `wires` of them, so that growing leaves no copy behind.
fn copied<R: Ring>(values: &[R], wires: usize) -> Zeroizing<Vec<R>> {
    let mut copy = Zeroizing::new(Vec::with_capacity(wires.max(values.len())));
    copy.extend_from_slice(values);
    copy
}

/// [`send`] by the given way, without comparing what is public.
pub(crate) fn send_by<R: Ring, C: CotSender>(
    way: Way,
    public: Public,
    values: &[R],
    rng: &mut Prg,
    ot: &mut flavour::Sender<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    assert_eq!(values.len(), public.count, "a value for each pair");
    check_length(public.length, public.count)?;
    let mut values = copied(values, public.wires(way));
    if public.repeats == Repeats::Add {
        switching::send(&mut values, ot, channel)?; // step 1
    }
    if public.repeats != Repeats::Refuse {
        runs::send(runs::add, &mut values, ot, channel)?; // step 2
    }
    match way {
        Way::Trees => {
            let share = general::send(public.trees(), &values, rng, ot, channel)?; // step 3
            Ok(Zeroizing::new(share))
        }
        Way::Network => {
            values.resize(public.wires(way), R::ZERO);
            switching::send(&mut values, ot, channel)?; // step 3
            values.truncate(public.length);
            Ok(values)
        }
    }
}

/// [`receive`], likewise.
pub(crate) fn receive_by<R: Ring, C: CotReceiver>(
    way: Way,
    public: Public,
    indices: &[usize],
    values: &[R],
    rng: &mut Prg,
    ot: &mut flavour::Receiver<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    assert_eq!(indices.len(), public.count, "an index for each pair");
    assert_eq!(values.len(), public.count, "a value for each pair");
    check_length(public.length, public.count)?;
    let order = runs::order(indices, public.length)?;
    let mut indices = Zeroizing::new(indices.to_vec());
    let mut values = copied(values, public.wires(way));
    match public.repeats {
        Repeats::Refuse => runs::assert_distinct(&order, &indices)?,
        Repeats::Add => {
            indices = runs::permuted(&order, &indices);
            switching::receive(&order, &mut values, ot, channel)?; // step 1
        }
        Repeats::AddRuns => runs::assert_runs(&indices)?,
    }
    if public.repeats != Repeats::Refuse {
        runs::receive(runs::add, &indices, &mut values, ot, channel)?; // step 2
    }
    // Only the last pair of each index goes to a place.
    let last = |place: usize| indices.get(place + 1) != Some(&indices[place]);
    let points = (0..public.count).map(|place| last(place).then_some(indices[place]));
    let points: Zeroizing<Vec<_>> = Zeroizing::new(points.collect());
    match way {
        Way::Trees => {
            let public = public.trees();
            let share = general::receive(public, &points, &values, rng, ot, channel)?; // step 3
            Ok(Zeroizing::new(share))
        }
        Way::Network => {
            let wires = public.wires(way);
            values.resize(wires, R::ZERO);
            let mut wanted = Zeroizing::new(vec![None; public.length]);
            for (place, point) in points.iter().enumerate() {
                if let Some(point) = point {
                    wanted[*point] = Some(place);
                }
            }
            let source = runs::completed(&wanted, wires);
            switching::receive(&source, &mut values, ot, channel)?; // step 3
            values.truncate(public.length);
            Ok(values)
        }
    }
}

impl Public {
    /// How many values there are in step 3.
    fn wires(&self, way: Way) -> usize {
        match way {
            Way::Trees => self.count,
            Way::Network => self.length.max(self.count),
        }
    }

    /// The MPFSS of step 3.
    fn trees(&self) -> general::Public {
        general::Public {
            n: self.length,
            t: self.count,
            overflow: self.overflow,
        }
    }
}
