//! Parties with different parameters or operations.

use volery_channel::memory::pair;
use volery_channel::tamper::Tampered;

use super::*;

/// The difference that an error reports: its name, and the values of both sides.
fn difference(error: volery_channel::Error) -> [String; 3] {
    match error {
        volery_channel::Error::Mismatch { field, ours, theirs } => [field, ours, theirs],
        other => panic!("{other}"),
    }
}

fn of_channel(error: Error) -> volery_channel::Error {
    match error {
        Error::Channel(error) => error,
        other => panic!("{other}"),
    }
}

type Source<T> = convert::Sender<T>;
type Sink<T> = convert::Receiver<T>;

/// Both parties report the difference.
fn differ(
    field: &str,
    partner: impl FnOnce(&mut Source<ideal::Sender>, &mut Channel) -> volery_channel::Error + Send,
    holder: impl FnOnce(&mut Sink<ideal::Receiver>, &mut Channel) -> Error + Send,
) {
    let (mut ot, mut receiver_ot) = ots();
    let (left, right) = run_two_parties(
        |channel| difference(partner(&mut ot, channel)),
        |channel| difference(of_channel(holder(&mut receiver_ot, channel))),
    );
    assert!(left[0].contains(field), "{left:?}");
    let [field, ours, theirs] = left;
    assert_eq!(right, [field, theirs, ours]);
}

#[test]
fn both_parties_learn_that_their_arrays_differ() {
    // P1 loads the same number of values, or another one.
    let values = vec![Z64::ONE; 9];
    differ(
        "entries",
        |ot, channel| Partner::<Z64>::new(10).read(ot, channel).unwrap_err(),
        |ot, channel| {
            let mut array = Holder::<Z64>::zeros(11, rng(1));
            let error = array.read(3, ot, channel).unwrap_err();
            let after = of_channel(array.read(3, ot, channel).unwrap_err());
            assert!(matches!(after, volery_channel::Error::Broken));
            error
        },
    );
    differ(
        "ring",
        |ot, channel| Partner::<Z64>::new(10).open(ot, channel).unwrap_err(),
        |ot, channel| {
            let mut array = Holder::<Fp61>::zeros(10, rng(1));
            array.open(3, ot, channel).unwrap_err()
        },
    );
    differ(
        "kind of array",
        |ot, channel| Partner::<Z64>::new(9).read(ot, channel).unwrap_err(),
        |ot, channel| Holder::load(&values, rng(1), ot, channel).err().unwrap(),
    );
    differ(
        "entries",
        |ot, channel| Partner::load(&values[1..], ot, channel).err().unwrap(),
        |ot, channel| Holder::load(&values, rng(1), ot, channel).err().unwrap(),
    );
    differ(
        "entries",
        |ot, channel| {
            let mut vector = dense::Partner::new(vec![Z64::ZERO; 8], SESSION, rng(1));
            let error = vector.add(Z64::ONE, ot, channel).unwrap_err();
            let after = vector.add(Z64::ONE, ot, channel).unwrap_err();
            assert!(matches!(after, volery_channel::Error::Broken));
            error
        },
        |ot, channel| {
            let mut vector = dense::Holder::new(vec![Z64::ZERO; 7], SESSION);
            vector.add(0, Z64::ONE, ot, channel).unwrap_err()
        },
    );
    differ(
        "kind of array",
        |ot, channel| {
            let mut vector = dense::Partner::new(vec![Z64::ZERO; 8], SESSION, rng(1));
            vector.add(Z64::ONE, ot, channel).unwrap_err()
        },
        |ot, channel| {
            let mut array = Holder::<Z64>::zeros(8, rng(1));
            array.add(0, Z64::ONE, ot, channel).unwrap_err()
        },
    );
}

/// P1 changes nothing, and names both operations.
#[test]
fn another_operation_is_refused() {
    let names = ["read or add", "open or replace", "write"];
    for ours in 0..3 {
        for theirs in (0..3).filter(|theirs| *theirs != ours) {
            let (mut ot, mut receiver_ot) = ots();
            run_two_unchecked(
                |channel| {
                    let ot = &mut ot;
                    let mut array = Partner::<Z64>::new(10);
                    array.write(Z64::ONE, ot, channel).unwrap();
                    let before = array.memory.shares.to_vec();
                    let sent = channel.stats().bytes_sent;
                    let mut call = || match ours {
                        0 => array.read(ot, channel).map(drop).unwrap_err(),
                        1 => array.open(ot, channel).unwrap_err(),
                        _ => array.write(Z64::ZERO, ot, channel).unwrap_err(),
                    };
                    let expected = ["the operation", names[ours], names[theirs]];
                    assert_eq!(difference(call()), expected.map(str::to_owned));
                    assert!(matches!(call(), volery_channel::Error::Broken));
                    assert!(*array.memory.shares == before);
                    assert_eq!(channel.stats().bytes_sent, sent);
                },
                |channel| {
                    let ot = &mut receiver_ot;
                    let mut array = Holder::<Z64>::zeros(10, rng(1));
                    array.write(3, Z64::ONE, ot, channel).unwrap();
                    let failed = match theirs {
                        0 => array.add(3, Z64::ONE, ot, channel).map(drop),
                        1 => array.replace(3, |_| Z64::ZERO, ot, channel).map(drop),
                        _ => array.write(3, Z64::ONE, ot, channel),
                    };
                    let failed = of_channel(failed.unwrap_err());
                    assert!(matches!(failed, volery_channel::Error::Disconnected));
                    assert!(array.read(3, ot, channel).is_err());
                },
            );
        }
    }
}

/// The other side disconnects after P1 has moved its shares and before P1 sends that of the front.
#[test]
fn an_opening_that_is_not_sent_ends_the_array() {
    let (inner, right) = pair();
    let mut right = Channel::new(right);
    let (mut ot, _) = ots();
    let mut array = Partner::<Z64>::new(10);
    let switches = switching::switches(array.memory.shape.wires());
    let mut left = Channel::new(Tampered::truncated(inner, 32 + 8 * switches as u64));
    let mut message = step_0::<Z64>(10);
    message.extend([Operation::Open as u8, 0, 0, 0, 0]);
    message.resize(32 + 5 + switches.div_ceil(8), 0);
    right.send(&message).unwrap();
    right.flush().unwrap();
    let failed = array.open(&mut ot, &mut left).unwrap_err();
    assert!(matches!(failed, volery_channel::Error::Disconnected));
    let moved = array.memory.shares.iter().any(|share| *share != Z64::ZERO);
    assert!(moved, "the shares were re-masked");
    let failed = array.memory.use_up();
    assert!(matches!(failed, Err(volery_channel::Error::Broken)));
}
