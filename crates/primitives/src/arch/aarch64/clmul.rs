//! Carry-less multiplication with PMULL, an element at a time.

use std::arch::aarch64::vmull_p64;

/// The low 128 coefficients, the 128 from 64 on, and the 128 from 128 on, to be added at those
/// positions: an unreduced product that can be summed.
type Product = [u128; 3];

#[inline]
#[target_feature(enable = "neon,aes")]
fn mul_wide(a: u128, b: u128) -> Product {
    let ([a0, a1], [b0, b1]) = ([a as u64, (a >> 64) as u64], [b as u64, (b >> 64) as u64]);
    [vmull_p64(a0, b0), vmull_p64(a0, b1) ^ vmull_p64(a1, b0), vmull_p64(a1, b1)]
}

#[inline]
fn add(sum: &mut Product, product: Product) {
    for (sum, product) in sum.iter_mut().zip(product) {
        *sum ^= product;
    }
}

/// The remainder modulo X^128 + X^7 + X^2 + X + 1, as on x86-64.
#[inline]
#[target_feature(enable = "neon,aes")]
fn reduce([low, middle, high]: Product) -> u128 {
    let (low, high) = (low ^ middle << 64, high ^ middle >> 64);
    let top = vmull_p64((high >> 64) as u64, 0x87);
    let (low, high) = (low ^ top << 64, high ^ top >> 64);
    low ^ vmull_p64(high as u64, 0x87)
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn mul(a: u128, b: u128) -> u128 {
    reduce(mul_wide(a, b))
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn axpy(acc: &mut [u128], s: u128, x: &[u128]) {
    for (acc, &x) in acc.iter_mut().zip(x) {
        *acc ^= mul(s, x);
    }
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn inner_product(a: &[u128], b: &[u128]) -> u128 {
    let mut sum = Product::default();
    for (&a, &b) in a.iter().zip(b) {
        add(&mut sum, mul_wide(a, b));
    }
    reduce(sum)
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn combine<const N: usize>(columns: [&[u128]; N], weights: [u128; N], out: &mut [u128]) {
    for (j, out) in out.iter_mut().enumerate() {
        let mut sum = Product::default();
        for (column, &weight) in columns.iter().zip(&weights) {
            add(&mut sum, mul_wide(column[j], weight));
        }
        *out = reduce(sum);
    }
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn add_products<const N: usize>(a: [&[u128]; N], b: [&[u128]; N], out: &mut [u128]) {
    for (j, out) in out.iter_mut().enumerate() {
        let mut sum = Product::default();
        for (a, b) in a.iter().zip(&b) {
            add(&mut sum, mul_wide(a[j], b[j]));
        }
        *out ^= reduce(sum);
    }
}
