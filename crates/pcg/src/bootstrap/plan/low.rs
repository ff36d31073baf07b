//! Plans with dual LPN: instances one after the other, without a ladder.

use volery_field::{Fp61, Gf128};
use volery_ot::softspoken::SmallField;

use super::{Base, Kind, Plan, PlanError, Wishes};
use crate::{
    Noise, Trees,
    bootstrap::{dual, size},
    correlation::{Cot, Vole},
    lpn::{dual::params::Shape, estimate::Field},
};

impl Plan {
    /// A plan with dual LPN.
    pub(super) fn low_communication(kind: Kind, wishes: &Wishes<'_>) -> Result<Self, PlanError> {
        if (wishes.noise, wishes.trees) != (Noise::Regular, Trees::Half) {
            return Err(PlanError::NotDual);
        }
        if let Some(name) = wishes.set {
            return Err(PlanError::NoSuchSet(name.to_owned()));
        }
        Ok(Self {
            total: wishes.total,
            base: match kind {
                Kind::Cot => Base::SoftSpoken(SmallField::Bits8),
                Kind::Vole(Field::Gf128) => Base::Packed(SmallField::Bits8),
                Kind::Vole(_) => Base::Gilboa,
            },
            is_dual: true,
            ..Self::empty(kind, wishes.noise, wishes.security)
        })
    }

    /// The size of the first instance of dual LPN, which is the largest; none where it is not used.
    #[must_use]
    pub fn dual(&self) -> Option<Shape> {
        self.is_dual.then(|| self.dual_step(0).shape)
    }

    /// Bytes that both parties send for all outputs with dual LPN, but for the setup of base OTs and extensions (less than 30 KB): the
    /// base of the first instance, and the instances with the OTs of their trees. None where dual LPN is not used, or the stream
    /// has no end.
    #[must_use]
    pub fn dual_bytes(&self) -> Option<u64> {
        let total = self.total.filter(|_| self.is_dual)?;
        let instances = self
            .dual_steps(total)
            .map(|(step, alike)| alike * self.instance_bytes(step.shape) as u64);
        let base = self.base_count();
        let for_base = match self.base {
            Base::Packed(_) => extended(128 * base),
            // An element for each of its bits
            Base::Gilboa => {
                8 * if self.kind.field() == Field::Fp61 {
                    61
                } else {
                    64
                } * base
            }
            _ => extended(base),
        };
        Some(instances.sum::<u64>() + for_base as u64)
    }

    /// Bytes that both parties send for an instance of dual LPN, with the OTs of its trees.
    pub(super) fn instance_bytes(&self, shape: Shape) -> usize {
        let model = self.security;
        match self.kind {
            Kind::Cot => dual::bytes::<Cot>(shape, model),
            Kind::Vole(Field::Gf128) => {
                dual::bytes::<Vole<Gf128>>(shape, model) + extended(shape.levels())
            }
            Kind::Vole(_) => dual::bytes::<Vole<Fp61>>(shape, model) + extended(shape.levels()),
        }
    }

    /// The instance of dual LPN when `delivered` correlations have been handed out before it.
    pub(crate) fn dual_step(&self, delivered: u64) -> dual::Step {
        let field = self.kind.field();
        let left = self.total.map(|total| total - delivered);
        let last = left.and_then(|left| Some((Shape::for_outputs(field, left)?, left as usize)));
        if let Some((shape, deliver)) = last {
            return dual::Step {
                shape,
                keep: 0,
                deliver,
            };
        }
        let shape = Shape::largest(field);
        let keep = self.dual_need(Shape::costliest(field));
        dual::Step {
            shape,
            keep,
            deliver: shape.outputs() - keep,
        }
    }

    /// The instances of dual LPN for `total` correlations, one after the other, each with how many are like it in a row.
    pub(super) fn dual_steps(&self, total: u64) -> impl Iterator<Item = (dual::Step, u64)> {
        let mut delivered = 0;
        std::iter::from_fn(move || {
            let left = total.checked_sub(delivered).filter(|left| *left > 0)?;
            let step = self.dual_step(delivered);
            let deliver = step.deliver as u64;
            // All but the last two are alike.
            let alike = match step.keep {
                0 => 1,
                _ => (left / deliver).saturating_sub(1).max(1),
            };
            delivered += alike * deliver;
            Some((step, alike))
        })
    }

    /// Base correlations that an instance of dual LPN spends.
    pub(crate) fn dual_need(&self, shape: Shape) -> usize {
        let spending = size::Spending::of(self.kind);
        spending.need(self.security, 0, shape.trees, shape.levels())
    }

    /// Whether the base correlations themselves are the output.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.ladder.is_empty() && !self.is_dual
    }
}

/// Bytes of so many OTs by `SoftSpokenOT` with `k = 8`.
fn extended(ots: usize) -> usize {
    15 * ots.div_ceil(8)
}
