//! `volery bench ferret`: Tables 1, 3, 4 and 5 of the Ferret paper, our figures beside the published ones.
//!
//! Every cell of the tables that are asked for is measured alone, over the link of its column; a cell that several tables
//! show is measured once. The runs go through all cells before they begin again, so that an hour in which the machine is
//! slower is spread over all of them.

mod candidate;
mod measure;
mod published;
mod tables;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use volery_pcg::{Plan, Security};

use super::options::{Common, parse_count};
use super::paper::{self, Conditions, SCHEMA};
use crate::exit::{Failure, Status};
use crate::link::Link;
use crate::output::SingleFile;
use crate::report::{Report, peak_memory};
use candidate::Candidate;
use measure::{Run, Sample};
use published::{Published, Rate, published};

/// Repeat tables 1, 3, 4 and 5 of the Ferret paper
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which tables
    #[arg(long, value_name = "TABLE,..", value_delimiter = ',', default_value = "1,3,4,5", value_parser = table_number)]
    tables: Vec<u8>,

    /// Correlated OTs a measurement makes, at least; protocols that work in rounds make whole rounds
    #[arg(long, default_value = "10_000_000", value_parser = parse_count, allow_negative_numbers = true)]
    n: u64,

    /// Bandwidths, each way [default: all of the paper]
    #[arg(long, value_name = "RATE,..", value_delimiter = ',')]
    links: Vec<Rate>,

    /// Time to the peer and back in microseconds; the paper does not say its own
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 200, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    rtt: u32,

    /// Runs of each measurement: the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,

    /// OT extension that would take longer on its link makes fewer, and its time is scaled and marked
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// A million correlated OTs, one run, 50 Mbit/s and 1 Gbit/s only
    #[arg(long, conflicts_with_all = ["n", "links", "runs"])]
    quick: bool,

    /// Write tables and measurements to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

/// One protocol over one link, measured several times.
#[derive(Clone, Debug)]
struct Cell {
    candidate: Candidate,
    rate: Rate,
    plan: Option<Plan>,
    /// Correlated OTs that a run makes, at least.
    n: u64,
    /// Whether that is fewer than was asked for.
    extrapolated: bool,
    samples: Vec<Sample>,
}

fn table_number(text: &str) -> Result<u8, String> {
    paper::table_number(&published::TABLES, text)
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let arguments = &arguments.clone().settled();
    if arguments.n == 0 {
        return Err(Failure::usage(
            "--n",
            "at least one correlated OT is needed",
        ));
    }
    let common = &arguments.common;
    let place = common.prepare_report()?;
    let json = arguments
        .json
        .as_deref()
        .map(|path| SingleFile::prepare("--json", path))
        .transpose()?;
    let tables = arguments.tables();
    let mut cells = arguments.cells(&tables)?;
    common.voice().explain("measuring the machine");
    let mut conditions = Conditions::before(arguments.threads());
    arguments.measure(&mut cells)?;
    conditions.after();
    let tables: Vec<_> = tables
        .iter()
        .map(|table| tables::compare(table, &arguments.links, &cells))
        .collect();

    let mut report = Report::new("bench ferret");
    report.n = Some(arguments.n);
    report.peak_rss_bytes = peak_memory();
    report.result = arguments.result(&conditions, &cells, &tables);
    if let Some(json) = json {
        json.commit(&report.to_json())?;
    }
    place.write(&report)?;
    if common.quiet {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    let printed = tables
        .iter()
        .try_for_each(|table| tables::print(table, &mut out));
    printed
        .and_then(|()| {
            tables::plans(&cells)
                .iter()
                .try_for_each(|line| writeln!(out, "{line}"))
        })
        .and_then(|()| writeln!(out, "{}", arguments.conditions(&conditions)))
        .map_err(|error| Failure::new(Status::Other, format_args!("standard output: {error}")))
}

impl Arguments {
    /// With all that is given by other options, in the order of the paper.
    fn settled(mut self) -> Self {
        if self.quick {
            self.n = 1_000_000;
            self.runs = 1;
            self.links = vec![Rate::Mbit50, Rate::Gbit1];
        }
        if self.links.is_empty() {
            self.links = <Rate as clap::ValueEnum>::value_variants().to_vec();
        }
        self.links.sort();
        self.links.dedup();
        self.tables.sort_unstable();
        self.tables.dedup();
        self
    }

    fn tables(&self) -> Vec<Published> {
        self.tables
            .iter()
            .map(|number| published(*number))
            .collect()
    }

    fn threads(&self) -> usize {
        self.common.threads.map_or(1, usize::from)
    }

    fn link(&self, rate: Rate) -> Link {
        Link::Shaped {
            rate: rate.bits_per_second() as u64,
            round_trip: Duration::from_micros(self.rtt.into()),
        }
    }

    /// What the tables show, each once.
    fn cells(&self, tables: &[Published]) -> Result<Vec<Cell>, Failure> {
        let mut cells: Vec<Cell> = Vec::new();
        for table in tables {
            for row in &table.rows {
                let security: Security = row.security.parse().expect("the data files are tested");
                let beside = Candidate::beside(row.protocol, security);
                let columns = table
                    .columns
                    .iter()
                    .filter(|rate| self.links.contains(rate));
                for (rate, candidate) in columns.flat_map(|rate| {
                    beside
                        .into_iter()
                        .flatten()
                        .map(move |candidate| (*rate, candidate))
                }) {
                    let have = cells
                        .iter()
                        .any(|cell| (cell.candidate, cell.rate) == (candidate, rate));
                    if !have {
                        cells.push(self.cell(candidate, rate)?);
                    }
                }
            }
        }
        Ok(cells)
    }

    fn cell(&self, candidate: Candidate, rate: Rate) -> Result<Cell, Failure> {
        let plan = candidate
            .plan(rate, f64::from(self.rtt) * 1e-6)
            .map_err(|error| Failure::new(Status::Other, error))?;
        let seconds = candidate
            .bits_without_lpn()
            .map_or(0.0, |bits| bits * self.n as f64 / rate.bits_per_second());
        let limit = f64::from(self.limit);
        let n = if seconds > limit {
            // A quarter of the limit is enough to see the speed.
            (self.n as f64 * limit / (4.0 * seconds)).ceil() as u64
        } else {
            self.n
        };
        Ok(Cell {
            candidate,
            rate,
            plan,
            n,
            extrapolated: n < self.n,
            samples: Vec::new(),
        })
    }

    fn measure(&self, cells: &mut [Cell]) -> Result<(), Failure> {
        let voice = self.common.voice();
        let progress = voice.progress(cells.len() as u64 * u64::from(self.runs));
        for number in 1..=self.runs {
            for cell in &mut *cells {
                let sample = measure::run(&Run {
                    candidate: cell.candidate,
                    plan: cell.plan.as_ref(),
                    n: cell.n,
                    link: &self.link(cell.rate),
                    threads: self.threads(),
                    timeout: self.common.timeout(),
                })?;
                voice.explain(format_args!(
                    "run {number} of {}: {} over {}: setup {:.3} s, then {} in {:.3} s",
                    self.runs,
                    cell.candidate.name(),
                    cell.rate.name(),
                    sample.setup_seconds,
                    sample.cots,
                    sample.seconds
                ));
                cell.samples.push(sample);
                progress.inc(1);
            }
        }
        progress.finish_and_clear();
        Ok(())
    }

    fn result(
        &self,
        conditions: &Conditions,
        cells: &[Cell],
        tables: &[tables::Compared],
    ) -> serde_json::Map<String, serde_json::Value> {
        let measurements: Vec<_> = cells
            .iter()
            .map(|cell| {
                serde_json::json!({
                    "protocol": cell.candidate.name(),
                    "link": cell.rate,
                    "plan": cell.plan.as_ref().map(Plan::describe),
                    "security_bits": cell.plan.as_ref().map(Plan::claimed_bits),
                    "n": cell.n,
                    "samples": cell.samples,
                })
            })
            .collect();
        conditions.with(serde_json::json!({
            "schema": SCHEMA,
            "round_trip_microseconds": self.rtt,
            "runs": self.runs,
            "tables": tables,
            "measurements": measurements,
        }))
    }

    /// What the figures were measured on, in a few lines.
    fn conditions(&self, conditions: &Conditions) -> String {
        conditions.text(&format!(
            "median and range of {} run(s); links with {} us there and back",
            self.runs, self.rtt
        ))
    }
}
