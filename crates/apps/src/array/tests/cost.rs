//! The cost of an access.

use volery_ot::softspoken::{self, SmallField};
use volery_primitives::bits;

use super::*;

/// Two parties over real OTs send the bytes and messages of the module documentation.
fn cost<R: Ring>(n: usize) {
    let field = SmallField::Bits8;
    let shape = Shape::new(n);
    let switches = switching::switches(shape.wires());
    // SoftSpoken OT, one batch: see its doc.
    let extension = |count: usize| 15 * (count.next_multiple_of(128) + 128) / 8 + 48;
    let (left, right) = run_two_parties(
        |channel| {
            let ot = softspoken::Sender::setup(None, field, SESSION, rng(1), channel).unwrap();
            let mut ot = convert::Sender::new(ot, SESSION);
            let mut array = Partner::<R>::new(n);
            let mut dense = dense::Partner::new(vec![R::ZERO; n], SESSION, rng(3));
            let mut stats = vec![channel.stats()];
            array.read(&mut ot, channel).unwrap();
            stats.push(channel.stats());
            array.write(R::ONE, &mut ot, channel).unwrap();
            stats.push(channel.stats());
            array.open(&mut ot, channel).unwrap();
            stats.push(channel.stats());
            dense.add(R::ONE, &mut ot, channel).unwrap();
            stats.push(channel.stats());
            stats
        },
        |channel| {
            let ot = softspoken::Receiver::setup(field, SESSION, rng(2), channel).unwrap();
            let mut ot = convert::Receiver::new(ot, SESSION);
            let mut array = Holder::<R>::zeros(n, rng(4));
            let mut dense = dense::Holder::new(vec![R::ZERO; n], SESSION);
            let mut stats = vec![channel.stats()];
            array.read(n - 1, &mut ot, channel).unwrap();
            stats.push(channel.stats());
            array.write(0, R::ONE, &mut ot, channel).unwrap();
            stats.push(channel.stats());
            array.open(0, &mut ot, channel).unwrap();
            stats.push(channel.stats());
            dense.add(n - 1, R::ONE, &mut ot, channel).unwrap();
            stats.push(channel.stats());
            stats
        },
    );
    let depth = (n.next_power_of_two().ilog2() as usize).max(1);
    let access = 5 + switches.div_ceil(8) + extension(switches);
    let elements = R::encoded_len(switches);
    let expected = [
        (access, elements),
        (access, elements),
        (access, elements + R::encoded_len(1)),
        (depth.div_ceil(8) + extension(depth), 16 * (depth + 1) + R::encoded_len(1)),
    ];
    for (step, (from_holder, from_partner)) in expected.into_iter().enumerate() {
        // Step 0 of the array, and of the vector.
        let first = usize::from(step == 0 || step == 3);
        let [left, right] = [&left, &right].map(|stats| stats[step + 1] - stats[step]);
        assert_eq!(right.bytes_sent as usize, 32 * first + from_holder, "step {step} of {n}");
        assert_eq!(left.bytes_sent as usize, 32 * first + from_partner, "step {step} of {n}");
        // P2's first message merges with the last of the setup, P1's first message for the vector
        // with its opening.
        let messages =
            (left.messages_sent + u64::from(step == 3), right.messages_sent + u64::from(step == 0));
        let expected = 1 + first as u64;
        assert_eq!(messages, (expected, expected), "step {step} of {n}");
    }
    if n == 1 << 20 && R::BYTES == 8 {
        assert_eq!(expected[2], (5 + 190 + 3_168, 12_104 + 8), "the numbers of the doc");
        assert_eq!(expected[3], (3 + 528, 344), "the numbers of the doc");
    }
}

#[test]
fn cost_is_that_of_the_doc() {
    for n in [1, 2, 9, 1000, 1 << 14] {
        cost::<Z64>(n);
        cost::<Gf128>(n);
        cost::<F2>(n);
    }
    cost::<Z64>(1 << 20);
}

#[test]
fn the_cost_of_loading() {
    let n = 1000;
    let shares = share(&random::<Z64>(n, 1), 2);
    let (mut ot, mut receiver_ot) = ots();
    let ((), stats) = run_two_parties(
        |channel| drop(Partner::load(&shares[0], &mut ot, channel).unwrap()),
        |channel| {
            Holder::load(&shares[1], rng(1), &mut receiver_ot, channel).unwrap();
            channel.stats()
        },
    );
    // 2^L is 512.
    let switches = switching::switches(7 * 512 + 140);
    assert_eq!(stats.bytes_sent as usize, 32 + bits::bytes_for(switches));
    assert_eq!(stats.bytes_received as usize, 32 + 8 * switches);
    assert_eq!((stats.messages_sent, stats.messages_received), (2, 2));
}
