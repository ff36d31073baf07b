//! The way back, [`gather`].

use super::*;

fn check_gather<R: Ring>(length: usize, indices: &[usize]) {
    let public = gather::Public { length, count: indices.len() };
    let vector = random_pair::<R>(length);
    let (left, right, stats) = run(
        |ot, channel| gather::send(public, &vector[0], ot, channel).unwrap(),
        |ot, channel| gather::receive(public, indices, &vector[1], ot, channel).unwrap(),
    );
    assert_eq!((left.len(), right.len()), (indices.len(), indices.len()));
    for (place, index) in indices.iter().enumerate() {
        assert!(
            left[place] + right[place] == vector[0][*index] + vector[1][*index],
            "place {place} of {}, {length} entries",
            indices.len()
        );
    }
    let count = indices.len();
    let switches = [length.max(count), count].map(switching::switches);
    let products = if count > 0 { vec![switches[0], count - 1, switches[1]] } else { vec![] };
    let sent: usize = 24 + products.iter().map(|products| products.div_ceil(8)).sum::<usize>();
    let received: usize = 24 + products.iter().map(|n| R::encoded_len(*n)).sum::<usize>();
    assert_eq!((stats.bytes_sent as usize, stats.bytes_received as usize), (sent, received));
}

#[test]
fn entries_are_gathered() {
    for (length, count) in
        [(0, 0), (7, 0), (1, 1), (1, 12), (2, 3), (100, 5), (33, 64), (1009, 1000)]
    {
        let some = indices(length, count, 9);
        check_gather::<Fp61>(length, &some);
        check_gather::<Z64>(length, &some);
        check_gather::<Gf128>(length, &some);
        check_gather::<F2>(length, &some);
    }
}

#[test]
fn a_gather_out_of_range_is_refused() {
    let (mut ot_sender, mut ot_receiver) = ots();
    let public = gather::Public { length: 3, count: 2 };
    let (left, right) = run_two_unchecked(
        |channel| gather::send(public, &[Z64::ONE; 3], &mut ot_sender, channel).unwrap_err(),
        |channel| {
            gather::receive(public, &[2, 3], &[Z64::ONE; 3], &mut ot_receiver, channel).unwrap_err()
        },
    );
    assert!(matches!(left, Error::Channel(_)), "{left}");
    let expected = "index number 1 (counted from 0) is not below 3, the entries of the vector";
    assert!(right.to_string().starts_with(expected), "{right}");
}

#[test]
fn each_setting_is_compared() {
    let public = gather::Public { length: 3, count: 2 };
    for (theirs, name) in [
        (gather::Public { length: 4, ..public }, "entries of the vector"),
        (gather::Public { count: 1, ..public }, "the indices"),
    ] {
        let (mut ot_sender, mut ot_receiver) = ots();
        let (indices, vector) = (&[0, 1][..theirs.count], &[Z64::ONE; 4][..theirs.length]);
        let ot = &mut ot_receiver;
        assert_differ(
            name,
            |channel| gather::send(public, &[Z64::ONE; 3], &mut ot_sender, channel).map(drop),
            |channel| gather::receive(theirs, indices, vector, ot, channel).map(drop),
        );
    }
}
