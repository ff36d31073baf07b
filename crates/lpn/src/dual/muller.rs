//! The block code: the Reed-Muller code of order 3 in 8 variables, `[256, 93, 32]`.
//!
//! A code word is the table of a polynomial in eight variables whose monomials have at most three:
//! row `S` of the generator matrix has a one at point `x` where all variables of `S` are one in
//! `x`. The transposed matrix takes a value at each point and gives, for each set `S` of at most
//! three variables, the sum over the points that contain `S`. Eight rounds of additions make these
//! sums for all sets (Yates's method); those that lead only to larger sets are left out.

use super::Term;

/// Input values: the points.
pub(super) const POINTS: usize = 256;

/// Output sums: the monomials.
pub(super) const SUMS: usize = 93;

/// The most variables of a monomial.
const ORDER: u32 = 3;

/// The sets of at most three variables, in ascending order.
const SETS: [u8; SUMS] = {
    let (mut sets, mut set, mut count) = ([0; SUMS], 0, 0);
    while set < POINTS {
        if set.count_ones() <= ORDER {
            sets[count] = set as u8;
            count += 1;
        }
        set += 1;
    }
    sets
};

/// Whether a set of variables has at most three.
const SMALL: [bool; POINTS / 2] = {
    let (mut small, mut set) = ([false; POINTS / 2], 0);
    while set < small.len() {
        small[set] = set.count_ones() <= ORDER;
        set += 1;
    }
    small
};

/// The sums of `points`, which is overwritten.
#[inline(always)]
pub(super) fn sums<T: Term>(points: &mut [T; POINTS], out: &mut [T; SUMS]) {
    round::<T, 128>(points);
    round::<T, 64>(points);
    round::<T, 32>(points);
    round::<T, 16>(points);
    round::<T, 8>(points);
    round::<T, 4>(points);
    round::<T, 2>(points);
    round::<T, 1>(points);
    for (out, set) in out.iter_mut().zip(SETS) {
        *out = points[usize::from(set)];
    }
}

/// Adds to each point without a variable the one with it; `HALF` is the distance between the two.
/// The variables of larger distance have been summed over, and determine which sums are still
/// needed.
#[inline(always)]
fn round<T: Term, const HALF: usize>(points: &mut [T; POINTS]) {
    for (part, small) in points.chunks_exact_mut(2 * HALF).zip(SMALL) {
        if small {
            let (without, with) = part.split_at_mut(HALF);
            for (sum, x) in without.iter_mut().zip(with) {
                *sum = sum.plus(*x);
            }
        }
    }
}
