//! What lies between the two parties.

use std::fmt;
use std::panic::resume_unwind;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use volery_channel::tcp::Stream;
use volery_channel::tls::{self, Identity};
use volery_channel::{Channel, Result, shaped};

/// What lies between the two parties.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Link {
    /// The loopback interface as it is.
    Loopback,
    /// Loopback, authenticated and encrypted.
    Tls,
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

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        match text {
            "loopback" => return Ok(Self::Loopback),
            "tls" => return Ok(Self::Tls),
            _ => {}
        }
        let form = || {
            "the link is 'loopback', 'tls' or RATE,RTT such as 100Mbit,20ms (kbit, Mbit, Gbit; us, ms, s)"
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
            rate: rate.round() as u64,
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
            Self::Tls => f.write_str("tls"),
            Self::Shaped { rate, round_trip } => write!(
                f,
                "{}Mbit,{}ms",
                millionths((*rate).into()),
                millionths(round_trip.as_nanos())
            ),
        }
    }
}

/// A number of millionths as a decimal number, exactly.
fn millionths(count: u128) -> String {
    let (whole, rest) = (count / 1_000_000, count % 1_000_000);
    let text = format!("{whole}.{rest:06}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl From<Link> for String {
    fn from(link: Link) -> Self {
        link.to_string()
    }
}

impl TryFrom<String> for Link {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
        text.parse()
    }
}

impl Link {
    /// A rate in bits per second, each way, and the time to the peer and back.
    #[must_use]
    pub const fn shaped(rate: u64, round_trip: Duration) -> Self {
        Self::Shaped { rate, round_trip }
    }

    /// Seconds that so many bytes take at least; none on a link without a rate.
    #[must_use]
    pub fn seconds_for(&self, bytes: f64) -> f64 {
        match self {
            Self::Loopback | Self::Tls => 0.0,
            Self::Shaped { rate, .. } => 8.0 * bytes / *rate as f64,
        }
    }

    /// Seconds to the peer and back, beyond those of the loopback interface.
    #[must_use]
    pub fn round_trip_seconds(&self) -> f64 {
        match self {
            Self::Loopback | Self::Tls => 0.0,
            Self::Shaped { round_trip, .. } => round_trip.as_secs_f64(),
        }
    }

    /// The link as the choice of parameters sees it.
    #[must_use]
    pub fn for_plan(&self) -> volery_pcg::Link {
        match *self {
            Self::Loopback | Self::Tls => volery_pcg::Link::LOOPBACK,
            Self::Shaped { rate, round_trip } => volery_pcg::Link {
                bits_per_second: rate as f64,
                round_trip: round_trip.as_secs_f64(),
            },
        }
    }

    /// The two ends of the link over a connection.
    pub(crate) fn channels(&self, ends: [Stream; 2], timeout: Duration) -> Result<[Channel; 2]> {
        Ok(match *self {
            Self::Loopback => ends.map(|end| Channel::with_timeout(end, Some(timeout))),
            Self::Shaped { rate, round_trip } => {
                ends.map(|end| Channel::with_timeout(shaped(end, rate, round_trip), Some(timeout)))
            }
            Self::Tls => secured(ends, timeout)?,
        })
    }
}

/// The two ends of a connection, authenticated to each other by identities made for it.
fn secured([left, right]: [Stream; 2], timeout: Duration) -> Result<[Channel; 2]> {
    let now = SystemTime::now();
    let hour = Duration::from_secs(3600);
    let [a, b] = ["left", "right"].map(|name| Identity::generate(name, now - hour..now + hour));
    let (a, b) = (a?, b?);
    let (left, right) = thread::scope(|scope| {
        let initiating = scope.spawn(|| tls::initiate(left, &a, b.fingerprint(), timeout));
        let right = tls::respond(right, &b, a.fingerprint(), timeout);
        (initiating.join(), right)
    });
    let left = left.unwrap_or_else(|panic| resume_unwind(panic))?;
    Ok([
        Channel::with_timeout(left, Some(timeout)),
        Channel::with_timeout(right?, Some(timeout)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_by_name() {
        for link in [Link::Loopback, Link::Tls] {
            assert_eq!(link.to_string().parse(), Ok(link));
        }
        let shaped = Link::Shaped {
            rate: 100_000_000,
            round_trip: Duration::from_millis(20),
        };
        assert_eq!("100Mbit,20ms".parse(), Ok(shaped.clone()));
        assert_eq!("0.1Gbit,0.02s".parse(), Ok(shaped.clone()));
        assert_eq!("100000kbit,20000us".parse(), Ok(shaped.clone()));
        assert_eq!(shaped.to_string(), "100Mbit,20ms");
        let odd = [
            "16.4Mbit,9.7ms",
            "2010Mbit,0.2ms",
            "129.2Mbit,96ms",
            "0.001Mbit,0ms",
        ];
        for text in odd {
            let link: Link = text.parse().expect("a link");
            assert_eq!(link.to_string(), text);
            assert_eq!(link.to_string().parse(), Ok(link));
        }
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
