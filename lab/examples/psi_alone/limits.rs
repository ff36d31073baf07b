//! The least time of each phase: its use of each kernel times the kernel's time, measured alone in
//! the same run.

use std::hint::black_box;

use volery_bench::machine::{self, fastest};
use volery_channel::Role;
use volery_primitives::Block;
use volery_primitives::aes::{Aes128, rekeyed};
use volery_primitives::clmul::gf128_combine;
use volery_primitives::cuckoo::{Hasher, Table};
use volery_primitives::keyed::keyed_hashes;
use volery_primitives::prg::Prg;
use volery_primitives::transpose::transpose_128;
use volery_psi::{Parameters, Phase};

/// Nanoseconds of one use of each kernel.
pub(crate) struct Units {
    /// An AES block in counter mode, as the columns of the OT are.
    aes: f64,
    /// A block of a transposition of 128 columns.
    transposed: f64,
    /// Four products in GF(2^128), added up.
    folded: f64,
    /// An AES block with a key of its own.
    rekeyed: f64,
    /// Keyed BLAKE3 of 16 bytes, many at a time.
    blake3: f64,
    /// An item of a cuckoo table, the whole of which is built.
    cuckoo: f64,
    /// A read of 16 bytes at a random position of a table of one entry per instance.
    read: f64,
}

const LEN: usize = 1 << 11;

impl Units {
    pub(crate) fn measure(items: usize, parameters: &Parameters) -> Self {
        let mut blocks = vec![Block::ZERO; LEN];
        Prg::new(Block::ONE).fill_blocks(&mut blocks);
        let mut out = blocks.clone();
        let aes = Aes128::new(Block::ONE);
        let columns = blocks.clone();
        let weights = [Block::ONE, Block::new(3), Block::new(5), Block::new(7)];
        let four = [0, 1, 2, 3].map(|_| blocks.clone());
        let keys = blocks.clone();
        let bytes: Vec<_> = blocks.iter().map(|block| block.to_bytes()).collect();
        let strings: Vec<_> = bytes.iter().map(|bytes| &bytes[..]).collect();
        let digests: Vec<_> = (0..items as u128)
            .map(|i| aes.encrypt(Block::new(i)))
            .collect();
        let hasher = Hasher::new(Block::ONE, parameters.bins);
        Self {
            aes: fastest(LEN, || aes.ctr(0, black_box(&mut out))),
            transposed: fastest(LEN, || transpose_128(&columns, black_box(&mut out))),
            folded: fastest(LEN, || {
                gf128_combine(
                    four.each_ref().map(|x| &x[..]),
                    weights,
                    black_box(&mut out),
                );
            }),
            rekeyed: fastest(LEN, || rekeyed(&keys, black_box(&mut out))),
            blake3: fastest(LEN, || {
                keyed_hashes(&[7; 32], &strings, black_box(&mut out));
            }),
            cuckoo: fastest(items, || {
                black_box(Table::build(&hasher, &digests).is_ok());
            }),
            read: machine::random_read(16 * parameters.instances()),
        }
    }

    /// The least time of a phase, in nanoseconds per item of this party, and its derivation.
    pub(crate) fn limit(
        &self,
        party: Role,
        phase: Phase,
        parameters: &Parameters,
    ) -> Option<(f64, String)> {
        let items = match party {
            Role::Sender => parameters.sender_items,
            Role::Receiver => parameters.receiver_items,
        } as f64;
        let instances = parameters.instances() as f64 / items;
        let sets = parameters.sets() as f64;
        // Blocks of a row of the OPRF's matrix.
        let row = parameters.width as f64 / 128.0;
        let word = parameters.width.div_ceil(128) as f64;
        let uses: &[(f64, f64, &str)] = match (party, phase) {
            (_, Phase::Hash) => &[(1.0, self.blake3, "BLAKE3")],
            (Role::Sender, Phase::Rows) => &[
                (instances * row, self.aes, "AES"),
                (instances * row, self.transposed, "transposed block"),
                (instances, self.folded, "fold"),
            ],
            (Role::Sender, Phase::Match) => &[
                (sets * word, self.aes, "AES"),
                (sets, self.folded, "fold"),
                (sets, self.rekeyed, "AES with a key of its own"),
                (sets, self.read, "read"),
            ],
            (Role::Receiver, Phase::Place) => &[
                (1.0, self.cuckoo, "place in the cuckoo table"),
                (1.0, self.read, "read"),
            ],
            (Role::Receiver, Phase::Rows) => &[
                (instances * (2.0 * row + word), self.aes, "AES"),
                (2.0 * instances * row, self.transposed, "transposed block"),
                (instances, self.folded, "fold"),
                (instances, self.rekeyed, "AES with a key of its own"),
                // The item's block, and its slot for the tag.
                (2.0, self.read, "read"),
            ],
            // An index slot for each item; then the filter leaves about one search for each of the
            // sender's items, which reads the index and an item.
            (Role::Receiver, Phase::Match) => &[(3.0, self.read, "read")],
            _ => return None,
        };
        let sum = uses.iter().map(|(count, each, _)| count * each).sum();
        let words: Vec<_> = uses
            .iter()
            .map(|(count, each, what)| format!("{count:.1} {what} ({:.1} ns)", count * each))
            .collect();
        Some((sum, words.join(", ")))
    }
}
