//! Vectors of blocks: of two in a register of AVX2, of four in one of AVX-512, and of two that have
//! a register each. The modules have the same functions; the kernels are written once over them.
//!
//! The instructions for AES and for carry-less products are those of VAES and VPCLMULQDQ, which
//! exist for both widths; `x1` is for processors without them, and for AES only.

/// Registers whose values depend on each other from here on, as far as the compiler knows. It would
/// otherwise put all rounds of one vector behind those of another: chains of instructions that wait
/// for each other, several of which are more than a processor looks at once.
macro_rules! in_groups {
    (@name $x:ident) => {
        "/* {} */"
    };
    (@group $register:ident $($x:ident)*) => {
        // SAFETY: no instruction.
        unsafe {
            std::arch::asm!(
                $(in_groups!(@name $x),)*
                $(inout($register) *$x,)*
                options(pure, nomem, nostack, preserves_flags)
            )
        }
    };
    ($register:ident, $vectors:expr) => {
        let (groups, rest) = $vectors.as_chunks_mut::<8>();
        for [a, b, c, d, e, f, g, h] in groups {
            in_groups!(@group $register a b c d e f g h);
        }
        let (groups, rest) = rest.as_chunks_mut::<4>();
        for [a, b, c, d] in groups {
            in_groups!(@group $register a b c d);
        }
        for [a, b] in rest.as_chunks_mut::<2>().0 {
            in_groups!(@group $register a b);
        }
    };
}

macro_rules! vectors {
    (
        $module:ident, $features:literal, $vector:ident, width $width:literal,
        zero $zero:ident, xor $xor:ident, and $and:ident, add_words $add_words:ident,
        round $round:ident, last_round $last_round:ident,
        repeat $repeat:ident, fill $fill:ident, fill_words $fill_words:ident,
        shuffle $shuffle:ident, shuffle_words $shuffle_words:ident,
        left $left:ident, right $right:ident, clmul $clmul:ident,
        register $register:ident,
        $($own:item)*
    ) => {
        pub(crate) mod $module {
            use std::arch::x86_64::*;

            use crate::Block;

            pub(crate) type Vector = $vector;

            /// Blocks in a vector.
            pub(crate) const WIDTH: usize = $width;

            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn zero() -> Vector {
                $zero()
            }

            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn xor(a: Vector, b: Vector) -> Vector {
                $xor(a, b)
            }

            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn and(a: Vector, b: Vector) -> Vector {
                $and(a, b)
            }

            /// Sums of words.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn add_words(a: Vector, b: Vector) -> Vector {
                $add_words(a, b)
            }

            /// A round of AES.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn aes_round(x: Vector, key: Vector) -> Vector {
                $round(x, key)
            }

            /// The last round of AES.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn aes_last_round(x: Vector, key: Vector) -> Vector {
                $last_round(x, key)
            }

            /// The same double word in all places.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn fill(double_word: i32) -> Vector {
                $fill(double_word)
            }

            /// The same word in all places.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn fill_words(word: i64) -> Vector {
                $fill_words(word)
            }

            /// The same block in all places.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn repeated(block: Block) -> Vector {
                $repeat(bytemuck::cast(block))
            }

            /// The bytes of each block in the order that is named for it.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn shuffle(x: Vector, order: Vector) -> Vector {
                $shuffle(x, order)
            }

            /// Each block moved to the left by some bytes.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn left<const BYTES: i32>(x: Vector) -> Vector {
                $left::<BYTES>(x)
            }

            /// Each block moved to the right by some bytes.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn right<const BYTES: i32>(x: Vector) -> Vector {
                $right::<BYTES>(x)
            }

            /// Carry-less products of a word of each block of `a` and one of `b`.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn clmul<const WORDS: i32>(a: Vector, b: Vector) -> Vector {
                $clmul::<WORDS>(a, b)
            }

            /// Has the compiler compute these vectors side by side.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn side_by_side(x: &mut [Vector]) {
                in_groups!($register, x);
            }

            /// The words of each block exchanged.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn exchanged(x: Vector) -> Vector {
                $shuffle_words::<0b01_00_11_10>(x)
            }

            /// The orthomorphism `s(l || r) = (l ^ r) || l` of each block, `l` the high half.
            #[inline]
            #[target_feature(enable = $features)]
            pub(crate) fn orthomorphism(x: Vector) -> Vector {
                let high = repeated(Block::from_words(0, u64::MAX));
                xor(exchanged(x), and(x, high))
            }

            $($own)*
        }
    };
}

vectors!(
    x2, "vaes,vpclmulqdq,aes,pclmulqdq,avx2", __m256i, width 2,
    zero _mm256_setzero_si256, xor _mm256_xor_si256, and _mm256_and_si256,
    add_words _mm256_add_epi64,
    round _mm256_aesenc_epi128, last_round _mm256_aesenclast_epi128,
    repeat _mm256_broadcastsi128_si256,
    fill _mm256_set1_epi32, fill_words _mm256_set1_epi64x,
    shuffle _mm256_shuffle_epi8, shuffle_words _mm256_shuffle_epi32,
    left _mm256_slli_si256, right _mm256_srli_si256, clmul _mm256_clmulepi64_epi128,
    register ymm_reg,

    /// Blocks of the two vectors by turns: the first of each, then the second of each.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn alternated(a: Vector, b: Vector) -> [Vector; 2] {
        [
            _mm256_permute2x128_si256::<0x20>(a, b),
            _mm256_permute2x128_si256::<0x31>(a, b),
        ]
    }

    /// The blocks at even places of the two vectors, and those at odd places.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn separated([a, b]: [Vector; 2]) -> [Vector; 2] {
        alternated(a, b)
    }
);

vectors!(
    x4, "vaes,vpclmulqdq,aes,pclmulqdq,avx2,avx512f,avx512bw", __m512i, width 4,
    zero _mm512_setzero_si512, xor _mm512_xor_si512, and _mm512_and_si512,
    add_words _mm512_add_epi64,
    round _mm512_aesenc_epi128, last_round _mm512_aesenclast_epi128,
    repeat _mm512_broadcast_i32x4,
    fill _mm512_set1_epi32, fill_words _mm512_set1_epi64,
    shuffle _mm512_shuffle_epi8, shuffle_words _mm512_shuffle_epi32,
    left _mm512_bslli_epi128, right _mm512_bsrli_epi128, clmul _mm512_clmulepi64_epi128,
    register zmm_reg,

    /// Blocks of the two vectors by turns: the first of each, then the second of each.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn alternated(a: Vector, b: Vector) -> [Vector; 2] {
        // The words of the second vector are numbered from 8 on.
        let low = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
        let high = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
        [
            _mm512_permutex2var_epi64(a, low, b),
            _mm512_permutex2var_epi64(a, high, b),
        ]
    }

    /// The blocks at even places of the two vectors, and those at odd places.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn separated([a, b]: [Vector; 2]) -> [Vector; 2] {
        let even = _mm512_set_epi64(13, 12, 9, 8, 5, 4, 1, 0);
        let odd = _mm512_set_epi64(15, 14, 11, 10, 7, 6, 3, 2);
        [
            _mm512_permutex2var_epi64(a, even, b),
            _mm512_permutex2var_epi64(a, odd, b),
        ]
    }
);

/// Two blocks, each in a register of SSE: for processors with AES-NI and without VAES.
pub(crate) mod x1 {
    use std::arch::x86_64::*;

    use crate::Block;

    pub(crate) type Vector = [__m128i; 2];

    /// Blocks in a vector.
    pub(crate) const WIDTH: usize = 2;

    macro_rules! for_each_block {
        ($($name:ident($a:ident, $b:ident): $instruction:ident;)*) => {
            $(
                #[inline]
                #[target_feature(enable = "aes,avx2")]
                pub(crate) fn $name($a: Vector, $b: Vector) -> Vector {
                    [$instruction($a[0], $b[0]), $instruction($a[1], $b[1])]
                }
            )*
        };
    }

    for_each_block! {
        xor(a, b): _mm_xor_si128;
        and(a, b): _mm_and_si128;
        add_words(a, b): _mm_add_epi64;
        aes_round(x, key): _mm_aesenc_si128;
        aes_last_round(x, key): _mm_aesenclast_si128;
        shuffle(x, order): _mm_shuffle_epi8;
    }

    #[inline]
    #[target_feature(enable = "aes,avx2")]
    pub(crate) fn zero() -> Vector {
        [_mm_setzero_si128(); 2]
    }

    #[inline]
    #[target_feature(enable = "aes,avx2")]
    pub(crate) fn fill(double_word: i32) -> Vector {
        [_mm_set1_epi32(double_word); 2]
    }

    #[inline]
    #[target_feature(enable = "aes,avx2")]
    pub(crate) fn repeated(block: Block) -> Vector {
        bytemuck::cast([block; 2])
    }

    #[inline]
    #[target_feature(enable = "aes,avx2")]
    pub(crate) fn left<const BYTES: i32>(x: Vector) -> Vector {
        [_mm_slli_si128::<BYTES>(x[0]), _mm_slli_si128::<BYTES>(x[1])]
    }

    #[inline]
    #[target_feature(enable = "aes,avx2")]
    pub(crate) fn side_by_side(x: &mut [Vector]) {
        in_groups!(xmm_reg, x.as_flattened_mut());
    }

    #[inline]
    #[target_feature(enable = "aes,avx2")]
    pub(crate) fn orthomorphism(x: Vector) -> Vector {
        let high = [_mm_unpackhi_epi64(x[0], x[0]), _mm_unpackhi_epi64(x[1], x[1])];
        xor(high, left::<8>(x))
    }

    #[inline]
    #[target_feature(enable = "aes,avx2")]
    pub(crate) fn alternated(a: Vector, b: Vector) -> [Vector; 2] {
        [[a[0], b[0]], [a[1], b[1]]]
    }

    #[inline]
    #[target_feature(enable = "aes,avx2")]
    pub(crate) fn separated([a, b]: [Vector; 2]) -> [Vector; 2] {
        alternated(a, b)
    }
}
