//! The tags of a server's items, as a file that its clients fetch once.
//!
//! Tags are sorted and coded by Elias, *Efficient Storage and Retrieval by Content and Address of
//! Static Files*, JACM 1974, and Fano, 1971: the low bits of all tags one after the other, and the
//! increases of their high parts in unary. With as many high bits as the number of tags has, the
//! coding takes two to three bits for each tag besides those that keep errors rare. A lookup reads
//! the tags of one high part, about one or two, and never more than [`MOST_ALIKE`]: a server that
//! gave all its tags one high part could tell from the time of a lookup whether it was there. The
//! coding is smaller than a filter of fingerprints with the same errors (the binary fuse filter of
//! Graf and Lemire, 2022, takes 1.08 to 1.13 times the bits of a fingerprint), needs no attempts to
//! build, and every sequence of bits with the right number of ones is a set of tags.

use std::fmt;
use std::io::{BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Deref;

use volery_channel::Channel;
use volery_primitives::ro::{RandomOracle, StreamHash};

use super::voprf::{EncodedElement, decode};
use crate::error::{Error, Result};
use crate::failure::{Failure, STATISTICAL, equal_bits};
use crate::params::MAX_ITEMS;

/// The first bytes of a file: name and version of the format.
const MAGIC: [u8; 8] = *b"volFILT1";

/// Bytes of the header: the format, public key, numbers of items and of queries, version.
pub(super) const HEADER: usize = 8 + 32 + 8 + 8 + 32;

/// The maximum number of queries.
pub const MAX_QUERIES: u64 = 1 << 40;

/// Zeros of the high parts from one sample to the next.
const SAMPLE: u64 = 256;

/// The most tags of one high part. Of `n` outputs of the function, for `2^h <= n < 2^(h+1)` high
/// parts, more than 64 have the same with probability below `2^h * 2^-238`.
const MOST_ALIKE: u32 = 64;

/// The most tags from one sample to the next, twice the largest mean: exceeded by one sample with
/// probability below `2^-285`.
const MOST_IN_SAMPLE: u64 = 4 * SAMPLE;

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
        Self::with_bits(STATISTICAL, items, queries)
    }

    /// The same, where that probability is 2^-`bits`.
    fn with_bits(bits: u32, items: u64, queries: u64) -> Self {
        let log = |number: u64| number.max(1).next_power_of_two().ilog2();
        let high = items.max(1).ilog2();
        Self { items, high, low: bits + log(queries) + log(items) - high }
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

/// The label of a filter: the content of its header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Label {
    public: EncodedElement,
    queries: u64,
    layout: Layout,
    version: [u8; 32],
}

impl Label {
    /// Number of the server's items.
    pub const fn items(&self) -> u64 {
        self.layout.items
    }

    /// Number of queries, of all clients together, for which tags are long enough: one of them is
    /// answered with a false yes with probability at most 2^-40.
    pub const fn queries(&self) -> u64 {
        self.queries
    }

    /// The server's public key, which names its key.
    pub const fn public(&self) -> &[u8; 32] {
        &self.public
    }

    /// A hash of the key's name and all contents: a server answers queries for one version.
    pub const fn version(&self) -> &[u8; 32] {
        &self.version
    }

    /// The failures that an honest server may have, in all queries together.
    pub fn failures(&self) -> Vec<Failure> {
        let bits = self.layout.bits();
        vec![Failure::wrong_result(
            "a query is answered with a false yes",
            equal_bits(bits, [self.layout.items, self.queries]),
        )]
    }

    /// Bytes of the file.
    pub const fn bytes(&self) -> u64 {
        HEADER as u64 + self.layout.bytes()
    }

    pub(super) fn to_bytes(self) -> [u8; HEADER] {
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

    /// The label of a filter with at most `most_items` items.
    pub(super) fn from_bytes(header: &[u8; HEADER], most_items: u64) -> Result<Self> {
        let (format, rest) = header.split_at(8);
        let (key, rest) = rest.split_at(32);
        let (items, rest) = rest.split_at(8);
        let (queries, said) = rest.split_at(8);
        // mutant(psi-filter-format): false
        if format != MAGIC {
            return Err(Error::Filter("it does not begin as one, or has another format"));
        }
        let mut public = [0; 32];
        public.copy_from_slice(key);
        // mutant(psi-filter-key): false
        if decode(public).is_none() {
            return Err(Error::Filter("its key is not an element of the group"));
        }
        let (items, queries) = (word(items), word(queries));
        // mutant(psi-filter-items): false
        if items > most_items.min(MAX_ITEMS) {
            return Err(Error::Filter("it has more items than expected"));
        }
        // mutant(psi-filter-queries): false
        if !(1..=MAX_QUERIES).contains(&queries) {
            return Err(Error::Filter("its number of queries is out of range"));
        }
        let mut version = [0; 32];
        version.copy_from_slice(said);
        Ok(Self { public, queries, layout: Layout::new(items, queries), version })
    }

    /// Reads a file to its end without keeping it, and checks that its contents are those of its
    /// version. Fails as [`Filter::read`] does.
    pub fn of_file(file: &mut impl Read, most_items: u64) -> Result<Self> {
        let mut header = [0; HEADER];
        fill_exact(file, &mut header)?;
        let label = Self::from_bytes(&header, most_items)?;
        let mut hash = StreamHash::default();
        pieces(label.layout.bytes(), |bytes| {
            fill_exact(file, bytes)?;
            hash.update(bytes);
            Ok(())
        })?;
        // mutant(psi-filter-file-end): false
        if file.read(&mut [0])? > 0 {
            return Err(Error::Filter(LONGER));
        }
        // mutant(psi-filter-file): `label.hashed(&hash) == label.version` => `true`
        match label.hashed(&hash) == label.version {
            true => Ok(label),
            false => Err(Error::Filter(OTHER_CONTENTS)),
        }
    }

    /// Sends a file with this label to a client, which calls [`Filter::receive`].
    ///
    /// # Errors
    /// [`Error::Filter`] if the file has another label; if reading or the channel fails.
    pub fn send_file(&self, file: &mut impl Read, channel: &mut Channel) -> Result<()> {
        let mut header = [0; HEADER];
        fill_exact(file, &mut header)?;
        // mutant(psi-filter-replaced): false
        if header != self.to_bytes() {
            return Err(Error::Filter("it is another one by now"));
        }
        channel.send(&header)?;
        pieces(self.layout.bytes(), |bytes| {
            fill_exact(file, bytes)?;
            Ok(channel.send(bytes)?)
        })?;
        Ok(channel.flush()?)
    }

    /// The version with this hash of the body.
    fn hashed(&self, body: &StreamHash) -> [u8; 32] {
        RandomOracle::new("volery psi served: filter")
            .absorb(&self.public)
            .absorb_u64(self.layout.items)
            .absorb_u64(self.queries)
            .absorb(&body.finish32())
            .finish32()
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Label({} items, ..)", self.layout.items)
    }
}

const LONGER: &str = "bytes follow its end";
const UNEVEN: &str =
    "too many of its tags begin alike: an honest server does not make such a filter";
const OTHER_CONTENTS: &str = "its contents are not those of its version";

/// Like [`filter_bytes`](super::filter_bytes).
pub(super) fn bytes(items: u64, queries: u64) -> u64 {
    HEADER as u64 + Layout::new(items, queries).bytes()
}

/// Reads as many bytes of a file.
fn fill_exact(file: &mut impl Read, bytes: &mut [u8]) -> Result<()> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => Error::Filter("it is cut off"),
        _ => error.into(),
    })
}

/// Gives `each` as many bytes in all, piece by piece.
fn pieces(bytes: u64, mut each: impl FnMut(&mut [u8]) -> Result<()>) -> Result<()> {
    let mut piece = vec![0; bytes.min(PIECE) as usize];
    let mut left = bytes;
    while left > 0 {
        let next = left.min(PIECE);
        each(&mut piece[..next as usize])?;
        left -= next;
    }
    Ok(())
}

/// Codes tags, which ascend: the low bits go out at once, the high parts are kept to the end.
struct Coder<W> {
    layout: Layout,
    lows: W,
    hash: StreamHash,
    /// Low bits that fill no byte yet, and their number.
    pending: u128,
    used: u32,
    unary: Vec<u8>,
    number: u64,
}

impl<W: Write> Coder<W> {
    fn new(layout: Layout, lows: W) -> Self {
        Self {
            layout,
            lows,
            hash: StreamHash::default(),
            pending: 0,
            used: 0,
            unary: vec![0; layout.unary().div_ceil(8) as usize],
            number: 0,
        }
    }

    /// The highest bits of this output are the next tag.
    fn push(&mut self, output: u128) -> std::io::Result<()> {
        let Layout { low, .. } = self.layout;
        let tag = output >> (128 - self.layout.bits());
        let one = self.number as usize + (tag >> low) as usize;
        self.unary[one / 8] |= 1 << (one % 8);
        self.number += 1;
        // At most 7 bits and 81.
        self.pending |= (tag & ((1 << low) - 1)) << self.used;
        self.used += low;
        let bytes = self.pending.to_le_bytes();
        let whole = (self.used / 8) as usize;
        self.put(&bytes[..whole])?;
        self.pending >>= 8 * whole;
        self.used %= 8;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.hash.update(bytes);
        self.lows.write_all(bytes)
    }

    /// The label of all tags, under the key with this name; the high parts follow the low ones.
    fn finish(mut self, public: EncodedElement, queries: u64) -> std::io::Result<(Label, W)> {
        assert_eq!(self.number, self.layout.items, "as many tags as announced");
        let last = [self.pending as u8];
        self.put(&last[..usize::from(self.used > 0)])?;
        let unary = std::mem::take(&mut self.unary);
        self.put(&unary)?;
        let mut label = Label { public, queries, layout: self.layout, version: [0; 32] };
        label.version = label.hashed(&self.hash);
        Ok((label, self.lows))
    }
}

/// Writes the filter of the highest bits of so many outputs, which ascend, to a file that is empty.
pub(super) fn write_sorted(
    (public, items, queries): (EncodedElement, u64, u64),
    outputs: impl Iterator<Item = std::io::Result<u128>>,
    file: &mut (impl Write + Seek),
) -> Result<Label> {
    file.write_all(&[0; HEADER])?;
    let mut coder = Coder::new(Layout::new(items, queries), BufWriter::new(&mut *file));
    for output in outputs {
        coder.push(output?)?;
    }
    let (label, mut lows) = coder.finish(public, queries)?;
    lows.flush()?;
    drop(lows);
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&label.to_bytes())?;
    file.flush()?;
    Ok(label)
}

/// The tags of a server's items: what a client needs to understand the answers to its queries.
///
/// It reveals the number of items, and nothing else to someone who has not evaluated the server's
/// function: tags are its outputs.
#[derive(Clone, PartialEq, Eq)]
pub struct Filter {
    label: Label,
    body: Vec<u8>,
    /// The place in the unary part after each [`SAMPLE`] zeros.
    samples: Vec<u64>,
}

impl Deref for Filter {
    type Target = Label;

    fn deref(&self) -> &Label {
        &self.label
    }
}

impl Filter {
    /// The filter of the highest bits of these outputs, which ascend, under the key with this name.
    pub(super) fn new(public: EncodedElement, queries: u64, outputs: &[u128]) -> Self {
        Self::with_layout(Layout::new(outputs.len() as u64, queries), (public, queries), outputs)
    }

    fn with_layout(layout: Layout, label: (EncodedElement, u64), outputs: &[u128]) -> Self {
        let mut filter = Self::unchecked(layout, label, outputs);
        filter.sample().expect("the tags are those of outputs");
        filter
    }

    /// [`with_layout`](Self::with_layout) without the samples, and so without their checks.
    fn unchecked(
        layout: Layout,
        (public, queries): (EncodedElement, u64),
        outputs: &[u128],
    ) -> Self {
        let body = Vec::with_capacity(layout.bytes() as usize);
        let mut coder = Coder::new(layout, body);
        let pushed = outputs.iter().try_for_each(|output| coder.push(*output));
        let coded = pushed.and_then(|()| coder.finish(public, queries));
        let (label, body) = coded.expect("writing to memory does not fail");
        Self { label, body, samples: Vec::new() }
    }

    /// The file of a server that chooses its tags, which ascend: the highest bits of `outputs`.
    ///
    /// # Panics
    /// If writing to memory fails.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn dishonest(public: [u8; 32], queries: u64, outputs: &[u128]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let layout = Layout::new(outputs.len() as u64, queries);
        let filter = Self::unchecked(layout, (public, queries), outputs);
        filter.write(&mut bytes).expect("writing to memory");
        bytes
    }

    /// The label of this filter.
    pub const fn label(&self) -> &Label {
        &self.label
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write(&self, file: &mut impl Write) -> Result<()> {
        file.write_all(&self.label.to_bytes())?;
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
        fill_exact(file, &mut header)?;
        Self::fill(&header, most_items, |bytes| fill_exact(file, bytes))
    }

    /// The filter of a file, all of whose bytes these are. Fails as [`read`](Self::read) does.
    pub fn from_bytes(mut bytes: &[u8], most_items: u64) -> Result<Self> {
        let filter = Self::read(&mut bytes, most_items)?;
        // mutant(psi-filter-end): false
        if !bytes.is_empty() {
            return Err(Error::Filter(LONGER));
        }
        Ok(filter)
    }

    /// Sends it to a client.
    ///
    /// # Errors
    /// If the channel fails.
    pub fn send(&self, channel: &mut Channel) -> Result<()> {
        channel.send(&self.label.to_bytes())?;
        for piece in self.body.chunks(PIECE as usize) {
            channel.send(piece)?;
        }
        Ok(channel.flush()?)
    }

    /// Receives the filter that the server sends, with at most `most_items` items.
    ///
    /// # Errors
    /// See [`read`](Self::read), or if the channel fails.
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
        let label = Label::from_bytes(header, most_items)?;
        let (mut body, mut hash) = (Vec::new(), StreamHash::default());
        let mut left = label.layout.bytes();
        while left > 0 {
            let (kept, more) = (body.len(), left.min(PIECE));
            body.resize(kept + more as usize, 0);
            next(&mut body[kept..])?;
            hash.update(&body[kept..]);
            left -= more;
        }
        // mutant(psi-filter-version): false
        if label.hashed(&hash) != label.version {
            return Err(Error::Filter(OTHER_CONTENTS));
        }
        let mut filter = Self { label, body, samples: Vec::new() };
        filter.sample()?;
        Ok(filter)
    }

    /// Takes the samples, and checks that the high parts are those of as many tags as stated, and
    /// spread as those of outputs are.
    fn sample(&mut self) -> Result<()> {
        let layout = self.label.layout;
        let unary = &self.body[layout.lows() as usize..];
        let length = layout.unary();
        let mut samples = Vec::with_capacity(((1_u64 << layout.high) / SAMPLE + 1) as usize);
        let mut zeros = 0;
        // Tags with the high part of the last one.
        let mut alike = 0;
        for (number, &byte) in unary.iter().enumerate() {
            let first = 8 * number as u64;
            let bits = (length - first).min(8) as u32;
            alike += byte.trailing_ones();
            // mutant(psi-filter-alike): false
            if alike > MOST_ALIKE {
                return Err(Error::Filter(UNEVEN));
            }
            if byte != u8::MAX {
                alike = byte.leading_ones();
            }
            let mut left = !byte & (u8::MAX >> (8 - bits));
            // A sample is where a zero, the first or one after a multiple, is to be looked for.
            if samples.is_empty() {
                samples.push(0);
            }
            let more = u64::from(left.count_ones());
            let next = samples.len() as u64 * SAMPLE;
            if zeros + more >= next {
                for _ in 1..next - zeros {
                    left &= left - 1;
                }
                samples.push(first + u64::from(left.trailing_zeros()) + 1);
            }
            zeros += more;
        }
        let padding = match (length % 8, unary.last()) {
            (0, _) | (_, None) => 0,
            (used, Some(last)) => last >> used,
        };
        // mutant(psi-filter-coding): false
        if zeros != 1 << layout.high || padding != 0 {
            return Err(Error::Filter("its tags are not coded as its header says"));
        }
        let ends = samples.iter().skip(1).chain([&length]);
        let crowded =
            (samples.iter().zip(ends)).any(|(start, end)| end - start > MOST_IN_SAMPLE + SAMPLE);
        // mutant(psi-filter-crowded): false
        if crowded {
            return Err(Error::Filter(UNEVEN));
        }
        self.samples = samples;
        Ok(())
    }

    /// Whether a tag, the highest bits of an output of the function, is among those of the server,
    /// and how many tags were read for it.
    pub(super) fn find(&self, output: u128) -> (bool, u64) {
        let layout = &self.label.layout;
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
        let mut read = 0;
        while one(place) {
            read += 1;
            if self.low(place - high) == low {
                return (true, read);
            }
            place += 1;
        }
        (false, read)
    }

    /// The low bits of a tag.
    fn low(&self, number: u64) -> u128 {
        let at = number * u64::from(self.label.layout.low);
        let from = &self.body[(at / 8) as usize..];
        let mut bytes = [0; 16];
        let length = from.len().min(16);
        bytes[..length].copy_from_slice(&from[..length]);
        u128::from_le_bytes(bytes) >> (at % 8) & ((1 << self.label.layout.low) - 1)
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Filter({} items, ..)", self.items())
    }
}

/// A number of eight bytes.
fn word(bytes: &[u8]) -> u64 {
    let bytes = bytes.first_chunk().expect("a number has 8 bytes");
    u64::from_le_bytes(*bytes)
}

#[cfg(test)]
pub(crate) mod counting;
#[cfg(test)]
mod tests {
    use volery_primitives::Block;
    use volery_primitives::prg::Prg;

    use super::super::voprf::GENERATOR;
    use super::*;

    impl Filter {
        fn contains(&self, output: u128) -> bool {
            self.find(output).0
        }
    }

    fn filter(items: usize, queries: u64) -> (Filter, Vec<u128>) {
        let mut rng = Prg::new(Block::ONE);
        let mut outputs: Vec<_> = (0..items).map(|_| u128::from(rng.block())).collect();
        outputs.sort_unstable();
        (Filter::new(GENERATOR, queries, &outputs), outputs)
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
                    let last = 128 - read.label.layout.bits();
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
    fn size() {
        // What the documentation says: two to three bits more than 40 and the queries.
        for items in [1000, 65_535, 65_536, 1_000_000, 100_000_000] {
            let layout = Layout::new(items, 1 << 20);
            let each = 8.0 * layout.bytes() as f64 / items as f64;
            assert!((61.5..63.1).contains(&each), "{items} {each}");
            assert_eq!(layout.bits(), 60 + items.next_power_of_two().ilog2());
        }
    }

    /// The right hash for other contents.
    fn relabel(filter: &mut Filter) {
        let mut hash = StreamHash::default();
        hash.update(&filter.body);
        filter.label.version = filter.label.hashed(&hash);
    }

    fn refused(bytes: &[u8], most: u64) -> String {
        let read = Filter::from_bytes(bytes, most);
        let label = Label::of_file(&mut &bytes[..], most);
        match read {
            // Only the coding of the tags is left to whoever looks them up.
            Err(Error::Filter(why)) if why.starts_with("its tags") => why.to_owned(),
            other if label.is_ok() => panic!("{other:?}"),
            Err(Error::Filter(why)) => why.to_owned(),
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
            assert_eq!(refused(&good[..length], 1 << 20), "it is cut off");
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
        assert_eq!(with(40, &(1_u64 << 31).to_le_bytes()), "it is cut off");
    }

    /// A file with the right hash, whose high parts are not those of as many tags.
    #[test]
    fn other_codings_are_refused() {
        let (filter, _) = filter(300, 1000);
        let lows = filter.label.layout.lows() as usize;
        let wrong = "its tags are not coded as its header says";
        for change in [0x01, 0x80] {
            let mut other = filter.clone();
            *other.body[lows..].last_mut().unwrap() ^= change;
            relabel(&mut other);
            assert_eq!(refused(&bytes(&other), 300), wrong, "{change}");
        }
        let mut none = filter.clone();
        none.body[lows..].fill(0);
        relabel(&mut none);
        assert_eq!(refused(&bytes(&none), 300), wrong);
    }

    /// Tags with one high part, so many that a lookup of it would take longer; and tags crowded
    /// into the high parts of one sample.
    #[test]
    fn tags_that_begin_alike_are_refused() {
        let crowded = |alike: u128, parts: u128| {
            // 1600 tags have 10 bits of high part.
            let tags = (0..1600_u128).map(|i| match i < alike * parts {
                true => (300 + i / alike) << 118 | (i % alike) << 100,
                false => (600 + (i - alike * parts) / 4) << 118 | (i % 4) << 100,
            });
            let tags: Vec<_> = tags.collect();
            Filter::from_bytes(&Filter::dishonest(GENERATOR, 1000, &tags), 1600)
        };
        assert!(crowded(64, 16).is_ok() && crowded(4, 200).is_ok());
        for (alike, parts) in [(65, 1), (64, 17)] {
            match crowded(alike, parts) {
                Err(Error::Filter(why)) => assert_eq!(why, UNEVEN),
                other => panic!("{other:?}"),
            }
        }
        // A byte of ones more, and runs that begin and end anywhere in a byte.
        for first in 0..16 {
            for (alike, even) in [(64, true), (65, false), (72, false)] {
                let before = (0..first).map(|i| (i as u128) << 122);
                let run = (0..alike).map(|i| 20 << 122 | i << 100);
                let after = (first..100 - alike as usize).map(|i| (28 + i as u128) << 122);
                let mut tags: Vec<_> = before.chain(run).chain(after).collect();
                tags.sort_unstable();
                let bytes = Filter::dishonest(GENERATOR, 1000, &tags);
                let read = Filter::from_bytes(&bytes, tags.len() as u64);
                assert_eq!(read.is_ok(), even, "{first} {alike}");
            }
        }
    }

    /// Any other contents are a set of tags, and no lookup leaves them.
    #[test]
    fn random_tags_never_panic() {
        let mut rng = Prg::new(Block::new(9));
        let (good, _) = filter(300, 1000);
        let (lows, length) = (good.label.layout.lows() as usize, good.label.layout.unary());
        let mut read = 0;
        for _ in 0..50 {
            let mut filter = good.clone();
            let unary = &mut filter.body[lows..];
            unary.fill(0);
            let mut left = 300;
            while left > 0 {
                // The last bit included, after which no zero follows.
                let place = rng.below(length);
                let (byte, bit) = ((place / 8) as usize, 1 << (place % 8));
                left -= usize::from(unary[byte] & bit == 0);
                unary[byte] |= bit;
            }
            relabel(&mut filter);
            if let Ok(filter) = Filter::from_bytes(&bytes(&filter), 300) {
                read += 1;
                for high in 0..256_u128 {
                    filter.contains(high << 120 | u128::from(rng.block()) >> 8);
                }
                filter.contains(u128::MAX);
            }
        }
        assert!(read > 0);
    }
}
