//! Shared parts of the protocols: random orders, values of a few bytes on the wire, and look-ups of
//! values.

use volery_channel::{Channel, Result};
use volery_primitives::prg::Prg;

/// Values that are received at a time.
const BATCH: usize = 1 << 14;

/// The bytes of a value such that, except with probability 2^-40, none of `pairs` unequal pairs has
/// equal values.
///
/// # Panics
/// If that is more than 16: above 2^88 pairs.
pub(crate) fn value_bytes(pairs: f64) -> usize {
    let bits = 40.0 + pairs.max(1.0).log2();
    let bytes = (bits / 8.0).ceil() as usize;
    assert!(bytes <= 16, "so many items do not fit in memory");
    bytes
}

/// All numbers below `count` in a random order.
fn permutation(count: usize, rng: &mut Prg) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    for i in (1..count).rev() {
        order.swap(i, rng.below(i as u64 + 1) as usize);
    }
    order
}

/// Values of some bytes each, to be sent in a random order.
pub(crate) struct Shuffled {
    /// The target position of the value of each item.
    order: Vec<u32>,
    bytes: usize,
    message: Vec<u8>,
}

impl Shuffled {
    /// Room for `count` values of `bytes` bytes.
    pub(crate) fn new(count: usize, bytes: usize, rng: &mut Prg) -> Self {
        Self {
            order: permutation(count, rng),
            bytes,
            message: vec![0; count * bytes],
        }
    }

    /// The value of an item; its upper bytes are left out.
    pub(crate) fn put(&mut self, item: usize, value: u128) {
        let at = self.order[item] as usize * self.bytes;
        self.message[at..][..self.bytes].copy_from_slice(&value.to_le_bytes()[..self.bytes]);
    }

    /// Sends all values.
    pub(crate) fn send(self, channel: &mut Channel) -> Result<()> {
        channel.send(&self.message)?;
        channel.flush()
    }
}

/// The low bytes of a value.
pub(crate) fn cut(value: &[u8; 32], bytes: usize) -> u128 {
    let mut low = [0; 16];
    low[..bytes].copy_from_slice(&value[..bytes]);
    u128::from_le_bytes(low)
}

/// Receives `count` values of `bytes` bytes each and shows each to `look`.
pub(crate) fn recv_values(
    count: usize,
    bytes: usize,
    channel: &mut Channel,
    mut look: impl FnMut(u128),
) -> Result<()> {
    let mut message = vec![0; BATCH.min(count) * bytes];
    let mut left = count;
    while left > 0 {
        let now = left.min(BATCH);
        let message = &mut message[..now * bytes];
        channel.recv(message)?;
        for value in message.chunks_exact(bytes) {
            let mut whole = [0; 16];
            whole[..bytes].copy_from_slice(value);
            look(u128::from_le_bytes(whole));
        }
        left -= now;
    }
    Ok(())
}

/// Finds values among a set of them: open addressing in a table that is at most half full.
///
/// The values are outputs of a hash, so their own bits select the slot. Reading is not constant
/// time; the table is local data of the party that owns the items.
pub(crate) struct Matcher {
    /// A value's upper bits, and one more than its number in the low half; zero if the slot is
    /// empty.
    slots: Vec<u64>,
    values: Vec<u128>,
}

impl Matcher {
    pub(crate) fn new(values: Vec<u128>) -> Self {
        let mut slots = vec![0; (2 * values.len()).next_power_of_two()];
        let last = slots.len() - 1;
        for (number, &value) in (1..).zip(&values) {
            let mut at = value as usize & last;
            while slots[at] != 0 {
                at = (at + 1) & last;
            }
            slots[at] = tag(value) | number;
        }
        Self { slots, values }
    }

    /// Shows the number of each value that equals `value` to `found`.
    pub(crate) fn find(&self, value: u128, mut found: impl FnMut(usize)) {
        let last = self.slots.len() - 1;
        let mut at = value as usize & last;
        while self.slots[at] != 0 {
            let slot = self.slots[at];
            if slot & !LOW == tag(value) {
                let number = (slot & LOW) as usize - 1;
                if self.values[number] == value {
                    found(number);
                }
            }
            at = (at + 1) & last;
        }
    }
}

/// The half of a slot that holds a number.
const LOW: u64 = u32::MAX as u64;

/// The half of a slot that avoids reading the value. A value has 40 bits or more.
fn tag(value: u128) -> u64 {
    ((value >> 8) as u64) & !LOW
}

#[cfg(test)]
mod tests {
    use volery_primitives::Block;

    use super::*;

    #[test]
    fn widths() {
        for (log_pairs, bytes) in [(0, 5), (16, 7), (24, 8), (32, 9), (40, 10), (48, 11)] {
            assert_eq!(value_bytes(2f64.powi(log_pairs)), bytes);
        }
        assert_eq!(value_bytes(0.0), 5);
        assert_eq!(value_bytes(2.0), 6);
    }

    #[test]
    fn permutations_hold_everything_and_reach_every_order() {
        let mut rng = Prg::new(Block::ONE);
        for count in [0, 1, 2, 7, 1009] {
            let mut order = permutation(count, &mut rng);
            order.sort_unstable();
            assert!(order.iter().copied().eq(0..count as u32));
        }
        // Six orders of three, 500 expected of each; the standard deviation is 20.
        let mut times = [0; 27];
        for _ in 0..3000 {
            let order = permutation(3, &mut rng);
            times[(order[0] * 9 + order[1] * 3 + order[2]) as usize] += 1;
        }
        assert_eq!(times.iter().filter(|&&times| times > 380).count(), 6);
    }

    #[test]
    fn every_equal_value_is_found_and_no_other() {
        let mut rng = Prg::new(Block::ONE);
        for count in [0, 1, 2, 3, 63, 64, 65, 1000] {
            let mut values: Vec<u128> = (0..count).map(|_| u128::from(rng.next_u64())).collect();
            // Two equal ones, and one that differs above the bits in the table.
            values.extend(values.clone().first());
            values.extend(values.clone().first().map(|value| value | 1 << 100));
            let matcher = Matcher::new(values.clone());
            for value in values.iter().copied().chain([0, u128::MAX]) {
                let mut found = Vec::new();
                matcher.find(value, |number| found.push(number));
                found.sort_unstable();
                let expected = (0..values.len()).filter(|&i| values[i] == value);
                assert!(found.into_iter().eq(expected));
            }
        }
    }
}
