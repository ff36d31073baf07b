//! P1's view of accesses: the leaves.

use super::*;

fn leaves(n: usize, accesses: impl Iterator<Item = usize>) -> Vec<u32> {
    let mut map = Map::empty(Shape::new(n), rng(7));
    accesses.map(|index| map.access(index).unwrap().0).collect()
}

/// Chi-square of counts that should be equal; its mean is one less than their number.
fn chi_square(counts: &[u64]) -> f64 {
    let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|count| (*count as f64 - mean).powi(2) / mean).sum()
}

/// Leaves, and pairs of a leaf and the one `apart` accesses later, are uniform, independent of the
/// accessed entries.
#[test]
fn leaves_are_uniform_and_say_nothing() {
    const N: usize = 32;
    const ACCESSES: usize = 200_000;
    let mut random = rng(8);
    let orders: [(&str, Vec<usize>); 4] = [
        ("one entry", vec![5; ACCESSES]),
        ("in turn", (0..N).cycle().take(ACCESSES).collect()),
        ("two entries", (0..2).cycle().take(ACCESSES).collect()),
        ("random", (0..ACCESSES).map(|_| random.below(N as u64) as usize).collect()),
    ];
    for (name, order) in orders {
        let leaves = leaves(N, order.into_iter());
        let count = 16;
        for apart in [1, 2, N] {
            let mut pairs = vec![0; count * count];
            let mut singles = vec![0; count];
            for (a, b) in leaves.iter().zip(&leaves[apart..]) {
                singles[*a as usize] += 1;
                pairs[*a as usize * count + *b as usize] += 1;
            }
            // Six standard deviations of sqrt(2*(k - 1)) above k - 1.
            let limit = |k: f64| k - 1.0 + 6.0 * (2.0 * (k - 1.0)).sqrt();
            assert!(chi_square(&singles) < limit(16.0), "{name}");
            assert!(chi_square(&pairs) < limit(256.0), "{name}, {apart} apart");
        }
    }
}
