//! The speed of this machine, in units that allow comparisons with other machines.
//!
//! A correlation costs some AES blocks (the trees), some random reads (the local linear code) and
//! some copied bytes (the output); the ratio to these three is steadier between machines than the
//! time.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use volery_primitives::cpu::Cpu;
use volery_primitives::hash::Tweaked;
use volery_primitives::{Block, prg::Prg};

use crate::memory;

/// The duration of each measurement.
const LONG_ENOUGH: Duration = Duration::from_millis(150);

/// A machine and its single-thread speed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// The processor's name, where the system reports it.
    pub(crate) processor: Option<String>,
    /// Cores that this process may use.
    pub(crate) cores: usize,
    /// Memory in bytes, where the system reports it.
    pub(crate) memory_bytes: Option<u64>,
    /// The operating system and its kernel.
    pub(crate) system: String,
    /// The instruction set level in use.
    pub(crate) cpu: String,
    /// One block of the AES-CTR generator.
    pub(crate) nanoseconds_aes_block: f64,
    /// One 16-byte read at a random position of a 2 MiB table, many in flight.
    pub(crate) nanoseconds_random_read: f64,
    /// The same from 9 MiB, the table of the largest LPN sets.
    pub(crate) nanoseconds_random_read_9_mib: f64,
    /// One byte of a long copy.
    pub(crate) nanoseconds_copied_byte: f64,
    /// One hash of an OT: a block with its tweak.
    pub(crate) nanoseconds_ot_hash: f64,
    /// Whether glibc was set to keep memory in the process: see [`crate::memory`].
    #[serde(default)]
    pub(crate) keeps_memory: bool,
}

impl Machine {
    pub(crate) fn measure() -> Self {
        Self {
            processor: processor(),
            cores: cores(),
            memory_bytes: memory_bytes(),
            system: system(),
            cpu: Cpu::detect().name().to_owned(),
            nanoseconds_aes_block: aes(),
            nanoseconds_random_read: random_read(2 << 20),
            nanoseconds_random_read_9_mib: random_read(9 << 20),
            nanoseconds_copied_byte: copies(),
            nanoseconds_ot_hash: ot_hashes(),
            keeps_memory: memory::is_kept(),
        }
    }

    /// A machine that was not measured.
    #[cfg(test)]
    pub(crate) fn example() -> Self {
        Self {
            processor: None,
            cores: 2,
            memory_bytes: None,
            system: "a system".to_owned(),
            cpu: "beads".to_owned(),
            nanoseconds_aes_block: 0.5,
            nanoseconds_random_read: 1.0,
            nanoseconds_random_read_9_mib: 1.0,
            nanoseconds_copied_byte: 0.05,
            nanoseconds_ot_hash: 2.0,
            keeps_memory: false,
        }
    }

    /// The reasons, as sentences, why figures of two parties with this many threads each, both on
    /// this machine, may not be comparable with others.
    pub(crate) fn remarks(&self, threads: usize) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.cores == 1 {
            remarks.push(
                "This process may use one core: the two parties take turns on it, and times are of both parties' work, not of \
                 the slower one's. Only bytes and messages can be compared with figures from two machines."
                    .to_owned(),
            );
        } else if 2 * threads > self.cores {
            remarks.push(format!(
                "What is measured with {threads} threads a party has {} cores for both parties: they wait for each other, and \
                 nothing says how it would be with a machine each.",
                self.cores
            ));
        }
        remarks
    }
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The processor's name, or its numbers if it has no name.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let find = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    find("model name").or_else(|| {
        let (maker, part) = (find("CPU implementer")?, find("CPU part")?);
        Some(format!("CPU implementer {maker}, part {part}"))
    })
}

fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    kibibytes(&text, "MemTotal:")
}

fn system() -> String {
    let name = rustix::system::uname();
    let [system, release, machine] =
        [name.sysname(), name.release(), name.machine()].map(|text| text.to_string_lossy());
    format!("{system} {release} {machine}")
}

/// The system's load average over a minute, where available: the number of processes that wanted a
/// core.
pub(crate) fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// The value, in bytes, of a line such as `VmHWM:  123 kB`.
pub(crate) fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Nanoseconds of one of the `units` of each call of `work`, from the fastest of many calls: other
/// load on the machine only adds time.
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

/// Nanoseconds of one 16-byte read at a random position of a table of this many bytes, many in
/// flight.
pub(crate) fn random_read(table_bytes: usize) -> f64 {
    const READS: usize = 1 << 16;
    let mut table = vec![Block::ZERO; table_bytes / 16];
    Prg::new(Block::ONE).fill_blocks(&mut table);
    let len = table.len() as u64;
    assert!(len > 0, "the table must have at least 16 bytes");
    let mut counter = 0_u64;
    fastest(READS, || {
        let mut sum = Block::ZERO;
        for _ in 0..READS {
            counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
            // Two rounds of a 64-bit mix (SplitMix64): each position is independent of the last, so
            // reads overlap.
            let mut place = counter;
            place = (place ^ (place >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            place = (place ^ (place >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            sum ^= table[(((place >> 32) * len) >> 32) as usize];
        }
        black_box(sum);
    })
}

fn copies() -> f64 {
    let from = vec![1_u8; 64 << 20];
    let mut to = vec![0_u8; 64 << 20];
    fastest(from.len(), || black_box(&mut to).copy_from_slice(black_box(&from)))
}

fn ot_hashes() -> f64 {
    let hash = Tweaked::new(Block::ONE);
    let mut blocks = vec![Block::ZERO; 1 << 11]; // 32 KiB
    fastest(blocks.len(), || hash.hash_slice(0, black_box(&mut blocks)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_core_is_said() {
        let with = |cores| Machine { cores, ..Machine::example() };
        let one = with(1).remarks(1);
        assert!(one.len() == 1 && one[0].contains("one core"), "{one:?}");
        assert!(with(2).remarks(1).is_empty());
        assert!(with(2).remarks(2)[0].contains("2 threads a party has 2 cores"));
        assert!(with(16).remarks(8).is_empty());
    }
}
