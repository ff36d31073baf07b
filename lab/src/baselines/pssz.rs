//! PSSZ: private set intersection by comparing cuckoo tables with 1-out-of-256 OT.
//!
//! Pinkas, Schneider, Segev, Zohner, *Phasing: Private Set Intersection using Permutation-based
//! Hashing*, USENIX Security 2015, as BaRK-OPRF (CCS 2016) sums it up in sections 5.1 and 5.2 and
//! measures it. `F_p` is the function of bin `p`: `F_p(c, z) = H(p, z, sum of the messages that the
//! bytes of c choose)`, one OT for each byte. `H` is AES under a key for each `p` and `z`, with
//! feed-forward, as in `kk13`; the messages it hashes are random blocks.
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
//! Permutation-based hashing: the bin, `z` and `q` determine `r` and so `x`. Only `q` needs to be
//! compared, which is shorter than `x` by the bits of the number of bins. The stash has no bin:
//! there all of `x` is compared.
//!
//! As published, `z` is not in the input of `F` but in `H` alone, as every byte of the input costs
//! an OT (footnote 3 of the BaRK-OPRF paper). Then a receiver whose item lies in bin `p` can also
//! see whether the sender has the two items with the same `q` that another function would take
//! there.
//!
//! An empty bin is compared as if it held a value that no item has, above all the others: a value
//! that some item could have would tell the receiver whether the sender has that item.
//!
//! Items of more bits than `v'` are hashed to that many first. `v'` is `40 + log2(3|X||Y|)`,
//! rounded up to bytes, as in Table 5 of the BaRK-OPRF paper, and the width of the values in step
//! 4.
//!
//! If an unlucky key leaves more items over than the stash holds, the receiver takes another before
//! it sends it; that happens with probability 2^-40 or so, and only then does the key depend on its
//! items.
//!
//! Security: semi-honest, but for the two items above.
//!
//! Cost: that of the setup of `kk13` once. Then, with `b = 1.2|Y|` bins and a stash of `s`, of `t`
//! and `t'` OTs each: 1 message from the receiver, 16 bytes and the OTs: 32 bytes for each of `b*t`
//! and of `s*t'`, both rounded up to multiples of 128; 1 message from the sender of `(3+s)*|X|`
//! values of `v'` bits.

mod phasing;
mod plan;

use std::ops::Range;

use volery_channel::{Channel, Result, SessionId};
use volery_primitives::cuckoo::{FUNCTIONS, Full, Table};
use volery_primitives::ro::RandomOracle;
use volery_primitives::{Block, prg::Prg};

use crate::baselines::kk13;
use crate::baselines::matching::{Matcher, Shuffled, recv_values};
use phasing::{Buckets, Phased, Phasing};
pub(crate) use plan::{Plan, published_bytes};

/// The approximate number of OTs made at a time: their matrix and the values computed from it fit
/// into a level-2 cache.
const BATCH: usize = 1 << 12;

/// Used instead of the index of a hash function in the stash.
const STASH: usize = FUNCTIONS;

/// The party whose set stays hidden except for the common items.
pub(crate) struct Sender {
    ot: kk13::Sender,
    hash: OutputHash,
    rng: Prg,
}

impl Sender {
    /// The part that can run before the items are known: base OTs.
    pub(crate) fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        Ok(Self {
            ot: kk13::Sender::setup(session, rng.fork("OTs"), channel)?,
            hash: OutputHash::new(session),
            rng,
        })
    }

    /// Lets the receiver find the common items.
    pub(crate) fn run(
        &mut self,
        items: &[Block],
        plan: &Plan,
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(items.len(), plan.items(), "as many items as planned");
        let items = plan.reduce(items, &self.hash.items);
        let phasing = Phasing::new(channel.recv_block()?, plan); // step 1
        let buckets = Buckets::new(phasing.split(&items), plan.bins());
        let mut sets = [(); FUNCTIONS].map(|()| self.set(plan));
        for bins in batches(plan) {
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
        Shuffled::new(plan.items(), plan.value_bytes(), &mut self.rng)
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
        let mut owners = Vec::new();
        let mut of = Vec::new();
        for (bin, first) in bins.zip((0..).step_by(ots)) {
            for (item, function, quotient) in buckets.bin(bin) {
                owners.push((item, function, tweak(bin, function)));
                let choices = quotient.to_le_bytes();
                of.extend((first..).zip(choices).take(ots));
            }
        }
        let mut messages = vec![Block::ZERO; of.len()];
        self.ot.messages(batch, &of, &mut messages);
        let mut values = sums(&messages, ots);
        let tweaks = owners.iter().map(|&(_, _, tweak)| tweak);
        self.hash.values(tweaks, &mut values);
        for (&(item, function, _), &value) in owners.iter().zip(&values) {
            sets[function].put(item, value.into());
        }
    }

    /// Step 3: the values of all items in one slot of the stash.
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
        let all = |i| (0..=255).map(move |choice| ((place * ots + i) as u32, choice));
        let of: Vec<_> = (0..ots).flat_map(all).collect();
        let mut messages = vec![Block::ZERO; of.len()];
        self.ot.messages(batch, &of, &mut messages);
        let tweak = tweak(plan.bins() + place, STASH);
        for (first, items) in (0..).step_by(BATCH).zip(items.chunks(BATCH)) {
            let sum = |item: &u128| {
                let bytes = item.to_le_bytes().into_iter().take(ots);
                let messages = bytes.zip(messages.chunks_exact(256));
                messages
                    .fold(Block::ZERO, |sum, (byte, messages)| sum ^ messages[usize::from(byte)])
            };
            let mut values: Vec<Block> = items.iter().map(sum).collect();
            self.hash.values(std::iter::repeat(tweak), &mut values);
            for (number, &value) in (first..).zip(&values) {
                set.put(number, value.into());
            }
        }
    }
}

/// The party that learns which of its items are common.
pub(crate) struct Receiver {
    ot: kk13::Receiver,
    hash: OutputHash,
    rng: Prg,
}

impl Receiver {
    /// The part that can run before the items are known: base OTs, as the peer of
    /// [`Sender::setup`].
    pub(crate) fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        Ok(Self {
            ot: kk13::Receiver::setup(session, rng.fork("OTs"), channel)?,
            hash: OutputHash::new(session),
            rng,
        })
    }

    /// Finds the common items: their numbers, ascending.
    pub(crate) fn run(
        &mut self,
        items: &[Block],
        plan: &Plan,
        channel: &mut Channel,
    ) -> Result<Vec<usize>> {
        assert_eq!(items.len(), plan.items(), "as many items as planned");
        let items = plan.reduce(items, &self.hash.items);
        let placed = place(&items, plan, &mut self.rng); // step 1
        channel.send_block(placed.key)?;
        let mut found = Found::new(items.len());
        for bins in batches(plan) {
            let choices = placed.choices(plan, bins.clone());
            let sums = self.chosen_sums(&choices, plan.bin_ots(), channel)?; // step 2
            self.bin_values(plan, &placed.table, bins, &sums, &mut found); // step 3
        }
        let choices = stash_choices(plan, &items, &placed.stash);
        let sums = self.chosen_sums(&choices, plan.stash_ots(), channel)?; // step 2
        let mut common = found.compare(plan, channel)?; // steps 4 and 5
        let mut values = sums;
        let tweaks = (0..).map(|place| tweak(plan.bins() + place, STASH));
        self.hash.values(tweaks, &mut values); // step 3
        for (place, &value) in values.iter().enumerate() {
            let value = low_bytes(value, plan.value_bytes());
            let mut is_there = false;
            recv_values(plan.items(), plan.value_bytes(), channel, |theirs| {
                is_there |= theirs == value; // step 5
            })?;
            if let (true, Some(&item)) = (is_there, placed.stash.get(place)) {
                common.push(item);
            }
        }
        common.sort_unstable();
        Ok(common)
    }

    /// Step 2: for each group of `ots` choices the sum of the chosen messages.
    fn chosen_sums(
        &mut self,
        choices: &[u8],
        ots: usize,
        channel: &mut Channel,
    ) -> Result<Vec<Block>> {
        let mut messages = vec![Block::ZERO; choices.len()];
        self.ot.extend(choices, &mut messages, channel)?;
        Ok(sums(&messages, ots))
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
        let mut owners = Vec::with_capacity(bins.len());
        let mut values = Vec::with_capacity(bins.len());
        for (bin, &sum) in bins.zip(sums) {
            if let (Some(item), Some(function)) = (table.bin(bin), table.function(bin)) {
                owners.push((item, function, tweak(bin, function)));
                values.push(sum);
            }
        }
        let tweaks = owners.iter().map(|&(_, _, tweak)| tweak);
        self.hash.values(tweaks, &mut values);
        for (&(item, function, _), &value) in owners.iter().zip(&values) {
            found.items[function].push(item);
            found.values[function].push(low_bytes(value, plan.value_bytes()));
        }
    }
}

/// The receiver's items in their slots.
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
            return Placed { key, table, stash, phased };
        }
    }
    panic!("the items are not all different: no table holds them");
}

impl Placed {
    /// Step 2: the contents of these bins, as bytes.
    fn choices(&self, plan: &Plan, bins: Range<usize>) -> Vec<u8> {
        let mut choices = Vec::with_capacity(bins.len() * plan.bin_ots());
        for bin in bins {
            let bytes = match (self.table.bin(bin), self.table.function(bin)) {
                (Some(item), Some(_)) => self.phased.quotients[item].to_le_bytes(),
                _ => plan.empty_bin(),
            };
            choices.extend_from_slice(&bytes[..plan.bin_ots()]);
        }
        choices
    }
}

/// Step 2: the contents of the stash, as bytes.
fn stash_choices(plan: &Plan, items: &[u128], stash: &[usize]) -> Vec<u8> {
    let places = (0..plan.stash()).map(|place| match stash.get(place) {
        Some(&item) => items[item].to_le_bytes(),
        None => plan.empty_place(),
    });
    places.flat_map(|bytes| bytes.into_iter().take(plan.stash_ots())).collect()
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
            recv_values(plan.items(), plan.value_bytes(), channel, |value| {
                matcher.find(value, |number| common.push(items[number]));
            })?;
        }
        Ok(common)
    }
}

/// The bins, in groups whose OTs are made together: whole blocks of OTs, so that only the last are
/// rounded up.
fn batches(plan: &Plan) -> impl Iterator<Item = Range<usize>> {
    let bins = plan.bins();
    let size = (BATCH / plan.bin_ots()).next_multiple_of(128);
    (0..bins).step_by(size).map(move |first| first..(first + size).min(bins))
}

/// The sum of each group of `ots` messages.
fn sums(messages: &[Block], ots: usize) -> Vec<Block> {
    let sum = |group: &[Block]| group.iter().fold(Block::ZERO, |sum, &x| sum ^ x);
    messages.chunks_exact(ots).map(sum).collect()
}

/// One number for an instance, which is a bin or, after those, a slot of the stash, and an index.
fn tweak(instance: usize, index: usize) -> u64 {
    (instance * (FUNCTIONS + 1) + index) as u64
}

/// As much of a value as is sent.
fn low_bytes(value: Block, bytes: usize) -> u128 {
    u128::from(value) & (u128::MAX >> (128 - 8 * bytes))
}

/// `H` of step 3, and the key of the hash that shortens items.
struct OutputHash {
    key: Block,
    items: [u8; 32],
}

impl OutputHash {
    fn new(session: SessionId) -> Self {
        let mut oracle = RandomOracle::new("volery experiments pssz: keys");
        oracle.absorb(session.as_bytes());
        let items = oracle.finish32();
        let key = oracle.absorb(b"outputs").finish_block();
        Self { key, items }
    }

    /// The values of the instances and indices, which the tweaks name, replacing the sums.
    fn values(&self, tweaks: impl Iterator<Item = u64>, sums: &mut [Block]) {
        kk13::hash_under(self.key, tweaks, sums);
    }
}
