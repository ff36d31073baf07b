//! The helpers that run two parties notice what goes wrong.

use std::panic::{AssertUnwindSafe, catch_unwind};

use volery_channel::{Channel, run_two_parties, run_two_parties_tcp};

type Party = fn(&mut Channel);

/// Both ways of running two parties.
const RUNS: [fn(Party, Party); 2] = [
    |left, right| {
        run_two_parties(left, right);
    },
    |left, right| {
        run_two_parties_tcp(left, right);
    },
];

/// The message of the panic that running `left` and `right` must end with.
fn panic_of(run: fn(Party, Party), left: Party, right: Party) -> String {
    let payload = catch_unwind(AssertUnwindSafe(|| run(left, right))).unwrap_err();
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => (*payload.downcast::<&str>().unwrap()).to_owned(),
    }
}

#[test]
fn a_forgotten_flush_fails() {
    for run in RUNS {
        let text = panic_of(run, |channel| channel.send(&[1, 2]).unwrap(), |_| ());
        assert!(text.contains("the left party left 2 bytes unsent"), "{text}");
    }
}

#[test]
fn an_unread_byte_fails() {
    for run in RUNS {
        let text = panic_of(
            run,
            |channel| channel.recv(&mut [0; 3]).unwrap(),
            |channel| {
                channel.send(&[0; 5]).unwrap();
                channel.flush().unwrap();
            },
        );
        assert!(text.contains("the left party left 2 of 5 bytes unread"), "{text}");
    }
}

#[test]
fn the_first_panic_goes_on_and_nobody_hangs() {
    let fails: Party = |_| panic!("the reason");
    let waits: Party = |channel| channel.recv(&mut [0]).unwrap();
    for run in RUNS {
        assert_eq!(panic_of(run, fails, waits), "the reason");
        assert_eq!(panic_of(run, waits, fails), "the reason");
    }
}

#[test]
fn a_panic_with_a_full_queue_does_not_hang() {
    let fails: Party = |channel| {
        channel.send(&vec![0; 64 << 20]).unwrap();
        channel.flush().unwrap();
        panic!("the reason");
    };
    let sends: Party = |channel| {
        let bytes = vec![0; 64 << 20];
        while channel.send(&bytes).is_ok() {}
    };
    for run in RUNS {
        assert_eq!(panic_of(run, fails, sends), "the reason");
        assert_eq!(panic_of(run, sends, fails), "the reason");
    }
}
