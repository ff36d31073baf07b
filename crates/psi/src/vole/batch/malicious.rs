//! Malicious peers of the protocols from vector OLE that deviate in one step. For every check of an
//! honest party there is a peer that only this check stops.

use std::sync::Mutex;
use std::thread;

use super::*;
use crate::fixtures::{assert_caught, assert_disconnected, meet, rng};
use crate::lookup::MAX_VALUE;
use crate::vole::matching::tag;
use crate::vole::tests::{SESSION, receiver, sender, set};
use crate::vole::{
    Evaluation, INTERSECTION, OPRF, Receiver, ReceiverResult, SEARCH, Sender, SenderResult,
    Settings,
};

/// Items of the sender and of the receiver. The sender's last three are the receiver's first.
const N: usize = 13;
const M: usize = 12;
const COMMON: [usize; 3] = [0, 1, 2];

const MALICIOUS: Settings = Settings { form: Form::Malicious, both: false };

const BOTH: Settings = Settings { form: Form::Fast, both: true };

const LOW: Settings = Settings { form: Form::Low, both: false };

/// `h` of each digest.
fn hashed(functions: &Functions, digests: &[Block]) -> Vec<Block> {
    let mut values = vec![Block::ZERO; digests.len()];
    functions.values(digests, &mut values);
    values
}

fn ours() -> Vec<String> {
    set(0, 1, N)
}

/// The receiver's items. Those of the sender are formatted by their place, so these have to be at
/// the same places.
fn theirs() -> Vec<String> {
    set(0, 1, N + M)[N - 3..][..M].to_vec()
}

/// Each byte of a malicious sender's offset.
const OWN: u8 = 4;

/// A message that a malicious party may change.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Message {
    Commitment,
    Share,
    Opening,
    Offset,
    Hash,
    Encoding,
    /// The receiver's offset, to which a sender adds its own: not sent.
    Sum,
}

/// A commitment to a share.
type Commit<'a> = &'a (dyn Fn(&[u8; 32]) -> [u8; 32] + Sync);

/// A change of messages.
type Change<'a> = &'a mut (dyn FnMut(Message, &mut [u8]) + Send);

/// The hash functions of a run, with rows of any shape.
type FunctionsByShape<'a> = &'a dyn Fn(Shape) -> Functions;

/// The values that an encoder encodes, given the hash functions of the run and its digests.
type Encode<'a> = &'a (dyn Fn(FunctionsByShape<'_>, &[Block], &mut [Block]) + Sync);

/// The shape of an honest encoding.
fn shape(form: Form) -> Shape {
    Parameters::new(form, false, N as u64, M as u64).shape()
}

/// Sends a message with the change, and returns it as it was sent.
fn say<const N: usize>(
    message: Message,
    mut bytes: [u8; N],
    change: Change<'_>,
    channel: &mut Channel,
) -> Result<[u8; N]> {
    change(message, &mut bytes);
    channel.send(&bytes)?;
    Ok(bytes)
}

fn honest(_: Message, _: &mut [u8]) {}

/// The change of one bit of a message.
fn flip(message: Message, bit: usize) -> impl FnMut(Message, &mut [u8]) + Send {
    move |now, bytes| {
        if now == message {
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

fn encode(functions: FunctionsByShape<'_>, digests: &[Block], columns: &mut [Block]) {
    let shapes = Form::ALL.map(shape);
    let shape = shapes.iter().find(|shape| shape.columns == columns.len());
    let functions = functions(*shape.unwrap());
    try_encode(&functions, digests, columns).unwrap();
}

fn try_encode(
    functions: &Functions,
    digests: &[Block],
    columns: &mut [Block],
) -> std::result::Result<(), volery_okvs::EncodeError> {
    let (rows, values) = (functions.band.rows(digests), hashed(functions, digests));
    functions.band.encode(&rows, &values, columns)
}

/// An encoder at the end of step 6.
struct EncoderState {
    done: Evaluation,
    functions: Functions,
    v: Buffer<Gf128>,
    offset: Block,
}

/// Steps 0 to 6 of an encoder, whose set has one bin, with its commitment to a share.
fn encode_as(
    terms: (&str, Settings),
    commit: impl Fn(&[u8; 32]) -> [u8; 32],
    encode: Encode<'_>,
    change: Change<'_>,
    channel: &mut Channel,
) -> Result<EncoderState> {
    let begun = receiver().party.begin(&theirs(), 0, terms, &mut (), channel)?;
    let (parameters, agreement, mut set) = (begun.parameters, begun.agreement, begun.set);
    let malicious = parameters.form == Form::Malicious;
    let (plan, seed) = (parameters.plan(), rng(Role::Receiver).fork("vole"));
    let mut vole = vole::Sender::<Gf128>::setup(&plan, SESSION, seed, channel)?;
    let mut opening = [1; 32];
    if malicious {
        say(Message::Commitment, commit(&opening), change, channel)?;
    }
    let mut u = Buffer::<Gf128>::zeroed(parameters.columns);
    let mut v = Buffer::zeroed(parameters.columns);
    vole.extend(&mut u, &mut v, channel)?;
    let (mut share, mut offset, mut shares) = ([0; 32], Block::ZERO, Vec::new());
    if malicious {
        channel.recv(&mut share)?;
        channel.recv(&mut [0; 32])?;
        opening = say(Message::Opening, opening, change, channel)?;
        offset = Block::from_bytes(say(Message::Offset, [2; 16], change, channel)?);
        shares = vec![share, opening];
    }
    let functions = parameters.functions(&agreement, 0, &shares);
    let mut columns = Buffer::<Block>::zeroed(parameters.columns);
    let shaped = |shape| Functions::new(shape, parameters.value_bits, &agreement, 0, &shares);
    encode(&shaped, set.bin(0), &mut columns);
    for (column, u) in columns.iter_mut().zip(u.iter()) {
        *column ^= Block::from(*u);
    }
    let mut bytes = Block::as_bytes(&columns).to_vec();
    if parameters.value_bits < 128 {
        pack(&columns, parameters.value_bits, &mut bytes);
    }
    if malicious {
        let mut hash = StreamHash::default();
        hash.update(&bytes);
        say(Message::Hash, hash.finish32(), change, channel)?;
    }
    change(Message::Encoding, &mut bytes);
    channel.send(&bytes)?;
    channel.flush()?;
    if malicious {
        let mut theirs = [0; 32];
        channel.recv(&mut theirs)?;
        offset ^= own_offset(&theirs);
    }
    evaluate_own(&functions, &v, offset, set.bin_mut(0));
    let done = Evaluation {
        role: Role::Receiver,
        second: Buffer::zeroed(0),
        parameters,
        agreement,
        set,
        evaluator: None,
    };
    Ok(EncoderState { done, functions, v, offset })
}

/// Step 6.
fn evaluate_own(functions: &Functions, v: &[Gf128], offset: Block, digests: &mut [Block]) {
    let mut values = vec![Block::ZERO; digests.len()];
    let rows = functions.band.rows(digests);
    functions.band.decode(&rows, bytemuck::cast_slice(v), &mut values);
    functions.outputs(&mut values, offset, digests, None);
}

/// The commitments of this run.
fn commit(opening: &[u8; 32]) -> [u8; 32] {
    commitment(SESSION, 0, Role::Receiver, opening)
}

fn commit_as_sender(opening: &[u8; 32]) -> [u8; 32] {
    commitment(SESSION, 0, Role::Sender, opening)
}

/// Steps 0 to 5 of an evaluator.
fn evaluate_as(
    terms: (&str, Settings),
    note: u64,
    commit: impl Fn(&[u8; 32]) -> [u8; 32],
    change: Change<'_>,
    channel: &mut Channel,
) -> Result<Evaluation> {
    let begun = sender().party.begin(&ours(), note, terms, &mut (), channel)?;
    let (parameters, agreement, mut set) = (begun.parameters, begun.agreement, begun.set);
    let malicious = parameters.form == Form::Malicious;
    let (plan, seed) = (parameters.plan(), rng(Role::Sender).fork("vole"));
    let mut vole = vole::Receiver::<Gf128>::setup(&plan, None, SESSION, seed, channel)?;
    if malicious {
        channel.recv(&mut [0; 32])?;
    }
    let mut columns = Buffer::zeroed(parameters.columns);
    vole.extend(&mut columns, channel)?;
    let (own, mut opening, mut theirs) = ([OWN; 32], [0; 32], [0; 16]);
    let mut shares = Vec::new();
    if malicious {
        let share = say(Message::Share, [3; 32], change, channel)?;
        say(Message::Commitment, commit(&own), change, channel)?;
        channel.recv(&mut opening)?;
        channel.recv(&mut theirs)?;
        channel.recv(&mut [0; 32])?;
        shares = vec![share, opening];
    }
    let mut received = vec![Block::ZERO; parameters.columns];
    recv(&mut received, parameters.value_bits, &mut Vec::new(), channel)?;
    let delta = vole.x().into();
    gf128_axpy(bytemuck::cast_slice_mut(&mut columns), delta, &received);
    let mut offset = Block::ZERO;
    if malicious {
        say(Message::Opening, own, change, channel)?;
        channel.flush()?;
        change(Message::Sum, &mut theirs);
        offset = Block::from_bytes(theirs) ^ Block::new(u128::from_le_bytes([OWN; 16]));
    }
    let keys = Keys {
        functions: parameters.functions(&agreement, 0, &shares),
        delta: Zeroizing::new(delta),
        offset,
        first: 0,
        width: parameters.columns,
        columns,
    };
    let mut second = Buffer::zeroed(set.blocks.len());
    keys.evaluate(0, set.bin_mut(0), Some(&mut second[..]));
    Ok(Evaluation { role: Role::Sender, parameters, agreement, set, second, evaluator: None })
}

/// [`evaluate_as`] of an intersection, with the commitment of this run.
fn evaluate(settings: Settings, change: Change<'_>, channel: &mut Channel) -> Result<Evaluation> {
    evaluate_as((INTERSECTION, settings), 0, commit_as_sender, change, channel)
}

/// The results of an honest sender, and of a malicious receiver.
fn sender_against<B: Send>(
    settings: Settings,
    malicious: impl FnOnce(&mut Channel) -> Result<B> + Send,
) -> (Result<SenderResult>, Result<B>) {
    meet(
        |channel| sender().intersect(&ours(), settings, &mut (), channel),
        |channel| {
            let done = malicious(channel)?;
            channel.flush()?;
            Ok(done)
        },
    )
}

/// The result of an honest receiver whose peer runs `malicious`.
fn receiver_against(
    settings: Settings,
    malicious: impl FnOnce(&mut Channel) -> Result<()> + Send,
) -> Result<ReceiverResult> {
    let (_, received) = meet(
        |channel| {
            malicious(channel)?;
            channel.flush().map_err(Error::from)
        },
        |channel| receiver().intersect(&theirs(), settings, &mut (), channel),
    );
    received
}

const OPENING: &str = "its opening does not match its commitment";
const WRONG_END: &str = "it sent more or less data than the set sizes require";

/// The receiver's part of an intersection after step 6.
fn finish(ended: Result<EncoderState>, channel: &mut Channel) -> Result<Vec<usize>> {
    let mut done = ended?.done;
    let matches = done.find(&mut (), channel)?;
    done.end_encoding(&matches, false, &mut (), channel)
}

/// The results of an honest sender, and of a receiver that commits, encodes and changes so.
fn encoded(
    settings: Settings,
    commit: Commit<'_>,
    encode: Encode<'_>,
    change: Change<'_>,
) -> (Result<SenderResult>, Result<Vec<usize>>) {
    sender_against(settings, |channel| {
        let ended = encode_as((INTERSECTION, settings), commit, encode, change, channel);
        finish(ended, channel)
    })
}

/// The result of an honest receiver, whose sender commits and changes messages so.
fn evaluated(commit: Commit<'_>, change: Change<'_>) -> Result<ReceiverResult> {
    receiver_against(MALICIOUS, |channel| {
        let mut done = evaluate_as((INTERSECTION, MALICIOUS), 0, commit, change, channel)?;
        done.send_tags(&mut (), channel)?;
        done.end_evaluating(None, &mut (), channel).map(drop)
    })
}

/// Step 3d of the receiver: another share than it committed to; and the same commitment in another
/// session, batch or role. With the right one the run succeeds.
#[test]
fn a_receiver_that_opens_something_else() {
    let run = |commit: Commit<'_>, change: Change<'_>| {
        let (sent, common) = encoded(MALICIOUS, commit, &encode, change);
        assert!(sent.is_err() || common.unwrap() == COMMON);
        sent
    };
    assert!(run(&commit, &mut honest).is_ok());
    for bit in [0, 100, 255] {
        assert_caught(run(&commit, &mut flip(Message::Opening, bit)), OPENING);
        assert_caught(run(&commit, &mut flip(Message::Commitment, bit)), OPENING);
    }
    let other = SessionId::from_bytes([9; 32]);
    for (session, batch, role) in
        [(other, 0, Role::Receiver), (SESSION, 1, Role::Receiver), (SESSION, 0, Role::Sender)]
    {
        let replayed = |opening: &[u8; 32]| commitment(session, batch, role, opening);
        assert_caught(run(&replayed, &mut honest), OPENING);
    }
}

/// Step 5a of the sender, in the same way.
#[test]
fn a_sender_that_opens_something_else() {
    const OFFSET: &str = "its offset does not match its commitment";
    assert_eq!(evaluated(&commit_as_sender, &mut honest).unwrap().common, COMMON);
    for bit in [0, 127, 255] {
        for message in [Message::Opening, Message::Commitment] {
            assert_caught(evaluated(&commit_as_sender, &mut flip(message, bit)), OFFSET);
        }
    }
    let other = SessionId::from_bytes([9; 32]);
    for (session, batch, role) in
        [(other, 0, Role::Sender), (SESSION, 1, Role::Sender), (SESSION, 0, Role::Receiver)]
    {
        let replayed = |opening: &[u8; 32]| commitment(session, batch, role, opening);
        assert_caught(evaluated(&replayed, &mut honest), OFFSET);
    }
}

/// A receiver that takes its time between the hash functions and its encoding.
#[test]
fn an_encoding_that_is_fixed_too_late() {
    let run = |wait: u64| {
        let mut sender = sender();
        sender.party.deadline = Some(Duration::from_millis(300));
        let (sent, _) = meet(
            |channel| sender.intersect(&ours(), MALICIOUS, &mut (), channel),
            |channel| {
                let mut change = |message, _: &mut [u8]| {
                    if message == Message::Hash {
                        thread::sleep(Duration::from_millis(wait));
                    }
                };
                let terms = (INTERSECTION, MALICIOUS);
                let ended = encode_as(terms, commit, &encode, &mut change, channel);
                finish(ended, channel)
            },
        );
        sent
    };
    assert_caught(
        run(700),
        "it fixed its encoding too late: it searched for one, or its machine was paused; run again",
    );
    assert!(run(0).is_ok());
}

/// A receiver that fixes one encoding in time and sends another one later.
#[test]
fn an_encoding_other_than_the_fixed_one() {
    const ANOTHER: &str = "its encoding is another than it fixed";
    for (message, bit) in [
        (Message::Hash, 0),
        (Message::Encoding, 0),
        (Message::Encoding, 128 * shape(Form::Malicious).columns - 1),
    ] {
        let (sent, common) = encoded(MALICIOUS, &commit, &encode, &mut flip(message, bit));
        assert_caught(sent, ANOTHER);
        assert_disconnected(common);
    }
}

/// Bytes that arrive in the next moment.
fn heard(channel: &mut Channel) -> usize {
    channel.set_timeout(Some(Duration::from_millis(200)));
    (0..).find(|_| channel.recv(&mut [0]).is_err()).unwrap()
}

/// A receiver without the vector OLE gets no share of the hash functions, and one that has not sent
/// its encoding no offset. Returns what it heard before.
fn listen_as_receiver(stage: u8, sender: Sender) -> [u8; 64] {
    let (_, said) = meet(
        |channel| sender.intersect(&ours(), MALICIOUS, &mut (), channel),
        |channel| -> Result<_> {
            let (terms, party) = ((INTERSECTION, MALICIOUS), receiver().party);
            let parameters = party.begin(&theirs(), 0, terms, &mut (), channel)?.parameters;
            let (plan, seed) = (parameters.plan(), rng(Role::Receiver));
            let mut vole = vole::Sender::<Gf128>::setup(&plan, SESSION, seed, channel)?;
            channel.send(&commit(&[1; 32]))?;
            let mut said = [0; 64];
            if stage > 0 {
                let mut u = Buffer::zeroed(parameters.columns);
                let mut v = Buffer::zeroed(parameters.columns);
                vole.extend(&mut u, &mut v, channel)?;
                channel.recv(&mut said)?;
            }
            if stage > 1 {
                channel.send(&[[1; 32], [2; 32]].concat())?;
                channel.send(&[3; 16])?;
            }
            channel.flush()?;
            assert_eq!(heard(channel), 0, "{stage}");
            Ok(said)
        },
    );
    said.unwrap()
}

/// A sender that has not sent its share gets none. Returns what it hears otherwise.
fn listen_as_sender(early: bool, receiver: Receiver) -> [u8; 48] {
    let (said, _) = meet(
        |channel| -> Result<_> {
            let (terms, party) = ((INTERSECTION, MALICIOUS), sender().party);
            let parameters = party.begin(&ours(), 0, terms, &mut (), channel)?.parameters;
            let (plan, seed) = (parameters.plan(), rng(Role::Sender));
            let mut vole = vole::Receiver::<Gf128>::setup(&plan, None, SESSION, seed, channel)?;
            channel.recv(&mut [0; 32])?;
            vole.extend(&mut Buffer::zeroed(parameters.columns), channel)?;
            let mut said = [0; 48];
            if early {
                assert_eq!(heard(channel), 0);
            } else {
                channel.send(&[3; 64])?;
                channel.recv(&mut said)?;
            }
            Ok(said)
        },
        |channel| receiver.intersect(&theirs(), MALICIOUS, &mut (), channel),
    );
    said.unwrap()
}

#[test]
fn no_share_before_its_time() {
    for stage in 0..3 {
        listen_as_receiver(stage, sender());
    }
    listen_as_sender(true, receiver());
}

/// Both shares of the hash functions and both offsets are random: other ones with other randomness.
#[test]
fn shares_are_drawn() {
    let said = [1, 2].map(|seed| {
        let seeded = || Prg::new(Block::new(seed));
        let sender = listen_as_receiver(1, Sender::new(SESSION, seeded()));
        let receiver = listen_as_sender(false, Receiver::new(SESSION, seeded()));
        let [share, commitment] = [0, 32].map(|at| sender[at..][..32].to_vec());
        [share, commitment, receiver[..32].to_vec(), receiver[32..].to_vec()]
    });
    for (one, other) in said[0].iter().zip(&said[1]) {
        assert_ne!(one, other);
    }
}

/// The hash functions depend on the seed, the batch and both shares, which neither party chooses
/// alone.
#[test]
fn hash_functions_are_drawn_anew() {
    let (a, b, c) = ([1; 32], [2; 32], [3; 32]);
    let of = |seed, batch, shares: &[[u8; 32]]| {
        let parameters = Parameters::new(Form::Malicious, false, 1000, 1000);
        let functions = parameters.functions(&Agreement::numbered(seed, [7; 2]), batch, shares);
        let mut columns = Buffer::<Block>::zeroed(parameters.columns);
        columns.iter_mut().zip(1..).for_each(|(column, i)| *column = Block::new(i));
        let mut row = [Block::ZERO];
        let keys = [Block::ONE];
        functions.band.decode(&functions.band.rows(&keys), &columns, &mut row);
        [row[0], hashed(&functions, &keys)[0], functions.point]
    };
    let all = [
        of(1, 0, &[a, b]),
        of(1, 0, &[c, b]),
        of(1, 0, &[a, c]),
        of(1, 0, &[b, a]),
        of(1, 1, &[a, b]),
        of(2, 0, &[a, b]),
        of(2, 0, &[]),
    ];
    for function in 0..3 {
        for i in 0..all.len() {
            assert!((0..i).all(|j| all[i][function] != all[j][function]));
        }
    }
}

/// A sender that leaves out the offset of either party sends tags of nothing: the offsets are in
/// the outputs.
#[test]
fn the_offsets_of_both_enter_the_outputs() {
    let run = |change: Change<'_>| evaluated(&commit_as_sender, change).unwrap().common;
    let without_own = &mut |message, sum: &mut [u8]| {
        if message == Message::Sum {
            sum.iter_mut().for_each(|byte| *byte ^= OWN);
        }
    };
    let without_theirs = &mut |message, sum: &mut [u8]| {
        if message == Message::Sum {
            sum.fill(0);
        }
    };
    assert_eq!(run(&mut honest), COMMON);
    assert_eq!(run(without_own), [0; 0]);
    assert_eq!(run(without_theirs), [0; 0]);
}

/// A receiver with an encoding of nothing, or of hash values that are cut to 64 bits, gets no tag
/// of any item, its own included.
#[test]
fn short_values_get_no_tags() {
    let zeros = |_: FunctionsByShape<'_>, _: &[Block], _: &mut [Block]| ();
    let short = |functions: FunctionsByShape<'_>, digests: &[Block], columns: &mut [Block]| {
        let functions = functions(shape(Form::Malicious));
        let (rows, mut values) = (functions.band.rows(digests), hashed(&functions, digests));
        for value in values.iter_mut() {
            *value &= Block::new(u64::MAX.into());
        }
        functions.band.encode(&rows, &values, columns).unwrap();
    };
    let encodings: [(Encode<'_>, &[usize]); 3] = [(&zeros, &[]), (&short, &[]), (&encode, &COMMON)];
    for (encode, expected) in encodings {
        let (sent, common) = encoded(MALICIOUS, &commit, encode, &mut honest);
        assert_eq!(common.unwrap(), expected);
        assert_eq!(sent.unwrap().common, None);
    }
}

/// A receiver that states 12 items and encodes as many as its columns hold, and not one more: that
/// many times the stated number is below the bound.
#[test]
fn an_encoding_of_more_items_than_stated() {
    let found = Mutex::new(Vec::new());
    let overfull = |functions: FunctionsByShape<'_>, _: &[Block], columns: &mut [Block]| {
        let wide = functions(Shape { items: columns.len(), ..shape(Form::Malicious) });
        let mut kept = Vec::new();
        for i in 1..2000 {
            kept.push(Block::new(i << 64));
            if kept.len() > columns.len() || try_encode(&wide, &kept, columns).is_err() {
                kept.pop();
            }
        }
        try_encode(&wide, &kept, columns).unwrap();
        *found.lock().unwrap() = kept;
    };
    let (keys, ended) = meet(
        |channel| sender().keys(Form::Malicious, &mut (), channel),
        |channel| {
            let ended = encode_as((OPRF, MALICIOUS), commit, &overfull, &mut honest, channel)?;
            // The sender's last message: it fails if nobody is there to take it.
            channel.recv(&mut [0; 16])?;
            Ok::<_, Error>(ended)
        },
    );
    let (keys, ended) = (keys.unwrap(), ended.unwrap());
    let known = found.into_inner().unwrap();
    let width = ended.done.parameters.columns;
    assert!(known.len() > width - 8 && known.len() <= width, "{}", known.len());
    let most = ended.done.parameters.most_items(60.0).unwrap() * M as f64;
    assert!((known.len() as f64) < most, "{most}");
    // What it computes for digests, and what the sender does.
    let both = |digests: &[Block]| {
        let (mut ours, mut theirs) = (digests.to_vec(), digests.to_vec());
        evaluate_own(&ended.functions, &ended.v, ended.offset, &mut ours);
        keys.batches[0].evaluate(0, &mut theirs, None);
        ours.into_iter().zip(theirs)
    };
    assert!(both(&known).all(|(ours, theirs)| ours == theirs));
    let others: Vec<_> = (2000..4000).map(|i| Block::new(i << 64)).collect();
    assert!(both(&others).all(|(ours, theirs)| ours != theirs));
}

/// The tags of an evaluator, ascending.
fn tags(done: &mut Evaluation) -> Vec<u128> {
    let bits = done.parameters.tag_bits;
    done.set.sorted(&mut []).map(|(output, _)| tag(output, bits)).collect()
}

/// The end of a malicious sender in a run with one result; the error of a receiver that ends
/// otherwise.
fn end(done: &Evaluation, channel: &mut Channel) -> Result<()> {
    channel.send(&done.agreement.end(Role::Sender, &done.parameters.words()))?;
    done.expect_end(channel)
}

/// Two equal tags, each in turn, of items that the receiver has or not. The malicious form refuses
/// them all in the same way: an error that depends on the item would tell the sender about it. In
/// the low-communication form, where short tags of two items may be equal, the first one counts.
#[test]
fn two_equal_tags() {
    for settings in [MALICIOUS, LOW] {
        for repeated in 0..N {
            let received = receiver_against(settings, |channel| {
                let mut done = evaluate(settings, &mut honest, channel)?;
                let mut tags = tags(&mut done);
                tags[(repeated + 1) % N] = tags[repeated];
                tags.sort_unstable();
                done.parameters.tags().send(tags.into_iter(), channel)?;
                end(&done, channel)
            });
            match settings {
                MALICIOUS => assert_caught(received, "two of its tags are equal"),
                _ => {
                    let found = received.unwrap().common;
                    assert!(found.len() + 1 >= COMMON.len());
                    assert!(found.iter().all(|item| COMMON.contains(item)));
                }
            }
        }
    }
}

/// The end that a sender sends.
type End<'a> = &'a (dyn Fn(&Evaluation) -> [u8; 16] + Sync);

/// Bytes that are no tags, too few or too many of them, and ends of others.
#[test]
fn tags_and_ends_that_are_not_those_of_the_run() {
    const NO_TAGS: &str = "its tags are not coded as agreed";
    for settings in [MALICIOUS, LOW] {
        let run = |change: &(dyn Fn(&mut Vec<u8>) + Sync), end: End<'_>| {
            receiver_against(settings, |channel| {
                let mut done = evaluate(settings, &mut honest, channel)?;
                let (mut near, mut far) = Channel::memory_pair();
                let tags = tags(&mut done);
                done.parameters.tags().send(tags.into_iter(), &mut near)?;
                near.flush()?;
                let mut sent = vec![0; done.parameters.tag_bytes() as usize];
                far.recv(&mut sent)?;
                change(&mut sent);
                channel.send(&sent)?;
                channel.send(&end(&done))?;
                channel.flush()?;
                channel.recv(&mut [0; 16]).map_err(Error::from)
            })
        };
        let right = |done: &Evaluation| done.agreement.end(Role::Sender, &done.parameters.words());
        assert_eq!(run(&|_| (), &right).unwrap().common, COMMON);
        assert_caught(run(&|bytes| bytes.fill(0), &right), NO_TAGS);
        if settings == LOW {
            // There are unused bits.
            let last = |bytes: &mut Vec<u8>| *bytes.last_mut().unwrap() |= 0x80;
            assert_caught(run(&last, &right), NO_TAGS);
        }
        assert_caught(run(&|bytes| bytes.push(0), &right), WRONG_END);
        assert_disconnected(receiver_against(settings, |channel| {
            let done = evaluate(settings, &mut honest, channel)?;
            channel.send(&vec![0xff; done.parameters.tag_bytes() as usize - 1])?;
            Ok(())
        }));
        let wrong: [End<'_>; 3] = [
            &|_| [0; 16],
            &|done| done.agreement.end(Role::Receiver, &done.parameters.words()),
            &|done| done.agreement.end(Role::Sender, &[0; 6]),
        ];
        for end in wrong {
            assert_caught(run(&|_| (), end), WRONG_END);
        }
    }
}

/// The receiver's end, of which the sender learns only whether it is the right one.
#[test]
fn ends_that_are_not_the_receivers() {
    for (role, flip) in [(Role::Receiver, 0), (Role::Receiver, 1), (Role::Sender, 0)] {
        let (sent, _) = sender_against(MALICIOUS, |channel| {
            let terms = (INTERSECTION, MALICIOUS);
            let mut done = encode_as(terms, commit, &encode, &mut honest, channel)?.done;
            done.find(&mut (), channel)?;
            done.expect_end(channel)?;
            let mut end = done.agreement.end(role, &done.parameters.words());
            end[15] ^= flip;
            channel.send(&end)?;
            Ok(())
        });
        match (role, flip) {
            (Role::Receiver, 0) => assert!(sent.is_ok()),
            _ => assert_caught(sent, WRONG_END),
        }
    }
}

/// Step 9, bit by bit.
#[test]
fn bits_of_step_9() {
    const BEYOND: &str = "it named a tag beyond this party's items";
    const TOO_MANY: &str = "it reported more common items than it has items";
    let name = |bytes: [u8; 2]| {
        let (sent, _) = sender_against(BOTH, |channel| {
            let terms = (INTERSECTION, BOTH);
            let mut done = encode_as(terms, commit, &encode, &mut honest, channel)?.done;
            done.find(&mut (), channel)?;
            done.expect_end(channel)?;
            channel.send(&bytes)?;
            channel.send(&done.agreement.end(Role::Receiver, &done.parameters.words()))?;
            Ok(())
        });
        sent
    };
    for bytes in [[0, 1 << 5], [0, 1 << 7], [1, 0xff]] {
        assert_caught(name(bytes), BEYOND);
    }
    assert_caught(name([0xff, 0x1f]), TOO_MANY);
    // It can lie about which items are common.
    for (bytes, count) in [([0, 1 << 4], 1), ([0xff, 0x0f], M), ([0, 0], 0)] {
        let common = name(bytes).unwrap().common.unwrap();
        assert_eq!(common.len(), count);
        assert!(common.is_sorted() && common.iter().all(|&item| item < N));
    }
}

/// Bits behind the last value of a short encoding.
#[test]
fn unused_bits_of_an_encoding() {
    let parameters = Parameters::new(LOW.form, false, N as u64, M as u64);
    let used = parameters.columns * parameters.value_bits as usize;
    assert!(!used.is_multiple_of(8), "there are unused bits");
    let run = |change: Change<'_>| encoded(LOW, &commit, &encode, change).0;
    assert!(run(&mut honest).is_ok());
    assert_caught(
        run(&mut flip(Message::Encoding, used)),
        "unused bits of its encoding are not zero",
    );
}

/// A value that is longer than announced, or announced as longer than any.
#[test]
fn values_of_a_search_that_are_too_long() {
    let run = |longest: u64, length: u16| {
        let (_, found) = meet(
            |channel| -> Result<()> {
                let terms = (SEARCH, MALICIOUS);
                let mut done = evaluate_as(terms, longest, commit_as_sender, &mut honest, channel)?;
                let tags = done.send_placed_tags(&mut (), channel)?;
                for (number, &place) in tags.iter().enumerate() {
                    let mut value = vec![0; 2 + longest as usize];
                    value[..2].copy_from_slice(&length.to_le_bytes());
                    let key = done.second[place as usize];
                    crate::lookup::add_stream(key, done.base(), number, &mut value);
                    channel.send(&value)?;
                }
                // It sees the usual end.
                end(&done, channel)?;
                Ok(())
            },
            |channel| receiver().search(&theirs(), MALICIOUS, &mut (), channel),
        );
        found
    };
    // A length beyond the longest is cut to it: the item is as any other.
    for (longest, length) in [(0, 1), (3, 4), (3, u16::MAX), (0, 0), (3, 3), (1024, 1024)] {
        let found = run(longest, length).unwrap();
        assert_eq!(found.items, COMMON);
        let length = usize::from(length).min(longest as usize);
        assert_eq!(found.values, vec![vec![0; length]; 3]);
    }
    for longest in [MAX_VALUE as u64 + 1, u64::from(u32::MAX), u64::MAX] {
        let (_, found) = meet(
            |channel| {
                let (terms, party) = ((SEARCH, MALICIOUS), sender().party);
                let begun = party.begin(&ours(), longest, terms, &mut (), channel);
                channel.flush().unwrap();
                begun.map(drop)
            },
            |channel| receiver().search(&theirs(), MALICIOUS, &mut (), channel),
        );
        assert_caught(found, "it announced values longer than the maximum");
    }
}

/// A sender of the OPRF states one item, which is none.
#[test]
fn a_sender_of_the_oprf_that_states_items() {
    let (_, outputs) = meet(
        |channel| {
            let (terms, party) = ((OPRF, MALICIOUS), sender().party);
            let begun = party.begin(&ours(), 0, terms, &mut (), channel);
            channel.flush().unwrap();
            begun.map(drop)
        },
        |channel| receiver().outputs(&theirs(), Form::Malicious, &mut (), channel),
    );
    assert_caught(outputs, "it sent a number of items where the protocol has none");
}

/// One party runs an intersection, the other a search; or their forms differ, or who learns it.
#[test]
fn parties_that_run_different_things() {
    const DIFFERENT: &str = "it runs another protocol or has other settings";
    let fast = Settings { both: false, ..BOTH };
    for (left, right) in [(MALICIOUS, fast), (fast, LOW), (fast, BOTH), (BOTH, fast)] {
        let (sent, received) = meet(
            |channel| sender().intersect(&ours(), left, &mut (), channel),
            |channel| receiver().intersect(&theirs(), right, &mut (), channel),
        );
        assert_caught(sent, DIFFERENT);
        assert_caught(received, DIFFERENT);
    }
    let (sent, found) = meet(
        |channel| sender().intersect(&ours(), fast, &mut (), channel),
        |channel| receiver().search(&theirs(), fast, &mut (), channel),
    );
    assert_caught(sent, DIFFERENT);
    assert_caught(found, DIFFERENT);
}

/// The malicious form has a checked vector OLE and whole values; no form falls back to another.
#[test]
fn the_malicious_form_is_so_in_all_parts() {
    for log in [0, 4, 10, 16, 20, 24] {
        let parameters = Parameters::new(Form::Malicious, false, 1 << log, 1 << log);
        assert_eq!(parameters.plan().security(), volery_pcg::Security::Malicious);
        assert_eq!((parameters.value_bits, parameters.tag_bits), (128, 128));
    }
}
