//! Two parties over a link of a rate, for holding the shaped link of the benchmarks against one
//! that the kernel shapes: `.ci/shaped-link` does that.
//!
//! ```text
//! shaped_link here RATE,RTT        both parties in this process, with the shaped link between them
//! shaped_link listen ADDRESS       one party, on a network that somebody else shapes
//! shaped_link connect ADDRESS      the other
//! ```
//!
//! The first party prints a line for each pattern: its name and its seconds.

#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::env;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use volery_bench::parties::{meet, run_both};
use volery_bench::{Error, Link, Result};
use volery_channel::{Channel, SessionId, Transport, queued};
use volery_ot::softspoken::{self, SmallField};
use volery_ot::{CotReceiver as _, CotSender as _};
use volery_primitives::{Block, bits, prg::Prg};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Long enough that the start of a connection does not count, short enough for ten megabits a
/// second.
const BULK: usize = 4 << 20;

/// Correlated OTs of an extension with 64 bits each: a protocol that sends both ways and computes
/// between.
const COTS: usize = 1 << 19;

fn main() -> Result<()> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["here", link] => {
            let link: Link = link.parse().map_err(Error::Protocol)?;
            run_both(
                &link,
                TIMEOUT,
                |channel| party(true, channel),
                |channel| party(false, channel),
            )?;
            Ok(())
        }
        ["listen", address] => {
            let (stream, _) = network(TcpListener::bind(address))
                .and_then(|listener| network(listener.accept()))?;
            over(true, stream)
        }
        ["connect", address] => over(false, network(connect(address))?),
        _ => Err(Error::protocol(
            "here RATE,RTT | listen ADDRESS | connect ADDRESS",
        )),
    }
}

fn network<T>(result: io::Result<T>) -> Result<T> {
    result.map_err(|error| Error::Channel(error.into()))
}

/// Waits until the other party listens.
fn connect(address: &str) -> io::Result<TcpStream> {
    let start = Instant::now();
    loop {
        match TcpStream::connect(address) {
            Err(error) if start.elapsed() > TIMEOUT => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(20)),
            stream => return stream,
        }
    }
}

/// A plain connection to another network. The library has none: the bytes sent here are not secret.
struct Plain(TcpStream);

impl Transport for Plain {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        self.0.set_write_timeout(timeout)?;
        (&self.0).write_all(bytes)
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.0.set_read_timeout(timeout)?;
        (&self.0).read(bytes)
    }
}

fn over(first: bool, stream: TcpStream) -> Result<()> {
    network(stream.set_nodelay(true))?;
    let mut channel = Channel::with_timeout(queued(Plain(stream)), Some(TIMEOUT));
    party(first, &mut channel)
}

/// One party of all patterns.
fn party(first: bool, channel: &mut Channel) -> Result<()> {
    let mut bulk = vec![0x5a; BULK];
    timed("one-way", first, channel, |channel| {
        if first {
            channel.send(&bulk)?;
            channel.recv(&mut [0])
        } else {
            channel.recv(&mut bulk)?;
            channel.send(&[0])
        }
    })?;
    let (sent, mut received) = (vec![0xa5; BULK], vec![0; BULK]);
    timed("both-ways", first, channel, |channel| {
        channel.send(&sent)?;
        channel.recv(&mut received)
    })?;
    timed("in-turn", first, channel, |channel| {
        for turn in 0..32 {
            if first == (turn % 2 == 0) {
                channel.send(&sent[..BULK / 32])?;
                channel.flush()?;
            } else {
                channel.recv(&mut received[..BULK / 32])?;
            }
        }
        Ok(())
    })?;
    timed("round-trips", first, channel, |channel| {
        for _ in 0..50 {
            meet(channel)?;
        }
        Ok(())
    })?;
    let mut rng = Prg::from_os().map_err(Error::protocol)?;
    let session = SessionId::from_bytes([7; 32]);
    let field = SmallField::Bits2;
    if first {
        let seed = rng.fork("ot");
        let mut sender = softspoken::Sender::setup(None, field, session, seed, channel)?;
        let mut v = vec![Block::ZERO; COTS];
        timed("softspoken", first, channel, |channel| {
            sender.extend(&mut v, channel)
        })
    } else {
        let seed = rng.fork("ot");
        let mut receiver = softspoken::Receiver::setup(field, session, seed, channel)?;
        let (mut u, mut w) = (vec![0; bits::bytes_for(COTS)], vec![Block::ZERO; COTS]);
        timed("softspoken", first, channel, |channel| {
            receiver.extend(&mut u, &mut w, channel)
        })
    }
}

/// Runs one pattern from when both parties are ready to when both have finished.
fn timed(
    name: &str,
    tells: bool,
    channel: &mut Channel,
    mut pattern: impl FnMut(&mut Channel) -> volery_channel::Result<()>,
) -> Result<()> {
    meet(channel)?;
    let start = Instant::now();
    pattern(channel)?;
    meet(channel)?;
    if tells {
        println!("{name} {:.6}", start.elapsed().as_secs_f64());
    }
    Ok(())
}
