//! The assignment of points of the domain to trees: steps 1 and 2 of Protocols 4 and 5.
//!
//! The arrangement is public, P2's points in it are not: the course of placing them by cuckoo
//! hashing depends on them, and they index P2's own memory ([`Layout::assign`]). A process that
//! shares a cache with P2 could learn of them; P1 sees only the time of P2's next message.

use rayon::prelude::*;
use volery_field::Ring;
use volery_primitives::{Block, cuckoo, pages::Buffer, prefetch::prefetch_range};
use zeroize::{Zeroize, Zeroizing};

use crate::tree_batch::TreeBatch;

/// The least number of points whose leaves are added up together: small enough that their sums stay
/// in the cache, large enough that each tree has some consecutive leaves for them.
const TILE: usize = 1 << 14;

/// How many trees ahead [`Layout::add_up`] prefetches: the leaves that it reads next are far from
/// those that it has read, a few lines each time.
const AHEAD: usize = 16;

/// The point of a spare leaf.
const SPARE: u32 = u32::MAX;

/// The public arrangement of the domain `0..n` in trees, at most one point per tree.
pub struct Layout {
    n: usize,
    batch: TreeBatch,
    /// With cuckoo hashing, tree `l` covers bin `l`; otherwise tree `j` covers block `j`, the range
    /// of its leaves. (In a box: layouts are moved to the heap, where unused bytes would keep what
    /// lay on the stack.)
    bins: Option<Box<Bins>>,
}

/// Bins: all points that one of the three hash functions maps there.
struct Bins {
    hasher: Box<cuckoo::Hasher>,
    /// The point of each leaf, ascending within a tree.
    points: Vec<u32>,
    /// Points of a tile: at least one for each tree; otherwise the table below would be quadratic.
    tile: usize,
    /// For each tile, the first leaf of each tree whose point is in it or in a later one; then once
    /// more, the ends.
    tiles: Vec<u32>,
}

/// The number of leaves in the tree of a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cells {
    /// As many as the bin has points.
    Exact,
    /// At least one more (the extra cell of Fig. 7, Ferret), and enough that the tree is complete.
    /// A bin without a point takes the last leaf, which stands for no point.
    Complete,
}

/// P2's points in the trees.
pub struct Assignment {
    /// The punctured leaf of each tree; the last one where the tree has no point.
    pub alphas: Vec<usize>,
    /// The number of the point in each tree, if it has one.
    pub points: Vec<Option<usize>>,
    /// The numbers of the points without a tree.
    pub dropped: Vec<usize>,
}

impl Drop for Assignment {
    fn drop(&mut self) {
        self.alphas.zeroize();
        self.points.zeroize();
        self.dropped.zeroize();
    }
}

impl Layout {
    /// Regular noise: `blocks` blocks of `size` points, one point in each.
    ///
    /// # Panics
    /// If `size` is 0 or above 2^40.
    #[must_use]
    pub fn regular(blocks: usize, size: usize) -> Self {
        Self {
            n: blocks.checked_mul(size).expect("the domain fits into the address space"),
            batch: TreeBatch::regular(blocks, size),
            bins: None,
        }
    }

    /// Cuckoo hashing of `points` points anywhere in `0..n`: step 2, simple hashing of the whole
    /// domain into [`cuckoo::bins_for`]`(points, eta)` bins by three functions keyed with the
    /// public `key`. `cells` determines how the bins become trees; half-trees, and the check, need
    /// complete ones: where a tree has a path to no leaf, a malicious P2 could take it and learn
    /// all leaves.
    ///
    /// All points find a bin except with probability `2^-eta`.
    ///
    /// # Panics
    /// If the leaves are 2^32 or more.
    #[must_use]
    pub fn cuckoo(n: usize, points: usize, eta: u32, key: Block, cells: Cells) -> Self {
        let bin_count = cuckoo::bins_for(points, eta);
        let hasher = cuckoo::Hasher::new(key, bin_count);
        let mut sizes = vec![0usize; bin_count];
        for_each_bin(&hasher, n, |bin, _| sizes[bin] += 1);
        let batch = TreeBatch::new(sizes.iter().map(|size| match cells {
            // A bin without points of the domain is covered by a leaf that stands for no point.
            Cells::Exact => *size.max(&1),
            Cells::Complete => (size + 1).max(2).next_power_of_two(),
        }));
        assert!(u32::try_from(batch.leaves()).is_ok(), "the leaves are numbered with 32 bits");
        // The canonical order within a bin, `pos_l`, is that of the points.
        let mut points = vec![SPARE; batch.leaves()];
        let mut next: Vec<_> =
            (0..bin_count).map(|bin| batch.leaves_of(bin).start as u32).collect();
        let tile = TILE.max(bin_count.next_power_of_two());
        // At most n + 2 * bin_count numbers.
        let mut tiles = Vec::with_capacity((n.div_ceil(tile) + 1) * bin_count);
        let mut end = 0;
        for_each_bin(&hasher, n, |bin, point| {
            if point >= end {
                tiles.extend_from_slice(&next);
                end += tile;
            }
            points[next[bin] as usize] = point as u32;
            next[bin] += 1;
        });
        tiles.extend_from_slice(&next);
        let bins = Bins { hasher: Box::new(hasher), points, tile, tiles };
        Self { n, batch, bins: Some(Box::new(bins)) }
    }

    /// The size of the domain.
    #[must_use]
    pub fn n(&self) -> usize {
        self.n
    }

    /// The number of points that are added up together, a power of two: [`add_up`](Self::add_up)
    /// fills whole tiles.
    #[must_use]
    pub fn tile(&self) -> usize {
        self.bins.as_ref().map_or(TILE, |bins| bins.tile)
    }

    /// Whether each tree covers a separate block.
    #[must_use]
    pub fn is_regular(&self) -> bool {
        self.bins.is_none()
    }

    /// The trees.
    #[must_use]
    pub fn batch(&self) -> &TreeBatch {
        &self.batch
    }

    /// P2, step 1: puts each of its `points` into a separate tree.
    ///
    /// With regular noise, point `j` must lie in block `j`. With cuckoo hashing the points are
    /// distinct; those without a bin are dropped, as the paper does for vector-OLE: an abort would
    /// tell P1 something about them.
    ///
    /// # Panics
    /// If a point is outside the domain; for regular noise, if the points are not one in each
    /// block, in order.
    #[must_use]
    pub fn assign(&self, points: &[usize]) -> Assignment {
        assert!(points.iter().all(|x| *x < self.n), "points of the domain");
        let trees = self.batch.trees();
        let Some(bins) = &self.bins else {
            assert_eq!(points.len(), trees, "one point in each block");
            // Without a division, whose time would depend on the point.
            let place = |(block, x): (usize, &usize)| {
                let places = self.batch.leaves_of(block);
                let place = x.wrapping_sub(places.start);
                assert!(place < places.len(), "point number j lies in block j");
                place
            };
            return Assignment {
                alphas: points.iter().enumerate().map(place).collect(),
                points: (0..trees).map(Some).collect(),
                dropped: Vec::new(),
            };
        };
        let items: Zeroizing<Vec<_>> =
            Zeroizing::new(points.iter().map(|x| Block::from(*x as u128)).collect());
        let (table, dropped) = match cuckoo::Table::build(&bins.hasher, &items) {
            Ok(table) => (table, Vec::new()),
            Err(full) => (full.table, full.unplaced),
        };
        let numbers: Vec<_> = (0..trees).map(|bin| table.bin(bin)).collect();
        let place = |(bin, number): (usize, &Option<usize>)| {
            let leaves = self.batch.leaves_of(bin);
            number.map_or(leaves.len() - 1, |number| {
                bins.points[leaves]
                    .binary_search(&(points[number] as u32))
                    .expect("an item lies in one of its own bins")
            })
        };
        Assignment {
            alphas: numbers.iter().enumerate().map(place).collect(),
            points: numbers,
            dropped,
        }
    }

    /// The point of the domain of leaf `leaf` of tree `tree`, unless it is a spare one.
    #[cfg(test)]
    pub(crate) fn point_of(&self, tree: usize, leaf: usize) -> Option<usize> {
        let place = self.batch.leaves_of(tree).start + leaf;
        let point = self.bins.as_ref().map(|bins| bins.points[place]);
        point.map_or(Some(place), |point| (point != SPARE).then_some(point as usize))
    }

    /// Memory for the leaves: `old`, if it has the right length.
    #[must_use]
    pub fn leaves<R: Ring>(&self, old: Option<Buffer<R>>) -> Buffer<R> {
        old.filter(|old| old.len() == self.batch.leaves())
            .unwrap_or_else(|| Buffer::zeroed(self.batch.leaves()))
    }

    /// Expansion of the points of a run of tiles, where leaves have to be added up: with cuckoo
    /// hashing, fills `sums` with as many points as it holds (or remain) from tile number `tile`
    /// on. Tiles have [`tile`](Self::tile) points.
    ///
    /// # Panics
    /// If `leaves` are not those of the batch, `sums` is not a whole number of tiles, or the tile
    /// does not exist.
    pub fn add_up<R: Ring>(&self, leaves: &[R], tile: usize, sums: &mut [R]) {
        let Some(bins) = &self.bins else { return };
        let Bins { points, tile: size, tiles, .. } = &**bins;
        let last = self.n.div_ceil(*size);
        let trees = self.batch.trees();
        let rows: Vec<_> = tiles.chunks(trees).collect();
        sums.par_chunks_mut(*size).zip(tile..last).for_each(|(sums, tile)| {
            sums.fill(R::ZERO);
            let start = (tile * size) as u32;
            let run = |tree: usize| rows[tile][tree] as usize..rows[tile + 1][tree] as usize;
            for tree in 0..trees {
                let ahead = run((tree + AHEAD).min(trees - 1));
                prefetch_range(leaves, ahead.clone());
                prefetch_range(points, ahead);
                let run = run(tree);
                for (point, leaf) in points[run.clone()].iter().zip(&leaves[run]) {
                    sums[(point - start) as usize] += *leaf;
                }
            }
        });
    }
}

/// Calls `visit(bin, point)` for the three bins of each of the points `0..n`, in their order.
fn for_each_bin(hasher: &cuckoo::Hasher, n: usize, mut visit: impl FnMut(usize, usize)) {
    const CHUNK: usize = 1 << 10;
    let mut bins = [[0; 3]; CHUNK];
    for first in (0..n).step_by(CHUNK) {
        let items: Vec<_> = (first..n.min(first + CHUNK)).map(|x| Block::from(x as u128)).collect();
        let bins = &mut bins[..items.len()];
        hasher.bins_slice(&items, bins);
        for (point, bins) in (first..).zip(bins) {
            for bin in bins {
                visit(*bin as usize, point);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use volery_field::Z64;

    use super::*;

    #[test]
    fn every_point_has_its_leaf_in_its_tree() {
        let cells = [Cells::Exact, Cells::Complete].into_iter();
        let sizes = [
            (1, 1),
            (100, 3),
            (1 << 14, 192),
            (10_007, 50),
            (200_003, 100),
            // More bins than the least tile has points.
            (300_007, 60_000),
        ];
        for ((n, points), cells) in
            sizes.into_iter().flat_map(|size| cells.clone().map(move |cells| (size, cells)))
        {
            let layout = Layout::cuckoo(n, points, 40, Block::from(8), cells);
            assert_eq!(layout.n(), n);
            let mut wanted: Vec<usize> = (0..points).map(|i| i * (n / points) % n).collect();
            wanted.dedup();
            let assignment = layout.assign(&wanted);
            assert_eq!(assignment.dropped, Vec::<usize>::new());
            // A one in the leaf of each assigned point, expanded, is a one at each wanted point and
            // zero elsewhere.
            let mut leaves = layout.leaves::<Z64>(None);
            for (tree, point) in assignment.points.iter().enumerate() {
                if point.is_some() {
                    leaves[layout.batch().leaves_of(tree).start + assignment.alphas[tree]] =
                        Z64::ONE;
                }
            }
            let mut shares = vec![Z64::ZERO; n.next_multiple_of(layout.tile())];
            layout.add_up(&leaves, 0, &mut shares);
            let bins = layout.bins.as_ref().expect("bins");
            assert!(bins.tiles.len() <= n + 2 * layout.batch().trees());
            let wanted: std::collections::HashSet<_> = wanted.into_iter().collect();
            for (x, value) in shares[..n].iter().copied().enumerate() {
                let expected = if wanted.contains(&x) { Z64::ONE } else { Z64::ZERO };
                assert!(value == expected, "point {x} of {n}");
            }
        }
    }

    #[test]
    fn regular_blocks() {
        let layout = Layout::regular(3, 8);
        assert_eq!(layout.n(), 24);
        let assignment = layout.assign(&[7, 8, 20]);
        assert_eq!(assignment.alphas, [7, 0, 4]);
        assert_eq!(layout.batch().leaves_of(2), 16..24);
    }
}
