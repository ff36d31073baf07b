//! A server that prepares a large set once and answers small queries of many clients: each learns
//! which of its items are in the set.
//!
//! The server has a key `k` of the function `F` of RFC 9497 (ristretto255-SHA512, mode VOPRF). It
//! publishes the values of `F` on its items, truncated, as a [`Filter`] that clients fetch once.
//! Then a client gets the values on its own items obliviously, and looks them up.
//!
//! ```text
//! Server: k, version of its filter                Client: filter, items
//!    for each request of q items, at most 2^14:
//!                                                 1. r_i random, B_i = r_i*H(x_i)
//!    <-------- version, q; B_1 .. B_q -----------
//! 2. E_i = k*B_i, and a proof for all
//!    ---- verdict, rest; E_1 .. E_q, proof ----->
//!                                                 3. checks the proof, F(x_i) from E_i/r_i
//!    <-------- version, 0 at the end ------------
//!                                                 4. looks all F(x_i) up
//! ```
//!
//! A lookup takes a time that depends on the item and on the filter, so all of them follow the
//! client's last message.
//!
//! Before, over a connection, the server says which filter it has and what is left to the client,
//! or why it has no time for it, and the client may fetch the filter ([`meeting`]).
//!
//! A tag has `40 + log2 queries + log2 items` bits, rounded up, so that one of so many queries of
//! all clients is answered with a false yes with probability at most 2^-40; there is no false no.
//!
//! Security: that of a verifiable oblivious pseudorandom function, under the one-more gap
//! Diffie-Hellman assumption with random oracles (Jarecki, Kiayias, Krawczyk, ASIACRYPT 2014; RFC
//! 9497, section 7).
//!
//! * *A malicious client* learns at most one value of `F` for each element that is answered, and so
//!   at most which of as many items are in the set: [`Budget`] bounds that number. It can choose
//!   its items one after another, by the answers before, and without a [`Budget`] it can ask for
//!   all items there are. The filter alone tells it the number of items.
//! * *A malicious server* learns the number of items of a query only: the elements are uniformly
//!   random, and all of them, independent of the items. It cannot use another key for some clients
//!   or items than for the filter, because of the proof. But the filter has whatever tags it put in
//!   it: nothing shows that these are of items that it has, **so that in this respect the server is
//!   semi-honest**. It learns nothing from a client that does not tell it what it found. Clients
//!   with the same [`version`](Label::version) have the same filter.
//! * Queries of one client can be linked by the connection, not by their contents.
//! * A new set, even one with a single new item, needs a new key: with the old one a client that
//!   has both filters sees which tags are new, and looks up the values of `F` that it has got
//!   before without asking again.
//!
//! A failed check ends a query with an error and no result. The key is long-lived: whoever has it
//! can test any item against the filter. Another set, or another key, is another filter.
//!
//! Cost: a filter takes about `43 + log2 queries` bits for each item, [`filter_bytes`]. A request
//! of `q` items is a message of `40 + 32 q` bytes and one of `81 + 32 q` back: [`bytes`]. The
//! server does a multiplication for each item and less than another one for the proof, and none for
//! its set.

mod filter;
pub mod meeting;
mod preparing;
mod voprf;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use curve25519_dalek::Scalar;
use rayon::prelude::*;
use volery_channel::{Channel, Hello, Role};
use volery_primitives::prg::Prg;
use zeroize::Zeroizing;

pub use crate::error::Later;
use crate::error::{Error, Result, misbehaved};
use crate::items::Items;
use crate::params::MAX_ITEMS;
use crate::watch::{Phase, Watch};
pub use filter::{Filter, Label, MAX_QUERIES};
pub use preparing::SetBuilder;
use voprf::{EncodedElement, MAX_BATCH, MAX_INPUT, PROOF};

/// Items that one thread prepares at a time.
const TASK: usize = 256;

/// Items that are prepared between two reports.
const PIECE: usize = 1 << 16;

/// Bytes of the front of a request: the version of the filter, and the number of items.
const REQUEST: usize = 32 + 8;

/// Bytes of the front of an answer: the verdict, the rest of the budget, and seconds until it is
/// worth while to ask again.
const VERDICT: usize = 1 + 8 + 8;

/// The verdicts of the server.
const ANSWERED: u8 = 0;
const OTHER_VERSION: u8 = 1;
const OVER_BUDGET: u8 = 2;
/// The first of those with a [`Later`].
const LATER: u8 = 3;

/// No limit, or no time.
const NONE: u64 = u64::MAX;

/// This party's hello for the handshake of a query; the server is the sender.
pub fn hello(role: Role) -> Hello {
    Hello {
        protocol: "served query",
        role: role.name(),
        fields: vec![("variant", "ristretto255-SHA512".to_owned())],
    }
}

/// Bytes that the server and the client send for a query of so many items.
pub const fn bytes(items: u64) -> (u64, u64) {
    let requests = items.div_ceil(MAX_BATCH as u64);
    ((VERDICT + PROOF) as u64 * requests + 32 * items, REQUEST as u64 * (requests + 1) + 32 * items)
}

/// Bytes of the filter of so many items, for so many queries.
pub fn filter_bytes(items: u64, queries: u64) -> u64 {
    filter::bytes(items, queries)
}

/// A server's secret key. `Debug` shows its public key.
pub struct Key {
    secret: Zeroizing<Scalar>,
    public: EncodedElement,
}

impl Key {
    /// A new key.
    #[must_use]
    pub fn random(rng: &mut Prg) -> Self {
        Self::new(Zeroizing::new(voprf::random(rng)))
    }

    fn new(secret: Zeroizing<Scalar>) -> Self {
        Self { public: voprf::public(&secret), secret }
    }

    /// The key with these bytes, those of [`to_bytes`](Self::to_bytes); `None` if there is none.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        let secret = voprf::decode_scalar(*bytes)?;
        (secret != Scalar::ZERO).then(|| Self::new(Zeroizing::new(secret)))
    }

    /// Its bytes, which are secret.
    pub fn to_bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.secret.to_bytes())
    }

    /// The public key, which names the key.
    pub const fn public(&self) -> &[u8; 32] {
        &self.public
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(public {:02x?}, ..)", self.public)
    }
}

/// The number of items that a client may ask for. All connections of a client share it.
pub trait Allow: Sync {
    /// Takes `items` before they are answered; how many are left then, `None` for no limit.
    ///
    /// # Errors
    /// The reason for which they are not answered; then nothing was taken.
    fn take(&self, items: u64) -> std::result::Result<Option<u64>, Refusal>;
}

/// The reason for which a server does not answer. The client learns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The client has asked for too many items.
    Budget {
        /// Items that it may still ask for.
        left: u64,
        /// When there will be more, if ever.
        wait: Option<Duration>,
    },
    /// Not now.
    Later(Later, Duration),
}

impl Later {
    const ALL: [Self; 4] = [Self::Rate, Self::Connections, Self::Full, Self::Unavailable];

    fn word(self) -> u8 {
        LATER + self as u8
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Budget { left, wait } => Self::Budget { left, wait },
            Refusal::Later(why, wait) => Self::Later { why, wait },
        }
    }
}

/// A number of items, in memory.
#[derive(Debug)]
pub struct Budget(AtomicU64);

impl Budget {
    /// A budget of so many items.
    pub const fn new(items: u64) -> Self {
        Self(AtomicU64::new(items))
    }

    /// Items that the client may still ask for.
    pub fn left(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

impl Allow for Budget {
    fn take(&self, items: u64) -> std::result::Result<Option<u64>, Refusal> {
        let update = |left: u64| left.checked_sub(items);
        let taken = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, update);
        match taken {
            Ok(before) => Ok(Some(before - items)),
            // no mutant: a mutant switches `take` off
            Err(left) => Err(Refusal::Budget { left, wait: None }),
        }
    }
}

/// Prepares a set for queries: the filter of these items. Equal items count once. `queries` is the
/// number of queries, of all clients together, of which one may be answered with a false yes with
/// probability 2^-40.
///
/// # Panics
/// If `queries` is zero or above [`MAX_QUERIES`].
///
/// # Errors
/// [`Error::TooMany`] if there are more items than [`MAX_ITEMS`]; [`Error::LongItem`] if one is
/// longer than 65535 bytes.
pub fn prepare(
    key: &Key,
    items: &(impl Items + ?Sized),
    queries: u64,
    watch: &mut dyn Watch,
) -> Result<Filter> {
    assert!((1..=MAX_QUERIES).contains(&queries), "a number of queries");
    let count = items.len() as u64;
    if count > MAX_ITEMS {
        return Err(Error::TooMany { items: count, most: MAX_ITEMS });
    }
    check_lengths(items)?;
    watch.begin(Phase::Hash, count);
    let mut outputs = vec![0; items.len()];
    for (piece, outputs) in outputs.chunks_mut(PIECE).enumerate() {
        let first = piece * PIECE;
        evaluate(key, items, first, outputs);
        watch.done((first + outputs.len()) as u64);
    }
    outputs.par_sort_unstable();
    outputs.dedup();
    Ok(Filter::new(key.public, queries, &outputs))
}

/// The numbers of the outputs on the items from `first` on.
fn evaluate(key: &Key, items: &(impl Items + ?Sized), first: usize, numbers: &mut [u128]) {
    let tasks = numbers.par_chunks_mut(TASK).enumerate();
    tasks.for_each(|(task, numbers)| {
        let first = first + task * TASK;
        let inputs: Vec<_> = (first..first + numbers.len()).map(|i| items.item(i)).collect();
        voprf::evaluate(&key.secret, &inputs, |i, output| numbers[i] = number(&output));
    });
}

/// The file of a dishonest server: as many tags with the high part of the tag of the only item.
#[cfg(feature = "testing")]
pub fn crowded(key: &Key, item: &(impl Items + ?Sized), tags: u64) -> Vec<u8> {
    let mut output = [0];
    evaluate(key, item, 0, &mut output);
    let high = output[0] >> 100 << 100;
    let outputs: Vec<_> = (0..u128::from(tags)).map(|i| high | i << 80).collect();
    Filter::dishonest(key.public, 1 << 20, &outputs)
}

fn check_lengths(items: &(impl Items + ?Sized)) -> Result<()> {
    let long = (0..items.len()).find(|&item| items.item(item).len() > MAX_INPUT);
    match long {
        Some(item) => Err(Error::LongItem { item, bytes: items.item(item).len() }),
        None => Ok(()),
    }
}

/// The first 128 bits of an output, of which a tag is the highest ones.
fn number(output: &[u8; 64]) -> u128 {
    u128::from_be_bytes(*output.first_chunk().expect("64 bytes"))
}

/// A server that answers queries: its key, and the version of its filter. Many threads may answer
/// at once.
#[derive(Debug)]
pub struct Server {
    key: Key,
    version: [u8; 32],
}

impl Server {
    /// The server for a filter that was prepared with this key.
    ///
    /// # Errors
    /// [`Error::Filter`] if the filter is for another key.
    pub fn new(key: Key, filter: &Label) -> Result<Self> {
        if key.public() != filter.public() {
            // no mutant: this party's own key and filter
            return Err(Error::Filter("it is for another key"));
        }
        Ok(Self { key, version: *filter.version() })
    }

    /// Answers the requests of one client until it says that they are all; the number of items. A
    /// request is paid for before it is answered. `rng` must be new: proofs of two requests with
    /// the same random numbers reveal the key.
    ///
    /// # Errors
    /// [`Error::OtherVersion`], [`Error::Budget`] or [`Error::Later`] if a request was refused,
    /// which the client learns; if the channel fails, or the peer does not follow the protocol.
    pub fn answer(
        &self,
        rng: &mut Prg,
        allowed: &(impl Allow + ?Sized),
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<u64> {
        let mut answered = 0;
        watch.begin(Phase::Rows, 0);
        loop {
            let mut request = [0; REQUEST];
            channel.recv(&mut request)?;
            let (version, items) = request.split_at(32);
            let items = u64::from_le_bytes(*items.first_chunk().expect("8 bytes"));
            if items == 0 {
                return Ok(answered);
            }
            // mutant(psi-served-request): false
            if items > MAX_BATCH as u64 {
                return Err(misbehaved("its request has more items than a request may"));
            }
            let mut blinded = vec![[0; 32]; items as usize];
            channel.recv(blinded.as_flattened_mut())?;
            // mutant(psi-served-version): false
            if version != self.version {
                channel.send(&verdict(OTHER_VERSION, NONE, None))?;
                channel.flush()?;
                return Err(Error::OtherVersion);
            }
            // mutant(psi-served-budget): `allowed.take(items)` => `Ok(None)`
            let left = match allowed.take(items) {
                Ok(left) => left.unwrap_or(NONE),
                Err(refusal) => {
                    channel.send(&refused(&refusal))?;
                    channel.flush()?;
                    return Err(refusal.into());
                }
            };
            let mut evaluated = blinded.clone(); // step 2
            let pair = (&*self.key.secret, &self.key.public);
            let proof = voprf::multiply(&self.key.secret, &mut evaluated).then(|| {
                let nonce = Zeroizing::new(voprf::nonce(pair, &blinded, &evaluated, rng));
                voprf::prove(pair, &blinded, &evaluated, &nonce)
            });
            // mutant(psi-served-elements): `flatten()` => `$0.or_else(|| $ON.then_some([0;
            //     PROOF]))`
            let Some(proof) = proof.flatten() else {
                return Err(misbehaved(
                    "it sent what is not an element of the group, or the identity",
                ));
            };
            channel.send(&verdict(ANSWERED, left, None))?;
            channel.send(evaluated.as_flattened())?;
            channel.send(&proof)?;
            channel.flush()?;
            answered += items;
            watch.done(answered);
        }
    }
}

fn verdict(word: u8, left: u64, wait: Option<Duration>) -> [u8; VERDICT] {
    let mut verdict = [word; VERDICT];
    // Whoever comes again so much later does not come too early.
    let seconds = wait.map_or(NONE, |wait| {
        let seconds = wait.as_millis().div_ceil(1000);
        u64::try_from(seconds).unwrap_or(NONE).min(NONE - 1)
    });
    verdict[1..9].copy_from_slice(&left.to_le_bytes());
    verdict[9..].copy_from_slice(&seconds.to_le_bytes());
    verdict
}

fn refused(refusal: &Refusal) -> [u8; VERDICT] {
    match *refusal {
        Refusal::Budget { left, wait } => verdict(OVER_BUDGET, left, wait),
        Refusal::Later(why, wait) => verdict(why.word(), NONE, Some(wait)),
    }
}

/// A client of a server, with the server's filter.
#[derive(Debug)]
pub struct Client<'a> {
    filter: &'a Filter,
    rng: Prg,
}

/// The result of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryAnswer {
    /// The numbers of the client's items that the server has, ascending.
    pub common: Vec<usize>,
    /// Items that the client may still ask for, as the server says; `None` if there is no limit, or
    /// nothing was asked.
    pub left: Option<u64>,
}

impl<'a> Client<'a> {
    /// The client for one query. The filter must be the server's: a version that the client has
    /// from elsewhere, or that it fetched over an authenticated channel.
    pub const fn new(filter: &'a Filter, rng: Prg) -> Self {
        Self { filter, rng }
    }

    /// Learns which of these items the server has. Equal items may occur.
    ///
    /// # Errors
    /// [`Error::LongItem`] if an item is longer than 65535 bytes; [`Error::OtherVersion`] if the
    /// filter is out of date; [`Error::Budget`] or [`Error::Later`] if the server refuses to answer
    /// more; if the channel fails, or the peer does not follow the protocol.
    pub fn query(
        mut self,
        items: &(impl Items + ?Sized),
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<QueryAnswer> {
        check_lengths(items)?;
        let public = voprf::decode(*self.filter.public());
        let public = public.expect("the key of a filter is an element");
        watch.begin(Phase::Rows, items.len() as u64);
        let mut left = None;
        let mut all = Zeroizing::new(Vec::with_capacity(items.len()));
        for first in (0..items.len()).step_by(MAX_BATCH) {
            let numbers = first..items.len().min(first + MAX_BATCH);
            let inputs: Vec<_> = numbers.map(|item| items.item(item)).collect();
            let mut blinds = Zeroizing::new(vec![Scalar::ZERO; inputs.len()]); // step 1
            blinds.fill_with(|| voprf::random(&mut self.rng));
            let blinded = voprf::blind(&inputs, &blinds);
            self.request(inputs.len() as u64, channel)?;
            channel.send(blinded.as_flattened())?;
            channel.flush()?;

            left = accepted(channel)?; // step 3
            let mut evaluated = vec![[0; 32]; inputs.len()];
            channel.recv(evaluated.as_flattened_mut())?;
            let mut proof = [0; PROOF];
            channel.recv(&mut proof)?;
            let pair = (&public, self.filter.public());
            // mutant(psi-served-proof): `let Some(points) = voprf::verify(pair, &blinded,
            //     &evaluated, &proof)` => `let unproven = || $ON.then(||
            //     evaluated.iter().filter_map(|&element| voprf::decode(element)).collect());
            //     $0.or_else(unproven)`
            let Some(points) = voprf::verify(pair, &blinded, &evaluated, &proof) else {
                return Err(misbehaved(
                    "its proof does not show that it used the key of its filter",
                ));
            };
            let outputs = voprf::finalize(&inputs, &mut blinds, &points);
            all.extend(outputs.iter().map(|output| number(output)));
            // mutant(whole-early-lookup): insert `if $ON { watch.touched(all.iter().map(|output|
            //     self.filter.find(*output).1).sum()); }`
            watch.done((first + inputs.len()) as u64);
        }
        self.request(0, channel)?;
        channel.flush()?;
        let mut common = Vec::new();
        let mut touched = 0;
        for (item, &output) in all.iter().enumerate() {
            let (found, read) = self.filter.find(output); // step 4
            touched += read;
            if found {
                common.push(item);
            }
        }
        watch.touched(touched);
        Ok(QueryAnswer { common, left })
    }

    fn request(&self, items: u64, channel: &mut Channel) -> Result<()> {
        channel.send(self.filter.version())?;
        Ok(channel.send(&items.to_le_bytes())?)
    }
}

/// The rest of the budget, if the server answers.
fn accepted(channel: &mut Channel) -> Result<Option<u64>> {
    let mut verdict = [0; VERDICT];
    channel.recv(&mut verdict)?;
    let (word, numbers) = (verdict[0], &verdict[1..]);
    let number = |at: usize| {
        let bytes = numbers[at..].first_chunk().expect("8 bytes");
        Some(u64::from_le_bytes(*bytes)).filter(|number| *number != NONE)
    };
    let left = number(0);
    // A year is as good as any longer time, and has no overflow.
    let wait = number(8).map(|seconds| Duration::from_secs(seconds.min(365 * 86_400)));
    let later = Later::ALL.into_iter().find(|later| later.word() == word);
    match (word, later) {
        (ANSWERED, _) => Ok(left),
        // mutant(psi-served-old): insert `(OTHER_VERSION, _) if $ON => Ok(left),`
        (OTHER_VERSION, _) => Err(Error::OtherVersion),
        // mutant(psi-served-over): insert `(OVER_BUDGET, _) if $ON => Ok(left),`
        (OVER_BUDGET, _) => {
            let left = left.unwrap_or(0);
            Err(Error::Budget { left, wait })
        }
        // mutant(psi-served-later): insert `(_, Some(_)) if $ON => Ok(left),`
        (_, Some(why)) => {
            let wait = wait.unwrap_or_default();
            Err(Error::Later { why, wait })
        }
        // mutant(psi-served-verdict): insert `_ if $ON => Ok(left),`
        _ => Err(misbehaved("it sent an unknown status code")),
    }
}

#[cfg(test)]
pub(crate) use filter::counting;
#[cfg(test)]
mod tests;
