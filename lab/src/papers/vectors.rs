//! The protocols of *Distributed Vector-OLE* (CCS 2019), section 8: point functions and vector OLE,
//! both parties' outputs compared in full outside of the measured time.

use std::time::Duration;

use volery_channel::Channel;
use volery_field::{Fp61, Ring, Z64};
use volery_ot::{convert, softspoken};
use volery_pcg::ggm::{Growth, TreePrgs};
use volery_pcg::reproduction::{receive_trees, send_trees};
use volery_pcg::spcot::Points;
use volery_pcg::tree_batch::TreeBatch;
use volery_pcg::vole::VoleRing;
use volery_pcg::{Kind, Plan, PlanOptions, Security};
use volery_primitives::pages::Buffer;

use super::{Scope, failed, fresh_prg, fresh_session, own_plan};
use crate::measurement::{Key, Sample};
use crate::parties::{Mark, Watch, run_in_pools};
use crate::runner::Cell;
use crate::streams::{self, Correlation as _, Vole};
use crate::{Error, Result};

/// The OT extension under the point functions: as that of the vector OLE.
const OT_FIELD: softspoken::SmallField = softspoken::SmallField::Bits8;

/// What a run makes.
enum Protocol {
    /// A known-index point function: on a half-tree, this program's protocol, or on a GGM tree,
    /// Protocol 3 of the paper.
    Point(Growth),
    /// Vector OLE including setup, with base OTs.
    Vole(Plan),
}

/// The cell of a protocol with the name of its ring; `None` if there is no such protocol.
pub(super) fn cell(key: &Key, scope: &Scope) -> Result<Option<Cell>> {
    match key.protocol.rsplit_once('-') {
        Some((name, "fp61")) => cell_over::<Fp61>(name, key, scope),
        Some((name, "z64")) => cell_over::<Z64>(name, key, scope),
        _ => Ok(None),
    }
}

fn cell_over<R: VoleRing>(name: &str, key: &Key, scope: &Scope) -> Result<Option<Cell>> {
    let vole = |security| {
        let options = PlanOptions { total: Some(key.n), security, ..PlanOptions::default() };
        own_plan(Kind::Vole(R::FIELD), &key.link, options).map(Protocol::Vole)
    };
    // And estimates of the seconds of a run, and of the nanoseconds of an entry.
    let (protocol, seconds, each) = match name {
        "spfss-half" => (Protocol::Point(Growth::PseudoCorrelated), 0.0003, 4.0),
        "spfss-ggm" => (Protocol::Point(Growth::Ggm), 0.0003, 4.0),
        "vole-semi-honest" => (vole(Security::SemiHonest)?, 0.03, 30.0),
        "vole-malicious" => (vole(Security::Malicious)?, 0.03, 30.0),
        // Protocol 6 of the paper with its own parameters.
        "vole-paper80" => {
            (Protocol::Vole(Plan::paper80(R::FIELD, key.n).map_err(failed)?), 0.05, 150.0)
        }
        _ => return Ok(None),
    };
    let plan = match &protocol {
        Protocol::Point(_) => None,
        Protocol::Vole(plan) => Some(plan),
    };
    let (own, timeout) = (key.clone(), scope.timeout);
    Ok(Some(Cell {
        key: key.clone(),
        plan: plan.map(Plan::describe),
        security_bits: plan.map(Plan::claimed_bits),
        seconds: seconds + each * 1e-9 * key.n as f64,
        run: Box::new(move || match &protocol {
            Protocol::Point(growth) => {
                // A run before the one that counts: the system finds its memory, which for the
                // first of a size takes longer than all else.
                known_point::<R>(*growth, &own, timeout)?;
                known_point::<R>(*growth, &own, timeout)
            }
            Protocol::Vole(plan) => vector_ole::<R>(plan, &own, timeout),
        }),
    }))
}

/// Measures `work`, from when both parties are ready. The one phase is `total`.
fn timed<T>(
    outputs: u64,
    channel: &mut Channel,
    work: impl FnOnce(&mut Channel) -> Result<T>,
) -> Result<(Vec<Mark>, T)> {
    let mut watch = Watch::start(channel)?;
    let made = work(channel)?;
    watch.mark("total", outputs, channel);
    Ok((watch.stop(channel)?, made))
}

fn vector_ole<R: VoleRing>(plan: &Plan, key: &Key, timeout: Duration) -> Result<Sample> {
    let session = fresh_session()?;
    let (_, sample) = streams::run(key, timeout, |role, channel| {
        let rng = fresh_prg()?;
        let (marks, outputs) = timed(key.n, channel, |channel| {
            let mut party = Vole::<R>::setup(role, plan, session, rng, channel)?;
            party.draw(key.n as usize, channel)?;
            Ok(party.last())
        })?;
        Ok(((), marks, outputs))
    })?;
    Ok(sample)
}

/// A point function on an index that the second party knows, all its values at both parties. The
/// OTs have been set up before.
fn known_point<R: Ring>(growth: Growth, key: &Key, timeout: Duration) -> Result<Sample> {
    let (n, session) = (key.n as usize, fresh_session()?);
    let mut random = fresh_prg()?;
    let alpha = [random.below(key.n) as usize];
    let betas = [R::random(&mut random), R::random(&mut random)];
    let trees = (TreeBatch::regular(1, n), TreePrgs::growing(growth, session, 0));
    let trees = (&trees.0, &trees.1);
    let ((sent, r), (received, m)) = run_in_pools(
        &key.link,
        key.threads,
        timeout,
        |channel| {
            let mut rng = fresh_prg()?;
            let seed = rng.fork("ot");
            let cot = softspoken::Sender::setup(None, OT_FIELD, session, seed, channel)?;
            let mut ot = convert::Sender::new(cot, session);
            let mut leaves = Buffer::zeroed(n);
            timed(key.n, channel, |channel| {
                let (none, beta) = (Points::Chosen(&[]), &betas[..1]);
                send_trees(trees, none, beta, &mut leaves, &mut rng, &mut ot, channel)?;
                Ok(leaves)
            })
        },
        |channel| {
            let cot = softspoken::Receiver::setup(OT_FIELD, session, fresh_prg()?, channel)?;
            let mut ot = convert::Receiver::new(cot, session);
            let mut leaves = Buffer::zeroed(n);
            timed(key.n, channel, |channel| {
                let (chosen, beta) = (Points::Chosen(&alpha), &betas[1..]);
                receive_trees(trees, chosen, beta, &mut leaves, &mut ot, channel)?;
                Ok(leaves)
            })
        },
    )?;
    let at = |i| if i == alpha[0] { betas[0] + betas[1] } else { R::ZERO };
    if !(0..n).all(|i| r[i] - m[i] == at(i)) {
        return Err(Error::protocol(format_args!("{key}: the result is wrong")));
    }
    Ok(Sample::of([sent, received]))
}

#[cfg(test)]
mod tests {
    use super::super::Size;
    use super::*;

    /// Every protocol over every ring; the run checks its result.
    #[test]
    fn small_runs() {
        let scope = Scope { size: Size::Quick, threads: 1, timeout: Duration::from_secs(60) };
        let voles = [("semi-honest", 128), ("malicious", 128), ("paper80", 60)];
        let voles = voles.map(|(name, bits)| (format!("vole-{name}"), Some(bits)));
        let points = ["half", "ggm"].map(|name| (format!("spfss-{name}"), None));
        for (name, bits) in points.into_iter().chain(voles) {
            for ring in ["fp61", "z64"] {
                if (&name[..], ring) == ("vole-malicious", "z64") {
                    continue;
                }
                let key = Key::example(&format!("{name}-{ring}"), 1 << 10);
                let cell = cell(&key, &scope).expect("there are parameters").expect("it exists");
                let sample = (cell.run)().expect("the result is right");
                assert_eq!((sample.phases.len(), sample.phases[0].outputs), (1, 1 << 10));
                match bits {
                    None => assert_eq!(sample.messages(), 2),
                    Some(_) => assert!(sample.messages() >= 3),
                }
                assert_eq!(cell.security_bits, bits, "{key}");
            }
        }
    }
}
