//! Comparison with the reference implementation of Figure 2.

use volery_primitives::aes::{Aes128, rekeyed_on};
use volery_primitives::clmul::gf128_combine_on;
use volery_primitives::cpu::Cpu;
use volery_primitives::transpose::transpose_128_on;

use super::*;

/// Compares two extensions, of 5 and of `n` instances, with the reference.
fn check(width: usize, n: usize) {
    let ots = deal(1);
    let (mut sender, mut receiver) = parties(&ots);
    let (code, slow) = (Code::new(&SEED, width), plain::Code::new(&SEED, width));
    // Numbering continues at the next multiple of 128.
    for (first, n) in [(0, 5), (128, n)] {
        let inputs = inputs(n, 2 + n as u128);
        let made = extend(&mut sender, &mut receiver, &code, &inputs);
        let (mut rows, mut outputs) = (Vec::new(), Vec::new());
        for (j, &input) in (first..).zip(&inputs) {
            let (row, output) = ots.receive(&slow, j, input);
            rows.push(row);
            outputs.push(output);
        }
        let what = format!("{n} instances of {width} bits");
        assert!(made.outputs == outputs, "{what}: the receiver's outputs");
        assert!(made.message == plain::message(&rows), "{what}: the message");
        let same = evaluate_all(&sender, &made.keys, &code, &inputs);
        assert!(same == outputs, "{what}: the sender at the receiver's inputs");
        let others: Vec<_> = inputs.iter().map(|&input| input ^ Block::ONE).collect();
        let other = evaluate_all(&sender, &made.keys, &code, &others);
        for (i, &x) in others.iter().enumerate() {
            let j = first + i as u64;
            let q = ots.key(&slow, j, &rows[i]);
            assert_eq!(other[i], ots.evaluate(&slow, j, &q, x), "{what}: {i}");
            assert_ne!(other[i], outputs[i], "{what}: {i}");
        }
        if let Some(&x) = others.last() {
            let last = n as u32 - 1;
            let one = made.keys.evaluate(&sender, &code, last, x).unwrap();
            assert_eq!(one, other[n - 1], "{what}");
        }
    }
}

#[test]
fn as_in_figure_2_for_every_width() {
    for width in [128, 136, 248, 256, 264, 384, 424, 432, 440, 448, 512] {
        for n in [0, 1, 2, 127, 128, 129] {
            check(width, n);
        }
    }
}

#[test]
fn as_in_figure_2_around_a_task() {
    for n in [TASK - 1, TASK, TASK + 1] {
        check(440, n);
    }
}

#[test]
fn as_in_figure_2_around_a_message() {
    for n in [MESSAGE - 1, MESSAGE, MESSAGE + 1] {
        check(424, n);
    }
}

/// Keys in two allocations: all agree with the receiver, and some are compared with the reference.
#[test]
fn as_in_figure_2_around_a_chunk() {
    let ots = deal(3);
    let (code, slow) = (Code::new(&SEED, 448), plain::Code::new(&SEED, 448));
    for n in [CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + MESSAGE + 1] {
        let (mut sender, mut receiver) = parties(&ots);
        let inputs = inputs(n, 7);
        let made = extend(&mut sender, &mut receiver, &code, &inputs);
        assert!(evaluate_all(&sender, &made.keys, &code, &inputs) == made.outputs, "{n}");
        let near = |place: usize| place.saturating_sub(2)..n.min(place + 2);
        for i in [0, MESSAGE, CHUNK, n].into_iter().flat_map(near) {
            let (_, output) = ots.receive(&slow, i as u64, inputs[i]);
            assert_eq!(made.outputs[i], output, "{n}: {i}");
        }
    }
}

/// Calls of any sizes: the streams continue where they were, and keys of earlier calls stay valid.
#[test]
fn instances_are_numbered_on() {
    let ots = deal(5);
    let (mut sender, mut receiver) = parties(&ots);
    let (code, slow) = (Code::new(&SEED, 432), plain::Code::new(&SEED, 432));
    let mut first = 0;
    let mut all = Vec::new();
    for n in [1, 0, 128, 5, 2049, 0, 127, MESSAGE + 1, 3] {
        let inputs = inputs(n, first.into());
        let made = extend(&mut sender, &mut receiver, &code, &inputs);
        for i in (0..n).step_by(1 + n / 5) {
            let (_, output) = ots.receive(&slow, first + i as u64, inputs[i]);
            assert_eq!(made.outputs[i], output, "{i} of {n}, the first is {first}");
        }
        first += (n as u64).next_multiple_of(128);
        all.push((inputs, made));
    }
    for (inputs, made) in &all {
        let values = evaluate_all(&sender, &made.keys, &code, inputs);
        assert!(values == made.outputs, "{} instances", inputs.len());
    }
    // Another code in a later call.
    let code = Code::new(&[9; 32], 512);
    let inputs = inputs(10, 1);
    let made = extend(&mut sender, &mut receiver, &code, &inputs);
    assert_eq!(evaluate_all(&sender, &made.keys, &code, &inputs), made.outputs);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let code = Code::new(&SEED, 440);
    let inputs = inputs(MESSAGE + TASK + 77, 8);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(|| {
            let (mut sender, mut receiver) = dealt(2);
            let made = extend(&mut sender, &mut receiver, &code, &inputs);
            let others: Vec<_> = inputs.iter().map(|&x| x ^ Block::new(77)).collect();
            let values = evaluate_all(&sender, &made.keys, &code, &others);
            (made.message, made.outputs, values)
        })
    };
    let one = run(1);
    for threads in [2, 3, 7] {
        assert!(run(threads) == one, "{threads} threads");
    }
}

/// The kernels of every level of this processor give the same results, one step of the module after
/// the other.
#[test]
fn every_level_of_the_processor_gives_the_same() {
    let (width, n) = (424, 300);
    let ots = deal(6);
    let (mut sender, mut receiver) = parties(&ots);
    let (code, slow) = (Code::new(&SEED, width), plain::Code::new(&SEED, width));
    let inputs = inputs(n, 9);
    let made = extend(&mut sender, &mut receiver, &code, &inputs);
    for cpu in Cpu::available() {
        let mut folded = vec![Block::ZERO; n];
        let rows: [Vec<Block>; BLOCKS] = std::array::from_fn(|block| {
            let row_blocks = n.div_ceil(128);
            let mut columns = vec![Block::ZERO; 128 * row_blocks];
            let keys = ots.keys.iter().zip(plain::starts()).skip(128 * block);
            let keys = keys.take(code.bits(block));
            for (([key, _], start), column) in keys.zip(columns.chunks_exact_mut(row_blocks)) {
                Aes128::with_cpu(Block::new(*key), cpu).ctr(start << 64, column);
            }
            let mut rows = vec![Block::ZERO; columns.len()];
            transpose_128_on(cpu, &columns, &mut rows);
            rows.truncate(n);
            rows
        });
        let columns = rows.each_ref().map(Vec::as_slice);
        let weights = std::array::from_fn(|i| {
            let mut row = vec![false; 128 * i + 1];
            row[128 * i] = true;
            Block::new(slow.fold(&row))
        });
        gf128_combine_on(cpu, columns, weights, &mut folded);
        let numbered = (0..).zip(&inputs);
        let keys: Vec<_> = numbered.map(|(j, &x)| code.hash_key(j, x)).collect();
        rekeyed_on(cpu, &keys, &mut folded);
        assert!(folded == made.outputs, "{cpu}");
    }
}
