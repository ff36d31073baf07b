//! Secrets are zeroized before their memory is freed, in all protocols: an allocator searches every
//! block for them.
//!
//! Each session runs twice from the same seeds: the first run returns its secrets, and in the
//! second one the allocator searches for them. Drawn correlations belong to the caller, so the
//! tests here zeroize them.
//!
//! The stack and registers are not searched, but stack contents can end up in the padding of a
//! value that is moved to the heap. The usual test harness is not used because its list of results
//! has such padding. Here each test is a thread, one after another.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![allow(clippy::print_stdout, reason = "this program is its own test harness")]

mod applications;
mod sessions;
mod values;

use std::env;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use volery_field::{Gf128, Ring};
use volery_lpn::dual::Compression;
use volery_lpn::dual::params::Shape;
use volery_lpn::estimate::Field;
use volery_primitives::Block;
use volery_primitives::aes::Aes128;
use volery_primitives::cuckoo::Table;
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;
use volery_primitives::ro::{RandomOracle, StreamHash};
use volery_primitives::watch::{WatchingAllocator, blocks_with};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

#[global_allocator]
static ALLOCATOR: WatchingAllocator = WatchingAllocator;

/// A test by its path.
macro_rules! test {
    ($($path:ident)::+) => {
        (concat!($("::", stringify!($path)),+), $($path)::+ as fn())
    };
}

const TESTS: [(&str, fn()); 20] = [
    test!(the_allocator_finds_leftover_secrets),
    test!(keys_and_generators),
    test!(compressed_values),
    test!(sessions::ot_extensions),
    test!(sessions::base_ots),
    test!(sessions::conversions),
    test!(sessions::correlated_ot),
    test!(sessions::vector_ole),
    test!(sessions::products),
    test!(sessions::a_session_that_fails),
    test!(sessions::oblivious_prf),
    test!(sessions::matching),
    test!(sessions::oblivious_prf_from_vector_ole),
    test!(sessions::shares_of_an_intersection),
    test!(sessions::a_served_query),
    test!(values::of_tables),
    test!(applications::a_polynomial_at_points),
    test!(applications::a_matrix_product),
    test!(applications::a_permutation_of_shares),
    test!(applications::additions_to_a_vector),
];

/// Runs the tests whose names contain one of the arguments, or all; options of the usual harness
/// are not supported.
fn main() -> ExitCode {
    if cfg!(miri) {
        // Under Miri the padding bytes of a value cannot be read.
        return ExitCode::SUCCESS;
    }
    if env::args().any(|word| word == "--list") {
        for (name, _) in TESTS {
            println!("{}: test", name.trim_start_matches("::"));
        }
        return ExitCode::SUCCESS;
    }
    // The thread pool and its work-stealing queues are created once and stay. Both have padding,
    // which takes stack contents of their first user: that must not be a party.
    rayon::scope(|_| {
        let slow = || thread::sleep(Duration::from_millis(2));
        rayon::join(slow, || rayon::join(slow, || ()));
    });
    let words: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let chosen =
        |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let (mut passed, mut failed) = (0, 0);
    for (name, test) in TESTS.into_iter().filter(|(name, _)| chosen(name)) {
        let name = name.trim_start_matches("::");
        let thread = thread::Builder::new().name(name.to_string()).spawn(test);
        let ok = thread.expect("the system starts a thread").join().is_ok();
        println!("test {name} ... {}", if ok { "ok" } else { "FAILED" });
        *if ok { &mut passed } else { &mut failed } += 1;
    }
    let result = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {result}. {passed} passed; {failed} failed; 0 ignored");
    ExitCode::from(u8::from(failed > 0))
}

/// A secret that is freed without zeroizing, and one that is kept, are found; a zeroized one is
/// not.
fn the_allocator_finds_leftover_secrets() {
    let secret = *b"sixteen bytes of";
    let wanted = || secret.to_vec();
    let freed = blocks_with(wanted(), || drop(std::hint::black_box(secret.to_vec())));
    assert!(freed.unwrap_err().starts_with("1 blocks were freed"));

    let mut kept = Vec::new();
    let found = blocks_with(wanted(), || kept = std::hint::black_box(secret[1..15].to_vec()));
    assert_eq!(found, Ok(()), "8 bytes of no piece are there");
    let found = blocks_with(wanted(), || kept = std::hint::black_box(secret[8..].to_vec()));
    assert!(found.unwrap_err().starts_with("0 blocks were freed with secrets in them, 1 are"));
    kept.zeroize();

    let grown = blocks_with(wanted(), || {
        let mut list = Zeroizing::new(secret.to_vec());
        list.resize(1000, 0);
    });
    assert!(grown.is_err(), "a list that has moved leaves its old place behind");

    let wiped = blocks_with(wanted(), || drop(Zeroizing::new(secret.to_vec())));
    assert_eq!(wiped, Ok(()));
}

fn keys_and_generators() {
    fn wipes<T: ZeroizeOnDrop>() {}
    wipes::<Prg>();
    wipes::<Aes128>();
    wipes::<RandomOracle>();
    wipes::<StreamHash>();
    wipes::<Buffer<Block>>();
    wipes::<Table>();

    let seed = Prg::new(Block::from(1)).block();
    blocks_with(seed.to_bytes().to_vec(), || {
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

/// The code of dual LPN, whose memory all threads of a pool wipe. Its outputs are sums of one value
/// in characteristic 2: the value again, or zero.
fn compressed_values() {
    let secret = Prg::new(Block::from(2)).block();
    let shape = Shape::for_outputs(Field::Gf128, 1 << 16).expect("a size");
    blocks_with(secret.to_bytes().to_vec(), || {
        rayon::scope(|_| {
            let mut values = Buffer::zeroed(shape.leaves());
            values.fill(Gf128::from_block(secret));
            let mut code = Compression::of(Block::from(3), values);
            assert!(!code.draw(1000).is_empty());
        });
    })
    .unwrap();
}
