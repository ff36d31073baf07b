//! One party's side of a stream of correlations, from an open channel to the last of them.
//!
//! `vole`, `cot`, `demo` and `bench` differ in what is made ([`crate::ends`]), where the channel comes from and where the
//! correlations go; what lies between is here once.

use std::time::{Duration, Instant};

use volery_bench::{Link, parties};
use volery_channel::{Channel, SessionId, Stats};
use volery_field::Ring as _;
use volery_primitives::prg::Prg;
use zeroize::{Zeroize, Zeroizing};

use crate::deal::{Deal, Order};
use crate::ends::{Correlation, End};
use crate::exit::{Failure, Status};

/// Correlations in one step of the stream: memory is proportional to it, not to n.
pub(crate) const CHUNK: usize = 1 << 17;

/// The elements of one array in one step; forgotten when dropped.
pub(crate) type Buffer<T> = Zeroizing<Vec<T>>;

/// What each side sends when all its correlations are in its files.
const OVER: u8 = 0x56;

/// Correlations of one step: what one party gets of them.
pub(crate) struct Step<E: End> {
    /// How many.
    pub(crate) count: usize,
    /// The values `u`, in the form of [`End::Unit`]; empty at the party that has none.
    pub(crate) u: Buffer<E::Unit>,
    /// `v` or `w`.
    pub(crate) column: Buffer<E::Ring>,
}

impl<E: End> Step<E> {
    /// No correlations, with room for every step of a run of `n`.
    pub(crate) fn with_room(n: u64) -> Self {
        let count = next_step(n);
        Self {
            count: 0,
            u: buffer(E::units(count)),
            column: buffer(count),
        }
    }

    fn resize(&mut self, count: usize) {
        self.count = count;
        self.u.resize(E::units(count), E::Unit::default());
        self.column.resize(count, E::Ring::ZERO);
    }
}

impl<E: End> Clone for Step<E> {
    fn clone(&self) -> Self {
        Self {
            count: self.count,
            u: self.u.clone(),
            column: self.column.clone(),
        }
    }
}

/// What a party's run took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// The session, which both sides know and which is no secret.
    pub(crate) session: SessionId,
    /// From the open channel to the first correlation, the handshake included.
    pub(crate) setup: Duration,
    /// All correlations, their handing over included.
    pub(crate) extend: Duration,
    /// Traffic of the handshake and the setup.
    pub(crate) setup_traffic: Stats,
    /// All traffic.
    pub(crate) traffic: Stats,
}

impl Outcome {
    /// Setup and extension together.
    pub(crate) fn total(&self) -> Duration {
        self.setup + self.extend
    }
}

/// What a party is told while it runs.
pub(crate) trait Listener {
    /// A phase is over.
    fn phase(&mut self, _what: &str) {}
    /// So many more correlations are done.
    fn done(&mut self, _count: usize) {}
}

/// Nobody listens.
impl Listener for () {}

impl Listener for indicatif::ProgressBar {
    fn done(&mut self, count: usize) {
        self.inc(count as u64);
    }
}

/// Makes the stream and hands each step to `put`, which gives a step back to be filled, with the key of the party that has
/// one (`x`, `delta`). `key` is that key; none: a random one.
///
/// `put` is called once with no correlations first, so that the key comes out even when `n` is zero.
///
/// # Errors
/// Those of the channel, and what `put` returns.
pub(crate) fn run<E: End>(
    order: &Order,
    key: Option<E::Ring>,
    channel: &mut Channel,
    listener: &mut impl Listener,
    mut put: impl FnMut(Option<E::Ring>, Step<E>) -> Result<Step<E>, Failure>,
) -> Result<(Outcome, Deal), Failure> {
    let start = Instant::now();
    let (session, deal) = order.settle::<E>(channel)?;
    listener.phase(&format!("the peer agrees, session {}", hex(session)));
    if let Some(choice) = &deal.choice {
        listener.phase(&choice.why());
    }
    let mut end = E::setup(&deal.plan, key, session, fresh_prg()?, channel)?;
    let key = Zeroizing::new(end.key());
    let after = Phase::new(start, channel, listener);

    let mut step = put(*key, Step::with_room(order.n))?;
    let mut left = order.n;
    while left > 0 {
        let now = next_step(left);
        step.resize(now);
        end.draw(&mut step.u, &mut step.column, channel)?;
        step = put(*key, step)?;
        left -= now as u64;
        listener.done(now);
    }
    Ok((after.over(session, channel, listener), deal))
}

/// Runs both parties in this process, each in its pool of threads, with the link between them, and hands their steps to
/// the two closures. Gives what the sender's and the receiver's run took, and what they made.
///
/// # Errors
/// The first party's failure that is not the mere consequence of the other's.
pub(crate) fn run_both<K: Correlation>(
    order: &Order,
    between: &Link,
    timeout: Duration,
    pools: &[rayon::ThreadPool; 2],
    progress: &indicatif::ProgressBar,
    mut sent: impl FnMut(Option<<K::Sender as End>::Ring>, &Step<K::Sender>) + Send,
    mut received: impl FnMut(Option<<K::Receiver as End>::Ring>, &Step<K::Receiver>) + Send,
) -> Result<([Outcome; 2], Deal), Failure> {
    let ((sender, deal), (receiver, _)) = parties::run_both(
        between,
        timeout,
        |channel| {
            pools[0].install(|| {
                let mut progress = progress.clone();
                let (outcome, deal) =
                    run::<K::Sender>(order, None, channel, &mut progress, |key, step| {
                        sent(key, &step);
                        Ok(step)
                    })?;
                Ok::<_, Failure>((conclude(outcome, channel)?, deal))
            })
        },
        |channel| {
            pools[1].install(|| {
                let (outcome, deal) =
                    run::<K::Receiver>(order, None, channel, &mut (), |key, step| {
                        received(key, &step);
                        Ok(step)
                    })?;
                Ok::<_, Failure>((conclude(outcome, channel)?, deal))
            })
        },
    )?;
    Ok(([sender, receiver], deal))
}

/// The moment between setup and stream.
struct Phase {
    setup: Duration,
    start: Instant,
    setup_traffic: Stats,
}

impl Phase {
    fn new(start: Instant, channel: &Channel, listener: &mut impl Listener) -> Self {
        let setup = start.elapsed();
        let setup_traffic = channel.stats();
        listener.phase(&format!(
            "setup done in {:.3} s, {} bytes sent, {} received",
            setup.as_secs_f64(),
            setup_traffic.bytes_sent,
            setup_traffic.bytes_received
        ));
        Self {
            setup,
            start: Instant::now(),
            setup_traffic,
        }
    }

    fn over(self, session: SessionId, channel: &Channel, listener: &mut impl Listener) -> Outcome {
        let outcome = Outcome {
            session,
            setup: self.setup,
            extend: self.start.elapsed(),
            setup_traffic: self.setup_traffic,
            traffic: channel.stats(),
        };
        listener.phase(&format!(
            "stream done in {:.3} s, {} bytes sent and {} received in all",
            outcome.extend.as_secs_f64(),
            outcome.traffic.bytes_sent,
            outcome.traffic.bytes_received
        ));
        outcome
    }
}

/// Tells the peer that all is well on this side and hears the same from it, so that no half stays without its other
/// half because, say, one disk was full. Gives the outcome with these bytes counted.
///
/// # Errors
/// Those of the channel: the peer's run may have failed.
pub(crate) fn conclude(outcome: Outcome, channel: &mut Channel) -> Result<Outcome, Failure> {
    channel.send(&[OVER])?;
    let mut byte = [0];
    channel.recv(&mut byte)?;
    if byte == [OVER] {
        return Ok(Outcome {
            traffic: channel.stats(),
            ..outcome
        });
    }
    Err(Failure::new(
        Status::Peer,
        "the peer does not follow the protocol: it did not end where the protocol ends",
    ))
}

/// The session as text.
pub(crate) fn hex(session: SessionId) -> String {
    use std::fmt::Write as _;
    session
        .as_bytes()
        .iter()
        .fold(String::new(), |mut text, byte| {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

fn buffer<T: Zeroize>(room: usize) -> Buffer<T> {
    Zeroizing::new(Vec::with_capacity(room))
}

/// Correlations in the next step when `left` are left.
fn next_step(left: u64) -> usize {
    usize::try_from(left).unwrap_or(CHUNK).min(CHUNK)
}

/// A generator with a seed from the system.
pub(crate) fn fresh_prg() -> Result<Prg, Failure> {
    Prg::from_os().map_err(|error| {
        Failure::new(
            Status::Other,
            format_args!("the system gives no random numbers: {error}"),
        )
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use volery_channel::run_two_parties;

    use super::*;

    #[test]
    fn an_end_that_is_none_is_refused() {
        for byte in [OVER, OVER ^ 1, 0, u8::MAX] {
            let (is_refused, ()) = run_two_parties(
                |channel| {
                    let outcome = Outcome {
                        session: SessionId::from_bytes([1; 32]),
                        setup: Duration::ZERO,
                        extend: Duration::ZERO,
                        setup_traffic: Stats::default(),
                        traffic: Stats::default(),
                    };
                    conclude(outcome, channel).is_err()
                },
                |channel| {
                    channel.send(&[byte]).unwrap();
                    channel.recv(&mut [0]).unwrap();
                },
            );
            assert_eq!(is_refused, byte != OVER, "{byte}");
        }
    }
}
