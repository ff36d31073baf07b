//! Runs both parties in two threads of this process, over real TCP with a selectable link between
//! them, and gives each a stopwatch for its own part.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use volery_channel::tcp::{Listener, Stream};
use volery_channel::{Channel, Stats, run_two_channels};

use crate::{Error, Link};

/// A connection within this machine that takes longer than this has failed.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Whether a failure is only that the peer disconnected; the peer's own error then says more.
fn is_network(error: &Error) -> bool {
    use volery_channel::Error as Channel;
    matches!(error, Error::Channel(Channel::Disconnected | Channel::TimedOut(_) | Channel::Io(_)))
}

/// Runs two parties in two threads with the link between them; each gets a channel that gives up
/// after `timeout` without progress.
pub(crate) fn run_both<A: Send, B: Send>(
    link: &Link,
    timeout: Duration,
    sender: impl FnOnce(&mut Channel) -> Result<A, Error> + Send,
    receiver: impl FnOnce(&mut Channel) -> Result<B, Error> + Send,
) -> Result<(A, B), Error> {
    let [left, right] = channels(link, timeout)?;
    let ((sent, _), (received, _)) = run_two_channels(left, right, sender, receiver);
    match (sent, received) {
        (Ok(sent), Ok(received)) => Ok((sent, received)),
        (Err(first), Err(second)) if is_network(&first) => Err(second),
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    }
}

/// The two ends of the link.
pub(crate) fn channels(link: &Link, timeout: Duration) -> Result<[Channel; 2], Error> {
    let ends = connect(Ipv4Addr::LOCALHOST.into(), timeout)?;
    Ok(link.channels(ends, timeout)?)
}

/// The two endpoints of a TCP connection at an address of this machine.
fn connect(address: IpAddr, timeout: Duration) -> Result<[Stream; 2], Error> {
    let listener = Listener::bind((address, 0)).map_err(Error::NoPort)?;
    // The system completes a loopback connection before it is accepted, at once or not at all.
    let at_once = timeout.min(AT_ONCE);
    let left = Stream::connect(listener.local_addr()?, at_once).map_err(Error::NoPort)?;
    Ok([left, listener.accept(timeout)?])
}

/// Runs two parties as [`run_both`] does, each in its own pool of this many threads.
pub(crate) fn run_in_pools<A: Send, B: Send>(
    link: &Link,
    threads: usize,
    timeout: Duration,
    sender: impl FnOnce(&mut Channel) -> Result<A, Error> + Send,
    receiver: impl FnOnce(&mut Channel) -> Result<B, Error> + Send,
) -> Result<(A, B), Error> {
    let (left, right) = (pool(threads)?, pool(threads)?);
    run_both(
        link,
        timeout,
        |channel| left.install(|| sender(channel)),
        |channel| right.install(|| receiver(channel)),
    )
}

pub(crate) fn pool(threads: usize) -> Result<rayon::ThreadPool, Error> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Error::protocol(format_args!("{threads} threads a party: {error}")))
}

/// Waits until both parties arrive and the link is idle.
pub(crate) fn meet(channel: &mut Channel) -> volery_channel::Result<()> {
    channel.send(&[0])?;
    channel.recv(&mut [0])
}

/// A party's stopwatch. It starts when both parties are ready; each mark ends a phase.
#[derive(Debug)]
pub(crate) struct Watch {
    start: Instant,
    before: Stats,
    marks: Vec<Mark>,
}

/// The end of a phase, at one party.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) name: &'static str,
    /// The number of outputs of the phase, counted by the caller; zero where outputs are not
    /// counted.
    pub(crate) outputs: u64,
    /// From the start of the watch.
    pub(crate) elapsed: Duration,
    /// From the start of the watch.
    pub(crate) traffic: Stats,
}

impl Watch {
    /// Waits for the other party and starts.
    pub(crate) fn start(channel: &mut Channel) -> volery_channel::Result<Self> {
        meet(channel)?;
        Ok(Self { start: Instant::now(), before: channel.stats(), marks: Vec::new() })
    }

    /// Ends a phase in which this party made this many outputs. Both parties mark the same phases
    /// in the same order.
    pub(crate) fn mark(&mut self, name: &'static str, outputs: u64, channel: &Channel) {
        self.marks.push(Mark {
            name,
            outputs,
            elapsed: self.start.elapsed(),
            traffic: channel.stats() - self.before,
        });
    }

    /// The phases, returned after the other party's last phase: one party's clean-up is not a part
    /// of the other's time.
    pub(crate) fn stop(self, channel: &mut Channel) -> volery_channel::Result<Vec<Mark>> {
        meet(channel)?;
        Ok(self.marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 192.0.2.1 is for documentation: no machine has it (RFC 5737).
    #[test]
    fn no_port_to_meet_at_is_said() {
        let nowhere = Ipv4Addr::new(192, 0, 2, 1).into();
        let error = connect(nowhere, Duration::from_secs(1)).err();
        assert!(matches!(error, Some(Error::NoPort(_))), "{error:?}");
    }

    #[test]
    fn the_failure_that_came_first_is_told() {
        fn party(fails: bool, channel: &mut Channel) -> Result<(), Error> {
            if fails {
                return Err(Error::protocol("on purpose"));
            }
            Ok(channel.recv(&mut [0; 9])?)
        }
        let both = |first: bool| {
            run_both(
                &Link::Loopback,
                Duration::from_secs(10),
                |channel| party(first, channel),
                |channel| party(!first, channel),
            )
        };
        for first in [true, false] {
            let failure = both(first).expect_err("one of them fails");
            assert!(matches!(failure, Error::Protocol(_)), "{failure}");
        }
    }
}
