//! What the link carries, found out on the way: the handshake with some bytes more.
//!
//! ```text
//! Measuring                                       Measured
//! 1. hello, own round trip (4 bytes), probe  ---->
//!    <----  hello, own round trip (4 bytes), probe
//! 2.                                              where the round trip is short beside the work: a train, as long as the
//!    <------------ log (1 byte), train --------   probe of the measuring side lets it be
//! 3. rate, round trip (12 bytes)             ---->
//! ```
//!
//! The measuring side looks at how far apart the bytes of the probe come, or where there is one, those of the train. The
//! sizes follow from how much work there is to be done: the probe takes some hundredths of the traffic that any protocol would need
//! for it on the slowest link, the train at most about a fiftieth of the work's time. Step 3 goes with whatever the measuring side
//! says next, so that nothing but step 2 waits for a message.
//!
//! The numbers are what a choice is made by, not what it rests on. A peer that lies about them, or only sends slowly, chooses among what
//! this party is ready to run: whoever calls this must be content with each of its candidates.
//!
//! Cost: the handshake's and step 3's messages, at most 4,100 + 12 bytes more, and a train of at most 256 KiB, of which the length
//! follows from what was measured: the one number of bytes in this project that the clock decides.

use std::time::{Duration, Instant};

use crate::arrivals::{Arrivals, Stretch};
use crate::handshake::{Hello, SessionId, handshake_then};
use crate::pipe::deadline_after;
use crate::{Channel, Error, Result};

/// The rate of a link that is too fast for a probe and not to be asked again, in bits per second: between those of a local and
/// of a wide network; and where the round trip is at least [`FAR`].
const ASSUMED: u64 = 2_000_000_000;
const ASSUMED_FAR: u64 = 200_000_000;
const FAR: Duration = Duration::from_millis(5);

/// Nothing is taken to be faster than this, in bits per second.
const FASTEST: u64 = 1_000_000_000_000;

/// Nothing is taken to be slower than this, in bits per second.
const SLOWEST: u64 = 1_000;

/// The longest round trip that is believed.
const LONGEST: Duration = Duration::from_secs(60);

/// Pieces that a probe is sent in.
const PIECES: usize = 4;

/// Bytes that have to come for their times to say anything, and the least time that they have to take, as a busy machine may wake
/// somebody so much later.
const TELLING: Stretch = Stretch {
    time: Duration::from_micros(100),
    bytes: 256,
};

/// What came in less is taken to have come in this.
const SHORTEST: Duration = Duration::from_micros(10);

/// The logarithms of the lengths of trains, in bytes.
const TRAINS: std::ops::RangeInclusive<u32> = 14..=18;

/// What a link carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Bits in a second, each way: 10^3 to 10^12.
    pub bits_per_second: u64,
    /// From a message to its answer: at most a minute, in whole microseconds.
    pub round_trip: Duration,
}

/// Who finds out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// This party measures what the peer sends; it should be the one that says something next.
    Measures,
    /// The peer measures.
    IsMeasured,
}

/// [`handshake`](fn@crate::handshake), and then what the link carries, the same at both parties; one measures and the other is measured.
/// `work` is about how long the parties will compute; it goes into the hello, as it has to be the same at both. The channel's timeout bounds
/// all of it.
///
/// # Errors
/// Those of [`handshake`](fn@crate::handshake), and [`Error::PeerMisbehaved`] if the peer's numbers are out of the bounds of [`Pace`].
pub fn meet(
    channel: &mut Channel,
    hello: &Hello,
    nonce: [u8; 32],
    side: Side,
    work: Duration,
) -> Result<(SessionId, Pace)> {
    let deadline = deadline_after(channel.timeout());
    let known = channel.round_trip().map_or(u32::MAX, micros);
    let probe = probe_for(work);
    let mut hello = hello.clone();
    hello.fields.push(("pace", work.as_micros().to_string()));
    channel.watch();
    let session = handshake_then(channel, &hello, nonce, |channel| {
        channel.send(&known.to_le_bytes())?;
        channel.flush()?;
        send_in_pieces(probe, probe / PIECES, channel)
    })?;
    let mut theirs = [0; 4];
    channel.recv_until(&mut theirs, deadline)?;
    channel.recv_until(&mut vec![0; probe], deadline)?;
    let arrivals = channel.watched();
    let known = [known, u32::from_le_bytes(theirs)];
    let round_trip = known.into_iter().filter(|&known| known != u32::MAX).max();
    let round_trip = Duration::from_micros(round_trip.unwrap_or_default().into());
    if round_trip > LONGEST {
        return Err(channel.fail(OUT_OF_BOUNDS));
    }
    let is_far = round_trip >= FAR;
    let probed = of_probe(arrivals, is_far);
    // Half a round trip is waited for the train.
    let train = work >= Duration::from_millis(2) && round_trip <= work / 4;
    let pace = match side {
        Side::Measures => {
            let told = if train {
                recv_train(probed, channel, deadline)?
            } else {
                probed
            };
            let assumed = if is_far { ASSUMED_FAR } else { ASSUMED };
            let rate = told.unwrap_or(assumed);
            let pace = Pace {
                bits_per_second: rate,
                round_trip,
            };
            channel.send(&pace.to_bytes())?;
            channel.flush()?;
            pace
        }
        Side::IsMeasured => {
            if train {
                send_train(probed, work, channel)?;
            }
            let mut bytes = [0; 12];
            channel.recv_until(&mut bytes, deadline)?;
            let pace = Pace::from_bytes(bytes).filter(|pace| pace.round_trip == round_trip);
            pace.ok_or_else(|| channel.fail(OUT_OF_BOUNDS))?
        }
    };
    Ok((session, pace))
}

const OUT_OF_BOUNDS: Error = Error::PeerMisbehaved("it says of the link what no link is like");

impl Pace {
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
        let believable = (SLOWEST..=FASTEST).contains(&bits_per_second) && round_trip <= LONGEST;
        believable.then_some(Self {
            bits_per_second,
            round_trip,
        })
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

/// Each piece in a write of its own: what seals pieces, or delays them, must not make one of all.
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

/// Sends a train that takes at most about a fiftieth of the work's time, or says that there is none.
fn send_train(probed: Option<u64>, work: Duration, channel: &mut Channel) -> Result<()> {
    let rate = probed.unwrap_or(10_000_000_000) as f64;
    let bytes = rate / 8.0 * work.as_secs_f64() / 50.0;
    // Not more exact than this needs to be; and in integers, as the peer checks it.
    let log = (bytes as u64).max(1).ilog2().min(*TRAINS.end());
    let log = if TRAINS.contains(&log) { log } else { 0 };
    channel.send(&[log as u8])?;
    if log > 0 {
        send_in_pieces(1 << log, 1 << (log - 4).min(16), channel)?;
    }
    channel.flush()
}

/// What the second half of the train says of the rate, if one comes, else the probe: over a long way the first half is what the network
/// takes to find its pace.
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
        _ => Err(channel.fail(OUT_OF_BOUNDS)),
    }
}

/// Bits in a second, if enough came late enough to tell. What comes from far was under way for longer than this party may have been
/// asleep, and was put in order by the network: there, the longest wait is as good as the others.
fn of_probe(arrivals: Arrivals, is_far: bool) -> Option<u64> {
    let seen = match is_far {
        true => arrivals.all(),
        false => arrivals.but_for_the_longest(),
    };
    let telling = seen.bytes >= TELLING.bytes && seen.time >= TELLING.time;
    telling.then(|| rate(seen))
}

/// Bits in a second, from bytes enough to tell even a fast link, unless they came at once.
fn of_train(arrivals: Arrivals) -> Option<u64> {
    let told = [arrivals.but_for_the_longest(), arrivals.all()];
    let told = told.into_iter().find(|some| some.bytes >= TELLING.bytes);
    told.map(rate)
}

/// The rate where so much of a train came at once, and the probe told nothing either: the link is faster than this machine.
fn at_once(bytes: usize) -> u64 {
    let time = Duration::ZERO;
    rate(Stretch { time, bytes })
}

fn rate(Stretch { time, bytes }: Stretch) -> u64 {
    let rate = bytes as u128 * 8_000_000_000 / time.max(SHORTEST).as_nanos();
    rate.clamp(SLOWEST.into(), FASTEST.into()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is seen of pieces that come after the given waits, in microseconds.
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
        assert_eq!(
            of_train(seen(8000, &[8, 300, 8, 8, 8])),
            Some(8_000_000_000)
        );
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
        assert_eq!(
            rate(Stretch {
                time: LONGEST,
                bytes: 1
            }),
            SLOWEST
        );
        let all = Stretch {
            time: Duration::ZERO,
            bytes: 1 << 30,
        };
        assert_eq!(rate(all), FASTEST);
    }
}
