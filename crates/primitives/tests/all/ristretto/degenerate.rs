//! Strings with halves at which the formulas of the map are degenerate, or which are not canonical.

use super::*;

/// `MAP` takes `t` to the fraction `u/v` with `v = (-1 - r*d)*(r + d)` and `r = i*t^2`, where
/// `i^2 = -1`. Here `v = 0`: `r = -d` for the first two, `r = -1/d` for the others. The image is
/// the identity.
const NO_DENOMINATOR: [&str; 4] = [
    "45e4a3b534d5cf8a559215f1d2564332ea91148c66abcb8a6814840ba7aa4c7a",
    "a81b5c4acb2a3075aa6dea0e2da9bccd156eeb739954347597eb7bf45855b305",
    "40256ac5e4c73af6057c6d5120f90c4362ab4ad9015bc365598daca048bac400",
    "adda953a1b38c509fa8392aedf06f3bc9d54b526fea43c9aa672535fb7453b7f",
];

/// The same with the other sign, where nothing is degenerate: `r = d`, and `r = 1/d`.
const OTHER_SIGN: [&str; 4] = [
    "824b6124195b882ea834544ff1168d5632dbc95ba06a007adf4d790e82c79f7f",
    "6bb49edbe6a477d157cbabb00ee972a9cd2436a45f95ff8520b286f17d386000",
    "fecfae60bf5af7cc30c9a9fe2271a90a0717c17db2eba36a43d39072f38d990d",
    "ef2f519f40a50833cf365601dd8e56f5f8e83e824d145c95bc2c6f8d0c726672",
];

/// Around zero, `i`, and around the modulus.
const EDGES: [&str; 10] = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0200000000000000000000000000000000000000000000000000000000000000",
    "b0a00e4a271beec478e42fad0618432fa7d7fb3d99004d2b0bdfc14f8024832b",
    "3d5ff1b5d8e4113b871bd052f9e7bcd0582804c266ffb2d4f4203eb07fdb7c54",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "ebffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
];

/// All halves, each with the ignored highest bit as it is and set.
fn halves() -> Vec<[u8; 32]> {
    let halves = NO_DENOMINATOR.iter().chain(&OTHER_SIGN).chain(&EDGES);
    let both = |hex: &&str| {
        let clear = bytes::<32>(hex);
        let mut set = clear;
        set[31] |= 0x80;
        [clear, set]
    };
    halves.flat_map(both).collect()
}

fn string(halves: [[u8; 32]; 2]) -> [u8; 64] {
    halves.concat().try_into().unwrap()
}

#[test]
fn without_a_denominator_the_image_is_the_identity() {
    for hex in NO_DENOMINATOR {
        let string = string([bytes(hex); 2]);
        assert!(RistrettoPoint::from_uniform_bytes(&string).is_identity());
        for cpu in Cpu::available() {
            let points = Points::from_uniform_on(cpu, &[string]);
            assert!(points.any_identity(), "{hex} {cpu}");
            assert_eq!(encoded(&points, 1), [[0; 32]], "{hex} {cpu}");
        }
    }
    for hex in OTHER_SIGN {
        let string = string([bytes(hex); 2]);
        assert!(!RistrettoPoint::from_uniform_bytes(&string).is_identity());
    }
}

/// Each half with each, and each with an ordinary one.
#[test]
fn levels_agree_on_degenerate_strings() {
    let halves = halves();
    let ordinary = strings(1, 6)[0].as_chunks::<32>().0[0];
    let mut all = Vec::new();
    for &left in &halves {
        all.extend([string([left, ordinary]), string([ordinary, left])]);
        all.extend(halves.iter().map(|&right| string([left, right])));
    }
    let expected = dalek(&all);
    let doubles = doubles(expected.iter().copied());
    let identities = expected.iter().filter(|point| point.is_identity()).count();
    assert!(identities > 0 && identities < all.len());
    for cpu in Cpu::available() {
        let points = Points::from_uniform_on(cpu, &all);
        assert!(points.any_identity());
        assert!(encoded(&points, all.len()) == doubles, "{cpu}");
        for (string, expected) in all.iter().zip(&expected) {
            let point = Points::from_uniform_on(cpu, &[*string]);
            assert_eq!(point.any_identity(), expected.is_identity(), "{string:x?}");
        }
        // The results are valid operands: opposites cancel, whatever their origin.
        let mut sums = Points::from_uniform_on(cpu, &all);
        sums.sub(&points);
        assert!(encoded(&sums, all.len()).iter().all(|sum| *sum == [0; 32]));
        sums.add(&points);
        sums.multiply(&Scalar::from(3u64));
        let tripled = expected.iter().map(|point| Scalar::from(3u64) * point);
        assert!(encoded(&sums, all.len()) == super::doubles(tripled), "{cpu}");
    }
}
