//! The time of a stream by kernel, each measured alone, compared with the speed of the machine.
//!
//! The kernels run alone on one thread (the OTs: one thread for each of the two parties), at the
//! sizes of the plan's last instance; the fastest of many runs counts. Their sum, each weighted
//! with its count per output over all rounds of the plan, is shown beside the time of the real run.
//! The time above the sum is waiting for the peer, cache misses, and other load of the machine; a
//! time below the sum means that kernels kept different units of the processor busy at once. With
//! several threads per party the whole may be far below the sum.
//!
//! | part | done by | limit |
//! |---|---|---|
//! | trees | key holder: `ggm::expand`, in a checked round three times; value holder: `ggm::expand_punctured`, two times | the AES blocks of a leaf |
//! | check | both, malicious: `Ring::inner_product` of the leaves of each tree | - |
//! | indices | both: AES in counter mode, cut into indices | the AES blocks |
//! | factors | both, over `gf128`: AES in counter mode, a product an element | the AES block |
//! | gather | both: ten entries at known places, their sum with a share, an output | ten random reads from a table of that size |
//! | bits | value holder of correlated OT: `bits::lowest_bits` | copying the blocks |
//! | OT | vector OLE: `SoftSpoken` OT extension and correlated OT, over memory | the AES blocks of the extension's rows |
//! | transport | both ways, at the speed of the link | none: the speed is itself the limit |
//!
//! The key holder is the receiver of a vector OLE and the sender of a correlated OT. Indices and
//! gather together are the LPN encoding, which is also measured as the one loop that it is (`LPN`,
//! not a part of the sum).

mod kernels;
mod rounds;

use std::io::Write;
use std::time::Duration;

use volery_channel::Role;
use volery_field::Ring;
use volery_ot::softspoken::SmallField;
use volery_pcg::correlation::Correlation as Pipeline;
use volery_pcg::lpn::WEIGHT;
use volery_pcg::{Noise, Plan, Security, Trees};

use super::exit::Failure;
use super::stream::Correlation;
use crate::page::text::{prose, words};
use crate::parties::{Mark, pool};
use crate::{Link, Machine};
use rounds::{Round, rounds};

/// The OT extension under the trees of a vector OLE.
const OT_FIELD: SmallField = SmallField::Bits8;

/// The party of a part that takes both parties' time.
const BOTH: &str = "both";

/// The parts of a run.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Parts {
    kernels: Vec<Part>,
    /// Base OTs, OT extension, multiplications, including the handshake: the setup of the slower
    /// party in the run itself.
    setup_milliseconds: f64,
    sender: Whole,
    receiver: Whole,
}

/// A kernel.
#[derive(Clone, Debug, serde::Serialize)]
struct Part {
    name: &'static str,
    /// The party that spends the time.
    party: &'static str,
    /// The unit that is counted.
    unit: &'static str,
    /// Whether the time is a part of the sum; false for a loop whose pieces are parts.
    summed: bool,
    /// Nanoseconds of one unit.
    nanoseconds: f64,
    /// Least nanoseconds of one unit, by the calibration of the same run.
    limit_nanoseconds: Option<f64>,
    /// The time over the limit.
    ratio: Option<f64>,
    /// Units for each output of the plan, all rounds included.
    units_each: f64,
    /// Time for each output of the plan.
    nanoseconds_each: f64,
    /// Work for each output of the plan.
    work_each: Work,
}

/// Work in units that are the same on every machine.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
struct Work {
    aes_blocks: f64,
    /// Lines of memory read at random places.
    random_lines: f64,
    /// Bytes read one after the other.
    bytes_read: f64,
    /// Bytes written one after the other.
    bytes_written: f64,
}

impl Work {
    const fn aes(aes_blocks: f64) -> Self {
        Self {
            aes_blocks,
            random_lines: 0.0,
            bytes_read: 0.0,
            bytes_written: 0.0,
        }
    }

    /// With the work of some units of another kernel.
    fn plus(self, other: Self, units: f64) -> Self {
        Self {
            aes_blocks: self.aes_blocks + units * other.aes_blocks,
            random_lines: self.random_lines + units * other.random_lines,
            bytes_read: self.bytes_read + units * other.bytes_read,
            bytes_written: self.bytes_written + units * other.bytes_written,
        }
    }

    fn cells(self) -> [String; 4] {
        [
            self.aes_blocks,
            self.random_lines,
            self.bytes_read,
            self.bytes_written,
        ]
        .map(|value| {
            if value == 0.0 {
                "-".to_owned()
            } else {
                format!("{value:.2}")
            }
        })
    }
}

/// The sum of a party's parts, and the time of its run.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Whole {
    /// The sum over its parts, for each output.
    nanoseconds_each_parts: f64,
    /// Measured, for each output, without the setup.
    nanoseconds_each_extend: f64,
    /// The second over the first.
    ratio: f64,
    /// The work of its parts, for each output.
    work_each: Work,
}

/// A measured run and its machine.
pub(super) struct Run<'a> {
    /// The parameters.
    pub(super) plan: &'a Plan,
    /// Outputs.
    pub(super) n: u64,
    /// The link between the parties.
    pub(super) link: &'a Link,
    /// The time a party waits for the other.
    pub(super) timeout: Duration,
    /// The calibration.
    pub(super) machine: &'a Machine,
    /// The ends of setup and stream, of the sender and the receiver.
    pub(super) marks: [[Mark; 2]; 2],
}

/// Measures the parts of a run of `K`, in about two seconds; `None` if its plan uses no LPN,
/// uniform noise, or the trees of the papers.
pub(super) fn measure<K: Correlation>(run: &Run<'_>) -> Result<Option<Parts>, Failure> {
    let (Noise::Regular, Trees::Half, Some(last)) = (
        run.plan.noise(),
        run.plan.trees(),
        run.plan.schedule().last(),
    ) else {
        return Ok(None);
    };
    let holders = match K::KEY_HOLDER {
        Role::Sender => ["sender", "receiver"],
        _ => ["receiver", "sender"],
    };
    let rounds = rounds::<K::Pipeline>(run.plan, run.n);
    let total = |of: fn(&Round) -> u64| rounds.iter().map(of).sum::<u64>() as f64;
    let (leaves, outputs) = (total(Round::leaves), total(|round| round.outputs));
    let stream = |[setup, stream]: [Mark; 2]| stream.traffic - setup.traffic;
    let bytes: u64 = run
        .marks
        .iter()
        .map(|marks| stream(*marks).bytes_sent)
        .sum();

    let byte = kernels::transport(run.link, run.timeout)?;
    let aes = run.machine.nanoseconds_aes_block;
    let mut kernels = pool(1)?.install(|| {
        let mut kernels = run.trees::<K>(last.block(), leaves, holders);
        if run.plan.security() == Security::Malicious {
            // Over a small field it runs more than once, each time with its own mask.
            let times = if K::Pipeline::CARRIES {
                1
            } else {
                K::Pipeline::MASK
            };
            let work = Work {
                bytes_read: size_of::<K::Ring>() as f64,
                ..Work::default()
            };
            let time = kernels::fold::<K::Ring>(last.block());
            let part = ("check", BOTH, "leaf");
            kernels.push(run.part(part, time, None, leaves * times as f64, work));
        }
        kernels.extend(run.lpn::<K>(last.k, outputs, holders));
        if K::Pipeline::CARRIES {
            let work = Work {
                bytes_read: 16.0,
                bytes_written: 1.0 / 8.0,
                ..Work::default()
            };
            let limit = Some(16.0 * run.machine.nanoseconds_copied_byte);
            let part = ("bits", holders[1], "output");
            kernels.push(run.part(part, kernels::choice_bits(), limit, run.n as f64, work));
        }
        kernels
    });
    if K::Pipeline::LEVELS == 0 {
        let blocks = (OT_FIELD.leaves() / OT_FIELD.bits()) as f64;
        let (time, ots) = (kernels::ots()?, total(Round::levels));
        let part = ("OT", BOTH, "OT");
        kernels.push(run.part(part, time, Some(blocks * aes), ots, Work::aes(blocks)));
    }
    let part = ("transport", BOTH, "byte");
    kernels.push(run.part(part, byte, None, bytes as f64, Work::default()));

    let whole = |party, [setup, stream]: [Mark; 2]| {
        let own = || {
            kernels
                .iter()
                .filter(|part| part.summed && [party, BOTH].contains(&part.party))
        };
        let parts = own().map(|part| part.nanoseconds_each).sum();
        let extend = (stream.elapsed - setup.elapsed).as_secs_f64() * 1e9 / run.n as f64;
        Whole {
            nanoseconds_each_parts: parts,
            nanoseconds_each_extend: extend,
            ratio: extend / parts,
            work_each: own().fold(Work::default(), |sum, part| sum.plus(part.work_each, 1.0)),
        }
    };
    let [sender, receiver] = run.marks;
    Ok(Some(Parts {
        setup_milliseconds: sender[0].elapsed.max(receiver[0].elapsed).as_secs_f64() * 1e3,
        sender: whole("sender", sender),
        receiver: whole("receiver", receiver),
        kernels,
    }))
}

impl Run<'_> {
    /// A kernel of a party and its unit, scaled to the outputs of the run.
    fn part(
        &self,
        (name, party, unit): (&'static str, &'static str, &'static str),
        nanoseconds: f64,
        limit: Option<f64>,
        units: f64,
        work: Work,
    ) -> Part {
        let units_each = units / self.n as f64;
        Part {
            name,
            party,
            unit,
            summed: true,
            nanoseconds,
            limit_nanoseconds: limit,
            ratio: limit.map(|limit| nanoseconds / limit),
            units_each,
            nanoseconds_each: nanoseconds * units_each,
            work_each: Work::default().plus(work, units_each),
        }
    }

    fn trees<K: Correlation>(
        &self,
        block: usize,
        leaves: f64,
        [key_holder, value_holder]: [&'static str; 2],
    ) -> Vec<Part> {
        // The AES calls of a leaf of a half-tree: see `volery_pcg::ggm`.
        let hashed = !K::Pipeline::CARRIES && K::Ring::WORDS == 2;
        let aes_blocks = if hashed { 1.5 } else { 1.0 };
        let work = Work {
            bytes_written: size_of::<K::Ring>() as f64,
            ..Work::aes(aes_blocks)
        };
        let limit = Some(aes_blocks * self.machine.nanoseconds_aes_block);
        let (grown, rebuilt) = kernels::trees::<K::Pipeline>(block);
        // A checked round grows its trees for the key holder's message, for the check, and for the
        // outputs.
        let (grows, rebuilds) = match self.plan.security() {
            Security::Malicious => (3.0, 2.0),
            _ => (1.0, 1.0),
        };
        [
            (key_holder, grown, grows),
            (value_holder, rebuilt, rebuilds),
        ]
        .map(|(party, time, times)| {
            self.part(("trees", party, "leaf"), time, limit, times * leaves, work)
        })
        .into()
    }

    fn lpn<K: Correlation>(
        &self,
        k: usize,
        outputs: f64,
        [key_holder, value_holder]: [&'static str; 2],
    ) -> Vec<Part> {
        let aes = self.machine.nanoseconds_aes_block;
        // The code cuts a block into six places where `k` is a power of two, into four elsewhere.
        let index_blocks = WEIGHT as f64 / if k.is_power_of_two() { 6.0 } else { 4.0 };
        let (index_work, index_limit) = (Work::aes(index_blocks), index_blocks * aes);
        let time = kernels::indices::<K::Ring>(k);
        let part = ("indices", BOTH, "output");
        let mut parts = vec![self.part(part, time, Some(index_limit), outputs, index_work)];
        let (key_table, value_table) = kernels::tables::<K::Pipeline>(k);
        let key = kernels::Encoding::of(&key_table, |sum, share| {
            K::Ring::lazy_finish(K::Ring::lazy_add(sum, share))
        });
        let value = kernels::Encoding::of(&value_table, <K::Pipeline as Pipeline>::sum);
        if !<K::Pipeline as Pipeline>::Base::GENERATED_BY_ONE {
            for (party, elements) in [(key_holder, 1), (value_holder, 2)] {
                let time = kernels::factors::<K::Ring>(elements);
                let part = ("factors", party, "output");
                parts.push(self.part(part, time, Some(aes), outputs, Work::aes(1.0)));
            }
        }
        let pair = size_of::<<K::Pipeline as Pipeline>::Pair>();
        let share = size_of::<K::Ring>();
        for (party, encoding, size) in [(key_holder, key, share), (value_holder, value, pair)] {
            let limit = WEIGHT as f64 * encoding.read;
            let work = Work {
                random_lines: WEIGHT as f64,
                bytes_read: share as f64,
                bytes_written: size as f64,
                ..Work::default()
            };
            let part = ("gather", party, "output");
            parts.push(self.part(part, encoding.gather, Some(limit), outputs, work));
            let (limit, work) = (Some(limit + index_limit), work.plus(index_work, 1.0));
            let part = ("LPN", party, "output");
            let whole = self.part(part, encoding.whole, limit, outputs, work);
            parts.push(Part {
                summed: false,
                ..whole
            });
        }
        parts
    }
}

impl Parts {
    /// Prints the parts of a run, which `which` names.
    pub(super) fn print(&self, which: &str, out: &mut impl Write) -> std::io::Result<()> {
        let headings = [
            "part",
            "party",
            "unit",
            ">ns a unit",
            ">limit ns",
            ">ratio",
            ">units an output",
            ">ns an output",
            ">AES blocks",
            ">random lines",
            ">bytes read",
            ">written",
        ];
        let maybe =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
        let lines = self.kernels.iter().map(|part| {
            let [aes, lines, read, written] = part.work_each.cells();
            let time = format!("{:.2}", part.nanoseconds_each);
            let [name, party, unit] = [part.name, part.party, part.unit].map(str::to_owned);
            let time = if part.summed {
                time
            } else {
                format!("({time})")
            };
            let (ns, units) = (
                format!("{:.2}", part.nanoseconds),
                format!("{:.4}", part.units_each),
            );
            let (limit, ratio) = (maybe(part.limit_nanoseconds), maybe(part.ratio));
            [
                name, party, unit, ns, limit, ratio, units, time, aes, lines, read, written,
            ]
        });
        let wholes = [("sender", self.sender), ("receiver", self.receiver)];
        let sums = wholes.iter().map(|(party, whole)| {
            let mut cells = [const { String::new() }; 12];
            (cells[0], cells[1]) = ("sum".to_owned(), (*party).to_owned());
            cells[7] = format!("{:.2}", whole.nanoseconds_each_parts);
            cells[8..].clone_from_slice(&whole.work_each.cells());
            cells
        });
        let line = format!(
            "where the time of {which} goes, each part alone on one thread; the last four columns \
             are for an output:"
        );
        writeln!(out, "\n{}", prose("", &line))?;
        writeln!(out, "{}", words(headings, lines.chain(sums)))?;
        for (party, whole) in wholes {
            writeln!(
                out,
                "{party}: {:.2} ns an output in parts, {:.2} ns in the run without the setup, \
                 ratio {:.2}",
                whole.nanoseconds_each_parts, whole.nanoseconds_each_extend, whole.ratio
            )?;
        }
        let setup = self.setup_milliseconds;
        writeln!(
            out,
            "setup (handshake, base OTs, first correlations): {setup:.1} ms in all"
        )
    }
}
