//! Both parties of a stream of correlations, with memory for the outputs of a step. The outputs of
//! a step replace the last ones; those of the last step are checked.

use std::marker::PhantomData;
use std::time::Duration;

use volery_channel::{Channel, Role, SessionId};
use volery_field::{Gf128, Ring};
use volery_ot::{CotReceiver as _, CotSender as _, Result};
use volery_pcg::vole::{self, VoleRing};
use volery_pcg::{Kind, Plan, cot};
use volery_primitives::{Block, bits, prg::Prg};

use crate::Error;
use crate::measurement::{Key, Sample};
use crate::parties::{Mark, run_in_pools};

/// Correlations in one step: memory is proportional to it.
const STEP: usize = 1 << 17;

/// A kind of correlation, and its two parties. The key holder's column is `u` times the key plus
/// the column of the value holder.
pub(crate) trait Correlation: 'static {
    type Ring: Ring;
    const KIND: Kind;
    /// The role of the key holder, who measures the link: it speaks first in a setup.
    const KEY_HOLDER: Role;

    fn setup(
        role: Role,
        plan: &Plan,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Box<dyn Party<Self::Ring>>>;
}

/// A party of a stream, with the outputs of its last step.
pub(crate) trait Party<R> {
    /// The number of outputs left of the round; zero without rounds.
    fn prepare(&mut self, channel: &mut Channel) -> Result<usize>;

    /// Draws the next correlations in one step.
    fn draw(&mut self, count: usize, channel: &mut Channel) -> Result<()>;

    /// Draws the next correlations.
    fn draw_all(&mut self, mut count: u64, channel: &mut Channel) -> Result<()> {
        while count > 0 {
            let now = usize::try_from(count).unwrap_or(STEP).min(STEP);
            self.draw(now, channel)?;
            count -= now as u64;
        }
        Ok(())
    }

    /// The outputs of the last step.
    fn last(self: Box<Self>) -> Outputs<R>;
}

/// The outputs of a party's last step.
pub(crate) struct Outputs<R> {
    /// The key, of the key holder.
    key: Option<R>,
    /// The values `u`, of the value holder.
    values: Vec<R>,
    column: Vec<R>,
}

impl<R> From<(R, Vec<R>)> for Outputs<R> {
    fn from((key, column): (R, Vec<R>)) -> Self {
        Self { key: Some(key), values: Vec::new(), column }
    }
}

impl<R> From<(Vec<R>, Vec<R>)> for Outputs<R> {
    fn from((values, column): (Vec<R>, Vec<R>)) -> Self {
        Self { key: None, values, column }
    }
}

/// Correlated OT, `w = v + u*delta`.
pub(crate) struct Cot;

/// Vector OLE, `w = u*x + v`.
pub(crate) struct Vole<R>(PhantomData<R>);

/// A party's stream, with memory for a step: the values in their stored form, and the column.
struct Steps<S, U, R> {
    stream: S,
    values: Vec<U>,
    column: Vec<R>,
}

fn boxed<S, U, R>(stream: S) -> Box<Steps<S, U, R>> {
    Box::new(Steps { stream, values: Vec::new(), column: Vec::with_capacity(STEP) })
}

impl Correlation for Cot {
    type Ring = Gf128;
    const KIND: Kind = Kind::Cot;
    const KEY_HOLDER: Role = Role::Sender;

    fn setup(
        role: Role,
        plan: &Plan,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Box<dyn Party<Gf128>>> {
        Ok(if role == Role::Sender {
            boxed(cot::Sender::setup(plan, None, session, rng, channel)?)
        } else {
            boxed(cot::Receiver::setup(plan, session, rng, channel)?)
        })
    }
}

impl Party<Gf128> for Steps<cot::Sender, (), Block> {
    fn prepare(&mut self, channel: &mut Channel) -> Result<usize> {
        self.stream.prepare(channel)
    }

    fn draw(&mut self, count: usize, channel: &mut Channel) -> Result<()> {
        self.column.resize(count, Block::ZERO);
        self.stream.extend(&mut self.column, channel)
    }

    fn last(self: Box<Self>) -> Outputs<Gf128> {
        (Gf128::new(self.stream.delta()), elements(&self.column)).into()
    }
}

impl Party<Gf128> for Steps<cot::Receiver, u8, Block> {
    fn prepare(&mut self, channel: &mut Channel) -> Result<usize> {
        self.stream.prepare(channel)
    }

    fn draw(&mut self, count: usize, channel: &mut Channel) -> Result<()> {
        self.values.resize(bits::bytes_for(count), 0);
        self.column.resize(count, Block::ZERO);
        self.stream.extend(&mut self.values, &mut self.column, channel)
    }

    fn last(self: Box<Self>) -> Outputs<Gf128> {
        let value = |i| if bits::bit(&self.values, i) { Gf128::ONE } else { Gf128::ZERO };
        let values: Vec<_> = (0..self.column.len()).map(value).collect();
        (values, elements(&self.column)).into()
    }
}

fn elements(column: &[Block]) -> Vec<Gf128> {
    column.iter().map(|block| Gf128::new(*block)).collect()
}

impl<R: VoleRing> Correlation for Vole<R> {
    type Ring = R;
    const KIND: Kind = Kind::Vole(R::FIELD);
    const KEY_HOLDER: Role = Role::Receiver;

    fn setup(
        role: Role,
        plan: &Plan,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Box<dyn Party<R>>> {
        Ok(if role == Role::Sender {
            boxed(vole::Sender::<R>::setup(plan, session, rng, channel)?)
        } else {
            boxed(vole::Receiver::<R>::setup(plan, None, session, rng, channel)?)
        })
    }
}

impl<R: VoleRing> Party<R> for Steps<vole::Sender<R>, R, R> {
    fn prepare(&mut self, channel: &mut Channel) -> Result<usize> {
        self.stream.prepare(channel)
    }

    fn draw(&mut self, count: usize, channel: &mut Channel) -> Result<()> {
        self.values.resize(count, R::ZERO);
        self.column.resize(count, R::ZERO);
        self.stream.extend(&mut self.values, &mut self.column, channel)
    }

    fn last(self: Box<Self>) -> Outputs<R> {
        (self.values, self.column).into()
    }
}

impl<R: VoleRing> Party<R> for Steps<vole::Receiver<R>, (), R> {
    fn prepare(&mut self, channel: &mut Channel) -> Result<usize> {
        self.stream.prepare(channel)
    }

    fn draw(&mut self, count: usize, channel: &mut Channel) -> Result<()> {
        self.column.resize(count, R::ZERO);
        self.stream.extend(&mut self.column, channel)
    }

    fn last(self: Box<Self>) -> Outputs<R> {
        (self.stream.x(), self.column).into()
    }
}

/// Runs both parties of a measurement and checks their outputs; returns the sample, and what the
/// sender says of its run.
pub(crate) fn run<R: Ring, T: Send>(
    key: &Key,
    timeout: Duration,
    party: impl Fn(Role, &mut Channel) -> crate::Result<(T, Vec<Mark>, Outputs<R>)> + Sync,
) -> crate::Result<(T, Sample)> {
    let ((told, sent, left), (_, received, right)) = run_in_pools(
        &key.link,
        key.threads,
        timeout,
        |channel| party(Role::Sender, channel),
        |channel| party(Role::Receiver, channel),
    )?;
    let (keys, values) = if left.key.is_some() { (left, right) } else { (right, left) };
    if !are_correlated(&keys, &values) {
        let what = format_args!("{key}: the outputs of the two parties are not correlated");
        return Err(Error::protocol(what));
    }
    Ok((told, Sample::of([sent, received])))
}

fn are_correlated<R: Ring>(keys: &Outputs<R>, values: &Outputs<R>) -> bool {
    let (Some(key), Outputs { values, column, .. }) = (keys.key, values) else {
        return false;
    };
    let n = column.len();
    [values.len(), keys.column.len()] == [n; 2]
        && (0..n).all(|i| keys.column[i] == values[i] * key + column[i])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncorrelated_outputs_are_refused() {
        let [one, two, seven] = [1, 2, 7].map(|value| Gf128::new(Block::new(value)));
        let keys = |column| Outputs::from((seven, column));
        let values = |second| (vec![Gf128::ZERO, second], vec![one, two]).into();
        let good = vec![one, two + seven];
        assert!(are_correlated(&keys(good.clone()), &values(Gf128::ONE)));
        assert!(!are_correlated(&keys(good.clone()), &values(Gf128::ZERO)));
        assert!(!are_correlated(&keys(good[..1].to_vec()), &values(Gf128::ONE)));
        assert!(!are_correlated(&values(Gf128::ONE), &values(Gf128::ONE)));
    }
}
