//! The OPRF and the protocols built on it.

use volery_channel::{Channel, Error, Result, Role};
use volery_primitives::{Block, bits};
use volery_psi::circuit::Opener as _;
use volery_psi::circuit::opening::Opening;
use volery_psi::code::Code;
use volery_psi::served::meeting::{Welcome, greet};
use volery_psi::served::{self, Filter, Key};
use volery_psi::vole::{self, Form};
use volery_psi::{circuit, oprf};

use crate::fixtures::{SEEDS, SESSION, rng};
use crate::matches::{self, COUNT, Match};
use crate::{Model, Protocol};

/// Instances of the OPRF: more than one block of columns.
const INSTANCES: usize = 130;

/// Items of the sender, and of the receiver; the last [`COMMON`] items of the sender are the first
/// of the receiver.
const ITEMS: [usize; 2] = [90, 70];
const COMMON: usize = 20;

pub(super) fn all() -> Vec<Protocol> {
    let mut all = vec![prf()];
    all.extend(matches::by_kkrt("").into_iter().map(matching));
    all.extend(matches::by_vole().into_iter().map(matching));
    all.extend([Form::Malicious, Form::Fast].map(vole_prf));
    all.extend(matches::by_dh().into_iter().map(matching));
    all.push(query());
    all.extend([Form::Fast, Form::Low].map(circuit));
    all.push(opening());
    all
}

const fn model(form: Form) -> Model {
    match form {
        Form::Malicious => Model::Malicious,
        Form::Fast | Form::Low => Model::SemiHonest,
    }
}

/// The errors that a peer can cause; all others would be this party's own fault.
pub(super) fn of_channel(error: volery_psi::Error) -> Error {
    match error {
        volery_psi::Error::Channel(error) => error,
        other => Error::Io(std::io::Error::other(other)),
    }
}

fn prf() -> Protocol {
    let code = || Code::new(&[3; 32], 440);
    let inputs = || -> Vec<_> { (0..INSTANCES as u128).map(Block::new).collect() };
    let evaluate = move |channel: &mut Channel| {
        let mut sender = oprf::Sender::setup(SESSION, rng(SEEDS[0]), channel)?;
        let keys = sender.extend(&code(), INSTANCES, channel)?;
        let instances = (0..).zip(inputs());
        instances
            .map(|(instance, input)| keys.evaluate(&sender, &code(), instance, input))
            .collect::<Result<Vec<_>>>()
    };
    let ask = move |channel: &mut Channel| {
        let mut receiver = oprf::Receiver::setup(SESSION, rng(SEEDS[1]), channel)?;
        let mut outputs = vec![Block::ZERO; INSTANCES];
        receiver.extend(&code(), &inputs(), &mut outputs, channel)?;
        Ok(outputs)
    };
    Protocol::new(
        "oprf",
        Model::SemiHonest,
        evaluate,
        ask,
        |left: &Vec<Block>, right: &Vec<Block>| left == right,
    )
}

fn items() -> [Vec<String>; 2] {
    let first = ITEMS[0] - COMMON;
    [0..ITEMS[0], first..first + ITEMS[1]].map(|range| range.map(|i| format!("item {i}")).collect())
}

/// The indices of the sender's common items, and of the receiver's.
fn common() -> [Vec<usize>; 2] {
    [(ITEMS[0] - COMMON..ITEMS[0]).collect(), (0..COMMON).collect()]
}

fn values() -> Vec<String> {
    let value = |item: &String| format!("{item} has a value").repeat(item.len() % 3);
    items()[0].iter().map(value).collect()
}

/// A party's common items, the values of a search, and the number of common items.
type MatchOutput = (Option<Vec<usize>>, Vec<Vec<u8>>, Option<u64>);

fn matching(of: Match) -> Protocol {
    let run = {
        let of = of.clone();
        move |role: Role, channel: &mut Channel| {
            let own = (role, SESSION, rng(SEEDS[role as usize]));
            let items = &items()[role as usize];
            let outcome = of.run(own, items, &values(), &mut (), channel);
            let outcome = outcome.map_err(of_channel)?;
            Ok((outcome.common, outcome.values, outcome.count))
        }
    };
    let model = match of.is_malicious() {
        true => Model::Malicious,
        false => Model::SemiHonest,
    };
    Protocol::new(
        of.name.clone(),
        model,
        {
            let run = run.clone();
            move |channel| run(Role::Sender, channel)
        },
        move |channel| run(Role::Receiver, channel),
        move |sent: &MatchOutput, received: &MatchOutput| {
            let [theirs, ours] = common();
            let value = |item: &usize| values()[*item].clone().into_bytes();
            let found = theirs.iter().filter(|_| of.searches()).map(value);
            let found = found.collect();
            let of_sender = of.both().then_some(theirs);
            let of_receiver = match of.output {
                COUNT => (None, found, Some(COMMON as u64)),
                _ => (Some(ours), found, None),
            };
            *sent == (of_sender, Vec::new(), None) && *received == of_receiver
        },
    )
}

/// The server's filter, and a query.
fn query() -> Protocol {
    let serve = |channel: &mut Channel| {
        let mut rng = rng(SEEDS[0]);
        let key = Key::random(&mut rng);
        let filter = served::prepare(&key, &items()[0], 1000, &mut ())?;
        if greet(filter.label(), Some(1000), channel)? {
            filter.send(channel)?;
        }
        let server = served::Server::new(key, &filter)?;
        let budget = served::Budget::new(1000);
        server.answer(&mut rng, &budget, &mut (), channel)
    };
    let ask = |channel: &mut Channel| {
        let welcome = Welcome::receive(1000, channel)?;
        let filter: Filter = welcome.fetch(channel)?;
        let client = served::Client::new(&filter, rng(SEEDS[1]));
        client.query(&items()[1], &mut (), channel)
    };
    Protocol::new(
        "served query",
        Model::SemiHonest,
        move |channel| serve(channel).map_err(of_channel),
        move |channel| Ok(ask(channel).map_err(of_channel)?.common),
        |answered: &u64, found: &Vec<usize>| *answered == ITEMS[1] as u64 && *found == common()[1],
    )
}

fn vole_prf(form: Form) -> Protocol {
    let evaluate = move |channel: &mut Channel| {
        let sender = vole::Sender::new(SESSION, rng(SEEDS[0]));
        let keys = sender.keys(form, &mut (), channel).map_err(of_channel)?;
        Ok(keys.evaluate(&items()[1]).to_vec())
    };
    let ask = move |channel: &mut Channel| {
        let receiver = vole::Receiver::new(SESSION, rng(SEEDS[1]));
        let outputs = receiver.outputs(&items()[1], form, &mut (), channel);
        Ok(outputs.map_err(of_channel)?.outputs.to_vec())
    };
    Protocol::new(
        format!("vole oprf, {form}"),
        model(form),
        evaluate,
        ask,
        |left: &Vec<Block>, right: &Vec<Block>| left == right,
    )
}

/// The shares of a party of sums over the common items: of the sender's values, of how many there
/// are, of the products of the values of both, and of the sender's values that the receiver
/// selects; whether there are enough, and what was opened.
type Sums = ([u64; 4], bool, Vec<u64>);

/// Whether the receiver selects an item of its own.
fn selects(item: usize) -> bool {
    !item.is_multiple_of(3)
}

/// The value of an item, of either party.
fn number(item: usize) -> u64 {
    (u64::MAX / 3).wrapping_mul(item as u64)
}

fn circuit(form: Form) -> Protocol {
    let settings =
        circuit::Settings { form, payload: 1, weights: 1, products: 1, selections: 1, parts: 1 };
    let send = move |channel: &mut Channel| -> volery_psi::Result<Sums> {
        let values: Vec<_> = (0..ITEMS[0]).map(number).collect();
        let (items, own) = (&items()[0], (SESSION, rng(SEEDS[0])));
        let mut sender =
            circuit::Sender::setup(items, &[&values], settings, own, &mut (), channel)?;
        let mut sums = [0_u64; 4];
        while let Some(slice) = sender.next(channel)? {
            let products = sender.multiply(&slice.payload[0], channel)?;
            let selected = sender.select(&slice.payload[0], channel)?;
            let columns: [&[u64]; 4] = [&slice.payload[0], &slice.weights[0], &products, &selected];
            add(&mut sums, columns);
        }
        let enough = sender.at_least(sums[1], COMMON as u64, channel)?;
        let opened = sender.open(&sums, circuit::Recipient::Both, channel)?;
        Ok((sums, enough, opened.expect("both get it")))
    };
    let receive = move |channel: &mut Channel| -> volery_psi::Result<Sums> {
        let (items, own) = (&items()[1], (SESSION, rng(SEEDS[1])));
        let ones = vec![1; ITEMS[1]];
        let mut receiver =
            circuit::Receiver::setup(items, &[&ones], settings, own, &mut (), channel)?;
        let mut sums = [0_u64; 4];
        while let Some(slice) = receiver.next(channel)? {
            let weight = |bin| receiver.item(bin).map_or(0, number);
            let weights: Vec<_> = slice.bins.clone().map(weight).collect();
            let mut products = receiver.multiply(&weights, channel)?;
            for (product, (weight, share)) in
                products.iter_mut().zip(weights.iter().zip(&*slice.payload[0]))
            {
                *product = product.wrapping_add(weight.wrapping_mul(*share));
            }
            let selects = |bin| receiver.item(bin).is_some_and(selects);
            let bits: Vec<_> = slice.bins.clone().map(selects).collect();
            let selected = receiver.select(&bits::pack(&bits), &slice.payload[0], channel)?;
            let columns: [&[u64]; 4] = [&slice.payload[0], &slice.weights[0], &products, &selected];
            add(&mut sums, columns);
        }
        let enough = receiver.at_least(sums[1], COMMON as u64, channel)?;
        let opened = receiver.open(&sums, circuit::Recipient::Both, channel)?;
        Ok((sums, enough, opened.expect("both get it")))
    };
    Protocol::new(
        format!("circuit, {form}"),
        Model::SemiHonest,
        move |channel| send(channel).map_err(of_channel),
        move |channel| receive(channel).map_err(of_channel),
        |left: &Sums, right: &Sums| {
            let [theirs, ours] = common();
            let pairs = theirs.into_iter().zip(ours);
            let mut expected = [0_u64; 4];
            for (theirs, ours) in pairs {
                let value = number(theirs);
                let selected = if selects(ours) { value } else { 0 };
                let values = [value, 1, value.wrapping_mul(number(ours)), selected];
                add(&mut expected, values.each_ref().map(std::slice::from_ref));
            }
            let mut sums = left.0;
            add(&mut sums, right.0.each_ref().map(std::slice::from_ref));
            [left, right].map(|party| party.1 && party.2 == expected) == [true; 2]
                && sums == expected
        },
    )
}

/// The values that are opened; both comparisons are with the last one.
const OPENED: [u64; 3] = [7, u64::MAX, 1 << 40];

fn opening() -> Protocol {
    let run = |role: Role, channel: &mut Channel| -> volery_psi::Result<_> {
        let share = |value: &u64| match role {
            Role::Sender => number(5),
            Role::Receiver => value.wrapping_sub(number(5)),
        };
        let shares = OPENED.each_ref().map(share);
        let own = (SESSION, rng(SEEDS[role as usize]));
        let mut party = Opening::setup(role, 2, Form::Fast, own, channel)?;
        let mut enough = Vec::new();
        for share in [shares[0], shares[2]] {
            enough.push(party.at_least(share, OPENED[2], channel)?);
        }
        Ok((enough, party.open(&shares, circuit::Recipient::Both, channel)?))
    };
    Protocol::new(
        "circuit opening".to_owned(),
        Model::SemiHonest,
        move |channel| run(Role::Sender, channel).map_err(of_channel),
        move |channel| run(Role::Receiver, channel).map_err(of_channel),
        |left, right| {
            let expected = (vec![false, true], Some(OPENED.to_vec()));
            *left == expected && *right == expected
        },
    )
}

fn add(sums: &mut [u64; 4], columns: [&[u64]; 4]) {
    for (sum, column) in sums.iter_mut().zip(columns) {
        *sum = sum.wrapping_add(circuit::Slice::sum(column));
    }
}
