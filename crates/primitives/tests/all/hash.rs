//! The fixed-key hashes against their definitions, on a plain implementation of AES from FIPS 197.

use volery_primitives::Block;
use volery_primitives::hash::{Circular, CorrelationRobust, Tweaked};

/// AES-128, byte by byte as in FIPS 197, variable time.
mod slow_aes {
    fn times_x(a: u8) -> u8 {
        a << 1 ^ if a & 0x80 == 0 { 0 } else { 0x1b }
    }

    fn mul(a: u8, b: u8) -> u8 {
        let (mut sum, mut power) = (0, a);
        for i in 0..8 {
            if b >> i & 1 == 1 {
                sum ^= power;
            }
            power = times_x(power);
        }
        sum
    }

    fn substitute(a: u8) -> u8 {
        let inverse = (0..=255).find(|&b| mul(a, b) == 1).unwrap_or(0);
        (0..5).fold(0x63, |sum, i| sum ^ inverse.rotate_left(i))
    }

    pub(crate) fn encrypt(key: [u8; 16], x: [u8; 16]) -> [u8; 16] {
        let mut round_key = key;
        let mut constant = 1;
        let mut state: [u8; 16] = std::array::from_fn(|i| x[i] ^ key[i]);
        for round in 1..=10 {
            let mut next = round_key;
            for i in 0..16 {
                let before = match i {
                    0 => substitute(round_key[13]) ^ constant,
                    1 | 2 => substitute(round_key[13 + i]),
                    3 => substitute(round_key[12]),
                    _ => next[i - 4],
                };
                next[i] = round_key[i] ^ before;
            }
            round_key = next;
            constant = times_x(constant);
            // Column c, row r of the state is byte 4c + r; row r moves r columns to the left.
            let shifted: [u8; 16] =
                std::array::from_fn(|i| substitute(state[(i + 4 * (i % 4)) % 16]));
            for i in 0..16 {
                let column = |r: usize| shifted[i - i % 4 + (i + r) % 4];
                let mixed = if round == 10 {
                    shifted[i]
                } else {
                    mul(column(0), 2) ^ mul(column(1), 3) ^ column(2) ^ column(3)
                };
                state[i] = mixed ^ round_key[i];
            }
        }
        state
    }
}

const KEY: u128 = 0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100;

fn pi(x: u128) -> u128 {
    u128::from_le_bytes(slow_aes::encrypt(KEY.to_le_bytes(), x.to_le_bytes()))
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
    let key = (KEY ^ tweak).to_le_bytes();
    u128::from_le_bytes(slow_aes::encrypt(key, s.to_le_bytes())) ^ s
}

fn inputs(n: usize) -> Vec<u128> {
    (0..n as u128).map(|i| i.wrapping_mul(0x0123_4567_89ab_cdef_1122_3344_5566_7789)).collect()
}

fn to_blocks(x: &[u128]) -> Vec<Block> {
    x.iter().copied().map(Block::new).collect()
}

#[test]
fn the_slow_aes_is_aes() {
    // FIPS 197, appendix C.1.
    let x: [u8; 16] = std::array::from_fn(|i| 0x11 * i as u8);
    assert_eq!(
        slow_aes::encrypt(KEY.to_le_bytes(), x),
        [
            0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30, 0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4,
            0xc5, 0x5a
        ]
    );
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
        let mut out = vec![Block::ZERO; n];
        plain.hash_into(&blocks, &mut out);
        assert_eq!(out, expected);
        assert!(blocks.iter().zip(&out).all(|(&x, &y)| plain.hash(x) == y));

        let expected: Vec<u128> = x.iter().map(|&x| slow_circular(x)).collect();
        let expected = to_blocks(&expected);
        let mut out = blocks.clone();
        circular.hash_slice(&mut out);
        assert_eq!(out, expected);
        let mut out = vec![Block::ZERO; n];
        circular.hash_into(&blocks, &mut out);
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

#[test]
fn equal_inputs_hash_apart_under_different_tweaks_only() {
    let key = Block::new(KEY);
    let mut x = [Block::new(77); 40];
    Tweaked::new(key).hash_slice(5, &mut x);
    for i in 0..x.len() {
        assert!(x[..i].iter().all(|&other| other != x[i]));
    }
    assert_ne!(
        CorrelationRobust::new(key).hash(Block::new(77)),
        Circular::new(key).hash(Block::new(77))
    );
}
