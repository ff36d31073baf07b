//! Whole sessions of all protocols.

use std::mem;

use curve25519_dalek::Scalar;
use volery_channel::{Channel, Role, SessionId, run_two_parties, run_two_unchecked};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_ot::softspoken::{self, SmallField};
use volery_ot::{CotReceiver, CotSender, Error, Result, base, convert};
use volery_pcg::lpn::{estimate::Field, set_named};
use volery_pcg::vole::VoleRing;
use volery_pcg::{
    Kind, Noise, Plan, PlanOptions, Protocol as By, Security, Trees, cot, gilboa, vole,
};
use volery_primitives::{Block, prg::Prg, watch::blocks_with};
use volery_psi::code::{Code, width};
use volery_psi::count::Count;
use volery_psi::dh::Dh;
use volery_psi::matching::{Output, PROTOCOLS, Party, Protocol};
use volery_psi::vole::Form;
use volery_psi::{Items, circuit, oprf, served};
use zeroize::Zeroizing;

pub(crate) const SESSION: SessionId = SessionId::from_bytes([5; 32]);

/// Secrets as bytes, in pieces of eight.
pub(crate) type Secrets = Zeroizing<Vec<u8>>;

/// The generator of a party, and its seed as a secret.
pub(crate) fn seed(party: u8) -> Block {
    Prg::new(Block::from(u128::from(party) + 100)).block()
}

/// Runs `session` twice; the second run is searched for all secrets that the first one returned,
/// and for the seeds.
pub(crate) fn look_for(session: impl Fn() -> Vec<Secrets>) {
    // Zeroized, because the next owner of its memory may not overwrite all of it.
    let secrets = session();
    let seeds = [seed(0), seed(1)].map(Block::to_bytes);
    let length = secrets.iter().map(|s| s.len()).sum::<usize>() + 32;
    let mut all = Zeroizing::new(Vec::with_capacity(length));
    secrets.iter().for_each(|s| all.extend_from_slice(s));
    seeds.iter().for_each(|seed| all.extend_from_slice(seed));
    drop(secrets);
    blocks_with(all, || drop(session())).unwrap();
}

fn words(blocks: &[Block]) -> Secrets {
    Zeroizing::new(Block::as_bytes(blocks).to_vec())
}

/// Elements as secrets; the list has its full length from the start, so that it never moves.
pub(crate) fn encoded<R: Ring>(elements: &[R]) -> Secrets {
    let mut bytes = Zeroizing::new(Vec::with_capacity(R::encoded_len(elements.len())));
    R::write(elements, &mut bytes);
    bytes
}

/// Values of a party.
pub(crate) fn random<R: Ring>(n: usize, number: u128) -> Zeroizing<Vec<R>> {
    let mut values = Zeroizing::new(vec![R::ZERO; n]);
    R::random_slice(&mut Prg::new(Block::from(number + 50)), &mut values);
    values
}

/// Choices of a party.
fn random_bytes(n: usize, number: u128) -> Secrets {
    let mut bytes = Zeroizing::new(vec![0; n]);
    Prg::new(Block::from(number + 50)).fill_bytes(&mut bytes);
    bytes
}

/// Runs two parties with correlated OTs between them.
pub(crate) fn with_ots<A: Send, B: Send>(
    sender: impl FnOnce(&mut convert::Sender<softspoken::Sender>, &mut Channel) -> A + Send,
    receiver: impl FnOnce(&mut convert::Receiver<softspoken::Receiver>, &mut Channel) -> B + Send,
) -> (A, B) {
    let field = SmallField::Bits8;
    let (left, right) = run_two_parties(
        |channel| -> Result<A> {
            let rng = Prg::new(seed(0));
            let cot = softspoken::Sender::setup(None, field, SESSION, rng, channel)?;
            Ok(sender(&mut convert::Sender::new(cot, SESSION), channel))
        },
        |channel| -> Result<B> {
            let rng = Prg::new(seed(1));
            let cot = softspoken::Receiver::setup(field, SESSION, rng, channel)?;
            Ok(receiver(&mut convert::Receiver::new(cot, SESSION), channel))
        },
    );
    (left.unwrap(), right.unwrap())
}

/// Runs a source of correlated OTs for `n` of them: `delta`, `v`, `u`, `w`.
fn cots<S: CotSender, R: CotReceiver>(
    n: usize,
    sender: impl FnOnce(Prg, &mut Channel) -> Result<S> + Send,
    receiver: impl FnOnce(Prg, &mut Channel) -> Result<R> + Send,
) -> Vec<Secrets> {
    let (sent, received) = run_two_parties(
        |channel| -> Result<_> {
            let mut v = Zeroizing::new(vec![Block::ZERO; n]);
            let mut cot = sender(Prg::new(seed(0)), channel)?;
            cot.extend(&mut v, channel)?;
            let delta = Zeroizing::new(cot.delta().to_bytes().to_vec());
            Ok([delta, words(&v)])
        },
        |channel| -> Result<_> {
            let mut w = Zeroizing::new(vec![Block::ZERO; n]);
            let mut u = Zeroizing::new(vec![0; n.div_ceil(8)]);
            receiver(Prg::new(seed(1)), channel)?.extend(&mut u, &mut w, channel)?;
            Ok([u, words(&w)])
        },
    );
    sent.unwrap().into_iter().chain(received.unwrap()).collect()
}

pub(crate) fn ot_extensions() {
    let checked = SmallField::ALL.map(softspoken::Settings::from);
    for settings in checked.into_iter().chain([SmallField::Bits4.unchecked()]) {
        look_for(|| {
            cots(
                1000,
                |rng, channel| softspoken::Sender::setup(None, settings, SESSION, rng, channel),
                |rng, channel| softspoken::Receiver::setup(settings, SESSION, rng, channel),
            )
        });
    }
}

pub(crate) fn base_ots() {
    look_for(|| {
        let choices = random_bytes(16, 20);
        let (sent, received) = run_two_parties(
            // Unwrapped here: otherwise stack contents would move between threads in the unused
            // error variant.
            |channel| base::send(128, SESSION, &mut Prg::new(seed(0)), channel).unwrap(),
            |channel| {
                let rng = &mut Prg::new(seed(1));
                base::receive(&choices, 128, SESSION, rng, channel).unwrap()
            },
        );
        vec![words(sent.as_flattened()), words(&received), choices]
    });
}

/// Chosen messages by chosen bits: the messages, and the intermediate values of both parties.
pub(crate) fn conversions() {
    const N: usize = 500;
    look_for(|| {
        let mut messages = Zeroizing::new(vec![[Block::ZERO; 2]; N]);
        Prg::new(Block::from(10)).fill_blocks(messages.as_flattened_mut());
        let x = random_bytes(N.div_ceil(8), 22);
        let (sent, received) = with_ots(
            |ot, channel| {
                ot.chosen(&messages, channel).unwrap();
                let bytes = Block::as_bytes(messages.as_flattened());
                ot.chosen_bytes(bytes, bytes, 32, channel).unwrap();
                let mut m = Zeroizing::new(vec![[Block::ZERO; 2]; N]);
                ot.random(&mut m, channel).unwrap();
                words(m.as_flattened())
            },
            |ot, channel| {
                let mut m = Zeroizing::new(vec![Block::ZERO; N]);
                ot.chosen(&x, &mut m, channel).unwrap();
                let mut strings = Zeroizing::new(vec![0; 32 * N]);
                ot.chosen_bytes(&x, &mut strings, 32, channel).unwrap();
                let mut u = Zeroizing::new(vec![0; N.div_ceil(8)]);
                ot.random(&mut u, &mut m, channel).unwrap();
                [u, words(&m), strings]
            },
        );
        let chosen = words(messages.as_flattened());
        received.into_iter().chain([sent, chosen, x]).collect()
    });
}

/// The smallest instance for the noise, used a little more than once.
fn options(noise: Noise, security: Security, trees: Trees) -> PlanOptions<'static> {
    let set = match noise {
        Noise::Regular => "r14",
        _ => "u14",
    };
    PlanOptions {
        total: Some(set_named(set).unwrap().n as u64 + 100),
        noise,
        security,
        trees,
        set: Some(set),
        ..PlanOptions::default()
    }
}

/// The number of correlations to draw: some of each round.
fn drawn(plan: &Plan) -> usize {
    usize::try_from(plan.total().unwrap()).unwrap()
}

pub(crate) fn correlated_ot() {
    let modes = [
        (Noise::Regular, Security::Malicious, Trees::Half),
        (Noise::Uniform, Security::Malicious, Trees::Ggm),
        (Noise::Regular, Security::SemiHonest, Trees::Half),
    ];
    let in_rounds = modes.map(|(noise, security, trees)| {
        Plan::new(Kind::Cot, &options(noise, security, trees)).unwrap()
    });
    let models = [Security::Malicious, Security::SemiHonest];
    let dual = models.map(|model| dual(Kind::Cot, model));
    let several = side_by_side(Kind::Cot);
    for plan in in_rounds.iter().chain(&dual).chain([&several]) {
        // A given `delta` with its lowest bit set: it has the same form internally.
        let delta = seed(2) | Block::ONE;
        look_for(|| {
            cots(
                drawn(plan),
                |rng, channel| cot::Sender::setup(plan, Some(delta), SESSION, rng, channel),
                |rng, channel| cot::Receiver::setup(plan, SESSION, rng, channel),
            )
        });
    }
}

/// Dual LPN, one instance.
fn dual(kind: Kind, security: Security) -> Plan {
    let options = PlanOptions {
        total: Some(5000),
        security,
        protocol: By::LowCommunication,
        ..PlanOptions::default()
    };
    Plan::new(kind, &options).unwrap()
}

fn voles<R: VoleRing>(noise: Noise, security: Security, trees: Trees) {
    voles_of::<R>(&Plan::new(Kind::Vole(R::FIELD), &options(noise, security, trees)).unwrap());
}

fn voles_of<R: VoleRing>(plan: &Plan) {
    let n = drawn(plan);
    look_for(|| {
        let (sent, received) = run_two_parties(
            |channel| -> Result<_> {
                let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
                let rng = Prg::new(seed(0));
                let mut sender = vole::Sender::setup(plan, SESSION, rng, channel)?;
                sender.extend(&mut u, &mut v, channel)?;
                Ok((Zeroizing::new(u), Zeroizing::new(v)))
            },
            |channel| -> Result<_> {
                let mut w = Zeroizing::new(vec![R::ZERO; n]);
                let rng = Prg::new(seed(1));
                let mut receiver = vole::Receiver::<R>::setup(plan, None, SESSION, rng, channel)?;
                receiver.extend(&mut w, channel)?;
                // Not by value: a thread's return value is moved, and its old location is not
                // zeroized.
                Ok((encoded::<R>(&[receiver.x()]), w))
            },
        );
        let ((u, v), (x, w)) = (sent.unwrap(), received.unwrap());
        vec![encoded::<R>(&u), encoded::<R>(&v), x, encoded::<R>(&w)]
    });
}

/// Four instances in lockstep, a part of whose outputs waits for the next draw.
fn bundle(ring: Field) -> Plan {
    let one = options(Noise::Regular, Security::Malicious, Trees::Half);
    let total = one.total.map(|total| 4 * total);
    let options = PlanOptions { total, instances: Some(4), ..one };
    Plan::new(Kind::Vole(ring), &options).unwrap()
}

/// Three substreams, of which a draw reaches several.
fn side_by_side(kind: Kind) -> Plan {
    let one = options(Noise::Regular, Security::Malicious, Trees::Half);
    Plan::new(kind, &PlanOptions { substreams: Some(3), ..one }).unwrap()
}

pub(crate) fn vector_ole() {
    voles::<Fp61>(Noise::Regular, Security::Malicious, Trees::Half);
    voles::<Gf128>(Noise::Regular, Security::Malicious, Trees::Ggm);
    voles::<Z64>(Noise::Uniform, Security::SemiHonest, Trees::Half);
    voles_of::<Fp61>(&bundle(Fp61::FIELD));
    voles_of::<Gf128>(&bundle(Gf128::FIELD));
    voles_of::<Fp61>(&side_by_side(Kind::Vole(Fp61::FIELD)));
    let kind = Kind::Vole;
    voles_of::<Fp61>(&dual(kind(Fp61::FIELD), Security::Malicious));
    voles_of::<Z64>(&dual(kind(Z64::FIELD), Security::SemiHonest));
}

pub(crate) fn products() {
    look_for(|| {
        const N: usize = 300;
        let u = random::<Fp61>(N, 23);
        let x = Fp61::random(&mut Prg::new(Block::from(13)));
        // Unwrapped in place, as for base OTs.
        let (v, w) = run_two_parties(
            |channel| {
                let mut rng = Prg::new(seed(0));
                let mut v = Zeroizing::new(vec![Fp61::ZERO; N]);
                let mut sender = gilboa::Sender::setup::<Fp61>(SESSION, &mut rng, channel).unwrap();
                sender.multiply_checked(&u, &mut v, &mut rng, channel).unwrap();
                v
            },
            |channel| {
                let mut rng = Prg::new(seed(1));
                let mut w = Zeroizing::new(vec![Fp61::ZERO; N]);
                let mut receiver = gilboa::Receiver::setup(x, SESSION, &mut rng, channel).unwrap();
                receiver.multiply_checked(&mut w, &mut rng, channel).unwrap();
                w
            },
        );
        vec![encoded(&u), encoded(&[x]), encoded(&v), encoded(&w)]
    });
}

/// A peer that disconnects: the keys are zeroized nevertheless.
pub(crate) fn a_session_that_fails() {
    let plan = options(Noise::Regular, Security::Malicious, Trees::Half);
    let plan = Plan::new(Kind::Cot, &plan).unwrap();
    let delta = seed(2) | Block::ONE;
    look_for(|| {
        let (sent, received) = run_two_unchecked(
            |channel| -> Result<()> {
                let rng = Prg::new(seed(0));
                let mut sender = cot::Sender::setup(&plan, Some(delta), SESSION, rng, channel)?;
                let mut v = Zeroizing::new(vec![Block::ZERO; drawn(&plan)]);
                let result = sender.extend(&mut v, channel);
                // Nothing is left even while the object still exists.
                mem::forget(sender);
                result
            },
            |channel| {
                let rng = Prg::new(seed(1));
                cot::Receiver::setup(&plan, SESSION, rng, channel).map(drop)
            },
        );
        assert!(matches!(sent, Err(Error::Disconnected | Error::Io { .. })), "{sent:?}");
        received.unwrap();
        vec![Zeroizing::new(delta.to_bytes().to_vec())]
    });
}

pub(crate) fn oblivious_prf() {
    const N: usize = 3000;
    look_for(|| {
        let mut inputs = Zeroizing::new(vec![Block::ZERO; N]);
        Prg::new(Block::from(14)).fill_blocks(&mut inputs);
        let code = Code::new(&[1; 32], width(N as u64));
        let (sent, received) = run_two_parties(
            |channel| -> Result<_> {
                let mut sender = oprf::Sender::setup(SESSION, Prg::new(seed(0)), channel)?;
                let keys = sender.extend(&code, N, channel)?;
                let mut out = Zeroizing::new(vec![Block::ZERO; N]);
                sender.shift(&code, &inputs, &mut out)?;
                let numbers: Vec<u32> = (0..N as u32).collect();
                keys.evaluate_shifted(&code, &numbers, &inputs, &mut out);
                Ok(words(&out))
            },
            |channel| -> Result<_> {
                let mut receiver = oprf::Receiver::setup(SESSION, Prg::new(seed(1)), channel)?;
                let mut out = Zeroizing::new(vec![Block::ZERO; N]);
                receiver.extend(&code, &inputs, &mut out, channel)?;
                Ok(words(&out))
            },
        );
        vec![sent.unwrap(), received.unwrap(), words(&inputs)]
    });
}

/// `count` items of 24 random bytes from number `first` on, one after another.
fn items(first: u8, count: u8) -> Vec<Zeroizing<[u8; 24]>> {
    let item = |number: u8| {
        let mut item = Zeroizing::new([0; 24]);
        Prg::new(Block::from(1000 + u128::from(number))).fill_bytes(&mut item[..]);
        item
    };
    (first..first + count).map(item).collect()
}

fn plain(items: Vec<Zeroizing<[u8; 24]>>) -> Vec<Vec<u8>> {
    items.iter().map(|item| item.to_vec()).collect()
}

const INTERSECTION: Output = Output::Items { both: false, search: false };

const SEARCH: Output = Output::Items { both: false, search: true };

/// The number of common items, which the receiver learns.
const COUNT: Output = Output::count(Role::Receiver);

/// Looks for copies of `n` items of each party, half of which are common, of as many values, and of
/// more secrets, after these runs of a protocol.
fn match_sets(protocol: Protocol, outputs: &[Output], n: u8, more: Vec<u8>) {
    let mut all = more;
    all.extend(items(0, n / 2 * 5).iter().flat_map(|item| **item));
    blocks_with(all, || {
        let mut sets = [items(0, n), items(n / 2, n), items(n / 2 * 3, n)].map(plain);
        for &output in outputs {
            let [ours, theirs, values] = &sets;
            let values: Option<&dyn Items> = (output == SEARCH).then_some(values);
            let run = |role, items: &dyn Items, values, channel: &mut Channel| {
                let party = Party {
                    role,
                    session: SESSION,
                    rng: Prg::new(seed(role as u8)),
                    parts: 1,
                    items,
                    values,
                    output,
                };
                protocol.run(party, &mut (), channel).unwrap()
            };
            let (_, mut found) = run_two_parties(
                |channel| run(Role::Sender, ours, values, channel).longest,
                |channel| run(Role::Receiver, theirs, None, channel),
            );
            let common = found.common.map(|common| common.len() as u64);
            assert_eq!(common.or(found.count), Some(u64::from(n / 2)));
            zeroize::Zeroize::zeroize(&mut found.values);
        }
        zeroize::Zeroize::zeroize(&mut sets);
    })
    .unwrap();
}

/// The sets of an intersection and the values of a search, or the sets of a count, by each protocol
/// that gives them: no copies of them are made. By Diffie-Hellman also the scalars of the keys,
/// which a party draws after its share of the common seed; for a count the exponents, which are
/// made of the 64 bytes that it draws there, their halves and inverses.
pub(crate) fn matching() {
    for protocol in PROTOCOLS {
        let outputs = [INTERSECTION, SEARCH, COUNT].into_iter();
        let outputs: Vec<_> = outputs.filter(|output| protocol.gives(output)).collect();
        assert!(!outputs.is_empty(), "{protocol:?}");
        let (n, more) = match () {
            () if protocol == &Dh as Protocol => (20, drawn_bytes([32, 320])),
            () if protocol == &Count as Protocol => (20, exponents()),
            () => (100, Vec::new()),
        };
        match_sets(protocol, &outputs, n, more);
    }
}

/// The bytes of these lengths that the parties draw after their shares of the common seed, and the
/// seeds.
fn drawn_bytes(lengths: [usize; 2]) -> Vec<u8> {
    const SHARE: usize = 32;
    let mut all = Vec::new();
    for (party, length) in (0..).zip(lengths) {
        let mut drawn = Zeroizing::new(vec![0; SHARE + length]);
        Prg::new(seed(party)).fill_bytes(&mut drawn[..]);
        all.extend(&drawn[SHARE..]);
        all.extend(seed(party).to_bytes());
    }
    all
}

/// The secrets of [`oblivious_prf`] from vector OLE: the outputs of both parties.
pub(crate) fn oblivious_prf_from_vector_ole() {
    for form in [Form::Malicious, Form::Fast] {
        look_for(|| {
            let items: Vec<_> = (0..3000_u32).map(u32::to_le_bytes).collect();
            let (sent, received) = run_two_parties(
                |channel| {
                    let sender = volery_psi::vole::Sender::new(SESSION, Prg::new(seed(0)));
                    let keys = sender.keys(form, &mut (), channel).unwrap();
                    keys.evaluate(&items)
                },
                |channel| {
                    let receiver = volery_psi::vole::Receiver::new(SESSION, Prg::new(seed(1)));
                    let received = receiver.outputs(&items, form, &mut (), channel);
                    received.unwrap().outputs
                },
            );
            vec![words(&sent), words(&received)]
        });
    }
}

/// Numbers as secrets; the list never moves.
fn numbers(words: &[u64]) -> Secrets {
    let mut bytes = Zeroizing::new(Vec::with_capacity(8 * words.len()));
    words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes
}

/// Circuit-PSI: the shares of both parties, and their values.
pub(crate) fn shares_of_an_intersection() {
    look_for(|| {
        let items: Vec<_> = (0..300_u32).map(u32::to_le_bytes).collect();
        let mut values = Zeroizing::new(vec![0_u64; 300]);
        let mut random = Prg::new(Block::from(12));
        values.iter_mut().for_each(|value| *value = random.next_u64());
        let settings = circuit::Settings {
            payload: 1,
            weights: 1,
            products: 1,
            selections: 1,
            ..circuit::Settings::default()
        };
        let collect = |slice: &circuit::Slice, secrets: &mut Vec<Secrets>| {
            for column in slice.payload.iter().chain(&slice.weights) {
                secrets.push(numbers(column));
            }
        };
        let (sent, received) = run_two_parties(
            |channel| {
                let (own, mut secrets) = ((SESSION, Prg::new(seed(0))), Vec::new());
                let columns = [&values[..]];
                let mut sender =
                    circuit::Sender::setup(&items, &columns, settings, own, &mut (), channel)
                        .unwrap();
                while let Some(slice) = sender.next(channel).unwrap() {
                    collect(&slice, &mut secrets);
                    let column = &slice.payload[0];
                    secrets.push(numbers(&sender.multiply(column, channel).unwrap()));
                    secrets.push(numbers(&sender.select(column, channel).unwrap()));
                }
                secrets
            },
            |channel| {
                let (own, mut secrets) = ((SESSION, Prg::new(seed(1))), Vec::new());
                let columns = [&values[..]];
                let mut receiver =
                    circuit::Receiver::setup(&items, &columns, settings, own, &mut (), channel)
                        .unwrap();
                while let Some(slice) = receiver.next(channel).unwrap() {
                    collect(&slice, &mut secrets);
                    let column = &slice.payload[0];
                    secrets.push(numbers(&receiver.multiply(column, channel).unwrap()));
                    let mut bits = Zeroizing::new(vec![0; column.len().div_ceil(8)]);
                    random.fill_bytes(&mut bits);
                    secrets.push(numbers(&receiver.select(&bits, column, channel).unwrap()));
                    secrets.push(bits);
                }
                secrets
            },
        );
        let values = numbers(&values);
        sent.into_iter().chain(received).chain([values]).collect()
    });
}

/// The secrets of [`Count`] that are made of random bytes.
fn exponents() -> Vec<u8> {
    const WIDE: usize = 64;
    let mut all = drawn_bytes([WIDE; 2]);
    for start in [0, WIDE + seed(0).to_bytes().len()] {
        let wide = all[start..][..WIDE].try_into().unwrap();
        let secret = Scalar::from_bytes_mod_order_wide(&wide);
        let half = Scalar::from(2_u8).invert();
        for scalar in [secret, secret * half, secret.invert(), secret.invert() * half] {
            all.extend(scalar.to_bytes());
        }
    }
    all
}

/// A served query: the key, the items of both, and the client's random scalars with their inverses.
pub(crate) fn a_served_query() {
    let draw = |rng: &mut Prg| {
        let mut wide = Zeroizing::new([0; 64]);
        rng.fill_bytes(&mut wide[..]);
        Scalar::from_bytes_mod_order_wide(&wide)
    };
    let mut all: Vec<u8> = items(0, 30).iter().flat_map(|item| **item).collect();
    let mut rngs = [0, 1].map(|party| Prg::new(seed(party)));
    // The key, and the random scalar of its only proof.
    for _ in 0..2 {
        let secret = draw(&mut rngs[0]);
        all.extend(secret.to_bytes());
        all.extend((secret * Scalar::from(2_u8).invert()).to_bytes());
    }
    for _ in 0..20 {
        let blind = draw(&mut rngs[1]);
        all.extend(blind.to_bytes());
        all.extend(blind.invert().to_bytes());
    }
    for party in 0..2 {
        all.extend(seed(party).to_bytes());
    }
    drop(rngs);
    blocks_with(all, || {
        let mut sets = [items(0, 20), items(10, 20)].map(plain);
        let [ours, theirs] = &sets;
        let mut rng = Prg::new(seed(0));
        let key = served::Key::random(&mut rng);
        let filter = served::prepare(&key, ours, 1000, &mut ()).unwrap();
        let server = served::Server::new(key, &filter).unwrap();
        let (_, queried) = run_two_parties(
            move |channel| {
                let budget = served::Budget::new(20);
                let answered = server.answer(&mut rng, &budget, &mut (), channel);
                answered.unwrap()
            },
            |channel| {
                let client = served::Client::new(&filter, Prg::new(seed(1)));
                client.query(theirs, &mut (), channel).unwrap().common
            },
        );
        assert_eq!(queried.len(), 10);
        zeroize::Zeroize::zeroize(&mut sets);
    })
    .unwrap();
}
