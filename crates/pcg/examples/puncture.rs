//! A PRF key punctured at one point that its maker does not learn: the privately puncturable PRF of
//! [`volery_pcg::pprf`], with both parties in this process.
//!
//! ```text
//! cargo run --release -p volery-pcg --example puncture [-- POINTS PUNCTURED]
//! ```
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that says what happened"
)]

use std::process::ExitCode;

use volery_channel::{Channel, SessionId, run_two_parties_with_stats};
use volery_field::{Fp61, Ring};
use volery_ot::{
    convert,
    softspoken::{self, SmallField},
};
use volery_pcg::{
    Result,
    ggm::TreePrgs,
    pprf::{Key, PuncturedKey},
};
use volery_primitives::prg::Prg;

/// From a handshake, if the parties are two processes.
const SESSION: SessionId = SessionId::from_bytes([1; 32]);

/// P1: makes a key for the points `0..n`, and gives P2 the key punctured at one of them.
fn deal(n: usize, mut rng: Prg, channel: &mut Channel) -> Result<Key<Fp61>> {
    let (field, seed) = (SmallField::default(), rng.fork("ot"));
    let cot = softspoken::Sender::setup(None, field, SESSION, seed, channel)?;
    let mut ot = convert::Sender::new(cot, SESSION);
    Key::deal(n, &TreePrgs::new(SESSION, 0), &mut rng, &mut ot, channel)
}

/// P2: gets the key without the point `alpha`.
fn obtain(
    n: usize,
    alpha: usize,
    mut rng: Prg,
    channel: &mut Channel,
) -> Result<PuncturedKey<Fp61>> {
    let (field, seed) = (SmallField::default(), rng.fork("ot"));
    let cot = softspoken::Receiver::setup(field, SESSION, seed, channel)?;
    let mut ot = convert::Receiver::new(cot, SESSION);
    PuncturedKey::obtain(n, alpha, &TreePrgs::new(SESSION, 0), &mut ot, channel)
}

fn run(n: usize, alpha: usize) -> Result<()> {
    let rng = || Prg::from_os().expect("the system gives randomness");
    let ((key, stats), (punctured, _)) = run_two_parties_with_stats(
        |channel| deal(n, rng(), channel),
        |channel| obtain(n, alpha, rng(), channel),
    );
    let (key, punctured) = (key?, punctured?);

    let (mut all, mut but_one) = (vec![Fp61::ZERO; n], vec![Fp61::ZERO; n]);
    key.expand(&mut all);
    punctured.expand(&mut but_one);
    let differ: Vec<_> = (0..n).filter(|j| all[*j] != but_one[*j]).collect();
    assert_eq!(differ, [alpha], "all values but one are the same");
    println!("P1 evaluates the PRF at all of {n} points, P2 at all but {alpha}.");
    for point in [alpha.saturating_sub(1), alpha, (alpha + 1).min(n - 1)] {
        let value = punctured
            .evaluate(point)
            .map_or("-".to_owned(), |value| value.to_string());
        println!("  F({point}):  P1 {}, P2 {value}", key.evaluate(point));
    }
    println!(
        "Sent, with the setup of the OTs: P1 {} bytes, P2 {} bytes.",
        stats.bytes_sent, stats.bytes_received
    );
    Ok(())
}

fn main() -> ExitCode {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|text| text.parse::<usize>().ok());
    let n = arguments.next().unwrap_or(Some(1000));
    let alpha = arguments.next().unwrap_or(Some(7));
    let (Some(n @ 1..=0x100_0000), Some(alpha)) = (n, alpha) else {
        eprintln!("usage: puncture [POINTS PUNCTURED], with 1 to 2^24 points");
        return ExitCode::from(2);
    };
    if alpha >= n {
        eprintln!("the punctured point is one of 0..{n}, and {alpha} is not");
        return ExitCode::from(2);
    }
    match run(n, alpha) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
