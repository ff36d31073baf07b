//! Malicious peers, against the honest code of the other party, at the message layer.
//!
//! | | deviating party | deviation |
//! |---|---|---|
//! | [`trees`] | key holder | another `delta` or `x`, wrong sums, guesses at the places of the noise |
//! | [`guesses`] | key holder | all places of a small tree against all guesses |
//! | [`equality`] | both | false messages of the check |
//! | [`encodings`] | both | values that are not ring elements |
//! | [`choices`] | value holder | false places, false OTs |
//! | [`low`] | both | in the coin for the code of dual LPN, and around it |
//! | [`leak`] | value holder | reads `delta` off a tree, where the tree is of the wrong kind |
//! | [`products`] | value holder | in the base of a vector OLE |
//! | [`soak`] | none | honest rounds |
//!
//! A [`MaliciousKeyHolder`] follows the protocol except for one deviation. For false messages of
//! the check the honest code runs over a transport that changes its messages, because nothing
//! hashes these messages.
//!
//! Every case runs twice: with a base that a dealer made, and, through [`Setup::Real`], as a user
//! would meet it.

/// Calls a function once for every kind of correlation that malicious security has.
macro_rules! of_each_kind {
    ($run:ident($($argument:expr),*)) => {
        of_each_named_kind!($run($($argument),*));
        $run::<$crate::correlation::Subfield<volery_field::Fp31x4, volery_field::Fp31>>(
            $($argument),*
        );
    };
}

/// Likewise, of those that have low communication.
macro_rules! of_each_named_kind {
    ($run:ident($($argument:expr),*)) => {
        $run::<$crate::correlation::Cot>($($argument),*);
        $run::<$crate::correlation::Vole<volery_field::Fp61>>($($argument),*);
        $run::<$crate::correlation::Vole<volery_field::Gf128>>($($argument),*);
    };
}

mod choices;
mod encodings;
mod equality;
mod guesses;
mod key_holder;
mod leak;
mod low;
mod products;
mod soak;
pub(crate) mod stage;
mod trees;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::Duration;

use volery_channel::{
    Channel, Error, Result, SessionId, Transport, memory, run_two_channels, tamper::Tampered,
};
use volery_field::{ExtensionOf, Ring};
use volery_primitives::{Block, pages::Buffer, prg::Prg};

use crate::ggm::TreePrgs;
use crate::{Kind, Link, Noise, Plan, PlanOptions, Security, Trees};
use key_holder::MaliciousKeyHolder;
use stage::{Key, KeyEnd, Stage};

pub(crate) const SESSION: SessionId = SessionId::from_bytes([0x77; 32]);

/// No honest step takes that long.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn rng(seed: u128) -> Prg {
    Prg::new(Block::from(seed))
}

pub(crate) fn channel(transport: impl Transport + 'static) -> Channel {
    Channel::with_timeout(transport, Some(PATIENCE))
}

/// The PRGs of the trees of a round.
fn prgs<K: Stage>(trees: Trees, round: u64) -> TreePrgs {
    let prgs = TreePrgs::growing(K::growth(trees), SESSION, round);
    if K::CARRIES { prgs.with_cleared_leaves() } else { prgs }
}

/// A dealer's base of one round: `delta`, `x`, and spare vector-OLEs of both parties.
struct Base<K: Stage> {
    delta: Block,
    x: K::Ring,
    key_spare: Vec<K::Ring>,
    value_spare: Buffer<K::Pair>,
}

fn deal_base<K: Stage>(count: usize, dealer: &mut Prg) -> Base<K> {
    let delta = dealer.block().with_lsb(true);
    let x = if K::CARRIES { K::Ring::from_block(delta) } else { K::Ring::random(dealer) };
    let (mut key_spare, mut value_spare) = (Vec::new(), Buffer::zeroed(count));
    for pair in value_spare.iter_mut() {
        let (u, v) = (K::Base::random(dealer), K::Ring::random(dealer));
        key_spare.push(x.mul_base(u) + v);
        *pair = K::pair(u, v);
    }
    Base { delta, x, key_spare, value_spare }
}

/// A malicious plan of the smallest instance for the noise.
pub(crate) fn plan(kind: Kind, trees: Trees, noise: Noise, total: usize) -> Plan {
    plan_of(kind, Security::Malicious, trees, noise, total)
}

/// A plan of the smallest instance for the noise.
pub(crate) fn plan_of(
    kind: Kind,
    security: Security,
    trees: Trees,
    noise: Noise,
    total: usize,
) -> Plan {
    let options = PlanOptions {
        total: Some(total as u64),
        noise,
        security,
        trees,
        // With cheap bits and slow messages, the base is made at once.
        link: Link { bits_per_second: 1e15, round_trip: 1.0 },
        set: Some(if noise == Noise::Regular { "r14" } else { "u14" }),
        ..PlanOptions::default()
    };
    let plan = Plan::new(kind, &options).expect("a plan");
    assert_eq!(plan.schedule().len(), 1, "one instance");
    plan
}

/// Outputs of one round: a few trees.
pub(crate) const FEW: usize = 200;

/// More outputs than one round of `r14` makes.
pub(crate) const MANY: usize = 19_000;

/// Draws that end with the rounds.
pub(crate) fn round_by_round(plan: &Plan) -> [usize; 2] {
    let first = plan.step(0, 0).deliver;
    let total = plan.total().expect("a stream with an end") as usize;
    [first, total - first]
}

/// The source of the parties' base.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setup {
    /// From a dealer with this seed.
    Dealt(u128),
    /// By the protocols that a user would run.
    Real,
}

/// `u` and `v` at each place.
pub(crate) type Line<K> = Vec<(
    <K as crate::correlation::Correlation>::Base,
    <K as crate::correlation::Correlation>::Ring,
)>;

/// The result of two parties.
pub(crate) struct Ends<K: Stage> {
    pub(crate) x: Option<K::Ring>,
    /// The key holder's outputs of its successful draws.
    pub(crate) w: Vec<K::Ring>,
    pub(crate) key: Result<()>,
    /// The value holder's outputs of its successful draws.
    pub(crate) line: Line<K>,
    pub(crate) value: Result<()>,
}

impl<K: Stage> Ends<K> {
    /// Whether all results of both parties are right.
    pub(crate) fn right(&self) -> bool {
        let x = self.x.unwrap_or(K::Ring::ZERO);
        let mut lines = self.w.iter().zip(&self.line);
        lines.all(|(w, (u, v))| *w == x.mul_base(*u) + *v)
    }

    /// Two honest parties.
    pub(crate) fn assert_right(&self, what: &str) {
        assert!(self.key.is_ok(), "{what}: {:?}", self.key);
        assert!(self.value.is_ok(), "{what}: {:?}", self.value);
        assert!(self.right(), "{what}");
        assert_eq!(self.w.len(), self.line.len(), "{what}");
    }

    /// The value holder has detected the fault, after it had returned `kept` outputs from earlier
    /// rounds.
    pub(crate) fn assert_value_holder_aborts(&self, kept: usize, what: &str) {
        let found_out = matches!(self.value, Err(Error::PeerMisbehaved(_)));
        assert!(found_out, "{what}: {:?}", self.value);
        assert_eq!(self.line.len(), kept, "{what}");
        assert!(self.right(), "{what}: the outputs of earlier rounds");
    }

    /// The same of the key holder.
    pub(crate) fn assert_key_holder_aborts(&self, kept: usize, what: &str) {
        let found_out = matches!(self.key, Err(Error::PeerMisbehaved(_)));
        assert!(found_out, "{what}: {:?}", self.key);
        assert_eq!(self.w.len(), kept, "{what}");
        assert!(self.right(), "{what}: the outputs of earlier rounds");
        assert!(self.value.is_err(), "{what}: the value holder notices");
        assert!(self.line.len() <= kept, "{what}");
    }
}

/// A malicious key holder against the honest value holder.
pub(crate) fn run_malicious<K: Stage>(
    setup: Setup,
    plan: &Plan,
    pieces: &[usize],
    malicious: &MaliciousKeyHolder<'_, K::Ring>,
) -> Ends<K> {
    let (left, right) = memory::pair();
    against(setup, plan, pieces, (left, right), |key, channel| {
        let mut x = None;
        let w = key.map_or_else(|| K::set_up(plan, channel), Ok).and_then(|key| {
            x = Some(key.x);
            key.run(plan, pieces, malicious, channel)
        });
        match w {
            Ok(w) => (x, w, Ok(())),
            Err(error) => (x, Vec::new(), Err(error)),
        }
    })
}

/// Honest parties, on transports that may deviate.
pub(crate) fn honest<K: Stage>(
    setup: Setup,
    plan: &Plan,
    pieces: &[usize],
    key_end: impl Transport + 'static,
    value_end: impl Transport + 'static,
) -> Ends<K> {
    let ends = (key_end, value_end);
    against(setup, plan, pieces, ends, |key, channel| match key {
        Some(key) => key.honest(plan, pieces, channel),
        None => K::real_key_holder(plan, pieces, channel),
    })
}

/// A key holder, which has its base if a dealer gives it, against the honest value holder.
fn against<K: Stage>(
    setup: Setup,
    plan: &Plan,
    pieces: &[usize],
    (key_end, value_end): (impl Transport + 'static, impl Transport + 'static),
    key_holder: impl FnOnce(Option<Key<K>>, &mut Channel) -> KeyEnd<K> + Send,
) -> Ends<K> {
    let (key, value) = match setup {
        Setup::Dealt(seed) => {
            let (key, value) = K::deal(plan, seed);
            (Some(key), Some(value))
        }
        Setup::Real => (None, None),
    };
    let (((x, w, key), _), ((line, value), _)) = run_two_channels(
        channel(key_end),
        channel(value_end),
        |channel| key_holder(key, channel),
        |channel| match value {
            Some(value) => value.run(plan, pieces, channel),
            None => K::real_value_holder(plan, pieces, channel),
        },
    );
    Ends { x, w, key, line, value }
}

/// Forwards its input, and counts the bytes.
pub(crate) fn counted(inner: impl Transport) -> (impl Transport, Arc<AtomicU64>) {
    let sent = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&sent);
    let transport = Tampered::new(inner, move |_, bytes| {
        count.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    });
    (transport, sent)
}
