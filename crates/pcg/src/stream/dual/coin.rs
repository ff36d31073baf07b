//! The seed of the code of an instance: a coin toss of both parties after the noise is fixed.
//!
//! ```text
//! Key holder: a random                    Value holder: b random
//! 1. ------- commitment to a, salted ------->
//! 2.     <-------------- b --------------
//! 3. ---------------- a, salt --------------->
//!    seed = RO(session, instance, a, b)
//! ```
//!
//! Neither party can choose the seed, or try many: a party that stops because it rejects the seed
//! ends the session.
//!
//! Cost: 32 and 48 bytes from the key holder, 16 from the value holder, in turn: 3 messages.

use volery_channel::{Channel, Error, Result};
use volery_primitives::{Block, prg::Prg, ro::RandomOracle};

use crate::check::Context;

/// The key holder's side.
pub(super) fn key_holder(context: Context, rng: &mut Prg, channel: &mut Channel) -> Result<Block> {
    // mutant(coin-constant-key): `rng.block()` => `Block::ZERO`
    let mine = rng.block();
    let mut salt = [0; 32];
    // mutant(coin-salt): drop
    rng.fill_bytes(&mut salt);
    channel.send(&commitment(context, mine, &salt))?; // step 1
    // mutant(coin-early-key): insert `if $ON { channel.send_block(mine)?; }`
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
/// If the key holder's opening does not match its commitment.
pub(super) fn value_holder(
    context: Context,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<Block> {
    let mut committed = [0; 32];
    // mutant(coin-early-value): insert `if $ON { channel.send_block(Block::ZERO)?;
    //     channel.flush()?; }`
    channel.recv(&mut committed)?; // step 1
    // mutant(coin-constant-value): `rng.block()` => `Block::ZERO`
    let mine = rng.block();
    channel.send_block(mine)?; // step 2
    channel.flush()?;
    let theirs = channel.recv_block()?; // step 3
    let mut salt = [0; 32];
    channel.recv(&mut salt)?;
    // mutant(coin-commitment): false
    if commitment(context, theirs, &salt) != committed {
        return Err(Error::PeerMisbehaved("the coin for the code is not the one committed to"));
    }
    Ok(seed(context, theirs, mine))
}

fn oracle(domain: &'static str, context: Context) -> RandomOracle {
    let mut oracle = RandomOracle::new(domain);
    // mutant(coin-session): drop
    oracle.absorb(context.session.as_bytes());
    // mutant(coin-round): drop
    oracle.absorb_u64(context.round);
    oracle
}

fn commitment(context: Context, coin: Block, salt: &[u8; 32]) -> [u8; 32] {
    let mut oracle = oracle("volery dual lpn: commitment to a coin", context);
    // mutant(coin-salt-bound): drop
    oracle.absorb(salt);
    // mutant(coin-coin-bound): drop
    oracle.absorb(&coin.to_bytes());
    oracle.finish32()
}

fn seed(context: Context, key_holder: Block, value_holder: Block) -> Block {
    let mut oracle = oracle("volery dual lpn: code", context);
    // mutant(coin-of-key): drop
    oracle.absorb(&key_holder.to_bytes());
    // mutant(coin-of-value): drop
    oracle.absorb(&value_holder.to_bytes());
    oracle.finish_block()
}

#[cfg(test)]
mod tests {
    use volery_channel::{SessionId, run_two_channels, run_two_parties};

    use super::*;

    fn context(session: u8, round: u64) -> Context {
        let session = SessionId::from_bytes([session; 32]);
        Context { session, round }
    }

    fn tossed(context: Context, of_key_holder: u128, of_value_holder: u128) -> Block {
        let rng = |seed: u128| Prg::new(Block::from(seed));
        let (left, right) = run_two_parties(
            |channel| key_holder(context, &mut rng(of_key_holder), channel).unwrap(),
            |channel| value_holder(context, &mut rng(of_value_holder), channel).unwrap(),
        );
        assert_eq!(left, right);
        left
    }

    /// The randomness of each party alone changes the coin; so do another session and another
    /// instance.
    #[test]
    fn coins_are_drawn_anew() {
        let first = tossed(context(1, 1), 1, 2);
        assert_eq!(tossed(context(1, 1), 1, 2), first);
        let coins = [
            first,
            tossed(context(1, 1), 1, 3),
            tossed(context(1, 1), 3, 2),
            tossed(context(2, 1), 1, 2),
            tossed(context(1, 2), 1, 2),
        ];
        assert!((0..coins.len()).all(|i| !coins[..i].contains(&coins[i])));
    }

    /// The first message of a key holder reveals nothing of its coin before the opening, and binds
    /// it to one coin in one place.
    #[test]
    fn commitments_depend_on_all_that_they_open() {
        let coin = Block::from(5);
        let commitments = [
            commitment(context(1, 1), coin, &[1; 32]),
            commitment(context(2, 1), coin, &[1; 32]),
            commitment(context(1, 2), coin, &[1; 32]),
            commitment(context(1, 1), Block::ZERO, &[1; 32]),
            commitment(context(1, 1), coin, &[2; 32]),
        ];
        assert!((0..commitments.len()).all(|i| !commitments[..i].contains(&commitments[i])));
        let salt = |seed: u128| {
            let (_, salt) = run_two_parties(
                |channel| {
                    key_holder(context(1, 1), &mut Prg::new(Block::from(seed)), channel).unwrap()
                },
                |channel| {
                    let mut bytes = [0; 32];
                    channel.recv(&mut bytes).unwrap();
                    channel.send_block(Block::ZERO).unwrap();
                    channel.recv_block().unwrap();
                    channel.recv(&mut bytes).unwrap();
                    bytes
                },
            );
            salt
        };
        assert!(salt(1) != salt(2) && salt(1) != [0; 32]);
    }
    /// Before a party has committed it receives no coin; before it has sent its own it receives no
    /// opening.
    #[test]
    fn nothing_is_opened_too_early() {
        fn assert_silent(
            heard: usize,
            honest: impl FnOnce(&mut Prg, &mut Channel) -> Result<Block> + Send,
        ) {
            let (mut left, right) = Channel::memory_pair();
            left.set_timeout(Some(std::time::Duration::from_millis(200)));
            run_two_channels(
                left,
                right,
                |channel| {
                    channel.recv(&mut vec![0; heard]).unwrap();
                    let more = channel.recv(&mut [0]);
                    assert!(matches!(more, Err(Error::TimedOut(_))), "{more:?}");
                },
                |channel| {
                    let result = honest(&mut Prg::new(Block::from(1)), channel);
                    assert!(matches!(result, Err(Error::Disconnected)));
                },
            );
        }
        assert_silent(0, |rng, channel| value_holder(context(1, 1), rng, channel));
        assert_silent(32, |rng, channel| key_holder(context(1, 1), rng, channel));
    }
}
