//! Both parties of every building block: over ideal sources and real ones, over memory and TCP,
//! and against peers that deviate.

use volery_channel::tamper::Tampered;
use volery_channel::{
    Channel, Error, Link, Result, Role, SessionId, memory, run_two_channels, run_two_parties,
    run_two_parties_tcp, run_two_unchecked,
};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_mpc::{STATISTICAL, arithmetic, authenticated, bits, ole, one_of_n, spdz};
use volery_ot::{CotReceiver, CotSender, convert, ideal};
use volery_pcg::{Security, cot, vole, vole::VoleReceiver, vole::VoleSender};
use volery_primitives::bits::{bit, bytes_for};
use volery_primitives::{Block, prg::Prg};

mod one;
mod saved;

fn id(number: u8) -> SessionId {
    SessionId::from_bytes([number; 32])
}

fn rng(seed: u128) -> Prg {
    Prg::new(Block::from(seed))
}

/// The dealer's COTs of a party, with a `delta` of its role in its own direction.
fn dealt(role: Role) -> (ideal::Sender, ideal::Receiver) {
    let of = |role| authenticated::delta(role, &mut rng(role as u128));
    let pair = |role: Role| ideal::pair(of(role), Block::from(10 + role as u128));
    (pair(role).0, pair(role.other()).1)
}

type Ots<S, R> = (convert::Sender<S>, convert::Receiver<R>);

fn ots(role: Role) -> Ots<ideal::Sender, ideal::Receiver> {
    let (sender, receiver) = dealt(role);
    let id = |role| id(role as u8);
    (convert::Sender::new(sender, id(role)), convert::Receiver::new(receiver, id(role.other())))
}

/// Real COTs in both directions.
fn real(role: Role, n: usize, channel: &mut Channel) -> Result<(cot::Sender, cot::Receiver)> {
    let plan = cot::plan(Some(n as u64), Link::default(), Security::Malicious);
    let mut own = rng(40 + role as u128);
    let delta = authenticated::delta(role, &mut own);
    let mut sender = |channel: &mut Channel| {
        let sender =
            cot::Sender::setup(&plan, Some(delta), id(50 + role as u8), own.fork("s"), channel)?;
        channel.flush()?;
        Ok::<_, Error>(sender)
    };
    let receiver = |channel: &mut Channel| {
        let id = id(50 + role.other() as u8);
        let receiver = cot::Receiver::setup(&plan, id, rng(60 + role as u128), channel)?;
        channel.flush()?;
        Ok::<_, Error>(receiver)
    };
    match role {
        Role::Sender => Ok((sender(channel)?, receiver(channel)?)),
        Role::Receiver => {
            let receiver = receiver(channel)?;
            Ok((sender(channel)?, receiver))
        }
    }
}

fn assert_products(n: usize, [left, right]: [[&[u8]; 3]; 2]) {
    let sum = |k: usize, i| bit(left[k], i) ^ bit(right[k], i);
    let wrong = (0..n).find(|&i| sum(2, i) != (sum(0, i) & sum(1, i)));
    assert_eq!(wrong, None, "the first wrong product of {n}");
    if n > 100 {
        let ones = |k| (0..n).filter(|&i| sum(k, i)).count();
        assert!((0..2).all(|k| ones(k).abs_diff(n / 2) < n / 4), "random factors");
    }
}

#[test]
fn semi_honest_triples_over_f2_are_products() {
    for n in [0, 1, 7, 8, 9, 1000, (1 << 14) + 3] {
        let party = |role| {
            move |channel: &mut Channel| {
                let mut ots = ots(role);
                bits::triples(n, role, (&mut ots.0, &mut ots.1), channel).unwrap()
            }
        };
        let (a, b) = run_two_parties(party(Role::Sender), party(Role::Receiver));
        assert_products(n, [&a, &b].map(|t| [&t.a[..], &t.b, &t.c]));
    }
}

/// The lengths of the two halves of a triple's factors are the rings' own.
fn arithmetic_triples<R: Ring>(n: usize) {
    let party = |role| {
        move |channel: &mut Channel| {
            let (mut ots, mut rng) = (ots(role), rng(70 + role as u128));
            let triples = (&mut ots.0, &mut ots.1);
            let out = arithmetic::triples::<R>(n, role, triples, &mut rng, channel).unwrap();
            (out, channel.stats().bytes_sent)
        }
    };
    let ((a, sent), (b, _)) = run_two_parties(party(Role::Sender), party(Role::Receiver));
    for i in 0..n {
        let product = (a.a[i] + b.a[i]) * (a.b[i] + b.b[i]);
        assert!(a.c[i] + b.c[i] == product, "triple {i} of {n} over {}", R::NAME);
    }
    // Corrections of one direction, and choice bits of the other.
    let width = R::BITS as usize;
    let expected = n * width * R::BYTES + bytes_for(n * width);
    assert_eq!(sent, expected as u64);
}

#[test]
fn arithmetic_triples_are_products() {
    for n in [0, 1, 3, 65] {
        arithmetic_triples::<Z64>(n);
        arithmetic_triples::<Fp61>(n);
        arithmetic_triples::<Gf128>(n);
    }
}

#[test]
fn ole_multiplies_what_both_parties_choose() {
    let (a, b) = ([3, 5, 0, u64::MAX].map(Z64::new), [7, 11, 9, 2].map(Z64::new));
    let (p, q) = run_two_parties(
        |channel| ole::send(&a, &mut ots(Role::Sender).0, channel).unwrap(),
        |channel| ole::receive(&b, &mut ots(Role::Receiver).1, channel).unwrap(),
    );
    assert!((0..4).all(|i| p[i] + q[i] == a[i] * b[i]));
}

type Tiny<S, R> = authenticated::Party<S, R>;

fn tiny(
    role: Role,
    channel: &mut Channel,
) -> Result<Tiny<impl CotSender + use<>, impl CotReceiver + use<>>> {
    let (sender, receiver) = dealt(role);
    Tiny::start(role, sender, receiver, id(3), rng(80 + role as u128), channel)
}

/// Products of inputs of both parties, opened: everything that is authenticated fits.
fn products<S: CotSender, R: CotReceiver>(
    party: &mut Tiny<S, R>,
    role: Role,
    n: usize,
    channel: &mut Channel,
) -> Result<[Vec<u8>; 5]> {
    let mut own = vec![0; bytes_for(n)];
    rng(90 + role as u128).fill_bytes(&mut own);
    let mut input = |owner, channel: &mut Channel| {
        party.input(owner, (owner == role).then_some(&own[..]), n, channel)
    };
    let (x, y) = (input(Role::Sender, channel)?, input(Role::Receiver, channel)?);
    let triples = party.triples(n, channel)?;
    let mut z = party.multiply(&x, &y, triples, channel)?;
    let ones = vec![0xff; bytes_for(n)];
    party.add_public(&mut z, &ones)?;
    let random = party.random(n, channel)?;
    z.add(&random);
    let [x, y, z] = [&x, &y, &z].map(|bits| party.open(bits, channel));
    Ok([x?, y?, z?, party.open(&random, channel)?, own])
}

fn assert_multiplied(n: usize, [left, right]: [[Vec<u8>; 5]; 2]) {
    assert_eq!(left[..4], right[..4], "both open the same");
    for i in 0..n {
        let (x, y) = (bit(&left[4], i), bit(&right[4], i));
        assert_eq!((x, y), (bit(&left[0], i), bit(&left[1], i)), "input {i}");
        assert_eq!(bit(&left[2], i), !(x & y) ^ bit(&left[3], i), "product {i} of {n}");
    }
}

#[test]
fn authenticated_triples_multiply() {
    for n in [0, 1, 2, 3, 8, 13, 321, 3044] {
        let party = |role| {
            move |channel: &mut Channel| {
                let mut party = tiny(role, channel).unwrap();
                let before = channel.stats().bytes_sent;
                let triples = party.triples(n, channel).unwrap();
                let sent = channel.stats().bytes_sent - before;
                let size = authenticated::bucket(n);
                let opened = (size - 1) * (bytes_for(n) + 32);
                // G and its bit; the parts of the comparison and of the seed.
                let fixed = if role == Role::Sender { 4 * 32 } else { 2 * 32 };
                assert_eq!(sent as usize, 16 * size * n + bytes_for(size * n) + opened + fixed);
                let out = products(&mut party, role, n, channel).unwrap();
                (triples.map(|bits| bits.shares().to_vec()), out)
            }
        };
        let ((a, left), (b, right)) = run_two_parties(party(Role::Sender), party(Role::Receiver));
        assert_products(n, [&a, &b].map(|t| [&t[0][..], &t[1], &t[2]]));
        assert_multiplied(n, [left, right]);
    }
}

#[test]
fn authenticated_triples_over_real_correlations_and_tcp() {
    let n = 400;
    let party = |role| {
        move |channel: &mut Channel| {
            let (sender, receiver) = real(role, 20_000, channel)?;
            let mut party = Tiny::start(role, sender, receiver, id(3), rng(role as u128), channel)?;
            let out = products(&mut party, role, n, channel)?;
            channel.flush()?;
            Ok::<_, Error>(out)
        }
    };
    let (left, right) = run_two_parties_tcp(party(Role::Sender), party(Role::Receiver));
    assert_multiplied(n, [left.unwrap(), right.unwrap()]);
}

fn misbehaved<T>(result: &Result<T>, what: &str) -> bool {
    matches!(result, Err(Error::PeerMisbehaved(text)) if text.contains(what))
}

/// Runs both parties; flips a bit of the byte at `at`, counted from the end of `honest` bytes if it
/// is negative, of what the party `bad` sends. Returns what the other party gets.
fn tampered<T: Send>(
    bad: Role,
    at: u64,
    party: impl Fn(Role, &mut Channel) -> Result<T> + Sync,
) -> Result<T> {
    let (left, right) = memory::pair();
    let channels = match bad {
        Role::Sender => (Channel::new(Tampered::flip(left, at, 1)), Channel::new(right)),
        Role::Receiver => (Channel::new(left), Channel::new(Tampered::flip(right, at, 1))),
    };
    let ((left, _), (right, _)) = run_two_channels(
        channels.0,
        channels.1,
        |channel| party(Role::Sender, channel),
        |channel| party(Role::Receiver, channel),
    );
    if bad == Role::Sender { right } else { left }
}

/// Each byte of a run matters, except the openings of commitments that nobody needs.
#[test]
fn a_changed_byte_of_authenticated_triples_is_caught() {
    let n = 5;
    let m = authenticated::bucket(n) * n;
    let run = |role: Role, channel: &mut Channel| {
        let mut party = tiny(role, channel)?;
        party.triples(n, channel)
    };
    let (proof, g, bits) = (bytes_for(STATISTICAL), 16 * m, bytes_for(m));
    for bad in Role::ALL {
        let opened = if bad == Role::Sender { 4 * 32 } else { 2 * 32 };
        let places = [
            (0, "lowest bit"),
            (proof + g, "check of its triples"),
            (proof + g + bits, "check of its triples"),
            (proof + g + bits + opened, "an opened bit"),
            (proof + g + bits + opened + 2, "an opened bit"),
        ];
        for (at, what) in places {
            let caught = tampered(bad, at as u64, run);
            // A sender whose bit was changed notices first, and the receiver that it has gone.
            let gone = bad == Role::Receiver || matches!(caught, Err(Error::Disconnected));
            assert!(misbehaved(&caught, what) || gone && caught.is_err(), "{bad} {at} {what}");
        }
        // A wrong block is caught if the peer's bit is one: of 30, one is.
        let caught = (0..30).filter(|j| tampered(bad, (proof + 16 * j + 5) as u64, run).is_err());
        assert!((5..=25).contains(&caught.count()));
    }
    // The sender's part of the seed is not that of its commitment.
    let at = proof + g + bits + 3 * 32;
    let caught = tampered(Role::Sender, at as u64, run);
    assert!(misbehaved(&caught, "common seed"));
}

/// A party whose `delta` is that of the other role is caught before any triple.
#[test]
fn a_delta_without_its_lowest_bit_is_caught() {
    for bad in Role::ALL {
        let party = |role: Role| {
            move |channel: &mut Channel| {
                let (sender, receiver) = dealt(role);
                if role == bad {
                    // As the honest party would, with the keys of another delta.
                    let (mut sender, mut receiver) = (sender, receiver);
                    let (mut keys, mut macs) =
                        ([Block::ZERO; STATISTICAL], [Block::ZERO; STATISTICAL]);
                    let mut shares = [0; STATISTICAL / 8];
                    sender.extend(&mut keys, channel)?;
                    receiver.extend(&mut shares, &mut macs, channel)?;
                    let mut bits = [0; STATISTICAL / 8];
                    volery_primitives::bits::lowest_bits(&keys, &mut bits);
                    if role == Role::Sender {
                        channel.send(&bits)?;
                        channel.flush()?;
                        return channel.recv(&mut bits);
                    }
                    channel.recv(&mut bits)?;
                    channel.send(&keys.map(|key| key.low() as u8)[..STATISTICAL / 8])?;
                    return channel.flush();
                }
                let receiver = Flipped(receiver);
                Tiny::start(role, sender, receiver, id(3), rng(1), channel).map(|_| ())
            }
        };
        let (left, right) = run_two_unchecked(party(Role::Sender), party(Role::Receiver));
        let honest = if bad == Role::Sender { right } else { left };
        assert!(misbehaved(&honest, "lowest bit"), "{bad}");
    }
}

/// MACs for a `delta` with another lowest bit.
struct Flipped(ideal::Receiver);

impl CotReceiver for Flipped {
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], channel: &mut Channel) -> Result<()> {
        self.0.extend(u, w, channel)?;
        for (i, w) in w.iter_mut().enumerate() {
            *w ^= Block::from(u128::from(bit(u, i)));
        }
        Ok(())
    }
}

#[test]
fn a_party_that_failed_refuses_every_call() {
    let (honest, ()) = run_two_unchecked(
        |channel| {
            let mut party = tiny(Role::Sender, channel).unwrap();
            assert!(matches!(party.triples(3, channel), Err(Error::Disconnected)));
            let broken = matches!(party.random(1, channel), Err(Error::Broken));
            broken && matches!(party.triples(0, channel), Err(Error::Broken))
        },
        |channel| drop(tiny(Role::Receiver, channel)),
    );
    assert!(honest);
}

fn spdz(
    role: Role,
) -> spdz::Party<impl CotSender, impl CotReceiver, impl VoleSender<Fp61>, impl VoleReceiver<Fp61>> {
    let pair = |role: Role| {
        vole::ideal::pair::<Fp61, Fp61>(Fp61::reduce(5 + role as u64), Block::from(role as u128))
    };
    let voles = (pair(role).0, pair(role.other()).1);
    spdz::Party::new(role, dealt(role), voles, id(4), rng(100 + role as u128)).unwrap()
}

#[test]
fn authenticated_elements_multiply() {
    for n in [0, 1, 33] {
        let party = |role| {
            move |channel: &mut Channel| {
                let mut party = spdz(role);
                let mut own = [vec![Fp61::ZERO; n], vec![Fp61::ZERO; n]];
                own.iter_mut().for_each(|own| Fp61::random_slice(&mut rng(role as u128), own));
                let x = party.input(&own[0], channel).unwrap();
                let y = party.input(&own[1], channel).unwrap();
                let before = channel.stats().bytes_sent;
                let triples = party.triples(n, channel).unwrap();
                let sent = (channel.stats().bytes_sent - before) as usize;
                let fixed = 2 * 32 + if role == Role::Sender { 4 } else { 2 } * 32;
                assert_eq!(sent, 4 * 61 * 8 * n + bytes_for(4 * 61 * n) + 7 * 8 * n + fixed);
                let mut z = party.multiply(&x, &y, triples, channel).unwrap();
                let random = party.random(n, channel).unwrap();
                z.add(&random);
                z.subtract(&random);
                (own, party.open(&z, channel).unwrap())
            }
        };
        let ((a, left), (b, right)) = run_two_parties(party(Role::Sender), party(Role::Receiver));
        assert!(left == right && left.len() == n);
        for i in 0..n {
            assert!(left[i] == (a[0][i] + b[0][i]) * (a[1][i] + b[1][i]), "product {i} of {n}");
        }
    }
}

#[test]
fn authenticated_elements_over_real_correlations() {
    let party = |role| {
        move |channel: &mut Channel| {
            let cots = real(role, 3000, channel)?;
            let plan = vole::plan::<Fp61>(Some(100), Link::default(), Security::Malicious).unwrap();
            let values = |channel: &mut Channel| {
                let id = id(20 + role as u8);
                let out = vole::Sender::<Fp61>::setup(&plan, id, rng(200 + role as u128), channel);
                channel.flush().and(out)
            };
            let keys = |channel: &mut Channel| {
                let (id, rng) = (id(20 + role.other() as u8), rng(300 + role as u128));
                let out = vole::Receiver::<Fp61>::setup(&plan, None, id, rng, channel);
                channel.flush().and(out)
            };
            let voles = match role {
                Role::Sender => (values(channel)?, keys(channel)?),
                Role::Receiver => {
                    let keys = keys(channel)?;
                    (values(channel)?, keys)
                }
            };
            let mut party = spdz::Party::new(role, cots, voles, id(4), rng(role as u128))?;
            let [a, b, c] = party.triples(10, channel)?;
            let [a, b, c] = [a, b, c].map(|of| party.open(&of, channel));
            channel.flush()?;
            Ok::<_, Error>([a?, b?, c?])
        }
    };
    let (left, right) = run_two_parties(party(Role::Sender), party(Role::Receiver));
    let ([a, b, c], right) = (left.unwrap(), right.unwrap());
    assert!((0..10).all(|i| a[i] * b[i] == c[i] && right[2][i] == c[i]));
}

#[test]
fn a_changed_byte_of_arithmetic_triples_is_caught() {
    let n = 3;
    let run = |role: Role, channel: &mut Channel| spdz(role).triples(n, channel);
    let (products, choices) = (4 * 61 * 8 * n, bytes_for(4 * 61 * n));
    for bad in Role::ALL {
        let seed = if bad == Role::Sender { 64 } else { 32 };
        let authenticated = products + choices + seed;
        let opened = authenticated + 5 * 8 * n + seed;
        let places = [
            (authenticated, "opened element"),
            (authenticated + 8 * n, "opened element"),
            (authenticated + 8 * n * 2, "opened element"),
            (opened, "opened element"),
            (opened + 8 * n, "opened element"),
            (opened + 8 * n + 32, "opened element"),
        ];
        for (at, what) in places {
            let caught = tampered(bad, at as u64, run);
            assert!(misbehaved(&caught, what), "{bad} {at}: {:?}", caught.map(|_| ()));
        }
        // A wrong correction is caught if the peer's bit is one: of 20, some are.
        let first = if bad == Role::Sender { 0 } else { choices };
        let caught = (0..20)
            .filter(|j| misbehaved(&tampered(bad, (first + 8 * j) as u64, run), "sacrifice"));
        assert!((3..=17).contains(&caught.count()));
    }
    // An element of which the top bits are set.
    let at = products + choices + 64 + 7;
    let (left, right) = memory::pair();
    let bad = Channel::new(Tampered::flip(left, at as u64, 0xff));
    let (_, (caught, _)) = run_two_channels(
        bad,
        Channel::new(right),
        |channel| run(Role::Sender, channel).map(drop),
        |channel| {
            let mut party = spdz(Role::Receiver);
            let caught = party.triples(n, channel);
            assert!(matches!(party.random(1, channel), Err(Error::Broken)));
            caught
        },
    );
    assert!(misbehaved(&caught, "canonical"));
}
