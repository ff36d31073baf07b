//! AES-128 under keys used for many blocks.
//!
//! FIPS 197. AES reads a block as its 16 little-endian bytes. Every level is constant time: AES
//! instructions, or bit-slicing on a processor without them.

use std::fmt;

use zeroize::ZeroizeOnDrop;

use crate::Block;
use crate::arch::portable;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use crate::arch::wasm32;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::arch::{native, wide};
use crate::cpu::Cpu;

/// AES-128 with its key schedule, wiped on drop.
pub struct Aes128(Schedule);

/// The round keys in the form that the kernels of one level take. A variant other than `Portable`
/// exists only on a processor that can run its kernels: only `Aes128::with_cpu` creates them.
enum Schedule {
    Portable(Box<portable::aes::Schedule>),
    #[cfg(target_arch = "x86_64")]
    AesNi(native::aes::Schedule),
    /// For vectors of two blocks.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    Pairs(native::aes::Schedule),
    /// For vectors of four.
    #[cfg(target_arch = "x86_64")]
    Fours(native::aes::Schedule),
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Wasm(Box<wasm32::aes::Schedule>),
}

/// Calls a kernel of the level that made the schedule.
macro_rules! dispatch {
    ($schedule:expr, $kernel:ident($keys:ident $(, $argument:expr)*)) => {
        match $schedule {
            Schedule::Portable($keys) => portable::aes::$kernel(&**$keys $(, $argument)*),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Schedule::Wasm($keys) => portable::aes::$kernel(&**$keys $(, $argument)*),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this variant exists only where `Cpu::AES_NI` is available.
            Schedule::AesNi($keys) => unsafe { wide::aes::x1::$kernel($keys $(, $argument)*) },
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            // SAFETY: this variant exists only where `Cpu::PAIRS` is available.
            Schedule::Pairs($keys) => unsafe { wide::aes::x2::$kernel($keys $(, $argument)*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this variant exists only where `Cpu::WIDE_VAES` is available.
            Schedule::Fours($keys) => unsafe { wide::aes::x4::$kernel($keys $(, $argument)*) },
        }
    };
}

/// Calls a kernel that hashes under a key for each place, of a level that is known to be available.
macro_rules! rekeyed {
    ($cpu:expr, $kernel:ident($keys:expr, $x:expr)) => {
        match $cpu {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level is available, and with it VAES and AVX-512.
            cpu if cpu.has(Cpu::WIDE_VAES) => unsafe { wide::rekeyed::x4::$kernel($keys, $x) },
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            // SAFETY: the level is available, and with it VAES, or NEON and AES.
            cpu if cpu.has(Cpu::PAIRS) => unsafe { wide::rekeyed::x2::$kernel($keys, $x) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level is available, and with it AES-NI and AVX2.
            cpu if cpu.has(Cpu::AES_NI) => unsafe { wide::rekeyed::x1::$kernel($keys, $x) },
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Cpu::WASM_SIMD128 => portable::aes::$kernel::<wasm32::aes::Schedule>($keys, $x),
            _ => portable::aes::$kernel::<portable::aes::Schedule>($keys, $x),
        }
    };
}

impl Aes128 {
    /// AES under this key, with the best kernels of this processor.
    pub fn new(key: Block) -> Self {
        Self::with_cpu(key, Cpu::detect())
    }

    /// AES under this key, with the kernels of this level.
    ///
    /// # Panics
    /// If the processor cannot run them.
    pub fn with_cpu(key: Block, cpu: Cpu) -> Self {
        cpu.assert_available();
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        use native::aes::Schedule as Native;
        Self(match cpu {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level is available, and with it AES-NI and AVX2.
            cpu if cpu.has(Cpu::WIDE_VAES) => Schedule::Fours(unsafe { Native::new(key) }),
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            // SAFETY: the level is available, and with it AES-NI and AVX2, or NEON and AES.
            cpu if cpu.has(Cpu::PAIRS) => Schedule::Pairs(unsafe { Native::new(key) }),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level is available, and with it AES-NI and AVX2.
            cpu if cpu.has(Cpu::AES_NI) => Schedule::AesNi(unsafe { Native::new(key) }),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Cpu::WASM_SIMD128 => Schedule::Wasm(Box::new(wasm32::aes::Schedule::new(key))),
            _ => Schedule::Portable(Box::new(portable::aes::Schedule::new(key))),
        })
    }

    /// The encryption of one block.
    #[inline]
    pub fn encrypt(&self, x: Block) -> Block {
        let mut x = [x];
        self.encrypt_blocks(&mut x);
        x[0]
    }

    /// Replaces each block by its encryption.
    pub fn encrypt_blocks(&self, x: &mut [Block]) {
        dispatch!(&self.0, encrypt_blocks(keys, x));
    }

    /// `out[i] = AES(counter + i)`, the counter modulo 2^128.
    pub fn ctr(&self, counter: u128, out: &mut [Block]) {
        dispatch!(&self.0, ctr(keys, counter, out));
    }

    /// `out[i] = AES(x[i]) ^ x[i]`: the compression function of Matyas, Meyer and Oseas with a
    /// fixed key.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn feed_forward(&self, x: &[Block], out: &mut [Block]) {
        assert_eq!(x.len(), out.len(), "hashes and inputs differ in number");
        dispatch!(&self.0, feed_forward(keys, x, out));
    }
}

/// The round keys for vectors of two blocks; `None` if the first key was made for another level.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) fn for_pairs(
    keys: &[Aes128],
) -> Option<impl Iterator<Item = &native::aes::Schedule> + Clone> {
    schedules(keys, |schedule| match schedule {
        Schedule::Pairs(keys) => Some(keys),
        _ => None,
    })
}

/// The schedules of [`for_pairs`] for vectors of four blocks.
#[cfg(target_arch = "x86_64")]
pub(crate) fn for_fours(
    keys: &[Aes128],
) -> Option<impl Iterator<Item = &native::aes::Schedule> + Clone> {
    schedules(keys, |schedule| match schedule {
        Schedule::Fours(keys) => Some(keys),
        _ => None,
    })
}

// Generic in `of`: a call through a pointer for each key puts the vector registers of a loop over
// keys into memory.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn schedules(
    keys: &[Aes128],
    of: impl Fn(&Schedule) -> Option<&native::aes::Schedule> + Clone,
) -> Option<impl Iterator<Item = &native::aes::Schedule> + Clone> {
    of(&keys.first()?.0)?;
    Some(
        keys.iter()
            .map(move |key| of(&key.0).expect("the keys were made for one level of the processor")),
    )
}

// The schedules of all levels are wiped on drop.
impl ZeroizeOnDrop for Aes128 {}

impl fmt::Debug for Aes128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Aes128(..)")
    }
}

/// `out[n*k + i] = AES(2^64 starts[k] + counter + i)` under `keys[k]`, with
/// `n = out.len() / keys.len()`: a column of a matrix for each key.
///
/// # Panics
/// If there are not as many starts as keys, or `out.len()` is no multiple of the number of keys. If
/// the keys were made for different processor levels it may panic too, with a part of `out`
/// written.
pub fn ctr_columns(keys: &[Aes128], starts: &[u64], counter: u64, out: &mut [Block]) {
    assert_eq!(keys.len(), starts.len(), "one start for each key");
    if keys.is_empty() {
        return assert!(out.is_empty(), "one key for each column");
    }
    let n = out.len() / keys.len();
    assert_eq!(n * keys.len(), out.len(), "columns are equally long");
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if n == wide::columns::BLOCKS && counter.checked_add(n as u64).is_some() {
        use wide::columns;
        #[cfg(target_arch = "x86_64")]
        if let Some(schedules) = for_fours(keys) {
            // SAFETY: such schedules exist only where `Cpu::WIDE_VAES` is available.
            return unsafe { columns::x4::ctr(schedules.zip(starts), counter, out) };
        }
        if let Some(schedules) = for_pairs(keys) {
            // SAFETY: such schedules exist only where `Cpu::PAIRS` is available.
            return unsafe { columns::x2::ctr(schedules.zip(starts), counter, out) };
        }
    }
    let columns = out.chunks_exact_mut(n.max(1));
    for ((key, &start), column) in keys.iter().zip(starts).zip(columns) {
        let first = Block::from_words(0, start).into();
        key.ctr(u128::wrapping_add(first, counter.into()), column);
    }
}

/// One level of a GGM tree: `children[2j + b] = AES_b(parents[j]) ^ parents[j]`, `AES_b` under
/// `keys[b]`.
///
/// Goldreich, Goldwasser, Micali, *How to construct random functions*, 1986, with the doubling of
/// fixed-key AES. `children.len()` is twice `parents.len()`, or one less if a tree has an odd
/// number of nodes on a level. Returns the XOR of the children with even numbers and the XOR of
/// those with odd numbers.
///
/// # Panics
/// If `children` has another length, or the keys were made for different levels of the processor.
pub fn double(keys: &[Aes128; 2], parents: &[Block], children: &mut [Block]) -> [Block; 2] {
    assert_eq!(
        parents.len(),
        children.len().div_ceil(2),
        "a parent has two children, the last may have one"
    );
    match (&keys[0].0, &keys[1].0) {
        #[cfg(target_arch = "x86_64")]
        (Schedule::AesNi(even), Schedule::AesNi(odd)) => {
            // SAFETY: this variant exists only where `Cpu::AES_NI` is available.
            unsafe { wide::aes::x1::double([even, odd], parents, children) }
        }
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        (Schedule::Pairs(even), Schedule::Pairs(odd)) => {
            // SAFETY: this variant exists only where `Cpu::PAIRS` is available.
            unsafe { wide::aes::x2::double([even, odd], parents, children) }
        }
        #[cfg(target_arch = "x86_64")]
        (Schedule::Fours(even), Schedule::Fours(odd)) => {
            // SAFETY: this variant exists only where `Cpu::WIDE_VAES` is available.
            unsafe { wide::aes::x4::double([even, odd], parents, children) }
        }
        (Schedule::Portable(even), Schedule::Portable(odd)) => {
            portable::aes::double([&**even, &**odd], parents, children)
        }
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        (Schedule::Wasm(even), Schedule::Wasm(odd)) => {
            portable::aes::double([&**even, &**odd], parents, children)
        }
        #[cfg(any(
            target_arch = "x86_64",
            target_arch = "aarch64",
            all(target_arch = "wasm32", target_feature = "simd128")
        ))]
        _ => panic!("the two keys were made for different processor levels"),
    }
}

/// The last level of a GGM tree over a ring of 64 bits: the low word of
/// `AES(parents[j]) ^ parents[j]` is `out[2j]`, the high word `out[2j + 1]`. Half the AES calls of
/// [`double`].
///
/// `out.len()` is twice `parents.len()` or one less.
///
/// # Panics
/// If `out` has another length.
pub fn leaf_pairs(key: &Aes128, parents: &[Block], out: &mut [u64]) {
    assert_eq!(
        parents.len(),
        out.len().div_ceil(2),
        "a parent has two words, the last may have one"
    );
    dispatch!(&key.0, leaf_pairs(keys, parents, out));
}

/// One level of a correlated GGM tree: the left child of a parent `p` is `H(p)`, the right one
/// `p ^ H(p)`, with the hash `H` of [`Circular`](crate::hash::Circular). One AES call for two
/// children.
///
/// Guo, Yang, Wang, Zhang, Xie, Liu, Zhao, *Half-Tree*, ePrint 2022/1431. `children[2j]` is the
/// left child of `parents[j]` and `children[2j + 1]` the right one, each `& mask`. Returns the XOR
/// of all left children and the XOR of all right ones, both without the mask; their XOR is that of
/// the parents.
///
/// # Panics
/// If there are not two children for each parent.
pub fn split(key: &Aes128, parents: &[Block], children: &mut [Block], mask: Block) -> [Block; 2] {
    assert_eq!(2 * parents.len(), children.len(), "a parent has two children");
    dispatch!(&key.0, split(keys, parents, children, mask))
}

/// The hash `H` of [`Circular`](crate::hash::Circular) in words: the low word of `H(parents[j])` is
/// `out[2j]`, the high word `out[2j + 1]`.
///
/// `out.len()` is twice `parents.len()` or one less.
///
/// # Panics
/// If `out` has another length.
pub fn hash_words(key: &Aes128, parents: &[Block], out: &mut [u64]) {
    assert_eq!(
        parents.len(),
        out.len().div_ceil(2),
        "a parent has two words, the last may have one"
    );
    dispatch!(&key.0, hash_words(keys, parents, out));
}

/// The level at which a correlated GGM tree loses its correlation:
/// `out[2j + b] = H(parents[j] ^ b)`, `b` added to the lowest bit, with the hash `H` of
/// [`Circular`](crate::hash::Circular).
///
/// Guo, Yang, Wang, Zhang, Xie, Liu, Zhao, *Half-Tree*, ePrint 2022/1431. `out.len()` is twice
/// `parents.len()` or one less. Returns the XOR of the outputs with even numbers and the XOR of
/// those with odd numbers.
///
/// # Panics
/// If `out` has another length.
pub fn hash_pairs(key: &Aes128, parents: &[Block], out: &mut [Block]) -> [Block; 2] {
    assert_eq!(
        parents.len(),
        out.len().div_ceil(2),
        "a parent has two children, the last may have one"
    );
    dispatch!(&key.0, hash_pairs(keys, parents, out))
}

/// Hashes each block under its own key: `x[i]` becomes `AES(x[i]) ^ x[i]` under `keys[i]`.
///
/// A key that serves few blocks keeps their hashes apart from all others: an attacker who searches
/// for the input of one of many hashes gains nothing from their number. Guo, Katz, Wang, Weng, Yu,
/// *Better Concrete Security for Half-Gates Garbling*, CRYPTO 2020; the key schedule is computed
/// alongside the rounds as in Gueron, Lindell, Nof, Pinkas, *Fast Garbling of Circuits Under
/// Standard Assumptions*, CCS 2015.
///
/// # Panics
/// If the lengths differ.
pub fn rekeyed(keys: &[Block], x: &mut [Block]) {
    rekeyed_on(Cpu::detect(), keys, x);
}

/// [`rekeyed`] with the kernels of one level.
pub fn rekeyed_on(cpu: Cpu, keys: &[Block], x: &mut [Block]) {
    cpu.assert_available();
    assert_eq!(keys.len(), x.len(), "keys and blocks differ in number");
    rekeyed!(cpu, rekeyed(keys, x));
}

/// Hashes each block under its own key: `x[i]` becomes `AES(s(x[i])) ^ s(x[i])` under `keys[i]`,
/// with the orthomorphism `s` of [`Circular`](crate::hash::Circular). Otherwise as [`rekeyed`].
///
/// # Panics
/// If the lengths differ.
pub fn rekeyed_circular(keys: &[Block], x: &mut [Block]) {
    rekeyed_circular_on(Cpu::detect(), keys, x);
}

/// [`rekeyed_circular`] with the kernels of one level.
pub fn rekeyed_circular_on(cpu: Cpu, keys: &[Block], x: &mut [Block]) {
    cpu.assert_available();
    assert_eq!(keys.len(), x.len(), "keys and blocks differ in number");
    rekeyed!(cpu, rekeyed_circular(keys, x));
}

/// Hashes like [`rekeyed_circular`], two blocks under each key: those of `x[i]` under `keys[i]`.
/// One key schedule serves both.
///
/// # Panics
/// If the lengths differ.
pub fn rekeyed_circular_pairs(keys: &[Block], x: &mut [[Block; 2]]) {
    rekeyed_circular_pairs_on(Cpu::detect(), keys, x);
}

/// [`rekeyed_circular_pairs`] with the kernels of one level.
pub fn rekeyed_circular_pairs_on(cpu: Cpu, keys: &[Block], x: &mut [[Block; 2]]) {
    cpu.assert_available();
    assert_eq!(keys.len(), x.len(), "keys and pairs differ in number");
    rekeyed!(cpu, rekeyed_circular_pairs(keys, x));
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// As the table of `cpu` says.
    #[test]
    fn only_vaes_gives_vectors_of_blocks() {
        for cpu in Cpu::available() {
            let width = match Aes128::with_cpu(Block::ONE, cpu).0 {
                Schedule::Portable(_) => 0,
                Schedule::AesNi(_) => 1,
                Schedule::Pairs(_) => 2,
                Schedule::Fours(_) => 4,
            };
            let expected = match cpu.name() {
                "portable" => 0,
                "aes-ni" | "avx512" | "avx512-no-vaes" => 1,
                "vaes" => 2,
                "avx512-no-ifma" | "avx512-no-vbmi" | "avx512-vaes" => 4,
                _ => continue,
            };
            assert_eq!(width, expected, "{cpu}");
        }
    }
}
