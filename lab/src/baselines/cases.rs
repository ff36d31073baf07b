//! Pairs of sets for the tests of all protocols.

use std::collections::HashSet;

use volery_primitives::Block;
use volery_primitives::prg::Prg;

use crate::baselines::Sizes;

/// The two parties' items.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) sender: Vec<Block>,
    pub(crate) receiver: Vec<Block>,
}

impl Case {
    /// `common` of the items are in both sets; all are random and have `bits` bits.
    pub(crate) fn overlapping(sender: usize, receiver: usize, common: usize, bits: u32) -> Self {
        let mut rng = Prg::new(Block::new((sender + 3 * receiver) as u128));
        let mut seen = HashSet::new();
        let mut fresh = |count: usize| -> Vec<Block> {
            let mut items = Vec::new();
            while items.len() < count {
                let item = u128::from(rng.block()) >> (128 - bits);
                if seen.insert(item) {
                    items.push(Block::new(item));
                }
            }
            items
        };
        let shared = fresh(common);
        let mut own = [fresh(sender - common), fresh(receiver - common)];
        own[0].extend(&shared);
        // At different positions on the two sides.
        own[1].splice(0..0, shared.into_iter().rev());
        let [sender_items, receiver_items] = own;
        Self {
            name: format!("{common} of {sender} and {receiver} items of {bits} bits"),
            sender: sender_items,
            receiver: receiver_items,
        }
    }

    pub(crate) fn sizes(&self) -> Sizes {
        Sizes { sender: self.sender.len(), receiver: self.receiver.len() }
    }

    /// The numbers of the receiver's items that the sender has, by a plain set.
    pub(crate) fn common(&self) -> Vec<usize> {
        let theirs: HashSet<u128> = self.sender.iter().map(|&item| item.into()).collect();
        (0..self.receiver.len()).filter(|&i| theirs.contains(&self.receiver[i].into())).collect()
    }
}

/// Boundary sizes: zero, one, two, primes, around powers of two, unequal; disjoint, equal, subset,
/// some in common.
pub(crate) fn cases(bits: u32) -> Vec<Case> {
    [
        (0, 0, 0),
        (0, 5, 0),
        (5, 0, 0),
        (1, 1, 0),
        (1, 1, 1),
        (2, 1, 1),
        (1, 2, 0),
        (2, 2, 1),
        (13, 17, 5),
        (127, 128, 64),
        (129, 128, 0),
        (128, 128, 128),
        (255, 257, 255),
        (257, 255, 1),
        (1009, 10, 10),
        (10, 1009, 4),
        (678, 789, 300),
    ]
    .map(|(sender, receiver, common)| Case::overlapping(sender, receiver, common, bits))
    .into()
}
