//! Protocols inside tokio runtimes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use volery_channel::tokio::Bridge;
use volery_channel::{Channel, Error, Pool, Result};

use super::{LONG, SHORT, pattern};

fn runtimes() -> [Runtime; 2] {
    let [mut one, mut several] = [Builder::new_current_thread(), Builder::new_multi_thread()];
    [&mut one, several.worker_threads(2)].map(|builder| builder.enable_all().build().unwrap())
}

/// Both parties send at once, more than a stream holds; the peer's next byte may be read ahead.
fn talk(ours: u8, length: usize) -> impl FnOnce(&mut Channel) -> Result<()> + Send + 'static {
    move |channel| {
        channel.set_timeout(Some(LONG));
        let mut theirs = vec![0; length];
        channel.send(&pattern(length, ours))?;
        channel.recv(&mut theirs)?;
        assert!(theirs == pattern(length, 1 - ours));
        channel.send(&[ours])?;
        channel.flush()
    }
}

/// Several runs on one connection.
async fn party<S: AsyncRead + AsyncWrite + Unpin>(stream: S, ours: u8) {
    let mut bridge = Bridge::new(stream);
    for length in [1, 70_000, 3_000_000] {
        bridge.run(talk(ours, length)).await.unwrap();
        let last = bridge.run(|channel| {
            let mut last = [0];
            channel.recv(&mut last).map(|()| last)
        });
        assert_eq!(last.await.unwrap(), [1 - ours]);
    }
}

#[test]
fn runs_over_streams_of_all_kinds() {
    for runtime in runtimes() {
        runtime.block_on(async {
            for bound in [1, 4096] {
                let length = if bound == 1 { 1000 } else { 3_000_000 };
                let (left, right) = duplex(bound);
                let other =
                    tokio::spawn(async move { Bridge::new(right).run(talk(1, length)).await });
                Bridge::new(left).run(talk(0, length)).await.unwrap();
                other.await.unwrap().unwrap();
            }
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let left = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (right, _) = listener.accept().await.unwrap();
            let other = tokio::spawn(party(right, 1));
            party(left, 0).await;
            other.await.unwrap();
        });
    }
}

/// Receives a byte more than comes.
fn waits(channel: &mut Channel) -> Result<()> {
    channel.send(b"to the peer")?;
    channel.recv(&mut [0; 3])
}

fn on_one_thread(test: impl AsyncFnOnce(DuplexStream, DuplexStream)) {
    let [runtime, _] = runtimes();
    let (left, right) = duplex(1000);
    runtime.block_on(test(left, right));
}

#[test]
fn a_peer_that_closes_or_is_silent() {
    on_one_thread(async |left, mut right| {
        right.write_all(&[1, 2]).await.unwrap();
        let mut bridge = Bridge::new(left);
        let timed_out = bridge.run(|channel| {
            channel.set_timeout(Some(SHORT));
            waits(channel)
        });
        assert!(matches!(timed_out.await, Err(Error::TimedOut(_))));
        assert_eq!(bridge.run(waits).await, Err(Error::Broken));
    });
    on_one_thread(async |left, mut right| {
        right.write_all(&[1, 2]).await.unwrap();
        let close = async {
            tokio::time::sleep(SHORT / 4).await;
            drop(right);
        };
        let closing = tokio::spawn(close);
        assert_eq!(Bridge::new(left).run(waits).await, Err(Error::Disconnected));
        closing.await.unwrap();
    });
    // What was sent last does not arrive, which the next run finds.
    on_one_thread(async |left, right| {
        let mut bridge = Bridge::new(left);
        let unread = |channel: &mut Channel| {
            channel.set_timeout(Some(SHORT));
            channel.send(&[0; 5000])?;
            channel.flush().map(|()| 5)
        };
        assert_eq!(bridge.run(unread).await, Ok::<_, Error>(5));
        assert!(matches!(bridge.run(unread).await, Err(Error::TimedOut(_))));
        drop(right);
    });
}

#[test]
fn a_run_that_is_cancelled_or_panics() {
    on_one_thread(async |left, _right| {
        let (tell, told) = mpsc::channel();
        let mut bridge = Bridge::new(left);
        let run = bridge.run(move |channel| {
            let ended = waits(channel);
            tell.send(ended).unwrap();
            Ok::<_, Error>(())
        });
        assert!(tokio::time::timeout(SHORT, run).await.is_err());
        assert_eq!(told.recv_timeout(LONG).unwrap(), Err(Error::Disconnected));
        assert_eq!(bridge.run(waits).await, Err(Error::Broken));
    });
    let [runtime, _] = runtimes();
    let mut bridge = Bridge::new(duplex(1).0);
    let run = bridge.run(|_| -> Result<()> { panic!("of the protocol") });
    assert!(catch_unwind(AssertUnwindSafe(|| runtime.block_on(run))).is_err());
    assert_eq!(runtime.block_on(bridge.run(waits)), Err(Error::Broken));
}

#[test]
fn a_full_pool_is_waited_for() {
    on_one_thread(async |left, mut right| {
        let pool = Pool::new(1);
        let (stop, stopped) = mpsc::channel::<()>();
        let mut first = Bridge::with_pool(duplex(1).0, pool.clone());
        let first = tokio::spawn(async move {
            first.run(move |_| Ok::<_, Error>(stopped.recv_timeout(LONG))).await
        });
        tokio::task::yield_now().await;
        let mut second = Bridge::with_pool(left, pool.clone());
        let late = second.run(|_| -> Result<()> { panic!("it begins though it was cancelled") });
        assert!(tokio::time::timeout(SHORT, late).await.is_err());
        assert_eq!(pool.load(), (1, 1));
        let sent = tokio::time::timeout(SHORT, right.read_u8()).await;
        assert!(sent.is_err(), "it has sent before it had a thread");
        stop.send(()).unwrap();
        first.await.unwrap().unwrap().unwrap();
        let mut after = Bridge::with_pool(duplex(1).0, pool);
        assert_eq!(after.run(|_| Ok::<_, Error>(1)).await, Ok(1));
    });
}
