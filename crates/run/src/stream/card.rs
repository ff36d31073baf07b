//! Correlations that stay in the memory of a card, for a caller in this process.

use volery_channel::{Channel, Error, Result};
use volery_field::Gf128;
use volery_pcg::card::dlpack::Array;
use volery_pcg::card::{
    CotReceiver, CotSender, Memory, RandomReceiver, RandomSender, VoleReceiver, VoleSender,
};
use volery_pcg::vole::VoleRing;
use volery_primitives::Block;

use super::StreamProgress;
use super::memory::Put;
use crate::driver::{self, Listener as _, Outcome};
use crate::negotiation::{AgreedPlan, Request};
use crate::party::{Party, Start};
use crate::results::Part;

/// Arrays by their letters.
pub(crate) type Arrays = Vec<(&'static str, Array)>;

/// A party whose outputs stay on a card; its key is in `R`.
pub trait CardParty<R>: Sized {
    /// Sets up the party with the given key or a random one.
    fn setup(start: Start<'_, R>, channel: &mut Channel) -> Result<Self>;

    /// The key that the caller gets.
    fn key(&self) -> Option<R> {
        None
    }

    /// The next `n` correlations.
    fn draw(&mut self, n: usize, channel: &mut Channel) -> Result<Arrays>;
}

/// Does what [`make`](super::memory::make) does, with arrays on the card of the plan.
pub(super) fn make<E: Party>(
    order: &Request,
    key: Option<E::Ring>,
    chunk: Option<usize>,
    channel: &mut Channel,
    listener: &mut StreamProgress<'_>,
    put: &mut Put<'_>,
) -> crate::failure::Result<(Outcome, AgreedPlan)> {
    let setup = E::CardParty::setup;
    let (mut end, agreed, after) = driver::begin::<E, _>(order, key, channel, listener, setup)?;
    let chunk = chunk.map_or(order.n, |chunk| chunk.max(1) as u64);
    let mut first = 0;
    loop {
        let count = (order.n - first).min(chunk) as usize;
        let on_card = end.draw(count, channel)?;
        let key = end.key().map(|key| bytemuck::cast_slice::<E::Ring, u64>(&[key]).to_vec());
        put(Part { first, count, key, values: None, column: Vec::new(), on_card })?;
        first += count as u64;
        listener.done(count);
        if first == order.n {
            return Ok((after.over(channel, listener), agreed));
        }
    }
}

fn failed(error: impl ToString) -> Error {
    Error::Card(error.to_string())
}

/// Packed bits: 32 in a word.
fn packed(memory: Memory<u32>) -> (&'static str, Array) {
    let shape = [memory.len()];
    ("u_packed", Array::new(memory, 32, &shape))
}

fn blocks(memory: Memory<Block>) -> Array {
    let shape = [memory.len(), 2];
    Array::new(memory, 64, &shape)
}

impl CardParty<Gf128> for CotSender {
    fn setup(start: Start<'_, Gf128>, channel: &mut Channel) -> Result<Self> {
        Self::setup(start.plan, start.delta(), start.session, start.rng, channel)
    }

    fn key(&self) -> Option<Gf128> {
        Some(Gf128::new(self.delta()))
    }

    fn draw(&mut self, n: usize, channel: &mut Channel) -> Result<Arrays> {
        let mut v = Memory::zeroed(self.device(), n).map_err(failed)?;
        self.extend(&mut v.all(), channel)?;
        Ok(vec![("v", blocks(v))])
    }
}

impl CardParty<Gf128> for CotReceiver {
    fn setup(start: Start<'_, Gf128>, channel: &mut Channel) -> Result<Self> {
        Self::setup(start.plan, start.session, start.rng, channel)
    }

    fn draw(&mut self, n: usize, channel: &mut Channel) -> Result<Arrays> {
        let mut u = Memory::zeroed(self.device(), n.div_ceil(32)).map_err(failed)?;
        let mut w = Memory::zeroed(self.device(), n).map_err(failed)?;
        self.extend(&mut u.all(), &mut w.all(), channel)?;
        Ok(vec![packed(u), ("w", blocks(w))])
    }
}

impl CardParty<Gf128> for RandomSender {
    fn setup(start: Start<'_, Gf128>, channel: &mut Channel) -> Result<Self> {
        let cots = CotSender::setup(start.plan, start.delta(), start.session, start.rng, channel)?;
        Ok(Self::new(cots, start.session))
    }

    fn draw(&mut self, n: usize, channel: &mut Channel) -> Result<Arrays> {
        let mut m = Memory::<Block>::zeroed(self.device(), 2 * n).map_err(failed)?;
        self.extend(&mut m.all(), channel)?;
        let pairs = Array::new(m, 64, &[n, 2, 2]);
        Ok(vec![("m0", pairs.second(0)), ("m1", pairs.second(1))])
    }
}

impl CardParty<Gf128> for RandomReceiver {
    fn setup(start: Start<'_, Gf128>, channel: &mut Channel) -> Result<Self> {
        Ok(Self::new(
            CotReceiver::setup(start.plan, start.session, start.rng, channel)?,
            start.session,
        ))
    }

    fn draw(&mut self, n: usize, channel: &mut Channel) -> Result<Arrays> {
        let mut u = Memory::zeroed(self.device(), n.div_ceil(32)).map_err(failed)?;
        let mut m = Memory::zeroed(self.device(), n).map_err(failed)?;
        self.extend(&mut u.all(), &mut m.all(), channel)?;
        Ok(vec![packed(u), ("m", blocks(m))])
    }
}

/// Elements of a vector OLE.
fn elements<R: VoleRing>(memory: Memory<u64>) -> Array {
    match R::WORDS {
        1 => {
            let shape = [memory.len()];
            Array::new(memory, 64, &shape)
        }
        _ => blocks(memory.of_values()),
    }
}

impl<R: VoleRing> CardParty<R> for VoleSender<R> {
    fn setup(start: Start<'_, R>, channel: &mut Channel) -> Result<Self> {
        Self::setup(start.plan, start.session, start.rng, channel)
    }

    fn draw(&mut self, n: usize, channel: &mut Channel) -> Result<Arrays> {
        let memory = || Memory::zeroed(self.device(), n * R::WORDS).map_err(failed);
        let (mut u, mut v) = (memory()?, memory()?);
        self.extend(&mut u.all(), &mut v.all(), channel)?;
        Ok(vec![("u", elements::<R>(u)), ("v", elements::<R>(v))])
    }
}

impl<R: VoleRing> CardParty<R> for VoleReceiver<R> {
    fn setup(start: Start<'_, R>, channel: &mut Channel) -> Result<Self> {
        Self::setup(start.plan, start.key, start.session, start.rng, channel)
    }

    fn key(&self) -> Option<R> {
        Some(self.x())
    }

    fn draw(&mut self, n: usize, channel: &mut Channel) -> Result<Arrays> {
        let mut w = Memory::zeroed(self.device(), n * R::WORDS).map_err(failed)?;
        self.extend(&mut w.all(), channel)?;
        Ok(vec![("w", elements::<R>(w))])
    }
}
