//! Sums of products in GF(2^128), on vectors of elements. The remainder goes to the kernels for
//! single elements.

use crate::arch::native::clmul as narrow;

macro_rules! kernels {
    ($module:ident, $vector:ident, $features:literal) => {
        pub(crate) mod $module {
            use super::*;
            use crate::arch::native::vector::$vector::*;

            /// The sum of three: one instruction where there is one, which the compiler knows.
            #[inline]
            #[target_feature(enable = $features)]
            fn xor3(a: Vector, b: Vector, c: Vector) -> Vector {
                xor(xor(a, b), c)
            }

            /// Elements of each column, one in each lane.
            #[inline]
            #[target_feature(enable = $features)]
            fn combine_lanes<const N: usize>(
                columns: [Vector; N],
                weights: &[Vector; N],
            ) -> Vector {
                let mut low = zero();
                let mut middle = zero();
                let mut high = zero();
                for (x, &weight) in columns.into_iter().zip(weights) {
                    low = xor(low, clmul::<0x00>(x, weight));
                    middle = xor3(middle, clmul::<0x01>(x, weight), clmul::<0x10>(x, weight));
                    high = xor(high, clmul::<0x11>(x, weight));
                }
                reduce([low, middle, high])
            }

            /// The remainder, as in `clmul`: X^128 = X^7 + X^2 + X + 1.
            #[inline]
            #[target_feature(enable = $features)]
            fn reduce([mut low, middle, mut high]: [Vector; 3]) -> Vector {
                low = xor(low, left::<8>(middle));
                high = xor(high, right::<8>(middle));
                let modulus = fill_words(0x87);
                let top = clmul::<0x01>(high, modulus);
                low = xor(low, left::<8>(top));
                high = xor(high, right::<8>(top));
                xor(low, clmul::<0x00>(high, modulus))
            }

            /// `out[j]` is the sum of `weights[i] * columns[i][j]`.
            #[target_feature(enable = $features)]
            pub(crate) fn combine<const N: usize>(
                columns: [&[u128]; N],
                weights: [u128; N],
                out: &mut [u128],
            ) {
                let columns = columns.map(|column| column[..out.len()].as_chunks::<WIDTH>());
                let wide = weights.map(|weight| bytemuck::cast([weight; WIDTH]));
                let (chunks, rest) = out.as_chunks_mut::<WIDTH>();
                for (j, out) in chunks.iter_mut().enumerate() {
                    // A loop, because the compiler does not inline a closure with its own
                    // instruction sets.
                    let mut lanes = [zero(); N];
                    for (lane, (column, _)) in lanes.iter_mut().zip(&columns) {
                        *lane = bytemuck::cast(column[j]);
                    }
                    *out = bytemuck::cast(combine_lanes(lanes, &wide));
                }
                narrow::combine(columns.map(|(_, rest)| rest), weights, rest);
            }

            /// In each lane the sum of the low and the high half, twice.
            #[inline]
            #[target_feature(enable = $features)]
            fn sum_of_halves(x: Vector) -> Vector {
                xor(x, exchanged(x))
            }

            /// `out[j] += ` the sum of `a[i][j] * b[i][j]`.
            #[target_feature(enable = $features)]
            pub(crate) fn add_products<const N: usize>(
                a: [&[u128]; N],
                b: [&[u128]; N],
                out: &mut [u128],
            ) {
                assert!(a.iter().chain(&b).all(|factors| factors.len() == out.len()));
                let whole = out.len() / WIDTH * WIDTH;
                for j in (0..whole).step_by(WIDTH) {
                    // Karatsuba: multiplications are the bottleneck.
                    let mut low = zero();
                    let mut middle = zero();
                    let mut high = zero();
                    for (a, b) in a.iter().zip(&b) {
                        // SAFETY: both have the length of `out`, in which there is a vector from
                        // `j` on.
                        let (a, b) = unsafe {
                            let vector =
                                |x: &[u128]| x.as_ptr().add(j).cast::<Vector>().read_unaligned();
                            (vector(a), vector(b))
                        };
                        low = xor(low, clmul::<0x00>(a, b));
                        high = xor(high, clmul::<0x11>(a, b));
                        let (a, b) = (sum_of_halves(a), sum_of_halves(b));
                        middle = xor(middle, clmul::<0x00>(a, b));
                    }
                    let sums = reduce([low, xor3(low, middle, high), high]);
                    let out = &mut out.as_chunks_mut::<WIDTH>().0[j / WIDTH];
                    *out = bytemuck::cast(xor(sums, bytemuck::cast(*out)));
                }
                let (a, b) = (a.map(|a| &a[whole..]), b.map(|b| &b[whole..]));
                narrow::add_products(a, b, &mut out[whole..]);
            }

            /// The sum of `a[i] * b[i]`.
            #[target_feature(enable = $features)]
            pub(crate) fn inner_product(a: &[u128], b: &[u128]) -> u128 {
                let (a, a_rest) = a.as_chunks::<{ 2 * WIDTH }>();
                let (b, b_rest) = b.as_chunks::<{ 2 * WIDTH }>();
                // Low, middle and high parts, two sums of each for more instruction-level
                // parallelism.
                let mut sums = [[zero(); 3]; 2];
                for (a, b) in a.iter().zip(b) {
                    let (a, b): ([Vector; 2], [Vector; 2]) =
                        (bytemuck::cast(*a), bytemuck::cast(*b));
                    for (sum, (a, b)) in sums.iter_mut().zip(a.into_iter().zip(b)) {
                        // Karatsuba.
                        sum[0] = xor(sum[0], clmul::<0x00>(a, b));
                        sum[2] = xor(sum[2], clmul::<0x11>(a, b));
                        let (a, b) = (sum_of_halves(a), sum_of_halves(b));
                        sum[1] = xor(sum[1], clmul::<0x00>(a, b));
                    }
                }
                let [first, second] = sums;
                let mut total = [zero(); 3];
                for (total, (first, second)) in total.iter_mut().zip(first.into_iter().zip(second))
                {
                    *total = xor(first, second);
                }
                let [low, middle, high] = total;
                let total = [low, xor3(low, middle, high), high];
                let lanes: [u128; WIDTH] = bytemuck::cast(reduce(total));
                lanes
                    .into_iter()
                    .fold(narrow::inner_product(a_rest, b_rest), |sum, lane| sum ^ lane)
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernels!(x2, x2, "vaes,vpclmulqdq,aes,pclmulqdq,avx2");
#[cfg(target_arch = "x86_64")]
kernels!(x4, x4, "vaes,vpclmulqdq,aes,pclmulqdq,avx2,avx512f,avx512bw");
#[cfg(target_arch = "aarch64")]
kernels!(x2, x2, "neon,aes");
#[cfg(target_arch = "aarch64")]
kernels!(x2_sha3, x2, "neon,aes,sha3");
