//! Many sessions at once inside one tokio runtime, each a malicious correlated OT over TCP.
//!
//! ```text
//! cargo run --release -p volery --example sessions -- 2000       # all at once
//! cargo run --release -p volery --example sessions -- 2000 50    # 50 at a time
//! ```
//!
//! Both ends of each session are in this process, on the runtime's one thread. docs/design/async.md
//! has a table of time and memory (`/usr/bin/time -v` shows both).

use std::env;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use volery::channel::Pool;
use volery::prelude::*;
use volery::tokio::Bridge;

/// The run ends after this long without data from the peer.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Correlated OTs of a session.
const N: usize = 1000;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let number = |nth, default| env::args().nth(nth).map_or(Ok(default), |number| number.parse());
    let sessions = number(1, 64)?;
    run(sessions, number(2, sessions)?)
}

/// Runs so many sessions, and checks their results.
fn run(sessions: usize, at_once: usize) -> Outcome<()> {
    // One for each side, in which the sessions wait in the same order: in one for both, all threads
    // could belong to ends that wait for one without.
    let [of_senders, of_receivers] = [(); 2].map(|()| Pool::new(at_once));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut running = Vec::new();
        for _ in 0..sessions {
            let receives = TcpStream::connect(listener.local_addr()?).await?;
            let (sends, _) = listener.accept().await?;
            let sender = tokio::spawn(bridged(sends, of_senders.clone(), sender));
            running.push((sender, tokio::spawn(bridged(receives, of_receivers.clone(), receiver))));
        }
        for (sender, receiver) in running {
            let ((delta, v), (u, w)) = (sender.await??, receiver.await??);
            let expected = |i: usize| if bits::bit(&u, i) { v[i] ^ delta } else { v[i] };
            assert!((0..N).all(|i| w[i] == expected(i)), "a correlation is wrong");
        }
        Ok(())
    })
}

async fn bridged<T: Send + 'static>(
    stream: TcpStream,
    pool: Pool,
    party: fn(&mut Channel) -> Result<T, Error>,
) -> Result<T, Error> {
    stream.set_nodelay(true)?;
    Bridge::with_pool(stream, pool).run(party).await
}

/// Begins a session, with its plan.
fn begin(channel: &mut Channel, role: Role) -> Result<(Plan, Session<&mut Channel>), Error> {
    channel.set_timeout(Some(TIMEOUT));
    let plan = cot::plan(Some(N as u64), Link::default(), Security::Malicious);
    let session = Session::begin(channel, &plan.hello(role))?;
    Ok((plan, session))
}

fn sender(channel: &mut Channel) -> Result<(Block, Vec<Block>), Error> {
    let (plan, mut session) = begin(channel, Role::Sender)?;
    let mut sender = cot::Sender::start(&plan, None, &mut session)?;
    let mut v = vec![Block::ZERO; N];
    sender.extend(&mut v, &mut session)?;
    session.flush()?;
    Ok((sender.delta(), v))
}

fn receiver(channel: &mut Channel) -> Result<(Vec<u8>, Vec<Block>), Error> {
    let (plan, mut session) = begin(channel, Role::Receiver)?;
    let (mut u, mut w) = (vec![0; bits::bytes_for(N)], vec![Block::ZERO; N]);
    cot::Receiver::start(&plan, &mut session)?.extend(&mut u, &mut w, &mut session)?;
    session.flush()?;
    Ok((u, w))
}

#[test]
fn sessions_on_one_thread() {
    run(64, 64).expect("all sessions end well");
    run(64, 5).expect("all sessions end well, also those that waited for a thread");
}
