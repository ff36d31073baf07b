//! `volery bench dvole`: Figures 3, 4 and 5 of the 2019 paper on vector OLE, ours beside the baselines.
//!
//! Figure 3: a known-index point function against a distributed one, by the size of the domain. Figure 4: vector OLE from
//! nothing against Gilboa's multiplication and the slower ways to share a multi-point function, by length and over several
//! links, with the length at which ours overtakes Gilboa's. Figure 5: vector OLE by the number of threads.
//!
//! Every result is checked in full outside of the measured time; a wrong one is an error. The runs go through all
//! measurements before they begin again, from the smallest to the largest.

mod candidate;
mod measure;
mod published;
mod tables;

use std::io::Write as _;
use std::path::PathBuf;

use volery_pcg::{Plan, Security};

use super::options::{Common, RingName, parse_count};
use super::paper::{Conditions, SCHEMA};
use crate::exit::{Failure, Status};
use crate::link::Link;
use crate::output::SingleFile;
use crate::report::{Report, peak_memory};
use candidate::Candidate;
use measure::{Run, Sample};
use published::published;

/// Repeat figures 3, 4 and 5 of the 2019 paper on vector OLE
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which figures
    #[arg(long, value_name = "FIGURE,..", value_delimiter = ',', default_value = "3,4,5", value_parser = published::figure_number)]
    figure: Vec<u8>,

    /// Figure 3: sizes of the domain, as powers of two
    #[arg(long, value_name = "LOG,..", value_delimiter = ',', default_value = "14,15,16,17,18,19,20,21,22,23,24", value_parser = log_size)]
    sizes: Vec<u32>,

    /// Figure 4: lengths of the vector, 2^24 at most
    #[arg(
        long,
        value_name = "N,..",
        value_delimiter = ',',
        default_value = "4096,8192,15000,16384,32768,65536,131072,150000,262144,524288,1048576,2097152,4194304",
        value_parser = length,
        allow_negative_numbers = true
    )]
    lengths: Vec<u64>,

    /// Figure 5: threads of a party
    #[arg(long, value_name = "THREADS,..", value_delimiter = ',', default_value = "1,2", value_parser = clap::value_parser!(u16).range(1..=1024))]
    scaling: Vec<u16>,

    /// Figure 5: the length of the vector
    #[arg(long, value_name = "N", default_value = "1048576", value_parser = length, allow_negative_numbers = true)]
    scaling_length: u64,

    /// Over which rings
    #[arg(
        long,
        value_name = "RING,..",
        value_delimiter = ',',
        default_value = "fp61,z64"
    )]
    rings: Vec<RingName>,

    /// What lies between the parties: loopback, tls or RATE,RTT such as 100Mbit,20ms; given several times, figures 3 and 4 are
    /// measured over each, figure 5 over the first [default: loopback and 100Mbit,200us]
    #[arg(long)]
    link: Vec<Link>,

    /// Runs of each measurement: the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,

    /// What would take longer is skipped, as foretold by its traffic and by the lengths before it
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Few and small sizes, one run
    #[arg(long, conflicts_with_all = ["sizes", "lengths", "scaling_length", "runs"])]
    quick: bool,

    /// Write figures and measurements to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

/// One protocol with one size over one link, measured several times.
#[derive(Clone, Debug)]
struct Cell {
    figure: u8,
    candidate: Candidate,
    ring: RingName,
    link: Link,
    n: u64,
    threads: usize,
    plan: Option<Plan>,
    samples: Vec<Sample>,
    /// It would have taken about so many seconds.
    skipped: Option<f64>,
}

impl Cell {
    /// All but the protocol.
    fn place(&self) -> (u8, RingName, &Link, u64, usize) {
        (self.figure, self.ring, &self.link, self.n, self.threads)
    }

    /// The parameters, where there are some.
    fn describe(&self) -> Option<String> {
        match self.candidate {
            Candidate::WholeDomain | Candidate::Floram => {
                Some(self.candidate.slow_plan(self.n).set.name.to_owned())
            }
            _ => self.plan.as_ref().map(Plan::describe),
        }
    }
}

/// Sizes of a domain, as powers of two.
fn log_size(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=28).contains(number));
    number.ok_or_else(|| "a size is a power of two from 1 to 28, such as 20 for 2^20".to_owned())
}

/// Lengths that the paper's sets reach.
fn length(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        0 => Err("a vector has at least one entry".to_owned()),
        n if n > 1 << 24 => Err("the paper's sets reach to 2^24".to_owned()),
        n => Ok(n),
    }
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
    let mut cells = arguments.cells()?;
    common.voice().explain("measuring the machine");
    let mut conditions = Conditions::before(arguments.threads());
    arguments.measure(&mut cells)?;
    conditions.after();
    let figures: Vec<_> = arguments
        .figure
        .iter()
        .map(|&figure| tables::compare(&published(figure), &cells))
        .collect();

    let mut report = Report::new("bench dvole");
    report.peak_rss_bytes = peak_memory();
    report.result = arguments.result(&conditions, &cells, &figures);
    if let Some(json) = json {
        json.commit(&report.to_json())?;
    }
    place.write(&report)?;
    if common.quiet {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    let runs = format!(
        "median and range of {} run(s); every result was checked",
        arguments.runs
    );
    figures
        .iter()
        .try_for_each(|figure| tables::print(figure, &mut out))
        .and_then(|()| writeln!(out, "{}", conditions.text(&runs)))
        .map_err(|error| Failure::new(Status::Other, format_args!("standard output: {error}")))
}

impl Arguments {
    /// With all that is given by other options, in order.
    fn settled(mut self) -> Self {
        if self.quick {
            self.sizes = vec![14, 17];
            self.lengths = vec![4096, 15_000, 65_536, 150_000];
            self.scaling_length = 150_000;
            self.runs = 1;
        }
        if self.link.is_empty() {
            self.link = ["loopback", "100Mbit,200us"]
                .map(|link| link.parse().expect("the links are constants"))
                .into();
        }
        self.figure.sort_unstable();
        self.figure.dedup();
        self.sizes.sort_unstable();
        self.sizes.dedup();
        self.lengths.sort_unstable();
        self.lengths.dedup();
        self.scaling.sort_unstable();
        self.scaling.dedup();
        self
    }

    fn threads(&self) -> usize {
        self.common.threads.map_or(1, usize::from)
    }

    /// Everything that is measured: figure by figure, and in each from the smallest to the largest.
    fn cells(&self) -> Result<Vec<Cell>, Failure> {
        let mut cells = Vec::new();
        for &figure in &self.figure {
            let sizes: Vec<u64> = match figure {
                3 => self.sizes.iter().map(|log| 1 << log).collect(),
                4 => self.lengths.clone(),
                _ => vec![self.scaling_length],
            };
            let ours = [Candidate::Vole(Security::SemiHonest)];
            let candidates: &[Candidate] = match figure {
                3 => &Candidate::POINT_FUNCTIONS,
                4 => &Candidate::VECTOR_OLES,
                _ => &ours,
            };
            let links = match figure {
                5 => &self.link[..1],
                _ => &self.link[..],
            };
            let threads = match figure {
                5 => self.scaling.iter().copied().map(usize::from).collect(),
                _ => vec![self.threads()],
            };
            for link in links {
                for &ring in &self.rings {
                    for &n in &sizes {
                        for &threads in &threads {
                            for &candidate in candidates {
                                if candidate.exists(ring) {
                                    let plan = candidate.plan(ring, n, link.for_plan());
                                    cells.push(Cell {
                                        figure,
                                        candidate,
                                        ring,
                                        link: link.clone(),
                                        n,
                                        threads,
                                        plan: plan
                                            .map_err(|error| Failure::new(Status::Other, error))?,
                                        samples: Vec::new(),
                                        skipped: None,
                                    });
                                }
                            }
                        }
                    }
                }
            }
        }
        Ok(cells)
    }

    fn measure(&self, cells: &mut [Cell]) -> Result<(), Failure> {
        let voice = self.common.voice();
        let progress = voice.progress(cells.len() as u64 * u64::from(self.runs));
        for number in 1..=self.runs {
            for at in 0..cells.len() {
                let cell = &cells[at];
                let what = format!(
                    "{} over {}, n = {}, {}, {} thread(s)",
                    cell.candidate.name(),
                    cell.ring,
                    cell.n,
                    cell.link,
                    cell.threads
                );
                if number == 1 {
                    let seconds = foretold(&cells[..at], cell);
                    if seconds > f64::from(self.limit) {
                        voice.explain(format_args!("skipping {what}: about {seconds:.0} s"));
                        cells[at].skipped = Some(seconds);
                    }
                }
                let cell = &mut cells[at];
                if cell.skipped.is_none() {
                    let run = Run {
                        candidate: cell.candidate,
                        ring: cell.ring,
                        n: cell.n,
                        plan: cell.plan.as_ref(),
                        link: &cell.link,
                        threads: cell.threads,
                        timeout: self.common.timeout(),
                    };
                    if cell.candidate.is_point_function() {
                        // The system finds its memory, which for the first of a size takes longer than all else.
                        measure::run(&run)?;
                    }
                    let sample = measure::run(&run)?;
                    voice.explain(format_args!(
                        "run {number} of {}: {what}: {:.4} s",
                        self.runs, sample.seconds
                    ));
                    cell.samples.push(sample);
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
        figures: &[tables::Compared],
    ) -> serde_json::Map<String, serde_json::Value> {
        let measurements: Vec<_> = cells
            .iter()
            .map(|cell| {
                serde_json::json!({
                    "figure": cell.figure,
                    "protocol": cell.candidate.name(),
                    "ring": cell.ring.to_string(),
                    "link": cell.link.to_string(),
                    "n": cell.n,
                    "threads": cell.threads,
                    "plan": cell.describe(),
                    "security_bits": cell.plan.as_ref().map(Plan::claimed_bits),
                    "formula_bytes": cell.candidate.formula(cell.ring, cell.n),
                    "samples": cell.samples,
                    "skipped_seconds": cell.skipped,
                })
            })
            .collect();
        conditions.with(serde_json::json!({
            "schema": SCHEMA,
            "runs": self.runs,
            "figures": figures,
            "measurements": measurements,
        }))
    }
}

/// About how many seconds a cell takes at least: what its traffic takes on the link, and what it would take if the one
/// before it went on as it did.
fn foretold(before: &[Cell], cell: &Cell) -> f64 {
    let traffic = match cell.link {
        Link::Loopback | Link::Tls => 0.0,
        Link::Shaped { rate, .. } => {
            8.0 * cell.candidate.formula(cell.ring, cell.n) as f64 / rate as f64
        }
    };
    let same = |other: &Cell| (other.figure, other.candidate, other.ring, other.threads);
    let smaller = before
        .iter()
        .rev()
        .find(|other| same(other) == same(cell) && other.link == cell.link);
    let grown = smaller.map_or(0.0, |other| {
        let times = cell.candidate.work(cell.n) / cell.candidate.work(other.n);
        let seconds = other.samples.first().map(|sample| sample.seconds);
        times * seconds.or(other.skipped).unwrap_or_default()
    });
    traffic.max(grown)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn cell(candidate: Candidate, n: u64, link: &Link, seconds: Option<f64>) -> Cell {
        let sample = |seconds| Sample {
            seconds,
            bytes: 0,
            messages: 0,
        };
        Cell {
            figure: 4,
            candidate,
            ring: RingName::Fp61,
            link: link.clone(),
            n,
            threads: 1,
            plan: None,
            samples: seconds.map(sample).into_iter().collect(),
            skipped: None,
        }
    }

    #[test]
    fn what_takes_too_long_is_foretold() {
        let slow = Link::Shaped {
            rate: 8_000_000,
            round_trip: Duration::ZERO,
        };
        let gilboa = |n, seconds| cell(Candidate::Gilboa, n, &slow, seconds);
        let next = gilboa(100_000, None);
        assert!((foretold(&[], &next) - 48.8).abs() < 1e-9);
        let before = [
            gilboa(1000, Some(1.0)),
            cell(Candidate::Floram, 10_000, &slow, Some(50.0)),
        ];
        assert!((foretold(&before, &next) - 100.0).abs() < 1e-9);
        let other_link = [cell(Candidate::Gilboa, 1000, &Link::Loopback, Some(9.0))];
        assert!((foretold(&other_link, &next) - 48.8).abs() < 1e-9);
        let mut skipped = gilboa(50_000, None);
        skipped.skipped = Some(70.0);
        assert!((foretold(&[skipped], &next) - 140.0).abs() < 1e-9);
    }

    #[test]
    fn sizes() {
        assert_eq!(log_size("24"), Ok(24));
        assert_eq!(length("15_000"), Ok(15_000));
        for bad in ["", "0", "29", "2^20", "-1"] {
            assert!(log_size(bad).is_err(), "{bad}");
        }
        for bad in ["", "0", "16777217", "1e6"] {
            assert!(length(bad).is_err(), "{bad}");
        }
    }
}
