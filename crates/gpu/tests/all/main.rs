//! Every kernel against its twin on the processor. They need a card: `.ci/gpu` runs them.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod code;
mod memory;
mod trees;

use volery_gpu::Device;
use volery_primitives::{Block, prg::Prg};

fn device() -> Device {
    Device::open(0).expect("a card")
}

fn random(seed: u128, count: usize) -> Vec<Block> {
    let mut out = vec![Block::ZERO; count];
    Prg::new(Block::from(seed)).fill_blocks(&mut out);
    out
}

fn words(blocks: &[Block]) -> Vec<u64> {
    bytemuck::cast_slice(blocks).to_vec()
}

fn blocks(words: &[u64]) -> Vec<Block> {
    words.as_chunks().0.iter().map(|[low, high]| Block::from_words(*low, *high)).collect()
}
