//! Values of a table that end in totals or in shares.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use volery_channel::{Channel, Role, run_two_parties};
use volery_matching::{Options, ProtocolChoice, ResultKind, shares, totals};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_primitives::watch::blocks_with;
use volery_tables::{Reading, Rule, Table};
use zeroize::Zeroizing;

/// The greatest value. The sum of the 40 common ones stays within 64 bits.
const BOUND: i64 = 1 << 57;

/// A sum over the common keys, and shares of the matching rows in their order: the values as they
/// were read, those of each key, and their shares.
pub(crate) fn of_tables() {
    let words: Vec<u8> = drawn().iter().flat_map(|value| value.to_le_bytes()).collect();
    blocks_with(words, || {
        let values = drawn();
        let [sent, received] = [&values[..60], &values[60..]];
        let (_, total) = run_two_parties(
            |channel| sum(Role::Sender, &table(0, sent), channel),
            |channel| sum(Role::Receiver, &table(20, received), channel),
        );
        let common: i64 = received[..40].iter().sum();
        assert_eq!(total[0].sum, Some(common));
        let (places, same) = run_two_parties(
            |channel| share(Role::Sender, &table(0, sent), channel),
            |channel| share(Role::Receiver, &table(20, received), channel),
        );
        assert_eq!((places, places), (same, 60));
    })
    .unwrap();
}

/// The same values each time.
fn drawn() -> Zeroizing<Vec<i64>> {
    let mut random = Prg::new(Block::from(15));
    let mut draw = || (random.next_u64() % (2 * BOUND as u64)) as i64 - BOUND;
    let mut values = Zeroizing::new(vec![0; 120]);
    values.iter_mut().for_each(|value| *value = draw());
    values
}

/// With keys from `first` on.
fn table(first: usize, values: &[i64]) -> Table {
    let fields = ["k", "v"].map(|name| Field::new(name, DataType::Utf8, false));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let keys: StringArray = (first..).take(values.len()).map(key).collect();
    let values: StringArray = values.iter().map(|v| Some(v.to_string())).collect();
    let columns = [keys, values].map(|column| Arc::new(column) as ArrayRef);
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns.to_vec()).unwrap();
    Table::from_batches(schema, vec![batch]).unwrap()
}

fn key(number: usize) -> Option<String> {
    Some(format!("key {number}"))
}

fn reading() -> Reading {
    Reading { rules: vec![Rule::parse("k").unwrap()], ..Reading::default() }
}

fn sum(role: Role, table: &Table, channel: &mut Channel) -> Vec<totals::Total> {
    let columns = match role {
        Role::Sender => vec![],
        Role::Receiver => vec!["v".to_owned()],
    };
    let options = Options {
        role,
        result: ResultKind::new("sum", columns).unwrap(),
        protocol: ProtocolChoice::Circuit,
        bound: Some(BOUND.to_string()),
        decimals: Some(0),
        minimum: Some(10),
        ..Options::default()
    };
    let settings = options.totals().unwrap();
    let side = totals::PreparedTable::read(table, &reading(), &settings, &mut ()).unwrap();
    side.run(channel, &mut ()).unwrap().totals
}

/// The number of places.
fn share(role: Role, table: &Table, channel: &mut Channel) -> u64 {
    let options = Options {
        role,
        result: ResultKind::Shares(vec!["v".to_owned()]),
        bound: Some(BOUND.to_string()),
        decimals: Some(0),
        row_order: true,
        ..Options::default()
    };
    let settings = options.shares().unwrap();
    let side = shares::PreparedTable::read(table, &reading(), &settings, &mut ()).unwrap();
    let mut running = side.start(channel, &mut ()).unwrap();
    while running.next(channel, &mut ()).unwrap().is_some() {}
    running.finish(channel).layout.places
}
