//! The curve of Ristretto255, eight points at once: addition, encoding and the map from bytes.
//!
//! RFC 9496; extended coordinates of Hisil, Wong, Carter, Dawson, *Twisted Edwards Curves
//! Revisited*, ASIACRYPT 2008, whose formulas have no exceptions on this curve.

use std::arch::x86_64::*;

use bytemuck::{Pod, Zeroable};

use super::field::*;

/// Eight points: `x = X/Z`, `y = Y/Z`, `x*y = T/Z`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Points {
    x: Field,
    y: Field,
    z: Field,
    t: Field,
}

/// Eight points in the form used for adding them to others.
#[derive(Clone, Copy)]
pub(super) struct Addend {
    sum: Field,
    difference: Field,
    twice_z: Field,
    twice_d_t: Field,
}

impl Points {
    #[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
    pub(super) fn identity() -> Self {
        let (zero, one) = (constant(&ZERO), constant(&ONE));
        Self {
            x: zero,
            y: one,
            z: one,
            t: zero,
        }
    }

    /// The first of the eight points in all lanes.
    #[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
    pub(super) fn first(&self) -> Self {
        Self {
            x: first(&self.x),
            y: first(&self.y),
            z: first(&self.z),
            t: first(&self.t),
        }
    }
}

impl Addend {
    #[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
    pub(super) fn new(point: &Points) -> Self {
        Self {
            sum: add(&point.y, &point.x),
            difference: sub(&point.y, &point.x),
            twice_z: add(&point.z, &point.z),
            twice_d_t: mul(&point.t, &constant(&TWICE_D)),
        }
    }

    #[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
    pub(super) fn identity() -> Self {
        let one = constant(&ONE);
        Self {
            sum: one,
            difference: one,
            twice_z: add(&one, &one),
            twice_d_t: constant(&ZERO),
        }
    }

    /// This point in the lanes of the mask, `other` in the rest.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
    pub(super) fn or(&self, mask: __mmask8, other: &Self) -> Self {
        Self {
            sum: select(mask, &other.sum, &self.sum),
            difference: select(mask, &other.difference, &self.difference),
            twice_z: select(mask, &other.twice_z, &self.twice_z),
            twice_d_t: select(mask, &other.twice_d_t, &self.twice_d_t),
        }
    }

    /// The opposites in the lanes of the mask.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
    pub(super) fn negate_where(&self, mask: __mmask8) -> Self {
        Self {
            sum: select(mask, &self.sum, &self.difference),
            difference: select(mask, &self.difference, &self.sum),
            twice_z: self.twice_z,
            twice_d_t: negate_where(mask, &self.twice_d_t),
        }
    }
}

/// `a + b`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn add_points(p: &Points, q: &Addend) -> Points {
    let a = mul(&sub(&p.y, &p.x), &q.difference);
    let b = mul(&add(&p.y, &p.x), &q.sum);
    let c = mul(&p.t, &q.twice_d_t);
    let d = mul(&p.z, &q.twice_z);
    let (e, f, g, h) = (sub(&b, &a), sub(&d, &c), add(&d, &c), add(&b, &a));
    Points {
        x: mul(&e, &f),
        y: mul(&g, &h),
        z: mul(&f, &g),
        t: mul(&e, &h),
    }
}

/// `2*p`; a point that is doubled again needs no `t`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn double<const WITH_T: bool>(p: &Points) -> Points {
    let (a, b) = (square(&p.x), square(&p.y));
    let c = square(&p.z);
    let h = add(&a, &b);
    let e = sub(&h, &square(&add(&p.x, &p.y)));
    let g = sub(&a, &b);
    let f = add(&add(&c, &c), &g);
    Points {
        x: mul(&e, &f),
        y: mul(&g, &h),
        z: mul(&f, &g),
        t: if WITH_T { mul(&e, &h) } else { p.t },
    }
}

/// The lanes whose group element is the identity: four points of the curve represent it, those with
/// a zero coordinate.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn is_identity(p: &Points) -> __mmask8 {
    is_zero(&p.x) | is_zero(&p.y)
}

/// RFC 9496, section 4.3.1: decodes the points, and tells which lanes hold a valid encoding.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn decode(bytes: [&[u8; 32]; LANES]) -> (__mmask8, Points) {
    let s = from_bytes(bytes);
    let mut valid: __mmask8 = 0;
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

/// RFC 9496, section 4.3.2.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn encode(p: &Points) -> [[u8; 32]; LANES] {
    let u1 = mul(&add(&p.z, &p.y), &sub(&p.z, &p.y));
    let u2 = mul(&p.x, &p.y);
    let product = mul(&u1, &square(&u2));
    let [(_, inverse)] = square_root_of_ratio([constant(&ONE)], [product]);
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
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn from_uniform(bytes: [&[u8; 64]; LANES]) -> Points {
    let halves = [0, 1].map(|half| bytes.map(|bytes| &bytes.as_chunks::<32>().0[half]));
    let [a, b] = map([from_bytes(halves[0]), from_bytes(halves[1])]);
    add_points(&a, &Addend::new(&b))
}

/// The function `MAP` of RFC 9496, section 4.3.4, of two elements, computed in parallel.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
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
