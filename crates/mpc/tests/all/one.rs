//! OT of one of N.

use volery_mpc::one_of_n;

use super::*;

fn check(n: usize, rows: usize, len: usize) {
    let mut prg = rng((n * 1000 + rows) as u128);
    let choices: Vec<u32> = (0..rows).map(|_| prg.below(n as u64) as u32).collect();
    let mut strings = vec![0; n * rows * len];
    prg.fill_bytes(&mut strings);
    let (sent, out) = run_two_parties(
        |channel| {
            let mut sender = one_of_n::Sender::new(dealt(Role::Sender).0, id(1));
            sender.send(n, len, &strings, channel).unwrap();
            sender.send(n, len, &strings, channel).unwrap();
            channel.stats().bytes_sent
        },
        |channel| {
            let mut receiver = one_of_n::Receiver::new(dealt(Role::Receiver).1, id(1));
            let mut out = [vec![0; rows * len], vec![0; rows * len]];
            for out in &mut out {
                receiver.receive(n, len, &choices, out, channel).unwrap();
            }
            out
        },
    );
    assert_eq!(sent as usize, 2 * n * rows * len);
    for (r, &x) in choices.iter().enumerate() {
        let expected = &strings[(r * n + x as usize) * len..][..len];
        assert!(out.iter().all(|out| out[r * len..][..len] == *expected), "row {r}, {x} of {n}");
    }
}

#[test]
fn the_receiver_gets_the_message_of_its_choice() {
    for (n, rows, len) in [(1, 3, 1), (2, 9, 16), (3, 7, 5), (200, 5, 32), (256, 2, 8)] {
        check(n, rows, len);
    }
    check(70_000, 2, 1);
    check(1000, 70, 3);
}
