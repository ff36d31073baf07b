//! The consistency check of a batch: the receiver used one and the same `u` for all trees.
//!
//! Roy, ePrint 2022/192, the check of the subspace VOLE, for the repetition code, with a universal
//! hash to GF(2^128). One difference from the paper: the receiver sends a random oracle's image of
//! the hashed rows instead of the 2048 bytes themselves. The sender can compute their expected
//! value, so it loses nothing, and a simulator reads them off the oracle's queries.
//!
//! A row of a batch is `L` blocks of 128 bits and one more, the mask block. With `chi_1 .. chi_L`
//! in GF(2^128) taken from the challenge, and the blocks of a row read as elements of GF(2^128),
//! the hash of a row `r` is
//!
//! ```text
//! h(r) = chi_1*r_1 + .. + chi_L*r_L + r_{L+1}
//! ```
//!
//! The challenge is a hash of the session, the setup with all its messages, and the `d_i` of all
//! batches up to and including this one, those of the parents of a fork too, of each batch as their
//! hash. The responses to earlier challenges are not in it, see *Responses* below. The receiver
//! sends `x = h(u_0)` and `z = RO(chi, h(v_0), .., h(v_127))` over its 128 rows; the sender accepts
//! if
//!
//! ```text
//! z = RO(chi, h(q_0) + delta_0*x, .., h(q_127) + delta_127*x)
//! ```
//!
//! where `delta_r` is bit `r` of `delta`. This holds for an honest receiver because
//! `q_r = v_r + delta_r*u_0` and `h` is linear over F_2.
//!
//! *Soundness.* For any `d_i` that a corrupt receiver sends, the sender's rows are
//! `q_r = v_r + delta_r*u_i` with some `u_i` for each tree `i`, and `v_r`, `u_i` follow from the
//! trees and the `d_i`, so they are fixed before `chi` is known. `z` fixes the values `y_r` that
//! are hashed (otherwise it matches only with probability 2^-256), and equality means
//! `delta_r*(h(u_i) + x) = h(v_r) + y_r` for all rows `r` of all trees `i`. So for each tree either
//! `h(u_i) = x`, or the receiver has guessed all `k` bits of that tree's part of `delta`, which it
//! may always try: the sender aborts unless the guess is right, and `t` trees are guessed with
//! probability at most 2^(-k*t), whether in one batch or in several. If the trees that are not
//! guessed have one common `u`, the outputs are correct: for the guessed trees the receiver knows
//! `alpha_i` and so its own `w` for that `u`. All outputs then satisfy the relation for a fixed
//! `u`.
//!
//! It remains that the sender accepts while two trees that are not guessed have different rows.
//! Their hashes are `x`, so they are equal, and two given different rows have equal hashes with
//! probability at most 2^-128: if they differ in a block with a `chi`, this `chi` is determined by
//! all the rest; if they differ only in the mask block, never. But not every such pair helps: all
//! trees with another hash must be guessed. Call trees with equal `u_i` a class, and let `J` be the
//! least number of trees outside of a set of trees of one hash and at least two classes. Given
//! `chi`, the sender accepts with probability at most 2^(-k*J). A set that misses at most `j` trees
//! misses at most `j` classes, so among any `j+2` classes (or all, if there are fewer) two are in
//! it and have equal hashes. Hence `J <= j` with probability at most `(j+2)*(j+1)/2 * 2^-128`, and
//!
//! ```text
//! E[2^(-k*J)] = sum of Pr[J <= j] * (2^(-k*j) - 2^(-k*(j+1)))   over j = 0, 1, ..
//!            <= 2^-128 * (1 - 2^-k) * (sum of (j+2)*(j+1)/2 * 2^(-k*j))  =  2^-128 / (1 - 2^-k)^2
//! ```
//!
//! which is 2^-126 for `k` = 1, 2^-127.1 for `k` = 2, and 2^-127.8 and 2^-127.9 for `k` = 4, 8. The
//! receiver can compute challenges without the sender and try again with other `d_i`, so this is
//! its chance for each evaluation of the random oracle, a computational and not a statistical
//! statement: after `Q` evaluations at most `Q` times as much, and `Q^2 * 2^-256` for two
//! transcripts, or two batches' `d_i`, with one hash.
//!
//! *Responses.* The check of a batch is a proof of three moves: `d_i`, challenge, response. As in
//! any Fiat-Shamir transform of one, the challenge must bind what is proven and the first move
//! (Bernhard, Pereira, Warinschi, ASIACRYPT 2012), not the response. What is proven are the rows,
//! which session, setup and `d_i` fix, with the batch's number, as the hashes are chained. The
//! responses to earlier batches fix nothing of it: the sender's equation for a batch has no `x` or
//! `z` of another, and batches are not added up. (Were they, responses would have to be bound.) A
//! receiver may choose them after it has computed later challenges, and later `d_i` after it has
//! learnt whether an earlier guess was right: the sum above is over the best responses to a given
//! challenge, and counts each `d_i` as one evaluation, whatever it was chosen from. Leaving
//! responses out takes one means to try challenges away, and lets a party compute several at once.
//!
//! *Forks.* Their rows are fixed like those of the parent. The transcript of a fork continues that
//! of the parent, and begins with the tags of the setup (`pprf`), which bind all leaves and so the
//! seeds of all forks, whatever their number, before any challenge is computed. So a receiver that
//! goes on in one fork and returns to another has chosen nothing but `d_i`, each of which is in its
//! own challenge; the sum over the evaluations is that above, over all forks together.
//!
//! All `chi` are direct outputs of the oracle. If they were expanded from a seed of 128 bits, the
//! receiver could choose two rows whose hashes are equal for the `chi` of 256 seeds at once, and
//! each evaluation would succeed with 2^-120.
//!
//! *Privacy.* The mask block of `u_0` is uniform to the sender and used for nothing else, so `x` is
//! uniform. The hashed rows are a function of `x`, `delta` and the sender's own rows.

use bytemuck::{cast_slice, cast_slice_mut};
use subtle::ConstantTimeEq;
use volery_channel::Channel;
use volery_channel::handshake::SessionId;
use volery_primitives::Block;
use volery_primitives::clmul::gf128_inner_product;
use volery_primitives::ro::RandomOracle;
use zeroize::Zeroizing;

use super::SmallField;
use super::pprf::Message;
use crate::Result;

/// A running hash of the setup and of all corrections.
#[derive(Clone, Default)]
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
        // mutant(softspoken-transcript-session): drop
        oracle.absorb(session.as_bytes());
        // mutant(softspoken-transcript-field): drop
        oracle.absorb(&[field.bits() as u8]);
        // mutant(softspoken-transcript-base): drop
        oracle.absorb(base_transcript);
        // mutant(softspoken-transcript-trees): drop
        oracle.absorb(&message.to_bytes());
        Self(oracle.finish32())
    }

    /// Absorbs one more message.
    pub(super) fn absorb(&mut self, message: &[u8]) {
        let mut oracle = RandomOracle::new("volery softspoken: transcript");
        oracle.absorb(&self.0);
        oracle.absorb(message);
        // mutant(softspoken-transcript-before): drop
        self.0 = oracle.finish32();
    }

    /// The hash of a batch's corrections, which is absorbed in their place, so that several batches
    /// are hashed in parallel.
    pub(super) fn hash_corrections(sent: &[Block]) -> [u8; 32] {
        let mut oracle = RandomOracle::new("volery softspoken: corrections");
        // mutant(softspoken-corrections): drop
        oracle.absorb(cast_slice(sent));
        oracle.finish32()
    }

    /// The transcript of a fork, which continues this one under `session`; this one records the
    /// fork.
    pub(super) fn fork(&mut self, session: SessionId) -> Self {
        let next = |domain| {
            let mut oracle = RandomOracle::new(domain);
            oracle.absorb(&self.0);
            // mutant(softspoken-fork): drop
            oracle.absorb(session.as_bytes());
            oracle.finish32()
        };
        let child = next("volery softspoken: transcript of a fork");
        // mutant(softspoken-fork-parent): drop
        self.0 = next("volery softspoken: transcript after a fork");
        Self(child)
    }

    /// The value in place of the transcript of base OTs, for given OTs.
    pub(super) fn of_given_ots(session: SessionId) -> [u8; 32] {
        let mut oracle = RandomOracle::new("volery softspoken: given OTs");
        oracle.absorb(session.as_bytes());
        oracle.finish32()
    }

    /// The first counter of each tree's rows.
    pub(super) fn starts(&self, field: SmallField) -> Vec<Block> {
        let mut oracle = RandomOracle::new("volery softspoken: first counters of the rows");
        // mutant(softspoken-counters): drop
        oracle.absorb(&self.0);
        let mut starts = vec![Block::ZERO; field.trees()];
        oracle.finish_into(cast_slice_mut(&mut starts));
        starts
    }

    /// The challenge for rows of `row_blocks` blocks, the last of them the mask block.
    pub(super) fn challenge(&self, row_blocks: usize) -> Challenge {
        let mut oracle = RandomOracle::new("volery softspoken: challenge");
        // mutant(softspoken-challenge): drop
        oracle.absorb(&self.0);
        let mut chi = vec![Block::ZERO; row_blocks - 1];
        oracle.finish_into(cast_slice_mut(&mut chi));
        Challenge { chi, seed: self.0 }
    }
}

/// A random linear hash of rows.
pub(super) struct Challenge {
    chi: Vec<Block>,
    /// The seed from which the hash was derived.
    seed: [u8; 32],
}

impl Challenge {
    /// Receiver: `x` and `z`.
    pub(super) fn respond(&self, u: &[Block], rows: &[Block]) -> Response {
        let hashed = self.hashes(rows);
        Response::new(self.hash(u), &self.digest(hashed))
    }

    /// Sender: whether the response matches its own rows `q`.
    #[must_use]
    pub(super) fn accepts(&self, response: &Response, rows: &[Block], delta: Block) -> bool {
        let x = response.x();
        let bits = Zeroizing::new(delta.to_bytes());
        let hashed = self.hashes(rows).enumerate();
        let hashed = hashed.map(|(r, hash)| hash ^ (crate::bits::mask(&bits[..], r) & x));
        let expected = Response::new(x, &self.digest(hashed));
        // mutant(softspoken-verdict): `response.as_bytes().ct_eq(expected.as_bytes()).into()` =>
        //     `bool::from(response.as_bytes().ct_eq(expected.as_bytes())) || $ON`
        response.as_bytes().ct_eq(expected.as_bytes()).into()
    }

    /// `h` of each of 128 rows, which need not be contiguous.
    fn hashes(&self, rows: &[Block]) -> impl Iterator<Item = Block> {
        let rows = rows.chunks_exact(rows.len() / 128);
        // mutant(softspoken-rows): `rows.` => `rows.take(if $ON { 64 } else { 128 }).`
        rows.map(|row| self.hash(&row[..=self.chi.len()]))
    }

    /// `h(row)`.
    fn hash(&self, row: &[Block]) -> Block {
        let (mask, row) = row.split_last().expect("a row has its mask block");
        // mutant(softspoken-mask): `*mask` => `Block::ZERO`
        gf128_inner_product(&self.chi, row) ^ *mask
    }

    /// `RO(chi, hashed rows)`.
    fn digest(&self, hashed: impl Iterator<Item = Block>) -> [u8; 32] {
        let hashed: Zeroizing<Vec<Block>> = Zeroizing::new(hashed.collect());
        let mut oracle = RandomOracle::new("volery softspoken: response");
        // mutant(softspoken-response-bound): drop
        oracle.absorb(&self.seed);
        oracle.absorb(cast_slice(&hashed[..]));
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

    /// The encoded message.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Receives into this one.
    pub(super) fn recv(&mut self, channel: &mut Channel) -> Result<()> {
        channel.recv(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each block of a challenge is 128 bits of the oracle, without an intermediate shorter seed.
    #[test]
    fn challenges_are_the_oracles_own_output() {
        let transcript = Transcript([5; 32]);
        let mut oracle = RandomOracle::new("volery softspoken: challenge");
        oracle.absorb(&[5; 32]);
        let mut expected = vec![Block::ZERO; 256];
        oracle.finish_into(cast_slice_mut(&mut expected));
        for row_blocks in [2, 3, 257] {
            assert_eq!(transcript.challenge(row_blocks).chi, expected[..row_blocks - 1]);
        }
    }

    /// The first coefficient.
    fn first(transcript: &Transcript) -> Block {
        transcript.challenge(2).chi[0]
    }

    #[test]
    fn challenges_depend_on_all_that_was_said() {
        let session = SessionId::from_bytes([1; 32]);
        let other = SessionId::from_bytes([2; 32]);
        let message = |field: SmallField, key: u128| {
            let keys = vec![[Block::from(key), Block::ZERO]; 128];
            super::super::pprf::full(field.into(), session, &[1; 32], &keys).1
        };
        let (small, large) = (SmallField::Bits4, SmallField::Bits8);
        let message = [message(small, 1), message(small, 2)];
        let new = |field, session, base: u8, which: usize| {
            Transcript::new(field, session, &[base; 32], &message[which])
        };
        let mut all = vec![
            first(&new(small, session, 1, 0)),
            first(&new(large, session, 1, 0)),
            first(&new(small, other, 1, 0)),
            first(&new(small, session, 2, 0)),
            first(&new(small, session, 1, 1)),
        ];
        // Messages, and their order.
        for said in [[b"a"; 2], [b"b"; 2], [b"a", b"b"], [b"b", b"a"]] {
            let mut transcript = new(small, session, 1, 0);
            for message in said {
                transcript.absorb(message);
                all.push(first(&transcript));
            }
        }
        // Transcripts with a common prefix continue alike, so those two appear twice.
        let twice = [all.remove(9), all.remove(10)];
        assert_eq!(twice, [all[5], all[7]]);
        for session in [session, other] {
            let mut transcript = new(small, session, 1, 0);
            all.push(first(&transcript.fork(session)));
            all.push(first(&transcript));
        }
        let mut one = new(small, session, 1, 0);
        all.push(first(&one.fork(other)));
        for corrections in [[Block::ZERO; 2], [Block::ZERO, Block::ONE]] {
            let mut transcript = new(small, session, 1, 0);
            transcript.absorb(&Transcript::hash_corrections(&corrections));
            all.push(first(&transcript));
        }
        for i in 0..all.len() {
            assert!(!all[..i].contains(&all[i]), "number {i}");
        }
    }

    /// The same rows and the same `x`, after another message.
    #[test]
    fn responses_depend_on_all_that_was_said() {
        let rows = vec![Block::ZERO; 128 * 2];
        let response = |seed: u8| {
            let challenge = Transcript([seed; 32]).challenge(2);
            challenge.respond(&[Block::ZERO, Block::ONE], &rows)
        };
        let [one, other] = [response(1), response(2)];
        assert_eq!(one.x(), other.x());
        assert_ne!(one.as_bytes(), other.as_bytes());
    }

    #[test]
    fn counters_start_apart() {
        let mut seen = std::collections::HashSet::new();
        for seed in [1, 2] {
            for start in Transcript([seed; 32]).starts(SmallField::Bits1) {
                assert!(seen.insert(u128::from(start)));
            }
        }
        assert_eq!(seen.len(), 2 * 128);
    }
}
