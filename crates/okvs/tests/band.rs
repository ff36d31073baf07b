//! Encodings decode to their values, at every processor level.

use proptest::prelude::*;
use volery_okvs::{Band, EncodeError, Preset, Shape, Value};
use volery_primitives::Block;
use volery_primitives::cpu::Cpu;
use volery_primitives::prg::Prg;

fn drawn<V: Value>(seed: u128, len: usize) -> Vec<V> {
    let mut drawn = vec![V::zeroed(); len];
    Prg::new(Block::new(seed)).fill_bytes(bytemuck::cast_slice_mut(&mut drawn));
    drawn
}

fn check<V: Value + PartialEq>(preset: Preset, items: usize, cpu: Cpu) {
    let band = Band::with_cpu(Shape::new(preset, items), Block::new(3), cpu);
    let rows = band.rows(&drawn(1, items));
    let values: Vec<V> = drawn(2, items);
    let (mut columns, mut out) = (drawn(4, band.shape().columns), drawn(5, items));
    band.encode(&rows, &values, &mut columns).expect("the rows are independent");
    band.decode(&rows, &columns, &mut out);
    assert!(out == values, "{preset:?}, {items} items, {cpu}");
    // Another party decodes its own keys, here some of these in another order and some others.
    let mut keys: Vec<Block> = drawn(1, items).into_iter().rev().step_by(3).collect();
    let common = keys.len();
    keys.extend(drawn::<Block>(6, items));
    let mut out = drawn(5, keys.len());
    let fresh = Band::with_cpu(band.shape(), Block::new(3), Cpu::PORTABLE);
    fresh.decode(&fresh.rows(&keys), &columns, &mut out);
    assert!(out[..common].iter().eq(values.iter().rev().step_by(3)));
}

#[test]
fn what_is_encoded_is_decoded() {
    for preset in [Preset::Band10, Preset::Band5] {
        for cpu in Cpu::available() {
            for items in [0, 1, 2, 3, 100, 255, 1001, 6789, 1 << 16] {
                check::<Block>(preset, items, cpu);
            }
            check::<u8>(preset, 5000, cpu);
            check::<u64>(preset, 5000, cpu);
            check::<[Block; 2]>(preset, 5000, cpu);
        }
    }
}

#[test]
fn free_columns_are_zero_or_uniform() {
    const ITEMS: usize = 4096;
    let band = Band::new(Shape::new(Preset::Band10, ITEMS), Block::new(8));
    let rows = band.rows(&drawn(1, ITEMS));
    // With values that are zero, all columns are zero if the free ones are.
    let values = vec![0_u64; ITEMS];
    let mut columns: Vec<u64> = drawn(2, band.shape().columns);
    band.encode(&rows, &values, &mut columns).expect("the rows are independent");
    assert!(columns.iter().all(|column| *column == 0));
    // Free columns are those of the generator's stream, which no other column meets by chance.
    let values: Vec<u64> = drawn(3, ITEMS);
    let (stream, mut out) = (drawn::<u64>(4, columns.len()), vec![0; ITEMS]);
    let mut rng = Prg::new(Block::new(4));
    band.encode_random(&rows, &values, &mut columns, &mut rng).expect("the rows are independent");
    band.decode(&rows, &columns, &mut out);
    assert_eq!(out, values);
    let free = columns.iter().zip(&stream).filter(|(a, b)| a == b).count();
    assert_eq!(free, columns.len() - ITEMS);
}

#[test]
fn equal_keys_are_refused() {
    for preset in [Preset::Band10, Preset::Band5] {
        let band = Band::new(Shape::new(preset, 1000), Block::new(9));
        let mut keys: Vec<Block> = drawn(1, 1000);
        keys[700] = keys[20];
        let mut columns: Vec<u64> = drawn(2, band.shape().columns);
        let error = band.encode(&band.rows(&keys), &drawn(3, 1000), &mut columns);
        assert_eq!(error, Err(EncodeError::Duplicate(20, 700)));
        assert!(columns.iter().all(|column| *column == 0));
        // Equal values do not help.
        let error = band.encode(&band.rows(&keys), &[0_u64; 1000], &mut columns);
        assert_eq!(error, Err(EncodeError::Duplicate(20, 700)));
    }
}

/// The solution of the system by dense elimination, columns that are not determined zero; `None` if
/// the rows are dependent.
fn dense(mut rows: Vec<(Vec<u8>, u64)>, columns: usize) -> Option<Vec<u64>> {
    let mut pivots = Vec::new();
    for column in 0..columns {
        let done = pivots.len();
        let Some(found) = (done..rows.len()).find(|row| rows[*row].0[column] == 1) else {
            continue;
        };
        rows.swap(done, found);
        let (pivot, value) = rows[done].clone();
        for (row, (entries, sum)) in rows.iter_mut().enumerate() {
            if row != done && entries[column] == 1 {
                entries.iter_mut().zip(&pivot).for_each(|(entry, other)| *entry ^= other);
                *sum ^= value;
            }
        }
        pivots.push(column);
    }
    let mut solution = vec![0; columns];
    for (row, column) in pivots.iter().enumerate() {
        solution[*column] = rows[row].1;
    }
    (pivots.len() == rows.len()).then_some(solution)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Few columns more than rows, so that many systems have no solution.
    #[test]
    fn dense_elimination_agrees(items in 240_usize..300, free in 0_usize..3, seed: u128) {
        let columns = (items + free).max(256);
        let shape = Shape { items, columns, width: 256 };
        let band = Band::new(shape, Block::new(seed));
        let rows = band.rows(&drawn(seed ^ 1, items));
        let values: Vec<u64> = drawn(seed ^ 2, items);
        // The matrix, from the encodings that have one in one column.
        let mut matrix: Vec<_> = values.iter().map(|&value| (vec![0; columns], value)).collect();
        for column in 0..columns {
            let (mut unit, mut out) = (vec![0_u8; columns], vec![0; items]);
            unit[column] = 1;
            band.decode(&rows, &unit, &mut out);
            matrix.iter_mut().zip(out).for_each(|(row, entry)| row.0[column] = entry);
        }
        let mut solution = vec![0; columns];
        let encoded = band.encode(&rows, &values, &mut solution).map(|()| solution);
        prop_assert_eq!(encoded, dense(matrix, columns).ok_or(EncodeError::Singular));
    }
}
