//! Vector-OLE by Protocol 6 of the 2019 paper over the slower ways to share a multi-point function:
//! the first two baselines of its section 8.3.2. The pipeline of `volery-pcg` takes Protocol 5 on
//! known indices instead.
//!
//! ```text
//! Sender: places S, values y              Receiver: x
//! 1. ------------- base OTs and SoftSpoken setup; for FLORAM in both directions -------------
//! 2. a random in R^k; z, the value of each tree (zero where it has no point)
//!    ------------- (a, z) times x by crate::baselines::gilboa: b, v_l ------------->  c = a*x + b, w_l = z_l*x + v_l
//! 3. ------------- the multi-point function of z*x at S: Batching -------------
//!    m, with parts -v_l of the values     r, with parts w_l:  r - m = mu*x
//! 4. u = a*C + mu,  v = b*C + m           w = c*C + r
//! ```
//!
//! One round, no bootstrapping: as in the paper, the base is made by multiplication alone.
//!
//! Security: semi-honest, under LPN with the instance of the plan.
//!
//! Cost: two or three setups, `k` products and one more for each tree, and the multi-point
//! function's.

use rayon::prelude::*;
use volery_channel::{Channel, Result, SessionId};
use volery_ot::{CotReceiver, CotSender, convert, softspoken};
use volery_pcg::lpn::{LocalCode, LpnSet, Pair, sets};
use volery_pcg::mpcot::{Cells, Layout};
use volery_pcg::{Noise, vole::VoleRing};
use volery_primitives::{Block, pages::Buffer, prg::Prg, ro::RandomOracle};
use zeroize::Zeroizing;

use crate::baselines::dpf::{self, Input, Ots, Which};
use crate::baselines::gilboa::Multiply;
use crate::baselines::whole_domain;

/// The protocol that shares the multi-point function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Batching {
    /// A distributed point function in every bucket, [`crate::baselines::dpf`] for all in lockstep:
    /// the proposal of Boyle, Couteau, Gilboa and Ishai (*Compressing Vector OLE*, CCS 2018), with
    /// the cuckoo arrangement of the 2019 paper; its first baseline. It is Protocol 5 with this
    /// protocol for `SPFSS.Gen`: an index that may be shared takes `h + 2` messages each way for
    /// `h` levels, where one that is known takes one.
    Floram,
    /// A known-index one over the whole domain for each point: [`crate::baselines::whole_domain`].
    WholeDomain,
}

/// The parameters that both parties agreed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The LPN instance, with uniform noise.
    pub(crate) set: &'static LpnSet,
    pub(crate) n: usize,
    pub(crate) batching: Batching,
}

/// The OT extension: as that of `volery_pcg::vole`.
const OT_FIELD: softspoken::SmallField = softspoken::SmallField::Bits8;

/// `eta` of section 8.2 of the paper.
const ETA: u32 = 40;

/// Outputs that one task expands.
const TASK: usize = 48 * 64;

impl Plan {
    /// With the smallest instance of the paper's Table 1, of 80 bits, that is long enough; none
    /// above 2^24.
    pub(crate) fn paper80(n: usize, batching: Batching) -> Option<Self> {
        let paper = |set: &&LpnSet| set.name.starts_with("paper80");
        let set = sets().iter().filter(paper).find(|set| set.n >= n)?;
        Some(Self { set, n, batching })
    }

    /// The trees of the arrangement, public.
    fn layout(&self, session: SessionId) -> Option<Layout> {
        assert_eq!(self.set.noise, Noise::Uniform, "noise anywhere");
        assert!(self.n <= self.set.n, "the instance is long enough");
        let key = public("bins", session);
        match self.batching {
            Batching::Floram => {
                let cells = Cells::Exact;
                Some(Layout::cuckoo(self.set.n, self.set.t, ETA, key, cells))
            }
            Batching::WholeDomain => None,
        }
    }

    fn code(&self, session: SessionId) -> LocalCode {
        LocalCode::new(public("code", session), self.set.k)
    }
}

fn oracle(part: &str, session: SessionId) -> RandomOracle {
    let mut oracle = RandomOracle::new("volery experiments dvole: part");
    oracle.absorb(session.as_bytes()).absorb(part.as_bytes());
    oracle
}

fn public(part: &str, session: SessionId) -> Block {
    oracle(part, session).finish_block()
}

fn sub(part: &str, session: SessionId) -> SessionId {
    SessionId::from_bytes(oracle(part, session).finish32())
}

/// The holder of `u` and `v`.
pub(crate) fn send<R: VoleRing + Multiply>(
    plan: &Plan,
    session: SessionId,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<(Vec<R>, Vec<R>)> {
    let layout = plan.layout(session);
    let part = |name| sub(name, session);
    let seed = rng.fork("OTs");
    let cot = softspoken::Receiver::setup(OT_FIELD, part("ot"), seed, channel)?; // step 1
    let mut receiver = convert::Receiver::new(cot, part("ot hash"));
    let places = places(plan.set, rng);
    let mut noise: Vec<_> = places.iter().map(|place| (*place, R::random_noise(rng))).collect();
    let assignment = layout.as_ref().map(|layout| layout.assign(&places));
    let values: Vec<_> = match &assignment {
        Some(assignment) => assignment
            .points
            .iter()
            .map(|point| point.map_or(R::ZERO, |point| noise[point].1))
            .collect(),
        None => noise.iter().map(|(_, value)| *value).collect(),
    };
    let k = plan.set.k;
    let mut u = Zeroizing::new(vec![R::ZERO; k + values.len()]);
    R::random_slice(rng, &mut u[..k]);
    u[k..].copy_from_slice(&values);
    let mut v = Zeroizing::new(vec![R::ZERO; u.len()]);
    R::multiply_sender(&u, &mut v, part("base"), rng, channel)?; // step 2
    let betas = Zeroizing::new(v[k..].iter().map(|v| -*v).collect::<Vec<R>>());
    let m; // step 3
    match (&layout, &assignment) {
        (Some(layout), Some(assignment)) => {
            let seed = rng.fork("OTs the other way");
            let cot = softspoken::Sender::setup(None, OT_FIELD, part("ot back"), seed, channel)?;
            let sender = convert::Sender::new(cot, part("ot back hash"));
            let mut ots = Ots { sender, receiver };
            let input = Input { which: Which::Second, alphas: &assignment.alphas, betas: &betas };
            m = in_buckets(layout, input, part("trees"), rng, &mut ots, channel)?;
            for point in &assignment.dropped {
                noise[*point].1 = R::ZERO;
            }
        }
        _ => {
            let mut sums = Buffer::zeroed(plan.set.n);
            let trees = part("trees");
            whole_domain::value_holder(&places, &betas, trees, &mut sums, &mut receiver, channel)?;
            m = sums;
        }
    }
    // step 4
    let mut base = Buffer::zeroed(k);
    for (pair, (u, v)) in base.iter_mut().zip(u.iter().zip(v.iter())) {
        *pair = Pair::new(*u, *v);
    }
    let code = plan.code(session);
    let (mut u, mut v) = (vec![R::ZERO; plan.n], vec![R::ZERO; plan.n]);
    let outputs = u.par_chunks_mut(TASK).zip(v.par_chunks_mut(TASK));
    outputs.zip(m.par_chunks(TASK)).enumerate().for_each(|(task, ((u, v), m))| {
        let rows = base.as_chunks::<1>().0;
        code.encode_over(rows, task * TASK, u.len(), |_, i, sums: [&mut [R]; 2]| {
            let to = i + sums[0].len();
            u[i..to].copy_from_slice(sums[0]);
            R::add_slice(sums[1], &m[i..to]);
            v[i..to].copy_from_slice(sums[1]);
        });
    });
    for (place, value) in noise {
        if let Some(u) = u.get_mut(place) {
            *u += value;
        }
    }
    Ok((u, v))
}

/// The holder of a random `x`, who gets `w = u*x + v`; as the peer of [`send`].
pub(crate) fn receive<R: VoleRing + Multiply>(
    plan: &Plan,
    session: SessionId,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<(R, Vec<R>)> {
    let layout = plan.layout(session);
    let part = |name| sub(name, session);
    let x = R::random(rng);
    let seed = rng.fork("OTs");
    let cot = softspoken::Sender::setup(None, OT_FIELD, part("ot"), seed, channel)?; // step 1
    let mut sender = convert::Sender::new(cot, part("ot hash"));
    let k = plan.set.k;
    let trees = layout.as_ref().map_or(plan.set.t, |layout| layout.batch().trees());
    let mut base = Buffer::zeroed(k + trees);
    x.multiply_receiver(&mut base, part("base"), rng, channel)?; // step 2
    let betas = &base[k..];
    let r = match &layout {
        Some(layout) => {
            let seed = rng.fork("OTs the other way");
            let cot = softspoken::Receiver::setup(OT_FIELD, part("ot back"), seed, channel)?;
            let receiver = convert::Receiver::new(cot, part("ot back hash"));
            let mut ots = Ots { sender, receiver };
            // Its shares of the places are zero.
            let input = Input { which: Which::First, alphas: &vec![0; trees], betas };
            in_buckets(layout, input, part("trees"), rng, &mut ots, channel)?
        }
        None => {
            let mut sums = Buffer::zeroed(plan.set.n);
            let trees = part("trees");
            whole_domain::key_holder(betas, trees, &mut sums, rng, &mut sender, channel)?;
            sums
        }
    }; // step 3
    let code = plan.code(session);
    let mut w = vec![R::ZERO; plan.n];
    let outputs = w.par_chunks_mut(TASK).zip(r.par_chunks(TASK));
    outputs.enumerate().for_each(|(task, (w, r))| {
        let rows = base[..k].as_chunks::<1>().0;
        code.encode_over(rows, task * TASK, w.len(), |_, i, [sums]: [&mut [R]; 1]| {
            let to = i + sums.len();
            R::add_slice(sums, &r[i..to]);
            w[i..to].copy_from_slice(sums);
        });
    }); // step 4
    Ok((x, w))
}

/// A party's values of the multi-point function of [`Batching::Floram`], at the points of the
/// domain and at some behind it: the sums over the buckets.
fn in_buckets<R: VoleRing, S: CotSender, C: CotReceiver>(
    layout: &Layout,
    input: Input<'_, R>,
    session: SessionId,
    rng: &mut Prg,
    ots: &mut Ots<S, C>,
    channel: &mut Channel,
) -> Result<Buffer<R>> {
    let mut leaves = layout.leaves(None);
    dpf::run(layout.batch(), (session, 0), input, &mut leaves, ots, rng, channel)?;
    let mut sums = Buffer::zeroed(layout.n().next_multiple_of(layout.tile()));
    layout.add_up(&leaves, 0, &mut sums);
    Ok(sums)
}

/// `t` distinct positions of the instance, ascending.
fn places(set: &LpnSet, rng: &mut Prg) -> Zeroizing<Vec<usize>> {
    let mut places = Zeroizing::new(Vec::with_capacity(set.t));
    while places.len() < set.t {
        for _ in places.len()..set.t {
            places.push(rng.below(set.n as u64) as usize);
        }
        places.sort_unstable();
        places.dedup();
    }
    places
}
