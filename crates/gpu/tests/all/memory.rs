//! Memory of a card, and cards that are not there.

use volery_gpu::{Device, Error, Memory, Pinned, count};

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
    let again = Memory::<u64>::zeroed(&device, len).unwrap();
    assert_eq!(again.address(), address, "the same memory");
    drop(again);
    let mut pinned = Pinned::zeroed(&device, 100).unwrap();
    assert!(pinned.iter().all(|word| *word == 0u64));
    pinned.fill(7);
    Memory::of(&device, &[1u64; 100]).unwrap().read(0, &mut pinned).unwrap();
    assert!(pinned.iter().all(|word| *word == 1));
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
