//! Many sessions at once inside one tokio runtime, each a malicious correlated OT over TCP.
//!
//! ```text
//! cargo run --release -p volery --example sessions -- 2000       # all at once
//! cargo run --release -p volery --example sessions -- 2000 50    # 50 at a time
//! ```
//!
//! Both ends of each session are in this process, on the runtime's one thread. The program prints
//! the time and the most memory: docs/design/async.md has its table.

use std::time::{Duration, Instant};
use std::{env, fs};

use tokio::net::{TcpListener, TcpStream};
use volery::channel::Pool;
use volery::prelude::*;
use volery::tokio::Bridge;

const TIMEOUT: Duration = Duration::from_secs(600);

/// Correlated OTs of a session.
const N: usize = 1000;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let number = |nth, default| env::args().nth(nth).map_or(Ok(default), |number| number.parse());
    let sessions = number(1, 64)?;
    let at_once = number(2, sessions)?;
    let time = run(sessions, at_once)?;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    show(&format!("{sessions} sessions, {at_once} at once: {time:.1?}, {peak}"));
    Ok(())
}

/// Runs so many sessions, and returns the time.
fn run(sessions: usize, at_once: usize) -> Outcome<Duration> {
    // One for each side, in which the sessions wait in the same order: in one for both, all threads
    // could belong to ends that wait for one without.
    let [of_senders, of_receivers] = [(); 2].map(|()| Pool::new(at_once));
    let start = Instant::now();
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
        Ok(start.elapsed())
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

fn plan() -> Plan {
    cot::plan(Some(N as u64), Link::default(), Security::Malicious)
}

fn sender(channel: &mut Channel) -> Result<(Block, Vec<Block>), Error> {
    channel.set_timeout(Some(TIMEOUT));
    let plan = plan();
    let mut session = Session::begin(channel, &plan.hello(Role::Sender))?;
    let mut sender = cot::Sender::start(&plan, None, &mut session)?;
    let mut v = vec![Block::ZERO; N];
    sender.extend(&mut v, &mut session)?;
    session.flush()?;
    Ok((sender.delta(), v))
}

fn receiver(channel: &mut Channel) -> Result<(Vec<u8>, Vec<Block>), Error> {
    channel.set_timeout(Some(TIMEOUT));
    let plan = plan();
    let mut session = Session::begin(channel, &plan.hello(Role::Receiver))?;
    let mut receiver = cot::Receiver::start(&plan, &mut session)?;
    let (mut u, mut w) = (vec![0; bits::bytes_for(N)], vec![Block::ZERO; N]);
    receiver.extend(&mut u, &mut w, &mut session)?;
    session.flush()?;
    Ok((u, w))
}

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn show(line: &str) {
    println!("{line}");
}

#[test]
fn sessions_on_one_thread() {
    run(64, 64).expect("all sessions end well");
    run(64, 5).expect("all sessions end well, also those that waited for a thread");
}
