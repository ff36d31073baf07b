//! Carry-less multiplication with integer multiplications, in constant time.

/// Bit `i` of the masked words is kept if `i % 5` is the number of the mask.
const FIFTHS: [u64; 5] = {
    let mut masks = [0; 5];
    let mut i = 0;
    while i < 64 {
        masks[i % 5] |= 1 << i;
        i += 1;
    }
    masks
};

/// The product of two polynomials of degree below 64, by the widest integer multiplication that the
/// processor has.
#[inline]
fn mul_64(a: u64, b: u64) -> u128 {
    match cfg!(target_pointer_width = "64") {
        true => by_fifths(a, b),
        false => by_halves(a, b),
    }
}

/// The same by three products of half the size (Karatsuba).
#[inline]
fn by_halves(a: u64, b: u64) -> u128 {
    let (a_low, a_high) = (a as u32, (a >> 32) as u32);
    let (b_low, b_high) = (b as u32, (b >> 32) as u32);
    let low = mul_32(a_low, b_low);
    let high = mul_32(a_high, b_high);
    let middle = mul_32(a_low ^ a_high, b_low ^ b_high) ^ low ^ high;
    u128::from(low) ^ u128::from(middle) << 32 ^ u128::from(high) << 64
}

/// The product of two polynomials of degree below 32, in the way of [`by_fifths`]: with three zeros
/// between two bits at most 8 ones are added at one position.
#[inline]
fn mul_32(a: u32, b: u32) -> u64 {
    const FOURTHS: u64 = 0x1111_1111_1111_1111;
    let fourth = |word: u32, place: usize| u64::from(word) & FOURTHS << place;
    let mut product = 0;
    for place in 0..4 {
        let mut sum = 0;
        for i in 0..4 {
            sum ^= fourth(a, i) * fourth(b, (place + 4 - i) % 4);
        }
        product ^= sum & FOURTHS << place;
    }
    product
}

/// The product of two polynomials of degree below 64.
///
/// The bits of a word are spread over five words, each with at least four zeros between two bits.
/// In the integer product of two such words at most 13 ones are added at one position, so no carry
/// passes the four zeros to the next position, and the lowest bit of each position is the sum
/// modulo 2. Integer multiplication is constant time on the supported processors.
#[inline]
fn by_fifths(a: u64, b: u64) -> u128 {
    let mut product = 0;
    for place in 0..5 {
        let mut sum = 0;
        for (i, mask) in FIFTHS.iter().enumerate() {
            let other = FIFTHS[(place + 5 - i) % 5];
            sum ^= u128::from(a & mask) * u128::from(b & other);
        }
        // The positions of a 128-bit product: those of the mask, continued.
        product ^= sum & places(place);
    }
    product
}

/// Bits `i` of 128 with `i % 5 == place`.
#[inline]
const fn places(place: usize) -> u128 {
    // 64 = 4 modulo 5: bit i of the high word is bit i + 4 modulo 5.
    FIFTHS[place] as u128 | (FIFTHS[(place + 1) % 5] as u128) << 64
}

/// The product of two polynomials of degree below 128, low half first.
#[inline]
fn mul_128(a: u128, b: u128) -> [u128; 2] {
    let (a_low, a_high) = (a as u64, (a >> 64) as u64);
    let (b_low, b_high) = (b as u64, (b >> 64) as u64);
    // Karatsuba: the middle term from the product of the sums.
    let low = mul_64(a_low, b_low);
    let high = mul_64(a_high, b_high);
    let middle = mul_64(a_low ^ a_high, b_low ^ b_high) ^ low ^ high;
    [low ^ middle << 64, high ^ middle >> 64]
}

/// The remainder modulo X^128 + X^7 + X^2 + X + 1.
#[inline]
fn reduce([low, high]: [u128; 2]) -> u128 {
    // X^128 = X^7 + X^2 + X + 1; the seven bits shifted out are reduced once more.
    let out = high >> 127 ^ high >> 126 ^ high >> 121;
    let high = high ^ out;
    low ^ high ^ high << 1 ^ high << 2 ^ high << 7
}

pub(crate) fn mul(a: u128, b: u128) -> u128 {
    reduce(mul_128(a, b))
}

pub(crate) fn axpy(acc: &mut [u128], s: u128, x: &[u128]) {
    for (acc, &x) in acc.iter_mut().zip(x) {
        *acc ^= mul(s, x);
    }
}

pub(crate) fn inner_product(a: &[u128], b: &[u128]) -> u128 {
    let mut sum = [0; 2];
    for (&a, &b) in a.iter().zip(b) {
        let product = mul_128(a, b);
        sum[0] ^= product[0];
        sum[1] ^= product[1];
    }
    reduce(sum)
}

pub(crate) fn combine<const N: usize>(columns: [&[u128]; N], weights: [u128; N], out: &mut [u128]) {
    for (j, out) in out.iter_mut().enumerate() {
        *out = inner_product(&columns.map(|column| column[j]), &weights);
    }
}

pub(crate) fn add_products<const N: usize>(a: [&[u128]; N], b: [&[u128]; N], out: &mut [u128]) {
    for (j, out) in out.iter_mut().enumerate() {
        let mut sum = [0; 2];
        for (a, b) in a.iter().zip(&b) {
            let product = mul_128(a[j], b[j]);
            sum[0] ^= product[0];
            sum[1] ^= product[1];
        }
        *out ^= reduce(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_are_the_product_bit_by_bit() {
        let plain = |a: u64, b: u64| {
            let bits = (0..64).filter(|i| b >> i & 1 == 1);
            bits.fold(0, |sum, i| sum ^ u128::from(a) << i)
        };
        let mut words = vec![0, 1, 2, u64::MAX, 1 << 63, 0xffff_ffff, 1 << 32];
        let mut state = 1_u64;
        words.extend(
            std::iter::repeat_with(|| {
                state =
                    state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                state ^ state >> 32
            })
            .take(40),
        );
        for &a in &words {
            for &b in &words {
                assert_eq!(by_fifths(a, b), plain(a, b));
                assert_eq!(by_halves(a, b), plain(a, b));
            }
        }
    }
}
