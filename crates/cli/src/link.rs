//! Both parties of a run in one process, over real TCP, with the link of one's choice between them.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use volery_channel::tcp::{Listener, Stream};
use volery_channel::{Channel, run_two_channels, shaped};

use crate::exit::Failure;

/// What lies between the two parties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// The loopback interface as it is.
    Loopback,
    /// Loopback, slowed down.
    Shaped {
        /// Bits per second, each way.
        rate: u64,
        /// Time to the peer and back.
        round_trip: Duration,
    },
}

impl FromStr for Link {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "loopback" {
            return Ok(Self::Loopback);
        }
        let form = || {
            "the link is 'loopback' or RATE,RTT such as 100Mbit,20ms (kbit, Mbit, Gbit; us, ms, s)"
                .to_owned()
        };
        let (rate, round_trip) = text.split_once(',').ok_or_else(form)?;
        let rate = scaled(rate, &[("kbit", 1e3), ("Mbit", 1e6), ("Gbit", 1e9)]).ok_or_else(form)?;
        let seconds =
            scaled(round_trip, &[("us", 1e-6), ("ms", 1e-3), ("s", 1.0)]).ok_or_else(form)?;
        if !(1e3..=1e12).contains(&rate) || !(0.0..=60.0).contains(&seconds) {
            return Err("the rate is 1kbit to 1000Gbit, the round trip at most 60s".to_owned());
        }
        Ok(Self::Shaped {
            rate: rate as u64,
            round_trip: Duration::from_secs_f64(seconds),
        })
    }
}

/// Parses a number with one of the units.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, scale) = units
        .iter()
        .find_map(|&(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
    number.parse().ok().map(|number: f64| number * scale)
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback => f.write_str("loopback"),
            Self::Shaped { rate, round_trip } => write!(
                f,
                "{}Mbit,{}ms",
                *rate as f64 / 1e6,
                round_trip.as_secs_f64() * 1e3
            ),
        }
    }
}

impl Link {
    /// The link as the choice of parameters sees it; loopback counts as a local network.
    pub(crate) fn for_plan(&self) -> volery_pcg::Link {
        match *self {
            Self::Loopback => volery_pcg::Link::default(),
            Self::Shaped { rate, round_trip } => volery_pcg::Link {
                bits_per_second: rate as f64,
                round_trip: round_trip.as_secs_f64(),
            },
        }
    }

    fn channel(&self, stream: Stream, timeout: Duration) -> Channel {
        match *self {
            Self::Loopback => Channel::with_timeout(stream, Some(timeout)),
            Self::Shaped { rate, round_trip } => {
                Channel::with_timeout(shaped(stream, rate, round_trip), Some(timeout))
            }
        }
    }
}

/// Runs the sender and the receiver in two threads with the link between them.
///
/// # Errors
/// The first party's failure that is not the mere consequence of the other's.
pub(crate) fn run_both<A: Send, B: Send>(
    link: &Link,
    timeout: Duration,
    sender: impl FnOnce(&mut Channel) -> Result<A, Failure> + Send,
    receiver: impl FnOnce(&mut Channel) -> Result<B, Failure> + Send,
) -> Result<(A, B), Failure> {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0))?;
    // The system completes the connection before it is accepted.
    let left = Stream::connect(listener.local_addr()?, timeout)?;
    let right = listener.accept(timeout)?;
    let ((sent, _), (received, _)) = run_two_channels(
        link.channel(left, timeout),
        link.channel(right, timeout),
        sender,
        receiver,
    );
    match (sent, received) {
        (Ok(sent), Ok(received)) => Ok((sent, received)),
        (Err(first), Err(second)) if first.is_network() => Err(second),
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    }
}

/// Threads for each of two parties that share this machine.
pub(crate) fn half_the_cores() -> usize {
    (thread::available_parallelism().map_or(1, usize::from) / 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_by_name() {
        assert_eq!("loopback".parse(), Ok(Link::Loopback));
        let shaped = Link::Shaped {
            rate: 100_000_000,
            round_trip: Duration::from_millis(20),
        };
        assert_eq!("100Mbit,20ms".parse(), Ok(shaped.clone()));
        assert_eq!("0.1Gbit,0.02s".parse(), Ok(shaped.clone()));
        assert_eq!("100000kbit,20000us".parse(), Ok(shaped.clone()));
        assert_eq!(shaped.to_string(), "100Mbit,20ms");
        for bad in [
            "",
            "lan",
            "100Mbit",
            "100,20ms",
            "100Mbit,20",
            "-1Mbit,1ms",
            "NaNMbit,1ms",
            "0Gbit,1ms",
        ] {
            assert!(bad.parse::<Link>().is_err(), "{bad}");
        }
    }
}
