//! One run of one protocol over one link; both parties' outputs are held against each other in full.

use std::time::Instant;

use volery_channel::{Channel, SessionId, Stats};
use volery_experiments::baselines::dpf::{self, Input, Ots};
use volery_experiments::baselines::dvole;
use volery_experiments::baselines::gilboa::{self, Multiply};
use volery_field::Ring;
use volery_ot::{flavour, softspoken};
use volery_pcg::Plan;
use volery_pcg::forest::Forest;
use volery_pcg::ggm::{Growth, TreePrgs};
use volery_pcg::single::{self, Points};
use volery_pcg::vole::{self, VoleRing};
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;

use super::candidate::Candidate;
use crate::command::options::{RingName, pool, with_ring};
use crate::exit::{Failure, Status};
use crate::link::Link;
use crate::parties;
use crate::party::fresh_prg;

/// What to run.
pub(super) struct Run<'a> {
    pub(super) candidate: Candidate,
    pub(super) ring: RingName,
    /// The length of the vector, or the size of the domain.
    pub(super) n: u64,
    /// The candidate's plan; none where it has none.
    pub(super) plan: Option<&'a Plan>,
    pub(super) link: &'a Link,
    pub(super) threads: usize,
    pub(super) timeout: std::time::Duration,
}

/// What a run took.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(super) struct Sample {
    /// Of the slower party.
    pub(super) seconds: f64,
    /// Both ways.
    pub(super) bytes: u64,
    /// Both ways: a message is all that goes one way before something comes back.
    pub(super) messages: u64,
}

/// The OT extension under the point functions: as that of the vector OLE.
const OT_FIELD: softspoken::SmallField = softspoken::SmallField::Bits8;

/// Runs both parties and checks what they made.
///
/// # Errors
/// Those of the parties; if the result is wrong.
pub(super) fn run(run: &Run<'_>) -> Result<Sample, Failure> {
    with_ring!(run.ring, R => {
        if run.candidate.is_point_function() {
            point_function::<R>(run)
        } else {
            vector_ole::<R>(run)
        }
    })
}

/// One party's time and traffic, with what it made.
struct Measured<T> {
    seconds: f64,
    traffic: Stats,
    made: T,
}

/// Runs both parties, each in its pool.
fn both<A: Send, B: Send>(
    run: &Run<'_>,
    left: impl FnOnce(&mut Channel) -> Result<Measured<A>, Failure> + Send,
    right: impl FnOnce(&mut Channel) -> Result<Measured<B>, Failure> + Send,
) -> Result<(Sample, A, B), Failure> {
    let pools = [pool(run.threads)?, pool(run.threads)?];
    let (left, right) = parties::run_both(
        run.link,
        run.timeout,
        |channel| pools[0].install(|| left(channel)),
        |channel| pools[1].install(|| right(channel)),
    )?;
    let sample = Sample {
        seconds: left.seconds.max(right.seconds),
        bytes: left.traffic.bytes_sent + right.traffic.bytes_sent,
        messages: left.traffic.messages_sent + right.traffic.messages_sent,
    };
    Ok((sample, left.made, right.made))
}

/// Measures `work`, from when both parties are there.
fn timed<T>(
    channel: &mut Channel,
    work: impl FnOnce(&mut Channel) -> Result<T, Failure>,
) -> Result<Measured<T>, Failure> {
    meet(channel)?;
    let (start, before) = (Instant::now(), channel.stats());
    let made = work(channel)?;
    let (seconds, traffic) = (start.elapsed().as_secs_f64(), channel.stats() - before);
    // What a party gives up at its end is not a part of the other's time.
    meet(channel)?;
    Ok(Measured {
        seconds,
        traffic,
        made,
    })
}

fn meet(channel: &mut Channel) -> Result<(), Failure> {
    channel.send(&[0])?;
    channel.recv(&mut [0])?;
    Ok(())
}

fn wrong(run: &Run<'_>) -> Failure {
    Failure::new(
        Status::Other,
        format_args!(
            "{} over {} with n = {}: the result is wrong",
            run.candidate.name(),
            run.ring,
            run.n
        ),
    )
}

fn session() -> Result<SessionId, Failure> {
    let mut session = [0; 32];
    fresh_prg()?.fill_bytes(&mut session);
    Ok(SessionId::from_bytes(session))
}

/// A vector OLE from nothing: base OTs and all.
fn vector_ole<R: VoleRing + Multiply>(run: &Run<'_>) -> Result<Sample, Failure> {
    let n = run.n as usize;
    let session = session()?;
    let our_plan = || run.plan.expect("a plan for our own");
    let (sample, (u, v), (x, w)) = both(
        run,
        |channel| {
            timed(channel, |channel| {
                let mut rng = fresh_prg()?;
                Ok(match run.candidate {
                    Candidate::Gilboa => gilboa::send::<R>(n, session, &mut rng, channel)?,
                    Candidate::WholeDomain | Candidate::Floram => {
                        let plan = run.candidate.slow_plan(run.n);
                        dvole::send::<R>(&plan, session, &mut rng, channel)?
                    }
                    _ => {
                        let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
                        let mut sender =
                            vole::Sender::<R>::setup(our_plan(), session, rng, channel)?;
                        sender.extend(&mut u, &mut v, channel)?;
                        (u, v)
                    }
                })
            })
        },
        |channel| {
            timed(channel, |channel| {
                let mut rng = fresh_prg()?;
                Ok(match run.candidate {
                    Candidate::Gilboa => gilboa::receive::<R>(n, session, &mut rng, channel)?,
                    Candidate::WholeDomain | Candidate::Floram => {
                        let plan = run.candidate.slow_plan(run.n);
                        dvole::receive::<R>(&plan, session, &mut rng, channel)?
                    }
                    _ => {
                        let mut w = vec![R::ZERO; n];
                        let mut receiver =
                            vole::Receiver::<R>::setup(our_plan(), None, session, rng, channel)?;
                        receiver.extend(&mut w, channel)?;
                        (receiver.x(), w)
                    }
                })
            })
        },
    )?;
    let lengths = [u.len(), v.len(), w.len()];
    if lengths != [n; 3] || (0..n).any(|i| w[i] != u[i] * x + v[i]) {
        return Err(wrong(run));
    }
    Ok(sample)
}

/// A single-point function, all its values at both parties. The OTs have been set up before.
fn point_function<R: Ring>(run: &Run<'_>) -> Result<Sample, Failure> {
    let n = run.n as usize;
    let forest = &Forest::regular(1, n);
    let session = session()?;
    let mut random = fresh_prg()?;
    let alpha = random.below(run.n) as usize;
    let betas = [R::random(&mut random), R::random(&mut random)];
    let (sample, r, m) = if run.candidate == Candidate::Dpf {
        let mask = random.below(run.n) as usize;
        let party = |first: bool, channel: &mut Channel| {
            let mut rng = fresh_prg()?;
            let mut ots = ots_both_ways(first, session, &mut rng, channel)?;
            let input = Input {
                alphas: &[if first { mask } else { mask ^ alpha }],
                betas: &[betas[usize::from(!first)]],
            };
            let mut leaves = Buffer::zeroed(n);
            let names = (session, 0);
            timed(channel, |channel| {
                if first {
                    dpf::first(
                        forest,
                        names,
                        input,
                        &mut leaves,
                        &mut ots,
                        &mut rng,
                        channel,
                    )?;
                } else {
                    dpf::second(
                        forest,
                        names,
                        input,
                        &mut leaves,
                        &mut ots,
                        &mut rng,
                        channel,
                    )?;
                }
                Ok(leaves)
            })
        };
        both(
            run,
            |channel| party(true, channel),
            |channel| party(false, channel),
        )?
    } else {
        let growth = match run.candidate {
            Candidate::Ggm => Growth::Ggm,
            _ => Growth::PseudoCorrelated,
        };
        let trees = (forest, &TreePrgs::growing(growth, session, 0));
        both(
            run,
            |channel| {
                let mut rng = fresh_prg()?;
                let cot =
                    softspoken::Sender::setup(None, OT_FIELD, session, rng.fork("ot"), channel)?;
                let mut ot = flavour::Sender::new(cot, session);
                let mut leaves = Buffer::zeroed(n);
                timed(channel, |channel| {
                    let points = Points::Chosen(&[]);
                    let beta = &betas[..1];
                    single::send(trees, points, beta, &mut leaves, &mut rng, &mut ot, channel)?;
                    Ok(leaves)
                })
            },
            |channel| {
                let cot = softspoken::Receiver::setup(OT_FIELD, session, fresh_prg()?, channel)?;
                let mut ot = flavour::Receiver::new(cot, session);
                let mut leaves = Buffer::zeroed(n);
                timed(channel, |channel| {
                    let points = Points::Chosen(&[alpha]);
                    single::receive(trees, points, &betas[1..], &mut leaves, &mut ot, channel)?;
                    Ok(leaves)
                })
            },
        )?
    };
    let expected = |i| {
        if i == alpha {
            betas[0] + betas[1]
        } else {
            R::ZERO
        }
    };
    if (0..n).any(|i| r[i] - m[i] != expected(i)) {
        return Err(wrong(run));
    }
    Ok(sample)
}

/// OTs for the distributed point function, each way from an extension of its own.
fn ots_both_ways(
    first: bool,
    session: SessionId,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<Ots<softspoken::Sender, softspoken::Receiver>, Failure> {
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
        sender: flavour::Sender::new(sent, as_sender),
        receiver: flavour::Receiver::new(received, as_receiver),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Every candidate over every ring that it exists over; the result is checked by the run.
    #[test]
    fn small_runs() {
        let all = Candidate::POINT_FUNCTIONS.into_iter();
        for candidate in all.chain(Candidate::VECTOR_OLES) {
            for ring in [RingName::Fp61, RingName::Z64, RingName::Gf128] {
                if !candidate.exists(ring) {
                    continue;
                }
                let n = 1 << 10;
                let link = Link::Loopback;
                let plan = candidate.plan(ring, n, link.for_plan()).expect("a plan");
                let sample = run(&Run {
                    candidate,
                    ring,
                    n,
                    plan: plan.as_ref(),
                    link: &link,
                    threads: 1,
                    timeout: Duration::from_secs(60),
                })
                .expect("the result is right");
                assert!(sample.seconds > 0.0 && sample.bytes >= candidate.formula(ring, n));
                match candidate {
                    // One message each way, after that of the OTs, which is the first of them.
                    Candidate::Half | Candidate::Ggm => assert_eq!(sample.messages, 2),
                    Candidate::Dpf => {
                        let signs = u64::from(ring != RingName::Gf128);
                        assert_eq!(sample.messages, 2 * (10 + 2) - 1 + signs);
                    }
                    _ => assert!(sample.messages >= 3),
                }
            }
        }
    }
}
