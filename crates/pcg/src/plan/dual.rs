//! Plans with dual LPN: consecutive instances, without a schedule.

use volery_field::{Fp61, Gf128, Ring};
use volery_ot::softspoken::SmallField;

use super::{Base, Kind, Plan, PlanError, PlanOptions, size};
use crate::{
    Noise, Security, Trees, check,
    correlation::{Correlation, Cot, Vole},
    lpn::{
        dual::params::{Shape, linear_test_bits},
        estimate::Field,
    },
};

/// The size of one instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// Its trees.
    pub(crate) shape: Shape,
    /// Outputs reserved for the next instance; they are the first.
    pub(crate) keep: usize,
    /// Outputs returned; the others are not drawn.
    pub(crate) deliver: usize,
}

impl Plan {
    /// A plan with dual LPN.
    pub(super) fn with_dual(kind: Kind, options: &PlanOptions<'_>) -> Result<Self, PlanError> {
        let is_open = matches!(kind, Kind::Vole(Field::Open(_)));
        if is_open || (options.noise, options.trees) != (Noise::Regular, Trees::Half) {
            return Err(PlanError::NotDual);
        }
        if let Some(name) = options.set {
            return Err(PlanError::NoSuchSet(name.to_owned()));
        }
        Ok(Self {
            total: options.total,
            base: match kind {
                Kind::Cot => Base::SoftSpoken(SmallField::Bits8),
                Kind::Vole(Field::Gf128) => Base::Packed(SmallField::Bits8),
                Kind::Vole(_) => Base::Gilboa,
            },
            is_dual: true,
            ..Self::empty(kind, options.noise, options.security)
        })
    }

    /// The size of the first instance of dual LPN, which is the largest; `None` where it is not
    /// used.
    #[must_use]
    pub fn dual(&self) -> Option<Shape> {
        self.is_dual.then(|| self.dual_step(0).shape)
    }

    /// Bytes that both parties send for all outputs with dual LPN, without the setup of base OTs
    /// and extensions (less than 30 KB): the base of the first instance, and the instances with the
    /// OTs of their trees. `None` where dual LPN is not used, or the stream is unlimited.
    #[must_use]
    pub fn dual_bytes(&self) -> Option<u64> {
        let total = self.total.filter(|_| self.is_dual)?;
        let instances = self
            .dual_steps(total)
            .map(|(step, alike)| alike * self.instance_bytes(step.shape) as u64);
        let base = self.base_count();
        let for_base = match self.base {
            Base::Packed(_) => extended(self.packed_ots() * base),
            // An element for each of its bits
            Base::Gilboa => 8 * if self.kind.field() == Field::Fp61 { 61 } else { 64 } * base,
            _ => extended(base),
        };
        Some(instances.sum::<u64>() + for_base as u64)
    }

    /// Bytes that both parties send for an instance of dual LPN, with the OTs of its trees.
    pub(super) fn instance_bytes(&self, shape: Shape) -> usize {
        let model = self.security;
        match self.kind {
            Kind::Cot => bytes::<Cot>(shape, model),
            Kind::Vole(Field::Gf128) => {
                bytes::<Vole<Gf128>>(shape, model) + extended(shape.levels())
            }
            Kind::Vole(_) => bytes::<Vole<Fp61>>(shape, model) + extended(shape.levels()),
        }
    }

    /// The instance of dual LPN after `delivered` correlations have been returned.
    pub(crate) fn dual_step(&self, delivered: u64) -> Step {
        let field = self.kind.field();
        let left = self.total.map(|total| total - delivered);
        let last = left.and_then(|left| Some((Shape::for_outputs(field, left)?, left as usize)));
        if let Some((shape, deliver)) = last {
            return Step { shape, keep: 0, deliver };
        }
        let shape = Shape::largest(field);
        let keep = self.dual_need(Shape::costliest(field));
        Step { shape, keep, deliver: shape.outputs() - keep }
    }

    /// The instances of dual LPN for `total` correlations, in order, each with the number of
    /// consecutive equal ones.
    pub(super) fn dual_steps(&self, total: u64) -> impl Iterator<Item = (Step, u64)> {
        let mut delivered = 0;
        std::iter::from_fn(move || {
            let left = total.checked_sub(delivered).filter(|left| *left > 0)?;
            let step = self.dual_step(delivered);
            let deliver = step.deliver as u64;
            // All except the last two are equal.
            let alike = match step.keep {
                0 => 1,
                _ => (left / deliver).saturating_sub(1).max(1),
            };
            delivered += alike * deliver;
            Some((step, alike))
        })
    }

    /// Base correlations that an instance of dual LPN consumes.
    pub(crate) fn dual_need(&self, shape: Shape) -> usize {
        let spending = size::Spending::of(self.kind);
        spending.need(self.security, 0, shape.trees, shape.levels())
    }

    /// Whether the base correlations themselves are the output.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.schedule.is_empty() && !self.is_dual
    }
}

/// Bytes of `count` OTs by `SoftSpokenOT` with `k = 8`.
fn extended(ots: usize) -> usize {
    15 * ots.div_ceil(8)
}

/// Bits against all linear tests, of the lightest noise over the ring.
pub(super) fn security_bits(field: Field) -> f64 {
    linear_test_bits(field, Shape::equal(field))
}

/// Bytes that both parties send for an instance, without OTs of the trees that are not outputs: the
/// sum of the costs in the docs of the parts.
fn bytes<K: Correlation>(shape: Shape, security: Security) -> usize {
    const COIN: usize = 32 + 48 + 16;
    let element = K::Ring::BYTES;
    let leaf_level = if K::CARRIES { 0 } else { 16 + element };
    let trees = 16 * shape.levels() + (leaf_level + K::VALUES * element) * shape.trees;
    let elements = element * check::repetitions::<K::Ring>();
    trees
        + COIN
        + match security {
            Security::SemiHonest => 0,
            Security::Malicious => 16 + 32 + 32 + 3 * elements,
        }
}
