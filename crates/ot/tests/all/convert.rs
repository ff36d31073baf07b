//! The forms of OT, over the ideal source.

use crate::common::*;
use volery_channel::{Channel, run_two_parties, run_two_parties_with_stats};
use volery_ot::convert::{Receiver, Sender};
use volery_ot::{CotReceiver, CotSender, ideal};
use volery_primitives::Block;

/// Lengths around whole bytes and around a batch of 2^16.
const SIZES: [usize; 10] = [0, 1, 7, 8, 9, 127, 1021, 65535, 65537, 131_101];

const STRINGS: [(usize, usize); 6] = [(0, 5), (1, 1), (9, 17), (1000, 3), (100, 1000), (70_001, 1)];

fn messages(n: usize) -> Vec<[Block; 2]> {
    let mut messages = vec![[Block::ZERO; 2]; n];
    rng(77).fill_blocks(messages.as_flattened_mut());
    messages
}

fn strings(n: usize, seed: u128) -> Vec<u8> {
    let mut strings = vec![0; n];
    rng(seed).fill_bytes(&mut strings);
    strings
}

/// The outputs of the sender.
#[derive(Default)]
struct Left {
    delta: Block,
    correlated: Vec<Vec<Block>>,
    correlated_chosen: Vec<Vec<Block>>,
    random: Vec<Vec<[Block; 2]>>,
    random_chosen: Vec<Vec<[Block; 2]>>,
}

fn left(cot: impl CotSender, sizes: &[usize], channel: &mut Channel) -> Left {
    let mut ot = Sender::new(cot, SESSION);
    let mut out = Left { delta: ot.delta(), ..Left::default() };
    for &n in sizes {
        let mut v = vec![Block::ZERO; n];
        ot.correlated(&mut v, channel).unwrap();
        out.correlated.push(v.clone());
        ot.correlated_chosen(&mut v, channel).unwrap();
        out.correlated_chosen.push(v);
        let mut m = vec![[Block::ZERO; 2]; n];
        ot.random(&mut m, channel).unwrap();
        out.random.push(m.clone());
        ot.random_chosen(&mut m, channel).unwrap();
        out.random_chosen.push(m);
        ot.chosen(&messages(n), channel).unwrap();
    }
    for (n, len) in STRINGS {
        let (zeros, ones) = (strings(n * len, 1), strings(n * len, 2));
        ot.chosen_bytes(&zeros, &ones, len, channel).unwrap();
    }
    out
}

/// The outputs of the receiver; its wanted choices are `random_bits(n, 5)`.
#[derive(Default)]
struct Right {
    correlated: Vec<(Vec<u8>, Vec<Block>)>,
    correlated_chosen: Vec<Vec<Block>>,
    random: Vec<(Vec<u8>, Vec<Block>)>,
    random_chosen: Vec<Vec<Block>>,
    chosen: Vec<Vec<Block>>,
    chosen_bytes: Vec<Vec<u8>>,
}

fn right(cot: impl CotReceiver, sizes: &[usize], channel: &mut Channel) -> Right {
    let mut ot = Receiver::new(cot, SESSION);
    let mut out = Right::default();
    for &n in sizes {
        let x = random_bits(n, 5);
        let (mut u, mut w) = (vec![0; n.div_ceil(8)], vec![Block::ZERO; n]);
        ot.correlated(&mut u, &mut w, channel).unwrap();
        out.correlated.push((u.clone(), w.clone()));
        ot.correlated_chosen(&x, &mut w, channel).unwrap();
        out.correlated_chosen.push(w.clone());
        ot.random(&mut u, &mut w, channel).unwrap();
        out.random.push((u, w.clone()));
        ot.random_chosen(&x, &mut w, channel).unwrap();
        out.random_chosen.push(w.clone());
        ot.chosen(&x, &mut w, channel).unwrap();
        out.chosen.push(w);
    }
    for (n, len) in STRINGS {
        let mut bytes = vec![0; n * len];
        ot.chosen_bytes(&random_bits(n, 6), &mut bytes, len, channel).unwrap();
        out.chosen_bytes.push(bytes);
    }
    out
}

fn chosen<T: Copy>(m: &[[T; 2]], x: &[u8]) -> Vec<T> {
    m.iter().enumerate().map(|(i, m)| m[usize::from(bit(x, i))]).collect()
}

fn assert_all_forms(left: &Left, right: &Right, sizes: &[usize]) {
    let mut seen = std::collections::HashSet::new();
    for (i, &n) in sizes.iter().enumerate() {
        let x = random_bits(n, 5);
        let (u, w) = &right.correlated[i];
        assert!(is_cot(left.delta, &left.correlated[i], u, w));
        assert!(is_cot(left.delta, &left.correlated_chosen[i], &x, &right.correlated_chosen[i]));
        let (u, m) = &right.random[i];
        assert!(&chosen(&left.random[i], u) == m);
        assert!(chosen(&left.random_chosen[i], &x) == right.random_chosen[i]);
        assert!(chosen(&messages(n), &x) == right.chosen[i]);
        for m in left.random[i].iter().chain(&left.random_chosen[i]) {
            assert!(m.iter().all(|&m| seen.insert(u128::from(m))), "no message twice");
            assert_ne!(m[0] ^ m[1], left.delta, "the correlation is broken");
        }
    }
    for ((n, len), got) in STRINGS.into_iter().zip(&right.chosen_bytes) {
        let x = random_bits(n, 6);
        let (zeros, ones) = (strings(n * len, 1), strings(n * len, 2));
        for (i, got) in got.chunks(len).enumerate() {
            let expected = if bit(&x, i) { &ones } else { &zeros };
            assert_eq!(got, &expected[i * len..][..len]);
        }
    }
}

#[test]
fn all_forms_over_the_ideal_source() {
    let (sender, receiver) = ideal::pair(Block::from(0xdead_beef), Block::from(3));
    let (l, r) = run_two_parties(
        |channel| left(sender, &SIZES, channel),
        |channel| right(receiver, &SIZES, channel),
    );
    assert_all_forms(&l, &r, &SIZES);
}

#[test]
fn the_wire_carries_what_the_table_says() {
    let n = 70_000;
    let bits = 8192 + 558;
    for (form, to_sender, to_receiver) in [
        ("correlated_chosen", bits, 0),
        ("random_chosen", bits, 0),
        ("chosen", bits, 32 * n as u64),
        ("random", 0, 0),
    ] {
        let (sender, receiver) = ideal::pair(Block::from(7), Block::from(8));
        let ((_, stats), _) = run_two_parties_with_stats(
            |channel| {
                let mut ot = Sender::new(sender, SESSION);
                match form {
                    "correlated_chosen" => ot.correlated_chosen(&mut vec![Block::ZERO; n], channel),
                    "random_chosen" => ot.random_chosen(&mut vec![[Block::ZERO; 2]; n], channel),
                    "chosen" => ot.chosen(&messages(n), channel),
                    _ => ot.random(&mut vec![[Block::ZERO; 2]; n], channel),
                }
                .unwrap();
            },
            |channel| {
                let mut ot = Receiver::new(receiver, SESSION);
                let (mut x, mut m) = (random_bits(n, 9), vec![Block::ZERO; n]);
                match form {
                    "correlated_chosen" => ot.correlated_chosen(&x, &mut m, channel),
                    "random_chosen" => ot.random_chosen(&x, &mut m, channel),
                    "chosen" => ot.chosen(&x, &mut m, channel),
                    _ => ot.random(&mut x, &mut m, channel),
                }
                .unwrap();
            },
        );
        assert_eq!((stats.bytes_received, stats.bytes_sent), (to_sender, to_receiver), "{form}");
        // Two batches.
        let messages = if form == "chosen" { (2, 2) } else { (u64::from(to_sender > 0), 0) };
        assert_eq!((stats.messages_received, stats.messages_sent), messages, "{form}");
    }
}

/// A source whose rows are all equal, the extreme case for a malicious receiver.
struct Constant;

impl CotSender for Constant {
    fn delta(&self) -> Block {
        Block::from(99)
    }

    fn extend(&mut self, v: &mut [Block], _: &mut Channel) -> volery_ot::Result<()> {
        v.fill(Block::from(42));
        Ok(())
    }
}

#[test]
fn equal_rows_have_different_hashes_within_and_across_calls() {
    let (mut channel, _peer) = Channel::memory_pair();
    let mut ot = Sender::new(Constant, SESSION);
    let mut seen = std::collections::HashSet::new();
    for n in [3, 1, 100] {
        let mut m = vec![[Block::ZERO; 2]; n];
        ot.random(&mut m, &mut channel).unwrap();
        assert!(m.as_flattened().iter().all(|&m| seen.insert(u128::from(m))));
    }
    let mut other = Sender::new(Constant, volery_channel::SessionId::from_bytes([1; 32]));
    let mut m = vec![[Block::ZERO; 2]; 3];
    other.random(&mut m, &mut channel).unwrap();
    assert!(m.as_flattened().iter().all(|&m| seen.insert(u128::from(m))), "another session");
}
