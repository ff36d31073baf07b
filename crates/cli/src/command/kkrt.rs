//! `volery bench kkrt`: Tables 1 to 5 of the BaRK-OPRF paper, our figures beside the published ones.
//!
//! Tables 1 and 2 are computed. For the others every protocol is measured alone, for each size and over the link of
//! each setting; a run that several tables show is measured once. The runs go through all of them before they begin
//! again, from the smallest sets to the largest.

mod candidate;
mod measure;
mod published;
mod tables;

use std::io::Write as _;
use std::path::PathBuf;

use super::options::Common;
use super::paper::{self, Conditions, SCHEMA};
use crate::exit::{Failure, Status};
use crate::link::Link;
use crate::output::SingleFile;
use crate::report::{Report, peak_memory};
use candidate::Candidate;
use measure::{Run, Sample};
use published::{Published, SIZES, Setting, published};

/// Repeat tables 1 to 5 of the BaRK-OPRF paper
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which tables
    #[arg(long, value_name = "TABLE,..", value_delimiter = ',', default_value = "1,2,3,4,5", value_parser = table_number)]
    tables: Vec<u8>,

    /// Items of each party, as powers of two
    #[arg(long, value_name = "LOG,..", value_delimiter = ',', default_value = "8,12,16,20,24", value_parser = log_items)]
    sizes: Vec<u32>,

    /// Over which of the paper's networks
    #[arg(
        long,
        value_name = "SETTING,..",
        value_delimiter = ',',
        default_value = "lan,wan"
    )]
    settings: Vec<Setting>,

    /// The LAN; the paper states its round trip and no bandwidth
    #[arg(long, value_name = "LINK", default_value = "10Gbit,200us")]
    lan: Link,

    /// The WAN
    #[arg(long, value_name = "LINK", default_value = "400Mbit,96ms")]
    wan: Link,

    /// Runs of each measurement: the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,

    /// What would take longer is skipped, as foretold by its traffic and by the smaller sizes
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Up to 2^16 items, one run
    #[arg(long, conflicts_with_all = ["sizes", "runs"])]
    quick: bool,

    /// Write tables and measurements to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

/// One protocol over one link with sets of one size, measured several times.
#[derive(Clone, Debug)]
struct Cell {
    candidate: Candidate,
    setting: Setting,
    /// Items of each party, as a power of two.
    log_items: u32,
    samples: Vec<Sample>,
    /// It would have taken about so many seconds.
    skipped: Option<f64>,
}

fn table_number(text: &str) -> Result<u8, String> {
    paper::table_number(&published::TABLES, text)
}

/// Powers of two that are measured: above, a set does not fit where two parties share a machine.
fn log_items(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=26).contains(number));
    number.ok_or_else(|| "a size is a power of two from 1 to 26, such as 20 for 2^20".to_owned())
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let arguments = &arguments.clone().settled();
    let common = &arguments.common;
    let place = common.prepare_report()?;
    let json = arguments
        .json
        .as_deref()
        .map(|path| SingleFile::prepare("--json", path))
        .transpose()?;
    let tables: Vec<_> = arguments
        .tables
        .iter()
        .map(|&table| published(table))
        .collect();
    let mut cells = arguments.cells(&tables);
    common.voice().explain("measuring the machine");
    let mut conditions = Conditions::before(arguments.threads());
    arguments.measure(&mut cells)?;
    conditions.after();
    let tables: Vec<_> = tables
        .iter()
        .map(|table| tables::compare(table, &arguments.sizes, &arguments.settings, &cells))
        .collect();

    let mut report = Report::new("bench kkrt");
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
    let mut lines = tables::plans(&cells);
    lines.extend(tables::choices(&arguments.sizes));
    lines.push(conditions.text(&arguments.conditions()));
    let printed = tables
        .iter()
        .try_for_each(|table| tables::print(table, &mut out));
    printed
        .and_then(|()| lines.iter().try_for_each(|line| writeln!(out, "{line}")))
        .map_err(|error| Failure::new(Status::Other, format_args!("standard output: {error}")))
}

impl Arguments {
    /// With all that is given by other options, in order.
    fn settled(mut self) -> Self {
        if self.quick {
            self.sizes = SIZES.into_iter().filter(|log| *log <= 16).collect();
            self.runs = 1;
        }
        self.tables.sort_unstable();
        self.tables.dedup();
        self.sizes.sort_unstable();
        self.sizes.dedup();
        self.settings.sort_unstable();
        self.settings.dedup();
        self
    }

    fn threads(&self) -> usize {
        self.common.threads.map_or(1, usize::from)
    }

    fn link(&self, setting: Setting) -> &Link {
        match setting {
            Setting::Lan => &self.lan,
            Setting::Wan => &self.wan,
        }
    }

    /// What the tables show, each once, from the smallest sets to the largest.
    fn cells(&self, tables: &[Published]) -> Vec<Cell> {
        let mut cells: Vec<Cell> = Vec::new();
        for &log_items in &self.sizes {
            for row in tables.iter().flat_map(|table| &table.rows) {
                if !row.quantity.is_measured() {
                    continue;
                }
                // What does not depend on the link is taken from the first.
                let Some(setting) = row.setting.or(self.settings.first().copied()) else {
                    continue;
                };
                let bits = row.bits.first().copied().unwrap_or(128);
                for candidate in Candidate::beside(row.protocol, bits).into_iter().flatten() {
                    let have = cells.iter().any(|cell| {
                        (cell.candidate, cell.setting, cell.log_items)
                            == (candidate, setting, log_items)
                    });
                    if !have && self.settings.contains(&setting) {
                        cells.push(Cell {
                            candidate,
                            setting,
                            log_items,
                            samples: Vec::new(),
                            skipped: None,
                        });
                    }
                }
            }
        }
        cells
    }

    fn measure(&self, cells: &mut [Cell]) -> Result<(), Failure> {
        let voice = self.common.voice();
        let progress = voice.progress(cells.len() as u64 * u64::from(self.runs));
        for number in 1..=self.runs {
            for at in 0..cells.len() {
                let cell = &cells[at];
                let (candidate, log_items) = (cell.candidate, cell.log_items);
                let what = format!(
                    "{} with 2^{log_items} items over the {}",
                    candidate.name(),
                    cell.setting
                );
                let link = self.link(cell.setting);
                if number == 1 {
                    let seconds = foretold(&cells[..at], cell, link);
                    if seconds > f64::from(self.limit) {
                        voice.explain(format_args!("skipping {what}: about {seconds:.0} s"));
                        cells[at].skipped = Some(seconds);
                    }
                }
                if cells[at].skipped.is_none() {
                    let sample = measure::run(&Run {
                        candidate,
                        items: 1 << log_items,
                        link,
                        threads: self.threads(),
                        timeout: self.common.timeout(),
                    })?;
                    voice.explain(format_args!(
                        "run {number} of {}: {what}: {:.3} s offline, {:.3} s online",
                        self.runs, sample.offline_seconds, sample.online_seconds
                    ));
                    cells[at].samples.push(sample);
                }
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
                    "plan": cell.candidate.describe(1 << cell.log_items),
                    "setting": cell.setting,
                    "items": 1u64 << cell.log_items,
                    "item_bits": cell.candidate.item_bits(),
                    "formula_bytes": cell.candidate.formula(1 << cell.log_items),
                    "samples": cell.samples,
                    "skipped_seconds": cell.skipped,
                })
            })
            .collect();
        conditions.with(serde_json::json!({
            "schema": SCHEMA,
            "lan": self.lan.to_string(),
            "wan": self.wan.to_string(),
            "runs": self.runs,
            "hybrid": tables::choices(&self.sizes),
            "tables": tables,
            "measurements": measurements,
        }))
    }

    /// What the figures were measured over, in a few words.
    fn conditions(&self) -> String {
        format!(
            "median and range of {} run(s), half of the items in common; LAN {}, WAN {}",
            self.runs, self.lan, self.wan
        )
    }
}

/// About how many seconds a cell takes at least: what its traffic takes on the link, and what it would take if the
/// largest of the smaller sets went on as it did.
fn foretold(before: &[Cell], cell: &Cell, link: &Link) -> f64 {
    /// Below, what a run takes says little of a larger one.
    const TELLING: u32 = 12;
    let traffic = match link {
        Link::Loopback | Link::Tls => 0.0,
        Link::Shaped { rate, .. } => {
            8.0 * cell.candidate.formula(1 << cell.log_items) / *rate as f64
        }
    };
    let smaller = before.iter().rev().find(|other| {
        (other.candidate, other.setting) == (cell.candidate, cell.setting)
            && other.log_items >= TELLING
    });
    let grown = smaller.map_or(0.0, |other| {
        let times = f64::from(cell.log_items - other.log_items).exp2();
        let online = other.samples.first().map(|sample| sample.online_seconds);
        times * online.or(other.skipped).unwrap_or_default()
    });
    traffic.max(grown)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn cell(candidate: Candidate, log_items: u32, online_seconds: Option<f64>) -> Cell {
        let sample = |online_seconds| Sample {
            offline_seconds: 100.0,
            offline_bytes: 0,
            online_seconds,
            online_bytes: 0,
        };
        Cell {
            candidate,
            setting: Setting::Lan,
            log_items,
            samples: online_seconds.map(sample).into_iter().collect(),
            skipped: None,
        }
    }

    #[test]
    fn what_takes_too_long_is_foretold() {
        let link = Link::Shaped {
            rate: 8_000_000,
            round_trip: Duration::ZERO,
        };
        let pssz = |log_items, seconds| cell(Candidate::Pssz(32), log_items, seconds);
        let next = pssz(20, None);
        // 149.7 MB at a megabyte a second.
        let traffic = foretold(&[], &next, &link);
        assert!((149.0..150.5).contains(&traffic), "{traffic}");
        let before = [
            pssz(8, Some(9.0)),
            pssz(16, Some(2.0)),
            cell(Candidate::Naive, 16, Some(99.0)),
        ];
        let grown = foretold(&before, &next, &Link::Loopback);
        assert!((grown - 32.0).abs() < 1e-9);
        assert!(foretold(&before[..1], &next, &Link::Loopback) < 1e-9);
        let mut skipped = pssz(20, None);
        skipped.skipped = Some(70.0);
        let grown = foretold(&[skipped], &pssz(24, None), &Link::Loopback);
        assert!((grown - 1120.0).abs() < 1e-9);
    }

    #[test]
    fn sizes_are_powers_of_two() {
        assert_eq!(log_items("20"), Ok(20));
        for bad in ["", "0", "27", "2^20", "-1"] {
            assert!(log_items(bad).is_err(), "{bad}");
        }
    }
}
