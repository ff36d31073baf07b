//! Tables, and the join that a run has to give.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use volery_channel::tamper::Tampered;
use volery_channel::{Channel, Role, memory, run_two_channels};
use volery_matching::{
    Columns, Error, Operation, Outcome, PreparedTable, ProtocolChoice, Settings, StorageOptions,
};
use volery_pcg::Security;
use volery_tables::{Duplicates, EmptyKeys, Format, Packing, Reading, Rule, Table};

/// A row: two columns for keys, and payload of two types.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) a: Option<u32>,
    pub(crate) b: Option<u32>,
    pub(crate) number: Option<i64>,
    pub(crate) text: String,
}

/// The rules of all tests, of which a run takes the first ones.
pub(crate) const RULES: [&str; 3] = ["a,b", "a", "b"];

impl Row {
    pub(crate) fn key(&self, rule: usize) -> Option<(u32, u32)> {
        match rule {
            0 => self.a.zip(self.b),
            1 => self.a.map(|a| (a, 0)),
            _ => self.b.map(|b| (b, 0)),
        }
    }
}

pub(crate) fn rows(keys: std::ops::Range<u32>) -> Vec<Row> {
    let row = |key: u32| Row {
        a: Some(key),
        b: Some(key ^ 5),
        number: (!key.is_multiple_of(3)).then_some(i64::from(key) - 7),
        text: format!("t{}", key * 7),
    };
    keys.map(row).collect()
}

/// A table in batches of at most 5 rows.
pub(crate) fn table(rows: &[Row]) -> Table {
    let text = |name, null| Field::new(name, DataType::Utf8, null);
    let number = Field::new("n", DataType::Int64, true);
    let fields = vec![text("a", true), text("b", true), number, text("t", false)];
    let schema = Arc::new(Schema::new(fields));
    let batches = rows.chunks(5).map(|rows| {
        let key = |of: fn(&Row) -> Option<u32>| {
            let keys = rows.iter().map(|row| of(row).map(|key| format!("k{key}")));
            Arc::new(keys.collect::<StringArray>())
        };
        let numbers: Int64Array = rows.iter().map(|row| row.number).collect();
        let texts: StringArray = rows.iter().map(|row| Some(&row.text[..])).collect();
        let columns: Vec<arrow_array::ArrayRef> =
            vec![key(|row| row.a), key(|row| row.b), Arc::new(numbers), Arc::new(texts)];
        RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
    });
    Table::from_batches(Arc::clone(&schema), batches.collect()).unwrap()
}

/// The settings that both sides agree on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) verb: Operation,
    pub(crate) name: ProtocolChoice,
    pub(crate) security: Option<Security>,
    pub(crate) both: bool,
    pub(crate) rules: usize,
    pub(crate) duplicates: Duplicates,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            verb: Operation::Psi,
            name: ProtocolChoice::Dh,
            security: None,
            both: false,
            rules: 1,
            duplicates: Duplicates::Keep,
        }
    }
}

impl Run {
    pub(crate) fn settings(&self, role: Role) -> Settings {
        Settings::new(self.verb, role, self.name, self.security, self.both, None).unwrap()
    }

    pub(crate) fn read(
        &self,
        role: Role,
        table: &Table,
        local: &StorageOptions,
    ) -> Result<PreparedTable, Error> {
        let answers = (self.verb, role) == (Operation::Lookup, Role::Sender);
        let values: &[&str] = if answers { &["n", "t"] } else { &[] };
        let reading = Reading {
            rules: RULES[..self.rules].iter().map(|rule| Rule::parse(rule).unwrap()).collect(),
            values: values.iter().map(|&name| name.to_owned()).collect(),
            duplicates: self.duplicates,
            empty_keys: EmptyKeys::Skip,
            ..Reading::default()
        };
        PreparedTable::read(table, &reading, &self.settings(role), local, &mut ())
    }

    /// Key of each row by a rule, where it takes part.
    fn keys(&self, rows: &[Row], rule: usize) -> Vec<Option<(u32, u32)>> {
        let mut seen = std::collections::HashSet::new();
        let dedup = self.duplicates == Duplicates::Dedup;
        let keys = rows.iter().map(|row| row.key(rule));
        keys.map(|key| key.filter(|&key| seen.insert(key) || !dedup)).collect()
    }

    /// The join: for each row of the receiver the rule and the sender's row; for each row of the
    /// sender whether the receiver takes part with its key.
    pub(crate) fn join(
        &self,
        sender: &[Row],
        receiver: &[Row],
    ) -> (Vec<Option<(usize, usize)>>, Vec<bool>) {
        let mut matched = vec![None; receiver.len()];
        let mut of_sender = vec![false; sender.len()];
        for rule in 0..self.rules {
            let theirs = self.keys(sender, rule);
            let mut first = HashMap::new();
            for (i, key) in theirs.iter().enumerate() {
                if let Some(key) = key {
                    first.entry(*key).or_insert(i);
                }
            }
            let ours = self.keys(receiver, rule);
            let asked: std::collections::HashSet<_> = (0..receiver.len())
                .filter(|&i| matched[i].is_none())
                .filter_map(|i| ours[i])
                .collect();
            for (i, key) in theirs.iter().enumerate() {
                of_sender[i] |= key.is_some_and(|key| asked.contains(&key));
            }
            for (i, key) in ours.iter().enumerate() {
                if let (None, Some(key)) = (matched[i], key) {
                    matched[i] = first.get(key).map(|&row| (rule, row));
                }
            }
        }
        (matched, of_sender)
    }

    /// The receiver's output, with a column for the rule.
    pub(crate) fn expected(&self, sender: &[Row], receiver: &[Row], left: bool) -> String {
        let lookup = self.verb == Operation::Lookup;
        let mut out = String::from("a,b,n,t");
        out += if lookup { ",n_sender,t_sender,rule\n" } else { ",rule\n" };
        let key = |key: Option<u32>| key.map_or(String::new(), |key| format!("k{key}"));
        let number = |number: Option<i64>| number.map_or(String::new(), |n| n.to_string());
        for (row, found) in receiver.iter().zip(self.join(sender, receiver).0) {
            if found.is_none() && !left {
                continue;
            }
            out += &format!("{},{},{},{}", key(row.a), key(row.b), number(row.number), row.text);
            match (lookup, found) {
                (true, Some((_, i))) => {
                    out += &format!(",{},{}", number(sender[i].number), sender[i].text);
                }
                (true, None) => out += ",,",
                (false, _) => {}
            }
            out +=
                &format!(",{}\n", found.map_or(String::new(), |(rule, _)| (rule + 1).to_string()));
        }
        out
    }
}

/// The output of a side with matches.
pub(crate) fn written(outcome: &Outcome, table: &Table, left: bool) -> String {
    let columns = Columns { left, rule: Some("rule".to_owned()), ..Columns::default() };
    let mut out = Vec::new();
    let format = (Format::Csv, Packing::None);
    let matches = outcome.matches.as_ref().unwrap();
    matches.write(table, &columns, &mut out, format, &mut ()).unwrap();
    String::from_utf8(out).unwrap()
}

/// The files of begun parts in a folder, and the sessions in them.
pub(crate) fn begun(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| name.starts_with("begun-"));
    let read = |name: String| {
        let session = std::fs::read_to_string(folder.join(&name)).unwrap();
        (name, session)
    };
    names.map(read).collect()
}

/// As after an attempt that began nothing.
pub(crate) fn forget_begun(folder: &Path) {
    for (name, _) in begun(folder) {
        std::fs::remove_file(folder.join(name)).unwrap();
    }
}

/// A side that keeps its progress in a folder.
pub(crate) fn kept(folder: &Path, buckets: u32) -> StorageOptions {
    StorageOptions { memory: None, folder: Some(folder.to_owned()), resume: true, buckets }
}

/// Runs both sides; the messages of each are cut after so many bytes. Returns also what each sent.
pub(crate) fn run_cut<A: Send, B: Send>(
    ends: [u64; 2],
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> ((A, B), [u64; 2]) {
    let (near, far) = memory::pair();
    let near = Channel::new(Tampered::truncated(near, ends[0]));
    let far = Channel::new(Tampered::truncated(far, ends[1]));
    let ((a, of_a), (b, of_b)) = run_two_channels(near, far, left, right);
    ((a, b), [of_a.bytes_sent, of_b.bytes_sent])
}
