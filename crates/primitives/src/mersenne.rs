//! Slices of integers modulo the Mersenne prime `2^61 - 1`, in words.
//!
//! Since `2^61 = 1`, the bits from the 61st up of any number can be added to the lower ones. All of
//! it is constant time.

use crate::arch::portable;
#[cfg(target_arch = "x86_64")]
use crate::arch::x86_64;
use crate::cpu::Cpu;

/// The modulus, `2^61 - 1`.
pub const MODULUS: u64 = (1 << 61) - 1;

/// `value` modulo `2^61 - 1`.
#[inline(always)]
pub const fn reduce(value: u64) -> u64 {
    // A sum of at most p + 7. Exactly if it is p or more, adding one sets bit 61; that one is then
    // added and the bit cleared.
    let folded = fold(value);
    (folded + ((folded + 1) >> 61)) & MODULUS
}

/// A number congruent to `value` and at most `p + 7`.
#[inline(always)]
pub const fn fold(value: u64) -> u64 {
    (value & MODULUS) + (value >> 61)
}

/// `value` modulo `2^61 - 1`.
#[inline(always)]
pub const fn reduce_wide(value: u128) -> u64 {
    // Three parts of at most 61, 61 and 6 bits: the sum stays below 2^63.
    let low = (value as u64) & MODULUS;
    let middle = ((value >> 61) as u64) & MODULUS;
    let high = (value >> 122) as u64;
    reduce(low + middle + high)
}

/// `out[i]` is `words[i]` modulo `2^61 - 1`. Returns the sums, modulo `2^61 - 1`, of the even and
/// of the odd elements.
///
/// # Panics
/// If the lengths differ.
pub fn reduce_sides(words: &[u64], out: &mut [u64]) -> [u64; 2] {
    reduce_sides_on(Cpu::detect(), words, out)
}

/// `out[i]` is `sums[i] + x[i]`, which must be below `2^64`, modulo `2^61 - 1`.
///
/// # Panics
/// If the lengths differ.
pub fn add_reduce(sums: &[u64], x: &[u64], out: &mut [u64]) {
    add_reduce_on(Cpu::detect(), sums, x, out);
}

/// For pairs of sums: writes the first ones modulo `2^61 - 1` to `u`, and the second ones plus
/// `y[i]`, modulo `2^61 - 1`, to `v`. All sums must be below `2^64`.
///
/// # Panics
/// If the lengths differ.
pub fn add_reduce_pairs(sums: &[[u64; 2]], y: &[u64], u: &mut [u64], v: &mut [u64]) {
    add_reduce_pairs_on(Cpu::detect(), sums, y, u, v);
}

/// The sum of `a[i] * b[i]` modulo `2^61 - 1`, of numbers below `2^61`.
///
/// # Panics
/// If the lengths differ.
pub fn inner_product(a: &[u64], b: &[u64]) -> u64 {
    inner_product_on(Cpu::detect(), a, b)
}

/// [`reduce_sides`] with the kernels of one level.
pub fn reduce_sides_on(cpu: Cpu, words: &[u64], out: &mut [u64]) -> [u64; 2] {
    cpu.assert_available();
    assert_eq!(words.len(), out.len(), "words and residues differ in number");
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it AVX-512F.
        cpu if cpu.has(Cpu::AVX512) => unsafe { x86_64::mersenne::reduce_sides_wide(words, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it AVX2.
        cpu if cpu.has(Cpu::AES_NI) => unsafe { x86_64::mersenne::reduce_sides(words, out) },
        _ => portable::mersenne::reduce_sides(words, out),
    }
}

/// [`add_reduce`] with the kernels of one level.
pub fn add_reduce_on(cpu: Cpu, sums: &[u64], x: &[u64], out: &mut [u64]) {
    cpu.assert_available();
    assert_eq!(sums.len(), x.len(), "vectors of different lengths");
    assert_eq!(sums.len(), out.len(), "vectors of different lengths");
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it AVX-512F.
        cpu if cpu.has(Cpu::AVX512) => unsafe { x86_64::mersenne::add_reduce_wide(sums, x, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it AVX2.
        cpu if cpu.has(Cpu::AES_NI) => unsafe { x86_64::mersenne::add_reduce(sums, x, out) },
        _ => portable::mersenne::add_reduce(sums, x, out),
    }
}

/// [`add_reduce_pairs`] with the kernels of one level.
pub fn add_reduce_pairs_on(cpu: Cpu, sums: &[[u64; 2]], y: &[u64], u: &mut [u64], v: &mut [u64]) {
    cpu.assert_available();
    for len in [y.len(), u.len(), v.len()] {
        assert_eq!(sums.len(), len, "vectors of different lengths");
    }
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it AVX-512F.
        cpu if cpu.has(Cpu::AVX512) => unsafe {
            x86_64::mersenne::add_reduce_pairs_wide(sums, y, u, v)
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it AVX2.
        cpu if cpu.has(Cpu::AES_NI) => unsafe { x86_64::mersenne::add_reduce_pairs(sums, y, u, v) },
        _ => portable::mersenne::add_reduce_pairs(sums, y, u, v),
    }
}

/// [`inner_product`] with the kernels of one level.
pub fn inner_product_on(cpu: Cpu, a: &[u64], b: &[u64]) -> u64 {
    cpu.assert_available();
    assert_eq!(a.len(), b.len(), "vectors of different lengths");
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it AVX-512 IFMA.
        cpu if cpu.has(Cpu::IFMA) => unsafe { x86_64::mersenne::inner_product(a, b) },
        _ => portable::mersenne::inner_product(a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, prg::Prg};

    const LENGTHS: [usize; 13] = [0, 1, 2, 7, 8, 9, 31, 32, 33, 64, 65, 1009, 4096];

    /// Random words, and those next to the multiples of the modulus.
    fn words(n: usize, seed: u128) -> Vec<u64> {
        let mut words = vec![0; n];
        Prg::new(Block::new(seed)).fill_bytes(bytemuck::cast_slice_mut(&mut words));
        let edges = [0, MODULUS - 1, MODULUS, MODULUS + 1, 7 * MODULUS, u64::MAX];
        for (word, edge) in words.iter_mut().skip(1).step_by(3).zip(edges) {
            *word = edge;
        }
        words
    }

    #[test]
    fn residues_and_their_sums_on_every_level() {
        for cpu in Cpu::available() {
            for n in LENGTHS {
                for words in [words(n, 3), vec![u64::MAX; n], vec![MODULUS - 1; n]] {
                    let mut out = vec![1; n];
                    let sums = reduce_sides_on(cpu, &words, &mut out);
                    let residue = |word: &u64| word % MODULUS;
                    assert!(out.iter().copied().eq(words.iter().map(residue)), "{cpu}, {n}");
                    for (side, sum) in sums.into_iter().enumerate() {
                        let side = words.iter().skip(side).step_by(2);
                        let expected: u128 = side.map(|word| u128::from(residue(word))).sum();
                        assert_eq!(u128::from(sum), expected % u128::from(MODULUS), "{cpu}, {n}");
                    }
                }
            }
        }
    }

    #[test]
    fn sums_are_finished_on_every_level() {
        let halves =
            |seed| -> Vec<u64> { words(4096, seed).iter().map(|word| word >> 1).collect() };
        let (sums, other, x) = (halves(5), halves(6), halves(7));
        for cpu in Cpu::available() {
            for n in LENGTHS {
                let (sums, x) = (&sums[..n], &x[..n]);
                let mut out = vec![1; n];
                add_reduce_on(cpu, sums, x, &mut out);
                let finished = |sums: &[u64]| -> Vec<u64> {
                    sums.iter().zip(x).map(|(sum, x)| (sum + x) % MODULUS).collect()
                };
                assert!(out == finished(sums), "{cpu}, {n}");
                let pairs: Vec<_> =
                    other.iter().copied().zip(sums.iter().copied()).map(<[u64; 2]>::from).collect();
                let mut u = vec![1; n];
                out.fill(1);
                add_reduce_pairs_on(cpu, &pairs, x, &mut u, &mut out);
                assert!(out == finished(sums), "{cpu}, {n}");
                assert!(u.iter().zip(&other).all(|(u, sum)| *u == sum % MODULUS), "{cpu}, {n}");
            }
        }
    }

    #[test]
    fn inner_products_on_every_level() {
        let p = u128::from(MODULUS);
        for cpu in Cpu::available() {
            // The longest has more terms than fit between two carries.
            let long = if cfg!(miri) { 70 } else { (1 << 17) + 9 };
            for n in LENGTHS.into_iter().chain([long]) {
                let below =
                    |words: Vec<u64>| -> Vec<u64> { words.iter().map(|w| w >> 3).collect() };
                let random = [below(words(n, 1)), below(words(n, 2))];
                for [a, b] in [
                    random,
                    [vec![MODULUS - 1; n], vec![MODULUS - 1; n]],
                    [vec![MODULUS; n], vec![MODULUS; n]],
                ] {
                    let expected = a
                        .iter()
                        .zip(&b)
                        .fold(0, |sum, (a, b)| (sum + u128::from(*a) * u128::from(*b) % p) % p);
                    assert_eq!(u128::from(inner_product_on(cpu, &a, &b)), expected, "{cpu}, {n}");
                }
            }
        }
    }

    #[test]
    fn wide_values_are_reduced() {
        let p = u128::from(MODULUS);
        for value in [0, 1, p - 1, p, p * p - 1, p * p, (1 << 122) - 1, 1 << 122, u128::MAX] {
            assert_eq!(u128::from(reduce_wide(value)), value % p);
        }
    }
}
