//! Many byte strings in one piece of memory.

use std::fmt;

/// A list of byte strings: their bytes one after the other, and where each ends.
///
/// A string costs its length and 8 bytes. `Debug` shows how many there are, and none of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ByteStrings {
    bytes: Vec<u8>,
    /// `ends[i]` is where string `i` ends in `bytes`. What lies behind the last end is a string not yet finished.
    ends: Vec<u64>,
}

impl fmt::Debug for ByteStrings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ByteStrings({}, ..)", self.ends.len())
    }
}

impl ByteStrings {
    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// String `i`, counted from 0.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    pub fn get(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start as usize..self.ends[i] as usize]
    }

    /// All strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|i| self.get(i))
    }

    /// The bytes of all strings together.
    pub fn total_bytes(&self) -> u64 {
        self.committed() as u64
    }

    /// Appends a string.
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.commit();
    }

    /// Where a string is built, in place; only what is appended belongs to it.
    /// It counts from [`commit`](Self::commit) on, and [`roll_back`](Self::roll_back) takes it away.
    pub(crate) fn open(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The string being built.
    pub(crate) fn opened(&self) -> &[u8] {
        &self.bytes[self.committed()..]
    }

    pub(crate) fn commit(&mut self) {
        self.ends.push(self.bytes.len() as u64);
    }

    pub(crate) fn roll_back(&mut self) {
        self.bytes.truncate(self.committed());
    }

    /// Gives back the memory that growing has set aside.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    fn committed(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize)
    }
}

impl<S: AsRef<[u8]>> FromIterator<S> for ByteStrings {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        let mut list = Self::default();
        for string in strings {
            list.push(string.as_ref());
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_string() {
        let mut strings = ByteStrings::default();
        strings.push(b"secret");
        assert_eq!(format!("{strings:?}"), "ByteStrings(1, ..)");
    }

    #[test]
    fn strings_come_back_and_unfinished_ones_do_not_count() {
        let mut list: ByteStrings = ["a", "", "bc"].into_iter().collect();
        list.open().extend_from_slice(b"left out");
        assert_eq!(list.opened(), b"left out");
        list.roll_back();
        list.open().extend_from_slice(b"d");
        list.commit();
        assert_eq!(
            list.iter().collect::<Vec<_>>(),
            [&b"a"[..], b"", b"bc", b"d"]
        );
        assert_eq!((list.len(), list.total_bytes()), (4, 4));
        assert!(!list.is_empty() && ByteStrings::default().is_empty());
    }
}
