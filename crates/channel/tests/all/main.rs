//! The channel as its users see it.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod alive;
#[cfg(feature = "tokio")]
mod bridge;
mod cancel;
mod channel;
#[cfg(feature = "tls")]
mod gateway;
mod handshake;
mod link;
mod mux;
mod parties;
mod proxy;
#[cfg(feature = "tls")]
mod run_certificates;
#[cfg(feature = "tls")]
mod service;
mod shaped;
mod step;
#[cfg(feature = "tls")]
mod strangers;
mod tcp;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "web")]
mod web;

use std::time::Duration;

use volery_channel::{Channel, memory, tcp as transport_tcp};

/// Ends a listener, also where a test fails.
#[cfg(feature = "tls")]
struct End<'a>(&'a volery_channel::Cancel);

#[cfg(feature = "tls")]
impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Long enough for a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Short enough to wait for.
const SHORT: Duration = Duration::from_millis(100);

fn tcp_pair() -> (Channel, Channel) {
    let (left, right) = tcp_streams();
    (Channel::with_timeout(left, Some(LONG)), Channel::with_timeout(right, Some(LONG)))
}

fn tcp_streams() -> (transport_tcp::Stream, transport_tcp::Stream) {
    let listener = transport_tcp::Listener::bind("127.0.0.1:0").unwrap();
    let left = transport_tcp::Stream::connect(listener.local_addr().unwrap(), LONG).unwrap();
    (left, listener.accept(LONG).unwrap())
}

/// Two connected channels in memory, which fail instead of blocking forever.
fn memory_pair() -> (Channel, Channel) {
    let (left, right) = memory::pair();
    (Channel::with_timeout(left, Some(LONG)), Channel::with_timeout(right, Some(LONG)))
}

/// Two connected channels of each kind.
fn pairs() -> [(Channel, Channel); 2] {
    [memory_pair(), tcp_pair()]
}

/// Bytes that differ at every offset, as far as bytes can.
fn pattern(length: usize, seed: u8) -> Vec<u8> {
    let byte = |i: usize| ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ seed;
    (0..length).map(byte).collect()
}
