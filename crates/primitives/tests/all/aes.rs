//! AES: known answers, and every processor level against AES block by block.

use std::panic::{AssertUnwindSafe, catch_unwind};

use volery_primitives::Block;
use volery_primitives::aes::{
    Aes128, ctr_columns, double, hash_pairs, hash_words, leaf_pairs, rekeyed, rekeyed_circular_on,
    rekeyed_circular_pairs, rekeyed_circular_pairs_on, rekeyed_on, split,
};
use volery_primitives::cpu::Cpu;
use volery_primitives::hash::Circular;

/// Around the number of blocks in flight of each level, and a large odd one.
const LENGTHS: &[usize] = if cfg!(miri) {
    // Fewer, as Miri is slow: the portable kernels work on four blocks, and on 64.
    &[0, 1, 2, 3, 5, LONG]
} else {
    &[0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, LONG]
};

/// Long enough for every loop to run often.
const LONG: usize = if cfg!(miri) { 67 } else { 1001 };

fn hex(text: &str) -> Block {
    let bytes: Vec<u8> = (0..16)
        .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("two hexadecimal digits"))
        .collect();
    Block::from_bytes(bytes.try_into().expect("16 bytes"))
}

fn blocks(n: usize) -> Vec<Block> {
    (0..n as u128)
        .map(|i| Block::new((i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)))
        .collect()
}

fn keys(cpu: Cpu) -> [Aes128; 2] {
    [Aes128::with_cpu(Block::new(0x1111), cpu), Aes128::with_cpu(Block::new(0x2222 << 64), cpu)]
}

/// `AES(x) ^ x`, one block at a time.
fn hash(key: &Aes128, x: Block) -> Block {
    key.encrypt(x) ^ x
}

#[test]
fn fips_197_and_sp_800_38a() {
    for cpu in Cpu::available() {
        // FIPS 197, appendix B and appendix C.1.
        let aes = Aes128::with_cpu(hex("2b7e151628aed2a6abf7158809cf4f3c"), cpu);
        assert_eq!(
            aes.encrypt(hex("3243f6a8885a308d313198a2e0370734")),
            hex("3925841d02dc09fbdc118597196a0b32")
        );
        let other = Aes128::with_cpu(hex("000102030405060708090a0b0c0d0e0f"), cpu);
        assert_eq!(
            other.encrypt(hex("00112233445566778899aabbccddeeff")),
            hex("69c4e0d86a7b0430d8cdb78070b4c55a")
        );
        // SP 800-38A, F.1.1, ECB-AES128.Encrypt.
        let mut x = [
            hex("6bc1bee22e409f96e93d7e117393172a"),
            hex("ae2d8a571e03ac9c9eb76fac45af8e51"),
            hex("30c81c46a35ce411e5fbc1191a0a52ef"),
            hex("f69f2445df4f9b17ad2b417be66c3710"),
        ];
        aes.encrypt_blocks(&mut x);
        assert_eq!(
            x,
            [
                hex("3ad77bb40d7a3660a89ecaf32466ef97"),
                hex("f5d3d58503b9699de785895a96fdbaaf"),
                hex("43b1cd7f598ece23881b00e3ed030688"),
                hex("7b0c785e27e8ad3f8223207104725dd4"),
            ],
            "{cpu}"
        );
    }
}

#[test]
fn slices_agree_with_single_blocks() {
    for cpu in Cpu::available() {
        let reference = &keys(Cpu::PORTABLE)[0];
        let aes = &keys(cpu)[0];
        for &n in LENGTHS {
            let x = blocks(n);
            let encrypted: Vec<Block> = x.iter().map(|&x| reference.encrypt(x)).collect();

            let mut out = x.clone();
            aes.encrypt_blocks(&mut out);
            assert_eq!(out, encrypted, "encrypt_blocks, {n} blocks, {cpu}");

            let mut out = vec![Block::ONE; n];
            aes.feed_forward(&x, &mut out);
            let hashed: Vec<Block> = x.iter().map(|&x| hash(reference, x)).collect();
            assert_eq!(out, hashed, "feed_forward, {n} blocks, {cpu}");

            for start in [0, 5, u128::from(u64::MAX) - 3, u128::MAX - 3] {
                let mut out = vec![Block::ONE; n];
                aes.ctr(start, &mut out);
                let stream: Vec<Block> = (0..n as u128)
                    .map(|i| reference.encrypt(Block::new(start.wrapping_add(i))))
                    .collect();
                assert_eq!(out, stream, "ctr from {start}, {n} blocks, {cpu}");
            }
        }
    }
}

#[test]
fn trees_agree_with_single_blocks() {
    let reference = keys(Cpu::PORTABLE);
    for cpu in Cpu::available() {
        let keys = keys(cpu);
        for &n in LENGTHS {
            let parents = blocks(n);
            // All children, and without the last.
            for missing in 0..=usize::from(n > 0) {
                let expected: Vec<Block> =
                    (0..2 * n - missing).map(|i| hash(&reference[i % 2], parents[i / 2])).collect();
                let mut children = vec![Block::ONE; 2 * n - missing];
                let sums = double(&keys, &parents, &mut children);
                assert_eq!(children, expected, "{n} parents, {cpu}");
                for (side, sum) in sums.into_iter().enumerate() {
                    let expected = expected
                        .iter()
                        .skip(side)
                        .step_by(2)
                        .fold(Block::ZERO, |sum, &child| sum ^ child);
                    assert_eq!(sum, expected, "sum of side {side}, {n} parents, {cpu}");
                }

                let expected: Vec<u64> = parents
                    .iter()
                    .map(|&parent| hash(&reference[0], parent))
                    .flat_map(|hash| [hash.low(), hash.high()])
                    .take(2 * n - missing)
                    .collect();
                let mut words = vec![1; 2 * n - missing];
                leaf_pairs(&keys[0], &parents, &mut words);
                assert_eq!(words, expected, "leaves of {n} parents, {cpu}");
            }
        }
    }
}

fn sum<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> Block {
    blocks.into_iter().fold(Block::ZERO, |sum, &block| sum ^ block)
}

#[test]
fn correlated_trees_agree_with_the_definition() {
    let key = Block::new(0x3333 << 32);
    let hash = Circular::new(key);
    for cpu in Cpu::available() {
        let aes = Aes128::with_cpu(key, cpu);
        for &n in LENGTHS.iter().chain(&[LONG - 1]) {
            let parents = blocks(n);
            let left: Vec<Block> = parents.iter().map(|&parent| hash.hash(parent)).collect();
            let right: Vec<Block> = left.iter().zip(&parents).map(|(&l, &p)| l ^ p).collect();
            for mask in [Block::ALL_ONES, Block::ALL_ONES.with_lsb(false)] {
                let expected: Vec<Block> = left
                    .iter()
                    .zip(&right)
                    .flat_map(|(&left, &right)| [left & mask, right & mask])
                    .collect();
                let mut children = vec![Block::ONE; 2 * n];
                let sums = split(&aes, &parents, &mut children, mask);
                assert_eq!(children, expected, "{n} parents, {cpu}");
                assert_eq!(sums, [sum(&left), sum(&right)], "{n} parents, {cpu}");
                assert_eq!(sums[0] ^ sums[1], sum(&parents), "{n} parents, {cpu}");
            }

            for missing in 0..=usize::from(n > 0) {
                let expected: Vec<Block> = parents
                    .iter()
                    .flat_map(|&parent| [parent, parent ^ Block::ONE])
                    .take(2 * n - missing)
                    .map(|input| hash.hash(input))
                    .collect();
                let mut out = vec![Block::ONE; 2 * n - missing];
                let sums = hash_pairs(&aes, &parents, &mut out);
                assert_eq!(out, expected, "pairs of {n} parents, {cpu}");
                for (side, sum_of_side) in sums.into_iter().enumerate() {
                    let expected = sum(expected.iter().skip(side).step_by(2));
                    assert_eq!(sum_of_side, expected, "side {side}, {n} parents, {cpu}");
                }

                let expected: Vec<u64> = left
                    .iter()
                    .flat_map(|hash| [hash.low(), hash.high()])
                    .take(2 * n - missing)
                    .collect();
                let mut words = vec![1; 2 * n - missing];
                hash_words(&aes, &parents, &mut words);
                assert_eq!(words, expected, "words of {n} parents, {cpu}");
            }
        }
    }
}

#[test]
fn rekeyed_is_the_hash_under_each_key() {
    for n in [0, 1, 2, 5, 6, 7, 11, 12, 13, 97] {
        let (keys, x) = (blocks(2 * n).split_off(n), blocks(n));
        let expected: Vec<_> = keys
            .iter()
            .zip(&x)
            .map(|(&key, &x)| Aes128::with_cpu(key, Cpu::PORTABLE).encrypt(x) ^ x)
            .collect();
        for cpu in Cpu::available() {
            let mut hashes = x.clone();
            rekeyed_on(cpu, &keys, &mut hashes);
            assert!(hashes == expected, "{n} {cpu}");
        }
        let (first, second) = (blocks(n), blocks(3 * n).split_off(2 * n));
        let hash = |&key: &Block, x: Block| {
            let x = Block::from_words(x.high(), x.high() ^ x.low());
            Aes128::with_cpu(key, Cpu::PORTABLE).encrypt(x) ^ x
        };
        let pairs: Vec<_> = first.into_iter().zip(second).map(<[_; 2]>::from).collect();
        let both = keys.iter().zip(&pairs);
        let expected: Vec<_> = both.map(|(key, pair)| pair.map(|x| hash(key, x))).collect();
        for cpu in Cpu::available() {
            let mut hashes = pairs.clone();
            rekeyed_circular_pairs_on(cpu, &keys, &mut hashes);
            assert!(hashes == expected, "{n} pairs, {cpu}");
            let mut hashes: Vec<_> = pairs.iter().map(|pair| pair[1]).collect();
            rekeyed_circular_on(cpu, &keys, &mut hashes);
            assert!(hashes.iter().eq(expected.iter().map(|pair| &pair[1])), "{n} {cpu}");
        }
    }
}

/// Columns of every length around the one with its own kernels, for odd and even numbers of keys.
#[test]
fn columns_are_those_of_each_key() {
    for cpu in Cpu::available() {
        for count in [0, 1, 2, 3, 8, 11] {
            let keys: Vec<_> =
                blocks(count).into_iter().map(|key| Aes128::with_cpu(key, cpu)).collect();
            for n in [0, 1, 15, 16, 17, 32] {
                let starts: Vec<_> = (0..count as u64).map(|i| (i % 5).wrapping_sub(1)).collect();
                for counter in [0, 77, u64::MAX - 3] {
                    let expected: Vec<_> = keys
                        .iter()
                        .zip(&starts)
                        .flat_map(|(key, &start)| {
                            let mut column = vec![Block::ZERO; n];
                            let first = (u128::from(start) << 64) + u128::from(counter);
                            key.ctr(first, &mut column);
                            column
                        })
                        .collect();
                    let mut out = vec![Block::ONE; n * count];
                    ctr_columns(&keys, &starts, counter, &mut out);
                    assert_eq!(out, expected, "{cpu}: {count} keys, {n} blocks");
                }
            }
        }
    }
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "a panic ends the program there")]
fn slices_that_do_not_fit_are_refused() {
    let (pair, x) = (keys(Cpu::detect()), blocks(2));
    let key = &pair[0];
    let refused: [(&str, &dyn Fn()); 8] = [
        ("a parent has two children", &|| _ = double(&pair, &x, &mut [Block::ZERO; 2])),
        ("a parent has two children", &|| {
            split(key, &x, &mut [Block::ZERO; 3], Block::ALL_ONES);
        }),
        ("a parent has two children", &|| _ = hash_pairs(key, &x, &mut [Block::ZERO; 5])),
        ("a parent has two words", &|| hash_words(key, &x, &mut [0; 2])),
        ("keys and blocks differ in number", &|| rekeyed(&x, &mut [Block::ZERO; 3])),
        ("keys and pairs differ in number", &|| {
            rekeyed_circular_pairs(&x, &mut [[Block::ZERO; 2]; 3]);
        }),
        ("columns are equally long", &|| ctr_columns(&pair, &[0, 1], 0, &mut [Block::ZERO; 3])),
        ("one start for each key", &|| ctr_columns(&pair, &[0], 0, &mut [Block::ZERO; 4])),
    ];
    for (message, call) in refused {
        let panic = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
        let text = panic
            .downcast_ref::<String>()
            .map_or_else(|| *panic.downcast_ref::<&str>().unwrap(), String::as_str);
        assert!(text.contains(message), "{message}: {text}");
    }
}
