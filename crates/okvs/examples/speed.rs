//! Time of an item in nanoseconds, on one thread and at every processor level: rows, encoding and
//! decoding. The argument is the number of items.
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::time::Instant;

use volery_okvs::{Band, Preset, Shape};
use volery_primitives::Block;
use volery_primitives::cpu::Cpu;
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;

/// The best of them counts: the first one includes the time in which the system hands out memory.
const RUNS: usize = 9;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let items = std::env::args().nth(1).map_or(Ok(1 << 18), |n| n.parse())?;
    let mut prg = Prg::new(Block::new(5));
    let [mut keys, mut values, mut out] = [(); 3].map(|()| Buffer::<Block>::zeroed(items));
    prg.fill_blocks(&mut keys);
    prg.fill_blocks(&mut values);
    println!("{items} items of 128 bits, best of {RUNS}, ns an item");
    for preset in [Preset::Band10, Preset::Band5] {
        let shape = Shape::new(preset, items);
        let mut columns = Buffer::zeroed(shape.columns);
        for cpu in Cpu::available() {
            let mut best = [f64::INFINITY; 3];
            let band = Band::with_cpu(shape, Block::ONE, cpu);
            for _ in 0..RUNS {
                let mut time = Instant::now();
                let mut lap = |best: &mut f64| {
                    *best = best.min(time.elapsed().as_nanos() as f64 / items as f64);
                    time = Instant::now();
                };
                let rows = band.rows(&keys);
                lap(&mut best[0]);
                band.encode(&rows, &values, &mut columns)?;
                lap(&mut best[1]);
                band.decode(&rows, &columns, &mut out);
                lap(&mut best[2]);
                assert!(out[..] == values[..], "what was encoded is decoded");
            }
            let [rows, encode, decode] = best;
            println!(
                "{preset:?} {cpu:9} rows {rows:5.1}  rows + encode {:6.1}  rows + decode {:6.1}",
                rows + encode,
                rows + decode
            );
        }
    }
    Ok(())
}
