//! Where the time of a VOLE stream goes: its kernels, each measured alone, beside what the machine could do at best.
//!
//! The kernels run on one thread with nothing beside them (the OTs: one thread for each of the two parties), at the sizes
//! of the plan's last instance, and what counts is the fastest of many times. Their sum, each weighted with how often an
//! output takes it over all rounds of the plan, stands beside the time of the real run. What is above the sum is waiting
//! for the peer (the trees of the receiver are grown before those of the sender can be), memory that is not in the cache,
//! and whatever else the machine did. With several threads a party the whole may be below the sum.
//!
//! | part | done by | limit |
//! |---|---|---|
//! | trees | receiver: `rot::Trees::grow`; sender: `ggm::expand_punctured` | the AES blocks of a leaf |
//! | LPN | `LocalCode::encode`; the sender's table is of pairs | ten random reads from a table of that size, and the AES blocks of their places |
//! | OT | SoftSpoken OT extension and chosen OT of blocks, over memory | the AES blocks of the extension's rows |
//! | transport | both ways, at the speed of the link | none: the speed is itself the limit |

mod kernels;
mod rounds;

use std::io::Write;
use std::time::Duration;

use volery_pcg::vole::VoleRing;
use volery_pcg::{Noise, Plan};

use super::options::pool;
use super::table::table;
use crate::calibration::Machine;
use crate::exit::Failure;
use crate::link::Link;
use crate::party::Outcome;
use kernels::OT_FIELD;
use rounds::{Round, rounds};

/// The party of a part that takes both parties' time.
const BOTH: &str = "both";

/// The parts of a run.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct Parts {
    kernels: Vec<Part>,
    /// Base OTs and multiplications (`gilboa`), the handshake included: the setup of the slower party in the run itself.
    setup_milliseconds: f64,
    sender: Whole,
    receiver: Whole,
}

/// A kernel.
#[derive(Clone, Debug, serde::Serialize)]
struct Part {
    name: &'static str,
    /// Who spends the time.
    party: &'static str,
    /// What is counted.
    unit: &'static str,
    /// Of one unit.
    nanoseconds: f64,
    /// What one unit would take at best, by the calibration of the same run.
    limit_nanoseconds: Option<f64>,
    /// The time over the limit.
    ratio: Option<f64>,
    /// Units for each output of the plan, all rounds included.
    units_each: f64,
    /// Time for each output of the plan.
    nanoseconds_each: f64,
}

/// A party's parts together, and what its run took.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Whole {
    /// The sum over its parts, for each output.
    nanoseconds_each_parts: f64,
    /// Measured, for each output, without the setup.
    nanoseconds_each_extend: f64,
    /// The second over the first.
    ratio: f64,
}

/// A run that has been measured, and what it ran on.
pub(crate) struct Run<'a> {
    /// The parameters.
    pub(crate) plan: &'a Plan,
    /// Outputs.
    pub(crate) n: u64,
    /// What lay between the parties.
    pub(crate) link: &'a Link,
    /// How long a party waits for the other.
    pub(crate) timeout: Duration,
    /// The calibration.
    pub(crate) machine: &'a Machine,
    /// What the sender and the receiver took.
    pub(crate) outcomes: [Outcome; 2],
}

/// Measures the parts of a run over `R`, in about a second; none if its plan uses no LPN with regular noise.
///
/// # Errors
/// If the system gives no threads or no connection.
pub(crate) fn measure<R: VoleRing>(run: &Run<'_>) -> Result<Option<Parts>, Failure> {
    let (Noise::Regular, Some(last)) = (run.plan.noise(), run.plan.ladder().last()) else {
        return Ok(None);
    };
    let aes = run.machine.nanoseconds_aes_block;
    let n = run.n as f64;
    let part = |name, party, unit, nanoseconds, limit: Option<f64>, units: f64| Part {
        name,
        party,
        unit,
        nanoseconds,
        limit_nanoseconds: limit,
        ratio: limit.map(|limit| nanoseconds / limit),
        units_each: units / n,
        nanoseconds_each: nanoseconds * units / n,
    };
    let rounds = rounds(run.plan.ladder(), run.n);
    let total = |of: fn(&Round) -> u64| rounds.iter().map(of).sum::<u64>() as f64;
    let (leaves, outputs, ots) = (
        total(Round::leaves),
        total(|round| round.outputs),
        total(Round::ots),
    );
    let tree_limit = Some(aes * if R::WORDS == 1 { 1.5 } else { 2.0 });
    let ot_limit = Some(aes * (OT_FIELD.leaves() / OT_FIELD.bits()) as f64);
    let ((grown, rebuilt), lpn, lpn_limits) = pool(1)?.install(|| {
        (
            kernels::trees::<R>(last.block()),
            kernels::columns::<R>(last.k),
            kernels::column_limits::<R>(last.k, aes),
        )
    });
    let bytes: u64 = run
        .outcomes
        .iter()
        .map(|outcome| outcome.traffic.bytes_sent - outcome.setup_traffic.bytes_sent)
        .sum();
    let (ot, byte) = (kernels::ots()?, kernels::transport(run.link, run.timeout)?);
    let kernels = vec![
        part("trees", "sender", "leaf", rebuilt, tree_limit, leaves),
        part("trees", "receiver", "leaf", grown, tree_limit, leaves),
        part(
            "LPN",
            "sender",
            "output",
            lpn[0],
            Some(lpn_limits[0]),
            outputs,
        ),
        part(
            "LPN",
            "receiver",
            "output",
            lpn[1],
            Some(lpn_limits[1]),
            outputs,
        ),
        part("OT", BOTH, "OT", ot, ot_limit, ots),
        part("transport", BOTH, "byte", byte, None, bytes as f64),
    ];
    let whole = |party, outcome: Outcome| {
        let parts = kernels
            .iter()
            .filter(|part| [party, BOTH].contains(&part.party))
            .map(|part| part.nanoseconds_each)
            .sum();
        let extend = outcome.extend.as_secs_f64() * 1e9 / n;
        Whole {
            nanoseconds_each_parts: parts,
            nanoseconds_each_extend: extend,
            ratio: extend / parts,
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

/// Prints the parts of the run `name`.
///
/// # Errors
/// Those of `out`.
pub(crate) fn print(out: &mut impl Write, name: &str, parts: &Parts) -> std::io::Result<()> {
    let headings = [
        "part",
        "party",
        "unit",
        ">ns a unit",
        ">limit ns",
        ">ratio",
        ">units an output",
        ">ns an output",
    ];
    let maybe = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let cells = parts.kernels.iter().map(|part| {
        [
            part.name.to_owned(),
            part.party.to_owned(),
            part.unit.to_owned(),
            format!("{:.2}", part.nanoseconds),
            maybe(part.limit_nanoseconds),
            maybe(part.ratio),
            format!("{:.4}", part.units_each),
            format!("{:.2}", part.nanoseconds_each),
        ]
    });
    writeln!(
        out,
        "\nwhere the time of {name} goes, each part alone on one thread:"
    )?;
    writeln!(out, "{}", table(headings, cells))?;
    for (party, whole) in [("sender", parts.sender), ("receiver", parts.receiver)] {
        writeln!(
            out,
            "{party}: {:.2} ns an output in parts, {:.2} ns in the run without the setup, ratio {:.2}",
            whole.nanoseconds_each_parts, whole.nanoseconds_each_extend, whole.ratio
        )?;
    }
    writeln!(
        out,
        "setup (handshake, base OTs, gilboa): {:.1} ms in all",
        parts.setup_milliseconds
    )
}
