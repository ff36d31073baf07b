//! GF(2^128): every level against multiplication bit by bit.

use volery_primitives::Block;
use volery_primitives::clmul::{
    gf128_add_products_on, gf128_axpy_on, gf128_combine_on, gf128_inner_product_on, gf128_mul,
    gf128_mul_on,
};
use volery_primitives::cpu::Cpu;
use volery_primitives::prg::Prg;

/// The definition: `a` times X^i for each bit of `b`, reducing after each multiplication by X.
fn slow_mul(a: Block, b: Block) -> Block {
    let mut power = u128::from(a);
    let mut sum = 0;
    for i in 0..128 {
        if b.bit(i) {
            sum ^= power;
        }
        let carry = power >> 127;
        power = (power << 1) ^ (carry * 0x87);
    }
    Block::new(sum)
}

/// Values in which carries and reductions are most likely to go wrong, and random ones.
fn edges() -> Vec<Block> {
    let mut edges = vec![Block::ZERO, Block::ONE, Block::ALL_ONES, Block::new(0x87)];
    edges.extend([1, 62, 63, 64, 65, 119, 120, 121, 126, 127].map(|i| Block::new(1 << i)));
    edges.extend([Block::from_words(u64::MAX, 0), Block::from_words(0, u64::MAX)]);
    edges.extend((0..5).map(|i| {
        let every_fifth = (i..128).step_by(5).fold(0, |sum, bit| sum | 1u128 << bit);
        Block::new(every_fifth)
    }));
    let mut random = [Block::ZERO; 16];
    Prg::new(Block::ONE).fill_blocks(&mut random);
    edges.extend(random);
    edges
}

#[test]
fn known_products() {
    let x = |i: u32| Block::new(1 << i);
    assert_eq!(gf128_mul(x(127), x(1)), Block::new(0x87));
    assert_eq!(gf128_mul(x(64), x(64)), Block::new(0x87));
    // X^254 = X^126 (X^7 + X^2 + X + 1) = X^133 + X^128 + X^127 + X^126, and X^133 = X^12 + X^7 +
    // X^6 + X^5.
    assert_eq!(gf128_mul(x(127), x(127)), Block::new(0x87 << 5 ^ 0x87 ^ 1 << 127 ^ 1 << 126));
}

#[test]
fn edges_at_every_level() {
    for cpu in Cpu::available() {
        for a in edges() {
            for b in edges() {
                assert_eq!(gf128_mul_on(cpu, a, b), slow_mul(a, b), "{a:x} {b:x} {cpu}");
            }
        }
    }
}

#[test]
fn slices_at_awkward_lengths() {
    let s = Block::new(0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978);
    for n in [0usize, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 1009] {
        let a: Vec<Block> = (1..=n as u128).map(|i| Block::new(((i * i) << 100) ^ i)).collect();
        let expected: Vec<Block> = a.iter().map(|&a| slow_mul(a, s)).collect();
        let product = a.iter().fold(Block::ZERO, |sum, &a| sum ^ slow_mul(a, a));
        for cpu in Cpu::available() {
            let mut acc = expected.clone();
            gf128_axpy_on(cpu, &mut acc, s, &a);
            assert!(acc.iter().all(|&x| x == Block::ZERO), "{n} {cpu}");
            assert_eq!(gf128_inner_product_on(cpu, &a, &a), product, "{n} {cpu}");
            gf128_combine_on(cpu, [&a, &expected], [s, Block::ONE], &mut acc);
            assert!(acc.iter().all(|&x| x == Block::ZERO), "{n} {cpu}");
            let squares: Vec<Block> = a.iter().map(|&a| slow_mul(a, a)).collect();
            let mut sums = expected.clone();
            gf128_add_products_on(cpu, [&a, &a, &expected], [&a, &vec![s; n], &a], &mut sums);
            for (j, &sum) in sums.iter().enumerate() {
                assert_eq!(sum, squares[j] ^ slow_mul(expected[j], a[j]), "{n} {cpu}");
            }
        }
    }
}
