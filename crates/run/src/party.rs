//! The parties of each kind of correlation, as the driver sees them.
//!
//! | correlation | party | key | values | column |
//! |---|---|---|---|---|
//! | VOLE, `w = u*x + v` | sender | | `u` | `v` |
//! | | receiver | `x` | | `w` |
//! | COT, `w = v + u*delta` | sender | `delta` | | `v` |
//! | | receiver | | `u`, bits | `w` |
//! | random OT | sender | | `m0` | `m1` |
//! | | receiver | | `u`, bits | `m`, of `u` |
//!
//! The key holder's column is `u` times the key plus the column of the other party; for COT too,
//! where `+` and `-` are the same.

use std::marker::PhantomData;

use bytemuck::Pod;
use volery_channel::{Channel, Role, SessionId};
use volery_field::{ExtensionOf, F2, Gf128, Ring};
use volery_ot::{CotReceiver as _, CotSender as _, convert};
#[cfg(feature = "gpu")]
use volery_pcg::card;
use volery_pcg::vole::{self, VoleRing};
use volery_pcg::{Kind, Plan, Result, cot};
use volery_primitives::{Block, bits, prg::Prg};
use zeroize::{Zeroize, Zeroizing};

#[cfg(feature = "gpu")]
use crate::stream::card::CardParty;

/// What a party starts with.
pub struct Start<'a, R> {
    /// The same plan as the peer's.
    pub plan: &'a Plan,
    /// The key, or a random one.
    pub key: Option<R>,
    /// The session of the handshake.
    pub session: SessionId,
    /// The randomness of this party.
    pub rng: Prg,
}

impl Start<'_, Gf128> {
    pub(crate) fn delta(&self) -> Option<Block> {
        self.key.map(Gf128::value)
    }
}

/// One party of a stream of correlations.
pub trait Party: Sized {
    /// The ring of `u`.
    type Base: Ring;
    /// The ring of everything else.
    type Ring: ExtensionOf<Self::Base> + Pod;
    /// The storage unit of the values `u` of a step: an element, or eight bits.
    type Unit: Copy + Default + Send + Sync + Zeroize + Pod;

    /// The party with outputs on a card.
    #[cfg(feature = "gpu")]
    type CardParty: CardParty<Self::Ring>;

    /// Whether it hashes correlations into messages.
    const IS_HASHED: bool = false;
    /// The name of the subcommand.
    const PROTOCOL: &'static str;
    /// The role of the party.
    const ROLE: Role;
    /// The letter of its key, if it has one.
    const KEY: Option<&'static str> = None;
    /// The letter of its values, if it has any.
    const VALUES: Option<&'static str> = None;
    /// The letter of its column.
    const COLUMN: &'static str;

    /// Sets up the party with the given key or a random one.
    fn setup(start: Start<'_, Self::Ring>, channel: &mut Channel) -> Result<Self>;

    /// The key, if this party has one.
    fn key(&self) -> Option<Self::Ring> {
        None
    }

    /// Units for the values of `count` correlations; none for the party that has no values.
    fn units(_count: usize) -> usize {
        0
    }

    /// Draws the next correlations.
    fn draw(
        &mut self,
        u: &mut [Self::Unit],
        column: &mut [Self::Ring],
        channel: &mut Channel,
    ) -> Result<()>;

    /// Calls `look` with the `count` values in `u`.
    fn open<T>(_u: &[Self::Unit], _count: usize, look: impl FnOnce(&[Self::Base]) -> T) -> T {
        look(&[])
    }
}

/// A kind of correlation: its two parties.
pub trait Correlation {
    /// The ring of `u`.
    type Base: Ring;
    /// The ring of everything else.
    type Ring: ExtensionOf<Self::Base>;
    /// The sender.
    type Sender: Party<Base = Self::Base, Ring = Self::Ring>;
    /// The receiver.
    type Receiver: Party<Base = Self::Base, Ring = Self::Ring>;

    /// The kind of its plans.
    const KIND: Kind;
    /// The relation that holds.
    const RELATION: &'static str;
}

/// VOLE over a ring.
pub struct Vole<R>(PhantomData<R>);

/// Correlated OT.
pub struct Cot;

impl<R: VoleRing + Pod> Correlation for Vole<R> {
    type Base = R;
    type Ring = R;
    type Sender = vole::Sender<R>;
    type Receiver = vole::Receiver<R>;

    const KIND: Kind = Kind::Vole(R::FIELD);
    const RELATION: &'static str = "w = u*x + v";
}

impl Correlation for Cot {
    type Base = F2;
    type Ring = Gf128;
    type Sender = cot::Sender;
    type Receiver = cot::Receiver;

    const KIND: Kind = Kind::Cot;
    const RELATION: &'static str = "w = v + u*delta";
}

impl<R: VoleRing + Pod> Party for vole::Sender<R> {
    type Base = R;
    type Ring = R;
    type Unit = R;
    #[cfg(feature = "gpu")]
    type CardParty = card::VoleSender<R>;

    const PROTOCOL: &'static str = "vole";
    const ROLE: Role = Role::Sender;
    const VALUES: Option<&'static str> = Some("u");
    const COLUMN: &'static str = "v";

    fn setup(start: Start<'_, R>, channel: &mut Channel) -> Result<Self> {
        Self::setup(start.plan, start.session, start.rng, channel)
    }

    fn units(count: usize) -> usize {
        count
    }

    fn draw(&mut self, u: &mut [R], v: &mut [R], channel: &mut Channel) -> Result<()> {
        self.extend(u, v, channel)
    }

    fn open<T>(u: &[R], count: usize, look: impl FnOnce(&[R]) -> T) -> T {
        look(&u[..count])
    }
}

impl<R: VoleRing + Pod> Party for vole::Receiver<R> {
    type Base = R;
    type Ring = R;
    type Unit = R;
    #[cfg(feature = "gpu")]
    type CardParty = card::VoleReceiver<R>;

    const PROTOCOL: &'static str = "vole";
    const ROLE: Role = Role::Receiver;
    const KEY: Option<&'static str> = Some("x");
    const COLUMN: &'static str = "w";

    fn setup(start: Start<'_, R>, channel: &mut Channel) -> Result<Self> {
        Self::setup(start.plan, start.key, start.session, start.rng, channel)
    }

    fn key(&self) -> Option<R> {
        Some(self.x())
    }

    fn draw(&mut self, _u: &mut [R], w: &mut [R], channel: &mut Channel) -> Result<()> {
        self.extend(w, channel)
    }
}

impl Party for cot::Sender {
    type Base = F2;
    type Ring = Gf128;
    type Unit = u8;
    #[cfg(feature = "gpu")]
    type CardParty = card::CotSender;

    const PROTOCOL: &'static str = "cot";
    const ROLE: Role = Role::Sender;
    const KEY: Option<&'static str> = Some("delta");
    const COLUMN: &'static str = "v";

    fn setup(start: Start<'_, Gf128>, channel: &mut Channel) -> Result<Self> {
        Self::setup(start.plan, start.delta(), start.session, start.rng, channel)
    }

    fn key(&self) -> Option<Gf128> {
        Some(Gf128::new(self.delta()))
    }

    fn draw(&mut self, _u: &mut [u8], v: &mut [Gf128], channel: &mut Channel) -> Result<()> {
        self.extend(bytemuck::cast_slice_mut(v), channel)
    }
}

impl Party for cot::Receiver {
    type Base = F2;
    type Ring = Gf128;
    type Unit = u8;
    #[cfg(feature = "gpu")]
    type CardParty = card::CotReceiver;

    const PROTOCOL: &'static str = "cot";
    const ROLE: Role = Role::Receiver;
    const VALUES: Option<&'static str> = Some("u");
    const COLUMN: &'static str = "w";

    fn setup(start: Start<'_, Gf128>, channel: &mut Channel) -> Result<Self> {
        Self::setup(start.plan, start.session, start.rng, channel)
    }

    fn units(count: usize) -> usize {
        bits::bytes_for(count)
    }

    fn draw(&mut self, u: &mut [u8], w: &mut [Gf128], channel: &mut Channel) -> Result<()> {
        self.extend(u, bytemuck::cast_slice_mut(w), channel)
    }

    fn open<T>(u: &[u8], count: usize, look: impl FnOnce(&[F2]) -> T) -> T {
        let values: Vec<F2> = (0..count).map(|i| F2::new(bits::bit(u, i))).collect();
        look(&Zeroizing::new(values))
    }
}

/// The sender of random OTs.
pub struct RandomSender(convert::Sender<cot::Sender>);

/// Their receiver.
pub struct RandomReceiver(convert::Receiver<cot::Receiver>);

impl Party for RandomSender {
    type Base = Gf128;
    type Ring = Gf128;
    type Unit = Gf128;
    #[cfg(feature = "gpu")]
    type CardParty = card::RandomSender;

    const IS_HASHED: bool = true;
    const PROTOCOL: &'static str = "cot";
    const ROLE: Role = Role::Sender;
    const VALUES: Option<&'static str> = Some("m0");
    const COLUMN: &'static str = "m1";

    fn setup(start: Start<'_, Gf128>, channel: &mut Channel) -> Result<Self> {
        let cots =
            cot::Sender::setup(start.plan, start.delta(), start.session, start.rng, channel)?;
        Ok(Self(convert::Sender::new(cots, start.session)))
    }

    fn units(count: usize) -> usize {
        count
    }

    fn draw(&mut self, m0: &mut [Gf128], m1: &mut [Gf128], channel: &mut Channel) -> Result<()> {
        let mut pairs = Zeroizing::new(vec![[Block::ZERO; 2]; m1.len()]);
        self.0.random(&mut pairs, channel)?;
        for ((m0, m1), pair) in m0.iter_mut().zip(m1).zip(pairs.iter()) {
            (*m0, *m1) = (Gf128::new(pair[0]), Gf128::new(pair[1]));
        }
        Ok(())
    }

    fn open<T>(m0: &[Gf128], count: usize, look: impl FnOnce(&[Gf128]) -> T) -> T {
        look(&m0[..count])
    }
}

impl Party for RandomReceiver {
    type Base = F2;
    type Ring = Gf128;
    type Unit = u8;
    #[cfg(feature = "gpu")]
    type CardParty = card::RandomReceiver;

    const IS_HASHED: bool = true;
    const PROTOCOL: &'static str = "cot";
    const ROLE: Role = Role::Receiver;
    const VALUES: Option<&'static str> = Some("u");
    const COLUMN: &'static str = "m";

    fn setup(start: Start<'_, Gf128>, channel: &mut Channel) -> Result<Self> {
        let cots = cot::Receiver::setup(start.plan, start.session, start.rng, channel)?;
        Ok(Self(convert::Receiver::new(cots, start.session)))
    }

    fn units(count: usize) -> usize {
        bits::bytes_for(count)
    }

    fn draw(&mut self, u: &mut [u8], m: &mut [Gf128], channel: &mut Channel) -> Result<()> {
        self.0.random(u, bytemuck::cast_slice_mut(m), channel)
    }

    fn open<T>(u: &[u8], count: usize, look: impl FnOnce(&[F2]) -> T) -> T {
        cot::Receiver::open(u, count, look)
    }
}
