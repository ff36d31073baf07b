//! One side before the run: its table read into items, with a value and a group for each.

use std::collections::BTreeMap;

use volery_channel::Error as ChannelError;
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;
use volery_tables::{Item, NAMED_ROWS, Reading, Table, Texts};
use zeroize::Zeroizing;

use super::decimal::{DecimalError, parse};
use super::noise::Noise;
use super::settings::Settings;
use crate::error::{Error, KeyError, Result, ValueError};
use crate::folder::Spool;
use crate::keyed::Summary;
use crate::keyed::{add_up, beyond, read_keyed, unfit};
use crate::keys::Keys;
use crate::options::{Options, ResultKind};
use crate::progress::Progress;
use crate::settings::SettingsError;

/// Bytes of a value and a group.
const PAYLOAD: usize = 9;

const NO_GROUP: u8 = u8::MAX;

/// The bytes beside an item in a folder: its value, and its group, of which there are fewer than
/// 255; another number is no group.
pub fn payload(value: i64, group: i32) -> Zeroizing<[u8; PAYLOAD]> {
    let mut payload = Zeroizing::new([0; PAYLOAD]);
    payload[..8].copy_from_slice(&value.to_le_bytes());
    payload[8] = u8::try_from(group).unwrap_or(NO_GROUP);
    payload
}

/// The distinct items of a side, ascending, with what belongs to each. Wiped when dropped.
pub struct Values {
    pub(crate) items: Zeroizing<Vec<Item>>,
    /// For each item the sum of its rows' values, modulo `2^64`; empty without a column.
    pub(crate) values: Buffer<u64>,
    /// For each item the number of its group, or [`NO_GROUP`]; empty without groups.
    groups: Zeroizing<Vec<u8>>,
}

impl Values {
    pub(crate) fn is_in(&self, item: usize, group: usize) -> bool {
        // The numbers of items index this side's own memory.
        self.groups.get(item).is_none_or(|own| usize::from(*own) == group)
    }

    /// Writes items, values and groups.
    pub fn write(&self, spool: &mut Spool) -> Result<()> {
        for (item, number) in self.items.iter().zip(0..) {
            let mut payload = Zeroizing::new([0; PAYLOAD]);
            let at = number as usize;
            let value = self.values.get(at).copied().unwrap_or(0);
            payload[..8].copy_from_slice(&value.to_le_bytes());
            payload[8] = self.groups.get(at).copied().unwrap_or(NO_GROUP);
            spool.push(*item, number, &payload[..])?;
        }
        Ok(())
    }

    /// The items of a shard, which [`write`](Self::write) wrote, filled up to `size` with random
    /// items of value 0 and in no group.
    ///
    /// # Errors
    /// If there are more than `size`, or they are of rows without values.
    pub fn of_shard(keys: &Keys, settings: &Settings, size: u64, rng: &mut Prg) -> Result<Self> {
        if keys.len() as u64 > size {
            return Err(Error::Overflow { capacity: size });
        }
        let size = size as usize;
        let with = |there: bool| if there { size } else { 0 };
        let mut values = Buffer::zeroed(with(settings.column.is_some()));
        let mut groups = Zeroizing::new(vec![NO_GROUP; with(settings.group_by.is_some())]);
        let mut items = Zeroizing::new(vec![Item::default(); size]);
        rng.fill_bytes(items.as_flattened_mut());
        // The first places, of which there are enough.
        for (item, place) in items.iter_mut().take(keys.len()).enumerate() {
            *place = *keys.item(item);
            let Some(payload) = keys.payload(item).first_chunk::<PAYLOAD>() else {
                return Err(Error::Manifest("is of a folder with other rows".to_owned()));
            };
            let (value, group) = payload.split_first_chunk().expect("a value and a group");
            if let Some(place) = values.get_mut(item) {
                *place = u64::from_le_bytes(*value);
            }
            if let Some(place) = groups.get_mut(item) {
                *place = group[0];
            }
        }
        Ok(Self { items, values, groups })
    }
}

/// A side that has read its table.
pub struct PreparedTable {
    pub(crate) settings: Settings,
    pub(crate) values: Values,
    /// Drawn before there is a connection.
    pub(crate) noise: Noise,
    pub(crate) summary: Summary,
    no_group: Option<u64>,
}

/// A reader of the value and the group of a row.
pub struct RowReader<'a> {
    table: &'a Table,
    settings: &'a Settings,
    text: Zeroizing<Vec<u8>>,
}

impl<'a> RowReader<'a> {
    /// For the columns of the settings.
    pub fn new(table: &'a Table, settings: &'a Settings) -> Self {
        Self { table, settings, text: Zeroizing::default() }
    }

    /// The value in a row of a batch, in units; `number`: of the row in the table.
    ///
    /// # Errors
    /// If it is no number within the bound.
    pub fn value(&mut self, texts: &Texts, row: usize, number: u64) -> Result<i64> {
        let Settings { bound, decimals, .. } = *self.settings;
        read_value(self.table, (texts, row, number), (bound, decimals), &mut self.text)
    }

    /// The number of the group in a row of a batch, or -1.
    pub fn group(&mut self, texts: &Texts, row: usize) -> i32 {
        let groups = &self.settings.groups;
        let found = texts.read(row, &mut self.text).then(|| {
            let all = groups.iter().map(String::as_bytes);
            all.into_iter().position(|group| group == &self.text[..])
        });
        found.flatten().map_or(-1, |group| group as i32)
    }
}

/// The value in a row of a column, in units of its last decimal place. `number`: of the row in the
/// table; `text`: memory.
pub(crate) fn read_value(
    table: &Table,
    (texts, row, number): (&Texts, usize, u64),
    (bound, decimals): (u64, u32),
    text: &mut Vec<u8>,
) -> Result<i64> {
    let why = if !texts.read(row, text) || text.is_empty() {
        ValueError::Missing
    } else {
        match parse(text, decimals) {
            Ok(value) if value.unsigned_abs() <= bound => return Ok(value),
            Ok(_) | Err(DecimalError::Large) => ValueError::Bound,
            Err(DecimalError::NotANumber) => ValueError::NotANumber,
            Err(DecimalError::Places) => ValueError::Places(decimals),
        }
    };
    let (path, row) = table.place(number);
    Err(Error::Value { path: path.to_owned(), row, column: texts.name().to_owned(), why })
}

/// By column and what is wrong with its values, the number of rows and the first of them.
pub type WrongValues = BTreeMap<(String, String), (u64, Vec<u64>)>;

/// The columns of this side whose values a run with these options adds up; of a sum of products
/// those of both sides. With them the bound, in units, and the decimal places.
///
/// # Errors
/// An option that a run refuses.
pub fn value_columns(options: &Options) -> Result<(Vec<String>, (u64, u32)), SettingsError> {
    let mut given = options.clone();
    let columns = match &options.result {
        ResultKind::Rows => return Ok(Default::default()),
        ResultKind::Count => Vec::new(),
        ResultKind::Sum(column) | ResultKind::Mean(column) => column.iter().cloned().collect(),
        ResultKind::SumProduct(columns) => columns.to_vec(),
        ResultKind::Shares(columns) => columns.clone(),
    };
    let has_bound = match &options.result {
        ResultKind::Shares(columns) => !columns.is_empty(),
        other => *other != ResultKind::Count,
    };
    if has_bound {
        given.bound.get_or_insert_with(|| "1".to_owned());
    }
    let (bound, decimals) = match options.result {
        ResultKind::Shares(_) => given.shares().map(|given| (given.bound, given.decimals)),
        _ => given.totals().map(|given| (given.bound, given.decimals)),
    }?;
    Ok((columns, (if options.bound.is_some() { bound } else { u64::MAX }, decimals)))
}

/// Checks the values of columns as a run does, those of rows with a key and the sum of each key,
/// and names those that are negative, too.
///
/// # Errors
/// Errors of the table.
pub fn check_values(
    table: &Table,
    reading: &Reading,
    columns: &[String],
    limits: (u64, u32),
    progress: &mut dyn Progress,
) -> Result<WrongValues> {
    if columns.is_empty() {
        return Ok(WrongValues::new());
    }
    let reading = Reading { texts: columns.to_vec(), ..reading.clone() };
    let (mut wrong, mut text) = (WrongValues::new(), Zeroizing::default());
    let mut add = |column: &str, what: String, row| {
        let (count, rows) = wrong.entry((column.to_owned(), what)).or_default();
        *count += 1;
        rows.extend((rows.len() < NAMED_ROWS).then_some(row));
    };
    let beside = |texts: &[Texts], (row, number): (usize, u64), bytes: &mut [u8]| {
        for (texts, bytes) in texts.iter().zip(bytes.chunks_exact_mut(8)) {
            let (value, what) = match read_value(table, (texts, row, number), limits, &mut text) {
                Ok(value) => (value, (value < 0).then(|| "is negative".to_owned())),
                Err(Error::Value { why, .. }) => (0, Some(why.to_string())),
                Err(error) => return Err(error),
            };
            bytes.copy_from_slice(&value.to_le_bytes());
            what.into_iter().for_each(|what| add(texts.name(), what, number));
        }
        Ok(())
    };
    let (keys, _) = read_keyed(table, &reading, 8 * columns.len(), beside, progress)?;
    let mut sums = Zeroizing::new(vec![0; columns.len()]);
    let mut large = Vec::new();
    for item in 0..keys.len() {
        let row = add_up(&keys, item, &mut sums);
        large.extend(beyond(&sums, limits.0).map(|column| (row, column)));
    }
    large.sort_unstable();
    let what = "has keys whose sum is beyond --bound, counted by their first row";
    for (row, column) in large {
        add(&columns[column], what.to_owned(), row);
    }
    Ok(wrong)
}

impl PreparedTable {
    /// Reads the key, the values and the groups. `reading` has one rule.
    ///
    /// # Panics
    /// If there is another number of rules, or columns of a payload.
    ///
    /// # Errors
    /// Errors of the table; a value that is not a number within the bound; rows of one key that do
    /// not fit together.
    pub fn read(
        table: &Table,
        reading: &Reading,
        settings: &Settings,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        let columns = [&settings.column, &settings.group_by];
        let reading =
            Reading { texts: columns.into_iter().flatten().cloned().collect(), ..reading.clone() };
        let mut of_row = RowReader::new(table, settings);
        let mut no_group = 0;
        let beside = |texts: &[Texts], (row, number): (usize, u64), bytes: &mut [u8]| {
            let value = match &settings.column {
                Some(_) => of_row.value(&texts[0], row, number)?,
                None => 0,
            };
            let group = match (&settings.group_by, texts) {
                (Some(_), [.., texts]) => of_row.group(texts, row),
                _ => 0,
            };
            no_group += u64::from(group < 0);
            bytes.copy_from_slice(&payload(value, group)[..]);
            Ok(())
        };
        let (keys, summary) = read_keyed(table, &reading, PAYLOAD, beside, progress)?;
        let mut rng = Prg::from_os().map_err(ChannelError::from)?;
        Ok(Self {
            noise: Noise::sample(settings, &mut rng),
            values: join(&keys, settings, table)?,
            summary,
            no_group: settings.group_by.as_ref().map(|_| no_group),
            settings: settings.clone(),
        })
    }

    /// The settings of the run.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The facts of the table.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The keys with their values and groups.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// This side's noise.
    pub fn noise(&self) -> &Noise {
        &self.noise
    }

    /// At the side with the groups: rows that are in none of them.
    pub fn rows_in_no_group(&self) -> Option<u64> {
        self.no_group
    }
}

/// Adds up the rows of each key.
fn join(keys: &Keys, settings: &Settings, table: &Table) -> Result<Values> {
    let with = |there: bool| if there { keys.len() } else { 0 };
    let mut values = Buffer::zeroed(with(settings.column.is_some()));
    let mut groups = Zeroizing::new(vec![0; with(settings.group_by.is_some())]);
    let mut items = Zeroizing::new(Vec::with_capacity(keys.len()));
    let mut sum = Zeroizing::new([0]);
    for item in 0..keys.len() {
        items.push(*keys.item(item));
        // Without a column each value is 0.
        let first = add_up(keys, item, &mut sum[..]);
        if beyond(&sum[..], settings.bound).next().is_some() {
            return Err(unfit(table, first, KeyError::Bound));
        }
        let mut group = None;
        for (_, payload) in keys.payloads_of(item) {
            let own = payload[PAYLOAD - 1];
            if *group.get_or_insert(own) != own {
                return Err(unfit(table, first, KeyError::Groups));
            }
        }
        if let Some(value) = values.get_mut(item) {
            // Within the bound, which fits.
            *value = sum[0] as u64;
        }
        if let Some(place) = groups.get_mut(item) {
            *place = group.unwrap_or(NO_GROUP);
        }
    }
    Ok(Values { items, values, groups })
}
