//! One party's side of a VOLE stream, from an open channel to the last correlation.
//!
//! `vole`, `demo` and `bench` differ in where the channel comes from and where the correlations go; what lies between is
//! here once.

use std::time::{Duration, Instant};

use volery_channel::{Channel, Hello, SessionId, Stats, handshake};
use volery_field::Ring;
use volery_pcg::vole::{self, VoleRing};
use volery_pcg::{Plan, Security};
use volery_primitives::prg::Prg;
use zeroize::Zeroizing;

use crate::exit::{Failure, Status};

/// Correlations in one step of the stream: memory is proportional to it, not to n.
pub(crate) const CHUNK: usize = 1 << 17;

/// The elements of one array in one step; forgotten when dropped.
pub(crate) type Buffer<R> = Zeroizing<Vec<R>>;

/// What each side sends when all its correlations are in its files.
const OVER: u8 = 0x56;

/// What both parties agreed to make.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    /// How many correlations.
    pub(crate) n: u64,
    /// The parameters, the same on both sides.
    pub(crate) plan: &'a Plan,
    /// Against whom the run is secure.
    pub(crate) security: Security,
}

impl Job<'_> {
    /// The first message of this side; the peer's must say the same.
    pub(crate) fn hello<R: Ring>(&self, role: &'static str) -> Hello {
        Hello {
            protocol: "vole",
            role,
            fields: vec![
                ("ring", R::NAME.to_owned()),
                ("n", self.n.to_string()),
                ("security", self.security.to_string()),
                ("noise", self.plan.noise().to_string()),
                ("parameters", self.plan.describe()),
                ("step", CHUNK.to_string()),
            ],
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

/// The sender: makes the stream of `u, v` and hands each step's to `put`, which gives the buffers back.
///
/// # Errors
/// Those of the channel, and what `put` returns.
pub(crate) fn send<R: VoleRing>(
    job: Job<'_>,
    channel: &mut Channel,
    listener: &mut impl Listener,
    mut put: impl FnMut([Buffer<R>; 2]) -> Result<[Buffer<R>; 2], Failure>,
) -> Result<Outcome, Failure> {
    let start = Instant::now();
    let session = shake::<R>(job, "sender", channel, listener)?;
    let mut sender = vole::Sender::<R>::setup(job.plan, session, fresh_prg()?, channel)?;
    let after = Phase::new(start, channel, listener);

    let mut buffers = [(); 2].map(|()| buffer(job.n));
    let mut left = job.n;
    while left > 0 {
        let now = step(left);
        let [u, v] = &mut buffers;
        u.resize(now, R::ZERO);
        v.resize(now, R::ZERO);
        sender.extend(u, v, channel)?;
        buffers = put(buffers)?;
        left -= now as u64;
        listener.done(now);
    }
    Ok(after.over(session, channel, listener))
}

/// The receiver: makes the stream of `w` and hands each step's to `put`, with `x`; the buffer comes back.
///
/// `put` is called once with an empty buffer first, so that `x` comes out even when `n` is zero.
///
/// # Errors
/// Those of the channel, and what `put` returns.
pub(crate) fn receive<R: VoleRing>(
    job: Job<'_>,
    channel: &mut Channel,
    listener: &mut impl Listener,
    mut put: impl FnMut(R, [Buffer<R>; 1]) -> Result<[Buffer<R>; 1], Failure>,
) -> Result<Outcome, Failure> {
    let start = Instant::now();
    let session = shake::<R>(job, "receiver", channel, listener)?;
    let mut receiver = vole::Receiver::<R>::setup(job.plan, None, session, fresh_prg()?, channel)?;
    let after = Phase::new(start, channel, listener);

    let mut buffers = put(receiver.x(), [buffer(job.n)])?;
    let mut left = job.n;
    while left > 0 {
        let now = step(left);
        let [w] = &mut buffers;
        w.resize(now, R::ZERO);
        receiver.extend(w, channel)?;
        buffers = put(receiver.x(), buffers)?;
        left -= now as u64;
        listener.done(now);
    }
    Ok(after.over(session, channel, listener))
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
/// half because, say, one disk was full.
///
/// # Errors
/// Those of the channel: the peer's run may have failed.
pub(crate) fn conclude(channel: &mut Channel) -> Result<(), Failure> {
    channel.send(&[OVER])?;
    let mut byte = [0];
    channel.recv(&mut byte)?;
    if byte == [OVER] {
        return Ok(());
    }
    Err(Failure::new(
        Status::Peer,
        "the peer does not follow the protocol: it did not end where the protocol ends",
    ))
}

fn shake<R: Ring>(
    job: Job<'_>,
    role: &'static str,
    channel: &mut Channel,
    listener: &mut impl Listener,
) -> Result<SessionId, Failure> {
    let mut nonce = [0; 32];
    fresh_prg()?.fill_bytes(&mut nonce);
    let session = handshake(channel, &job.hello::<R>(role), nonce)?;
    listener.phase(&format!("the peer agrees, session {}", hex(session)));
    Ok(session)
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

/// An empty buffer with room for every step of a run of `n`.
pub(crate) fn buffer<R: Ring>(n: u64) -> Buffer<R> {
    Zeroizing::new(Vec::with_capacity(step(n)))
}

/// Correlations in the next step when `left` are left.
fn step(left: u64) -> usize {
    usize::try_from(left).unwrap_or(CHUNK).min(CHUNK)
}

fn fresh_prg() -> Result<Prg, Failure> {
    Prg::from_os().map_err(|error| {
        Failure::new(
            Status::Other,
            format_args!("the system gives no random numbers: {error}"),
        )
    })
}
