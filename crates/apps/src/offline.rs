//! The offline phase of the dense applications: any number of random vector-OLEs between the same
//! two parties.
//!
//! ```text
//! Sender                                  Receiver
//! 1. -------- volery_pcg::vole::shared_setup: the shared OT extensions, once --------
//! for j = 0, 1, ..
//! 2. -------- volery_pcg::vole with the shared setup: u_j, v_j | x_j, w_j = u_j*x_j + v_j --------
//! ```
//!
//! `x_j` is random or chosen by the receiver. [`Sender::stream`] and [`Receiver::stream`] return
//! the stream of one vector-OLE, which can be drawn in parts of any lengths.
//!
//! Security: as given by the caller. Malicious is the default; `z64` supports semi-honest only, and
//! a request for more is an error. One failed call ends the object and all its streams.
//!
//! Memory: one stream of `n` outputs in progress holds at most `n` ring elements and the base of
//! its round (a few megabytes), and the forked OT extension, 1 MB.
//!
//! Cost: [`volery_pcg::vole::shared_setup`] and [`volery_pcg::vole`].

use volery_channel::{Channel, SessionId};
use volery_pcg::{
    Link, Plan, Security,
    vole::{self, VoleRing, shared_setup},
};
use volery_primitives::prg::Prg;

use crate::error::Result;

/// The holder of the `u` and `v`.
pub struct Sender {
    shared: shared_setup::Sender,
    plans: Plans,
    rng: Prg,
}

/// The holder of the `x` and `w`.
pub struct Receiver {
    shared: shared_setup::Receiver,
    plans: Plans,
    rng: Prg,
}

impl Sender {
    /// Step 1. `session` is the one of the handshake, or a separate one for each object; `rng` is
    /// this party's own randomness.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves.
    pub fn setup(
        security: Security,
        session: SessionId,
        mut rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        Ok(Self {
            shared: shared_setup::Sender::setup(session, rng.fork("kit"), channel)?,
            plans: Plans::new(security),
            rng,
        })
    }

    /// The security level of the vector-OLEs.
    pub fn security(&self) -> Security {
        self.plans.security
    }

    /// Step 2: the stream of the next vector-OLE, of length `n`. The peer calls
    /// [`Receiver::stream`] with the same length.
    ///
    /// # Errors
    /// If no vector-OLE over `R` has that security; if the channel fails or the peer misbehaves,
    /// now or before.
    pub fn stream<R: VoleRing>(
        &mut self,
        n: usize,
        channel: &mut Channel,
    ) -> Result<vole::Sender<R>> {
        let plan = self.plans.of::<R>(n)?;
        let rng = self.rng.fork("vector-OLE");
        Ok(vole::Sender::setup_with(&mut self.shared, plan, rng, channel)?)
    }
}

impl Receiver {
    /// Step 1, as the peer of [`Sender::setup`].
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves.
    pub fn setup(
        security: Security,
        session: SessionId,
        mut rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        Ok(Self {
            shared: shared_setup::Receiver::setup(session, rng.fork("kit"), channel)?,
            plans: Plans::new(security),
            rng,
        })
    }

    /// The security level of the vector-OLEs.
    pub fn security(&self) -> Security {
        self.plans.security
    }

    /// Step 2, for the given `x` or a random one: as [`Sender::stream`].
    ///
    /// # Errors
    /// If no vector-OLE over `R` has that security; if the channel fails or the peer misbehaves,
    /// now or before.
    pub fn stream<R: VoleRing>(
        &mut self,
        x: Option<R>,
        n: usize,
        channel: &mut Channel,
    ) -> Result<vole::Receiver<R>> {
        let plan = self.plans.of::<R>(n)?;
        let rng = self.rng.fork("vector-OLE");
        Ok(vole::Receiver::setup_with(&mut self.shared, plan, x, rng, channel)?)
    }
}

/// Plans of one security level; the last one is cached, as a protocol requests the same plan
/// repeatedly.
struct Plans {
    security: Security,
    last: Option<(&'static str, usize, Plan)>,
}

impl Plans {
    fn new(security: Security) -> Self {
        Self { security, last: None }
    }

    fn of<R: VoleRing>(&mut self, n: usize) -> Result<&Plan> {
        let last = self.last.take();
        let (name, n, plan) = match last {
            Some(last) if (last.0, last.1) == (R::NAME, n) => last,
            _ => {
                let plan = vole::plan::<R>(Some(n as u64), Link::default(), self.security)?;
                (R::NAME, n, plan)
            }
        };
        Ok(&self.last.insert((name, n, plan)).2)
    }
}

#[cfg(test)]
mod tests {
    use volery_field::{Fp61, Gf128, Z64};
    use volery_pcg::PlanError;

    use super::*;
    use crate::{error::Error, testing::sources};

    fn check<R: VoleRing>(security: Security, m: usize, n: usize) {
        let given = |j| (j % 2 == 1).then_some(R::ONE + R::ONE);
        let (values, keys) = sources(
            security,
            |source, channel| {
                let one = |_| {
                    let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
                    source.stream(n, channel)?.extend(&mut u, &mut v, channel)?;
                    Ok((u, v))
                };
                (0..m).map(one).collect::<Result<Vec<_>>>().unwrap()
            },
            |source, channel| {
                let one = |j| {
                    let mut w = vec![R::ZERO; n];
                    let mut stream = source.stream(given(j), n, channel)?;
                    stream.extend(&mut w, channel)?;
                    Ok((stream.x(), w))
                };
                (0..m).map(one).collect::<Result<Vec<_>>>().unwrap()
            },
        );
        for (j, ((u, v), (x, w))) in values.iter().zip(&keys).enumerate() {
            assert!(given(j).is_none_or(|given| given == *x));
            assert!((0..n).all(|i| w[i] == u[i] * *x + v[i]));
        }
        // Random keys, and different vectors each time.
        for j in (2..m).step_by(2) {
            assert!(keys[j].0 != keys[0].0 && values[j].0[0] != values[0].0[0]);
        }
    }

    #[test]
    fn streams_are_vector_oles() {
        for n in [1, 63, 4097] {
            check::<Fp61>(Security::Malicious, 4, n);
            check::<Gf128>(Security::Malicious, 3, n);
            check::<Z64>(Security::SemiHonest, 3, n);
        }
        check::<Fp61>(Security::SemiHonest, 2, 140_001);
    }

    /// Malicious is the default; an unsupported level is refused at both parties, before any of its
    /// messages.
    #[test]
    fn malicious_unless_it_is_refused() {
        assert_eq!(Security::default(), Security::Malicious);
        let refused = |error: Error| matches!(error, Error::Plan(PlanError::NotMalicious));
        sources(
            Security::default(),
            |source, channel| {
                assert_eq!(source.security(), Security::Malicious);
                assert!(refused(source.stream::<Z64>(5, channel).map(drop).unwrap_err()));
                source.stream::<Fp61>(5, channel).unwrap();
            },
            |source, channel| {
                assert!(refused(source.stream::<Z64>(None, 5, channel).map(drop).unwrap_err()));
                source.stream::<Fp61>(None, 5, channel).unwrap();
            },
        );
    }
}
