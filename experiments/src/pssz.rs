//! PSSZ: private set intersection by comparing cuckoo tables with 1-out-of-256 OT.
//!
//! Pinkas, Schneider, Segev, Zohner, *Phasing: Private Set Intersection using Permutation-based Hashing*, USENIX Security
//! 2015, as BaRK-OPRF (CCS 2016) sums it up in sections 5.1 and 5.2 and measures it. `F_p` is the function of bin `p`:
//! `F_p(c, z) = H(p, z, sum of the messages that the bytes of c choose)`, one OT for each byte.
//!
//! ```text
//! Sender: X                                       Receiver: Y
//! 1.                                              key of f, table: x = q*b + r goes to a bin p_z = r + f_z(q) mod b
//!     <------------------ key -------------------
//! 2.  1-out-of-256 OT for each byte of what is in a bin, see `kk13`; the receiver chooses
//!     <------------- its message ----------------
//! 3.  H_z = F_{p_z(x)}(q, z) for all x, z         F_p(q, z) of what is in each bin
//!     S_j = F_{b+j}(x) for all x                  F_{b+j}(y) of what is in each place of the stash
//! 4.  -------- H_0, H_1, H_2, all S_j ----------->  each set in an order of its own
//! 5.                                              y in bin p by z is common if F_p(q, z) is in H_z
//! ```
//!
//! Permutation-based hashing: whoever knows the bin, `z` and `q` knows `r` and so `x`. Only `q` needs to be compared, which
//! is shorter than `x` by the bits of the number of bins. The stash has no bin: there all of `x` is compared.
//!
//! **Where the index `z` goes.** Without `z` in the input of `F`, an item whose `p_0` and `p_1` coincide would put the
//! same value into `H_0` and `H_1`, and the receiver would learn something of an item that it does not have; the authors'
//! program does not mind (footnote 3 of the BaRK-OPRF paper). In BaRK-OPRF the index lengthens the input for nothing; here
//! every byte costs an OT. [`HashIndex::Hashed`] puts it into `H` alone, at the published cost. Then a receiver whose item
//! lies in bin `p` holds all it takes to compute `F_p(q, z)` for the other two `z` as well, that is, to see whether the
//! sender has the two items with the same `q` that another function would take there. [`HashIndex::Chosen`] closes that:
//! `z` is part of `c`, which takes one more OT where the length is (nearly) whole bytes.
//!
//! An empty bin is compared as if it held a value that no item has, above all the others: a value that some item could
//! have would tell the receiver whether the sender has that item.
//!
//! Items of more bits than `v'` are hashed to that many first. `v'` is `40 + log2(3|X||Y|)`, rounded up to bytes, as in Table 5
//! of the BaRK-OPRF paper, and the width of the values in step 4.
//!
//! If an unlucky key leaves more items over than the stash holds, the receiver takes another before it sends it; that
//! happens with probability 2^-40 or so, and only then does the key depend on its items.
//!
//! Security: semi-honest, with [`HashIndex::Chosen`]; see above for the other.
//!
//! Cost: that of the setup of `kk13` once. Then, with `b = 1.2|Y|` bins and a stash of `s`, of `t` and `t'` OTs each:
//! 1 message from the receiver, 16 bytes and the OTs: 32 bytes for each of `b*t` and of `s*t'`, both rounded up to multiples
//! of 128; 1 message from the sender of `(3+s)*|X|` values of `v'` bits.

mod phasing;
mod plan;

use std::ops::Range;

use volery_channel::{Channel, Result, SessionId};
use volery_primitives::cuckoo::{FUNCTIONS, Full, Table};
use volery_primitives::ro::RandomOracle;
use volery_primitives::{Block, prg::Prg};

use crate::kk13;
use crate::matching::{Matcher, Shuffled, cut, recv_values};
use phasing::{Buckets, Phased, Phasing};
pub use plan::{HashIndex, Plan, published_bytes, stash_size};

/// Bins whose OTs are made at a time; a multiple of 128.
const BATCH: usize = 1 << 11;

/// In the place of the index of a hash function, in the stash.
const STASH: usize = FUNCTIONS;

/// The party whose set stays hidden but for what is common.
pub struct Sender {
    ot: kk13::Sender,
    key: OutputKey,
    rng: Prg,
}

impl Sender {
    /// What can be done before the items are known: base OTs.
    ///
    /// # Errors
    /// If the channel fails, or if the peer sent an invalid group element.
    pub fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        Ok(Self {
            ot: kk13::Sender::setup(session, rng.fork("OTs"), channel)?,
            key: OutputKey::new(session),
            rng,
        })
    }

    /// Lets the receiver find the common items.
    ///
    /// # Panics
    /// If there are not as many items as the plan says, or one of them has more bits.
    ///
    /// # Errors
    /// If the channel fails.
    pub fn run(&mut self, items: &[Block], plan: &Plan, channel: &mut Channel) -> Result<()> {
        assert_eq!(items.len(), plan.sizes().sender, "as many items as planned");
        if plan.sizes().is_trivial() {
            return Ok(());
        }
        let items = plan.reduce(items, &self.key.0);
        let phasing = Phasing::new(channel.recv_block()?, plan); // step 1
        let buckets = Buckets::new(phasing.split(&items), plan.bins());
        let mut sets = [(); FUNCTIONS].map(|()| self.set(plan));
        for bins in batches(plan.bins()) {
            let batch = self.ot.extend(bins.len() * plan.bin_ots(), channel)?; // step 2
            self.bin_values(plan, &buckets, bins, &batch, &mut sets); // step 3
        }
        let stash = self.ot.extend(plan.stash() * plan.stash_ots(), channel)?;
        for set in sets {
            set.send(channel)?; // step 4
        }
        for place in 0..plan.stash() {
            let mut set = self.set(plan);
            self.stash_values(plan, &items, place, &stash, &mut set); // step 3
            set.send(channel)?; // step 4
        }
        Ok(())
    }

    fn set(&mut self, plan: &Plan) -> Shuffled {
        Shuffled::new(plan.sizes().sender, plan.value_bytes(), &mut self.rng)
    }

    /// Step 3: the values of all items in these bins, whose OTs are the batch.
    fn bin_values(
        &self,
        plan: &Plan,
        buckets: &Buckets,
        bins: Range<usize>,
        batch: &kk13::Batch,
        sets: &mut [Shuffled; FUNCTIONS],
    ) {
        let ots = plan.bin_ots();
        for (bin, first) in bins.zip((0..).step_by(ots)) {
            for (item, function, quotient) in buckets.bin(bin) {
                let choices = plan.choices(quotient, function);
                let sum = (0..ots).fold(Block::ZERO, |sum, i| {
                    sum ^ self.ot.message(batch, first + i, choices[i])
                });
                let value = self.key.value(bin, function, sum, plan.value_bytes());
                sets[function].put(item, value);
            }
        }
    }

    /// Step 3: the values of all items in one place of the stash.
    fn stash_values(
        &self,
        plan: &Plan,
        items: &[u128],
        place: usize,
        batch: &kk13::Batch,
        set: &mut Shuffled,
    ) {
        let ots = plan.stash_ots();
        // All items are compared with the same OTs, so all their messages are computed once.
        let messages: Vec<Block> = (0..ots)
            .flat_map(|i| (0..=255).map(move |choice| (i, choice)))
            .map(|(i, choice)| self.ot.message(batch, place * ots + i, choice))
            .collect();
        for (number, item) in items.iter().enumerate() {
            let bytes = item.to_le_bytes();
            let sum = (0..ots).fold(Block::ZERO, |sum, i| {
                sum ^ messages[256 * i + usize::from(bytes[i])]
            });
            let instance = plan.bins() + place;
            set.put(
                number,
                self.key.value(instance, STASH, sum, plan.value_bytes()),
            );
        }
    }
}

/// The party that learns which of its items are common.
pub struct Receiver {
    ot: kk13::Receiver,
    key: OutputKey,
    rng: Prg,
}

impl Receiver {
    /// What can be done before the items are known: base OTs, as the peer of [`Sender::setup`].
    ///
    /// # Errors
    /// If the channel fails, or if the peer sent an invalid group element.
    pub fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        Ok(Self {
            ot: kk13::Receiver::setup(session, rng.fork("OTs"), channel)?,
            key: OutputKey::new(session),
            rng,
        })
    }

    /// Finds the common items: their numbers, ascending.
    ///
    /// # Panics
    /// If there are not as many items as the plan says, or one of them has more bits; if so many items are the same that
    /// no table holds them.
    ///
    /// # Errors
    /// If the channel fails.
    pub fn run(
        &mut self,
        items: &[Block],
        plan: &Plan,
        channel: &mut Channel,
    ) -> Result<Vec<usize>> {
        assert_eq!(
            items.len(),
            plan.sizes().receiver,
            "as many items as planned"
        );
        if plan.sizes().is_trivial() {
            return Ok(Vec::new());
        }
        let items = plan.reduce(items, &self.key.0);
        let placed = place(&items, plan, &mut self.rng); // step 1
        channel.send_block(placed.key)?;
        let mut found = Found::new(items.len());
        for bins in batches(plan.bins()) {
            let choices = placed.choices(plan, bins.clone());
            let sums = self.sums(&choices, plan.bin_ots(), channel)?; // step 2
            self.bin_values(plan, &placed.table, bins, &sums, &mut found); // step 3
        }
        let choices = stash_choices(plan, &items, &placed.stash);
        let sums = self.sums(&choices, plan.stash_ots(), channel)?; // step 2
        let mut common = found.compare(plan, channel)?; // steps 4 and 5
        for (place, sum) in sums.iter().enumerate() {
            let instance = plan.bins() + place;
            let value = self.key.value(instance, STASH, *sum, plan.value_bytes()); // step 3
            let mut is_there = false;
            recv_values(
                items_of_sender(plan),
                plan.value_bytes(),
                channel,
                |theirs| {
                    is_there |= theirs == value; // step 5
                },
            )?;
            if let (true, Some(&item)) = (is_there, placed.stash.get(place)) {
                common.push(item);
            }
        }
        common.sort_unstable();
        Ok(common)
    }

    /// Step 2: for each group of `ots` choices the sum of the chosen messages.
    fn sums(&mut self, choices: &[u8], ots: usize, channel: &mut Channel) -> Result<Vec<Block>> {
        let mut messages = vec![Block::ZERO; choices.len()];
        self.ot.extend(choices, &mut messages, channel)?;
        let sum = |group: &[Block]| group.iter().fold(Block::ZERO, |sum, &x| sum ^ x);
        Ok(messages.chunks_exact(ots).map(sum).collect())
    }

    /// Step 3: the values of the items in these bins.
    fn bin_values(
        &self,
        plan: &Plan,
        table: &Table,
        bins: Range<usize>,
        sums: &[Block],
        found: &mut Found,
    ) {
        for (bin, &sum) in bins.zip(sums) {
            if let (Some(item), Some(function)) = (table.bin(bin), table.function(bin)) {
                let value = self.key.value(bin, function, sum, plan.value_bytes());
                found.items[function].push(item);
                found.values[function].push(value);
            }
        }
    }
}

fn items_of_sender(plan: &Plan) -> usize {
    plan.sizes().sender
}

/// The receiver's items in their places.
struct Placed {
    key: Block,
    table: Table,
    /// Numbers of the items in the stash.
    stash: Vec<usize>,
    phased: Phased,
}

/// Step 1 of the receiver.
fn place(items: &[u128], plan: &Plan, rng: &mut Prg) -> Placed {
    /// Of the keys a first is good but with probability 2^-40.
    const TRIES: usize = 16;
    for _ in 0..TRIES {
        let key = rng.block();
        let phased = Phasing::new(key, plan).split(items);
        let (table, stash) = match Table::build_from(&phased.bins, plan.bins()) {
            Ok(table) => (table, Vec::new()),
            Err(Full { unplaced, table }) => (table, unplaced),
        };
        if stash.len() <= plan.stash() {
            return Placed {
                key,
                table,
                stash,
                phased,
            };
        }
    }
    panic!("the items are not all different: no table holds them");
}

impl Placed {
    /// Step 2: what is in these bins, as bytes.
    fn choices(&self, plan: &Plan, bins: Range<usize>) -> Vec<u8> {
        let mut choices = Vec::with_capacity(bins.len() * plan.bin_ots());
        for bin in bins {
            let bytes = match (self.table.bin(bin), self.table.function(bin)) {
                (Some(item), Some(function)) => plan.choices(self.phased.quotients[item], function),
                _ => plan.empty_bin(),
            };
            choices.extend_from_slice(&bytes[..plan.bin_ots()]);
        }
        choices
    }
}

/// Step 2: what is in the stash, as bytes.
fn stash_choices(plan: &Plan, items: &[u128], stash: &[usize]) -> Vec<u8> {
    let places = (0..plan.stash()).map(|place| match stash.get(place) {
        Some(&item) => items[item].to_le_bytes(),
        None => plan.empty_place(),
    });
    places
        .flat_map(|bytes| bytes.into_iter().take(plan.stash_ots()))
        .collect()
}

/// The values of the receiver's items in the table, by hash function.
struct Found {
    items: [Vec<usize>; FUNCTIONS],
    values: [Vec<u128>; FUNCTIONS],
}

impl Found {
    fn new(items: usize) -> Self {
        Self {
            items: [(); FUNCTIONS].map(|()| Vec::with_capacity(items / FUNCTIONS)),
            values: [(); FUNCTIONS].map(|()| Vec::with_capacity(items / FUNCTIONS)),
        }
    }

    /// Steps 4 and 5: the numbers of those that are in the sender's sets.
    fn compare(self, plan: &Plan, channel: &mut Channel) -> Result<Vec<usize>> {
        let mut common = Vec::new();
        for (items, values) in self.items.into_iter().zip(self.values) {
            let matcher = Matcher::new(values);
            recv_values(
                items_of_sender(plan),
                plan.value_bytes(),
                channel,
                |value| {
                    matcher.find(value, |number| common.push(items[number]));
                },
            )?;
        }
        Ok(common)
    }
}

/// The bins, as many at a time as their OTs are made.
fn batches(bins: usize) -> impl Iterator<Item = Range<usize>> {
    (0..bins)
        .step_by(BATCH)
        .map(move |first| first..(first + BATCH).min(bins))
}

/// `H` of step 3, and the key of the hash that shortens items.
struct OutputKey([u8; 32]);

impl OutputKey {
    fn new(session: SessionId) -> Self {
        let mut oracle = RandomOracle::new("volery experiments pssz: key of the outputs");
        oracle.absorb(session.as_bytes());
        Self(oracle.finish32())
    }

    /// The value of an instance, which is a bin or after those a place of the stash.
    fn value(&self, instance: usize, index: usize, sum: Block, bytes: usize) -> u128 {
        let mut input = [0; 25];
        input[..8].copy_from_slice(&(instance as u64).to_le_bytes());
        input[8] = index as u8;
        input[9..].copy_from_slice(&sum.to_bytes());
        cut(blake3::keyed_hash(&self.0, &input).as_bytes(), bytes)
    }
}

#[cfg(test)]
mod tests;
