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
//! the stream of one vector-OLE, which can be drawn in parts of any lengths; [`Sender::batch`] and
//! [`Receiver::batch`] return a whole batch of equal lengths.
//!
//! Security: as given by the caller. Malicious is the default; `z64` supports semi-honest only, and
//! a request for more is an error. One failed call ends the object and all its streams.
//!
//! Memory: one stream of `n` outputs in progress holds at most `n` ring elements and the base of
//! its round (a few megabytes), and the forked OT extension, 1 MB. A batch of `m` keeps `2*m*n`
//! elements at the sender, `m*(n + 1)` at the receiver, and creates its streams one after the
//! other.
//!
//! Cost: [`volery_pcg::vole::shared_setup`] and [`volery_pcg::vole`]. None for `n` = 0.

use volery_channel::{Channel, SessionId};
use volery_pcg::{
    Link, Plan, Security,
    vole::{self, VoleRing, shared_setup},
};
use volery_primitives::{pages::Buffer, prg::Prg};
use zeroize::Zeroizing;

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

/// The sender's part of one random vector-OLE.
pub struct Values<R: VoleRing> {
    /// Random.
    pub u: Buffer<R>,
    /// Random.
    pub v: Buffer<R>,
}

/// The receiver's part of one random vector-OLE.
pub struct Key<R: VoleRing> {
    /// The scalar.
    pub x: Zeroizing<R>,
    /// `u*x + v`.
    pub w: Buffer<R>,
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

    /// `m` vector-OLEs of length `n`. Fails as [`stream`](Self::stream) does.
    pub fn batch<R: VoleRing>(
        &mut self,
        m: usize,
        n: usize,
        channel: &mut Channel,
    ) -> Result<Vec<Values<R>>> {
        let mut all = Vec::new();
        for _ in 0..m {
            let (mut u, mut v) = (Buffer::zeroed(n), Buffer::zeroed(n));
            if n > 0 {
                self.stream(n, channel)?.extend(&mut u, &mut v, channel)?;
            }
            all.push(Values { u, v });
        }
        Ok(all)
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

    /// One vector-OLE of length `n` for each `x`, which is given or random. Fails as
    /// [`stream`](Self::stream) does.
    pub fn batch<R: VoleRing>(
        &mut self,
        x: &[Option<R>],
        n: usize,
        channel: &mut Channel,
    ) -> Result<Vec<Key<R>>> {
        let mut all = Vec::new();
        for x in x {
            let mut w = Buffer::zeroed(n);
            let x = if n > 0 {
                let mut stream = self.stream(*x, n, channel)?;
                stream.extend(&mut w, channel)?;
                stream.x()
            } else {
                x.unwrap_or_else(|| R::random(&mut self.rng))
            };
            all.push(Key { x: Zeroizing::new(x), w });
        }
        Ok(all)
    }
}

/// Plans of one security level; the last one is cached, as a batch requests the same plan
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
        let x: Vec<_> = (0..m).map(given).collect();
        let (values, keys) = sources(
            security,
            |source, channel| source.batch::<R>(m, n, channel).unwrap(),
            |source, channel| source.batch::<R>(&x, n, channel).unwrap(),
        );
        assert_eq!((values.len(), keys.len()), (m, m));
        for ((values, key), given) in values.iter().zip(&keys).zip(&x) {
            assert!(given.is_none_or(|given| given == *key.x));
            assert_eq!((values.u.len(), values.v.len(), key.w.len()), (n, n, n));
            for i in 0..n {
                assert!(key.w[i] == values.u[i] * *key.x + values.v[i]);
            }
        }
        // Random keys, and different vectors each time.
        for j in (2..m).step_by(2) {
            assert!(*keys[j].x != *keys[0].x);
            assert!(n == 0 || values[j].u[0] != values[0].u[0]);
        }
    }

    #[test]
    fn batches_are_vector_oles() {
        for n in [0, 1, 63, 4097] {
            check::<Fp61>(Security::Malicious, 4, n);
            check::<Gf128>(Security::Malicious, 3, n);
            check::<Z64>(Security::SemiHonest, 3, n);
        }
        check::<Fp61>(Security::Malicious, 0, 10);
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
                assert!(refused(source.batch::<Z64>(1, 5, channel).map(|_| ()).unwrap_err()));
                source.batch::<Fp61>(1, 5, channel).unwrap();
            },
            |source, channel| {
                let error = source.batch::<Z64>(&[None], 5, channel).map(|_| ());
                assert!(refused(error.unwrap_err()));
                source.batch::<Fp61>(&[None], 5, channel).unwrap();
            },
        );
    }
}
