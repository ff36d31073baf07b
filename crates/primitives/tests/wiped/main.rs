//! What is secret is wiped before its memory is freed, in all protocols: an allocator looks for it in every block.
//!
//! Each session is run twice from the same seeds: the first run says what its secrets are, in the second one the allocator
//! looks for them. What a party draws belongs to the caller, so to the tests here, which wipe it.
//!
//! The stack and registers are not looked at.
#![cfg(not(miri))] // To Miri the bytes between the fields of a value are not there to be read.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![allow(unsafe_code, reason = "an allocator")]

mod applications;
mod sessions;
mod watch;

use volery_primitives::Block;
use volery_primitives::aes::Aes128;
use volery_primitives::cuckoo::Table;
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;
use volery_primitives::ro::{RandomOracle, StreamHash};
use watch::Alone;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// A secret that is freed as it is, and one that is kept, are found; one that is wiped is not.
#[test]
fn the_allocator_sees_what_is_left() {
    let alone = Alone::wait();
    let secret = *b"sixteen bytes of";
    let wanted = || secret.to_vec();
    let freed = alone.blocks_with(wanted(), || drop(std::hint::black_box(secret.to_vec())));
    assert!(freed.unwrap_err().starts_with("1 blocks were freed"));

    let mut kept = Vec::new();
    let found = alone.blocks_with(wanted(), || {
        kept = std::hint::black_box(secret[1..15].to_vec())
    });
    assert_eq!(found, Ok(()), "8 bytes of no piece are there");
    let found = alone.blocks_with(wanted(), || {
        kept = std::hint::black_box(secret[8..].to_vec())
    });
    assert!(
        found
            .unwrap_err()
            .starts_with("0 blocks were freed with secrets in them, 1 are")
    );
    kept.zeroize();

    let grown = alone.blocks_with(wanted(), || {
        let mut list = Zeroizing::new(secret.to_vec());
        list.resize(1000, 0);
    });
    assert!(
        grown.is_err(),
        "a list that has moved leaves its old place behind"
    );

    let wiped = alone.blocks_with(wanted(), || drop(Zeroizing::new(secret.to_vec())));
    assert_eq!(wiped, Ok(()));
}

#[test]
fn keys_and_generators() {
    fn wipes<T: ZeroizeOnDrop>() {}
    wipes::<Prg>();
    wipes::<Aes128>();
    wipes::<RandomOracle>();
    wipes::<StreamHash>();
    wipes::<Buffer<Block>>();
    wipes::<Table>();

    let alone = Alone::wait();
    let seed = Prg::new(Block::from(1)).block();
    alone
        .blocks_with(seed.to_bytes().to_vec(), || {
            drop(Box::new(Prg::new(seed)));
            drop(vec![Aes128::new(seed), Aes128::new(seed)]);
            let mut oracle = Box::new(RandomOracle::new("volery wiped test"));
            oracle.absorb(&seed.to_bytes());
            drop(oracle);
            Buffer::zeroed(1000)[7] = seed;
            let mut prg = Box::new(Prg::new(Block::from(1)));
            prg.fill_bytes(&mut [0; 3]);
            drop(prg);
        })
        .unwrap();
}
