//! Vector-OLE over bits, with MACs in GF(2^128): it is [correlated OT](crate::cot), under the names
//! of a vector-OLE.
//!
//! The sender has bits `u` and `v`, the receiver `x` and `w = v + u*x`. So the [`Sender`] is a
//! [`cot::Receiver`], the [`Receiver`] a [`cot::Sender`], and their plan one of [`cot::plan`]. An
//! element of [`F2`](volery_field::F2) takes a byte: a program that is in a hurry takes the packed
//! bits of [`cot`].
//!
//! Security and cost: those of [`cot`].

use std::borrow::BorrowMut;

use volery_channel::{Channel, Result, Session};
use volery_field::Gf128;

use super::FromCot;
use crate::{Plan, cot};

/// The holder of `u` and `v`.
pub type Sender = FromCot<cot::Receiver>;

/// The holder of `x`, who gets `w`.
pub type Receiver = FromCot<cot::Sender>;

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
