//! A run, from the read table to the shares.

use std::time::Duration;

use volery_apps::switching;
use volery_channel::{Channel, Role, SessionId, Stats};
use volery_field::{F2, Z64};
use volery_os::time::Instant;
use volery_ot::convert;
use volery_pcg::cot;
use volery_primitives::bits;
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use volery_psi::circuit::{self, Parameters, Slice};
use zeroize::Zeroizing;

use super::settings::{MAX_COLUMNS, Settings};
use super::side::{Order, PreparedTable, Values};
use crate::error::{Result, misbehaved};
use crate::keyed::{Party, begin};
use crate::progress::{Inner, Progress};
use crate::totals::MAX_DECIMALS;
use crate::totals::compute::check_sizes;

/// The columns of a side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SideColumns {
    /// Their number.
    pub count: usize,
    /// The most that a value may be, in units of the last decimal place.
    pub bound: u64,
    /// Decimal places of the values.
    pub decimals: u32,
}

/// The shape of the shares: the same on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The session, public.
    pub session: SessionId,
    /// Distinct keys of sender and receiver.
    pub sizes: [u64; 2],
    /// Columns of sender and receiver.
    pub columns: [SideColumns; 2],
    /// Whether places are in the order of the receiver's rows.
    pub row_order: bool,
    /// Number of places.
    pub places: u64,
}

/// This side's shares of the next places. Wiped when dropped.
pub struct Piece {
    /// For each place 0 or 1.
    pub matches: Zeroizing<Vec<u8>>,
    /// The columns of the sender, then those of the receiver.
    pub columns: Vec<Buffer<u64>>,
    /// At the receiver: the number of the row of the place, counted from 0, or -1.
    pub rows: Option<Buffer<i64>>,
}

/// The cost of a run.
pub struct Outcome {
    /// The shape of the shares.
    pub layout: Layout,
    /// The parameters of circuit-PSI.
    pub parameters: Parameters,
    /// Up to the first message of circuit-PSI.
    pub setup: Duration,
    /// After it.
    pub online: Duration,
    /// Traffic of `setup`.
    pub setup_traffic: Stats,
    /// All traffic.
    pub traffic: Stats,
}

/// A run that hands out its shares piece by piece.
pub struct ShareExecution {
    layout: Layout,
    party: Party,
    values: Values,
    /// Of the order of rows, before it is made.
    order: Option<(SessionId, Prg)>,
    start: Instant,
    setup: Duration,
    setup_traffic: Stats,
    slices: u64,
}

impl PreparedTable {
    /// Steps 1 and 2 and the setup of step 3, over a new connection.
    ///
    /// # Errors
    /// If the two sides differ in a setting; if the channel or the protocol fails.
    pub fn start(
        self,
        channel: &mut Channel,
        progress: &mut dyn Progress,
    ) -> Result<ShareExecution> {
        let hello = self.settings.hello(&self.summary.key_description);
        let (start, mut rng, session) = begin(&hello, channel, progress)?;
        let (sizes, columns) = exchange(&self.settings, self.summary.keys, channel)?;
        let (setup, setup_traffic) = (start.elapsed(), channel.stats());
        let Self { settings, values, .. } = self;
        let circuit = settings.circuit(columns.map(|side| side.count));
        let own: Vec<&[u64]> = values.columns.iter().map(|column| &**column).collect();
        let randomness = (session, rng.fork("protocol"));
        let watch = &mut Inner { progress, shown: true };
        let items = &*values.items;
        let party = match settings.role {
            Role::Sender => {
                let sender =
                    circuit::Sender::setup(items, &own, circuit, randomness, watch, channel);
                Party::Sender(sender?)
            }
            Role::Receiver => {
                let receiver =
                    circuit::Receiver::setup(items, &own, circuit, randomness, watch, channel);
                Party::Receiver(receiver?)
            }
        };
        let parameters = party.parameters();
        // The number of places follows from what was announced.
        // mutant(shares-size): drop
        check_sizes(sizes, [parameters.sender_items, parameters.receiver_items])?;
        let places = match (settings.row_order, parameters.trivial()) {
            (true, _) => sizes[1],
            (false, true) => 0,
            (false, false) => parameters.bins as u64,
        };
        let id = RandomOracle::new("volery matching: order of shares")
            .absorb(session.as_bytes())
            .finish32();
        let order = (SessionId::from_bytes(id), rng.fork("order"));
        Ok(ShareExecution {
            layout: Layout { session, sizes, columns, row_order: settings.row_order, places },
            order: settings.row_order.then_some(order),
            party,
            values,
            start,
            setup,
            setup_traffic,
            slices: 0,
        })
    }
}

/// Step 2.
fn exchange(
    settings: &Settings,
    keys: u64,
    channel: &mut Channel,
) -> Result<([u64; 2], [SideColumns; 2])> {
    let ours = SideColumns {
        count: settings.columns.len(),
        bound: settings.bound,
        decimals: settings.decimals,
    };
    let words = [keys, ours.count as u64, ours.bound, ours.decimals.into()];
    for word in words {
        channel.send(&word.to_le_bytes())?;
    }
    let mut message = [0; 32];
    channel.recv(&mut message)?;
    let mut theirs = message.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
    let mut next = || theirs.next().expect("four words");
    let (their_keys, count, bound, decimals) = (next(), next(), next(), next());
    let most = circuit::MAX_ITEMS;
    if keys > most {
        return Err(volery_psi::Error::TooMany { items: keys, most }.into());
    }
    // mutant(shares-most): false
    if their_keys > most {
        return Err(misbehaved("it announced a set larger than the maximum"));
    }
    // mutant(shares-columns): `count > MAX_COLUMNS as u64` => `false`
    // mutant(shares-bound): `bound > i64::MAX as u64` => `false`
    if count > MAX_COLUMNS as u64
        || decimals > MAX_DECIMALS.into()
        || bound > i64::MAX as u64
        || (count == 0) != (bound == 0)
    {
        return Err(misbehaved("it announced columns of values that no side has"));
    }
    let theirs = SideColumns { count: count as usize, bound, decimals: decimals as u32 };
    Ok(match settings.role {
        Role::Sender => ([keys, their_keys], [ours, theirs]),
        Role::Receiver => ([their_keys, keys], [theirs, ours]),
    })
}

impl ShareExecution {
    /// The shape of the shares.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Shares of the next places; after the last ones `None`.
    ///
    /// # Errors
    /// If the channel or the protocol fails; then nothing more is handed out.
    pub fn next(
        &mut self,
        channel: &mut Channel,
        progress: &mut dyn Progress,
    ) -> Result<Option<Piece>> {
        if self.slices == 0 {
            progress.begin("comparing in bins", self.party.parameters().slices() as u64);
        }
        if let Some(order) = self.order.take() {
            return self.in_order(order, channel, progress).map(Some);
        }
        let slice = self.next_slice(channel, progress)?;
        Ok(slice.map(|slice| {
            let rows = match &self.party {
                Party::Sender(_) => None,
                Party::Receiver(party) => {
                    let mut rows = Buffer::zeroed(slice.bins.len());
                    for (row, bin) in rows.iter_mut().zip(slice.bins.clone()) {
                        *row = party.item(bin).map_or(-1, |item| self.values.rows[item]);
                    }
                    Some(rows)
                }
            };
            let mut matches = Zeroizing::new(vec![0; slice.bins.len()]);
            for (place, bit) in matches.iter_mut().enumerate() {
                *bit = slice.bits[place / 8] >> (place % 8) & 1;
            }
            let mut columns = slice.payload;
            columns.extend(slice.weights);
            Piece { matches, columns, rows }
        }))
    }

    fn next_slice(
        &mut self,
        channel: &mut Channel,
        progress: &mut dyn Progress,
    ) -> Result<Option<Slice>> {
        if self.layout.row_order && self.slices > self.party.parameters().slices() as u64 {
            return Ok(None);
        }
        let slice = self.party.next(channel)?;
        self.slices += 1;
        progress.done(self.slices);
        Ok(slice)
    }

    /// Step 4, for all places at once.
    fn in_order(
        &mut self,
        (session, rng): (SessionId, Prg),
        channel: &mut Channel,
        progress: &mut dyn Progress,
    ) -> Result<Piece> {
        let bins = match self.party.parameters().trivial() {
            true => self.layout.places as usize,
            false => self.party.parameters().bins,
        };
        let count: usize = self.layout.columns.iter().map(|side| side.count).sum();
        let mut matches = Zeroizing::new(vec![F2::new(false); bins]);
        let mut columns: Vec<Zeroizing<Vec<Z64>>> =
            (0..count).map(|_| Zeroizing::new(vec![Z64::new(0); bins])).collect();
        while let Some(slice) = self.next_slice(channel, progress)? {
            for (place, bin) in slice.bins.clone().enumerate() {
                matches[bin] = F2::new(bits::bit(&slice.bits, place));
            }
            let shares = slice.payload.iter().chain(&slice.weights);
            for (column, shares) in columns.iter_mut().zip(shares) {
                for (place, share) in column[slice.bins.clone()].iter_mut().zip(&**shares) {
                    *place = Z64::new(*share);
                }
            }
        }
        if !self.party.parameters().trivial() {
            let order = Order::new(bins, count);
            progress.begin("ordering by rows", count as u64 + 1);
            let plan = &order.ots.plan;
            let mut done = 0;
            let mut step = || {
                done += 1;
                progress.done(done);
            };
            match &self.party {
                Party::Sender(_) => {
                    let source = cot::Sender::setup(plan, None, session, rng, channel)?;
                    let ot = &mut convert::Sender::new(source, session);
                    switching::send(&mut matches, ot, channel)?;
                    step();
                    for column in &mut columns {
                        switching::send(column, ot, channel)?;
                        step();
                    }
                }
                Party::Receiver(party) => {
                    let source = cot::Receiver::setup(plan, session, rng, channel)?;
                    let ot = &mut convert::Receiver::new(source, session);
                    let to = sources(party, self.values.rows.len());
                    switching::receive(&to, &mut matches, ot, channel)?;
                    step();
                    for column in &mut columns {
                        switching::receive(&to, column, ot, channel)?;
                        step();
                    }
                }
            }
        }
        let places = self.layout.places as usize;
        let rows = match &self.party {
            Party::Sender(_) => None,
            Party::Receiver(_) => {
                let mut rows = Buffer::zeroed(places);
                rows.copy_from_slice(&self.values.rows);
                Some(rows)
            }
        };
        let numbers = |column: &Zeroizing<Vec<Z64>>| {
            let mut numbers = Buffer::zeroed(places);
            for (number, share) in numbers.iter_mut().zip(&**column) {
                *number = share.value();
            }
            numbers
        };
        Ok(Piece {
            matches: Zeroizing::new(matches[..places].iter().map(|bit| bit.value()).collect()),
            columns: columns.iter().map(numbers).collect(),
            rows,
        })
    }

    /// Ends the run, after the last piece.
    #[must_use]
    pub fn finish(self, channel: &Channel) -> Outcome {
        Outcome {
            layout: self.layout,
            parameters: self.party.parameters().clone(),
            setup: self.setup,
            online: self.start.elapsed() - self.setup,
            setup_traffic: self.setup_traffic,
            traffic: channel.stats(),
        }
    }
}

/// The bin of each item, in the order of the items, then the empty bins: this party's own memory.
fn sources(party: &circuit::Receiver, items: usize) -> Zeroizing<Vec<usize>> {
    let bins = party.parameters().bins;
    let mut sources = Zeroizing::new(vec![0; bins]);
    let mut empty = items;
    for bin in 0..bins {
        let place = party.item(bin).unwrap_or_else(|| {
            empty += 1;
            empty - 1
        });
        sources[place] = bin;
    }
    sources
}
