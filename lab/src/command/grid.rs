//! `volery-bench grid`: compares the protocol that `auto` chooses for the link with every protocol
//! that can be named.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::results::{BenchmarkSession, Results};
use crate::runner::{self, Forecast, Settings};
use crate::{Link, page};
use volery_pcg::{Candidate, Kind, Protocol, Security};

use super::measure::{After, Measured, stream};
use super::run::Spoken;
use super::setting::Setting;
use super::{standard_output, tell_remarks};
use crate::command::exit::Failure;
use crate::command::options::{Common, parse_count};
use crate::command::output::SingleFile;
use volery_cli::choices::Choices;
use volery_cli::party::Cot;

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
    #[arg(long, default_values_t = links())]
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
fn links() -> Vec<Link> {
    let link = |text: &str| text.parse().expect("the constant link is valid");
    [
        "1Mbit,50ms",
        "10Mbit,20ms",
        "100Mbit,20ms",
        "1Gbit,1ms",
        "10Gbit,0.2ms",
        "25Gbit,0.05ms",
    ]
    .map(link)
    .to_vec()
}

/// All protocols for one number of correlated OTs over a link.
struct Spot {
    n: u64,
    link: Link,
    /// `auto`, followed by the protocols that can be named.
    ways: Vec<Way>,
}

/// One protocol.
struct Way {
    name: String,
    /// Its index in the list of all cells.
    cell: usize,
    after: After,
}

/// The time of a protocol.
struct Taken {
    seconds: f64,
    extrapolated: bool,
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let reporter = common.reporter();
    let json = arguments.json.as_deref();
    let json = json
        .map(|path: &Path| SingleFile::prepare("--json", path))
        .transpose()?;
    let (mut cells, mut spots) = (Vec::new(), Vec::new());
    for link in &arguments.link {
        for &n in &arguments.n {
            let mut ways = Vec::new();
            for (name, choices, candidate) in arguments.ways(n, link)? {
                let setting = arguments.setting(n, link, choices);
                let Measured { mut cell, after } = stream::<Cot>(&setting)?;
                cell.forecast = Forecast {
                    seconds: candidate.seconds,
                    bytes: 0.0,
                    round_trips: 0.0,
                    work: candidate.seconds,
                };
                let place = cells.len();
                cells.push(cell);
                ways.push(Way {
                    name,
                    cell: place,
                    after,
                });
            }
            let link = link.clone();
            spots.push(Spot { n, link, ways });
        }
    }
    reporter.explain("measuring the machine");
    let session = BenchmarkSession::begin(env!("CARGO_PKG_VERSION"), 1);
    tell_remarks(reporter, &session.remarks);
    let mut results = Results::new("bench grid");
    results.sittings.push(session);
    let settings = Settings {
        runs: arguments.runs.into(),
        limit: arguments.limit.into(),
    };
    let measured = runner::run(&cells, &mut results, settings, &mut Spoken(reporter));
    for way in spots.iter().flat_map(|spot| &spot.ways) {
        way.after.failure()?;
    }
    measured?;
    let taken = |way: &Way| {
        let have = results
            .find(&cells[way.cell].key)
            .expect("every cell was run or skipped");
        have.seconds().map_or_else(
            || Taken {
                seconds: have.skipped_seconds.unwrap_or(f64::INFINITY),
                extrapolated: true,
            },
            |spread| Taken {
                seconds: spread.median,
                extrapolated: false,
            },
        )
    };
    let section = section(&spots, taken);
    if let Some(json) = json {
        json.commit(&results.to_bytes())?;
    }
    if common.quiet {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    write!(out, "{}", page::text::section(&section)).map_err(standard_output)
}

impl Arguments {
    fn setting(&self, n: u64, link: &Link, choices: Choices) -> Setting {
        Setting {
            name: "cot",
            n,
            link: link.clone(),
            choices,
            threads: self.common.threads.map_or(1, usize::from),
            common: self.common.clone(),
        }
    }

    /// `auto`, as it would choose on that link, and all protocols that can be named: its
    /// candidates, and low communication.
    fn ways(&self, n: u64, link: &Link) -> Result<Vec<(String, Choices, Candidate)>, Failure> {
        let choices = Choices {
            security: Some(self.security),
            ..Choices::default()
        };
        let candidates = choices.candidates(Kind::Cot, n, link.for_plan())?;
        let first = candidates
            .first()
            .expect("candidates() returns at least one plan")
            .clone();
        let low = Choices {
            protocol: Protocol::LowCommunication,
            ..choices.clone()
        };
        let low = low.candidates(Kind::Cot, n, link.for_plan())?;
        let auto = ("auto".to_owned(), choices.clone(), first);
        let named = candidates.into_iter().chain(low).map(|one| {
            let set = one.plan.schedule().last().map(|set| set.name.to_owned());
            let choices = Choices {
                protocol: one.plan.protocol(),
                set,
                ..choices.clone()
            };
            (one.plan.name(), choices, one)
        });
        // For reproduction only.
        let named = named.filter(|(name, _, _)| name != "iknp" && name != "primal-r14");
        Ok(std::iter::once(auto).chain(named).collect())
    }
}

/// A table for each link: the chosen protocol, its time, the fastest candidate, and the ratio; then
/// the times of all protocols that can be named.
fn section(spots: &[Spot], taken: impl Fn(&Way) -> Taken) -> page::Section {
    use page::{Column, Table, Value};
    let mut tables: Vec<Table> = Vec::new();
    let (mut within, mut worst) = (0, 0.0f64);
    for spot in spots {
        let (auto, named) = spot.ways.split_first().expect("the first protocol is auto");
        let all: Vec<_> = named.iter().map(|way| (taken(way), way)).collect();
        let best = all
            .iter()
            .filter(|(_, way)| way.name != BY_NAME_ONLY)
            .min_by(|a, b| a.0.seconds.total_cmp(&b.0.seconds));
        let (best, best_way) = best.expect("there is at least one other protocol");
        let ours = taken(auto);
        let ratio = ours.seconds / best.seconds;
        within += usize::from(ratio <= 1.1);
        worst = worst.max(ratio);
        let shown = |taken: &Taken| {
            let sign = if taken.extrapolated { "~" } else { "" };
            Value::text(format!("{sign}{:.4}", taken.seconds))
        };
        let chosen = auto
            .after
            .chosen()
            .unwrap_or_else(|| "(not run)".to_owned());
        let row = vec![
            Value::text(format!("10^{}", spot.n.ilog10())),
            Value::text(chosen),
            shown(&ours),
            Value::text(&best_way.name),
            shown(best),
            Value::text(format!("{ratio:.2}")),
        ];
        let row = row.into_iter().chain(COLUMNS.iter().map(|name| {
            let way = all.iter().find(|(_, way)| way.name == *name);
            way.map_or(Value::None, |(taken, _)| shown(taken))
        }));
        let caption = spot.link.to_string();
        if tables.last().is_none_or(|table| table.caption != caption) {
            let words = ["n", "auto", "seconds", "fastest", "seconds", "ratio"];
            let columns = words.iter().chain(&COLUMNS);
            tables.push(Table {
                caption,
                columns: columns.map(|word| Column::words(word)).collect(),
                ..Table::default()
            });
        }
        let table = tables.last_mut().expect("a table was pushed before");
        table.rows.push(row.collect());
    }
    page::Section {
        name: "grid".to_owned(),
        title: "A protocol for every link".to_owned(),
        findings: vec![format!(
            "auto within 10 % of the fastest at {within} of {} spots, at worst {worst:.2} times its time; ~: extrapolated from a smaller number",
            spots.len()
        )],
        tables,
        ..page::Section::default()
    }
}

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
