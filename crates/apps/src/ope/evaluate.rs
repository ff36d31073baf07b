//! Incremental plain evaluation of polynomials.

use volery_field::Ring;
use zeroize::Zeroize;

/// Coefficients summed up before a reduction: that many products fit in the sums of
/// [`Ring::inner_product`].
const BLOCK: usize = 64;

/// The value `p_0 + p_1 z + p_2 z^2 + ..` of a polynomial.
///
/// Sums of 64 products with the powers of `z`, then one step with `z^64`: about one multiplication
/// a coefficient, without a dependency chain.
pub fn evaluate<R: Ring>(coefficients: &[R], z: R) -> R {
    let mut evaluation = Evaluation::new(z);
    evaluation.add(coefficients);
    evaluation.value()
}

/// An evaluation in progress, wiped at the end.
pub(super) struct Evaluation<R: Ring> {
    /// `z^0 .. z^63`.
    powers: [R; BLOCK],
    /// `z^64`.
    step: R,
    /// `z` to the number of coefficients added.
    at: R,
    sum: R,
}

impl<R: Ring> Evaluation<R> {
    pub(super) fn new(z: R) -> Self {
        let mut powers = [R::ONE; BLOCK];
        for i in 1..BLOCK {
            powers[i] = powers[i - 1] * z;
        }
        Self { powers, step: powers[BLOCK - 1] * z, at: R::ONE, sum: R::ZERO }
    }

    /// Adds the next coefficients; all calls except the last must add a multiple of 64.
    pub(super) fn add(&mut self, coefficients: &[R]) {
        for block in coefficients.chunks(BLOCK) {
            let inner = R::inner_product(block, &self.powers[..block.len()]);
            self.sum += self.at * inner;
            self.at *= self.step;
        }
    }

    pub(super) fn value(&self) -> R {
        self.sum
    }
}

impl<R: Ring> Drop for Evaluation<R> {
    fn drop(&mut self) {
        self.powers.zeroize();
        self.step.zeroize();
        self.at.zeroize();
        self.sum.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use volery_field::{Fp61, Gf128, Z64};
    use volery_primitives::{Block, prg::Prg};

    use super::*;

    fn check<R: Ring>() {
        let mut random = Prg::new(Block::from(1));
        for n in [0, 1, 2, 63, 64, 65, 127, 128, 129, 1009] {
            let mut p = vec![R::ZERO; n];
            R::random_slice(&mut random, &mut p);
            for z in [R::ZERO, R::ONE, R::ZERO - R::ONE, R::random(&mut random)] {
                let horner = p.iter().rev().fold(R::ZERO, |sum, p| sum * z + *p);
                assert!(evaluate(&p, z) == horner, "{n} coefficients over {}", R::NAME);
            }
        }
    }

    #[test]
    fn evaluation_by_blocks_equals_horner() {
        check::<Fp61>();
        check::<Z64>();
        check::<Gf128>();
    }
}
