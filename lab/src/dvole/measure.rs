//! One run of one protocol over one link; both parties' outputs are held against each other in
//! full, outside of the measured time.

use std::time::Duration;

use crate::measurement::Sample;
use crate::parties::{Mark, Watch, run_in_pools};
use crate::{Error, Link, Result};
use volery_channel::{Channel, SessionId};
use volery_field::Ring;
use volery_ot::{convert, softspoken};
use volery_pcg::Plan;
use volery_pcg::ggm::{Growth, TreePrgs};
use volery_pcg::spcot::{self, Points};
use volery_pcg::tree_batch::TreeBatch;
use volery_pcg::vole::{self, VoleRing};
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;

use super::candidate::Candidate;
use crate::baselines::dpf::{self, Input, Ots};
use crate::baselines::dvole;
use crate::baselines::gilboa::{self, Multiply};
use crate::experiment::{fresh_prg, fresh_session};

/// The protocol and settings to run.
pub(super) struct Run<'a> {
    pub(super) candidate: Candidate,
    /// The length of the vector, or the size of the domain.
    pub(super) n: usize,
    /// The candidate's plan; none where it has none.
    pub(super) plan: Option<&'a Plan>,
    pub(super) link: &'a Link,
    pub(super) threads: usize,
    pub(super) timeout: Duration,
}

/// The OT extension under the point functions: as that of the vector OLE.
const OT_FIELD: softspoken::SmallField = softspoken::SmallField::Bits8;

/// Runs both parties and checks their outputs. The one phase is `total`.
///
/// # Errors
/// Those of the parties; if the result is wrong.
pub(super) fn run<R: VoleRing + Multiply>(run: &Run<'_>) -> Result<Sample> {
    match run.candidate {
        Candidate::Dpf => distributed_point::<R>(run),
        Candidate::Half | Candidate::Ggm => known_point::<R>(run),
        _ => vector_ole::<R>(run),
    }
}

/// A party's times and outputs.
type Measured<T> = (Vec<Mark>, T);

/// Runs both parties, each in its pool.
fn both<A: Send, B: Send>(
    run: &Run<'_>,
    left: impl FnOnce(&mut Channel) -> Result<Measured<A>> + Send,
    right: impl FnOnce(&mut Channel) -> Result<Measured<B>> + Send,
) -> Result<(Sample, A, B)> {
    let (left, right) = run_in_pools(run.link, run.threads, run.timeout, left, right)?;
    Ok((Sample::of([left.0, right.0]), left.1, right.1))
}

/// Measures `work`, from when both parties are ready.
fn timed<T>(
    outputs: usize,
    channel: &mut Channel,
    work: impl FnOnce(&mut Channel) -> Result<T>,
) -> Result<Measured<T>> {
    let mut watch = Watch::start(channel)?;
    let made = work(channel)?;
    watch.mark("total", outputs as u64, channel);
    Ok((watch.stop(channel)?, made))
}

/// Refuses a wrong result.
fn checked<R: Ring>(run: &Run<'_>, right: bool, sample: Sample) -> Result<Sample> {
    let wrong = || {
        Error::protocol(format_args!(
            "{} over {} with n = {}: the result is wrong",
            run.candidate.name(),
            R::NAME,
            run.n
        ))
    };
    right.then_some(sample).ok_or_else(wrong)
}

/// A vector OLE including setup, with base OTs.
fn vector_ole<R: VoleRing + Multiply>(run: &Run<'_>) -> Result<Sample> {
    let (n, session) = (run.n, fresh_session()?);
    let (sample, (u, v), (x, w)) = both(
        run,
        |channel| {
            timed(n, channel, |channel| {
                holder_of_u::<R>(run, session, channel)
            })
        },
        |channel| {
            timed(n, channel, |channel| {
                holder_of_x::<R>(run, session, channel)
            })
        },
    )?;
    let right = [u.len(), v.len(), w.len()] == [n; 3] && (0..n).all(|i| w[i] == u[i] * x + v[i]);
    checked::<R>(run, right, sample)
}

/// The vectors `u` and `v`.
fn holder_of_u<R: VoleRing + Multiply>(
    run: &Run<'_>,
    session: SessionId,
    channel: &mut Channel,
) -> Result<(Vec<R>, Vec<R>)> {
    let mut rng = fresh_prg()?;
    Ok(match run.candidate {
        Candidate::Gilboa => gilboa::send::<R>(run.n, session, &mut rng, channel)?,
        Candidate::WholeDomain | Candidate::Floram => {
            let plan = run.candidate.slow_plan(run.n as u64);
            dvole::send::<R>(&plan, session, &mut rng, channel)?
        }
        _ => {
            let plan = run.plan.expect("a plan for our own");
            let (mut u, mut v) = (vec![R::ZERO; run.n], vec![R::ZERO; run.n]);
            let mut sender = vole::Sender::<R>::setup(plan, session, rng, channel)?;
            sender.extend(&mut u, &mut v, channel)?;
            (u, v)
        }
    })
}

/// A random `x`, and `w = u*x + v`.
fn holder_of_x<R: VoleRing + Multiply>(
    run: &Run<'_>,
    session: SessionId,
    channel: &mut Channel,
) -> Result<(R, Vec<R>)> {
    let mut rng = fresh_prg()?;
    Ok(match run.candidate {
        Candidate::Gilboa => gilboa::receive::<R>(run.n, session, &mut rng, channel)?,
        Candidate::WholeDomain | Candidate::Floram => {
            let plan = run.candidate.slow_plan(run.n as u64);
            dvole::receive::<R>(&plan, session, &mut rng, channel)?
        }
        _ => {
            let plan = run.plan.expect("a plan for our own");
            let mut w = vec![R::ZERO; run.n];
            let mut receiver = vole::Receiver::<R>::setup(plan, None, session, rng, channel)?;
            receiver.extend(&mut w, channel)?;
            (receiver.x(), w)
        }
    })
}

/// The nonzero index of a point function, and the parties' shares of its value there.
struct Point<R> {
    alpha: usize,
    betas: [R; 2],
}

impl<R: Ring> Point<R> {
    fn random(n: usize, random: &mut Prg) -> Self {
        Self {
            alpha: random.below(n as u64) as usize,
            betas: [R::random(random), R::random(random)],
        }
    }

    /// Whether all differences of the parties' values are those of the function.
    fn is_shared(&self, first: &[R], second: &[R]) -> bool {
        let value = |i| {
            if i == self.alpha {
                self.betas[0] + self.betas[1]
            } else {
                R::ZERO
            }
        };
        let mut pairs = first.iter().zip(second).enumerate();
        first.len() == second.len() && pairs.all(|(i, (r, m))| *r - *m == value(i))
    }
}

/// A point function on an index that the second party knows, all its values at both parties. The
/// OTs have been set up before.
fn known_point<R: Ring>(run: &Run<'_>) -> Result<Sample> {
    let (n, session) = (run.n, fresh_session()?);
    let forest = &TreeBatch::regular(1, n);
    let point = Point::<R>::random(n, &mut fresh_prg()?);
    let growth = match run.candidate {
        Candidate::Ggm => Growth::Ggm,
        _ => Growth::PseudoCorrelated,
    };
    let trees = (forest, &TreePrgs::growing(growth, session, 0));
    let (sample, r, m) = both(
        run,
        |channel| {
            let mut rng = fresh_prg()?;
            let seed = rng.fork("ot");
            let cot = softspoken::Sender::setup(None, OT_FIELD, session, seed, channel)?;
            let mut ot = convert::Sender::new(cot, session);
            let mut leaves = Buffer::zeroed(n);
            timed(n, channel, |channel| {
                let (points, beta) = (Points::Chosen(&[]), &point.betas[..1]);
                spcot::send(trees, points, beta, &mut leaves, &mut rng, &mut ot, channel)?;
                Ok(leaves)
            })
        },
        |channel| {
            let cot = softspoken::Receiver::setup(OT_FIELD, session, fresh_prg()?, channel)?;
            let mut ot = convert::Receiver::new(cot, session);
            let mut leaves = Buffer::zeroed(n);
            timed(n, channel, |channel| {
                let alphas = [point.alpha];
                let (points, beta) = (Points::Chosen(&alphas), &point.betas[1..]);
                spcot::receive(trees, points, beta, &mut leaves, &mut ot, channel)?;
                Ok(leaves)
            })
        },
    )?;
    checked::<R>(run, point.is_shared(&r, &m), sample)
}

/// A point function on an index that is shared, all its values at both parties. The OTs have been
/// set up before.
fn distributed_point<R: Ring>(run: &Run<'_>) -> Result<Sample> {
    let (n, session) = (run.n, fresh_session()?);
    let forest = &TreeBatch::regular(1, n);
    let mut random = fresh_prg()?;
    let point = Point::<R>::random(n, &mut random);
    let mask = random.below(n as u64) as usize;
    let party = |first: bool, channel: &mut Channel| {
        let mut rng = fresh_prg()?;
        let mut ots = ots_both_ways(first, session, &mut rng, channel)?;
        let input = Input {
            alphas: &[if first { mask } else { mask ^ point.alpha }],
            betas: &[point.betas[usize::from(!first)]],
        };
        let mut leaves = Buffer::zeroed(n);
        let (rng, names) = (&mut rng, (session, 0));
        timed(n, channel, |channel| {
            if first {
                dpf::first(forest, names, input, &mut leaves, &mut ots, rng, channel)?;
            } else {
                dpf::second(forest, names, input, &mut leaves, &mut ots, rng, channel)?;
            }
            Ok(leaves)
        })
    };
    let (sample, r, m) = both(
        run,
        |channel| party(true, channel),
        |channel| party(false, channel),
    )?;
    checked::<R>(run, point.is_shared(&r, &m), sample)
}

/// OTs for the distributed point function, each way from an extension of its own.
fn ots_both_ways(
    first: bool,
    session: SessionId,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<Ots<softspoken::Sender, softspoken::Receiver>> {
    let sessions = [1, 2].map(|byte| {
        let mut bytes = *session.as_bytes();
        bytes[0] ^= byte;
        SessionId::from_bytes(bytes)
    });
    // The session of the OTs in which the first party is the sender, then of the others.
    let [as_sender, as_receiver] = if first {
        sessions
    } else {
        [sessions[1], sessions[0]]
    };
    let [send_seed, receive_seed] = ["sender", "receiver"].map(|which| rng.fork(which));
    let send = |channel: &mut Channel| {
        softspoken::Sender::setup(None, OT_FIELD, as_sender, send_seed, channel)
    };
    let receive = |channel: &mut Channel| {
        softspoken::Receiver::setup(OT_FIELD, as_receiver, receive_seed, channel)
    };
    let (sent, received) = if first {
        let sent = send(channel)?;
        (sent, receive(channel)?)
    } else {
        let received = receive(channel)?;
        (send(channel)?, received)
    };
    Ok(Ots {
        sender: convert::Sender::new(sent, as_sender),
        receiver: convert::Receiver::new(received, as_receiver),
    })
}

#[cfg(test)]
mod tests {
    use volery_field::{Fp61, Gf128, Z64};

    use super::*;

    const N: usize = 1 << 10;

    /// Every candidate over the ring, where it exists; the result is checked by the run.
    fn small_runs<R: VoleRing + Multiply>(signs: u64) {
        let all = Candidate::POINT_FUNCTIONS.into_iter();
        for candidate in all.chain(Candidate::VECTOR_OLES) {
            let link = &Link::Loopback;
            let Ok(plan) = candidate.plan::<R>(N as u64, link) else {
                assert_eq!(
                    (candidate.name().as_str(), R::NAME),
                    ("vole-malicious", "z64")
                );
                continue;
            };
            let sample = run::<R>(&Run {
                candidate,
                n: N,
                plan: plan.as_ref(),
                link,
                threads: 1,
                timeout: Duration::from_secs(60),
            })
            .expect("the result is right");
            assert_eq!(sample.phases.len(), 1);
            assert_eq!(sample.phases[0].outputs, N as u64);
            assert!(sample.seconds() > 0.0);
            let forecast = candidate.forecast::<R>(N as u64);
            // Over gf128 the vector OLE has another base, which sends less.
            if R::NAME != "gf128" || candidate == Candidate::Gilboa {
                let bytes = sample.bytes() as f64;
                assert!(bytes >= forecast.bytes, "{candidate:?}: {bytes}");
            }
            match candidate {
                // One message each way, after that of the OTs, which is the first of them.
                Candidate::Half | Candidate::Ggm => assert_eq!(sample.messages(), 2),
                Candidate::Dpf => assert_eq!(sample.messages(), 2 * (10 + 2) - 1 + signs),
                _ => assert!(sample.messages() >= 3),
            }
        }
    }

    #[test]
    fn small_runs_in_a_prime_field() {
        small_runs::<Fp61>(1);
    }

    #[test]
    fn small_runs_in_an_integer_ring() {
        small_runs::<Z64>(1);
    }

    #[test]
    fn small_runs_in_a_binary_field() {
        small_runs::<Gf128>(0);
    }

    #[test]
    fn a_wrong_result_is_refused() {
        let run = Run {
            candidate: Candidate::Gilboa,
            n: 7,
            plan: None,
            link: &Link::Loopback,
            threads: 1,
            timeout: Duration::from_secs(1),
        };
        assert!(checked::<Fp61>(&run, true, Sample::default()).is_ok());
        let error = checked::<Fp61>(&run, false, Sample::default()).expect_err("it is wrong");
        let text = error.to_string();
        assert!(
            text.starts_with("gilboa over ") && text.ends_with("with n = 7: the result is wrong")
        );
        let one = Fp61::ONE;
        let point = Point {
            alpha: 1,
            betas: [one, one],
        };
        let values = |at: usize| {
            let mut values = [Fp61::ZERO; 3];
            values[at] = one + one;
            values
        };
        let zero = [Fp61::ZERO; 3];
        assert!(point.is_shared(&values(1), &zero));
        assert!(!point.is_shared(&values(2), &zero));
        assert!(!point.is_shared(&zero, &zero));
        assert!(!point.is_shared(&values(1), &zero[..2]));
    }
}
