//! The protocol of BaRK-OPRF (CCS 2016): set intersection in two phases, `offline` before the items
//! are needed, `online` from there to the receiver's result. Half of the items are common, and
//! every result is checked. The items have 128 bits; no other length costs more or less.

use std::array;

use rayon::prelude::*;
use volery_channel::Channel;
use volery_primitives::Block;
use volery_primitives::aes::Aes128;
use volery_psi::{Parameters, Receiver, Sender, Settings, Variant};

use super::{Scope, fresh_prg, fresh_session};
use crate::measurement::{Key, Sample};
use crate::parties::{Watch, run_in_pools};
use crate::runner::Cell;
use crate::{Error, Result};

/// The names of the phases.
const OFFLINE: &str = "offline";
const ONLINE: &str = "online";

/// Bytes of the unit of Table 5.
const MEBIBYTE: f64 = (1 << 20) as f64;

/// The parameters of a protocol, by its name among the results, for as many items on both sides.
fn parameters(protocol: &str, items: u64) -> Option<(Variant, Parameters)> {
    let variant = match protocol {
        "kkrt-paper" => Variant::KkrtPaper,
        "kkrt" => Variant::Kkrt,
        _ => return None,
    };
    Some((variant, Parameters::new(variant, items, items)))
}

/// Bytes of both directions without the setup, by the formula of the paper.
fn bytes(parameters: &Parameters) -> f64 {
    (parameters.row_bytes() + parameters.tag_bytes()) as f64
}

/// A computed figure of Tables 1, 2 and 5; `None` if there is none of that name.
pub(super) fn figure(key: &Key, quantity: &str) -> Option<f64> {
    let (_, parameters) = parameters(&key.protocol, key.n)?;
    Some(match quantity {
        "traffic-formula" => bytes(&parameters) / MEBIBYTE,
        "ot-bits" | "code-bits" => parameters.width as f64,
        "stash" => parameters.stash as f64,
        "value-bits" => 8.0 * parameters.tag as f64,
        _ => {
            let bits: f64 = quantity.strip_prefix("ratio-")?.parse().ok()?;
            // PSSZ takes 32 bits for each bit of an item that the number of its bin does not have.
            parameters.width as f64 / (32.0 * (bits - (key.n as f64).log2()))
        }
    })
}

/// The cell of a protocol; `None` if there is none of that name.
pub(super) fn cell(key: &Key, scope: &Scope) -> Option<Cell> {
    let (variant, parameters) = parameters(&key.protocol, key.n)?;
    let (own, timeout) = (key.clone(), scope.timeout);
    let on_the_link =
        key.link.seconds_for(bytes(&parameters)) + 2.5 * key.link.round_trip_seconds();
    Some(Cell {
        key: key.clone(),
        plan: Some(parameters.to_string()),
        security_bits: Some(128),
        seconds: 0.03 + 700e-9 * key.n as f64 + on_the_link,
        run: Box::new(move || run(&own, variant, timeout)),
    })
}

/// Runs both parties and checks the result.
fn run(key: &Key, variant: Variant, timeout: std::time::Duration) -> Result<Sample> {
    let (n, session) = (key.n as usize, fresh_session()?);
    let items = items(n / 2 + n);
    let settings = Settings { variant, both: false };
    let (sent, (received, common)) = run_in_pools(
        &key.link,
        key.threads,
        timeout,
        |channel: &mut Channel| {
            let (rng, mut watch) = (fresh_prg()?, Watch::start(channel)?);
            let sender = Sender::setup(session, rng, channel)?;
            watch.mark(OFFLINE, 0, channel);
            sender.intersect(&items[..n], settings, &mut (), channel)?;
            watch.mark(ONLINE, key.n, channel);
            Ok(watch.stop(channel)?)
        },
        |channel: &mut Channel| {
            let (rng, mut watch) = (fresh_prg()?, Watch::start(channel)?);
            let receiver = Receiver::setup(session, rng, channel)?;
            watch.mark(OFFLINE, 0, channel);
            let found = receiver.intersect(&items[n / 2..], settings, &mut (), channel)?;
            watch.mark(ONLINE, key.n, channel);
            Ok((watch.stop(channel)?, found.common))
        },
    )?;
    // The first half of the receiver's items is the second half of the sender's.
    if !common.iter().copied().eq(0..n - n / 2) {
        return Err(Error::protocol("the receiver did not find exactly the common items"));
    }
    Ok(Sample::of([sent, received]))
}

/// Items that look random and are all different: their enciphered numbers.
fn items(count: usize) -> Vec<[u8; 16]> {
    /// Items enciphered at a time.
    const CHUNK: usize = 256;
    let aes = Aes128::new(Block::new(0x6974_656d));
    let mut items = vec![[0; 16]; count];
    items.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, items)| {
        let mut blocks: [_; CHUNK] = array::from_fn(|i| Block::new((chunk * CHUNK + i) as u128));
        aes.encrypt_blocks(&mut blocks);
        items.iter_mut().zip(blocks).for_each(|(item, block)| *item = block.to_bytes());
    });
    items
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Size;
    use super::*;

    const SCOPE: Scope = Scope { size: Size::Quick, threads: 1, timeout: Duration::from_secs(60) };

    /// Bytes beyond the formula are few.
    #[test]
    fn small_runs() {
        for name in ["kkrt-paper", "kkrt"] {
            let key = Key::example(name, 1 << 8);
            let cell = cell(&key, &SCOPE).expect("it exists");
            let sample = (cell.run)().expect("the result is right");
            let names: Vec<_> = sample.phases.iter().map(|phase| &phase.name[..]).collect();
            assert_eq!(names, [OFFLINE, ONLINE]);
            let formula = figure(&key, "traffic-formula").expect("a figure") * MEBIBYTE;
            let more = sample.phases[1].bytes as f64 - formula;
            assert!((0.0..12_000.0).contains(&more), "{name}: {more}");
        }
    }

    /// The findings about the default: a narrower code, bins in place of a stash, fewer bytes.
    #[test]
    fn the_default_of_the_findings() {
        let expected = [(8, "0.56"), (12, "0.67"), (16, "0.75"), (20, "0.81"), (24, "0.88")];
        for (log, share) in expected {
            let [paper, default] =
                ["kkrt-paper", "kkrt"].map(|name| parameters(name, 1 << log).expect("it exists").1);
            assert_eq!(paper.width - default.width, if log < 24 { 8 } else { 0 });
            assert_eq!((default.stash, default.sets(), paper.sets()), (0, 3, 3 + paper.stash));
            let bins = default.bins as f64 / f64::from(1 << log);
            assert!((1.28..1.45).contains(&bins), "{bins}");
            let larger = default.bins as f64 / paper.bins as f64;
            assert!((1.065..1.205).contains(&larger), "{larger}");
            assert_eq!(format!("{:.2}", bytes(&default) / bytes(&paper)), share);
        }
    }
}
