//! A set of tags on the wire: sorted, and coded by Rice, *Some Practical Universal Noiseless Coding
//! Techniques*, 1979, in as many bits as the worst set of that size takes.
//!
//! A tag of `t` bits is split into its `k` low bits and the rest. The rest ascends: its increase
//! since the previous tag is sent in unary, as that many zeros and a one, then the low bits. All
//! increases together are below `2^(t-k)`, so `count * (k+1) + 2^(t-k)` bits always suffice. The
//! coding is padded with zeros to exactly that length: it depends on the number of tags alone, and
//! wastes nothing, because the last of `count` random tags is near `2^t`.

use volery_channel::Channel;

use crate::error::{Result, misbehaved};

/// Bytes that are coded before they are sent.
const PIECE: usize = 1 << 16;

/// Bytes that are read at once, of which the first may be the last received.
const BEYOND: usize = 16;

/// The format of a list of tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rice {
    count: u64,
    /// Bits sent in unary, at most: one less than the number of values of the high part.
    high: u64,
    /// `k`.
    low: u32,
}

impl Rice {
    /// The format that takes the fewest bits for `count` tags of `bits` bits.
    ///
    /// # Panics
    /// If `bits` is not in 1 to 128, or too small for so many different tags.
    pub(crate) fn new(count: u64, bits: u32) -> Self {
        assert!((1..=128).contains(&bits), "tags of 1 to 128 bits");
        let log = count.max(1).ilog2();
        assert!(log < bits, "more tags than values");
        let formats = [log, log + 1].map(|high| Self {
            count,
            high: (1 << high) - 1,
            low: bits - high.min(bits),
        });
        let best = formats.into_iter().min_by_key(Self::bits);
        best.expect("two formats")
    }

    fn bits(&self) -> u64 {
        self.count * (u64::from(self.low) + 1) + self.high
    }

    /// Bytes on the wire.
    pub(crate) fn bytes(&self) -> u64 {
        match self.count {
            0 => 0,
            _ => self.bits().div_ceil(8),
        }
    }

    /// Sends the tags, which ascend.
    ///
    /// # Panics
    /// If their number is another, or they do not ascend, or one is too large.
    ///
    /// # Errors
    /// If the channel fails.
    pub(crate) fn send(
        &self,
        tags: impl ExactSizeIterator<Item = u128>,
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(tags.len() as u64, self.count, "as many tags as stated");
        let mut writer = Writer::new(channel);
        let mut last = 0;
        for tag in tags {
            let high = self.high_part(tag);
            let zeros = high.checked_sub(last).expect("the tags ascend");
            assert!(high <= self.high, "a tag has at most the stated bits");
            writer.zeros(zeros & !63)?;
            writer.put(1 << (zeros % 64), zeros as u32 % 64 + 1)?;
            let rest = self.low.saturating_sub(64);
            writer.put(tag as u64, self.low - rest)?;
            writer.put((tag >> 64) as u64, rest)?;
            last = high;
        }
        if self.count > 0 {
            writer.zeros(self.high - last)?;
        }
        writer.finish()
    }

    fn high_part(&self, tag: u128) -> u64 {
        // In two steps, because a shift by the full width is an overflow.
        match self.low {
            128 => 0,
            low => (tag >> low) as u64,
        }
    }

    /// The tags as they arrive, in ascending order; `distinct`: an equal one is refused too.
    pub(crate) fn receive(self, distinct: bool) -> Reader {
        Reader {
            left: self.bytes(),
            format: self,
            distinct,
            tags: self.count,
            last: 0,
            previous: None,
            bytes: vec![0; BEYOND],
            bit: 0,
        }
    }
}

/// Writes bits, the lowest of each byte first.
struct Writer<'a> {
    channel: &'a mut Channel,
    bytes: Vec<u8>,
    word: u128,
    filled: u32,
}

impl<'a> Writer<'a> {
    fn new(channel: &'a mut Channel) -> Self {
        Self { channel, bytes: Vec::with_capacity(PIECE + 8), word: 0, filled: 0 }
    }

    /// The lowest `bits` bits, at most 64.
    #[inline]
    fn put(&mut self, value: u64, bits: u32) -> Result<()> {
        let value = u128::from(value) & ((1 << bits) - 1);
        self.word |= value << self.filled;
        self.filled += bits;
        if self.filled >= 64 {
            self.bytes.extend_from_slice(&(self.word as u64).to_le_bytes());
            self.word >>= 64;
            self.filled -= 64;
            if self.bytes.len() >= PIECE {
                self.channel.send(&self.bytes)?;
                self.bytes.clear();
            }
        }
        Ok(())
    }

    fn zeros(&mut self, mut count: u64) -> Result<()> {
        while count > 64 {
            self.put(0, 64)?;
            count -= 64;
        }
        self.put(0, count as u32)
    }

    fn finish(mut self) -> Result<()> {
        let rest = (self.word as u64).to_le_bytes();
        self.bytes.extend_from_slice(&rest[..self.filled.div_ceil(8) as usize]);
        self.channel.send(&self.bytes)?;
        Ok(())
    }
}

/// Reads the tags of a [`Rice`] coding.
pub(crate) struct Reader {
    format: Rice,
    distinct: bool,
    /// Tags not yet read.
    tags: u64,
    /// Bytes not yet received.
    left: u64,
    /// The high part of the last tag, and the whole of it.
    last: u64,
    previous: Option<u128>,
    /// Received bytes, then [`BEYOND`] zeros.
    bytes: Vec<u8>,
    /// The first bit of them that is not read.
    bit: usize,
}

impl Reader {
    /// The next tags, as many as there are and fit; they replace the contents of `out`.
    ///
    /// # Errors
    /// If the channel fails, or the bytes are no coding of so many tags in ascending order, or two
    /// tags are equal that are to be distinct.
    pub(crate) fn read(
        &mut self,
        most: usize,
        out: &mut Vec<u128>,
        channel: &mut Channel,
    ) -> Result<()> {
        out.clear();
        for _ in 0..self.tags.min(most as u64) {
            let zeros = self.zeros(channel)?;
            // mutant(rice-high): `*high <= self.format.high` => `true`
            self.last = self
                .last
                .checked_add(zeros)
                .filter(|high| *high <= self.format.high)
                .ok_or_else(bad)?;
            let low = self.format.low;
            let rest = low.saturating_sub(64);
            let mut tag = u128::from(self.take(low - rest, channel)?);
            tag |= u128::from(self.take(rest, channel)?) << 64;
            if low < 128 {
                tag |= u128::from(self.last) << low;
            }
            // Whatever this party's own tags are: an error that depends on them would tell the
            // peer about one.
            // mutant(rice-order): false
            if self.previous.is_some_and(|previous| tag < previous) {
                return Err(bad());
            }
            // mutant(rice-equal): false
            if self.distinct && self.previous == Some(tag) {
                return Err(misbehaved("two of its tags are equal"));
            }
            self.previous = Some(tag);
            out.push(tag);
            self.tags -= 1;
        }
        if self.tags == 0 {
            self.finish(channel)?;
        }
        Ok(())
    }

    /// The number of zeros before the next one, which is taken too.
    #[inline]
    fn zeros(&mut self, channel: &mut Channel) -> Result<u64> {
        let mut count = 0;
        loop {
            self.fill(channel)?;
            let (zeros, bits) = (self.word().trailing_zeros() as usize, self.bits().min(64));
            // mutant(rice-zeros, 20 s): false
            if bits == 0 {
                return Err(bad());
            }
            count += zeros.min(bits) as u64;
            if zeros < bits {
                self.bit += zeros + 1;
                return Ok(count);
            }
            self.bit += bits;
        }
    }

    /// The next `bits` bits, at most 64.
    #[inline]
    fn take(&mut self, bits: u32, channel: &mut Channel) -> Result<u64> {
        self.fill(channel)?;
        if self.bits() < bits as usize {
            // no mutant: the bits suffice wherever the high part is in its range: seen before
            return Err(bad());
        }
        let value = u128::from(self.word()) & ((1 << bits) - 1);
        self.bit += bits as usize;
        Ok(value as u64)
    }

    /// The next 64 bits, with zeros behind the last received.
    #[inline]
    fn word(&self) -> u64 {
        let bytes = self.bytes[self.bit / 8..].first_chunk().expect("16 bytes beyond");
        (u128::from_le_bytes(*bytes) >> (self.bit % 8)) as u64
    }

    /// Received bits that are not read.
    #[inline]
    fn bits(&self) -> usize {
        8 * (self.bytes.len() - BEYOND) - self.bit
    }

    /// Receives, unless there are 64 bits or none to come.
    #[inline]
    fn fill(&mut self, channel: &mut Channel) -> Result<()> {
        match self.bits() >= 64 || self.left == 0 {
            true => Ok(()),
            false => self.receive(channel),
        }
    }

    fn receive(&mut self, channel: &mut Channel) -> Result<()> {
        self.bytes.drain(..self.bit / 8);
        self.bit %= 8;
        let (kept, more) = (self.bytes.len() - BEYOND, self.left.min(PIECE as u64));
        self.bytes.resize(kept + more as usize + BEYOND, 0);
        channel.recv(&mut self.bytes[kept..][..more as usize])?;
        self.left -= more;
        Ok(())
    }

    /// The rest is zero, and all bytes are received.
    fn finish(&mut self, channel: &mut Channel) -> Result<()> {
        loop {
            self.fill(channel)?;
            // mutant(rice-rest): false
            if self.word() != 0 {
                return Err(bad());
            }
            if self.bits() == 0 {
                return Ok(());
            }
            self.bit += self.bits().min(64);
        }
    }
}

fn bad() -> crate::Error {
    // no mutant: an error by name, where it is made
    misbehaved("its tags are not coded as agreed")
}

#[cfg(test)]
mod tests {
    use volery_primitives::Block;
    use volery_primitives::prg::Prg;

    use super::*;

    fn coded(format: Rice, tags: &[u128]) -> Vec<u8> {
        let (mut near, mut far) = Channel::memory_pair();
        format.send(tags.iter().copied(), &mut near).unwrap();
        near.flush().unwrap();
        let mut bytes = vec![0; format.bytes() as usize];
        far.recv(&mut bytes).unwrap();
        assert_eq!(near.stats().bytes_sent, format.bytes());
        bytes
    }

    fn decoded(format: Rice, bytes: &[u8]) -> Result<Vec<u128>> {
        let (mut near, mut far) = Channel::memory_pair();
        far.send(bytes).unwrap();
        far.flush().unwrap();
        let mut reader = format.receive(false);
        let (mut all, mut some) = (Vec::new(), Vec::new());
        for most in [1, 7, 1000, usize::MAX] {
            reader.read(most, &mut some, &mut near)?;
            all.extend_from_slice(&some);
        }
        assert_eq!(near.stats().bytes_received, format.bytes());
        Ok(all)
    }

    #[test]
    fn tags_come_back_in_the_stated_length() {
        let mut rng = Prg::new(Block::ONE);
        for bits in [20, 41, 63, 64, 65, 80, 81, 127, 128] {
            for count in [0, 1, 2, 3, 1000, 1448, 1449, 70_000] {
                let format = Rice::new(count, bits);
                let mut tags: Vec<_> =
                    (0..count).map(|_| u128::from(rng.block()) >> (128 - bits)).collect();
                tags.sort_unstable();
                let bytes = coded(format, &tags);
                assert_eq!(decoded(format, &bytes).unwrap(), tags, "{bits} {count}");
                if count > 0 {
                    // Within 2.1 bits of the least that names a random set.
                    let set = f64::from(bits) - (count as f64).log2();
                    let each = 8.0 * bytes.len() as f64 / count as f64;
                    assert!(each <= set + 2.1 + 8.0 / count as f64, "{bits} {count}");
                }
            }
        }
    }

    #[test]
    fn the_ends_of_the_range() {
        for bits in [8, 64, 100, 128] {
            let last = u128::MAX >> (128 - bits);
            for tags in [vec![0, 0, 0], vec![last; 3], vec![0, last], vec![0], vec![last]] {
                let format = Rice::new(tags.len() as u64, bits);
                assert_eq!(decoded(format, &coded(format, &tags)).unwrap(), tags);
            }
        }
    }

    /// One zero before the only tag, whose high part has no bits.
    #[test]
    fn a_tag_of_more_bits_is_refused() {
        let format = Rice::new(1, 20);
        assert_eq!(decoded(format, &[1, 0, 0]).unwrap(), [0]);
        assert!(decoded(format, &[2, 0, 0]).is_err());
    }

    /// Tags that have one high part, and do not ascend.
    #[test]
    fn an_order_that_does_not_ascend_is_refused() {
        for (bits, tags) in [(12, [3, 5]), (12, [5, 5]), (128, [1 << 100, 1 << 101])] {
            let format = Rice::new(2, bits);
            assert_eq!(decoded(format, &coded(format, &tags)).unwrap(), tags);
            let swapped = [tags[1], tags[0]];
            let refused = decoded(format, &coded(format, &swapped)).is_err();
            assert_eq!(refused, tags[0] != tags[1]);
        }
    }

    /// Equal tags are refused where they are to be distinct, zeros and the last ones too.
    #[test]
    fn equal_tags_where_none_may_be() {
        for bits in [12, 64, 128] {
            let last = u128::MAX >> (128 - bits);
            for (tags, distinct) in [
                (vec![0, 0, 7], false),
                (vec![0, 7, 7], false),
                (vec![7, last, last], false),
                (vec![0, 7, last], true),
            ] {
                let format = Rice::new(3, bits);
                let (mut near, mut far) = Channel::memory_pair();
                far.send(&coded(format, &tags)).unwrap();
                far.flush().unwrap();
                let read = format.receive(true).read(3, &mut Vec::new(), &mut near);
                assert_eq!(read.is_ok(), distinct, "{bits} {tags:?}");
            }
        }
    }

    /// A changed bit changes a tag or is refused, and random bytes never panic.
    #[test]
    fn other_bytes_are_other_tags_or_refused() {
        let format = Rice::new(5, 12);
        let tags = [3, 700, 701, 2000, 4095];
        let bytes = coded(format, &tags);
        for bit in 0..8 * bytes.len() {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(decoded(format, &bytes).ok(), Some(tags.to_vec()), "{bit}");
        }
        let mut rng = Prg::new(Block::ONE);
        let mut refused = 0;
        for count in [1, 5, 100] {
            let format = Rice::new(count, 70);
            let mut bytes = vec![0; format.bytes() as usize];
            for _ in 0..1000 {
                rng.fill_bytes(&mut bytes);
                refused += usize::from(decoded(format, &bytes).is_err());
            }
            bytes.fill(0);
            assert!(decoded(format, &bytes).is_err(), "no ones at all");
        }
        assert!(refused > 1000, "{refused}");
    }
}
