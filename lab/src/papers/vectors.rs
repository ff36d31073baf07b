//! The protocols of *Distributed Vector-OLE* (CCS 2019), section 8: point functions and vector OLE,
//! both parties' outputs compared in full outside of the measured time.

use volery_channel::{Channel, SessionId};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_ot::{convert, softspoken};
use volery_pcg::ggm::{Growth, TreePrgs};
use volery_pcg::spcot::{self, Points};
use volery_pcg::tree_batch::TreeBatch;
use volery_pcg::vole::{self, VoleRing};
use volery_pcg::{Kind, Plan, PlanOptions, Protocol as PlanProtocol, Security};
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;

use super::{Scope, failed, fresh_prg, fresh_session};
use crate::baselines::dpf::{self, Input, Ots};
use crate::baselines::dvole::{self, Batching};
use crate::baselines::gilboa::{self, Multiply};
use crate::baselines::kary::{self, Arity};
use crate::measurement::{Key, Sample};
use crate::parties::{Mark, Watch, run_in_pools};
use crate::runner::{Cell, Forecast};
use crate::{Error, Link, Result};

/// The OT extension under the point functions: as that of the vector OLE.
const OT_FIELD: softspoken::SmallField = softspoken::SmallField::Bits8;

/// Leaves of each tree that `trees` protocols grow; the length of a run is a multiple of it.
pub(super) const TREE: usize = 1 << 13;

/// A protocol of ours, or a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// A known-index point function on a half-tree: this program's protocol.
    Half,
    /// Protocol 3 of the paper, on a GGM tree.
    Ggm,
    /// The distributed point function, with an index that neither party knows.
    Dpf,
    /// Many known-index point functions on half-trees, or on GGM trees of an arity.
    Trees(Option<Arity>),
    /// Vector OLE including setup: this program's protocol, 128 bits.
    Vole(Security),
    /// Protocol 6 of the paper with its own parameters, 80 bits by its count.
    Paper80,
    /// Multiplication alone.
    Gilboa,
    /// Protocol 6 over a slower way to share a multi-point function, parameters of the paper.
    Slow(Batching),
}

impl Protocol {
    /// By its name among the results, without the ring.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "spfss-half" => Self::Half,
            "spfss-ggm" => Self::Ggm,
            "dpf" => Self::Dpf,
            "trees-half" => Self::Trees(None),
            "vole-semi-honest" => Self::Vole(Security::SemiHonest),
            "vole-malicious" => Self::Vole(Security::Malicious),
            "vole-paper80" => Self::Paper80,
            "gilboa" => Self::Gilboa,
            "whole-domain" => Self::Slow(Batching::WholeDomain),
            "floram" => Self::Slow(Batching::Floram),
            other => {
                let children: usize = other.strip_prefix("trees-")?.parse().ok()?;
                let mut all = Arity::ALL.into_iter();
                Self::Trees(Some(all.find(|arity| arity.children() == children)?))
            }
        })
    }

    fn plan<R: VoleRing>(self, n: u64, link: &Link) -> Result<Option<Plan>> {
        match self {
            Self::Vole(security) => {
                let options = PlanOptions {
                    total: Some(n),
                    security,
                    link: link.for_plan(),
                    protocol: PlanProtocol::Primal,
                    ..PlanOptions::default()
                };
                Plan::new(Kind::Vole(R::FIELD), &options).map(Some)
            }
            Self::Paper80 => Plan::paper80(R::FIELD, n).map(Some),
            _ => Ok(None),
        }
        .map_err(failed)
    }

    /// The cost of a run with `n` entries over `R`: an estimate of the time, a lower bound of the
    /// traffic.
    fn forecast<R: VoleRing + Multiply>(self, n: u64) -> Forecast {
        let levels = f64::from(n.max(2).ilog2());
        let entries = n as f64;
        let set = || slow_plan(n, Batching::Floram).set;
        // As sent by our own multiplication, which is the base of our vector OLE.
        let own_product = f64::from(R::BITS) * R::BYTES as f64;
        let products = |count: usize| R::bytes(count) as f64;
        let (seconds, bytes, round_trips) = match self {
            Self::Half | Self::Ggm => (0.0003 + 4e-9 * entries, 500.0 + 16.0 * levels, 1.0),
            Self::Dpf => (0.0015 + 9e-9 * entries, 2000.0 + 64.0 * levels, levels + 1.0),
            Self::Trees(_) => (0.01 + 4e-9 * entries, 400.0 * entries / TREE as f64, 1.0),
            Self::Vole(_) => (0.03 + 30e-9 * entries, own_product * entries.min(3900.0), 4.0),
            Self::Paper80 => {
                let (seconds, base) = (0.03 + 100e-9 * set().n as f64, set().k + set().t);
                (seconds, own_product * base as f64, 4.0)
            }
            Self::Gilboa => {
                let each = if R::bytes(1) < 488 { 450e-9 } else { 700e-9 };
                (0.01 + each * entries, products(n as usize), 2.0)
            }
            Self::Slow(Batching::WholeDomain) => {
                let seconds = 0.035 + 3.5e-9 * set().n as f64 * set().t as f64;
                (seconds, products(set().k + set().t), 3.0)
            }
            Self::Slow(Batching::Floram) => {
                (0.045 + 180e-9 * set().n as f64, products(set().k + set().t), 13.0)
            }
        };
        // The work includes the cost of a run that does not depend on its length.
        Forecast { seconds, bytes, round_trips, work: seconds }
    }
}

/// The plan of a baseline of Protocol 6; no figure has a vector above 2^24.
fn slow_plan(n: u64, batching: Batching) -> dvole::Plan {
    let n = usize::try_from(n).expect("a length fits into memory");
    dvole::Plan::paper80(n, batching).expect("lengths are at most 2^24")
}

/// The cell of a protocol with the name of its ring; `None` if there is no such protocol.
pub(super) fn cell(key: &Key, scope: &Scope) -> Result<Option<Cell>> {
    let Some((name, ring)) = key.protocol.rsplit_once('-') else {
        return Ok(None);
    };
    let Some(protocol) = Protocol::named(name) else {
        return Ok(None);
    };
    match ring {
        "fp61" => cell_over::<Fp61>(protocol, key, scope).map(Some),
        "z64" => cell_over::<Z64>(protocol, key, scope).map(Some),
        "gf128" => cell_over::<Gf128>(protocol, key, scope).map(Some),
        _ => Ok(None),
    }
}

/// A point function is run once before the run that counts: the system finds its memory, which for
/// the first of a size takes longer than all else.
fn cell_over<R: VoleRing + Multiply>(protocol: Protocol, key: &Key, scope: &Scope) -> Result<Cell> {
    let plan = protocol.plan::<R>(key.n, &key.link)?;
    let (words, bits) = match (protocol, &plan) {
        (Protocol::Slow(batching), _) => {
            let set = slow_plan(key.n, batching).set;
            (Some(set.name.to_owned()), Some(set.claim))
        }
        (_, Some(plan)) => (Some(plan.describe()), Some(plan.claimed_bits())),
        (_, None) => (None, None),
    };
    let run = Run { protocol, plan, key: key.clone(), scope: *scope };
    let point =
        matches!(protocol, Protocol::Half | Protocol::Ggm | Protocol::Dpf | Protocol::Trees(_));
    Ok(Cell {
        key: key.clone(),
        plan: words,
        security_bits: bits,
        forecast: protocol.forecast::<R>(key.n),
        run: Box::new(move || {
            if point {
                run.once::<R>()?;
            }
            run.once::<R>()
        }),
    })
}

/// The protocol and settings to run.
struct Run {
    protocol: Protocol,
    plan: Option<Plan>,
    key: Key,
    scope: Scope,
}

/// A party's times and outputs.
type Measured<T> = (Vec<Mark>, T);

/// Measures `work`, from when both parties are ready. The one phase is `total`.
fn timed<T>(
    outputs: usize,
    channel: &mut Channel,
    work: impl FnOnce(&mut Channel) -> Result<T>,
) -> Result<Measured<T>> {
    let mut watch = Watch::start(channel)?;
    let made = work(channel)?;
    watch.mark("total", outputs as u64, channel);
    Ok((watch.stop(channel)?, made))
}

impl Run {
    fn n(&self) -> usize {
        self.key.n as usize
    }

    /// Runs both parties and checks their outputs.
    fn once<R: VoleRing + Multiply>(&self) -> Result<Sample> {
        match self.protocol {
            Protocol::Dpf => self.distributed_point::<R>(),
            Protocol::Half | Protocol::Ggm => self.known_points::<R>(1, self.n()),
            Protocol::Trees(_) => self.known_points::<R>(self.n() / TREE, TREE),
            _ => self.vector_ole::<R>(),
        }
    }

    fn both<A: Send, B: Send>(
        &self,
        left: impl FnOnce(&mut Channel) -> Result<Measured<A>> + Send,
        right: impl FnOnce(&mut Channel) -> Result<Measured<B>> + Send,
    ) -> Result<(Sample, A, B)> {
        let Key { link, threads, .. } = &self.key;
        let (left, right) = run_in_pools(link, *threads, self.scope.timeout, left, right)?;
        Ok((Sample::of([left.0, right.0]), left.1, right.1))
    }

    /// Refuses a wrong result.
    fn checked(&self, right: bool, sample: Sample) -> Result<Sample> {
        let wrong = || Error::protocol(format_args!("{}: the result is wrong", self.key));
        right.then_some(sample).ok_or_else(wrong)
    }

    /// A vector OLE including setup, with base OTs.
    fn vector_ole<R: VoleRing + Multiply>(&self) -> Result<Sample> {
        let (n, session) = (self.n(), fresh_session()?);
        let (sample, (u, v), (x, w)) = self.both(
            |channel| timed(n, channel, |channel| self.holder_of_u::<R>(session, channel)),
            |channel| timed(n, channel, |channel| self.holder_of_x::<R>(session, channel)),
        )?;
        let lengths = [u.len(), v.len(), w.len()] == [n; 3];
        self.checked(lengths && (0..n).all(|i| w[i] == u[i] * x + v[i]), sample)
    }

    /// The vectors `u` and `v`.
    fn holder_of_u<R: VoleRing + Multiply>(
        &self,
        session: SessionId,
        channel: &mut Channel,
    ) -> Result<(Vec<R>, Vec<R>)> {
        let (n, mut rng) = (self.n(), fresh_prg()?);
        Ok(match (self.protocol, &self.plan) {
            (Protocol::Slow(batching), _) => {
                let plan = slow_plan(self.key.n, batching);
                dvole::send::<R>(&plan, session, &mut rng, channel)?
            }
            (_, None) => gilboa::send::<R>(n, session, &mut rng, channel)?,
            (_, Some(plan)) => {
                let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
                let mut sender = vole::Sender::<R>::setup(plan, session, rng, channel)?;
                sender.extend(&mut u, &mut v, channel)?;
                (u, v)
            }
        })
    }

    /// A random `x`, and `w = u*x + v`.
    fn holder_of_x<R: VoleRing + Multiply>(
        &self,
        session: SessionId,
        channel: &mut Channel,
    ) -> Result<(R, Vec<R>)> {
        let (n, mut rng) = (self.n(), fresh_prg()?);
        Ok(match (self.protocol, &self.plan) {
            (Protocol::Slow(batching), _) => {
                let plan = slow_plan(self.key.n, batching);
                dvole::receive::<R>(&plan, session, &mut rng, channel)?
            }
            (_, None) => gilboa::receive::<R>(n, session, &mut rng, channel)?,
            (_, Some(plan)) => {
                let mut w = vec![R::ZERO; n];
                let mut receiver = vole::Receiver::<R>::setup(plan, None, session, rng, channel)?;
                receiver.extend(&mut w, channel)?;
                (receiver.x(), w)
            }
        })
    }

    /// Point functions on indices that the second party knows, all values at both parties. The OTs
    /// have been set up before.
    fn known_points<R: Ring>(&self, trees: usize, leaves_each: usize) -> Result<Sample> {
        let (n, session) = (trees * leaves_each, fresh_session()?);
        let points = Point::<R>::random(trees, leaves_each, &mut fresh_prg()?);
        let growth = match self.protocol {
            Protocol::Ggm => Growth::Ggm,
            _ => Growth::PseudoCorrelated,
        };
        let half = (TreeBatch::regular(trees, leaves_each), TreePrgs::growing(growth, session, 0));
        let half = (&half.0, &half.1);
        let arity = match self.protocol {
            Protocol::Trees(arity) => arity,
            _ => None,
        };
        let kary = arity.map(|arity| {
            let batch = kary::punctured_ot::TreeBatch::new(trees, leaves_each, arity);
            (batch, kary::TreePrgs::new(session, 0, arity))
        });
        let betas = |side: usize| points.iter().map(|p| p.betas[side]).collect::<Vec<_>>();
        let (sample, r, m) = self.both(
            |channel| {
                let mut rng = fresh_prg()?;
                let seed = rng.fork("ot");
                let cot = softspoken::Sender::setup(None, OT_FIELD, session, seed, channel)?;
                let mut ot = convert::Sender::new(cot, session);
                let (beta, mut leaves) = (betas(0), Buffer::zeroed(n));
                timed(n, channel, |channel| {
                    if let Some((batch, prgs)) = &kary {
                        let trees = (batch, prgs);
                        kary::spfss::send(trees, &beta, &mut leaves, &mut rng, &mut ot, channel)?;
                    } else {
                        let none = Points::Chosen(&[]);
                        spcot::send(half, none, &beta, &mut leaves, &mut rng, &mut ot, channel)?;
                    }
                    Ok(leaves)
                })
            },
            |channel| {
                let cot = softspoken::Receiver::setup(OT_FIELD, session, fresh_prg()?, channel)?;
                let mut ot = convert::Receiver::new(cot, session);
                let (beta, mut leaves) = (betas(1), Buffer::zeroed(n));
                let alphas: Vec<_> = points.iter().map(|point| point.alpha).collect();
                timed(n, channel, |channel| {
                    if let Some((batch, prgs)) = &kary {
                        let trees = (batch, prgs);
                        kary::spfss::receive(trees, &alphas, &beta, &mut leaves, &mut ot, channel)?;
                    } else {
                        let chosen = Points::Chosen(&alphas);
                        spcot::receive(half, chosen, &beta, &mut leaves, &mut ot, channel)?;
                    }
                    Ok(leaves)
                })
            },
        )?;
        self.checked(Point::are_shared(&points, leaves_each, &r, &m), sample)
    }

    /// A point function on an index that is shared, all its values at both parties. The OTs have
    /// been set up before.
    fn distributed_point<R: Ring>(&self) -> Result<Sample> {
        let (n, session) = (self.n(), fresh_session()?);
        let batch = &TreeBatch::regular(1, n);
        let mut random = fresh_prg()?;
        let points = Point::<R>::random(1, n, &mut random);
        let (point, mask) = (&points[0], random.below(n as u64) as usize);
        let party = |first: bool, channel: &mut Channel| {
            let mut rng = fresh_prg()?;
            let mut ots = ots_both_ways(first, session, &mut rng, channel)?;
            let input = Input {
                alphas: &[if first { mask } else { mask ^ point.alpha }],
                betas: &[point.betas[usize::from(!first)]],
            };
            let mut leaves = Buffer::zeroed(n);
            let (rng, names) = (&mut rng, (session, 0));
            timed(n, channel, |channel| {
                if first {
                    dpf::first(batch, names, input, &mut leaves, &mut ots, rng, channel)?;
                } else {
                    dpf::second(batch, names, input, &mut leaves, &mut ots, rng, channel)?;
                }
                Ok(leaves)
            })
        };
        let (sample, r, m) =
            self.both(|channel| party(true, channel), |channel| party(false, channel))?;
        self.checked(Point::are_shared(&points, n, &r, &m), sample)
    }
}

/// The nonzero index of a point function, and the parties' shares of its value there.
struct Point<R> {
    alpha: usize,
    betas: [R; 2],
}

impl<R: Ring> Point<R> {
    fn random(count: usize, leaves: usize, random: &mut Prg) -> Vec<Self> {
        let mut point = || Self {
            alpha: random.below(leaves as u64) as usize,
            betas: [R::random(random), R::random(random)],
        };
        (0..count).map(|_| point()).collect()
    }

    /// Whether all differences of the parties' values are those of the functions.
    fn are_shared(points: &[Self], leaves: usize, first: &[R], second: &[R]) -> bool {
        let value = |i: usize| {
            let point = &points[i / leaves];
            if i % leaves == point.alpha { point.betas[0] + point.betas[1] } else { R::ZERO }
        };
        let lengths = [first.len(), second.len()] == [points.len() * leaves; 2];
        lengths && (0..first.len()).all(|i| first[i] - second[i] == value(i))
    }
}

/// OTs for the distributed point function, each way from an extension of its own.
fn ots_both_ways(
    first: bool,
    session: SessionId,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<Ots<softspoken::Sender, softspoken::Receiver>> {
    let sessions = [1, 2].map(|byte| {
        let mut bytes = *session.as_bytes();
        bytes[0] ^= byte;
        SessionId::from_bytes(bytes)
    });
    // The session of the OTs in which the first party is the sender, then of the others.
    let [as_sender, as_receiver] = if first { sessions } else { [sessions[1], sessions[0]] };
    let [send_seed, receive_seed] = ["sender", "receiver"].map(|which| rng.fork(which));
    let send = |channel: &mut Channel| {
        softspoken::Sender::setup(None, OT_FIELD, as_sender, send_seed, channel)
    };
    let receive = |channel: &mut Channel| {
        softspoken::Receiver::setup(OT_FIELD, as_receiver, receive_seed, channel)
    };
    let (sent, received) = if first {
        let sent = send(channel)?;
        (sent, receive(channel)?)
    } else {
        let received = receive(channel)?;
        (send(channel)?, received)
    };
    Ok(Ots {
        sender: convert::Sender::new(sent, as_sender),
        receiver: convert::Receiver::new(received, as_receiver),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Size;
    use super::*;

    const SCOPE: Scope = Scope { size: Size::Quick, threads: 1, timeout: Duration::from_secs(60) };

    fn small(protocol: &str, n: u64) -> Cell {
        let key = Key { protocol: protocol.to_owned(), n, link: Link::Loopback, threads: 1 };
        cell(&key, &SCOPE).expect("there are parameters").expect("it exists")
    }

    /// Every protocol over every ring; the run checks its result.
    #[test]
    fn small_runs() {
        for ring in ["fp61", "z64", "gf128"] {
            let signs = u64::from(ring != "gf128");
            for name in [
                "spfss-half",
                "spfss-ggm",
                "dpf",
                "vole-semi-honest",
                "vole-malicious",
                "vole-paper80",
                "gilboa",
                "whole-domain",
                "floram",
            ] {
                if (name, ring) == ("vole-malicious", "z64") {
                    continue;
                }
                let cell = small(&format!("{name}-{ring}"), 1 << 10);
                let sample = (cell.run)().expect("the result is right");
                assert_eq!((sample.phases.len(), sample.phases[0].outputs), (1, 1 << 10));
                // Over gf128 the vector OLE has another base, which sends less.
                if ring != "gf128" || name == "gilboa" {
                    assert!(sample.bytes() as f64 >= cell.forecast.bytes, "{}", cell.key);
                }
                match name {
                    "spfss-half" | "spfss-ggm" => assert_eq!(sample.messages(), 2),
                    "dpf" => assert_eq!(sample.messages(), 2 * (10 + 2) - 1 + signs),
                    _ => assert!(sample.messages() >= 3),
                }
                let bits = match name {
                    "vole-semi-honest" | "vole-malicious" => Some(128),
                    "vole-paper80" | "whole-domain" | "floram" => Some(60),
                    _ => None,
                };
                // Over gf128 the paper has no sets of its own.
                assert!(cell.security_bits == bits || ring == "gf128", "{}", cell.key);
            }
        }
        for arity in ["half", "2", "4", "8", "16"] {
            let sample = (small(&format!("trees-{arity}-z64"), 2 * TREE as u64).run)();
            assert_eq!(sample.expect("the result is right").messages(), 2);
        }
    }

    #[test]
    fn wrong_shares_are_no_point_function() {
        let one = Fp61::ONE;
        let points = [Point { alpha: 1, betas: [one, one] }];
        let values = |at: usize| {
            let mut values = [Fp61::ZERO; 3];
            values[at] = one + one;
            values
        };
        let zero = [Fp61::ZERO; 3];
        assert!(Point::are_shared(&points, 3, &values(1), &zero));
        assert!(!Point::are_shared(&points, 3, &values(2), &zero));
        assert!(!Point::are_shared(&points, 3, &zero, &zero));
        assert!(!Point::are_shared(&points, 3, &values(1), &zero[..2]));
    }

    /// The numbers that the findings of the data files have.
    #[test]
    fn products_and_sets_of_the_findings() {
        assert_eq!(Protocol::Gilboa.forecast::<Fp61>(1000).bytes as u64, 488_000);
        assert_eq!(Protocol::Gilboa.forecast::<Z64>(1000).bytes as u64, 260_000);
        assert_eq!(slow_plan(1, Batching::Floram).set.k, 3482);
        let vole = |n| Protocol::Vole(Security::SemiHonest).forecast::<Z64>(n).bytes;
        assert_eq!(vole(2) - vole(1), 512.0);
    }
}
