//! A seed that neither party chooses, and a comparison of two secrets.
//!
//! ```text
//! Sender: a                               Receiver: b
//! 1.     -- H(nonce, a) ->
//! 2.     <------ b -------
//! 3.     --- nonce, a --->                checks H(nonce, a)
//! ```
//!
//! For a seed `a` and `b` are random, and it is `H(a, b)`. For a comparison they are hashes of the
//! secrets: as in the functionality `F_EQ`, a party learns the peer's after it has sent its own.

use subtle::ConstantTimeEq as _;
use volery_channel::{Channel, Error, Result, Role};
use volery_primitives::{Block, prg::Prg, ro::RandomOracle};

/// The peer's value, which does not depend on `own`.
fn swap(role: Role, own: &[u8; 32], rng: &mut Prg, channel: &mut Channel) -> Result<[u8; 32]> {
    let hash =
        |opening: &[u8; 64]| RandomOracle::new("volery mpc: commitment").absorb(opening).finish32();
    let (mut opening, mut theirs) = ([0; 64], [0; 32]);
    if role == Role::Sender {
        rng.fill_bytes(&mut opening[..32]);
        opening[32..].copy_from_slice(own);
        channel.send(&hash(&opening))?; // step 1
        channel.flush()?;
        channel.recv(&mut theirs)?; // step 2
        channel.send(&opening)?; // step 3
        channel.flush()?;
        return Ok(theirs);
    }
    channel.recv(&mut theirs)?;
    channel.send(own)?;
    channel.flush()?;
    channel.recv(&mut opening)?;
    // mutant(mpc-commitment): false
    if hash(&opening) != theirs {
        return Err(Error::PeerMisbehaved("it opens another value than it has committed to"));
    }
    theirs.copy_from_slice(&opening[32..]);
    Ok(theirs)
}

/// A seed that is random if one of the parties is honest, and that neither knew before.
pub(crate) fn toss(role: Role, rng: &mut Prg, channel: &mut Channel) -> Result<Block> {
    let mut own = [0; 32];
    rng.fill_bytes(&mut own);
    let [a, b] = role.sides([own, swap(role, &own, rng, channel)?]);
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
    // mutant(mpc-equal): false
    if !bool::from(swap(role, own, rng, channel)?.ct_eq(own)) {
        return Err(Error::PeerMisbehaved(what));
    }
    Ok(())
}
