//! The matching rows of this side: which rows, by which rule, with which payload.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use volery_tables::PayloadSchema;

use crate::error::{Error, Result};
use crate::system;

/// Rows of a range whose matches are in memory at one time.
const RANGE: u64 = 1 << 21;

/// A matching row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Match {
    /// The row, counted from 0.
    pub(crate) row: u64,
    /// The rule, counted from 0.
    pub(crate) rule: u8,
    /// Where the payload is.
    start: usize,
    length: u16,
}

/// Appends a match to the bytes in which the matches of a part are kept.
pub fn append(out: &mut Vec<u8>, row: u64, payload: &[u8]) {
    out.extend_from_slice(&row.to_le_bytes());
    out.extend_from_slice(&(payload.len() as u16).to_le_bytes());
    out.extend_from_slice(payload);
}

/// The matches in such bytes: rows and payload. Stops at the first that is cut short.
pub(crate) fn parse(mut bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        let (row, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (payload, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        bytes = rest;
        Some((u64::from_le_bytes(*row), payload))
    })
}

/// A set of rows, a bit each.
#[derive(Clone, Debug, Default)]
pub struct RowSet {
    words: Vec<u64>,
}

impl RowSet {
    /// No rows, of so many.
    pub fn new(rows: u64) -> Self {
        Self { words: vec![0; rows.div_ceil(64) as usize] }
    }

    /// Whether the row is in the set.
    pub fn contains(&self, row: u64) -> bool {
        let word = self.words.get((row / 64) as usize);
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// The rows, ascending.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u64> + '_ {
        let words = self.words.iter().zip((0_u64..).step_by(64));
        words.flat_map(|(&word, first)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| first + bit)
        })
    }

    /// Adds a row; whether it is new.
    pub fn insert(&mut self, row: u64) -> bool {
        let new = !self.contains(row);
        if let Some(word) = self.words.get_mut((row / 64) as usize) {
            *word |= 1 << (row % 64);
        }
        new
    }
}

/// All matches, range by range of rows: in memory, or in files where a folder is named.
pub(crate) struct MatchCollection {
    rows: u64,
    /// For each range the rules, and the matches as in [`append`].
    ranges: Vec<Vec<u8>>,
    folder: Option<PathBuf>,
    /// The rows with a match.
    pub(crate) set: RowSet,
    /// Matching rows by rule.
    pub(crate) by_rule: Vec<u64>,
}

impl MatchCollection {
    pub(crate) fn new(rows: u64, rules: usize, folder: Option<PathBuf>) -> Result<Self> {
        // In memory there is no reason for more than one range.
        let range = if folder.is_some() { RANGE } else { u64::MAX };
        let new = Self {
            rows,
            ranges: vec![Vec::new(); rows.div_ceil(range).max(1) as usize],
            folder,
            set: RowSet::new(rows),
            by_rule: vec![0; rules],
        };
        // An attempt that was killed left its own, the last match of which may be cut short.
        for path in (0..new.ranges.len()).filter_map(|range| new.path(range)) {
            match volery_os::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::work(&path)(error));
                }
                _ => {}
            }
        }
        Ok(new)
    }

    fn range(&self) -> u64 {
        match self.folder {
            Some(_) => RANGE,
            None => u64::MAX,
        }
    }

    /// Takes the matches of a part; rows that had matched before keep their first match.
    pub(crate) fn take(&mut self, rule: usize, found: &[u8]) -> Result<()> {
        /// Bytes of a range that are collected before they are written.
        const PIECE: usize = 1 << 20;
        for (row, payload) in parse(found) {
            if row >= self.rows || !self.set.insert(row) {
                continue;
            }
            self.by_rule[rule] += 1;
            let range = (row / self.range()) as usize;
            let bytes = &mut self.ranges[range];
            bytes.push(rule as u8);
            append(bytes, row, payload);
            if self.folder.is_some() && bytes.len() > PIECE {
                self.write(range)?;
            }
        }
        Ok(())
    }

    fn path(&self, range: usize) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        Some(folder.join(format!("found-rows-{range}")))
    }

    fn write(&mut self, range: usize) -> Result<()> {
        let Some(path) = self.path(range) else {
            return Ok(());
        };
        let append = |bytes: &[u8]| -> io::Result<()> {
            let mut options = system::private_file();
            let mut file: File = options.create(true).append(true).open(&path)?;
            file.write_all(bytes)
        };
        append(&self.ranges[range]).map_err(Error::work(&path))?;
        self.ranges[range] = Vec::new();
        Ok(())
    }

    pub(crate) fn total(&self) -> u64 {
        self.by_rule.iter().sum()
    }

    /// Calls `each` with the matches of ranges that follow each other, in the order of the rows.
    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor { all: self, range: 0, bytes: Vec::new(), matches: Vec::new(), next: 0 }
    }
}

/// The matching rows of this side.
pub struct Matches {
    pub(crate) collected: MatchCollection,
    /// The columns that the sender's payload has.
    pub(crate) payload: Option<PayloadSchema>,
}

impl Matches {
    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.collected.total()
    }

    /// Number of rows by the rule that they matched by first.
    pub fn by_rule(&self) -> &[u64] {
        &self.collected.by_rule
    }
}

/// Reads matches in the order of their rows.
pub(crate) struct Cursor<'a> {
    all: &'a MatchCollection,
    /// The range that comes next.
    range: usize,
    bytes: Vec<u8>,
    matches: Vec<Match>,
    next: usize,
}

impl Cursor<'_> {
    /// The match of this row, if there is one: rows are asked for in ascending order.
    pub(crate) fn find(&mut self, row: u64) -> Result<Option<(Match, &[u8])>> {
        while (row / self.all.range()) as usize >= self.range && self.range < self.all.ranges.len()
        {
            self.load()?;
        }
        while self.matches.get(self.next).is_some_and(|one| one.row < row) {
            self.next += 1;
        }
        let found = self.matches.get(self.next).filter(|one| one.row == row);
        Ok(found.map(|&one| {
            let start = one.start;
            (one, &self.bytes[start..start + usize::from(one.length)])
        }))
    }

    fn load(&mut self) -> Result<()> {
        let range = self.range;
        self.range += 1;
        self.bytes.clear();
        if let Some(path) = self.all.path(range)
            && path.exists()
        {
            self.bytes = std::fs::read(&path).map_err(Error::work(&path))?;
        }
        self.bytes.extend_from_slice(&self.all.ranges[range]);
        (self.matches, self.next) = (Vec::new(), 0);
        let mut at = 0;
        while let Some((&rule, rest)) = self.bytes[at..].split_first() {
            let Some((row, payload)) = parse(rest).next() else {
                break;
            };
            let start = at + 1 + 10;
            self.matches.push(Match { row, rule, start, length: payload.len() as u16 });
            at = start + payload.len();
        }
        self.matches.sort_unstable();
        Ok(())
    }
}
