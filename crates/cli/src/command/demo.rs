//! `volery demo`: runs both parties in one process over TCP and checks every result.

mod sets;

use std::io::Write as _;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use volery_field::{Fp61, Ring as _, Z64};
use volery_os::time::Instant;
use volery_pcg::Plan;
use volery_run::choices::Choices;
use volery_run::driver::{self, Outcome};
use volery_run::failure::{Failure, Result, Status};
use volery_run::memory::peak_memory;
use volery_run::negotiation::Request;
use volery_run::options::{count, pool};
use volery_run::party::{Correlation, Cot, Party, Vole};
use volery_run::report::Report;
use volery_run::reporter::Reporter;
use volery_run::verify::Findings;

use super::options::Common;
use super::table::table;

/// Run both parties in this process over TCP on the loopback interface and check every result
///
/// Makes correlations over several rings and intersects two sample files of records.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Number of correlations of each kind
    #[arg(long, default_value = "1_048_576", allow_negative_numbers = true)]
    #[arg(value_parser = OsStringValueParser::new().try_map(|text| count(&text)))]
    n: u64,

    #[command(flatten)]
    common: Common,
}

/// The demo keeps the output of both parties in memory to check it.
const MAX_DEMO: u64 = 1 << 26;

/// One row of the table.
#[derive(Clone, Debug, serde::Serialize)]
struct Row {
    protocol: &'static str,
    ring: &'static str,
    n: u64,
    security: String,
    security_bits: u32,
    parameters: String,
    assumption: String,
    seconds_setup: f64,
    seconds_extend: f64,
    seconds_total: f64,
    nanoseconds_each: f64,
    sender_bytes: u64,
    receiver_bytes: u64,
    bits_each: f64,
    checked: u64,
    wrong: u64,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<()> {
    let start = Instant::now();
    let (n, common) = (arguments.n, &arguments.common);
    if n > MAX_DEMO {
        return Err(Failure::usage(
            "--n",
            format_args!("the demo makes at most {MAX_DEMO} correlations of each kind"),
        )
        .with_hint("'volery vole' and 'volery cot' write larger numbers to files"));
    }
    let place = common.prepare_report(reporter)?;
    let mut rows = Vec::new();
    for make in [make::<Vole<Fp61>>, make::<Vole<Z64>>, make::<Cot>] {
        let row = make(n, common, reporter)?;
        reporter.explain(format_args!("{n} {} over {}: done", row.protocol, row.ring));
        rows.push(row);
    }
    let sets = sets::run(common)?;
    reporter.explain("psi: done");
    if !reporter.is_quiet() {
        print(&rows, &sets).map_err(|error| {
            Failure::new(Status::Other, format_args!("standard output: {error}"))
        })?;
    }

    let mut report = Report::new("demo", reporter);
    report.n = Some(n);
    report.noise = Some(volery_pcg::Noise::Regular.to_string());
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    report.peak_rss_bytes = peak_memory();
    let rows = serde_json::to_value(&rows).expect("rows of strings and numbers serialise");
    report.result.insert("rows".to_owned(), rows);
    let sets = serde_json::to_value([sets]).expect("rows of strings and numbers serialise");
    report.result.insert("psi".to_owned(), sets);
    place.write(&report).map(drop)
}

/// Makes the correlations and checks all of them.
fn make<K: Correlation>(n: u64, common: &Common, reporter: &Reporter) -> Result<Row> {
    let order = Request::new(&Choices::default(), K::KIND, n, None)?;
    // Both parties share this machine.
    let threads = common.threads.map_or_else(driver::threads_per_party, usize::from);
    let pools = [pool(threads)?, pool(threads)?];
    let progress = reporter.progress(n);

    let (mut sent, mut received) =
        (PartyOutput::<K::Sender>::new(), PartyOutput::<K::Receiver>::new());
    let (outcomes, agreed) = driver::run_both::<K>(
        &order,
        driver::loopback(common.timeout)?,
        &pools,
        &progress,
        |key, step| sent.take(key, step),
        |key, step| received.take(key, step),
    )?;
    progress.finish_and_clear();

    let mut findings = Findings::default();
    match sent.key {
        Some(key) => findings.check(key, &received.u, &mut received.column, &sent.column),
        None => {
            let key = received.key.unwrap_or_default();
            findings.check(key, &sent.u, &mut sent.column, &received.column);
        }
    }
    findings.verdict(K::RELATION)?;
    Ok(row::<K>(n, &agreed.plan, outcomes, &findings))
}

/// The whole output of one party.
struct PartyOutput<E: Party> {
    key: Option<E::Ring>,
    u: Vec<E::Base>,
    column: Vec<E::Ring>,
}

impl<E: Party> PartyOutput<E> {
    fn new() -> Self {
        Self { key: None, u: Vec::new(), column: Vec::new() }
    }

    fn take(&mut self, key: Option<E::Ring>, step: &driver::Step<E>) {
        self.key = key;
        E::open(&step.u, step.count, |u| self.u.extend_from_slice(u));
        self.column.extend_from_slice(&step.column);
    }
}

fn row<K: Correlation>(n: u64, plan: &Plan, parties: [Outcome; 2], findings: &Findings) -> Row {
    // The run ends when the slower party ends.
    let slower = |of: fn(&Outcome) -> f64| of(&parties[0]).max(of(&parties[1]));
    let each = |value: f64| {
        if n == 0 { 0.0 } else { value / n as f64 }
    };
    let seconds_total = slower(|outcome| outcome.total().as_secs_f64());
    let [sender_bytes, receiver_bytes] = parties.map(|outcome| outcome.traffic.bytes_sent);
    Row {
        protocol: K::Sender::PROTOCOL,
        ring: K::Base::NAME,
        n,
        security: plan.security().to_string(),
        security_bits: plan.claimed_bits(),
        parameters: plan.describe(),
        assumption: plan.assumption(),
        seconds_setup: slower(|outcome| outcome.setup.as_secs_f64()),
        seconds_extend: slower(|outcome| outcome.extend.as_secs_f64()),
        seconds_total,
        nanoseconds_each: each(seconds_total * 1e9),
        sender_bytes,
        receiver_bytes,
        bits_each: each(8.0 * (sender_bytes + receiver_bytes) as f64),
        checked: findings.checked,
        wrong: findings.wrong,
    }
}

fn print(rows: &[Row], sets: &sets::Row) -> std::io::Result<()> {
    let headings = [
        "what",
        "ring",
        ">n",
        "security",
        ">setup s",
        ">extend s",
        ">total s",
        ">ns each",
        ">bytes ->",
        ">bytes <-",
        ">bits each",
        "checked",
    ];
    let cells = rows.iter().map(|row| {
        [
            row.protocol.to_owned(),
            row.ring.to_owned(),
            row.n.to_string(),
            format!("{}, {} bits", row.security, row.security_bits),
            format!("{:.3}", row.seconds_setup),
            format!("{:.3}", row.seconds_extend),
            format!("{:.3}", row.seconds_total),
            format!("{:.1}", row.nanoseconds_each),
            row.sender_bytes.to_string(),
            row.receiver_bytes.to_string(),
            format!("{:.2}", row.bits_each),
            if row.wrong == 0 { "all hold" } else { "WRONG" }.to_owned(),
        ]
    });
    let text = table(headings, cells);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    writeln!(
        out,
        "vole: w = u*x + v, the sender has u and v, the receiver x and w. cot: w = v + u*delta, the sender has delta and v, \
         the receiver the bits u, and w.\nTimes are the slower party's; bytes over TCP, -> from sender to receiver."
    )?;
    let distinct = |of: fn(&Row) -> &str| {
        let mut texts: Vec<_> = rows.iter().map(of).collect();
        texts.sort_unstable();
        texts.dedup();
        texts.join("; ")
    };
    writeln!(out, "Parameters: {}", distinct(|row| &row.parameters))?;
    writeln!(out, "Security rests on: {}", distinct(|row| &row.assumption))?;
    writeln!(out)?;
    sets::print(sets, &mut out)
}
