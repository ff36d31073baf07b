//! Protocols inside a tokio runtime.
//!
//! Protocols block. A [`Bridge`] runs them on threads of a [`Pool`], neither on the runtime's
//! threads nor on those of `spawn_blocking`, while an async task moves the bytes. It needs no
//! feature of tokio, no timer and no runtime: any executor that polls it will do.
//!
//! Cost: a thread for each protocol that runs, 14 kB where it waits, and two thread switches for
//! each message that it waits for; docs/design/async.md has the numbers and the reasons.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use volery_os::sync::Arc;
use volery_primitives::Wiped;

use crate::exchange::{Exchange, INCOMING_BOUND, State, outcome};
use crate::{Channel, Error, Pool};

/// Most bytes of a read.
const PIECE: usize = 32 << 10;

/// Reads and writes of one poll, after which other tasks have their turn.
const TURNS: usize = 16;

/// A connection over a tokio stream, on which protocols run one after the other; docs/library.md
/// has an example.
///
/// The stream should be TLS with both sides authenticated; the protocols protect only from the
/// peer. To close the connection, drop the bridge.
pub struct Bridge<S> {
    stream: S,
    pool: Pool,
    exchange: Arc<Exchange>,
    /// `None` while a protocol runs, and after one that was cancelled or panicked.
    channel: Option<Box<Wiped<Channel>>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Bridge<S> {
    /// A bridge over `stream`, with the threads of [`Pool::shared`]. The channel has no timeout
    /// until a protocol sets one.
    pub fn new(stream: S) -> Self {
        Self::with_pool(stream, Pool::shared())
    }

    /// A bridge over `stream`, with the threads of `pool`.
    pub fn with_pool(stream: S, pool: Pool) -> Self {
        let exchange = Arc::<Exchange>::default();
        Self { stream, pool, channel: Some(exchange.channel()), exchange }
    }

    /// Runs `protocol` on a thread of the pool, with the channel of the connection, and returns its
    /// result when the stream has taken its last byte. Bytes of the peer that it did not read are
    /// there for the next run, as is the channel's timeout.
    ///
    /// When the pool is full, this waits for a thread before it sends anything; see [`Pool`] on
    /// what that means for the peer. Nothing happens before the first poll.
    ///
    /// Dropping the future cancels: the protocol gets [`Error::Disconnected`] in its next call on
    /// the channel, and later runs get [`Error::Broken`]. Computing is not interrupted.
    ///
    /// # Errors
    /// The errors of `protocol`. [`Error::Broken`] if an earlier run was cancelled or panicked, and
    /// [`Error::Io`] if the operating system starts no thread and the pool has none.
    ///
    /// # Panics
    /// If `protocol` panics, with its panic.
    pub fn run<T: Send + 'static, E: From<Error> + Send + 'static>(
        &mut self,
        protocol: impl FnOnce(&mut Channel) -> Result<T, E> + Send + 'static,
    ) -> impl Future<Output = Result<T, E>> {
        let exchange = Arc::clone(&self.exchange);
        // On the heap from here on: a future is moved, and leaves copies of what it holds.
        let protocol = Box::new(Wiped::new(Some(move |channel: &mut Channel| {
            let result = protocol(channel);
            drain(&exchange, channel.timeout());
            result
        })));
        async move {
            let channel = self.channel.take().ok_or(Error::Broken)?;
            let guard = CancelOnDrop(&self.exchange);
            let slot = self.exchange.start(&self.pool, channel, protocol).map_err(Error::Io)?;
            let stream = &mut self.stream;
            std::future::poll_fn(|context| poll(stream, &self.exchange, context)).await;
            let (channel, result) = outcome(&slot);
            std::mem::forget(guard);
            self.channel = Some(channel);
            result
        }
    }
}

/// Ends the protocol of a future that is dropped.
struct CancelOnDrop<'a>(&'a Exchange);

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end(true);
    }
}

/// Waits, at the end of a protocol, until the stream has all bytes. A peer that has gone, or reads
/// no more, is the next protocol's error: this one has its result.
fn drain(exchange: &Exchange, timeout: Option<Duration>) {
    let drained = exchange.until(true, timeout, |state| {
        let all = state.outgoing.is_empty() && !state.unflushed;
        (all || state.unwritable.is_some()).then_some(Ok(()))
    });
    if let Err(error) = drained {
        exchange.lock().unwritable.get_or_insert(error);
    }
}

/// Moves bytes between the stream and the protocol, until that has ended.
fn poll<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    exchange: &Exchange,
    context: &mut Context<'_>,
) -> Poll<()> {
    for _ in 0..TURNS {
        let mut state = exchange.lock();
        if state.done {
            return Poll::Ready(());
        }
        // First, so that no change after this look is missed.
        state.waker = Some(context.waker().clone());
        // no mutant: an error that is passed on
        if let Poll::Ready(Err(error)) = write(stream, &mut state, context) {
            state.unwritable = Some(error);
            state.outgoing.clear();
        }
        if state.waits_to_send {
            exchange.changed.notify_all();
        }
        let wanted = state.unreadable.is_none() && state.incoming.len() < INCOMING_BOUND;
        drop(state);
        if !wanted {
            return Poll::Pending;
        }
        let mut space = [MaybeUninit::uninit(); PIECE];
        let mut buffer = ReadBuf::uninit(&mut space);
        let result = ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer));
        let mut state = exchange.lock();
        match result {
            Ok(()) if buffer.filled().is_empty() => {
                state.unreadable = Some(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(()) => state.incoming.extend(buffer.filled()),
            Err(error) => state.unreadable = Some(error),
        }
        exchange.changed.notify_all();
    }
    context.waker().wake_by_ref();
    Poll::Pending
}

/// Sends what the protocol has sent.
fn write<S: AsyncWrite + Unpin>(
    stream: &mut S,
    state: &mut State,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    if state.unwritable.is_some() {
        return Poll::Pending;
    }
    while !state.outgoing.is_empty() {
        let (front, _) = state.outgoing.as_slices();
        match ready!(Pin::new(&mut *stream).poll_write(context, front))? {
            // no mutant: the end of the stream
            0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            count => state.taken(count),
        }
        state.unflushed = true;
    }
    if state.unflushed {
        ready!(Pin::new(stream).poll_flush(context))?;
        state.unflushed = false;
    }
    Poll::Pending
}
