//! Authenticated bits and multiplication triples over F2, secure against a malicious peer.
//!
//! A bit `x = x_A + x_B` is *authenticated* if the sender `A` has `x_A`, a MAC `M_A` of it and a
//! key `K_A` for `x_B`, `B` likewise, and `M_A = K_B + x_A*delta_B`, `M_B = K_A + x_B*delta_A`.
//! Correlated OTs in both directions are authenticated random bits. Sums are local.
//!
//! *Triples*: Katz, Ranellucci, Rosulek, Wang, *Optimizing Authenticated Garbling for Faster Secure
//! Two-Party Computation*, CRYPTO 2018 (ePrint 2018/578), protocol `Pi_LaAND` for leaky triples;
//! Wang, Ranellucci, Katz, *Authenticated Garbling and Efficient Maliciously Secure Two-Party
//! Computation*, CCS 2017 (ePrint 2017/030), protocol `Pi_aAND` for the buckets.
//!
//! ```text
//! A (as B, with the indices exchanged)
//!    C(y) = y_A*delta_A + K_A(y) + M_A(y): for both parties together y*(delta_A + delta_B)
//! leaky triples:
//! 1. authenticated random bits x, y, r
//! 2. --- G_A = H(K_A(x)) + H(K_A(x) + delta_A) + C(y) --->            <--- G_B ---
//! 3. E_A = x_A*G_B + H(M_A(x)),   S_A = H(K_A(x)) + E_A + x_A*C(y)
//!    for both parties together S = x*y*(delta_A + delta_B), whose lowest bit is x*y
//! 4. --- lowest bit of S_A, + r_A --->   and back;   z = r + both bits
//! 5. both compare a hash of all S_A + C(z), which is S_B + C(z) if z = x*y
//! buckets:
//! 6. a common seed, by commitment, permutes the leaky triples into buckets
//! 7. of each bucket (x_1, y_1, z_1), (x_2, ..), ..: opens d_j = y_1 + y_j;
//!    the triple is x = sum x_j,  y = y_1,  z = z_1 + sum over j > 1 of z_j + d_j*x_j
//! ```
//!
//! Step 3 needs `delta_A + delta_B` to have its lowest bit set: `A` has it set and `B` clear
//! ([`delta`]). A party with another one would choose `z` itself, and step 5 would tell it `x*y`.
//! So [`Party::start`] has each party prove its lowest bit: it opens the lowest bits of its keys
//! for [`STATISTICAL`] bits of the peer, which are then thrown away. For the wrong bit it would have to guess
//! each of those bits, which it does with probability `2^-40`. (The papers assume the bit.)
//!
//! Security: malicious, over malicious-secure sources, with an abort. A party that sends another
//! `G` learns one `x_j` of the peer if it guesses it right, and is caught in step 5 if not. A
//! triple leaks only if all of its bucket do. Among `m = n*B` leaky triples a party that guesses
//! `c` bits wins with probability at most `n * 2^-c * C(m - B, c - B) / C(m, c)`, which for each
//! `n` is at most `2^-40` at the least `B` that [`bucket`] allows. That bound is for each call of
//! [`Party::triples`]: few large calls are better than many small ones, and cheaper. A wrong opening
//! is caught except with probability `2^-126`. A failed call deletes the state.
//!
//! Cost for each triple, in each direction beside the source: `B` times 16 bytes and 1 bit, and
//! `B - 1` bits; `3*B` correlated OTs. `B` is 3 from 276,325 triples on, 4 from 3,044 and 5 from
//! 320. An opening is a bit each way, and 32 bytes each way for each call.

use subtle::ConstantTimeEq as _;
use volery_channel::{Channel, Error, Result, Role, SessionId};
use volery_ot::{CotReceiver, CotSender};
use volery_primitives::bits::{self, bytes_for, clear_from, xor_into};
use volery_primitives::hash::Tweaked;
use volery_primitives::{Block, prg::Prg, ro::RandomOracle};
use zeroize::Zeroizing;

use crate::{STATISTICAL, agree, exchange, in_order};

/// A random `delta` for the COT in which this party is the sender: its lowest bit is as this module
/// needs it.
#[must_use]
pub fn delta(role: Role, rng: &mut Prg) -> Block {
    rng.block().with_lsb(role == Role::Sender)
}

/// The least number of triples for buckets of a size; below all of these the size is
/// [`LARGEST_BUCKET`].
const BUCKETS: [(usize, usize); 9] =
    [(276_325, 3), (3_044, 4), (320, 5), (84, 6), (34, 7), (19, 8), (12, 9), (8, 10), (3, 16)];

/// The size that suffices for any number of triples.
const LARGEST_BUCKET: usize = 40;

/// The number of leaky triples for each of `n` triples.
#[must_use]
pub fn bucket(n: usize) -> usize {
    BUCKETS.iter().find(|of| n >= of.0).map_or(LARGEST_BUCKET, |of| of.1)
}

/// A party's part of authenticated bits; wiped when dropped.
#[derive(Clone, Default)]
pub struct Bits {
    len: usize,
    shares: Zeroizing<Vec<u8>>,
    macs: Zeroizing<Vec<Block>>,
    keys: Zeroizing<Vec<Block>>,
}

impl Bits {
    fn zeros(len: usize) -> Self {
        let blocks = || Zeroizing::new(vec![Block::ZERO; len]);
        Self {
            len,
            shares: Zeroizing::new(vec![0; bytes_for(len)]),
            macs: blocks(),
            keys: blocks(),
        }
    }

    /// Number of bits.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// This party's shares, packed, low bit first.
    #[must_use]
    pub fn shares(&self) -> &[u8] {
        &self.shares
    }

    /// Adds other bits, one by one.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn add(&mut self, other: &Self) {
        assert_eq!(self.len, other.len, "as many bits");
        xor_into(&mut self.shares, &other.shares);
        let xor = |own: &mut [Block], other: &[Block]| {
            own.iter_mut().zip(other).for_each(|(own, other)| *own ^= *other);
        };
        xor(&mut self.macs, &other.macs);
        xor(&mut self.keys, &other.keys);
    }

    /// Multiplies by public packed bits.
    ///
    /// # Panics
    /// If `factors` is not one bit for each.
    pub fn multiply_public(&mut self, factors: &[u8]) {
        assert_eq!(factors.len(), self.shares.len(), "one factor for each bit");
        self.shares.iter_mut().zip(factors).for_each(|(share, factor)| *share &= factor);
        for i in 0..self.len {
            let mask = Block::select_mask(bits::bit(factors, i));
            self.macs[i] &= mask;
            self.keys[i] &= mask;
        }
    }

    /// The bits at these places, which are public.
    fn select(&self, places: impl Iterator<Item = usize> + Clone) -> Self {
        let mut out = Self::zeros(places.clone().count());
        for (i, place) in places.enumerate() {
            out.shares[i / 8] |= u8::from(bits::bit(&self.shares, place)) << (i % 8);
            out.macs[i] = self.macs[place];
            out.keys[i] = self.keys[place];
        }
        out
    }
}

/// A party with its sources.
pub struct Party<S, R> {
    role: Role,
    /// `None` after a failed call.
    live: Option<Live<S, R>>,
}

struct Live<S, R> {
    role: Role,
    sender: S,
    receiver: R,
    delta: Zeroizing<Block>,
    /// Of this party's keys, and of the peer's.
    hashes: [Tweaked; 2],
    next: u128,
    rng: Prg,
}

impl<S: CotSender, R: CotReceiver> Party<S, R> {
    /// A party over correlated OTs in both directions. `sender` has a [`delta`] of this module;
    /// `session` is of this object alone, and the same at the peer; `rng` is this party's
    /// randomness. Proves the lowest bit of `delta` to the peer.
    ///
    /// # Panics
    /// If the lowest bit of `delta` is not as [`delta`] makes it.
    ///
    /// # Errors
    /// The errors of the sources, and an error if the channel fails or the peer's `delta` is wrong.
    pub fn start(
        role: Role,
        sender: S,
        receiver: R,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let delta = Zeroizing::new(sender.try_delta()?);
        assert_eq!(delta.lsb(), role == Role::Sender, "a delta of `authenticated::delta`");
        let hash = |of: Role| {
            let mut oracle = RandomOracle::new("volery mpc: leaky triples");
            oracle.absorb(session.as_bytes()).absorb(of.name().as_bytes());
            Tweaked::new(oracle.finish_block())
        };
        let hashes = [hash(role), hash(role.other())];
        let mut live = Live { role, sender, receiver, delta, hashes, next: 0, rng };
        live.prove_lowest_bit(channel)?;
        Ok(Self { role, live: Some(live) })
    }

    /// Runs a call; if it fails, the state is dropped.
    fn call<T>(&mut self, call: impl FnOnce(&mut Live<S, R>) -> Result<T>) -> Result<T> {
        let mut live = self.live.take().ok_or(Error::Broken)?;
        // mutant(tinyot-again): `call(&mut live)?` => `match call(&mut live) { Err(error) if $ON =>
        //     { self.live = Some(live); return Err(error); } result => result? }`
        let out = call(&mut live)?;
        self.live = Some(live);
        Ok(out)
    }

    /// `n` authenticated random bits: neither party knows their sums.
    ///
    /// # Errors
    /// The errors of the sources; [`Error::Broken`] if a call failed.
    pub fn random(&mut self, n: usize, channel: &mut Channel) -> Result<Bits> {
        self.call(|live| live.random(n, channel))
    }

    /// Authenticates `n` bits of the party `owner`, which gives them packed; the other one gives
    /// nothing.
    ///
    /// # Panics
    /// If the owner gives none, or not a bit for each.
    ///
    /// # Errors
    /// The errors of the sources, and an error if the channel fails; [`Error::Broken`] if a call
    /// failed.
    pub fn input(
        &mut self,
        owner: Role,
        own: Option<&[u8]>,
        n: usize,
        channel: &mut Channel,
    ) -> Result<Bits> {
        let role = self.role;
        self.call(|live| {
            let mut out = Bits::zeros(n);
            let mut difference = vec![0; bytes_for(n)];
            if owner == role {
                let own = own.expect("the owner gives its bits");
                live.receiver.extend(&mut out.shares, &mut out.macs, channel)?;
                difference.copy_from_slice(&out.shares);
                xor_into(&mut difference, own);
                clear_from(&mut difference, n);
                channel.send(&difference)?;
                channel.flush()?;
            } else {
                live.sender.extend(&mut out.keys, channel)?;
                channel.recv(&mut difference)?;
            }
            live.add_public(&mut out, &mut difference, owner);
            Ok(out)
        })
    }

    /// Opens bits to both parties: packed, low bit first.
    ///
    /// # Errors
    /// If the channel fails, or the peer opens another bit than it has; [`Error::Broken`] if a call
    /// failed.
    pub fn open(&mut self, bits: &Bits, channel: &mut Channel) -> Result<Vec<u8>> {
        self.call(|live| live.open(bits, channel))
    }

    /// Adds public bits, packed.
    ///
    /// # Panics
    /// If `public` is not one bit for each.
    ///
    /// # Errors
    /// [`Error::Broken`] if a call failed.
    pub fn add_public(&mut self, bits: &mut Bits, public: &[u8]) -> Result<()> {
        self.call(|live| {
            live.add_public(bits, &mut public.to_vec(), Role::Sender);
            Ok(())
        })
    }

    /// `n` random triples `[x, y, z]`, `z = x*y` bit by bit.
    ///
    /// # Errors
    /// The errors of the sources; if the channel fails, or a check finds that the peer deviated;
    /// [`Error::Broken`] if a call failed.
    pub fn triples(&mut self, n: usize, channel: &mut Channel) -> Result<[Bits; 3]> {
        self.call(|live| live.triples(n, channel))
    }

    /// The products of `x` and `y`, by as many unused triples: opens their sums with `x` and `y`.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn multiply(
        &mut self,
        x: &Bits,
        y: &Bits,
        [a, b, mut c]: [Bits; 3],
        channel: &mut Channel,
    ) -> Result<Bits> {
        let (mut d, mut e) = (x.clone(), y.clone());
        d.add(&a);
        e.add(&b);
        let (d, e) = self.call(|live| Ok((live.open(&d, channel)?, live.open(&e, channel)?)))?;
        // x*y = (d + a)(e + b) = d*y + e*a + c
        let (mut dy, mut ea) = (y.clone(), a);
        dy.multiply_public(&d);
        ea.multiply_public(&e);
        c.add(&dy);
        c.add(&ea);
        Ok(c)
    }
}

impl<S: CotSender, R: CotReceiver> Live<S, R> {
    fn prove_lowest_bit(&mut self, channel: &mut Channel) -> Result<()> {
        let bits = self.random(STATISTICAL, channel)?;
        let mut own = vec![0; bytes_for(STATISTICAL)];
        bits::lowest_bits(&bits.keys, &mut own);
        let theirs = exchange(self.role, &own, channel)?;
        let mut expected = vec![0; own.len()];
        bits::lowest_bits(&bits.macs, &mut expected);
        if self.role == Role::Receiver {
            xor_into(&mut expected, &bits.shares); // the sender's lowest bit is set
        }
        // mutant(tinyot-lowest-bit): false
        if !bool::from(expected.ct_eq(&theirs)) {
            return Err(Error::PeerMisbehaved(
                "the lowest bit of its delta is not that of its role",
            ));
        }
        Ok(())
    }

    fn random(&mut self, n: usize, channel: &mut Channel) -> Result<Bits> {
        let mut out = Bits::zeros(n);
        let Bits { shares, macs, keys, .. } = &mut out;
        in_order(
            self.role,
            self,
            channel,
            |live, channel| live.sender.extend(keys, channel),
            |live, channel| live.receiver.extend(shares, macs, channel),
        )?;
        Ok(out)
    }

    /// Adds public bits to the shares of `owner`: the peer adds them to its keys.
    fn add_public(&self, bits: &mut Bits, public: &mut [u8], owner: Role) {
        clear_from(public, bits.len);
        if owner == self.role {
            xor_into(&mut bits.shares, public);
        } else {
            for (i, key) in bits.keys.iter_mut().enumerate() {
                *key ^= Block::select_mask(bits::bit(public, i)) & *self.delta;
            }
        }
    }

    fn open(&self, bits: &Bits, channel: &mut Channel) -> Result<Vec<u8>> {
        let theirs = exchange(self.role, &bits.shares, channel)?;
        let mut expected = bits.keys.clone();
        for (i, key) in expected.iter_mut().enumerate() {
            *key ^= Block::select_mask(bits::bit(&theirs, i)) & *self.delta;
        }
        let hash = |macs: &[Block]| {
            RandomOracle::new("volery mpc: macs").absorb(Block::as_bytes(macs)).finish32()
        };
        let claimed = exchange(self.role, &hash(&bits.macs), channel)?;
        // mutant(tinyot-mac): false
        if !bool::from(hash(&expected).ct_eq(&claimed[..])) {
            return Err(Error::PeerMisbehaved("an opened bit is not the authenticated one"));
        }
        let mut sum = bits.shares.to_vec();
        xor_into(&mut sum, &theirs);
        clear_from(&mut sum, bits.len);
        Ok(sum)
    }

    /// `C(y)`, one block for each bit.
    fn scaled(&self, y: &Bits) -> Zeroizing<Vec<Block>> {
        let mut out = y.keys.clone();
        for (i, (out, mac)) in out.iter_mut().zip(y.macs.iter()).enumerate() {
            *out ^= *mac ^ (Block::select_mask(bits::bit(&y.shares, i)) & *self.delta);
        }
        out
    }

    /// Steps 1 to 5.
    fn leaky(&mut self, m: usize, channel: &mut Channel) -> Result<[Bits; 3]> {
        let [x, y, mut z] =
            [self.random(m, channel)?, self.random(m, channel)?, self.random(m, channel)?]; // step 1
        let scaled = self.scaled(&y);
        let mut hashes = Zeroizing::new(vec![[Block::ZERO; 2]; m]);
        for (pair, key) in hashes.iter_mut().zip(x.keys.iter()) {
            *pair = [*key, *key ^ *self.delta];
        }
        self.hashes[0].hash_pairs(self.next, &mut hashes);
        let of_step = hashes.iter().zip(scaled.iter());
        let own: Vec<Block> = of_step.map(|(pair, c)| pair[0] ^ pair[1] ^ *c).collect();
        let mut theirs = vec![Block::ZERO; m];
        in_order(
            self.role,
            &mut theirs,
            channel,
            |_, channel| channel.send_blocks(&own),
            |theirs, channel| channel.recv_blocks(theirs),
        )?; // step 2
        let mut s = x.macs.clone();
        self.hashes[1].hash_slice(self.next, &mut s);
        self.next += m as u128;
        for (i, s) in s.iter_mut().enumerate() {
            let x = Block::select_mask(bits::bit(&x.shares, i));
            *s ^= hashes[i][0] ^ (x & (theirs[i] ^ scaled[i])); // step 3
        }
        let mut d = vec![0; bytes_for(m)];
        bits::lowest_bits(&s, &mut d);
        xor_into(&mut d, &z.shares);
        let theirs = exchange(self.role, &d, channel)?; // step 4
        xor_into(&mut d, &theirs);
        self.add_public(&mut z, &mut d, Role::Sender);
        for (s, c) in s.iter_mut().zip(self.scaled(&z).iter()) {
            *s ^= *c;
        }
        let mut oracle = RandomOracle::new("volery mpc: check of leaky triples");
        let hash = oracle.absorb(Block::as_bytes(&s)).finish32();
        agree::equal(self.role, &hash, "the check of its triples failed", &mut self.rng, channel)?;
        Ok([x, y, z]) // step 5
    }

    fn triples(&mut self, n: usize, channel: &mut Channel) -> Result<[Bits; 3]> {
        let size = bucket(n);
        let leaky = self.leaky(n * size, channel)?;
        let order = permutation(n * size, agree::toss(self.role, &mut self.rng, channel)?); // step 6
        let nth = |bits: &Bits, j: usize| bits.select(order[j * n..][..n].iter().copied());
        let [mut x, y, mut z] = leaky.each_ref().map(|bits| nth(bits, 0));
        for j in 1..size {
            let [mut x_j, mut d, z_j] = leaky.each_ref().map(|bits| nth(bits, j));
            d.add(&y);
            let d = self.open(&d, channel)?; // step 7
            x.add(&x_j);
            z.add(&z_j);
            x_j.multiply_public(&d);
            z.add(&x_j);
        }
        Ok([x, y, z])
    }
}

/// A random order of `0..n`, by the method of Fisher and Yates.
fn permutation(n: usize, seed: Block) -> Vec<usize> {
    let mut prg = Prg::new(seed);
    let mut order: Vec<_> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, prg.below(i as u64 + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The logarithm of the best chance to know all of a bucket of one of `n`.
    fn leak(n: usize, size: usize) -> f64 {
        let m = n * size;
        let of = |c: usize| {
            let all = (0..size).map(|k| ((c - k) as f64 / (m - k) as f64).log2());
            (n as f64).log2() - c as f64 + all.sum::<f64>()
        };
        // Beyond twice the size one guess more halves the chance, and gains less.
        (size..=m.min(2 * size + 2)).map(of).fold(f64::NEG_INFINITY, f64::max)
    }

    #[test]
    fn buckets_have_the_least_size_that_is_secure() {
        let secure = |n, size| leak(n, size) <= -(STATISTICAL as f64);
        assert!(secure(1, LARGEST_BUCKET));
        for (least, size) in BUCKETS {
            assert!(secure(least, size) && !secure(least - 1, size), "{least} triples");
            assert!(secure(2 * least, size) && secure(1 << 30, size));
        }
    }
}
