//! The link between the two parties, and an estimate of it: an extended handshake.
//!
//! ```text
//! Measuring                                       Measured
//! 1. hello, own round trip (4 bytes), probe  ---->
//!    <----  hello, own round trip (4 bytes), probe
//! 2.                                              if the round trip is short against
//!                                                 the work: a train, as long as the
//!    <------------ log (1 byte), train --------   probe of the measuring side allows
//! 3. rate, round trip (12 bytes)             ---->
//! ```
//!
//! The measuring side looks at the arrival times of the bytes of the probe or, if there is one, of
//! the train. The sizes follow from the amount of work: the probe takes some hundredths of the
//! traffic that any protocol would need for it on the slowest link, the train at most about a
//! fiftieth of the work's time. Step 3 is sent with the measuring side's next message, so only step
//! 2 waits for a message.
//!
//! The estimate guides a choice and is not trusted. A peer that lies about it, or only sends
//! slowly, chooses among the protocols that this party is ready to run: the caller must accept each
//! of its candidates.
//!
//! Cost: the handshake's and step 3's messages, at most 4,100 + 12 bytes more, and a train of at
//! most 256 KiB, whose length follows from the measurement: the only number of bytes in this
//! project that depends on the clock.

use std::str::FromStr;
use std::time::Duration;

use volery_os::time::Instant;

use crate::handshake::{Hello, SessionId, handshake_then};
use crate::pipe::deadline_after;
use crate::{Channel, Error, Result};

/// The rate assumed for a link that is too fast for a probe and not probed again, in bits per
/// second: between those of a local and of a wide-area network; and where the round trip is at
/// least [`FAR`].
const ASSUMED: u64 = 2_000_000_000;
const ASSUMED_FAR: u64 = 200_000_000;
const FAR: Duration = Duration::from_millis(5);

/// Upper bound of an estimated rate, in bits per second.
const FASTEST: u64 = 1_000_000_000_000;

/// Lower bound of an estimated rate, in bits per second.
const SLOWEST: u64 = 1_000;

/// Upper bound of a round trip.
const LONGEST: Duration = Duration::from_secs(60);

/// Number of pieces of a probe.
const PIECES: usize = 4;

/// Minimum number of bytes whose arrival times are significant, and the minimum time, as a busy
/// machine may wake a thread that much later.
const SIGNIFICANT: Interval = Interval { time: Duration::from_micros(100), bytes: 256 };

/// Shorter arrival times are rounded up to this.
const SHORTEST: Duration = Duration::from_micros(10);

/// The logarithms of the lengths of trains, in bytes.
const TRAINS: std::ops::RangeInclusive<u32> = 14..=18;

/// The capacity of the link between the parties, from which protocols and parameters are chosen.
///
/// As text `100Mbit,20ms` (`kbit`, `Mbit`, `Gbit`; `us`, `ms`, `s`), or `loopback`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Bits per second, each way.
    pub bits_per_second: f64,
    /// Seconds from a message to its answer.
    pub round_trip: f64,
}

impl Default for Link {
    /// A local network: 1 Gbit/s, 0.5 ms.
    fn default() -> Self {
        Self { bits_per_second: 1e9, round_trip: 5e-4 }
    }
}

/// A text that is not a [`Link`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a link: use loopback, or RATE,RTT such as 100Mbit,20ms (1kbit to 1000Gbit; us, ms, s, at most 60s)"
)]
pub struct ParseLinkError(String);

impl FromStr for Link {
    type Err = ParseLinkError;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        if text == "loopback" {
            return Ok(Self::LOOPBACK);
        }
        let parsed = text.split_once(',').and_then(|(rate, round_trip)| {
            Some(Self {
                bits_per_second: scaled(rate, &[("kbit", 1e3), ("Mbit", 1e6), ("Gbit", 1e9)])?,
                round_trip: scaled(round_trip, &[("us", 1e-6), ("ms", 1e-3), ("s", 1.0)])?,
            })
        });
        parsed
            .filter(|link| {
                (SLOWEST as f64..=FASTEST as f64).contains(&link.bits_per_second)
                    && (0.0..=LONGEST.as_secs_f64()).contains(&link.round_trip)
            })
            .ok_or_else(|| ParseLinkError(text.to_owned()))
    }
}

/// Parses a number with one of the units.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, scale) =
        units.iter().find_map(|&(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
    number.parse().ok().map(|number: f64| number * scale)
}

/// The two sides of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// This party measures the peer's bytes; it should be the one that sends next.
    Measures,
    /// The peer measures.
    IsMeasured,
}

/// Performs the [`handshake`](fn@crate::handshake) and estimates the link, with the same result at
/// both parties; one measures and the other is measured. `work` is about how long the parties will
/// compute; it is part of the hello, as both need the same value. The channel's timeout bounds the
/// whole exchange.
///
/// # Errors
/// The errors of [`handshake`](fn@crate::handshake), and [`Error::PeerMisbehaved`] if the peer's
/// numbers are out of bounds.
pub fn handshake_and_estimate(
    channel: &mut Channel,
    hello: &Hello,
    nonce: [u8; 32],
    side: Side,
    work: Duration,
) -> Result<(SessionId, Link)> {
    let mut hello = hello.clone();
    hello.fields.push(("pace", work.as_micros().to_string()));
    let measurement = Measurement::new(side, work, channel);
    channel.watch();
    let session = handshake_then(channel, &hello, nonce, |channel| measurement.begin(channel))?;
    Ok((session, measurement.finish(channel)?))
}

/// Estimates the link as [`handshake_and_estimate`] does, after a handshake: where the amount of
/// work follows from messages after it. Both parties must have the same `work`.
///
/// # Errors
/// The errors of [`handshake_and_estimate`].
pub fn estimate(channel: &mut Channel, side: Side, work: Duration) -> Result<Link> {
    let measurement = Measurement::new(side, work, channel);
    channel.watch();
    measurement.begin(channel)?;
    measurement.finish(channel)
}

/// A measurement from its first byte to the estimate.
struct Measurement {
    side: Side,
    work: Duration,
    deadline: Option<Instant>,
    /// Microseconds of a round trip, as far as this party knows.
    known: u32,
    /// Bytes of the probe.
    probe: usize,
}

impl Measurement {
    fn new(side: Side, work: Duration, channel: &Channel) -> Self {
        Self {
            side,
            work,
            deadline: deadline_after(channel.timeout()),
            known: channel.round_trip().map_or(u32::MAX, micros),
            probe: probe_for(work),
        }
    }

    /// Sends the own round trip and the probe.
    fn begin(&self, channel: &mut Channel) -> Result<()> {
        channel.send(&self.known.to_le_bytes())?;
        channel.flush()?;
        send_in_pieces(self.probe, self.probe / PIECES, channel)
    }

    /// All that follows on [`begin`](Self::begin).
    fn finish(self, channel: &mut Channel) -> Result<Link> {
        let Self { side, work, deadline, known, probe } = self;
        let mut theirs = [0; 4];
        channel.recv_until(&mut theirs, deadline)?;
        channel.recv_until(&mut vec![0; probe], deadline)?;
        let arrivals = channel.watched();
        let known = [known, u32::from_le_bytes(theirs)];
        let round_trip = known.into_iter().filter(|&known| known != u32::MAX).max();
        let round_trip = Duration::from_micros(round_trip.unwrap_or_default().into());
        // mutant(link-far): false
        if round_trip > LONGEST {
            return Err(channel.fail(OUT_OF_BOUNDS));
        }
        let is_far = round_trip >= FAR;
        let probed = of_probe(arrivals, is_far);
        // The train is awaited for half a round trip.
        let train = work >= Duration::from_millis(2) && round_trip <= work / 4;
        let estimate = match side {
            Side::Measures => {
                let told = if train { recv_train(probed, channel, deadline)? } else { probed };
                let assumed = if is_far { ASSUMED_FAR } else { ASSUMED };
                let estimate = Estimate { bits_per_second: told.unwrap_or(assumed), round_trip };
                channel.send(&estimate.to_bytes())?;
                channel.flush()?;
                estimate
            }
            Side::IsMeasured => {
                if train {
                    send_train(probed, work, channel)?;
                }
                let mut bytes = [0; 12];
                channel.recv_until(&mut bytes, deadline)?;
                // mutant(link-other-trip): `estimate.round_trip == round_trip` => `true`
                // mutant(link-broken): `channel.fail(OUT_OF_BOUNDS)` => `OUT_OF_BOUNDS`
                Estimate::from_bytes(bytes)
                    .filter(|estimate| estimate.round_trip == round_trip)
                    .ok_or_else(|| channel.fail(OUT_OF_BOUNDS))?
            }
        };
        Ok(estimate.into())
    }
}

const OUT_OF_BOUNDS: Error =
    Error::PeerMisbehaved("it reported a bandwidth or round-trip time out of range");

impl Link {
    /// A link within one machine.
    pub const LOOPBACK: Self = Self { bits_per_second: 2e10, round_trip: 1e-4 };
}

/// The measuring side's message in step 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Estimate {
    /// [`SLOWEST`] to [`FASTEST`].
    bits_per_second: u64,
    /// Whole microseconds, at most [`LONGEST`].
    round_trip: Duration,
}

impl From<Estimate> for Link {
    fn from(estimate: Estimate) -> Self {
        Self {
            bits_per_second: estimate.bits_per_second as f64,
            round_trip: estimate.round_trip.as_micros() as f64 / 1e6,
        }
    }
}

impl Estimate {
    fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.bits_per_second.to_le_bytes());
        bytes[8..].copy_from_slice(&micros(self.round_trip).to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; 12]) -> Option<Self> {
        let (rate, round_trip) = bytes.split_at(8);
        let bits_per_second = u64::from_le_bytes(rate.try_into().ok()?);
        let round_trip = u32::from_le_bytes(round_trip.try_into().ok()?);
        let round_trip = Duration::from_micros(round_trip.into());
        // mutant(link-rate): `(SLOWEST..=FASTEST).contains(&bits_per_second)` => `true`
        let is_in_range = (SLOWEST..=FASTEST).contains(&bits_per_second) && round_trip <= LONGEST;
        is_in_range.then_some(Self { bits_per_second, round_trip })
    }
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.min(LONGEST).as_micros()).unwrap_or(u32::MAX)
}

/// Bytes of a probe.
fn probe_for(work: Duration) -> usize {
    match work.as_micros() {
        0..50 => 512,
        50..500 => 1024,
        _ => 4096,
    }
}

/// Sends each piece in a write of its own: a layer that seals or delays pieces must not merge them.
fn send_in_pieces(bytes: usize, piece: usize, channel: &mut Channel) -> Result<()> {
    let zeros = vec![0; piece];
    let mut left = bytes;
    while left > 0 {
        let now = left.min(piece);
        channel.send(&zeros[..now])?;
        channel.flush()?;
        left -= now;
    }
    Ok(())
}

/// Sends a train that takes at most about a fiftieth of the work's time, or announces that there is
/// none.
fn send_train(probed: Option<u64>, work: Duration, channel: &mut Channel) -> Result<()> {
    let rate = probed.unwrap_or(10_000_000_000) as f64;
    let bytes = rate / 8.0 * work.as_secs_f64() / 50.0;
    // More precision is not needed; integers, because the peer checks it.
    let log = (bytes as u64).max(1).ilog2().min(*TRAINS.end());
    let log = if TRAINS.contains(&log) { log } else { 0 };
    channel.send(&[log as u8])?;
    if log > 0 {
        send_in_pieces(1 << log, 1 << (log - 4).min(16), channel)?;
    }
    channel.flush()
}

/// The rate from the second half of the train, if one comes, otherwise from the probe: over a long
/// distance the network needs the first half to reach its speed.
fn recv_train(
    probed: Option<u64>,
    channel: &mut Channel,
    deadline: Option<Instant>,
) -> Result<Option<u64>> {
    let mut log = [0];
    channel.recv_until(&mut log, deadline)?;
    match u32::from(log[0]) {
        0 => Ok(probed),
        log if TRAINS.contains(&log) => {
            let mut half = vec![0; 1 << (log - 1)];
            channel.recv_until(&mut half, deadline)?;
            channel.watch();
            channel.recv_until(&mut half, deadline)?;
            let told = of_train(channel.watched());
            Ok(told.or(probed).or_else(|| Some(at_once(half.len()))))
        }
        // mutant(link-train): insert `_ if $ON => Ok(probed),`
        _ => Err(channel.fail(OUT_OF_BOUNDS)),
    }
}

/// Bits per second, if enough bytes came late enough to tell. From a distant peer, bytes travel
/// longer than this party may have been asleep, and the network has ordered them: there, the
/// longest wait is as reliable as the others.
fn of_probe(arrivals: Arrivals, is_far: bool) -> Option<u64> {
    let seen = match is_far {
        true => arrivals.all(),
        false => arrivals.without_longest(),
    };
    let significant = seen.bytes >= SIGNIFICANT.bytes && seen.time >= SIGNIFICANT.time;
    significant.then(|| rate(seen))
}

/// Bits per second, from enough bytes to measure even a fast link, unless they came at once.
fn of_train(arrivals: Arrivals) -> Option<u64> {
    let told = [arrivals.without_longest(), arrivals.all()];
    let told = told.into_iter().find(|some| some.bytes >= SIGNIFICANT.bytes);
    told.map(rate)
}

/// The rate if so much of a train came at once, and the probe was inconclusive: the link is faster
/// than this machine.
fn at_once(bytes: usize) -> u64 {
    let time = Duration::ZERO;
    rate(Interval { time, bytes })
}

fn rate(Interval { time, bytes }: Interval) -> u64 {
    let rate = bytes as u128 * 8_000_000_000 / time.max(SHORTEST).as_nanos();
    rate.clamp(SLOWEST.into(), FASTEST.into()) as u64
}

/// Arrival times of bytes from the transport.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    last: Option<Instant>,
    /// From the first bytes to the last.
    all: Interval,
    /// The longest wait, and the bytes that ended it.
    longest: Interval,
}

/// A duration, and the bytes that arrived in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) time: Duration,
    pub(crate) bytes: usize,
}

impl Arrivals {
    /// Notes that `bytes` bytes arrived at `now`.
    pub(crate) fn note(&mut self, now: Instant, bytes: usize) {
        if let Some(last) = self.last.replace(now) {
            let time = now.saturating_duration_since(last);
            self.all.time += time;
            self.all.bytes += bytes;
            if time >= self.longest.time {
                self.longest = Interval { time, bytes };
            }
        }
    }

    /// The arrivals after the first bytes.
    pub(crate) fn all(&self) -> Interval {
        self.all
    }

    /// The same without the longest wait, in which a busy machine may have been asleep.
    pub(crate) fn without_longest(&self) -> Interval {
        Interval {
            time: self.all.time - self.longest.time,
            bytes: self.all.bytes - self.longest.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_as_text() {
        let expected = Link { bits_per_second: 1e8, round_trip: 0.02 };
        for text in ["100Mbit,20ms", "0.1Gbit,0.02s", "100000kbit,20000us"] {
            let link: Link = text.parse().expect("a link");
            assert!((link.bits_per_second / expected.bits_per_second - 1.0).abs() < 1e-12);
            assert!((link.round_trip / expected.round_trip - 1.0).abs() < 1e-12);
        }
        assert_eq!("loopback".parse(), Ok(Link::LOOPBACK));
        for bad in [
            "",
            "lan",
            "100Mbit",
            "100,20ms",
            "100Mbit,20",
            "-1Mbit,1ms",
            "NaNMbit,1ms",
            "0Gbit,1ms",
            "1Mbit,61s",
            "2000Gbit,1ms",
        ] {
            assert!(bad.parse::<Link>().is_err(), "{bad}");
        }
    }

    /// The arrivals of pieces after the given waits, in microseconds.
    fn seen(piece: usize, waits: &[u64]) -> Arrivals {
        let (mut arrivals, mut now) = (Arrivals::default(), Instant::now());
        arrivals.note(now, 100);
        for wait in waits {
            now += Duration::from_micros(*wait);
            arrivals.note(now, piece);
        }
        arrivals
    }

    #[test]
    fn one_long_wait_is_not_the_link() {
        let near = |piece, waits: &[u64]| of_probe(seen(piece, waits), false);
        assert_eq!(near(1000, &[80; 4]), Some(100_000_000));
        assert_eq!(near(1000, &[80, 900, 80, 80]), Some(100_000_000));
        assert_eq!(near(1000, &[1, 300, 1, 1]), None);
        assert_eq!(near(3000, &[300]), None);
        assert_eq!(near(100, &[500, 500]), None);
        assert_eq!(of_train(seen(8000, &[8, 300, 8, 8, 8])), Some(8_000_000_000));
    }

    #[test]
    fn from_far_every_wait_counts() {
        let far = |piece, waits: &[u64]| of_probe(seen(piece, waits), true);
        assert_eq!(far(1000, &[80, 60, 100]), Some(100_000_000));
        assert_eq!(far(3000, &[300]), Some(80_000_000));
        assert_eq!(far(1000, &[20, 20, 20]), None);
        assert_eq!(far(50, &[500, 500]), None);
    }

    #[test]
    fn a_train_tells_what_it_can() {
        assert_eq!(of_train(seen(64_000, &[100])), Some(5_120_000_000));
        assert_eq!(of_train(seen(64_000, &[0, 0])), Some(51_200_000_000));
        // In one piece, or nearly.
        assert_eq!(of_train(seen(100, &[100, 100])), None);
        assert_eq!(of_train(seen(8_000, &[])), None);
        assert_eq!(at_once(8_000), 6_400_000_000);
        assert_eq!(rate(Interval { time: LONGEST, bytes: 1 }), SLOWEST);
        let all = Interval { time: Duration::ZERO, bytes: 1 << 30 };
        assert_eq!(rate(all), FASTEST);
    }
}
