//! Comparison of the public numbers on which both parties must agree, before their use.
//!
//! ```text
//! Party                                   Party
//! 1. <---- each party's numbers, crossing ---->
//! ```
//!
//! The peer's numbers are compared and reported, and determine no length. Cost: one message of 8
//! bytes a number, in both directions. [`same_over`] adds a number for the ring, and one for the
//! security level if it can be chosen.

use volery_channel::{Channel, Error, Result};
use volery_field::Ring;
use volery_pcg::Security;

/// Sends `ours` and returns the peer's numbers.
pub(crate) fn exchange<const N: usize>(ours: [u64; N], channel: &mut Channel) -> Result<[u64; N]> {
    let mut theirs = [0; N];
    swap(&ours, &mut theirs, channel)?;
    Ok(theirs)
}

/// Compares named numbers with the peer's.
///
/// # Errors
/// If the channel fails, or at the first number that differs, with both values.
pub(crate) fn same(numbers: &[(&'static str, u64)], channel: &mut Channel) -> Result<()> {
    let ours: Vec<u64> = numbers.iter().map(|(_, number)| *number).collect();
    let mut theirs = vec![0; ours.len()];
    swap(&ours, &mut theirs, channel)?;
    // mutant(apps-agree): `ours != theirs` => `false`
    // mutant(apps-agree-first): `zip(theirs)` => `$0.take(if $ON { 1 } else { usize::MAX })`
    match numbers.iter().zip(theirs).find(|((_, ours), theirs)| ours != theirs) {
        None => Ok(()),
        Some(((field, ours), theirs)) => Err(Error::Mismatch {
            field: (*field).to_owned(),
            ours: ours.to_string(),
            theirs: theirs.to_string(),
        }),
    }
}

/// [`same`] for a protocol over the ring `R`, and with the given security if it can be chosen: ring
/// and security come first, then the numbers. All rings differ in their number of bits. Fails as
/// [`same`] does.
pub(crate) fn same_over<R: Ring>(
    security: Option<Security>,
    numbers: &[(&'static str, u64)],
    channel: &mut Channel,
) -> Result<()> {
    // mutant(apps-agree-ring): `u64::from(R::BITS)` => `0`
    let mut all = vec![("bits of the ring", u64::from(R::BITS))];
    all.extend(security.map(|security| {
        // mutant(apps-agree-security): `security == Security::Malicious` => `false`
        let number = u64::from(security == Security::Malicious);
        ("security (0: semi-honest, 1: malicious)", number)
    }));
    all.extend_from_slice(numbers);
    same(&all, channel)
}

fn swap(ours: &[u64], theirs: &mut [u64], channel: &mut Channel) -> Result<()> {
    for number in ours {
        channel.send(&number.to_le_bytes())?;
    }
    channel.flush()?;
    for number in theirs {
        let mut bytes = [0; 8];
        channel.recv(&mut bytes)?;
        *number = u64::from_le_bytes(bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use volery_channel::run_two_parties;
    use volery_field::{F2, Fp61, Gf128, Z64};

    use super::*;

    type Compare = fn(Option<Security>, &[(&'static str, u64)], &mut Channel) -> Result<()>;

    /// The name of the first differing number, as both parties report it.
    fn differ(left: (Compare, Security), right: (Compare, Security)) -> Option<String> {
        let party = |(compare, security): (Compare, Security), channel: &mut Channel| {
            compare(Some(security), &[("one", 1)], channel).err().map(|error| match error {
                Error::Mismatch { field, .. } => field,
                other => panic!("{other}"),
            })
        };
        let (a, b) =
            run_two_parties(|channel| party(left, channel), |channel| party(right, channel));
        assert_eq!(a, b);
        a
    }

    #[test]
    fn ring_and_security_are_compared_apart() {
        let rings: [Compare; 4] =
            [same_over::<F2>, same_over::<Fp61>, same_over::<Z64>, same_over::<Gf128>];
        let [weak, strong] = [Security::SemiHonest, Security::Malicious];
        for (i, left) in rings.into_iter().enumerate() {
            for (j, right) in rings.into_iter().enumerate() {
                let field = differ((left, weak), (right, weak));
                assert_eq!(field.as_deref(), (i != j).then_some("bits of the ring"));
            }
            let field = differ((left, weak), (left, strong));
            assert_eq!(field.as_deref(), Some("security (0: semi-honest, 1: malicious)"));
        }
    }
}
