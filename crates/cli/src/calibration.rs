//! What this machine can do, for numbers that mean something on another one.
//!
//! A correlation costs some AES blocks (the trees), some random reads (the local linear code) and some copied bytes (the
//! output); the ratio to these three is steadier between machines than the time.

use std::hint::black_box;
use std::time::{Duration, Instant};

use volery_primitives::cpu::Cpu;
use volery_primitives::{Block, prg::Prg};

/// How long each measurement runs.
const LONG_ENOUGH: Duration = Duration::from_millis(150);

/// What was measured, one thread.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct Machine {
    /// The instruction set level in use.
    pub(crate) cpu: String,
    /// One block of the AES-CTR generator.
    pub(crate) nanoseconds_aes_block: f64,
    /// One 16-byte read at a random place of a 2 MiB table, many in flight.
    pub(crate) nanoseconds_random_read: f64,
    /// One byte of a long copy.
    pub(crate) nanoseconds_copied_byte: f64,
}

impl Machine {
    /// Measures, in about half a second.
    pub(crate) fn measure() -> Self {
        Self {
            cpu: Cpu::detect().name().to_owned(),
            nanoseconds_aes_block: aes(),
            nanoseconds_random_read: random_reads(),
            nanoseconds_copied_byte: copies(),
        }
    }
}

/// Nanoseconds of one of the `units` that `work` does each time, from the fastest of many times: what else runs on the
/// machine only ever adds.
pub(crate) fn fastest(units: usize, mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut best = Duration::MAX;
    while start.elapsed() < LONG_ENOUGH {
        let once = Instant::now();
        work();
        best = best.min(once.elapsed());
    }
    best.as_secs_f64() * 1e9 / units as f64
}

fn aes() -> f64 {
    let mut prg = Prg::new(Block::ZERO);
    let mut blocks = vec![Block::ZERO; 1 << 11]; // 32 KiB
    fastest(blocks.len(), || prg.fill_blocks(black_box(&mut blocks)))
}

fn random_reads() -> f64 {
    const READS: usize = 1 << 16;
    let mut table = vec![Block::ZERO; (2 << 20) / 16];
    Prg::new(Block::ONE).fill_blocks(&mut table);
    let mask = table.len() - 1;
    let mut counter = 0_u64;
    fastest(READS, || {
        let mut sum = Block::ZERO;
        for _ in 0..READS {
            counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
            // Two rounds of a 64-bit mix (SplitMix64): each place is independent of the last, so reads overlap.
            let mut place = counter;
            place = (place ^ (place >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            place = (place ^ (place >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            sum ^= table[(place >> 32) as usize & mask];
        }
        black_box(sum);
    })
}

fn copies() -> f64 {
    let from = vec![1_u8; 64 << 20];
    let mut to = vec![0_u8; 64 << 20];
    fastest(from.len(), || {
        black_box(&mut to).copy_from_slice(black_box(&from))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_neither_stopped_nor_infinitely_fast() {
        let machine = Machine::measure();
        for (nanoseconds, least, most) in [
            (machine.nanoseconds_aes_block, 0.05, 10_000.0),
            (machine.nanoseconds_random_read, 0.05, 10_000.0),
            (machine.nanoseconds_copied_byte, 0.001, 100.0),
        ] {
            assert!((least..most).contains(&nanoseconds), "{machine:?}");
        }
    }
}
