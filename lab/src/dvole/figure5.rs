//! Figure 5: vector OLE by the number of threads.
//!
//! The paper: 2^20 entries with 1 to 32 threads, a machine for each party.
//!
//! We: the same length with 1, 2, 4, .. threads for each party, up to the cores of the machine.
//!
//! Differences: both parties share the cores of one machine; SoftSpokenOT in place of EMP's OT
//! extension; 128 bits of security in place of 80. `experiments/dvole/figure5.json` has all of it.

use crate::measurement::{Key, Spread};
use crate::page::{Axis, Column, Plot, Scale, Section, Series, Table, Value};
use crate::results::Results;
use crate::runner::Cell;
use crate::{Link, Result, machine};

use super::candidate::{Candidate, Case, RingName};
use super::show::{Shown, ratio, rounded};
use super::stated::{Figure, Quantity, sources, stated};
use crate::experiment::{Experiment, Scope};
use crate::words::{Standing, few_runs, two_digits};

/// Figure 5.
pub struct Figure5;

/// The statements of the text.
pub(super) fn figure() -> Figure {
    Figure::read(include_str!("../../published/dvole/figure5.json"))
}

/// The length of the vector: that of which the text states figures.
pub(super) const LENGTH: u64 = 1 << 20;

/// Threads of a party on a machine with this many cores: powers of two.
fn threads(cores: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1), |threads| Some(2 * threads));
    powers
        .take_while(|threads| *threads <= cores.max(2))
        .collect()
}

fn case(ring: RingName, threads: usize) -> Case {
    Case {
        candidate: Candidate::VOLE,
        ring,
        n: LENGTH,
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
                cells.push(case(ring, threads).cell(scope.timeout)?);
            }
        }
        Ok(cells)
    }

    fn section(&self, _scope: &Scope, results: &Results) -> Result<Section> {
        let figure = figure();
        let mut section = figure.section(self.name());
        let shown = Scaling {
            results,
            figure: &figure,
            published: times_of_paper(&figure),
        };
        let generated = RingName::ALL.map(|ring| shown.finding(ring));
        section.lead_with(generated.into_iter().flatten().collect());
        section.tables = RingName::ALL.map(|ring| shown.table(ring)).into();
        // They are of both tables: once is enough.
        section.tables[0].notes = shown.notes();
        section.plots = shown.plot().into_iter().collect();
        Ok(section)
    }
}

/// A time of the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PaperTime {
    threads: usize,
    milliseconds: f64,
    /// Stated in the text; otherwise computed from other values, in two digits.
    stated: bool,
}

impl PaperTime {
    fn value(self) -> Value {
        if self.stated {
            Value::published(Some(self.milliseconds))
        } else {
            Value::computed(self.milliseconds, None)
        }
    }
}

/// The paper's times: the one that is stated, and those that follow from it by the speed-ups.
fn times_of_paper(figure: &Figure) -> Vec<PaperTime> {
    let over = RingName::Fp61.name();
    let of = |quantity, column: &str| stated(figure, quantity, over, column);
    let anchor = figure.columns.iter().find_map(|column| {
        let seconds = of(Quantity::Seconds, column)?;
        Some(1e3 * seconds * of(Quantity::SpeedUp, column)?)
    });
    let time = |column: &String| {
        let derived = rounded(anchor? / of(Quantity::SpeedUp, column)?);
        let stated = of(Quantity::Seconds, column).map(|seconds| 1e3 * seconds);
        Some(PaperTime {
            threads: column.parse().ok()?,
            milliseconds: stated.unwrap_or(derived),
            stated: stated.is_some(),
        })
    };
    figure.columns.iter().filter_map(time).collect()
}

/// All that the section shows.
struct Scaling<'a> {
    results: &'a Results,
    figure: &'a Figure,
    /// By threads.
    published: Vec<PaperTime>,
}

impl Scaling<'_> {
    fn key(&self, ring: RingName, threads: usize) -> Key {
        case(ring, threads).key()
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

    /// Of the machine that measured; `None` if nothing was measured.
    fn cores(&self) -> Option<usize> {
        let sitting = self.results.sittings.last()?;
        Some(sitting.machine.cores)
    }

    fn time(&self, ring: RingName, threads: usize) -> Option<Spread> {
        Shown::Milliseconds.spread(self.results, &self.key(ring, threads))
    }

    fn table(&self, ring: RingName) -> Table {
        let of_paper = |threads: usize| {
            let mut published = self.published.iter().filter(|_| ring == RingName::Fp61);
            let found = published.find(|time| time.threads == threads);
            found.map_or(Value::None, |time| time.value())
        };
        let mut all = self.threads();
        all.extend(self.published.iter().map(|time| time.threads));
        all.sort_unstable();
        all.dedup();
        let row = |&threads: &usize| {
            let key = self.key(ring, threads);
            let column = threads.to_string();
            let speed_up = stated(self.figure, Quantity::SpeedUp, ring.name(), &column);
            let [one, this] = [1, threads].map(|threads| Some(self.time(ring, threads)?.median));
            vec![
                Value::text(column),
                Shown::Milliseconds.value(self.results, &key),
                of_paper(threads),
                ratio(one, this, speed_up),
                Value::published(speed_up),
            ]
        };
        Table {
            caption: format!("Vector OLE of {} entries over {}", LENGTH, ring.name()),
            columns: vec![
                Column::numbers("threads", "a party"),
                Column::numbers("time", &self.figure.unit),
                Column::numbers("published", &self.figure.unit),
                Column::numbers("speed-up", ""),
                Column::numbers("published", "speed-up"),
            ],
            rows: all.iter().map(row).collect(),
            notes: Vec::new(),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = sources(self.figure, &[Quantity::SpeedUp, Quantity::Seconds]);
        notes.push(
            "Published for 2^20 entries. Of the times, over a field, that with 32 threads is stated; those with 1 and 8 are \
             derived from it by the text's speed-ups, in two digits."
                .to_owned(),
        );
        let crowded = self.cores().and_then(|cores| {
            let mut crowded = self.threads();
            crowded.retain(|threads| cores < 2 * threads);
            let crowded: Vec<_> = crowded.iter().map(ToString::to_string).collect();
            (!crowded.is_empty()).then(|| {
                format!(
                    "Both parties share the machine's cores, {cores} in number: with {} threads a party there are more threads \
                     than cores.",
                    crowded.join(", ")
                )
            })
        });
        notes.extend(crowded);
        notes
    }

    /// `None` if nothing was measured.
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
        if !self.published.is_empty() {
            let times = self.published.iter();
            let points = times.map(|time| (time.threads as f64, time.milliseconds));
            let name = format!(
                "{}, {}, derived from the text",
                Candidate::VOLE.title(),
                RingName::Fp61.title()
            );
            series.push(Series::published(&name, points));
        }
        Some(Plot {
            title: format!("Vector OLE of {} entries", LENGTH),
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
        let mut spreads = vec![one];
        let mut gains = Vec::new();
        for threads in more {
            let Some(this) = self.time(ring, threads) else {
                continue;
            };
            spreads.push(this);
            gains.push(match Standing::of(this, one) {
                Standing::Same => format!("{threads} threads a party are about as fast as one"),
                Standing::Less | Standing::More => {
                    let gain = two_digits(one.median / this.median);
                    format!("{threads} threads a party are {gain} times as fast as one")
                }
            });
        }
        let runs = few_runs(spreads);
        (!gains.is_empty()).then(|| format!("{}: {}{runs}.", ring.name(), gains.join(", ")))
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
        let times = times_of_paper(&figure()).into_iter();
        let times: Vec<_> = times
            .map(|time| (time.threads, time.milliseconds, time.stated))
            .collect();
        assert_eq!(
            times,
            [(1, 5100.0, false), (8, 1000.0, false), (32, 520.0, true)]
        );
    }
}
