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

use crate::{Link, Machine};
use volery_field::Ring;
use volery_ot::softspoken::SmallField;
use volery_pcg::correlation::Correlation as Pipeline;
use volery_pcg::lpn::WEIGHT;
use volery_pcg::{Noise, Plan, Security, Trees};

use super::options::pool;
use super::table::table;
use crate::command::exit::Failure;
use crate::page::text::prose;
use rounds::{Round, rounds};
use volery_cli::driver::Outcome;
use volery_cli::party::{Correlation, Party};

/// The OT extension under the trees of a vector OLE.
const OT_FIELD: SmallField = SmallField::Bits8;

/// The party of a part that takes both parties' time.
const BOTH: &str = "both";

/// The parts of a run.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct Parts {
    pub(crate) kernels: Vec<Part>,
    /// Base OTs, OT extension, multiplications, including the handshake: the setup of the slower
    /// party in the run itself.
    setup_milliseconds: f64,
    pub(crate) sender: Whole,
    pub(crate) receiver: Whole,
}

/// A kernel.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// The party that spends the time.
    pub(crate) party: &'static str,
    /// The unit that is counted.
    pub(crate) unit: &'static str,
    /// Whether the time is a part of the sum; false for a loop whose pieces are parts.
    summed: bool,
    /// Nanoseconds of one unit.
    pub(crate) nanoseconds: f64,
    /// Least nanoseconds of one unit, by the calibration of the same run.
    pub(crate) limit_nanoseconds: Option<f64>,
    /// The time over the limit.
    pub(crate) ratio: Option<f64>,
    /// Units for each output of the plan, all rounds included.
    pub(crate) units_each: f64,
    /// Time for each output of the plan.
    pub(crate) nanoseconds_each: f64,
    /// Work for each output of the plan.
    work_each: Work,
}

/// Work in units that are the same on every machine.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
struct Work {
    /// AES blocks.
    aes_blocks: f64,
    /// Lines of memory read at random places.
    random_lines: f64,
    /// Bytes read one after the other.
    bytes_read: f64,
    /// Bytes written one after the other.
    bytes_written: f64,
}

impl Work {
    fn times(self, factor: f64) -> Self {
        Self {
            aes_blocks: self.aes_blocks * factor,
            random_lines: self.random_lines * factor,
            bytes_read: self.bytes_read * factor,
            bytes_written: self.bytes_written * factor,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            aes_blocks: self.aes_blocks + other.aes_blocks,
            random_lines: self.random_lines + other.random_lines,
            bytes_read: self.bytes_read + other.bytes_read,
            bytes_written: self.bytes_written + other.bytes_written,
        }
    }
}

/// The sum of a party's parts, and the time of its run.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(crate) struct Whole {
    /// The sum over its parts, for each output.
    pub(crate) nanoseconds_each_parts: f64,
    /// Measured, for each output, without the setup.
    pub(crate) nanoseconds_each_extend: f64,
    /// The second over the first.
    pub(crate) ratio: f64,
    /// The work of its parts, for each output.
    work_each: Work,
}

/// A measured run and its machine.
pub(crate) struct Run<'a> {
    /// The parameters.
    pub(crate) plan: &'a Plan,
    /// Outputs.
    pub(crate) n: u64,
    /// The link between the parties.
    pub(crate) link: &'a Link,
    /// The time a party waits for the other.
    pub(crate) timeout: Duration,
    /// The calibration.
    pub(crate) machine: &'a Machine,
    /// The outcomes of the sender and the receiver.
    pub(crate) outcomes: [Outcome; 2],
}

/// Measures the parts of a run of `K`, in about two seconds; `None` if its plan uses no LPN,
/// uniform noise, or the trees of the papers.
///
/// # Errors
/// If the system provides no threads or no connection.
pub(crate) fn measure<K: Correlation>(run: &Run<'_>) -> Result<Option<Parts>, Failure> {
    let (Noise::Regular, Trees::Half, Some(last)) = (
        run.plan.noise(),
        run.plan.trees(),
        run.plan.schedule().last(),
    ) else {
        return Ok(None);
    };
    let (key_holder, value_holder) = match K::Sender::KEY {
        Some(_) => ("sender", "receiver"),
        None => ("receiver", "sender"),
    };
    let rounds = rounds::<K::Pipeline>(run.plan, run.n);
    let total = |of: fn(&Round) -> u64| rounds.iter().map(of).sum::<u64>() as f64;
    let (leaves, outputs) = (total(Round::leaves), total(|round| round.outputs));
    let bytes: u64 = run
        .outcomes
        .iter()
        .map(|outcome| outcome.traffic.bytes_sent - outcome.setup_traffic.bytes_sent)
        .sum();

    let scale = Scale { run };
    let byte = kernels::transport(run.link, run.timeout)?;
    let mut kernels = pool(1)?.install(|| {
        let mut kernels = tree_parts::<K>(&scale, last.block(), leaves, [key_holder, value_holder]);
        if run.plan.security() == Security::Malicious {
            kernels.push(check_part::<K>(&scale, last.block(), leaves));
        }
        kernels.extend(lpn_parts::<K>(
            &scale,
            last.k,
            outputs,
            [key_holder, value_holder],
        ));
        if K::Pipeline::CARRIES {
            let (size, limit) = (16.0, 16.0 * run.machine.nanoseconds_copied_byte);
            let work = Work {
                bytes_read: size,
                bytes_written: 1.0 / 8.0,
                ..Work::default()
            };
            let time = kernels::choice_bits();
            kernels.push(scale.part(
                "bits",
                value_holder,
                "output",
                time,
                Some(limit),
                run.n as f64,
                work,
            ));
        }
        kernels
    });
    if K::Pipeline::LEVELS == 0 {
        let blocks = (OT_FIELD.leaves() / OT_FIELD.bits()) as f64;
        let work = Work {
            aes_blocks: blocks,
            ..Work::default()
        };
        let limit = Some(blocks * run.machine.nanoseconds_aes_block);
        let (time, ots) = (kernels::ots()?, total(Round::levels));
        kernels.push(scale.part("OT", BOTH, "OT", time, limit, ots, work));
    }
    kernels.push(scale.part(
        "transport",
        BOTH,
        "byte",
        byte,
        None,
        bytes as f64,
        Work::default(),
    ));

    let whole = |party, outcome: Outcome| {
        let own = || {
            kernels
                .iter()
                .filter(|part| part.summed && [party, BOTH].contains(&part.party))
        };
        let parts = own().map(|part| part.nanoseconds_each).sum();
        let extend = outcome.extend.as_secs_f64() * 1e9 / run.n as f64;
        Whole {
            nanoseconds_each_parts: parts,
            nanoseconds_each_extend: extend,
            ratio: extend / parts,
            work_each: own().fold(Work::default(), |sum, part| sum.plus(part.work_each)),
        }
    };
    let [sender, receiver] = run.outcomes;
    Ok(Some(Parts {
        setup_milliseconds: sender.setup.max(receiver.setup).as_secs_f64() * 1e3,
        sender: whole("sender", sender),
        receiver: whole("receiver", receiver),
        kernels,
    }))
}

/// Scales kernels to the outputs of a run.
struct Scale<'a> {
    run: &'a Run<'a>,
}

impl Scale<'_> {
    #[expect(clippy::too_many_arguments, reason = "one line of the table")]
    fn part(
        &self,
        name: &'static str,
        party: &'static str,
        unit: &'static str,
        nanoseconds: f64,
        limit: Option<f64>,
        units: f64,
        work: Work,
    ) -> Part {
        let units_each = units / self.run.n as f64;
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
            work_each: work.times(units_each),
        }
    }
}

fn tree_parts<K: Correlation>(
    scale: &Scale<'_>,
    block: usize,
    leaves: f64,
    [key_holder, value_holder]: [&'static str; 2],
) -> Vec<Part> {
    let size = size_of::<K::Ring>() as f64;
    // The AES calls of a leaf of a half-tree: see `volery_pcg::ggm`.
    let hashed = !K::Pipeline::CARRIES && K::Ring::WORDS == 2;
    let work = Work {
        aes_blocks: if hashed { 1.5 } else { 1.0 },
        bytes_written: size,
        ..Work::default()
    };
    let limit = Some(work.aes_blocks * scale.run.machine.nanoseconds_aes_block);
    let (grown, rebuilt) = kernels::trees::<K::Pipeline>(block);
    // A checked round grows its trees for the key holder's message, for the check, and for the
    // outputs.
    let (grows, rebuilds) = if scale.run.plan.security() == Security::Malicious {
        (3.0, 2.0)
    } else {
        (1.0, 1.0)
    };
    [
        (key_holder, grown, grows),
        (value_holder, rebuilt, rebuilds),
    ]
    .map(|(party, time, times)| {
        scale.part("trees", party, "leaf", time, limit, times * leaves, work)
    })
    .into()
}

fn check_part<K: Correlation>(scale: &Scale<'_>, block: usize, leaves: f64) -> Part {
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
    let time = kernels::fold::<K::Ring>(block);
    let leaves = leaves * times as f64;
    scale.part("check", BOTH, "leaf", time, None, leaves, work)
}

fn lpn_parts<K: Correlation>(
    scale: &Scale<'_>,
    k: usize,
    outputs: f64,
    [key_holder, value_holder]: [&'static str; 2],
) -> Vec<Part> {
    // The code cuts a block into six places where `k` is a power of two, into four elsewhere.
    let places_a_block = if k.is_power_of_two() { 6.0 } else { 4.0 };
    let aes_blocks = WEIGHT as f64 / places_a_block;
    let index_work = Work {
        aes_blocks,
        ..Work::default()
    };
    let index_limit = aes_blocks * scale.run.machine.nanoseconds_aes_block;
    let mut parts = vec![scale.part(
        "indices",
        BOTH,
        "output",
        kernels::indices::<K::Ring>(k),
        Some(index_limit),
        outputs,
        index_work,
    )];
    let (key_table, value_table) = kernels::tables::<K::Pipeline>(k);
    let share = size_of::<K::Ring>() as f64;
    let key = kernels::Encoding::of(&key_table, |sum, share| {
        K::Ring::lazy_finish(K::Ring::lazy_add(sum, share))
    });
    let value = kernels::Encoding::of(&value_table, <K::Pipeline as Pipeline>::sum);
    if !<K::Pipeline as Pipeline>::Base::GENERATED_BY_ONE {
        let limit = scale.run.machine.nanoseconds_aes_block;
        let work = Work {
            aes_blocks: 1.0,
            ..Work::default()
        };
        for (party, elements) in [(key_holder, 1), (value_holder, 2)] {
            let time = kernels::factors::<K::Ring>(elements);
            parts.push(scale.part("factors", party, "output", time, Some(limit), outputs, work));
        }
    }
    for (party, encoding, size) in [
        (key_holder, key, size_of::<K::Ring>()),
        (
            value_holder,
            value,
            size_of::<<K::Pipeline as Pipeline>::Pair>(),
        ),
    ] {
        let limit = WEIGHT as f64 * encoding.read;
        let work = Work {
            random_lines: WEIGHT as f64,
            bytes_read: share,
            bytes_written: size as f64,
            ..Work::default()
        };
        parts.push(scale.part(
            "gather",
            party,
            "output",
            encoding.gather,
            Some(limit),
            outputs,
            work,
        ));
        parts.push(Part {
            summed: false,
            ..scale.part(
                "LPN",
                party,
                "output",
                encoding.whole,
                Some(limit + index_limit),
                outputs,
                work.plus(index_work),
            )
        });
    }
    parts
}

/// Prints the parts of the run `name`; `which` distinguishes it from others of that name.
///
/// # Errors
/// Those of `out`.
pub(crate) fn print(
    out: &mut impl Write,
    name: &str,
    which: &str,
    parts: &Parts,
) -> std::io::Result<()> {
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
    let maybe = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let work = |work: Work| {
        let Work {
            aes_blocks,
            random_lines,
            bytes_read,
            bytes_written,
        } = work;
        [aes_blocks, random_lines, bytes_read, bytes_written].map(|value| match value {
            0.0 => "-".to_owned(),
            value => format!("{value:.2}"),
        })
    };
    let lines = parts.kernels.iter().map(|part| {
        let [aes, lines, read, written] = work(part.work_each);
        let time = format!("{:.2}", part.nanoseconds_each);
        [
            part.name.to_owned(),
            part.party.to_owned(),
            part.unit.to_owned(),
            format!("{:.2}", part.nanoseconds),
            maybe(part.limit_nanoseconds),
            maybe(part.ratio),
            format!("{:.4}", part.units_each),
            if part.summed {
                time
            } else {
                format!("({time})")
            },
            aes,
            lines,
            read,
            written,
        ]
    });
    let wholes = [("sender", parts.sender), ("receiver", parts.receiver)];
    let sums = wholes.iter().map(|(party, whole)| {
        let [aes, lines, read, written] = work(whole.work_each);
        let nothing = || "-".to_owned();
        [
            "sum".to_owned(),
            (*party).to_owned(),
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            format!("{:.2}", whole.nanoseconds_each_parts),
            aes,
            lines,
            read,
            written,
        ]
    });
    let line = format!(
        "where the time of {name} goes ({which}), each part alone on one thread; the last four columns are for an output:"
    );
    writeln!(out, "\n{}", prose("", &line))?;
    writeln!(out, "{}", table(headings, lines.chain(sums)))?;
    for (party, whole) in wholes {
        writeln!(
            out,
            "{party}: {:.2} ns an output in parts, {:.2} ns in the run without the setup, ratio {:.2}",
            whole.nanoseconds_each_parts, whole.nanoseconds_each_extend, whole.ratio
        )?;
    }
    writeln!(
        out,
        "setup (handshake, base OTs, first correlations): {:.1} ms in all",
        parts.setup_milliseconds
    )
}
