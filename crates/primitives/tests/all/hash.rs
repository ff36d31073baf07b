//! The fixed-key hashes against their definitions.

use volery_primitives::Block;
use volery_primitives::aes::Aes128;
use volery_primitives::cpu::Cpu;
use volery_primitives::hash::{Circular, CorrelationRobust, Tweaked};

const KEY: u128 = 0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100;

fn encrypt(key: u128, x: u128) -> u128 {
    Aes128::with_cpu(Block::new(key), Cpu::PORTABLE).encrypt(Block::new(x)).into()
}

fn pi(x: u128) -> u128 {
    encrypt(KEY, x)
}

fn orthomorphism(x: u128) -> u128 {
    let (left, right) = (x >> 64, x & u128::from(u64::MAX));
    (left ^ right) << 64 | left
}

fn slow_circular(x: u128) -> u128 {
    let s = orthomorphism(x);
    pi(s) ^ s
}

fn slow_tweaked(tweak: u128, x: u128) -> u128 {
    let s = orthomorphism(x);
    encrypt(KEY ^ tweak, s) ^ s
}

fn inputs(n: usize) -> Vec<u128> {
    (0..n as u128).map(|i| i.wrapping_mul(0x0123_4567_89ab_cdef_1122_3344_5566_7789)).collect()
}

fn to_blocks(x: &[u128]) -> Vec<Block> {
    x.iter().copied().map(Block::new).collect()
}

#[test]
fn hashes_are_their_definitions() {
    let key = Block::new(KEY);
    let (plain, circular, tweaked) =
        (CorrelationRobust::new(key), Circular::new(key), Tweaked::new(key));
    // The last tweak of the slice wraps around.
    let first_tweak = u128::MAX - 20;
    for n in [0, 1, 7, 8, 31, 32, 33, 70] {
        let x = inputs(n);
        let blocks = to_blocks(&x);

        let expected: Vec<u128> = x.iter().map(|&x| pi(x) ^ x).collect();
        let expected = to_blocks(&expected);
        let mut out = blocks.clone();
        plain.hash_slice(&mut out);
        assert_eq!(out, expected);
        assert!(blocks.iter().zip(&out).all(|(&x, &y)| plain.hash(x) == y));

        let expected: Vec<u128> = x.iter().map(|&x| slow_circular(x)).collect();
        let expected = to_blocks(&expected);
        let mut out = blocks.clone();
        circular.hash_slice(&mut out);
        assert_eq!(out, expected);
        assert!(blocks.iter().zip(&out).all(|(&x, &y)| circular.hash(x) == y));

        let tweak = |j: usize| first_tweak.wrapping_add(j as u128);
        let expected: Vec<Block> =
            (0..n).map(|j| Block::new(slow_tweaked(tweak(j), x[j]))).collect();
        let mut out = blocks.clone();
        tweaked.hash_slice(first_tweak, &mut out);
        assert_eq!(out, expected);
        assert!((0..n).all(|j| tweaked.hash(tweak(j), blocks[j]) == out[j]));

        let mut pairs: Vec<_> = blocks.iter().map(|&x| [x, Block::ONE ^ x]).collect();
        tweaked.hash_pairs(first_tweak, &mut pairs);
        for (j, pair) in pairs.iter().enumerate() {
            let other = Block::new(slow_tweaked(tweak(j), 1 ^ x[j]));
            assert_eq!(*pair, [expected[j], other]);
        }
    }
}
