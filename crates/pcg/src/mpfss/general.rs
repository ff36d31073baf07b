//! Known-indices MPFSS in general: Protocol 4 of the 2019 paper. P2 knows the points, the values are additively shared.
//!
//! ```text
//! P1: beta1_1 .. beta1_t                  P2: points i_1 .. i_t, beta2_1 .. beta2_t
//! 1.                                      key random; each point in a bin of its own, by cuckoo hashing
//!         <---- key; with Overflow::Abort also whether all points found a bin ----
//! 2. the domain in m bins ([`Layout`]), public
//! 3.      ---- both shares, then zeros up to m, permuted so that each value is at the bin of its point (switching) ----
//! 4.      ------------------ a single-point correlation (single) in each bin, on half-trees ------------------
//! Expand: v1 = the sums of the leaves     v2 = minus the sums of the leaves
//! ```
//!
//! such that `v1 + v2` is `beta1_j + beta2_j` at `i_j` and zero elsewhere. For step 3 the paper garbles a permutation
//! network; here it is one of correlated OTs.
//!
//! A place of the list may be without a point. Its value, like the zeros of step 3 and the values of points that found no bin,
//! goes to a bin without a point. There P2 punctures the extra cell of the bin, which stands for no point of the domain:
//! whatever its value is, it is in no sum.
//!
//! Both parties expand the whole domain. There are no keys that evaluate at one point: the leaves of the half-trees are rebuilt
//! while the messages come.
//!
//! *When hashing fails* ([`Overflow`], section 5.1.1): P2 draws the key after its points are fixed, so whatever the points are,
//! some find no bin with probability `2^-`[`ETA`] at most. Either P2 says so and both end, which tells P1 that the points are
//! among the few that the key does not suit; or they are dropped, and the function is zero there.
//!
//! Security: semi-honest (Theorem A.9). P1 learns nothing of the points, of how many there are among the `t` places, or of the
//! values; P2 nothing of the values. What the bins look like follows from the key alone. A P2 that does not draw its key at
//! random, or makes further ones until its points fit, tells P1 something about them. P2's points index and branch in P2's own
//! memory ([`Layout::assign`], [`crate::switching`]).
//! Cost for `m` bins whose trees have `L` levels together: P2 sends the key of 16 bytes (`Abort`: and 1 byte). Then
//! `switches(m)` products ([`crate::products`]). Then, with `L` OTs, a bit a level from P2, and from P1 16 bytes a level, and a
//! tree 16 bytes and a ring element. 4 messages, with at most 2^16 OTs of a kind.
//! [`expected`] tells the numbers beforehand. Computation: `3*n` leaves and those
//! that make each tree complete.

use std::fmt;

use volery_channel::{Channel, Error, SessionId};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, flavour};
use volery_primitives::{Block, cuckoo, pages::Buffer, prg::Prg, ro::RandomOracle};
use zeroize::Zeroizing;

use super::{Cells, Layout};
use crate::{
    ggm::{Growth, TreePrgs},
    single::{self, Points},
    switching,
};

/// Hashing fails with probability `2^-ETA` at most.
pub const ETA: u32 = 40;

/// What happens when a point finds no bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The function is zero there. P1 learns nothing, and P2 goes on.
    Drop,
    /// P2 says so, and both end with [`Failure::Overflow`]. P1 learns that hashing failed.
    Abort,
}

/// Why there are no shares.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// Points found no bin, and the policy is [`Overflow::Abort`].
    Overflow,
    /// The channel or the source of OTs failed, or the peer sent what it must not.
    Channel(Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overflow => f.write_str(
                "the points do not fit into the bins of this run's hash functions, which happens once in 2^40 runs, and the other \
                 party learns that they did not fit: run again",
            ),
            Self::Channel(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Overflow => None,
            Self::Channel(error) => error.source(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Channel(error)
    }
}

/// What both parties know of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Public {
    /// The size of the domain.
    pub n: usize,
    /// The places of P2's list; how many of them have a point is P2's secret.
    pub t: usize,
    /// What happens when a point finds no bin.
    pub overflow: Overflow,
}

/// What an instance takes; see [`expected`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Bins, each with a tree.
    pub bins: usize,
    /// Switches of the network: products, with an OT each.
    pub switches: usize,
    /// Levels of all trees together, if each bin has the average size: the OTs of the trees.
    pub levels: usize,
}

/// What an instance over the domain `0..n` with `t` places takes: bins and switches exactly, levels as a forecast, since the
/// size of a bin depends on the key.
#[must_use]
pub fn expected(n: usize, t: usize) -> Expected {
    if n == 0 || t == 0 {
        return Expected {
            bins: 0,
            switches: 0,
            levels: 0,
        };
    }
    let bins = cuckoo::bins_for(t, ETA);
    let average = (cuckoo::FUNCTIONS * n).div_ceil(bins) + 1;
    Expected {
        bins,
        switches: switching::switches(bins),
        levels: bins * average.next_power_of_two().ilog2() as usize,
    }
}

/// P1: from its shares `beta` of the values to its shares `v1` of the function at all points of the domain.
///
/// # Panics
/// If `beta` has not a value for each place, or the domain has more than about 2^29 points.
///
/// # Errors
/// [`Failure::Overflow`] by that policy; if the channel or the source of OTs fails.
pub fn send<R: Ring, C: CotSender>(
    public: Public,
    beta: &[R],
    rng: &mut Prg,
    ot: &mut flavour::Sender<C>,
    channel: &mut Channel,
) -> Result<Vec<R>, Failure> {
    send_with_room(public.t, public, beta, rng, ot, channel)
}

/// P2: as [`send`], with the point of each place, if it has one, and P2's shares `beta`.
///
/// # Panics
/// If there is not a point or none, and a value, for each place; if a point is outside the domain, or there twice; if the
/// domain has more than about 2^29 points.
///
/// # Errors
/// As [`send`], and if P1 sent what is no element of the ring.
pub fn receive<R: Ring, C: CotReceiver>(
    public: Public,
    points: &[Option<usize>],
    beta: &[R],
    rng: &mut Prg,
    ot: &mut flavour::Receiver<C>,
    channel: &mut Channel,
) -> Result<Vec<R>, Failure> {
    receive_with_room(public.t, public, points, beta, rng, ot, channel)
}

/// [`send`], with as many bins as are right for `room` points.
fn send_with_room<R: Ring, C: CotSender>(
    room: usize,
    Public { n, t, overflow }: Public,
    beta: &[R],
    rng: &mut Prg,
    ot: &mut flavour::Sender<C>,
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
            [0] => return Err(Failure::Overflow),
            _ => {
                return Err(Error::PeerMisbehaved(
                    "neither that all points found a bin nor that some did not",
                )
                .into());
            }
        }
    }
    let layout = Layout::cuckoo(n, room, ETA, key, Cells::Complete); // step 2
    let trees = layout.forest().trees();
    let mut values = padded(beta, trees);
    switching::send(&mut values, ot, channel)?; // step 3
    let mut leaves = layout.leaves(None);
    single::send(
        (layout.forest(), &prgs(key)),
        Points::Chosen(&[]),
        &values[..trees],
        &mut leaves,
        rng,
        ot,
        channel,
    )?; // step 4
    Ok(expand(&layout, &leaves))
}

/// [`receive`], with as many bins as are right for `room` points.
fn receive_with_room<R: Ring, C: CotReceiver>(
    room: usize,
    Public { n, t, overflow }: Public,
    points: &[Option<usize>],
    beta: &[R],
    rng: &mut Prg,
    ot: &mut flavour::Receiver<C>,
    channel: &mut Channel,
) -> Result<Vec<R>, Failure> {
    assert_eq!(points.len(), t, "a point or none for each place");
    assert_eq!(beta.len(), t, "a value for each place");
    assert_distinct(points);
    if n == 0 || t == 0 {
        assert!(points.iter().all(Option::is_none), "points of the domain");
        return Ok(vec![R::ZERO; n]);
    }
    // Steps 1 and 2. The key comes after the points, which may be anybody's choice.
    let key = rng.block();
    let layout = Layout::cuckoo(n, room, ETA, key, Cells::Complete);
    let trees = layout.forest().trees();
    // As long as they get: a list that grows leaves copies behind.
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
    single::receive(
        (layout.forest(), &prgs(key)),
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
/// If a point is there twice.
fn assert_distinct(points: &[Option<usize>]) {
    let mut sorted = Zeroizing::new(Vec::with_capacity(points.len()));
    for point in points.iter().flatten() {
        sorted.push(*point);
    }
    sorted.sort_unstable();
    assert!(
        sorted.windows(2).all(|pair| pair[0] != pair[1]),
        "distinct points"
    );
}

/// The values, and zeros up to the number of bins.
fn padded<R: Ring>(beta: &[R], bins: usize) -> Zeroizing<Vec<R>> {
    let mut values = Zeroizing::new(Vec::with_capacity(bins.max(beta.len())));
    values.extend_from_slice(beta);
    values.resize(bins.max(beta.len()), R::ZERO);
    values
}

/// P2, step 3: which input wire goes to each bin. `bins[bin]` is the number in `places` of the point there. Bins without a
/// point, and wires beyond them, take what is left.
fn source(bins: &[Option<usize>], places: &[usize], wires: usize) -> Zeroizing<Vec<usize>> {
    let mut free = Zeroizing::new(vec![true; wires]);
    for number in bins.iter().flatten() {
        free[places[*number]] = false;
    }
    let mut rest = (0..wires).filter(|wire| free[*wire]);
    let mut next = || rest.next().expect("as many wires as outputs");
    Zeroizing::new(
        (0..wires)
            .map(|bin| match bins.get(bin) {
                Some(Some(number)) => places[*number],
                _ => next(),
            })
            .collect(),
    )
}

/// The trees of this instance: the key is drawn afresh for each, so it tells their PRGs apart from all others.
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
