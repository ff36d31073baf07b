//! The generator's stream does not depend on how it is cut.

use proptest::prelude::*;
use volery_primitives::Block;
use volery_primitives::prg::Prg;

proptest! {
    #[test]
    fn cuts_do_not_change_the_stream(
        seed: u128,
        cuts in prop::collection::vec((0usize..400, 0usize..17), 0..12),
    ) {
        let total: usize = cuts.iter().map(|&(bytes, _)| bytes).sum();
        let mut whole = vec![0; total];
        Prg::new(Block::new(seed)).fill_bytes(&mut whole);

        let mut prg = Prg::new(Block::new(seed));
        let mut pieces = Vec::new();
        for (bytes, shift) in cuts {
            // The shift gives slices of every alignment.
            let mut piece = vec![0; shift + bytes];
            prg.fill_bytes(&mut piece[shift..]);
            pieces.extend_from_slice(&piece[shift..]);
        }
        prop_assert_eq!(pieces, whole);
    }

    #[test]
    fn blocks_and_bytes_are_one_stream(seed: u128, first in 0usize..40, blocks in 0usize..40) {
        let mut whole = vec![0; first + 16 * blocks + 16];
        Prg::new(Block::new(seed)).fill_bytes(&mut whole);

        let mut prg = Prg::new(Block::new(seed));
        let mut pieces = vec![0; first];
        prg.fill_bytes(&mut pieces);
        let mut out = vec![Block::ZERO; blocks];
        prg.fill_blocks(&mut out);
        pieces.extend_from_slice(Block::as_bytes(&out));
        pieces.extend(prg.next_u64().to_le_bytes());
        pieces.extend(prg.next_u64().to_le_bytes());
        prop_assert_eq!(pieces, whole);
    }
}
