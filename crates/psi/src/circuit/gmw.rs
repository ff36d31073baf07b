//! AND gates on XOR-shared bits: Goldreich, Micali, Wigderson, *How to Play any Mental Game*, STOC
//! 1987, on correlated OTs of one direction, with packed bits, many gates at a time.
//!
//! A bit `x` of the receiver times a bit `y` of the sender, with a correlated OT
//! `w = v + u*delta` and the lowest bit `h` of a hash:
//!
//! ```text
//! Sender: y                                Receiver: x
//!                                          t = h(w)
//! q = h(v), p = q + h(v + delta)           e = x + u           (unless x is to be random: x = u)
//! 1. ------------- c = p + y ------------->
//!    <---------------- e ------------------
//! 2. share q + e*p                         share t + x*c
//! ```
//!
//! An AND of shared bits `a` and `b` takes two such products: `a` of the receiver with `b` of the
//! sender, and the other way round. Both messages of a gate may be under way at the same time.
//!
//! The hash is correlation robust, with a key for each draw: enough for semi-honest parties, as the
//! sender's `v` are random and each is hashed once (Guo, Katz, Wang, Yu, ePrint 2019/074). Products
//! in Z_2^64, few in number, have the tweakable hash of [`convert`].
//!
//! Security: **semi-honest**. `u` hides `x`, and `y` is hidden by the hash that the receiver cannot
//! compute. Every share is masked anew.
//!
//! Cost: for a gate 2 bits each way, or from the sender only if the receiver's inputs are random;
//! for a product in Z_2^64 a bit from the receiver and 8 bytes from the sender.

use volery_channel::{Channel, Result, SessionId};
use volery_ot::convert;
use volery_pcg::{Plan, cot};
use volery_primitives::hash::CorrelationRobust;
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use volery_primitives::{Block, bits};
use zeroize::Zeroizing;

/// Packed bits, low bit first, unused bits of the last byte zero; wiped on drop.
pub(super) type Bits = Zeroizing<Vec<u8>>;

/// A party's shares of the bits of a level.
pub(super) type Shares = Result<Bits>;

/// Correlated OTs at a time; whole bytes of bits.
const CHUNK: usize = 1 << 14;

/// A party that computes on shared bits.
pub(super) trait Party {
    /// Whether this party adds the constants of a circuit.
    const CONSTANTS: bool;

    /// The shares of `a*b`, bit by bit.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails.
    fn and(&mut self, a: &[u8], b: &[u8], count: usize, channel: &mut Channel) -> Result<Bits>;
}

/// The party with `delta`.
pub(super) struct Sender {
    ot: convert::Sender<cot::Sender>,
    keys: HashKeys,
}

/// The party with the choice bits.
pub(super) struct Receiver {
    ot: convert::Receiver<cot::Receiver>,
    keys: HashKeys,
}

/// `q` and `p` of some products.
pub(super) struct Pads {
    zero: Bits,
    difference: Bits,
}

/// `u` and `t` of some products.
pub(super) struct Choices {
    pub(super) choices: Bits,
    chosen: Bits,
}

/// The keys of the hash function.
struct HashKeys {
    session: SessionId,
    next: u64,
}

impl HashKeys {
    fn next(&mut self) -> CorrelationRobust {
        self.next += 1;
        let key = RandomOracle::new("volery circuit psi: key of the hash")
            .absorb(self.session.as_bytes())
            .absorb_u64(self.next)
            .finish32();
        CorrelationRobust::new(Block::from_bytes(*key.first_chunk().expect("32 bytes")))
    }
}

fn zeros(count: usize) -> Bits {
    Zeroizing::new(vec![0; bits::bytes_for(count)])
}

/// `out += a*b`.
fn add_product(out: &mut [u8], a: &[u8], b: &[u8]) {
    for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
        *out ^= a & b;
    }
}

/// A message of the peer of `count` bits; unused ones are ignored.
fn recv_bits(count: usize, channel: &mut Channel) -> Result<Vec<u8>> {
    let mut message = vec![0; bits::bytes_for(count)];
    channel.recv(&mut message)?;
    bits::clear_from(&mut message, count);
    Ok(message)
}

impl Pads {
    /// [`Party::and`] where the receiver's shares are the choices of these OTs.
    pub(super) fn and_random(
        pads: &[Self; 2],
        a: &[u8],
        b: &[u8],
        channel: &mut Channel,
    ) -> Result<Bits> {
        let mut out = Zeroizing::new(vec![0; a.len()]);
        add_product(&mut out, a, b);
        for (pads, y) in pads.iter().zip([b, a]) {
            let mut c = Zeroizing::new(pads.difference.to_vec());
            bits::xor_into(&mut c, y);
            channel.send(&c)?; // step 1
            bits::xor_into(&mut out, &pads.zero);
        }
        channel.flush()?;
        Ok(out)
    }
}

impl Choices {
    /// [`Party::and`] of bits of which this party's shares are these random choices.
    pub(super) fn and_random(
        drawn: &[Self; 2],
        count: usize,
        channel: &mut Channel,
    ) -> Result<Bits> {
        let [a, b] = drawn;
        let mut out = zeros(count);
        add_product(&mut out, &a.choices, &b.choices);
        for drawn in drawn {
            let c = recv_bits(count, channel)?;
            bits::xor_into(&mut out, &drawn.chosen);
            add_product(&mut out, &drawn.choices, &c); // step 2
        }
        Ok(out)
    }
}

impl Sender {
    pub(super) fn setup(
        plan: &Plan,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let source = cot::Sender::setup(plan, None, session, rng, channel)?;
        let keys = HashKeys { session, next: 0 };
        let ot = convert::Sender::new(source, session);
        Ok(Self { ot, keys })
    }

    /// Pads for `count` products.
    pub(super) fn draw(&mut self, count: usize, channel: &mut Channel) -> Result<Pads> {
        let hash = self.keys.next();
        let delta = Zeroizing::new(self.ot.delta());
        let (mut zero, mut difference) = (zeros(count), zeros(count));
        let [mut v, mut other] = [(); 2].map(|()| Buffer::zeroed(CHUNK.min(count)));
        let chunks = zero.chunks_mut(CHUNK / 8);
        for (chunk, (zero, difference)) in chunks.zip(difference.chunks_mut(CHUNK / 8)).enumerate()
        {
            let length = CHUNK.min(count - chunk * CHUNK);
            let (v, other) = (&mut v[..length], &mut other[..length]);
            self.ot.correlated(v, channel)?;
            for (other, v) in other.iter_mut().zip(&*v) {
                *other = *v ^ *delta;
            }
            hash.hash_slice(v);
            hash.hash_slice(other);
            bits::lowest_bits(v, zero);
            bits::lowest_bits(other, difference);
        }
        bits::xor_into(&mut difference, &zero);
        Ok(Pads { zero, difference })
    }

    /// Two random elements for each of the next OTs.
    pub(super) fn random(&mut self, pairs: &mut [[Block; 2]], channel: &mut Channel) -> Result<()> {
        self.ot.random(pairs, channel)
    }

    /// Shares of these values times the receiver's bits.
    pub(super) fn multiply(
        &mut self,
        values: &[u64],
        shares: &mut [u64],
        channel: &mut Channel,
    ) -> Result<()> {
        let mut pads = Buffer::zeroed(values.len());
        self.ot.random_chosen(&mut pads, channel)?;
        let mut message = Vec::with_capacity(8 * CHUNK.min(values.len()));
        let all = values.chunks(CHUNK).zip(shares.chunks_mut(CHUNK));
        for ((values, shares), pads) in all.zip(pads.chunks(CHUNK)) {
            message.clear();
            for ((value, share), pads) in values.iter().zip(shares).zip(pads) {
                let [zero, one] = pads.map(Block::low);
                let c = zero.wrapping_sub(one).wrapping_add(*value);
                message.extend_from_slice(&c.to_le_bytes());
                *share = zero.wrapping_neg();
            }
            channel.send(&message)?;
        }
        channel.flush()
    }
}

impl Party for Sender {
    const CONSTANTS: bool = false;

    fn and(&mut self, a: &[u8], b: &[u8], count: usize, channel: &mut Channel) -> Result<Bits> {
        let pads = [self.draw(count, channel)?, self.draw(count, channel)?];
        let mut out = Pads::and_random(&pads, a, b, channel)?;
        for pads in &pads {
            let e = recv_bits(count, channel)?;
            add_product(&mut out, &e, &pads.difference); // step 2
        }
        Ok(out)
    }
}

impl Receiver {
    pub(super) fn setup(
        plan: &Plan,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let source = cot::Receiver::setup(plan, session, rng, channel)?;
        let keys = HashKeys { session, next: 0 };
        let ot = convert::Receiver::new(source, session);
        Ok(Self { ot, keys })
    }

    /// Random choices for `count` products.
    pub(super) fn draw(&mut self, count: usize, channel: &mut Channel) -> Result<Choices> {
        let hash = self.keys.next();
        let (mut choices, mut chosen) = (zeros(count), zeros(count));
        let mut w = Buffer::zeroed(CHUNK.min(count));
        let chunks = choices.chunks_mut(CHUNK / 8);
        for (chunk, (choices, chosen)) in chunks.zip(chosen.chunks_mut(CHUNK / 8)).enumerate() {
            let w = &mut w[..CHUNK.min(count - chunk * CHUNK)];
            self.ot.correlated(choices, w, channel)?;
            hash.hash_slice(w);
            bits::lowest_bits(w, chosen);
        }
        Ok(Choices { choices, chosen })
    }

    /// The element that this party's random choice selects, for each of the next OTs.
    pub(super) fn random(
        &mut self,
        choices: &mut [u8],
        chosen: &mut [Block],
        channel: &mut Channel,
    ) -> Result<()> {
        self.ot.random(choices, chosen, channel)
    }

    /// Shares of these bits times the sender's values.
    pub(super) fn multiply(
        &mut self,
        factors: &[u8],
        shares: &mut [u64],
        channel: &mut Channel,
    ) -> Result<()> {
        let mut pads = Buffer::zeroed(shares.len());
        self.ot.random_chosen(factors, &mut pads, channel)?;
        let mut message = vec![0; 8 * CHUNK.min(shares.len())];
        let chunks = shares.chunks_mut(CHUNK).zip(pads.chunks(CHUNK));
        for (chunk, (shares, pads)) in chunks.enumerate() {
            let message = &mut message[..8 * shares.len()];
            channel.recv(message)?;
            let (corrections, _) = message.as_chunks();
            let places = chunk * CHUNK..;
            for (((share, pad), c), place) in
                shares.iter_mut().zip(pads).zip(corrections).zip(places)
            {
                let factor = u64::from(factors[place / 8] >> (place % 8) & 1);
                let c = u64::from_le_bytes(*c) & factor.wrapping_neg();
                *share = pad.low().wrapping_add(c);
            }
        }
        Ok(())
    }
}

impl Party for Receiver {
    const CONSTANTS: bool = true;

    fn and(&mut self, a: &[u8], b: &[u8], count: usize, channel: &mut Channel) -> Result<Bits> {
        let mut drawn = [self.draw(count, channel)?, self.draw(count, channel)?];
        for (drawn, x) in drawn.iter_mut().zip([a, b]) {
            bits::xor_into(&mut drawn.choices, x);
            channel.send(&drawn.choices)?; // step 1
            drawn.choices.copy_from_slice(x);
        }
        Choices::and_random(&drawn, count, channel)
    }
}

/// Bits of the inputs of a comparison.
const WIDTH: u32 = 64;

/// Correlated OTs of a comparison: two for each gate.
pub(super) const COMPARISON: usize = 2 * (64 + 2 * 63);

/// Shares of whether the sum of both parties' inputs modulo `2^64` is negative as a signed number.
///
/// The sum's highest bit is that of both inputs and of the carry into it. With the lower 63 bits
/// `x'` and `y'`, the carry is whether `x' > not y'`: the highest bit that differs decides, which
/// a tree finds from pairs (greater, equal) of ever longer pieces.
pub(super) fn is_negative<P: Party>(
    party: &mut P,
    input: u64,
    channel: &mut Channel,
) -> Result<bool> {
    let low = input & (u64::MAX >> 1);
    let (a, b) = if P::CONSTANTS { (low, 0) } else { (0, low) };
    let mut and = |a: u64, b: u64, count: u32| -> Result<u64> {
        let bytes = count.div_ceil(8) as usize;
        let (a, b) = (Zeroizing::new(a.to_le_bytes()), Zeroizing::new(b.to_le_bytes()));
        let product = party.and(&a[..bytes], &b[..bytes], count as usize, channel)?;
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(&product);
        Ok(u64::from_le_bytes(word))
    };
    let greater = and(a, b, WIDTH)?;
    let equal = low | u64::from(P::CONSTANTS) << 63;
    // Neighbours are half a word apart, then a quarter, ..
    let (mut greater, mut equal) = (spread(greater), spread(equal));
    let mut length = WIDTH / 2;
    while length > 0 {
        let mask = (1 << length) - 1;
        let above = equal >> length & mask;
        let product =
            and(above | above << length, greater & mask | (equal & mask) << length, 2 * length)?;
        greater = greater >> length & mask ^ product & mask;
        equal = product >> length & mask;
        length /= 2;
    }
    Ok((input >> 63 ^ greater) & 1 == 1)
}

/// The bits in the order of their reversed numbers.
fn spread(word: u64) -> u64 {
    (0..WIDTH).fold(0, |out, place| {
        let to = (place << 26).reverse_bits();
        out | (word >> place & 1) << to
    })
}
