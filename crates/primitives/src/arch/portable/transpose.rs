//! Bit-matrix transposition by exchanging blocks of halving size.

/// `(size, mask)`: the bits of a row whose column number has the bit `size` clear.
const STEPS: [(u32, u128); 7] = [
    (64, u128::MAX / ((1 << 64) + 1)),
    (32, u128::MAX / ((1 << 32) + 1)),
    (16, u128::MAX / ((1 << 16) + 1)),
    (8, u128::MAX / ((1 << 8) + 1)),
    (4, u128::MAX / ((1 << 4) + 1)),
    (2, u128::MAX / ((1 << 2) + 1)),
    (1, u128::MAX / ((1 << 1) + 1)),
];

/// Transposes a square of 128 rows of 128 bits.
///
/// A matrix of four blocks `[a b; c d]` transposed is `[a' c'; b' d']`: exchange `b` and `c`, then
/// do the same inside each block. All blocks of one size are exchanged in one step, row by row.
fn square(rows: &mut [u128; 128]) {
    for (size, mask) in STEPS {
        for upper in (0..128).filter(|row| row & size as usize == 0) {
            let lower = upper + size as usize;
            let exchanged = (rows[upper] >> size ^ rows[lower]) & mask;
            rows[upper] ^= exchanged << size;
            rows[lower] ^= exchanged;
        }
    }
}

pub(crate) fn transpose_128(rows: &[u128], stride: usize, out: &mut [u128]) {
    for (column, out) in out.as_chunks_mut::<128>().0.iter_mut().enumerate() {
        *out = std::array::from_fn(|row| rows[row * stride + column]);
        square(out);
    }
}
