//! What this machine can do, for numbers that mean something on another one.
//!
//! A correlation costs some AES blocks (the trees), some random reads (the local linear code) and some copied bytes (the
//! output); the ratio to these three is steadier between machines than the time.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use volery_primitives::cpu::Cpu;
use volery_primitives::hash::Tweaked;
use volery_primitives::{Block, prg::Prg};

/// How long each measurement runs.
const LONG_ENOUGH: Duration = Duration::from_millis(150);

/// What a machine is and what it can do, one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name, where the system tells.
    pub processor: Option<String>,
    /// Cores that this process may use.
    pub cores: usize,
    /// Of memory, in bytes, where the system tells.
    pub memory_bytes: Option<u64>,
    /// The operating system and its kernel.
    pub system: String,
    /// The instruction set level in use.
    pub cpu: String,
    /// One block of the AES-CTR generator.
    pub nanoseconds_aes_block: f64,
    /// One 16-byte read at a random place of a 2 MiB table, many in flight.
    pub nanoseconds_random_read: f64,
    /// The same from 9 MiB, the table of the largest LPN sets.
    pub nanoseconds_random_read_9_mib: f64,
    /// One byte of a long copy.
    pub nanoseconds_copied_byte: f64,
    /// One hash of an OT: a block with its tweak.
    pub nanoseconds_ot_hash: f64,
}

impl Machine {
    /// Measures, in about a second.
    #[must_use]
    pub fn measure() -> Self {
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
        }
    }

    /// All that was measured.
    pub(crate) const fn calibrations(&self) -> [f64; 5] {
        [
            self.nanoseconds_aes_block,
            self.nanoseconds_random_read,
            self.nanoseconds_random_read_9_mib,
            self.nanoseconds_copied_byte,
            self.nanoseconds_ot_hash,
        ]
    }

    /// What keeps figures of two parties with so many threads each, both on this machine, from being compared with others, in
    /// sentences.
    #[must_use]
    pub fn remarks(&self, threads: usize) -> Vec<String> {
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
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The processor's name, or its numbers where it has none.
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

/// The system's load average over a minute, where it tells: how many processes wanted a core.
pub(crate) fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Memory that is touched before any run.
const TOUCHED: u64 = 64 << 20;

/// How far the process had to reach for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// The most that it held, in bytes, where the system tells: with what its allocator kept from
    /// before.
    pub(crate) peak: Option<u64>,
    /// Some of that had not been touched beforehand.
    pub(crate) fresh: bool,
}

/// Does the work after touching as much memory as it has taken before, and says what it took now.
///
/// A virtual machine's host takes memory away that has been free for some seconds. To have it back
/// takes 2 to 3 seconds a GiB on the machine where this was found, to clear pages that are there
/// 0.4: so the same work took either time. What is touched is given back to the system just before
/// the work: to clear it again is part of that, as in any process. What the work takes after some
/// seconds only, the host may have taken away again; `docs/performance.md` says how to keep it.
pub(crate) fn with_memory_at_hand<T>(before: Option<u64>, work: impl FnOnce() -> T) -> (T, Memory) {
    let own = own_memory().unwrap_or(0);
    let wanted = before.map_or(0, |peak| peak.saturating_sub(own));
    let touched = touch(wanted.max(TOUCHED));
    let forgotten = forget_peak_memory();
    let done = work();
    let peak = forgotten.then(peak_memory).flatten();
    // A little more than before is nothing new: threads do not always meet alike.
    let fresh = peak.is_some_and(|peak| peak.saturating_sub(own) > touched + touched / 4);
    (done, Memory { peak, fresh })
}

/// Touches so many bytes, or as many as the system has to give, and gives them back. Returns how
/// many.
fn touch(bytes: u64) -> u64 {
    touch_at_most(bytes, available())
}

fn touch_at_most(bytes: u64, available: Option<u64>) -> u64 {
    const PAGE: usize = 4096;
    let bytes = available.map_or(bytes, |available| bytes.min(available));
    let mut memory = vec![0_u8; usize::try_from(bytes).unwrap_or(0)];
    for page in memory.chunks_mut(PAGE) {
        page[0] = 1;
    }
    black_box(&memory);
    memory.len() as u64
}

/// What the system can give without swapping, where it tells.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    kibibytes(&text, "MemAvailable:")
}

/// What this process holds now, where the system tells.
fn own_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    kibibytes(&status, "VmRSS:")
}

/// The most memory this process has held since its beginning, or since that was forgotten before the last run, in bytes, where the system tells.
#[must_use]
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    kibibytes(&status, "VmHWM:")
}

/// What [`peak_memory`] says begins again, from what the process holds now, the pages that its allocator keeps included. False
/// where the system does not do that.
fn forget_peak_memory() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// The value, in bytes, of a line such as `VmHWM:  123 kB`.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Nanoseconds of one of the `units` that `work` does each time, from the fastest of many times: what else runs on the
/// machine only ever adds.
pub fn fastest(units: usize, mut work: impl FnMut()) -> f64 {
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

/// Nanoseconds of one 16-byte read at a random place of a table of so many bytes, many in flight.
///
/// # Panics
/// If the table has no room for 16 bytes.
#[must_use]
pub fn random_read(table_bytes: usize) -> f64 {
    const READS: usize = 1 << 16;
    let mut table = vec![Block::ZERO; table_bytes / 16];
    Prg::new(Block::ONE).fill_blocks(&mut table);
    let len = table.len() as u64;
    assert!(len > 0, "a table of 16 bytes at least");
    let mut counter = 0_u64;
    fastest(READS, || {
        let mut sum = Block::ZERO;
        for _ in 0..READS {
            counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
            // Two rounds of a 64-bit mix (SplitMix64): each place is independent of the last, so reads overlap.
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
    fastest(from.len(), || {
        black_box(&mut to).copy_from_slice(black_box(&from))
    })
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
    fn the_machine_is_neither_stopped_nor_infinitely_fast() {
        let machine = Machine::measure();
        for nanoseconds in machine.calibrations() {
            assert!(nanoseconds > 0.0 && nanoseconds.is_finite(), "{machine:?}");
        }
    }

    #[test]
    fn memory_is_in_bytes() {
        let status = "VmPeak: 9 kB\nVmHWM:\t   2048 kB\n";
        assert_eq!(kibibytes(status, "VmHWM:"), Some(2_097_152));
        assert_eq!(kibibytes("Name: x\n", "VmHWM:"), None);
    }

    /// What is held for a moment counts, until it is forgotten.
    #[test]
    #[cfg(target_os = "linux")]
    fn peaks_are_forgotten() {
        // More than the other tests hold at the same time.
        let held = vec![1_u8; 1 << 30];
        let with = peak_memory().expect("Linux tells");
        assert!(with > held.len() as u64);
        drop(black_box(held));
        assert!(forget_peak_memory());
        let without = peak_memory().expect("Linux tells");
        assert!(without + (300 << 20) < with, "{without} {with}");
    }

    #[test]
    fn as_much_is_touched_as_there_is() {
        assert_eq!(touch(5000), 5000);
        let all = touch_at_most(u64::MAX, Some(70_000));
        assert_eq!(all, 70_000);
    }

    #[test]
    fn one_core_is_said() {
        let with = |cores| Machine {
            cores,
            ..Machine::measure()
        };
        let one = with(1).remarks(1);
        assert!(one.len() == 1 && one[0].contains("one core"), "{one:?}");
        assert!(with(2).remarks(1).is_empty());
        assert!(with(2).remarks(2)[0].contains("2 threads a party has 2 cores"));
        assert!(with(16).remarks(8).is_empty());
    }
}
