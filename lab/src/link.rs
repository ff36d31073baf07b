//! The link between the two parties.

use std::fmt;
use std::panic::resume_unwind;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use volery_channel::tcp::Stream;
use volery_channel::tls::{self, Identity};
use volery_channel::{Channel, Result, shaped};

/// The link between the two parties.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) enum Link {
    /// The unmodified loopback interface.
    Loopback,
    /// Loopback, authenticated and encrypted.
    Tls,
    /// Loopback with a limited rate and added delay.
    Shaped {
        /// Bits per second, each way.
        rate: u64,
        /// Round-trip time.
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
        let link: volery_pcg::Link =
            text.parse().map_err(|error| format!("the link is 'loopback' or 'tls', or {error}"))?;
        Ok(Self::Shaped {
            rate: link.bits_per_second.round() as u64,
            round_trip: Duration::from_secs_f64(link.round_trip),
        })
    }
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
    /// Least seconds for this many bytes; zero on a link without a rate.
    pub(crate) fn seconds_for(&self, bytes: f64) -> f64 {
        match self {
            Self::Loopback | Self::Tls => 0.0,
            Self::Shaped { rate, .. } => 8.0 * bytes / *rate as f64,
        }
    }

    /// Round-trip time in seconds, beyond that of the loopback interface.
    pub(crate) fn round_trip_seconds(&self) -> f64 {
        match self {
            Self::Loopback | Self::Tls => 0.0,
            Self::Shaped { round_trip, .. } => round_trip.as_secs_f64(),
        }
    }

    /// The link in the form used to choose parameters.
    pub(crate) fn for_plan(&self) -> volery_pcg::Link {
        match *self {
            Self::Loopback | Self::Tls => volery_pcg::Link::LOOPBACK,
            Self::Shaped { rate, round_trip } => volery_pcg::Link {
                bits_per_second: rate as f64,
                round_trip: round_trip.as_secs_f64(),
            },
        }
    }

    /// The two endpoints of the link over a connection.
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
    Ok([Channel::with_timeout(left, Some(timeout)), Channel::with_timeout(right?, Some(timeout))])
}
