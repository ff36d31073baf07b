//! The consistency check of a batch: the receiver used one and the same `u` for all trees.
//!
//! Roy, ePrint 2022/192, the check of the subspace VOLE, for the repetition code, with a universal hash to GF(2^128).
//! We differ from the paper in one thing: the receiver sends a random oracle's image of the hashed rows instead of the
//! 2048 bytes themselves. The sender can compute what they must be, so it loses nothing, and a simulator reads them
//! off the oracle's queries.
//!
//! A row of a batch is `L` blocks of 128 bits and one more, the mask block. With `chi_1 .. chi_L` in GF(2^128) taken
//! from the challenge, and the blocks of a row read as elements of GF(2^128), the hash of a row `r` is
//!
//! ```text
//! h(r) = chi_1*r_1 + .. + chi_L*r_L + r_{L+1}
//! ```
//!
//! The challenge is a hash of the session, the setup and all messages of both directions up to and with the `d_i` of
//! this batch. The receiver sends `x = h(u_0)` and `z = RO(chi, h(v_0), .., h(v_127))` over its 128 rows; the sender
//! accepts if
//!
//! ```text
//! z = RO(chi, h(q_0) + delta_0*x, .., h(q_127) + delta_127*x)
//! ```
//!
//! where `delta_r` is bit `r` of `delta`. This holds for an honest receiver because `q_r = v_r + delta_r*u_0` and `h`
//! is linear over F_2.
//!
//! *Soundness.* Whatever a corrupt receiver sends as `d_i`, the sender's rows are `q_r = v_r + delta_r*u_i` with some
//! `u_i` for each tree `i`, and `v_r`, `u_i` follow from the trees and the `d_i`, so they are fixed before `chi` is
//! known. `z` fixes the values `y_r` that are hashed (or it does not match but with probability 2^-256), and equality
//! means `delta_r*(h(u_i) + x) = h(v_r) + y_r` for all rows `r` of all trees `i`. So for each tree either `h(u_i) = x`,
//! or the receiver has guessed all `k` bits of that tree's part of `delta`, which it may always try: the sender aborts
//! unless the guess is right, and `t` trees are guessed with probability at most 2^(-k*t). Among the trees that are
//! not guessed, all `h(u_i)` are equal. For two different rows `u_i`, `u_j` that happens with probability at most
//! 2^-128: if they differ in a block with a `chi`, this `chi` is determined by all the rest; if they differ only in
//! the mask block, never. With fewer than `m*m/2` pairs of trees, all unguessed trees have one common `u` but with
//! probability 2^-115 (`k` = 1), 2^-117, 2^-119, 2^-121 (`k` = 8). The receiver can compute challenges without the
//! sender and try again with other `d_i`, so these are its chances for each evaluation of the random oracle, a
//! computational and not a statistical statement. For the guessed trees the receiver knows `alpha_i` and so its own
//! `w` for the common `u`: all outputs satisfy the relation for a `u` that is fixed.
//!
//! *Privacy.* The mask block of `u_0` is uniform to the sender and used for nothing else, so `x` is uniform. The
//! hashed rows are a function of `x`, `delta` and the sender's own rows.

use subtle::ConstantTimeEq;
use volery_channel::Channel;
use volery_channel::handshake::SessionId;
use volery_primitives::Block;
use volery_primitives::clmul::gf128_inner_product;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;

use super::SmallField;
use super::pprf::Message;
use crate::Result;

/// A running hash of everything that was sent.
pub(super) struct Transcript([u8; 32]);

impl Transcript {
    /// The transcript after the setup.
    pub(super) fn new(
        field: SmallField,
        session: SessionId,
        base_transcript: &[u8; 32],
        message: &Message,
    ) -> Self {
        let mut oracle = RandomOracle::new("volery softspoken: transcript of the setup");
        oracle.absorb(session.as_bytes());
        oracle.absorb(&[field.bits() as u8]);
        oracle.absorb(base_transcript);
        oracle.absorb(&message.to_bytes());
        Self(oracle.finish32())
    }

    /// One more message.
    pub(super) fn absorb(&mut self, message: &[u8]) {
        let mut oracle = RandomOracle::new("volery softspoken: transcript");
        oracle.absorb(&self.0);
        oracle.absorb(message);
        self.0 = oracle.finish32();
    }

    /// The challenge for rows of `row_blocks` blocks, the last of them the mask block.
    pub(super) fn challenge(&self, row_blocks: usize) -> Challenge {
        let mut oracle = RandomOracle::new("volery softspoken: challenge");
        oracle.absorb(&self.0);
        let mut chi = vec![Block::ZERO; row_blocks - 1];
        Prg::new(oracle.finish_block()).fill_blocks(&mut chi);
        Challenge { chi, seed: self.0 }
    }
}

/// A random linear hash of rows.
pub(super) struct Challenge {
    chi: Vec<Block>,
    /// What the hash was derived from.
    seed: [u8; 32],
}

impl Challenge {
    /// Receiver: `x` and `z`.
    pub(super) fn respond(&self, u: &[Block], rows: &[Block]) -> Response {
        let hashed = rows.chunks_exact(u.len()).map(|row| self.hash(row));
        Response::new(self.hash(u), &self.digest(hashed))
    }

    /// Sender: whether the response fits its own rows `q`.
    #[must_use]
    pub(super) fn accepts(&self, response: &Response, rows: &[Block], delta: Block) -> bool {
        let x = response.x();
        let bits = delta.to_bytes();
        let hashed = rows
            .chunks_exact(self.chi.len() + 1)
            .enumerate()
            .map(|(r, row)| self.hash(row) ^ (crate::bits::mask(&bits, r) & x));
        let expected = Response::new(x, &self.digest(hashed));
        response.as_bytes().ct_eq(expected.as_bytes()).into()
    }

    /// `h(row)`.
    fn hash(&self, row: &[Block]) -> Block {
        let (mask, row) = row.split_last().expect("a row has its mask block");
        gf128_inner_product(&self.chi, row) ^ *mask
    }

    /// `RO(chi, hashed rows)`.
    fn digest(&self, hashed: impl Iterator<Item = Block>) -> [u8; 32] {
        let hashed: Vec<Block> = hashed.collect();
        let mut oracle = RandomOracle::new("volery softspoken: response");
        oracle.absorb(&self.seed);
        oracle.absorb(bytemuck::cast_slice(&hashed));
        oracle.finish32()
    }
}

/// The message of the check: `x`, then `z`.
#[derive(Clone)]
pub(super) struct Response([u8; 48]);

impl Default for Response {
    fn default() -> Self {
        Self([0; 48])
    }
}

impl Response {
    fn new(x: Block, z: &[u8; 32]) -> Self {
        let mut bytes = [0; 48];
        bytes[..16].copy_from_slice(&x.to_bytes());
        bytes[16..].copy_from_slice(z);
        Self(bytes)
    }

    fn x(&self) -> Block {
        let mut x = [0; 16];
        x.copy_from_slice(&self.0[..16]);
        Block::from_bytes(x)
    }

    /// The message as it is on the wire.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Receive into this one.
    pub(super) fn recv(&mut self, channel: &mut Channel) -> Result<()> {
        channel.recv(&mut self.0)
    }
}
