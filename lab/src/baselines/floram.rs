//! Multi-point functions by a distributed point function in every bucket: the proposal of Boyle,
//! Couteau, Gilboa and Ishai (*Compressing Vector OLE*, CCS 2018), with the cuckoo arrangement of
//! the 2019 paper; the first baseline of its section 8.3.2, "FLORAM".
//!
//! ```text
//! Key holder: beta1_l for each bucket l   Value holder: alpha_l, its place in each bucket, beta2_l
//! 1. ------ module dpf in all buckets, in lockstep; the key holder's shares of the places are zero ------
//! 2. r, the sum over the buckets          m, likewise
//! ```
//!
//! It is Protocol 5 with this protocol for `SPFSS.Gen`: an index that may be shared takes `h + 2`
//! messages each way for `h` levels, where one that is known takes one.
//!
//! Security: that of [`crate::baselines::dpf`], semi-honest.
//!
//! Cost: that of [`crate::baselines::dpf`] on the trees of the arrangement.

use volery_channel::{Channel, Result, SessionId};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender};
use volery_pcg::mpcot::Layout;
use volery_primitives::{pages::Buffer, prg::Prg};

use crate::baselines::dpf::{self, Input, Ots};

/// The key holder: its shares `r` of the points of the domain, and of some behind it.
///
/// # Panics
/// If there is not a value for each tree.
///
/// # Errors
/// If the channel or a source of OTs fails, or the peer sent a non-canonical ring element.
pub fn key_holder<R: Ring, S: CotSender, C: CotReceiver>(
    layout: &Layout,
    betas: &[R],
    names: (SessionId, u64),
    rng: &mut Prg,
    ots: &mut Ots<S, C>,
    channel: &mut Channel,
) -> Result<Buffer<R>> {
    let forest = layout.batch();
    let input = Input {
        alphas: &vec![0; forest.trees()],
        betas,
    };
    let mut leaves = layout.leaves(None);
    dpf::first(forest, names, input, &mut leaves, ots, rng, channel)?; // step 1
    Ok(expand(layout, leaves))
}

/// The value holder: the negatives `m` of its shares; `alphas` are its positions, one in each tree.
///
/// # Panics
/// If there is not a position and a value for each tree.
///
/// # Errors
/// If the channel or a source of OTs fails, or the peer sent a non-canonical ring element.
pub fn value_holder<R: Ring, S: CotSender, C: CotReceiver>(
    layout: &Layout,
    (alphas, betas): (&[usize], &[R]),
    names: (SessionId, u64),
    rng: &mut Prg,
    ots: &mut Ots<S, C>,
    channel: &mut Channel,
) -> Result<Buffer<R>> {
    let input = Input { alphas, betas };
    let mut leaves = layout.leaves(None);
    dpf::second(layout.batch(), names, input, &mut leaves, ots, rng, channel)?; // step 1
    Ok(expand(layout, leaves))
}

/// Step 2.
fn expand<R: Ring>(layout: &Layout, leaves: Buffer<R>) -> Buffer<R> {
    if layout.is_regular() {
        return leaves;
    }
    let mut sums = Buffer::zeroed(layout.n().next_multiple_of(layout.tile()));
    layout.add_up(&leaves, 0, &mut sums);
    sums
}

#[cfg(test)]
mod tests {
    use volery_channel::run_two_parties;
    use volery_field::{Fp61, Gf128, Z64};
    use volery_ot::{convert, ideal};
    use volery_pcg::mpcot::Cells;
    use volery_primitives::Block;

    use super::*;

    /// Against a plain table: the points that were placed have their values, all others zero.
    fn check<R: Ring>(layout: &Layout, points: &[usize]) {
        let trees = layout.batch().trees();
        let assignment = layout.assign(points);
        let mut dealer = Prg::new(Block::new(3));
        let mut betas = [vec![R::ZERO; trees], vec![R::ZERO; trees]];
        let mut expected = vec![R::ZERO; layout.n()];
        for (tree, point) in assignment.points.iter().enumerate() {
            let value = R::random(&mut dealer);
            betas[0][tree] = value;
            betas[1][tree] = -value;
            if let Some(point) = point {
                let share = R::random(&mut dealer);
                betas[1][tree] += share;
                expected[points[*point]] = share;
            }
        }
        let sessions = [1, 2].map(|byte| SessionId::from_bytes([byte; 32]));
        let (sender_0, receiver_1) = ideal::pair(Block::new(5), Block::new(6));
        let (sender_1, receiver_0) = ideal::pair(Block::new(7), Block::new(8));
        let names = (SessionId::from_bytes([3; 32]), 0);
        let (r, m) = run_two_parties(
            |channel| {
                let mut ots = Ots {
                    sender: convert::Sender::new(sender_0, sessions[0]),
                    receiver: convert::Receiver::new(receiver_0, sessions[1]),
                };
                let rng = &mut Prg::new(Block::new(10));
                key_holder(layout, &betas[0], names, rng, &mut ots, channel)
            },
            |channel| {
                let mut ots = Ots {
                    sender: convert::Sender::new(sender_1, sessions[1]),
                    receiver: convert::Receiver::new(receiver_1, sessions[0]),
                };
                let rng = &mut Prg::new(Block::new(11));
                let input = (&assignment.alphas[..], &betas[1][..]);
                value_holder(layout, input, names, rng, &mut ots, channel)
            },
        );
        let (r, m) = (r.expect("no fault"), m.expect("no fault"));
        assert!(assignment.dropped.is_empty());
        for (point, expected) in expected.iter().enumerate() {
            assert!(
                r[point] - m[point] == *expected,
                "point {point} over {}",
                R::NAME
            );
        }
    }

    #[test]
    fn shares_of_the_function() {
        for (n, points) in [
            (1, vec![0]),
            (100, vec![99, 0, 50]),
            (1009, (0..40).map(|i| i * 25).collect()),
            (70_001, (0..90).map(|i| i * 777).collect()),
        ] {
            let layout = Layout::cuckoo(n, points.len(), 40, Block::new(4), Cells::Exact);
            check::<Fp61>(&layout, &points);
            check::<Z64>(&layout, &points);
            check::<Gf128>(&layout, &points);
        }
        check::<Z64>(&Layout::regular(3, 20), &[19, 20, 50]);
    }
}
