//! The sum of the costs in the docs of the parts.

use volery_channel::Stats;
use volery_ot::softspoken::SmallField;
use volery_pcg::{
    Base, Kind, Noise, Plan, Security, Trees,
    lpn::{LpnSet, estimate::Field},
};
use volery_primitives::cuckoo;

/// The expected counters of the two parties' channels, message after message.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wire {
    key_holder: Counter,
    value_holder: Counter,
}

#[derive(Clone, Copy, Default)]
struct Counter {
    stats: Stats,
    sending: Option<bool>,
    /// Bytes that it receives with the next ones.
    awaited: usize,
}

impl Counter {
    fn count(&mut self, sending: bool, mut bytes: usize) {
        if !sending {
            bytes += std::mem::take(&mut self.awaited);
        }
        if bytes == 0 {
            return;
        }
        let new = self.sending != Some(sending);
        let stats = &mut self.stats;
        stats.turns += u64::from(new && self.sending.is_some());
        self.sending = Some(sending);
        let (all, messages) = if sending {
            (&mut stats.bytes_sent, &mut stats.messages_sent)
        } else {
            (&mut stats.bytes_received, &mut stats.messages_received)
        };
        *all += bytes as u64;
        *messages += u64::from(new);
    }
}

impl Wire {
    fn key_holder_sends(&mut self, bytes: usize) {
        self.key_holder.count(true, bytes);
        self.value_holder.count(false, bytes);
    }

    fn value_holder_sends(&mut self, bytes: usize) {
        self.value_holder.count(true, bytes);
        self.key_holder.count(false, bytes);
    }

    /// `volery_channel::Channel::agree`.
    fn agree(&mut self, bytes: usize) {
        self.settle();
        for counter in [&mut self.key_holder, &mut self.value_holder] {
            counter.count(true, bytes);
            counter.awaited = bytes;
        }
    }

    /// `volery_channel::Channel::settle`.
    fn settle(&mut self) {
        self.key_holder.count(false, 0);
        self.value_holder.count(false, 0);
    }

    /// `volery_ot::base`, the key holder choosing: the messages cross.
    fn base_ots(&mut self, n: usize) {
        self.key_holder.count(true, 64 * n);
        self.key_holder.count(false, 32);
        self.value_holder.count(true, 32);
        self.value_holder.count(false, 64 * n);
    }

    /// `volery_ot::softspoken`, the key holder with `delta`.
    fn softspoken_setup(&mut self, field: SmallField) {
        let (k, m) = (field.bits(), field.trees());
        self.base_ots(128);
        self.value_holder_sends(m * (k - 1) * 32 + (m + 1) * 32);
    }

    fn softspoken(&mut self, field: SmallField, n: usize, security: Security) {
        let (more, response) = match security {
            Security::Malicious => (128, 48),
            _ => (0, 0),
        };
        for n in batches(n, 1 << 15) {
            let c = n.next_multiple_of(128) + more;
            self.value_holder_sends((field.trees() - 1) * c / 8 + response);
        }
    }

    /// The setup of `volery_pcg::cot`, or of `volery_pcg::vole` with the OTs for its trees; then
    /// the base of the first round.
    fn setup(&mut self, plan: &Plan) {
        self.agree(32);
        match plan.kind() {
            Kind::Cot => self.key_holder_sends(1), // the carrier bit
            Kind::Vole(_) => self.softspoken_setup(SmallField::Bits8),
        }
        match plan.base() {
            Base::SoftSpoken(field) | Base::Packed(field) => self.softspoken_setup(field),
            Base::Gilboa => self.base_ots(ring_bits(plan)),
        }
        if let Some(first) = plan.schedule().first() {
            let instances = if plan.schedule().len() == 1 { plan.instances() } else { 1 };
            self.base(plan, need(plan, (first, instances), described_trees(plan)[0]));
        }
    }

    /// Correlations of the base: `volery_pcg::vole::base`, or an OT extension.
    fn base(&mut self, plan: &Plan, n: usize) {
        match plan.base() {
            Base::SoftSpoken(field) => self.softspoken(field, n, plan.security()),
            Base::Packed(field) => {
                let each = plan.value_bits().unwrap_or(128) as usize;
                batches(n, 256).for_each(|n| self.softspoken(field, each * n, Security::Malicious));
            }
            Base::Gilboa => {
                let each = ring_bits(plan) * element(plan);
                self.value_holder_sends(n * each);
                if plan.kind() == Kind::Vole(Field::Fp61) {
                    self.value_holder_sends(repetitions(plan) * each);
                    self.key_holder_sends(16);
                    self.value_holder_sends(repetitions(plan) * 2 * element(plan));
                }
            }
        }
    }

    /// `volery_pcg::mpcot`, `spcot` and `check`.
    pub(crate) fn round(&mut self, plan: &Plan, trees: usize, levels: usize) {
        let (element, of_cot) = (element(plan), plan.kind() == Kind::Cot);
        let (ggm, uniform) = (plan.trees() == Trees::Ggm, plan.noise() == Noise::Uniform);
        if !of_cot {
            self.value_holder_sends(trees * element); // d
        }
        for levels in batches(levels, 1 << 16) {
            if !of_cot {
                self.softspoken(SmallField::Bits8, levels, Security::Malicious);
            }
            if ggm || uniform {
                self.value_holder_sends(levels.div_ceil(8)); // choice bits
            }
            self.key_holder_sends(levels * if ggm { 32 } else { 16 });
        }
        match (ggm, of_cot) {
            (true, _) => self.key_holder_sends(trees * element),
            (false, true) => {}
            (false, false) => self.key_holder_sends(trees * (16 + element)),
        }
        if plan.security() == Security::Malicious {
            let elements = repetitions(plan) * element;
            self.value_holder_sends(16 + elements); // nonce, x'
            self.key_holder_sends(32); // commitment
            self.value_holder_sends(elements); // W
            self.key_holder_sends(32 + elements); // opening
        }
    }

    pub(crate) fn stats(&self) -> (Stats, Stats) {
        (self.key_holder.stats, self.value_holder.stats)
    }
}

pub(crate) fn batches(n: usize, most: usize) -> impl Iterator<Item = usize> {
    (0..n).step_by(most).map(move |start| most.min(n - start))
}

/// Bytes of an element.
fn element(plan: &Plan) -> usize {
    match plan.kind() {
        Kind::Cot | Kind::Vole(Field::Gf128) => 16,
        Kind::Vole(_) => 8,
    }
}

fn ring_bits(plan: &Plan) -> usize {
    match plan.kind() {
        Kind::Vole(Field::Fp61) => 61,
        _ => 64,
    }
}

/// Levels of the trees: exactly those of regular noise, at most those of uniform noise.
pub(crate) fn levels(set: &LpnSet, trees: usize) -> usize {
    let depth = match set.noise {
        Noise::Regular => set.block().ilog2(),
        _ => ((3 * set.n).div_ceil(trees) + 1).next_power_of_two().ilog2() + 1,
    };
    trees * depth as usize
}

/// Trees for the first `outputs` outputs of some instances.
fn trees((set, instances): (&LpnSet, usize), outputs: usize) -> usize {
    match set.noise {
        Noise::Regular => outputs.div_ceil(set.block() * instances) * instances,
        _ => cuckoo::bins_for(set.t, volery_pcg::plan::ETA),
    }
}

/// The number of parallel checks: two over a small field.
fn repetitions(plan: &Plan) -> usize {
    match plan.kind() {
        Kind::Vole(Field::Fp61) => 2,
        _ => 1,
    }
}

/// Base correlations that a round of some instances consumes.
pub(crate) fn need(plan: &Plan, (set, instances): (&LpnSet, usize), trees: usize) -> usize {
    let (spent, mask) = match plan.kind() {
        Kind::Cot => (levels(set, trees), 128),
        Kind::Vole(_) => (trees, repetitions(plan)),
    };
    let checked = plan.security() == Security::Malicious;
    instances * set.k + spent + if checked { mask } else { 0 }
}

/// The trees of the first round of each instance.
fn described_trees(plan: &Plan) -> Vec<usize> {
    let text = plan.describe();
    let counted = |trees: &str| trees.split('/').next().unwrap().parse().unwrap();
    let instances = text.split('+').rev().take(plan.schedule().len());
    let mut trees: Vec<_> =
        instances.map(|text| text.rsplit_once('x').unwrap().1).map(counted).collect();
    trees.reverse();
    trees
}

/// The instance and the trees of each round needed for `wanted` correlations.
pub(crate) fn rounds(plan: &Plan, wanted: usize) -> Vec<(&'static LpnSet, usize)> {
    let (set, below) = plan.schedule().split_last().unwrap();
    let described = described_trees(plan);
    let mut rounds: Vec<_> = below.iter().copied().zip(described.iter().copied()).collect();
    let mut left = wanted;
    loop {
        let (bundle, n) = ((*set, plan.instances()), set.n * plan.instances());
        let last = plan.total().is_some() && left <= n;
        let trees = trees(bundle, if last { left } else { n });
        rounds.push((*set, trees));
        left = left.saturating_sub(if last { left } else { n - need(plan, bundle, trees) });
        if left == 0 {
            assert_eq!(rounds[below.len()].1, described[below.len()]);
            return rounds;
        }
    }
}

/// The expected counters after the setup, after the first round of the last instance, and after
/// each later round; without rounds, after the draw.
pub(crate) fn expected(
    plan: &Plan,
    wanted: usize,
    levels: impl Fn(&LpnSet, usize) -> usize,
) -> Vec<Wire> {
    let mut wire = Wire::default();
    wire.setup(plan);
    let mut wires = vec![wire];
    if plan.schedule().is_empty() {
        wire.base(plan, wanted);
        wires.extend((wanted > 0).then_some(wire));
        return wires;
    }
    for (number, (set, trees)) in rounds(plan, wanted).into_iter().enumerate() {
        if number > 0 {
            wire.agree(8);
        }
        wire.round(plan, trees, levels(set, trees));
        if number + 1 >= plan.schedule().len() {
            wire.settle();
            wires.push(wire);
        }
    }
    wires
}
