//! Scatter ("Scatter-Init"), from index-value pairs to a dense vector.
//!
//! Section 7.1.1 of the 2019 paper, which uses it for products with a sparse matrix. The holder
//! knows the indices; the values and the vector are additively shared.
//!
//! ```text
//! helper (P1): values1                    holder (P2): indices, values2
//! With Repeats::Add:
//! 1. ---- the shares in the order of the indices: a switching network over the pairs ----
//! 2.                                      s_j: whether pair j + 1 has the index of pair j
//!    acc_0 = value_0;  for each j:  moved_j = s_j*acc_j (products),
//!                                   acc_(j+1) = value_(j+1) + moved_j
//!    value_j <- acc_j - moved_j: the last pair of an index has the sum of all, the others zero
//! 3. Way::Trees:    ---- known-indices MPFSS; only the last pair of an index has a point ----
//!    Way::Network:  ---- a switching network over max(count, length) wires: sums to indices ----
//! ```
//!
//! The sizes determine the way of step 3 ([`Public::way`]): trees for few pairs in a long vector, a
//! network if there are about as many pairs as entries.
//!
//! The helper is the OT sender. The parties first exchange the [`Public`] parameters; at a
//! difference, both get an error that names it.
//!
//! Security: semi-honest. The helper learns nothing about the indices, not even whether some are
//! equal; neither party learns anything about the values. Both know `length`, `count` and the
//! policies. With [`Overflow::Abort`] the helper learns with probability 2^-40 that the indices did
//! not fit; with [`Overflow::Drop`] some entries are wrong with that probability
//! ([`mpfss`]); the network never fails. A malicious helper can put other values into
//! the vector. The holder's indices index and branch in its own memory, and the holder sorts them
//! between the public numbers and its first message, in a time that depends on them: a helper that
//! times this message may learn something about their order and the number of equal ones. Cost: 40
//! bytes in both directions for the ring and what is public. In products ([`crate::ring_cot`]), 2
//! messages for each 2^20 of them: step 1 `switches(count)`, step 2 `count - 1`, step 3 that of
//! [`mpfss`], or `switches(max(count, length))`.

mod runs;

#[cfg(test)]
mod tests;

use crate::{mpfss, switching};
use volery_channel::Channel;
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::prg::Prg;
use zeroize::Zeroizing;

use crate::{
    agree,
    error::{Error, Result},
};

pub use crate::mpfss::Overflow;

/// The policy for pairs with the same index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// The holder gets an error.
    Refuse,
    /// Their values add up.
    Add,
}

/// The method that moves the values to their places; see [`Public::way`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a tree for each pair: cheap for few pairs.
    Trees,
    /// By a switching network over all entries: cheap for many pairs.
    Network,
}

/// The public parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Public {
    /// Entries of the vector.
    pub length: usize,
    /// Index-value pairs.
    pub count: usize,
    /// The policy for repeated indices.
    pub repeats: Repeats,
    /// The policy for failed hashing.
    pub overflow: Overflow,
}

impl Public {
    /// The way of step 3: the one that sends fewer bytes, apart from those of the OTs.
    ///
    /// # Panics
    /// If there are more entries or pairs than [`LARGEST`].
    pub fn way<R: Ring>(&self) -> Way {
        assert!(self.length.max(self.count) <= LARGEST, "more entries or pairs than LARGEST");
        let product = 8 * R::BYTES as u64 + 1;
        let trees = mpfss::expected(self.length, self.count);
        let trees = trees.switches as u64 * product
            + trees.levels as u64 * 129
            + trees.bins as u64 * (8 * R::BYTES as u64 + 128);
        let network = switching::switches(self.length.max(self.count)) as u64 * product;
        if network <= trees { Way::Network } else { Way::Trees }
    }

    /// Compares the parameters with the peer's.
    fn agree<R: Ring>(&self, channel: &mut Channel) -> Result<()> {
        // mutant(scatter-length): `self.length as u64` => `0`
        // mutant(scatter-count): `self.count as u64` => `0`
        // mutant(scatter-repeats): `self.repeats as u64` => `0`
        // mutant(scatter-overflow): `self.overflow as u64` => `0`
        let numbers = [
            ("the entries of the vector", self.length as u64),
            ("the index-value pairs", self.count as u64),
            ("the policy for repeated indices", self.repeats as u64),
            ("the policy for failed hashing", self.overflow as u64),
        ];
        Ok(agree::same_over::<R>(None, &numbers, channel)?)
    }
}

/// The maximum number of entries and of pairs: the leaves of the trees are numbered with 32 bits.
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
        return Err(Error::Empty("there are indices, but the vector has no entries"));
    }
    Ok(())
}

/// Helper: converts its shares of the values to its shares of the vector.
///
/// # Panics
/// If the number of values is not `count`.
///
/// # Errors
/// [`Error::Empty`], [`Error::TooLarge`], before anything is sent; if the parties disagree on the
/// public parameters or on the ring; [`Error::Hashing`] under that policy; if the channel or the
/// source of OTs fails.
pub fn send<R: Ring, C: CotSender>(
    public: Public,
    values: &[R],
    rng: &mut Prg,
    ot: &mut convert::Sender<C>,
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
/// If the number of indices or values is not `count`.
///
/// # Errors
/// [`Error::Input`], before anything of the pairs is sent: the helper sees a closed channel.
/// Otherwise as [`send`], and if the helper sent a value that is not an element of the ring.
pub fn receive<R: Ring, C: CotReceiver>(
    public: Public,
    indices: &[usize],
    values: &[R],
    rng: &mut Prg,
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    check_length(public.length, public.count)?;
    assert_eq!(indices.len(), public.count, "an index for each pair");
    assert_eq!(values.len(), public.count, "a value for each pair");
    public.agree::<R>(channel)?;
    receive_by(public.way::<R>(), public, indices, values, rng, ot, channel)
}

/// A copy of the values with capacity for `wires` of them, so that growing leaves no copy behind.
fn copied<R: Ring>(values: &[R], wires: usize) -> Zeroizing<Vec<R>> {
    let mut copy = Zeroizing::new(Vec::with_capacity(wires.max(values.len())));
    copy.extend_from_slice(values);
    copy
}

/// [`send`] by the given way, without the comparison of the public parameters.
fn send_by<R: Ring, C: CotSender>(
    way: Way,
    public: Public,
    values: &[R],
    rng: &mut Prg,
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    assert_eq!(values.len(), public.count, "a value for each pair");
    check_length(public.length, public.count)?;
    let mut values = copied(values, public.wires(way));
    if public.repeats == Repeats::Add {
        switching::send(&mut values, ot, channel)?; // step 1
        runs::send(&mut values, ot, channel)?; // step 2
    }
    match way {
        Way::Trees => {
            let share = mpfss::send(public.trees(), &values, rng, ot, channel)?; // step 3
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
fn receive_by<R: Ring, C: CotReceiver>(
    way: Way,
    public: Public,
    indices: &[usize],
    values: &[R],
    rng: &mut Prg,
    ot: &mut convert::Receiver<C>,
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
            runs::receive(&indices, &mut values, ot, channel)?; // step 2
        }
    }
    // Only the last pair of each index has a place.
    let last = |place: usize| indices.get(place + 1) != Some(&indices[place]);
    let points = (0..public.count).map(|place| last(place).then_some(indices[place]));
    let points: Zeroizing<Vec<_>> = Zeroizing::new(points.collect());
    match way {
        Way::Trees => {
            let public = public.trees();
            let share = mpfss::receive(public, &points, &values, rng, ot, channel)?; // step 3
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
    /// Number of values in step 3.
    fn wires(&self, way: Way) -> usize {
        match way {
            Way::Trees => self.count,
            Way::Network => self.length.max(self.count),
        }
    }

    /// The MPFSS of step 3.
    fn trees(&self) -> mpfss::Public {
        mpfss::Public { n: self.length, t: self.count, overflow: self.overflow }
    }
}
