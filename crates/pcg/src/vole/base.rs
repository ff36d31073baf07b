//! The source of the first correlations of a vector-OLE.
//!
//! | base | rings | how |
//! |---|---|---|
//! | [`Base::Gilboa`] | all but `gf128` | [`crate::gilboa`], over fields with its check |
//! | [`Base::Packed`] | `gf128` | correlated OTs of an extension whose `delta` is `x`, `l` for each correlation |
//!
//! Packing: with `w_i = v_i + u_i*x` for `l` bits `u_i`, the sums over `X^i` are one correlation
//! `sum X^i w_i = (sum X^i u_i)*x + sum X^i v_i`, whose `u` is any element of `gf128` for `l` =
//! 128, and any with zeros from bit `l` on for fewer ([`crate::PlanOptions::value_bits`]). (The
//! extension's letters are exchanged: its sender is our key holder.)
//!
//! Security: malicious, except Gilboa over `z64`.
//!
//! Cost: the setup of the base, which is 61 or 64 base OTs, or that of the extension; with a
//! [`shared setup`](super::shared_setup) the OTs are taken from an extension. A draw: in `fp61` 488
//! bytes a correlation and 1024 for the check, in 3 messages; in `z64` 512 bytes a correlation, in
//! one; in `gf128` `l` correlated OTs a correlation, from a call of the extension for each 256 of
//! them, in one.

use std::marker::PhantomData;

use volery_channel::{Channel, Result, SessionId};
use volery_field::{ExtensionOf, Ring};
use volery_ot::{CotReceiver, CotSender, convert, softspoken};
use volery_primitives::{Block, bits, prg::Prg};
use zeroize::Zeroizing;

use super::VoleRing;
use crate::{Base, Plan, correlation::packed, gilboa, lpn::estimate::Field};

/// Packed correlations made at a time.
const CHUNK: usize = 256;

/// The holder of `u` and `v`.
pub(crate) trait ValueBase<B, R>: Send {
    /// The next `u.len()` correlations, `u` random.
    fn draw(
        &mut self,
        u: &mut [B],
        v: &mut [R],
        rng: &mut Prg,
        channel: &mut Channel,
    ) -> Result<()>;
}

/// The holder of `x`.
pub(crate) trait KeyBase<R>: Send {
    /// The next `w.len()` correlations.
    fn draw(&mut self, w: &mut [R], rng: &mut Prg, channel: &mut Channel) -> Result<()>;
}

/// The holder of `u` and `v`: sets up the base.
pub(crate) fn values<B: Ring, R: VoleRing<B>>(
    plan: &Plan,
    session: SessionId,
    mut rng: Prg,
    channel: &mut Channel,
) -> Result<Box<dyn ValueBase<B, R>>> {
    Ok(match plan.base() {
        Base::Gilboa => {
            Box::new(GilboaValues(gilboa::Sender::setup::<R>(session, &mut rng, channel)?))
        }
        Base::Packed(field) => Box::new(PackedValues(
            plan.packed_ots(),
            softspoken::Receiver::setup(field, session, rng, channel)?,
        )),
        Base::SoftSpoken(_) => unreachable!("bases of correlated OT"),
    })
}

/// Sets up like [`values`], with the OTs on the bits of `x` from `bits` in place of base OTs.
pub(crate) fn values_from<B: Ring, R: VoleRing<B>>(
    plan: &Plan,
    bits: &mut convert::Sender<softspoken::Sender>,
    session: SessionId,
    channel: &mut Channel,
) -> Result<Box<dyn ValueBase<B, R>>> {
    let mut keys = Zeroizing::new(vec![[Block::ZERO; 2]; R::BITS as usize]);
    bits.random_chosen(&mut keys, channel)?;
    Ok(match plan.base() {
        Base::Gilboa => Box::new(GilboaValues(gilboa::Sender::from_ots(&keys))),
        Base::Packed(field) => Box::new(PackedValues(
            plan.packed_ots(),
            softspoken::Receiver::setup_from_ots(&keys, field, session, channel)?,
        )),
        Base::SoftSpoken(_) => unreachable!("bases of correlated OT"),
    })
}

/// Sets up like [`key`], with the OTs on the bits of `x` from `bits` in place of base OTs.
pub(crate) fn key_from<B: Ring, R: VoleRing<B>>(
    plan: &Plan,
    x: R,
    bits: &mut convert::Receiver<softspoken::Receiver>,
    session: SessionId,
    channel: &mut Channel,
) -> Result<Box<dyn KeyBase<R>>> {
    let mut keys = Zeroizing::new(vec![Block::ZERO; R::BITS as usize]);
    bits.random_chosen(&gilboa::choices(x), &mut keys, channel)?;
    Ok(match plan.base() {
        Base::Gilboa => Box::new(gilboa_key::<B, R>(gilboa::Receiver::from_ots(x, &keys))),
        Base::Packed(field) => Box::new(PackedKey(
            plan.packed_ots(),
            softspoken::Sender::setup_from_ots(
                crate::wire::pack(x),
                &keys,
                field,
                session,
                channel,
            )?,
        )),
        Base::SoftSpoken(_) => unreachable!("bases of correlated OT"),
    })
}

/// The holder of `x`: sets up the base.
pub(crate) fn key<B: Ring, R: VoleRing<B>>(
    plan: &Plan,
    x: R,
    session: SessionId,
    mut rng: Prg,
    channel: &mut Channel,
) -> Result<Box<dyn KeyBase<R>>> {
    Ok(match plan.base() {
        Base::Gilboa => {
            Box::new(gilboa_key::<B, R>(gilboa::Receiver::setup(x, session, &mut rng, channel)?))
        }
        Base::Packed(field) => Box::new(PackedKey(
            plan.packed_ots(),
            softspoken::Sender::setup_for_scalar(
                crate::wire::pack(x),
                field,
                session,
                rng,
                channel,
            )?,
        )),
        Base::SoftSpoken(_) => unreachable!("bases of correlated OT"),
    })
}

struct GilboaValues(gilboa::Sender);

struct GilboaKey<B, R: Ring>(gilboa::Receiver<R>, PhantomData<B>);

fn gilboa_key<B, R: Ring>(key: gilboa::Receiver<R>) -> GilboaKey<B, R> {
    GilboaKey(key, PhantomData)
}

/// The check requires a field.
fn is_field<B: Ring, R: VoleRing<B>>() -> bool {
    // mutant(vole-base-unchecked): `!matches!(R::FIELD, Field::Z64Odd | Field::Z64Uniform)` =>
    //     `false`
    !matches!(R::FIELD, Field::Z64Odd | Field::Z64Uniform)
}

impl<B: Ring, R: VoleRing<B>> ValueBase<B, R> for GilboaValues {
    fn draw(
        &mut self,
        u: &mut [B],
        v: &mut [R],
        rng: &mut Prg,
        channel: &mut Channel,
    ) -> Result<()> {
        B::random_slice(rng, u);
        if is_field::<B, R>() {
            self.0.multiply_checked(u, v, rng, channel)
        } else {
            self.0.multiply(u, v, channel)
        }
    }
}

impl<B: Ring, R: VoleRing<B>> KeyBase<R> for GilboaKey<B, R> {
    fn draw(&mut self, w: &mut [R], rng: &mut Prg, channel: &mut Channel) -> Result<()> {
        if is_field::<B, R>() {
            self.0.multiply_checked::<B>(w, rng, channel)
        } else {
            self.0.multiply::<B>(w, channel)
        }
    }
}

/// OTs for each correlation, and their source.
struct PackedValues(usize, softspoken::Receiver);

/// Likewise.
struct PackedKey(usize, softspoken::Sender);

impl<B: Ring, R: ExtensionOf<B>> ValueBase<B, R> for PackedValues {
    fn draw(
        &mut self,
        u: &mut [B],
        v: &mut [R],
        _rng: &mut Prg,
        channel: &mut Channel,
    ) -> Result<()> {
        let Self(each, ots) = self;
        for (u, v) in u.chunks_mut(CHUNK).zip(v.chunks_mut(CHUNK)) {
            let mut blocks = Zeroizing::new(vec![Block::ZERO; *each * u.len()]);
            let mut choices = Zeroizing::new(vec![0; bits::bytes_for(blocks.len())]);
            ots.extend(&mut choices, &mut blocks, channel)?;
            for (u, first) in u.iter_mut().zip((0..).step_by(*each)) {
                *u = B::from_block(block_at(&choices, first, *each));
            }
            pack_all(*each, &blocks, v);
        }
        Ok(())
    }
}

impl<R: Ring> KeyBase<R> for PackedKey {
    fn draw(&mut self, w: &mut [R], _rng: &mut Prg, channel: &mut Channel) -> Result<()> {
        let Self(each, ots) = self;
        for w in w.chunks_mut(CHUNK) {
            let mut blocks = Zeroizing::new(vec![Block::ZERO; *each * w.len()]);
            ots.extend(&mut blocks, channel)?;
            pack_all(*each, &blocks, w);
        }
        Ok(())
    }
}

fn pack_all<R: Ring>(each: usize, blocks: &[Block], out: &mut [R]) {
    for (out, blocks) in out.iter_mut().zip(blocks.chunks_exact(each)) {
        *out = R::from_block(packed(blocks));
    }
}

/// `len` packed bits from bit `first` on, 1 to 128 of them, as the lowest bits of a block.
fn block_at(packed: &[u8], first: usize, len: usize) -> Block {
    let (packed, shift) = (&packed[first / 8..], first % 8);
    let mut bytes = Zeroizing::new([0; 16]);
    let count = packed.len().min(16);
    bytes[..count].copy_from_slice(&packed[..count]);
    // 128 bits that begin within a byte end within the seventeenth.
    let last = u128::from(packed.get(16).copied().unwrap_or(0));
    let all = u128::from_le_bytes(*bytes) >> shift | last << 1 << (127 - shift);
    Block::new(all & u128::MAX >> (128 - len))
}
