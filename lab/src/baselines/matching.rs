//! Shared parts of the protocols: random orders, values of a few bytes on the wire, and look-ups of
//! values.

use volery_channel::{Channel, Result};
use volery_primitives::prg::Prg;

/// Values that are received at a time.
const BATCH: usize = 1 << 14;

/// The bytes of a value such that, except with probability 2^-40, none of `pairs` unequal pairs has
/// equal values.
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
        Self { order: permutation(count, rng), bytes, message: vec![0; count * bytes] }
    }

    /// The value of an item; its upper bytes are left out.
    pub(crate) fn put(&mut self, item: usize, value: u128) {
        let at = self.order[item] as usize * self.bytes;
        self.message[at..][..self.bytes].copy_from_slice(&value.to_le_bytes()[..self.bytes]);
    }

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
