//! The tags of a server's items, as a file that its clients fetch once.
//!
//! Tags are sorted and coded by Elias, *Efficient Storage and Retrieval by Content and Address of
//! Static Files*, JACM 1974, and Fano, 1971: the low bits of all tags one after the other, and the
//! increases of their high parts in unary. With as many high bits as the number of tags has, the
//! coding takes two to three bits for each tag besides those that keep errors rare. A lookup reads
//! the tags of one high part, about one or two. It is smaller than a filter of fingerprints with
//! the same errors (the binary fuse filter of Graf and Lemire, 2022, takes 1.08 to 1.13 times the
//! bits of a fingerprint), needs no attempts to build, and every sequence of bits with the right
//! number of ones is a set of tags: nothing else has to be checked of what a peer sends.

use std::fmt;
use std::io::{Read, Write};

use volery_channel::Channel;
use volery_primitives::ro::RandomOracle;

use super::voprf::{Encoded, decode};
use crate::error::{Error, Result};
use crate::params::MAX_ITEMS;

/// The first bytes of a file: name and version of the format.
const MAGIC: [u8; 8] = *b"volFILT1";

/// Bytes of the header: the format, public key, numbers of items and of queries, version.
const HEADER: usize = 8 + 32 + 8 + 8 + 32;

/// The maximum number of queries.
pub const MAX_QUERIES: u64 = 1 << 40;

/// Zeros of the high parts from one sample to the next.
const SAMPLE: u64 = 256;

/// Bytes that are read at a time: no more memory is taken than has arrived, and twice this.
const PIECE: u64 = 1 << 20;

/// The coding of a number of tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    items: u64,
    /// Bits of a high part, and of the rest.
    high: u32,
    low: u32,
}

impl Layout {
    /// The coding for so many tags; with `queries` random ones looked up, any is found by chance
    /// with probability at most 2^-40.
    fn new(items: u64, queries: u64) -> Self {
        let log = |number: u64| number.max(1).next_power_of_two().ilog2();
        let high = items.max(1).ilog2();
        Self {
            items,
            high,
            low: 40 + log(queries) + log(items) - high,
        }
    }

    const fn bits(&self) -> u32 {
        self.high + self.low
    }

    /// Bytes of the low parts.
    const fn lows(&self) -> u64 {
        (self.items * self.low as u64).div_ceil(8)
    }

    /// Bits of the high parts: a one for each tag, a zero after each value.
    const fn unary(&self) -> u64 {
        self.items + (1 << self.high)
    }

    const fn bytes(&self) -> u64 {
        self.lows() + self.unary().div_ceil(8)
    }
}

/// The tags of a server's items: what a client needs to understand the answers to its queries.
///
/// It reveals the number of items, and nothing else to someone who has not evaluated the server's
/// function: tags are its outputs.
#[derive(Clone, PartialEq, Eq)]
pub struct Filter {
    public: Encoded,
    queries: u64,
    layout: Layout,
    version: [u8; 32],
    body: Vec<u8>,
    /// The place in the unary part after each [`SAMPLE`] zeros.
    samples: Vec<u64>,
}

impl Filter {
    /// Bits of a tag among so many.
    pub(super) fn bits(items: u64, queries: u64) -> u32 {
        Layout::new(items, queries).bits()
    }

    /// The filter of these tags, which ascend and are those of `public`.
    pub(super) fn new(public: Encoded, bits: u32, queries: u64, tags: &[u128]) -> Self {
        let items = tags.len() as u64;
        // Tags that were equal are one, so that their number may have fewer bits than before.
        let layout = Layout::new(items, queries);
        let shift = bits - layout.bits();
        let mut body = vec![0; layout.bytes() as usize];
        let (lows, unary) = body.split_at_mut(layout.lows() as usize);
        for (number, tag) in tags.iter().enumerate() {
            let tag = tag >> shift;
            let at = number as u64 * u64::from(layout.low);
            let low = (tag & ((1 << layout.low) - 1)) << (at % 8);
            for (byte, low) in lows[(at / 8) as usize..].iter_mut().zip(low.to_le_bytes()) {
                *byte |= low;
            }
            let one = number + (tag >> layout.low) as usize;
            unary[one / 8] |= 1 << (one % 8);
        }
        let version = version(&public, items, queries, &body);
        let mut filter = Self {
            public,
            queries,
            layout,
            version,
            body,
            samples: Vec::new(),
        };
        filter.sample().expect("as many ones as tags");
        filter
    }

    /// Number of the server's items.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.layout.items
    }

    /// Number of queries, of all clients together, for which tags are long enough: one of them is
    /// answered with a false yes with probability at most 2^-40.
    #[must_use]
    pub const fn queries(&self) -> u64 {
        self.queries
    }

    /// The server's public key, which names its key.
    #[must_use]
    pub const fn public(&self) -> &[u8; 32] {
        &self.public
    }

    /// A hash of the key's name and all contents: a server answers queries for one version.
    #[must_use]
    pub const fn version(&self) -> &[u8; 32] {
        &self.version
    }

    /// Bytes of the file.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        HEADER as u64 + self.body.len() as u64
    }

    fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        let (format, rest) = header.split_at_mut(8);
        format.copy_from_slice(&MAGIC);
        let (public, rest) = rest.split_at_mut(32);
        public.copy_from_slice(&self.public);
        let (items, rest) = rest.split_at_mut(8);
        items.copy_from_slice(&self.layout.items.to_le_bytes());
        let (queries, rest) = rest.split_at_mut(8);
        queries.copy_from_slice(&self.queries.to_le_bytes());
        rest.copy_from_slice(&self.version);
        header
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write(&self, file: &mut impl Write) -> Result<()> {
        file.write_all(&self.header())?;
        file.write_all(&self.body)?;
        Ok(file.flush()?)
    }

    /// Reads a file with at most `most_items` items, and nothing after it.
    ///
    /// # Errors
    /// [`Error::Filter`] if it is not a filter, has other contents than its version says, or is too
    /// large; if reading fails.
    pub fn read(file: &mut impl Read, most_items: u64) -> Result<Self> {
        let mut header = [0; HEADER];
        file.read_exact(&mut header)?;
        Self::fill(&header, most_items, |bytes| Ok(file.read_exact(bytes)?))
    }

    /// The filter of a file, all of whose bytes these are.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn from_bytes(mut bytes: &[u8], most_items: u64) -> Result<Self> {
        let filter = Self::read(&mut bytes, most_items)?;
        if !bytes.is_empty() {
            return Err(Error::Filter("bytes follow its end"));
        }
        Ok(filter)
    }

    /// Sends it to a client.
    ///
    /// # Errors
    /// If the channel fails.
    pub fn send(&self, channel: &mut Channel) -> Result<()> {
        channel.send(&self.header())?;
        for piece in self.body.chunks(PIECE as usize) {
            channel.send(piece)?;
        }
        Ok(channel.flush()?)
    }

    /// Receives the filter that the server sends, with at most `most_items` items.
    ///
    /// # Errors
    /// As [`read`](Self::read), or if the channel fails.
    pub fn receive(most_items: u64, channel: &mut Channel) -> Result<Self> {
        let mut header = [0; HEADER];
        channel.recv(&mut header)?;
        Self::fill(&header, most_items, |bytes| Ok(channel.recv(bytes)?))
    }

    /// The filter with this header, and the body that `next` reads.
    fn fill(
        header: &[u8; HEADER],
        most_items: u64,
        mut next: impl FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<Self> {
        let (format, rest) = header.split_at(8);
        let (public, rest) = rest.split_at(32);
        let (items, rest) = rest.split_at(8);
        let (queries, said) = rest.split_at(8);
        if format != MAGIC {
            return Err(Error::Filter(
                "it does not begin as one, or has another format",
            ));
        }
        let mut key = [0; 32];
        key.copy_from_slice(public);
        if decode(key).is_none() {
            return Err(Error::Filter("its key is not an element of the group"));
        }
        let (items, queries) = (word(items), word(queries));
        if items > most_items.min(MAX_ITEMS) {
            return Err(Error::Filter("it has more items than expected"));
        }
        if !(1..=MAX_QUERIES).contains(&queries) {
            return Err(Error::Filter("its number of queries is out of range"));
        }
        let layout = Layout::new(items, queries);
        let (mut body, mut left) = (Vec::new(), layout.bytes());
        while left > 0 {
            let (kept, more) = (body.len(), left.min(PIECE));
            body.resize(kept + more as usize, 0);
            next(&mut body[kept..])?;
            left -= more;
        }
        let mut filter = Self {
            version: version(&key, items, queries, &body),
            public: key,
            queries,
            layout,
            body,
            samples: Vec::new(),
        };
        if filter.version != said {
            return Err(Error::Filter("its contents are not those of its version"));
        }
        filter.sample()?;
        Ok(filter)
    }

    /// Takes the samples, and checks that the high parts are those of as many tags as stated.
    fn sample(&mut self) -> Result<()> {
        let wrong = Error::Filter("its tags are not coded as its header says");
        let unary = &self.body[self.layout.lows() as usize..];
        let length = self.layout.unary();
        let mut samples = Vec::new();
        let (mut place, mut zeros) = (0, 0);
        for &byte in unary {
            for bit in 0..8 {
                if place == length {
                    break;
                }
                if zeros % SAMPLE == 0 && zeros / SAMPLE == samples.len() as u64 {
                    samples.push(place);
                }
                zeros += u64::from(byte >> bit & 1 == 0);
                place += 1;
            }
        }
        let padding = match (length % 8, unary.last()) {
            (0, _) | (_, None) => 0,
            (used, Some(last)) => last >> used,
        };
        if zeros != 1 << self.layout.high || padding != 0 {
            return Err(wrong);
        }
        self.samples = samples;
        Ok(())
    }

    /// Whether a tag, the highest bits of an output of the function, is among those of the server.
    pub(super) fn contains(&self, output: u128) -> bool {
        let layout = &self.layout;
        let tag = output >> (128 - layout.bits());
        let high = (tag >> layout.low) as u64;
        let low = tag & ((1 << layout.low) - 1);
        // All reads are by a party that has the output, in its own memory.
        let unary = &self.body[layout.lows() as usize..];
        let one = |place: u64| unary[(place / 8) as usize] >> (place % 8) & 1 == 1;
        let mut place = self.samples[(high / SAMPLE) as usize];
        let mut zeros = high / SAMPLE * SAMPLE;
        while zeros < high {
            zeros += u64::from(!one(place));
            place += 1;
        }
        // There are more zeros than `high`, of which one ends the loop.
        while one(place) {
            if self.low(place - high) == low {
                return true;
            }
            place += 1;
        }
        false
    }

    /// The low bits of a tag.
    fn low(&self, number: u64) -> u128 {
        let at = number * u64::from(self.layout.low);
        let from = &self.body[(at / 8) as usize..];
        let mut bytes = [0; 16];
        let length = from.len().min(16);
        bytes[..length].copy_from_slice(&from[..length]);
        u128::from_le_bytes(bytes) >> (at % 8) & ((1 << self.layout.low) - 1)
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Filter({} items, ..)", self.layout.items)
    }
}

fn version(public: &Encoded, items: u64, queries: u64, body: &[u8]) -> [u8; 32] {
    RandomOracle::new("volery psi served: filter")
        .absorb(public)
        .absorb_u64(items)
        .absorb_u64(queries)
        .absorb(body)
        .finish32()
}

/// A number of eight bytes.
fn word(bytes: &[u8]) -> u64 {
    let bytes = bytes.first_chunk().expect("a number has 8 bytes");
    u64::from_le_bytes(*bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use std::collections::HashSet;

    use volery_channel::Error as ChannelError;
    use volery_primitives::Block;
    use volery_primitives::prg::Prg;

    use super::super::voprf::GENERATOR;
    use super::*;

    fn filter(items: usize, queries: u64) -> (Filter, Vec<u128>) {
        let mut rng = Prg::new(Block::ONE);
        let outputs: Vec<_> = (0..items).map(|_| u128::from(rng.block())).collect();
        let bits = Filter::bits(items as u64, queries);
        let mut tags: Vec<_> = outputs
            .iter()
            .map(|output| output >> (128 - bits))
            .collect();
        tags.sort_unstable();
        (Filter::new(GENERATOR, bits, queries, &tags), outputs)
    }

    fn bytes(filter: &Filter) -> Vec<u8> {
        let mut bytes = Vec::new();
        filter.write(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, filter.bytes());
        bytes
    }

    #[test]
    fn tags_are_found_and_no_others() {
        let mut rng = Prg::new(Block::new(7));
        for items in [0, 1, 2, 3, 255, 256, 257, 5000, 70_001] {
            for queries in [1, 1000, 1 << 20, MAX_QUERIES] {
                let (filter, outputs) = filter(items, queries);
                let read = Filter::from_bytes(&bytes(&filter), items as u64).unwrap();
                assert_eq!(read, filter);
                assert_eq!((read.items(), read.queries()), (items as u64, queries));
                for &output in &outputs {
                    assert!(read.contains(output), "{items} {queries}");
                    // All bits of a tag count.
                    let last = 128 - read.layout.bits();
                    assert!(!read.contains(output ^ 1 << last));
                    assert!(read.contains(output ^ 1 << (last - 1)));
                }
                for _ in 0..2000 {
                    assert!(!read.contains(u128::from(rng.block())));
                }
                assert!(!read.contains(0) && !read.contains(u128::MAX));
            }
        }
    }

    #[test]
    fn tags_at_the_ends_of_the_range() {
        let bits = Filter::bits(3, 1);
        let last = u128::MAX >> (128 - bits);
        for tags in [[0, 0, 0], [last; 3], [0, 1, last], [0, last, last]] {
            let filter = Filter::new(GENERATOR, bits, 1, &tags);
            let set: HashSet<_> = tags.into_iter().collect();
            for tag in [0, 1, 2, last - 1, last] {
                let output = tag << (128 - bits);
                assert_eq!(filter.contains(output), set.contains(&tag), "{tag}");
            }
        }
    }

    /// Fewer tags than outputs, where some were equal.
    #[test]
    fn fewer_tags_than_announced() {
        let bits = Filter::bits(5, 1);
        let tags = [1, 2].map(|tag: u128| tag << (bits - 8));
        let filter = Filter::new(GENERATOR, bits, 1, &tags);
        for tag in tags {
            assert!(filter.contains(tag << (128 - bits)));
        }
        assert_eq!(Filter::from_bytes(&bytes(&filter), 2).unwrap(), filter);
    }

    #[test]
    fn size() {
        // What the documentation says: two to three bits more than 40 and the queries.
        for items in [1000, 65_535, 65_536, 1_000_000, 100_000_000] {
            let layout = Layout::new(items, 1 << 20);
            let each = 8.0 * layout.bytes() as f64 / items as f64;
            assert!((61.5..63.1).contains(&each), "{items} {each}");
            assert_eq!(layout.bits(), 60 + items.next_power_of_two().ilog2());
        }
    }

    fn refused(bytes: &[u8], most: u64) -> String {
        match Filter::from_bytes(bytes, most) {
            Err(Error::Filter(why)) => why.to_owned(),
            Err(Error::Channel(ChannelError::Io(_) | ChannelError::Disconnected)) => {
                "short".to_owned()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn changed_files_are_refused() {
        let (filter, _) = filter(300, 1000);
        let good = bytes(&filter);
        for bit in 0..8 * good.len() {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            refused(&bytes, 1 << 20);
        }
        for length in 0..good.len() {
            assert_eq!(refused(&good[..length], 1 << 20), "short");
        }
        let mut longer = good.clone();
        longer.push(0);
        assert_eq!(refused(&longer, 1 << 20), "bytes follow its end");
        assert_eq!(refused(&good, 299), "it has more items than expected");
        let with = |at: usize, new: &[u8]| {
            let mut bytes = good.clone();
            bytes[at..][..new.len()].copy_from_slice(new);
            refused(&bytes, u64::MAX)
        };
        assert_eq!(with(40, &[0xff; 8]), "it has more items than expected");
        let range = "its number of queries is out of range";
        assert_eq!(with(48, &[0; 8]), range);
        assert_eq!(with(48, &[0xff; 8]), range);
        assert_eq!(with(48, &(MAX_QUERIES + 1).to_le_bytes()), range);
        assert_eq!(with(8, &[0; 32]), "its key is not an element of the group");
        // As many items as there can be, of which no byte is there: nothing is allocated for them.
        assert_eq!(with(40, &(1_u64 << 31).to_le_bytes()), "short");
    }

    /// A file with the right hash, whose high parts are not those of as many tags.
    #[test]
    fn other_codings_are_refused() {
        let (filter, _) = filter(300, 1000);
        let lows = filter.layout.lows() as usize;
        let wrong = "its tags are not coded as its header says";
        for change in [0x01, 0x80] {
            let mut other = filter.clone();
            *other.body[lows..].last_mut().unwrap() ^= change;
            other.version = version(&other.public, 300, 1000, &other.body);
            assert_eq!(refused(&bytes(&other), 300), wrong, "{change}");
        }
        let mut none = filter.clone();
        none.body[lows..].fill(0);
        none.version = version(&none.public, 300, 1000, &none.body);
        assert_eq!(refused(&bytes(&none), 300), wrong);
    }

    /// Any other contents are a set of tags, and no lookup leaves them.
    #[test]
    fn random_tags_never_panic() {
        let mut rng = Prg::new(Block::new(9));
        for _ in 0..50 {
            let (mut filter, _) = filter(300, 1000);
            let lows = filter.layout.lows() as usize;
            let (unary, length) = (&mut filter.body[lows..], filter.layout.unary());
            unary.fill(0);
            let mut left = 300;
            while left > 0 {
                // The last bit included, after which no zero follows.
                let place = rng.below(length);
                let (byte, bit) = ((place / 8) as usize, 1 << (place % 8));
                if unary[byte] & bit == 0 {
                    unary[byte] |= bit;
                    left -= 1;
                }
            }
            filter.version = version(&filter.public, 300, 1000, &filter.body);
            let Ok(filter) = Filter::from_bytes(&bytes(&filter), 300) else {
                continue;
            };
            for high in 0..256_u128 {
                filter.contains(high << 120 | u128::from(rng.block()) >> 8);
            }
            filter.contains(u128::MAX);
        }
    }
}
