//! The laws of a ring, tested identically for each type.

use proptest::prelude::*;
use volery_primitives::{Block, prg::Prg};
use zeroize::Zeroize;

use crate::{ExtensionOf, Field, Ring};

/// Lengths at, before and after the thresholds of whole-slice operations, and a prime.
const LENGTHS: [usize; 13] = [0, 1, 2, 7, 8, 9, 55, 56, 57, 63, 64, 65, 1009];

/// All laws of a ring whose elements are numbers or polynomials over GF(2).
pub(crate) fn ring<R: Ring>() {
    any_ring::<R>();
    powers::<R>();
    blocks::<R>();
    little_endian::<R>();
}

/// All laws of an extension.
pub(crate) fn extension_ring<R: ExtensionOf<B>, B: Ring>() {
    any_ring::<R>();
    extension::<R, B>();
}

fn any_ring<R: Ring>() {
    addition::<R>();
    multiplication::<R>();
    canonical::<R>();
    bits::<R>();
    slices::<R>();
    lazy::<R>();
    words_slices::<R>();
    random::<R>();
    encoding::<R>();
    lengths::<R>();
    hygiene::<R>();
    extension::<R, R>();
}

/// Every element has an inverse, except zero.
pub(crate) fn field<R: Field>() {
    for x in elements::<R>(9, 20).into_iter().chain([R::ONE]) {
        assert_eq!(x * x.inverse(), R::ONE);
    }
    assert_eq!(R::ZERO.inverse(), R::ZERO);
}

/// Eight words, often at the edge of some ring.
fn words() -> impl Strategy<Value = [u64; 8]> {
    let word = prop_oneof![
        3 => any::<u64>(),
        1 => prop::sample::select(vec![
            0,
            1,
            2,
            (1 << 60) - 1,
            1 << 60,
            (1 << 61) - 3,
            (1 << 61) - 2,
            (1 << 61) - 1,
            1 << 61,
            1 << 63,
            u64::MAX - 8,
            u64::MAX,
        ]),
    ];
    prop::array::uniform8(word)
}

fn element<R: Ring>(words: [u64; 8]) -> R {
    R::from_words(&words[..R::WORDS])
}

/// `n` elements; every seventh is the largest of its kind, so that unreduced sums come near their
/// limit.
fn elements<R: Ring>(seed: u128, n: usize) -> Vec<R> {
    let mut out = vec![R::ZERO; n];
    R::random_slice(&mut Prg::new(Block::from(seed)), &mut out);
    for x in out.iter_mut().step_by(7) {
        *x = -R::ONE;
    }
    out
}

/// Whether `x` equals the decoding of its own encoding.
fn is_canonical<R: Ring>(x: R) -> bool {
    let mut bytes = Vec::new();
    R::write(&[x], &mut bytes);
    let mut copy = [R::ZERO];
    R::read(&bytes, &mut copy).is_ok() && copy[0] == x
}

fn addition<R: Ring>() {
    proptest!(|(a in words(), b in words(), c in words())| {
        let (a, b, c): (R, R, R) = (element(a), element(b), element(c));
        prop_assert_eq!((a + b) + c, a + (b + c));
        prop_assert_eq!(a + b, b + a);
        prop_assert_eq!(a + R::ZERO, a);
        prop_assert_eq!(a + -a, R::ZERO);
        prop_assert_eq!(a - b, a + -b);
        prop_assert_eq!(-(-a), a);
        let mut x = a;
        x += b;
        prop_assert_eq!(x, a + b);
        x -= b;
        prop_assert_eq!(x, a);
    });
}

fn multiplication<R: Ring>() {
    assert_ne!(R::ZERO, R::ONE);
    proptest!(|(a in words(), b in words(), c in words())| {
        let (a, b, c): (R, R, R) = (element(a), element(b), element(c));
        prop_assert_eq!((a * b) * c, a * (b * c));
        prop_assert_eq!(a * b, b * a);
        prop_assert_eq!(a * R::ONE, a);
        prop_assert_eq!(a * R::ZERO, R::ZERO);
        prop_assert_eq!(a * (b + c), a * b + a * c);
        prop_assert_eq!(a * (b - c), a * b - a * c);
        prop_assert_eq!(-a * b, -(a * b));
        let mut x = a;
        x *= b;
        prop_assert_eq!(x, a * b);
    });
}

fn canonical<R: Ring>() {
    proptest!(|(a in words(), b in words())| {
        let (a, b): (R, R) = (element(a), element(b));
        for x in [a, a + b, a - b, a * b, -a, R::from_block(Block::ALL_ONES)] {
            prop_assert!(is_canonical(x));
        }
    });
    assert!(is_canonical(-R::ZERO));
    assert!(is_canonical(R::ONE + -R::ONE));
}

fn bits<R: Ring>() {
    proptest!(|(a in words())| {
        let a: R = element(a);
        let sum = (0..R::BITS).fold(R::ZERO, |sum, i| {
            sum + R::conditional_select(&R::ZERO, &R::power_of_two(i), a.bit(i))
        });
        prop_assert_eq!(sum, a);
    });
    assert_eq!(R::power_of_two(0), R::ONE);
    assert!(panics(|| _ = R::ONE.bit(R::BITS)));
    assert!(panics(|| _ = R::power_of_two(R::BITS)));
}

fn powers<R: Ring>() {
    for i in 1..R::BITS {
        let previous = R::power_of_two(i - 1);
        assert_eq!(R::power_of_two(i), previous * R::power_of_two(1), "2^{i}");
        assert_eq!(R::power_of_two(i), R::power_of_two(1).pow(i.into()), "2^{i}");
    }
}

fn slices<R: Ring>() {
    for n in LENGTHS {
        let (a, b): (Vec<R>, Vec<R>) = (elements(1, n), elements(2, n));
        for s in [R::ZERO, R::ONE, -R::ONE, elements::<R>(3, 2)[1]] {
            let mut out = a.clone();
            R::axpy(&mut out, s, &b);
            let expected: Vec<R> = a.iter().zip(&b).map(|(&a, &b)| a + s * b).collect();
            assert!(out == expected, "axpy at {n}");
        }

        let mut out = a.clone();
        R::add_slice(&mut out, &b);
        let expected: Vec<R> = a.iter().zip(&b).map(|(&a, &b)| a + b).collect();
        assert!(out == expected, "add_slice at {n}");

        R::sub_slice(&mut out, &b);
        assert!(out == a, "sub_slice at {n}");

        let (mut sum, mut inner_product) = (R::ZERO, R::ZERO);
        for (&a, &b) in a.iter().zip(&b) {
            sum += a;
            inner_product += a * b;
        }
        assert_eq!(R::sum(&a), sum, "sum at {n}");
        assert_eq!(R::inner_product(&a, &b), inner_product, "inner product at {n}");

        let mut out = b.clone();
        R::add_products([&a, &b, &a], [&b, &b, &a], &mut out);
        let terms = a.iter().zip(&b);
        let expected = terms.map(|(&a, &b)| b + a * b + b * b + a * a);
        assert!(expected.eq(out), "add_products at {n}");
    }
}

fn lazy<R: Ring>() {
    for n in LENGTHS {
        let mut a: Vec<R> = elements(4, n);
        a.iter_mut().step_by(2).for_each(|x| *x = -R::ONE);
        let mut lazy = R::Lazy::default();
        for a in a.chunks(R::LAZY_MAX) {
            for &a in a {
                lazy = R::lazy_add(lazy, a);
            }
            lazy = R::lazy_fold(lazy);
        }
        assert_eq!(R::lazy_finish(lazy), R::sum(&a), "{n}");
        // Paired with the same elements in another order, and negated.
        let mut pair = R::LazyPair::default();
        let others: Vec<R> = a.iter().rev().map(|&a| -a).collect();
        for (a, others) in a.chunks(R::LAZY_MAX).zip(others.chunks(R::LAZY_MAX)) {
            for (&a, &other) in a.iter().zip(others) {
                pair = R::pair_add(pair, [a, other]);
            }
            pair = R::pair_fold(pair);
        }
        assert_eq!(R::pair_finish(pair), [R::sum(&a), -R::sum(&a)], "{n}");
        // All of them as separate sums.
        let lazy: Vec<_> = a.iter().map(|&x| R::lazy_add(R::Lazy::default(), x)).collect();
        let mut out = vec![R::ZERO; n];
        R::finish_slice(&lazy, &others, &mut out);
        assert!((0..n).all(|i| out[i] == a[i] + others[i]), "finish_slice at {n}");
        let pairs: Vec<_> =
            (0..n).map(|i| R::pair_add(R::LazyPair::default(), [a[i], others[i]])).collect();
        let mut second = vec![R::ZERO; n];
        R::pair_finish_slice(&pairs, &a, &mut out, &mut second);
        assert!(
            out == a && (0..n).all(|i| second[i] == a[i] + others[i]),
            "pair_finish_slice at {n}"
        );
    }
}

/// Blocks and words have the same images.
fn blocks<R: Ring>() {
    if R::WORDS > 1 && R::BITS < 128 {
        return;
    }
    proptest!(|(words in words())| {
        let block = Block::from_words(words[0], words[1]);
        prop_assert_eq!(R::from_block(block), element::<R>(words));
    });
}

fn words_slices<R: Ring>() {
    proptest!(|(words in words())| {
        // The memory of an element is a block of it.
        let x: R = element(words);
        let mut block = [0; 16];
        block[..size_of::<R>()].copy_from_slice(bytemuck::bytes_of(&x));
        prop_assert_eq!(R::from_block(Block::from_bytes(block)), x);
    });
    for n in LENGTHS {
        let mut blocks = vec![Block::ZERO; n];
        Prg::new(Block::ONE).fill_blocks(&mut blocks);
        let expected: Vec<R> = blocks.iter().map(|&block| R::from_block(block)).collect();
        let mut out = vec![R::ZERO; n];
        R::from_blocks(&blocks, &mut out);
        assert!(out == expected, "from_blocks at {n}");

        let mut words = vec![0; n * R::WORDS];
        Prg::new(Block::ONE).fill_bytes(bytemuck::cast_slice_mut(&mut words));
        let expected: Vec<R> = words.chunks(R::WORDS).map(R::from_words).collect();
        out.fill(R::ZERO);
        R::from_words_slice(&words, &mut out);
        assert!(out == expected, "from_words_slice at {n}");
        out.fill(R::ZERO);
        let sides = R::from_words_sides(&words, &mut out);
        assert!(out == expected, "from_words_sides at {n}");
        let side = |side| expected.iter().skip(side).step_by(2);
        let sums = [side(0), side(1)].map(|side| side.fold(R::ZERO, |sum, x| sum + *x));
        assert_eq!(sides, sums, "from_words_sides at {n}");
        assert_eq!(R::sum_sides(&expected), sums, "sum_sides at {n}");
    }
    assert!(panics(|| _ = R::from_words(&[0; 9])));
    assert!(panics(|| _ = R::from_words(&[])));
}

fn random<R: Ring>() {
    let mut prg = Prg::new(Block::ONE);
    // More elements than any internal buffer holds.
    let mut a = vec![R::ZERO; if cfg!(miri) { 4_101 } else { 10_007 }];
    R::random_slice(&mut prg, &mut a);
    // Six standard deviations.
    let half =
        |count: usize| (2.0 * count as f64 - a.len() as f64).abs() <= 6.0 * (a.len() as f64).sqrt();
    let zeros = a.iter().filter(|&&x| x == R::ZERO).count();
    let expected = if R::BITS == 1 { half(zeros) } else { zeros == 0 };
    assert!(expected, "{zeros} zeros");
    assert!(a.iter().all(|&x| is_canonical(x)));

    let mut again = vec![R::ZERO; a.len()];
    R::random_slice(&mut Prg::new(Block::ONE), &mut again);
    assert!(a == again);
    R::random_slice(&mut prg, &mut again);
    assert!(a != again);

    // Each bit is set about half the time.
    for i in 0..R::BITS {
        let ones = a.iter().filter(|x| bool::from(x.bit(i))).count();
        assert!(half(ones), "bit {i}: {ones} ones");
    }

    for _ in 0..100 {
        assert_ne!(R::random_noise(&mut prg), R::ZERO);
    }
    let several: Vec<R> = (0..64).map(|_| R::random(&mut prg)).collect();
    assert!(several.iter().any(|x| *x != several[0]));
}

fn encoding<R: Ring>() {
    for n in LENGTHS {
        let a: Vec<R> = elements(5, n);
        let mut bytes = vec![0xa5];
        R::write(&a, &mut bytes);
        assert_eq!(bytes[0], 0xa5, "write appends");
        let bytes = &bytes[1..];
        assert_eq!(bytes.len(), R::encoded_len(n));
        let mut copy = vec![R::ZERO; n];
        assert_eq!(R::read(bytes, &mut copy), Ok(()));
        assert!(copy == a, "{n}");

        let longer = vec![0; bytes.len() + 1];
        assert!(panics(|| _ = R::read(&longer, &mut copy.clone())));
    }
}

/// Bit i of the value is bit i of the bytes.
fn little_endian<R: Ring>() {
    for n in LENGTHS {
        let a: Vec<R> = elements(5, n);
        let mut bytes = Vec::new();
        R::write(&a, &mut bytes);
        for (position, x) in a.iter().enumerate() {
            for i in 0..R::BITS {
                let at = if R::BITS == 1 { position } else { 8 * R::BYTES * position + i as usize };
                let bit = bytes[at / 8] >> (at % 8) & 1;
                assert_eq!(bit, x.bit(i).unwrap_u8(), "bit {i} of element {position}");
            }
        }
    }
}

fn lengths<R: Ring>() {
    let x = [R::ONE; 9];
    for n in [0, 1, 8, 10] {
        let acc = vec![R::ONE; n];
        assert!(panics(|| R::add_slice(&mut acc.clone(), &x)));
        assert!(panics(|| R::sub_slice(&mut acc.clone(), &x)));
        assert!(panics(|| R::axpy(&mut acc.clone(), R::ONE, &x)));
        assert!(panics(|| _ = R::inner_product(&acc, &x)));
        for [a, b] in [[&acc[..], &x], [&x, &acc]] {
            let mut out = x;
            assert!(panics(move || R::add_products([a], [b], &mut out)));
        }
        assert!(panics(|| R::from_blocks(&[Block::ONE; 9], &mut acc.clone())));
        let words = vec![1; 9 * R::WORDS];
        assert!(panics(|| R::from_words_slice(&words, &mut acc.clone())));
    }
}

fn hygiene<R: Ring>() {
    assert_eq!(R::default(), R::ZERO);
    assert_eq!(<R as bytemuck::Zeroable>::zeroed(), R::ZERO);
    proptest!(|(a in words(), b in words())| {
        let (a, b): (R, R) = (element(a), element(b));
        prop_assert_eq!(bool::from(a.ct_eq(&b)), a == b);
        prop_assert_eq!(R::conditional_select(&a, &b, 0.into()), a);
        prop_assert_eq!(R::conditional_select(&a, &b, 1.into()), b);
        let mut erased = [a, b];
        erased.zeroize();
        prop_assert_eq!(erased, [R::ZERO; 2]);
        // The output is the same for every value.
        prop_assert_eq!(format!("{a:?}"), format!("{:?}", R::ONE));
    });
    assert_eq!(format!("{:?}", R::ONE).to_lowercase(), format!("{}(..)", R::NAME));
    assert_ne!(R::ZERO.to_string(), R::ONE.to_string());
}

pub(crate) fn extension<R: ExtensionOf<B>, B: Ring>() {
    assert_eq!(R::embed(B::ZERO), R::ZERO);
    assert_eq!(R::embed(B::ONE), R::ONE);
    let parts: Vec<B> = elements(10, R::DEGREE);
    let embedded: Vec<R> = parts.iter().map(|part| R::embed(*part)).collect();
    let expected = (0..).zip(&parts).map(|(i, part)| R::basis(i).mul_base(*part));
    assert_eq!(R::combine(&embedded), expected.fold(R::ZERO, |sum, term| sum + term));
    assert!(panics(|| _ = R::basis(R::DEGREE)));
    proptest!(|(x in words(), a in words(), b in words())| {
        let (x, a, b): (R, B, B) = (element(x), element(a), element(b));
        prop_assert_eq!(R::embed(a) + R::embed(b), R::embed(a + b));
        prop_assert_eq!(R::embed(a) * R::embed(b), R::embed(a * b));
        prop_assert_eq!(x.mul_base(a), x * R::embed(a));
    });
    for n in LENGTHS {
        let (acc, x): (Vec<R>, Vec<B>) = (elements(6, n), elements(7, n));
        let s = elements::<R>(8, 2)[1];
        let mut out = acc.clone();
        R::axpy_base(&mut out, s, &x);
        let expected: Vec<R> = acc.iter().zip(&x).map(|(&acc, &x)| acc + s * R::embed(x)).collect();
        assert!(out == expected, "axpy_base at {n}");
        let longer = vec![B::ONE; n + 1];
        assert!(panics(|| R::axpy_base(&mut acc.clone(), s, &longer)));
    }
}

fn panics(operation: impl FnOnce()) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(operation)).is_err()
}
