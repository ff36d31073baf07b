//! The number of threads of a party changes only the time: not its result or its messages.

use volery_channel::{Channel, Role, run_two_parties};
use volery_pcg::Security;
use volery_psi::matching::Output;

use crate::common::Kind;

/// More than one group of pieces for each of several threads, and not a round number.
const LARGE: [usize; 3] = [141_007, 150_011, 60_000];

fn items(from: usize, count: usize) -> Vec<[u8; 8]> {
    let item = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (from..from + count).map(item).collect()
}

/// Runs with several numbers of threads, of which the first is compared with the others.
fn compare(kind: Kind, [n, m, common]: [usize; 3], threads: &[[usize; 2]]) {
    let sets = [items(0, n), items(n - common, m)];
    let values: Vec<_> = sets[0].iter().map(|item| item[..5].to_vec()).collect();
    let run = |threads: [usize; 2]| {
        let party = |role: Role, channel: &mut Channel| {
            channel.record_transcript();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads[role as usize]);
            let run = || kind.run(role, &sets[role as usize], &values, channel).unwrap();
            let outcome = pool.build().unwrap().install(run);
            (outcome.common, outcome.values, channel.transcript().unwrap().sent)
        };
        run_two_parties(
            |channel| party(Role::Sender, channel),
            |channel| party(Role::Receiver, channel),
        )
    };
    let first = run(threads[0]);
    assert_eq!(first.1.0, Some((0..common).collect()), "{kind:?}");
    for threads in &threads[1..] {
        assert!(run(*threads) == first, "{kind:?} {threads:?}");
    }
}

#[test]
fn threads_make_no_difference() {
    let semi_honest = |name, both| Kind::named(name, Security::SemiHonest, both);
    let kkrt = semi_honest("kkrt", true);
    let search = Kind { output: Output::Items { both: true, search: true }, ..kkrt };
    for kind in [kkrt, semi_honest("kkrt-paper", false), search] {
        compare(kind, LARGE, &[[1, 1], [2, 2], [3, 1], [1, 8], [8, 3]]);
    }
    for kind in [Kind::named("vole", Security::Malicious, false), semi_honest("vole-low", true)] {
        compare(kind, LARGE, &[[1, 1], [3, 1], [2, 8]]);
    }
    // Sets with less work than there are threads.
    for [n, m] in [[1, 1], [5, 300], [9000, 3], [9000, 9000], [20_000, 17_000]] {
        compare(semi_honest("kkrt", false), [n, m, 1], &[[1, 1], [8, 3], [3, 20]]);
    }
}
