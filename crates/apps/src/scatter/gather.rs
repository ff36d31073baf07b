//! Gather: the entries of a dense shared vector at the holder's indices, which may repeat.
//!
//! ```text
//! helper (P1): vector1                    holder (P2): indices, vector2
//! 1. ---- a switching network over max(length, count) wires:
//!         each requested entry to the first place of its run ----
//! 2.                                      s_j: whether place j has the index of place j - 1
//!    out_0 = in_0;  out_j = in_j + s_j*(out_(j-1) - in_j) (products)
//! 3. ---- a switching network over count wires: from runs to the order of the indices ----
//! ```
//!
//! Security: semi-honest. The helper learns nothing about the indices, and neither party learns
//! anything about the entries. The holder sorts its indices between the public numbers and its
//! first message, in a time that depends on them and that the helper can measure, as in
//! [`scatter`](super). Cost: 24 bytes in both directions, crossing. Then in products, 2 messages
//! for each 2^20 of them: `switches(max(length, count))`, `count - 1` and `switches(count)`.

use crate::switching;
use volery_channel::Channel;
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use zeroize::Zeroizing;

use super::{check_length, copied, runs};
use crate::{agree, error::Result};

/// The public parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Public {
    /// Entries of the vector.
    pub length: usize,
    /// Indices.
    pub count: usize,
}

impl Public {
    /// Compares the parameters with the peer's.
    fn agree<R: Ring>(&self, channel: &mut Channel) -> Result<()> {
        // mutant(gather-length, 20 s): `self.length as u64` => `0`
        // mutant(gather-count): `self.count as u64` => `0`
        let numbers =
            [("the entries of the vector", self.length as u64), ("the indices", self.count as u64)];
        Ok(agree::same_over::<R>(None, &numbers, channel)?)
    }
}

/// Helper: converts its share of the vector to its shares of the entries at the holder's indices.
///
/// # Panics
/// If the vector does not have `length` entries.
///
/// # Errors
/// [`Error::Empty`](crate::Error::Empty), [`Error::TooLarge`](crate::Error::TooLarge), before
/// anything is sent; if the parties disagree on the public parameters or on the ring; if the
/// channel or the source of OTs fails.
pub fn send<R: Ring, C: CotSender>(
    public: Public,
    vector: &[R],
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    check_length(public.length, public.count)?;
    assert_eq!(vector.len(), public.length, "the length of the vector");
    public.agree::<R>(channel)?;
    if public.count == 0 {
        return Ok(Zeroizing::default());
    }
    let wires = public.length.max(public.count);
    let mut values = copied(vector, wires);
    values.resize(wires, R::ZERO);
    switching::send(&mut values, ot, channel)?; // step 1
    values.truncate(public.count);
    runs::send(runs::copy, &mut values, ot, channel)?; // step 2
    switching::send(&mut values, ot, channel)?; // step 3
    Ok(values)
}

/// Holder: as [`send`], with the indices.
///
/// # Panics
/// If the vector does not have `length` entries, or the number of indices is not `count`.
///
/// # Errors
/// [`Error::Input`](crate::Error::Input), before anything of the indices is sent: the helper sees a
/// closed channel. Otherwise as [`send`], and if the helper sent a value that is not an element of
/// the ring.
pub fn receive<R: Ring, C: CotReceiver>(
    public: Public,
    indices: &[usize],
    vector: &[R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    check_length(public.length, public.count)?;
    assert_eq!(vector.len(), public.length, "the length of the vector");
    assert_eq!(indices.len(), public.count, "the number of indices");
    public.agree::<R>(channel)?;
    if public.count == 0 {
        return Ok(Zeroizing::default());
    }
    let order = runs::order(indices, public.length)?;
    let indices = runs::permuted(&order, indices);
    let first = |place: usize| place == 0 || indices[place] != indices[place - 1];
    let wanted = (0..public.count).map(|place| first(place).then_some(indices[place]));
    let wanted: Zeroizing<Vec<_>> = Zeroizing::new(wanted.collect());
    let wires = public.length.max(public.count);
    let mut values = copied(vector, wires);
    values.resize(wires, R::ZERO);
    switching::receive(&runs::completed(&wanted, wires), &mut values, ot, channel)?; // step 1
    values.truncate(public.count);
    runs::receive(runs::copy, &indices, &mut values, ot, channel)?; // step 2
    let mut source = Zeroizing::new(vec![0; public.count]);
    for (place, original) in order.iter().enumerate() {
        source[*original] = place;
    }
    switching::receive(&source, &mut values, ot, channel)?; // step 3
    Ok(values)
}
