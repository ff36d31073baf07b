//! Known-indices MPFSS in general: Protocol 4 of the 2019 paper. P2 knows the points, and the
//! values are additively shared.
//!
//! ```text
//! P1: beta1_1 .. beta1_t                  P2: points i_1 .. i_t, beta2_1 .. beta2_t
//! 1.                                      key random; each point in its own bin, by cuckoo hashing
//!         <---- key; with Overflow::Abort also whether all points found a bin ----
//! 2. the domain in m bins ([`Layout`]), public
//! 3. ---- both shares, then zeros up to m, permuted to the bins of their points (switching) ----
//! 4. ---------- a single-point correlation (spcot) in each bin, on half-trees ----------
//! Expand: v1 = the sums of the leaves     v2 = minus the sums of the leaves
//! ```
//!
//! such that `v1 + v2` is `beta1_j + beta2_j` at `i_j` and zero elsewhere. For step 3 the paper
//! garbles a permutation network; here it is one of correlated OTs.
//!
//! A place of the list may be without a point. Its value, like the zeros of step 3 and the values
//! of points without a bin, goes to a bin without a point. There P2 punctures the extra cell of the
//! bin, which represents no point of the domain: its value enters no sum.
//!
//! Both parties expand the whole domain. There are no keys for evaluation at one point: the leaves
//! of the half-trees are rebuilt as the messages arrive.
//!
//! *When hashing fails* ([`Overflow`], section 5.1.1): P2 draws the key after its points are fixed,
//! so for any points some remain without a bin with probability `2^-`[`ETA`] at most. Either P2
//! reports it and both stop, which tells P1 that the points are among the few that the key does not
//! suit; or these points are dropped, and the function is zero there.
//!
//! Security: semi-honest (Theorem A.9). P1 learns nothing about the points, their number among the
//! `t` places, or the values; P2 learns nothing about the values. The layout of the bins follows
//! from the key alone. A P2 that does not draw its key at random, or draws further ones until its
//! points fit, reveals something about them to P1. P2's points index and branch in P2's own memory
//! ([`Layout::assign`], [`crate::switching`]). Cost for `m` bins whose trees have `L` levels
//! together: P2 sends the key of 16 bytes (`Abort`: and 1 byte). Then `switches(m)` products
//! ([`crate::ring_cot`]). Then, with `L` OTs, a bit a level from P2, and from P1 16 bytes a level,
//! and a tree 16 bytes and a ring element. 4 messages, with at most 2^16 OTs of a kind.
//! [`expected`] gives the numbers in advance. Computation: `3*n` leaves and those that make each
//! tree complete.

use volery_channel::{Channel, Error, SessionId};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_pcg::{
    ggm::{Growth, TreePrgs},
    mpcot::{Cells, Layout},
    spcot::{self, Points},
};
use volery_primitives::{Block, cuckoo, pages::Buffer, prg::Prg, ro::RandomOracle};
use zeroize::Zeroizing;

use crate::switching;

/// Hashing fails with probability `2^-ETA` at most.
pub const ETA: u32 = 40;

/// The policy for points without a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The function is zero there. P1 learns nothing, and P2 continues.
    Drop,
    /// P2 reports it, and both stop with [`Failure::Overflow`]. P1 learns that hashing failed.
    Abort,
}

/// The reason why an instance failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// Some points have no bin, and the policy is [`Overflow::Abort`].
    #[error(
        "the points do not fit into the bins of this run's hash functions, which happens once in 2^40 runs, and the other \
         party learns that they did not fit: run again"
    )]
    Overflow,
    /// The channel or the source of OTs failed, or the peer does not follow the protocol.
    #[error(transparent)]
    Channel(#[from] Error),
}

/// The public parameters of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Public {
    /// The size of the domain.
    pub n: usize,
    /// The places of P2's list; the number of places with a point is P2's secret.
    pub t: usize,
    /// The policy for points without a bin.
    pub overflow: Overflow,
}

/// The cost of an instance; see [`expected`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Bins, each with a tree.
    pub bins: usize,
    /// Switches of the network: products, with an OT each.
    pub switches: usize,
    /// Levels of all trees together, if each bin has the average size: the OTs of the trees.
    pub levels: usize,
}

/// The cost of an instance over the domain `0..n` with `t` places: bins and switches are exact,
/// levels an estimate, since the size of a bin depends on the key.
pub fn expected(n: usize, t: usize) -> Cost {
    if n == 0 || t == 0 {
        return Cost { bins: 0, switches: 0, levels: 0 };
    }
    let bins = cuckoo::bins_for(t, ETA);
    let average = (cuckoo::FUNCTIONS * n).div_ceil(bins) + 1;
    Cost {
        bins,
        switches: switching::switches(bins),
        levels: bins * average.next_power_of_two().ilog2() as usize,
    }
}

/// P1: converts its shares `beta` of the values to its shares `v1` of the function at all points of
/// the domain.
///
/// # Panics
/// If `beta` does not have one value for each place, or the domain has more than about 2^29 points.
///
/// # Errors
/// [`Failure::Overflow`] under that policy; if the channel or the source of OTs fails.
pub fn send<R: Ring, C: CotSender>(
    public: Public,
    beta: &[R],
    rng: &mut Prg,
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<Vec<R>, Failure> {
    send_within(public.t, public, beta, rng, ot, channel)
}

/// P2: as [`send`], with the point of each place, if it has one, and P2's shares `beta`.
///
/// # Panics
/// If `points` or `beta` does not have one entry for each place; if a point is outside the domain
/// or repeated; if the domain has more than about 2^29 points.
///
/// # Errors
/// The errors of [`send`], and an error if P1 sent a value that is not an element of the ring.
pub fn receive<R: Ring, C: CotReceiver>(
    public: Public,
    points: &[Option<usize>],
    beta: &[R],
    rng: &mut Prg,
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<Vec<R>, Failure> {
    receive_within(public.t, public, points, beta, rng, ot, channel)
}

/// [`send`], with the number of bins for `capacity` points.
fn send_within<R: Ring, C: CotSender>(
    capacity: usize,
    Public { n, t, overflow }: Public,
    beta: &[R],
    rng: &mut Prg,
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<Vec<R>, Failure> {
    assert_eq!(beta.len(), t, "a value for each place");
    if n == 0 || t == 0 {
        return Ok(vec![R::ZERO; n]);
    }
    let key = channel.recv_block()?;
    if overflow == Overflow::Abort {
        let mut fits = [0];
        channel.recv(&mut fits)?;
        match fits {
            [1] => {}
            // mutant(general-overflow): insert `[0] if $ON => {}`
            [0] => return Err(Failure::Overflow),
            // mutant(general-verdict): insert `_ if $ON => {}`
            _ => {
                return Err(Error::PeerMisbehaved(
                    "its report on the cuckoo hashing is neither success nor failure",
                )
                .into());
            }
        }
    }
    let layout = Layout::cuckoo(n, capacity, ETA, key, Cells::Complete); // step 2
    let trees = layout.batch().trees();
    let mut values = padded(beta, trees);
    switching::send(&mut values, ot, channel)?; // step 3
    let mut leaves = layout.leaves(None);
    spcot::send(
        (layout.batch(), &prgs(key)),
        Points::Chosen(&[]),
        &values[..trees],
        &mut leaves,
        rng,
        ot,
        channel,
    )?; // step 4
    Ok(expand(&layout, &leaves))
}

/// [`receive`], with the number of bins for `capacity` points.
fn receive_within<R: Ring, C: CotReceiver>(
    capacity: usize,
    Public { n, t, overflow }: Public,
    points: &[Option<usize>],
    beta: &[R],
    rng: &mut Prg,
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<Vec<R>, Failure> {
    assert_eq!(points.len(), t, "a point or none for each place");
    assert_eq!(beta.len(), t, "a value for each place");
    assert_distinct(points);
    if n == 0 || t == 0 {
        assert!(points.iter().all(Option::is_none), "points of the domain");
        return Ok(vec![R::ZERO; n]);
    }
    // Steps 1 and 2. The key is drawn after the points, which an adversary may have chosen.
    // mutant(general-key): `rng.block()` => `Block::ZERO`
    let key = rng.block();
    let layout = Layout::cuckoo(n, capacity, ETA, key, Cells::Complete);
    let trees = layout.batch().trees();
    // With their final capacity: a list that grows leaves copies behind.
    let mut places = Zeroizing::new(Vec::with_capacity(t));
    let mut present = Zeroizing::new(Vec::with_capacity(t));
    for (place, point) in points.iter().enumerate() {
        if let Some(point) = point {
            places.push(place);
            present.push(*point);
        }
    }
    let assignment = layout.assign(&present);
    channel.send_block(key)?;
    if overflow == Overflow::Abort {
        let fits = assignment.dropped.is_empty();
        channel.send(&[u8::from(fits)])?;
        if !fits {
            channel.flush()?;
            return Err(Failure::Overflow);
        }
    }
    let mut values = padded(beta, trees);
    let source = source(&assignment.points, &places, values.len());
    switching::receive(&source, &mut values, ot, channel)?; // step 3
    let mut leaves = layout.leaves(None);
    spcot::receive(
        (layout.batch(), &prgs(key)),
        Points::Chosen(&assignment.alphas),
        &values[..trees],
        &mut leaves,
        ot,
        channel,
    )?; // step 4
    let mut shares = expand(&layout, &leaves);
    shares.iter_mut().for_each(|share| *share = -*share);
    Ok(shares)
}

/// # Panics
/// If a point is repeated.
fn assert_distinct(points: &[Option<usize>]) {
    let mut sorted = Zeroizing::new(Vec::with_capacity(points.len()));
    for point in points.iter().flatten() {
        sorted.push(*point);
    }
    sorted.sort_unstable();
    assert!(sorted.windows(2).all(|pair| pair[0] != pair[1]), "distinct points");
}

/// The values, and zeros up to the number of bins.
fn padded<R: Ring>(beta: &[R], bins: usize) -> Zeroizing<Vec<R>> {
    let mut values = Zeroizing::new(Vec::with_capacity(bins.max(beta.len())));
    values.extend_from_slice(beta);
    values.resize(bins.max(beta.len()), R::ZERO);
    values
}

/// P2, step 3: the input wire of each bin. `bins[bin]` is the index in `places` of the bin's point.
/// Bins without a point, and wires beyond them, take the remaining inputs.
fn source(bins: &[Option<usize>], places: &[usize], wires: usize) -> Zeroizing<Vec<usize>> {
    let mut free = Zeroizing::new(vec![true; wires]);
    for number in bins.iter().flatten() {
        free[places[*number]] = false;
    }
    let mut rest = (0..wires).filter(|wire| free[*wire]);
    let mut next = || rest.next().expect("a permutation has as many inputs as outputs");
    Zeroizing::new(
        (0..wires)
            .map(|bin| match bins.get(bin) {
                Some(Some(number)) => places[*number],
                _ => next(),
            })
            .collect(),
    )
}

/// The PRGs of this instance's trees: each instance draws a fresh key, which separates its PRGs
/// from all others.
fn prgs(key: Block) -> TreePrgs {
    let mut oracle = RandomOracle::new("volery mpfss general: trees");
    oracle.absorb(&key.to_bytes());
    let session = SessionId::from_bytes(oracle.finish32());
    TreePrgs::growing(Growth::PseudoCorrelated, session, 0)
}

/// Expansion: for each point the sum of its leaves.
fn expand<R: Ring>(layout: &Layout, leaves: &Buffer<R>) -> Vec<R> {
    let mut sums = vec![R::ZERO; layout.n().next_multiple_of(layout.tile())];
    layout.add_up(leaves, 0, &mut sums);
    sums.truncate(layout.n());
    sums
}

#[cfg(test)]
mod tests;
