//! Base OT, OT extension and the conversions.

use volery_channel::{Channel, Result};
use volery_ot::softspoken::{self, Settings, SmallField};
use volery_ot::{CotReceiver, CotSender, base};
use volery_primitives::{Block, bits};

use crate::fixtures::{DELTA, SEEDS, SESSION, dealt_receiver, dealt_sender, random_bits, rng};
use crate::{Model, Protocol};

/// Correlations of an extension: two blocks of columns, the last one in part.
const N: usize = 200;

/// OTs of a conversion, with three unused bits in the last byte of choices.
const OTS: usize = 13;

/// Bytes of a message of OT of byte strings.
const STRING: usize = 19;

pub(super) fn all() -> Vec<Protocol> {
    let mut all = vec![base()];
    all.extend(SmallField::ALL.map(|field| {
        softspoken(format!("softspoken {}", field.bits()), Model::Malicious, field.into())
    }));
    let unchecked = SmallField::Bits4.unchecked();
    all.extend([
        softspoken("softspoken 4, unchecked".to_owned(), Model::SemiHonest, unchecked),
        correlated(),
        correlated_chosen(),
        random(),
        random_chosen(),
        chosen(),
        chosen_bytes(),
    ]);
    all
}

fn base() -> Protocol {
    let choices = random_bits(OTS, 3);
    let chosen = choices.clone();
    Protocol::new(
        "base OT",
        Model::Malicious,
        |channel| Ok(base::send(OTS, SESSION, &mut rng(SEEDS[0]), channel)?.to_vec()),
        move |channel| {
            Ok(base::receive(&choices, OTS, SESSION, &mut rng(SEEDS[1]), channel)?.to_vec())
        },
        move |pairs: &Vec<[Block; 2]>, keys: &Vec<Block>| picks(pairs, &chosen, keys),
    )
}

/// The receiver has the message of each OT that its choice selects.
fn picks(pairs: &[[Block; 2]], choices: &[u8], picked: &[Block]) -> bool {
    pairs.len() == picked.len()
        && (0..pairs.len()).all(|i| pairs[i][usize::from(bits::bit(choices, i))] == picked[i])
}

/// A sender's `delta, v`.
pub(super) type SenderOutput = (Block, Vec<Block>);

/// A receiver's `u, w`.
pub(super) type ReceiverOutput = (Vec<u8>, Vec<Block>);

/// `w = v + u*delta`.
pub(super) fn is_cot((delta, v): &SenderOutput, (u, w): &ReceiverOutput) -> bool {
    let product = |i| Block::select_mask(bits::bit(u, i)) & *delta;
    v.len() == w.len() && (0..v.len()).all(|i| w[i] == v[i] ^ product(i))
}

/// `n` correlations of a source.
pub(super) fn draw_sent(
    source: &mut impl CotSender,
    n: usize,
    channel: &mut Channel,
) -> Result<SenderOutput> {
    let mut v = vec![Block::ZERO; n];
    source.extend(&mut v, channel)?;
    Ok((source.delta(), v))
}

pub(super) fn draw_received(
    source: &mut impl CotReceiver,
    n: usize,
    channel: &mut Channel,
) -> Result<ReceiverOutput> {
    let (mut u, mut w) = (vec![0; n.div_ceil(8)], vec![Block::ZERO; n]);
    source.extend(&mut u, &mut w, channel)?;
    Ok((u, w))
}

fn softspoken(name: String, model: Model, settings: Settings) -> Protocol {
    Protocol::new(
        name,
        model,
        move |channel| {
            let rng = rng(SEEDS[0]);
            let mut source = softspoken::Sender::setup(None, settings, SESSION, rng, channel)?;
            draw_sent(&mut source, N, channel)
        },
        move |channel| {
            let rng = rng(SEEDS[1]);
            let mut source = softspoken::Receiver::setup(settings, SESSION, rng, channel)?;
            draw_received(&mut source, N, channel)
        },
        is_cot,
    )
}

fn correlated() -> Protocol {
    Protocol::new(
        "correlated OT",
        Model::Malicious,
        |channel| {
            let mut v = vec![Block::ZERO; OTS];
            dealt_sender().correlated(&mut v, channel)?;
            Ok((DELTA, v))
        },
        |channel| {
            let (mut u, mut w) = (vec![0; OTS.div_ceil(8)], vec![Block::ZERO; OTS]);
            dealt_receiver().correlated(&mut u, &mut w, channel)?;
            Ok((u, w))
        },
        is_cot,
    )
}

fn correlated_chosen() -> Protocol {
    Protocol::new(
        "correlated OT, chosen choices",
        Model::Malicious,
        |channel| {
            let mut v = vec![Block::ZERO; OTS];
            dealt_sender().correlated_chosen(&mut v, channel)?;
            Ok((DELTA, v))
        },
        |channel| {
            let x = random_bits(OTS, 3);
            let mut w = vec![Block::ZERO; OTS];
            dealt_receiver().correlated_chosen(&x, &mut w, channel)?;
            Ok((x, w))
        },
        is_cot,
    )
}

fn random() -> Protocol {
    Protocol::new(
        "random OT",
        Model::Malicious,
        |channel| {
            let mut m = vec![[Block::ZERO; 2]; OTS];
            dealt_sender().random(&mut m, channel)?;
            Ok(m)
        },
        |channel| {
            let (mut u, mut m) = (vec![0; OTS.div_ceil(8)], vec![Block::ZERO; OTS]);
            dealt_receiver().random(&mut u, &mut m, channel)?;
            Ok((u, m))
        },
        |pairs: &Vec<[Block; 2]>, (u, m): &ReceiverOutput| picks(pairs, u, m),
    )
}

fn random_chosen() -> Protocol {
    Protocol::new(
        "random OT, chosen choices",
        Model::Malicious,
        |channel| {
            let mut m = vec![[Block::ZERO; 2]; OTS];
            dealt_sender().random_chosen(&mut m, channel)?;
            Ok(m)
        },
        |channel| {
            let x = random_bits(OTS, 3);
            let mut m = vec![Block::ZERO; OTS];
            dealt_receiver().random_chosen(&x, &mut m, channel)?;
            Ok((x, m))
        },
        |pairs: &Vec<[Block; 2]>, (x, m): &ReceiverOutput| picks(pairs, x, m),
    )
}

fn chosen() -> Protocol {
    let messages: Vec<_> =
        (0..OTS as u128).map(|i| [Block::new(2 * i), Block::new(2 * i + 1)]).collect();
    Protocol::new(
        "OT of chosen blocks",
        Model::Malicious,
        move |channel| {
            dealt_sender().chosen(&messages, channel)?;
            Ok(messages.clone())
        },
        |channel| {
            let x = random_bits(OTS, 3);
            let mut m = vec![Block::ZERO; OTS];
            dealt_receiver().chosen(&x, &mut m, channel)?;
            Ok((x, m))
        },
        |pairs: &Vec<[Block; 2]>, (x, m): &ReceiverOutput| picks(pairs, x, m),
    )
}

fn chosen_bytes() -> Protocol {
    let strings = [1, 2].map(|seed| random_bits(8 * OTS * STRING, seed));
    Protocol::new(
        "OT of chosen strings",
        Model::Malicious,
        move |channel| {
            let [zeros, ones] = &strings;
            dealt_sender().chosen_bytes(zeros, ones, STRING, channel)?;
            Ok(strings.clone())
        },
        |channel| {
            let x = random_bits(OTS, 3);
            let mut out = vec![0; OTS * STRING];
            dealt_receiver().chosen_bytes(&x, &mut out, STRING, channel)?;
            Ok((x, out))
        },
        |strings: &[Vec<u8>; 2], (x, out): &(Vec<u8>, Vec<u8>)| {
            out.chunks_exact(STRING).enumerate().all(|(i, string)| {
                let sent = &strings[usize::from(bits::bit(x, i))];
                string == &sent[i * STRING..][..STRING]
            })
        },
    )
}
