//! Vector-OLE over bits, with MACs in GF(2^128): it is [correlated OT](crate::cot), under the names
//! of a vector-OLE.
//!
//! The sender has bits `u` and `v`, the receiver `x` and `w = v + u*x`. So the [`Sender`] is a
//! [`cot::Receiver`], the [`Receiver`] a [`cot::Sender`], and their plan one of [`cot::plan`]. An
//! element of [`F2`] takes a byte: a program that is in a hurry takes the packed bits of [`cot`].
//!
//! Security and cost: those of [`cot`].

use std::borrow::BorrowMut;

use volery_channel::{Channel, Result, Session};
use volery_field::{F2, Gf128};
use volery_ot::{CotReceiver as _, CotSender as _};
use volery_primitives::{Block, bits};
use zeroize::Zeroizing;

use super::{VoleReceiver, VoleSender};
use crate::{Plan, cot};

/// The holder of `u` and `v`.
#[derive(Debug)]
pub struct Sender(pub cot::Receiver);

/// The holder of `x`, who gets `w`.
#[derive(Debug)]
pub struct Receiver(pub cot::Sender);

impl Sender {
    /// As [`cot::Receiver::start`].
    ///
    /// # Errors
    /// Its errors.
    pub fn start(plan: &Plan, session: &mut Session<impl BorrowMut<Channel>>) -> Result<Self> {
        cot::Receiver::start(plan, session).map(Self)
    }
}

impl Receiver {
    /// As [`cot::Sender::start`], with its panics: for the given `x` or a random one.
    ///
    /// # Errors
    /// Its errors.
    pub fn start(
        plan: &Plan,
        x: Option<Gf128>,
        session: &mut Session<impl BorrowMut<Channel>>,
    ) -> Result<Self> {
        cot::Sender::start(plan, x.map(Gf128::value), session).map(Self)
    }
}

impl VoleSender<Gf128, F2> for Sender {
    fn extend(&mut self, u: &mut [F2], v: &mut [Gf128], channel: &mut Channel) -> Result<()> {
        assert_eq!(u.len(), v.len(), "u and v have one length");
        let mut packed = Zeroizing::new(vec![0; bits::bytes_for(u.len())]);
        let blocks: &mut [Block] = bytemuck::cast_slice_mut(v);
        let drawn = self.0.extend(&mut packed, blocks, channel);
        for (i, u) in u.iter_mut().enumerate() {
            *u = F2::new(bits::bit(&packed, i));
        }
        drawn
    }
}

impl VoleReceiver<Gf128> for Receiver {
    fn try_x(&self) -> Result<Gf128> {
        self.0.try_delta().map(Gf128::new)
    }

    fn extend(&mut self, w: &mut [Gf128], channel: &mut Channel) -> Result<()> {
        self.0.extend(bytemuck::cast_slice_mut(w), channel)
    }
}
