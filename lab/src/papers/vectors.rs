//! The protocols of *Distributed Vector-OLE* (CCS 2019), section 8: point functions and vector OLE,
//! both parties' outputs compared in full outside of the measured time.

use volery_channel::{Channel, Role, SessionId};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_ot::{convert, softspoken};
use volery_pcg::ggm::{Growth, TreePrgs};
use volery_pcg::reproduction::{receive_trees, send_trees};
use volery_pcg::spcot::Points;
use volery_pcg::tree_batch::TreeBatch;
use volery_pcg::vole::VoleRing;
use volery_pcg::{Kind, Plan, PlanOptions, Protocol as PlanProtocol, Security};
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;

use super::{Scope, failed, fresh_prg, fresh_session};
use crate::baselines::dpf::{self, Input, Ots, Which};
use crate::baselines::dvole::{self, Batching};
use crate::baselines::gilboa::{self, Multiply};
use crate::measurement::{Key, Sample};
use crate::parties::{Mark, Watch, run_in_pools};
use crate::runner::{Cell, Forecast};
use crate::streams::{self, Correlation as _, Outputs, Vole};
use crate::{Error, Link, Result};

/// The OT extension under the point functions: as that of the vector OLE.
const OT_FIELD: softspoken::SmallField = softspoken::SmallField::Bits8;

/// A protocol of ours, or a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// A known-index point function on a half-tree: this program's protocol.
    Half,
    /// Protocol 3 of the paper, on a GGM tree.
    Ggm,
    /// The distributed point function, with an index that neither party knows.
    Dpf,
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
            "vole-semi-honest" => Self::Vole(Security::SemiHonest),
            "vole-malicious" => Self::Vole(Security::Malicious),
            "vole-paper80" => Self::Paper80,
            "gilboa" => Self::Gilboa,
            "whole-domain" => Self::Slow(Batching::WholeDomain),
            "floram" => Self::Slow(Batching::Floram),
            _ => return None,
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
                    // The shipped results were measured with one.
                    instances: Some(1),
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
    let point = matches!(protocol, Protocol::Half | Protocol::Ggm | Protocol::Dpf);
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
            Protocol::Half | Protocol::Ggm => self.known_point::<R>(),
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
        let session = fresh_session()?;
        let (_, sample) = streams::run(&self.key, self.scope.timeout, |role, channel| {
            let work = |channel: &mut Channel| self.outputs::<R>(role, session, channel);
            let (marks, outputs) = timed(self.n(), channel, work)?;
            Ok(((), marks, outputs))
        })?;
        Ok(sample)
    }

    /// The vectors `u` and `v` of the sender; a random `x` and `w = u*x + v` of the receiver.
    fn outputs<R: VoleRing + Multiply>(
        &self,
        role: Role,
        session: SessionId,
        channel: &mut Channel,
    ) -> Result<Outputs<R>> {
        let (n, mut rng) = (self.n(), fresh_prg()?);
        Ok(match (self.protocol, &self.plan, role) {
            (_, Some(plan), _) => {
                let mut party = Vole::<R>::setup(role, plan, session, rng, channel)?;
                party.draw(n, channel)?;
                party.last()
            }
            (Protocol::Slow(batching), ..) => {
                let plan = slow_plan(self.key.n, batching);
                match role {
                    Role::Sender => dvole::send::<R>(&plan, session, &mut rng, channel)?.into(),
                    Role::Receiver => {
                        dvole::receive::<R>(&plan, session, &mut rng, channel)?.into()
                    }
                }
            }
            (.., Role::Sender) => gilboa::send::<R>(n, session, &mut rng, channel)?.into(),
            (.., Role::Receiver) => gilboa::receive::<R>(n, session, &mut rng, channel)?.into(),
        })
    }

    /// A point function on an index that the second party knows, all its values at both parties.
    /// The OTs have been set up before.
    fn known_point<R: Ring>(&self) -> Result<Sample> {
        let (n, session) = (self.n(), fresh_session()?);
        let point = Point::<R>::random(n, &mut fresh_prg()?);
        let growth = match self.protocol {
            Protocol::Ggm => Growth::Ggm,
            _ => Growth::PseudoCorrelated,
        };
        let trees = (TreeBatch::regular(1, n), TreePrgs::growing(growth, session, 0));
        let trees = (&trees.0, &trees.1);
        let (sample, r, m) = self.both(
            |channel| {
                let mut rng = fresh_prg()?;
                let seed = rng.fork("ot");
                let cot = softspoken::Sender::setup(None, OT_FIELD, session, seed, channel)?;
                let mut ot = convert::Sender::new(cot, session);
                let (beta, mut leaves) = (&point.betas[..1], Buffer::zeroed(n));
                timed(n, channel, |channel| {
                    let none = Points::Chosen(&[]);
                    send_trees(trees, none, beta, &mut leaves, &mut rng, &mut ot, channel)?;
                    Ok(leaves)
                })
            },
            |channel| {
                let cot = softspoken::Receiver::setup(OT_FIELD, session, fresh_prg()?, channel)?;
                let mut ot = convert::Receiver::new(cot, session);
                let (beta, mut leaves) = (&point.betas[1..], Buffer::zeroed(n));
                let alpha = [point.alpha];
                timed(n, channel, |channel| {
                    let chosen = Points::Chosen(&alpha);
                    receive_trees(trees, chosen, beta, &mut leaves, &mut ot, channel)?;
                    Ok(leaves)
                })
            },
        )?;
        self.checked(point.is_shared(n, &r, &m), sample)
    }

    /// A point function on an index that is shared, all its values at both parties. The OTs have
    /// been set up before.
    fn distributed_point<R: Ring>(&self) -> Result<Sample> {
        let (n, session) = (self.n(), fresh_session()?);
        let batch = &TreeBatch::regular(1, n);
        let mut random = fresh_prg()?;
        let point = Point::<R>::random(n, &mut random);
        let mask = random.below(n as u64) as usize;
        let party = |first: bool, channel: &mut Channel| {
            let mut rng = fresh_prg()?;
            let mut ots = ots_both_ways(first, session, &mut rng, channel)?;
            let input = Input {
                which: if first { Which::First } else { Which::Second },
                alphas: &[if first { mask } else { mask ^ point.alpha }],
                betas: &[point.betas[usize::from(!first)]],
            };
            let mut leaves = Buffer::zeroed(n);
            let (rng, names) = (&mut rng, (session, 0));
            timed(n, channel, |channel| {
                dpf::run(batch, names, input, &mut leaves, &mut ots, rng, channel)?;
                Ok(leaves)
            })
        };
        let (sample, r, m) =
            self.both(|channel| party(true, channel), |channel| party(false, channel))?;
        self.checked(point.is_shared(n, &r, &m), sample)
    }
}

/// The nonzero index of a point function, and the parties' shares of its value there.
struct Point<R> {
    alpha: usize,
    betas: [R; 2],
}

impl<R: Ring> Point<R> {
    fn random(leaves: usize, random: &mut Prg) -> Self {
        Self {
            alpha: random.below(leaves as u64) as usize,
            betas: [R::random(random), R::random(random)],
        }
    }

    /// Whether all differences of the parties' values are those of the function.
    fn is_shared(&self, leaves: usize, first: &[R], second: &[R]) -> bool {
        let at = |i| if i == self.alpha { self.betas[0] + self.betas[1] } else { R::ZERO };
        let lengths = [first.len(), second.len()] == [leaves; 2];
        lengths && (0..leaves).all(|i| first[i] - second[i] == at(i))
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
        cell(&Key::example(protocol, n), &SCOPE).expect("there are parameters").expect("it exists")
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
    }

    #[test]
    fn wrong_shares_are_no_point_function() {
        let one = Fp61::ONE;
        let point = Point { alpha: 1, betas: [one, one] };
        let values = |at: usize| {
            let mut values = [Fp61::ZERO; 3];
            values[at] = one + one;
            values
        };
        let zero = [Fp61::ZERO; 3];
        assert!(point.is_shared(3, &values(1), &zero));
        assert!(!point.is_shared(3, &values(2), &zero));
        assert!(!point.is_shared(3, &zero, &zero));
        assert!(!point.is_shared(3, &values(1), &zero[..2]));
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
