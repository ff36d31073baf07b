//! `volery-bench grid`: compares the protocol that `auto` chooses for the link with every protocol
//! that can be named.

use std::io::Write as _;
use std::path::PathBuf;

use volery_pcg::{Kind, Protocol, Security};

use super::exit::Failure;
use super::options::{Common, parse_count};
use super::output::SingleFile;
use super::run::Spoken;
use super::stream::{Candidate, Cot, Parameters, Runs, Setting, measure};
use crate::Link;
use crate::page::{Column, Section, Table, Value, text};
use crate::results::Results;
use crate::runner::{self, Forecast, Settings};

/// Measure correlated OTs by every protocol over many numbers and links, and compare the choice of
/// 'auto'
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Arguments {
    /// Number of correlated OTs
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = parse_count,
        default_values_t = (3..=9).map(|log| 10u64.pow(log)),
    )]
    n: Vec<u64>,

    /// The links, each RATE,RTT
    #[arg(long, default_values = LINKS)]
    link: Vec<Link>,

    /// Adversary that the runs are secure against
    #[arg(long, default_value = "malicious")]
    security: Security,

    /// Runs of each measurement, all once before any twice: the median counts
    #[arg(
        long,
        value_name = "R",
        default_value_t = 3,
        value_parser = clap::value_parser!(u16).range(1..),
    )]
    runs: u16,

    /// Longest run in seconds: longer ones are extrapolated from a smaller number, and marked
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 600,
        value_parser = clap::value_parser!(u32).range(1..),
    )]
    limit: u32,

    /// Write the measurements to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

/// From the slowest to the fastest.
const LINKS: [&str; 6] =
    ["1Mbit,50ms", "10Mbit,20ms", "100Mbit,20ms", "1Gbit,1ms", "10Gbit,0.2ms", "25Gbit,0.05ms"];

/// The protocols with their own columns.
const COLUMNS: [&str; 9] = [
    "softspoken1",
    "softspoken2",
    "softspoken4",
    "softspoken8",
    "primal-b10",
    "primal-b11",
    "primal-b12",
    "primal-b13",
    BY_NAME_ONLY,
];

/// The protocol that `auto` never chooses.
const BY_NAME_ONLY: &str = "low-communication";

/// A protocol of a cell.
struct Way {
    name: String,
    /// The index of its cell.
    cell: usize,
    runs: Runs,
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let reporter = arguments.common.reporter();
    let json = SingleFile::optional("--json", arguments.json.as_deref())?;
    let (mut cells, mut spots) = (Vec::new(), Vec::new());
    for link in &arguments.link {
        for &n in &arguments.n {
            let mut ways = Vec::new();
            for (name, setting, candidate) in arguments.ways(n, link)? {
                let (mut cell, runs) = measure::<Cot>(&setting)?.split();
                let seconds = candidate.seconds;
                cell.forecast = Forecast { seconds, bytes: 0.0, round_trips: 0.0, work: seconds };
                ways.push(Way { name, cell: cells.len(), runs });
                cells.push(cell);
            }
            spots.push((n, link, ways));
        }
    }
    let mut results = Results::begin("bench grid", arguments.common.threads(), reporter);
    let settings = Settings { runs: arguments.runs.into(), limit: arguments.limit.into() };
    runner::run(&cells, &mut results, settings, &mut Spoken(reporter))?;
    if let Some(json) = json {
        json.commit(&results.to_bytes())?;
    }
    // The seconds of a protocol, and whether they are extrapolated.
    let taken = |way: &Way| {
        let have = results.find(&cells[way.cell].key).expect("every cell was run or skipped");
        match have.seconds() {
            Some(spread) => (spread.median, ""),
            None => (have.skipped_seconds.unwrap_or(f64::INFINITY), "~"),
        }
    };
    let mut tables: Vec<Table> = Vec::new();
    let (mut within, mut worst) = (0, 0.0f64);
    for (n, link, ways) in &spots {
        let (auto, named) = ways.split_first().expect("the first protocol is auto");
        let best = named.iter().filter(|way| way.name != BY_NAME_ONLY);
        let best = best.min_by(|a, b| taken(a).0.total_cmp(&taken(b).0));
        let best = best.expect("there is at least one other protocol");
        let ratio = taken(auto).0 / taken(best).0;
        within += usize::from(ratio <= 1.1);
        worst = worst.max(ratio);
        let samples = results.find(&cells[auto.cell].key).map(|have| have.samples.as_slice());
        let chosen = auto.runs.median(samples.unwrap_or_default());
        let chosen = chosen.map_or_else(|| "(not run)".to_owned(), |run| run.plan.name());
        let seconds = |way: &Way| {
            let (seconds, sign) = taken(way);
            Value::text(format!("{sign}{seconds:.4}"))
        };
        let mut row = vec![
            Value::text(format!("10^{}", n.max(&1).ilog10())),
            Value::text(chosen),
            seconds(auto),
            Value::text(&best.name),
            seconds(best),
            Value::text(format!("{ratio:.2}")),
        ];
        row.extend(
            COLUMNS
                .map(|name| named.iter().find(|way| way.name == name).map_or(Value::None, seconds)),
        );
        let caption = link.to_string();
        if tables.last().is_none_or(|table| table.caption != caption) {
            let words = ["n", "auto", "seconds", "fastest", "seconds", "ratio"];
            let columns = words.iter().chain(&COLUMNS).map(|word| Column::words(word)).collect();
            tables.push(Table { caption, columns, ..Table::default() });
        }
        tables.last_mut().expect("a table was pushed before").rows.push(row);
    }
    if arguments.common.quiet {
        return Ok(());
    }
    let section = Section {
        title: "A protocol for every link".to_owned(),
        findings: vec![format!(
            "auto within 10 % of the fastest at {within} of {} spots, at worst {worst:.2} times \
             its time; ~: extrapolated from a smaller number",
            spots.len()
        )],
        tables,
        ..Section::default()
    };
    write!(std::io::stdout().lock(), "{}", text::section(&section)).map_err(Failure::output)
}

impl Arguments {
    /// `auto`, as it would choose on that link, and all protocols that can be named: its
    /// candidates, and low communication.
    fn ways(&self, n: u64, link: &Link) -> Result<Vec<(String, Setting, Candidate)>, Failure> {
        let setting = Setting {
            name: "cot",
            n,
            link: link.clone(),
            threads: self.common.threads(),
            timeout: self.common.timeout(),
            security: Some(self.security),
            noise: None,
            set: None,
            parameters: Parameters::Default,
            protocol: Protocol::Auto,
        };
        let candidates = setting.candidates(Kind::Cot, link.for_plan())?;
        let low = Setting { protocol: Protocol::LowCommunication, ..setting.clone() };
        let low = low.candidates(Kind::Cot, link.for_plan())?;
        let mut ways = vec![("auto".to_owned(), setting.clone(), candidates[0].clone())];
        for one in candidates.into_iter().chain(low) {
            let (name, set) = (one.plan.name(), one.plan.schedule().last());
            // The others are for reproduction only.
            if name != "iknp" && name != "primal-r14" {
                let set = set.map(|set| set.name.to_owned());
                let protocol = one.plan.protocol();
                ways.push((name, Setting { protocol, set, ..setting.clone() }, one));
            }
        }
        Ok(ways)
    }
}
