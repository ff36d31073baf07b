//! Malicious receivers in the extension that are otherwise honest.

use volery_channel::run_two_parties;

use super::*;

const SESSION: SessionId = SessionId::from_bytes([3; 32]);
const N: usize = 300;

/// Every field, with the checks and without.
pub(super) fn all_settings() -> impl Iterator<Item = Settings> {
    let fields = SmallField::ALL.into_iter();
    fields.flat_map(|field| [field.into(), field.unchecked()])
}

/// One batch in which `deviation` may change the corrections before they are sent, and `lie` the
/// response if there is one. Returns `u` and `w` as an honest receiver would compute them.
fn malicious_batch(
    state: &mut State,
    channel: &mut Channel,
    deviation: impl FnOnce(&mut [Block], usize),
    lie: impl FnOnce(&mut [Block], &mut [Block]),
) -> (Vec<u8>, Vec<Block>) {
    let is_checked = state.settings.is_checked;
    let (batches, leaves, transcript) = state.take(N);
    let batch = &mut batches[0];
    batch.expand(leaves);
    let row_blocks = batch.row_blocks;
    deviation(batch.sent_corrections(), row_blocks);
    channel.send_blocks(batch.sent_corrections()).unwrap();
    if is_checked {
        batch.hash_corrections();
        transcript.absorb(&batch.hash);
        let challenge = transcript.challenge(row_blocks);
        let mut u = batch.first_sum().to_vec();
        let mut rows = batch.rows.to_vec();
        lie(&mut u, &mut rows);
        let response = challenge.respond(&u, &rows);
        channel.send(response.as_bytes()).unwrap();
    }
    channel.flush().unwrap();
    let mut w = vec![Block::ZERO; N];
    batch.write_columns(&mut w);
    let mut u: Vec<u8> = cast_slice(batch.first_sum())[..bytes_for(N)].to_vec();
    clear_from(&mut u, N);
    (u, w)
}

/// The sender's result against a malicious receiver, and whether the relation then holds for the
/// honest `u` and `w`.
fn against(
    settings: impl Into<Settings>,
    delta: Block,
    deviation: impl FnOnce(&mut [Block], usize) + Send,
    lie: impl FnOnce(&mut [Block], &mut [Block]) + Send,
) -> (Result<()>, bool) {
    let settings = settings.into();
    let ((result, v), (u, w)) = run_two_parties(
        |channel| {
            let mut sender =
                Sender::setup(Some(delta), settings, SESSION, Prg::new(Block::from(1)), channel)
                    .unwrap();
            let mut v = vec![Block::ZERO; N];
            let result = sender.extend(&mut v, channel);
            if result.is_err() {
                assert!(matches!(sender.extend(&mut v, channel), Err(Error::Broken)));
                assert!(v.iter().all(|&v| v == Block::ZERO), "no output is written");
            }
            (result, v)
        },
        |channel| {
            let mut receiver =
                Receiver::setup(settings, SESSION, Prg::new(Block::from(2)), channel).unwrap();
            let batch = |state: &mut State| Ok(malicious_batch(state, channel, deviation, lie));
            receiver.0.call(batch).unwrap()
        },
    );
    let holds = (0..N).all(|j| w[j] == v[j] ^ (crate::bits::mask(&u, j) & delta));
    (result, holds)
}

fn caught(outcome: &(Result<()>, bool)) -> bool {
    matches!(outcome.0, Err(Error::PeerMisbehaved(_)))
}

#[test]
fn this_receiver_without_a_lie_is_honest() {
    for settings in all_settings() {
        let outcome = against(settings, Block::ALL_ONES, |_, _| (), |_, _| ());
        assert!(outcome.0.is_ok() && outcome.1);
    }
}

/// With the same seeds and another session all outputs differ.
#[test]
fn checked_and_unchecked_have_nothing_in_common() {
    let run = |settings: Settings| {
        run_two_parties(
            |channel| {
                let rng = Prg::new(Block::from(1));
                let mut sender = Sender::setup(None, settings, SESSION, rng, channel).unwrap();
                let mut v = vec![Block::ZERO; N];
                sender.extend(&mut v, channel).unwrap();
                v
            },
            |channel| {
                let rng = Prg::new(Block::from(2));
                let mut receiver = Receiver::setup(settings, SESSION, rng, channel).unwrap();
                let (mut u, mut w) = (vec![0; bytes_for(N)], vec![Block::ZERO; N]);
                receiver.extend(&mut u, &mut w, channel).unwrap();
            },
        )
        .0
    };
    for field in SmallField::ALL {
        let (checked, unchecked) = (run(field.into()), run(field.unchecked()));
        assert!(checked.iter().all(|v| !unchecked.contains(v)));
    }
}

/// Runs `f` in a pool of `threads` threads.
fn with_threads<T: Send>(threads: usize, f: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap().install(f)
}

/// A sender that takes two batches at a time, of which a receiver sends a good one, and then does
/// something else: nothing is written, and the sender is broken. Returns its error.
fn after_a_good_batch(then: impl FnOnce(Receiver, &mut Channel) + Send) -> Error {
    const TWO: usize = BATCH + N;
    run_two_parties(
        |channel| {
            let rng = Prg::new(Block::from(1));
            let mut sender = Sender::setup(None, SmallField::Bits8, SESSION, rng, channel).unwrap();
            let mut v = vec![Block::ZERO; TWO];
            let result = with_threads(2, || sender.extend(&mut v, channel));
            assert!(matches!(sender.extend(&mut v, channel), Err(Error::Broken)));
            assert!(v.iter().all(|&v| v == Block::ZERO), "no output is written");
            result.unwrap_err()
        },
        |channel| {
            let rng = Prg::new(Block::from(2));
            let mut receiver = Receiver::setup(SmallField::Bits8, SESSION, rng, channel).unwrap();
            let (mut u, mut w) = (vec![0; BATCH / 8], vec![Block::ZERO; BATCH]);
            receiver.extend(&mut u, &mut w, channel).unwrap();
            then(receiver, channel);
        },
    )
    .0
}

#[test]
fn a_bad_batch_spoils_those_that_are_checked_with_it() {
    let error = after_a_good_batch(|mut receiver, channel| {
        let deviation = |d: &mut [Block], _: usize| d[3] ^= Block::ONE;
        let batch = |state: &mut State| Ok(malicious_batch(state, channel, deviation, |_, _| ()));
        receiver.0.call(batch).unwrap();
    });
    assert!(matches!(error, Error::PeerMisbehaved(_)), "{error}");
}

#[test]
fn a_receiver_that_leaves_between_two_batches_leaves_nothing() {
    let error = after_a_good_batch(|_, _| ());
    assert!(matches!(error, Error::Disconnected), "{error}");
}

#[test]
fn another_u_for_one_tree_is_caught() {
    for field in SmallField::ALL {
        let last = field.trees() - 2;
        for (tree, bit) in [(0, 0), (last, 127), (last / 2, N - 1), (0, 3 * 128 + 127)] {
            let deviation = |d: &mut [Block], row_blocks: usize| {
                d[tree * row_blocks + bit / 128] ^= Block::from(1 << (bit % 128));
            };
            // The last of these bits is one of the mask block, which is not returned and is checked
            // all the same.
            assert!(
                caught(&against(field, Block::ALL_ONES, deviation, |_, _| ())),
                "{field:?} {tree} {bit}"
            );
        }
    }
}

#[test]
fn another_u_for_every_tree_but_the_first_is_caught() {
    for field in SmallField::ALL {
        let deviation = |d: &mut [Block], row_blocks: usize| {
            for row in d.chunks_exact_mut(row_blocks) {
                row[0] ^= Block::ONE;
            }
        };
        // Consistent with the other trees, according to the response; then the first tree is the
        // odd one.
        let lie = |u: &mut [Block], _: &mut [Block]| u[0] ^= Block::ONE;
        assert!(caught(&against(field, Block::ALL_ONES, deviation, |_, _| ())));
        assert!(caught(&against(field, Block::ALL_ONES, deviation, lie)));
    }
}

#[test]
fn a_wrong_response_is_caught() {
    for field in SmallField::ALL {
        let wrong_u = |u: &mut [Block], _: &mut [Block]| u[1] ^= Block::from(4);
        assert!(caught(&against(field, Block::ALL_ONES, |_, _| (), wrong_u)));
        for place in [0, 5, 4 * 127, 4 * 127 + 3] {
            let wrong_v = |_: &mut [Block], rows: &mut [Block]| rows[place] ^= Block::ONE;
            assert!(caught(&against(field, Block::ALL_ONES, |_, _| (), wrong_v)));
        }
    }
}

/// The functionality permits this: a receiver that guesses a tree's part of `delta` may use
/// another `u` there.
#[test]
fn a_guess_passes_exactly_if_it_is_right() {
    for field in SmallField::ALL {
        let bits = field.bits();
        let all = (1u128 << bits) - 1;
        // Guess that the second tree's part of delta is `guess`: a change of u there moves the rows
        // with these bits.
        for guess in [0, all, 1] {
            for truth in [0, all, 1] {
                let delta = Block::from(!(all << bits) | (truth << bits));
                let deviation = |d: &mut [Block], _: usize| d[0] ^= Block::from(2);
                let lie = move |_: &mut [Block], rows: &mut [Block]| {
                    let stride = rows.len() / 128;
                    for j in (0..bits).filter(|j| (guess >> j) & 1 == 1) {
                        rows[(bits + j) * stride] ^= Block::from(2);
                    }
                };
                let outcome = against(field, delta, deviation, lie);
                assert_eq!(outcome.0.is_ok(), guess == truth, "{field:?} {guess} {truth}");
                // With a right guess of zero even the outputs are unchanged.
                assert_eq!(outcome.1, guess == truth && guess == 0, "{field:?} {guess} {truth}");
            }
        }
    }
}

#[test]
fn what_the_sender_sees_of_the_check_is_masked() {
    // Two receivers whose u differ in nothing but the mask block answer with unrelated x.
    let transcript = |seed: u8| {
        Transcript::new(
            SmallField::Bits8,
            SESSION,
            &[seed; 32],
            &pprf::Message::empty(SmallField::Bits8),
        )
    };
    let challenge = transcript(1).challenge(3);
    let (rows, mut u) = (vec![Block::ZERO; 3 * 128], vec![Block::ONE; 3]);
    let first = challenge.respond(&u, &rows);
    u[2] = Block::from(0xffff);
    let second = challenge.respond(&u, &rows);
    let x = |response: &Response| {
        let mut x = [0; 16];
        x.copy_from_slice(&response.as_bytes()[..16]);
        u128::from_le_bytes(x)
    };
    assert_eq!(x(&first) ^ x(&second), 0xfffe);
    // Another transcript, another hash.
    assert_ne!(x(&transcript(2).challenge(3).respond(&u, &rows)), x(&second));
}

/// The first coefficient of the challenge for the next batch.
fn coefficient(state: &State) -> Block {
    let challenge = state.transcript.challenge(2);
    let rows = vec![Block::ZERO; 128 * 2];
    let response = challenge.respond(&[Block::ONE, Block::ZERO], &rows);
    let mut first = [0; 16];
    first.copy_from_slice(&response.as_bytes()[..16]);
    Block::from_bytes(first)
}

/// Each party's randomness alone changes every challenge, and so does each batch.
#[test]
fn challenges_are_drawn_anew() {
    let challenges = |of_sender: u128, of_receiver: u128| {
        let field = SmallField::Bits8;
        let (left, right) = run_two_parties(
            |channel| {
                let rng = Prg::new(Block::from(of_sender));
                let delta = Some(Block::ALL_ONES);
                let mut sender = Sender::setup(delta, field, SESSION, rng, channel).unwrap();
                [(); 3].map(|()| {
                    sender.extend(&mut [Block::ZERO; N], channel).unwrap();
                    let live = sender.0.get_mut().unwrap();
                    coefficient(&live.state)
                })
            },
            |channel| {
                let rng = Prg::new(Block::from(of_receiver));
                let mut receiver = Receiver::setup(field, SESSION, rng, channel).unwrap();
                [(); 3].map(|()| {
                    let (mut u, mut w) = (vec![0; bytes_for(N)], vec![Block::ZERO; N]);
                    receiver.extend(&mut u, &mut w, channel).unwrap();
                    coefficient(receiver.0.get_mut().unwrap())
                })
            },
        );
        assert_eq!(left, right);
        left
    };
    assert_eq!(challenges(1, 2), challenges(1, 2));
    let all = [challenges(1, 2), challenges(1, 3), challenges(4, 2)].concat();
    assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])));
}

/// A receiver that knows the challenge could choose its corrections for it: all its other messages
/// are honest.
#[test]
fn a_challenge_drawn_before_the_corrections_is_refused() {
    let run = |early: bool| {
        let field = SmallField::Bits8;
        let (result, ()) = run_two_parties(
            |channel| {
                let rng = Prg::new(Block::from(1));
                let mut sender = Sender::setup(None, field, SESSION, rng, channel).unwrap();
                sender.extend(&mut [Block::ZERO; N], channel)
            },
            |channel| {
                let rng = Prg::new(Block::from(2));
                let mut receiver = Receiver::setup(field, SESSION, rng, channel).unwrap();
                let state = receiver.0.get_mut().unwrap();
                let (batches, leaves, transcript) = state.take(N);
                let batch = &mut batches[0];
                batch.expand(leaves);
                batch.hash_corrections();
                if !early {
                    transcript.absorb(&batch.hash);
                }
                let challenge = transcript.challenge(batch.row_blocks);
                let response = challenge.respond(batch.first_sum(), &batch.rows);
                channel.send_blocks(batch.sent_corrections()).unwrap();
                channel.send(response.as_bytes()).unwrap();
                channel.flush().unwrap();
            },
        );
        result
    };
    assert!(run(false).is_ok(), "right but for that");
    assert!(matches!(run(true), Err(Error::PeerMisbehaved(_))));
}

/// The semi-honest protocol does not detect this; the check does.
#[test]
fn unchecked_a_deviation_goes_unnoticed() {
    for field in SmallField::ALL {
        let deviation = |d: &mut [Block], _: usize| d[0] ^= Block::from(2);
        let (result, holds) = against(field.unchecked(), Block::ALL_ONES, deviation, |_, _| ());
        assert!(result.is_ok() && !holds);
    }
}

/// Also without the check of the extension: the trees are checked.
#[test]
fn parties_with_other_settings_fail_in_the_setup() {
    for field in SmallField::ALL {
        let both = [Settings::from(field), field.unchecked()];
        for [ours, theirs] in [[both[0], both[1]], [both[1], both[0]]] {
            let (sender, _) = run_two_parties(
                |channel| {
                    let rng = Prg::new(Block::from(1));
                    Sender::setup(None, ours, SESSION, rng, channel).map(|_| ())
                },
                |channel| {
                    let rng = Prg::new(Block::from(2));
                    Receiver::setup(theirs, SESSION, rng, channel).map(|_| ())
                },
            );
            assert!(matches!(sender, Err(Error::PeerMisbehaved(_))), "{sender:?}");
        }
    }
}

#[test]
fn matrices_move_only_to_grow() {
    let mut matrix = Zeroizing::default();
    resize(&mut matrix, 1000);
    matrix.fill(Block::ALL_ONES);
    let place = matrix.as_ptr();
    for blocks in [0, 7, 1000, 1, 999] {
        resize(&mut matrix, blocks);
        assert_eq!((matrix.len(), matrix.as_ptr()), (blocks, place));
    }
    // A matrix that a `Vec` would have copied to new memory is reallocated.
    matrix.fill(Block::ALL_ONES);
    resize(&mut matrix, 1001);
    assert_eq!(matrix.len(), 1001);
    assert!(matrix.iter().all(|&block| block == Block::ZERO));
}
