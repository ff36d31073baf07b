//! Whole steps of one party, against a peer that replays recorded messages.

use std::hint::black_box;

use volery_channel::{Channel, Result, SessionId};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_ot::softspoken::{self, SmallField};
use volery_ot::{CotReceiver, CotSender, base, convert};
use volery_pcg::gilboa;
use volery_primitives::{Block, prg::Prg};
use volery_psi::dh;

use crate::Promise::Constant;
use crate::replay::{Recording, record, replay};
use crate::welch::Bench;
use crate::{Step, bits, blocks};

const SESSION: SessionId = SessionId::from_bytes([7; 32]);

/// OTs of a step.
const N: usize = 256;

pub(crate) fn all(samples: usize) -> Vec<Step> {
    vec![
        choosing(samples / 4),
        correcting(samples / 4),
        hashing(samples / 4),
        base_choices(samples / 50),
        extension(samples / 20),
        multiplication::<Fp61>(samples / 20),
        multiplication::<Z64>(samples / 20),
        multiplication::<Gf128>(samples / 20),
        exponentiation(samples / 50),
    ]
}

/// A source whose OTs cost nothing.
struct Dealer(Block);

impl CotSender for Dealer {
    fn delta(&self) -> Block {
        self.0
    }

    fn extend(&mut self, v: &mut [Block], _: &mut Channel) -> Result<()> {
        v.fill(Block::ONE);
        Ok(())
    }
}

impl CotReceiver for Dealer {
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], _: &mut Channel) -> Result<()> {
        u.fill(0x35);
        w.fill(self.0);
        Ok(())
    }
}

/// A channel that repeats the same pseudorandom bytes, each 64-bit word below 2^60.
fn noise() -> Channel {
    let mut bytes = vec![0; 1 << 16];
    Prg::new(Block::from(3)).fill_bytes(&mut bytes);
    bytes.chunks_mut(8).for_each(|word| word[word.len() - 1] &= 0x0f);
    replay(bytes)
}

/// The receiver's choice between two messages, all zero or random.
fn choosing(samples: usize) -> Step {
    let mut ot = convert::Receiver::new(Dealer(Block::ONE), SESSION);
    let mut channel = noise();
    let mut m = vec![Block::ZERO; N];
    let run = move |x: &mut Vec<u8>| {
        ot.chosen(x, &mut m, &mut channel).expect("a peer who talks");
        black_box(&m);
    };
    Step::constant("choice bits: a message of two", samples, bits(N), run)
}

/// The sender's correction by the receiver's message, with a `delta` of zeros or a random one.
fn correcting(samples: usize) -> Step {
    let draw = |zero, rng: &mut Prg| convert::Sender::new(Dealer(blocks(1)(zero, rng)[0]), SESSION);
    let mut channel = noise();
    let mut v = vec![Block::ZERO; N];
    let run = move |ot: &mut convert::Sender<Dealer>| {
        ot.correlated_chosen(&mut v, &mut channel).expect("a peer who talks");
        black_box(&v);
    };
    Step::constant("delta: correction to chosen bits", samples, draw, run)
}

/// The sender's two messages of each OT.
fn hashing(samples: usize) -> Step {
    let draw = |zero, rng: &mut Prg| convert::Sender::new(Dealer(blocks(1)(zero, rng)[0]), SESSION);
    let mut channel = noise();
    let mut m = vec![[Block::ZERO; 2]; N];
    let run = move |ot: &mut convert::Sender<Dealer>| {
        ot.random(&mut m, &mut channel).expect("nothing is sent");
        black_box(&m);
    };
    Step::constant("delta: two messages by hashing", samples, draw, run)
}

/// The message of a sender of base OTs.
fn base_message() -> Recording {
    let sender = |channel: &mut Channel| base::send(1, SESSION, &mut Prg::new(Block::ONE), channel);
    let receiver = |channel: &mut Channel| {
        base::receive(&[1], 1, SESSION, &mut Prg::new(Block::ZERO), channel)
    };
    let (keys, recording) = record(receiver, sender);
    keys.expect("base OTs between honest parties");
    recording
}

/// Base OTs with choice bits that are zero or random.
fn base_choices(samples: usize) -> Step {
    let message = base_message();
    let draw = move |zero: bool, rng: &mut Prg| {
        let choices = bits(8)(zero, rng);
        (choices, replay(message.clone()), rng.fork("base"))
    };
    let run = |(choices, channel, rng): &mut (Vec<u8>, Channel, Prg)| {
        black_box(base::receive(choices, 8, SESSION, rng, channel)).expect("a peer who talks");
    };
    Step::constant("choice bits: base OTs", samples, draw, run)
}

/// The sender of an intersection by Diffie-Hellman, whose randomness is always the same or drawn
/// anew. It has one item: the order of several is secret from the peer only.
fn exponentiation(samples: usize) -> Step {
    let items: [[u8; 1]; 1] = [[1]];
    let sender = move |rng: Prg, channel: &mut Channel| {
        dh::send((SESSION, rng), &items[..], None, &mut (), channel)
    };
    let (sent, recording) = record(
        |channel| sender(Prg::new(Block::ZERO), channel),
        |channel| {
            let theirs: Vec<[u8; 1]> = (0..8).map(|item| [item]).collect();
            let own = (SESSION, Prg::new(Block::ONE));
            dh::receive(own, &theirs[..], false, &mut (), channel)
        },
    );
    sent.expect("an intersection between honest parties");
    let draw = move |fixed: bool, rng: &mut Prg| {
        let random = rng.fork("sender");
        let rng = if fixed { Prg::new(Block::ONE) } else { random };
        (rng, replay(recording.clone()))
    };
    let run = move |(rng, channel): &mut (Prg, Channel)| {
        // With other randomness the end of the recorded run is another, which is an error.
        black_box(sender(rng.fork("run"), channel).is_ok());
    };
    Step::constant("exponent: set intersection by Diffie-Hellman", samples, draw, run)
}

/// Parties that hold a secret of one of the classes each, and can repeat a step.
struct Pool<P, F, R> {
    /// With the fixed secret, and with a random one.
    parties: [Vec<P>; 2],
    batch: Vec<(bool, usize)>,
    /// Before a batch in which a party may run so often; not measured.
    ready: F,
    run: R,
}

/// Parties of a class.
const PARTIES: usize = 12;

impl<P, F: FnMut(&mut P, usize), R: FnMut(&mut P)> Pool<P, F, R> {
    fn new(mut party: impl FnMut(bool, &mut Prg) -> P, ready: F, run: R) -> Self {
        let mut rng = Prg::new(Block::from(5));
        let mut class = |fixed| (0..PARTIES).map(|_| party(fixed, &mut rng)).collect();
        Self { parties: [class(false), class(true)], batch: Vec::new(), ready, run }
    }
}

impl<P: Send, F: FnMut(&mut P, usize) + Send, R: FnMut(&mut P) + Send> Bench for Pool<P, F, R> {
    fn draw(&mut self, fixed: &[bool], rng: &mut Prg) {
        let mut next = [rng.below(PARTIES as u64) as usize; 2];
        self.batch.clear();
        for &fixed in fixed {
            let party = &mut next[usize::from(fixed)];
            *party = (*party + 1) % PARTIES;
            self.batch.push((fixed, *party));
        }
        for party in self.parties.iter_mut().flatten() {
            (self.ready)(party, fixed.len());
        }
    }

    fn run(&mut self, i: usize) {
        let (fixed, party) = self.batch[i];
        (self.run)(&mut self.parties[usize::from(fixed)][party]);
    }
}

/// The field of the extension.
const FIELD: SmallField = SmallField::Bits4;

/// The sender with a `delta` and a seed, always the same one.
fn sender([delta, seed]: [Block; 2], channel: &mut Channel) -> Result<softspoken::Sender> {
    softspoken::Sender::setup(Some(delta), FIELD, SESSION, Prg::new(seed), channel)
}

/// A sender of an OT extension with its check, and a recording of its peer: it can be extended for
/// as many calls as were recorded, then starts again.
struct Alone {
    /// Of the sender.
    fresh: [Block; 2],
    recording: Recording,
    live: Option<(softspoken::Sender, Channel)>,
    left: usize,
}

/// Calls that are recorded.
const CALLS: usize = 400;

impl Alone {
    fn record(fresh: [Block; 2], theirs: Block) -> Self {
        let sender = |channel: &mut Channel| -> Result<()> {
            let mut cot = sender(fresh, channel)?;
            let mut v = vec![Block::ZERO; N];
            (0..CALLS).try_for_each(|_| cot.extend(&mut v, channel))
        };
        let receiver = |channel: &mut Channel| -> Result<()> {
            let mut cot = softspoken::Receiver::setup(FIELD, SESSION, Prg::new(theirs), channel)?;
            let (mut u, mut w) = (vec![0; N / 8], vec![Block::ZERO; N]);
            (0..CALLS).try_for_each(|_| cot.extend(&mut u, &mut w, channel))
        };
        let (result, recording) = record(sender, receiver);
        result.expect("an extension between honest parties");
        Self { fresh, recording, live: None, left: 0 }
    }

    /// Sets up the sender again if its recording does not allow so many calls.
    fn refresh(&mut self, calls: usize) {
        if self.left < calls {
            let mut channel = replay(self.recording.clone());
            let cot = sender(self.fresh, &mut channel).expect("a peer who talks");
            self.live = Some((cot, channel));
            self.left = CALLS;
        }
    }

    fn extend(&mut self, v: &mut [Block]) {
        self.left -= 1;
        let (cot, channel) = self.live.as_mut().expect("a sender that is there");
        cot.extend(v, channel).expect("a peer who talks");
    }
}

/// The sender of an OT extension with its check, with a `delta` of one bit or a random one.
fn extension(samples: usize) -> Step {
    let party = |fixed: bool, rng: &mut Prg| {
        let random = rng.block() | Block::ONE;
        Alone::record([if fixed { Block::ONE } else { random }, rng.block()], rng.block())
    };
    let mut v = vec![Block::ZERO; N];
    let run = move |sender: &mut Alone| {
        sender.extend(&mut v);
        black_box(&v);
    };
    let pool = Pool::new(party, Alone::refresh, run);
    Step::new("delta: OT extension and its check", Constant, samples, pool)
}

/// Gilboa's multiplication by an `x` that is zero or random.
fn multiplication<R: Ring>(samples: usize) -> Step {
    let message = base_message();
    let party = move |zero: bool, rng: &mut Prg| {
        let random = R::random(rng);
        let x = if zero { R::ZERO } else { random };
        let mut base = replay(message.clone());
        let receiver = gilboa::Receiver::setup(x, SESSION, rng, &mut base);
        (receiver.expect("a peer who talks"), noise())
    };
    let mut w = vec![R::ZERO; 16];
    let run = move |(receiver, channel): &mut (gilboa::Receiver<R>, Channel)| {
        receiver.multiply(&mut w, channel).expect("a peer who talks");
        black_box(&w);
    };
    let name = format!("{}: x in Gilboa's multiplication", R::NAME);
    Step::new(name, Constant, samples, Pool::new(party, |_, _| (), run))
}
