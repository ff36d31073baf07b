//! Every protocol, with each of its results, against plain sets and a plain map; the traffic is
//! that of the parameters.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use volery_channel::{Role, run_two_parties_with_stats, run_two_unchecked};
use volery_pcg::Security;
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::Error;
use volery_psi::lookup::MAX_VALUE;
use volery_psi::matching::{Output, Task};

use crate::common::{Kind, items};

/// Values of the lengths 0 to `most`, in no order; bytes of all kinds.
fn values(n: usize, most: usize) -> Vec<Vec<u8>> {
    let mut rng = Prg::new(Block::new(n as u128));
    let value = |i: usize| {
        let mut value = vec![0; (i * 7 + 3) % (most + 1)];
        rng.fill_bytes(&mut value);
        value
    };
    (0..n).map(value).collect()
}

/// The numbers of the items of `ours` that are in `theirs`.
fn common(ours: &[Vec<u8>], theirs: &[Vec<u8>]) -> Vec<usize> {
    let theirs: HashSet<_> = theirs.iter().collect();
    (0..ours.len()).filter(|&i| theirs.contains(&ours[i])).collect()
}

/// Compares a run with the plain sets, and its traffic with the parameters.
fn check(kind: Kind, ours: &[Vec<u8>], theirs: &[Vec<u8>], values: &[Vec<u8>]) {
    let Kind { protocol, output } = kind;
    let ((sent, stats), (received, _)) = run_two_parties_with_stats(
        |channel| kind.run(Role::Sender, &ours, &values, channel).unwrap(),
        |channel| kind.run(Role::Receiver, &theirs, &values, channel).unwrap(),
    );
    let (n, m) = (ours.len(), theirs.len());
    let what = format!("{n} x {m}, {kind:?}");
    let longest = values.iter().map(Vec::len).max().unwrap_or(0);
    match output {
        Output::Items { both, search } => {
            let expected = common(theirs, ours);
            let map: HashMap<_, _> = ours.iter().zip(values).collect();
            let found = expected.iter().filter(|_| search).map(|&i| map[&theirs[i]]);
            assert!(found.eq(&received.values), "{what}");
            assert_eq!(received.common, Some(expected), "{what}");
            assert_eq!(sent.common, both.then(|| common(ours, theirs)), "{what}");
            let longest = search.then_some(longest);
            assert_eq!((sent.longest, received.longest), (longest, longest), "{what}");
        }
        Output::Totals(totals) => {
            let count = Some(common(ours, theirs).len() as u64);
            let of = |role| totals.counts.filter(|counts| *counts == role).and(count);
            let counts = (sent.count, received.count);
            assert_eq!(counts, (of(Role::Sender), of(Role::Receiver)), "{what}");
        }
    }
    let task = Task {
        sender_items: n as u64,
        receiver_items: m as u64,
        security: protocol.security(),
        output,
        with_workers: false,
    };
    let parameters = protocol.parameters(&task, 1);
    for outcome in [&sent, &received] {
        assert_eq!(outcome.parameters.to_string(), parameters.to_string(), "{what}");
    }
    let [with_values, without] = [longest, 0].map(|bytes| parameters.traffic(Some(bytes))[2]);
    let more = if kind.searches() { with_values - without } else { 0 };
    let predicted = protocol.cost(&task).bytes + more;
    let bytes = stats.bytes_sent + stats.bytes_received;
    // The model of correlations is rough for few of them.
    let exact = ["dh", "kkrt", "kkrt-paper"].contains(&protocol.name());
    let [least, most] = match n.min(m) {
        // With the total that is opened.
        0 => [0, predicted + 8],
        _ if exact => [predicted; 2],
        1..10_000 => [0, predicted + predicted / 50],
        _ => [predicted - predicted / 10, predicted + predicted / 20],
    };
    assert!((least..=most).contains(&bytes), "{what}: {bytes}, {predicted}");
    let stats = stats - sent.setup;
    let messages = (stats.messages_sent, stats.messages_received);
    match (protocol.name(), output) {
        ("kkrt" | "kkrt-paper", Output::Items { search: false, .. }) => {
            assert_eq!(messages, (2, 3), "{what}");
        }
        ("dh", Output::Items { .. }) if n > 0 && m > 0 => assert_eq!(messages, (4, 3), "{what}"),
        ("dh", Output::Totals(totals)) if n > 0 && m > 0 => {
            assert!(totals.counts != Some(Role::Receiver) || messages == (3, 2), "{what}");
        }
        _ => {}
    }
}

/// The sets `0..n` and `from..from + m`, with values of up to 40 bytes.
fn check_sizes(kind: Kind, [n, from, m]: [usize; 3]) {
    if n.max(m) as u64 <= kind.protocol.most_items() {
        check(kind, &items(0, n), &items(from, from + m), &values(n, 40));
    }
}

#[test]
fn disjoint_equal_subset_empty_large() {
    // Of the large sizes, which take longer, a kind has every other one: one set that is a thousand
    // times larger, and sizes that went wrong elsewhere.
    let large =
        [[20_000, 19_990, 20], [16_384, 8191, 16_385], [20, 10, 20_000], [6789, 3000, 7890]];
    for (place, kind) in Kind::all().into_iter().enumerate() {
        for sizes in [
            [500, 500, 600],
            [500, 0, 500],
            [500, 100, 100],
            [100, 0, 500],
            [0, 0, 10],
            [10, 0, 0],
            [0, 0, 0],
            // Enough items to overflow a table sized for equal parts.
            [9000, 0, 0],
            [0, 0, 9000],
            large[place % 2],
            large[2 + place % 2],
        ] {
            check_sizes(kind, sizes);
        }
    }
}

/// Values of one kind, and all kinds together, each with its own keyword, the empty one included.
#[test]
fn values_of_all_kinds() {
    let kinds: [Vec<u8>; 7] = [
        vec![],
        vec![0],
        vec![0; MAX_VALUE],
        vec![0xff; MAX_VALUE],
        b"a\0b\0\0".to_vec(),
        b"\0\0\0".to_vec(),
        "\u{feff}ä\r\n\"'".into(),
    ];
    for kind in Kind::all().into_iter().filter(|kind| kind.searches()) {
        for value in &kinds {
            check(kind, &items(0, 20), &items(10, 30), &vec![value.clone(); 20]);
        }
        let mut keywords = items(0, kinds.len());
        keywords[3].clear();
        check(kind, &keywords, &keywords, &kinds);
    }
}

/// Both ways, with the setup: the figures of docs/performance.md.
#[test]
fn bytes_an_item_at_2_to_the_20() {
    let items: Vec<_> = (0..3_u32 << 19).map(u32::to_le_bytes).collect();
    let (ours, theirs) = (items[..1 << 20].to_vec(), items[1 << 19..].to_vec());
    for (name, security, most) in [
        ("vole", Security::SemiHonest, 27.0),
        ("vole-low", Security::SemiHonest, 19.5),
        ("vole", Security::Malicious, 33.0),
    ] {
        let kind = Kind::named(name, security, false);
        let ((_, stats), (received, _)) = run_two_parties_with_stats(
            |channel| kind.run(Role::Sender, &ours, &ours, channel).unwrap(),
            |channel| kind.run(Role::Receiver, &theirs, &theirs, channel).unwrap(),
        );
        assert!(received.common.unwrap().into_iter().eq(0..1 << 19));
        let each = (stats.bytes_sent + stats.bytes_received) as f64 / f64::from(1 << 20);
        assert!((most - 0.6..=most).contains(&each), "{name}, {security}: {each}");
    }
}

/// The error of a party that gives this input, whose peer fails too.
fn refused(kind: Kind, role: Role, [ours, theirs]: [&[Vec<u8>]; 2], values: &[Vec<u8>]) -> Error {
    let (sent, received) = run_two_unchecked(
        |channel| kind.run(Role::Sender, &ours, &values, channel).err(),
        |channel| kind.run(Role::Receiver, &theirs, &values, channel).err(),
    );
    let (own, other) = match role {
        Role::Sender => (sent, received),
        Role::Receiver => (received, sent),
    };
    assert!(matches!(other, Some(Error::Channel(_))), "{kind:?}: {other:?}");
    own.unwrap()
}

#[test]
fn a_duplicate_is_an_error_on_either_side() {
    let once = items(0, 100);
    let mut twice = once.clone();
    twice.push(twice[4].clone());
    for kind in Kind::all() {
        for (role, sets) in [(Role::Sender, [&twice[..], &once]), (Role::Receiver, [&once, &twice])]
        {
            let error = refused(kind, role, sets, &values(sets[0].len(), 5));
            let expected = matches!(error, Error::Duplicate { first: 4, second: 100 });
            assert!(expected, "{error}, {kind:?}");
        }
    }
}

#[test]
fn a_value_that_is_too_long_is_refused() {
    let keywords = items(0, 20);
    for kind in Kind::all().into_iter().filter(|kind| kind.searches()) {
        for (item, bytes) in [(0, MAX_VALUE + 1), (7, 100_000)] {
            let mut values = vec![b"secret".to_vec(); 20];
            values[item] = vec![b's'; bytes];
            let error = refused(kind, Role::Sender, [&keywords, &keywords], &values);
            assert_eq!(
                error.to_string(),
                format!(
                    "the value of item {item} (counted from 0) has {bytes} bytes, but at most \
                     16384 are supported: shorten it"
                )
            );
            assert!(!format!("{error:?}").contains("ss"));
        }
    }
}

/// The traffic depends on the values only through the length of the longest, and on the items not
/// at all.
#[test]
fn the_traffic_tells_only_the_longest() {
    let theirs = items(40, 60);
    let long: Vec<_> = items(1000, 1050).iter().map(|item| item.repeat(50)).collect();
    let mut long_first = vec![Vec::new(); 50];
    long_first[0] = vec![1; 100];
    for kind in Kind::all() {
        let traffic = |ours: &[Vec<u8>], values: &[Vec<u8>]| {
            let ((_, sent), (_, received)) = run_two_parties_with_stats(
                |channel| kind.run(Role::Sender, &ours, &values, channel).unwrap(),
                |channel| kind.run(Role::Receiver, &theirs, &values, channel).unwrap(),
            );
            (sent, received)
        };
        let first = traffic(&items(0, 50), &long_first);
        assert_eq!(first, traffic(&long, &vec![vec![2; 100]; 50]), "{kind:?}");
    }
}

/// The cases of [`any_sets`], and the binary logarithm of the most items: `VOLERY_SOAK_SETS` makes
/// both more.
fn cases() -> (u32, u32) {
    let more = std::env::var("VOLERY_SOAK_SETS");
    more.map_or((40, 8), |cases| (cases.parse().unwrap(), 17))
}

/// As many small sets as large ones, powers of two among them.
fn size() -> impl Strategy<Value = usize> {
    let around = |log: u32| prop_oneof![0..2_usize << log, (1_usize << log) - 1..=1 << log];
    (0..=cases().1).prop_flat_map(around)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases().0))]

    #[test]
    fn any_sets(
        kind in prop::sample::select(Kind::all()),
        n in size(),
        m in size(),
        overlap in prop_oneof![Just(0.0), Just(1.0), 0.0..1.0],
        longest in 0..64_usize,
    ) {
        let most = kind.protocol.most_items() as usize;
        let (n, m) = (n.min(most), m.min(most));
        check(kind, &items(0, n), &items((n as f64 * overlap) as usize, m), &values(n, longest));
    }

    /// Items that begin alike, in no order.
    #[test]
    fn any_items(
        kind in prop::sample::select(Kind::all()),
        ours in prop::collection::hash_set(prop::collection::vec(0_u8..3, 0..6), 0..300),
        theirs in prop::collection::hash_set(prop::collection::vec(0_u8..3, 0..6), 0..300),
    ) {
        let [ours, theirs] = [ours, theirs].map(|set| set.into_iter().collect::<Vec<_>>());
        check(kind, &ours, &theirs, &values(ours.len(), 60));
    }
}
