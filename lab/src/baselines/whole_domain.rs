//! Multi-point functions by naive batching: a known-index single-point function over the whole
//! domain for each point. Section 5 of the 2019 paper, first paragraphs; the second baseline of its
//! section 8.3.2.
//!
//! ```text
//! Key holder: beta1_j                     Value holder: points i_j, beta2_j
//! for each point j, some of them at a time:
//! 1. ------------------------ Protocol 3 (volery_pcg::spcot) over 0..n at i_j ------------------------
//! 2. r += its leaves                      m += its leaves
//! ```
//!
//! `r - m` is `beta1_j + beta2_j` at point `i_j` and zero elsewhere; values at equal points add up.
//! The trees are half-trees with hashed leaves, over the next power of two.
//!
//! Security: that of Protocol 3, semi-honest.
//!
//! Cost: for `t` points, `h = log2 n` rounded up (at least 1): that of `t*h` OTs with chosen bits;
//! then from the key holder `16(h + 1)` bytes and a ring element for each point. One message each
//! way for each [`LEAVES_AT_ONCE`] leaves. Computation `t*n` instead of `3n`.

use volery_channel::{Channel, Result, SessionId};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_pcg::{
    ggm::{Growth, TreePrgs},
    spcot::{self, Points},
    tree_batch::TreeBatch,
};
use volery_primitives::{pages::Buffer, prg::Prg};

/// Leaves made at once, beyond those of one tree: this bounds the memory.
pub const LEAVES_AT_ONCE: usize = 1 << 22;

/// The trees of some points, and their numbers.
struct Run {
    points: std::ops::Range<usize>,
    forest: TreeBatch,
    prgs: TreePrgs,
}

/// All runs for `points` points of `0..n`.
fn runs(n: usize, points: usize, session: SessionId) -> impl Iterator<Item = Run> {
    let leaves = n.max(2).next_power_of_two();
    let at_once = (LEAVES_AT_ONCE / leaves).max(1);
    (0..points).step_by(at_once).map(move |start| {
        let points = start..points.min(start + at_once);
        Run {
            forest: TreeBatch::regular(points.len(), leaves),
            prgs: TreePrgs::growing(Growth::PseudoCorrelated, session, start as u64),
            points,
        }
    })
}

/// Step 2.
fn add_up<R: Ring>(forest: &TreeBatch, leaves: &[R], sums: &mut [R]) {
    for tree in 0..forest.trees() {
        let start = forest.leaves_of(tree).start;
        R::add_slice(sums, &leaves[start..start + sums.len()]);
    }
}

/// The key holder: its shares `r` of all points into `sums`; `betas` are its parts of the values.
///
/// `session` is for this call alone.
///
/// # Errors
/// If the channel or the source of OTs fails.
pub fn key_holder<R: Ring, C: CotSender>(
    betas: &[R],
    session: SessionId,
    sums: &mut [R],
    rng: &mut Prg,
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<()> {
    sums.fill(R::ZERO);
    let mut memory = Buffer::zeroed(0);
    for run in runs(sums.len(), betas.len(), session) {
        let leaves = window(&mut memory, run.forest.leaves());
        let trees = (&run.forest, &run.prgs);
        let betas = &betas[run.points.clone()];
        spcot::send(trees, Points::Chosen(&[]), betas, leaves, rng, ot, channel)?;
        add_up(&run.forest, leaves, sums);
    }
    Ok(())
}

/// The value holder: the negatives `m` of its shares into `sums`, for its points and its parts of
/// their values.
///
/// # Panics
/// If there is not one value for each point, or a point is outside the domain.
///
/// # Errors
/// If the channel or the source of OTs fails, or the peer sent a non-canonical ring element.
pub fn value_holder<R: Ring, C: CotReceiver>(
    points: &[usize],
    betas: &[R],
    session: SessionId,
    sums: &mut [R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<()> {
    assert_eq!(points.len(), betas.len(), "one value for each point");
    assert!(
        points.iter().all(|point| *point < sums.len()),
        "points of the domain"
    );
    sums.fill(R::ZERO);
    let mut memory = Buffer::zeroed(0);
    for run in runs(sums.len(), betas.len(), session) {
        let leaves = window(&mut memory, run.forest.leaves());
        let trees = (&run.forest, &run.prgs);
        let alphas = Points::Chosen(&points[run.points.clone()]);
        let betas = &betas[run.points.clone()];
        spcot::receive(trees, alphas, betas, leaves, ot, channel)?;
        add_up(&run.forest, leaves, sums);
    }
    Ok(())
}

/// The first `count` entries; the last run, which has fewer trees, allocates no memory.
fn window<R: Ring>(memory: &mut Buffer<R>, count: usize) -> &mut [R] {
    if memory.len() < count {
        *memory = Buffer::zeroed(count);
    }
    &mut memory[..count]
}

#[cfg(test)]
mod tests {
    use volery_channel::run_two_parties_with_stats;
    use volery_field::{Fp61, Gf128, Z64};
    use volery_ot::ideal;
    use volery_primitives::{Block, bits};

    use super::*;

    const SESSION: SessionId = SessionId::from_bytes([8; 32]);

    /// Against a plain table, with the cost in the documentation.
    fn check<R: Ring>(n: usize, points: &[usize]) {
        let mut dealer = Prg::new(Block::new(n as u128));
        let mut random = || {
            let mut betas = vec![R::ZERO; points.len()];
            R::random_slice(&mut dealer, &mut betas);
            betas
        };
        let betas = [random(), random()];
        let (sender, receiver) = ideal::pair(Block::new(5), Block::new(6));
        let ((r, stats), (m, _)) = run_two_parties_with_stats(
            |channel| {
                let mut ot = convert::Sender::new(sender, SESSION);
                let (mut r, mut rng) = (vec![R::ONE; n], Prg::new(Block::new(7)));
                key_holder(&betas[0], SESSION, &mut r, &mut rng, &mut ot, channel).map(|()| r)
            },
            |channel| {
                let mut ot = convert::Receiver::new(receiver, SESSION);
                let mut m = vec![R::ONE; n];
                value_holder(points, &betas[1], SESSION, &mut m, &mut ot, channel).map(|()| m)
            },
        );
        let (r, m) = (r.expect("no fault"), m.expect("no fault"));
        let mut expected = vec![R::ZERO; n];
        for (j, point) in points.iter().enumerate() {
            expected[*point] += betas[0][j] + betas[1][j];
        }
        assert!(
            (0..n).all(|i| r[i] - m[i] == expected[i]),
            "{n} over {}",
            R::NAME
        );
        let h = n.max(2).next_power_of_two().ilog2() as usize;
        let each = 16 * (h + 1) + R::BYTES;
        assert_eq!(stats.bytes_sent, (points.len() * each) as u64);
        if points.len() * n <= LEAVES_AT_ONCE {
            assert_eq!(
                stats.bytes_received,
                bits::bytes_for(points.len() * h) as u64
            );
        }
    }

    #[test]
    fn shares_of_the_function() {
        for n in [1, 2, 3, 7, 8, 9, 127, 128, 129, 1009] {
            for points in [&[][..], &[0], &[n - 1, 0, n / 2, n - 1]] {
                check::<Fp61>(n, points);
                check::<Z64>(n, points);
                check::<Gf128>(n, points);
            }
        }
    }

    /// More points than fit in one run.
    #[test]
    fn several_runs() {
        check::<Z64>(1 << 19, &[0, 1, 2, 1 << 18, 77, 78, 79, 80, 81]);
    }

    #[test]
    #[should_panic(expected = "points of the domain")]
    fn points_lie_in_the_domain() {
        let (_, receiver) = ideal::pair(Block::new(5), Block::new(6));
        let mut ot = convert::Receiver::new(receiver, SESSION);
        let (mut channel, _other) = Channel::memory_pair();
        let mut sums = [Z64::ZERO; 4];
        let _ = value_holder(&[4], &[Z64::ONE], SESSION, &mut sums, &mut ot, &mut channel);
    }
}
