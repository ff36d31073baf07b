//! Powers, roots, signs and encodings over either arithmetic.

use super::Mask;
use super::constants::*;

macro_rules! kernels {
    ($module:ident, $arithmetic:ident, $features:literal) => {
        pub(crate) mod $module {
            use super::*;
            pub(crate) use crate::arch::x86_64::curve25519::$arithmetic::*;

            /// `x^(2^times)` of each of `N` elements, computed in parallel.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn squares<const N: usize>(mut x: [Field; N], times: usize) -> [Field; N] {
                for _ in 0..times {
                    for x in &mut x {
                        square_in_place(x);
                    }
                }
                x
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn products<const N: usize>(mut a: [Field; N], b: &[Field; N]) -> [Field; N] {
                for (a, b) in a.iter_mut().zip(b) {
                    *a = mul(a, b);
                }
                a
            }

            /// `x^(2^252 - 3)`, the exponent `(p - 5)/8`.
            #[target_feature(enable = $features)]
            pub(crate) fn power_for_root<const N: usize>(x: [Field; N]) -> [Field; N] {
                // The number in a name counts the ones of the exponent in binary.
                let two = products(squares(x, 1), &x);
                let four = products(squares(two, 2), &two);
                let five = products(squares(four, 1), &x);
                let ten = products(squares(five, 5), &five);
                let twenty = products(squares(ten, 10), &ten);
                let forty = products(squares(twenty, 20), &twenty);
                let fifty = products(squares(forty, 10), &ten);
                let hundred = products(squares(fifty, 50), &fifty);
                let two_hundred = products(squares(hundred, 100), &hundred);
                let most = products(squares(two_hundred, 50), &fifty);
                products(squares(most, 2), &x)
            }

            /// The inverse; that of zero is zero.
            #[target_feature(enable = $features)]
            pub(crate) fn invert(x: &Field) -> Field {
                // p - 2 = 8 (2^252 - 3) + 3
                let [power] = power_for_root([*x]);
                let [power] = squares([power], 3);
                mul(&power, &mul(x, &square(x)))
            }

            /// RFC 9496, section 4.2, for each of `N`: whether `u/v` is a square, and its
            /// non-negative root, or that of `SQRT_M1*u/v` if it is not. Zero counts as a square;
            /// with `v` zero the root is zero and `u/v` no square unless `u` is zero too.
            #[target_feature(enable = $features)]
            pub(crate) fn square_root_of_ratio<const N: usize>(
                u: [Field; N],
                v: [Field; N],
            ) -> [(Mask, Field); N] {
                let v3 = products(squares(v, 1), &v);
                let v7 = products(squares(v3, 1), &v);
                let roots = power_for_root(products(v7, &u));
                let roots = products(roots, &products(v3, &u));
                let root_of_minus_one = constant(&SQRT_M1);
                let mut results = [(0, constant(&ZERO)); N];
                for (i, root) in roots.iter().enumerate() {
                    let check = mul(&v[i], &square(root));
                    let opposite = negate(&u[i]);
                    let correct = equal(&check, &u[i]);
                    let flipped = equal(&check, &opposite);
                    let flipped_other = equal(&check, &mul(&opposite, &root_of_minus_one));
                    let turned = mul(root, &root_of_minus_one);
                    let root = select(flipped | flipped_other, root, &turned);
                    results[i] = (correct | flipped, absolute(&root));
                }
                results
            }

            /// `-a`.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn negate(a: &Field) -> Field {
                sub(&constant(&ZERO), a)
            }

            /// The lanes in which both are equal.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn equal(a: &Field, b: &Field) -> Mask {
                is_zero(&sub(a, b))
            }

            /// The opposites in the lanes of the mask.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn negate_where(mask: Mask, x: &Field) -> Field {
                select(mask, x, &negate(x))
            }

            /// The one of `x` and `-x` that is not negative.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn absolute(x: &Field) -> Field {
                negate_where(is_negative(x), x)
            }

            /// The elements with these little-endian bytes, the highest bit ignored.
            #[target_feature(enable = $features)]
            pub(crate) fn from_bytes(bytes: [&[u8; 32]; LANES]) -> Field {
                let mut limbs = [[0; LANES]; 5];
                for (lane, bytes) in bytes.into_iter().enumerate() {
                    let words: [[u8; 8]; 4] = bytemuck::cast(*bytes);
                    let w = words.map(u64::from_le_bytes);
                    let parts = [
                        w[0],
                        (w[0] >> 51) | (w[1] << 13),
                        (w[1] >> 38) | (w[2] << 26),
                        (w[2] >> 25) | (w[3] << 39),
                        w[3] >> 12,
                    ];
                    for (limb, part) in limbs.iter_mut().zip(parts) {
                        limb[lane] = part & LIMB_MASK;
                    }
                }
                from_limbs(limbs)
            }

            /// The little-endian bytes of the representatives below the modulus.
            #[target_feature(enable = $features)]
            pub(crate) fn to_bytes(x: &Field) -> [[u8; 32]; LANES] {
                let limbs = canonical_limbs(x);
                std::array::from_fn(|lane| {
                    let l = limbs.map(|limb| limb[lane]);
                    let words = [
                        l[0] | (l[1] << 51),
                        (l[1] >> 13) | (l[2] << 38),
                        (l[2] >> 26) | (l[3] << 25),
                        (l[3] >> 39) | (l[4] << 12),
                    ];
                    bytemuck::cast(words.map(u64::to_le_bytes))
                })
            }
        }
    };
}

kernels!(x4, avx2, "avx2");
kernels!(x8, ifma, "avx512f,avx512ifma,avx512dq");

#[cfg(test)]
mod tests {
    use crate::Block;
    use crate::cpu::Cpu;
    use crate::curve25519::Element;
    use crate::prg::Prg;

    /// The arithmetic of a module beside the portable one. An element has `$count` limbs, number
    /// `i` of `$bits` of `i` bits; the module reduces limbs below these bits and `2^$slack`.
    macro_rules! compare {
        ($module:ident, $cpu:ident, $features:literal, $count:literal, $bits:expr, $slack:literal) => {
            mod $module {
                use super::super::$module::*;
                use super::*;

                type Lanes = [[u64; LANES]; $count];

                const BITS: fn(usize) -> u32 = $bits;

                /// The smallest limb that is not reduced.
                fn bound(limb: usize) -> u64 {
                    (1 << BITS(limb)) + (1 << $slack)
                }

                /// The same numbers in the portable form, whose limbs have one or two of these.
                fn plain(x: &Lanes, lane: usize) -> Element {
                    let each = $count / 5;
                    let limb = |i: usize| {
                        let high = if each == 2 { x[2 * i + 1][lane] } else { 0 };
                        x[each * i][lane] + (high << (BITS(0) % 51))
                    };
                    Element(std::array::from_fn(limb)).carry()
                }

                fn reduced(x: &Field) -> &Lanes {
                    let limbs: &Lanes = bytemuck::cast_ref(x);
                    for (i, limb) in limbs.iter().enumerate() {
                        assert!(limb.iter().all(|limb| *limb < bound(i)), "{i} {limb:x?}");
                    }
                    limbs
                }

                #[target_feature(enable = $features)]
                fn compare(a: &Lanes, b: &Lanes) {
                    let (x, y): (Field, Field) = (bytemuck::cast(*a), bytemuck::cast(*b));
                    let (sum, difference) = (add_lazy(&x, &y), sub_lazy(&x, &y));
                    let results = [
                        mul(&x, &y),
                        square(&x),
                        add(&x, &y),
                        sub(&x, &y),
                        negate(&x),
                        mul(&difference, &sum),
                        mul(&difference, &difference),
                        square(&difference),
                        add(&difference, &difference),
                        sub(&difference, &y),
                    ];
                    let (encoded, zero, negative) = (to_bytes(&x), is_zero(&x), is_negative(&x));
                    let (same, portable) = (equal(&x, &y), limbs(&x));
                    for lane in 0..LANES {
                        let (a, b) = (plain(a, lane), plain(b, lane));
                        let expected = [
                            a * b,
                            a.square(),
                            a + b,
                            a - b,
                            -a,
                            a.square() - b.square(),
                            (a - b).square(),
                            (a - b).square(),
                            (a - b) + (a - b),
                            a - b - b,
                        ];
                        for (i, (result, expected)) in results.iter().zip(expected).enumerate() {
                            let result = plain(reduced(result), lane);
                            assert_eq!(result, expected, "{i} {a:x?} {b:x?}");
                        }
                        assert_eq!(encoded[lane], a.to_bytes());
                        let portable = portable.map(|limb| limb[lane]);
                        assert!(portable.iter().all(|limb| limb >> 52 == 0));
                        assert_eq!(Element(portable), a);
                        assert_eq!(zero >> lane & 1 == 1, a == Element::ZERO);
                        assert_eq!(negative >> lane & 1, a.to_bytes()[0] & 1);
                        assert_eq!(same >> lane & 1 == 1, a == b);
                    }
                }

                /// Limbs at the ends of their range, which random elements never reach.
                #[test]
                fn limbs_at_their_bounds() {
                    if !Cpu::$cpu.is_available() {
                        return;
                    }
                    let mut rng = Prg::new(Block::from(99));
                    for round in 0..20_000usize {
                        let mut limb = |limb: usize, other: usize| {
                            let random = u128::from(rng.block());
                            let (choice, value) = (random as usize, (random >> 64) as u64);
                            let (full, last) = (1 << BITS(limb), bound(limb) - 1);
                            let ends =
                                [0, 1, full - 20, full - 19, full - 1, full, full + 18, last];
                            match (round + other) % 3 {
                                0 => value % bound(limb),
                                1 => ends[choice % ends.len()],
                                _ => last,
                            }
                        };
                        let mut lanes = |other| {
                            std::array::from_fn(|i| std::array::from_fn(|_| limb(i, other)))
                        };
                        let (mut a, mut b): (Lanes, Lanes) = (lanes(0), lanes(1));
                        // The modulus itself, equal elements, and the largest difference.
                        for i in 0..$count {
                            a[i][0] = (1 << BITS(i)) - if i == 0 { 19 } else { 1 };
                            b[i][1] = a[i][1];
                            (a[i][2], b[i][2]) = (bound(i) - 1, 0);
                        }
                        // SAFETY: the level is available, and with it the features.
                        unsafe { compare(&a, &b) };
                    }
                }
            }
        };
    }

    compare!(x4, AES_NI, "avx2", 10, |limb| 26 - limb as u32 % 2, 18);
    compare!(x8, IFMA, "avx512f,avx512ifma,avx512dq", 5, |_| 51, 15);
}
