//! Preparing a set that does not fit into memory: outputs are sorted in runs, which are merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use rayon::prelude::*;

use super::filter::write_sorted;
use super::{Key, Label, MAX_QUERIES, check_lengths, evaluate};
use crate::error::{Error, Result};
use crate::items::Items;
use crate::params::MAX_ITEMS;

/// Outputs of a run, which are in memory until it is sorted.
const RUN: usize = 1 << 22;

/// Bytes of an output in a run.
const OUTPUT: usize = 16;

/// A file for a run, which nobody else reads, and which the system removes.
type Scratch<'a> = dyn FnMut() -> io::Result<File> + 'a;

/// A set that is prepared piece by piece. Memory: 64 MiB for a run of 2^22 items, 3 bits an item,
/// and a buffer for each run; and 32 bytes an item in files, from 2^22 items on.
pub struct SetBuilder<'a> {
    key: &'a Key,
    scratch: Box<Scratch<'a>>,
    run: usize,
    outputs: Vec<u128>,
    runs: Vec<File>,
    added: u64,
}

impl<'a> SetBuilder<'a> {
    /// Nothing yet. `scratch` makes an empty file, open for reading and writing.
    pub fn new(key: &'a Key, scratch: impl FnMut() -> io::Result<File> + 'a) -> Self {
        Self {
            key,
            scratch: Box::new(scratch),
            run: RUN,
            outputs: Vec::new(),
            runs: Vec::new(),
            added: 0,
        }
    }

    /// With shorter runs.
    #[cfg(test)]
    pub(super) fn with_run(mut self, run: usize) -> Self {
        self.run = run;
        self
    }

    /// Adds items, of which any number may be equal. All threads of the pool compute.
    ///
    /// # Errors
    /// [`Error::TooMany`] if there are more items than [`MAX_ITEMS`]; [`Error::LongItem`] if one is
    /// longer than 65535 bytes; if a file cannot be written.
    pub fn add(&mut self, items: &(impl Items + ?Sized)) -> Result<()> {
        check_lengths(items)?;
        self.added += items.len() as u64;
        if self.added > MAX_ITEMS {
            let (items, most) = (self.added, MAX_ITEMS);
            return Err(Error::TooMany { items, most });
        }
        let mut first = 0;
        while first < items.len() {
            let kept = self.outputs.len();
            let more = (items.len() - first).min(self.run - kept);
            self.outputs.resize(kept + more, 0);
            evaluate(self.key, items, first, &mut self.outputs[kept..]);
            first += more;
            if self.outputs.len() == self.run {
                self.spill()?;
            }
        }
        Ok(())
    }

    /// The number of items added, equal ones included.
    pub const fn added(&self) -> u64 {
        self.added
    }

    fn sort(&mut self) {
        self.outputs.par_sort_unstable();
        self.outputs.dedup();
    }

    fn spill(&mut self) -> Result<()> {
        self.sort();
        let mut file = BufWriter::new((self.scratch)()?);
        for output in &self.outputs {
            file.write_all(&output.to_be_bytes())?;
        }
        self.outputs.clear();
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        self.runs.push(file);
        Ok(())
    }

    /// Writes the filter to a file, which is empty; `queries` as in [`prepare`](super::prepare).
    /// Panics as [`prepare`](super::prepare) does.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn finish(mut self, queries: u64, file: &mut (impl Write + Seek)) -> Result<Label> {
        assert!((1..=MAX_QUERIES).contains(&queries), "a number of queries");
        let public = *self.key.public();
        if self.runs.is_empty() {
            self.sort();
            let items = self.outputs.len() as u64;
            let outputs = self.outputs.iter().copied().map(Ok);
            return write_sorted((public, items, queries), outputs, file);
        }
        if !self.outputs.is_empty() {
            self.spill()?;
        }
        self.outputs = Vec::new();
        // The number of different outputs must be known before the first is coded.
        let mut merged = BufWriter::new((self.scratch)()?);
        let mut items = 0;
        for output in Merge::new(std::mem::take(&mut self.runs))? {
            merged.write_all(&output?.to_be_bytes())?;
            items += 1;
        }
        let merged = merged.into_inner().map_err(io::IntoInnerError::into_error)?;
        let outputs = Merge::new(vec![merged])?;
        write_sorted((public, items, queries), outputs, file)
    }
}

/// The outputs of several runs in ascending order, equal ones once.
struct Merge {
    runs: Vec<BufReader<File>>,
    next: BinaryHeap<Reverse<(u128, usize)>>,
    last: Option<u128>,
}

impl Merge {
    fn new(runs: Vec<File>) -> io::Result<Self> {
        let mut merge = Self { runs: Vec::new(), next: BinaryHeap::new(), last: None };
        for mut run in runs {
            run.seek(SeekFrom::Start(0))?;
            merge.runs.push(BufReader::with_capacity(1 << 16, run));
            merge.advance(merge.runs.len() - 1)?;
        }
        Ok(merge)
    }

    /// Takes the next output of a run, if there is one.
    fn advance(&mut self, run: usize) -> io::Result<()> {
        let mut output = [0; OUTPUT];
        match self.runs[run].read_exact(&mut output) {
            Ok(()) => self.next.push(Reverse((u128::from_be_bytes(output), run))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Iterator for Merge {
    type Item = io::Result<u128>;

    fn next(&mut self) -> Option<io::Result<u128>> {
        loop {
            let Reverse((output, run)) = self.next.pop()?;
            if let Err(error) = self.advance(run) {
                return Some(Err(error));
            }
            if self.last.replace(output) != Some(output) {
                return Some(Ok(output));
            }
        }
    }
}
