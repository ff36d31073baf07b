//! Steps 2 to 6: the oblivious evaluation of a batch of bins, by either party.

use std::ops::Range;
use std::time::Duration;

use rayon::prelude::*;
use volery_channel::{Channel, Role, SessionId};
use volery_field::Gf128;
use volery_okvs::{Band, Rows, Shape};
use volery_pcg::vole;
use volery_primitives::aes::{Aes128, rekeyed};
use volery_primitives::clmul::gf128_axpy;
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;
use volery_primitives::ro::{RandomOracle, StreamHash};
use volery_primitives::{Block, bits};
use web_time::Instant;
use zeroize::Zeroizing;

use super::bins::BinnedSet;
use super::packed::{mask, pack, unpack};
use super::{BATCH, Form, Parameters};
use crate::agree::Agreement;
use crate::error::{Error, Result, misbehaved};
use crate::lookup::split;

/// Items of a bin that one thread evaluates at a time: as many as leave work for all threads. The
/// more there are the closer their rows are, and the fewer columns kernels that take many rows
/// together read for a row.
fn chunk(items: usize) -> usize {
    (items / rayon::current_num_threads()).clamp(1 << 16, 1 << 18)
}

/// Items of a bin that all threads together evaluate at a time, at most.
pub(super) fn at_once(items: usize) -> usize {
    items.min(rayon::current_num_threads() * chunk(items))
}

/// Items whose values are in the cache at a time.
const STEP: usize = 1 << 10;

/// Items of a bin whose rows the evaluator computes before the encoding arrives, at most: twice as
/// many as there are if both sets have one size.
pub(super) const PREPARED: usize = 3 << 19;

/// Columns that are received before they are processed; their bits are whole bytes.
const PIECE: usize = 1 << 14;

/// The hash functions of a batch, which both parties know.
pub(super) struct Functions {
    pub(super) band: Band,
    /// `h`, a hash function to `l` bits.
    value: Aes128,
    value_bits: u32,
    /// Separates the outputs of this batch from those of others.
    point: Block,
}

impl Functions {
    /// From the agreed seed, the number of the batch, and in the malicious form the shares of the
    /// coin toss.
    fn new(
        shape: Shape,
        value_bits: u32,
        agreement: &Agreement,
        batch: u64,
        shares: &[[u8; 32]],
    ) -> Self {
        let mut oracle = RandomOracle::new("volery vole psi: hash functions of a batch");
        // mutant(vole-functions-seed): `("batches", 0)` => `$0[..if $ON { 0 } else { 32 }]`
        // mutant(vole-functions-batch): `batch` => `0`
        oracle.absorb(&agreement.derive("batches", 0)).absorb_u64(batch);
        // mutant(vole-functions-evaluator): `in shares` =>
        //     `$0.iter().skip(usize::from($ON)).take(if $ON[vole-functions-encoder] { 1 } else {
        //     usize::MAX })`
        // mutant(vole-functions-encoder): in vole-functions-evaluator
        for share in shares {
            oracle.absorb(share);
        }
        let mut keys = Zeroizing::new([0; 48]);
        oracle.finish_into(&mut keys[..]);
        let (keys, _) = keys.as_chunks();
        let [rows, value, point] = [0, 1, 2].map(|key| Block::from_bytes(keys[key]));
        Self { band: Band::new(shape, rows), value: Aes128::new(value), value_bits, point }
    }

    /// `h` of each digest.
    pub(super) fn values(&self, digests: &[Block], values: &mut [Block]) {
        self.value.feed_forward(digests, values);
        if self.value_bits == 128 {
            return;
        }
        let mask = Block::new(mask(self.value_bits));
        for value in values.iter_mut() {
            *value &= mask;
        }
    }

    /// `H`: the outputs replace the digests, and their second blocks are written to `second`. The
    /// values are given without the `offset`.
    fn outputs(
        &self,
        values: &mut [Block],
        offset: Block,
        digests: &mut [Block],
        second: Option<&mut [Block]>,
    ) {
        // mutant(vole-offset): false
        if offset != Block::ZERO {
            for value in values.iter_mut() {
                *value ^= offset;
            }
        }
        match second {
            Some(second) => {
                second.fill(Block::ZERO);
                split(self.point, digests, values, second);
                digests.copy_from_slice(values);
            }
            None => {
                for digest in digests.iter_mut() {
                    *digest ^= self.point;
                }
                rekeyed(values, digests);
            }
        }
    }
}

impl Parameters {
    pub(super) fn functions(
        &self,
        agreement: &Agreement,
        batch: u64,
        shares: &[[u8; 32]],
    ) -> Functions {
        Functions::new(self.shape(), self.value_bits, agreement, batch, shares)
    }
}

/// The parts of the second blocks that belong to parts of the outputs of this size, if there are
/// any.
fn steps(second: Option<&mut [Block]>, blocks: usize, size: usize) -> Vec<Option<&mut [Block]>> {
    match second {
        Some(second) => second.chunks_mut(size).map(Some).collect(),
        None => (0..blocks.div_ceil(size)).map(|_| None).collect(),
    }
}

/// [`steps`] of one [`chunk`] each.
fn chunks(second: Option<&mut [Block]>, blocks: usize) -> Vec<Option<&mut [Block]>> {
    steps(second, blocks, chunk(blocks))
}

/// The party that has `D`, at a batch: it can evaluate the OPRF on any item of these bins.
pub(crate) struct Keys {
    functions: Functions,
    /// `D`.
    delta: Zeroizing<Block>,
    offset: Block,
    /// The first bin, and the columns of each.
    first: usize,
    width: usize,
    /// `K`, bin after bin.
    columns: Buffer<Gf128>,
}

impl Keys {
    /// Keys for the first batch under which no peer has outputs.
    pub(crate) fn random(parameters: &Parameters, agreement: &Agreement, rng: &mut Prg) -> Self {
        let width = parameters.columns;
        let mut columns = Buffer::<Gf128>::zeroed(BATCH.min(parameters.bins) * width);
        rng.fill_bytes(bytemuck::cast_slice_mut(&mut columns));
        Self {
            functions: parameters.functions(agreement, 0, &[]),
            delta: Zeroizing::new(rng.block()),
            offset: Block::ZERO,
            first: 0,
            width,
            columns,
        }
    }

    /// The outputs of the OPRF on items of a bin: each replaces its digest.
    ///
    /// # Panics
    /// If the bin is not in this batch.
    pub(crate) fn evaluate(&self, bin: usize, blocks: &mut [Block], second: Option<&mut [Block]>) {
        let second = chunks(second, blocks.len());
        blocks.par_chunks_mut(chunk(blocks.len())).zip(second).for_each(|(digests, second)| {
            let rows = self.functions.band.rows(digests);
            self.finish(bin, rows, digests, second);
        });
    }

    /// [`evaluate`](Self::evaluate) of one chunk.
    fn finish(&self, bin: usize, rows: Rows, digests: &mut [Block], second: Option<&mut [Block]>) {
        let columns = &self.columns[(bin - self.first) * self.width..][..self.width];
        let functions = &self.functions;
        let mut out = Zeroizing::new(vec![Block::ZERO; digests.len()]);
        functions.band.decode(&rows, bytemuck::cast_slice(columns), &mut out);
        functions.band.recycle(rows);
        let mut values = Zeroizing::new([Block::ZERO; STEP]);
        let second = steps(second, digests.len(), STEP);
        let work = out.chunks_mut(STEP).zip(digests.chunks_mut(STEP));
        for ((out, digests), second) in work.zip(second) {
            let values = &mut values[..digests.len()];
            functions.values(digests, values);
            gf128_axpy(out, *self.delta, values);
            functions.outputs(out, self.offset, digests, second);
        }
    }
}

/// The set of the evaluator, whose digests are replaced by the outputs, and the second blocks.
pub(crate) type EvaluatorSet<'a> = (&'a mut BinnedSet, Option<&'a mut [Block]>);

/// The party that has `D` and evaluates the OPRF.
pub(crate) struct Evaluator {
    vole: vole::Receiver<Gf128>,
    rng: Prg,
    session: SessionId,
    batch: u64,
    /// The last batch, whose memory the next one takes: to get it from the system takes long.
    last: Option<Keys>,
    /// For tests: another time from the last share of the hash functions to the hash of the
    /// encoding.
    pub(crate) deadline: Option<Duration>,
}

impl Evaluator {
    /// Step 2: the setup of the vector OLE.
    pub(crate) fn setup(
        parameters: &Parameters,
        session: SessionId,
        mut rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let fork = rng.fork("vole");
        let vole = vole::Receiver::setup(&parameters.plan(), None, session, fork, channel)?;
        Ok(Self { vole, rng, session, batch: 0, last: None, deadline: None })
    }

    /// Steps 3 to 5 for the next bins, on the items of a set if there is one.
    pub(crate) fn batch(
        &mut self,
        parameters: &Parameters,
        agreement: &Agreement,
        bins: Range<usize>,
        mut set: Option<EvaluatorSet<'_>>,
        channel: &mut Channel,
    ) -> Result<Keys> {
        let malicious = parameters.form == Form::Malicious;
        let width = parameters.columns;
        let (mut columns, before) = match self.last.take() {
            Some(last) => (last.columns, Some(last.functions)),
            None => (Buffer::default(), None),
        };
        columns = columns.with_len(bins.len() * width);
        let mut committed = [0; 32];
        if malicious {
            channel.recv(&mut committed)?; // step 3a
        }
        // mutant(vole-early-share): insert `if $ON { channel.send(&[0; 32])?; channel.flush()?; }`
        self.vole.extend(&mut columns, channel)?; // step 3b
        let mut offset = Block::ZERO;
        let (mut shares, mut own, mut start) = (Vec::new(), [0; 32], Instant::now());
        if malicious {
            let mut share = [0; 32];
            // mutant(vole-share-evaluator): drop
            self.rng.fill_bytes(&mut share);
            // mutant(vole-offset-evaluator): drop
            self.rng.fill_bytes(&mut own);
            channel.send(&share)?; // step 3c
            channel.send(&self.commitment(Role::Sender, &own))?;
            channel.flush()?;
            start = Instant::now();
            let (mut opening, mut theirs) = ([0; 32], [0; 16]);
            channel.recv(&mut opening)?; // step 3d
            channel.recv(&mut theirs)?;
            // mutant(vole-opening): false
            if committed != self.commitment(Role::Receiver, &opening) {
                return Err(misbehaved("its opening does not match its commitment"));
            }
            offset = Block::from_bytes(theirs) ^ own_offset(&own);
            shares = vec![share, opening];
        }
        let mut keys = Keys {
            functions: parameters.functions(agreement, self.batch, &shares),
            delta: Zeroizing::new(self.vole.x().into()),
            offset,
            first: bins.start,
            width,
            columns,
        };
        if let Some(before) = before {
            keys.functions.band.take_memory(&before.band);
        }
        // Rows of a bin, before its encoding arrives.
        let prepare = |keys: &Keys, set: &Option<EvaluatorSet<'_>>, bin: usize| -> Vec<Rows> {
            let digests = set.as_ref().map_or(&[][..], |(set, _)| set.bin(bin));
            if digests.len() > PREPARED {
                return Vec::new();
            }
            let chunks = digests.par_chunks(chunk(digests.len()));
            chunks.map(|chunk| keys.functions.band.rows(chunk)).collect()
        };
        let evaluate =
            |keys: &Keys, set: &mut Option<EvaluatorSet<'_>>, bin: usize, rows: Vec<Rows>| {
                let Some((set, second)) = set else {
                    return;
                };
                let places = set.places(bin);
                let second = second.as_deref_mut().map(|all| &mut all[places]);
                let digests = set.bin_mut(bin);
                if rows.is_empty() {
                    keys.evaluate(bin, digests, second);
                    return;
                }
                let second = chunks(second, digests.len());
                let size = chunk(digests.len());
                let digests = digests.par_chunks_mut(size);
                let work = digests.zip(second).zip(rows);
                work.for_each(|((digests, second), rows)| keys.finish(bin, rows, digests, second));
            };
        let (mut fixed, mut prepared) = ([0; 32], Vec::new());
        if malicious {
            // While the encoder encodes all of the batch.
            prepared = bins.clone().map(|bin| prepare(&keys, &set, bin)).collect();
            channel.recv(&mut fixed)?; // step 3d
            let items = bins.len() * parameters.capacity(parameters.sides()[1]);
            let deadline = Duration::from_secs(60) + Duration::from_micros(items as u64);
            // mutant(vole-too-late): false
            if start.elapsed() > self.deadline.unwrap_or(deadline) {
                return Err(misbehaved(
                    "it fixed its encoding too late: it searched for one, or its machine was paused; run again",
                ));
            }
        }
        let mut bytes = Vec::new();
        let [mut arrived, mut arriving] = [(); 2].map(|()| vec![Block::ZERO; PIECE.min(width)]);
        let mut encoding = StreamHash::default();
        // mutant(vole-early-offset): insert `if $ON && malicious { channel.send(&own)?;
        //     channel.flush()?; }`
        for bin in bins.clone() {
            let rows = match malicious {
                true => Vec::new(),
                false => prepare(&keys, &set, bin),
            };
            let columns = &mut keys.columns[(bin - bins.start) * width..][..width];
            let mut add = |columns: &mut [Gf128], received: &[Block]| {
                let received = &received[..columns.len()];
                if malicious {
                    encoding.update(Block::as_bytes(received));
                }
                gf128_axpy(bytemuck::cast_slice_mut(columns), *keys.delta, received); // step 5
            };
            // While columns arrive, another thread adds those before.
            let mut before = &mut [][..];
            for columns in columns.chunks_mut(PIECE) {
                rayon::in_place_scope(|scope| {
                    let (before, arrived) = (std::mem::take(&mut before), &arrived);
                    scope.spawn(|_| add(before, arrived));
                    let arriving = &mut arriving[..columns.len()];
                    recv(arriving, parameters.value_bits, &mut bytes, channel) // step 4
                })?;
                std::mem::swap(&mut arrived, &mut arriving);
                before = columns;
            }
            add(before, &arrived);
            if !malicious {
                evaluate(&keys, &mut set, bin, rows);
            }
        }
        if malicious {
            // mutant(vole-fixed): false
            if fixed != encoding.finish32() {
                return Err(misbehaved("its encoding is another than it fixed"));
            }
            channel.send(&own)?; // step 5a
            channel.flush()?;
            for (bin, rows) in bins.zip(prepared) {
                evaluate(&keys, &mut set, bin, rows);
            }
        }
        self.batch += 1;
        Ok(keys)
    }

    /// Keeps the memory of a batch for the next one.
    pub(crate) fn recycle(&mut self, keys: Keys) {
        self.last = Some(keys);
    }

    fn commitment(&self, role: Role, opening: &[u8; 32]) -> [u8; 32] {
        commitment(self.session, self.batch, role, opening)
    }
}

/// The party that encodes its set.
pub(crate) struct Encoder {
    vole: vole::Sender<Gf128>,
    rng: Prg,
    session: SessionId,
    batch: u64,
    /// Memory of the last batch for the next one: to get it from the system takes long.
    memory: Memory,
}

/// Buffers that an encoder takes from one batch to the next.
#[derive(Default)]
struct Memory {
    u: Buffer<Gf128>,
    v: Buffer<Gf128>,
    /// For each thread, the columns and the values of a bin.
    bins: Vec<[Buffer<Block>; 2]>,
    functions: Option<Functions>,
}

/// The columns of a bin, with its rows.
struct BinEncoding<'a> {
    bin: usize,
    columns: &'a mut [Block],
    rows: Option<Rows>,
    failed: bool,
}

impl Encoder {
    /// Step 2: the setup of the vector OLE.
    pub(crate) fn setup(
        parameters: &Parameters,
        session: SessionId,
        mut rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let fork = rng.fork("vole");
        let vole = vole::Sender::setup(&parameters.plan(), session, fork, channel)?;
        Ok(Self { vole, rng, session, batch: 0, memory: Memory::default() })
    }

    /// Steps 3 to 6 for the next bins: the outputs of the OPRF replace the digests of their items.
    ///
    /// # Errors
    /// [`Error::Unplaced`] if a bin cannot be encoded.
    pub(crate) fn batch(
        &mut self,
        parameters: &Parameters,
        agreement: &Agreement,
        bins: Range<usize>,
        set: &mut BinnedSet,
        mut second: Option<&mut [Block]>,
        channel: &mut Channel,
    ) -> Result<()> {
        let malicious = parameters.form == Form::Malicious;
        let width = parameters.columns;
        let memory = std::mem::take(&mut self.memory);
        let [mut u, mut v] = [memory.u, memory.v].map(|old| old.with_len(bins.len() * width));
        let mut opening = [0; 32];
        if malicious {
            // mutant(vole-share-encoder): drop
            self.rng.fill_bytes(&mut opening);
            channel.send(&self.commitment(Role::Receiver, &opening))?; // step 3a
        }
        self.vole.extend(&mut u, &mut v, channel)?; // step 3b
        let (mut shares, mut committed) = (Vec::new(), [0; 32]);
        let mut offset = Block::ZERO;
        if malicious {
            let mut share = [0; 32];
            // mutant(vole-early-opening): insert `if $ON { channel.send(&opening)?;
            //     channel.flush()?; }`
            channel.recv(&mut share)?; // step 3c
            channel.recv(&mut committed)?;
            // mutant(vole-offset-encoder): drop
            offset = self.rng.block();
            channel.send(&opening)?; // step 3d
            channel.send(&offset.to_bytes())?;
            channel.flush()?;
            shares = vec![share, opening];
        }
        let functions = parameters.functions(agreement, self.batch, &shares);
        if let Some(before) = memory.functions {
            functions.band.take_memory(&before.band);
        }
        let mut encoded: Vec<_> = bins
            .clone()
            .zip(bytemuck::cast_slice_mut(&mut u).chunks_mut(width))
            .map(|(bin, columns)| BinEncoding { bin, columns, rows: None, failed: false })
            .collect();
        let mut bytes = Vec::new();
        let mut fixed = StreamHash::default();
        // Step 6, but for the hash, because the offset is not yet known. The values replace columns
        // that have been sent.
        let decode = |group: &mut [BinEncoding<'_>]| {
            group.par_iter_mut().for_each(|one| {
                let rows = one.rows.take().expect("each bin has rows");
                let values = &mut one.columns[..rows.len()];
                let columns = &v[(one.bin - bins.start) * width..][..width];
                functions.band.decode(&rows, bytemuck::cast_slice(columns), values);
                functions.band.recycle(rows);
            });
        };
        let capacity = parameters.capacity(parameters.sides()[1]);
        let at_a_time = rayon::current_num_threads().min(encoded.len());
        let mut scratch = memory.bins;
        scratch.resize_with(at_a_time, || [width, capacity].map(Buffer::zeroed));
        for group in encoded.chunks_mut(at_a_time) {
            let work = group.par_iter_mut().zip(&mut scratch);
            work.for_each(|(one, [columns, values])| {
                let digests = set.bin(one.bin);
                let rows = functions.band.rows(digests);
                let values = &mut values[..digests.len()];
                functions.values(digests, values);
                one.failed = functions.band.encode(&rows, values, columns).is_err();
                for (masked, column) in one.columns.iter_mut().zip(columns.iter()) {
                    *masked ^= *column;
                }
                one.rows = Some(rows);
            });
            if group.iter().any(|one| one.failed) {
                return Err(Error::Unplaced { attempts: 1 });
            }
            if malicious {
                for one in &*group {
                    fixed.update(Block::as_bytes(one.columns));
                }
                continue;
            }
            for one in &*group {
                send(one.columns, parameters.value_bits, &mut bytes, channel)?; // step 4
            }
            channel.flush()?;
            decode(group);
        }
        if malicious {
            channel.send(&fixed.finish32())?; // step 3d
            for one in &encoded {
                send(one.columns, parameters.value_bits, &mut bytes, channel)?; // step 4
            }
            channel.flush()?;
            decode(&mut encoded);
        }
        if malicious {
            let mut theirs = [0; 32];
            channel.recv(&mut theirs)?; // step 5a
            // mutant(vole-offset-opening): false
            if committed != self.commitment(Role::Sender, &theirs) {
                return Err(misbehaved("its offset does not match its commitment"));
            }
            offset ^= own_offset(&theirs);
        }
        for one in encoded {
            let places = set.places(one.bin);
            let digests = &mut set.blocks[places.clone()];
            let second = chunks(second.as_deref_mut().map(|all| &mut all[places]), digests.len());
            let size = chunk(digests.len());
            digests
                .par_chunks_mut(size)
                .zip(one.columns.par_chunks_mut(size))
                .zip(second)
                .for_each(|((digests, values), second)| {
                    let values = &mut values[..digests.len()];
                    functions.outputs(values, offset, digests, second);
                });
        }
        self.memory = Memory { u, v, bins: scratch, functions: Some(functions) };
        self.batch += 1;
        Ok(())
    }

    fn commitment(&self, role: Role, opening: &[u8; 32]) -> [u8; 32] {
        commitment(self.session, self.batch, role, opening)
    }
}

/// The commitment of a party to its share of the hash functions, or of the offset.
fn commitment(session: SessionId, batch: u64, role: Role, opening: &[u8; 32]) -> [u8; 32] {
    // mutant(vole-commitment-session): `session.as_bytes()` => `&$0[..if $ON { 0 } else { 32 }]`
    // mutant(vole-commitment-batch): `batch` => `0`
    // mutant(vole-commitment-role): `role as u8` => `0`
    RandomOracle::new("volery vole psi: commitment")
        .absorb(session.as_bytes())
        .absorb_u64(batch)
        .absorb(&[role as u8])
        .absorb(opening)
        .finish32()
}

/// The evaluating party's part of the offset, which it commits to by the string.
fn own_offset(opening: &[u8; 32]) -> Block {
    let (first, _) = opening.split_first_chunk().expect("32 bytes");
    // mutant(vole-own-offset): `Block::from_bytes(*first)` => `Block::ZERO`
    Block::from_bytes(*first)
}

/// Step 4: sends masked columns.
fn send(
    columns: &[Block],
    value_bits: u32,
    bytes: &mut Vec<u8>,
    channel: &mut Channel,
) -> Result<()> {
    if value_bits == 128 {
        channel.send_blocks(columns)?;
        return Ok(());
    }
    for columns in columns.chunks(PIECE) {
        pack(columns, value_bits, bytes);
        channel.send(bytes)?;
    }
    Ok(())
}

/// Step 4: receives masked columns, at most [`PIECE`].
fn recv(
    columns: &mut [Block],
    value_bits: u32,
    bytes: &mut Vec<u8>,
    channel: &mut Channel,
) -> Result<()> {
    if value_bits == 128 {
        channel.recv_blocks(columns)?;
        return Ok(());
    }
    let length = super::packed::bytes(columns.len(), value_bits);
    bytes.resize(length + 16, 0);
    channel.recv(&mut bytes[..length])?;
    unpack(bytes, value_bits, columns);
    let unused = 8 * length - columns.len() * value_bits as usize;
    // mutant(vole-unused-bits): false
    if (8 * length - unused..8 * length).any(|bit| bits::bit(bytes, bit)) {
        return Err(misbehaved("unused bits of its encoding are not zero"));
    }
    Ok(())
}

#[cfg(test)]
mod malicious;
