//! A server that prepares a set, and queries of a client over TCP on this machine.
//!
//! ```sh
//! cargo run --release -p volery-psi --example served -- [ITEMS] [QUERY_ITEMS] [RUNS]
//! ```
//!
//! The times are those of the clock, with as many threads as `rayon` takes (`RAYON_NUM_THREADS`).

#![allow(clippy::print_stdout, reason = "the output is its purpose")]

use std::time::Instant;

use curve25519_dalek::Scalar;
use volery_channel::{Channel, run_two_parties_tcp};
use volery_primitives::prg::Prg;
use volery_primitives::ristretto::Points;
use volery_psi::Result;
use volery_psi::served::{Budget, Client, Filter, Key, Server, bytes, prepare};

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(Ok(default), |text| text.parse());
    let (n, q, runs): (u64, u64, u32) = (number(1_000_000)?, number(1000)?, number(5)? as u32);
    let items = |from: u64, count: u64| -> Vec<[u8; 8]> {
        let spread = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (from..from + count)
            .map(|i| spread(i).to_le_bytes())
            .collect()
    };
    let ours = items(0, n);
    let key = Key::random(&mut Prg::from_os()?);
    let start = Instant::now();
    let filter = prepare(&key, &ours[..], 1 << 20, &mut ())?;
    let seconds = start.elapsed().as_secs_f64();
    drop(ours);
    println!(
        "prepared {n} items in {seconds:.2} s, {:.2} us an item; filter of {} bytes, {:.3} an item",
        seconds * 1e6 / n as f64,
        filter.bytes(),
        filter.bytes() as f64 / n as f64
    );
    let start = Instant::now();
    let mut file = Vec::new();
    filter.write(&mut file)?;
    let read = Filter::from_bytes(&file, n)?;
    assert!(read == filter);
    println!("written and read in {:.2} s", start.elapsed().as_secs_f64());
    drop((file, read));
    let server = Server::new(key, &filter)?;
    let common = n.min(q / 2);
    let theirs = items(n - common, q);
    let micros = |start: Instant| start.elapsed().as_secs_f64() * 1e6 / q as f64;
    // Any elements are a request.
    let scalars: Vec<_> = (1..=q).map(Scalar::from).collect();
    let mut elements = vec![[0; 32]; scalars.len()];
    Points::of_generator(&scalars).encode_doubles(&mut elements);
    for _ in 0..runs {
        let (mut near, mut far) = Channel::memory_pair();
        for elements in elements.chunks(1 << 14) {
            far.send(filter.version())?;
            far.send(&(elements.len() as u64).to_le_bytes())?;
            far.send(elements.as_flattened())?;
        }
        far.send(filter.version())?;
        far.send(&[0; 8])?;
        far.flush()?;
        let start = Instant::now();
        server.answer(&mut Prg::from_os()?, &Budget::new(q), &mut (), &mut near)?;
        println!("the server alone: {:.1} us an item", micros(start));
    }
    for _ in 0..runs {
        let start = Instant::now();
        let (served, queried) = run_two_parties_tcp(
            |channel| -> Result<_> {
                server.answer(&mut Prg::from_os()?, &Budget::new(q), &mut (), channel)
            },
            |channel| -> Result<_> {
                Client::new(&filter, Prg::from_os()?).query(&theirs[..], &mut (), channel)
            },
        );
        served?;
        assert!(queried?.common.iter().copied().eq(0..common as usize));
        let (sent, received) = bytes(q);
        println!(
            "query of {q} items: {:.1} us an item, both parties; {:.2} bytes an item",
            micros(start),
            (sent + received) as f64 / q as f64
        );
    }
    Ok(())
}
