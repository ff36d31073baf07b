use std::collections::HashSet;
use std::time::Duration;

use volery_channel::run_two_parties_with_stats;
use volery_primitives::Block;

use super::meeting::{Welcome, greet, turn_away};
use super::*;
use crate::fixtures::{assert_caught, common, items, meet, outside, tamper};

fn rng(seed: u128) -> Prg {
    Prg::new(Block::new(seed))
}

fn key() -> Key {
    Key::random(&mut rng(1))
}

/// A server of these items, and its filter.
fn prepared(ours: &[Vec<u8>]) -> (Server, Filter) {
    let filter = prepare(&key(), ours, 1 << 20, &mut ()).unwrap();
    (Server::new(key(), &filter).unwrap(), filter)
}

fn ask(filter: &Filter, theirs: &[Vec<u8>], channel: &mut Channel) -> Result<QueryAnswer> {
    Client::new(filter, rng(3)).query(theirs, &mut (), channel)
}

fn answer(server: &Server, budget: &Budget, channel: &mut Channel) -> Result<u64> {
    server.answer(&mut rng(2), budget, &mut (), channel)
}

/// A query against a plain intersection, and its cost.
fn check(ours: &[Vec<u8>], theirs: &[Vec<u8>]) {
    let (server, filter) = prepared(ours);
    let budget = Budget::new(theirs.len() as u64 + 5);
    let ((answered, stats), (queried, _)) = run_two_parties_with_stats(
        |channel| answer(&server, &budget, channel).unwrap(),
        |channel| ask(&filter, theirs, channel).unwrap(),
    );
    assert_eq!(answered, theirs.len() as u64);
    assert_eq!(budget.left(), 5);
    let expected =
        QueryAnswer { common: common(theirs, ours), left: (!theirs.is_empty()).then_some(5) };
    assert_eq!(queried, expected);
    let items = theirs.len() as u64;
    let requests = items.div_ceil(MAX_BATCH as u64);
    let cost = (81 * requests + 32 * items, 40 * requests + 40 + 32 * items);
    assert_eq!((stats.bytes_sent, stats.bytes_received), cost);
    assert_eq!((bytes(items), stats.messages_sent), (cost, requests));
}

#[test]
fn all_sizes() {
    for n in [0, 1, 2, 17, 1000] {
        for m in [0, 1, 5, 40] {
            check(&items(0..n), &items(n / 2..n / 2 + m));
        }
    }
    // More items than a request has.
    check(&items(0..50), &items(40..MAX_BATCH + 77));
    // Items of any length, and equal ones on either side.
    let long = vec![7; MAX_INPUT];
    check(
        &[vec![], vec![0], long.clone(), vec![0]],
        &[vec![0, 0], long, vec![], vec![], vec![7; MAX_INPUT - 1]],
    );
}

#[test]
fn keys() {
    let key = key();
    let again = Key::from_bytes(&key.to_bytes()).unwrap();
    assert_eq!(again.public(), key.public());
    assert!(Key::from_bytes(&[0; 32]).is_none());
    assert!(Key::from_bytes(&[0xff; 32]).is_none());
    let other = Key::random(&mut rng(5));
    assert_ne!(other.public(), key.public());
    let (_, filter) = prepared(&items(0..3));
    assert!(matches!(Server::new(other, &filter), Err(Error::Filter(_))));
    let secret = key.to_bytes();
    let shown = format!("{key:?}");
    assert!(!shown.contains(&format!("{:02x?}", &secret[..4])[1..15]));
}

#[test]
fn versions_depend_on_key_and_items() {
    let mut versions = HashSet::new();
    for seed in 0..3 {
        let key = Key::random(&mut rng(seed));
        for n in [0, 1, 2, 50] {
            for queries in [1, 1000] {
                let filter = prepare(&key, &items(0..n), queries, &mut ()).unwrap();
                assert!(versions.insert(*filter.version()));
                let again = prepare(&key, &items((0..n).rev()), queries, &mut ()).unwrap();
                assert_eq!(again, filter, "the order does not matter");
            }
        }
    }
}

#[test]
fn long_items_are_refused() {
    let long = [vec![], vec![0; MAX_INPUT + 1]];
    let refused = prepare(&key(), &long[..], 1, &mut ()).unwrap_err();
    let (_, filter) = prepared(&items(0..3));
    let mut channel = Channel::memory_pair().0;
    let asked = ask(&filter, &long, &mut channel).unwrap_err();
    for error in [refused, asked] {
        assert!(matches!(error, Error::LongItem { item: 1, bytes: 65_536 }));
    }
    assert_eq!(channel.stats().bytes_sent, 0);
}

#[test]
fn budgets() {
    let (server, filter) = prepared(&items(0..40));
    let budget = Budget::new(15);
    let query = |n: usize| {
        meet(
            |channel| answer(&server, &budget, channel),
            |channel| ask(&filter, &items(0..n), channel),
        )
    };
    let (answered, queried) = query(10);
    assert_eq!((answered.unwrap(), queried.unwrap().left), (10, Some(5)));
    let (refused, asked) = query(6);
    for error in [refused.unwrap_err(), asked.unwrap_err()] {
        assert!(matches!(error, Error::Budget { left: 5, wait: None }));
    }
    assert_eq!(budget.left(), 5, "a refused request costs nothing");
    assert_eq!(query(5).1.unwrap().left, Some(0));
    assert!(query(1).0.is_err());
}

#[test]
fn another_version_is_refused() {
    let (server, _) = prepared(&items(0..40));
    let (_, old) = prepared(&items(0..39));
    let budget = Budget::new(15);
    let (refused, asked) = meet(
        |channel| answer(&server, &budget, channel),
        |channel| ask(&old, &items(0..5), channel),
    );
    for error in [refused.unwrap_err(), asked.unwrap_err()] {
        assert!(matches!(error, Error::OtherVersion));
    }
    assert_eq!(budget.left(), 15);
}

#[test]
fn elements_of_a_client_outside_the_group_are_refused() {
    let (server, filter) = prepared(&items(0..4));
    for bad in outside() {
        for place in 0..3 {
            let (answered, _) = meet(
                |channel| answer(&server, &Budget::new(9), channel),
                |channel| -> Result<()> {
                    let inputs: [&[u8]; 3] = [b"a", b"b", b"c"];
                    let mut blinded = voprf::blind(&inputs, &[Scalar::ONE; 3]);
                    blinded[place] = bad;
                    channel.send(filter.version())?;
                    channel.send(&3_u64.to_le_bytes())?;
                    channel.send(blinded.as_flattened())?;
                    channel.flush()?;
                    Ok(())
                },
            );
            assert_caught(answered, "it sent what is not an element of the group, or the identity");
        }
    }
}

#[test]
fn a_request_that_is_too_large_is_refused() {
    let (server, filter) = prepared(&items(0..4));
    for items in [MAX_BATCH as u64 + 1, u64::MAX] {
        let budget = Budget::new(u64::MAX);
        let (answered, _) = meet(
            |channel| answer(&server, &budget, channel),
            |channel| -> Result<()> {
                channel.send(filter.version())?;
                channel.send(&items.to_le_bytes())?;
                channel.flush()?;
                Ok(())
            },
        );
        assert_caught(answered, "its request has more items than a request may");
        assert_eq!(budget.left(), u64::MAX);
    }
}

/// The result of a client of three items whose server changes its answer.
fn ask_of(
    change: impl FnOnce(&mut [u8; VERDICT], &mut Vec<EncodedElement>, &mut [u8; PROOF]) + Send,
) -> Result<QueryAnswer> {
    let (_, filter) = prepared(&items(0..4));
    let (_, queried) = meet(
        |channel| -> Result<()> {
            let key = key();
            channel.recv(&mut [0; REQUEST])?;
            let mut blinded = vec![[0; 32]; 3];
            channel.recv(blinded.as_flattened_mut())?;
            let mut evaluated = blinded.clone();
            assert!(voprf::multiply(&key.secret, &mut evaluated));
            let pair = (&*key.secret, &key.public);
            let proof = voprf::prove(pair, &blinded, &evaluated, &Scalar::from(9_u8));
            let (mut proof, mut front) = (proof.unwrap(), verdict(ANSWERED, 1, None));
            change(&mut front, &mut evaluated, &mut proof);
            channel.send(&front)?;
            channel.send(evaluated.as_flattened())?;
            channel.send(&proof)?;
            channel.flush()?;
            channel.recv(&mut [0; REQUEST])?;
            Ok(())
        },
        |channel| ask(&filter, &items(2..5), channel),
    );
    queried
}

const PROOF_IS_WRONG: &str = "its proof does not show that it used the key of its filter";

/// A server that uses another key, with a proof for that key: it would recognize the client.
#[test]
fn another_key_is_refused() {
    let (_, filter) = prepared(&items(0..4));
    let other = Server { key: Key::random(&mut rng(77)), version: *filter.version() };
    let (_, asked) = meet(
        |channel| answer(&other, &Budget::new(9), channel),
        |channel| ask(&filter, &items(0..3), channel),
    );
    assert_caught(asked, PROOF_IS_WRONG);
}

#[test]
fn verdicts() {
    for word in 7..=255 {
        let refused = ask_of(|front, _, _| front[0] = word);
        assert_caught(refused, "it sent an unknown status code");
    }
    let other = ask_of(|front, _, _| front[0] = OTHER_VERSION);
    assert!(matches!(other, Err(Error::OtherVersion)));
    let over = ask_of(|front, _, _| front[0] = OVER_BUDGET);
    assert!(matches!(over, Err(Error::Budget { left: 1, wait: None })));
    for why in Later::ALL {
        let wait = Duration::from_millis(1500);
        let late = ask_of(|front, _, _| *front = refused(&Refusal::Later(why, wait)));
        // Rounded up, and no time is too long.
        let Err(Error::Later { why: told, wait }) = late else { panic!("{late:?}") };
        assert_eq!((told, wait), (why, Duration::from_secs(2)));
    }
    let late = ask_of(|front, _, _| *front = verdict(LATER, 0, Some(Duration::MAX)));
    assert!(matches!(late, Err(Error::Later { wait, .. }) if wait.as_secs() == 365 * 86_400));
}

#[test]
fn another_filter_than_the_servers_is_not_used() {
    let (_, filter) = prepared(&items(0..40));
    let newer = prepare(&key(), &items(0..41), 1 << 20, &mut ()).unwrap();
    let other = Key::random(&mut rng(9));
    let other = prepare(&other, &items(0..40), 1 << 20, &mut ()).unwrap();
    let kept = |own: &Filter| {
        let (_, kept) = meet(
            |channel| greet(&filter, None, channel),
            |channel| Welcome::receive(50, channel)?.keep(own, channel),
        );
        kept
    };
    assert!(kept(&filter).is_ok());
    assert!(matches!(kept(&newer), Err(Error::OtherVersion)));
    assert!(matches!(kept(&other), Err(Error::OtherKey { .. })));
    // A server that sends another one than it named.
    let (_, fetched) = meet(
        |channel| -> Result<()> {
            assert!(greet(&filter, None, channel)?);
            other.send(channel)
        },
        |channel| Welcome::receive(50, channel)?.fetch(channel),
    );
    assert_caught(fetched, "its filter is not the one that it named");
    // A file that was replaced.
    let mut file = Vec::new();
    other.write(&mut file).unwrap();
    let (sent, _) = meet(
        |channel| filter.send_file(&mut &file[..], channel),
        |channel| Filter::receive(50, channel),
    );
    assert!(matches!(sent, Err(Error::Filter(_))));
}

#[test]
fn clients_are_turned_away() {
    let (_, filter) = prepared(&items(0..40));
    let wait = Duration::from_secs(9);
    let told = |refusal: Refusal| {
        let (sent, told) =
            meet(|channel| turn_away(&refusal, channel), |channel| Welcome::receive(50, channel));
        sent.unwrap();
        told.unwrap_err()
    };
    let over = told(Refusal::Budget { left: 0, wait: Some(wait) });
    assert!(matches!(over, Error::Budget { left: 0, wait: Some(time) } if time == wait));
    for why in Later::ALL {
        let late = told(Refusal::Later(why, wait));
        assert!(
            matches!(late, Error::Later { why: told, wait: time } if (told, time) == (why, wait))
        );
    }
    // The filter of a server may be too large for a client; and a choice is one of two.
    let (_, large) =
        meet(|channel| greet(&filter, None, channel), |channel| Welcome::receive(39, channel));
    assert!(matches!(large, Err(Error::Filter(_))));
    for choice in 2..=255 {
        let (greeted, _) = meet(
            |channel| greet(&filter, None, channel),
            |channel| -> Result<()> {
                Welcome::receive(50, channel)?;
                channel.send(&[choice])?;
                Ok(channel.flush()?)
            },
        );
        assert_caught(greeted, "its choice about the filter is none that there is");
    }
}

/// Runs of any length give the same filter as all items at once.
#[test]
fn preparing_in_pieces() {
    let scratch = || tempfile::tempfile();
    let key = key();
    for n in [0, 1, 5, 300, 1000] {
        let all = items(0..n);
        let expected = prepare(&key, &all, 1 << 20, &mut ()).unwrap();
        let mut bytes = Vec::new();
        expected.write(&mut bytes).unwrap();
        for run in [1, 7, 300, 1000, 2000] {
            if run == 1 && n > 5 {
                continue;
            }
            let mut preparing = SetBuilder::new(&key, scratch).with_run(run);
            // Some items twice, in this run or another.
            for piece in all.chunks(33).chain(all[..n / 2].chunks(50)) {
                preparing.add(piece).unwrap();
            }
            assert_eq!(preparing.added(), (n + n / 2) as u64);
            let mut file = std::io::Cursor::new(Vec::new());
            let label = preparing.finish(1 << 20, &mut file).unwrap();
            assert_eq!(label, *expected.label(), "{n} {run}");
            assert!(file.into_inner() == bytes, "{n} {run}");
        }
    }
}

/// A change of a byte on the way, or the loss of the rest, gives the client an error, or the right
/// result.
#[test]
fn tampering() {
    let (server, filter) = prepared(&items(0..4));
    let sizes = bytes(2);
    tamper(
        sizes,
        Duration::from_millis(500),
        |channel| answer(&server, &Budget::new(9), channel),
        |channel| ask(&filter, &items(3..5), channel),
        |role, at, cut, queried| {
            let Ok(queried) = queried else { return };
            assert_eq!(queried.common, [0], "{role:?} {at} {cut}");
            // Only the client's last message, and the rest of its budget, is not checked.
            let last = role == Role::Receiver && at >= sizes.1 - 40;
            assert!(last || role == Role::Sender && at < VERDICT as u64, "{role:?} {at} {cut}");
        },
    );
}

/// The elements of two queries for the same items have nothing in common.
#[test]
fn queries_are_blinded() {
    let (_, filter) = prepared(&items(0..4));
    let mut seen = HashSet::new();
    for seed in 0..10 {
        let (blinded, _) = meet(
            |channel| {
                let mut blinded = vec![[0; 32]; 5];
                channel.recv(&mut [0; REQUEST]).unwrap();
                channel.recv(blinded.as_flattened_mut()).unwrap();
                blinded
            },
            |channel| {
                let client = Client::new(&filter, rng(seed));
                client.query(&vec![b"same"; 5], &mut (), channel)
            },
        );
        assert!(blinded.into_iter().all(|element| seen.insert(element)));
    }
}
