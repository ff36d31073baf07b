//! Oblivious permutation of shared values, by a switching network: step 3 of Protocol 4 of the 2019
//! paper.
//!
//! The network is that of Waksman, *A Permutation Network*, J. ACM 1968, for any number of wires as
//! in Beauquier and Darrot, *On Arbitrary Size Waksman Networks and Their Vulnerability*, 2002. The
//! network is public; the settings of its switches are P2's secret. The paper garbles it; here each
//! switch is one correlated OT in the ring, as in Mohassel and Sadeghian, *How to Hide Circuits in
//! MPC*, EUROCRYPT 2013:
//!
//! ```text
//! P1: x_1 .. x_n, shares                  P2: y_1 .. y_n, shares; a permutation
//! 1.                                      bit s of each switch: output j takes input source_j
//! 2. in the order of the network, for a switch whose inputs (a, b) are shared:
//!    ---------------- shares of p = s*(b - a) (ring_cot) ----------------
//!    its outputs are a + p and b - p
//! ```
//!
//! Since P1 knows its share of `p` before P2 has any share, all switches together take one message
//! from each party.
//!
//! Security: semi-honest, that of [`crate::ring_cot`]. P1 learns nothing about the permutation, P2
//! nothing about the values: each share that leaves a switch is re-masked. P2's permutation indexes
//! and branches in P2's own memory: a process that shares a cache with P2 could learn about it.
//!
//! Cost: one product a switch, [`switches`]`(n)` = `n*ceil(log2 n) - 2^ceil(log2 n) + 1` of them:
//! in a 64-bit ring 8 bytes from P1 and a bit from P2 each, beside the OTs. Computation: about
//! three passes of random memory accesses a level.

use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::bits;
use zeroize::Zeroizing;

use crate::ring_cot;

/// Switches of the network of `n` wires: the sum of `ceil(log2 i)` over all `i` up to `n`.
pub fn switches(n: usize) -> usize {
    match n {
        0 | 1 => 0,
        _ => {
            let depth = n.next_power_of_two().ilog2() as usize;
            n * depth + 1 - (1 << depth)
        }
    }
}

/// P1: its shares of the values, in and out.
///
/// # Errors
/// If the channel or the source of OTs fails.
pub fn send<R: Ring, C: CotSender>(
    values: &mut [R],
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<()> {
    let mut products = ring_cot::Sender::new(switches(values.len()), ot, channel);
    pass(values, &mut |a, b| {
        let p = products.multiply(b - a)?;
        Ok((a + p, b - p))
    })?;
    products.finish()
}

/// P2: its shares of the values, in and out; output `j` is input `source[j]`.
///
/// # Panics
/// If `source` is not a permutation of `0..values.len()`, or there are more than 2^31 values.
///
/// # Errors
/// If the channel or the source of OTs fails, or P1 sent a value that is not an element of the
/// ring.
pub fn receive<R: Ring, C: CotReceiver>(
    source: &[usize],
    values: &mut [R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<()> {
    assert_eq!(source.len(), values.len(), "a source for each value");
    let settings = settings(source); // step 1
    let mut products = ring_cot::Receiver::new(&settings, switches(values.len()), ot, channel);
    pass(values, &mut |a, b| {
        let p = products.multiply(b - a)?;
        Ok((a + p, b - p))
    })
}

/// Step 2: sends `values` through the network. `switch` returns the two outputs of a switch; it is
/// called in a fixed order: the input switches, the upper half, the lower half, the output
/// switches.
fn pass<R: Ring>(values: &mut [R], switch: &mut impl FnMut(R, R) -> Result<(R, R)>) -> Result<()> {
    let mut halves = Zeroizing::new(vec![R::ZERO; values.len()]);
    pass_between(values, &mut halves, switch)
}

fn pass_between<R: Ring>(
    values: &mut [R],
    halves: &mut [R],
    switch: &mut impl FnMut(R, R) -> Result<(R, R)>,
) -> Result<()> {
    let n = values.len();
    let half = n / 2;
    if n <= 2 {
        if let [a, b] = values {
            (*a, *b) = switch(*a, *b)?;
        }
        return Ok(());
    }
    let (upper, lower) = halves.split_at_mut(half);
    for i in 0..half {
        (upper[i], lower[i]) = switch(values[2 * i], values[2 * i + 1])?;
    }
    if n % 2 == 1 {
        lower[half] = values[n - 1];
    }
    let (above, below) = values.split_at_mut(half);
    pass_between(upper, above, switch)?;
    pass_between(lower, below, switch)?;
    let outputs = output_switches(n);
    for j in 0..outputs {
        (values[2 * j], values[2 * j + 1]) = switch(upper[j], lower[j])?;
    }
    if n % 2 == 1 {
        values[n - 1] = lower[half];
    } else {
        (values[n - 2], values[n - 1]) = (upper[half - 1], lower[half - 1]);
    }
    Ok(())
}

/// Output switches of a network of `n > 2` wires: the last pair of an even number needs none.
fn output_switches(n: usize) -> usize {
    (n - 1) / 2
}

/// Step 1: the bits of all switches, packed, low bit first, in the order of [`pass`].
///
/// # Panics
/// If `source` is not a permutation, or has more than 2^31 entries.
fn settings(source: &[usize]) -> Zeroizing<Vec<u8>> {
    let n = source.len();
    assert!(n <= 1 << 31, "at most 2^31 wires");
    let mut seen = vec![false; n];
    for &place in source {
        assert!(
            place < n && !std::mem::replace(&mut seen[place], true),
            "a permutation of the values"
        );
    }
    let source: Zeroizing<Vec<u32>> = Zeroizing::new(source.iter().map(|p| *p as u32).collect());
    // A level takes twice its size; the part for the tasks of its subnetworks stays in use below
    // it.
    let mut memory = Zeroizing::new(vec![0; 3 * n + 64]);
    let mut settings = Zeroizing::new(vec![0; bits::bytes_for(switches(n))]);
    route(&source, &mut memory, &mut settings, 0);
    settings
}

/// A wire of a subnetwork that has no source yet.
const NONE: u32 = u32::MAX;

/// The looping algorithm: sets the switches of the network for `source`; `first` is the number of
/// its first switch.
///
/// The two wires of an input switch go to different subnetworks, and so do those of an output
/// switch. If an output comes from the lower subnetwork, the other wire of its input's switch goes
/// to the upper one and arrives at some output, whose neighbour must again come from the lower one,
/// until the loop closes or ends at the wire that has no switch.
fn route(source: &[u32], memory: &mut [u32], settings: &mut [u8], first: usize) {
    let n = source.len();
    let half = n / 2;
    if n <= 2 {
        if n == 2 {
            bits::set(settings, first, source[0] == 1);
        }
        return;
    }
    let (tasks, memory) = memory.split_at_mut(n);
    let (upper, lower) = tasks.split_at_mut(half);
    let (first_upper, first_lower) = (first + half, first + half + switches(half));
    let first_output = first_lower + switches(n - half);
    let (inputs, outputs) = (half, output_switches(n));
    let destination = &mut memory[..n];
    for (j, input) in (0..).zip(source) {
        destination[*input as usize] = j;
    }
    upper.fill(NONE);
    // The last output always comes from the lower subnetwork; of each other pair, the second one is
    // chosen.
    for start in std::iter::once(n - 1).chain((0..half).map(|j| 2 * j + 1)) {
        if upper.get(start / 2).is_some_and(|input| *input != NONE) {
            continue;
        }
        let mut output = start;
        loop {
            let input = source[output] as usize;
            lower[output / 2] = (input / 2) as u32;
            if output / 2 < outputs {
                bits::set(settings, first_output + output / 2, output.is_multiple_of(2));
            }
            if input / 2 >= inputs {
                break;
            }
            bits::set(settings, first + input / 2, input.is_multiple_of(2));
            let other = destination[input ^ 1] as usize;
            upper[other / 2] = (input / 2) as u32;
            output = other ^ 1;
            if output == start {
                break;
            }
        }
    }
    route(upper, memory, settings, first_upper);
    route(lower, memory, settings, first_lower);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use volery_field::{Fp61, Gf128, Z64};
    use volery_primitives::{Block, prg::Prg};

    use super::*;
    use crate::testing::over_ots;

    /// A permutation derived from the seed.
    fn shuffled(n: usize, seed: u128) -> Vec<usize> {
        let mut rng = Prg::new(Block::from(seed));
        let mut keyed: Vec<_> = (0..n).map(|i| (u128::from(rng.block()), i)).collect();
        keyed.sort_unstable();
        keyed.into_iter().map(|(_, i)| i).collect()
    }

    /// The network in the clear.
    fn passed(source: &[usize]) -> Vec<u64> {
        let settings = settings(source);
        let mut values: Vec<_> = (0..source.len() as u64).map(Z64::new).collect();
        let mut next = 0;
        pass(&mut values, &mut |a, b| {
            next += 1;
            Ok(if bits::bit(&settings, next - 1) { (b, a) } else { (a, b) })
        })
        .unwrap();
        assert_eq!(next, switches(source.len()), "switches of {}", source.len());
        values.iter().map(|value| value.value()).collect()
    }

    fn check(source: &[usize]) {
        let expected: Vec<_> = source.iter().map(|i| *i as u64).collect();
        assert_eq!(passed(source), expected);
    }

    #[test]
    fn the_number_of_switches_is_the_sum_of_the_logarithms() {
        let mut sum = 0;
        for n in 1..2000_usize {
            sum += n.next_power_of_two().ilog2() as usize;
            assert_eq!(switches(n), sum, "{n} wires");
        }
    }

    proptest! {
        #[test]
        fn permutations_of_any_size(
            n in prop_oneof![32 => 0..8_usize, 96 => 0..3000_usize, 1 => Just(99_991), 1 => Just(1 << 17)],
            seed: u128,
        ) {
            check(&shuffled(n, seed));
        }
    }

    fn between_parties<R: Ring>(n: usize) {
        let source = shuffled(n, n as u128);
        let mut rng = Prg::new(Block::from(9));
        let mut shares = [vec![R::ZERO; n], vec![R::ZERO; n]];
        shares.iter_mut().for_each(|shares| R::random_slice(&mut rng, shares));
        let (mut left, mut right) = (shares[0].clone(), shares[1].clone());
        let (_, _, received) = over_ots(
            |ot, channel| send(&mut left, ot, channel).unwrap(),
            |ot, channel| receive(&source, &mut right, ot, channel).unwrap(),
        );
        for (j, &i) in source.iter().enumerate() {
            assert!(left[j] + right[j] == shares[0][i] + shares[1][i], "wire {j}");
            // Shares that have passed a switch are re-masked.
            assert!(n < 2 || left[j] != shares[0][i], "wire {j}");
        }
        let switches = switches(n);
        assert_eq!(received.bytes_received as usize, R::encoded_len(switches));
        assert_eq!(received.bytes_sent as usize, switches.div_ceil(8));
    }

    #[test]
    fn shares_are_permuted() {
        for n in [0, 1, 2, 3, 31, 32, 33, 1009] {
            between_parties::<Fp61>(n);
            between_parties::<Z64>(n);
            between_parties::<Gf128>(n);
        }
    }
}
