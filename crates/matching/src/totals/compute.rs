//! Steps 4 to 7 by circuit-PSI: shares of counts and sums, the comparison with the minimum, and the
//! opening. `compute` has both parties' steps, which differ only where shares come from.

use serde::{Deserialize, Serialize};
use volery_channel::{Channel, Role, SessionId};
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;
use volery_psi::circuit::{self, Opener, Parameters, Recipient, Slice};
use zeroize::Zeroizing;

use super::noise::Noise;
use super::settings::Settings;
use super::side::Values;
use crate::error::{Result, misbehaved};
use crate::keyed::Party;
use crate::progress::{Inner, Progress};

/// Shares of the totals, group by group. Wiped when dropped.
pub struct Shares {
    counts: Zeroizing<Vec<u64>>,
    sums: Zeroizing<Vec<u64>>,
}

impl Shares {
    /// Shares of zero.
    pub fn zero(settings: &Settings) -> Self {
        let zeros = || Zeroizing::new(vec![0; settings.totals()]);
        Self { counts: zeros(), sums: zeros() }
    }

    /// All counts, then all sums.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        self.counts.iter().chain(self.sums.iter()).copied()
    }

    /// Adds shares that are [words](Self::words) in bytes, if there are as many.
    #[must_use]
    pub fn add(&mut self, bytes: &[u8]) -> bool {
        let (words, rest) = bytes.as_chunks();
        if !rest.is_empty() || words.len() != self.counts.len() + self.sums.len() {
            return false;
        }
        let own = self.counts.iter_mut().chain(self.sums.iter_mut());
        for (own, word) in own.zip(words) {
            *own = own.wrapping_add(u64::from_le_bytes(*word));
        }
        true
    }
}

/// The total of a group, or of all common keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// Whether the count, with its noise, is below the minimum: then nothing else is known.
    pub below_minimum: bool,
    /// The number of common keys, at a side that gets it.
    pub count: Option<i64>,
    /// The sum in units of its last decimal place, at a side that gets it.
    pub sum: Option<i64>,
}

impl Party {
    fn opener(&mut self) -> &mut dyn Opener {
        match self {
            Self::Receiver(party) => party,
            Self::Sender(party) => party,
        }
    }

    /// Shares of the products of shared values and the values of the items in the bins.
    fn multiply(
        &mut self,
        (slice, values): (&Slice, &Values),
        shares: &[u64],
        channel: &mut Channel,
    ) -> Result<Buffer<u64>> {
        match self {
            Self::Receiver(party) => {
                // The receiver's part of the shares is multiplied here; that of the sender is not
                // known to it.
                let mut factors = Buffer::zeroed(shares.len());
                for (bin, factor) in slice.bins.clone().zip(factors.iter_mut()) {
                    if let Some(item) = party.item(bin) {
                        *factor = values.values[item];
                    }
                }
                let mut products = party.multiply(&factors, channel)?;
                for ((product, factor), share) in products.iter_mut().zip(&*factors).zip(shares) {
                    *product = product.wrapping_add(factor.wrapping_mul(*share));
                }
                Ok(products)
            }
            Self::Sender(party) => Ok(party.multiply(shares, channel)?),
        }
    }

    /// Shares of shared values where the item in the bin is in a group, and of zero elsewhere.
    fn select(
        &mut self,
        (slice, values): (&Slice, &Values),
        group: usize,
        shares: &[u64],
        channel: &mut Channel,
    ) -> Result<Buffer<u64>> {
        match self {
            Self::Receiver(party) => {
                let mut bits = Zeroizing::new(vec![0; shares.len().div_ceil(8)]);
                for (place, bin) in slice.bins.clone().enumerate() {
                    let selected = party.item(bin).is_some_and(|item| values.is_in(item, group));
                    bits[place / 8] |= u8::from(selected) << (place % 8);
                }
                Ok(party.select(&bits, shares, channel)?)
            }
            Self::Sender(party) => Ok(party.select(shares, channel)?),
        }
    }
}

/// The columns of weights: for each total one of ones, if there is a count, then for each one of
/// values, if the side with the bins has them.
fn weights(settings: &Settings, values: &Values) -> Vec<Buffer<u64>> {
    let totals = 0..settings.totals();
    let column = |group: usize, value: &dyn Fn(usize) -> u64| {
        let mut column = Buffer::zeroed(values.items.len());
        for (item, weight) in column.iter_mut().enumerate() {
            let is_in = u64::from(values.is_in(item, group)).wrapping_neg();
            *weight = value(item) & is_in;
        }
        column
    };
    let mut columns = Vec::new();
    if settings.has_count() {
        columns.extend(totals.clone().map(|group| column(group, &|_| 1)));
    }
    if settings.kind.has_sum() && !settings.has_shared_values() {
        columns.extend(totals.map(|group| column(group, &|item| values.values[item])));
    }
    columns
}

/// Refuses a peer whose set has another size in the protocol than it announced: the rest of the run
/// goes by that one.
pub(crate) fn check_sizes(announced: [u64; 2], sizes: [u64; 2]) -> Result<()> {
    // mutant(totals-size): false
    if announced != sizes {
        return Err(misbehaved("its set has another size than it announced"));
    }
    Ok(())
}

/// The totals, for each group or for all common keys, and the parameters of the run. `announced`:
/// items of sender and receiver of circuit-PSI.
pub(crate) fn compute(
    settings: &Settings,
    announced: [u64; 2],
    values: &Values,
    noise: &Noise,
    randomness: (SessionId, Prg),
    channel: &mut Channel,
    progress: &mut dyn Progress,
) -> Result<(Parameters, Vec<Total>)> {
    let (mut party, shares) = start(settings, 1, announced, values, randomness, channel, progress)?;
    progress.begin("opening the result", 0);
    let totals = open(party.opener(), settings, shares, noise, channel)?;
    Ok((party.parameters().clone(), totals))
}

/// Shares of the totals of one of `parts` executions, and its parameters. `announced`: items of
/// sender and receiver of circuit-PSI.
///
/// # Errors
/// If the channel or the protocol fails, or the peer's set has another size.
pub fn shares(
    settings: &Settings,
    parts: u64,
    announced: [u64; 2],
    values: &Values,
    randomness: (SessionId, Prg),
    channel: &mut Channel,
    progress: &mut dyn Progress,
) -> Result<(Parameters, Shares)> {
    let ran = start(settings, parts, announced, values, randomness, channel, progress);
    let (party, shares) = ran?;
    Ok((party.parameters().clone(), shares))
}

/// Circuit-PSI, and shares of the totals.
fn start(
    settings: &Settings,
    parts: u64,
    announced: [u64; 2],
    values: &Values,
    randomness: (SessionId, Prg),
    channel: &mut Channel,
    progress: &mut dyn Progress,
) -> Result<(Party, Shares)> {
    let circuit = circuit::Settings { parts, ..settings.circuit() };
    let watch = &mut Inner { progress: &mut *progress, shown: true };
    let items = &*values.items;
    let mut party = if settings.role == settings.in_bins() {
        let columns = weights(settings, values);
        let columns: Vec<&[u64]> = columns.iter().map(|column| &**column).collect();
        let party = circuit::Receiver::setup(items, &columns, circuit, randomness, watch, channel)?;
        Party::Receiver(party)
    } else {
        let columns: &[&[u64]] = match settings.has_shared_values() {
            true => &[&values.values],
            false => &[],
        };
        let party = circuit::Sender::setup(items, columns, circuit, randomness, watch, channel)?;
        Party::Sender(party)
    };
    let parameters = party.parameters();
    check_sizes(announced, [parameters.sender_items, parameters.receiver_items])?;
    let shares = add_up(&mut party, settings, values, channel, progress)?;
    Ok((party, shares))
}

/// Shares of the totals.
fn add_up(
    party: &mut Party,
    settings: &Settings,
    values: &Values,
    channel: &mut Channel,
    progress: &mut dyn Progress,
) -> Result<Shares> {
    let totals = settings.totals();
    let mut shares = Shares::zero(settings);
    progress.begin("comparing in bins", party.parameters().slices() as u64);
    let mut done = 0;
    while let Some(slice) = party.next(channel)? {
        let add = |total: &mut u64, shares: &[u64]| {
            *total = total.wrapping_add(Slice::sum(shares));
        };
        let mut columns = slice.weights.iter();
        let places = [
            (settings.has_count(), &mut shares.counts),
            (settings.kind.has_sum() && !settings.has_shared_values(), &mut shares.sums),
        ];
        for (_, totals) in places.into_iter().filter(|(there, _)| *there) {
            for (total, column) in totals.iter_mut().zip(&mut columns) {
                add(total, column);
            }
        }
        if let Some(column) = slice.payload.first() {
            let products = match settings.circuit().products {
                0 => None,
                _ => Some(party.multiply((&slice, values), column, channel)?),
            };
            let column = products.as_ref().unwrap_or(column);
            match settings.grouped {
                None => add(&mut shares.sums[0], column),
                Some(_) => {
                    for group in 0..totals {
                        let selected = party.select((&slice, values), group, column, channel)?;
                        add(&mut shares.sums[group], &selected);
                    }
                }
            }
        }
        done += 1;
        progress.done(done);
    }
    Ok(shares)
}

/// Adds the noise, compares counts with the minimum, and opens the totals that are not below it.
pub fn open(
    party: &mut dyn Opener,
    settings: &Settings,
    mut shares: Shares,
    noise: &Noise,
    channel: &mut Channel,
) -> Result<Vec<Total>> {
    for (shares, noise) in [(&mut shares.counts, &noise.counts), (&mut shares.sums, &noise.sums)] {
        for (share, noise) in shares.iter_mut().zip(noise.iter()) {
            // mutant(totals-noise): drop
            *share = share.wrapping_add(*noise as u64);
        }
    }
    let mut enough = Vec::new();
    for &count in shares.counts.iter() {
        // mutant(totals-minimum): `settings.minimum == 0` => `true`
        enough.push(settings.minimum == 0 || party.at_least(count, settings.minimum, channel)?);
    }
    let kind = settings.kind;
    let mut opened = Zeroizing::new(Vec::new());
    for (group, _) in enough.iter().enumerate().filter(|(_, enough)| **enough) {
        if kind.has_count() {
            opened.push(shares.counts[group]);
        }
        if kind.has_sum() {
            opened.push(shares.sums[group]);
        }
    }
    let numbers = match opened.is_empty() {
        true => None,
        false => party.open(&opened, to_of_circuit(settings), channel)?,
    };
    let mut numbers = numbers.into_iter().flatten();
    let mut next = |there: bool| {
        let number = if there { numbers.next() } else { None };
        number.map(|number| number as i64)
    };
    let total = |enough: bool| Total {
        below_minimum: !enough,
        count: next(enough && kind.has_count()),
        sum: next(enough && kind.has_sum()),
    };
    Ok(enough.into_iter().map(total).collect())
}

/// Who gets the totals, by the roles of circuit-PSI.
fn to_of_circuit(settings: &Settings) -> Recipient {
    match (settings.to, settings.in_bins()) {
        (Recipient::Both, _) => Recipient::Both,
        (Recipient::Receiver, Role::Receiver) | (Recipient::Sender, Role::Sender) => {
            Recipient::Receiver
        }
        _ => Recipient::Sender,
    }
}
