//! Protocols inside tokio runtimes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::io::{DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::time::timeout;
use volery_channel::tokio::Bridge;
use volery_channel::{Channel, Error, Pool, Result};

use super::{LONG, SHORT, pattern};

/// Several runs on one connection; in the first of each length both parties send at once, more than
/// a stream holds, and one may read ahead what is for the next.
async fn party<S: AsyncRead + AsyncWrite + Unpin>(stream: S, ours: u8, lengths: &'static [usize]) {
    let mut bridge = Bridge::new(stream);
    for &length in lengths {
        let both_send = move |channel: &mut Channel| {
            channel.set_timeout(Some(LONG));
            let mut theirs = vec![0; length];
            channel.send(&pattern(length, ours))?;
            channel.recv(&mut theirs)?;
            assert!(theirs == pattern(length, 1 - ours));
            channel.send(&[ours])?;
            channel.flush()
        };
        bridge.run(both_send).await.unwrap();
        let mut last = [0];
        let last = bridge.run(move |channel| channel.recv(&mut last).map(|()| last)).await;
        assert_eq!(last, Ok([1 - ours]));
    }
}

#[test]
fn runs_over_streams_of_all_kinds() {
    for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
        builder.worker_threads(2).enable_all().build().unwrap().block_on(async {
            let (left, right) = duplex(1);
            let other = tokio::spawn(party(right, 1, &[1000]));
            party(left, 0, &[1000]).await;
            other.await.unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let left = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (right, _) = listener.accept().await.unwrap();
            let other = tokio::spawn(party(right, 1, &[1, 70_000, 3_000_000]));
            party(left, 0, &[1, 70_000, 3_000_000]).await;
            other.await.unwrap();
        });
    }
}

/// Receives a byte more than comes.
fn waits(channel: &mut Channel) -> Result<()> {
    channel.send(b"to the peer")?;
    channel.recv(&mut [0; 3])
}

/// A test with a bridge, and the peer's stream, which has sent two bytes.
fn with_peer(test: impl AsyncFnOnce(Bridge<DuplexStream>, DuplexStream)) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (left, mut right) = duplex(1000);
        right.write_all(&[1, 2]).await.unwrap();
        test(Bridge::new(left), right).await;
    });
}

#[test]
fn a_peer_that_closes_or_is_silent() {
    with_peer(async |mut bridge, _right| {
        let timed_out = bridge.run(|channel| {
            channel.set_timeout(Some(SHORT));
            waits(channel)
        });
        assert!(matches!(timed_out.await, Err(Error::TimedOut(_))));
        assert_eq!(bridge.run(waits).await, Err(Error::Broken));
    });
    with_peer(async |mut bridge, mut right| {
        let closing = tokio::spawn(async move { right.read_exact(&mut [0; 11]).await });
        assert_eq!(bridge.run(waits).await, Err(Error::Disconnected));
        closing.await.unwrap().unwrap();
    });
    // What was sent last does not arrive, which the next run finds.
    with_peer(async |mut bridge, _right| {
        let unread = |channel: &mut Channel| {
            channel.set_timeout(Some(SHORT));
            channel.send(&[0; 5000])?;
            channel.flush()
        };
        assert_eq!(bridge.run(unread).await, Ok(()));
        assert!(matches!(bridge.run(unread).await, Err(Error::TimedOut(_))));
    });
}

#[test]
fn a_run_that_is_cancelled_or_panics() {
    with_peer(async |mut bridge, _right| {
        let (tell, told) = mpsc::channel();
        let run = bridge.run(move |channel| Ok::<_, Error>(tell.send(waits(channel))));
        assert!(timeout(SHORT, run).await.is_err());
        assert_eq!(told.recv_timeout(LONG).unwrap(), Err(Error::Disconnected));
        assert_eq!(bridge.run(waits).await, Err(Error::Broken));
    });
    let panics = AssertUnwindSafe(|| {
        with_peer(async |mut bridge, _right| {
            let _ = bridge.run(|_| -> Result<()> { panic!("of the protocol") }).await;
        });
    });
    assert!(catch_unwind(panics).is_err());
}

#[test]
fn a_full_pool_is_waited_for() {
    with_peer(async |_, _| {
        let pool = Pool::new(1);
        let (stop, stopped) = mpsc::channel::<()>();
        let mut first = Bridge::with_pool(duplex(1).0, pool.clone());
        let first = tokio::spawn(async move {
            first.run(move |_| Ok::<_, Error>(stopped.recv_timeout(LONG))).await
        });
        tokio::task::yield_now().await;
        let (left, mut right) = duplex(1);
        let mut second = Bridge::with_pool(left, pool.clone());
        let late = second.run(|_| -> Result<()> { panic!("it begins though it was cancelled") });
        assert!(timeout(SHORT, late).await.is_err());
        assert!(timeout(SHORT, right.read_u8()).await.is_err(), "it has sent without a thread");
        stop.send(()).unwrap();
        first.await.unwrap().unwrap().unwrap();
        let mut after = Bridge::with_pool(duplex(1).0, pool);
        assert_eq!(after.run(|_| Ok::<_, Error>(1)).await, Ok(1));
    });
}
