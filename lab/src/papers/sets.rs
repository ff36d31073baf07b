//! The protocols of BaRK-OPRF (CCS 2016): set intersection in two phases, `offline` before the
//! items are needed, `online` from there to the receiver's result. Half of the items are common,
//! and every result is checked.

use std::ops::Range;

use volery_channel::{Channel, SessionId};
use volery_primitives::Block;
use volery_psi::{Parameters, Settings, Variant};

use super::items::items;
use super::{Scope, failed, fresh_prg, fresh_session};
use crate::baselines::hybrid::{self, Choice, Cost};
use crate::baselines::{naive, pssz};
use crate::measurement::{Key, Sample};
use crate::parties::{Mark, Watch, run_in_pools};
use crate::runner::{Cell, Forecast};
use crate::{Error, Link, Result};

/// The names of the phases.
pub(super) const OFFLINE: &str = "offline";
pub(super) const ONLINE: &str = "online";

/// Bytes of the unit of Table 5.
pub(super) const MEBIBYTE: f64 = (1 << 20) as f64;

/// A protocol of ours on items of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Exchanging hashes: insecure.
    Naive,
    /// On items of this many bits.
    Pssz(u32),
    /// BaRK-OPRF, on items of 128 bits; no other length costs more or less.
    Bark(Variant),
}

impl Protocol {
    /// By its name among the results.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "naive" => Self::Naive,
            "kkrt-paper" => Self::Bark(Variant::KkrtPaper),
            "kkrt" => Self::Bark(Variant::Kkrt),
            other => Self::Pssz(other.strip_prefix("pssz-")?.parse().ok()?),
        })
    }

    /// Bytes of both directions without the setup, by a formula: that of the paper or, for the
    /// default of this program, the same formula with its own parameters.
    fn bytes(self, items: usize) -> f64 {
        match self {
            Self::Naive => naive::bytes(items) as f64,
            Self::Pssz(bits) => pssz::published_bytes(items, bits),
            Self::Bark(variant) => {
                let parameters = parameters(variant, items);
                (parameters.row_bytes() + parameters.tag_bytes()) as f64
            }
        }
    }

    /// The parameters of a run with this many items, in a few words.
    pub(super) fn describe(self, items: usize) -> String {
        match self {
            Self::Naive => format!("hashes of {} bits", 8 * naive::hash_bytes(items)),
            Self::Pssz(bits) => {
                let plan = pssz::Plan::new(items, bits);
                format!(
                    "3 hash functions, {} bins of {} OTs, stash {} of {} OTs, outputs of {} bits",
                    plan.bins(),
                    plan.bin_ots(),
                    plan.stash(),
                    plan.stash_ots(),
                    8 * plan.value_bytes()
                )
            }
            Self::Bark(variant) => parameters(variant, items).to_string(),
        }
    }

    /// The cost of a run. A small set over a slow link is mostly setup and round trips: so the work
    /// is the whole estimate, and a measured smaller size scales it.
    fn forecast(self, items: usize, link: &Link) -> Forecast {
        let (setup, nanoseconds, round_trips) = match self {
            Self::Naive => (0.0, 400.0, 0.5),
            Self::Pssz(32) => (0.03, 1500.0, 2.0),
            Self::Pssz(64) => (0.03, 2500.0, 2.0),
            Self::Pssz(_) => (0.03, 3000.0, 2.0),
            Self::Bark(Variant::KkrtPaper) => (0.03, 700.0, 2.5),
            Self::Bark(_) => (0.03, 600.0, 2.5),
        };
        let seconds = setup + nanoseconds * 1e-9 * items as f64;
        let bytes = self.bytes(items);
        let on_the_link = link.seconds_for(bytes) + round_trips * link.round_trip_seconds();
        Forecast { seconds, bytes, round_trips, work: seconds + on_the_link }
    }

    /// A computed figure of Tables 1, 2 and 5; `None` if this protocol has none of that name. A
    /// name that ends with `-whole` counts whole OTs.
    pub(super) fn figure(self, quantity: &str, items: usize) -> Option<f64> {
        let (name, cost) = match quantity.strip_suffix("-whole") {
            Some(name) => (name, Cost::Whole),
            None => (quantity, Cost::Fractional),
        };
        let pssz = |bits| hybrid::pssz_bits(items, bits, cost);
        let parameters = |variant| parameters(variant, items);
        let ratio = name.strip_prefix("ratio-").and_then(|bits| bits.parse().ok());
        Some(match (self, name, cost) {
            (_, "traffic-formula", _) => self.bytes(items) / MEBIBYTE,
            (Self::Pssz(bits), "effective-bits", Cost::Fractional) => pssz(bits) / 32.0,
            (Self::Pssz(bits), "ot-bits", _) => pssz(bits),
            (Self::Bark(variant), "ot-bits" | "code-bits", Cost::Fractional) => {
                parameters(variant).width as f64
            }
            (Self::Bark(variant), "stash", _) => parameters(variant).stash as f64,
            (Self::Bark(variant), "value-bits", _) => 8.0 * parameters(variant).tag as f64,
            (Self::Bark(variant), _, _) => parameters(variant).width as f64 / pssz(ratio?),
            _ => return None,
        })
    }
}

/// The protocol that the hybrid of section 6.3 picks, for `choice-BITS` and `choice-BITS-whole`.
pub(super) fn choice(quantity: &str, items: usize) -> Option<&'static str> {
    let bits = quantity.strip_prefix("choice-")?;
    let (bits, cost) = match bits.strip_suffix("-whole") {
        Some(bits) => (bits, Cost::Whole),
        None => (bits, Cost::Fractional),
    };
    let width = parameters(Variant::KkrtPaper, items).width;
    Some(match hybrid::choose(items, bits.parse().ok()?, width, cost) {
        Choice::Pssz => "PSSZ",
        Choice::Bark => "BaRK-OPRF",
    })
}

/// The parameters of BaRK-OPRF for as many items on both sides.
fn parameters(variant: Variant, items: usize) -> Parameters {
    Parameters::new(variant, items as u64, items as u64)
}

/// The cell of a protocol; `None` if there is none of that name.
pub(super) fn cell(key: &Key, scope: &Scope) -> Option<Cell> {
    let protocol = Protocol::named(&key.protocol)?;
    let run = Run { protocol, items: key.n as usize, key: key.clone(), scope: *scope };
    Some(Cell {
        key: key.clone(),
        plan: Some(protocol.describe(run.items)),
        security_bits: (protocol != Protocol::Naive).then_some(128),
        forecast: protocol.forecast(run.items, &key.link),
        run: Box::new(move || run.both()),
    })
}

/// The protocol and settings to run.
struct Run {
    protocol: Protocol,
    /// Items of each party; half of them common.
    items: usize,
    key: Key,
    scope: Scope,
}

/// The items of both parties, one after another, in the form that the protocol takes; the other
/// form is empty.
struct Items {
    blocks: Vec<Block>,
    bytes: Vec<[u8; 16]>,
}

impl Run {
    /// Runs both parties and checks the result.
    fn both(&self) -> Result<Sample> {
        let session = fresh_session()?;
        // The first half of the receiver's items is the second half of the sender's.
        let (theirs, own) = (0..self.items, self.items / 2..self.items / 2 + self.items);
        let (blocks, bytes) = match self.protocol {
            Protocol::Naive => (items(own.end, 128, |item| item), Vec::new()),
            Protocol::Pssz(bits) => (items(own.end, bits, |item| item), Vec::new()),
            Protocol::Bark(_) => (Vec::new(), items(own.end, 128, Block::to_bytes)),
        };
        let items = Items { blocks, bytes };
        let (sent, (received, common)) = run_in_pools(
            &self.key.link,
            self.key.threads,
            self.scope.timeout,
            |channel| self.send(&items, theirs, session, channel),
            |channel| self.receive(&items, own, session, channel),
        )?;
        self.check(&common)?;
        Ok(Sample::of([sent, received]))
    }

    /// Whether the receiver found exactly the common items.
    fn check(&self, common: &[usize]) -> Result<()> {
        let expected = self.items - self.items / 2;
        if common.iter().copied().eq(0..expected) {
            return Ok(());
        }
        Err(Error::protocol(format_args!(
            "the result is wrong: of {expected} common items among {}, {} were found, or others",
            self.items,
            common.len()
        )))
    }

    fn send(
        &self,
        items: &Items,
        own: Range<usize>,
        session: SessionId,
        channel: &mut Channel,
    ) -> Result<Vec<Mark>> {
        let mut rng = fresh_prg()?;
        let mut watch = Watch::start(channel)?;
        match self.protocol {
            Protocol::Naive => {
                watch.mark(OFFLINE, 0, channel);
                naive::send(&items.blocks[own], session, &mut rng, channel)?;
            }
            Protocol::Pssz(bits) => {
                let mut sender = pssz::Sender::setup(session, rng, channel)?;
                watch.mark(OFFLINE, 0, channel);
                sender.run(&items.blocks[own], &pssz::Plan::new(self.items, bits), channel)?;
            }
            Protocol::Bark(variant) => {
                let sender = volery_psi::Sender::setup(session, rng, channel).map_err(of_psi)?;
                watch.mark(OFFLINE, 0, channel);
                let settings = Settings { variant, both: false };
                sender.intersect(&items.bytes[own], settings, &mut (), channel).map_err(of_psi)?;
            }
        }
        watch.mark(ONLINE, self.items as u64, channel);
        Ok(watch.stop(channel)?)
    }

    /// Gives the numbers of the receiver's items that are common.
    fn receive(
        &self,
        items: &Items,
        own: Range<usize>,
        session: SessionId,
        channel: &mut Channel,
    ) -> Result<(Vec<Mark>, Vec<usize>)> {
        let rng = fresh_prg()?;
        let mut watch = Watch::start(channel)?;
        let common = match self.protocol {
            Protocol::Naive => {
                watch.mark(OFFLINE, 0, channel);
                naive::receive(&items.blocks[own], session, channel)?
            }
            Protocol::Pssz(bits) => {
                let mut receiver = pssz::Receiver::setup(session, rng, channel)?;
                watch.mark(OFFLINE, 0, channel);
                receiver.run(&items.blocks[own], &pssz::Plan::new(self.items, bits), channel)?
            }
            Protocol::Bark(variant) => {
                let receiver =
                    volery_psi::Receiver::setup(session, rng, channel).map_err(of_psi)?;
                watch.mark(OFFLINE, 0, channel);
                let settings = Settings { variant, both: false };
                let found = receiver.intersect(&items.bytes[own], settings, &mut (), channel);
                found.map_err(of_psi)?.common
            }
        };
        watch.mark(ONLINE, self.items as u64, channel);
        Ok((watch.stop(channel)?, common))
    }
}

/// A failure of BaRK-OPRF; that of the channel stays one, as it may be the mere consequence of the
/// other party's.
fn of_psi(error: volery_psi::Error) -> Error {
    match error {
        volery_psi::Error::Channel(error) => error.into(),
        other => failed(other),
    }
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
        for name in ["naive", "pssz-32", "pssz-64", "pssz-128", "kkrt-paper", "kkrt"] {
            let cell = cell(&Key::example(name, 1 << 8), &SCOPE).expect("it exists");
            let sample = (cell.run)().expect("the result is right");
            let names: Vec<_> = sample.phases.iter().map(|phase| &phase.name[..]).collect();
            assert_eq!(names, [OFFLINE, ONLINE]);
            let more = sample.phases[1].bytes as f64 - cell.forecast.bytes;
            assert!((0.0..12_000.0).contains(&more), "{name}: {more}");
        }
    }

    #[test]
    fn wrong_results_are_refused() {
        let run = Run {
            protocol: Protocol::Naive,
            items: 5,
            key: Key::example("naive", 1 << 8),
            scope: SCOPE,
        };
        assert!(run.check(&[0, 1, 2]).is_ok());
        for wrong in [&[][..], &[0, 1], &[0, 1, 3], &[0, 1, 2, 3], &[2, 1, 0]] {
            assert!(run.check(wrong).is_err(), "{wrong:?}");
        }
    }

    /// The findings about the default: a narrower code, bins in place of a stash, fewer bytes.
    #[test]
    fn the_default_of_the_findings() {
        let expected = [(8, "0.56"), (12, "0.67"), (16, "0.75"), (20, "0.81"), (24, "0.88")];
        for (log, share) in expected {
            let variants = [Variant::KkrtPaper, Variant::Kkrt];
            let [paper, default] = variants.map(|variant| parameters(variant, 1 << log));
            assert_eq!(paper.width - default.width, if log < 24 { 8 } else { 0 });
            assert_eq!((default.stash, default.sets(), paper.sets()), (0, 3, 3 + paper.stash));
            let bins = default.bins as f64 / f64::from(1 << log);
            assert!((1.28..1.45).contains(&bins), "{bins}");
            let larger = default.bins as f64 / paper.bins as f64;
            assert!((1.065..1.205).contains(&larger), "{larger}");
            let [paper, default] = variants.map(|variant| Protocol::Bark(variant).bytes(1 << log));
            assert_eq!(format!("{:.2}", default / paper), share);
        }
    }
}
