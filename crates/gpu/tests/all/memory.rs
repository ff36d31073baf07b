//! Memory of a card, and cards that are not there.

use std::panic::{AssertUnwindSafe, catch_unwind};

use volery_gpu::{Device, Error, Memory, Part, Pinned, count, dlpack::Array, hash_pairs};
use volery_primitives::Block;

use super::device;

/// Freed memory is given out again, without what was there.
#[test]
#[ignore = "needs a card"]
fn memory_is_wiped_when_it_is_dropped() {
    let device = device();
    let len = 1 << 20;
    let secret = Memory::of(&device, &vec![0x5ec7_e75e_u64; len]).unwrap();
    let address = secret.address();
    drop(secret);
    let again = Memory::<u64>::as_it_was(&device, len).unwrap();
    assert_eq!(again.address(), address, "the same memory");
    let mut left = vec![1; len];
    again.read(0, &mut left).unwrap();
    assert!(left.iter().all(|word| *word == 0), "nothing is left");
    drop(again);
    let mut pinned = Pinned::zeroed(&device, 100).unwrap();
    assert!(pinned.iter().all(|word| *word == 0u64));
    pinned.fill(7);
    Memory::of(&device, &[1u64; 100]).unwrap().read(0, &mut pinned).unwrap();
    assert!(pinned.iter().all(|word| *word == 1));
}

/// Pairs as two columns of one memory, which goes when the last of them does.
#[test]
#[ignore = "needs a card"]
fn arrays_of_a_memory() {
    let device = device();
    let words: Vec<u64> = (0..40).collect();
    let memory = Memory::of(&device, &words).unwrap();
    let address = memory.address();
    let pairs = Array::new(memory, 64, &[10, 2, 2]);
    let bytes = bytemuck::cast_slice::<u64, u8>;
    assert_eq!(pairs.read().unwrap(), bytes(&words));
    let second = pairs.second(1);
    assert_eq!((second.shape(), second.bits()), (&[10, 2][..], 64));
    drop(pairs);
    let odd: Vec<u64> = (0..10).flat_map(|pair| [4 * pair + 2, 4 * pair + 3]).collect();
    assert_eq!(second.read().unwrap(), bytes(&odd));
    drop(second);
    let again = Memory::<u64>::zeroed(&device, 40).unwrap();
    assert_eq!(again.address(), address, "the same memory");
    let halves = Array::new(Memory::of(&device, &[1u32, 2, 3]).unwrap(), 32, &[3]);
    assert_eq!(halves.read().unwrap(), [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
}

/// An error, and the card is as good as before.
#[test]
#[ignore = "needs a card"]
fn memory_that_is_not_there_is_an_error() {
    let device = device();
    let mut all = Vec::new();
    let error = loop {
        match Memory::<u64>::zeroed(&device, 1 << 30) {
            Ok(memory) => all.push(memory),
            Err(error) => break error,
        }
        assert!(all.len() < 1 << 12, "memory has an end");
    };
    assert!(matches!(error, Error::OutOfMemory), "{error}");
    drop(all);
    let memory = Memory::of(&device, &[7u64; 3]).unwrap();
    let mut out = [0; 3];
    memory.read(0, &mut out).unwrap();
    assert_eq!(out, [7; 3]);
}

#[test]
#[ignore = "needs a card"]
fn a_card_that_is_not_there_is_an_error() {
    let cards = count().unwrap();
    let error = Device::open(cards).err().expect("no such card");
    assert_eq!(
        error.to_string(),
        format!("there is no card number {cards}: the driver has {cards} (numbers begin with 0)")
    );
}

/// Without a driver, as on most machines that run tests.
#[test]
fn a_machine_without_a_driver_is_an_error() {
    match count() {
        Err(error) => {
            assert!(matches!(error, Error::NoDriver(_)), "{error}");
            assert!(matches!(Device::open(0), Err(Error::NoDriver(_))));
        }
        Ok(cards) => assert_eq!(Device::open(0).is_ok(), cards > 0),
    }
}

/// Memory is zero when it is there, whoever writes to it next.
#[test]
#[ignore = "needs a card"]
fn memory_is_ready_for_other_orders_of_work() {
    const BYTES: usize = 8 << 30;
    let (device, other) = (device(), device());
    let mut source = Memory::of(&other, &[Block::ONE; 1000]).unwrap();
    let mut first = Memory::<Block>::zeroed(&other, 2000).unwrap();
    let delta = Block::from(6);
    let mut hash = |to: &mut Part<'_, Block>| {
        hash_pairs(&other, Block::ONE, 0, delta, &source.all(), to).unwrap();
        other.wait().unwrap();
    };
    // From here on the kernel is loaded.
    hash(&mut first.all());
    for _again in 0..3 {
        let mut memory = Memory::<Block>::zeroed(&device, BYTES / 16).unwrap();
        let last = memory.len() - 2000..memory.len();
        hash(&mut memory.part(last.clone()));
        let mut made = [Block::ZERO; 2000];
        memory.read(last.start, &mut made).unwrap();
        assert!(made.iter().all(|block| *block != Block::ZERO));
    }
}

#[test]
#[ignore = "needs a card"]
fn lengths_have_an_end() {
    let device = device();
    for len in [usize::MAX, 1 << 60, usize::MAX / 16 + 1] {
        assert!(matches!(Memory::<Block>::zeroed(&device, len), Err(Error::OutOfMemory)));
        assert!(matches!(Pinned::<Block>::zeroed(&device, len), Err(Error::OutOfMemory)));
    }
    let memory = Memory::<u64>::zeroed(&device, 4).unwrap();
    for at in [4, usize::MAX] {
        let mut out = [0];
        let read = AssertUnwindSafe(|| memory.read(at, &mut out));
        assert!(catch_unwind(read).is_err(), "place {at} of 4");
    }
}
