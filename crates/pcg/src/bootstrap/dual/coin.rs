//! The seed of the code of an instance: a coin that both parties toss when the noise is fixed.
//!
//! ```text
//! Key holder: a random                    Value holder: b random
//! 1. ------- commitment to a, salted ------->
//! 2.     <-------------- b --------------
//! 3. ---------------- a, salt --------------->
//!    seed = RO(session, instance, a, b)
//! ```
//!
//! Neither party can choose the seed, or try many: one who stops when it does not like it has ended the session.
//! Cost: 32 and 48 bytes from the key holder, 16 from the value holder, in turn: 3 messages.

use volery_channel::{Channel, Error, Result};
use volery_primitives::{Block, prg::Prg, ro::RandomOracle};

use crate::check::Context;

/// The key holder's side.
///
/// # Errors
/// If the channel fails.
pub(super) fn key_holder(context: Context, rng: &mut Prg, channel: &mut Channel) -> Result<Block> {
    let mine = rng.block();
    let mut salt = [0; 32];
    rng.fill_bytes(&mut salt);
    channel.send(&commitment(context, mine, &salt))?; // step 1
    channel.flush()?;
    let theirs = channel.recv_block()?; // step 2
    channel.send_block(mine)?; // step 3
    channel.send(&salt)?;
    channel.flush()?;
    Ok(seed(context, mine, theirs))
}

/// The value holder's side.
///
/// # Errors
/// If the channel fails, or the key holder opened something else.
pub(super) fn value_holder(
    context: Context,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<Block> {
    let mut committed = [0; 32];
    channel.recv(&mut committed)?; // step 1
    let mine = rng.block();
    channel.send_block(mine)?; // step 2
    channel.flush()?;
    let theirs = channel.recv_block()?; // step 3
    let mut salt = [0; 32];
    channel.recv(&mut salt)?;
    if commitment(context, theirs, &salt) != committed {
        return Err(Error::PeerMisbehaved(
            "the coin for the code is not the one committed to",
        ));
    }
    Ok(seed(context, theirs, mine))
}

fn oracle(domain: &'static str, context: Context) -> RandomOracle {
    let mut oracle = RandomOracle::new(domain);
    oracle.absorb(context.session.as_bytes());
    oracle.absorb_u64(context.round);
    oracle
}

fn commitment(context: Context, coin: Block, salt: &[u8; 32]) -> [u8; 32] {
    let mut oracle = oracle("volery dual lpn: commitment to a coin", context);
    oracle.absorb(salt);
    oracle.absorb(&coin.to_bytes());
    oracle.finish32()
}

fn seed(context: Context, key_holder: Block, value_holder: Block) -> Block {
    let mut oracle = oracle("volery dual lpn: code", context);
    oracle.absorb(&key_holder.to_bytes());
    oracle.absorb(&value_holder.to_bytes());
    oracle.finish_block()
}
