use std::collections::HashMap;

use proptest::prelude::*;
use volery_channel::tamper::Tampered;
use volery_channel::{Stats, run_two_parties, run_two_parties_with_stats, run_two_unchecked};

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
    /// Items `first`, `first + 1`, .., with values from all of `u64`, the bounds among them.
    fn new(first: usize, count: usize, columns: usize) -> Self {
        let mut random = Prg::new(Block::new((first + 31 * count) as u128));
        let value = |_| match random.below(4) {
            0 => u64::MAX,
            1 => 0,
            _ => random.next_u64(),
        };
        Self {
            items: (0..count).map(|i| (first + i).to_string()).collect(),
            columns: vec![(0..count).map(value).collect(); columns],
        }
    }

    fn columns(&self) -> Vec<&[u64]> {
        self.columns.iter().map(|column| &column[..]).collect()
    }
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
}

/// Slices of about so many bins.
const fn sliced(slice: usize) -> Scale {
    Scale { slice, ..Scale::RUN }
}

fn send(case: Case, data: &Data, channel: &mut Channel) -> Result<Shares> {
    let randomness = (SESSION, rng(Role::Sender));
    let own = (&data.items[..], &data.columns()[..]);
    let of = |sizes| Parameters::with_scale(case.scale, case.settings, sizes);
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
    let of = |sizes| Parameters::with_scale(case.scale, case.settings, sizes);
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
    let y = Data::new(0, n, payload);
    let mut x = Data::new(n - common, m, weights);
    if let Some(last) = x.columns.last_mut() {
        last.fill(1);
    }
    let settings = Settings { form, payload, weights, products: 0, selections: 0, parts: 1 };
    (settings, y, x)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn shares_of_sets_of_any_size(
        sizes in [prop_oneof![0..4_usize, 0..1010_usize], prop_oneof![0..4_usize, 0..1010_usize]],
        common in prop_oneof![0..400_usize, Just(1010)],
        columns in (0..3_usize, 0..3_usize),
        bin in prop::sample::select(vec![Scale::RUN.bin, 40, 64]),
        slice in prop_oneof![30..500_usize, Just(Scale::RUN.slice)],
        pairs: (bool, bool),
        low: bool,
        fewer: bool,
    ) {
        let common = common.min(sizes[0]).min(sizes[1]);
        let form = if low { Form::Low } else { Form::Fast };
        let (mut settings, y, x) = data(sizes, common, [columns.0, columns.1], form);
        // Products and selections are of a column of the sender, products of one of the receiver.
        if columns.0 > 0 {
            settings.products = usize::from(pairs.0 && columns.1 > 0);
            settings.selections = usize::from(pairs.1);
        }
        let scale = Scale { bin, ..sliced(slice) };
        let least = (common as u64).saturating_sub(fewer.into());
        let case = Case { settings, scale, least };
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

/// Shares look random: those of one party tell nothing, also where its values do not. Those of
/// values that are selected, or not, are masked anew.
#[test]
fn shares_of_one_party_are_not_the_result() {
    let (settings, y, x) = data([200, 200], 200, [1, 1], Form::Fast);
    let case = Case::of(Settings { selections: 1, ..settings });
    let (sent, received, _) = run(case, [&y, &x]);
    for shares in [&sent, &received] {
        let ones = shares.bits.iter().filter(|bit| **bit).count();
        let all = shares.bits.len();
        assert!((all / 4..3 * all / 4).contains(&ones), "{ones} of {all}");
        for column in shares.payload.iter().chain(&shares.weights).chain([&shares.selected]) {
            assert!(column.iter().all(|share| *share > u64::from(u32::MAX)));
        }
    }
    assert!(sent.selected.iter().zip(&sent.payload[0]).all(|(new, share)| new != share));
}

/// The model of the bytes.
#[test]
fn a_run_costs_what_the_parameters_say() {
    for (columns, form, pairs) in [
        ([0, 1], Form::Fast, [0, 0]),
        ([1, 0], Form::Fast, [0, 1]),
        ([1, 1], Form::Low, [0, 0]),
        ([1, 1], Form::Fast, [1, 0]),
    ] {
        let (mut settings, y, x) = data([10_000, 12_000], 3000, columns, form);
        [settings.products, settings.selections] = pairs;
        let case = Case::of(settings);
        let (_, _, stats) = run(case, [&y, &x]);
        let bytes = stats.bytes_sent + stats.bytes_received;
        let parameters = Parameters::new(settings, 10_000, 12_000);
        let predicted = parameters.bytes()
            + pairs[0] as u64 * Parameters::product_bytes(parameters.bins)
            + pairs[1] as u64 * Parameters::selection_bytes(parameters.bins);
        assert!(
            (predicted - predicted / 10..=predicted + predicted / 20).contains(&bytes),
            "{bytes}, {predicted}: {columns:?} {form}"
        );
    }
}

/// Rows, overlap, values and what is selected do not show in the lengths of messages.
#[test]
fn lengths_depend_on_the_sizes_alone() {
    let traffic = |first: usize, common: usize| {
        let (settings, mut y, mut x) = data([400, 300], common, [1, 1], Form::Fast);
        for item in y.items.iter_mut().chain(&mut x.items) {
            *item = format!("{} {item}", "x".repeat(first));
        }
        let settings = Settings { selections: 1, ..settings };
        let case = Case { settings, scale: sliced(70), least: 1 };
        let (_, _, stats) = run(case, [&y, &x]);
        (stats.bytes_sent, stats.bytes_received, stats.turns)
    };
    let one = traffic(1, 0);
    assert_eq!(one, traffic(5, 300));
    assert_eq!(one, traffic(0, 17));
}

/// Hints that are any other bytes make no item common, and no party fails.
#[test]
fn hints_that_are_something_else() {
    let (settings, y, x) = data([70, 80], 60, [1, 1], Form::Fast);
    let case = Case { least: 1, ..Case::of(settings) };
    let parameters = Parameters::new(settings, 70, 80);
    let (bins, bits) = (parameters.bins, parameters.value_bits);
    let (draws, columns) = (bins * (bits / 2) as usize, parameters.shape().columns);
    // The sender's bytes of steps 1 to 4.
    let (first, ()) = run_two_parties(
        |channel| {
            let (own, columns) = ((SESSION, rng(Role::Sender)), y.columns());
            let sender = Sender::setup(&y.items, &columns, settings, own, &mut (), channel);
            let mut side = sender.unwrap().state.unwrap().side.unwrap();
            let _ = [(); 2].map(|()| side.gates.draw(draws, channel).unwrap());
            let mut pairs = vec![[Block::ZERO; 2]; bins];
            side.masks.unwrap().random(&mut pairs, channel).unwrap();
            channel.flush().unwrap();
            channel.stats().bytes_sent
        },
        |channel| {
            let (own, columns) = ((SESSION, rng(Role::Receiver)), x.columns());
            let receiver = Receiver::setup(&x.items, &columns, settings, own, &mut (), channel);
            let mut side = receiver.unwrap().state.unwrap().side.unwrap();
            let _ = [(); 2].map(|()| side.gates.draw(draws, channel).unwrap());
            let (mut bits, mut chosen) = (vec![0; bins.div_ceil(8)], vec![Block::ZERO; bins]);
            side.masks.unwrap().random(&mut bits, &mut chosen, channel).unwrap();
            channel.flush().unwrap();
        },
    );
    let hints = first..first + (packed::bytes(columns, bits) + 8 * columns) as u64;
    let changes: [fn(u8, &mut Prg) -> u8; 4] =
        [|byte, _| byte, |_, _| 0, |_, _| 0xff, |_, random| random.next_u64() as u8];
    for (number, new) in changes.into_iter().enumerate() {
        let (hints, mut random) = (hints.clone(), Prg::new(Block::new(9)));
        let change = move |offset: u64, bytes: &mut [u8]| {
            for (_, byte) in (offset..).zip(bytes).filter(|(at, _)| hints.contains(at)) {
                *byte = new(*byte, &mut random);
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
        // As they were, all are found.
        if number == 0 {
            assert_join(&sent, &received, [&y, &x], case);
            continue;
        }
        assert_eq!(sent.bits, received.bits, "no item is common");
        let columns = |shares: &Shares| [&shares.payload[0][..], &shares.weights[0]].concat();
        let zero = |(ours, theirs): (u64, u64)| ours.wrapping_add(theirs) == 0;
        assert!(columns(&sent).into_iter().zip(columns(&received)).all(zero), "{number}");
        assert_eq!(received.opened, Some((false, false, vec![0, 15])));
    }
}

/// After a failed call nothing more is sent or returned.
#[test]
fn a_failed_call_is_the_last() {
    let (settings, y, x) = data([20, 20], 10, [1, 1], Form::Fast);
    let (sender, receiver) = run_two_unchecked(
        |channel| {
            let (own, columns) = ((SESSION, rng(Role::Sender)), y.columns());
            let sender = Sender::setup(&y.items, &columns, settings, own, &mut (), channel);
            let mut sender = sender.unwrap();
            sender.next(channel).unwrap();
            // Something else than the end. The receiver sends its own before it looks.
            channel.send(&[0; 16]).unwrap();
            channel.recv(&mut [0; 16]).unwrap();
            sender
        },
        |channel| {
            let (own, columns) = ((SESSION, rng(Role::Receiver)), x.columns());
            let receiver = Receiver::setup(&x.items, &columns, settings, own, &mut (), channel);
            let mut receiver = receiver.unwrap();
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

/// Of one execution, and of all executions of a run; of a thousand large ones hints fail a little
/// more often.
#[test]
fn all_failures_together_stay_below_2_to_the_minus_40() {
    let logs = [0, 1, 2, 5, 8, 9, 10, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 27, 28, 29];
    let equal = logs.map(|log| [1 << log, 1 << log]).into_iter();
    let odd = [[1, 1_000_000], [1_000_000, 1], [6789, 7890], [1000, 1 << 24], [1 << 24, 1000]];
    let several = [[5, 7], [3000, 900], [1 << 14, 1 << 20], [1 << 20, 1 << 20]];
    for form in [Form::Fast, Form::Low] {
        let one = equal.clone().chain(odd).map(|sizes| (1, sizes));
        let more = [5, 64].into_iter().flat_map(|parts| several.map(|sizes| (parts, sizes)));
        let thousand = several.map(|sizes| (1000, sizes)).into_iter();
        let thousand = thousand.filter(|_| form == Form::Fast);
        for (parts, [n, m]) in one.chain(more).chain(thousand) {
            let settings = Settings { form, parts, ..Settings::default() };
            let parameters = Parameters::new(settings, n, m);
            let bits = parameters.failure_bits() - (parts as f64).log2();
            let least = if (parts, n) == (1000, 1 << 20) { 39.4 } else { 40.0 };
            let what = format!("{form} {parts} {n} {m}: {bits} {:?}", parameters.failures());
            assert!(bits >= least, "{what}");
            assert!(parts > 1 || parameters.value_bits <= 73, "{what}");
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
    let parameters = Parameters::new(Settings::default(), 5, 5);
    let hints = Hints::new(&parameters, &Agreement::numbered(1, [5, 5]));
    let rows = hints.band().rows(&[Block::new(7), Block::new(9)]);
    let mut own = rng(Role::Sender);
    let words = hints.encode(&rows, &[3_u64, 4], &mut own).unwrap();
    let blocks = hints.encode(&rows, &[Block::ONE; 2], &mut own).unwrap();
    assert!(words.len() > 256 && words.iter().all(|word| *word != 0));
    assert!(blocks.iter().all(|block| *block != Block::ZERO));
}
