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
            let sender = tokio::spawn(party(Role::Sender, sends, of_senders.clone()));
            let receiver = tokio::spawn(party(Role::Receiver, receives, of_receivers.clone()));
            running.push((sender, receiver));
        }
        for (sender, receiver) in running {
            let ((delta, _, v), (_, u, w)) = (sender.await??, receiver.await??);
            let expected = |i: usize| if bits::bit(&u, i) { v[i] ^ delta } else { v[i] };
            assert!((0..N).all(|i| w[i] == expected(i)), "a correlation is wrong");
        }
        Ok(())
    })
}

/// One end of a session: the sender's `delta`, the receiver's bits, and the blocks.
async fn party(
    role: Role,
    stream: TcpStream,
    pool: Pool,
) -> Result<(Block, Vec<u8>, Vec<Block>), Error> {
    stream.set_nodelay(true)?;
    let protocol = move |channel: &mut Channel| {
        channel.set_timeout(Some(TIMEOUT));
        let plan = cot::plan(Some(N as u64), Link::default(), Security::Malicious);
        let mut session = Session::begin(channel, &plan.hello(role))?;
        let (mut delta, mut u) = (Block::ZERO, vec![0; bits::bytes_for(N)]);
        let mut blocks = vec![Block::ZERO; N];
        if role == Role::Sender {
            let mut sender = cot::Sender::start(&plan, None, &mut session)?;
            sender.extend(&mut blocks, &mut session)?;
            delta = sender.delta();
        } else {
            let mut receiver = cot::Receiver::start(&plan, &mut session)?;
            receiver.extend(&mut u, &mut blocks, &mut session)?;
        }
        session.flush()?;
        Ok((delta, u, blocks))
    };
    Bridge::with_pool(stream, pool).run(protocol).await
}

#[test]
fn sessions_on_one_thread() {
    run(64, 64).expect("all sessions end well");
    run(64, 5).expect("all sessions end well, also those that waited for a thread");
}
