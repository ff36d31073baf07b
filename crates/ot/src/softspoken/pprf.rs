//! Punctured trees from base OTs: the setup of the parent module.
//!
//! Roy, ePrint 2022/192, for the trees with their check; the trees themselves are those of
//! Goldreich, Goldwasser, Micali, opened by OTs as in Boyle et al., ePrint 2019/1159. For one tree
//! of height `k`, with the `k` base OT keys `K_b0`, `K_b1` of its bits `b`; the sender has `K_bc`
//! for `c` = bit `b` of `alpha`. Bit `k-1` is that of the first level below the root.
//!
//! ```text
//! Sender: alpha                                   Receiver
//! 1.                                              nodes of level 1: K_1 to the left,
//!                                                 K_0 to the right (b = k-1)
//! 2.                                              below: children = G(parent); S_0, S_1 = sums of
//!                                                 the left and of the right children of a level;
//!                                                 t_bc = K_bc + S_{1-c}
//! 3.                                              (r_x, s_x) = G'(leaf x); t = sum of s_x;
//!                                                 z = RO(all s_x of all trees)
//! 4.  <---------- t_b0, t_b1, t, z --------------
//! 5.  the sibling of the path at each level:
//!     t_bc + K_bc + the other nodes of its side
//! 6.  s_alpha = t + the other s_x, check z
//! ```
//!
//! The sender holds every level in full, with arbitrary values on the path, and repairs the sibling
//! of the path by a masked scan of the level: no index or branch depends on `alpha`.
//!
//! `G` is two AES permutations, each with feed-forward, under public keys that differ for every
//! tree of every session: work spent on guessing the seeds of one tree does not help with another
//! (multi-instance security in the ideal-cipher model). Still, the unknown seeds of one tree, the
//! `k-1` inner nodes on the path to `alpha`, share their two keys, so one guess applies to all of
//! them: `128 - log2(k-1)` bits, 125.2 for `k` = 8. `G'` is keyed BLAKE3 with tree and leaf number.
//!
//! The `s_x` are 256 bits so that they bind the leaves: a receiver that sent wrong `t_bc` passes
//! step 6 only for those `alpha` for which the sender's leaves are those of one fixed full tree. It
//! learns whether `alpha` is such a one, at the risk of an abort. The `r_x` used from then on are
//! independent of the revealed `s_x`.

use subtle::ConstantTimeEq;
use volery_channel::Channel;
use volery_channel::handshake::SessionId;
use volery_primitives::Block;
use volery_primitives::aes::{Aes128, double};
use volery_primitives::bits::xor_into;
use volery_primitives::ro::RandomOracle;
use zeroize::{Zeroize, Zeroizing};

use super::{Settings, SmallField};
use crate::Result;

/// A check value `s_x`, `t` or `z`.
type Tag = [u8; 32];

/// The message of step 4.
pub(super) struct Message {
    /// `t_b0, t_b1` for the levels below the first, from the top, tree after tree.
    levels: Vec<[Block; 2]>,
    /// `t` of each tree, then `z`.
    tags: Vec<Tag>,
}

impl Message {
    /// An empty message of the right size, to receive into.
    pub(super) fn empty(field: SmallField) -> Self {
        Self {
            levels: vec![[Block::ZERO; 2]; field.trees() * (field.bits() - 1)],
            tags: vec![[0; 32]; field.trees() + 1],
        }
    }

    pub(super) fn recv(&mut self, channel: &mut Channel) -> Result<()> {
        let mut bytes = vec![0; self.byte_len()];
        channel.recv(&mut bytes)?;
        let (levels, tags) = bytes.split_at(self.levels.len() * 32);
        bytemuck::cast_slice_mut(&mut self.levels).copy_from_slice(levels);
        bytemuck::cast_slice_mut(&mut self.tags).copy_from_slice(tags);
        Ok(())
    }

    pub(super) fn send(&self, channel: &mut Channel) -> Result<()> {
        channel.send(&self.to_bytes())?;
        channel.flush()
    }

    /// The encoded message.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.byte_len());
        bytes.extend_from_slice(bytemuck::cast_slice(&self.levels));
        bytes.extend_from_slice(bytemuck::cast_slice(&self.tags));
        bytes
    }

    fn byte_len(&self) -> usize {
        32 * (self.levels.len() + self.tags.len())
    }
}

/// Receiver, steps 1 to 3: the row seeds `r_x` of all leaves, tree after tree, and the message.
pub(super) fn full(
    settings: Settings,
    session: SessionId,
    base_transcript: &[u8; 32],
    keys: &[[Block; 2]],
) -> (Zeroizing<Vec<Block>>, Message) {
    let splitter = Splitter::new(settings, session, base_transcript);
    let field = settings.field;
    let levels = field.bits() - 1;
    let mut message = Message::empty(field);
    let mut seeds = Zeroizing::new(Vec::with_capacity(field.trees() * field.leaves()));
    let mut tags = Vec::with_capacity(field.trees() * field.leaves());
    for (tree, keys) in keys.chunks_exact(field.bits()).enumerate() {
        let sent = &mut message.levels[tree * levels..][..levels];
        let leaves = full_tree(&doubler(session, tree), keys, sent);
        splitter.split(tree, &leaves, &mut seeds, &mut tags);
        message.tags[tree] = sum_of_tags(&tags[tree * field.leaves()..]);
    }
    message.tags[field.trees()] = hash_of_tags(&tags);
    (seeds, message)
}

/// Sender, steps 5 and 6: the row seeds `r_x` of all leaves, tree after tree, with arbitrary ones
/// at the punctured positions; `None` if the check fails.
pub(super) fn punctured(
    settings: Settings,
    session: SessionId,
    base_transcript: &[u8; 32],
    delta: Block,
    keys: &[Block],
    message: &Message,
) -> Option<Zeroizing<Vec<Block>>> {
    let splitter = Splitter::new(settings, session, base_transcript);
    let field = settings.field;
    let bits = field.bits();
    let levels = bits - 1;
    let mut seeds = Zeroizing::new(Vec::with_capacity(field.trees() * field.leaves()));
    let mut tags = Vec::with_capacity(field.trees() * field.leaves());
    for (tree, keys) in keys.chunks_exact(bits).enumerate() {
        let alpha = (u128::from(delta) >> (tree * bits)) as usize & (field.leaves() - 1);
        let leaves = punctured_tree(
            &doubler(session, tree),
            alpha,
            keys,
            &message.levels[tree * levels..][..levels],
        );
        splitter.split(tree, &leaves, &mut seeds, &mut tags);
        repair_tag(alpha, &mut tags[tree * field.leaves()..], &message.tags[tree]);
    }
    // mutant(trees-hash): `hash_of_tags(&tags)` => `message.tags[field.trees()]`
    let matches = hash_of_tags(&tags).ct_eq(&message.tags[field.trees()]);
    // mutant(trees-verdict): `bool::from(matches)` => `true`
    bool::from(matches).then_some(seeds)
}

/// Steps 1 and 2 for one tree: its leaves, and `t_b0, t_b1` of its lower levels in `sent`.
fn full_tree(
    doubler: &[Aes128; 2],
    keys: &[[Block; 2]],
    sent: &mut [[Block; 2]],
) -> Zeroizing<Vec<Block>> {
    let (first, others) = keys.split_last().expect("a tree has at least one level");
    let mut nodes = Zeroizing::new(vec![first[1], first[0]]);
    for (key, sent) in others.iter().rev().zip(sent) {
        let mut children = Zeroizing::new(vec![Block::ZERO; 2 * nodes.len()]);
        let [left, right] = double(doubler, &nodes, &mut children);
        *sent = [key[0] ^ right, key[1] ^ left];
        nodes = children;
    }
    nodes
}

/// Step 5 for one tree: its leaves, with an arbitrary one at `alpha`.
fn punctured_tree(
    doubler: &[Aes128; 2],
    alpha: usize,
    keys: &[Block],
    received: &[[Block; 2]],
) -> Zeroizing<Vec<Block>> {
    let (first, others) = keys.split_last().expect("a tree has at least one level");
    let choice = bit_mask(alpha >> others.len());
    let mut nodes = Zeroizing::new(vec![choice & *first, !choice & *first]);
    let mut path = alpha >> others.len();
    for (b, (key, received)) in (0..others.len()).rev().zip(others.iter().rev().zip(received)) {
        let mut children = Zeroizing::new(vec![Block::ZERO; 2 * nodes.len()]);
        let [left, right] = double(doubler, &nodes, &mut children);
        let choice = bit_mask(alpha >> b);
        // The true sum of the sibling's side, and its difference from the sum with an arbitrary
        // sibling.
        let true_sum = *key ^ select(choice, received[0], received[1]);
        let repair = true_sum ^ select(choice, right, left);
        for (y, pair) in children.chunks_exact_mut(2).enumerate() {
            let here = equal_mask(y, path) & repair;
            pair[0] ^= here & choice;
            pair[1] ^= here & !choice;
        }
        path = alpha >> b;
        nodes = children;
    }
    nodes
}

/// Step 6 for one tree: the tag at `alpha` from `sum`, the sum of all tags.
fn repair_tag(alpha: usize, tags: &mut [Tag], sum: &Tag) {
    let mut repair = sum_of_tags(tags);
    xor_into(&mut repair, sum);
    for (x, tag) in tags.iter_mut().enumerate() {
        let mask = equal_mask(x, alpha).to_bytes()[0];
        for (tag, repair) in tag.iter_mut().zip(&repair) {
            *tag ^= mask & repair;
        }
    }
}

fn sum_of_tags(tags: &[Tag]) -> Tag {
    tags.iter().fold([0; 32], |mut sum, tag| {
        xor_into(&mut sum, tag);
        sum
    })
}

fn hash_of_tags(tags: &[Tag]) -> Tag {
    let mut oracle = RandomOracle::new("volery softspoken: tags of the leaves");
    // mutant(trees-hash-some): `tags` => `&tags[..if $ON { 1 } else { tags.len() }]`
    oracle.absorb(bytemuck::cast_slice(tags));
    oracle.finish32()
}

/// The two permutations of `G`, public, for one tree.
fn doubler(session: SessionId, tree: usize) -> [Aes128; 2] {
    let mut oracle = RandomOracle::new("volery softspoken: keys of the tree");
    // mutant(trees-keys-session): drop
    oracle.absorb(session.as_bytes());
    // mutant(trees-keys-tree): drop
    oracle.absorb_u64(tree as u64);
    let mut keys = [0; 32];
    oracle.finish_into(&mut keys);
    let [left, right] = bytemuck::cast::<[u8; 32], [[u8; 16]; 2]>(keys);
    [Aes128::new(Block::from_bytes(left)), Aes128::new(Block::from_bytes(right))]
}

/// `G'`, which derives a row seed and a tag from each leaf. Checked and unchecked extensions have
/// different keys, so parties with different settings fail in the setup.
struct Splitter(blake3::Hasher);

impl Splitter {
    fn new(settings: Settings, session: SessionId, base_transcript: &[u8; 32]) -> Self {
        // mutant(trees-leaves-checked): `settings.is_checked` => `true`
        let mut oracle = RandomOracle::new(match settings.is_checked {
            true => "volery softspoken: key of the leaves",
            false => "volery softspoken: key of the leaves, unchecked",
        });
        // mutant(trees-leaves-session): drop
        oracle.absorb(session.as_bytes());
        // mutant(trees-leaves-base): drop
        oracle.absorb(base_transcript);
        Self(blake3::Hasher::new_keyed(&oracle.finish32()))
    }

    /// Appends the row seeds and the tags of the leaves of one tree.
    fn split(&self, tree: usize, leaves: &[Block], seeds: &mut Vec<Block>, tags: &mut Vec<Tag>) {
        let mut hasher = self.0.clone();
        for (x, leaf) in leaves.iter().enumerate() {
            let mut input = Zeroizing::new([0; 32]);
            input[..16].copy_from_slice(&leaf.to_bytes());
            // mutant(trees-leaves-tree): drop
            input[16..24].copy_from_slice(&(tree as u64).to_le_bytes());
            // mutant(trees-leaves-place): drop
            input[24..].copy_from_slice(&(x as u64).to_le_bytes());
            let mut output = Zeroizing::new([[0; 16]; 3]);
            let bytes = output.as_flattened_mut();
            let mut reader = hasher.reset().update(&*input).finalize_xof();
            reader.fill(bytes);
            reader.zeroize();
            seeds.push(Block::from_bytes(output[0]));
            let mut tag = [0; 32];
            tag.copy_from_slice(output[1..].as_flattened());
            tags.push(tag);
        }
        hasher.zeroize();
    }
}

/// `one` where the mask is set, else `zero`.
fn select(mask: Block, zero: Block, one: Block) -> Block {
    zero ^ (mask & (zero ^ one))
}

/// All ones if the lowest bit of `x` is set.
fn bit_mask(x: usize) -> Block {
    Block::from(0u128.wrapping_sub((x & 1) as u128))
}

/// All ones if `x` and `y` are equal.
fn equal_mask(x: usize, y: usize) -> Block {
    // no mutant: selects in constant time, and decides nothing
    bit_mask(usize::from(x.ct_eq(&y).unwrap_u8()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::all_settings;
    use super::*;

    fn keys(seed: u128) -> Vec<[Block; 2]> {
        (0..128).map(|i| [Block::from(seed + i), Block::from(seed + 1000 + i)]).collect()
    }

    fn chosen(keys: &[[Block; 2]], delta: Block) -> Vec<Block> {
        keys.iter().enumerate().map(|(i, k)| k[(u128::from(delta) >> i) as usize & 1]).collect()
    }

    const SESSION: [u8; 32] = [9; 32];

    #[test]
    fn trees_and_sessions_have_their_own_keys() {
        let session = SessionId::from_bytes(SESSION);
        let other = SessionId::from_bytes([10; 32]);
        let mut seen = std::collections::HashSet::new();
        for keys in
            [doubler(session, 0), doubler(session, 1), doubler(session, 15), doubler(other, 0)]
        {
            for key in keys {
                assert!(seen.insert(u128::from(key.encrypt(Block::ZERO))));
            }
        }
        // Trees with equal keys from the base OTs have unequal messages.
        let equal = [[Block::from(1), Block::from(2)]; 128];
        let (_, message) = full(SmallField::Bits8.into(), session, &[1; 32], &equal);
        let mut seen = std::collections::HashSet::new();
        assert!(message.levels.iter().all(|sent| seen.insert(sent.map(u128::from))));
    }

    /// Equal leaves at other positions, in other trees or sessions, after other base OTs or with
    /// another setting have nothing in common.
    #[test]
    fn seeds_and_tags_are_those_of_their_leaf() {
        let session = SessionId::from_bytes(SESSION);
        let other = SessionId::from_bytes([10; 32]);
        let field = SmallField::Bits8;
        let splitters = [
            Splitter::new(field.into(), session, &[1; 32]),
            Splitter::new(field.into(), other, &[1; 32]),
            Splitter::new(field.into(), session, &[2; 32]),
            Splitter::new(field.unchecked(), session, &[1; 32]),
        ];
        let (mut seeds, mut tags) = (Vec::new(), Vec::new());
        for splitter in splitters {
            for tree in 0..2 {
                splitter.split(tree, &[Block::ONE; 3], &mut seeds, &mut tags);
            }
        }
        assert_eq!((seeds.len(), tags.len()), (24, 24));
        for i in 0..24 {
            assert!(!seeds[..i].contains(&seeds[i]), "seed {i}");
            assert!(!tags[..i].contains(&tags[i]), "tag {i}");
        }
    }

    #[test]
    fn every_wrong_block_is_caught_or_not_used() {
        let session = SessionId::from_bytes(SESSION);
        let delta = Block::from(0xfedc_ba98_7654_3210_0123_4567_89ab_cdef);
        for settings in all_settings() {
            let field = settings.field;
            let keys = keys(77);
            let chosen = chosen(&keys, delta);
            let (all, honest) = full(settings, session, &[1; 32], &keys);
            let mut caught = 0;
            let blocks = 2 * honest.levels.len();
            for place in 0..blocks {
                let mut message =
                    Message { levels: honest.levels.clone(), tags: honest.tags.clone() };
                message.levels[place / 2][place % 2] ^= Block::ONE;
                match punctured(settings, session, &[1; 32], delta, &chosen, &message) {
                    None => caught += 1,
                    // The wrong one of the two was not the one the sender opens.
                    Some(known) => {
                        let same = known.iter().zip(all.iter()).filter(|(a, b)| a == b).count();
                        assert_eq!(same, all.len() - field.trees());
                    }
                }
            }
            assert_eq!(2 * caught, blocks, "one of each pair is used");
            for place in 0..honest.tags.len() {
                let mut message =
                    Message { levels: honest.levels.clone(), tags: honest.tags.clone() };
                message.tags[place][place % 32] ^= 0x80;
                let known = punctured(settings, session, &[1; 32], delta, &chosen, &message);
                assert!(known.is_none());
            }
        }
    }
}
