//! Lists of elements of Ristretto255.

use zeroize::{Zeroize, Zeroizing};

use super::Mask;
use super::constants::{ONE, ZERO};

/// Digits of a scalar to the base 16.
const DIGITS: usize = 64;
/// Vectors of points that share one inversion.
const TOGETHER: usize = 16;
/// The largest absolute value of a digit.
const LARGEST: usize = 8;

macro_rules! kernels {
    ($module:ident, $arithmetic:ident, $features:literal) => {
        pub(crate) mod $module {
            use super::*;
            use crate::arch::x86_64::curve25519::field::$module::*;
            pub(crate) use crate::arch::x86_64::curve25519::point::$module::Points;
            use crate::arch::x86_64::curve25519::point::$module::{
                Addend, add_points, decode as decode_group, double, double_to_encode,
                encode_double, from_uniform as group_from_uniform, is_identity,
            };

            /// All lanes.
            const ALL: Mask = Mask::MAX >> (8 - LANES);

            /// A point times the numbers from 1 to the largest absolute value of a digit.
            type Table = [Addend; LARGEST];

            /// A digit of a scalar in each lane: the absolute values, and the lanes where it is
            /// negative.
            #[derive(Clone, Copy, Default, Zeroize)]
            struct Digit {
                sizes: [u64; LANES],
                negative: Mask,
            }

            /// The double of a point on the way to its encoding.
            #[derive(Zeroize)]
            struct Double {
                point: Points,
                /// The number to be inverted, one in place of zero.
                number: Field,
                /// The product of these numbers of all vectors before.
                before: Field,
                /// The lanes where the double is the identity.
                identity: Mask,
            }

            impl Zeroize for Field {
                fn zeroize(&mut self) {
                    bytemuck::cast_mut::<_, [[u64; 20]; 2]>(self).zeroize();
                }
            }

            impl Zeroize for Points {
                fn zeroize(&mut self) {
                    bytemuck::cast_mut::<_, [[u64; 32]; 5]>(self).zeroize();
                }
            }

            /// References to as many strings as there are lanes, the last one repeated.
            fn padded<T>(strings: &[T]) -> [&T; LANES] {
                std::array::from_fn(|lane| &strings[lane.min(strings.len() - 1)])
            }

            #[target_feature(enable = $features)]
            pub(crate) fn from_uniform(strings: &[[u8; 64]]) -> Vec<Points> {
                let groups = strings.chunks(LANES);
                groups.map(|group| group_from_uniform(padded(group))).collect()
            }

            #[target_feature(enable = $features)]
            pub(crate) fn decode(encodings: &[[u8; 32]]) -> Option<Vec<Points>> {
                let mut all = Mask::MAX;
                let mut points = Vec::with_capacity(encodings.len().div_ceil(LANES));
                for group in encodings.chunks(LANES) {
                    let (valid, group) = decode_group(padded(group));
                    all &= valid;
                    points.push(group);
                }
                (all & ALL == ALL).then_some(points)
            }

            #[target_feature(enable = $features)]
            pub(crate) fn any_identity(points: &[Points], n: usize) -> bool {
                let mut any = 0;
                for (group, points) in points.iter().enumerate() {
                    let used = (n - group * LANES).min(LANES);
                    any |= is_identity(points) & (ALL >> (LANES - used));
                }
                any != 0
            }

            #[target_feature(enable = $features)]
            pub(crate) fn encode_doubles(points: &[Points], encodings: &mut [[u8; 32]]) {
                let chunks = points.chunks(TOGETHER);
                for (points, encodings) in chunks.zip(encodings.chunks_mut(TOGETHER * LANES)) {
                    let (zero, one) = (constant(&ZERO), constant(&ONE));
                    let mut doubles = Zeroizing::new(Vec::with_capacity(points.len()));
                    let mut product = one;
                    for points in points {
                        let (point, number) = double_to_encode(points);
                        let identity = is_zero(&number);
                        let number = select(identity, &number, &one);
                        doubles.push(Double { point, number, before: product, identity });
                        product = mul(&product, &number);
                    }
                    let mut inverse = invert(&product);
                    for (double, out) in doubles.iter().zip(encodings.chunks_mut(LANES)).rev() {
                        let own = mul(&inverse, &double.before);
                        let own = select(double.identity, &own, &zero);
                        let group = Zeroizing::new(encode_double(&double.point, &own));
                        out.copy_from_slice(&group[..out.len()]);
                        inverse = mul(&inverse, &double.number);
                    }
                }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn add(a: &mut [Points], b: &[Points]) {
                for (a, b) in a.iter_mut().zip(b) {
                    add_points(a, &Addend::new(b));
                }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn negate(points: &mut [Points]) {
                for points in points {
                    *points = points.negate();
                }
            }

            /// Multiplies each point by the scalar, which is below 2^253, in little-endian bytes.
            #[target_feature(enable = $features)]
            pub(crate) fn multiply(points: &mut [Points], scalar: &[u8; 32]) {
                let digits = signed_digits([scalar; LANES]);
                for points in points {
                    *points = multiply_group::<1>(&tables(points), &digits);
                }
            }

            /// Multiplies the first of the points of a vector by each of the scalars.
            #[target_feature(enable = $features)]
            pub(crate) fn multiples(points: &Points, scalars: &[[u8; 32]]) -> Vec<Points> {
                let point = points.first();
                let mut products = Vec::with_capacity(scalars.len().div_ceil(LANES));
                if scalars.len() <= LANES {
                    multiply_all::<1>(&point, scalars, &mut products);
                } else {
                    multiply_all::<4>(&point, scalars, &mut products);
                }
                products
            }

            #[target_feature(enable = $features)]
            fn multiply_all<const TABLES: usize>(
                point: &Points,
                scalars: &[[u8; 32]],
                products: &mut Vec<Points>,
            ) {
                let tables = tables::<TABLES>(point);
                for scalars in scalars.chunks(LANES) {
                    let digits = signed_digits(padded(scalars));
                    products.push(multiply_group(&tables, &digits));
                }
            }

            /// Four doublings for each digit, and one addition for each table: a table has the
            /// multiples for the digits from its own first one on. The most significant digit is
            /// the first one.
            #[target_feature(enable = $features)]
            fn multiply_group<const TABLES: usize>(
                tables: &[Table; TABLES],
                digits: &[Digit; DIGITS],
            ) -> Points {
                let mut sum = Points::identity();
                for place in (0..DIGITS / TABLES).rev() {
                    for _ in 0..3 {
                        double::<false>(&mut sum);
                    }
                    double::<true>(&mut sum);
                    for (i, table) in tables.iter().enumerate() {
                        let digit = &digits[i * (DIGITS / TABLES) + place];
                        add_points(&mut sum, &multiple(table, digit));
                    }
                }
                sum
            }

            /// For some digits at equal distances: the multiples of `p` for the values of the
            /// digit.
            #[target_feature(enable = $features)]
            fn tables<const TABLES: usize>(p: &Points) -> [Table; TABLES] {
                let mut first = *p;
                let mut tables = [[Addend::identity(); LARGEST]; TABLES];
                for (i, table) in tables.iter_mut().enumerate() {
                    if i > 0 {
                        for _ in 1..4 * (DIGITS / TABLES) {
                            double::<false>(&mut first);
                        }
                        double::<true>(&mut first);
                    }
                    let addend = Addend::new(&first);
                    let mut last = first;
                    for multiple in table {
                        *multiple = Addend::new(&last);
                        add_points(&mut last, &addend);
                    }
                }
                tables
            }

            /// The multiple by a digit in each lane; all table entries are read.
            #[inline]
            #[target_feature(enable = $features)]
            fn multiple(multiples: &Table, digit: &Digit) -> Addend {
                let mut masks = [0; LARGEST];
                for (k, mask) in masks.iter_mut().enumerate() {
                    *mask = equal_words(&digit.sizes, k as u64 + 1);
                }
                Addend::select_of(&masks, multiples).negate_where(digit.negative)
            }

            /// The scalars to the base 16 with digits from -8 to 7, the least significant first.
            fn signed_digits(scalars: [&[u8; 32]; LANES]) -> Zeroizing<[Digit; DIGITS]> {
                let mut digits = Zeroizing::new([Digit::default(); DIGITS]);
                let mut carries = [0; LANES];
                for (i, digit) in digits.iter_mut().enumerate() {
                    for (lane, carry) in carries.iter_mut().enumerate() {
                        let nibble = (scalars[lane][i / 2] >> (4 * (i % 2))) & 15;
                        let sum = i64::from(nibble) + *carry;
                        *carry = (sum + 8) >> 4;
                        let value = sum - 16 * *carry;
                        digit.sizes[lane] = value.unsigned_abs();
                        digit.negative |= ((value >> 63 & 1) as Mask) << lane;
                    }
                }
                digits
            }
        }
    };
}

kernels!(x4, avx2, "avx2");
kernels!(x8, ifma, "avx512f,avx512ifma,avx512dq");
