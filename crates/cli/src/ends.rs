//! What a run makes: the ends of each kind of correlation, as the runner in [`crate::party`] sees them.
//!
//! | correlation | end | key | values | column |
//! |---|---|---|---|---|
//! | VOLE, `w = u*x + v` | sender | | `u` | `v` |
//! | | receiver | `x` | | `w` |
//! | COT, `w = v + u*delta` | sender | `delta` | | `v` |
//! | | receiver | | `u`, bits | `w` |
//!
//! The column of the key's holder is `u` times the key plus the column of the other party: for COT too, as there `+` and
//! `-` are the same.

use std::fmt;
use std::marker::PhantomData;

use volery_channel::{Channel, SessionId};
use volery_field::{ExtensionOf, F2, Gf128, Ring};
use volery_ot::{CotReceiver as _, CotSender as _};
use volery_pcg::correlation;
use volery_pcg::vole::{self, VoleRing};
use volery_pcg::{Kind, Plan, Result, cot};
use volery_primitives::{bits, prg::Prg};
use zeroize::{Zeroize, Zeroizing};

/// Which half a party gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Role {
    /// Gets u and v of a VOLE; delta and v of a COT.
    Sender,
    /// Gets x and w of a VOLE; u and w of a COT.
    Receiver,
}

impl Role {
    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One party's end of a stream of correlations.
pub(crate) trait End: Sized {
    /// The ring of `u`.
    type Base: Ring;
    /// The ring of everything else.
    type Ring: ExtensionOf<Self::Base>;
    /// What the values `u` of a step are kept in: elements, or eight bits.
    type Unit: Copy + Default + Send + Sync + Zeroize;

    /// The verb.
    const PROTOCOL: &'static str;
    /// The party.
    const ROLE: Role;
    /// The letter of its key, if it has one.
    const KEY: Option<&'static str>;
    /// The letter of its values, if it has some.
    const VALUES: Option<&'static str>;
    /// The letter of its column.
    const COLUMN: &'static str;

    /// The end, ready to draw from, with the given key or a random one.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves.
    fn setup(
        plan: &Plan,
        key: Option<Self::Ring>,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self>;

    /// The key; none at the party that has none.
    fn key(&self) -> Option<Self::Ring>;

    /// Units for the values of `count` correlations.
    fn units(count: usize) -> usize;

    /// Draws the next correlations.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves.
    fn draw(
        &mut self,
        u: &mut [Self::Unit],
        column: &mut [Self::Ring],
        channel: &mut Channel,
    ) -> Result<()>;

    /// Calls `look` with the `count` values that `u` holds.
    fn open<T>(u: &[Self::Unit], count: usize, look: impl FnOnce(&[Self::Base]) -> T) -> T;
}

/// A kind of correlation: its two ends.
pub(crate) trait Correlation {
    /// The pipeline's own view of it.
    type Pipeline: correlation::Correlation<Base = Self::Base, Ring = Self::Ring>;
    /// The ring of `u`.
    type Base: Ring;
    /// The ring of everything else.
    type Ring: ExtensionOf<Self::Base>;
    /// The sender's end.
    type Sender: End<Base = Self::Base, Ring = Self::Ring>;
    /// The receiver's end.
    type Receiver: End<Base = Self::Base, Ring = Self::Ring>;

    /// What its plans are for.
    const KIND: Kind;
    /// What holds.
    const RELATION: &'static str;
}

/// VOLE over a ring.
pub(crate) struct Vole<R>(PhantomData<R>);

/// Correlated OT.
pub(crate) struct Cot;

impl<R: VoleRing> Correlation for Vole<R> {
    type Pipeline = correlation::Vole<R>;
    type Base = R;
    type Ring = R;
    type Sender = vole::Sender<R>;
    type Receiver = vole::Receiver<R>;

    const KIND: Kind = Kind::Vole(R::FIELD);
    const RELATION: &'static str = "w = u*x + v";
}

impl Correlation for Cot {
    type Pipeline = correlation::Cot;
    type Base = F2;
    type Ring = Gf128;
    type Sender = cot::Sender;
    type Receiver = cot::Receiver;

    const KIND: Kind = Kind::Cot;
    const RELATION: &'static str = "w = v + u*delta";
}

impl<R: VoleRing> End for vole::Sender<R> {
    type Base = R;
    type Ring = R;
    type Unit = R;

    const PROTOCOL: &'static str = "vole";
    const ROLE: Role = Role::Sender;
    const KEY: Option<&'static str> = None;
    const VALUES: Option<&'static str> = Some("u");
    const COLUMN: &'static str = "v";

    fn setup(
        plan: &Plan,
        _key: Option<R>,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        Self::setup(plan, session, rng, channel)
    }

    fn key(&self) -> Option<R> {
        None
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

impl<R: VoleRing> End for vole::Receiver<R> {
    type Base = R;
    type Ring = R;
    type Unit = R;

    const PROTOCOL: &'static str = "vole";
    const ROLE: Role = Role::Receiver;
    const KEY: Option<&'static str> = Some("x");
    const VALUES: Option<&'static str> = None;
    const COLUMN: &'static str = "w";

    fn setup(
        plan: &Plan,
        x: Option<R>,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        Self::setup(plan, x, session, rng, channel)
    }

    fn key(&self) -> Option<R> {
        Some(self.x())
    }

    fn units(_count: usize) -> usize {
        0
    }

    fn draw(&mut self, _u: &mut [R], w: &mut [R], channel: &mut Channel) -> Result<()> {
        self.extend(w, channel)
    }

    fn open<T>(_u: &[R], _count: usize, look: impl FnOnce(&[R]) -> T) -> T {
        look(&[])
    }
}

impl End for cot::Sender {
    type Base = F2;
    type Ring = Gf128;
    type Unit = u8;

    const PROTOCOL: &'static str = "cot";
    const ROLE: Role = Role::Sender;
    const KEY: Option<&'static str> = Some("delta");
    const VALUES: Option<&'static str> = None;
    const COLUMN: &'static str = "v";

    fn setup(
        plan: &Plan,
        delta: Option<Gf128>,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        Self::setup(plan, delta.map(Gf128::value), session, rng, channel)
    }

    fn key(&self) -> Option<Gf128> {
        Some(Gf128::new(self.delta()))
    }

    fn units(_count: usize) -> usize {
        0
    }

    fn draw(&mut self, _u: &mut [u8], v: &mut [Gf128], channel: &mut Channel) -> Result<()> {
        self.extend(bytemuck::cast_slice_mut(v), channel)
    }

    fn open<T>(_u: &[u8], _count: usize, look: impl FnOnce(&[F2]) -> T) -> T {
        look(&[])
    }
}

impl End for cot::Receiver {
    type Base = F2;
    type Ring = Gf128;
    type Unit = u8;

    const PROTOCOL: &'static str = "cot";
    const ROLE: Role = Role::Receiver;
    const KEY: Option<&'static str> = None;
    const VALUES: Option<&'static str> = Some("u");
    const COLUMN: &'static str = "w";

    fn setup(
        plan: &Plan,
        _key: Option<Gf128>,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        Self::setup(plan, session, rng, channel)
    }

    fn key(&self) -> Option<Gf128> {
        None
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

#[cfg(test)]
mod tests {
    use super::*;

    /// One party has the key, the other the values; each letter stands once.
    #[test]
    fn the_two_ends_make_a_whole() {
        fn check<K: Correlation>() {
            let letters = |of: [Option<&'static str>; 3]| of.into_iter().flatten();
            let mut all: Vec<_> =
                letters([K::Sender::KEY, K::Sender::VALUES, Some(K::Sender::COLUMN)])
                    .chain(letters([
                        K::Receiver::KEY,
                        K::Receiver::VALUES,
                        Some(K::Receiver::COLUMN),
                    ]))
                    .collect();
            assert_eq!(all.len(), 4);
            assert!(all.iter().all(|letter| K::RELATION.contains(letter)));
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 4);
            assert_eq!(K::Sender::PROTOCOL, K::Receiver::PROTOCOL);
            assert_ne!(K::Sender::ROLE, K::Receiver::ROLE);
        }
        check::<Vole<Gf128>>();
        check::<Cot>();
    }

    #[test]
    fn bits_are_opened_in_order() {
        let open = |u: &[u8], count| {
            cot::Receiver::open(u, count, |values| {
                values.iter().map(|value| value.value()).collect::<Vec<_>>()
            })
        };
        assert_eq!(
            open(&[0b1000_0101, 0b10], 10),
            [1, 0, 1, 0, 0, 0, 0, 1, 0, 1]
        );
        assert!(open(&[], 0).is_empty());
    }
}
