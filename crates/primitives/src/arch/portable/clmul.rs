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

/// The product of two polynomials of degree below 64.
///
/// The bits of a word are spread over five words, each with at least four zeros between two bits.
/// In the integer product of two such words at most 13 ones are added at one position, so no carry
/// passes the four zeros to the next position, and the lowest bit of each position is the sum
/// modulo 2. Integer multiplication is constant time on the supported processors.
#[inline]
fn mul_64(a: u64, b: u64) -> u128 {
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
