//! A non-blocking transport over a blocking one.

use std::io;
use std::time::Duration;

use volery_os::sync::{Arc, Mutex};
use volery_os::thread::{self, JoinHandle};

use crate::Transport;
use crate::pipe::{Chunk, Pipe, lock};

/// Writes over `inner` from a thread of its own, so that a write never waits for the peer to read,
/// up to [`QUEUE_BOUND`](crate::QUEUE_BOUND) bytes: any blocking stream becomes a transport on
/// which both parties may send first.
///
/// # Panics
/// If the operating system cannot start a thread.
///
/// # Examples
///
/// A Unix socket:
///
/// ```
/// use std::io::{self, Read, Write};
/// use std::os::unix::net::UnixStream;
/// use std::time::Duration;
/// use volery_channel::{Channel, Transport, queued, run_two_channels};
///
/// struct Unix(UnixStream);
///
/// impl Transport for Unix {
///     fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
///         self.0.set_write_timeout(timeout)?;
///         (&self.0).write_all(bytes)
///     }
///
///     fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
///         self.0.set_read_timeout(timeout)?;
///         (&self.0).read(bytes)
///     }
/// }
///
/// let party = |ours: u8| {
///     move |channel: &mut Channel| {
///         let mut theirs = vec![0; 5_000_000];
///         // Both parties send at once, more than the system buffers.
///         channel.send(&vec![ours; theirs.len()])?;
///         channel.recv(&mut theirs)?;
///         Ok::<_, volery_channel::Error>(theirs[0])
///     }
/// };
///
/// let (left, right) = UnixStream::pair()?;
/// let ((left, _), (right, _)) = run_two_channels(
///     Channel::with_timeout(queued(Unix(left)), Some(Duration::from_secs(60))),
///     Channel::with_timeout(queued(Unix(right)), Some(Duration::from_secs(60))),
///     party(1),
///     party(2),
/// );
/// assert_eq!((left?, right?), (2, 1));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// A tokio stream, where the protocol runs on a thread that may block:
///
/// ```ignore
/// use std::io;
/// use std::time::Duration;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, split};
/// use tokio::runtime::Handle;
/// use tokio::sync::Mutex;
/// use tokio::time;
/// use volery_channel::{Channel, Transport, queued};
///
/// struct Bridge(Handle, Mutex<ReadHalf<DuplexStream>>, Mutex<WriteHalf<DuplexStream>>);
///
/// impl Transport for Bridge {
///     fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
///         let written = async { self.2.lock().await.write_all(bytes).await };
///         let timeout = timeout.unwrap_or(Duration::MAX);
///         self.0.block_on(async { time::timeout(timeout, written).await? })
///     }
///
///     fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
///         let read = async { self.1.lock().await.read(bytes).await };
///         self.0.block_on(async { time::timeout(timeout.unwrap_or(Duration::MAX), read).await? })
///     }
/// }
///
/// fn channel(stream: DuplexStream) -> Channel {
///     let (reader, writer) = split(stream); // a TcpStream works the same
///     let bridge = Bridge(Handle::current(), Mutex::new(reader), Mutex::new(writer));
///     Channel::with_timeout(queued(bridge), Some(Duration::from_secs(60)))
/// }
///
/// let (left, right) = tokio::io::duplex(1 << 16);
/// let left = tokio::task::spawn_blocking(move || channel(left).send(b"hello"));
/// ```
pub fn queued<T: Transport + 'static>(inner: T) -> Queued {
    let inner: Arc<dyn Transport> = Arc::new(inner);
    let queue = Arc::new(Pipe::new());
    let timeout = Arc::new(Mutex::new(None));
    let writer = thread::Builder::new().name("volery queued writer".into()).spawn({
        let (inner, queue, timeout) =
            (Arc::clone(&inner), Arc::clone(&queue), Arc::clone(&timeout));
        move || deliver(&*inner, &queue, &timeout)
    });
    Queued {
        inner,
        queue,
        timeout,
        writer: Some(writer.expect("the operating system can start a thread")),
    }
}

/// A transport with a queue and a thread that empties it, made by [`queued`].
///
/// Dropping it takes as long as the transport below needs for the queued bytes; no time while the
/// thread panics.
pub struct Queued {
    inner: Arc<dyn Transport>,
    queue: Arc<Pipe>,
    /// The timeout of the last write.
    timeout: Arc<Mutex<Option<Duration>>>,
    writer: Option<JoinHandle<()>>,
}

impl Queued {
    /// Queues one chunk; waits only if the queue is full.
    pub(crate) fn push(&self, chunk: Chunk, timeout: Option<Duration>) -> io::Result<()> {
        *lock(&self.timeout) = timeout;
        self.queue.push_chunk(chunk, timeout)
    }
}

/// Hands each chunk to `inner` when it is due.
fn deliver(inner: &dyn Transport, queue: &Pipe, timeout: &Mutex<Option<Duration>>) {
    while let Ok(Some(chunk)) = queue.take(None) {
        if !queue.wait_until(chunk.due) {
            return;
        }
        let timeout = *lock(timeout);
        if let Err(error) = inner.write(&chunk.bytes, timeout) {
            return queue.fail(error.kind());
        }
        queue.release(chunk.bytes.len());
    }
}

impl Transport for Queued {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        *lock(&self.timeout) = timeout;
        self.queue.push(bytes, timeout)
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.queue.read_patiently(|| self.inner.read(bytes, timeout))
    }

    fn round_trip(&self) -> Option<Duration> {
        self.inner.round_trip()
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.queue.close();
        if thread::panicking() {
            self.queue.fail(io::ErrorKind::BrokenPipe);
        }
        if let Some(writer) = self.writer.take() {
            // Only a panic inside the wrapped transport can make `join` fail, and that has been
            // reported.
            let _ = writer.join();
        }
    }
}
