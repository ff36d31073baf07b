//! The speed of each step of a round on a card: `kernels [depth trees instances rows]`.
#![allow(clippy::print_stdout, reason = "a program that prints its result")]

use std::time::Instant;

use volery_gpu::{
    Code, Device, Entry, Leaf, Memory, Outputs, TreeInputs, Trees, hash_chosen, hash_pairs,
};
use volery_primitives::{Block, prg::Prg};

fn random(count: usize) -> Vec<Block> {
    let mut out = vec![Block::ZERO; count];
    Prg::new(Block::ONE).fill_blocks(&mut out);
    out
}

/// The shortest of some runs, as 10^9 outputs a second.
fn rate(device: &Device, outputs: usize, mut run: impl FnMut()) -> f64 {
    let time = |run: &mut dyn FnMut()| {
        device.wait().expect("the card works");
        let start = Instant::now();
        run();
        device.wait().expect("the card works");
        start.elapsed().as_secs_f64()
    };
    run();
    let times = (0..7).map(|_| time(&mut run));
    outputs as f64 / times.fold(f64::MAX, f64::min) / 1e9
}

fn main() {
    let sizes: Vec<usize> =
        std::env::args().skip(1).map(|size| size.parse().expect("a number")).collect();
    let [depth, count, instances, rows] = sizes[..] else {
        panic!("kernels DEPTH TREES INSTANCES ROWS, as 10 9024 4 131072")
    };
    let device = Device::open(0).expect("a card");
    println!("{}: {count} trees of 2^{depth}, {instances} instances of {rows} rows", device.name());
    let (keys, roots) = (random(count), random(count));
    let alphas: Vec<u32> = (0..count).map(|tree| tree as u32 % 500).collect();
    let n = count << depth;
    for (leaf, entries) in [
        (Leaf::Correlated, &[Entry::Cot][..]),
        (Leaf::Words, &[Entry::Key61, Entry::Pairs61]),
        (Leaf::Hashed, &[Entry::Key128, Entry::Pairs128]),
    ] {
        let mut trees = Trees::new(&device, leaf, depth as u32, count).expect("memory");
        let opened = random(count * depth);
        let grown = rate(&device, n, || {
            trees.grow(&keys, &roots, Block::ONE).expect("trees");
        });
        let write = |to: TreeInputs<'_>| {
            to.keys.copy_from_slice(&keys);
            to.alphas.copy_from_slice(&alphas);
            to.opened.copy_from_slice(&opened);
            to.totals.copy_from_slice(&roots);
        };
        trees.grow_punctured(0, count, write).expect("trees");
        // What the trees are grown from is there already.
        let punctured = rate(&device, n, || {
            trees.grow_punctured(0, count, |_| ()).expect("trees");
        });
        let places = random(1 << depth);
        let words: Vec<u64> = places.iter().map(|block| block.low() >> 3).collect();
        let check = rate(&device, n, || {
            if leaf == Leaf::Words {
                trees.inner_products_61([&words, &words]).expect("sums");
            } else {
                trees.inner_products(&places).expect("sums");
            }
        });
        println!(
            "{leaf:?}: trees {grown:.1}, punctured {punctured:.1} , check \
             {check:.1}"
        );
        for entry in entries {
            let table = random(rows * instances * entry.words().div_ceil(2));
            let table: &[u64] = bytemuck::cast_slice(&table);
            let table = Memory::of(&device, table).expect("memory");
            let code = Code::new(&device, *entry, Block::ONE, instances, rows).expect("a code");
            let mut out = Memory::zeroed(&device, n * entry.words()).expect("memory");
            let rate = rate(&device, n, || {
                let mut out = Outputs::Entries(out.all());
                code.encode(&table, &trees, 0, &mut out).expect("outputs");
            });
            println!("    {entry:?}: code {rate:.1}");
        }
    }
    let mut blocks = Memory::<Block>::zeroed(&device, n).expect("memory");
    let mut pairs = Memory::zeroed(&device, 2 * n).expect("memory");
    let chosen = rate(&device, n, || {
        hash_chosen(&device, Block::ONE, 0, &mut blocks.all()).expect("hashes")
    });
    let (start, delta) = (Block::ONE, Block::from(6));
    let both = rate(&device, n, || {
        hash_pairs(&device, start, 0, delta, &blocks.all(), &mut pairs.all()).expect("hashes");
    });
    println!("hash: receiver {chosen:.1}, sender {both:.1}");
}
