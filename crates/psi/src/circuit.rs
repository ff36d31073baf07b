//! Circuit-PSI: shares of which items are common and of values that belong to them, and nothing in
//! the clear until a caller opens a total. Pinkas, Schneider, Tkachenko, Yanai, *Efficient
//! Circuit-Based PSI with Linear Communication*, EUROCRYPT 2019, over the OPRF and key-value store
//! of Rindal and Schoppmann, *VOLE-PSI*, EUROCRYPT 2021 ([`crate::vole`]); Chandran, Gupta, Shah,
//! *Circuit-PSI with Linear Complexity via Relaxed Batch OPPRF*, PETS 2022, for the comparison of
//! values by GMW on correlated OTs.
//!
//! ```text
//! Sender: Y, values v(y)                           Receiver: X, weights g(x)
//! 0. sizes, settings, seed, committed to           (module agree)
//! 1. cuckoo hashing with three functions, from the seed:
//!    y in its three bins, with the function j      each x in one bin
//! 2. F(y, j)          <------ OPRF (vole) ------>  F(x, j)
//! 3. setup of correlated OTs
//!    for each slice of bins:
//! 4. r_i: choice bits <------ random OTs ------->
//!    s_i, a_i         <------ random OTs ------->  c_i, a_i + c_i s_i
//! 5. Q = Encode({F(y, j) -> (r_i, v(y) - s_i) + mask(F(y, j))}),
//!    random where it is free
//!    --------------------- Q --------------------> r'_i, v'_i (random in an empty bin)
//! 6. shares of b_i: whether r_i = r'_i, an AND of all bits    (module gmw)
//! 7. <---------- shares + c_i of b_i -------------
//!    shares of b_i (v'_i + s_i) and b_i g_i   <---- products ---->
//! 8. -------------------- end ------------------->
//!    <------------------- end --------------------
//! ```
//!
//! The slots of the result are the bins. Only the receiver knows which of its items is in which
//! bin; the number of bins follows from its number of items. Without payload there is no `s_i` and
//! no first message of step 7.
//!
//! **Inputs of the OPRF.** `(y, j)` is the encryption of the digest of `y`, with `j` in its low
//! bits, under a key from the seed. The OPRF chooses the bin of an input by its high bits, which
//! without that would be the same for all three functions: an item would put three inputs into one
//! bin, and bins overflow far more often than with `3n` independent inputs.
//!
//! **Step 7.** With a random OT of bit `c` and `h = a + c s`, and shares `b = g + c - 2gc`, where
//! the sender has `g` and the receiver `c`:
//!
//! ```text
//! b (v' + s) = [h + c v'] + g [(1 - 2c) v' - 2h] + [g s - (1 - 2g) a]
//! ```
//!
//! so that one product of the sender's bit and a value of the receiver is enough.
//!
//! **Why the fast form of the OPRF.** Its values have 128 bits, and all of them are used: a hint is
//! masked and placed by `F`. The low-communication form is sound here too, as the sender evaluates
//! `F` on `3n` points that are fixed before the seed, but rests on a code for dual LPN of
//! estimated distance, as [`Form::Low`] says: for users who name it.
//!
//! Security: **semi-honest**, against either party; each learns the size of the other's set. No
//! malicious form is known that is practical: the malicious form of the OPRF is refused, as the
//! rest would not hold what its name says. In the random oracle and ideal cipher models, under the
//! assumptions of [`Parameters::assumption`].
//!
//! Cost: [`Parameters::bytes`]. A slice has one message of hints, one or two for each of the six or
//! seven levels of step 6, and three for step 7 (two without payload), beside those of the
//! correlated OTs; steps 0 and 8 have 112 bytes each way. A caller with values on one side only
//! lets that party be the receiver: a column of weights costs 8.1 bytes a bin, one of payload 26
//! bytes for each of the sender's items more. A comparison is 15 messages of up to 16 bytes. A
//! product of values of both parties costs 520 bytes, and one of a bit of the receiver and a shared
//! value ([`Receiver::select`]) 8.1.
//!
//! Shares of several executions can be added up and opened by another one, which has no items
//! ([`opening`]).

mod gmw;
pub mod opening;
mod params;
mod protocol;

use std::ops::Range;

use volery_channel::{Channel, Error as ChannelError, Role, SessionId};
use volery_okvs::{Band, Rows, Value};
use volery_primitives::aes::Aes128;
use volery_primitives::cuckoo::{FUNCTIONS, Hasher, Table};
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use volery_primitives::{Block, bits};
use zeroize::Zeroizing;

use crate::agree::{Agreement, Terms};
use crate::duplicates::check_duplicates;
use crate::error::{Error, Result, misbehaved};
use crate::items::{Items, digests, input};
use crate::vole::packed::{self, mask};
use crate::vole::{self, Form};
use crate::watch::{Phase, Watch};

use gmw::Bits;
pub use params::Parameters;
pub use protocol::Circuit;

/// The maximum number of items of a set.
pub const MAX_ITEMS: u64 = 1 << 29;

/// The maximum number of comparisons with [`at_least`](Opener::at_least) in a run.
pub const COMPARISONS: usize = 64;

/// Slots of [`multiply`](Sender::multiply) at a time.
const MULTIPLIED: usize = 1 << 13;

/// Slots of [`select`](Sender::select) at a time; whole bytes of bits.
const SELECTED: usize = 1 << 16;

/// The settings of a run. Equal on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The form of the OPRF and of the correlated OTs: not the malicious one.
    pub form: Form,
    /// The sender's columns of values.
    pub payload: usize,
    /// The receiver's columns of weights.
    pub weights: usize,
    /// The maximum number of times that all bins are [multiplied](Sender::multiply).
    pub products: usize,
    /// The maximum number of times that the receiver [selects](Receiver::select) among all bins.
    pub selections: usize,
    /// Executions that share a failure probability, as those of the shards of one run.
    pub parts: u64,
}

impl Default for Settings {
    /// The fast form, without values.
    fn default() -> Self {
        Self { form: Form::Fast, payload: 0, weights: 0, products: 0, selections: 0, parts: 1 }
    }
}

impl Settings {
    fn assert_semi_honest(self) {
        assert!(
            self.form != Form::Malicious,
            "circuit-PSI is for semi-honest parties: there is no malicious form"
        );
    }

    /// The terms compared with the peer's.
    fn terms(self) -> Terms {
        let mut oracle = RandomOracle::new("volery circuit psi: terms");
        // mutant(circuit-terms-form): drop
        oracle.absorb(self.form.name().as_bytes());
        let Self { payload, weights, products, selections, parts, .. } = self;
        for number in [payload, weights, products, selections] {
            // mutant(circuit-terms-columns): `number as u64` => `0`
            oracle.absorb_u64(number as u64);
        }
        oracle.absorb_u64(parts);
        *oracle.finish32().first_chunk().expect("32 bytes")
    }
}

/// A party's shares of some consecutive bins. Wiped when dropped.
pub struct Slice {
    /// The bins.
    pub bins: Range<usize>,
    /// For each bin a share of whether its item is common, by XOR; packed, low bit first.
    pub bits: Zeroizing<Vec<u8>>,
    /// For each column of the sender's payload and each bin a share modulo `2^64` of the value of
    /// the common item, or of zero.
    pub payload: Vec<Buffer<u64>>,
    /// The same for each column of the receiver's weights.
    pub weights: Vec<Buffer<u64>>,
}

impl Slice {
    /// The sum of shares modulo `2^64`: a share of the sum.
    pub fn sum(shares: &[u64]) -> u64 {
        shares.iter().fold(0, |sum, share| sum.wrapping_add(*share))
    }
}

/// The party or parties that get values that are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recipient {
    /// The receiver alone.
    #[default]
    Receiver,
    /// The sender alone.
    Sender,
    /// Both parties.
    Both,
}

impl Recipient {
    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Receiver => "receiver",
            Self::Sender => "sender",
            Self::Both => "both",
        }
    }

    /// Whether the party of this role gets them.
    pub fn gives(self, role: Role) -> bool {
        match self {
            Self::Both => true,
            Self::Receiver => role == Role::Receiver,
            Self::Sender => role == Role::Sender,
        }
    }
}

/// A party that compares and opens values of which both parties have shares. Both call the same
/// methods in the same order.
pub trait Opener {
    /// Whether a value is at least `least`, the same number at both parties, and both below `2^63`.
    /// Both parties learn that, and nothing else.
    ///
    /// # Panics
    /// If `least` is `2^63` or more, or there are more calls than [`COMPARISONS`], or than
    /// comparisons were set up.
    ///
    /// # Errors
    /// If the channel fails, or the peer does not follow the protocol; an error of the channel if
    /// an earlier call failed.
    fn at_least(&mut self, share: u64, least: u64, channel: &mut Channel) -> Result<bool>;

    /// Opens values; `None` for a party that does not get them. Fails as
    /// [`at_least`](Self::at_least) does.
    fn open(
        &mut self,
        shares: &[u64],
        to: Recipient,
        channel: &mut Channel,
    ) -> Result<Option<Vec<u64>>>;
}

/// Implements [`Opener`] for a party with this role.
macro_rules! opener {
    ($party:ident, $role:expr) => {
        impl Opener for $party {
            fn at_least(&mut self, share: u64, least: u64, channel: &mut Channel) -> Result<bool> {
                call(&mut self.state, |run| {
                    run.compare(least);
                    match &mut run.side {
                        Some(side) => at_least(&mut side.gates, share, least, channel),
                        None => Ok(least == 0),
                    }
                })
            }

            fn open(
                &mut self,
                shares: &[u64],
                to: Recipient,
                channel: &mut Channel,
            ) -> Result<Option<Vec<u64>>> {
                call(&mut self.state, |_| open($role, shares, to, channel))
            }
        }
    };
}

opener!(Sender, Role::Sender);
opener!(Receiver, Role::Receiver);

/// The party that has payload. It learns nothing about which bin has which item.
///
/// A failed call wipes it, and every later one is refused.
pub struct Sender {
    parameters: Parameters,
    state: Option<Box<Run<SenderSide>>>,
}

/// The party whose items are in the bins.
///
/// Like [`Sender`].
pub struct Receiver {
    parameters: Parameters,
    table: Option<Table>,
    state: Option<Box<Run<ReceiverSide>>>,
}

/// A party from the setup on.
struct Run<S> {
    agreement: Agreement,
    hints: Hints,
    rng: Prg,
    /// Slices, and the end, that are done.
    done: usize,
    /// Comparisons that are done, and products of both parties' factors.
    compared: usize,
    multiplied: usize,
    /// Slots among which the receiver has selected.
    selected: usize,
    /// `None` if a set is empty.
    side: Option<S>,
}

struct SenderSide {
    gates: gmw::Receiver,
    /// The OTs of which this party has `delta`, if there is payload or a selection.
    masks: Option<gmw::Sender>,
    /// `F`, slice after slice, and to each the number of the item, times three, plus that of the
    /// function.
    outputs: Buffer<Block>,
    numbers: Buffer<u32>,
    /// Where the outputs of each slice begin, and the end.
    starts: Vec<usize>,
    /// The bins of each item.
    places: Buffer<[u32; FUNCTIONS]>,
    payload: Vec<Buffer<u64>>,
}

struct ReceiverSide {
    gates: gmw::Sender,
    masks: Option<gmw::Receiver>,
    /// `F` for each bin that is not empty.
    outputs: Buffer<Block>,
    starts: Vec<usize>,
    weights: Vec<Buffer<u64>>,
}

/// The encoding of hints.
struct Hints {
    band: Option<Band>,
    /// The masks of `r`, and of each column.
    masks: Vec<Aes128>,
}

impl Hints {
    fn new(parameters: &Parameters, agreement: &Agreement) -> Self {
        let mut keys = vec![Block::ZERO; 2 + parameters.settings.payload];
        let seed = agreement.derive("hints", 0);
        let (seed, _) = seed.split_first_chunk().expect("32 bytes");
        Aes128::new(Block::from_bytes(*seed)).ctr(0, &mut keys);
        let band = (!parameters.trivial()).then(|| Band::new(parameters.shape(), keys[0]));
        let masks = keys[1..].iter().map(|key| Aes128::new(*key)).collect();
        Self { band, masks }
    }

    fn band(&self) -> &Band {
        self.band.as_ref().expect("neither set is empty")
    }

    /// An encoding that hides the keys and the values of others: uniform where it is free.
    ///
    /// # Errors
    /// [`Error::Unplaced`] if the rows are dependent.
    fn encode<V: Value>(&self, rows: &Rows, values: &[V], rng: &mut Prg) -> Result<Buffer<V>> {
        let band = self.band();
        let mut encoding = Buffer::zeroed(band.shape().columns);
        // mutant(circuit-hints): `band.encode_random(rows, values, &mut encoding, rng)` =>
        //     `band.encode(rows, values, &mut encoding)`
        let encoded = band.encode_random(rows, values, &mut encoding, rng);
        encoded.map_err(|_| Error::Unplaced { attempts: 1 })?;
        Ok(encoding)
    }

    /// `mask(F)`, number `which`.
    fn masks(&self, which: usize, outputs: &[Block]) -> Buffer<Block> {
        let mut masks = Buffer::zeroed(outputs.len());
        self.masks[which].feed_forward(outputs, &mut masks);
        masks
    }
}

/// The session of a part of the protocol.
fn part(session: SessionId, name: &str) -> SessionId {
    let id = RandomOracle::new("volery circuit psi: part")
        .absorb(session.as_bytes())
        .absorb(name.as_bytes())
        .finish32();
    SessionId::from_bytes(id)
}

/// Step 0, and the digests of this party's items.
fn begin(
    role: Role,
    (session, rng): (SessionId, &mut Prg),
    items: &(impl Items + ?Sized),
    settings: Settings,
    watch: &mut dyn Watch,
    channel: &mut Channel,
) -> Result<(Agreement, Buffer<Block>)> {
    settings.assert_semi_honest();
    if items.len() as u64 > MAX_ITEMS {
        return Err(Error::TooMany { items: items.len() as u64, most: MAX_ITEMS });
    }
    watch.begin(Phase::Agree, 0);
    let said = (items.len(), 0);
    let agreement = Agreement::reach(role, session, rng, settings.terms(), said, channel)?;
    // mutant(circuit-items): false
    if agreement.sender_items.max(agreement.receiver_items) > MAX_ITEMS {
        return Err(misbehaved("it announced a set larger than the maximum"));
    }
    watch.begin(Phase::Hash, items.len() as u64);
    let digests = digests(&agreement.salt(), items, &mut |done| watch.done(done as u64));
    check_duplicates(&digests, |place| place)?;
    Ok((agreement, digests))
}

/// Copies of these columns.
fn columns(columns: &[&[u64]], count: usize, items: usize) -> Vec<Buffer<u64>> {
    assert_eq!(columns.len(), count, "as many columns as in the settings");
    let copy = |column: &&[u64]| {
        assert_eq!(column.len(), items, "a value for each item");
        let mut copy = Buffer::zeroed(items);
        copy.copy_from_slice(column);
        copy
    };
    columns.iter().map(copy).collect()
}

/// Runs a call on the state of a party, which a failed one wipes.
fn call<S, T>(state: &mut Option<Box<S>>, run: impl FnOnce(&mut S) -> Result<T>) -> Result<T> {
    let mut inner = state.take().ok_or(ChannelError::Broken)?;
    // mutant(circuit-broken): `run(&mut inner)?` => `match run(&mut inner) { Err(error) if $ON => {
    //     *state = Some(inner); return Err(error); } out => out? }`
    let out = run(&mut inner)?;
    *state = Some(inner);
    Ok(out)
}

impl<S> Run<S> {
    fn new(parameters: &Parameters, agreement: Agreement, rng: Prg) -> Self {
        Self {
            hints: Hints::new(parameters, &agreement),
            agreement,
            rng,
            done: 0,
            compared: 0,
            multiplied: 0,
            selected: 0,
            side: None,
        }
    }

    /// Step 8, once.
    fn end(&mut self, role: Role, parameters: &Parameters, channel: &mut Channel) -> Result<()> {
        if self.done > parameters.slices() {
            return Ok(());
        }
        let words = parameters.words();
        channel.send(&self.agreement.end(role, &words))?;
        let mut end = [0; 16];
        channel.recv(&mut end)?;
        // mutant(circuit-end): false
        if end != self.agreement.end(role.other(), &words) {
            return Err(misbehaved("it sent more or less data than the set sizes require"));
        }
        self.done += 1;
        Ok(())
    }

    /// Counts products.
    fn multiply(&mut self, parameters: &Parameters, count: usize) {
        self.multiplied += count;
        assert!(
            self.multiplied <= parameters.settings.products * parameters.bins,
            "more products than the settings announce"
        );
    }

    /// Counts slots of selections.
    fn select(&mut self, parameters: &Parameters, count: usize) {
        self.selected += count;
        assert!(
            self.selected <= parameters.settings.selections * parameters.bins,
            "more selections than the settings announce"
        );
    }

    /// Counts a comparison with this bound.
    fn compare(&mut self, least: u64) {
        assert!(least < 1 << 63, "a bound below 2^63");
        assert!(self.compared < COMPARISONS, "more than COMPARISONS comparisons");
        self.compared += 1;
    }
}

/// Exchanges a bit.
fn open_bit(bit: bool, channel: &mut Channel) -> Result<bool> {
    channel.send(&[bit.into()])?;
    let mut theirs = [0];
    channel.recv(&mut theirs)?;
    Ok(bit ^ (theirs[0] & 1 == 1))
}

/// Whether the value of which both parties have a share is at least `least`.
///
/// # Panics
/// If `least` is `2^63` or more.
fn at_least<P: gmw::Party>(
    gates: &mut P,
    share: u64,
    least: u64,
    channel: &mut Channel,
) -> Result<bool> {
    assert!(least < 1 << 63, "a bound below 2^63");
    let input = if P::CONSTANTS { share.wrapping_sub(least) } else { share };
    let negative = gmw::is_negative(gates, input, channel)?;
    // The same party negates the shared bit.
    open_bit(negative ^ P::CONSTANTS, channel)
}

/// Opens shares modulo `2^64`.
fn open(
    role: Role,
    shares: &[u64],
    to: Recipient,
    channel: &mut Channel,
) -> Result<Option<Vec<u64>>> {
    if to.gives(role.other()) {
        for share in shares {
            channel.send(&share.to_le_bytes())?;
        }
        channel.flush()?;
    }
    if !to.gives(role) {
        return Ok(None);
    }
    let mut theirs = vec![0; 8 * shares.len()];
    channel.recv(&mut theirs)?;
    let theirs = theirs.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    let sums = shares.iter().zip(theirs);
    Ok(Some(sums.map(|(ours, theirs)| ours.wrapping_add(theirs)).collect()))
}

/// Step 6: the bits of each block that are ANDed with each other, then of the results, up to one
/// bit. `first` gives the shares of the first level from its inputs.
fn all_ones<P: gmw::Party>(
    party: &mut P,
    blocks: &mut [Block],
    bits: u32,
    first: impl FnOnce(&[u8], &[u8], &mut Channel) -> gmw::Shares,
    channel: &mut Channel,
) -> Result<Bits> {
    let mut first = Some(first);
    let mut length = bits;
    let [mut a, mut b] = [(); 2].map(|()| Zeroizing::new(Vec::new()));
    let mut other = Buffer::zeroed(blocks.len());
    while length > 1 {
        let half = length / 2;
        packed::pack(blocks, half, &mut a);
        for (other, block) in other.iter_mut().zip(&*blocks) {
            *other = Block::new(u128::from(*block) >> half);
        }
        packed::pack(&other, half, &mut b);
        let count = blocks.len() * half as usize;
        let mut product = match first.take() {
            Some(first) => first(&a, &b, channel)?,
            None => party.and(&a, &b, count, channel)?,
        };
        product.extend([0; 16]);
        packed::unpack(&product, half, &mut other);
        // A bit that is left over comes after the products.
        for (block, product) in blocks.iter_mut().zip(&*other) {
            let rest = u128::from(*block) >> (2 * half) & u128::from(length % 2);
            *block = Block::new(u128::from(*product) | rest << half);
        }
        length -= half;
    }
    let mut out = Zeroizing::new(Vec::new());
    packed::pack(blocks, 1, &mut out);
    Ok(out)
}

impl Sender {
    /// Steps 0 to 3, for a session that no other object uses and this party's randomness. The call
    /// fixes the items, which must be distinct. `payload`: columns, each with a value for each
    /// item.
    ///
    /// # Panics
    /// If the form is the malicious one, or there are not as many columns as in the settings, or
    /// not as many values in a column as items.
    ///
    /// # Errors
    /// [`Error::Duplicate`] if two items are equal; [`Error::TooMany`]; if the channel fails, or
    /// the peer does not follow the protocol.
    pub fn setup(
        items: &(impl Items + ?Sized),
        payload: &[&[u64]],
        settings: Settings,
        randomness: (SessionId, Prg),
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Self> {
        let of = |[sender, receiver]: [u64; 2]| Parameters::new(settings, sender, receiver);
        Self::with(of, (items, payload), settings, randomness, watch, channel)
    }

    /// With the parameters that `of` has for two sizes.
    fn with(
        of: impl FnOnce([u64; 2]) -> Parameters,
        (items, payload): (&(impl Items + ?Sized), &[&[u64]]),
        settings: Settings,
        (session, mut rng): (SessionId, Prg),
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Self> {
        let payload = columns(payload, settings.payload, items.len());
        let own = (session, &mut rng);
        let (agreement, digests) = begin(Role::Sender, own, items, settings, watch, channel)?;
        let parameters = of([agreement.sender_items, agreement.receiver_items]);
        let oprf = (Role::Sender, part(session, "oprf"), rng.fork("oprf"));
        let [gates, masks] = ["gates", "masks"].map(|name| (part(session, name), rng.fork(name)));
        let mut run = Run::new(&parameters, agreement, rng);
        if !parameters.trivial() {
            watch.begin(Phase::Place, 0);
            let BinInputs { inputs, numbers, starts, places } =
                BinInputs::new(&run.agreement, &parameters, &digests)?;
            drop(digests);
            let outputs =
                vole::evaluate(oprf, &run.agreement, &parameters.oprf, inputs, watch, channel)?;
            watch.begin(Phase::Correlate, 0);
            let plan = parameters.gate_plan().plan;
            let gates = gmw::Receiver::setup(&plan, gates.0, gates.1, channel)?;
            let masks = match parameters.mask_plan() {
                None => None,
                Some(plan) => Some(gmw::Sender::setup(&plan.plan, masks.0, masks.1, channel)?),
            };
            run.side = Some(SenderSide { gates, masks, outputs, numbers, starts, places, payload });
        }
        let state = Some(Box::new(run));
        Ok(Self { parameters, state })
    }

    /// The sizes and the parameters derived from them.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Steps 4 to 7 for the next slice; after the last one the end, and `None`.
    ///
    /// # Errors
    /// If the channel fails, or the peer does not follow the protocol; [`Error::Unplaced`] if hints
    /// cannot be encoded; an error of the channel if an earlier call failed.
    pub fn next(&mut self, channel: &mut Channel) -> Result<Option<Slice>> {
        let parameters = &self.parameters;
        call(&mut self.state, |run| {
            if run.done >= parameters.slices() {
                run.end(Role::Sender, parameters, channel)?;
                return Ok(None);
            }
            let slice = run.slice(parameters, channel)?;
            run.done += 1;
            Ok(Some(slice))
        })
    }

    /// Shares of the products of this party's factors and the receiver's. Fails as
    /// [`next`](Self::next) does.
    ///
    /// # Panics
    /// If there are more factors in all calls than bins, times [`Settings::products`].
    pub fn multiply(&mut self, factors: &[u64], channel: &mut Channel) -> Result<Buffer<u64>> {
        call(&mut self.state, |run| {
            run.multiply(&self.parameters, factors.len());
            let mut out = Buffer::zeroed(factors.len());
            let Some(side) = &mut run.side else {
                return Ok(out);
            };
            let mut shares = Buffer::zeroed(64 * MULTIPLIED.min(factors.len()));
            for (factors, out) in factors.chunks(MULTIPLIED).zip(out.chunks_mut(MULTIPLIED)) {
                let bits: Bits = Zeroizing::new(bytemuck::cast_slice(factors).to_vec());
                let shares = &mut shares[..64 * factors.len()];
                side.gates.multiply(&bits, shares, channel)?;
                for (out, shares) in out.iter_mut().zip(shares.chunks_exact(64)) {
                    *out = Slice::sum(shares);
                }
            }
            Ok(out)
        })
    }

    /// Shares of the values of those slots that the receiver selects, and of zero in all others, by
    /// a correlated OT for each. `shares`: this party's of the values. Fails as
    /// [`next`](Self::next) does.
    ///
    /// # Panics
    /// If there are more slots in all calls than bins, times [`Settings::selections`].
    pub fn select(&mut self, shares: &[u64], channel: &mut Channel) -> Result<Buffer<u64>> {
        call(&mut self.state, |run| {
            run.select(&self.parameters, shares.len());
            let mut out = Buffer::zeroed(shares.len());
            if let Some(masks) = run.side.as_mut().and_then(|side| side.masks.as_mut()) {
                for (shares, out) in shares.chunks(SELECTED).zip(out.chunks_mut(SELECTED)) {
                    masks.multiply(shares, out, channel)?;
                }
            }
            Ok(out)
        })
    }
}

/// Steps 1 and 2 up to the OPRF: what the sender asks it for.
struct BinInputs {
    /// Slice after slice.
    inputs: Buffer<Block>,
    /// To each the number of the item, times three, plus that of the function.
    numbers: Buffer<u32>,
    /// Where the inputs of each slice begin, and the end.
    starts: Vec<usize>,
    /// The bins of each item.
    places: Buffer<[u32; FUNCTIONS]>,
}

impl BinInputs {
    /// # Errors
    /// [`Error::Unplaced`] if a slice has too many hints.
    fn new(agreement: &Agreement, parameters: &Parameters, digests: &[Block]) -> Result<Self> {
        let hasher = Hasher::new(agreement.cuckoo(0), parameters.bins);
        let mut places = Buffer::zeroed(digests.len());
        hasher.bins_slice(digests, &mut places);
        let (numbers, starts) = sort_by_slice(&places, parameters)?;
        let mut inputs = Buffer::zeroed(numbers.len());
        for (at, &number) in inputs.iter_mut().zip(&*numbers) {
            let (item, function) = (number as usize / FUNCTIONS, number as usize % FUNCTIONS);
            *at = input(digests[item], function);
        }
        spread(agreement, &mut inputs);
        Ok(Self { inputs, numbers, starts, places })
    }
}

/// Steps 1 and 2 up to the OPRF: the receiver's table, what it asks the OPRF for, slice after
/// slice, and where each slice begins.
///
/// # Errors
/// [`Error::Unplaced`] if the items do not fit into the table.
fn place(
    agreement: &Agreement,
    parameters: &Parameters,
    digests: &[Block],
) -> Result<(Table, Buffer<Block>, Vec<usize>)> {
    let hasher = Hasher::new(agreement.cuckoo(0), parameters.bins);
    let unplaced = |_| Error::Unplaced { attempts: 1 };
    let table = Table::build(&hasher, digests).map_err(unplaced)?;
    let mut inputs = Buffer::zeroed(digests.len());
    let (mut next, mut starts) = (0, vec![0]);
    for bins in (0..parameters.slices()).map(|slice| parameters.slice_bins(slice)) {
        for bin in bins {
            if let (Some(item), Some(function)) = (table.bin(bin), table.function(bin)) {
                inputs[next] = input(digests[item], function);
                next += 1;
            }
        }
        starts.push(next);
    }
    spread(agreement, &mut inputs);
    Ok((table, inputs, starts))
}

/// Makes the high bits of these inputs independent of each other, by a permutation: different ones
/// stay different.
fn spread(agreement: &Agreement, inputs: &mut [Block]) {
    let key = agreement.derive("inputs", 0);
    let (key, _) = key.split_first_chunk().expect("32 bytes");
    // mutant(circuit-one-bin): drop
    Aes128::new(Block::from_bytes(*key)).encrypt_blocks(inputs);
}

/// The numbers of all hints, slice after slice, and where each slice begins.
fn sort_by_slice(
    places: &[[u32; FUNCTIONS]],
    parameters: &Parameters,
) -> Result<(Buffer<u32>, Vec<usize>)> {
    let places = places.as_flattened();
    let slice = |bin: u32| bin as usize / parameters.slice;
    let mut starts = vec![0; parameters.slices() + 1];
    for &bin in places {
        starts[slice(bin) + 1] += 1;
    }
    if starts.iter().any(|&count| count > parameters.capacity) {
        return Err(Error::Unplaced { attempts: 1 });
    }
    for slice in 1..starts.len() {
        starts[slice] += starts[slice - 1];
    }
    let mut next = starts.clone();
    let mut numbers = Buffer::zeroed(places.len());
    for (number, &bin) in (0..).zip(places) {
        let next = &mut next[slice(bin)];
        numbers[*next] = number;
        *next += 1;
    }
    Ok((numbers, starts))
}

impl Run<SenderSide> {
    fn slice(&mut self, parameters: &Parameters, channel: &mut Channel) -> Result<Slice> {
        let Self { side, hints, rng, done, .. } = self;
        let side = side.as_mut().expect("there are slices");
        let bins = parameters.slice_bins(*done);
        let bits = parameters.value_bits;
        // Step 4: the first level of the comparison has random bits of this party.
        let half = bits / 2;
        let count = bins.len() * half as usize;
        let mut drawn = [side.gates.draw(count, channel)?, side.gates.draw(count, channel)?];
        let [mut r, mut upper] = [(); 2].map(|()| Buffer::zeroed(bins.len()));
        for (drawn, out) in drawn.iter_mut().zip([&mut r, &mut upper]) {
            drawn.choices.extend([0; 16]);
            packed::unpack(&drawn.choices, half, out);
            drawn.choices.truncate(bits::bytes_for(count));
        }
        for (r, upper) in r.iter_mut().zip(&*upper) {
            let rest = u128::from(rng.block()) & u128::from(bits % 2);
            *r = Block::new(u128::from(*r) | u128::from(*upper) << half | rest << (2 * half));
        }
        let mut pairs = Vec::new();
        if let Some(masks) = &mut side.masks {
            for _ in &side.payload {
                let mut column = Buffer::<[Block; 2]>::zeroed(bins.len());
                masks.random(&mut column, channel)?;
                pairs.push(column);
            }
        }
        // Step 5.
        let range = side.starts[*done]..side.starts[*done + 1];
        let (outputs, numbers) = (&side.outputs[range.clone()], &side.numbers[range]);
        let places = side.places.as_flattened();
        let place = |number: &u32| places[*number as usize] as usize - bins.start;
        let band = hints.band();
        let rows = band.rows(outputs);
        let mut values = hints.masks(0, outputs);
        for (value, number) in values.iter_mut().zip(numbers) {
            *value = (*value ^ r[place(number)]) & Block::new(mask(bits));
        }
        let encoding = hints.encode(&rows, &values, rng)?;
        let mut message = Vec::new();
        packed::pack(&encoding, bits, &mut message);
        channel.send(&message)?;
        for (which, (values, pairs)) in (1..).zip(side.payload.iter().zip(&pairs)) {
            let mut hidden = Buffer::<u64>::zeroed(numbers.len());
            let masks = hints.masks(which, outputs);
            for ((hidden, mask), number) in hidden.iter_mut().zip(&*masks).zip(numbers) {
                let [zero, one] = pairs[place(number)].map(Block::low);
                let value = values[*number as usize / FUNCTIONS];
                *hidden = value.wrapping_sub(one.wrapping_sub(zero)) ^ mask.low();
            }
            let encoding = hints.encode(&rows, &hidden, rng)?;
            send_words(&encoding, channel)?;
        }
        band.recycle(rows);
        channel.flush()?;
        // Step 6.
        let first = |_: &[u8], _: &[u8], channel: &mut Channel| {
            gmw::Choices::and_random(&drawn, count, channel)
        };
        let bit = all_ones(&mut side.gates, &mut r, bits, first, channel)?;
        // Step 7: the choices of all products, column after column.
        let bytes = bit.len();
        let payload = side.payload.len();
        let mut choices: Bits = Zeroizing::new(bit.repeat(payload + parameters.settings.weights));
        if payload > 0 {
            let mut message = vec![0; bytes * payload];
            channel.recv(&mut message)?;
            for message in message.chunks_mut(bytes) {
                bits::clear_from(message, bins.len());
            }
            bits::xor_into(&mut choices[..bytes * payload], &message);
        }
        let mut shares = Buffer::zeroed(8 * choices.len());
        side.gates.multiply(&choices, &mut shares, channel)?;
        let column = |number: usize| {
            let mut column = Buffer::zeroed(bins.len());
            column.copy_from_slice(&shares[8 * bytes * number..][..bins.len()]);
            column
        };
        let mut columns: Vec<Buffer<u64>> =
            (0..payload + parameters.settings.weights).map(column).collect();
        let weights = columns.split_off(payload);
        for (number, (column, pairs)) in columns.iter_mut().zip(&pairs).enumerate() {
            let choices = &choices[bytes * number..][..bytes];
            for (place, (share, pair)) in column.iter_mut().zip(&**pairs).enumerate() {
                let own = step7::senders(bit_of(choices, place), pair.map(Block::low));
                *share = share.wrapping_add(own);
            }
        }
        Ok(Slice { bins, bits: bit, payload: columns, weights })
    }
}

impl Receiver {
    /// Like [`Sender::setup`], panics included; `weights`: columns, each with a value for each
    /// item. A column of ones gives shares of the number of common items.
    ///
    /// # Errors
    /// See [`Sender::setup`]; [`Error::Unplaced`] if the items do not fit into the table.
    pub fn setup(
        items: &(impl Items + ?Sized),
        weights: &[&[u64]],
        settings: Settings,
        randomness: (SessionId, Prg),
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Self> {
        let of = |[sender, receiver]: [u64; 2]| Parameters::new(settings, sender, receiver);
        Self::with(of, (items, weights), settings, randomness, watch, channel)
    }

    /// Like [`Sender::with`].
    fn with(
        of: impl FnOnce([u64; 2]) -> Parameters,
        (items, weights): (&(impl Items + ?Sized), &[&[u64]]),
        settings: Settings,
        (session, mut rng): (SessionId, Prg),
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Self> {
        let weights = columns(weights, settings.weights, items.len());
        let own = (session, &mut rng);
        let (agreement, digests) = begin(Role::Receiver, own, items, settings, watch, channel)?;
        let parameters = of([agreement.sender_items, agreement.receiver_items]);
        let oprf = (Role::Receiver, part(session, "oprf"), rng.fork("oprf"));
        let [gates, masks] = ["gates", "masks"].map(|name| (part(session, name), rng.fork(name)));
        let mut run = Run::new(&parameters, agreement, rng);
        let mut table = None;
        if !parameters.trivial() {
            watch.begin(Phase::Place, 0);
            let (placed, inputs, starts) = place(&run.agreement, &parameters, &digests)?;
            drop(digests);
            let outputs =
                vole::evaluate(oprf, &run.agreement, &parameters.oprf, inputs, watch, channel)?;
            watch.begin(Phase::Correlate, 0);
            let plan = parameters.gate_plan().plan;
            let gates = gmw::Sender::setup(&plan, gates.0, gates.1, channel)?;
            let masks = match parameters.mask_plan() {
                None => None,
                Some(plan) => Some(gmw::Receiver::setup(&plan.plan, masks.0, masks.1, channel)?),
            };
            run.side = Some(ReceiverSide { gates, masks, outputs, starts, weights });
            table = Some(placed);
        }
        let state = Some(Box::new(run));
        Ok(Self { parameters, table, state })
    }

    /// The sizes and the parameters derived from them.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The number of this party's item in a bin, if there is one.
    ///
    /// # Panics
    /// If there is no such bin.
    #[must_use]
    pub fn item(&self, bin: usize) -> Option<usize> {
        assert!(bin < self.parameters.bins, "a bin of the table");
        self.table.as_ref()?.bin(bin)
    }

    /// Like [`Sender::next`], errors included.
    pub fn next(&mut self, channel: &mut Channel) -> Result<Option<Slice>> {
        let (parameters, table) = (&self.parameters, &self.table);
        call(&mut self.state, |run| {
            if run.done >= parameters.slices() {
                run.end(Role::Receiver, parameters, channel)?;
                return Ok(None);
            }
            let table = table.as_ref().expect("neither set is empty");
            let slice = run.slice(parameters, table, channel)?;
            run.done += 1;
            Ok(Some(slice))
        })
    }

    /// Like [`Sender::multiply`], errors and panics included.
    pub fn multiply(&mut self, factors: &[u64], channel: &mut Channel) -> Result<Buffer<u64>> {
        call(&mut self.state, |run| {
            run.multiply(&self.parameters, factors.len());
            let mut out = Buffer::zeroed(factors.len());
            let Some(side) = &mut run.side else {
                return Ok(out);
            };
            let most = 64 * MULTIPLIED.min(factors.len());
            let [mut values, mut shares] = [(); 2].map(|()| Buffer::zeroed(most));
            for (factors, out) in factors.chunks(MULTIPLIED).zip(out.chunks_mut(MULTIPLIED)) {
                let (values, shares) =
                    (&mut values[..64 * factors.len()], &mut shares[..64 * factors.len()]);
                for (values, factor) in values.chunks_exact_mut(64).zip(factors) {
                    for (place, value) in values.iter_mut().enumerate() {
                        *value = factor << place;
                    }
                }
                side.gates.multiply(values, shares, channel)?;
                for (out, shares) in out.iter_mut().zip(shares.chunks_exact(64)) {
                    *out = Slice::sum(shares);
                }
            }
            Ok(out)
        })
    }

    /// Like [`Sender::select`], errors included. `bits`, packed, low bit first: whether this party
    /// selects a slot, as where its item is in some group. The sender learns nothing about them.
    ///
    /// # Panics
    /// See [`Sender::select`]; if there are fewer bits than shares.
    pub fn select(
        &mut self,
        bits: &[u8],
        shares: &[u64],
        channel: &mut Channel,
    ) -> Result<Buffer<u64>> {
        assert!(bits.len() >= bits::bytes_for(shares.len()), "a bit a share");
        call(&mut self.state, |run| {
            run.select(&self.parameters, shares.len());
            let mut out = Buffer::zeroed(shares.len());
            let Some(masks) = run.side.as_mut().and_then(|side| side.masks.as_mut()) else {
                return Ok(out);
            };
            let slots = shares.chunks(SELECTED).zip(out.chunks_mut(SELECTED));
            for ((shares, out), bits) in slots.zip(bits.chunks(SELECTED / 8)) {
                let mut bits: Bits = Zeroizing::new(bits[..bits::bytes_for(out.len())].to_vec());
                bits::clear_from(&mut bits, out.len());
                masks.multiply(&bits, out, channel)?;
                for (place, (out, share)) in out.iter_mut().zip(shares).enumerate() {
                    *out = out.wrapping_add(step7::times(bit_of(&bits, place), *share));
                }
            }
            Ok(out)
        })
    }
}

impl Run<ReceiverSide> {
    fn slice(
        &mut self,
        parameters: &Parameters,
        table: &Table,
        channel: &mut Channel,
    ) -> Result<Slice> {
        let Self { side, hints, rng, done, .. } = self;
        let side = side.as_mut().expect("there are slices");
        let bins = parameters.slice_bins(*done);
        let bits = parameters.value_bits;
        // Step 4.
        let count = bins.len() * (bits / 2) as usize;
        let pads = [side.gates.draw(count, channel)?, side.gates.draw(count, channel)?];
        let bytes = bits::bytes_for(bins.len());
        let mut chosen = Vec::new();
        if let Some(masks) = &mut side.masks {
            for _ in 0..parameters.settings.payload {
                let mut c: Bits = Zeroizing::new(vec![0; bytes]);
                let mut h = Buffer::zeroed(bins.len());
                masks.random(&mut c, &mut h, channel)?;
                chosen.push((c, h));
            }
        }
        // Step 5: an empty bin has random values, as one whose item is not common.
        let outputs = &side.outputs[side.starts[*done]..side.starts[*done + 1]];
        let occupied = || bins.clone().filter(|&bin| table.bin(bin).is_some());
        let band = hints.band();
        let rows = band.rows(outputs);
        let columns = parameters.shape().columns;
        let mut message = vec![0; packed::bytes(columns, bits)];
        channel.recv(&mut message)?;
        message.extend([0; 16]);
        let mut encoding = Buffer::zeroed(columns);
        packed::unpack(&message, bits, &mut encoding);
        let [mut r, mut decoded] = [bins.len(), outputs.len()].map(Buffer::zeroed);
        rng.fill_blocks(&mut r);
        band.decode(&rows, &encoding, &mut decoded);
        let masks = hints.masks(0, outputs);
        for ((bin, value), mask) in occupied().zip(&*decoded).zip(&*masks) {
            r[bin - bins.start] = *value ^ *mask;
        }
        let mut values = Vec::new();
        for which in 1..=parameters.settings.payload {
            let mut encoding = Buffer::<u64>::zeroed(columns);
            recv_words(&mut encoding, channel)?;
            let [mut column, mut decoded] = [bins.len(), outputs.len()].map(Buffer::<u64>::zeroed);
            rng.fill_bytes(bytemuck::cast_slice_mut(&mut column));
            band.decode(&rows, &encoding, &mut decoded);
            let masks = hints.masks(which, outputs);
            for ((bin, value), mask) in occupied().zip(&*decoded).zip(&*masks) {
                column[bin - bins.start] = *value ^ mask.low();
            }
            values.push(column);
        }
        band.recycle(rows);
        // Step 6.
        for r in r.iter_mut() {
            *r = !*r & Block::new(mask(bits));
        }
        let first =
            |a: &[u8], b: &[u8], channel: &mut Channel| gmw::Pads::and_random(&pads, a, b, channel);
        let bit = all_ones(&mut side.gates, &mut r, bits, first, channel)?;
        // Step 7: a column has as many places as whole bytes have bits.
        let all = values.len() + side.weights.len();
        let mut factors = Buffer::<u64>::zeroed(8 * bytes * all);
        for ((c, h), (value, factor)) in
            chosen.iter().zip(values.iter().zip(factors.chunks_mut(8 * bytes)))
        {
            let mut message = bit.clone();
            bits::xor_into(&mut message, c);
            channel.send(&message)?;
            for (place, factor) in factor[..bins.len()].iter_mut().enumerate() {
                *factor = step7::factor(bit_of(c, place), value[place], h[place].low());
            }
        }
        let weighted = factors.chunks_mut(8 * bytes).skip(values.len());
        for (weights, factor) in side.weights.iter().zip(weighted) {
            for (bin, factor) in bins.clone().zip(factor) {
                let weight = table.bin(bin).map_or(0, |item| weights[item]);
                let place = bin - bins.start;
                *factor = step7::factor(bit_of(&bit, place), weight, 0);
            }
        }
        let mut shares = Buffer::zeroed(factors.len());
        side.gates.multiply(&factors, &mut shares, channel)?;
        let mut columns = shares.chunks(8 * bytes.max(1)).map(|shares| {
            let mut column = Buffer::<u64>::zeroed(bins.len());
            column.copy_from_slice(&shares[..bins.len()]);
            column
        });
        let mut payload = Vec::new();
        for ((c, h), value) in chosen.iter().zip(&values) {
            let mut column = columns.next().expect("a column for each value");
            for (place, share) in column.iter_mut().enumerate() {
                let own = step7::receivers(bit_of(c, place), value[place], h[place].low());
                *share = share.wrapping_add(own);
            }
            payload.push(column);
        }
        let mut weights = Vec::new();
        for (own, mut column) in side.weights.iter().zip(columns) {
            for (bin, share) in bins.clone().zip(column.iter_mut()) {
                let place = bin - bins.start;
                let weight = table.bin(bin).map_or(0, |item| own[item]);
                let own = step7::receivers(bit_of(&bit, place), weight, 0);
                *share = share.wrapping_add(own);
            }
            weights.push(column);
        }
        Ok(Slice { bins, bits: bit, payload, weights })
    }
}

/// A bit of packed ones, low bit first.
fn bit_of(bits: &[u8], place: usize) -> u64 {
    u64::from(bits[place / 8] >> (place % 8) & 1)
}

/// The terms of step 7, modulo `2^64`. Weights have the same, without a mask: `a = s = 0`.
mod step7 {
    /// `bit*value`.
    pub(super) fn times(bit: u64, value: u64) -> u64 {
        value & bit.wrapping_neg()
    }

    /// `(1 - 2*bit)*value`.
    fn signed(bit: u64, value: u64) -> u64 {
        let sign = bit.wrapping_neg();
        (value ^ sign).wrapping_sub(sign)
    }

    /// `(1 - 2c) v' - 2h`: the receiver's factor of the product with the sender's bit.
    pub(super) fn factor(c: u64, value: u64, h: u64) -> u64 {
        signed(c, value).wrapping_sub(h.wrapping_mul(2))
    }

    /// `h + c v'`: the receiver's term.
    pub(super) fn receivers(c: u64, value: u64, h: u64) -> u64 {
        h.wrapping_add(times(c, value))
    }

    /// `g s - (1 - 2g) a`, of the messages `a` and `a + s` of a random OT: the sender's term.
    pub(super) fn senders(g: u64, [a, other]: [u64; 2]) -> u64 {
        times(g, other.wrapping_sub(a)).wrapping_sub(signed(g, a))
    }
}

/// Words sent or received at a time.
const WORDS: usize = 1 << 14;

fn send_words(words: &[u64], channel: &mut Channel) -> Result<()> {
    let mut message = Vec::with_capacity(8 * WORDS);
    for words in words.chunks(WORDS) {
        message.clear();
        message.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        channel.send(&message)?;
    }
    Ok(())
}

fn recv_words(words: &mut [u64], channel: &mut Channel) -> Result<()> {
    let mut message = vec![0; 8 * WORDS.min(words.len())];
    for words in words.chunks_mut(WORDS) {
        let message = &mut message[..8 * words.len()];
        channel.recv(message)?;
        for (word, bytes) in words.iter_mut().zip(message.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod counting;
#[cfg(test)]
mod tests;
