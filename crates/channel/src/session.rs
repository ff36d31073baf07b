//! A channel on which both parties have agreed to run the same protocol.

use std::borrow::BorrowMut;
use std::fmt;
use std::ops::{Deref, DerefMut};

use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;

use crate::{Channel, Hello, Result, SessionId, handshake};

/// A channel after its handshake: the channel, an id that keys all hashes, and this party's
/// randomness.
///
/// Protocol objects are created on it (`start` of each), and their later calls take the channel
/// that it dereferences to. Each object gets its own session id, so several may be created on one
/// session, in the same order at both parties.
///
/// `C` is the channel, owned or borrowed.
///
/// # Examples
///
/// ```
/// use volery_channel::{Error, Hello, Role, Session, run_two_parties};
///
/// let hello = |role: Role| Hello {
///     protocol: "example",
///     role: role.name(),
///     fields: vec![("n", "1000".to_owned())],
/// };
/// let (sender, receiver) = run_two_parties(
///     |channel| Ok::<_, Error>(Session::begin(channel, &hello(Role::Sender))?.id()),
///     |channel| Ok::<_, Error>(Session::begin(channel, &hello(Role::Receiver))?.id()),
/// );
/// assert_eq!(sender?, receiver?);
/// # Ok::<_, Error>(())
/// ```
pub struct Session<C: BorrowMut<Channel> = Channel> {
    channel: C,
    id: SessionId,
    rng: Prg,
    /// Number of objects begun.
    begun: u64,
}

impl<C: BorrowMut<Channel>> Session<C> {
    /// Performs the handshake: both parties must be about to run the same protocol. The randomness
    /// is the operating system's.
    ///
    /// # Errors
    /// The errors of [`handshake`](fn@crate::handshake), and [`Error::Io`](crate::Error::Io) if the
    /// operating system provides no randomness.
    pub fn begin(channel: C, hello: &Hello) -> Result<Self> {
        Self::begin_with(channel, hello, Prg::from_os()?)
    }

    /// [`begin`](Self::begin) with the caller's randomness, such as `Prg::from_rng`. Equal
    /// randomness in two sessions voids the security of both.
    ///
    /// # Errors
    /// The errors of [`handshake`](fn@crate::handshake).
    pub fn begin_with(mut channel: C, hello: &Hello, mut rng: Prg) -> Result<Self> {
        let id = shake(channel.borrow_mut(), hello, &mut rng)?;
        Ok(Self::new(channel, id, rng))
    }

    /// A session agreed on by other means: `id` is the same at both parties and unique to this
    /// session.
    pub const fn new(channel: C, id: SessionId, rng: Prg) -> Self {
        Self { channel, id, rng, begun: 0 }
    }

    /// Performs another handshake on the same channel, for another protocol: the session gets a new
    /// id.
    ///
    /// # Errors
    /// The errors of [`handshake`](fn@crate::handshake).
    pub fn next(&mut self, hello: &Hello) -> Result<()> {
        self.id = shake(self.channel.borrow_mut(), hello, &mut self.rng)?;
        self.begun = 0;
        Ok(())
    }

    /// The id, the same at both parties. Not a secret.
    pub const fn id(&self) -> SessionId {
        self.id
    }

    /// The arguments with which a protocol object begins: its own id, its own randomness, the
    /// channel. Both parties must begin the same objects in the same order.
    pub fn parts(&mut self) -> (SessionId, Prg, &mut Channel) {
        let mut oracle = RandomOracle::new("volery session part");
        // mutant(session-part-of): drop
        oracle.absorb(self.id.as_bytes());
        // mutant(session-part): drop
        oracle.absorb_u64(self.begun);
        self.begun += 1;
        let id = SessionId::from_bytes(oracle.finish32());
        // mutant(session-randomness): `self.rng.fork("session part")` =>
        //     `Prg::new(volery_primitives::Block::ZERO)`
        (id, self.rng.fork("session part"), self.channel.borrow_mut())
    }

    /// A generator of this party, for its own use: the peer need not make one.
    pub fn rng(&mut self) -> Prg {
        self.rng.fork("session rng")
    }

    /// The channel.
    #[must_use]
    pub fn into_channel(self) -> C {
        self.channel
    }
}

fn shake(channel: &mut Channel, hello: &Hello, rng: &mut Prg) -> Result<SessionId> {
    let mut nonce = [0; 32];
    rng.fill_bytes(&mut nonce);
    handshake(channel, hello, nonce)
}

/// Without the randomness.
impl<C: BorrowMut<Channel>> fmt::Debug for Session<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session {{ id: {:?}, begun: {}, .. }}", self.id, self.begun)
    }
}

impl<C: BorrowMut<Channel>> Deref for Session<C> {
    type Target = Channel;

    fn deref(&self) -> &Channel {
        self.channel.borrow()
    }
}

impl<C: BorrowMut<Channel>> DerefMut for Session<C> {
    fn deref_mut(&mut self) -> &mut Channel {
        self.channel.borrow_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Role, run_two_parties};

    fn hello(role: Role, n: u32) -> Hello {
        Hello { protocol: "test", role: role.name(), fields: vec![("n", n.to_string())] }
    }

    #[test]
    fn each_part_has_an_id_that_the_peer_has_too() {
        let party = |role| {
            move |channel: &mut Channel| -> Result<Vec<SessionId>> {
                let mut session = Session::begin(channel, &hello(role, 1))?;
                let mut ids = vec![session.id()];
                ids.extend([session.parts().0, session.parts().0]);
                session.next(&hello(role, 2))?;
                ids.extend([session.id(), session.parts().0]);
                session.send(&[7])?;
                session.recv(&mut [0])?;
                Ok(ids)
            }
        };
        let (sender, receiver) = run_two_parties(party(Role::Sender), party(Role::Receiver));
        let ids = sender.unwrap();
        assert_eq!(ids, receiver.unwrap());
        for (i, a) in ids.iter().enumerate() {
            assert!(ids[..i].iter().all(|b| a != b), "{i}");
        }
    }

    #[test]
    fn two_sessions_draw_different_randomness() {
        let party = |role| {
            move |channel: &mut Channel| -> Result<_> {
                let mut session = Session::begin(channel, &hello(role, 1))?;
                let own = session.rng().block();
                let mut draw = || session.parts().1.block();
                Ok([draw(), draw(), own])
            }
        };
        let (a, b) = run_two_parties(party(Role::Sender), party(Role::Receiver));
        let (a, b) = (a.unwrap(), b.unwrap());
        assert!(a[0] != a[1] && a[0] != a[2] && a[1] != a[2]);
        assert!(a.iter().all(|a| !b.contains(a)));
    }
}
