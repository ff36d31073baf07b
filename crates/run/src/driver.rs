//! One party's side of a stream of correlations, from the open channel to the last correlation.
//!
//! The driver shared by `vole`, `cot` and `demo`; they differ in the correlation
//! ([`crate::party`]), the channel and the destination of the output.

use volery_channel::tcp;
use volery_channel::{Channel, SessionId, Stats, run_two_channels};
use volery_field::Ring as _;
use volery_os::time::{Duration, Instant};
use zeroize::{Zeroize, Zeroizing};

use crate::failure::{Failure, Result, Status};
use crate::negotiation::{AgreedPlan, CHUNK, Request};
use crate::party::{Correlation, Party, Start};
use crate::randomness::{fresh_prg, hex};
use crate::reporter::Bar;

/// The elements of one array in one step; zeroized on drop.
pub type Buffer<T> = Zeroizing<Vec<T>>;

/// The byte that each side sends when all its correlations are in its files.
const DONE: u8 = 0x56;

/// One party's correlations of one step.
pub struct Step<E: Party> {
    /// Number of correlations.
    pub count: usize,
    /// The values `u`, in the form of [`Party::Unit`]; empty for the party that has none.
    pub u: Buffer<E::Unit>,
    /// `v` or `w`.
    pub column: Buffer<E::Ring>,
}

impl<E: Party> Step<E> {
    /// An empty step with capacity for every step of a run of `n`.
    pub fn with_capacity(n: u64) -> Self {
        let count = next_step(n, CHUNK);
        Self { count: 0, u: buffer(E::units(count)), column: buffer(count) }
    }

    fn resize(&mut self, count: usize) {
        self.count = count;
        self.u.resize(E::units(count), E::Unit::default());
        self.column.resize(count, E::Ring::ZERO);
    }
}

impl<E: Party> Clone for Step<E> {
    fn clone(&self) -> Self {
        Self { count: self.count, u: self.u.clone(), column: self.column.clone() }
    }
}

/// The cost of a party's run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The session id, public and the same on both sides.
    pub session: SessionId,
    /// From the open channel to the first correlation, including the handshake.
    pub setup: Duration,
    /// All correlations, including handing them over.
    pub extend: Duration,
    /// Traffic of the handshake and the setup.
    pub setup_traffic: Stats,
    /// All traffic.
    pub traffic: Stats,
}

impl Outcome {
    /// Setup and extension together.
    pub fn total(&self) -> Duration {
        self.setup + self.extend
    }
}

/// Receives the events of a running party.
pub trait Listener {
    /// A phase has ended.
    fn phase(&mut self, _what: &str) {}
    /// The setup is done, and the correlations begin.
    fn set_up(&mut self) {}
    /// `count` more correlations are done.
    fn done(&mut self, _count: usize) {}
}

/// Ignores all events.
impl Listener for () {}

impl Listener for &Bar {
    fn done(&mut self, count: usize) {
        self.inc(count as u64);
    }
}

/// Makes the stream and hands each step to `put`, with the key of the party that has one (`x`,
/// `delta`); `put` returns a step to be filled. `key` is that key; `None` draws a random one.
///
/// `put` is called once with no correlations first, so that the key is delivered even when `n` is
/// zero.
///
/// # Errors
/// Errors of the channel, and those of `put`.
pub fn run<E: Party>(
    order: &Request,
    key: Option<E::Ring>,
    channel: &mut Channel,
    listener: &mut impl Listener,
    mut put: impl FnMut(Option<E::Ring>, Step<E>) -> Result<Step<E>>,
) -> Result<(Outcome, AgreedPlan)> {
    let mut empty = Some(Step::with_capacity(order.n));
    run_into::<E>(order, key, channel, listener, |key, count, draw| {
        let mut step = empty.take().unwrap_or_else(|| Step::with_capacity(order.n));
        if count > 0 {
            step.resize(count);
            draw(&mut step.u, &mut step.column)?;
        }
        empty = Some(put(key, step)?);
        Ok(())
    })
}

/// Draws the correlations of a step into the two slices, which have [`Party::units`] and one
/// element for each.
pub type Draw<'a, E> =
    dyn FnMut(&mut [<E as Party>::Unit], &mut [<E as Party>::Ring]) -> Result<()> + 'a;

/// Does what [`run`] does, into memory of the caller: `take` gets the number of correlations of the
/// step, and calls the function it gets once.
///
/// `take` is called once with no correlations first, when there is nothing to draw.
///
/// # Errors
/// Errors of the channel, and those of `take`.
pub fn run_into<E: Party>(
    order: &Request,
    key: Option<E::Ring>,
    channel: &mut Channel,
    listener: &mut impl Listener,
    mut take: impl FnMut(Option<E::Ring>, usize, &mut Draw<'_, E>) -> Result<()>,
) -> Result<(Outcome, AgreedPlan)> {
    let (mut end, agreed, after) = begin::<E, E>(order, key, channel, listener, E::setup)?;
    let key = Zeroizing::new(end.key());
    take(*key, 0, &mut |_, _| Ok(()))?;
    let mut left = order.n;
    while left > 0 {
        let now = next_step(left, agreed.step());
        take(*key, now, &mut |u, column| Ok(end.draw(u, column, channel)?))?;
        left -= now as u64;
        listener.done(now);
    }
    Ok((after.over(channel, listener), agreed))
}

/// The run up to its first correlation: the agreement, and the setup of the party.
pub(crate) fn begin<E: Party, T>(
    order: &Request,
    key: Option<E::Ring>,
    channel: &mut Channel,
    listener: &mut impl Listener,
    setup: impl FnOnce(Start<'_, E::Ring>, &mut Channel) -> volery_channel::Result<T>,
) -> Result<(T, AgreedPlan, Phase)> {
    let start = Instant::now();
    let (session, agreed) = order.settle::<E>(channel)?;
    listener.phase(&format!("the peer agrees, session {}", hex(session.as_bytes())));
    if let Some(choice) = &agreed.choice {
        listener.phase(&choice.why());
    }
    let end = setup(Start { plan: &agreed.plan, key, session, rng: fresh_prg()? }, channel)?;
    let after = Phase::new(start, session, channel, listener);
    listener.set_up();
    Ok((end, agreed, after))
}

/// Runs both parties in this process, each in its pool of threads over its channel, and hands their
/// steps to the two closures. Returns the cost of the sender's and the receiver's run, and the
/// agreed plan.
///
/// # Errors
/// The first party failure that was not caused by the other party's failure.
pub fn run_both<K: Correlation>(
    order: &Request,
    channels: [Channel; 2],
    pools: &[crate::options::Pool; 2],
    progress: &Bar,
    mut sent: impl FnMut(Option<<K::Sender as Party>::Ring>, &Step<K::Sender>) + Send,
    mut received: impl FnMut(Option<<K::Receiver as Party>::Ring>, &Step<K::Receiver>) + Send,
) -> Result<([Outcome; 2], AgreedPlan)> {
    let ((sender, agreed), (receiver, _)) = both(
        channels,
        |channel| {
            pools[0].install(|| {
                let mut progress = progress;
                let (outcome, agreed) =
                    run::<K::Sender>(order, None, channel, &mut progress, |key, step| {
                        sent(key, &step);
                        Ok(step)
                    })?;
                Ok::<_, Failure>((conclude(outcome, channel)?, agreed))
            })
        },
        |channel| {
            pools[1].install(|| {
                let (outcome, agreed) =
                    run::<K::Receiver>(order, None, channel, &mut (), |key, step| {
                        received(key, &step);
                        Ok(step)
                    })?;
                Ok::<_, Failure>((conclude(outcome, channel)?, agreed))
            })
        },
    )?;
    Ok(([sender, receiver], agreed))
}

/// Runs two parties in two threads of this process.
///
/// # Errors
/// The first party failure that was not caused by the other party's failure.
pub fn both<A: Send, B: Send>(
    [left, right]: [Channel; 2],
    sender: impl FnOnce(&mut Channel) -> Result<A> + Send,
    receiver: impl FnOnce(&mut Channel) -> Result<B> + Send,
) -> Result<(A, B)> {
    let ((sent, _), (received, _)) = run_two_channels(left, right, sender, receiver);
    match (sent, received) {
        (Ok(sent), Ok(received)) => Ok((sent, received)),
        (Err(first), Err(second)) if first.is_network() => Err(second),
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    }
}

/// The two ends of a TCP connection on the loopback interface.
pub fn loopback(timeout: Duration) -> Result<[Channel; 2]> {
    let no_port = |error| {
        let what = format_args!("cannot open a port on the loopback interface: {error}");
        Failure::new(Status::Network, what).with_hint("'ip link set lo up' enables the interface")
    };
    let listener = tcp::Listener::bind(("127.0.0.1", 0)).map_err(no_port)?;
    let address = listener.local_addr()?;
    // The system completes a loopback connection before it is accepted, at once or not at all.
    let left = tcp::Stream::connect(address, timeout).map_err(no_port)?;
    Ok([left, listener.accept(timeout)?].map(|stream| Channel::with_timeout(stream, Some(timeout))))
}

/// Threads for each of two parties that share this machine.
pub fn threads_per_party() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

/// The boundary between setup and stream.
pub(crate) struct Phase {
    session: SessionId,
    setup: Duration,
    start: Instant,
    setup_traffic: Stats,
}

impl Phase {
    fn new(
        start: Instant,
        session: SessionId,
        channel: &Channel,
        listener: &mut impl Listener,
    ) -> Self {
        let setup = start.elapsed();
        let setup_traffic = channel.stats();
        listener.phase(&format!(
            "setup done in {:.3} s, {} bytes sent, {} received",
            setup.as_secs_f64(),
            setup_traffic.bytes_sent,
            setup_traffic.bytes_received
        ));
        Self { session, setup, start: Instant::now(), setup_traffic }
    }

    /// The cost of the run, after its last correlation.
    pub(crate) fn over(self, channel: &Channel, listener: &mut impl Listener) -> Outcome {
        let outcome = Outcome {
            session: self.session,
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

/// Tells the peer that this side has succeeded and waits for the same message, so that neither side
/// keeps its output if the other failed, for example because a disk was full. Returns the outcome
/// including these bytes.
///
/// # Errors
/// Errors of the channel: the peer's run may have failed.
pub fn conclude(outcome: Outcome, channel: &mut Channel) -> Result<Outcome> {
    channel.send(&[DONE])?;
    let mut byte = [0];
    channel.recv(&mut byte)?;
    // mutant(cli-over): `byte == [DONE]` => `true`
    if byte == [DONE] {
        return Ok(Outcome { traffic: channel.stats(), ..outcome });
    }
    Err(Failure::new(
        Status::Peer,
        "the peer does not follow the protocol: it sent an unexpected final message",
    ))
}

fn buffer<T: Zeroize>(capacity: usize) -> Buffer<T> {
    Zeroizing::new(Vec::with_capacity(capacity))
}

/// The number of correlations in the next step when `left` are left, at most `most`.
fn next_step(left: u64, most: usize) -> usize {
    usize::try_from(left).unwrap_or(most).min(most)
}

#[cfg(test)]
mod tests {
    use volery_channel::run_two_parties;

    use super::*;

    #[test]
    fn a_wrong_final_message_is_refused() {
        for byte in [DONE, DONE ^ 1, 0, u8::MAX] {
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
            assert_eq!(is_refused, byte != DONE, "{byte}");
        }
    }
}
