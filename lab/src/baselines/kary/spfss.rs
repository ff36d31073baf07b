//! Known-index SPFSS with trees of any arity: Protocol 3 of the 2019 paper on
//! [`super::punctured_ot`], for many trees at once.
//!
//! The schedule is that of [`volery_pcg::spfss`]: only Protocol 2 depends on the arity.
//!
//! Security: semi-honest, as in [`volery_pcg::spfss`]. The `prgs` of a call are for that call only.
//!
//! Cost: that of [`super::punctured_ot`] and one ring element per tree, P1 to P2, in the same
//! message.

use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_pcg::wire;
use volery_primitives::prg::Prg;
use zeroize::Zeroizing;

use super::TreePrgs;
use super::punctured_ot::{self, TreeBatch};

/// P1, all steps: `beta[tree]` is P1's share of the value of each tree; its shares `v1` are the
/// `leaves`.
pub(crate) fn send<R: Ring, C: CotSender>(
    (batch, prgs): (&TreeBatch, &TreePrgs),
    beta: &[R],
    leaves: &mut [R],
    rng: &mut Prg,
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<()> {
    assert_eq!(beta.len(), batch.trees(), "one share for each tree");
    let totals = punctured_ot::send(batch, prgs, leaves, rng, ot, channel)?; // steps 1, 2
    let masked: Vec<_> = totals.iter().zip(beta).map(|(total, beta)| *total - *beta).collect();
    wire::send(&masked, channel)?; // step 3
    channel.flush()
}

/// P2, all steps: `-v2` into `negated`, where `alphas[tree]` and `beta[tree]` belong to each tree.
pub(crate) fn receive<R: Ring, C: CotReceiver>(
    (batch, prgs): (&TreeBatch, &TreePrgs),
    alphas: &[usize],
    beta: &[R],
    negated: &mut [R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<()> {
    assert_eq!(beta.len(), batch.trees(), "one share for each tree");
    let totals = punctured_ot::receive(batch, prgs, alphas, negated, ot, channel)?; // steps 1, 2
    let mut masked = Zeroizing::new(vec![R::ZERO; totals.len()]);
    let what = "the masked sum of a tree is not in canonical form";
    wire::recv(&mut masked, what, channel)?; // step 3
    for (tree, masked) in masked.iter().enumerate() {
        let place = tree * batch.shape().leaves() + alphas[tree];
        negated[place] = *masked - beta[tree] - totals[tree]; // step 4
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use volery_channel::{SessionId, run_two_parties_with_stats};
    use volery_field::{Fp61, Gf128, Z64};
    use volery_ot::ideal;
    use volery_primitives::Block;

    use super::*;
    use crate::baselines::kary::Arity;

    /// Functionality 8 against a plain table: the shares add up to the point function.
    fn check<R: Ring>(arity: Arity, trees: usize, size: usize) {
        let session = SessionId::from_bytes([9; 32]);
        let batch = TreeBatch::new(trees, size, arity);
        let prgs = TreePrgs::new(session, 0, arity);
        let mut random = Prg::new(Block::from(arity.children() as u128));
        let mut shares = || {
            let mut beta = vec![R::ZERO; trees];
            R::random_slice(&mut random, &mut beta);
            beta
        };
        let beta = [shares(), shares()];
        let alphas: Vec<_> = (0..trees).map(|tree| (tree + size * 3 / 4) % size).collect();
        let (cot_sender, cot_receiver) = ideal::pair(Block::from(3), Block::from(1));
        let ((v1, sent), (negated, _)) = run_two_parties_with_stats(
            |channel| {
                let mut leaves = vec![R::ZERO; batch.leaves()];
                let mut ot = convert::Sender::new(cot_sender, session);
                let (rng, trees) = (&mut Prg::new(Block::from(5)), (&batch, &prgs));
                send(trees, &beta[0], &mut leaves, rng, &mut ot, channel).unwrap();
                leaves
            },
            |channel| {
                let mut negated = vec![R::ONE; batch.leaves()];
                let mut ot = convert::Receiver::new(cot_receiver, session);
                let trees = (&batch, &prgs);
                receive(trees, &alphas, &beta[1], &mut negated, &mut ot, channel).unwrap();
                negated
            },
        );
        for place in 0..batch.leaves() {
            let (tree, point) = (place / size, place % size);
            let expected =
                if point == alphas[tree] { beta[0][tree] + beta[1][tree] } else { R::ZERO };
            assert!(v1[place] - negated[place] == expected, "{tree}, {point}");
        }
        assert_eq!(sent.messages_sent, u64::from(trees > 0));
        let rot = |arity: &Arity| match arity {
            Arity::Two => 32,
            _ => 32 * u64::from(arity.bits()) + 16 * arity.children() as u64,
        };
        let rot: u64 = batch.levels().iter().map(rot).sum();
        assert_eq!(sent.bytes_sent, rot + R::encoded_len(trees) as u64);
    }

    #[test]
    fn shares_add_up_to_the_point_function() {
        for arity in Arity::ALL {
            let k = arity.children();
            for (trees, size) in [
                (0, 5),
                (1, 1),
                (3, 7),
                (2, 1009),
                (3, k - 1),
                (3, k),
                (3, k + 1),
                (2, k * k - 1),
                (2, k * k),
                (2, k * k + 1),
            ] {
                check::<Fp61>(arity, trees, size);
                check::<Z64>(arity, trees, size);
                check::<Gf128>(arity, trees, size);
            }
        }
    }
}
