//! Keyword search against a plain map.

use std::collections::HashMap;

use crate::common::{SESSION, items};
use proptest::prelude::*;
use volery_channel::{Channel, Stats, run_two_channels, run_two_parties_with_stats};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::lookup::{LookupReceiverResult, LookupSenderResult, MAX_VALUE};
use volery_psi::{Error, Receiver, Result, Sender, Settings, Variant};

type Bytes = Vec<u8>;

fn answer(
    keywords: &[Bytes],
    values: &[Bytes],
    settings: Settings,
    channel: &mut Channel,
) -> Result<LookupSenderResult> {
    let sender = Sender::setup(SESSION, Prg::new(Block::new(1)), channel)?;
    sender.answer(keywords, values, settings, &mut (), channel)
}

fn search(
    keywords: &[Bytes],
    settings: Settings,
    channel: &mut Channel,
) -> Result<LookupReceiverResult> {
    let receiver = Receiver::setup(SESSION, Prg::new(Block::new(2)), channel)?;
    receiver.search(keywords, settings, &mut (), channel)
}

/// Compares a run with the map. Returns the sender's result and traffic.
fn check(
    keywords: &[Bytes],
    values: &[Bytes],
    wanted: &[Bytes],
    settings: Settings,
) -> (LookupSenderResult, Stats) {
    let ((answered, sent), (found, _)) = run_two_parties_with_stats(
        |channel| answer(keywords, values, settings, channel).unwrap(),
        |channel| search(wanted, settings, channel).unwrap(),
    );
    let map: HashMap<_, _> = keywords.iter().zip(values).collect();
    let expected: Vec<_> =
        (0..wanted.len()).filter_map(|i| Some((i, map.get(&wanted[i])?.to_vec()))).collect();
    let what = format!("{} x {}, {settings:?}", keywords.len(), wanted.len());
    let longest = values.iter().map(Vec::len).max().unwrap_or(0);
    let pairs: Vec<_> = found.items.iter().copied().zip(found.values.clone()).collect();
    assert_eq!(found.items.len(), found.values.len(), "{what}");
    assert!(pairs == expected, "{what}: {} found", pairs.len());
    assert_eq!((answered.longest, found.longest), (longest, longest), "{what}");
    assert_eq!(answered.parameters, found.parameters, "{what}");
    let named = settings.both.then(|| {
        let wanted: std::collections::HashSet<_> = wanted.iter().collect();
        (0..keywords.len()).filter(|&i| wanted.contains(&keywords[i])).collect::<Vec<_>>()
    });
    assert_eq!(answered.found, named, "{what}");
    (answered, sent)
}

/// Values of the lengths 0 to `most`, in no order; bytes of all kinds.
fn values(n: usize, most: usize) -> Vec<Bytes> {
    let mut rng = Prg::new(Block::new(n as u128));
    (0..n)
        .map(|i| {
            let mut value = vec![0; (i * 7 + 3) % (most + 1)];
            rng.fill_bytes(&mut value);
            value
        })
        .collect()
}

#[test]
fn awkward_sizes() {
    let sizes = [0, 1, 2, 3, 7, 31, 127, 128, 129, 509, 1023, 1024, 1025];
    for (i, &n) in sizes.iter().enumerate() {
        for (j, m) in
            [n, sizes[(i + 4) % sizes.len()], sizes[(i + 9) % sizes.len()]].into_iter().enumerate()
        {
            let settings = Settings { variant: Variant::ALL[(i + j) % 2], both: (i + j) % 3 != 0 };
            let (keywords, wanted) = (items(0, n), items(n / 3, n / 3 + m));
            check(&keywords, &values(n, 40), &wanted, settings);
        }
    }
}

/// More keywords than are sent at a time.
#[test]
fn more_than_one_piece() {
    for variant in Variant::ALL {
        let settings = Settings { variant, both: true };
        for n in [8191, 8192, 8193, 20_011] {
            check(&items(0, n), &values(n, 9), &items(n - 50, n + 150), settings);
        }
    }
    check(&items(0, 40), &values(40, 9), &items(20, 20_031), Settings::default());
}

#[test]
fn one_kind_of_value_at_a_time() {
    let kinds: [Bytes; 7] = [
        vec![],
        vec![0],
        vec![0; MAX_VALUE],
        vec![0xff; MAX_VALUE],
        b"a\0b\0\0".to_vec(),
        b"\0\0\0".to_vec(),
        "\u{feff}ä\r\n\"'".into(),
    ];
    let keywords = items(0, 20);
    for (i, kind) in kinds.iter().enumerate() {
        let settings = Settings { variant: Variant::ALL[i % 2], both: i % 3 == 0 };
        check(&keywords, &vec![kind.clone(); 20], &items(10, 30), settings);
    }
    // All of them, each with its own keyword, the empty keyword included.
    let mut keywords = items(0, kinds.len());
    keywords[3].clear();
    for variant in Variant::ALL {
        let settings = Settings { variant, both: true };
        check(&keywords, &kinds, &keywords, settings);
    }
}

/// All lengths that a value can have, including those around the maximum.
#[test]
fn every_length() {
    let n = MAX_VALUE + 1;
    let values: Vec<_> = (0..n).map(|i| vec![i as u8; i]).collect();
    check(&items(0, n), &values, &items(0, n), Settings::default());
}

#[test]
fn a_value_that_is_too_long_is_refused() {
    for (item, bytes) in [(0, MAX_VALUE + 1), (19, MAX_VALUE + 1), (7, 100_000)] {
        let mut values = vec![b"secret".to_vec(); 20];
        values[item] = vec![b's'; bytes];
        let (left, right) = Channel::memory_pair();
        let settings = Settings::default();
        let ((answered, _), (found, _)) = run_two_channels(
            left,
            right,
            |channel| answer(&items(0, 20), &values, settings, channel),
            |channel| search(&items(0, 20), settings, channel),
        );
        let error = answered.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "the value of item {item} (counted from 0) has {bytes} bytes, but at most 16384 are supported: shorten it"
            )
        );
        assert!(!format!("{error:?}").contains("ss"));
        assert!(matches!(found, Err(Error::Channel(_))));
    }
}

#[test]
fn a_keyword_that_is_there_twice_is_refused() {
    let mut twice = items(0, 30);
    twice.push(twice[4].clone());
    let once = items(0, 30);
    for (keywords, wanted) in [(&twice, &once), (&once, &twice)] {
        let (left, right) = Channel::memory_pair();
        let settings = Settings::default();
        let ((answered, _), (found, _)) = run_two_channels(
            left,
            right,
            |channel| answer(keywords, &values(keywords.len(), 5), settings, channel),
            |channel| search(wanted, settings, channel),
        );
        let (ours, theirs) = (answered.err().unwrap(), found.err().unwrap());
        let expected = |error: &Error| matches!(error, Error::Duplicate { first: 4, second: 30 });
        assert_eq!(expected(&ours), keywords.len() == 31);
        assert_eq!(expected(&theirs), wanted.len() == 31);
    }
}

#[test]
#[should_panic(expected = "a value for each keyword")]
fn as_many_values_as_keywords() {
    let settings = Settings::default();
    let _ = run_two_parties_with_stats(
        |channel| answer(&items(0, 3), &values(2, 5), settings, channel),
        |channel| search(&items(0, 3), settings, channel),
    );
}

/// The cost is as stated in the module documentation: as set intersection, and from the sender also
/// 16 bytes for each output, and for each keyword the length of the longest value plus 2 bytes.
#[test]
fn bytes() {
    let ((_, setup), _) = run_two_parties_with_stats(
        |channel| Sender::setup(SESSION, Prg::new(Block::new(1)), channel).map(|_| ()),
        |channel| Receiver::setup(SESSION, Prg::new(Block::new(2)), channel).map(|_| ()),
    );
    for variant in Variant::ALL {
        for (n, m, longest, both) in [
            (0, 0, 0, true),
            (5, 0, 3, false),
            (0, 5, 0, true),
            (1, 1, 0, true),
            (1000, 3, 1024, false),
            (999, 2000, 17, true),
            (8193, 100, 5, true),
        ] {
            let settings = Settings { variant, both };
            let mut values = vec![Vec::new(); n];
            if let Some(value) = values.last_mut() {
                value.resize(longest, 1);
            }
            let (answered, whole) = check(&items(0, n), &values, &items(0, m), settings);
            let parameters = answered.parameters;
            let something = u64::from(n > 0 && m > 0);
            let more = 16 * parameters.evaluations() + (2 + longest as u64) * n as u64;
            assert_eq!(
                whole.bytes_sent - setup.bytes_sent,
                parameters.tag_bytes() + something * more + 112,
                "{n} {m} {variant}"
            );
            let shared = if both { n.div_ceil(8) as u64 } else { 0 };
            assert_eq!(
                whole.bytes_received - setup.bytes_received,
                parameters.row_bytes() + 112 + something * (1 + shared),
                "{n} {m} {variant}"
            );
        }
    }
}

/// The traffic depends on the values only through the length of the longest.
#[test]
fn the_traffic_tells_only_the_longest() {
    let (keywords, wanted) = (items(0, 50), items(40, 60));
    let mut long_first = vec![Vec::new(); 50];
    long_first[0] = vec![1; 100];
    let all_long = vec![vec![2; 100]; 50];
    let settings = Settings::default();
    let (_, first) = check(&keywords, &long_first, &wanted, settings);
    let (_, second) = check(&keywords, &all_long, &wanted, settings);
    assert_eq!(first, second);
}

#[test]
fn debug_shows_no_value_and_no_keyword() {
    let (keywords, values) = (vec![b"keyword".to_vec()], vec![b"SECRET".to_vec()]);
    let settings = Settings { both: true, ..Settings::default() };
    let ((answered, _), (found, _)) = run_two_parties_with_stats(
        |channel| answer(&keywords, &values, settings, channel).unwrap(),
        |channel| search(&keywords, settings, channel).unwrap(),
    );
    assert_eq!(format!("{found:?}"), "LookupReceiverResult(1 values, ..)");
    assert_eq!(found.values, values);
    for text in [format!("{answered:?}"), format!("{found:#?}")] {
        for secret in ["SECRET", "keyword", "83, 69", "107, 101"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn any_tables(
        table in prop::collection::hash_map(
            prop::collection::vec(0u8..3, 0..5),
            prop::collection::vec(any::<u8>(), 0..60),
            0..200,
        ),
        wanted in prop::collection::hash_set(prop::collection::vec(0u8..3, 0..5), 0..200),
        both: bool,
        paper: bool,
    ) {
        let variant = if paper { Variant::KkrtPaper } else { Variant::Kkrt };
        let (keywords, values): (Vec<_>, Vec<_>) = table.into_iter().unzip();
        let wanted: Vec<_> = wanted.into_iter().collect();
        check(&keywords, &values, &wanted, Settings { variant, both });
    }
}
