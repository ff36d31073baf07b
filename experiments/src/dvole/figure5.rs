//! Figure 5: vector OLE by the number of threads.
//!
//! The paper: 2^20 entries with 1 to 32 threads, a machine for each party.
//!
//! We: the same length with 1, 2, 4, .. threads for each party, up to the cores of the machine.
//!
//! Differences: both parties share the cores of one machine; 128 bits of security in place of 80.
//! `experiments/dvole/figure5.json` has all of it.

use volery_bench::measurement::Key;
use volery_bench::page::{Axis, Column, Plot, Scale, Section, Table, Value};
use volery_bench::results::Results;
use volery_bench::runner::Cell;
use volery_bench::{Link, Result, machine};

use super::candidate::{Candidate, Case, RingName};
use super::show::{Shown, digits, published, ratio, stated_series};
use super::stated::{Figure, Quantity, sources, stated};
use crate::experiment::{Experiment, Scope, Size};

/// Figure 5.
pub struct Figure5;

/// What the text states.
pub(super) fn figure() -> Figure {
    Figure::read(include_str!("../../dvole/figure5.json"))
}

/// The length of the vector.
pub(super) fn length(size: Size) -> u64 {
    match size {
        Size::Full => 1 << 20,
        Size::Quick => 150_000,
    }
}

/// Threads of a party on a machine with so many cores: powers of two.
fn threads(cores: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1), |threads| Some(2 * threads));
    powers
        .take_while(|threads| *threads <= cores.max(2))
        .collect()
}

fn case(ring: RingName, size: Size, threads: usize) -> Case {
    Case {
        candidate: Candidate::VOLE,
        ring,
        n: length(size),
        link: Link::Loopback,
        threads,
    }
}

impl Experiment for Figure5 {
    fn name(&self) -> &'static str {
        "dvole-figure-5"
    }

    fn about(&self) -> String {
        "Vector OLE by the number of threads".to_owned()
    }

    fn cells(&self, scope: &Scope) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for ring in RingName::ALL {
            for threads in threads(machine::cores()) {
                cells.push(case(ring, scope.size, threads).cell(scope.timeout)?);
            }
        }
        Ok(cells)
    }

    fn section(&self, scope: &Scope, results: &Results) -> Result<Section> {
        let figure = figure();
        let mut section = figure.section(self.name());
        let shown = Scaling {
            size: scope.size,
            results,
            figure: &figure,
            published: times_of_paper(&figure),
        };
        let generated = RingName::ALL.map(|ring| shown.finding(ring));
        section
            .findings
            .splice(0..0, generated.into_iter().flatten());
        section.tables = RingName::ALL.map(|ring| shown.table(ring)).into();
        section.plots = shown.plot().into_iter().collect();
        Ok(section)
    }
}

/// The paper's times in milliseconds by the number of threads: the one that is stated, and those that follow from it by the
/// speed-ups.
fn times_of_paper(figure: &Figure) -> Vec<(usize, f64)> {
    let over = RingName::Fp61.name();
    let of = |quantity, column: &str| stated(figure, quantity, over, column);
    let anchor = figure.columns.iter().find_map(|column| {
        let seconds = of(Quantity::Seconds, column)?;
        Some(1e3 * seconds * of(Quantity::SpeedUp, column)?)
    });
    let time = |column: &String| {
        let time = anchor? / of(Quantity::SpeedUp, column)?;
        Some((column.parse().ok()?, time))
    };
    figure.columns.iter().filter_map(time).collect()
}

/// All that the section shows.
struct Scaling<'a> {
    size: Size,
    results: &'a Results,
    figure: &'a Figure,
    /// By threads.
    published: Vec<(usize, f64)>,
}

impl Scaling<'_> {
    fn key(&self, ring: RingName, threads: usize) -> Key {
        case(ring, self.size, threads).key()
    }

    /// Those that this machine would measure, and those that were measured, perhaps on another.
    fn threads(&self) -> Vec<usize> {
        let ours = RingName::ALL.map(|ring| self.key(ring, 1));
        let of_ours = |key: &Key| {
            let mut ours = ours.iter();
            ours.any(|ours| {
                (&ours.protocol, ours.n, &ours.link) == (&key.protocol, key.n, &key.link)
            })
        };
        let measured = self.results.measurements.iter();
        let measured = measured.map(|measurement| &measurement.key);
        let mut all = threads(self.cores().unwrap_or_else(machine::cores));
        all.extend(measured.filter(|key| of_ours(key)).map(|key| key.threads));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Of the machine that was measured on; none if nothing was.
    fn cores(&self) -> Option<usize> {
        let sitting = self.results.sittings.last()?;
        Some(sitting.machine.cores)
    }

    fn time(&self, ring: RingName, threads: usize) -> Option<f64> {
        Shown::Milliseconds.median(self.results, &self.key(ring, threads))
    }

    fn table(&self, ring: RingName) -> Table {
        let of_paper = |threads: usize| {
            let mut published = self.published.iter().filter(|_| ring == RingName::Fp61);
            let found = published.find(|(have, _)| *have == threads);
            found.map(|(_, time)| *time)
        };
        let mut all = self.threads();
        all.extend(self.published.iter().map(|(threads, _)| *threads));
        all.sort_unstable();
        all.dedup();
        let row = |&threads: &usize| {
            let key = self.key(ring, threads);
            let column = threads.to_string();
            let speed_up = stated(self.figure, Quantity::SpeedUp, ring.name(), &column);
            let [one, this] = [1, threads].map(|threads| self.time(ring, threads));
            vec![
                Value::text(column),
                Shown::Milliseconds.value(self.results, &key),
                published(of_paper(threads)),
                ratio(one, this, speed_up),
                published(speed_up),
            ]
        };
        Table {
            caption: format!(
                "Vector OLE of {} entries over {}",
                length(self.size),
                ring.name()
            ),
            columns: vec![
                Column::numbers("threads", "a party"),
                Column::numbers("time", &self.figure.unit),
                Column::numbers("published", &self.figure.unit),
                Column::numbers("speed-up", ""),
                Column::numbers("published", "speed-up"),
            ],
            rows: all.iter().map(row).collect(),
            notes: self.notes(),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = sources(self.figure, &[Quantity::SpeedUp, Quantity::Seconds]);
        notes.push(
            "Published for 2^20 entries; the times, over a field, with 1 and 8 threads are derived from the text's speed-ups."
                .to_owned(),
        );
        let crowded = self.cores().and_then(|cores| {
            let most = self.threads().into_iter().max()?;
            (cores < 2 * most).then(|| {
                format!(
                    "Both parties share the machine's cores, {cores} in number: where a party has more threads than half of \
                     them, there is little to gain."
                )
            })
        });
        notes.extend(crowded);
        notes
    }

    /// None if nothing was measured.
    fn plot(&self) -> Option<Plot> {
        let threads = self.threads();
        let series = |ring: RingName| {
            let keys = threads
                .iter()
                .map(|&threads| (threads as f64, self.key(ring, threads)));
            let name = format!("{}, {}", Candidate::VOLE.title(), ring.title());
            Shown::Milliseconds.series(&name, self.results, keys)
        };
        let mut series: Vec<_> = RingName::ALL.into_iter().filter_map(series).collect();
        if series.is_empty() {
            return None;
        }
        let published: Vec<_> = self
            .published
            .iter()
            .map(|&(threads, time)| (threads as f64, time))
            .collect();
        series.push(stated_series("VOLE, stated in the text", &published));
        Some(Plot {
            title: format!("Vector OLE of {} entries", length(self.size)),
            x: Axis {
                label: "threads a party".to_owned(),
                unit: String::new(),
                scale: Scale::Log2,
            },
            y: Axis {
                label: "time".to_owned(),
                unit: self.figure.unit.clone(),
                scale: Scale::Log,
            },
            series,
            marks: Vec::new(),
        })
    }

    fn finding(&self, ring: RingName) -> Option<String> {
        let one = self.time(ring, 1)?;
        let more = self.threads().into_iter().filter(|threads| *threads > 1);
        let gains: Vec<_> = more
            .filter_map(|threads| {
                let gain = digits(one / self.time(ring, threads)?);
                Some(format!(
                    "{threads} threads a party are {gain} times as fast as one"
                ))
            })
            .collect();
        (!gains.is_empty()).then(|| format!("{}: {}.", ring.name(), gains.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_threads_as_cores() {
        assert_eq!(threads(1), [1, 2]);
        assert_eq!(threads(2), [1, 2]);
        assert_eq!(threads(12), [1, 2, 4, 8]);
        assert_eq!(threads(32), [1, 2, 4, 8, 16, 32]);
    }

    #[test]
    fn times_that_follow_from_the_text() {
        let times = times_of_paper(&figure());
        for ((threads, time), (want_threads, want)) in
            times.iter().zip([(1, 5096.0), (8, 1019.2), (32, 520.0)])
        {
            assert_eq!(*threads, want_threads);
            assert!((time - want).abs() < 1e-6, "{time}");
        }
        assert_eq!(times.len(), 3);
    }
}
