//! AES-128 with SIMD128, eight blocks at a time, bit-sliced: no table and no branch.
//!
//! Käsper, Schwabe, *Faster and timing-attack resistant AES-GCM*, CHES 2009: plane `i` has bit `i`
//! of every byte of eight blocks; byte `j` of the plane has those of byte `j` of the blocks, one in
//! each bit. The circuit of SubBytes is that of Boyar, Peralta, *A depth-16 circuit for the AES
//! S-box*, ePrint 2011/332.
//!
//! Each block may have a key of its own, for which the key schedule is computed on planes, too.

use std::arch::wasm32::*;

use zeroize::Zeroize;

use crate::Block;
use crate::arch::portable::aes::Cipher;

/// Blocks in flight.
const LANES: usize = 8;

/// The bits of eight blocks, plane by plane.
type Planes = [v128; 8];

/// The round keys as planes, wiped on drop.
pub(crate) struct Schedule([[Block; 8]; 11]);

impl Schedule {
    pub(crate) fn new(key: Block) -> Self {
        let keys = Keys::new([key; LANES]);
        Self(keys.0.map(bytemuck::cast))
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Cipher for Schedule {
    fn encrypt_blocks(&self, x: &mut [Block]) {
        let keys = Keys(self.0.map(bytemuck::cast));
        let (chunks, rest) = x.as_chunks_mut::<LANES>();
        for chunk in chunks {
            *chunk = keys.encrypt(*chunk);
        }
        if !rest.is_empty() {
            let mut last = [Block::ZERO; LANES];
            last[..rest.len()].copy_from_slice(rest);
            rest.copy_from_slice(&keys.encrypt(last)[..rest.len()]);
        }
    }

    fn encrypt_sets<const B: usize>(keys: &[Block], x: &mut [[Block; B]]) {
        for (keys, x) in keys.chunks(LANES).zip(x.chunks_mut(LANES)) {
            let mut lanes = [Block::ZERO; LANES];
            lanes[..keys.len()].copy_from_slice(keys);
            let keys = Keys::new(lanes);
            for place in 0..B {
                let mut lanes = [Block::ZERO; LANES];
                for (lane, set) in lanes.iter_mut().zip(x.iter()) {
                    *lane = set[place];
                }
                for (set, lane) in x.iter_mut().zip(keys.encrypt(lanes)) {
                    set[place] = lane;
                }
            }
        }
    }
}

/// Round keys of eight blocks.
struct Keys([Planes; 11]);

impl Keys {
    /// The key schedule of FIPS 197, section 5.2.
    fn new(keys: [Block; LANES]) -> Self {
        let mut planes = [transposed(keys); 11];
        // Powers of X in GF(2^8).
        let mut constant = 1_u8;
        for round in 1..11 {
            let old = planes[round - 1];
            // SubWord of the last word, rotated, in all words.
            let assist = substituted(old).map(last_word_rotated);
            for (i, (new, assist)) in planes[round].iter_mut().zip(assist).enumerate() {
                // A constant is in the first byte of a word; a bit of it is the same in all lanes.
                let bit = 0_u32.wrapping_sub(u32::from(constant >> i & 1)) & 0xff;
                let assist = xor(assist, u32x4_splat(bit));
                // Each word is the sum of the old ones up to its place, and of the assist.
                let sums = xor(old[i], left::<4>(old[i]));
                *new = xor(xor(sums, left::<8>(sums)), assist);
            }
            constant = (constant << 1) ^ ((constant >> 7) * 0x1b);
        }
        Self(planes)
    }

    fn encrypt(&self, x: [Block; LANES]) -> [Block; LANES] {
        let mut x = added(transposed(x), &self.0[0]);
        for key in &self.0[1..10] {
            x = added(mixed(substituted(x)), key);
        }
        let x = substituted(x).map(rows_shifted);
        blocks(added(x, &self.0[10]))
    }
}

#[inline(always)]
fn xor(a: v128, b: v128) -> v128 {
    v128_xor(a, b)
}

#[inline(always)]
fn and(a: v128, b: v128) -> v128 {
    v128_and(a, b)
}

#[inline(always)]
fn not(a: v128) -> v128 {
    v128_not(a)
}

/// Bytes moved up by 4 or 8.
#[inline(always)]
fn left<const BYTES: usize>(x: v128) -> v128 {
    let zero = u32x4_splat(0);
    match BYTES {
        4 => u32x4_shuffle::<0, 4, 5, 6>(zero, x),
        _ => u32x4_shuffle::<0, 0, 4, 5>(zero, x),
    }
}

/// RotWord of the last word, in all words.
#[inline(always)]
fn last_word_rotated(x: v128) -> v128 {
    u8x16_shuffle::<13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15, 12>(x, x)
}

#[inline(always)]
fn added(x: Planes, key: &Planes) -> Planes {
    std::array::from_fn(|i| xor(x[i], key[i]))
}

/// Exchanges the bits of `a` above `mask` by `SHIFT` places with those of `b` below them.
#[inline(always)]
fn exchange<const SHIFT: u32>(a: &mut v128, b: &mut v128, mask: v128) {
    let exchanged = and(xor(u8x16_shr(*a, SHIFT), *b), mask);
    *b = xor(*b, exchanged);
    *a = xor(*a, u8x16_shl(exchanged, SHIFT));
}

/// The 8 times 8 bits of each byte of eight blocks transposed, which is its own inverse.
#[inline(always)]
fn transposed_bits(mut x: Planes) -> Planes {
    let masks = [0x55, 0x33, 0x0f].map(|mask| u8x16_splat(mask));
    for i in [0, 2, 4, 6] {
        let [a, b] = &mut x[i..i + 2] else { continue };
        exchange::<1>(a, b, masks[0]);
    }
    for i in [0, 1, 4, 5] {
        let (a, b) = x.split_at_mut(i + 2);
        exchange::<2>(&mut a[i], &mut b[0], masks[1]);
    }
    for i in 0..4 {
        let (a, b) = x.split_at_mut(4);
        exchange::<4>(&mut a[i], &mut b[i], masks[2]);
    }
    x
}

#[inline(always)]
fn transposed(x: [Block; LANES]) -> Planes {
    transposed_bits(bytemuck::cast(x))
}

#[inline(always)]
fn blocks(x: Planes) -> [Block; LANES] {
    bytemuck::cast(transposed_bits(x))
}

/// ShiftRows: byte `4c + r` comes from column `c + r`.
#[inline(always)]
fn rows_shifted(x: v128) -> v128 {
    u8x16_shuffle::<0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11>(x, x)
}

/// The bytes of each column of ShiftRows, moved up by one row.
#[inline(always)]
fn rows_shifted_and_next(x: v128) -> v128 {
    u8x16_shuffle::<5, 10, 15, 0, 9, 14, 3, 4, 13, 2, 7, 8, 1, 6, 11, 12>(x, x)
}

/// The bytes of each column moved up by two rows.
#[inline(always)]
fn next_but_one(x: v128) -> v128 {
    u16x8_shuffle::<1, 0, 3, 2, 5, 4, 7, 6>(x, x)
}

/// ShiftRows and MixColumns: with `t` the sum of a byte and the next of its column, the new byte is
/// `X t`, the next byte, and the `t` of the next but one.
#[inline(always)]
fn mixed(x: Planes) -> Planes {
    let next = x.map(rows_shifted_and_next);
    let sums: Planes = std::array::from_fn(|i| xor(rows_shifted(x[i]), next[i]));
    let top = sums[7];
    let multiplied = [
        top,
        xor(sums[0], top),
        sums[1],
        xor(sums[2], top),
        xor(sums[3], top),
        sums[4],
        sums[5],
        sums[6],
    ];
    std::array::from_fn(|i| xor(xor(multiplied[i], next[i]), next_but_one(sums[i])))
}

/// SubBytes.
#[inline(always)]
#[rustfmt::skip]
fn substituted([x7, x6, x5, x4, x3, x2, x1, x0]: Planes) -> Planes {
    let y14 = xor(x3, x5);
    let y13 = xor(x0, x6);
    let y9 = xor(x0, x3);
    let y8 = xor(x0, x5);
    let t0 = xor(x1, x2);
    let y1 = xor(t0, x7);
    let y4 = xor(y1, x3);
    let y12 = xor(y13, y14);
    let y2 = xor(y1, x0);
    let y5 = xor(y1, x6);
    let y3 = xor(y5, y8);
    let t1 = xor(x4, y12);
    let y15 = xor(t1, x5);
    let y20 = xor(t1, x1);
    let y6 = xor(y15, x7);
    let y10 = xor(y15, t0);
    let y11 = xor(y20, y9);
    let y7 = xor(x7, y11);
    let y17 = xor(y10, y11);
    let y19 = xor(y10, y8);
    let y16 = xor(t0, y11);
    let y21 = xor(y13, y16);
    let y18 = xor(x0, y16);
    let t2 = and(y12, y15);
    let t3 = and(y3, y6);
    let t4 = xor(t3, t2);
    let t5 = and(y4, x7);
    let t6 = xor(t5, t2);
    let t7 = and(y13, y16);
    let t8 = and(y5, y1);
    let t9 = xor(t8, t7);
    let t10 = and(y2, y7);
    let t11 = xor(t10, t7);
    let t12 = and(y9, y11);
    let t13 = and(y14, y17);
    let t14 = xor(t13, t12);
    let t15 = and(y8, y10);
    let t16 = xor(t15, t12);
    let t17 = xor(t4, t14);
    let t18 = xor(t6, t16);
    let t19 = xor(t9, t14);
    let t20 = xor(t11, t16);
    let t21 = xor(t17, y20);
    let t22 = xor(t18, y19);
    let t23 = xor(t19, y21);
    let t24 = xor(t20, y18);
    let t25 = xor(t21, t22);
    let t26 = and(t21, t23);
    let t27 = xor(t24, t26);
    let t28 = and(t25, t27);
    let t29 = xor(t28, t22);
    let t30 = xor(t23, t24);
    let t31 = xor(t22, t26);
    let t32 = and(t31, t30);
    let t33 = xor(t32, t24);
    let t34 = xor(t23, t33);
    let t35 = xor(t27, t33);
    let t36 = and(t24, t35);
    let t37 = xor(t36, t34);
    let t38 = xor(t27, t36);
    let t39 = and(t29, t38);
    let t40 = xor(t25, t39);
    let t41 = xor(t40, t37);
    let t42 = xor(t29, t33);
    let t43 = xor(t29, t40);
    let t44 = xor(t33, t37);
    let t45 = xor(t42, t41);
    let z0 = and(t44, y15);
    let z1 = and(t37, y6);
    let z2 = and(t33, x7);
    let z3 = and(t43, y16);
    let z4 = and(t40, y1);
    let z5 = and(t29, y7);
    let z6 = and(t42, y11);
    let z7 = and(t45, y17);
    let z8 = and(t41, y10);
    let z9 = and(t44, y12);
    let z10 = and(t37, y3);
    let z11 = and(t33, y4);
    let z12 = and(t43, y13);
    let z13 = and(t40, y5);
    let z14 = and(t29, y2);
    let z15 = and(t42, y9);
    let z16 = and(t45, y14);
    let z17 = and(t41, y8);
    let t46 = xor(z15, z16);
    let t47 = xor(z10, z11);
    let t48 = xor(z5, z13);
    let t49 = xor(z9, z10);
    let t50 = xor(z2, z12);
    let t51 = xor(z2, z5);
    let t52 = xor(z7, z8);
    let t53 = xor(z0, z3);
    let t54 = xor(z6, z7);
    let t55 = xor(z16, z17);
    let t56 = xor(z12, t48);
    let t57 = xor(t50, t53);
    let t58 = xor(z4, t46);
    let t59 = xor(z3, t54);
    let t60 = xor(t46, t57);
    let t61 = xor(z14, t57);
    let t62 = xor(t52, t58);
    let t63 = xor(t49, t58);
    let t64 = xor(z4, t59);
    let t65 = xor(t61, t62);
    let t66 = xor(z1, t63);
    let s0 = xor(t59, t63);
    let s6 = not(xor(t56, t62));
    let s7 = not(xor(t48, t60));
    let t67 = xor(t64, t65);
    let s3 = xor(t53, t66);
    let s4 = xor(t51, t66);
    let s5 = xor(t47, t65);
    let s1 = not(xor(t64, s3));
    let s2 = not(xor(t55, t67));
    [s7, s6, s5, s4, s3, s2, s1, s0]
}
