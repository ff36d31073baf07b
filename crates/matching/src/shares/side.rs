//! One side before the run: its table read into items, with the values and the first row of each.

use std::convert::Infallible;

use volery_channel::{Link, Role};
use volery_pcg::{Candidate, Kind, PlanOptions};
use volery_primitives::pages::Buffer;
use volery_psi::choice::{Candidate as Cost, decide};
use volery_psi::circuit;
use volery_tables::{Item, Reading, Table, Texts};
use zeroize::Zeroizing;

use super::settings::Settings;
use crate::error::{KeyError, Result};
use crate::keyed::Summary;
use crate::keyed::{add_up, beyond, read_keyed, unfit};
use crate::keys::Keys;
use crate::parameters::FIXED;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::totals::side::read_value;

/// The distinct items of a side, in the order of their first rows. Wiped when dropped.
pub(crate) struct Values {
    pub(crate) items: Zeroizing<Vec<Item>>,
    /// The first row of each item, counted from 0.
    pub(crate) rows: Buffer<i64>,
    /// Each column, with a value for each item: the sum of its rows' values, modulo `2^64`.
    pub(crate) columns: Vec<Buffer<u64>>,
}

/// A side that has read its table.
pub struct PreparedTable {
    pub(crate) settings: Settings,
    pub(crate) values: Values,
    pub(crate) summary: Summary,
}

impl PreparedTable {
    /// Reads the key and the values. `reading` has one rule.
    ///
    /// # Panics
    /// If there is another number of rules, or columns of a payload.
    ///
    /// # Errors
    /// Errors of the table; a value that is not a number within the bound.
    pub fn read(
        table: &Table,
        reading: &Reading,
        settings: &Settings,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        let reading = Reading { texts: settings.columns.clone(), ..reading.clone() };
        let limits = (settings.bound, settings.decimals);
        let mut text = Zeroizing::new(Vec::new());
        let beside = |texts: &[Texts], (row, number): (usize, u64), bytes: &mut [u8]| {
            for (texts, bytes) in texts.iter().zip(bytes.chunks_exact_mut(8)) {
                let value = read_value(table, (texts, row, number), limits, &mut text)?;
                bytes.copy_from_slice(&value.to_le_bytes());
            }
            Ok(())
        };
        let bytes = 8 * settings.columns.len();
        let (keys, summary) = read_keyed(table, &reading, bytes, beside, progress)?;
        Ok(Self { values: join(&keys, settings, table)?, summary, settings: settings.clone() })
    }

    /// The facts of the table.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Predicts a run against a peer with this many distinct keys, and as many columns as here, on
    /// this link.
    pub fn plan(&self, peer: u64, link: Link) -> Result<Plan> {
        /// Of a key: the item, and its row.
        const KEY: u64 = 16 + 8;
        let own = self.summary.keys;
        let most = circuit::MAX_ITEMS;
        if own.max(peer) > most {
            let items = own.max(peer);
            return Err(volery_psi::Error::TooMany { items, most }.into());
        }
        let sizes = self.settings.role.sides([own, peer]);
        let columns = self.settings.columns.len();
        let task = self.settings.task(sizes, [columns, columns]);
        let Ok((protocol, _)) =
            decide(self.settings.name.given(), &task, || Ok::<_, Infallible>(link));
        let cost = Cost::new(protocol, &task, link);
        let settings = self.settings.circuit([columns, columns]);
        let parameters = circuit::Parameters::new(settings, sizes[0], sizes[1]);
        let (mut bytes, mut seconds) = (cost.bytes, cost.seconds);
        let own_role = usize::from(self.settings.role == Role::Receiver);
        let mut memory = FIXED + own * (KEY + 8 * columns as u64) + parameters.memory()[own_role];
        if self.settings.row_order && !parameters.trivial() {
            let order = Order::new(parameters.bins, 2 * columns);
            bytes += order.bytes();
            seconds += 8.0 * order.bytes() as f64 / link.bits_per_second
                + order.products as f64 * ORDER * 1e-9;
            memory += parameters.bins as u64 * (1 + 2 * 8 * (2 * columns as u64 + 1)) + (64 << 20);
        }
        Ok(Plan { protocol, choice: None, buckets: 1, bytes, seconds, memory })
    }
}

/// Nanoseconds of a switch and a column.
const ORDER: f64 = 75.0;

/// The cost of the order of rows.
pub(crate) struct Order {
    /// Products of a bit and a value.
    pub(crate) products: u64,
    /// The correlated OTs.
    pub(crate) ots: Candidate,
    bits: u64,
}

impl Order {
    /// For the bits and `columns` columns of numbers in these bins.
    pub(crate) fn new(bins: usize, columns: usize) -> Self {
        let switches = volery_apps::switching::switches(bins) as u64;
        let products = switches * (1 + columns as u64);
        let options = PlanOptions {
            total: Some(products),
            security: volery_pcg::Security::SemiHonest,
            link: LINK,
            ..PlanOptions::default()
        };
        let candidates = volery_pcg::Plan::candidates(Kind::Cot, &options);
        let best =
            candidates.expect("correlated OT has a plan for either security").into_iter().next();
        Self {
            products,
            ots: best.expect("`candidates` returns one plan at least"),
            bits: switches,
        }
    }

    /// Bytes in both directions, predicted.
    pub(crate) fn bytes(&self) -> u64 {
        let numbers = self.products - self.bits;
        self.ots.bytes as u64 + self.products.div_ceil(8) + self.bits.div_ceil(8) + 8 * numbers
    }
}

/// The link for which correlated OTs are planned: one on which their bytes count. Fixed, so that
/// both sides have one plan.
const LINK: Link = Link { bits_per_second: 1e8, round_trip: 0.01 };

/// Adds up the rows of each key.
fn join(keys: &Keys, settings: &Settings, table: &Table) -> Result<Values> {
    let mut order: Vec<(u64, usize)> = (0..keys.len())
        .map(|item| (keys.rows_of(item).next().expect("a key has a row"), item))
        .collect();
    order.sort_unstable();
    let mut rows = Buffer::zeroed(order.len());
    let mut columns: Vec<Buffer<u64>> =
        settings.columns.iter().map(|_| Buffer::zeroed(order.len())).collect();
    let mut items = Zeroizing::new(Vec::with_capacity(order.len()));
    let mut sums = Zeroizing::new(vec![0_i128; columns.len()]);
    for (place, (first, item)) in order.into_iter().enumerate() {
        items.push(*keys.item(item));
        rows[place] = first as i64;
        add_up(keys, item, &mut sums);
        if beyond(&sums, settings.bound).next().is_some() {
            return Err(unfit(table, first, KeyError::Bound));
        }
        for (column, sum) in columns.iter_mut().zip(&*sums) {
            // Within the bound, which fits.
            column[place] = *sum as u64;
        }
    }
    Ok(Values { items, rows, columns })
}
