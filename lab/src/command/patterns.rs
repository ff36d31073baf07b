//! `volery-bench patterns`: traffic between two parties over a link of a rate. `.ci/shaped-link`
//! compares the shaped link of the benchmarks with one that the kernel shapes.
//!
//! The first party prints a line for each pattern: its name and its seconds.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use volery_channel::{Channel, SessionId, queued};
use volery_ot::softspoken::{self, SmallField};
use volery_ot::{CotReceiver as _, CotSender as _};
use volery_primitives::{Block, bits, prg::Prg};

use crate::parties::{meet, run_both};
use crate::{Error, Link, Result};

/// Run patterns of traffic between two parties
#[derive(Clone, Debug, clap::Subcommand)]
pub(super) enum Arguments {
    /// Both parties in this process, with the shaped link RATE,RTT between them
    Here { link: Link },
    /// One party, over a network that another program shapes
    Listen { address: String },
    /// The other party
    Connect { address: String },
}

const TIMEOUT: Duration = Duration::from_secs(60);

/// Long enough that the start of a connection does not count, short enough for ten megabits a
/// second.
const BULK: usize = 4 << 20;

/// Correlated OTs of an extension with 64 bits each: a protocol that sends both ways and computes
/// between.
const COTS: usize = 1 << 19;

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let network = |error: io::Error| Error::Channel(error.into());
    match arguments {
        Arguments::Here { link } => {
            let both = |channel: &mut Channel, first| party(first, channel);
            run_both(link, TIMEOUT, |channel| both(channel, true), |channel| both(channel, false))?;
            Ok(())
        }
        Arguments::Listen { address } => {
            let stream = TcpListener::bind(address).and_then(|listener| listener.accept());
            over(true, stream.map_err(network)?.0)
        }
        Arguments::Connect { address } => {
            let start = Instant::now();
            loop {
                match TcpStream::connect(address) {
                    Ok(stream) => return over(false, stream),
                    Err(error) if start.elapsed() > TIMEOUT => return Err(network(error)),
                    // The other party may not listen yet.
                    Err(_) => thread::sleep(Duration::from_millis(20)),
                }
            }
        }
    }
}

/// Runs a party over a plain connection to another network. The library has none: the bytes sent
/// here are not secret.
fn over(first: bool, mut reader: TcpStream) -> Result<()> {
    let failed = |error: io::Error| Error::Channel(error.into());
    reader.set_nodelay(true).map_err(failed)?;
    let mut writer = reader.try_clone().map_err(failed)?;
    let transport = queued(
        move |bytes, timeout| {
            reader.set_read_timeout(timeout)?;
            reader.read(bytes)
        },
        move |bytes, timeout| {
            writer.set_write_timeout(timeout)?;
            writer.write_all(bytes)
        },
    );
    party(first, &mut Channel::with_timeout(transport, Some(TIMEOUT)))
}

/// One party of all patterns.
fn party(first: bool, channel: &mut Channel) -> Result<()> {
    let (mut sent, mut received) = (vec![0xa5; BULK], vec![0; BULK]);
    timed("one-way", first, channel, |channel| {
        if first {
            channel.send(&sent)?;
            channel.recv(&mut [0])
        } else {
            channel.recv(&mut sent)?;
            channel.send(&[0])
        }
    })?;
    timed("both-ways", first, channel, |channel| {
        channel.send(&sent)?;
        channel.recv(&mut received)
    })?;
    timed("in-turn", first, channel, |channel| {
        (0..32).try_for_each(|turn| {
            if first == (turn % 2 == 0) {
                channel.send(&sent[..BULK / 32])?;
                channel.flush()
            } else {
                channel.recv(&mut received[..BULK / 32])
            }
        })
    })?;
    timed("round-trips", first, channel, |channel| (0..50).try_for_each(|_| meet(channel)))?;
    let mut rng = Prg::from_os().map_err(Error::protocol)?;
    let (session, field, seed) =
        (SessionId::from_bytes([7; 32]), SmallField::Bits2, rng.fork("ot"));
    let mut v = vec![Block::ZERO; COTS];
    if first {
        let mut sender = softspoken::Sender::setup(None, field, session, seed, channel)?;
        timed("softspoken", first, channel, |channel| sender.extend(&mut v, channel))
    } else {
        let mut receiver = softspoken::Receiver::setup(field, session, seed, channel)?;
        let mut u = vec![0; bits::bytes_for(COTS)];
        timed("softspoken", first, channel, |channel| receiver.extend(&mut u, &mut v, channel))
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
        let seconds = start.elapsed().as_secs_f64();
        let line = format!("{name} {seconds:.6}\n");
        io::stdout().write_all(line.as_bytes()).map_err(Error::protocol)?;
    }
    Ok(())
}
