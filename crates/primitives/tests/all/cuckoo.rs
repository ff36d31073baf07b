//! Cuckoo tables: the hash functions, the placement, and how often it fails.

use proptest::prelude::*;
use volery_primitives::Block;
use volery_primitives::cuckoo::{Full, Hasher, Table, bins_for};
use volery_primitives::prg::Prg;

/// A smaller share of the items under Miri, which checks memory accesses and not statistics.
const SMALLER: usize = if cfg!(miri) { 250 } else { 1 };

fn items(seed: u128, n: usize) -> Vec<Block> {
    let mut items = vec![Block::ZERO; n];
    Prg::new(Block::new(seed)).fill_blocks(&mut items);
    items
}

/// Checks that every item not in `unplaced` is in exactly one of its bins, by the function the
/// table reports.
fn assert_placed(hasher: &Hasher, items: &[Block], table: &Table, unplaced: &[usize]) {
    let mut times = vec![0; items.len()];
    for bin in 0..table.bin_count() {
        let Some(item) = table.bin(bin) else {
            assert_eq!(table.function(bin), None);
            continue;
        };
        let function = table.function(bin).expect("a full bin has a function");
        assert_eq!(hasher.bins(items[item])[function] as usize, bin);
        times[item] += 1;
    }
    for (item, times) in times.into_iter().enumerate() {
        assert_eq!(times, usize::from(!unplaced.contains(&item)), "item {item}");
    }
}

/// Size of a largest placement, by the textbook's depth-first augmenting paths.
fn largest_placement(bins: &[[u32; 3]], bin_count: usize) -> usize {
    fn augment(
        item: usize,
        bins: &[[u32; 3]],
        owner: &mut [Option<usize>],
        seen: &mut [bool],
    ) -> bool {
        for bin in bins[item].map(|bin| bin as usize) {
            if !std::mem::replace(&mut seen[bin], true)
                && owner[bin].is_none_or(|other| augment(other, bins, owner, seen))
            {
                owner[bin] = Some(item);
                return true;
            }
        }
        false
    }
    let mut owner = vec![None; bin_count];
    (0..bins.len())
        .filter(|&item| augment(item, bins, &mut owner, &mut vec![false; bin_count]))
        .count()
}

#[test]
fn bins_are_distinct_in_range_and_evenly_used() {
    for bins in [3usize, 4, 5, 7, 64, 1 << (usize::BITS / 2)] {
        let hasher = Hasher::new(Block::new(3), bins);
        for item in items(1, 500) {
            let [a, b, c] = hasher.bins(item);
            assert!(a != b && b != c && a != c);
            assert!([a, b, c].iter().all(|&bin| (bin as usize) < bins));
        }
    }
    // All 60 ordered triples of 5 bins; where 500 are expected in each, the standard deviation is
    // 22.
    const ITEMS: usize = if cfg!(miri) { 900 } else { 30_000 };
    let hasher = Hasher::new(Block::new(3), 5);
    let mut counts = [0; 125];
    let mut out = vec![[0; 3]; ITEMS];
    hasher.bins_slice(&items(2, ITEMS), &mut out);
    for [a, b, c] in out {
        counts[(a + 5 * b + 25 * c) as usize] += 1;
    }
    let used: Vec<i32> = counts.into_iter().filter(|&count| count > 0).collect();
    assert_eq!(used.len(), 60);
    let expected = ITEMS as f64 / 60.0;
    let far = |count: &i32| (f64::from(*count) - expected).abs() > 5.4 * expected.sqrt();
    assert!(!used.iter().any(far), "{used:?}");
}

#[test]
fn slices_of_bins_agree_with_single_items() {
    let hasher = Hasher::new(Block::new(9), 1000);
    for n in [0, 1, 31, 32, 33, 100] {
        let items = items(5, n);
        let mut out = vec![[0; 3]; n];
        hasher.bins_slice(&items, &mut out);
        assert!(items.iter().zip(&out).all(|(&item, &bins)| hasher.bins(item) == bins));
    }
}

proptest! {
    /// Tables from nearly empty to hopelessly full.
    #[test]
    fn nothing_is_left_over_that_could_be_placed(seed: u128, n in 0usize..120, bins in 3usize..100) {
        let hasher = Hasher::new(Block::new(seed), bins);
        let items = items(!seed, n);
        let mut bins = vec![[0; 3]; n];
        hasher.bins_slice(&items, &mut bins);
        let placed = largest_placement(&bins, hasher.bin_count());
        match Table::build(&hasher, &items) {
            Ok(table) => {
                assert_placed(&hasher, &items, &table, &[]);
                prop_assert_eq!(placed, n);
            }
            Err(full) => {
                assert_placed(&hasher, &items, &full.table, &full.unplaced);
                prop_assert_eq!(placed, n - full.unplaced.len());
                prop_assert!(full.unplaced.is_sorted());
            }
        }
    }
}

/// Far more items than bins: failing searches must not visit every bin again each time.
#[test]
fn an_overfull_table_is_refused_in_good_time() {
    let hasher = Hasher::new(Block::new(1), 50_000 / SMALLER);
    let items = items(1, 200_000 / SMALLER);
    let full = Table::build(&hasher, &items).expect_err("too many items");
    assert_eq!(full.unplaced.len(), 150_000 / SMALLER);
}

#[test]
fn a_given_set_of_four_items_in_three_bins_fails() {
    let hasher = Hasher::new(Block::new(1), 3);
    let full = Table::build(&hasher, &items(1, 4)).expect_err("three bins hold three items");
    assert_eq!(full.unplaced, [3]);
    assert_eq!(full.to_string(), "cuckoo table: 1 items fit in none of their bins");
}

/// At measurable rates the tables fail no more often than `bins_for` claims.
#[test]
fn failures_are_as_rare_as_claimed() {
    for (n, eta, trials) in [
        (4, 5, 20_000),
        (8, 6, 20_000),
        (30, 7, 20_000),
        (100, 7, 10_000),
        (300, 7, 4000),
        (511, 6, 2000),
        (512, 6, 2000),
        (2000, 6, 600),
    ] {
        let bins = bins_for(n, eta);
        let trials = trials / (SMALLER * SMALLER) as u128;
        let failures = (0..trials)
            .filter(|&trial| {
                let hasher = Hasher::new(Block::new(trial), bins);
                Table::build(&hasher, &items(trial << 64 | 1, n)).is_err()
            })
            .count() as f64;
        let claimed = trials as f64 * (-f64::from(eta)).exp2();
        // Four standard deviations.
        assert!(
            failures <= claimed + 4.0 * claimed.sqrt(),
            "{n} items in {bins} bins: {failures} failures of {trials}, {claimed} claimed"
        );
    }
}

/// Bins without a hasher, which may coincide: as many items are placed as possible, each in one of
/// its bins.
#[test]
fn bins_that_coincide() {
    let mut prg = Prg::new(Block::new(8));
    for (n, bin_count) in [(0, 0), (0, 1), (1, 1), (2, 1), (2, 2), (7, 5), (100, 97), (257, 300)] {
        for _ in 0..20 {
            let bins: Vec<[u32; 3]> =
                (0..n).map(|_| [0; 3].map(|_: u32| prg.below(bin_count as u64) as u32)).collect();
            let (table, unplaced) = match Table::build_from(&bins, bin_count) {
                Ok(table) => (table, Vec::new()),
                Err(full) => (full.table, full.unplaced),
            };
            let mut times = vec![0; n];
            for bin in 0..bin_count {
                if let (Some(item), Some(function)) = (table.bin(bin), table.function(bin)) {
                    assert_eq!(bins[item][function] as usize, bin);
                    times[item] += 1;
                }
            }
            for (item, times) in times.into_iter().enumerate() {
                assert_eq!(times, usize::from(!unplaced.contains(&item)), "item {item}");
            }
            let placed = largest_placement(&bins, bin_count);
            assert_eq!(unplaced.len(), n - placed, "{n} items in {bin_count} bins");
        }
    }
}

#[test]
#[should_panic(expected = "below the number of bins")]
fn bins_outside_the_table() {
    let _ = Table::build_from(&[[0, 1, 3]], 3);
}

/// Large tables, built by walks, with and without space for all items: no unplaced item could have
/// been placed.
#[test]
fn large_tables_leave_over_as_few_as_possible() {
    let n = 40_000 / if cfg!(miri) { 500 } else { 1 };
    for (bin_count, full) in [(bins_for(n, 40), false), (n * 11 / 10, false), (n - n / 20, true)] {
        let hasher = Hasher::new(Block::new(12), bin_count);
        let items = items(n as u128, n);
        let (table, unplaced) = match Table::build(&hasher, &items) {
            Ok(table) => (table, Vec::new()),
            Err(Full { unplaced, table }) => (table, unplaced),
        };
        assert_eq!(!unplaced.is_empty(), full, "{bin_count} bins");
        assert!(unplaced.is_sorted());
        assert_placed(&hasher, &items, &table, &unplaced);
        // Berge: a placement is a largest one if no chain of moves leads from an item left over to
        // an empty bin.
        let mut seen = vec![false; bin_count];
        let mut reached = unplaced;
        while let Some(item) = reached.pop() {
            for bin in hasher.bins(items[item]).map(|bin| bin as usize) {
                if !std::mem::replace(&mut seen[bin], true) {
                    reached.push(table.bin(bin).expect("no empty bin can be reached"));
                }
            }
        }
    }
}
