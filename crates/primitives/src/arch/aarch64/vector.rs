//! Vectors of two blocks, each in a register of NEON, with the functions of the vectors of x86-64.
//!
//! The instructions for AES add the key before the round and not behind it. The compiler moves each
//! addition of a key into the next round, so that a round has no instruction for it.

pub(crate) mod x2 {
    use std::arch::aarch64::*;

    use crate::Block;

    pub(crate) type Vector = [uint8x16_t; 2];

    /// Blocks in a vector.
    pub(crate) const WIDTH: usize = 2;

    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn zero() -> Vector {
        [vdupq_n_u8(0); 2]
    }

    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn xor(a: Vector, b: Vector) -> Vector {
        [veorq_u8(a[0], b[0]), veorq_u8(a[1], b[1])]
    }

    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn and(a: Vector, b: Vector) -> Vector {
        [vandq_u8(a[0], b[0]), vandq_u8(a[1], b[1])]
    }

    /// Sums of words.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn add_words(a: Vector, b: Vector) -> Vector {
        let (a, b): ([uint64x2_t; 2], [uint64x2_t; 2]) = (bytemuck::cast(a), bytemuck::cast(b));
        bytemuck::cast([vaddq_u64(a[0], b[0]), vaddq_u64(a[1], b[1])])
    }

    /// A round of AES.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn aes_round(x: Vector, key: Vector) -> Vector {
        let zero = vdupq_n_u8(0);
        let x = [vaesmcq_u8(vaeseq_u8(x[0], zero)), vaesmcq_u8(vaeseq_u8(x[1], zero))];
        xor(x, key)
    }

    /// For the processors of x86-64: here pairs of instructions for a round must stay together.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn side_by_side(_x: &mut [Vector]) {}

    /// The last round of AES.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn aes_last_round(x: Vector, key: Vector) -> Vector {
        let zero = vdupq_n_u8(0);
        xor([vaeseq_u8(x[0], zero), vaeseq_u8(x[1], zero)], key)
    }

    /// The same double word in all places.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn fill(double_word: i32) -> Vector {
        [vreinterpretq_u8_s32(vdupq_n_s32(double_word)); 2]
    }

    /// The same word in all places.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn fill_words(word: i64) -> Vector {
        [vreinterpretq_u8_s64(vdupq_n_s64(word)); 2]
    }

    /// The same block in all places.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn repeated(block: Block) -> Vector {
        bytemuck::cast([block; WIDTH])
    }

    /// The bytes of each block in the order that is named for it.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn shuffle(x: Vector, order: Vector) -> Vector {
        [vqtbl1q_u8(x[0], order[0]), vqtbl1q_u8(x[1], order[1])]
    }

    /// Each block moved to the left by 4 or 8 bytes.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn left<const BYTES: i32>(x: Vector) -> Vector {
        const { assert!(BYTES == 4 || BYTES == 8) };
        let zero = vdupq_n_u8(0);
        match BYTES {
            4 => [vextq_u8::<12>(zero, x[0]), vextq_u8::<12>(zero, x[1])],
            _ => [vextq_u8::<8>(zero, x[0]), vextq_u8::<8>(zero, x[1])],
        }
    }

    /// Each block moved to the right by 8 bytes.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn right<const BYTES: i32>(x: Vector) -> Vector {
        const { assert!(BYTES == 8) };
        let zero = vdupq_n_u8(0);
        [vextq_u8::<8>(x[0], zero), vextq_u8::<8>(x[1], zero)]
    }

    /// Carry-less products of a word of each block of `a` and one of `b`.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn clmul<const WORDS: i32>(a: Vector, b: Vector) -> Vector {
        let (a, b): ([[u64; 2]; 2], [[u64; 2]; 2]) = (bytemuck::cast(a), bytemuck::cast(b));
        let (of_a, of_b) = ((WORDS & 1) as usize, (WORDS >> 4 & 1) as usize);
        bytemuck::cast([vmull_p64(a[0][of_a], b[0][of_b]), vmull_p64(a[1][of_a], b[1][of_b])])
    }

    /// The words of each block exchanged.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn exchanged(x: Vector) -> Vector {
        [vextq_u8::<8>(x[0], x[0]), vextq_u8::<8>(x[1], x[1])]
    }

    /// The orthomorphism `s(l || r) = (l ^ r) || l` of each block, `l` the high half.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn orthomorphism(x: Vector) -> Vector {
        let high = repeated(Block::from_words(0, u64::MAX));
        xor(exchanged(x), and(x, high))
    }

    /// Blocks of the two vectors by turns: the first of each, then the second of each.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn alternated(a: Vector, b: Vector) -> [Vector; 2] {
        [[a[0], b[0]], [a[1], b[1]]]
    }

    /// The blocks at even places of the two vectors, and those at odd places.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn separated([a, b]: [Vector; 2]) -> [Vector; 2] {
        alternated(a, b)
    }
}
