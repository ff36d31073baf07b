//! Runs of equal indices: the holder's sort, and the products that add up along them.

use crate::ring_cot;
use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::bits;
use zeroize::Zeroizing;

use crate::error::Error;

/// The numbers of the pairs by ascending index, equal ones in their order.
///
/// # Errors
/// If an index is past the end of the vector.
pub(super) fn order(
    indices: &[usize],
    length: usize,
) -> std::result::Result<Zeroizing<Vec<usize>>, Error> {
    if let Some(place) = indices.iter().position(|index| *index >= length) {
        return Err(Error::Input(format!(
            "index number {place} (counted from 0) is not below {length}, the entries of the \
             vector: the first is number 0"
        )));
    }
    let mut order: Vec<_> = (0..indices.len()).collect();
    order.sort_unstable_by_key(|place| (indices[*place], *place));
    Ok(Zeroizing::new(order))
}

/// # Errors
/// If two indices are equal.
pub(super) fn assert_distinct(
    order: &[usize],
    indices: &[usize],
) -> std::result::Result<(), Error> {
    for pair in order.windows(2) {
        let (first, second) = (pair[0], pair[1]);
        if indices[first] == indices[second] {
            return Err(Error::Input(format!(
                "pairs {first} and {second} (counted from 0) have the same index: leave one out, \
                 or let equal indices add up on both sides"
            )));
        }
    }
    Ok(())
}

/// The entries of `values` in the given order.
pub(super) fn permuted(order: &[usize], values: &[usize]) -> Zeroizing<Vec<usize>> {
    Zeroizing::new(order.iter().map(|place| values[*place]).collect())
}

/// A permutation of `wires` wires whose first outputs take the wanted inputs. The other outputs
/// take the remaining inputs.
pub(super) fn completed(wanted: &[Option<usize>], wires: usize) -> Zeroizing<Vec<usize>> {
    let mut free = Zeroizing::new(vec![true; wires]);
    for input in wanted.iter().flatten() {
        free[*input] = false;
    }
    let mut rest = (0..wires).filter(|input| free[*input]);
    let mut next = || rest.next().expect("a permutation has as many inputs as outputs");
    let source = (0..wires).map(|output| match wanted.get(output) {
        Some(Some(input)) => *input,
        _ => next(),
    });
    Zeroizing::new(source.collect())
}

/// Whether each index equals the one before it, from the second on; packed, low bit first.
fn repeats(indices: &[usize]) -> Zeroizing<Vec<u8>> {
    let count = indices.len().saturating_sub(1);
    let mut repeats = Zeroizing::new(vec![0; bits::bytes_for(count)]);
    for (j, pair) in indices.windows(2).enumerate() {
        bits::set(&mut repeats, j, pair[0] == pair[1]);
    }
    repeats
}

/// The last value of each run becomes the sum of the run, the others zero; `product` multiplies by
/// the holder's next bit.
fn add<R: Ring>(values: &mut [R], mut product: impl FnMut(R) -> Result<R>) -> Result<()> {
    for j in 1..values.len() {
        let moved = product(values[j - 1])?;
        values[j - 1] -= moved;
        values[j] += moved;
    }
    Ok(())
}

/// Helper: [`add`].
pub(super) fn send<R: Ring, C: CotSender>(
    values: &mut [R],
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<()> {
    let mut products = ring_cot::Sender::new(values.len().saturating_sub(1), ot, channel);
    add(values, |value| products.multiply(value))?;
    products.finish()
}

/// Holder: as [`send`].
pub(super) fn receive<R: Ring, C: CotReceiver>(
    indices: &[usize],
    values: &mut [R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<()> {
    let (repeats, count) = (repeats(indices), values.len().saturating_sub(1));
    let mut products = ring_cot::Receiver::new(&repeats, count, ot, channel);
    add(values, |value| products.multiply(value))
}
