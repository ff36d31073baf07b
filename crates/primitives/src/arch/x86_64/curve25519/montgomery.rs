//! The kernels of [`curve25519`](crate::curve25519): polynomials, roots and multiples.

use zeroize::Zeroizing;

use super::Mask;
use super::constants::*;
use crate::curve25519::{BYTES, Element};

/// `(486662 - 2) / 4`.
const A24: Limbs = [121_665, 0, 0, 0, 0];

/// Bits of a scalar.
const BITS: usize = 8 * BYTES;

/// Vectors of points evaluated together, so that their products do not wait for each other.
const GROUPS: usize = 2;

macro_rules! kernels {
    ($module:ident, $arithmetic:ident, $features:literal) => {
        pub(crate) mod $module {
            use super::*;
            use crate::arch::x86_64::curve25519::field::$module::*;

            /// Elements in all lanes; that of lane `i` is `element(i)`.
            #[target_feature(enable = $features)]
            fn load(element: impl Fn(usize) -> Element) -> Field {
                let mut limbs = [[0; LANES]; 5];
                for lane in 0..LANES {
                    for (limbs, limb) in limbs.iter_mut().zip(element(lane).carry().0) {
                        limbs[lane] = limb;
                    }
                }
                from_limbs(limbs)
            }

            #[target_feature(enable = $features)]
            fn store(x: &Field, lane: usize) -> Element {
                Element(limbs(x).map(|limb| limb[lane]))
            }

            #[target_feature(enable = $features)]
            pub(crate) fn evaluate(
                leading: Element,
                coefficients: &[Element],
                points: &[Element],
                values: &mut [Element],
            ) {
                let leading = constant(&leading.carry().0);
                let together = GROUPS * LANES;
                for (points, values) in points.chunks(together).zip(values.chunks_mut(together)) {
                    let point = |i: usize| points[i.min(points.len() - 1)];
                    let mut x = [leading; GROUPS];
                    for (group, x) in x.iter_mut().enumerate() {
                        *x = load(|lane| point(group * LANES + lane));
                    }
                    let mut y = [leading; GROUPS];
                    for coefficient in coefficients.iter().rev() {
                        let coefficient = constant(&coefficient.carry().0);
                        for (y, x) in y.iter_mut().zip(&x) {
                            *y = add(&mul(y, x), &coefficient);
                        }
                    }
                    for (i, value) in values.iter_mut().enumerate() {
                        *value = store(&y[i / LANES], i % LANES);
                    }
                }
            }

            /// The lower one of the roots.
            #[target_feature(enable = $features)]
            pub(crate) fn roots_of_ratios(ratios: &[[Element; 2]], roots: &mut [(u8, Element)]) {
                let together = GROUPS * LANES;
                for (ratios, roots) in ratios.chunks(together).zip(roots.chunks_mut(together)) {
                    let ratio = |i: usize| ratios[i.min(ratios.len() - 1)];
                    let zero = constant(&ZERO);
                    let (mut u, mut v) = ([zero; GROUPS], [zero; GROUPS]);
                    for group in 0..GROUPS {
                        u[group] = load(|lane| ratio(group * LANES + lane)[0]);
                        v[group] = load(|lane| ratio(group * LANES + lane)[1]);
                    }
                    let found = square_root_of_ratio(u, v);
                    for (i, root) in roots.iter_mut().enumerate() {
                        let (squares, found) = &found[i / LANES];
                        *root = (squares >> (i % LANES) & 1, store(found, i % LANES).lower());
                    }
                }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn multiply<'a>(
                scalar: impl Fn(usize) -> &'a [u8; BYTES],
                point: impl Fn(usize) -> &'a [u8; BYTES],
                products: &mut [[u8; BYTES]],
            ) {
                let last = products.len().wrapping_sub(1);
                for (group, products) in products.chunks_mut(LANES).enumerate() {
                    let place = |lane: usize| last.min(group * LANES + lane);
                    let mut bits = Zeroizing::new([0; BITS]);
                    for lane in 0..LANES {
                        let scalar = scalar(place(lane));
                        for (bit, bits) in bits.iter_mut().enumerate() {
                            *bits |= (scalar[bit / 8] >> (bit % 8) & 1) << lane;
                        }
                    }
                    let points = from_bytes(std::array::from_fn(|lane| point(place(lane))));
                    let results = Zeroizing::new(to_bytes(&multiply_group(&bits, &points)));
                    products.copy_from_slice(&results[..products.len()]);
                }
            }

            /// The Montgomery ladder of RFC 7748, section 5, in each lane; entry `i` of the masks
            /// holds bit `i` of all scalars.
            #[target_feature(enable = $features)]
            fn multiply_group(bits: &[Mask; BITS], x1: &Field) -> Field {
                let (zero, one) = (constant(&ZERO), constant(&ONE));
                let (mut x2, mut z2, mut x3, mut z3) = (one, zero, *x1, one);
                let mut swapped = 0;
                for &bit in bits.iter().rev() {
                    let swap = bit ^ swapped;
                    swapped = bit;
                    (x2, x3) = (select(swap, &x2, &x3), select(swap, &x3, &x2));
                    (z2, z3) = (select(swap, &z2, &z3), select(swap, &z3, &z2));
                    let (a, b) = (add_lazy(&x2, &z2), sub_lazy(&x2, &z2));
                    let (c, d) = (add_lazy(&x3, &z3), sub_lazy(&x3, &z3));
                    let (da, cb) = (mul(&d, &a), mul(&c, &b));
                    let (aa, bb) = (square(&a), square(&b));
                    let e = sub_lazy(&aa, &bb);
                    x3 = square(&add_lazy(&da, &cb));
                    z3 = mul(x1, &square(&sub_lazy(&da, &cb)));
                    x2 = mul(&aa, &bb);
                    z2 = mul(&e, &add_lazy(&aa, &mul(&constant(&A24), &e)));
                }
                let (x2, z2) = (select(swapped, &x2, &x3), select(swapped, &z2, &z3));
                mul(&x2, &invert(&z2))
            }
        }
    };
}

kernels!(x4, avx2, "avx2");
kernels!(x8, ifma, "avx512f,avx512ifma,avx512dq");
