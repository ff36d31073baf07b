//! OT of one of N.

use super::*;

fn check(n: usize, rows: usize, len: usize) {
    let mut prg = rng((n * 1000 + rows) as u128);
    let choices: Vec<u32> = (0..rows).map(|_| prg.below(n as u64) as u32).collect();
    let mut blocks = vec![Block::ZERO; n * rows];
    prg.fill_blocks(&mut blocks);
    let mut strings = vec![0; n * rows * len];
    prg.fill_bytes(&mut strings);
    let ((random, sent), (received, chosen, out)) = run_two_parties(
        |channel| {
            let mut sender = one_of_n::Sender::new(dealt(Role::Sender).0, id(1));
            let mut random = vec![Block::ZERO; n * rows];
            sender.random(n, &mut random, channel).unwrap();
            sender.chosen(n, &blocks, channel).unwrap();
            let before = channel.stats().bytes_sent;
            sender.chosen_bytes(n, len, &strings, channel).unwrap();
            (random, channel.stats().bytes_sent - before)
        },
        |channel| {
            let mut receiver = one_of_n::Receiver::new(dealt(Role::Receiver).1, id(1));
            let (mut random, mut chosen) = (vec![Block::ZERO; rows], vec![Block::ZERO; rows]);
            let mut out = vec![0; rows * len];
            receiver.random(n, &choices, &mut random, channel).unwrap();
            receiver.chosen(n, &choices, &mut chosen, channel).unwrap();
            receiver.chosen_bytes(n, len, &choices, &mut out, channel).unwrap();
            (random, chosen, out)
        },
    );
    assert_eq!(sent as usize, n * rows * len);
    for (r, &x) in choices.iter().enumerate() {
        let place = r * n + x as usize;
        assert_eq!(received[r], random[place], "row {r} of {rows}, {x} of {n}");
        assert_eq!(chosen[r], blocks[place]);
        assert_eq!(out[r * len..][..len], strings[place * len..][..len]);
    }
    let distinct: std::collections::HashSet<_> = random.iter().collect();
    assert_eq!(distinct.len(), random.len(), "no two messages are equal");
}

#[test]
fn the_receiver_gets_the_message_of_its_choice() {
    for (n, rows, len) in [(1, 3, 1), (2, 9, 16), (3, 7, 5), (4, 1, 33), (200, 5, 32), (256, 2, 8)]
    {
        check(n, rows, len);
    }
    check(70_000, 2, 1);
    check(1000, 70, 3);
}

/// A source of OTs that fails ends the call.
#[test]
fn a_receiver_whose_peer_goes_away_gets_an_error() {
    let (_, received) = run_two_unchecked(
        |channel| channel.recv(&mut [0; 1]),
        |channel| {
            let mut receiver = one_of_n::Receiver::new(dealt(Role::Receiver).1, id(1));
            receiver.chosen(4, &[3], &mut [Block::ZERO], channel)
        },
    );
    assert!(matches!(received, Err(Error::Disconnected)));
}
