//! Batches of correlations in files that are read once: made when both parties have time, used
//! when they have inputs.
//!
//! ```no_run
//! use volery_channel::{Channel, Result, Session};
//! use volery_mpc::saved::{self, CotSenderBatch};
//! use volery_ot::CotSender;
//!
//! /// Offline; the receiver does the same with `CotReceiverBatch`.
//! fn save(cot: &mut impl CotSender, session: &mut Session) -> Result<()> {
//!     let batch = CotSenderBatch::draw_cot(1_000_000, cot, session)?;
//!     let (id, ..) = session.parts();
//!     saved::write(&batch, "cots".as_ref(), id)
//! }
//!
//! /// Online: a source of COTs that needs no message.
//! fn load(channel: &mut Channel) -> Result<CotSenderBatch> {
//!     saved::read("cots".as_ref(), channel)
//! }
//! ```
//!
//! A correlation that is used twice reveals what it hid. [`read`] locks the file, compares the batch
//! with the peer's, marks the file as used, removes it, and waits until both are on the disk; only
//! then it returns the first value. A second reader, also one that opened the file before, gets an
//! error. After a crash or an error at any point the batch is lost or untouched, and never given
//! out twice. What the module cannot see is a *copy* of the file: do not put it into a backup or a
//! snapshot, nor on a file system without locks.
//!
//! Both parties send a hash of kind, length and session of their batch, and their side: batches of
//! different sessions, lengths or kinds, or two of one side, are [`Error::Mismatch`] for both, and
//! both files stay.
//!
//! The file is for its owner only (mode 0600 on Unix), and not encrypted. Whoever reads it knows
//! this party's secrets of the batch; removing a file need not wipe its blocks on the disk.
//!
//! Format: a line of text, a byte `0` (`1` once used), side, length, the session (32 bytes), the
//! kind with its length, the values, and a hash of all but the byte.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::marker::PhantomData;
use std::ops::Range;
use std::path::Path;

use volery_channel::{Channel, Error, Result, Role, SessionId};
use volery_field::{ExtensionOf, F2, Gf128, Ring};
use volery_os::fs::{Lock, remove_file, sync_all};
use volery_ot::{CotReceiver, CotSender};
use volery_pcg::vole::{VoleReceiver, VoleSender};
use volery_primitives::{Block, bits, ro::RandomOracle};
use zeroize::Zeroizing;

use crate::{arithmetic, bits as bit_triples};

const MAGIC: &[u8] = b"volery batch 1\n";

/// A party's part of a batch.
pub trait Batch: Sized {
    /// The name of the correlation and its ring, the same at both parties.
    fn kind() -> String;

    /// Which part this is.
    fn side(&self) -> Role;

    /// Number of correlations.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the values.
    fn write(&self, out: &mut Vec<u8>);

    /// The part from its side, its number of correlations and its values; `None` if they do not fit.
    fn read(side: Role, len: usize, values: &[u8]) -> Option<Self>;
}

/// Writes a batch to a new file, and waits until it is on the disk. `session` is of this batch
/// alone and the same at the peer, such as that of [`Session::parts`](volery_channel::Session).
///
/// # Errors
/// [`Error::Io`] if the file is there already or cannot be written.
pub fn write<B: Batch>(batch: &B, path: &Path, session: SessionId) -> Result<()> {
    // One allocation: a vector that grows leaves copies of secrets behind.
    let mut whole = Zeroizing::new(Vec::with_capacity(256 + 48 * (batch.len() + 1)));
    whole.extend(MAGIC);
    whole.extend([0, batch.side() as u8]);
    whole.extend((batch.len() as u64).to_le_bytes());
    whole.extend(session.as_bytes());
    whole.push(B::kind().len() as u8);
    whole.extend(B::kind().as_bytes());
    batch.write(&mut whole);
    let hash = hash(&whole);
    whole.extend(hash);
    let write = || -> io::Result<()> {
        let mut file = options().write(true).create_new(true).open(path)?;
        file.write_all(&whole)?;
        sync_all(&file)?;
        sync_folder(path)
    };
    write().map_err(of(path))
}

/// Reads the batch that [`write`] wrote, and consumes the file. Both parties call it at the same
/// point.
///
/// # Errors
/// [`Error::Io`] if there is no such file, another reader has it or had it, or it is no complete
/// batch of this kind; [`Error::Mismatch`] if the peer's batch does not belong to it; if the channel
/// fails.
pub fn read<B: Batch>(path: &Path, channel: &mut Channel) -> Result<B> {
    let (lock, batch, header) = load::<B>(path).map_err(of(path))?;
    let mut own = [0; 33];
    own[0] = batch.side() as u8;
    own[1..].copy_from_slice(&header);
    channel.send(&own)?;
    channel.flush()?;
    let mut theirs = [0; 33];
    channel.recv(&mut theirs)?;
    compare(&own, &theirs)?;
    // mutant(saved-consume): ignore
    consume(&lock, path).map_err(of(path))?;
    Ok(batch)
}

/// Compares the two parts.
fn compare(own: &[u8; 33], theirs: &[u8; 33]) -> Result<()> {
    let side = |bytes: &[u8; 33]| if bytes[0] == 0 { "sender" } else { "receiver" }.to_owned();
    let short = |bytes: &[u8; 33]| bytes[1..9].iter().map(|byte| format!("{byte:02x}")).collect();
    let mismatch =
        |field: &str, ours, theirs| Error::Mismatch { field: field.to_owned(), ours, theirs };
    // mutant(saved-pair): false
    if own[1..] != theirs[1..] {
        return Err(mismatch("saved batch", short(own), short(theirs)));
    }
    // mutant(saved-side): false
    if own[0] == theirs[0] {
        return Err(mismatch("side of the saved batch", side(own), side(theirs)));
    }
    Ok(())
}

/// The locked file, its batch, and the hash that both parties compare.
fn load<B: Batch>(path: &Path) -> io::Result<(Lock, B, [u8; 32])> {
    let invalid = |what: &str| io::Error::new(ErrorKind::InvalidData, what.to_owned());
    let file = options().read(true).write(true).open(path)?;
    let lock = Lock::try_new(file)
        .map_err(|_| io::Error::new(ErrorKind::WouldBlock, "another process reads this batch"))?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(lock.file().metadata()?.len() as usize));
    lock.file().read_to_end(&mut bytes)?;
    let incomplete = || invalid("this is not a complete saved batch");
    // no mutant: without it there is no value
    let (whole, digest) = bytes.split_last_chunk::<32>().ok_or_else(incomplete)?;
    // no mutant: without it there is no value
    let rest = whole.strip_prefix(MAGIC).ok_or_else(incomplete)?;
    // mutant(saved-used): false
    if rest.first() != Some(&0) {
        return Err(io::Error::new(ErrorKind::NotFound, "this batch was used"));
    }
    // mutant(saved-hash): false
    if hash(whole) != *digest {
        return Err(incomplete());
    }
    // no mutant: without it there is no value
    let (head, rest) = rest.split_at_checked(42).ok_or_else(incomplete)?;
    let kind = B::kind();
    let prefix = [&[kind.len() as u8], kind.as_bytes()].concat();
    let values = rest.strip_prefix(&prefix[..]);
    // no mutant: without it there is no value
    let Some(values) = values else {
        return Err(invalid(&format!("this batch is not of {kind}")));
    };
    let side = if head[1] == 0 { Role::Sender } else { Role::Receiver };
    let len = u64::from_le_bytes(*head[2..].first_chunk().expect("eight bytes")) as usize;
    // no mutant: without it there is no value
    let batch = B::read(side, len, values).ok_or_else(incomplete)?;
    let mut oracle = RandomOracle::new("volery mpc: saved batch");
    // Kind, length, session.
    let header = oracle.absorb(&prefix).absorb(&head[2..]).finish32();
    Ok((lock, batch, header))
}

/// Marks the file as used, and removes it.
fn consume(lock: &Lock, path: &Path) -> io::Result<()> {
    let mut file = lock.file();
    file.seek(SeekFrom::Start(MAGIC.len() as u64))?;
    // mutant(saved-mark): drop
    file.write_all(&[1])?;
    sync_all(file)?;
    // mutant(saved-remove): drop
    remove_file(path)?;
    sync_folder(path)
}

/// Of all but the byte that marks a used file.
fn hash(whole: &[u8]) -> [u8; 32] {
    let mut oracle = RandomOracle::new("volery mpc: file of a saved batch");
    oracle
        .absorb(&whole[..MAGIC.len()])
        .absorb(&whole[(MAGIC.len() + 1).min(whole.len())..])
        .finish32()
}

fn of(path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.display().to_string();
    move |error| Error::Io(io::Error::new(error.kind(), format!("saved batch {path}: {error}")))
}

fn options() -> OpenOptions {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Puts the names in the folder of a file on the disk, where a system has such a call.
fn sync_folder(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    if cfg!(unix) { sync_all(&File::open(parent.unwrap_or(Path::new(".")))?) } else { Ok(()) }
}

/// The part of the holder of `u` and `v` of vector OLEs, or of correlated OTs (`B` is `F2`).
///
/// A source whose calls send nothing. A call panics if it asks for more than are left. Wiped when
/// dropped.
pub struct ValuesBatch<R: ExtensionOf<B>, B: Ring = R> {
    u: Zeroizing<Vec<B>>,
    v: Zeroizing<Vec<R>>,
    next: usize,
}

/// The part of the holder of `x` of vector OLEs, or of `delta` of correlated OTs.
///
/// A source as [`ValuesBatch`] is.
pub struct KeysBatch<R: ExtensionOf<B>, B: Ring = R> {
    x: Zeroizing<R>,
    w: Zeroizing<Vec<R>>,
    next: usize,
    of: PhantomData<B>,
}

/// The part of the sender of correlated OTs.
pub type CotSenderBatch = KeysBatch<Gf128, F2>;

/// The part of the receiver of correlated OTs.
pub type CotReceiverBatch = ValuesBatch<Gf128, F2>;

impl<R: ExtensionOf<B>, B: Ring> ValuesBatch<R, B> {
    /// The next `n` correlations of a source.
    ///
    /// # Errors
    /// The errors of the source.
    pub fn draw(n: usize, vole: &mut impl VoleSender<R, B>, channel: &mut Channel) -> Result<Self> {
        let (mut u, mut v) = (zeros(n), zeros(n));
        vole.extend(&mut u, &mut v, channel)?;
        Ok(Self { u, v, next: 0 })
    }
}

impl<R: ExtensionOf<B>, B: Ring> KeysBatch<R, B> {
    /// The next `n` correlations of a source.
    ///
    /// # Errors
    /// The errors of the source.
    pub fn draw(n: usize, vole: &mut impl VoleReceiver<R>, channel: &mut Channel) -> Result<Self> {
        let mut w = zeros(n);
        vole.extend(&mut w, channel)?;
        Ok(Self { x: Zeroizing::new(vole.try_x()?), w, next: 0, of: PhantomData })
    }
}

impl CotReceiverBatch {
    /// The next `n` correlated OTs of a source.
    ///
    /// # Errors
    /// The errors of the source.
    pub fn draw_cot(n: usize, cot: &mut impl CotReceiver, channel: &mut Channel) -> Result<Self> {
        let (mut packed, mut v) = (Zeroizing::new(vec![0; bits::bytes_for(n)]), zeros(n));
        cot.extend(&mut packed, bytemuck::cast_slice_mut(&mut v), channel)?;
        let mut u = zeros(n);
        u.iter_mut().enumerate().for_each(|(i, u)| *u = F2::new(bits::bit(&packed, i)));
        Ok(Self { u, v, next: 0 })
    }
}

impl CotSenderBatch {
    /// The next `n` correlated OTs of a source.
    ///
    /// # Errors
    /// The errors of the source.
    pub fn draw_cot(n: usize, cot: &mut impl CotSender, channel: &mut Channel) -> Result<Self> {
        let mut w = zeros(n);
        cot.extend(bytemuck::cast_slice_mut(&mut w), channel)?;
        Ok(Self { x: Zeroizing::new(Gf128::new(cot.try_delta()?)), w, next: 0, of: PhantomData })
    }
}

impl<R: ExtensionOf<B>, B: Ring> VoleSender<R, B> for ValuesBatch<R, B> {
    fn extend(&mut self, u: &mut [B], v: &mut [R], _channel: &mut Channel) -> Result<()> {
        let next = take(&mut self.next, v.len());
        u.copy_from_slice(&self.u[next.clone()]);
        v.copy_from_slice(&self.v[next]);
        Ok(())
    }
}

impl<R: ExtensionOf<B>, B: Ring> VoleReceiver<R> for KeysBatch<R, B> {
    fn try_x(&self) -> Result<R> {
        Ok(*self.x)
    }

    fn extend(&mut self, w: &mut [R], _channel: &mut Channel) -> Result<()> {
        w.copy_from_slice(&self.w[take(&mut self.next, w.len())]);
        Ok(())
    }
}

impl CotReceiver for CotReceiverBatch {
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], _channel: &mut Channel) -> Result<()> {
        let next = take(&mut self.next, w.len());
        let mut packed = Zeroizing::new(Vec::with_capacity(u.len()));
        F2::write(&self.u[next.clone()], &mut packed);
        u.copy_from_slice(&packed);
        w.copy_from_slice(bytemuck::cast_slice(&self.v[next]));
        Ok(())
    }
}

impl CotSender for CotSenderBatch {
    fn delta(&self) -> Block {
        self.x.value()
    }

    fn extend(&mut self, v: &mut [Block], channel: &mut Channel) -> Result<()> {
        VoleReceiver::extend(self, bytemuck::cast_slice_mut(v), channel)
    }
}

impl<R: ExtensionOf<B>, B: Ring> Batch for ValuesBatch<R, B> {
    fn kind() -> String {
        KeysBatch::<R, B>::kind()
    }

    fn side(&self) -> Role {
        Role::Sender
    }

    fn len(&self) -> usize {
        self.v.len()
    }

    fn write(&self, out: &mut Vec<u8>) {
        B::write(&self.u, out);
        R::write(&self.v, out);
    }

    fn read(side: Role, len: usize, mut values: &[u8]) -> Option<Self> {
        let out = Self { u: column(len, &mut values)?, v: column(len, &mut values)?, next: 0 };
        (side == Role::Sender && values.is_empty()).then_some(out)
    }
}

impl<R: ExtensionOf<B>, B: Ring> Batch for KeysBatch<R, B> {
    fn kind() -> String {
        format!("vector OLE, {} over {}", R::NAME, B::NAME)
    }

    fn side(&self) -> Role {
        Role::Receiver
    }

    fn len(&self) -> usize {
        self.w.len()
    }

    fn write(&self, out: &mut Vec<u8>) {
        R::write(&[*self.x], out);
        R::write(&self.w, out);
    }

    fn read(side: Role, len: usize, mut values: &[u8]) -> Option<Self> {
        let x = Zeroizing::new(column::<R>(1, &mut values)?[0]);
        let out = Self { x, w: column(len, &mut values)?, next: 0, of: PhantomData };
        (side == Role::Receiver && values.is_empty()).then_some(out)
    }
}

/// Triples of the party with this role.
impl Batch for (Role, bit_triples::Triples) {
    fn kind() -> String {
        "triples over f2".to_owned()
    }

    fn side(&self) -> Role {
        self.0
    }

    fn len(&self) -> usize {
        self.1.len
    }

    fn write(&self, out: &mut Vec<u8>) {
        [&self.1.a, &self.1.b, &self.1.c].into_iter().for_each(|part| out.extend_from_slice(part));
    }

    fn read(side: Role, len: usize, values: &[u8]) -> Option<Self> {
        let bytes = bits::bytes_for(len);
        let parts = values.len() == bytes.checked_mul(3)?;
        let part = |k| parts.then(|| values[k * bytes..][..bytes].to_vec());
        Some((side, bit_triples::Triples { len, a: part(0)?, b: part(1)?, c: part(2)? }))
    }
}

/// Triples of the party with this role.
impl<R: Ring> Batch for (Role, arithmetic::Triples<R>) {
    fn kind() -> String {
        format!("triples over {}", R::NAME)
    }

    fn side(&self) -> Role {
        self.0
    }

    fn len(&self) -> usize {
        self.1.a.len()
    }

    fn write(&self, out: &mut Vec<u8>) {
        [&self.1.a, &self.1.b, &self.1.c].into_iter().for_each(|part| R::write(part, out));
    }

    fn read(side: Role, len: usize, mut values: &[u8]) -> Option<Self> {
        let mut next = || column(len, &mut values).map(|mut column| std::mem::take(&mut *column));
        let out = arithmetic::Triples { a: next()?, b: next()?, c: next()? };
        values.is_empty().then_some((side, out))
    }
}

fn zeros<R: Ring>(n: usize) -> Zeroizing<Vec<R>> {
    Zeroizing::new(vec![R::ZERO; n])
}

/// Takes `n` places from `next` on.
fn take(next: &mut usize, n: usize) -> Range<usize> {
    let start = *next;
    *next += n;
    start..*next
}

/// The next `n` elements.
fn column<R: Ring>(n: usize, values: &mut &[u8]) -> Option<Zeroizing<Vec<R>>> {
    // A length of a damaged file is no length of an allocation.
    let bytes = values.split_off(..n.checked_mul(R::BYTES).map(|_| R::encoded_len(n))?)?;
    let mut out = zeros(n);
    R::read(bytes, &mut out).is_ok().then_some(out)
}
