//! The curve of Ristretto255: addition, encoding and the map from bytes, in each lane.
//!
//! RFC 9496; extended coordinates of Hisil, Wong, Carter, Dawson, *Twisted Edwards Curves
//! Revisited*, ASIACRYPT 2008, whose formulas have no exceptions on this curve.

use bytemuck::{Pod, Zeroable};

use super::Mask;
use super::constants::*;

macro_rules! kernels {
    ($module:ident, $arithmetic:ident, $features:literal) => {
        pub(crate) mod $module {
            use super::*;
            use crate::arch::x86_64::curve25519::field::$module::*;

            /// Points: `x = X/Z`, `y = Y/Z`, `x*y = T/Z`.
            #[derive(Clone, Copy, Pod, Zeroable)]
            #[repr(C)]
            pub(crate) struct Points {
                x: Field,
                y: Field,
                z: Field,
                t: Field,
            }

            /// Points in the form used for adding them to others.
            #[derive(Clone, Copy)]
            pub(crate) struct Addend {
                sum: Field,
                difference: Field,
                twice_z: Field,
                twice_d_t: Field,
            }

            impl Points {
                #[target_feature(enable = $features)]
                pub(crate) fn identity() -> Self {
                    let (zero, one) = (constant(&ZERO), constant(&ONE));
                    Self { x: zero, y: one, z: one, t: zero }
                }

                /// The opposites.
                #[target_feature(enable = $features)]
                pub(crate) fn negate(&self) -> Self {
                    Self { x: negate(&self.x), t: negate(&self.t), ..*self }
                }

                /// The point of the first lane in all lanes.
                #[target_feature(enable = $features)]
                pub(crate) fn first(&self) -> Self {
                    Self {
                        x: first(&self.x),
                        y: first(&self.y),
                        z: first(&self.z),
                        t: first(&self.t),
                    }
                }
            }

            impl Addend {
                #[target_feature(enable = $features)]
                pub(crate) fn new(point: &Points) -> Self {
                    Self {
                        sum: add_lazy(&point.y, &point.x),
                        difference: sub_lazy(&point.y, &point.x),
                        twice_z: add_lazy(&point.z, &point.z),
                        twice_d_t: mul(&point.t, &constant(&TWICE_D)),
                    }
                }

                #[target_feature(enable = $features)]
                pub(crate) fn identity() -> Self {
                    let one = constant(&ONE);
                    Self {
                        sum: one,
                        difference: one,
                        twice_z: add_lazy(&one, &one),
                        twice_d_t: constant(&ZERO),
                    }
                }

                /// In each lane the point of the mask that has it, or the identity.
                #[inline]
                #[target_feature(enable = $features)]
                pub(crate) fn select_of<const N: usize>(
                    masks: &[Mask; N],
                    points: &[Self; N],
                ) -> Self {
                    let identity = Self::identity();
                    Self {
                        sum: select_of(masks, &points.each_ref().map(|p| &p.sum), &identity.sum),
                        difference: select_of(
                            masks,
                            &points.each_ref().map(|p| &p.difference),
                            &identity.difference,
                        ),
                        twice_z: select_of(
                            masks,
                            &points.each_ref().map(|p| &p.twice_z),
                            &identity.twice_z,
                        ),
                        twice_d_t: select_of(
                            masks,
                            &points.each_ref().map(|p| &p.twice_d_t),
                            &identity.twice_d_t,
                        ),
                    }
                }

                /// The opposites in the lanes of the mask.
                #[inline]
                #[target_feature(enable = $features)]
                pub(crate) fn negate_where(self, mask: Mask) -> Self {
                    Self {
                        sum: select(mask, &self.sum, &self.difference),
                        difference: select(mask, &self.difference, &self.sum),
                        twice_d_t: negate_where(mask, &self.twice_d_t),
                        ..self
                    }
                }
            }

            /// Adds `q` to `p`.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn add_points(p: &mut Points, q: &Addend) {
                let a = mul(&sub_lazy(&p.y, &p.x), &q.difference);
                let b = mul(&add_lazy(&p.y, &p.x), &q.sum);
                let c = mul(&p.t, &q.twice_d_t);
                let d = mul(&p.z, &q.twice_z);
                let (e, f) = (sub_lazy(&b, &a), sub_lazy(&d, &c));
                let (g, h) = (add_lazy(&d, &c), add_lazy(&b, &a));
                p.x = mul(&e, &f);
                p.y = mul(&g, &h);
                p.z = mul(&f, &g);
                p.t = mul(&e, &h);
            }

            /// Doubles `p`, without `t` if it is doubled again.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn double<const WITH_T: bool>(p: &mut Points) {
                let (a, b) = (square(&p.x), square(&p.y));
                let c = square(&p.z);
                let h = add_lazy(&a, &b);
                let e = sub(&h, &square(&add_lazy(&p.x, &p.y)));
                let g = sub_lazy(&a, &b);
                let f = add(&add_lazy(&c, &c), &g);
                p.x = mul(&e, &f);
                p.y = mul(&g, &h);
                p.z = mul(&f, &g);
                if WITH_T {
                    p.t = mul(&e, &h);
                }
            }

            /// The lanes whose group element is the identity: four points of the curve represent
            /// it, those with a zero coordinate.
            #[target_feature(enable = $features)]
            pub(crate) fn is_identity(p: &Points) -> Mask {
                is_zero(&p.x) | is_zero(&p.y)
            }

            /// RFC 9496, section 4.3.1: decodes the points, and tells which lanes hold a valid
            /// encoding.
            #[target_feature(enable = $features)]
            pub(crate) fn decode(bytes: [&[u8; 32]; LANES]) -> (Mask, Points) {
                let s = from_bytes(bytes);
                let mut valid: Mask = 0;
                for (lane, (canonical, bytes)) in to_bytes(&s).iter().zip(bytes).enumerate() {
                    valid |= u8::from(canonical == bytes) << lane;
                }
                valid &= !is_negative(&s);
                let one = constant(&ONE);
                let ss = square(&s);
                let (u1, u2) = (sub(&one, &ss), add(&one, &ss));
                let u2_squared = square(&u2);
                let v = sub(&negate(&mul(&constant(&D), &square(&u1))), &u2_squared);
                let [(was_square, inverse)] = square_root_of_ratio([one], [mul(&v, &u2_squared)]);
                let denominator_x = mul(&inverse, &u2);
                let denominator_y = mul(&mul(&inverse, &denominator_x), &v);
                let x = absolute(&mul(&add(&s, &s), &denominator_x));
                let y = mul(&u1, &denominator_y);
                let t = mul(&x, &y);
                valid &= was_square & !is_negative(&t) & !is_zero(&y);
                (valid, Points { x, y, z: one, t })
            }

            /// The double of `p`, and the number of which [`encode_double`] needs the inverse: zero
            /// where the double is the identity.
            ///
            /// With the names of [`double`], the double is `X = ef`, `Y = gh`, `Z = fg`, and on the
            /// curve `f^2 - h^2 = (a - d)e^2`, so that `Z^2 - Y^2 = (a - d)(eg)^2`. An encoding
            /// takes the inverse root of `(Z^2 - Y^2)(XY)^2`, which is `a - d` times the square of
            /// the number `eg*XY`: many points can share one inversion.
            #[target_feature(enable = $features)]
            pub(crate) fn double_to_encode(p: &Points) -> (Points, Field) {
                let g = sub_lazy(&square(&p.x), &square(&p.y));
                let e = mul(&add_lazy(&p.x, &p.x), &p.y);
                let mut twice = *p;
                double::<true>(&mut twice);
                let number = mul(&mul(&e, &g), &mul(&twice.x, &twice.y));
                (twice, number)
            }

            /// RFC 9496, section 4.3.2, for the results of [`double_to_encode`], the number
            /// inverted; with zero for its inverse, the encoding of the identity.
            #[target_feature(enable = $features)]
            pub(crate) fn encode_double(p: &Points, inverse: &Field) -> [[u8; 32]; LANES] {
                let u1 = mul(&add(&p.z, &p.y), &sub(&p.z, &p.y));
                let u2 = mul(&p.x, &p.y);
                // Its sign does not matter.
                let inverse = mul(inverse, &constant(&INVSQRT_A_MINUS_D));
                let (first, second) = (mul(&inverse, &u1), mul(&inverse, &u2));
                let z_inverse = mul(&mul(&first, &second), &p.t);
                let rotate = is_negative(&mul(&p.t, &z_inverse));
                let root_of_minus_one = constant(&SQRT_M1);
                let x = select(rotate, &p.x, &mul(&p.y, &root_of_minus_one));
                let y = select(rotate, &p.y, &mul(&p.x, &root_of_minus_one));
                let enchanted = mul(&first, &constant(&INVSQRT_A_MINUS_D));
                let inverse = select(rotate, &second, &enchanted);
                let y = negate_where(is_negative(&mul(&x, &z_inverse)), &y);
                to_bytes(&absolute(&mul(&inverse, &sub(&p.z, &y))))
            }

            /// RFC 9496, section 4.3.4: the sum of the images of the two halves of each string.
            #[target_feature(enable = $features)]
            pub(crate) fn from_uniform(bytes: [&[u8; 64]; LANES]) -> Points {
                let halves = [0, 1].map(|half| bytes.map(|bytes| &bytes.as_chunks::<32>().0[half]));
                let [mut sum, b] = map([from_bytes(halves[0]), from_bytes(halves[1])]);
                add_points(&mut sum, &Addend::new(&b));
                sum
            }

            /// The function `MAP` of RFC 9496, section 4.3.4, of two elements, computed in
            /// parallel.
            #[target_feature(enable = $features)]
            fn map(t: [Field; 2]) -> [Points; 2] {
                let (zero, one, d) = (constant(&ZERO), constant(&ONE), constant(&D));
                let mut r = t;
                let (mut u, mut v) = ([zero; 2], [zero; 2]);
                for i in 0..2 {
                    r[i] = mul(&constant(&SQRT_M1), &square(&t[i]));
                    u[i] = mul(&add(&r[i], &one), &constant(&ONE_MINUS_D_SQ));
                    let minus_one_minus = negate(&add(&one, &mul(&r[i], &d)));
                    v[i] = mul(&minus_one_minus, &add(&r[i], &d));
                }
                let roots = square_root_of_ratio(u, v);
                let mut points = [Points::identity(); 2];
                for i in 0..2 {
                    let (was_square, root) = roots[i];
                    let other = negate(&absolute(&mul(&root, &t[i])));
                    let s = select(was_square, &other, &root);
                    let c = select(was_square, &r[i], &negate(&one));
                    let factor = mul(&sub(&r[i], &one), &constant(&D_MINUS_ONE_SQ));
                    let n = sub(&mul(&c, &factor), &v[i]);
                    let s_squared = square(&s);
                    let w0 = mul(&add(&s, &s), &v[i]);
                    let w1 = mul(&n, &constant(&SQRT_AD_MINUS_ONE));
                    let (w2, w3) = (sub(&one, &s_squared), add(&one, &s_squared));
                    points[i] = Points {
                        x: mul(&w0, &w3),
                        y: mul(&w2, &w1),
                        z: mul(&w1, &w3),
                        t: mul(&w0, &w2),
                    };
                }
                points
            }
        }
    };
}

kernels!(x4, avx2, "avx2");
kernels!(x8, ifma, "avx512f,avx512ifma,avx512dq");
