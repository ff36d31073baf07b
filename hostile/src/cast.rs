//! The list of all protocols.

mod apps;
mod baselines;
mod ot;
mod pcg;
mod psi;

use volery_channel::{Hello, SessionId, handshake};
use volery_primitives::Block;
use volery_primitives::prg::Prg;

use crate::{Model, Protocol};

/// Every protocol of the library that talks, from the channel up.
///
/// What is private and reached only through a protocol above it is here as that protocol: the trees and the check of
/// `SoftSpoken` as `softspoken`, the rounds, the check, the stock and the bases of the streams as `cot` and `vole`, the
/// agreement and the halves of a search as `intersection` and `search`.
#[must_use]
pub fn cast() -> Vec<Protocol> {
    let mut cast = vec![hello()];
    cast.extend(ot::all());
    cast.extend(pcg::all());
    cast.extend(psi::all());
    cast.extend(apps::all());
    cast.extend(baselines::all());
    cast
}

/// The session of all protocols.
const SESSION: SessionId = SessionId::from_bytes([0x68; 32]);

/// The seed of the left party, and of the right one.
const SEEDS: [u128; 2] = [1, 2];

fn rng(seed: u128) -> Prg {
    Prg::new(Block::new(seed))
}

/// `n` packed bits, low bit first, the unused ones zero.
fn random_bits(n: usize, seed: u128) -> Vec<u8> {
    let mut bits = vec![0; n.div_ceil(8)];
    rng(seed).fill_bytes(&mut bits);
    volery_primitives::bits::clear_from(&mut bits, n);
    bits
}

/// The handshake. It authenticates nobody: a changed nonce gives two session ids, and what is keyed by them fails
/// later.
fn hello() -> Protocol {
    let party = |role: &'static str, nonce: u8| {
        move |channel: &mut volery_channel::Channel| {
            let fields = vec![("ring", "fp61".to_owned()), ("count", "1000".to_owned())];
            let hello = Hello {
                protocol: "vole",
                role,
                fields,
            };
            handshake(channel, &hello, [nonce; 32])
        }
    };
    Protocol::new(
        "handshake",
        Model::SemiHonest,
        party("sender", 1),
        party("receiver", 2),
        |left: &SessionId, right: &SessionId| left == right,
    )
}
