#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::HashMap;

use proptest::prelude::*;
use volery_channel::tamper::Tampered;
use volery_channel::{Stats, run_two_parties_tcp, run_two_parties_with_stats, run_two_unchecked};

use super::*;
use crate::failure::Scale;
use crate::fixtures::rng;

const SESSION: SessionId = SessionId::from_bytes([3; 32]);

/// A set with columns of values.
#[derive(Clone, Default)]
struct Data {
    items: Vec<String>,
    columns: Vec<Vec<u64>>,
}

impl Data {
    /// Items `first`, `first + step`, .., with values from all of `u64`, the bounds among them.
    fn new(first: usize, step: usize, count: usize, columns: usize) -> Self {
        let mut random = Prg::new(Block::new((first + 31 * count) as u128));
        let value = |_| match random.below(4) {
            0 => u64::MAX,
            1 => 0,
            _ => random.next_u64(),
        };
        Self {
            items: (0..count).map(|i| format!("{}", first + i * step)).collect(),
            columns: vec![(0..count).map(value).collect(); columns],
        }
    }

    fn columns(&self) -> Vec<&[u64]> {
        self.columns.iter().map(|column| &column[..]).collect()
    }
}

/// A party after its setup.
fn sender(data: &Data, settings: Settings, channel: &mut Channel) -> Sender {
    let own = (SESSION, rng(Role::Sender));
    let columns = data.columns();
    Sender::setup(&data.items, &columns, settings, own, &mut (), channel).unwrap()
}

fn receiver(data: &Data, settings: Settings, channel: &mut Channel) -> Receiver {
    let own = (SESSION, rng(Role::Receiver));
    let columns = data.columns();
    Receiver::setup(&data.items, &columns, settings, own, &mut (), channel).unwrap()
}

/// All slices of a party in a row.
#[derive(Default)]
struct Shares {
    bits: Vec<bool>,
    payload: Vec<Vec<u64>>,
    weights: Vec<Vec<u64>>,
    items: Vec<Option<usize>>,
    opened: Option<(bool, bool, Vec<u64>)>,
    products: Vec<u64>,
    selected: Vec<u64>,
}

/// Whether the receiver selects an item, whose number this is.
fn selects(item: usize) -> bool {
    item % 3 != 1
}

impl Shares {
    fn take(&mut self, slice: &Slice) {
        let count = slice.bins.len();
        assert_eq!(slice.bins.start, self.bits.len());
        self.bits.extend(bits::unpack(&slice.bits, count));
        for (all, new) in [(&mut self.payload, &slice.payload), (&mut self.weights, &slice.weights)]
        {
            all.resize(new.len(), Vec::new());
            for (all, new) in all.iter_mut().zip(new) {
                assert_eq!(new.len(), count);
                all.extend_from_slice(new);
            }
        }
    }

    /// The shares that are opened: of the last column of weights, or nothing.
    fn share(&self) -> u64 {
        self.weights.last().map_or(0, |column| Slice::sum(column))
    }
}

/// The settings of a run beside the slices.
#[derive(Clone, Copy)]
struct Case {
    settings: Settings,
    scale: Scale,
    least: u64,
}

impl Case {
    /// Slices of the usual size, and nothing to compare with.
    const fn of(settings: Settings) -> Self {
        Self { settings, scale: Scale::RUN, least: 0 }
    }

    fn parameters(&self, sizes: [u64; 2]) -> Parameters {
        Parameters::with_scale(self.scale, self.settings, sizes)
    }
}

/// Slices of about so many bins.
const fn sliced(slice: usize) -> Scale {
    Scale { slice, ..Scale::RUN }
}

fn send(case: Case, data: &Data, channel: &mut Channel) -> Result<Shares> {
    let randomness = (SESSION, rng(Role::Sender));
    let own = (&data.items[..], &data.columns()[..]);
    let of = |sizes| case.parameters(sizes);
    let mut sender = Sender::with(of, own, case.settings, randomness, &mut (), channel)?;
    let mut all = Shares::default();
    while let Some(slice) = sender.next(channel)? {
        all.take(&slice);
        if case.settings.products > 0 {
            let products = sender.multiply(&slice.payload[0], channel)?;
            all.products.extend_from_slice(&products);
        }
        if case.settings.selections > 0 {
            let selected = sender.select(&slice.payload[0], channel)?;
            all.selected.extend_from_slice(&selected);
        }
    }
    assert!(sender.next(channel)?.is_none());
    let share = all.share();
    let enough = sender.at_least(share, case.least, channel)?;
    let more = sender.at_least(share, case.least + 1, channel)?;
    assert_eq!(sender.open(&[share], Recipient::Receiver, channel)?, None);
    let sums = sender.open(&[share, 7], Recipient::Both, channel)?.unwrap();
    assert_eq!(sender.open(&[3], Recipient::Sender, channel)?, Some(vec![7]));
    all.opened = Some((enough, more, sums));
    Ok(all)
}

fn receive(case: Case, data: &Data, channel: &mut Channel) -> Result<Shares> {
    let randomness = (SESSION, rng(Role::Receiver));
    let own = (&data.items[..], &data.columns()[..]);
    let of = |sizes| case.parameters(sizes);
    let mut receiver = Receiver::with(of, own, case.settings, randomness, &mut (), channel)?;
    let mut all = Shares::default();
    while let Some(slice) = receiver.next(channel)? {
        all.take(&slice);
        let items: Vec<_> = slice.bins.clone().map(|bin| receiver.item(bin)).collect();
        all.items.extend_from_slice(&items);
        if case.settings.products > 0 {
            let weight = |item: Option<usize>| item.map_or(0, |item| data.columns[0][item]);
            let weights: Vec<u64> = items.iter().copied().map(weight).collect();
            let products = receiver.multiply(&weights, channel)?;
            for ((product, weight), share) in products.iter().zip(&weights).zip(&*slice.payload[0])
            {
                all.products.push(product.wrapping_add(weight.wrapping_mul(*share)));
            }
        }
        if case.settings.selections > 0 {
            let chosen: Vec<_> = items.iter().map(|item| item.is_some_and(selects)).collect();
            let mut chosen = bits::pack(&chosen);
            // Bits that belong to no slot change nothing.
            if let Some(last) = chosen.last_mut() {
                *last |= (0xff_u32 << ((slice.bins.len() - 1) % 8 + 1)) as u8;
            }
            let selected = receiver.select(&chosen, &slice.payload[0], channel)?;
            all.selected.extend_from_slice(&selected);
        }
    }
    assert!(receiver.next(channel)?.is_none());
    let share = all.share();
    let enough = receiver.at_least(share, case.least, channel)?;
    let more = receiver.at_least(share, case.least + 1, channel)?;
    let sum = receiver.open(&[share], Recipient::Receiver, channel)?.unwrap();
    let sums = receiver.open(&[share, 8], Recipient::Both, channel)?.unwrap();
    assert_eq!(sums, [sum[0], 15]);
    assert_eq!(receiver.open(&[4], Recipient::Sender, channel)?, None);
    all.opened = Some((enough, more, sums));
    Ok(all)
}

/// Compares the shares of both parties with a join of the sets in the clear.
fn assert_join(sent: &Shares, received: &Shares, [y, x]: [&Data; 2], case: Case) {
    let table: HashMap<_, _> = (0..).zip(&y.items).map(|(i, item)| (item, i)).collect();
    let mut seen = vec![false; x.items.len()];
    let mut common = 0;
    for (bin, item) in received.items.iter().enumerate() {
        let theirs = item.and_then(|item| table.get(&x.items[item]).copied());
        if let Some(item) = *item {
            assert!(!std::mem::replace(&mut seen[item], true));
        }
        assert_eq!(sent.bits[bin] ^ received.bits[bin], theirs.is_some(), "bin {bin}");
        let sum = |a: &[Vec<u64>], b: &[Vec<u64>], column: usize| -> u64 {
            a[column][bin].wrapping_add(b[column][bin])
        };
        for (column, values) in y.columns.iter().enumerate() {
            let expected = theirs.map_or(0, |theirs| values[theirs]);
            let found = sum(&sent.payload, &received.payload, column);
            assert_eq!(found, expected, "bin {bin}");
        }
        for (column, weights) in x.columns.iter().enumerate() {
            let expected = theirs.map_or(0, |_| weights[item.unwrap()]);
            let found = sum(&sent.weights, &received.weights, column);
            assert_eq!(found, expected, "bin {bin}");
        }
        if case.settings.products > 0 {
            let product = sent.products[bin].wrapping_add(received.products[bin]);
            let of = |theirs: usize| y.columns[0][theirs].wrapping_mul(x.columns[0][item.unwrap()]);
            assert_eq!(product, theirs.map_or(0, of), "bin {bin}");
        }
        if case.settings.selections > 0 {
            let selected = sent.selected[bin].wrapping_add(received.selected[bin]);
            let theirs = theirs.filter(|_| selects(item.unwrap()));
            let expected = theirs.map_or(0, |theirs| y.columns[0][theirs]);
            assert_eq!(selected, expected, "bin {bin}");
        }
        common += u64::from(theirs.is_some());
    }
    if !received.items.is_empty() {
        assert!(seen.iter().all(|seen| *seen), "each item has a bin");
    }
    // The last column of weights is one of ones where there is one.
    let total = if x.columns.is_empty() { 0 } else { common };
    let opened = (total >= case.least, total > case.least, vec![total, 15]);
    assert_eq!(sent.opened, Some(opened.clone()));
    assert_eq!(received.opened, Some(opened));
}

/// Runs a case over memory; returns the sender's traffic without what follows the slices.
fn run(case: Case, [y, x]: [&Data; 2]) -> (Shares, Shares, Stats) {
    let ((sent, stats), (received, _)) = run_two_parties_with_stats(
        |channel| send(case, y, channel),
        |channel| receive(case, x, channel),
    );
    (sent.unwrap(), received.unwrap(), stats)
}

/// Sets with this overlap, and settings for their columns; the last column of weights is ones.
fn data(
    [n, m]: [usize; 2],
    common: usize,
    [payload, weights]: [usize; 2],
    form: Form,
) -> (Settings, Data, Data) {
    let y = Data::new(0, 1, n, payload);
    let mut x = Data::new(n - common, 1, m, weights);
    if let Some(last) = x.columns.last_mut() {
        last.fill(1);
    }
    let settings = Settings { form, payload, weights, products: 0, selections: 0, parts: 1 };
    (settings, y, x)
}

#[test]
fn shares_are_those_of_a_join() {
    let sizes = [
        ([0, 0], 0),
        ([0, 5], 0),
        ([5, 0], 0),
        ([1, 1], 0),
        ([1, 1], 1),
        ([2, 3], 1),
        ([1, 100], 1),
        ([100, 1], 1),
        ([7, 8], 0),
        ([127, 128], 64),
        ([129, 127], 127),
        ([255, 256], 255),
        ([257, 131], 50),
        ([1009, 997], 500),
    ];
    for (number, (sizes, common)) in sizes.into_iter().enumerate() {
        let columns = [[1, 1], [0, 1], [2, 2], [1, 0], [0, 0]][number % 5];
        let (settings, y, x) = data(sizes, common, columns, Form::Fast);
        let least = (common as u64).saturating_sub(number as u64 % 2);
        let case = Case {
            settings,
            scale: Scale {
                bin: [Scale::RUN.bin, 40, 64][number % 3],
                ..sliced([Scale::RUN.slice, 50, 97][number % 3])
            },
            least,
        };
        let (sent, received, _) = run(case, [&y, &x]);
        assert_join(&sent, &received, [&y, &x], case);
    }
}

#[test]
fn the_low_communication_form() {
    let (settings, y, x) = data([300, 280], 100, [1, 1], Form::Low);
    let case = Case { settings, scale: sliced(200), least: 100 };
    let (sent, received, _) = run(case, [&y, &x]);
    assert_join(&sent, &received, [&y, &x], case);
}

#[test]
fn products_of_values_of_both_parties_over_tcp() {
    let (mut settings, y, x) = data([90, 120], 40, [1, 2], Form::Fast);
    settings.products = 1;
    let case = Case { settings, scale: sliced(100), least: 41 };
    let (sent, received) = run_two_parties_tcp(
        |channel| send(case, &y, channel),
        |channel| receive(case, &x, channel),
    );
    assert_join(&sent.unwrap(), &received.unwrap(), [&y, &x], case);
}

#[test]
fn values_that_the_receiver_selects() {
    for (sizes, common, slice) in [
        ([90, 120], 40, 100),
        ([1, 3], 1, Scale::RUN.slice),
        ([0, 3], 0, Scale::RUN.slice),
        ([501, 257], 250, 67),
    ] {
        let (mut settings, y, x) = data(sizes, common, [1, 1], Form::Fast);
        settings.selections = 1;
        let least = common as u64;
        let case = Case { settings, scale: sliced(slice), least };
        let (sent, received, _) = run(case, [&y, &x]);
        assert_join(&sent, &received, [&y, &x], case);
        // Shares of values that are not selected are masked anew.
        for (bin, share) in sent.selected.iter().enumerate() {
            assert!(*share > u64::from(u32::MAX) && *share != sent.payload[0][bin]);
        }
    }
}

/// Selections and products cost what the parameters say, whatever is selected.
#[test]
fn traffic_of_selections_and_products() {
    const SLOTS: usize = 101;
    let (mut settings, y, x) = data([50, 3000], 20, [1, 1], Form::Fast);
    (settings.selections, settings.products) = (2, 1);
    let bytes = |bit: u8| {
        let ((), received) = volery_channel::run_two_parties(
            |channel| {
                let mut sender = sender(&y, settings, channel);
                let shares = vec![7; sender.parameters().bins];
                let _ = sender.select(&shares[..1], channel).unwrap();
                let _ = sender.multiply(&shares[..1], channel).unwrap();
                let _ = sender.select(&shares[..SLOTS], channel).unwrap();
                let _ = sender.multiply(&shares[..SLOTS], channel).unwrap();
            },
            |channel| {
                let mut receiver = receiver(&x, settings, channel);
                let _ = receiver.select(&[bit], &[9], channel).unwrap();
                let _ = receiver.multiply(&[3], channel).unwrap();
                let mut seen = Vec::new();
                let mut count = |channel: &Channel| {
                    let stats = channel.stats();
                    seen.push(stats.bytes_sent + stats.bytes_received);
                };
                count(channel);
                let bits = [bit; SLOTS.div_ceil(8)];
                let _ = receiver.select(&bits, &[9; SLOTS], channel).unwrap();
                count(channel);
                let _ = receiver.multiply(&[3; SLOTS], channel).unwrap();
                count(channel);
                seen
            },
        );
        received
    };
    let seen = bytes(0);
    // The OTs of so small a run come from an extension alone: two bytes each.
    for (bytes, (predicted, ots)) in [
        (seen[1] - seen[0], (Parameters::selection_bytes(SLOTS), SLOTS)),
        (seen[2] - seen[1], (Parameters::product_bytes(SLOTS), 64 * SLOTS)),
    ] {
        let range = predicted..=predicted + 5 * ots as u64 / 2;
        assert!(range.contains(&bytes), "{bytes}, {predicted}");
    }
    assert_eq!(seen, bytes(0x55));
}

#[test]
#[should_panic(expected = "more selections than the settings announce")]
fn selections_beyond_the_settings() {
    let (settings, y, x) = data([5, 5], 2, [1, 0], Form::Fast);
    let _ = run_two_unchecked(
        |channel| {
            let mut sender = sender(&y, settings, channel);
            let _ = sender.select(&[1], channel);
        },
        |channel| {
            let own = (SESSION, rng(Role::Receiver));
            let _ = Receiver::setup(&x.items, &[], settings, own, &mut (), channel);
        },
    );
}

/// All bits, with all values modulo 8 and random ones modulo `2^64`.
#[test]
fn terms_of_step_7() {
    let mut random = Prg::new(Block::new(4));
    let small = (0..512_u64).map(|all| [all, all >> 3, all >> 6].map(|value| value << 61));
    let random = (0..512).map(|_| [(); 3].map(|()| random.next_u64()));
    for [value, a, s] in small.chain(random) {
        for [g, c] in [[0, 0], [0, 1], [1, 0], [1, 1]] {
            let h = a.wrapping_add(c * s);
            let product = step7::factor(c, value, h).wrapping_mul(g);
            let shares = product
                .wrapping_add(step7::receivers(c, value, h))
                .wrapping_add(step7::senders(g, [a, a.wrapping_add(s)]));
            assert_eq!(shares, value.wrapping_add(s).wrapping_mul(g ^ c));
            let weight = step7::factor(c, value, 0).wrapping_mul(g);
            let weight = weight.wrapping_add(step7::receivers(c, value, 0));
            assert_eq!(weight, value.wrapping_mul(g ^ c));
        }
    }
}

/// Bytes that the sender has sent up to the hints of the first slice.
fn bytes_before_hints(settings: Settings, [y, x]: [&Data; 2]) -> u64 {
    let (sent, ()) = volery_channel::run_two_parties(
        |channel| {
            let mut sender = sender(y, settings, channel);
            let parameters = sender.parameters.clone();
            let count = parameters.bins * (parameters.value_bits / 2) as usize;
            let side = sender.state.as_mut().unwrap().side.as_mut().unwrap();
            let _ = side.gates.draw(count, channel).unwrap();
            let _ = side.gates.draw(count, channel).unwrap();
            let mut pairs = vec![[Block::ZERO; 2]; parameters.bins];
            let masks = side.masks.as_mut().unwrap();
            masks.random(&mut pairs, channel).unwrap();
            channel.flush().unwrap();
            channel.stats().bytes_sent
        },
        |channel| {
            let mut receiver = receiver(x, settings, channel);
            let parameters = receiver.parameters.clone();
            let count = parameters.bins * (parameters.value_bits / 2) as usize;
            let side = receiver.state.as_mut().unwrap().side.as_mut().unwrap();
            let _ = side.gates.draw(count, channel).unwrap();
            let _ = side.gates.draw(count, channel).unwrap();
            let mut bits = vec![0; bits::bytes_for(parameters.bins)];
            let mut chosen = vec![Block::ZERO; parameters.bins];
            let masks = side.masks.as_mut().unwrap();
            masks.random(&mut bits, &mut chosen, channel).unwrap();
            channel.flush().unwrap();
        },
    );
    sent
}

/// Hints that are any other bytes make no item common, and no party fails.
#[test]
fn hints_that_are_something_else() {
    let (settings, y, x) = data([70, 80], 60, [1, 1], Form::Fast);
    let case = Case { least: 1, ..Case::of(settings) };
    let first = bytes_before_hints(settings, [&y, &x]);
    let parameters = Parameters::new(settings, 70, 80);
    let columns = parameters.shape().columns;
    let length = (packed::bytes(columns, parameters.value_bits) + 8 * columns) as u64;
    for kind in 0..4 {
        let mut random = Prg::new(Block::new(9));
        let change = move |offset: u64, bytes: &mut [u8]| {
            for (at, byte) in (offset..).zip(bytes) {
                if (first..first + length).contains(&at) {
                    *byte = match kind {
                        0 => 0,
                        1 => 0xff,
                        2 => random.next_u64() as u8,
                        // As it was: then all are found.
                        _ => *byte,
                    };
                }
            }
        };
        let (left, right) = volery_channel::memory::pair();
        let mut left = Channel::new(Tampered::new(left, change));
        let mut right = Channel::new(right);
        let (sent, received) = std::thread::scope(|scope| {
            let sent = scope.spawn(|| send(case, &y, &mut left).unwrap());
            let received = receive(case, &x, &mut right).unwrap();
            (sent.join().unwrap(), received)
        });
        if kind == 3 {
            assert_join(&sent, &received, [&y, &x], case);
            continue;
        }
        assert_eq!(sent.bits, received.bits, "no item is common");
        for (ours, theirs) in
            [(&sent.payload, &received.payload), (&sent.weights, &received.weights)]
        {
            for (ours, theirs) in ours[0].iter().zip(&theirs[0]) {
                assert_eq!(ours.wrapping_add(*theirs), 0);
            }
        }
        assert_eq!(received.opened, Some((false, false, vec![0, 15])));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn shares_of_sets_of_any_size(
        n in 0..400_usize,
        m in 0..400_usize,
        common in 0..=400_usize,
        columns in (0..3_usize, 0..3_usize),
        slice in 30..500_usize,
        pairs: (bool, bool),
        low: bool,
    ) {
        let common = common.min(n).min(m);
        let form = if low { Form::Low } else { Form::Fast };
        let (mut settings, y, x) = data([n, m], common, [columns.0, columns.1], form);
        // Products and selections are of a column of the sender, products of one of the receiver.
        if columns.0 > 0 {
            settings.products = usize::from(pairs.0 && columns.1 > 0);
            settings.selections = usize::from(pairs.1);
        }
        let case = Case { settings, scale: sliced(slice), least: common as u64 };
        let (sent, received, _) = run(case, [&y, &x]);
        assert_join(&sent, &received, [&y, &x], case);
    }
}

/// All shares of a large run, in slices of the usual size.
#[test]
#[ignore = "a gigabyte"]
fn a_million_items() {
    let (mut settings, y, x) = data([1_000_000, 999_983], 500_001, [1, 2], Form::Fast);
    settings.selections = 1;
    let case = Case { least: 500_001, ..Case::of(settings) };
    let (sent, received, _) = run(case, [&y, &x]);
    assert_join(&sent, &received, [&y, &x], case);
}

/// Shares look random: those of one party tell nothing, also where its values do not.
#[test]
fn shares_of_one_party_are_not_the_result() {
    let (settings, y, x) = data([200, 200], 200, [1, 1], Form::Fast);
    let case = Case::of(settings);
    let (sent, received, _) = run(case, [&y, &x]);
    for shares in [&sent, &received] {
        let ones = shares.bits.iter().filter(|bit| **bit).count();
        let all = shares.bits.len();
        assert!((all / 4..3 * all / 4).contains(&ones), "{ones} of {all}");
        for column in shares.payload.iter().chain(&shares.weights) {
            assert!(column.iter().all(|share| *share > u64::from(u32::MAX)));
        }
    }
}

/// The model of the bytes.
#[test]
fn a_run_costs_what_the_parameters_say() {
    for (columns, form) in [([0, 1], Form::Fast), ([1, 0], Form::Fast), ([1, 1], Form::Low)] {
        let (settings, y, x) = data([10_000, 12_000], 3000, columns, form);
        let case = Case::of(settings);
        let (_, _, stats) = run(case, [&y, &x]);
        let bytes = stats.bytes_sent + stats.bytes_received;
        let predicted = Parameters::new(settings, 10_000, 12_000).bytes();
        assert!(
            (predicted - predicted / 10..=predicted + predicted / 20).contains(&bytes),
            "{bytes}, {predicted}: {columns:?} {form}"
        );
    }
}

/// Rows, overlap and values do not show in the lengths of messages.
#[test]
fn lengths_depend_on_the_sizes_alone() {
    let traffic = |first: usize, common: usize| {
        let (settings, mut y, mut x) = data([400, 300], common, [1, 1], Form::Fast);
        for item in y.items.iter_mut().chain(&mut x.items) {
            *item = format!("{} {item}", "x".repeat(first));
        }
        let case = Case { settings, scale: sliced(70), least: 1 };
        let (_, _, stats) = run(case, [&y, &x]);
        (stats.bytes_sent, stats.bytes_received, stats.turns)
    };
    let one = traffic(1, 0);
    assert_eq!(one, traffic(5, 300));
    assert_eq!(one, traffic(0, 17));
}

#[test]
fn comparisons_at_all_bounds() {
    let plan = Parameters::new(Settings::default(), 10, 10).gate_plan().plan;
    let bounds: [u64; 8] = [0, 1, 2, 7, 1 << 31, (1 << 31) + 1, (1 << 62) + 5, (1 << 63) - 1];
    let cases: Vec<[u64; 3]> = bounds[..7]
        .iter()
        .flat_map(|value| bounds.map(|least| [*value, least, value.wrapping_mul(0x9e37_79b9_7f4a)]))
        .collect();
    let most = COMPARISONS.min(cases.len());
    let (left, right) = volery_channel::run_two_parties(
        |channel| {
            let mut gates =
                gmw::Receiver::setup(&plan, SESSION, rng(Role::Sender), channel).unwrap();
            let compare = |[_, least, share]: &[u64; 3]| {
                let input = share.wrapping_sub(*least);
                gmw::is_negative(&mut gates, input, channel).unwrap()
            };
            cases[..most].iter().map(compare).collect::<Vec<_>>()
        },
        |channel| {
            let mut gates =
                gmw::Sender::setup(&plan, SESSION, rng(Role::Receiver), channel).unwrap();
            let compare = |[value, _, share]: &[u64; 3]| {
                gmw::is_negative(&mut gates, value.wrapping_sub(*share), channel).unwrap()
            };
            cases[..most].iter().map(compare).collect::<Vec<_>>()
        },
    );
    for (([value, least, _], left), right) in cases.iter().zip(left).zip(right) {
        assert_eq!(left ^ right, value < least, "{value} {least}");
    }
}

/// After a failed call nothing more is sent or returned.
#[test]
fn a_failed_call_is_the_last() {
    let (settings, y, x) = data([20, 20], 10, [1, 1], Form::Fast);
    let (sender, receiver) = run_two_unchecked(
        |channel| {
            let mut sender = sender(&y, settings, channel);
            sender.next(channel).unwrap();
            // Something else than the end. The receiver sends its own before it looks.
            channel.send(&[0; 16]).unwrap();
            channel.recv(&mut [0; 16]).unwrap();
            sender
        },
        |channel| {
            let mut receiver = receiver(&x, settings, channel);
            receiver.next(channel).unwrap();
            let end = receiver.next(channel).err().unwrap();
            assert!(end.to_string().contains("more or less data"), "{end}");
            let sent = channel.stats().bytes_sent;
            for error in [
                receiver.next(channel).err(),
                receiver.open(&[1], Recipient::Both, channel).err(),
                receiver.at_least(1, 1, channel).err(),
                receiver.multiply(&[1], channel).err(),
                receiver.select(&[1], &[1], channel).err(),
            ] {
                assert!(matches!(error, Some(Error::Channel(ChannelError::Broken))));
            }
            assert_eq!(channel.stats().bytes_sent, sent);
            receiver
        },
    );
    assert!(sender.state.is_some() && receiver.state.is_none());
}

#[test]
fn parties_with_other_settings_or_too_many_items() {
    let (settings, y, x) = data([20, 20], 10, [0, 0], Form::Fast);
    let others = [
        Settings { form: Form::Low, ..settings },
        Settings { payload: 1, ..settings },
        Settings { weights: 1, ..settings },
        Settings { products: 1, ..settings },
        Settings { selections: 1, ..settings },
    ];
    for other in others {
        let weights = vec![vec![1; 20]; other.weights];
        let x = Data { columns: weights, ..x.clone() };
        let (sent, received) = run_two_unchecked(
            |channel| {
                let y = Data { columns: vec![vec![1; 20]; settings.payload], ..y.clone() };
                let own = (SESSION, rng(Role::Sender));
                Sender::setup(&y.items, &y.columns(), settings, own, &mut (), channel).err()
            },
            |channel| {
                let own = (SESSION, rng(Role::Receiver));
                Receiver::setup(&x.items, &x.columns(), other, own, &mut (), channel).err()
            },
        );
        for error in [sent, received] {
            assert!(error.unwrap().to_string().contains("other settings"));
        }
    }
}

/// A set that the agreement accepts and this protocol does not.
#[test]
fn a_peer_that_announces_too_many_items() {
    let (settings, y, _) = data([20, 20], 10, [0, 0], Form::Fast);
    for most in [MAX_ITEMS as usize, MAX_ITEMS as usize + 1] {
        let (sent, _) = run_two_unchecked(
            |channel| {
                let mut own = rng(Role::Sender);
                let own = (SESSION, &mut own);
                begin(Role::Sender, own, &y.items, settings, &mut (), channel).err()
            },
            |channel| {
                let (mut rng, said) = (rng(Role::Receiver), (most, 0));
                let terms = settings.terms();
                Agreement::reach(Role::Receiver, SESSION, &mut rng, terms, said, channel).unwrap();
                channel.flush().unwrap();
            },
        );
        assert_eq!(sent.is_some(), most as u64 > MAX_ITEMS);
    }
}

#[test]
#[should_panic(expected = "there is no malicious form")]
fn there_is_no_malicious_form() {
    let settings = Settings { form: Form::Malicious, ..Settings::default() };
    let _ = Parameters::new(settings, 5, 5);
}

#[test]
fn all_failures_together_stay_below_2_to_the_minus_40() {
    let logs = [0, 1, 2, 5, 8, 9, 10, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 27, 28, 29];
    let equal = logs.map(|log| [1 << log, 1 << log]);
    let odd = [[1, 1_000_000], [1_000_000, 1], [6789, 7890], [1000, 1 << 24], [1 << 24, 1000]];
    for form in [Form::Fast, Form::Low] {
        for [n, m] in equal.into_iter().chain(odd) {
            let settings = Settings { form, ..Settings::default() };
            let parameters = Parameters::new(settings, n, m);
            let bits = parameters.failure_bits();
            assert!(bits >= 40.0, "{form} {n} {m}: {bits} {:?}", parameters.failures());
            assert!(
                parameters.value_bits <= 73,
                "{form} {n} {m}: {} {:?}",
                parameters.value_bits,
                parameters.failures()
            );
            let last = parameters.slice_bins(parameters.slices() - 1);
            assert!(!last.is_empty() && last.end == parameters.bins);
        }
    }
}

/// No slice has more hints than the bound, and the bound is not far above what there are.
#[test]
fn hints_of_a_slice() {
    let settings = Settings::default();
    let parameters = Parameters::with_scale(sliced(4000), settings, [30_000, 30_000]);
    let mut digests = vec![Block::ZERO; 30_000];
    Prg::new(Block::new(5)).fill_blocks(&mut digests);
    let hasher = Hasher::new(Block::new(7), parameters.bins);
    let mut places = vec![[0; FUNCTIONS]; digests.len()];
    hasher.bins_slice(&digests, &mut places);
    let (numbers, starts) = sort_by_slice(&places, &parameters).unwrap();
    for slice in 0..parameters.slices() {
        let range = starts[slice]..starts[slice + 1];
        assert!(range.len() <= parameters.capacity);
        let bins = parameters.slice_bins(slice);
        for number in &numbers[range] {
            let bin = places.as_flattened()[*number as usize] as usize;
            assert!(bins.contains(&bin));
        }
    }
    let mean = 90_000 * parameters.slice / parameters.bins;
    assert!((mean + mean / 20..mean + mean / 10).contains(&parameters.capacity));
    // One hint more than fits.
    let mut few = parameters.clone();
    few.capacity = starts.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap() - 1;
    assert!(matches!(sort_by_slice(&places, &few), Err(Error::Unplaced { attempts: 1 })));
}

/// The encoding of few hints in many columns: none of them is left at zero.
#[test]
fn hints_are_random_where_they_are_free() {
    let (sent, _) = volery_channel::run_two_parties(
        |channel| {
            let (said, terms) = ((5, 0), Settings::default().terms());
            let mut own = rng(Role::Sender);
            let agreement =
                Agreement::reach(Role::Sender, SESSION, &mut own, terms, said, channel).unwrap();
            let parameters = Parameters::new(Settings::default(), 5, 5);
            let hints = Hints::new(&parameters, &agreement);
            let rows = hints.band().rows(&[Block::new(7), Block::new(9)]);
            let words = hints.encode(&rows, &[3_u64, 4], &mut own).unwrap();
            let blocks = hints.encode(&rows, &[Block::ONE; 2], &mut own).unwrap();
            (words, blocks)
        },
        |channel| {
            let (said, terms) = ((5, 0), Settings::default().terms());
            let mut own = rng(Role::Receiver);
            Agreement::reach(Role::Receiver, SESSION, &mut own, terms, said, channel).unwrap();
        },
    );
    let (words, blocks) = sent;
    assert!(words.len() > 256 && words.iter().all(|word| *word != 0));
    assert!(blocks.iter().all(|block| *block != Block::ZERO));
}

/// All executions of a run together fail as rarely as one, but for a thousand large ones, whose
/// hints fail a little more often.
#[test]
fn executions_share_a_failure_probability() {
    let bits = |form, parts: u64, [sender, receiver]: [u64; 2]| {
        let settings = Settings { form, parts, ..Settings::default() };
        let parameters = Parameters::new(settings, sender, receiver);
        parameters.failure_bits() - (parts as f64).log2()
    };
    let small = [[5, 7], [3000, 900], [1 << 14, 1 << 20]];
    let large = [1 << 20; 2];
    for form in [Form::Fast, Form::Low] {
        for parts in [1, 5, 64] {
            for sizes in small.into_iter().chain([large]) {
                let bits = bits(form, parts, sizes);
                assert!(bits >= 40.0, "{form} {parts} {sizes:?}: {bits}");
            }
        }
    }
    for sizes in small {
        assert!(bits(Form::Fast, 1000, sizes) >= 40.0);
    }
    assert!(bits(Form::Fast, 1000, large) >= 39.4);
}
