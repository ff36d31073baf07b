//! Draws from a base that is itself the output: small ones take what an earlier call has made.
//!
//! A call of an OT extension sends some hundred bytes more than its outputs take. So a draw of
//! fewer than [`AT_ONCE`] makes as many, or all that the plan has left, and the next ones take the
//! rest.

use volery_channel::{Channel, Result};
use volery_field::Gf128;
use volery_primitives::{bits, pages::Buffer};

use super::{
    AnyRounds, CotSlices, CotValueHolder, Direct, KeyHolder, Role, Source, VoleValueHolder,
};
use crate::correlation::{Correlation, VoleKind, VoleSlices};

/// The correlations of a call for a small draw.
const AT_ONCE: usize = 1024;

/// Memory of its own for outputs of a role.
pub(crate) trait Held<R: Role>: Send {
    /// Memory for `n` outputs.
    fn zeroed(n: usize) -> Self;
    /// All of it.
    fn all(&mut self) -> R::Out<'_>;
    /// Moves outputs from number `from` on to `out`, from its number `to` on: as many as fit, at
    /// most `count`.
    fn take(&mut self, from: usize, count: usize, out: &mut R::Out<'_>, to: usize);
}

/// A base and the outputs that it has made and nobody has drawn. Both are wiped when dropped.
struct Pool<D, H> {
    base: D,
    held: Option<H>,
    /// The outputs that are held: from this number on, up to that one.
    from: usize,
    end: usize,
    /// Those that the base may still make.
    left: u64,
    /// Whether it has been called.
    made: bool,
    drawn: u64,
}

/// Makes a base the source of a plan's `total`.
pub(crate) fn direct<R: Role, D: Direct<R> + 'static, H: Held<R> + 'static>(
    total: Option<u64>,
) -> impl FnOnce(D) -> Source<R, AnyRounds<R>> {
    let (held, left) = (None::<H>, total.unwrap_or(u64::MAX));
    move |base| {
        let pool = Pool { base, held, from: 0, end: 0, left, made: false, drawn: 0 };
        Source::Direct(Box::new(pool))
    }
}

impl<D, H> Pool<D, H> {
    /// Makes `n`, at most as many as are left, in `out`.
    fn make<R: Role>(&mut self, n: usize, out: &mut R::Out<'_>, channel: &mut Channel) -> Result<()>
    where
        D: Direct<R>,
    {
        // mutant(pool-drawn): false
        if self.made {
            channel.agree_drawn(self.drawn)?;
        }
        self.made = true;
        self.left -= n as u64;
        self.base.draw(out, channel)
    }
}

impl<R: Role, D: Direct<R>, H: Held<R>> Direct<R> for Pool<D, H> {
    fn draw(&mut self, out: &mut R::Out<'_>, channel: &mut Channel) -> Result<()> {
        let n = R::count(out);
        let ready = n.min(self.end - self.from);
        if let Some(held) = &mut self.held {
            held.take(self.from, ready, out, 0);
            self.from += ready;
        }
        let missing = n - ready;
        if missing >= AT_ONCE && ready == 0 {
            self.make(n, out, channel)?;
        } else if missing > 0 {
            let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(AT_ONCE.max(missing));
            let mut held = H::zeroed(count);
            self.make(count, &mut held.all(), channel)?;
            held.take(0, missing, out, ready);
            (self.held, self.from, self.end) = (Some(held), missing, count);
            self.base.rest();
        }
        if self.from == self.end {
            self.held = None;
        }
        self.drawn += n as u64;
        Ok(())
    }
}

/// Moves elements and clears their place.
fn moved<T: Copy + Default>(from: &mut [T], to: &mut [T]) {
    to.copy_from_slice(from);
    from.fill(T::default());
}

impl<K: Correlation> Held<KeyHolder<K>> for Buffer<K::Ring> {
    fn zeroed(n: usize) -> Self {
        Self::zeroed(n)
    }

    fn all(&mut self) -> &mut [K::Ring] {
        self
    }

    fn take(&mut self, from: usize, count: usize, out: &mut &mut [K::Ring], to: usize) {
        moved(&mut self[from..from + count], &mut out[to..to + count]);
    }
}

impl<K: VoleKind> Held<VoleValueHolder<K>> for (Buffer<K::Base>, Buffer<K::Ring>) {
    fn zeroed(n: usize) -> Self {
        (Buffer::zeroed(n), Buffer::zeroed(n))
    }

    fn all(&mut self) -> VoleSlices<'_, K> {
        VoleSlices { u: &mut self.0, v: &mut self.1 }
    }

    fn take(&mut self, from: usize, count: usize, out: &mut VoleSlices<'_, K>, to: usize) {
        moved(&mut self.0[from..from + count], &mut out.u[to..to + count]);
        moved(&mut self.1[from..from + count], &mut out.v[to..to + count]);
    }
}

impl Held<CotValueHolder> for (Buffer<u8>, Buffer<Gf128>) {
    fn zeroed(n: usize) -> Self {
        (Buffer::zeroed(bits::bytes_for(n)), Buffer::zeroed(n))
    }

    fn all(&mut self) -> CotSlices<'_> {
        CotSlices { u: &mut self.0, v: &mut self.1 }
    }

    fn take(&mut self, from: usize, count: usize, out: &mut CotSlices<'_>, to: usize) {
        for i in 0..count {
            bits::set(out.u, to + i, bits::bit(&self.0, from + i));
            bits::set(&mut self.0, from + i, false);
        }
        bits::clear_from(out.u, out.v.len());
        moved(&mut self.1[from..from + count], &mut out.v[to..to + count]);
    }
}
