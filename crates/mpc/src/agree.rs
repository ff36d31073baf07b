//! A seed that neither party chooses, and a comparison of two secrets.
//!
//! ```text
//! Sender: a (random)                      Receiver: b (random)
//! 1.     ---- H(a) ---->
//! 2.     <----- b ------
//! 3.     ----- a ------>                  checks H(a)
//!        seed = H(a, b)                   seed = H(a, b)
//! ```
//!
//! The comparison sends `H(a, x)` in step 1 and the receiver's `H(y)` in step 2; the sender opens
//! `a` only if that is `H(x)`. A sender learns `H(y)`, also of another `y`, as the functionality
//! `F_EQ` of the triples lets it.

use subtle::ConstantTimeEq as _;
use volery_channel::{Channel, Error, Result, Role};
use volery_primitives::{Block, prg::Prg, ro::RandomOracle};

/// A seed that is random if one of the parties is honest, and that neither knew before.
pub(crate) fn toss(role: Role, rng: &mut Prg, channel: &mut Channel) -> Result<Block> {
    let mut own = [0; 32];
    rng.fill_bytes(&mut own);
    let commitment = |a: &[u8; 32]| RandomOracle::new("volery mpc: coin").absorb(a).finish32();
    let mut theirs = [0; 32];
    let [a, b] = match role {
        Role::Sender => {
            channel.send(&commitment(&own))?; // step 1
            channel.flush()?;
            channel.recv(&mut theirs)?; // step 2
            channel.send(&own)?; // step 3
            channel.flush()?;
            [own, theirs]
        }
        Role::Receiver => {
            let mut committed = [0; 32];
            channel.recv(&mut committed)?;
            channel.send(&own)?;
            channel.flush()?;
            channel.recv(&mut theirs)?;
            // mutant(mpc-coin): false
            if commitment(&theirs) != committed {
                return Err(Error::PeerMisbehaved("its part of a common seed is another one"));
            }
            [theirs, own]
        }
    };
    Ok(RandomOracle::new("volery mpc: seed").absorb(&a).absorb(&b).finish_block())
}

/// Checks that both parties have the same hash of a secret; `what` is the error otherwise.
pub(crate) fn equal(
    role: Role,
    own: &[u8; 32],
    what: &'static str,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<()> {
    let of =
        |nonce: &[u8], x| RandomOracle::new("volery mpc: equal").absorb(nonce).absorb(x).finish32();
    let (mut nonce, mut theirs) = ([0; 32], [0; 32]);
    let same = match role {
        Role::Sender => {
            rng.fill_bytes(&mut nonce);
            channel.send(&of(&nonce, own))?; // step 1
            channel.flush()?;
            channel.recv(&mut theirs)?; // step 2
            // no mutant: the mutant is mpc-equal
            of(&[], own).ct_eq(&theirs)
        }
        Role::Receiver => {
            channel.recv(&mut theirs)?;
            channel.send(&of(&[], own))?;
            channel.flush()?;
            channel.recv(&mut nonce)?;
            // no mutant: the mutant is mpc-equal
            of(&nonce, own).ct_eq(&theirs)
        }
    };
    // mutant(mpc-equal): false
    if !bool::from(same) {
        return Err(Error::PeerMisbehaved(what));
    }
    if role == Role::Sender {
        channel.send(&nonce)?; // step 3
        channel.flush()?;
    }
    Ok(())
}
