//! Polynomials modulo 2^255 - 19: interpolation and evaluation in many points.
//!
//! Interpolation is that of Lagrange, with its sums and products computed along a binary tree by
//! multiplications of Karatsuba and Ofman (1963); it needs the derivative of one polynomial in all
//! points, which takes `n^2` multiplications and most of the time. Time and memory accesses depend
//! on the numbers of points and coefficients only.

use rayon::prelude::*;
use volery_primitives::curve25519::{self, Element, Sum};
use zeroize::Zeroizing;

/// Coefficients, the lowest first.
type Coefficients = Zeroizing<Vec<Element>>;

/// The degree below which the plain multiplication is faster.
const PLAIN: usize = 24;

/// Points from which on two threads share the work.
const SHARED: usize = 64;

/// The `n` lower coefficients of the polynomial of degree `n` with leading coefficient 1 that takes
/// these `n` values in these `n` points, which are distinct.
pub(super) fn interpolate(points: &[Element], values: &[Element]) -> Coefficients {
    let tree = Tree::new(points);
    let derivative = tree.product[1..].iter().zip(1..);
    let derivative = derivative.map(|(&coefficient, i)| Element::small(i) * coefficient);
    let derivative = Zeroizing::new(derivative.collect::<Vec<_>>());
    let mut weights = evaluate(Element::ZERO, &derivative, points);
    Element::invert_all(&mut weights);
    for (weight, &value) in weights.iter_mut().zip(values) {
        *weight = *weight * value;
    }
    // The interpolation polynomial of degree below n, plus one with a zero in each point.
    let mut sum = tree.combine(&weights);
    for (sum, &coefficient) in sum.iter_mut().zip(tree.product.iter()) {
        *sum = *sum + coefficient;
    }
    sum
}

/// The values in these points of the polynomial with these coefficients and, above them, the
/// leading coefficient `leading`.
pub(super) fn evaluate(
    leading: Element,
    coefficients: &[Element],
    points: &[Element],
) -> Coefficients {
    let mut values = Zeroizing::new(vec![leading; points.len()]);
    values.par_chunks_mut(SHARED).zip(points.par_chunks(SHARED)).for_each(|(values, points)| {
        curve25519::evaluate(leading, coefficients, points, values);
    });
    values
}

/// The product of `X - point` over some points, and of those over either half of them if there are
/// several.
struct Tree {
    product: Coefficients,
    parts: Option<Box<(Self, Self)>>,
}

impl Tree {
    fn new(points: &[Element]) -> Self {
        if points.len() < 2 {
            let product = points.iter().map(|&point| -point).chain([Element::ONE]);
            return Self { product: Zeroizing::new(product.collect()), parts: None };
        }
        let (left, right) = points.split_at(points.len() / 2);
        let (left, right) = join(points.len(), || Self::new(left), || Self::new(right));
        Self {
            product: multiply(&left.product, &right.product),
            parts: Some(Box::new((left, right))),
        }
    }

    /// The sum over all points of the weight times the product without the factor of the point.
    fn combine(&self, weights: &[Element]) -> Coefficients {
        let Some((left, right)) = self.parts.as_deref() else {
            return Zeroizing::new(weights.to_vec());
        };
        let (ours, theirs) = weights.split_at(weights.len() / 2);
        let (mut sum, other) = join(
            weights.len(),
            || multiply(&left.combine(ours), &right.product),
            || multiply(&right.combine(theirs), &left.product),
        );
        for (sum, &other) in sum.iter_mut().zip(other.iter()) {
            *sum = *sum + other;
        }
        sum
    }
}

/// Both results, computed on two threads if there are many points.
fn join<T: Send>(
    points: usize,
    left: impl FnOnce() -> T + Send,
    right: impl FnOnce() -> T + Send,
) -> (T, T) {
    if points < SHARED { (left(), right()) } else { rayon::join(left, right) }
}

/// The product of two polynomials with at least one coefficient each.
fn multiply(a: &[Element], b: &[Element]) -> Coefficients {
    let mut product = Zeroizing::new(vec![Element::ZERO; a.len() + b.len() - 1]);
    let middle = a.len().max(b.len()).div_ceil(2);
    if a.len().min(b.len()) <= middle.max(PLAIN) {
        for (k, out) in product.iter_mut().enumerate() {
            let mut sum = Sum::default();
            let first = k.saturating_sub(b.len() - 1);
            for (i, &a) in a.iter().enumerate().take(k + 1).skip(first) {
                sum.add_product(a, b[k - i]);
            }
            *out = sum.reduce();
        }
        return product;
    }
    let ((a0, a1), (b0, b1)) = (a.split_at(middle), b.split_at(middle));
    let (low, high) = (multiply(a0, b0), multiply(a1, b1));
    let mixed = multiply(&add(a0, a1), &add(b0, b1));
    for (i, &coefficient) in low.iter().enumerate() {
        product[i] = product[i] + coefficient;
        product[i + middle] = product[i + middle] - coefficient;
    }
    for (i, &coefficient) in high.iter().enumerate() {
        product[i + middle] = product[i + middle] - coefficient;
        product[i + 2 * middle] = product[i + 2 * middle] + coefficient;
    }
    for (i, &coefficient) in mixed.iter().enumerate() {
        product[i + middle] = product[i + middle] + coefficient;
    }
    product
}

/// The sum of two polynomials, the second of which has no more coefficients.
fn add(a: &[Element], b: &[Element]) -> Coefficients {
    let mut sum = Zeroizing::new(a.to_vec());
    for (sum, &b) in sum.iter_mut().zip(b) {
        *sum = *sum + b;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dh::tests::elements;

    /// The degree is as stated, so one point determines `X - point + value`.
    #[test]
    fn never_constant() {
        let one = elements(2);
        let polynomial = interpolate(&one[..1], &one[1..]);
        assert_eq!(*polynomial, [one[1] - one[0]]);
        let values = evaluate(Element::ONE, &polynomial, &elements(3));
        assert!(values[0] != values[1] && values[1] != values[2]);
    }
}
