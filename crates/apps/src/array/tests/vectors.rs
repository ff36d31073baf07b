//! Comparison of dense vectors with plain ones.

use super::*;

fn check<R: Ring>(n: usize) {
    let values = random::<R>(n, 1);
    let shares = share(&values, 2);
    let mut indices = vec![0, n - 1, n / 2, n / 2];
    indices.extend((0..20).map(|i| i * 7 % n));
    let added = share(&random::<R>(indices.len(), 3), 4);
    let (mut ot, mut receiver_ot) = ots();
    let (left, right) = run_two_parties(
        |channel| {
            let mut vector = dense::Partner::new(shares[0].clone(), SESSION, rng(5));
            for share in &added[0] {
                vector.add(*share, &mut ot, channel).unwrap();
            }
            // The first entry is known as shares.
            vector.replace(shares[0][0], R::ZERO, &mut ot, channel).unwrap();
            vector.into_shares()
        },
        |channel| {
            let mut vector = dense::Holder::new(shares[1].clone(), SESSION);
            for (index, share) in indices.iter().zip(&added[1]) {
                vector.add(*index, *share, &mut receiver_ot, channel).unwrap();
            }
            vector.replace(0, shares[1][0], R::ONE, &mut receiver_ot, channel).unwrap();
            vector.into_shares()
        },
    );
    let mut plain = values;
    for (index, (left, right)) in indices.into_iter().zip(added[0].iter().zip(&added[1])) {
        plain[index] += *left + *right;
    }
    plain[0] += R::ONE - shares[0][0] - shares[1][0];
    for (index, value) in plain.into_iter().enumerate() {
        assert!(left[index] + right[index] == value, "entry {index} of {n}");
        assert!(R::BITS == 1 || left[index] != shares[0][index], "entry {index} of {n}");
    }
}

#[test]
fn a_dense_vector_is_added_to() {
    for n in [1, 2, 3, 7, 8, 9, 1000] {
        check::<Z64>(n);
        check::<Fp61>(n);
        check::<Gf128>(n);
        check::<F2>(n);
    }
}
