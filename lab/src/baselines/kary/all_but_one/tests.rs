use volery_channel::{
    Error, SessionId, Stats, run_two_parties, run_two_parties_with_stats, run_two_unchecked,
};
use volery_ot::ideal;

use super::*;

const SESSION: SessionId = SessionId::from_bytes([9; 32]);

fn prgs() -> TreePrgs {
    TreePrgs::new(SESSION, 4)
}

fn rng() -> Prg {
    Prg::new(Block::from(5))
}

fn ot_sender() -> convert::Sender<ideal::Sender> {
    convert::Sender::new(ideal::pair(Block::from(3), Block::from(1)).0, SESSION)
}

fn ot_receiver() -> convert::Receiver<ideal::Receiver> {
    convert::Receiver::new(ideal::pair(Block::from(3), Block::from(1)).1, SESSION)
}

fn random_messages(arities: &[Arity]) -> Vec<Block> {
    let mut all = vec![Block::ZERO; messages(arities)];
    Prg::new(Block::from(77)).fill_blocks(&mut all);
    all
}

/// `messages` with zero at each number of `without`.
fn punctured(arities: &[Arity], without: &[usize], messages: &[Block]) -> Vec<Block> {
    let (mut out, mut first) = (messages.to_vec(), 0);
    for (arity, without) in arities.iter().zip(without) {
        out[first + without] = Block::ZERO;
        first += arity.children();
    }
    out
}

/// Runs the chosen form; returns the output of the receiver, and the counters of each party's
/// channel.
fn run(arities: &[Arity], without: &[usize], offered: &[Block]) -> (Vec<Block>, Stats) {
    let ((_, stats), (received, other)) = run_two_parties_with_stats(
        |channel| {
            send(
                arities,
                offered,
                &prgs(),
                &mut rng(),
                &mut ot_sender(),
                channel,
            )
            .unwrap()
        },
        |channel| {
            let mut received = vec![Block::ALL_ONES; offered.len()];
            let ot = &mut ot_receiver();
            receive(arities, without, &mut received, &prgs(), ot, channel).unwrap();
            received
        },
    );
    assert_eq!(stats.bytes_sent, other.bytes_received);
    (received, stats)
}

#[test]
fn the_receiver_gets_all_messages_but_one() {
    for arity in Arity::ALL {
        let k = arity.children();
        for count in [0, 1, 2, 17] {
            let arities = vec![arity; count];
            let offered = random_messages(&arities);
            for b in 0..k {
                let without: Vec<_> = (0..count).map(|i| (b + i) % k).collect();
                let (received, _) = run(&arities, &without, &offered);
                assert!(received == punctured(&arities, &without, &offered));
            }
        }
    }
    let arities: Vec<_> = (0..40).map(|i| Arity::ALL[i * i % 4]).collect();
    let without: Vec<_> = (0..40).map(|i| (7 * i) % arities[i].children()).collect();
    let offered = random_messages(&arities);
    let (received, _) = run(&arities, &without, &offered);
    assert!(received == punctured(&arities, &without, &offered));
}

#[test]
fn the_pads_of_the_random_form_agree_but_for_one() {
    let arities: Vec<_> = (0..23).map(|i| Arity::ALL[i % 4]).collect();
    let without: Vec<_> = (0..23)
        .map(|i| (5 * i + 1) % arities[i].children())
        .collect();
    let (pads, received) = run_two_parties(
        |channel| {
            let mut pads = vec![Block::ZERO; messages(&arities)];
            let ot = &mut ot_sender();
            send_random(&arities, &mut pads, &prgs(), &mut rng(), ot, channel).unwrap();
            pads
        },
        |channel| {
            let mut pads = vec![Block::ALL_ONES; messages(&arities)];
            let ot = &mut ot_receiver();
            receive_random(&arities, &without, &mut pads, &prgs(), ot, channel).unwrap();
            pads
        },
    );
    assert!(received == punctured(&arities, &without, &pads));
    let mut all: Vec<_> = pads.iter().map(|pad| pad.to_bytes()).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), pads.len(), "no pad comes twice");
}

/// The block sent in place of the message that the receiver does not get is that message under a
/// pad: the output of the receiver does not open it.
#[test]
fn the_missing_message_stays_masked() {
    for arity in Arity::ALL {
        let (k, offered) = (arity.children(), random_messages(&[arity]));
        for b in 0..k {
            let (_, (mut known, masked)) = run_two_parties(
                |channel| {
                    let (prgs, ot) = (&prgs(), &mut ot_sender());
                    send(&[arity], &offered, prgs, &mut rng(), ot, channel).unwrap();
                },
                |channel| {
                    let mut pads = vec![Block::ZERO; k];
                    let ot = &mut ot_receiver();
                    receive_random(&[arity], &[b], &mut pads, &prgs(), ot, channel).unwrap();
                    let mut masked = vec![Block::ZERO; k];
                    channel.recv_blocks(&mut masked).unwrap();
                    (pads, masked)
                },
            );
            known.push(Block::ZERO);
            for pad in known {
                assert!(masked[b] ^ pad != offered[b], "message {b} of {k}");
            }
        }
    }
}

/// The OTs and bytes of the doc.
#[test]
fn it_costs_what_the_doc_says() {
    let table = [(1, 0, 32), (2, 64, 128), (3, 96, 224), (4, 128, 384)];
    for (arity, (of_one, random, chosen)) in Arity::ALL.into_iter().zip(table) {
        let (k, c) = (arity.children() as u64, u64::from(arity.bits()));
        assert_eq!((of_one, ots(&[arity])), (c, c as usize));
        assert_eq!(random, if k == 2 { 0 } else { 32 * c });
        assert_eq!(chosen, if k == 2 { 32 } else { 32 * c + 16 * k });
        for count in [1usize, 8, 9, 1000] {
            let arities = vec![arity; count];
            assert_eq!(messages(&arities), count * k as usize);
            let without = vec![1; count];
            let (_, stats) = run(&arities, &without, &random_messages(&arities));
            // The dealer's OTs send nothing, so this counts everything.
            assert_eq!(stats.bytes_sent, chosen * count as u64);
            assert_eq!(stats.bytes_received, (c * count as u64).div_ceil(8));
            assert_eq!((stats.messages_received, stats.messages_sent), (1, 1));
            let ((_, stats), _) = run_two_parties_with_stats(
                |channel| {
                    let mut pads = vec![Block::ZERO; messages(&arities)];
                    let ot = &mut ot_sender();
                    send_random(&arities, &mut pads, &prgs(), &mut rng(), ot, channel).unwrap();
                },
                |channel| {
                    let mut pads = vec![Block::ZERO; messages(&arities)];
                    let (prgs, ot) = (&prgs(), &mut ot_receiver());
                    receive_random(&arities, &without, &mut pads, prgs, ot, channel).unwrap();
                },
            );
            assert_eq!(stats.bytes_sent, random * count as u64);
        }
    }
}

/// With two messages it is a chosen OT, to the byte.
#[test]
fn of_two_messages_it_is_a_chosen_ot() {
    let arities = [Arity::Two; 21];
    let offered = random_messages(&arities);
    let without: Vec<_> = (0..21).map(|i| i % 3 % 2).collect();
    let ours = run_two_parties(
        |channel| {
            channel.record_transcript();
            let (prgs, ot) = (&prgs(), &mut ot_sender());
            send(&arities, &offered, prgs, &mut rng(), ot, channel).unwrap();
            channel.transcript().unwrap()
        },
        |channel| {
            let mut received = vec![Block::ZERO; 42];
            let ot = &mut ot_receiver();
            receive(&arities, &without, &mut received, &prgs(), ot, channel).unwrap();
        },
    );
    let plain = run_two_parties(
        |channel| {
            channel.record_transcript();
            let pairs = offered.as_chunks::<2>().0;
            ot_sender().chosen(pairs, channel).unwrap();
            channel.transcript().unwrap()
        },
        |channel| {
            let taken: Vec<_> = without.iter().map(|without| *without == 0).collect();
            let mut received = vec![Block::ZERO; 21];
            ot_receiver()
                .chosen(&bits::pack(&taken), &mut received, channel)
                .unwrap();
        },
    );
    assert_eq!(ours.0, plain.0);
}

/// A peer with a short message, or without one, causes an error.
#[test]
fn a_peer_that_stops_is_an_error() {
    let arities = [Arity::Four, Arity::Sixteen];
    // Of 64 + 128 bytes of sums and 64 + 256 of messages.
    for sent in [0, 1, 63, 64, 191, 192, 511] {
        let (_, received) = run_two_unchecked(
            |channel| {
                channel.recv(&mut [0; 1]).unwrap();
                channel.send(&vec![1; sent]).unwrap();
                channel.flush().unwrap();
            },
            |channel| {
                let (mut messages, ot) = (vec![Block::ZERO; 20], &mut ot_receiver());
                receive(&arities, &[0, 15], &mut messages, &prgs(), ot, channel)
            },
        );
        assert!(matches!(received, Err(Error::Disconnected)), "{received:?}");
    }
    let (sent, _) = run_two_unchecked(
        |channel| {
            let (offered, ot) = (random_messages(&arities), &mut ot_sender());
            send(&arities, &offered, &prgs(), &mut rng(), ot, channel)
        },
        // Six choices, and two bits that must be zero.
        |channel| {
            channel.send(&[0xc0]).unwrap();
            channel.flush().unwrap();
        },
    );
    assert!(matches!(sent, Err(Error::PeerMisbehaved(_))), "{sent:?}");
}

#[test]
#[should_panic(expected = "the number of a message")]
fn a_number_that_is_no_message_is_the_callers_mistake() {
    let (_left, mut right) = Channel::memory_pair();
    let (mut messages, ot) = ([Block::ZERO; 4], &mut ot_receiver());
    let _ = receive(&[Arity::Four], &[4], &mut messages, &prgs(), ot, &mut right);
}
