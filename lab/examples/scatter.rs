//! Index-value pairs to a dense shared vector, between two processes, and a cost comparison with
//! plain multiplication.
//!
//! ```text
//! (cd lab && cargo build --profile dist --example scatter)
//! target/dist/examples/scatter helper --listen  127.0.0.1:7000 LENGTH PAIRS
//! target/dist/examples/scatter holder --connect 127.0.0.1:7000 LENGTH PAIRS
//! target/dist/examples/scatter bench      # both parties as threads, one thread each
//! ```
//!
//! The helper has a value for each pair, the holder the indices, some of them equal; the data are
//! random. Both end with shares of the vector. For this test the shares are combined and compared:
//! the helper sends its values and its share to the holder, which real parties never do.
//!
//! `bench` prints time and bytes of both ways, without the setup of the OTs, and the bytes of the
//! plain way in the manner of Gilboa: a correlated OT of a ring element for each pair and each
//! entry, where the bit tells whether the pair belongs to the entry.

#![allow(clippy::print_stdout, reason = "the output is its purpose")]

use std::env;
use std::error::Error;
use std::time::{Duration, Instant};

use volery_apps::scatter::{self, Overflow, Public, Repeats};
use volery_channel::{Channel, Hello, SessionId, handshake, run_two_parties_tcp, tcp};
use volery_field::{Ring, Z64};
use volery_ot::convert;
use volery_ot::softspoken::{self, SmallField};
use volery_pcg::wire;
use volery_primitives::prg::Prg;

type Failure = Box<dyn Error + Send + Sync>;

/// The run ends if the peer is silent for this long.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The small field of the OT extension.
const FIELD: SmallField = SmallField::Bits8;
/// The sizes of `bench`: entries, pairs.
const SIZES: [(usize, usize); 8] = [
    (1 << 14, 16),
    (1 << 14, 1 << 10),
    (1 << 17, 192),
    (1 << 17, 1 << 12),
    (1 << 20, 192),
    (1 << 20, 5205),
    (1 << 20, 1 << 17),
    (1 << 14, 1 << 18),
];

fn main() -> Result<(), String> {
    run().map_err(|error| error.to_string())
}

fn run() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["bench"] => bench(),
        [role @ ("helper" | "holder"), way, address, length, pairs] => {
            let public = public(length.parse()?, pairs.parse()?);
            let mut channel = match way {
                "--listen" => tcp::listen(address, TIMEOUT)?,
                "--connect" => tcp::connect(address, TIMEOUT)?,
                _ => return Err("give --listen or --connect, with HOST:PORT".into()),
            };
            let hello = Hello {
                protocol: "example scatter over z64",
                role: if role == "helper" { "helper" } else { "holder" },
                fields: vec![],
            };
            let mut nonce = [0; 32];
            Prg::from_os()?.fill_bytes(&mut nonce);
            let session = handshake(&mut channel, &hello, nonce)?;
            if role == "helper" {
                helper(public, session, &mut channel).map(|_| ())
            } else {
                let phase = holder(public, session, &mut channel)?;
                println!("the shares add up to the vector; {}", phase.text());
                Ok(())
            }
        }
        _ => Err("usage: scatter helper|holder --listen|--connect HOST:PORT LENGTH PAIRS, or scatter bench".into()),
    }
}

fn public(length: usize, count: usize) -> Public {
    Public {
        length,
        count,
        repeats: Repeats::Add,
        overflow: Overflow::Drop,
    }
}

/// The cost of a phase.
struct Phase {
    time: Duration,
    bytes: u64,
}

impl Phase {
    fn text(&self) -> String {
        let (time, bytes) = (self.time.as_secs_f64(), self.bytes as f64 / 1e6);
        format!("{time:.3} s, {bytes:.3} MB")
    }
}

fn helper(public: Public, session: SessionId, channel: &mut Channel) -> Result<(), Failure> {
    let mut rng = Prg::from_os()?;
    let mut values = vec![Z64::ZERO; public.count];
    Z64::random_slice(&mut rng, &mut values);
    let cot = softspoken::Sender::setup(None, FIELD, session, Prg::from_os()?, channel)?;
    let mut ot = convert::Sender::new(cot, session);
    let share = scatter::send(public, &values, &mut rng, &mut ot, channel)?;
    wire::send(&values, channel)?;
    wire::send(&share, channel)?;
    Ok(channel.flush()?)
}

fn holder(public: Public, session: SessionId, channel: &mut Channel) -> Result<Phase, Failure> {
    let mut rng = Prg::from_os()?;
    let indices: Vec<_> = (0..public.count)
        .map(|_| rng.below(public.length.max(1) as u64) as usize)
        .collect();
    let cot = softspoken::Receiver::setup(FIELD, session, Prg::from_os()?, channel)?;
    let mut ot = convert::Receiver::new(cot, session);
    let (start, before) = (Instant::now(), channel.stats());
    let zeros = vec![Z64::ZERO; public.count];
    let share = scatter::receive(public, &indices, &zeros, &mut rng, &mut ot, channel)?;
    let stats = channel.stats() - before;
    let phase = Phase {
        time: start.elapsed(),
        bytes: stats.bytes_sent + stats.bytes_received,
    };
    let (mut values, mut other) = (zeros, vec![Z64::ZERO; public.length]);
    wire::recv(
        &mut values,
        "a value is not an element of the ring",
        channel,
    )?;
    wire::recv(&mut other, "a share is not an element of the ring", channel)?;
    let mut table = vec![Z64::ZERO; public.length];
    for (index, value) in indices.iter().zip(&values) {
        table[*index] += *value;
    }
    let right = |entry: usize| share[entry] + other[entry] == table[entry];
    match (0..public.length).find(|entry| !right(*entry)) {
        Some(entry) => Err(format!("entry {entry} is wrong").into()),
        None => Ok(phase),
    }
}

fn bench() -> Result<(), Failure> {
    println!("entries | pairs | way | scatter | plain way");
    for (length, count) in SIZES {
        let public = public(length, count);
        let session = SessionId::from_bytes([7; 32]);
        let (left, right) = run_two_parties_tcp(
            |channel| helper(public, session, channel),
            |channel| holder(public, session, channel),
        );
        left?;
        let plain = 8.125 * length as f64 * count as f64 / 1e6;
        println!(
            "{length} | {count} | {:?} | {} | {plain:.0} MB",
            public.way::<Z64>(),
            right?.text()
        );
    }
    Ok(())
}
