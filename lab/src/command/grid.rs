//! `volery-bench grid`: measures the protocol that `auto` chooses for the link, and every protocol
//! that can be named; `lab/tables.py` compares them.

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::json;
use volery_pcg::{Candidate, Kind, Protocol, Security};

use super::options::{Common, check_writable, parse_count};
use super::stream::{Runs, Setting, measure};
use crate::results::Results;
use crate::runner::{self, Settings};
use crate::streams::Cot;
use crate::{Error, Link, Result};

/// Measure correlated OTs by every protocol over many numbers and links, to compare the choice of
/// 'auto'
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Arguments {
    /// Number of correlated OTs
    #[arg(long, value_delimiter = ',', default_values_t = (3..=9).map(|log| 10u64.pow(log)))]
    #[arg(value_parser = parse_count)]
    n: Vec<u64>,

    /// The links, each RATE,RTT
    #[arg(long, default_values = LINKS)]
    link: Vec<Link>,

    /// Adversary that the runs are secure against
    #[arg(long, default_value = "malicious")]
    security: Security,

    /// Runs of each measurement, all once before any twice: the median counts
    #[arg(long, value_name = "R", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,

    /// Longest run in seconds: longer ones are extrapolated from a smaller number, and marked
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// File for the measurements, from which lab/report.py makes a table
    #[arg(long, value_name = "FILE", default_value = "grid.json")]
    json: PathBuf,

    #[command(flatten)]
    common: Common,
}

/// From the slowest to the fastest.
const LINKS: [&str; 6] =
    ["1Mbit,50ms", "10Mbit,20ms", "100Mbit,20ms", "1Gbit,1ms", "10Gbit,0.2ms", "25Gbit,0.05ms"];

struct Way {
    name: String,
    cell: usize,
    runs: Runs,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let reporter = arguments.common.reporter();
    check_writable("--json", &arguments.json)?;
    let (mut cells, mut spots) = (Vec::new(), Vec::new());
    for link in &arguments.link {
        for &n in &arguments.n {
            let mut ways = Vec::new();
            for (name, setting, candidate) in arguments.ways(n, link)? {
                let (mut cell, runs) = measure::<Cot>(&setting)?;
                cell.seconds = candidate.seconds;
                ways.push(Way { name, cell: cells.len(), runs });
                cells.push(cell);
            }
            spots.push((n, link, ways));
        }
    }
    let mut results = Results::begin("bench grid", arguments.common.threads(), reporter);
    let settings = Settings { runs: arguments.runs.into(), limit: arguments.limit.into() };
    runner::run(&cells, &mut results, settings, &mut reporter.runs())?;
    let spot = |(n, link, ways): &(u64, &Link, Vec<Way>)| {
        let auto = &ways[0];
        let samples = results.find(&cells[auto.cell].key).map(|have| have.samples.as_slice());
        let chosen = auto.runs.median(samples.unwrap_or_default()).map(|run| run.plan.name());
        let ways = ways.iter().map(|way| json!({"name": way.name, "key": cells[way.cell].key}));
        json!({"n": n, "link": link, "chosen": chosen, "ways": ways.collect::<Vec<_>>()})
    };
    let spots: Vec<_> = spots.iter().map(spot).collect();
    results.more.insert("spots".to_owned(), spots.into());
    results.save(&arguments.json)?;
    if arguments.common.quiet {
        return Ok(());
    }
    let path = arguments.json.display();
    writeln!(std::io::stdout(), "report.py beside the lab's README shows the table of {path}")
        .map_err(Error::output)
}

impl Arguments {
    /// `auto`, as it would choose on that link, and all protocols that can be named: its
    /// candidates, and low communication.
    fn ways(&self, n: u64, link: &Link) -> Result<Vec<(String, Setting, Candidate)>> {
        let setting = Setting {
            name: "cot",
            n,
            link: link.clone(),
            threads: self.common.threads(),
            timeout: self.common.timeout(),
            security: Some(self.security),
            noise: None,
            set: None,
            instances: None,
            substreams: None,
            protocol: Protocol::Auto,
        };
        let candidates = setting.candidates(Kind::Cot, link.for_plan())?;
        let low = Setting { protocol: Protocol::LowCommunication, ..setting.clone() };
        let low = low.candidates(Kind::Cot, link.for_plan())?;
        let mut ways = vec![("auto".to_owned(), setting.clone(), candidates[0].clone())];
        for one in candidates.into_iter().chain(low) {
            let (name, set) = (one.plan.name(), one.plan.schedule().last());
            // That one is for reproduction only.
            if name != "primal-r14" {
                let set = set.map(|set| set.name.to_owned());
                let protocol = one.plan.protocol();
                let instances = set.is_some().then(|| one.plan.instances());
                ways.push((name, Setting { protocol, set, instances, ..setting.clone() }, one));
            }
        }
        Ok(ways)
    }
}
