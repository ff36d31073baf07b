//! Measurements of the stash size, and their extrapolation.
//!
//! For Path ORAM it is a theorem that the probability of more than `R` blocks in the stash falls
//! exponentially in `R`, with `Z = 5`. For `Z = 4`, which is used here, there is no proof: its
//! authors simulate the worst case, repeated access to all entries in turn, and extrapolate to 89
//! blocks for 2^-80 and 147 for 2^-128. Here the tree has no more leaves than `n/2` (where `n` is
//! a power of two), and the most recently accessed block stays in slot 0 for one more access. So
//! the experiment is repeated with the code of this crate, as its tests do for fewer accesses. The
//! table has the negated binary logarithms of the fraction of accesses after which more than `R`
//! blocks are in the stash, the front included, for the `R` of the columns; the last column has
//! the slope of the least-squares line through the upper half of these, from `R = 10` on:
//!
//! | `n` | accesses | 2 | 4 | 6 | 8 | 10 | 12 | 14 | 16 | bits a block |
//! |---|---|---|---|---|---|---|---|---|---|---|
//! | 2^12 | 40 million | 7.0 | 9.2 | 11.2 | 13.1 | 14.8 | 16.2 | 17.7 | 19.2 | 0.73 |
//! | 2^12 | 40 million | 7.0 | 9.2 | 11.2 | 12.9 | 14.5 | 15.8 | 17.0 | 18.3 | 0.63 |
//! | 2^12 | 120 million | 7.0 | 9.3 | 11.3 | 13.2 | 15.0 | 16.9 | 18.8 | 20.5 | 0.92 |
//! | 2^16 | 40 million | 7.0 | 9.1 | 11.0 | 12.8 | 14.5 | 15.9 | 17.4 | 19.2 | 0.78 |
//! | 2^16 | 40 million | 7.0 | 9.1 | 11.0 | 12.7 | 14.3 | 16.0 | 17.9 | 19.4 | 0.85 |
//! | 2^20 | 40 million | 6.9 | 9.0 | 10.8 | 12.5 | 14.2 | 15.8 | 17.1 | 18.2 | 0.67 |
//! | 2^20 | 40 million | 6.9 | 9.0 | 10.8 | 12.5 | 14.1 | 15.8 | 17.5 | 19.7 | 0.93 |
//!
//! The stash never held more than 25 blocks. These are few events for a large `R` (46 to 132 at
//! 16), and they come in bursts, as a full stash stays full for many accesses: runs of the same `n`
//! differ by up to two bits at 16, and in the slope. The first blocks add more than one bit each
//! and the later ones less, so a line through all points would be too optimistic. The flattest step
//! of the table is the last of the sixth row, 0.55 bits a block.
//!
//! The claim: an access overflows the `S = 140` slots with a probability below 2^-60. This is an
//! extrapolation, not a measurement or a proof, from 16 blocks to 140. If each block past 16 adds
//! 0.55 bits, it is `18.2 + 0.55*124 = 86` bits; for the claimed 60, 0.34 bits a block would be
//! enough. Over 2^30 accesses, 2^-60 adds up to 2^-30. Nothing was measured above `n = 2^20`;
//! longer arrays are accepted, and for them `n` itself is extrapolated, too.
//!
//! P2 detects an overflow before it sends anything of the access: P2 stops with
//! [`StashFull`](super::Error::StashFull), and the array is lost to both. So an overflow is a
//! matter of correctness: no result is wrong, no share is sent. P1 learns that P2 stopped; the fill
//! of the stash depends on the leaves and on P2's indices. An array of no more than 140 entries has
//! a slot for each, and never overflows.

/// `S` of a long array, the slots of its stash.
pub const CAPACITY: usize = super::map::STASH;

#[cfg(test)]
mod tests {
    use volery_primitives::{Block, prg::Prg};

    use super::*;
    use crate::array::map::{Map, Shape};

    /// Accesses the `n` entries of an array in turn, and counts for each `R` from 0 to the
    /// [`CAPACITY`] the accesses after which more than `R` blocks are in the stash. Before the
    /// count, each entry is accessed three times.
    fn exceeding(n: usize, accesses: u64, rng: Prg) -> Vec<u64> {
        let mut map = Map::empty(Shape::new(n), rng);
        let mut in_turn = (0..n).cycle();
        for index in in_turn.by_ref().take(3 * n) {
            map.access(index).unwrap();
        }
        let mut sizes = vec![0; CAPACITY + 1];
        for _ in 0..accesses {
            map.access(in_turn.next().unwrap()).unwrap();
            sizes[map.in_stash()] += 1;
        }
        let mut left = accesses;
        for count in &mut sizes {
            left -= *count;
            *count = left;
        }
        sizes
    }

    /// The line of least squares through the bits at the upper half of those `R` that were exceeded
    /// at least 100 times, as bits for each block and at zero blocks. Fewer events are too noisy,
    /// and the small `R` make the line too steep.
    fn fit(exceeding: &[u64], accesses: u64) -> [f64; 2] {
        let mut points: Vec<_> = (0..)
            .zip(exceeding)
            .filter(|(_, count)| **count >= 100)
            .map(|(r, count)| (f64::from(r), (accesses as f64 / *count as f64).log2()))
            .collect();
        points.drain(..points.len() / 2);
        let mean = |part: &dyn Fn(&(f64, f64)) -> f64| {
            points.iter().map(part).sum::<f64>() / points.len() as f64
        };
        let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
        let covariance = mean(&|point| (point.0 - x) * (point.1 - y));
        let slope = covariance / mean(&|point| (point.0 - x).powi(2));
        [slope, y - slope * x]
    }

    /// The tail at small `R`, its slope, and the extrapolation to the capacity.
    #[test]
    fn the_stash_has_an_exponential_tail() {
        const ACCESSES: u64 = 200_000;
        for n in [1 << 12, 5000, 1 << 14] {
            let exceeding = exceeding(n, ACCESSES, Prg::new(Block::from(n as u128)));
            for (r, count) in (1..12).zip(&exceeding[1..]) {
                let bits = (ACCESSES as f64 / *count as f64).log2();
                assert!(bits > 4.5 + 0.8 * f64::from(r), "{bits} bits at {r} of {n}");
            }
            let [slope, offset] = fit(&exceeding, ACCESSES);
            assert!(slope > 0.55, "{slope} at {n}");
            assert!(offset + slope * CAPACITY as f64 > 86.0, "{slope}, {offset} at {n}");
        }
    }

    /// An array that is no longer than the stash cannot overflow it.
    #[test]
    fn short_arrays_fit() {
        for n in [1, 2, 3, CAPACITY - 1, CAPACITY, CAPACITY + 1] {
            exceeding(n, 20_000, Prg::new(Block::from(1)));
        }
    }
}
