//! Many byte strings in one allocation.

use std::fmt;

/// A list of byte strings: their concatenated bytes and the end of each string.
///
/// A string costs its length and 8 bytes. `Debug` shows only their number.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ByteStrings {
    bytes: Vec<u8>,
    /// `ends[i]` is the end of string `i` in `bytes`. The bytes after the last end are an
    /// unfinished string.
    ends: Vec<u64>,
}

impl fmt::Debug for ByteStrings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ByteStrings({}, ..)", self.ends.len())
    }
}

impl ByteStrings {
    /// The number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no strings.
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

    /// Appends a string.
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.commit();
    }

    /// The buffer for building a string in place; only appended bytes belong to it.
    /// [`commit`](Self::commit) adds the string to the list.
    pub(crate) fn open(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(crate) fn commit(&mut self) {
        self.ends.push(self.bytes.len() as u64);
    }

    /// Frees the unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
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
    fn strings_come_back() {
        let mut list: ByteStrings = ["a", "", "bc"].into_iter().collect();
        list.open().extend_from_slice(b"d");
        list.commit();
        assert_eq!(list.iter().collect::<Vec<_>>(), [&b"a"[..], b"", b"bc", b"d"]);
        assert!(list.len() == 4 && !list.is_empty() && ByteStrings::default().is_empty());
    }
}
