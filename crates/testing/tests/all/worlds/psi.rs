//! One execution of each protocol: the honest receiver's items are all, some or none of the
//! sender's; the honest sender's are the receiver's and others.

use std::sync::Arc;

use super::harness::{Network, Scenario, Work};
use volery_channel::{Channel, Role, SessionId};
use volery_primitives::bits;
use volery_primitives::prg::Prg;
use volery_psi::served::{self, Filter, Key};
use volery_psi::vole::Form;
use volery_psi::{Result, Watch, circuit};
use volery_testing::fixtures::{SEEDS, SESSION, rng};
use volery_testing::matches::{self, Match};

use super::{Inputs, SENDERS};

/// Items of the sender and of the receiver.
const N: usize = 13;
const M: usize = 11;

/// The items of a range. All have one length.
fn items(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|i| format!("item {i:04}")).collect()
}

/// The receiver's items in its worlds, against the sender's `items(0..N)`.
const RECEIVERS: [&str; 5] =
    ["all are common", "none", "the first alone", "half", "all in reverse"];

fn receivers(world: usize) -> Vec<String> {
    let common = [M, 0, 1, M / 2, M][world];
    let mut all = items(0..common);
    all.extend(items(100..100 + M - common));
    if world == 4 {
        all.reverse();
    }
    all
}

fn senders(world: usize) -> Vec<String> {
    let mut all = items(0..2);
    all.extend(items(200 + 50 * world..200 + 50 * world + N - 2));
    all
}

fn shown(world: usize) -> Vec<String> {
    let mut all = items(0..2);
    all.extend(items(100 + 50 * world..100 + 50 * world + M - 2));
    all
}

static INPUTS: Inputs<String> = Inputs {
    receivers: &RECEIVERS,
    receiver: receivers,
    shown,
    sender: senders,
    peer: |role| items(0..if role == Role::Sender { N } else { M }),
};

/// A value for each item, of several lengths; the longest is that of the last item, which is no
/// common one.
fn values(items: &[String]) -> Vec<String> {
    let lengths = (0..items.len()).map(|i| [3, 0, 9][i % 3] * usize::from(i > 0) + i / 12 * 20);
    lengths.zip(items).map(|(length, item)| item.repeat(1 + length)[..length].to_owned()).collect()
}

/// One side of an execution.
type Side = Arc<dyn Fn(&[String], &mut dyn Watch, &mut Channel) -> Result<()> + Send + Sync>;

struct Protocol {
    name: String,
    malicious: bool,
    /// Whether the sender learns which of its items are common.
    both: bool,
    sides: [Side; 2],
}

fn side(
    run: impl Fn(&[String], &mut dyn Watch, &mut Channel) -> Result<()> + Send + Sync + 'static,
) -> Side {
    Arc::new(run)
}

/// A session, and the randomness of a party: the harness seeds it.
fn own() -> (SessionId, Prg) {
    (SESSION, Prg::from_os().expect("it is seeded"))
}

fn matching(of: Match) -> Protocol {
    let run = |role: Role| {
        let of = of.clone();
        side(move |items, watch, channel| {
            let (session, rng) = own();
            let items = &items.to_vec();
            let outcome = of.run((role, session, rng), items, &values(items), watch, channel);
            outcome.map(drop)
        })
    };
    Protocol {
        malicious: of.is_malicious(),
        both: of.both(),
        sides: Role::ALL.map(run),
        name: of.name,
    }
}

/// Both sides of circuit-PSI up to a sum over all items, which nobody opens.
fn circuit_protocols() -> Vec<Protocol> {
    let settings = |form| circuit::Settings {
        form,
        payload: 1,
        weights: 1,
        products: 1,
        selections: 1,
        ..circuit::Settings::default()
    };
    let protocol = |form: Form| Protocol {
        name: format!("circuit, {form}"),
        malicious: false,
        both: false,
        sides: [
            side(move |items, watch, channel| {
                let values: Vec<_> = (0..items.len() as u64).collect();
                let own = own();
                let mut party =
                    circuit::Sender::setup(items, &[&values], settings(form), own, watch, channel)?;
                while let Some(slice) = party.next(channel)? {
                    party.multiply(&slice.payload[0], channel)?;
                    party.select(&slice.payload[0], channel)?;
                }
                Ok(())
            }),
            side(move |items, watch, channel| {
                let ones = vec![1; items.len()];
                let own = own();
                let mut party =
                    circuit::Receiver::setup(items, &[&ones], settings(form), own, watch, channel)?;
                while let Some(slice) = party.next(channel)? {
                    party.multiply(&slice.payload[0], channel)?;
                    let mut bits = vec![0x55; slice.bins.len().div_ceil(8)];
                    bits::clear_from(&mut bits, slice.bins.len());
                    party.select(&bits, &slice.payload[0], channel)?;
                }
                Ok(())
            }),
        ],
    };
    [Form::Fast, Form::Low].map(protocol).into()
}

fn scenarios(protocol: Protocol) -> [Scenario; 2] {
    let Protocol { name, malicious, both, sides } = protocol;
    let run = move |role: Role, items: &[String], network: &mut Network, mut work: Work| {
        // The channel closes with the call.
        let _ = sides[role as usize](items, &mut work, &mut network.connect());
    };
    let both = super::scenarios(&name, [malicious, both], &INPUTS, run);
    both.map(|one| Scenario { bytes: true, ..one })
}

/// A client and its server. `filter`: the file that the client has.
fn query(name: &str, filter: fn(&Key) -> Vec<u8>) -> Scenario {
    let key = || Key::random(&mut rng(SEEDS[0]));
    Scenario {
        bytes: true,
        ..Scenario::new(
            format!("{name}: client"),
            true,
            &RECEIVERS,
            move |world, network: &mut Network| {
                let Ok(filter) = Filter::from_bytes(&filter(&key()), 1 << 20) else {
                    return;
                };
                let (mut channel, mut work) = (network.connect(), network.work());
                let client = served::Client::new(&filter, own().1);
                let _ = client.query(&receivers(world), &mut work, &mut channel);
            },
            move |network: &mut Network| {
                let mut channel = network.connect();
                let Ok(filter) = Filter::from_bytes(&filter(&key()), 1 << 20) else {
                    return;
                };
                let server = served::Server::new(key(), &filter).expect("the key is its own");
                let (budget, mut rng) = (served::Budget::new(1000), own().1);
                let _ = server.answer(&mut rng, &budget, &mut (), &mut channel);
            },
        )
    }
}

/// A server whose clients must not tell its tables apart.
fn server() -> Scenario {
    let filter = |world: usize| {
        let key = Key::random(&mut rng(SEEDS[0]));
        let filter = served::prepare(&key, &senders(world), 1000, &mut ());
        (key, filter.expect("the items are short"))
    };
    Scenario {
        bytes: true,
        ..Scenario::new(
            "served query: server",
            true,
            &SENDERS,
            move |world, network: &mut Network| {
                let (key, filter) = filter(world);
                let (mut channel, mut work) = (network.connect(), network.work());
                if filter.send(&mut channel).is_err() {
                    return;
                }
                let server = served::Server::new(key, &filter).expect("the key is its own");
                let (budget, mut rng) = (served::Budget::new(1000), own().1);
                let _ = server.answer(&mut rng, &budget, &mut work, &mut channel);
            },
            |network: &mut Network| {
                let mut channel = network.connect();
                let Ok(filter) = Filter::receive(1000, &mut channel) else {
                    return;
                };
                let client = served::Client::new(&filter, own().1);
                let _ = client.query(&items(0..M), &mut (), &mut channel);
            },
        )
    }
}

fn honest_filter(key: &Key) -> Vec<u8> {
    let filter = served::prepare(key, &items(0..N), 1000, &mut ());
    let mut bytes = Vec::new();
    let filter = filter.expect("the items are short");
    filter.write(&mut bytes).expect("writing to memory");
    bytes
}

pub(super) fn by_vole() -> Vec<Scenario> {
    let matches = matches::by_vole().into_iter();
    matches.map(matching).flat_map(scenarios).collect()
}

pub(super) fn by_others() -> Vec<Scenario> {
    let matches = matches::by_kkrt("kkrt ").into_iter().chain(matches::by_dh());
    let protocols = matches.map(matching).chain(circuit_protocols());
    protocols.flat_map(scenarios).collect()
}

pub(super) fn served() -> Vec<Scenario> {
    vec![
        query("served query", honest_filter),
        // A lookup of the first item would read all tags.
        query("served query, filter of one high part", |key| {
            served::crowded(key, &items(0..1), 4096)
        }),
        server(),
    ]
}
