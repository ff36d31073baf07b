//! Known-index single-point function secret sharing: Protocol 3 of the 2019 paper, for many trees
//! at once.
//!
//! ```text
//! P1: beta_1                              P2: beta_2, alpha
//! 1.  ------------------------ Protocol 2 (rot) ------------------------
//! 2. r_0 .. r_(n-1)                       r_j for j != alpha
//! 3. R = sum r_j      ---- R_beta = R - beta_1 ---->
//! 4.                                      r~ = beta_2 - R_beta + sum_(j != alpha) r_j
//! Eval: v1_j = r_j                        v2_j = -r_j, and v2_alpha = r~
//! ```
//!
//! so that `v1 + v2` is `beta_1 + beta_2` at alpha and zero elsewhere. Inside a vector-OLE P2 needs
//! `-v2`, which agrees with `v1` in all places except one; the batch functions return that
//! ([`receive`]) and save a pass over memory. The keys of a single instance ([`SenderKey`],
//! [`ReceiverKey`]) evaluate to `v1` and `v2` themselves.
//!
//! Security: semi-honest (Theorem A.6): `R_beta` is masked by the leaf that P2 does not know.
//! Cost: that of Protocol 2 and one ring element per tree, P1 to P2, in the same message.

use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::prg::Prg;
use zeroize::Zeroizing;

use crate::{ggm::TreePrgs, pprf, punctured_ot, tree_batch::TreeBatch, wire};

/// P1, steps 1 to 3, with expanded trees: `beta[tree]` is P1's share of the value of each tree.
///
/// P1's shares `v1` are the leaves of the expanded trees.
///
/// # Panics
/// If `beta` does not have one value for each tree.
///
/// # Errors
/// If the channel or the source of OTs fails.
pub fn send<R: Ring, C: CotSender>(
    trees: &punctured_ot::Trees<R>,
    beta: &[R],
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<()> {
    assert_eq!(beta.len(), trees.totals.len(), "one share for each tree");
    trees.send(ot, channel)?; // step 1
    send_values(&trees.totals, beta, channel) // step 3
}

/// P1, step 3: `R_beta` of each tree.
fn send_values<R: Ring>(totals: &[R], beta: &[R], channel: &mut Channel) -> Result<()> {
    let masked: Vec<_> = totals.iter().zip(beta).map(|(total, beta)| *total - *beta).collect();
    wire::send(&masked, channel)?;
    channel.flush()
}

/// P2, all steps: `-v2` into `negated`, where `alphas[tree]` and `beta[tree]` belong to each tree.
///
/// # Panics
/// If a length is not that of the batch, or an alpha is not a leaf of its tree.
///
/// # Errors
/// If the channel or the source of OTs fails, or P1's message has a value that is not an element of
/// the ring.
pub fn receive<R: Ring, C: CotReceiver>(
    batch: &TreeBatch,
    prgs: &TreePrgs,
    alphas: &[usize],
    beta: &[R],
    negated: &mut [R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<punctured_ot::PuncturedTrees<R>> {
    assert_eq!(beta.len(), batch.trees(), "one share for each tree");
    let punctured = punctured_ot::receive(batch, prgs, alphas, negated, ot, channel)?; // steps 1, 2
    let values = receive_values(&punctured.totals, beta, channel)?; // steps 3, 4
    for (tree, value) in values.iter().enumerate() {
        negated[batch.leaves_of(tree).start + alphas[tree]] = *value;
    }
    Ok(punctured)
}

/// P2, steps 3 and 4: `-r~` of each tree.
fn receive_values<R: Ring>(
    totals: &[R],
    beta: &[R],
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    let mut values = Zeroizing::new(vec![R::ZERO; totals.len()]);
    // mutant(spfss-canonical): `wire::recv(&mut values, "the masked sum of a tree is not in
    //     canonical form", channel)?;` => `let got = wire::recv(&mut values[..], "the masked sum
    //     of a tree is not in canonical form", channel); if !$ON { got?; }`
    wire::recv(&mut values, "the masked sum of a tree is not in canonical form", channel)?; // step 3
    for ((value, total), beta) in values.iter_mut().zip(totals).zip(beta) {
        *value = *value - *beta - *total; // step 4
    }
    Ok(values)
}

/// P1's key of one instance, K_1.
pub struct SenderKey<R> {
    key: pprf::Key<R>,
}

/// P2's key of one instance, K_2.
pub struct ReceiverKey<R: Ring> {
    key: pprf::PuncturedKey<R>,
    /// `r~`, P2's share at alpha.
    value: R,
}

impl<R: Ring> Drop for ReceiverKey<R> {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.value);
    }
}

impl<R: Ring> SenderKey<R> {
    /// `Gen` for P1 over the domain `0..n`, with P1's share `beta` of the value.
    ///
    /// # Panics
    /// If `n` is 0 or above 2^40.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails.
    pub fn generate<C: CotSender>(
        n: usize,
        beta: R,
        prgs: &TreePrgs,
        rng: &mut Prg,
        ot: &mut convert::Sender<C>,
        channel: &mut Channel,
    ) -> Result<Self> {
        let batch = TreeBatch::regular(1, n);
        let mut leaves = Zeroizing::new(vec![R::ZERO; n]);
        let trees = punctured_ot::Trees::grow(&batch, prgs, rng, &mut leaves);
        send(&trees, &[beta], ot, channel)?;
        Ok(Self { key: pprf::Key::new(prgs.tree(0), trees.roots[0], n) })
    }

    /// P1's share at `point`.
    ///
    /// # Panics
    /// If `point` is outside the domain.
    #[must_use]
    pub fn evaluate(&self, point: usize) -> R {
        self.key.evaluate(point)
    }

    /// P1's shares at all points.
    ///
    /// # Panics
    /// If `out.len()` is not the size of the domain.
    pub fn expand(&self, out: &mut [R]) {
        self.key.expand(out);
    }
}

impl<R: Ring> ReceiverKey<R> {
    /// `Gen` for P2 over the domain `0..n`, with the index `alpha` and P2's share `beta` of the
    /// value.
    ///
    /// # Panics
    /// If `n` is 0 or above 2^40, or `alpha` is outside the domain.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails, or P1's message has a value that is not an
    /// element of the ring.
    pub fn generate<C: CotReceiver>(
        n: usize,
        alpha: usize,
        beta: R,
        prgs: &TreePrgs,
        ot: &mut convert::Receiver<C>,
        channel: &mut Channel,
    ) -> Result<Self> {
        let batch = TreeBatch::regular(1, n);
        let mut negated = Zeroizing::new(vec![R::ZERO; n]);
        let mut punctured = receive(&batch, prgs, &[alpha], &[beta], &mut negated, ot, channel)?;
        let copath = punctured.copaths.remove(0);
        Ok(Self {
            key: pprf::PuncturedKey::from_copath(prgs.tree(0), alpha, copath, n),
            value: -negated[alpha],
        })
    }

    /// P2's share at `point`.
    ///
    /// # Panics
    /// If `point` is outside the domain.
    #[must_use]
    pub fn evaluate(&self, point: usize) -> R {
        self.key.evaluate(point).map_or(self.value, |leaf| -leaf)
    }

    /// P2's shares at all points.
    ///
    /// # Panics
    /// If `out.len()` is not the size of the domain.
    pub fn expand(&self, out: &mut [R]) {
        self.key.expand(out);
        for share in &mut *out {
            *share = -*share;
        }
        out[self.key.alpha()] = self.value;
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use volery_channel::{SessionId, run_two_parties};
    use volery_field::{Fp61, Gf128, Z64};
    use volery_ot::ideal;
    use volery_primitives::Block;

    use super::*;

    /// Functionality 8 against a plain table: the shares add up to the point function.
    fn check<R: Ring>(n: usize, alpha: usize) {
        let session = SessionId::from_bytes([9; 32]);
        let prgs = TreePrgs::new(session, 0);
        let mut random = Prg::new(Block::from(n as u128));
        let beta = [R::random(&mut random), R::random(&mut random)];
        let (cot_sender, cot_receiver) = ideal::pair(Block::from(3), Block::from(1));
        let (key1, key2) = run_two_parties(
            |channel| {
                let mut ot = convert::Sender::new(cot_sender, session);
                let mut rng = Prg::new(Block::from(5));
                SenderKey::generate(n, beta[0], &prgs, &mut rng, &mut ot, channel).unwrap()
            },
            |channel| {
                let mut ot = convert::Receiver::new(cot_receiver, session);
                ReceiverKey::generate(n, alpha, beta[1], &prgs, &mut ot, channel).unwrap()
            },
        );
        let (mut v1, mut v2) = (vec![R::ZERO; n], vec![R::ZERO; n]);
        key1.expand(&mut v1);
        key2.expand(&mut v2);
        for point in 0..n {
            assert!(v1[point] == key1.evaluate(point) && v2[point] == key2.evaluate(point));
            let expected = if point == alpha { beta[0] + beta[1] } else { R::ZERO };
            assert!(v1[point] + v2[point] == expected, "point {point} of {n}, alpha {alpha}");
        }
    }

    #[test]
    fn shares_add_up_to_the_point_function() {
        for n in [1, 2, 3, 7, 8, 9, 127, 128, 129, 1009] {
            for alpha in [0, n / 2, n - 1] {
                check::<Fp61>(n, alpha);
                check::<Z64>(n, alpha);
                check::<Gf128>(n, alpha);
            }
        }
    }
}
