//! Correlations in memory of the caller.

use volery_channel::Channel;
use volery_field::Ring;
use volery_os::sync::mpsc;
use volery_os::thread;
use zeroize::Zeroizing;

use super::StreamProgress;
use crate::driver::{self, Buffer, Draw, Outcome};
use crate::failure::{Failure, Result, Status};
use crate::negotiation::{AgreedPlan, Request};
use crate::party::Party;
use crate::results::{Part, Values};

/// Takes a part.
pub(crate) type Put<'a> = dyn FnMut(Part) -> Result<()> + Send + 'a;

/// Runs `run` on another thread, and `put` on this one with the parts that `run` hands over. While
/// a part is put, the next one is made.
pub(crate) fn hand_over<T: Send>(
    run: impl FnOnce(&mut Put<'_>) -> Result<T> + Send,
    put: &mut dyn FnMut(Part) -> Result<()>,
) -> Result<T> {
    thread::scope(|scope| {
        let (full, parts) = mpsc::sync_channel(0);
        let running = scope.spawn(move || {
            // The other end stops only with an error of its own.
            let stopped = |_| Failure::new(Status::Other, "the correlations were not taken");
            run(&mut |part| full.send(part).map_err(stopped))
        });
        let put = parts.into_iter().try_for_each(put);
        let run = running.join();
        let run = run.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        put.and(run)
    })
}

/// The run itself, up to its conclusion: parts of `chunk` correlations, or one of all of them.
pub(crate) fn make<E: Party>(
    order: &Request,
    key: Option<E::Ring>,
    chunk: Option<usize>,
    channel: &mut Channel,
    listener: &mut StreamProgress<'_>,
    put: &mut Put<'_>,
) -> Result<(Outcome, AgreedPlan)> {
    let chunk = chunk.map_or(order.n, |chunk| chunk.max(1) as u64);
    let mut parts = Parts::<E> {
        n: order.n,
        chunk,
        first: 0,
        count: 0,
        filled: 0,
        key: None,
        values: None,
        column: Zeroizing::default(),
        units: Zeroizing::default(),
        step: Zeroizing::default(),
        put,
    };
    let made =
        driver::run_into::<E>(order, key, channel, listener, |key, count, draw| match count {
            0 => parts.begin(key),
            _ => parts.draw(count, draw),
        })?;
    if order.n == 0 {
        parts.hand_over()?;
    }
    Ok(made)
}

/// The parts of a run, of which one is at hand.
struct Parts<'a, E: Party> {
    n: u64,
    chunk: u64,
    /// The first correlation of the part at hand, and how many it has in the end, and by now.
    first: u64,
    count: usize,
    filled: usize,
    key: Option<Zeroizing<Vec<u64>>>,
    values: Option<WipedValues>,
    column: Zeroizing<Vec<u64>>,
    /// A step that does not go to its place directly.
    units: Buffer<E::Unit>,
    step: Buffer<E::Ring>,
    put: &'a mut Put<'a>,
}

/// Values that are wiped when dropped.
enum WipedValues {
    Bits(Zeroizing<Vec<u8>>),
    Words(Zeroizing<Vec<u64>>),
}

impl<E: Party> Parts<'_, E> {
    /// Words of an element.
    const WORDS: usize = E::Ring::BYTES / 8;

    fn begin(&mut self, key: Option<E::Ring>) -> Result<()> {
        let words = |key| bytemuck::cast_slice::<E::Ring, u64>(&[key]).to_vec();
        self.key = key.map(|key| Zeroizing::new(words(key)));
        self.next()
    }

    /// Makes room for the next part.
    fn next(&mut self) -> Result<()> {
        let count = (self.n - self.first).min(self.chunk);
        self.count = usize::try_from(count).map_err(|_| too_large())?;
        self.filled = 0;
        let words = self.count.checked_mul(Self::WORDS).ok_or_else(too_large)?;
        self.column = zeros(words)?;
        self.values = match E::VALUES {
            None => None,
            Some(_) if E::Base::BITS == 1 => Some(WipedValues::Bits(zeros(self.count)?)),
            Some(_) => Some(WipedValues::Words(zeros(words)?)),
        };
        Ok(())
    }

    /// Draws a step.
    fn draw(&mut self, count: usize, draw: &mut Draw<'_, E>) -> Result<()> {
        let (from, to) = (self.filled, self.filled + count);
        self.units.resize(E::units(count), Default::default());
        if to <= self.count {
            let words = from * Self::WORDS..to * Self::WORDS;
            let column = bytemuck::try_cast_slice_mut(&mut self.column[words.clone()]);
            let u = match &mut self.values {
                Some(WipedValues::Words(values)) => {
                    bytemuck::try_cast_slice_mut(&mut values[words])
                }
                _ => Ok(&mut self.units[..]),
            };
            if let (Ok(column), Ok(u)) = (column, u) {
                draw(u, column)?;
                if let Some(WipedValues::Bits(bits)) = &mut self.values {
                    let bits = &mut bits[from..to];
                    E::open(&self.units, count, |values| {
                        bits.copy_from_slice(bytemuck::cast_slice(values));
                    });
                }
                return self.fill(count);
            }
        }
        // Of two parts, or memory that is not aligned for the elements.
        let (mut units, mut step) =
            (std::mem::take(&mut self.units), std::mem::take(&mut self.step));
        step.resize(count, E::Ring::ZERO);
        draw(&mut units, &mut step)?;
        E::open(&units, count, |values| -> Result<()> {
            let mut done = 0;
            while done < count {
                let now = (count - done).min(self.count - self.filled);
                let (from, to) = (self.filled, self.filled + now);
                let words = from * Self::WORDS..to * Self::WORDS;
                self.column[words.clone()]
                    .copy_from_slice(bytemuck::cast_slice(&step[done..done + now]));
                match &mut self.values {
                    None => {}
                    Some(WipedValues::Bits(bits)) => bits[from..to]
                        .copy_from_slice(bytemuck::cast_slice(&values[done..done + now])),
                    Some(WipedValues::Words(all)) => {
                        all[words].copy_from_slice(bytemuck::cast_slice(&values[done..done + now]))
                    }
                }
                done += now;
                self.fill(now)?;
            }
            Ok(())
        })?;
        (self.units, self.step) = (units, step);
        Ok(())
    }

    /// `count` more correlations are in the part at hand.
    fn fill(&mut self, count: usize) -> Result<()> {
        self.filled += count;
        if self.filled < self.count {
            return Ok(());
        }
        self.hand_over()?;
        match self.first < self.n {
            true => self.next(),
            false => Ok(()),
        }
    }

    fn hand_over(&mut self) -> Result<()> {
        let part = Part {
            first: self.first,
            count: self.count,
            key: self.key.as_ref().map(|key| key.to_vec()),
            values: self.values.take().map(|values| match values {
                WipedValues::Bits(mut bits) => Values::Bits(std::mem::take(&mut *bits)),
                WipedValues::Words(mut words) => Values::Words(std::mem::take(&mut *words)),
            }),
            column: std::mem::take(&mut *self.column),
            #[cfg(feature = "gpu")]
            on_card: Vec::new(),
        };
        self.first += self.count as u64;
        (self.put)(part)
    }
}

/// Zeros, if there is memory for so many.
fn zeros<T: Clone + Default + zeroize::Zeroize>(count: usize) -> Result<Zeroizing<Vec<T>>> {
    let room = Vec::<T>::new().try_reserve_exact(count);
    room.map_err(|_| too_large())?;
    Ok(Zeroizing::new(vec![T::default(); count]))
}

fn too_large() -> Failure {
    Failure::usage("--n", "the correlations do not fit into memory")
        .with_hint("take them in smaller chunks")
}
