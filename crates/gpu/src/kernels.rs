//! The steps of a round on a card. Each is that of the same name elsewhere: trees of
//! `volery_pcg::ggm`, the code of `volery_lpn`, the sums of `volery_pcg::check`, the hash of
//! `volery_primitives::hash::Tweaked`.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytemuck::{Pod, Zeroable, bytes_of, cast_slice, cast_slice_mut};
use volery_primitives::Block;
use zeroize::Zeroizing;

use crate::{Blocks, Device, Memory, Part, Pinned, Result, Upload};

/// Threads of a block of most kernels.
const THREADS: u32 = 256;
/// Bytes of the table of AES in shared memory.
const TABLE: u32 = 4 * 256 * 32;
/// Bytes of round keys.
const KEYS: u32 = 16 * 11;
/// Warps of a block.
const WARPS: u32 = THREADS / 32;

/// The leaves of half-trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// Two that add up to their parent, without their lowest bits: of correlated OT.
    Correlated,
    /// `H(s)` and `H(s + 1)`: of vector OLE over `gf128`.
    Hashed,
    /// The words of `H(s)`, modulo `2^61 - 1`: of vector OLE over `fp61`.
    Words,
}

impl Leaf {
    /// Bytes of a leaf.
    const fn bytes(self) -> usize {
        match self {
            Self::Correlated | Self::Hashed => 16,
            Self::Words => 8,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Correlated => "correlated",
            Self::Hashed => "hashed",
            Self::Words => "words",
        }
    }
}

/// The parameter of the kernels of trees.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct TreesArgument {
    trees: u32,
    depth: u32,
    keys: u64,
    schedules: u64,
    nodes: u64,
    levels: u64,
    right: u64,
    parents: u64,
    leaves: u64,
    alphas: u64,
    opened: u64,
    totals: u64,
}

/// Half-trees of one depth, with the leaves of one party.
pub struct Trees {
    device: Device,
    leaf: Leaf,
    trees: usize,
    depth: u32,
    /// Of trees that are grown together the keys; the roots and delta, or the opened levels; the
    /// totals; the missing leaves.
    inputs: Upload<Block>,
    schedules: Memory<Block>,
    nodes: Memory<Block>,
    leaves: Memory<u64>,
    /// The levels, right leaves and parents; the counter of `bottom`.
    sums: Memory<Block>,
    /// The sums of the levels and right leaves, in memory of this machine.
    out: Pinned<Block>,
    check: Mutex<Check>,
}

/// Memory for the sums of the check.
struct Check {
    coefficients: Upload<Block>,
    operands: Memory<Block>,
    sums: Memory<Block>,
    out: Pinned<Block>,
}

/// Values that punctured trees are grown from, in memory from which the card takes them: a key,
/// leaf and total for each tree, and a sum for each level.
pub struct TreeInputs<'a> {
    /// The keys.
    pub keys: &'a mut [Block],
    /// The missing leaves.
    pub alphas: &'a mut [u32],
    /// The sums of the sides that the paths do not take, those of a tree together.
    pub opened: &'a mut [Block],
    /// The totals.
    pub totals: &'a mut [Block],
}

impl Trees {
    /// The depths of trees that a card grows.
    pub const DEPTHS: Range<u32> = 9..13;

    /// Memory for so many trees of that depth.
    ///
    /// # Panics
    /// If the depth is not one of [`DEPTHS`](Self::DEPTHS).
    ///
    /// # Errors
    /// If memory is not free, or the card fails.
    pub fn new(device: &Device, leaf: Leaf, depth: u32, trees: usize) -> Result<Self> {
        assert!(Self::DEPTHS.contains(&depth), "a depth that there are kernels for");
        let (levels, size) = (trees * depth as usize, 1 << depth);
        Ok(Self {
            device: device.clone(),
            leaf,
            trees,
            depth,
            inputs: Upload::zeroed(device, levels + 3 * trees)?,
            schedules: Memory::zeroed(device, trees * 11)?,
            nodes: Memory::zeroed(device, trees << (depth - 3))?,
            leaves: Memory::zeroed(device, (trees << depth) * leaf.bytes() / 8)?,
            sums: Memory::zeroed(device, levels + 2 * trees + 1)?,
            out: Pinned::zeroed(device, levels + trees)?,
            check: Mutex::new(Check {
                coefficients: Upload::zeroed(device, size)?,
                operands: Memory::zeroed(device, size)?,
                sums: Memory::zeroed(device, trees)?,
                out: Pinned::zeroed(device, trees)?,
            }),
        })
    }

    /// The number of trees.
    #[must_use]
    pub fn trees(&self) -> usize {
        self.trees
    }

    /// The place of the inputs of trees from `first` on.
    fn input(&self, first: usize) -> usize {
        first * (self.depth as usize + 3)
    }

    fn argument(&self, part: Range<usize>) -> TreesArgument {
        let (count, levels) = (part.len(), part.len() * self.depth as usize);
        let sum = |place: usize| self.sums.address() + 16 * place as u64;
        let first = self.input(part.start);
        let input = |place: usize| self.inputs.address() + 16 * (first + place) as u64;
        TreesArgument {
            trees: count as u32,
            depth: self.depth,
            keys: input(0),
            schedules: self.schedules.address(),
            nodes: self.nodes.address(),
            levels: sum(0),
            right: sum(levels),
            parents: sum(levels + count),
            leaves: self.leaves.address() + ((part.start << self.depth) * self.leaf.bytes()) as u64,
            opened: input(count),
            totals: input(count + levels),
            alphas: input(2 * count + levels),
        }
    }

    /// The trees under `roots`, the left nodes of level 1, whose levels add up to `delta`, with an
    /// AES key each. Returns the sums of the left nodes of all levels of each tree in turn, and
    /// then the sums of the right leaves, of which those of correlated trees are zero. Sums of
    /// words are below 2^64 and not reduced.
    ///
    /// # Panics
    /// If there is not one root and one key for each tree.
    ///
    /// # Errors
    /// If the card fails.
    pub fn grow(
        &mut self,
        keys: &[Block],
        roots: &[Block],
        delta: Block,
    ) -> Result<(&[Block], &[Block])> {
        assert_eq!(roots.len(), self.trees, "a root for each tree");
        assert_eq!(keys.len(), self.trees, "a key for each tree");
        self.inputs.send(0, 2 * self.trees + 1, |inputs| {
            let (first, rest) = inputs.split_at_mut(keys.len());
            let (second, last) = rest.split_at_mut(roots.len());
            first.copy_from_slice(keys);
            second.copy_from_slice(roots);
            last.copy_from_slice(&[delta]);
        })?;
        // In the place of the opened levels.
        let all = self.argument(0..self.trees);
        self.launch(&all, "", &[bytes_of(&all.opened)])?;
        let levels = self.trees * self.depth as usize;
        // Of correlated trees without the zeros.
        let sums = if self.leaf == Leaf::Correlated { levels } else { self.out.len() };
        self.sums.read(0, &mut self.out[..sums])?;
        Ok(self.out.split_at(levels))
    }

    /// `count` trees from `first` on but for one leaf of each, from what `write` puts in the memory
    /// from which the card takes it. Every value is to be written: some of other trees may be
    /// there. The missing leaf of a correlated tree is the sum of the others, with its lowest bit
    /// set; other leaves are the total without the others.
    ///
    /// # Panics
    /// If the object does not have these trees, or the trees not these leaves.
    ///
    /// # Errors
    /// If the card fails.
    pub fn grow_punctured(
        &mut self,
        first: usize,
        count: usize,
        write: impl FnOnce(TreeInputs<'_>),
    ) -> Result<()> {
        assert!(first + count <= self.trees, "trees of this object");
        let (depth, levels) = (self.depth, count * self.depth as usize);
        let all = levels + 2 * count + count.div_ceil(4);
        self.inputs.send(self.input(first), all, |inputs| {
            let (keys, rest) = inputs.split_at_mut(count);
            let (opened, rest) = rest.split_at_mut(levels);
            let (totals, rest) = rest.split_at_mut(count);
            let alphas = &mut cast_slice_mut(rest)[..count];
            write(TreeInputs { keys, alphas: &mut *alphas, opened, totals });
            assert!(alphas.iter().all(|alpha| *alpha < 1 << depth), "leaves of the trees");
        })?;
        let part = self.argument(first..first + count);
        self.launch(&part, "_punctured", &[])?;
        let mend = format!("mend_{}", self.leaf.name());
        let (threads, shared) = (Blocks::ForThreads(count), TABLE + 64 * KEYS);
        self.device.launch(&mend, threads, 64, shared, &[bytes_of(&part)])
    }

    /// The levels of these trees.
    fn launch(&mut self, part: &TreesArgument, which: &str, roots: &[&[u8]]) -> Result<()> {
        // The sums of three levels, right leaves, parents and the counter begin with zero.
        self.sums.clear()?;
        let top = format!("top_{}{which}", self.depth - 8);
        let arguments = [&[bytes_of(part)], roots].concat();
        let shared = TABLE + 2 * WARPS * KEYS;
        self.device.launch(&top, Blocks::All, THREADS, shared, &arguments)?;
        let bottom = format!("bottom_{}{which}", self.leaf.name());
        let counter = part.parents + 16 * u64::from(part.trees);
        let arguments = [bytes_of(part), bytes_of(&counter)];
        self.device.launch(&bottom, Blocks::All, THREADS, TABLE + WARPS * KEYS, &arguments)
    }

    fn check(&self) -> MutexGuard<'_, Check> {
        self.check.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sum of the leaves of each tree times the coefficients of their places, over
    /// `GF(2^128)`.
    ///
    /// # Panics
    /// If there is not one coefficient for each leaf of a tree, or the leaves are words.
    ///
    /// # Errors
    /// If the card fails.
    pub fn inner_products(&self, coefficients: &[Block]) -> Result<Zeroizing<Vec<Block>>> {
        assert_eq!(coefficients.len(), 1 << self.depth, "a coefficient for each leaf");
        assert!(self.leaf != Leaf::Words, "leaves in GF(2^128)");
        let Check { coefficients: places, operands, sums, out } = &mut *self.check();
        places.send(0, coefficients.len(), |places| places.copy_from_slice(coefficients))?;
        let (from, to) = (places.address(), operands.address());
        let count = coefficients.len() as u32;
        let arguments = [bytes_of(&from), bytes_of(&to), bytes_of(&count)];
        let threads = Blocks::ForThreads(4 * coefficients.len());
        self.device.launch("check_operands", threads, THREADS, 0, &arguments)?;
        let (leaves, at) = (self.leaves.address(), sums.address());
        let trees = self.trees as u32;
        let arguments =
            [bytes_of(&leaves), bytes_of(&to), bytes_of(&at), bytes_of(&trees), bytes_of(&count)];
        self.device.launch("check_128", Blocks::All, 128, 0, &arguments)?;
        sums.read(0, out)?;
        Ok(Zeroizing::new(out.to_vec()))
    }

    /// Likewise modulo `2^61 - 1`, for two coefficients of each place: the two sums of each tree.
    ///
    /// # Panics
    /// If there are not two coefficients for each leaf of a tree, or the leaves are not words.
    ///
    /// # Errors
    /// If the card fails.
    pub fn inner_products_61(&self, coefficients: [&[u64]; 2]) -> Result<Zeroizing<Vec<[u64; 2]>>> {
        let size = 1 << self.depth;
        assert!(coefficients.iter().all(|places| places.len() == size), "one for each leaf");
        assert!(self.leaf == Leaf::Words, "leaves modulo 2^61 - 1");
        let Check { coefficients: places, sums, out, .. } = &mut *self.check();
        places.send(0, size, |places| {
            let (first, second) = cast_slice_mut(places).split_at_mut(size);
            first.copy_from_slice(coefficients[0]);
            second.copy_from_slice(coefficients[1]);
        })?;
        let (leaves, from, to) = (self.leaves.address(), places.address(), sums.address());
        let (trees, size) = (self.trees as u32, size as u32);
        let arguments =
            [bytes_of(&leaves), bytes_of(&from), bytes_of(&to), bytes_of(&trees), bytes_of(&size)];
        self.device.launch("check_61", Blocks::All, THREADS, 0, &arguments)?;
        sums.read(0, out)?;
        Ok(Zeroizing::new(cast_slice(out).to_vec()))
    }

    /// The leaves, for tests.
    ///
    /// # Errors
    /// If the card fails.
    pub fn leaves(&self) -> Result<Zeroizing<Vec<u64>>> {
        let mut leaves = Zeroizing::new(vec![0; self.leaves.len()]);
        self.leaves.read(0, &mut leaves)?;
        Ok(leaves)
    }
}

/// The outputs of a party, and so the entries of the table that they are sums of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Blocks of a correlated OT.
    Cot,
    /// `w` over `gf128`.
    Key128,
    /// `u` and `v` over `gf128`.
    Pairs128,
    /// `w` over `fp61`.
    Key61,
    /// `u` and `v` over `fp61`.
    Pairs61,
}

impl Entry {
    const fn name(self) -> &'static str {
        match self {
            Self::Cot => "cot",
            Self::Key128 => "key_128",
            Self::Pairs128 => "pairs_128",
            Self::Key61 => "key_61",
            Self::Pairs61 => "pairs_61",
        }
    }

    /// Words of 64 bits of an entry.
    #[must_use]
    pub const fn words(self) -> usize {
        match self {
            Self::Key61 => 1,
            Self::Cot | Self::Key128 | Self::Pairs61 => 2,
            Self::Pairs128 => 4,
        }
    }
}

/// Memory for outputs of a range.
pub enum Outputs<'a> {
    /// Entries.
    Entries(Part<'a, u64>),
    /// The `u` and `v` of pairs, apart.
    Apart(Part<'a, u64>, Part<'a, u64>),
}

impl Outputs<'_> {
    /// The number of entries that there is memory for.
    #[must_use]
    pub fn count(&self, entry: Entry) -> usize {
        match self {
            Self::Entries(all) => all.len() / entry.words(),
            Self::Apart(u, _) => u.len() / (entry.words() / 2),
        }
    }

    /// The memory of the first `at` entries, and that of the others.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn split_at(self, entry: Entry, at: usize) -> (Self, Self) {
        match self {
            Self::Entries(all) => {
                let (first, rest) = all.split_at(at * entry.words());
                (Self::Entries(first), Self::Entries(rest))
            }
            Self::Apart(u, v) => {
                let half = at * entry.words() / 2;
                let ((u, u_rest), (v, v_rest)) = (u.split_at(half), v.split_at(half));
                (Self::Apart(u, v), Self::Apart(u_rest, v_rest))
            }
        }
    }

    /// The memory again, for a shorter time.
    pub fn again(&mut self) -> Outputs<'_> {
        match self {
            Self::Entries(all) => Outputs::Entries(all.again()),
            Self::Apart(u, v) => Outputs::Apart(u.again(), v.again()),
        }
    }

    /// Sets all to zero, and waits for it.
    ///
    /// # Errors
    /// If the card fails.
    pub fn wipe(&mut self, device: &Device) -> Result<()> {
        match self {
            Self::Entries(all) => all.wipe(device),
            Self::Apart(u, v) => u.wipe(device).and(v.wipe(device)),
        }
    }

    /// The addresses of the first `u` and `v`, the bytes from one to the next, and how many
    /// there are.
    fn places(&self, device: &Device, entry: Entry) -> (u64, u64, u32, usize) {
        let words = entry.words();
        let pair = matches!(entry, Entry::Pairs61 | Entry::Pairs128);
        let alignment = match entry {
            Entry::Key61 | Entry::Pairs61 => 8,
            Entry::Cot | Entry::Key128 | Entry::Pairs128 => 16,
        };
        match self {
            Self::Entries(all) => all.assert_on(device, alignment),
            Self::Apart(u, v) => {
                [u, v].into_iter().for_each(|one| one.assert_on(device, alignment))
            }
        }
        match self {
            Self::Entries(all) => {
                assert!(all.len().is_multiple_of(words), "whole entries");
                let second = if pair { 4 * words as u64 } else { 0 };
                (all.address(), all.address() + second, 8 * words as u32, all.len() / words)
            }
            Self::Apart(u, v) => {
                assert!(pair && u.len() == v.len(), "u and v of pairs");
                (u.address(), v.address(), 4 * words as u32, u.len() / (words / 2))
            }
        }
    }
}

/// The parameter of the kernels of the code.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct CodeArgument {
    keys: u64,
    rows: u32,
    depth: u32,
    first: u64,
    end: u64,
    leaves: u64,
    table: u64,
    u: u64,
    v: u64,
    stride: u32,
    unused: u32,
}

/// The noise of a value holder of a vector OLE, on a card.
struct Noise {
    places: Memory<u64>,
    values: Memory<Block>,
}

/// The code of a round with its table: the base correlations of all instances.
pub struct Code {
    entry: Entry,
    instances: usize,
    rows: usize,
    keys: Memory<Block>,
    noise: Option<Noise>,
}

impl Code {
    /// The code of that seed for so many instances, each with `rows` rows.
    ///
    /// # Panics
    /// If the rows are not a power of two up to 2^21, or the instances not 1, 2 or 4.
    ///
    /// # Errors
    /// If memory is not free, or the card fails.
    pub fn new(
        device: &Device,
        entry: Entry,
        seed: Block,
        instances: usize,
        rows: usize,
    ) -> Result<Self> {
        assert!(rows.is_power_of_two() && rows <= 1 << 21, "a power of two of rows");
        assert!(matches!(instances, 1 | 2 | 4), "1, 2 or 4 instances");
        let (key, keys) = (Memory::of(device, &[seed])?, Memory::zeroed(device, 11)?);
        let (from, to) = (key.address(), keys.address());
        let arguments = [bytes_of(&from), bytes_of(&to)];
        device.launch("key_schedule", Blocks::ForThreads(1), 32, TABLE, &arguments)?;
        Ok(Self { entry, instances, rows, keys, noise: None })
    }

    /// Adds values to the `u` at these places.
    ///
    /// # Panics
    /// If there is not one value for each place, or outputs have no `u`.
    ///
    /// # Errors
    /// If memory is not free, or the card fails.
    pub fn with_noise(mut self, places: &[u64], values: &[Block]) -> Result<Self> {
        assert_eq!(places.len(), values.len(), "a value for each place");
        assert!(matches!(self.entry, Entry::Pairs61 | Entry::Pairs128), "outputs with u");
        let device = self.keys.device();
        let noise =
            Noise { places: Memory::of(device, places)?, values: Memory::of(device, values)? };
        self.noise = Some(noise);
        Ok(self)
    }

    /// The outputs from `first` on, as many as there is memory for, of a round with these trees and
    /// this table.
    ///
    /// # Panics
    /// If the table or the trees have fewer, or the trees do not belong to such entries; if the
    /// memory is of another card, or entries are not aligned.
    ///
    /// # Errors
    /// If the card fails.
    pub fn encode(
        &self,
        table: &Memory<u64>,
        trees: &Trees,
        first: usize,
        out: &mut Outputs<'_>,
    ) -> Result<()> {
        let leaf = match self.entry {
            Entry::Cot => Leaf::Correlated,
            Entry::Key128 | Entry::Pairs128 => Leaf::Hashed,
            Entry::Key61 | Entry::Pairs61 => Leaf::Words,
        };
        assert_eq!(trees.leaf, leaf, "leaves for these entries");
        assert!(trees.trees.is_multiple_of(self.instances), "trees of all instances");
        assert!(table.len() >= self.rows * self.instances * self.entry.words(), "a whole table");
        let (u, v, stride, count) = out.places(&trees.device, self.entry);
        let end = first + count;
        assert!(end <= trees.trees << trees.depth, "outputs of the round");
        if count == 0 {
            return Ok(());
        }
        let argument = CodeArgument {
            keys: self.keys.address(),
            rows: self.rows as u32,
            depth: trees.depth,
            first: first as u64,
            end: end as u64,
            leaves: trees.leaves.address(),
            table: table.address(),
            u,
            v,
            stride,
            unused: 0,
        };
        let name = format!("encode_{}_{}", self.entry.name(), self.instances);
        // The indices and factors of 96 columns.
        let scratch = 96 * if leaf == Leaf::Hashed { 40 + 16 } else { 40 };
        let shared = TABLE + WARPS * scratch;
        let device = &trees.device;
        device.launch(&name, Blocks::All, THREADS, shared, &[bytes_of(&argument)])?;
        let Some(noise) = &self.noise else { return Ok(()) };
        let (places, values) = (noise.places.address(), noise.values.address());
        let (count, words) = (noise.places.len() as u32, u32::from(self.entry == Entry::Pairs61));
        let arguments = [
            bytes_of(&u),
            bytes_of(&stride),
            bytes_of(&argument.first),
            bytes_of(&argument.end),
            bytes_of(&places),
            bytes_of(&values),
            bytes_of(&count),
            bytes_of(&words),
        ];
        device.launch("add_noise", Blocks::ForThreads(count as usize), THREADS, 0, &arguments)
    }
}

/// A bit of each block, packed, lowest first; places after the last are zero.
///
/// # Panics
/// If there is no such bit, or not memory for one of each block, in whole words.
///
/// # Errors
/// If the card fails.
pub fn take_bits(
    device: &Device,
    blocks: &Part<'_, Block>,
    bit: u8,
    out: &mut Part<'_, u32>,
) -> Result<()> {
    assert!(bit < 128, "a bit of a block");
    blocks.assert_on(device, 16);
    out.assert_on(device, 4);
    assert_eq!(out.len(), blocks.len().div_ceil(32), "a bit for each block");
    let (from, to, count) = (blocks.address(), out.address(), blocks.len() as u64);
    let bit = u32::from(bit);
    let arguments = [bytes_of(&from), bytes_of(&to), bytes_of(&count), bytes_of(&bit)];
    device.launch("take_bits", Blocks::ForThreads(blocks.len()), THREADS, 0, &arguments)
}

/// Exchanges bit `other` of each block with its lowest.
///
/// # Panics
/// If there is no such bit.
///
/// # Errors
/// If the card fails.
pub fn exchange_bit(device: &Device, blocks: &mut Part<'_, Block>, other: u8) -> Result<()> {
    assert!(other < 128, "a bit of a block");
    blocks.assert_on(device, 16);
    let (at, count, other) = (blocks.address(), blocks.len() as u64, u32::from(other));
    let arguments = [bytes_of(&at), bytes_of(&count), bytes_of(&other)];
    device.launch("exchange_bit", Blocks::ForThreads(blocks.len()), THREADS, 0, &arguments)
}

/// The messages that an OT receiver chose, from its correlated OTs number `first` on, in place.
///
/// # Errors
/// If the card fails.
pub fn hash_chosen(
    device: &Device,
    start: Block,
    first: u64,
    blocks: &mut Part<'_, Block>,
) -> Result<()> {
    blocks.assert_on(device, 16);
    let (at, count) = (blocks.address(), blocks.len() as u64);
    let arguments =
        [bytes_of(&at), bytes_of(&at), bytes_of(&count), bytes_of(&start), bytes_of(&first)];
    device.launch("hash_chosen", Blocks::All, THREADS, TABLE, &arguments)
}

/// Both messages of an OT sender, from its correlated OTs number `first` on.
///
/// # Panics
/// If there is not memory for two messages of each.
///
/// # Errors
/// If the card fails.
pub fn hash_pairs(
    device: &Device,
    start: Block,
    first: u64,
    delta: Block,
    blocks: &Part<'_, Block>,
    out: &mut Part<'_, Block>,
) -> Result<()> {
    assert_eq!(out.len(), 2 * blocks.len(), "two messages of each OT");
    blocks.assert_on(device, 16);
    out.assert_on(device, 16);
    let (from, to, count) = (blocks.address(), out.address(), blocks.len() as u64);
    let arguments = [
        bytes_of(&from),
        bytes_of(&to),
        bytes_of(&count),
        bytes_of(&start),
        bytes_of(&first),
        bytes_of(&delta),
    ];
    device.launch("hash_pairs", Blocks::All, THREADS, TABLE, &arguments)
}
