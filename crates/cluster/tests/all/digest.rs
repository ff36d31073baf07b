//! Digests of tables: the same for one table wherever its rows are, and binding.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{ArrayRef, FixedSizeBinaryArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use proptest::prelude::*;
use volery_channel::Role;
use volery_cluster::driver::{ClusterTable, secrets};
use volery_cluster::staging::{Items, Slice, Slices, digest};
use volery_matching::{Operation, PreparedTable, StorageOptions};
use volery_primitives::ro::{RandomOracle, StreamHash};
use volery_tables::{EmptyKeys, Reading, Rule, Table};

use crate::common::{Row, Run, rows, table};

type Hash = [u8; 32];

fn reading(values: &[&str]) -> Reading {
    Reading {
        rules: vec![Rule::parse("a").unwrap(), Rule::parse("b").unwrap()],
        values: values.iter().map(|&name| name.to_owned()).collect(),
        empty_keys: EmptyKeys::Skip,
        ..Reading::default()
    }
}

/// The hashes of rows, as a task of a cluster makes them.
fn hashes(rows: &[Row], values: &[&str]) -> Vec<Hash> {
    let table = table(rows);
    let mut items = Items::new(table.schema().clone(), reading(values)).unwrap();
    let made = items.batch(&table).unwrap();
    let column = made.column_by_name("digest").unwrap().as_fixed_size_binary();
    column.iter().map(|hash| hash.unwrap().try_into().unwrap()).collect()
}

fn column(hashes: &[Hash]) -> FixedSizeBinaryArray {
    match hashes {
        [] => FixedSizeBinaryArray::new(32, Vec::<u8>::new().into(), None),
        _ => FixedSizeBinaryArray::try_from_iter(hashes.iter()).unwrap(),
    }
}

/// The slices of a partition, which comes in batches of this size.
fn slices(mut hashes: Vec<Hash>, size: usize) -> Vec<Slice> {
    hashes.sort_unstable();
    let mut slices = Slices::default();
    for some in hashes.chunks(size) {
        assert!(slices.add(&column(some)));
    }
    slices.finish()
}

fn of(hashes: &[Hash]) -> String {
    let (text, rows) = digest(&slices(hashes.to_vec(), 7)).unwrap();
    assert_eq!(rows, hashes.len() as u64);
    text
}

/// The digest by its definition.
fn defined(hashes: &[Hash]) -> String {
    let mut sorted = hashes.to_vec();
    sorted.sort_unstable();
    let mut oracle = RandomOracle::new("volery matching: digest of a table");
    for first in 0..=u8::MAX {
        let slice: Vec<_> = sorted.iter().filter(|hash| hash[0] == first).copied().collect();
        let hash = match slice.len() {
            0 => [0; 32],
            _ => {
                let mut hash = StreamHash::default();
                hash.update(slice.as_flattened());
                hash.finish32()
            }
        };
        oracle.absorb(&hash).absorb_u64(slice.len() as u64);
    }
    oracle.finish32().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// The digest of 300 rows, of which some are equal; the tests of the Python package have it, too.
const OF_300: &str = "ad085e6887c73fdacbbd623d94b8712a480ea45a8c4a5ab45173e23630e2e903";

fn of_300() -> Vec<Row> {
    [rows(0..290), rows(5..15)].concat()
}

#[test]
fn a_digest_does_not_change_by_itself() {
    let hashes = hashes(&of_300(), &["n", "t"]);
    assert_eq!(of(&hashes), OF_300);
    assert_eq!(defined(&hashes), OF_300);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Any order of rows, in any pieces, and any partitions of the slices.
    #[test]
    fn a_digest_is_that_of_the_table(
        keys in proptest::collection::vec(0_u32..60, 0..120),
        seed: u64,
        pieces in 1_usize..9,
        partitions in 1_usize..9,
        size in 1_usize..40,
    ) {
        let all: Vec<Row> = keys.iter().flat_map(|&key| rows(key..key + 1)).collect();
        let expected = of(&hashes(&all, &["t"]));
        let mut shuffled = all.clone();
        let mut state = seed;
        for i in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(i, (state >> 33) as usize % (i + 1));
        }
        let mut moved = vec![Vec::new(); partitions];
        for piece in shuffled.chunks(shuffled.len().div_ceil(pieces).max(1)) {
            for hash in hashes(piece, &["t"]) {
                moved[usize::from(hash[0]) % partitions].push(hash);
            }
        }
        let all_slices: Vec<_> = moved.into_iter().flat_map(|some| slices(some, size)).rev().collect();
        prop_assert_eq!(digest(&all_slices).unwrap(), (expected.clone(), all.len() as u64));
        prop_assert_eq!(defined(&hashes(&all, &["t"])), expected);
    }
}

/// Rows with all of this and no more are one table.
#[test]
fn a_digest_binds_items_payload_and_numbers_of_equal_rows() {
    let base = of_300();
    let expected = of(&hashes(&base, &["n", "t"]));
    let changes: [fn(&mut Vec<Row>); 7] = [
        |rows| rows[3].a = Some(1000),
        |rows| rows[3].a = None,
        |rows| rows[299].b = Some(1000),
        |rows| rows[4].number = None,
        |rows| rows[3].text.push('x'),
        |rows| drop(rows.pop()),
        |rows| {
            // Two equal rows in place of two other equal ones.
            rows[295] = rows[5].clone();
            rows[296] = rows[5].clone();
        },
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut other = base.clone();
        change(&mut other);
        assert_ne!(of(&hashes(&other, &["n", "t"])), expected, "{number}");
    }
    // What does not take part.
    let mut other = base.clone();
    other[4].number = None;
    assert_eq!(of(&hashes(&other, &["t"])), of(&hashes(&base, &["t"])));
}

/// Rows of one slice that were not together, and rows that are not in order, give no digest.
#[test]
fn slices_that_are_not_whole_are_refused() {
    let all = hashes(&of_300(), &[]);
    let mut sorted = all.clone();
    sorted.sort_unstable();
    let middle = (1..300).find(|&i| sorted[i - 1][0] == sorted[i][0]).unwrap();
    let halves = [&sorted[..middle], &sorted[middle..]].map(|half| slices(half.to_vec(), 50));
    assert_eq!(digest(&halves.concat()), None);
    let mut swapped = sorted.clone();
    swapped.swap(100, 101);
    assert!(sorted[100] < sorted[101]);
    let mut slices = Slices::default();
    assert!(!slices.add(&column(&swapped)));
    let mut slices = Slices::default();
    assert!(slices.add(&column(&sorted[5..])));
    assert!(!slices.add(&column(&sorted[..5])));
    // Values of another length or kind.
    let short = FixedSizeBinaryArray::try_from_iter([[0_u8; 16]].iter()).unwrap();
    assert!(!Slices::default().add(&short));
    assert!(!Slices::default().add(&StringArray::from(vec!["a"])));
}

/// A side's secrets, and so its commitment, depend on the settings and on the columns of its
/// payload.
#[test]
fn settings_are_bound_as_well() {
    let facts = ClusterTable {
        keys: "text".to_owned(),
        sizes: vec![300],
        payload: Some(("n:integer".to_owned(), 9)),
        digest: of(&hashes(&of_300(), &["n"])),
        rows: 300,
    };
    let run = Run {
        verb: Operation::Lookup,
        name: volery_matching::ProtocolChoice::Vole,
        ..Run::default()
    };
    let digest = |run: &Run, facts: &ClusterTable| {
        let secrets = secrets(&run.settings(Role::Sender), facts, None).unwrap();
        let secrets: serde_json::Value = serde_json::from_str(&secrets.to_json()).unwrap();
        assert!(secrets.get("noise").is_none());
        secrets["digest"].as_str().unwrap().to_owned()
    };
    let expected = digest(&run, &facts);
    assert_eq!(digest(&run, &facts.clone()), expected);
    let low = Run { name: volery_matching::ProtocolChoice::VoleLow, ..run };
    assert_ne!(digest(&low, &facts), expected);
    let changes: [fn(&mut ClusterTable); 3] = [
        |facts| facts.keys.push('x'),
        |facts| facts.payload = Some(("m:integer".to_owned(), 9)),
        |facts| facts.digest = facts.digest.replace('1', "2"),
    ];
    for change in changes {
        let mut other = facts.clone();
        change(&mut other);
        assert_ne!(digest(&run, &other), expected);
    }
    // Those of another start are taken as they are, if they fit.
    let settings = run.settings(Role::Sender);
    let first = secrets(&settings, &facts, None).unwrap();
    assert_ne!(secrets(&settings, &facts, None).unwrap(), first);
    assert_eq!(secrets(&settings, &facts, Some(&first)).unwrap(), first);
    assert_ne!(secrets(&low.settings(Role::Sender), &facts, Some(&first)).unwrap(), first);
}

/// One process hashes its rows in their order: an item of one rule does not pass for one of
/// another, wherever a batch of rows ends.
#[test]
fn items_of_a_row_stay_together() {
    let fields = ["a", "b"].map(|name| Field::new(name, DataType::Utf8, true));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let batch = |rows: &[[&str; 2]]| {
        let column = |i: usize| -> ArrayRef {
            Arc::new(rows.iter().map(|row| Some(row[i])).collect::<StringArray>())
        };
        RecordBatch::try_new(Arc::clone(&schema), vec![column(0), column(1)]).unwrap()
    };
    let read = |batches: Vec<RecordBatch>| {
        let table = Table::from_batches(Arc::clone(&schema), batches).unwrap();
        let settings = Run::default().settings(Role::Sender);
        let side = PreparedTable::read(
            &table,
            &reading(&[]),
            &settings,
            &StorageOptions::default(),
            &mut (),
        );
        side.unwrap().digest()
    };
    let one = read(vec![batch(&[["x", "z"], ["y", "w"]])]);
    assert_ne!(one, read(vec![batch(&[["x", "y"]]), batch(&[["z", "w"]])]));
    // It is that of the rows.
    assert_eq!(one, read(vec![batch(&[["x", "z"]]), batch(&[["y", "w"]])]));
}
