//! Both parties of every building block: over ideal sources and real ones, over memory and TCP,
//! and against peers that deviate.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use volery_channel::tamper::Tampered;
use volery_channel::{
    Channel, Error, Link, Result, Role, Session, SessionId, memory, run_two_channels,
    run_two_parties, run_two_parties_tcp, run_two_unchecked,
};
use volery_field::{ExtensionOf, F2, Fp61, Gf128, Ring, Z64};
use volery_mpc::authenticated::{Party, Values};
use volery_mpc::{STATISTICAL, bits, mascot, ole, tinyot};
use volery_ot::{CotReceiver, CotSender, convert, ideal};
use volery_pcg::vole::{self, FromCot, VoleReceiver, VoleSender};
use volery_pcg::{Security, cot};
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

/// The dealer's COTs of a party, with a `delta` of its role where it is the sender.
fn dealt(role: Role) -> (ideal::Sender, ideal::Receiver) {
    let delta = |role| tinyot::delta(role, &mut rng(role as u128));
    let pair = |role: Role| ideal::pair(delta(role), Block::from(10 + role as u128));
    (pair(role).0, pair(role.other()).1)
}

fn ots(role: Role) -> (convert::Sender<ideal::Sender>, convert::Receiver<ideal::Receiver>) {
    let (sender, receiver) = dealt(role);
    let id = |role| id(role as u8);
    (convert::Sender::new(sender, id(role)), convert::Receiver::new(receiver, id(role.other())))
}

/// Runs both parties, whose shares are triples `a*b == c` with random factors.
fn assert_products<R: Ring>(make: impl Fn(Role, &mut Channel) -> [Vec<R>; 3] + Sync) {
    let (left, right) = run_two_parties(
        |channel| make(Role::Sender, channel),
        |channel| make(Role::Receiver, channel),
    );
    let sum = |k: usize, i: usize| left[k][i] + right[k][i];
    let n = left[2].len();
    let wrong = (0..n).find(|&i| sum(2, i) != sum(0, i) * sum(1, i));
    assert_eq!(wrong, None, "the first wrong product of {n}, {}", R::NAME);
    let ones = |k| (0..n).filter(|&i| bool::from(sum(k, i).bit(0))).count();
    assert!(n < 100 || (0..2).all(|k| ones(k).abs_diff(n / 2) < n / 4), "random factors");
}

fn unpack(triples: &bits::Triples) -> [Vec<F2>; 3] {
    let unpack = |bits| (0..triples.len).map(|i| F2::new(bit(bits, i))).collect();
    [&triples.a, &triples.b, &triples.c].map(|bits| unpack(bits))
}

#[test]
fn semi_honest_triples_are_products() {
    fn check<R: Ring>(n: usize) {
        assert_products(|role, channel| {
            let ((mut sender, mut receiver), mut rng) = (ots(role), rng(70 + role as u128));
            let ots = (&mut sender, &mut receiver);
            let out = ole::triples::<R>(n, role, ots, &mut rng, channel).unwrap();
            let products = n * R::BITS as usize;
            let sent = channel.stats().bytes_sent as usize;
            assert_eq!(sent, products * R::BYTES + bytes_for(products));
            [&out.a, &out.b, &out.c].map(Vec::clone)
        });
    }
    for n in [0, 1, 3, 65] {
        check::<Z64>(n);
        check::<Fp61>(n);
        check::<Gf128>(n);
    }
    for n in [0, 1, 7, 8, 9, (1 << 14) + 3] {
        assert_products(|role, channel| {
            let (mut sender, mut receiver) = ots(role);
            unpack(&bits::triples(n, role, (&mut sender, &mut receiver), channel).unwrap())
        });
    }
}

fn tiny(role: Role) -> tinyot::Party<FromCot<ideal::Receiver>, FromCot<ideal::Sender>> {
    let (sender, receiver) = dealt(role);
    Party::new(role, FromCot(receiver), FromCot(sender), id(3), rng(80 + role as u128)).unwrap()
}

fn fields(role: Role) -> Party<vole::ideal::Sender<Fp61>, vole::ideal::Receiver<Fp61>, Fp61> {
    let pair =
        |role: Role| vole::ideal::pair(Fp61::reduce(5 + role as u64), Block::from(role as u128));
    Party::new(role, pair(role).0, pair(role.other()).1, id(4), rng(role as u128)).unwrap()
}

fn field_triples<U: VoleSender<Fp61>, V: VoleReceiver<Fp61>>(
    n: usize,
    role: Role,
    party: &mut Party<U, V, Fp61>,
    channel: &mut Channel,
) -> Result<[Values<Fp61>; 3]> {
    let (mut sender, mut receiver) = ots(role);
    mascot::triples(n, party, (&mut sender, &mut receiver), channel)
}

/// Products of both parties' inputs by triples, which `make` makes in `sent` bytes; the triples.
fn multiply<U: VoleSender<R, B>, V: VoleReceiver<R>, R: ExtensionOf<B>, B: Ring>(
    (role, n): (Role, usize),
    party: &mut Party<U, V, R, B>,
    make: impl FnOnce(&mut Party<U, V, R, B>, &mut Channel) -> Result<[Values<R, B>; 3]>,
    sent: Option<usize>,
    channel: &mut Channel,
) -> Result<[Vec<B>; 3]> {
    let mut own = [vec![B::ZERO; n], vec![B::ZERO; n]];
    own.iter_mut().for_each(|own| B::random_slice(&mut rng(90 + role as u128), own));
    let [x, y] = [party.input(&own[0], channel)?, party.input(&own[1], channel)?];
    let before = channel.stats().bytes_sent;
    let triples = make(party, channel)?;
    let bytes = (channel.stats().bytes_sent - before) as usize;
    assert!(sent.is_none_or(|sent| bytes == sent), "{bytes} bytes of {sent:?}");
    let shares = triples.each_ref().map(|of| of.shares().to_vec());
    let mut z = party.multiply([&x, &y], triples, channel)?;
    let random = party.random(n, channel)?;
    z.add(&random);
    z.subtract(&random);
    let [x, y, z] = [party.open(&x, channel)?, party.open(&y, channel)?, party.open(&z, channel)?];
    assert!((0..n).all(|i| z[i] == x[i] * y[i]));
    channel.flush()?;
    Ok(shares)
}

#[test]
fn authenticated_triples_multiply() {
    for n in [0, 1, 2, 13, 321, 3044] {
        let both = |role| if role == Role::Sender { 6 * 32 } else { 2 * 32 };
        assert_products(|role, channel| {
            let (size, m) = (tinyot::bucket(n), tinyot::bucket(n) * n);
            let opened = (size - 1) * (bytes_for(n) + 32);
            let sent = bytes_for(STATISTICAL) + 16 * m + bytes_for(m) + opened + both(role);
            let make = |party: &mut _, channel: &mut _| tinyot::triples(n, party, channel);
            multiply((role, n), &mut tiny(role), make, Some(sent), channel).unwrap()
        });
        let n = n.min(33);
        assert_products(|role, channel| {
            let sent = 244 * 8 * n + bytes_for(244 * n) + 7 * 8 * n + 64 + both(role);
            let make = |party: &mut _, c: &mut _| field_triples(n, role, party, c);
            multiply((role, n), &mut fields(role), make, Some(sent), channel).unwrap()
        });
    }
}

#[test]
fn authenticated_triples_over_real_correlations_and_tcp() {
    let party = |role: Role| {
        move |channel: &mut Channel| {
            let plan = cot::plan(Some(9000), Link::default(), Security::Malicious);
            let mut session = Session::new(&mut *channel, id(9), rng(60 + role as u128));
            let mut party = tinyot::start(&plan, role, &mut session)?;
            let make = |party: &mut _, channel: &mut _| tinyot::triples(321, party, channel);
            multiply((role, 321), &mut party, make, None, channel)?;

            let plan = vole::plan::<Fp61>(Some(100), Link::default(), Security::Malicious).unwrap();
            let mut session = Session::new(&mut *channel, id(5), rng(62 + role as u128));
            let (values, keys) = if role == Role::Sender {
                let values = vole::Sender::<Fp61>::start(&plan, &mut session)?;
                (values, vole::Receiver::<Fp61>::start(&plan, None, &mut session)?)
            } else {
                let keys = vole::Receiver::<Fp61>::start(&plan, None, &mut session)?;
                (vole::Sender::<Fp61>::start(&plan, &mut session)?, keys)
            };
            session.flush()?;
            let mut party = Party::new(role, values, keys, id(4), rng(role as u128))?;
            let make = |party: &mut _, c: &mut _| field_triples(7, role, party, c);
            multiply((role, 7), &mut party, make, None, channel)
        }
    };
    let (left, right) = run_two_parties_tcp(party(Role::Sender), party(Role::Receiver));
    left.unwrap();
    right.unwrap();
}

fn misbehaved<T>(result: &Result<T>, what: &str) -> bool {
    matches!(result, Err(Error::PeerMisbehaved(text)) if text.contains(what))
}

/// Runs both parties, with byte `at` changed of what the party `bad` sends: the other one's result.
fn tampered<T: Send>(
    (bad, at, mask): (Role, usize, u8),
    party: impl Fn(Role, &mut Channel) -> Result<T> + Sync,
) -> Result<T> {
    let (left, right) = memory::pair();
    let [own, peer] = bad.sides([left, right]);
    let own = Channel::new(Tampered::flip(own, at as u64, mask));
    let ((_, _), (honest, _)) = run_two_channels(
        own,
        Channel::new(peer),
        |channel| party(bad, channel),
        |channel| party(bad.other(), channel),
    );
    honest
}

#[test]
fn a_changed_byte_of_triples_over_f2_is_caught() {
    let n = 5;
    let m = tinyot::bucket(n) * n;
    let run = |role: Role, channel: &mut Channel| {
        let mut party = tiny(role);
        let caught = tinyot::triples(n, &mut party, channel);
        assert!(
            caught.is_ok() || matches!(party.open(&Values::zeros(1), channel), Err(Error::Broken))
        );
        caught
    };
    let (d, bits) = (bytes_for(STATISTICAL) + 16 * m, bytes_for(m));
    for bad in Role::ALL {
        let both = if bad == Role::Sender { 6 * 32 } else { 2 * 32 };
        for (at, what) in [
            (0, "lowest bit"),
            (d, "check of its triples"),
            (d + bits + both, "an opened value"),
            (d + bits + both + 2, "an opened value"),
        ] {
            let caught = tampered((bad, at, 1), run);
            assert!(misbehaved(&caught, what), "{bad} {at}: {:?}", caught.map(drop));
        }
        // A wrong block is caught if the peer's bit is one.
        let wrong = |j: &usize| tampered((bad, bytes_for(STATISTICAL) + 16 * j, 2), run).is_err();
        assert!((5..=25).contains(&(0..30).filter(wrong).count()));
    }
    let seed = tampered((Role::Sender, d + bits + 5 * 32, 1), run);
    assert!(misbehaved(&seed, "committed"));
}

/// A party whose `delta` is that of the other role: a dealer's `v` does not depend on it.
#[test]
fn a_delta_without_its_lowest_bit_is_caught() {
    for honest in Role::ALL {
        let party = |role: Role| {
            move |channel: &mut Channel| {
                let (sender, mut receiver) = dealt(role);
                if role == honest {
                    let delta = tinyot::delta(role.other(), &mut rng(role.other() as u128));
                    let seed = Block::from(10 + role.other() as u128);
                    receiver = ideal::pair(delta ^ Block::ONE, seed).1;
                }
                let mut party =
                    Party::new(role, FromCot(receiver), FromCot(sender), id(3), rng(1))?;
                tinyot::triples(3, &mut party, channel).map(drop)
            }
        };
        let both = run_two_unchecked(party(Role::Sender), party(Role::Receiver));
        let [own, _] = honest.sides([both.0, both.1]);
        assert!(misbehaved(&own, "lowest bit"), "{honest}");
    }
}

#[test]
fn a_changed_byte_of_triples_over_fp61_is_caught() {
    let n = 3;
    let run = |role: Role, c: &mut Channel| field_triples(n, role, &mut fields(role), c);
    let (products, choices) = (244 * 8 * n, bytes_for(244 * n));
    for bad in Role::ALL {
        let seed = if bad == Role::Sender { 96 } else { 32 };
        let inputs = products + choices + seed;
        let opened = inputs + 5 * 8 * n + seed;
        for at in [inputs, inputs + 16 * n, opened, opened + 8 * n, opened + 8 * n + 32] {
            let caught = tampered((bad, at, 1), run);
            assert!(misbehaved(&caught, "opened value"), "{bad} {at}");
        }
        // A wrong correction is caught if the peer's bit is one.
        let first = if bad == Role::Sender { 0 } else { choices };
        let wrong = |j: &usize| misbehaved(&tampered((bad, first + 8 * j, 1), run), "sacrifice");
        assert!((3..=17).contains(&(0..20).filter(wrong).count()));
        assert!(misbehaved(&tampered((bad, inputs + 7, 0xff), run), "canonical"));
    }
}
