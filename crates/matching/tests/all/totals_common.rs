//! Tables with values and groups, and their totals by a plain calculation.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use volery_channel::Role;
use volery_matching::totals::{PreparedTable, Recipient, Settings, Total, decimal};
use volery_matching::{Error, Options, ProtocolChoice, ResultKind};
use volery_tables::{Duplicates, EmptyKeys, Reading, Rule, Table};

pub(crate) const ROLES: [Role; 2] = [Role::Sender, Role::Receiver];

/// A row: key, value in cents, group.
pub(crate) type Row = (u32, i64, &'static str);

pub(crate) const GROUPS: [&str; 3] = ["x", "y", "z, w"];

pub(crate) fn table(rows: &[Row]) -> Table {
    let texts: Vec<[String; 3]> = rows
        .iter()
        .map(|(key, value, group)| [format!("k{key}"), decimal(*value, 2), (*group).to_owned()])
        .collect();
    of_texts(&texts)
}

/// In batches of at most 5 rows.
pub(crate) fn of_texts(rows: &[[String; 3]]) -> Table {
    let fields = ["k", "v", "g"].map(|name| Field::new(name, DataType::Utf8, false));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let batches = rows.chunks(5).map(|rows| {
        let columns = [0, 1, 2].map(|column| {
            let texts = rows.iter().map(|row| Some(row[column].as_str()));
            Arc::new(texts.collect::<StringArray>()) as ArrayRef
        });
        RecordBatch::try_new(Arc::clone(&schema), columns.to_vec()).unwrap()
    });
    Table::from_batches(Arc::clone(&schema), batches.collect()).unwrap()
}

/// The settings that both sides agree on.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) kind: &'static str,
    /// The side with the column of a sum or a mean.
    pub(crate) holder: Role,
    pub(crate) grouped: Option<Role>,
    pub(crate) to: Recipient,
    pub(crate) name: ProtocolChoice,
    pub(crate) minimum: u64,
    pub(crate) bound: &'static str,
    pub(crate) duplicates: Duplicates,
    pub(crate) epsilon: Option<&'static str>,
    pub(crate) delta: Option<&'static str>,
    pub(crate) groups: Vec<String>,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            kind: "count",
            holder: Role::Sender,
            grouped: None,
            to: Recipient::Receiver,
            name: ProtocolChoice::Circuit,
            minimum: 0,
            bound: "1000",
            duplicates: Duplicates::Keep,
            epsilon: None,
            delta: None,
            groups: GROUPS.map(str::to_owned).to_vec(),
        }
    }
}

impl Run {
    pub(crate) fn what(&self, role: Role) -> ResultKind {
        let columns: &[&str] = match self.kind {
            "count" => &[],
            "sum-product" => &["v", "v"],
            _ if role == self.holder => &["v"],
            _ => &[],
        };
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        ResultKind::new(self.kind, columns).unwrap()
    }

    pub(crate) fn settings(&self, role: Role) -> Settings {
        let valued = self.kind != "count";
        let text = |text: Option<&str>| text.map(str::to_owned);
        let options = Options {
            role,
            result: self.what(role),
            to: Some(self.to),
            protocol: self.name,
            bound: valued.then(|| self.bound.to_owned()),
            decimals: valued.then_some(2),
            minimum: Some(self.minimum),
            epsilon: text(self.epsilon),
            delta: text(self.delta),
            group_by: (self.grouped == Some(role)).then(|| "g".to_owned()),
            groups: self.grouped.map(|_| self.groups.clone()),
            ..Options::default()
        };
        options.totals().unwrap()
    }

    pub(crate) fn read(&self, role: Role, table: &Table) -> Result<PreparedTable, Error> {
        let reading = Reading {
            rules: vec![Rule::parse("k").unwrap()],
            duplicates: self.duplicates,
            empty_keys: EmptyKeys::Skip,
            ..Reading::default()
        };
        PreparedTable::read(table, &reading, &self.settings(role), &mut ())
    }

    /// Value and group of each key.
    pub(crate) fn keys(&self, rows: &[Row]) -> HashMap<u32, (i64, &'static str)> {
        let mut keys = HashMap::new();
        for &(key, value, group) in rows {
            match self.duplicates {
                Duplicates::Keep => keys.entry(key).or_insert((0, group)).0 += value,
                _ => {
                    keys.entry(key).or_insert((value, group));
                }
            }
        }
        keys
    }

    /// The totals that a side has to get.
    pub(crate) fn expected(&self, role: Role, tables: [&[Row]; 2]) -> Vec<Total> {
        let [sender, receiver] = tables.map(|rows| self.keys(rows));
        let total = |group: Option<&str>| {
            let (mut count, mut sum) = (0, 0);
            for (key, theirs) in &sender {
                let Some(ours) = receiver.get(key) else {
                    continue;
                };
                let sides = [theirs, ours];
                let is_in = match self.grouped {
                    Some(Role::Sender) => Some(theirs.1) == group,
                    Some(Role::Receiver) => Some(ours.1) == group,
                    None => true,
                };
                if !is_in {
                    continue;
                }
                count += 1;
                sum += match self.kind {
                    "sum-product" => theirs.0 * ours.0,
                    _ => sides[usize::from(self.holder == Role::Receiver)].0,
                };
            }
            let below_minimum = (count as u64) < self.minimum;
            let gets = !below_minimum
                && match self.to {
                    Recipient::Both => true,
                    Recipient::Sender => role == Role::Sender,
                    Recipient::Receiver => role == Role::Receiver,
                };
            let mean_or = |kind| self.kind == kind || self.kind == "mean";
            Total {
                below_minimum,
                count: (gets && mean_or("count")).then_some(count),
                sum: (gets && self.kind != "count").then_some(sum),
            }
        };
        match self.grouped {
            None => vec![total(None)],
            Some(_) => self.groups.iter().map(|group| total(Some(group))).collect(),
        }
    }
}

pub(crate) fn rows(keys: std::ops::Range<u32>) -> Vec<Row> {
    let row = |key: u32| {
        let value = i64::from(key) * 37 % 2001 - 1000;
        (key, value, ["x", "y", "other", "z, w"][key as usize % 4])
    };
    keys.map(row).collect()
}

pub(crate) const KINDS: [&str; 4] = ["count", "sum", "mean", "sum-product"];
