//! One side before the run: its table read into items, with a value and a group for each.

use volery_channel::Error as ChannelError;
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;
use volery_psi::Items;
use volery_tables::{Item, Reading, Table, Texts};
use zeroize::{Zeroize, Zeroizing};

use super::decimal::{DecimalError, parse};
use super::noise::Noise;
use super::settings::Settings;
use crate::error::{Error, KeyError, Result, ValueError};
use crate::folder::Spool;
use crate::keyed::{read_keyed, unfit};
use crate::keys::Keys;
use crate::progress::Progress;
use crate::summary::Summary;

/// Bytes of a value and a group.
const PAYLOAD: usize = 9;

/// The number of no group.
const NO_GROUP: u8 = u8::MAX;

/// The bytes beside an item in a folder: its value, and its group, of which there are fewer than
/// 255; another number is no group.
#[must_use]
pub fn payload(value: i64, group: i32) -> Zeroizing<[u8; PAYLOAD]> {
    let mut payload = Zeroizing::new([0; PAYLOAD]);
    payload[..8].copy_from_slice(&value.to_le_bytes());
    payload[8] = u8::try_from(group).unwrap_or(NO_GROUP);
    payload
}

/// The distinct items of a side, ascending, with what belongs to each. Wiped when dropped.
pub struct Values {
    items: Vec<Item>,
    /// For each item the sum of its rows' values, modulo `2^64`; empty without a column.
    pub(crate) values: Buffer<u64>,
    /// For each item the number of its group, or [`NO_GROUP`]; empty without groups.
    groups: Zeroizing<Vec<u8>>,
}

impl Values {
    /// Whether an item is in this group.
    pub(crate) fn is_in(&self, item: usize, group: usize) -> bool {
        // The numbers of items index this side's own memory.
        self.groups.get(item).is_none_or(|own| usize::from(*own) == group)
    }
}

impl Values {
    /// Writes items, values and groups.
    ///
    /// # Errors
    /// Errors of the file.
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
        let mut items = vec![Item::default(); size];
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

impl Items for Values {
    fn len(&self) -> usize {
        self.items.len()
    }

    fn item(&self, index: usize) -> &[u8] {
        &self.items[index]
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        self.items.zeroize();
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
    #[must_use]
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
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The facts of the table.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The keys with their values and groups.
    #[must_use]
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// This side's noise.
    #[must_use]
    pub fn noise(&self) -> &Noise {
        &self.noise
    }

    /// At the side with the groups: rows that are in none of them.
    #[must_use]
    pub fn rows_in_no_group(&self) -> Option<u64> {
        self.no_group
    }
}

/// Adds up the rows of each key.
fn join(keys: &Keys, settings: &Settings, table: &Table) -> Result<Values> {
    let with = |there: bool| if there { keys.len() } else { 0 };
    let mut values = Buffer::zeroed(with(settings.column.is_some()));
    let mut groups = Zeroizing::new(vec![0; with(settings.group_by.is_some())]);
    let mut items = Vec::with_capacity(keys.len());
    for item in 0..keys.len() {
        items.push(*keys.item(item));
        let (mut sum, mut group) = (0_i128, None);
        let mut first = 0;
        for (row, payload) in keys.payloads_of(item) {
            let (value, own) = payload.split_first_chunk().expect("a value and a group");
            sum += i128::from(i64::from_le_bytes(*value));
            if group.is_none() {
                first = row;
            }
            if *group.get_or_insert(own[0]) != own[0] {
                return Err(unfit(table, first, KeyError::Groups));
            }
        }
        if sum.unsigned_abs() > u128::from(settings.bound) && settings.column.is_some() {
            return Err(unfit(table, first, KeyError::Bound));
        }
        if let Some(value) = values.get_mut(item) {
            // Within the bound, which fits.
            *value = sum as u64;
        }
        if let Some(place) = groups.get_mut(item) {
            *place = group.unwrap_or(NO_GROUP);
        }
    }
    Ok(Values { items, values, groups })
}
