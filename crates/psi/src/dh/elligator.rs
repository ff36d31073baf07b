//! Elligator 2 on Curve25519: uniform bits for points.
//!
//! Bernstein, Hamburg, Krasnova, Lange, *Elligator: Elliptic-curve points indistinguishable from
//! uniform random strings*, CCS 2013, section 5; RFC 9380, section 6.7.1, has the map with the same
//! choices. The curve is `v^2 = u^3 + A u^2 + u` with `A = 486662`, and 2 is the smallest number
//! that is no square.
//!
//! The map takes `r` to a point; `r` and `-r` go to the same one, and no others do. So each point
//! that is an image has one representative from 0 to (p - 1)/2 = 2^254 - 10, and a uniform one is a
//! uniform string of 254 bits, up to 2^-250.
//!
//! Representatives of keys are uniform only if the points are uniform among all images, and the
//! images are half of *all* points of the curve: a multiple of the usual base point lies in the
//! subgroup of index 8, which anyone could test. Therefore [`sample`] draws multiples of a
//! generator of the whole group; the part of small order is cleared by the scalar of the other
//! party, a multiple of 8. It also draws the sign of `v` (the two points with one `u` have
//! different representatives), and both anew if there is no representative.

use rayon::prelude::*;
use subtle::{Choice, ConditionallySelectable};
use volery_primitives::curve25519::{Element, of_generator, roots_of_ratios};
use volery_primitives::prg::Prg;
use zeroize::{Zeroize, Zeroizing};

const A: Element = Element::small(486_662);

/// Keys computed by one thread at a time.
pub(super) const TASK: usize = 64;

/// The coordinates `u` of the images of all of these.
pub(super) fn map(representatives: &[Element]) -> Zeroizing<Vec<Element>> {
    // u = -A / d or, if that is not the u of a point, -A - u = -A (d - 1) / d, where d = 1 + 2 r^2.
    // This is not zero: -1/2 is no square.
    let twice_squares = representatives.iter().map(|r| r.square() + r.square());
    let denominators = twice_squares.map(|twice_square| Element::ONE + twice_square);
    let mut denominators = Zeroizing::new(denominators.collect::<Vec<_>>());
    // u^3 + A u^2 + u, times the square d^4.
    let cubics = denominators.iter().map(|&d| {
        let rest = A.square() * (Element::ONE - d) + d.square();
        [-A * d * rest, Element::ONE]
    });
    let on_curve = roots_of_ratios(&Zeroizing::new(cubics.collect::<Vec<_>>()));
    let numerators = denominators.iter().zip(on_curve.iter());
    let numerators = numerators.map(|(&d, &(on_curve, _))| {
        let (factor, on_curve) = (d - Element::ONE, Choice::from(on_curve));
        -A * Element::conditional_select(&factor, &Element::ONE, on_curve)
    });
    let mut images = Zeroizing::new(numerators.collect::<Vec<_>>());
    Element::invert_all(&mut denominators);
    for (image, &inverse) in images.iter_mut().zip(denominators.iter()) {
        *image = *image * inverse;
    }
    images
}

/// The representative, if there is one, is a root of this ratio, for one of the two points with
/// coordinate `u`: `other` tells which.
fn ratio(u: Element, other: Choice) -> [Element; 2] {
    let (numerator, denominator) = (
        Element::conditional_select(&u, &(u + A), other),
        Element::conditional_select(&(u + A), &u, other),
    );
    [-numerator, denominator + denominator]
}

/// A scalar and the representative of that multiple of a generator of the whole group.
#[derive(Clone, Copy, Default, Zeroize)]
pub(super) struct Key {
    /// 256 random bits, which are uniform modulo the order up to 2^-127.
    pub(super) secret: [u8; 32],
    pub(super) representative: Element,
}

/// Keys with uniform representatives.
///
/// About half of all attempts give none. Their number depends on nothing but the attempts.
pub(super) fn sample(keys: usize, rng: &mut Prg) -> Zeroizing<Vec<Key>> {
    let mut found = Zeroizing::new(Vec::with_capacity(keys));
    while found.len() < keys {
        let attempts = 2 * (keys - found.len()) + 8;
        let mut secrets = Zeroizing::new(vec![[0; 32]; attempts]);
        rng.fill_bytes(secrets.as_flattened_mut());
        let mut signs = Zeroizing::new(vec![0; attempts]);
        rng.fill_bytes(&mut signs);
        let mut tried = Zeroizing::new(vec![(0, Key::default()); attempts]);
        tried
            .par_chunks_mut(TASK)
            .zip(secrets.par_chunks(TASK).zip(signs.par_chunks(TASK)))
            .for_each(|(tried, (secrets, signs))| attempt(secrets, signs, tried));
        let rest = keys - found.len();
        let succeeded = tried.iter().filter(|(exists, _)| *exists == 1);
        found.extend(succeeded.take(rest).map(|(_, key)| *key));
    }
    found
}

fn attempt(secrets: &[[u8; 32]], signs: &[u8], tried: &mut [(u8, Key)]) {
    let points = of_generator(secrets);
    let ratios = points.iter().zip(signs).map(|(point, sign)| {
        let other = Choice::from(sign & 1);
        ratio(Element::from_bytes(point), other)
    });
    let roots = roots_of_ratios(&Zeroizing::new(ratios.collect::<Vec<_>>()));
    for ((tried, &(exists, representative)), &secret) in tried.iter_mut().zip(&**roots).zip(secrets)
    {
        *tried = (exists, Key { secret, representative });
    }
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::constants::{ED25519_BASEPOINT_TABLE, EIGHT_TORSION};
    use curve25519_dalek::traits::IsIdentity;
    use curve25519_dalek::{MontgomeryPoint, Scalar};
    use volery_primitives::Block;

    use super::*;
    use crate::dh::tests::elements;

    fn representative(u: Element, other: u8) -> (bool, Element) {
        let (exists, root) = roots_of_ratios(&[ratio(u, Choice::from(other))])[0];
        (exists == 1, root)
    }

    fn number(hex: &str) -> Element {
        let mut bytes: [u8; 32] = std::array::from_fn(|i| {
            u8::from_str_radix(&hex[2 * i..][..2], 16).expect("hexadecimal digits")
        });
        bytes.reverse();
        Element::from_canonical(&bytes).expect("a number below p")
    }

    /// RFC 9380, appendix J.4.2, curve25519_XMD:SHA-512_ELL2_NU_: `u` and the x of `Q`.
    #[test]
    fn known_answers() {
        for (r, u) in [
            (
                "608d892b641f0328523802a6603427c26e55e6f27e71a91a478148d45b5093cd",
                "51125222da5e763d97f3c10fcc92ea6860b9ccbbd2eb1285728f566721c1e65b",
            ),
            (
                "46f5b22494bfeaa7f232cc8d054be68561af50230234d7d1d63d1d9abeca8da5",
                "7d56d1e08cb0ccb92baf069c18c49bb5a0dcd927eff8dcf75ca921ef7f3e6eeb",
            ),
        ] {
            assert_eq!(map(&[number(r)])[0], number(u));
        }
    }

    /// Every number is a representative of its image, and of the point with one of the signs only.
    #[test]
    fn the_inverse_of_the_map() {
        let mut signs = [0; 2];
        for r in elements(200) {
            let u = map(&[r])[0];
            let point = MontgomeryPoint(u.to_bytes());
            assert!(point.to_edwards(0).is_some(), "on the curve, not its twist");
            let both = [0, 1].map(|other| representative(u, other));
            let which = both.map(|(_, found)| found == r || found == -r);
            assert_eq!(which.iter().filter(|&&found| found).count(), 1);
            for ((exists, found), count) in both.into_iter().zip(&mut signs) {
                assert!(exists, "both points have one");
                assert_eq!(map(&[found])[0], u);
                *count += i32::from(found == r || found == -r);
            }
        }
        assert!(signs.iter().all(|&count| count > 60), "{signs:?}");
    }

    /// Numbers that are no representative of anything but themselves: 0, and the largest.
    #[test]
    fn exceptions() {
        // -A is no square, so 0 goes to -A - (-A) = 0, the point of order 2.
        assert_eq!(map(&[Element::ZERO])[0], Element::ZERO);
        assert_eq!(representative(Element::ZERO, 0).1, Element::ZERO);
        assert!(!representative(Element::ZERO, 1).0);
    }

    /// The points of keys are spread over all cosets of the subgroup, and each bit of the
    /// representatives is 1 for half of the keys.
    #[test]
    fn keys_are_uniform() {
        let (mut cosets, mut ones) = ([0_u32; 8], [0_u32; 254]);
        let found = sample(2000, &mut Prg::new(Block::new(7)));
        assert_eq!(found.len(), 2000);
        for key in found.iter() {
            let bytes = key.representative.to_bytes();
            assert_eq!(bytes[31] >> 6, 0, "254 bits");
            for (bit, ones) in ones.iter_mut().enumerate() {
                *ones += u32::from(bytes[bit / 8] >> (bit % 8) & 1);
            }
            // Eight times the point, divided by 8 in the subgroup, is the point without its part of
            // small order.
            let u = map(&[key.representative])[0];
            let point = MontgomeryPoint(u.to_bytes()).to_edwards(0).expect("a point");
            let small = point - point.mul_by_cofactor() * Scalar::from(8_u8).invert();
            assert!(small.mul_by_cofactor().is_identity());
            let coset = EIGHT_TORSION.iter().position(|point| *point == small);
            cosets[coset.expect("a point of small order")] += 1;
            // The sign of the point is unknown.
            let scalar = Scalar::from_bytes_mod_order(key.secret);
            let small = EIGHT_TORSION[usize::from(key.secret[0] & 7)];
            let multiple = &scalar * ED25519_BASEPOINT_TABLE + small;
            assert!(point == multiple || point == -multiple);
        }
        // Six standard deviations.
        let near = |count: u32, share: f64| {
            (f64::from(count) - 2000.0 * share).abs()
                < 6.0 * (2000.0 * share * (1.0 - share)).sqrt()
        };
        // So opposite cosets are counted together.
        assert!([0, 4].iter().all(|&coset| near(cosets[coset], 0.125)), "{cosets:?}");
        let pairs = [(1, 7), (2, 6), (3, 5)];
        assert!(pairs.iter().all(|&(a, b)| near(cosets[a] + cosets[b], 0.25)), "{cosets:?}");
        assert!(ones.iter().all(|&ones| near(ones, 0.5)), "{ones:?}");
    }
}
