//! A key holder who follows the protocol except for one deviation, and goes on after a failed
//! check.
//!
//! It expands its trees node by node and multiplies out its coefficients one by one: a second
//! implementation of the protocol.

use std::sync::Arc;

use volery_channel::{Channel, Result, SessionId, TranscriptHashes};
use volery_field::Ring;
use volery_ot::convert;
use volery_primitives::{Block, prg::Prg, ro::RandomOracle};

use super::{
    rng,
    stage::{Key, Stage},
};
use crate::{
    Plan,
    correlation::Correlation,
    ggm::{Growth, TreePrg, TreePrgs},
    lpn::LocalCode,
    mpcot::{Cells, Layout},
    plan::ETA,
    tree_batch::{LEAVES_AT_ONCE, TreeBatch},
    wire,
};

/// The deviation of a malicious key holder in one round.
pub(crate) struct MaliciousKeyHolder<'a, R: Ring> {
    /// The round in which it deviates.
    pub(crate) round: u64,
    /// The difference added to its `x`, all through that round.
    pub(crate) x: R,
    /// The difference added to the `delta` of the half-tree with that number.
    pub(crate) delta: Option<(usize, Block)>,
    /// Children that do not come from their parent.
    pub(crate) node: Option<Node>,
    /// Changes the sums of honestly expanded trees.
    pub(crate) sums: &'a (dyn Fn(&mut GrownTrees<R>) + Sync),
    pub(crate) lie: Lie,
}

/// A node on level `level - 1` and the differences added to its two children.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) tree: usize,
    pub(crate) level: u32,
    pub(crate) node: usize,
    pub(crate) errors: [Block; 2],
}

/// The messages of a malicious key holder in the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// The correct messages.
    None,
    /// A commitment to another value.
    Commitment,
    /// Another salt than that of the commitment.
    Salt,
    /// Another value than that of the commitment.
    Value,
    /// A commitment to nothing, and an opening of the value holder's value.
    Echo,
    /// A commitment with the number of another round.
    Round,
    /// A commitment for another session.
    Session,
    /// Commitment and opening of the round before.
    Replay,
    /// Commits to a value that is wrong in its first repetition alone, and opens that.
    First,
    /// The same in its last repetition.
    Last,
    /// Commits to the same, and opens the value holder's value in the last repetition.
    EchoLast,
}

/// Trees, and their messages.
pub(crate) struct GrownTrees<R> {
    /// The left and the right sum of each level of each tree.
    pub(crate) sums: Vec<[Block; 2]>,
    pub(crate) leaves: Vec<R>,
    pub(crate) psi: Vec<R>,
}

impl<R: Ring> MaliciousKeyHolder<'_, R> {
    /// An honest one.
    pub(crate) const HONEST: Self =
        Self { round: 0, x: R::ZERO, delta: None, node: None, sums: &|_| (), lie: Lie::None };
}

/// The public values of a round.
pub(crate) struct Round {
    pub(crate) layout: Arc<Layout>,
    pub(crate) prgs: TreePrgs,
    pub(crate) session: SessionId,
    pub(crate) number: u64,
}

/// Commitment, salt and values of a check.
pub(crate) type Opening<R> = ([u8; 32], [u8; 32], Vec<R>);

fn public(domain: &'static str, session: SessionId, number: u64) -> Block {
    let mut oracle = RandomOracle::new(domain);
    oracle.absorb(session.as_bytes()).absorb_u64(number);
    oracle.finish_block()
}

impl<K: Stage> Key<K> {
    /// All rounds of a plan, for draws of these lengths by the peer.
    pub(crate) fn run(
        mut self,
        plan: &Plan,
        pieces: &[usize],
        malicious: &MaliciousKeyHolder<'_, K::Ring>,
        channel: &mut Channel,
    ) -> Result<Vec<K::Ring>> {
        let (mut outputs, mut rng) = (Vec::new(), rng(83));
        let (mut number, mut before) = (0, None);
        let total = pieces.iter().sum();
        while outputs.len() < total {
            if number > 0 {
                let ends = pieces.iter().scan(0, |end, piece| {
                    *end += piece;
                    Some(*end)
                });
                let drawn = ends.take_while(|end| *end <= outputs.len()).last();
                channel.agree_drawn(drawn.unwrap_or(0) as u64)?;
            }
            let step = plan.step(number as usize, outputs.len() as u64);
            let growth = K::growth(plan.trees());
            let prgs = TreePrgs::growing(growth, self.session, number);
            let round = Round {
                layout: Arc::new(match plan.noise() {
                    crate::Noise::Regular => Layout::regular(step.trees, step.set.block()),
                    crate::Noise::Uniform => {
                        let key = public("volery cuckoo hashing of the noise", self.session, 0);
                        Layout::cuckoo(step.n, step.set.t, ETA, key, Cells::Complete)
                    }
                }),
                prgs: if K::CARRIES { prgs.with_cleared_leaves() } else { prgs },
                session: self.session,
                number,
            };
            let honest = MaliciousKeyHolder::HONEST;
            let now = if malicious.round == number { malicious } else { &honest };
            let drawn = round.layout.is_regular() && growth != Growth::Ggm;
            let (k, need) = (step.secret(), step.need);
            K::feed_key(&mut self.ot, &self.base[k..])?;
            channel.bind();
            let spare = &self.base[k..];
            let x = self.x + now.x;
            let leaves = trees::<K>(&round, drawn, x, spare, now, &mut self.ot, &mut rng, channel)?;
            let mask = K::key_mask(&self.base[..need]);
            let batch = round.layout.batch();
            let lie = (now.lie, before);
            let said = check(&round, batch, x, &leaves, &mask, lie, &mut rng, channel)?;
            before = Some(said.opening);
            // The same sums as an honest key holder's
            let seed = public("volery lpn code", self.session, number);
            let leaves = shares(&round.layout, &leaves);
            let mut w = leaves.clone();
            let code = LocalCode::new(seed, step.set.k);
            let (of, rows) = (step.instances, &self.base[..k]);
            let unit = if of == 1 { w.len().max(1) } else { of * step.set.block() };
            for (j, (leaves, w)) in leaves.chunks(unit).zip(w.chunks_mut(unit)).enumerate() {
                match of {
                    1 => K::encode_key::<1>(&code, rows.as_chunks().0, 0, leaves, w),
                    4 => K::encode_key::<4>(&code, rows.as_chunks().0, j * unit / 4, leaves, w),
                    _ => unreachable!("no test has 2"),
                }
            }
            w.truncate(step.keep + step.deliver);
            outputs.extend_from_slice(&w[step.keep..]);
            self.base = volery_primitives::pages::Buffer::zeroed(step.keep);
            self.base.copy_from_slice(&w[..step.keep]);
            number += 1;
        }
        outputs.truncate(total);
        Ok(outputs)
    }
}

/// The share at each point: the sum of its leaves.
fn shares<R: Ring>(layout: &Layout, leaves: &[R]) -> Vec<R> {
    let mut shares = vec![R::ZERO; layout.n()];
    for tree in 0..layout.batch().trees() {
        for (leaf, place) in layout.batch().leaves_of(tree).enumerate() {
            if let Some(point) = layout.point_of(tree, leaf) {
                shares[point] += leaves[place];
            }
        }
    }
    shares
}

/// The messages about the trees; returns the leaves.
#[expect(clippy::too_many_arguments, reason = "the parameters of one attack")]
pub(crate) fn trees<K: Correlation>(
    round: &Round,
    drawn: bool,
    x: K::Ring,
    spare: &[K::Ring],
    malicious: &MaliciousKeyHolder<'_, K::Ring>,
    ot: &mut convert::Sender<K::KeyOt>,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<Vec<K::Ring>> {
    let batch = round.layout.batch();
    let growth = round.prgs.growth();
    let beta = K::key_shares(x, spare, batch.trees(), channel)?;
    let mut rows = vec![Block::ZERO; batch.levels()];
    let mut pads = vec![[Block::ZERO; 2]; batch.trees()];
    if growth != Growth::Ggm {
        if drawn {
            ot.correlated(&mut rows, channel)?;
        } else {
            ot.correlated_chosen(&mut rows, channel)?;
        }
    }
    if growth == Growth::PseudoCorrelated {
        let last = |tree| rows[batch.levels_of(tree).end - 1];
        let last: Vec<_> = (0..batch.trees()).map(last).collect();
        ot.hash(&last, &mut pads)?;
    }
    let mut delta = ot.delta();
    if growth == Growth::Correlated {
        delta = wire::pack(x);
    }
    let mut grown = GrownTrees { sums: Vec::new(), leaves: Vec::new(), psi: Vec::new() };
    for (tree, beta) in beta.iter().enumerate() {
        let delta = match malicious.delta {
            Some((at, error)) if at == tree => delta ^ error,
            _ => delta,
        };
        let node = malicious.node.filter(|node| node.tree == tree);
        let depth = batch.shape(tree).depth();
        let prg = round.prgs.tree(tree);
        let (sums, leaves) = grow((&prg, growth), depth, rng.block(), delta, node);
        grown.sums.extend(sums);
        grown.psi.push(K::Ring::sum(&leaves) - *beta);
        grown.leaves.extend(leaves);
    }
    (malicious.sums)(&mut grown);
    match growth {
        Growth::Ggm => ot.chosen(&grown.sums, channel)?,
        _ => {
            for (row, sums) in rows.iter_mut().zip(&grown.sums) {
                *row ^= sums[0];
            }
            let mut next = 0;
            while next < batch.trees() {
                let run = batch.run_from(next, LEAVES_AT_ONCE);
                next = run.end;
                let mut right = Vec::new();
                if growth == Growth::PseudoCorrelated {
                    for tree in run.clone() {
                        let last = batch.levels_of(tree).end - 1;
                        rows[last] = pads[tree][0] ^ grown.sums[last][0];
                        right.push(pads[tree][1] ^ grown.sums[last][1]);
                    }
                }
                channel.send_blocks(&rows[batch.levels_of_run(&run)])?;
                channel.send_blocks(&right)?;
                if growth == Growth::PseudoCorrelated {
                    wire::send(&grown.psi[run], channel)?;
                }
            }
        }
    }
    if growth == Growth::Ggm {
        wire::send(&grown.psi, channel)?;
    }
    channel.flush()?;
    Ok(grown.leaves)
}

/// A complete tree of depth 2 or more, node by node: its level sums and its leaves.
fn grow<R: Ring>(
    (prg, growth): (&TreePrg, Growth),
    depth: u32,
    root: Block,
    delta: Block,
    wrong: Option<Node>,
) -> (Vec<[Block; 2]>, Vec<R>) {
    let mut sums = Vec::new();
    let mut nodes = vec![root];
    for level in 1..depth {
        let children = |node: &Block| match growth {
            Growth::Correlated | Growth::PseudoCorrelated if level == 1 => [*node, *node ^ delta],
            _ => prg.children(*node),
        };
        let mut pairs: Vec<_> = nodes.iter().map(children).collect();
        if let Some(wrong) = wrong.filter(|wrong| wrong.level == level) {
            let pair = &mut pairs[wrong.node];
            *pair = [pair[0] ^ wrong.errors[0], pair[1] ^ wrong.errors[1]];
        }
        let add = |sum: [Block; 2], pair: &[Block; 2]| [sum[0] ^ pair[0], sum[1] ^ pair[1]];
        sums.push(pairs.iter().fold([Block::ZERO; 2], add));
        nodes = pairs.as_flattened().to_vec();
    }
    let mut pairs: Vec<[R; 2]> = nodes.iter().map(|node| prg.leaf_pair(*node)).collect();
    if let Some(wrong) = wrong.filter(|wrong| wrong.level == depth) {
        let pair = &mut pairs[wrong.node];
        pair[0] += R::from_block(wrong.errors[0]);
        pair[1] += R::from_block(wrong.errors[1]);
    }
    let add = |sum: [R; 2], pair: &[R; 2]| [sum[0] + pair[0], sum[1] + pair[1]];
    let leaf_sums = pairs.iter().fold([R::ZERO; 2], add);
    sums.push(leaf_sums.map(wire::pack));
    (sums, pairs.as_flattened().to_vec())
}

/// The result of a check.
pub(crate) struct CheckResult<R> {
    pub(crate) opening: Opening<R>,
    /// The first message of the value holder.
    pub(crate) x_prime: Vec<R>,
    /// Whether the value holder's values match its own.
    pub(crate) agreed: bool,
}

/// The check, to the end.
#[expect(clippy::too_many_arguments, reason = "the parameters of one attack")]
pub(crate) fn check<R: Ring>(
    round: &Round,
    batch: &TreeBatch,
    x: R,
    leaves: &[R],
    mask: &[R],
    (lie, before): (Lie, Option<Opening<R>>),
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<CheckResult<R>> {
    let TranscriptHashes { sent, received } = channel.bound();
    let oracle = |domain, session: SessionId, number| {
        let mut oracle = RandomOracle::new(domain);
        oracle.absorb(session.as_bytes()).absorb_u64(number);
        oracle.absorb(&sent).absorb(&received);
        oracle
    };
    let nonce = channel.recv_block()?;
    let mut x_prime = vec![R::ZERO; mask.len()];
    wire::recv(&mut x_prime, "an element", channel)?;
    // Coefficients: one for each tree, one for each place
    let (session, number) = (round.session, round.number);
    let domain = "volery correlation check: coefficients";
    let mut coefficients = oracle(domain, session, number);
    coefficients.absorb(&nonce.to_bytes());
    let mut prg = Prg::new(coefficients.finish_block());
    let sizes = (0..batch.trees()).map(|tree| batch.leaves_of(tree).len());
    let largest = sizes.max().unwrap_or(0);
    let mut v = Vec::new();
    for (x_prime, mask) in x_prime.iter().zip(mask) {
        let (mut of_trees, mut of_places) = (vec![R::ZERO; batch.trees()], vec![R::ZERO; largest]);
        R::random_slice(&mut prg, &mut of_trees);
        R::random_slice(&mut prg, &mut of_places);
        let mut sum = *mask - *x_prime * x;
        for (tree, a) in of_trees.iter().enumerate() {
            for (b, leaf) in of_places.iter().zip(&leaves[batch.leaves_of(tree)]) {
                sum += *a * *b * *leaf;
            }
        }
        v.push(sum);
    }
    let last = v.len() - 1;
    match lie {
        Lie::First => v[0] += R::ONE,
        Lie::Last | Lie::EchoLast => v[last] += R::ONE,
        _ => (),
    }
    let mut salt = [0; 32];
    rng.fill_bytes(&mut salt);
    let committed = |session, number, v: &[R]| {
        let mut oracle = oracle("volery correlation check: commitment", session, number);
        oracle.absorb(&salt);
        for v in v {
            oracle.absorb(&wire::pack(*v).to_bytes());
        }
        oracle.finish32()
    };
    let commitment = match lie {
        Lie::Commitment | Lie::Echo => [7; 32],
        Lie::Round => committed(session, number + 1, &v),
        Lie::Session => committed(SessionId::from_bytes([8; 32]), number, &v),
        _ => committed(session, number, &v),
    };
    let mut opening = (commitment, salt, v.clone());
    match lie {
        Lie::Salt => opening.1[0] ^= 1,
        Lie::Value => opening.2[0] += R::ONE,
        Lie::Replay => opening = before.expect("a round before"),
        _ => (),
    }
    channel.send(&opening.0)?;
    let mut w = vec![R::ZERO; v.len()];
    wire::recv(&mut w, "an element", channel)?;
    match lie {
        Lie::Echo => opening.2.clone_from(&w),
        Lie::EchoLast => opening.2[last] = w[last],
        _ => (),
    }
    channel.send(&opening.1)?;
    wire::send(&opening.2, channel)?;
    channel.flush()?;
    Ok(CheckResult { opening, x_prime, agreed: v == w })
}
