//! Shares of the matching rows: against a plain join, in both orders, and malicious announcements.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use proptest::prelude::*;
use volery_channel::{
    Channel, Role, handshake, run_two_parties, run_two_parties_with_stats, run_two_unchecked,
};
use volery_matching::shares::{Layout, MAX_COLUMNS, PreparedTable, Settings};
use volery_matching::totals::decimal;
use volery_matching::{Error, KeyError, Options, ResultKind};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::circuit;
use volery_tables::{Duplicates, EmptyKeys, Reading, Rule, Table};

/// A row: its key, none if it is empty, and its values in hundredths.
type Row = (Option<u32>, Vec<i64>);

const BOUND: &str = "99999.99";

fn names(columns: usize) -> Vec<String> {
    (0..columns).map(|column| format!("v{column}")).collect()
}

fn table(rows: &[Row], columns: usize) -> Table {
    let mut fields = vec![Field::new("k", DataType::Utf8, true)];
    fields.extend(names(columns).iter().map(|name| Field::new(name, DataType::Utf8, false)));
    let schema = Arc::new(Schema::new(fields));
    let batches = rows.chunks(7).map(|rows| {
        let keys = rows.iter().map(|row| row.0.map(|key| format!("k{key}")));
        let mut arrays = vec![Arc::new(keys.collect::<StringArray>()) as ArrayRef];
        for column in 0..columns {
            let texts = rows.iter().map(|row| Some(decimal(row.1[column], 2)));
            arrays.push(Arc::new(texts.collect::<StringArray>()));
        }
        RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap()
    });
    Table::from_batches(Arc::clone(&schema), batches.collect()).unwrap()
}

fn settings(role: Role, columns: usize, row_order: bool) -> Settings {
    let options = Options {
        role,
        result: ResultKind::Shares(names(columns)),
        bound: (columns > 0).then(|| BOUND.to_owned()),
        decimals: (columns > 0).then_some(2),
        row_order,
        ..Options::default()
    };
    options.shares().unwrap()
}

fn read(
    role: Role,
    rows: &[Row],
    columns: usize,
    row_order: bool,
    duplicates: Duplicates,
) -> Result<PreparedTable, Error> {
    let reading = Reading {
        rules: vec![Rule::parse("k").unwrap()],
        duplicates,
        empty_keys: EmptyKeys::Skip,
        ..Reading::default()
    };
    let settings = settings(role, columns, row_order);
    PreparedTable::read(&table(rows, columns), &reading, &settings, &mut ())
}

/// All shares of a side.
struct Shares {
    layout: Layout,
    matches: Vec<u8>,
    columns: Vec<Vec<u64>>,
    rows: Vec<i64>,
    has_rows: bool,
}

fn run(side: PreparedTable, channel: &mut Channel) -> Result<Shares, Error> {
    let mut running = side.start(channel, &mut ())?;
    let layout = *running.layout();
    let count = layout.columns.iter().map(|side| side.count).sum();
    let mut all = Shares {
        layout,
        matches: Vec::new(),
        columns: vec![Vec::new(); count],
        rows: Vec::new(),
        has_rows: false,
    };
    while let Some(piece) = running.next(channel, &mut ())? {
        all.matches.extend_from_slice(&piece.matches);
        assert_eq!(piece.columns.len(), count);
        for (all, column) in all.columns.iter_mut().zip(&piece.columns) {
            all.extend_from_slice(column);
        }
        if let Some(rows) = &piece.rows {
            all.rows.extend_from_slice(rows);
            all.has_rows = true;
        }
    }
    assert!(running.next(channel, &mut ())?.is_none());
    assert_eq!(running.finish(channel).layout, layout);
    Ok(all)
}

/// First row and values of each key.
fn keys(rows: &[Row], duplicates: Duplicates) -> HashMap<u32, (i64, Vec<i64>)> {
    let mut keys: HashMap<u32, (i64, Vec<i64>)> = HashMap::new();
    for (number, (key, values)) in (0..).zip(rows) {
        let Some(key) = key else { continue };
        match keys.get_mut(key) {
            None => {
                keys.insert(*key, (number, values.clone()));
            }
            Some((_, sums)) if duplicates == Duplicates::Keep => {
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum += value;
                }
            }
            Some(_) => {}
        }
    }
    keys
}

fn assert_join([left, right]: [&Shares; 2], tables: [&[Row]; 2], duplicates: Duplicates) {
    assert_eq!(left.layout, right.layout);
    let Layout { sizes, columns, row_order, places, .. } = left.layout;
    let [sent, received] = tables.map(|rows| keys(rows, duplicates));
    assert_eq!(sizes, [sent.len() as u64, received.len() as u64]);
    let places = places as usize;
    for side in [left, right] {
        assert_eq!(side.matches.len(), places);
        assert!(side.matches.iter().all(|bit| *bit < 2));
        assert!(side.columns.iter().all(|column| column.len() == places));
    }
    assert!(!left.has_rows && left.rows.is_empty());
    assert_eq!(right.rows.len(), places);
    let by_row: HashMap<i64, u32> = received.iter().map(|(key, (row, _))| (*row, *key)).collect();
    let mut seen = HashSet::new();
    for place in 0..places {
        let row = right.rows[place];
        let key = by_row.get(&row);
        assert_eq!(key.is_some(), row >= 0);
        assert!(row < 0 || seen.insert(row), "a row twice");
        let both = key.and_then(|key| Some((sent.get(key)?, received.get(key)?)));
        assert_eq!(left.matches[place] ^ right.matches[place], u8::from(both.is_some()));
        for column in 0..columns[0].count + columns[1].count {
            let sum = left.columns[column][place].wrapping_add(right.columns[column][place]);
            let expected =
                both.map_or(0, |(theirs, ours)| match column.checked_sub(columns[0].count) {
                    None => theirs.1[column],
                    Some(column) => ours.1[column],
                });
            assert_eq!(sum as i64, expected, "place {place}, column {column}");
        }
    }
    if row_order {
        assert_eq!(places, received.len());
        assert!(right.rows.is_sorted() && right.rows.iter().all(|row| *row >= 0));
    } else if places > 0 {
        assert_eq!(seen.len(), received.len());
    }
}

fn check(tables: [&[Row]; 2], columns: [usize; 2], row_order: bool, duplicates: Duplicates) {
    let side = |role, which: usize| {
        read(role, tables[which], columns[which], row_order, duplicates).unwrap()
    };
    let (sender, receiver) = (side(Role::Sender, 0), side(Role::Receiver, 1));
    let (left, right) = run_two_parties(|c| run(sender, c), |c| run(receiver, c));
    assert_join([&left.unwrap(), &right.unwrap()], tables, duplicates);
}

/// Rows with keys below `most`, some without one, and values at the bounds or anywhere.
fn rows(most: u32, columns: usize) -> impl Strategy<Value = Vec<Row>> {
    let value = prop_oneof![Just(0), Just(1_000_000), Just(-1_000_000), -999_999..999_999_i64];
    let row = (prop::option::weighted(0.95, 0..most), prop::collection::vec(value, columns));
    prop::collection::vec(row, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn shares_are_those_of_a_join(
        [left, right] in [rows(60, 2), rows(60, 2)],
        columns in (0..3_usize, 0..3_usize),
        row_order: bool,
        keep: bool,
    ) {
        let duplicates = if keep { Duplicates::Keep } else { Duplicates::Dedup };
        check([&left, &right], [columns.0, columns.1], row_order, duplicates);
    }
}

fn numbered(keys: std::ops::Range<u32>, columns: usize) -> Vec<Row> {
    let values = |key: u32| (0..columns).map(move |column| i64::from(key) * 7 - column as i64);
    keys.rev().map(|key| (Some(key), values(key).collect())).collect()
}

#[test]
fn sides_that_differ() {
    let rows = numbered(0..5, 0);
    let sender = read(Role::Sender, &rows, 0, true, Duplicates::Error).unwrap();
    let receiver = read(Role::Receiver, &rows, 0, false, Duplicates::Error).unwrap();
    let (left, right) = run_two_unchecked(|c| run(sender, c).err(), |c| run(receiver, c).err());
    assert!(left.or(right).unwrap().to_string().contains("--row-order"));
}

/// A peer that announces more than there can be, after an honest handshake.
#[test]
fn announcements_beyond_the_limits() {
    let fine = [5, 1, 100, 2];
    let most = circuit::MAX_ITEMS;
    for (words, refused) in [
        (fine, None),
        ([most + 1, 1, 100, 2], Some("larger than the maximum")),
        ([5, MAX_COLUMNS as u64 + 1, 100, 2], Some("columns")),
        ([5, 1, 100, 19], Some("columns")),
        ([5, 1, 1 << 63, 2], Some("columns")),
        ([5, 1, 0, 2], Some("columns")),
        ([5, 0, 7, 0], Some("columns")),
    ] {
        let rows = numbered(0..5, 0);
        let side = read(Role::Receiver, &rows, 0, false, Duplicates::Error).unwrap();
        let hello = settings(Role::Sender, 1, false).hello(&side.summary().key_description);
        let (_, error) = run_two_unchecked(
            |channel| {
                handshake(channel, &hello, [7; 32]).unwrap();
                for word in words {
                    channel.send(&u64::to_le_bytes(word)).unwrap();
                }
                channel.recv(&mut [0; 32]).unwrap();
            },
            |channel| run(side, channel).err().unwrap().to_string(),
        );
        match refused {
            Some(text) => assert!(error.contains(text), "{words:?}: {error}"),
            None => assert!(!error.contains("announced"), "{error}"),
        }
    }
}

/// A peer whose set has another size in circuit-PSI than it announced.
#[test]
fn a_set_of_another_size_than_announced() {
    for (announced, row_order) in [(5, true), (4, true), (50, true), (50, false), (0, true)] {
        let rows = numbered(0..5, 0);
        let honest = read(Role::Sender, &rows, 0, row_order, Duplicates::Error).unwrap();
        let hello = settings(Role::Receiver, 0, row_order).hello(&honest.summary().key_description);
        let (error, ()) = run_two_unchecked(
            |channel| run(honest, channel).err().unwrap().to_string(),
            |channel| {
                let session = handshake(channel, &hello, [7; 32]).unwrap();
                for word in [announced, 0, 0, 0] {
                    channel.send(&u64::to_le_bytes(word)).unwrap();
                }
                channel.recv(&mut [0; 32]).unwrap();
                let items = ["a", "b", "c", "d", "e"];
                let own = (session, Prg::new(Block::new(1)));
                let settings = circuit::Settings::default();
                // The honest party may end the run here.
                let _ = circuit::Receiver::setup(&items[..], &[], settings, own, &mut (), channel);
                let _ = channel.flush();
            },
        );
        let blamed = error.contains("another size than it announced");
        assert_eq!(blamed, announced != 5, "{announced}: {error}");
    }
}

#[test]
fn values_beyond_the_bound() {
    let row = |key, value| (Some(key), vec![value]);
    let over = [row(1, 9_999_999), row(2, 10_000_000)];
    let error = read(Role::Sender, &over, 1, false, Duplicates::Keep).err().unwrap();
    assert!(matches!(error, Error::Value { row: 2, .. }), "{error}");
    let sum = [row(3, 1), row(1, 9_999_999), row(1, 1)];
    let error = read(Role::Sender, &sum, 1, false, Duplicates::Keep).err().unwrap();
    assert!(matches!(error, Error::KeyOfRows { row: 2, why: KeyError::Bound, .. }), "{error}");
    assert!(read(Role::Sender, &sum, 1, false, Duplicates::Dedup).is_ok());
}

/// The plan of a run is near what it costs.
#[test]
fn the_plan_of_a_run() {
    for row_order in [false, true] {
        let rows = numbered(0..12_000, 1);
        let sides = [Role::Sender, Role::Receiver]
            .map(|role| read(role, &rows, 1, row_order, Duplicates::Error).unwrap());
        let [sender, receiver] = sides;
        let predicted = sender.plan(12_000, volery_channel::Link::default()).unwrap().bytes;
        let ((sent, stats), _) =
            run_two_parties_with_stats(|c| run(sender, c).is_ok(), |c| run(receiver, c).is_ok());
        assert!(sent);
        let bytes = stats.bytes_sent + stats.bytes_received;
        let range = predicted - predicted / 10..=predicted + predicted / 10;
        assert!(range.contains(&bytes), "{bytes}, {predicted}: {row_order}");
    }
}
