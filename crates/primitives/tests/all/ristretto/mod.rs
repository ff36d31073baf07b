//! Ristretto255: every level against `curve25519-dalek`, whose own tests have the valid encodings
//! and the images of RFC 9496; the invalid encodings of that RFC; and inputs where the formulas are
//! degenerate.

mod degenerate;
mod rfc9496;

use curve25519_dalek::Scalar;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::traits::{Identity, IsIdentity};
use volery_primitives::Block;
use volery_primitives::cpu::Cpu;
use volery_primitives::prg::Prg;
use volery_primitives::ristretto::Points;

/// Lengths around the four and eight elements of a vector.
const LENGTHS: [usize; 10] = [0, 1, 3, 4, 5, 7, 8, 9, 16, 65];

fn strings(n: usize, seed: u128) -> Vec<[u8; 64]> {
    let mut strings = vec![[0; 64]; n];
    Prg::new(Block::new(seed)).fill_bytes(strings.as_flattened_mut());
    strings
}

/// Scalars with all carries of digits, and random ones.
fn scalars(n: usize) -> Vec<Scalar> {
    let mut scalars = vec![
        Scalar::ZERO,
        Scalar::ONE,
        -Scalar::ONE,
        Scalar::from(8u64),
        Scalar::from_bytes_mod_order([0x88; 32]),
        Scalar::from_bytes_mod_order([0x77; 32]),
        Scalar::from_bytes_mod_order([0xff; 32]),
    ];
    let random = strings(n, 77);
    scalars.extend(random.iter().map(Scalar::from_bytes_mod_order_wide));
    scalars.truncate(n);
    scalars
}

fn doubles(points: impl IntoIterator<Item = RistrettoPoint>) -> Vec<[u8; 32]> {
    let points = points.into_iter();
    points.map(|point| (point + point).compress().to_bytes()).collect()
}

fn encoded(points: &Points, n: usize) -> Vec<[u8; 32]> {
    let mut encodings = vec![[0xee; 32]; n];
    points.encode_doubles(&mut encodings);
    encodings
}

fn dalek(strings: &[[u8; 64]]) -> Vec<RistrettoPoint> {
    strings.iter().map(RistrettoPoint::from_uniform_bytes).collect()
}

#[test]
fn levels_agree_on_all_operations() {
    for cpu in Cpu::available() {
        for n in LENGTHS {
            let (left, right) = (strings(n, 1), strings(n, 2));
            let (a, b) = (dalek(&left), dalek(&right));
            let mut points = Points::from_uniform_on(cpu, &left);
            assert_eq!(encoded(&points, n), doubles(a.clone()), "{n} {cpu}");
            let encodings: Vec<_> = b.iter().map(|b| b.compress().to_bytes()).collect();
            let other = Points::decode_on(cpu, &encodings).unwrap();
            points.add(&other);
            let sums = a.iter().zip(&b).map(|(a, b)| a + b);
            assert_eq!(encoded(&points, n), doubles(sums), "{n} {cpu}");
            points.sub(&other);
            points.sub(&other);
            let differences: Vec<_> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
            assert_eq!(encoded(&points, n), doubles(differences.clone()), "{n} {cpu}");
            for scalar in scalars(9) {
                let mut products = Points::from_uniform_on(cpu, &left);
                products.sub(&other);
                products.multiply(&scalar);
                let expected = differences.iter().map(|point| scalar * point);
                assert_eq!(encoded(&products, n), doubles(expected), "{n} {cpu}");
            }
        }
    }
}

#[test]
fn levels_agree_on_multiples() {
    let base = dalek(&strings(1, 3))[0];
    for cpu in Cpu::available() {
        for n in LENGTHS {
            let scalars = scalars(n);
            let multiples = Points::of_generator_on(cpu, &scalars);
            let expected = scalars.iter().map(RistrettoPoint::mul_base);
            assert_eq!(encoded(&multiples, n), doubles(expected), "{n} {cpu}");
            let multiples = Points::decode_on(cpu, &[base.compress().to_bytes()]).unwrap();
            let expected = scalars.iter().map(|scalar| scalar * base);
            let multiples = multiples.multiples(&scalars);
            assert_eq!(encoded(&multiples, n), doubles(expected), "{n} {cpu}");
        }
    }
}

/// Every level decodes edge cases and random strings as `curve25519-dalek` does.
#[test]
fn levels_agree_on_what_is_an_encoding() {
    let mut candidates = vec![[0; 32], [0xff; 32]];
    // Around the modulus and around 2^255, with both low bits.
    for low in 0xe0..=0xff {
        for high in [0x7f, 0xff] {
            let mut bytes = [0xff; 32];
            (bytes[0], bytes[31]) = (low, high);
            candidates.push(bytes);
        }
    }
    for small in 1..32 {
        let mut bytes = [0; 32];
        bytes[0] = small;
        candidates.push(bytes);
        bytes[31] = 0x80;
        candidates.push(bytes);
    }
    for string in strings(100, 4) {
        candidates.push(string[..32].try_into().unwrap());
        // An even number below 2^255: about one in four of them is an encoding.
        let mut bytes: [u8; 32] = string[32..].try_into().unwrap();
        bytes[0] &= 0xfe;
        bytes[31] &= 0x7f;
        candidates.push(bytes);
    }
    let mut valid = 0;
    let good = RistrettoPoint::mul_base(&Scalar::from(5u64)).compress().to_bytes();
    for (i, candidate) in candidates.iter().enumerate() {
        let expected = CompressedRistretto(*candidate).decompress();
        valid += usize::from(expected.is_some());
        for cpu in Cpu::available() {
            // One invalid encoding in any lane invalidates the list.
            let mut list = [good; 11];
            list[i % 11] = *candidate;
            let points = Points::decode_on(cpu, &list);
            assert_eq!(points.is_some(), expected.is_some(), "{candidate:x?} {cpu}");
            if let (Some(points), Some(expected)) = (points, expected) {
                assert_eq!(encoded(&points, 11)[i % 11], doubles([expected])[0]);
                assert_eq!(points.any_identity(), expected.is_identity());
            }
        }
    }
    assert!(valid > 10 && valid < candidates.len() - 50);
}

#[test]
fn the_identity_is_found_in_every_lane_and_nowhere_else() {
    let strings = strings(19, 5);
    for cpu in Cpu::available() {
        let others = Points::from_uniform_on(cpu, &strings);
        assert!(!others.any_identity());
        for place in 0..19 {
            let mut list = dalek(&strings);
            let mut encodings: Vec<_> = list.iter().map(|p| p.compress().to_bytes()).collect();
            encodings[place] = [0; 32];
            assert!(Points::decode_on(cpu, &encodings).unwrap().any_identity());
            // A sum equal to the identity can have any of its four forms.
            list[place] = -list[place];
            let encodings: Vec<_> = list.iter().map(|p| p.compress().to_bytes()).collect();
            let mut sums = Points::decode_on(cpu, &encodings).unwrap();
            sums.add(&others);
            assert!(sums.any_identity(), "{place} {cpu}");
            assert_eq!(encoded(&sums, 19)[place], doubles([RistrettoPoint::identity()])[0]);
        }
        assert!(!Points::from_uniform_on(cpu, &[]).any_identity());
    }
}

/// Decodes hexadecimal digits.
fn bytes<const N: usize>(hex: &str) -> [u8; N] {
    let pairs = hex.as_bytes().as_chunks::<2>().0;
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    let bytes: Vec<_> = pairs.iter().map(byte).collect();
    bytes.try_into().unwrap()
}
