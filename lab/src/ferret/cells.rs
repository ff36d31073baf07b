//! The cells of a table: each protocol over each link once.

use std::time::Duration;

use crate::measurement::Key;
use crate::results::Results;
use crate::runner::Cell;
use crate::{Link, Result};
use volery_pcg::{Noise, Plan};

use super::candidate::Candidate;
use super::measure::{Parts, Run, checked_set};
use super::published::{Published, Rate};
use crate::experiment::{Scope, Size, failed};

/// The amount of measurement for the tables.
#[derive(Clone, Debug)]
pub(super) struct Extent {
    /// Correlated OTs of a run, at least.
    pub(super) n: u64,
    /// The links.
    pub(super) rates: Vec<Rate>,
    /// The links for the costliest protocol: the paper's own with uniform noise.
    pub(super) costliest: Vec<Rate>,
    /// Seconds: OT extension that would take longer on its link makes fewer outputs.
    pub(super) limit: f64,
    /// Threads of each party.
    pub(super) threads: usize,
    /// The channel gives up after this long without data.
    pub(super) timeout: Duration,
}

impl From<&Scope> for Extent {
    fn from(scope: &Scope) -> Self {
        // The same number in both, so that quick measurements can be compared with full ones.
        let (rates, costliest, limit) = match scope.size {
            Size::Full => (&Rate::ALL[..], &Rate::ALL[..], 4.0),
            Size::Quick => {
                let rates = &[Rate::Mbit50, Rate::Gbit1];
                (&rates[..], &rates[..1], 1.0)
            }
        };
        Self {
            n: 10_000_000,
            rates: rates.to_vec(),
            costliest: costliest.to_vec(),
            limit,
            threads: scope.threads,
            timeout: scope.timeout,
        }
    }
}

/// All existing runs of one protocol over one link.
pub(super) struct Measured {
    /// In the order in which they were made; `None` for a run with other phases.
    pub(super) parts: Vec<Option<Parts>>,
    /// Correlated OTs made by the run with the fewest.
    pub(super) fewest: Option<u64>,
    /// A run would have taken about this many seconds.
    pub(super) skipped_seconds: Option<f64>,
    /// The parameters of the measurements, in words, and the bits that they claim.
    pub(super) plan: Option<(String, u32)>,
}

impl Extent {
    fn key(&self, candidate: Candidate, link: Link) -> Key {
        Key {
            protocol: candidate.name(),
            n: self.n,
            link,
            threads: self.threads,
        }
    }

    /// The candidates shown beside the rows of a table, each once, in their order.
    pub(super) fn candidates(&self, table: &Published) -> Vec<(Candidate, Rate)> {
        let mut all = Vec::new();
        for row in &table.rows {
            for candidate in Candidate::beside(row.protocol, row.security()) {
                let asked = self
                    .rates
                    .iter()
                    .filter(|rate| table.columns.contains(rate));
                for pair in asked.filter_map(|rate| Some((candidate?, *rate))) {
                    if self.asks(pair) && !all.contains(&pair) {
                        all.push(pair);
                    }
                }
            }
        }
        all
    }

    fn asks(&self, (candidate, rate): (Candidate, Rate)) -> bool {
        match candidate {
            Candidate::Ferret(Noise::Uniform, _) => self.costliest.contains(&rate),
            _ => self.rates.contains(&rate),
        }
    }

    /// The cells of a table.
    ///
    /// # Errors
    /// If there are no parameters for one.
    pub(super) fn cells(&self, table: &Published) -> Result<Vec<Cell>> {
        let candidates = self.candidates(table).into_iter();
        candidates
            .map(|(candidate, rate)| self.cell(candidate, rate))
            .collect()
    }

    fn cell(&self, candidate: Candidate, rate: Rate) -> Result<Cell> {
        let link = rate.link();
        let plan = candidate.plan(&link).map_err(failed)?;
        let makes = self.makes(candidate, &link);
        let run = Run {
            candidate,
            plan: plan.clone(),
            n: makes,
            link: link.clone(),
            threads: self.threads,
            timeout: self.timeout,
        };
        Ok(Cell {
            key: self.key(candidate, link),
            plan: plan.as_ref().map(Plan::describe),
            security_bits: plan.as_ref().map(Plan::claimed_bits),
            forecast: candidate.forecast(plan.as_ref(), self.n, makes),
            run: Box::new(move || run.once()),
        })
    }

    /// The parameters of a protocol over a link, in words, and the bits that they claim; `None`
    /// without LPN.
    ///
    /// # Errors
    /// If there are none for it.
    pub(super) fn parameters(
        &self,
        candidate: Candidate,
        rate: Rate,
    ) -> Result<Option<(String, u32)>> {
        let plan = candidate.plan(&rate.link()).map_err(failed)?;
        Ok(plan.map(|plan| (plan.describe(), plan.claimed_bits())))
    }

    /// Correlated OTs that a run makes, at least.
    fn makes(&self, candidate: Candidate, link: &Link) -> u64 {
        let bits = candidate.bits_without_lpn().unwrap_or(0.0);
        let seconds = link.seconds_for(bits / 8.0 * self.n as f64);
        if seconds <= self.limit {
            return self.n;
        }
        // A quarter of the limit is enough to measure the speed.
        (self.n as f64 * self.limit / (4.0 * seconds)).ceil() as u64
    }

    /// The measurement of a protocol over a link; `None` if it is missing or not requested.
    ///
    /// # Errors
    /// If there are no parameters for it.
    pub(super) fn find(
        &self,
        results: &Results,
        candidate: Candidate,
        rate: Rate,
    ) -> Result<Option<Measured>> {
        let link = rate.link();
        let Some(measurement) = results.find(&self.key(candidate, link.clone())) else {
            return Ok(None);
        };
        // A round can be split into parts only if it was one of the set in the current plan.
        let plan = candidate.plan(&link).map_err(failed)?;
        let same = plan.filter(|plan| measurement.plan.as_ref() == Some(&plan.describe()));
        let checked = same.as_ref().and_then(checked_set);
        let samples = measurement.samples.iter();
        let parts: Vec<_> = samples.map(|sample| Parts::of(sample, checked)).collect();
        Ok(Some(Measured {
            fewest: parts.iter().flatten().map(|parts| parts.cots).min(),
            skipped_seconds: measurement.skipped_seconds.filter(|_| parts.is_empty()),
            plan: measurement.plan.clone().zip(measurement.security_bits),
            parts,
        }))
    }
}

#[cfg(test)]
mod tests {
    use volery_pcg::Security;

    use super::*;
    use crate::ferret::{table1, table3, table4, table5};

    fn extent(size: Size) -> Extent {
        Extent::from(&Scope {
            size,
            threads: 1,
            timeout: Duration::from_secs(1),
        })
    }

    #[test]
    fn cells_of_every_table() {
        let tables = [
            table1::published(),
            table3::published(),
            table4::published(),
            table5::published(),
        ];
        // Two baselines or one, two columns for each row of Ferret; in Table 5 three rows are of
        // one protocol.
        for (size, expected) in [
            (Size::Full, [25, 60, 60, 12]),
            (Size::Quick, [9, 18, 18, 4]),
        ] {
            let extent = extent(size);
            let counts = tables
                .each_ref()
                .map(|table| extent.candidates(table).len());
            assert_eq!(counts, expected, "{size:?}");
            for cell in extent.cells(&tables[1]).expect("there are parameters") {
                assert_eq!((cell.key.n, cell.key.threads), (extent.n, 1));
                assert_eq!(cell.plan.is_some(), cell.security_bits.is_some());
                assert!(cell.forecast.seconds > 0.0 && cell.forecast.bytes > 0.0);
            }
        }
    }

    /// 128 bits each: 10^7 take 128 s over 10 Mbit/s, and 1.28 s over 1 Gbit/s.
    #[test]
    fn extension_over_slow_links_makes_fewer() {
        let extent = extent(Size::Full);
        let makes = |candidate, rate: Rate| extent.makes(candidate, &rate.link());
        assert_eq!(makes(Candidate::Iknp, Rate::Mbit10), 78_125);
        assert_eq!(makes(Candidate::Iknp, Rate::Gbit1), extent.n);
        let ferret = Candidate::Ferret(Noise::Regular, Security::Malicious);
        assert_eq!(makes(ferret, Rate::Mbit10), extent.n);
    }
}
