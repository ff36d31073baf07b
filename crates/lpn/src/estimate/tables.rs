//! Published parameter sets against known estimates.
//!
//! The expected bits come from a separate evaluation of the same formulas; both must agree to half
//! a bit, so an error in one of them shows. That evaluation has neither Reduce and Prange nor AGB
//! 2.0 nor double RLPN, whose tables are beside their formulas; [`without_the_newest`] therefore
//! leaves them out. The code is a random one.

use super::Field::{F2, Fp61, Gf128, Z64Odd, Z64Uniform};
use super::NoiseShape::{Exact, Regular};
use super::{Estimate, Field, Instance, NoiseShape, estimate};

/// Largest difference accepted, in bits.
const TOLERANCE: f64 = 0.5;

/// The attacks that the tables leave out.
const NEWEST: [&str; 4] =
    ["Reduce and Prange", "pooled Reduce and Prange (heuristic)", "AGB 2.0", "double RLPN"];

type Column = (Field, NoiseShape);

/// `n`, `k`, `t`.
type Set = (usize, usize, usize);

/// A set and its bits in each column.
type Row<const C: usize> = (Set, [f64; C]);

/// The cheapest of the attacks in the tables.
fn without_the_newest(instance: &Instance) -> Estimate {
    estimate(instance)
        .into_iter()
        .filter(|found| !NEWEST.contains(&found.attack))
        .min_by(|a, b| a.bits.total_cmp(&b.bits))
        .expect("pooled Gauss applies to every instance")
}

fn assert_bits((n, k, t): Set, (field, noise): Column, expected: f64) {
    let instance = Instance { n, k, t, field, noise, local: false };
    let found = without_the_newest(&instance);
    assert!(
        (found.bits - expected).abs() <= TOLERANCE,
        "{instance:?}: expected {expected}, found {found:?}"
    );
}

fn assert_table<const C: usize>(columns: [Column; C], rows: &[Row<C>]) {
    for &(set, expected) in rows {
        for (column, bits) in columns.into_iter().zip(expected) {
            assert_bits(set, column, bits);
        }
    }
}

/// Schoppmann, Gascón, Reichert and Raykova, ePrint 2019/1084, Table 1.
#[test]
fn vole_of_2019() {
    assert_table(
        [
            (F2, Exact),
            (Z64Odd, Exact),
            (Fp61, Exact),
            (Z64Uniform, Exact),
            (F2, Regular),
            (Fp61, Regular),
        ],
        &[
            ((1 << 14, 3482, 192), [85.1, 85.1, 99.6, 57.6, 82.0, 95.5]),
            ((1 << 16, 7391, 382), [90.1, 90.1, 102.1, 62.9, 87.0, 95.3]),
            ((1 << 18, 15336, 741), [93.9, 93.9, 103.5, 67.6, 86.5, 90.5]),
            ((1 << 20, 32771, 1422), [99.9, 99.9, 107.2, 73.3, 82.7, 85.5]),
            ((1 << 22, 67440, 2735), [104.2, 104.2, 108.9, 76.9, 87.3, 86.8]),
            ((1 << 24, 139_959, 5205), [108.7, 108.7, 110.8, 79.3, 93.7, 92.8]),
        ],
    );
}

/// Boyle, Couteau, Gilboa and Ishai, *Compressing Vector OLE*, ePrint 2019/273.
///
/// The table that gives the other columns has 96.9 for the first row over GF(2) with exact noise.
/// That is SD-ISD, its second best attack there: [`the_smallest_set_of_2018`] has both.
#[test]
fn vole_of_2018() {
    assert_table(
        [(F2, Exact), (F2, Regular), (Fp61, Exact), (Fp61, Regular)],
        &[
            ((1 << 10, 652, 57), [94.5, 76.3, 111.4, 97.6]),
            ((1 << 12, 1589, 98), [83.9, 78.1, 100.3, 93.1]),
            ((1 << 14, 3482, 198), [87.0, 83.6, 101.7, 95.6]),
            ((1 << 16, 7391, 389), [91.1, 88.0, 103.4, 96.4]),
            ((1 << 18, 15336, 760), [95.4, 86.7, 105.1, 91.0]),
            ((1 << 20, 32771, 1419), [99.8, 81.1, 107.0, 83.9]),
            ((1 << 22, 67440, 2735), [104.2, 87.3, 108.9, 86.8]),
        ],
    );
}

/// At 2^10 samples BJMM is cheaper by 2.4 bits, with its smallest possible lists, of words of
/// weight one. The authors' own script for the formulas of ePrint 2022/712 gives 94.53 for BJMM and
/// 96.94 for SD-ISD, so 94.5 is the value of the instance.
#[test]
fn the_smallest_set_of_2018() {
    let instance = Instance { n: 1 << 10, k: 652, t: 57, field: F2, noise: Exact, local: false };
    let all = estimate(&instance);
    let bits = |name| {
        let found = all.iter().find(|estimate| estimate.attack == name);
        found.expect("an attack of that name").bits
    };
    assert!((bits("SD-ISD") - 96.94).abs() < 0.05, "{all:?}");
    assert!((bits("BJMM") - 94.53).abs() < 0.05, "{all:?}");
    assert!((bits("pooled Gauss") - 111.42).abs() < 0.05, "{all:?}");
    assert!((bits("statistical decoding") - 193.99).abs() < 0.05, "{all:?}");
    assert!((bits("statistical decoding 2.0") - 144.08).abs() < 0.05, "{all:?}");
    assert_eq!(without_the_newest(&instance).attack, "BJMM");
}

/// Yang, Weng, Lan, Zhang and Wang, *Ferret*, ePrint 2020/924, Table 2. The regular setup row is
/// short of the 128 bits that it claims, for either of the two lengths in the paper.
#[test]
fn ferret() {
    assert_bits((616_092, 37248, 1254), (F2, Exact), 142.7);
    assert_bits((10_616_092, 588_160, 1324), (F2, Exact), 153.9);
    assert_bits((609_728, 36288, 1269), (F2, Regular), 126.6);
    assert_bits((649_728, 36288, 1269), (F2, Regular), 122.1);
    assert_bits((10_805_248, 589_760, 1319), (F2, Regular), 149.9);
}

/// Sets of other libraries, with regular noise.
#[test]
fn sets_in_use() {
    assert_table(
        [(F2, Regular), (Fp61, Regular)],
        &[
            ((1900 << 13, 1 << 19, 1900), [128.2, 127.4]),
            ((1520 << 12, 1 << 18, 1520), [128.1, 128.0]),
            ((1170 << 11, 1 << 17, 1170), [128.2, 129.0]),
            ((850 << 10, 1 << 16, 850), [128.6, 130.5]),
        ],
    );
    for (set, bits) in [
        ((10_485_760, 452_000, 1280), 125.3),
        ((10_268_672, 238_000, 2507), 104.5),
        ((10_180_608, 124_000, 4971), 92.8),
        ((470_016, 32768, 918), 119.8),
        ((268_800, 17384, 1050), 113.7),
        ((178_944, 17384, 699), 124.0),
        ((256_000, 13249, 2000), 127.0),
        ((512_000, 22653, 2000), 122.1),
        ((1_024_000, 38737, 2000), 114.9),
        ((2_048_000, 69559, 2000), 112.3),
        ((4_096_000, 131_155, 2000), 113.8),
        ((8_192_000, 247_302, 2000), 115.0),
    ] {
        assert_bits(set, (F2, Regular), bits);
    }
    for (set, bits) in [
        ((10_485_760, 425_000, 1280), 119.9),
        ((10_268_672, 225_000, 2507), 99.6),
        ((10_180_608, 118_000, 4971), 91.6),
    ] {
        assert_bits(set, (Gf128, Regular), bits);
    }
    for (set, bits) in [
        ((10_168_320, 158_000, 4965), 99.1),
        ((166_400, 5060, 2600), 101.1),
        ((9600, 1220, 600), 125.6),
    ] {
        assert_bits(set, (Fp61, Regular), bits);
    }
}

/// Sets of the library mpz with uniform noise, made with the estimates for exact noise: all hold
/// 128 bits, with a margin between 0.8 and 4.5.
#[test]
fn uniform_sets_in_use() {
    let mut found = Vec::new();
    for (n, k) in [
        (256_000, 9419),
        (512_000, 17752),
        (1_024_000, 35137),
        (2_048_000, 66247),
        (4_096_000, 124_910),
        (8_192_000, 247_302),
    ] {
        let instance = Instance { n, k, t: 2000, field: F2, noise: Exact, local: false };
        found.push(without_the_newest(&instance).bits);
    }
    let least = found.iter().copied().fold(f64::INFINITY, f64::min);
    let most = found.iter().copied().fold(0.0, f64::max);
    assert!((least - 128.8).abs() <= TOLERANCE, "{found:?}");
    assert!((most - 132.5).abs() <= TOLERANCE, "{found:?}");
}

/// Weights for 128 bits at given `n` and `k`. All hold. With exact noise the least that holds is at
/// most one in a hundred below; with regular noise, whose security is not monotone in the weight,
/// the excess differs.
#[test]
fn weights_for_128_bits() {
    for (n, k, weights) in [
        (1 << 14, 4096, [270, 227, 309, 261]),
        (1 << 14, 5120, [207, 172, 215, 200]),
        (1 << 16, 8192, [556, 474, 642, 584]),
        (1 << 16, 12288, [352, 301, 365, 341]),
        (1 << 18, 24576, [704, 614, 761, 704]),
        (1 << 18, 32768, [516, 448, 532, 500]),
        (1 << 20, 49152, [1363, 1223, 1713, 1637]),
        (1 << 20, 65536, [1007, 894, 1113, 1063]),
        (1 << 22, 98304, [2604, 2389, 4551, 4084]),
        (1 << 22, 131_072, [1929, 1759, 2686, 2570]),
    ] {
        let columns = [(F2, Exact), (Fp61, Exact), (F2, Regular), (Fp61, Regular)];
        for ((field, noise), t) in columns.into_iter().zip(weights) {
            let instance = Instance { n, k, t, field, noise, local: false };
            assert!(without_the_newest(&instance).bits >= 128.0, "{instance:?}");
            if noise == Exact {
                let lighter = Instance { t: t - t / 100 - 2, ..instance };
                assert!(without_the_newest(&lighter).bits < 128.0, "{lighter:?}");
            }
        }
    }
}

/// The large instances of the same table. With exact noise the given weights are those that reach
/// 128 bits; with regular noise, whose excess differs, the test checks only that they hold.
#[test]
fn weights_for_128_bits_in_large_instances() {
    for ((n, k), columns) in [
        ((1 << 24, 262_144), [(3630, F2, Exact, 128.0), (3421, Fp61, Exact, 128.1)]),
        ((1 << 24, 524_288), [(1736, F2, Exact, 128.2), (1637, Fp61, Exact, 128.2)]),
        ((1 << 22, 262_144), [(935, F2, Regular, 129.1), (921, Fp61, Regular, 131.1)]),
        ((1 << 24, 262_144), [(7600, F2, Regular, 130.9), (6964, Fp61, Regular, 128.4)]),
        ((1 << 24, 524_288), [(2200, F2, Regular, 130.2), (2200, Fp61, Regular, 129.4)]),
    ] {
        for (t, field, noise, bits) in columns {
            let instance = Instance { n, k, t, field, noise, local: false };
            assert!(without_the_newest(&instance).bits >= 128.0, "{instance:?}");
            assert_bits((n, k, t), (field, noise), bits);
        }
    }
}
