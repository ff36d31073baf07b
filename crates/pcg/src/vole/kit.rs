//! What several vector-OLEs between the same two parties share, so that public-key operations are done once.
//!
//! A vector-OLE has one `x`. A product of a matrix and a vector takes one for each entry of the vector, and each would begin
//! with the base OTs of an extension for its trees and with base OTs on the bits of its `x`. A kit holds two OT extensions, one
//! in each direction, which are set up once.
//!
//! ```text
//! Sender                                  Receiver
//! 1. -------- SoftSpoken setup for the trees: the receiver holds delta --------
//! 2. -------- SoftSpoken setup for the bits of x: the sender holds another delta --------
//! ```
//!
//! Vector-OLE number `j` ([`super::Sender::setup_with`]) then takes a fork of the first ([`volery_ot::softspoken`]), which
//! has the same `delta` and trees of its own, and from the second a random OT for each bit of `x_j`, chosen by that bit, in place
//! of a base OT. Its session is a hash of the kit's session and of `j`, so that no hash or generator is used by two.
//!
//! Security: that of the vector-OLEs. Sharing `delta` makes all of their tree OTs those of one extension with more outputs; the
//! extension's guesses at `delta`, and all else that a cheating peer can try at the risk of an abort, add up over all
//! vector-OLEs. So a failed call on any of them ends the kit and all others: every later call is [`Error::Broken`].
//! The random OTs on the bits of `x` have the functionality of the base OTs that they replace: malicious parties may choose
//! their own messages, and nothing else.
//!
//! Cost: of the setup, that of two setups of SoftSpoken with `k` = 8, in opposite directions. Of a vector-OLE, in place of steps 1 and 2
//! of [`super`]: one message from the receiver of `15*c/8 + 48` bytes and one bit for each OT, with `c` 256 (528 bytes and 8 in fp61 and
//! z64, 16 in gf128); in gf128 also the setup of the packed base without its base OTs.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use volery_channel::{Channel, Error, Result, SessionId};
use volery_ot::{flavour, softspoken};
use volery_primitives::{prg::Prg, ro::RandomOracle};

use super::OT_FIELD;

/// The end of the holder of the `u` and `v`.
pub struct Sender {
    pub(super) trees: softspoken::Receiver,
    pub(super) bits: flavour::Sender<softspoken::Sender>,
    numbers: Numbers,
}

/// The end of the holder of the `x`.
pub struct Receiver {
    pub(super) trees: softspoken::Sender,
    pub(super) bits: flavour::Receiver<softspoken::Receiver>,
    numbers: Numbers,
}

impl Sender {
    /// Steps 1 and 2. `session` is the one of the handshake, or one of its own for each kit; `rng` this party's own randomness.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves.
    pub fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        let part = |name| sub(session, name);
        let trees =
            softspoken::Receiver::setup(OT_FIELD, part("trees"), rng.fork("trees"), channel)?; // step 1
        let bits =
            softspoken::Sender::setup(None, OT_FIELD, part("bits"), rng.fork("bits"), channel)?; // step 2
        Ok(Self {
            trees,
            bits: flavour::Sender::new(bits, part("bits hash")),
            numbers: Numbers::new(session),
        })
    }

    /// Runs the setup of the next vector-OLE.
    pub(super) fn guarded<T>(
        &mut self,
        setup: impl FnOnce(&mut Self, SessionId, Family) -> Result<T>,
    ) -> Result<T> {
        let (session, family) = self.numbers.next();
        family.clone().guarded(|| setup(self, session, family))
    }
}

impl Receiver {
    /// Steps 1 and 2, as the peer of [`Sender::setup`].
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves.
    pub fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        let part = |name| sub(session, name);
        let trees =
            softspoken::Sender::setup(None, OT_FIELD, part("trees"), rng.fork("trees"), channel)?; // step 1
        let bits = softspoken::Receiver::setup(OT_FIELD, part("bits"), rng.fork("bits"), channel)?; // step 2
        Ok(Self {
            trees,
            bits: flavour::Receiver::new(bits, part("bits hash")),
            numbers: Numbers::new(session),
        })
    }

    /// Runs the setup of the next vector-OLE.
    pub(super) fn guarded<T>(
        &mut self,
        setup: impl FnOnce(&mut Self, SessionId, Family) -> Result<T>,
    ) -> Result<T> {
        let (session, family) = self.numbers.next();
        family.clone().guarded(|| setup(self, session, family))
    }
}

/// Whether a call on one of the objects that share a kit failed.
#[derive(Clone, Default)]
pub(super) struct Family(Arc<AtomicBool>);

impl Family {
    /// # Errors
    /// [`Error::Broken`] if a call of the family failed.
    pub(super) fn alive(&self) -> Result<()> {
        if self.0.load(Ordering::SeqCst) {
            return Err(Error::Broken);
        }
        Ok(())
    }

    /// Runs a call; if it fails, or panics, it was the last of the family.
    pub(super) fn guarded<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.alive()?;
        let alarm = Alarm(&self.0);
        let output = call()?;
        std::mem::forget(alarm);
        Ok(output)
    }
}

/// Sets the flag when it is dropped.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The sessions of a kit's vector-OLEs.
struct Numbers {
    session: SessionId,
    next: u64,
    family: Family,
}

impl Numbers {
    fn new(session: SessionId) -> Self {
        Self {
            session,
            next: 0,
            family: Family::default(),
        }
    }

    fn next(&mut self) -> (SessionId, Family) {
        let mut oracle = RandomOracle::new("volery vole kit: one vector-OLE");
        oracle.absorb(self.session.as_bytes());
        oracle.absorb_u64(self.next);
        self.next += 1;
        (
            SessionId::from_bytes(oracle.finish32()),
            self.family.clone(),
        )
    }
}

/// A session of its own for a part of the kit.
fn sub(session: SessionId, part: &str) -> SessionId {
    let mut oracle = RandomOracle::new("volery vole kit: part");
    oracle.absorb(session.as_bytes());
    oracle.absorb(part.as_bytes());
    SessionId::from_bytes(oracle.finish32())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use volery_channel::{Stats, run_two_channels, run_two_parties};
    use volery_field::{Fp61, Gf128, Ring, Z64};
    use volery_primitives::Block;

    use super::*;
    use crate::{
        Noise, Security,
        vole::{self, VoleRing},
    };

    const SESSION: SessionId = SessionId::from_bytes([5; 32]);

    fn rng(seed: u128) -> Prg {
        Prg::new(Block::from(seed))
    }

    fn plan<R: VoleRing>(n: usize) -> crate::Plan {
        let security = if R::NAME == "z64" {
            Security::SemiHonest
        } else {
            Security::Malicious
        };
        vole::plan::<R>(Some(n as u64), Noise::Regular, security).unwrap()
    }

    fn values<R: VoleRing>(
        kit: &mut Sender,
        n: usize,
        channel: &mut Channel,
    ) -> Result<(Vec<R>, Vec<R>)> {
        let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
        // The same randomness each time: what differs must come from the kit.
        let mut sender = vole::Sender::setup_with(kit, &plan::<R>(n), rng(1), channel)?;
        sender.extend(&mut u, &mut v, channel)?;
        Ok((u, v))
    }

    fn key<R: VoleRing>(
        kit: &mut Receiver,
        x: R,
        n: usize,
        channel: &mut Channel,
    ) -> Result<Vec<R>> {
        let mut w = vec![R::ZERO; n];
        let mut receiver =
            vole::Receiver::setup_with(kit, &plan::<R>(n), Some(x), rng(2), channel)?;
        receiver.extend(&mut w, channel)?;
        Ok(w)
    }

    fn check<R: VoleRing>(sizes: &[usize]) {
        let mut dealer = rng(9);
        let xs: Vec<R> = sizes.iter().map(|_| R::random(&mut dealer)).collect();
        let (uv, w) = run_two_parties(
            |channel| {
                let kit = &mut Sender::setup(SESSION, rng(1), channel).unwrap();
                let one = |n| values::<R>(kit, n, channel).unwrap();
                sizes.iter().copied().map(one).collect::<Vec<_>>()
            },
            |channel| {
                let kit = &mut Receiver::setup(SESSION, rng(2), channel).unwrap();
                let one = |(n, x): (&usize, &R)| key(kit, *x, *n, channel).unwrap();
                sizes.iter().zip(&xs).map(one).collect::<Vec<_>>()
            },
        );
        for (((u, v), w), x) in uv.iter().zip(&w).zip(&xs) {
            for i in 0..w.len() {
                assert!(
                    w[i] == u[i] * *x + v[i],
                    "{i} of {} over {}",
                    w.len(),
                    R::NAME
                );
            }
        }
        // The two of one length differ, though the parties' own randomness was the same.
        let (a, b) = (&uv[0], &uv[1]);
        assert_eq!(a.0.len(), b.0.len());
        assert!(a.1.iter().zip(&b.1).all(|(a, b)| a != b));
    }

    #[test]
    fn several_vector_oles_hold_and_differ() {
        check::<Fp61>(&[3000, 3000, 0, 1, 20_011, 150_001]);
        check::<Z64>(&[3000, 3000, 0, 1, 20_011]);
        check::<Gf128>(&[3000, 3000, 0, 1, 20_011]);
    }

    /// Rings may take turns on one kit, and streams may be alive at once.
    #[test]
    fn streams_of_one_kit_are_drawn_in_any_order() {
        let n = 20_011;
        let ((fp, gf), (w_fp, w_gf)) = run_two_parties(
            |channel| {
                let kit = &mut Sender::setup(SESSION, rng(1), channel).unwrap();
                let (fp, gf) = (plan::<Fp61>(n), plan::<Gf128>(n));
                let mut fp = vole::Sender::<Fp61>::setup_with(kit, &fp, rng(3), channel).unwrap();
                let mut gf = vole::Sender::<Gf128>::setup_with(kit, &gf, rng(4), channel).unwrap();
                let (mut a, mut b) = (vec![Fp61::ZERO; n], vec![Fp61::ZERO; n]);
                let (mut c, mut d) = (vec![Gf128::ZERO; n], vec![Gf128::ZERO; n]);
                fp.extend(&mut a[..7], &mut b[..7], channel).unwrap();
                gf.extend(&mut c, &mut d, channel).unwrap();
                fp.extend(&mut a[7..], &mut b[7..], channel).unwrap();
                ((a, b), (c, d))
            },
            |channel| {
                let kit = &mut Receiver::setup(SESSION, rng(2), channel).unwrap();
                let (fp, gf) = (plan::<Fp61>(n), plan::<Gf128>(n));
                let mut fp =
                    vole::Receiver::<Fp61>::setup_with(kit, &fp, None, rng(3), channel).unwrap();
                let mut gf =
                    vole::Receiver::<Gf128>::setup_with(kit, &gf, None, rng(4), channel).unwrap();
                let (mut a, mut c) = (vec![Fp61::ZERO; n], vec![Gf128::ZERO; n]);
                fp.extend(&mut a[..7], channel).unwrap();
                gf.extend(&mut c, channel).unwrap();
                fp.extend(&mut a[7..], channel).unwrap();
                ((fp.x(), a), (gf.x(), c))
            },
        );
        assert!((0..n).all(|i| w_fp.1[i] == fp.0[i] * w_fp.0 + fp.1[i]));
        assert!((0..n).all(|i| w_gf.1[i] == gf.0[i] * w_gf.0 + gf.1[i]));
    }

    /// A peer that breaks one vector-OLE off has ended the kit and every stream made with it.
    #[test]
    fn a_failed_vector_ole_ends_the_kit() {
        let (left, right) = Channel::memory_pair();
        let n = 20_011;
        run_two_channels(
            left,
            right,
            |channel| {
                let kit = &mut Sender::setup(SESSION, rng(1), channel).unwrap();
                let plan = plan::<Fp61>(n);
                let mut first =
                    vole::Sender::<Fp61>::setup_with(kit, &plan, rng(3), channel).unwrap();
                assert!(vole::Sender::<Fp61>::setup_with(kit, &plan, rng(3), channel).is_err());
                let (mut u, mut v) = (vec![Fp61::ZERO; n], vec![Fp61::ZERO; n]);
                let broken = |result: Result<()>| assert!(matches!(result, Err(Error::Broken)));
                broken(first.extend(&mut u, &mut v, channel));
                broken(first.prepare(channel).map(|_| ()));
                broken(vole::Sender::<Fp61>::setup_with(kit, &plan, rng(3), channel).map(|_| ()));
            },
            |channel| {
                let kit = &mut Receiver::setup(SESSION, rng(2), channel).unwrap();
                let plan = plan::<Fp61>(n);
                vole::Receiver::<Fp61>::setup_with(kit, &plan, None, rng(3), channel).unwrap();
            },
        );
    }

    /// What the doc says of the setup of a kit, and of what stands for the steps 1 and 2 of a vector-OLE.
    #[test]
    fn a_setup_costs_what_the_doc_says() {
        fn cost<R: VoleRing>() -> (Stats, Stats) {
            run_two_parties(
                |channel| {
                    let kit = &mut Sender::setup(SESSION, rng(1), channel).unwrap();
                    let before = channel.stats();
                    // So few are drawn from the base itself: nothing is made in step 3.
                    vole::Sender::<R>::setup_with(kit, &plan::<R>(1), rng(3), channel).unwrap();
                    (before, channel.stats() - before)
                },
                |channel| {
                    let kit = &mut Receiver::setup(SESSION, rng(2), channel).unwrap();
                    vole::Receiver::<R>::setup_with(kit, &plan::<R>(1), None, rng(3), channel)
                        .unwrap();
                },
            )
            .0
        }
        let of_trees = 16 * 7 * 32 + 17 * 32;
        for (setup, one) in [cost::<Fp61>(), cost::<Z64>()] {
            assert_eq!(setup.bytes_sent, 32 + of_trees + 64 * 128);
            assert_eq!(setup.bytes_received, 64 * 128 + 32 + of_trees);
            assert_eq!(one.bytes_sent, 0);
            assert_eq!(one.bytes_received, 15 * 256 / 8 + 48 + 8);
        }
        let (_, one) = cost::<Gf128>();
        let crate::Base::Packed(field) = plan::<Gf128>(1).base() else {
            panic!("another base");
        };
        let of_trees = field.trees() * (field.bits() - 1) * 32 + (field.trees() + 1) * 32;
        assert_eq!(one.bytes_received, 15 * 256 / 8 + 48 + 16);
        assert_eq!(one.bytes_sent, of_trees as u64);
    }
}
