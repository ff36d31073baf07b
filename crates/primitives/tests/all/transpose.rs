//! Transposition: every level against the definition, bit by bit.

use volery_primitives::Block;
use volery_primitives::cpu::Cpu;
use volery_primitives::prg::Prg;
use volery_primitives::transpose::{transpose_128_on, transpose_first_on};

fn slow_transpose(rows: &[Block]) -> Vec<Block> {
    let width = rows.len() / 128;
    (0..rows.len())
        .map(|j| {
            (0..128).fold(Block::ZERO, |column, r| {
                let bit = rows[r * width + j / 128].bit(j % 128);
                column | Block::select_mask(bit) & Block::new(1 << r)
            })
        })
        .collect()
}

#[test]
fn levels_agree_with_the_definition() {
    let mut prg = Prg::new(Block::ONE);
    for groups in [0, 1, 2, 3, 4, 5, 7, 8, 9, 13] {
        let mut rows = vec![Block::ZERO; 128 * groups];
        prg.fill_blocks(&mut rows);
        let expected = slow_transpose(&rows);
        for cpu in Cpu::available() {
            let mut out = vec![Block::ALL_ONES; rows.len()];
            transpose_128_on(cpu, &rows, &mut out);
            assert!(out == expected, "{groups} groups, {cpu}");
            // The slices, shifted by one block, are not aligned for wide loads.
            let shifted: Vec<Block> = std::iter::once(Block::ZERO).chain(rows.clone()).collect();
            let mut out = vec![Block::ALL_ONES; shifted.len()];
            transpose_128_on(cpu, &shifted[1..], &mut out[1..]);
            assert!(out[1..] == expected, "{groups} groups, shifted, {cpu}");
        }
    }
}

#[test]
fn the_first_columns_of_longer_rows() {
    let mut prg = Prg::new(Block::ONE);
    for (stride, columns) in [(1, 1), (1, 127), (2, 128), (3, 129), (5, 300), (9, 1024), (9, 1151)]
    {
        let width = usize::div_ceil(columns, 128);
        // The last row ends with its last column.
        let mut rows = vec![Block::ZERO; 127 * stride + width];
        prg.fill_blocks(&mut rows);
        let dense: Vec<Block> =
            (0..128).flat_map(|r| rows[r * stride..][..width].to_vec()).collect();
        let expected = slow_transpose(&dense);
        for cpu in Cpu::available() {
            let mut out = vec![Block::ALL_ONES; columns];
            transpose_first_on(cpu, &rows, stride, &mut out);
            assert!(out == expected[..columns], "{columns} of {stride}, {cpu}");
        }
    }
}

#[test]
#[should_panic(expected = "ends before")]
fn a_matrix_that_is_too_short_is_refused() {
    transpose_first_on(Cpu::detect(), &[Block::ZERO; 255], 2, &mut [Block::ZERO; 256]);
}

/// 127 times this stride is one more than 2^64.
#[test]
#[cfg(target_pointer_width = "64")]
#[should_panic(expected = "ends before")]
fn a_stride_that_wraps_around_is_refused() {
    let stride = 0x7efd_fbf7_efdf_bf7f;
    assert_eq!(127usize.wrapping_mul(stride), 1);
    let rows = [Block::ZERO; 256];
    transpose_first_on(Cpu::detect(), &rows, stride, &mut [Block::ZERO; 128]);
}

#[test]
#[should_panic(expected = "groups of 128")]
fn other_lengths_are_refused() {
    transpose_128_on(Cpu::detect(), &[Block::ZERO; 64], &mut [Block::ZERO; 64]);
}
