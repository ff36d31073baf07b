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
