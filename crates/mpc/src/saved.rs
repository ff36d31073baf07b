//! Batches of correlations in files that are read once: made when both parties have time, used when
//! they have inputs.
//!
//! A correlation that is used twice reveals what it hid. [`read`] locks the file, compares the
//! batch with the peer's, marks the file as used, removes it, and waits until both are on the disk;
//! then it returns the first value. A second reader gets an error, also one that opened the file
//! before. A crash loses the batch or leaves it as it was. A *copy* of the file is beyond it: put
//! none into a backup or a snapshot, and none on a file system without locks. Batches of other
//! kinds, lengths or sessions, or two of one part, are [`Error::Mismatch`] for both, and stay.
//!
//! The file is for its owner only (mode 0600 on Unix), not encrypted, and has this party's secrets.
//! Removing it need not wipe its blocks on the disk.
//!
//! Format: a line of text; a byte `0`, `1` once used; part; length; session (32 bytes); kind,
//! a new line; values; a hash of all but the second.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::{marker::PhantomData, ops::Range, path::Path};

use volery_channel::{Channel, Error, Result, Role, SessionId};
use volery_field::{ExtensionOf, F2, Gf128, Ring};
use volery_os::fs::{Lock, remove_file, sync_all};
use volery_ot::{CotReceiver, CotSender};
use volery_pcg::vole::{VoleReceiver, VoleSender};
use volery_primitives::{Block, bits, ro::RandomOracle};
use zeroize::Zeroizing;

use crate::bits as bit_triples;

const MAGIC: &[u8] = b"volery batch 1\n";

/// A party's part of a batch.
pub trait Batch: Sized {
    /// The name of the correlation and its ring, the same at both parties.
    fn kind() -> String;
    /// Which of the two parts this is, and the number of correlations that are left.
    fn head(&self) -> (Role, usize);
    /// Appends the values of those.
    fn write(&self, out: &mut Vec<u8>);
    /// The part of `count` correlations from its values, which it takes; `None` if they do not fit.
    fn read(part: Role, count: usize, values: &mut &[u8]) -> Option<Self>;
}

/// Writes what is left of a batch to a new file, and waits until it is on the disk. `session` is of
/// this batch alone and the same at the peer, such as that of
/// [`Session::parts`](volery_channel::Session).
///
/// # Errors
/// [`Error::Io`] if the file is there already or cannot be written.
pub fn write<B: Batch>(batch: B, path: &Path, session: SessionId) -> Result<()> {
    let (part, count) = batch.head();
    // One allocation: a vector that grows leaves copies of secrets behind.
    let mut whole = Zeroizing::new(Vec::with_capacity(256 + 48 * (count + 1)));
    whole.extend(MAGIC);
    whole.extend([0, part as u8]);
    whole.extend((count as u64).to_le_bytes());
    whole.extend(session.as_bytes());
    whole.extend(&name::<B>());
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

/// Reads the batch that [`write()`] wrote, and uses up the file. Both parties call it at the same
/// point.
///
/// # Errors
/// [`Error::Io`] if there is no such file, another reader has it or had it, or it is no complete
/// batch of this kind; [`Error::Mismatch`] if the peer's does not belong to it.
pub fn read<B: Batch>(path: &Path, channel: &mut Channel) -> Result<B> {
    let (lock, batch, own) = load::<B>(path).map_err(|error| {
        // Otherwise the peer would wait for this side.
        let _ = channel.send(&[u8::MAX; 33]).and_then(|()| channel.flush());
        of(path)(error)
    })?;
    channel.send(&own)?;
    channel.flush()?;
    let mut theirs = [0; 33];
    channel.recv(&mut theirs)?;
    let mismatch = |field: &str, bytes: Range<usize>| {
        let text = |of: &[u8; 33]| of[bytes.clone()].iter().map(|b| format!("{b:02x}")).collect();
        // no mutant: those of its calls
        Err(Error::Mismatch { field: field.to_owned(), ours: text(&own), theirs: text(&theirs) })
    };
    // mutant(saved-pair): false
    if own[1..] != theirs[1..] {
        return mismatch("saved batch", 1..9);
    }
    // mutant(saved-part): false
    if own[0] == theirs[0] {
        return mismatch("part of the saved batch", 0..1);
    }
    // mutant(saved-consume): ignore
    consume(&lock, path).map_err(of(path))?;
    Ok(batch)
}

/// The locked file, its batch, and what the parties compare.
fn load<B: Batch>(path: &Path) -> io::Result<(Lock, B, [u8; 33])> {
    let file = options().read(true).write(true).open(path)?;
    let locked = Lock::try_new(file);
    let lock = locked.map_err(|_| io::Error::new(ErrorKind::WouldBlock, "it is being read"))?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(lock.file().metadata()?.len() as usize));
    lock.file().read_to_end(&mut bytes)?;
    let (whole, digest) = bytes.split_last_chunk::<32>().unwrap_or((&[], &[0; 32]));
    let (head, rest) = whole.split_at_checked(MAGIC.len() + 42).unwrap_or_default();
    // mutant(saved-used): false
    if head.starts_with(MAGIC) && head[MAGIC.len()] != 0 {
        return Err(io::Error::new(ErrorKind::NotFound, "it was used"));
    }
    let (head, mut values) = (head.strip_prefix(MAGIC), rest.strip_prefix(&name::<B>()[..]));
    let (Some(head), Some(values)) = (head, &mut values) else {
        // no mutant: without it there is no value
        return Err(io::Error::new(ErrorKind::InvalidData, "it is no batch of this kind"));
    };
    let part = if head[1] == 0 { Role::Sender } else { Role::Receiver };
    let count = u64::from_le_bytes(*head[2..].first_chunk().expect("eight bytes")) as usize;
    let batch = B::read(part, count, values);
    // mutant(saved-hash): `hash(whole) == *digest` => `true`
    let batch = batch.filter(|_| values.is_empty() && hash(whole) == *digest);
    // no mutant: without it there is no value
    let batch = batch.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "it is damaged"))?;
    let mut compared = [head[1]; 33];
    let mut oracle = RandomOracle::new("volery mpc: saved batch");
    compared[1..].copy_from_slice(&oracle.absorb(&name::<B>()).absorb(&head[2..]).finish32());
    Ok((lock, batch, compared))
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
    oracle.absorb(whole.get(MAGIC.len() + 1..).unwrap_or_default()).finish32()
}

/// The kind, and a byte that is in none.
fn name<B: Batch>() -> Vec<u8> {
    (B::kind() + "\n").into_bytes()
}

fn of(path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.display().to_string();
    move |error| Error::Io(io::Error::new(error.kind(), format!("saved batch {path}: {error}")))
}

#[cfg_attr(not(unix), expect(unused_mut, reason = "a mode is a thing of Unix"))]
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

/// The part of the holder of `u` and `v` of vector OLEs, or of correlated OTs (`B` is F2).
///
/// A source whose calls send nothing, and panic if they ask for more than are left. Wiped when
/// dropped.
pub struct ValuesBatch<R: ExtensionOf<B>, B: Ring = R> {
    u: Zeroizing<Vec<B>>,
    v: Zeroizing<Vec<R>>,
    next: usize,
}

/// The part of the holder of `x` of vector OLEs, or of `delta` of correlated OTs.
pub struct KeysBatch<R: ExtensionOf<B>, B: Ring = R> {
    /// `x`, then `w`.
    w: Zeroizing<Vec<R>>,
    next: usize,
    of: PhantomData<B>,
}

/// The part of the receiver of correlated OTs.
pub type CotValues = ValuesBatch<Gf128, F2>;

/// The part of the sender of correlated OTs.
pub type CotKeys = KeysBatch<Gf128, F2>;

impl<R: ExtensionOf<B>, B: Ring> ValuesBatch<R, B> {
    /// The next `n` correlations of a source.
    pub fn draw(n: usize, vole: &mut impl VoleSender<R, B>, channel: &mut Channel) -> Result<Self> {
        let mut out = Self { u: zeros(n), v: zeros(n), next: 0 };
        vole.extend(&mut out.u, &mut out.v, channel)?;
        Ok(out)
    }
}

impl<R: ExtensionOf<B>, B: Ring> KeysBatch<R, B> {
    /// The next `n` correlations of a source.
    pub fn draw(n: usize, vole: &mut impl VoleReceiver<R>, channel: &mut Channel) -> Result<Self> {
        let mut w = zeros(n + 1);
        vole.extend(&mut w[1..], channel)?;
        w[0] = vole.try_x()?;
        Ok(Self { w, next: 1, of: PhantomData })
    }
}

impl<R: ExtensionOf<B>, B: Ring> VoleSender<R, B> for ValuesBatch<R, B> {
    fn extend(&mut self, u: &mut [B], v: &mut [R], _channel: &mut Channel) -> Result<()> {
        let next = take(&mut self.next, v.len());
        moved(&mut self.u[next.clone()], u);
        moved(&mut self.v[next], v);
        Ok(())
    }
}

impl<R: ExtensionOf<B>, B: Ring> VoleReceiver<R> for KeysBatch<R, B> {
    fn try_x(&self) -> Result<R> {
        Ok(self.w[0])
    }

    fn extend(&mut self, w: &mut [R], _channel: &mut Channel) -> Result<()> {
        let next = take(&mut self.next, w.len());
        moved(&mut self.w[next], w);
        Ok(())
    }
}

impl CotReceiver for CotValues {
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], _channel: &mut Channel) -> Result<()> {
        let next = take(&mut self.next, w.len());
        let mut packed = Zeroizing::new(Vec::with_capacity(u.len()));
        F2::write(&self.u[next.clone()], &mut packed);
        u.copy_from_slice(&packed);
        self.u[next.clone()].fill(F2::ZERO);
        moved(&mut self.v[next], bytemuck::cast_slice_mut(w));
        Ok(())
    }
}

impl CotSender for CotKeys {
    fn delta(&self) -> Block {
        self.w[0].value()
    }

    fn extend(&mut self, v: &mut [Block], channel: &mut Channel) -> Result<()> {
        VoleReceiver::extend(self, bytemuck::cast_slice_mut(v), channel)
    }
}

impl<R: ExtensionOf<B>, B: Ring> Batch for ValuesBatch<R, B> {
    fn kind() -> String {
        format!("vector OLE, {} over {}", R::NAME, B::NAME)
    }

    fn head(&self) -> (Role, usize) {
        (Role::Sender, self.v.len() - self.next)
    }

    fn write(&self, out: &mut Vec<u8>) {
        B::write(&self.u[self.next..], out);
        R::write(&self.v[self.next..], out);
    }

    fn read(part: Role, count: usize, values: &mut &[u8]) -> Option<Self> {
        let out = Self { u: column(count, values)?, v: column(count, values)?, next: 0 };
        (part == Role::Sender).then_some(out)
    }
}

impl<R: ExtensionOf<B>, B: Ring> Batch for KeysBatch<R, B> {
    fn kind() -> String {
        ValuesBatch::<R, B>::kind()
    }

    fn head(&self) -> (Role, usize) {
        (Role::Receiver, self.w.len() - self.next)
    }

    fn write(&self, out: &mut Vec<u8>) {
        R::write(&self.w[..1], out);
        R::write(&self.w[self.next..], out);
    }

    fn read(part: Role, count: usize, values: &mut &[u8]) -> Option<Self> {
        let w = column(count.checked_add(1)?, values)?;
        (part == Role::Receiver).then_some(Self { w, next: 1, of: PhantomData })
    }
}

/// Triples of the party with this role.
impl Batch for (Role, bit_triples::Triples) {
    fn kind() -> String {
        "triples over f2".to_owned()
    }

    fn head(&self) -> (Role, usize) {
        (self.0, self.1.len)
    }

    fn write(&self, out: &mut Vec<u8>) {
        [&self.1.a, &self.1.b, &self.1.c].into_iter().for_each(|part| out.extend_from_slice(part));
    }

    fn read(part: Role, count: usize, values: &mut &[u8]) -> Option<Self> {
        let mut next = || values.split_off(..bits::bytes_for(count)).map(<[u8]>::to_vec);
        Some((part, bit_triples::Triples { len: count, a: next()?, b: next()?, c: next()? }))
    }
}

fn zeros<R: Ring>(n: usize) -> Zeroizing<Vec<R>> {
    Zeroizing::new(vec![R::ZERO; n])
}

/// Moves values, of which nothing stays.
fn moved<R: Ring>(from: &mut [R], to: &mut [R]) {
    to.copy_from_slice(from);
    from.fill(R::ZERO);
}

/// Takes `n` places from `next` on.
fn take(next: &mut usize, n: usize) -> Range<usize> {
    *next += n;
    *next - n..*next
}

/// The next `n` elements. The length of a damaged file is not allocated.
fn column<R: Ring>(n: usize, values: &mut &[u8]) -> Option<Zeroizing<Vec<R>>> {
    n.checked_mul(R::BYTES)?;
    let bytes = values.split_off(..R::encoded_len(n))?;
    let mut out = zeros(n);
    R::read(bytes, &mut out).is_ok().then_some(out)
}
