//! Figure 4: vector OLE including setup, by length.
//!
//! The paper: Protocol 6 against Gilboa's multiplication and two slower ways to share a multi-point
//! function, over a prime field and an integer ring; the time between two machines (left), the time
//! at 100 Mbit/s (middle) and the bytes (right).
//!
//! We: all of them, and ours against malicious parties, over loopback and at 100 Mbit/s with a
//! round-trip time of 0.2 ms, including the base OTs. A run that would take too long at a length is
//! left out.
//!
//! Differences: SoftSpokenOT in place of EMP's OT extension; ours has 128 bits of security, 'VOLE,
//! 80 bits' and the two slower ways have the paper's parameters; FLORAM's garbled circuits are OTs;
//! the field has 61 bits in place of 60. `experiments/dvole/figure4.json` has all of it.

mod findings;

use std::time::Duration;

use crate::page::{Axis, Column, Plot, Scale, Section, Series, Table, Value, VerticalMark};
use crate::results::Results;
use crate::runner::Cell;
use crate::{Link, Result};
use volery_pcg::Security;

use super::candidate::{Candidate, Case, RingName};
use super::crossing::{Ahead, Pair};
use super::show::{Shown, in_words, ratio, rounded};
use super::stated::{Figure, Quantity, sources, stated};
use crate::experiment::{Experiment, Scope, Size};

/// Figure 4.
pub struct Figure4;

/// The statements of the text.
pub(super) fn figure() -> Figure {
    Figure::read(include_str!("../../published/dvole/figure4.json"))
}

/// Ours and the paper's, which Gilboa's multiplication is held against.
const OURS: [Candidate; 3] = [
    Candidate::VOLE,
    Candidate::Vole(Security::Malicious),
    Candidate::Paper80,
];

/// The length of which the text states times.
const STATED_LENGTH: u64 = 1 << 20;

/// Over a slow link the paper has none of the two slower ways; beyond this length they are left
/// out.
const SLOW_WAYS_AT_MOST: u64 = 1 << 16;

/// The links, each with its column in the data file.
fn links() -> [(Link, &'static str); 2] {
    let slow = Link::shaped(100_000_000, Duration::from_micros(200));
    [(Link::Loopback, "loopback"), (slow, "100Mbit")]
}

fn lengths(size: Size) -> &'static [u64] {
    match size {
        Size::Full => &[
            4096,
            8192,
            15_000,
            1 << 15,
            1 << 16,
            150_000,
            1 << 18,
            1 << 19,
            1 << 20,
            1 << 21,
            1 << 22,
        ],
        Size::Quick => &[4096, 15_000, 1 << 16, 150_000],
    }
}

/// A run that takes longer is left out, in seconds: all of the figure is to fit into minutes.
fn longest(size: Size) -> f64 {
    match size {
        Size::Full => 5.5,
        Size::Quick => 4.0,
    }
}

/// Whether the figure includes it.
fn belongs(case: &Case) -> bool {
    let slow_way = matches!(case.candidate, Candidate::WholeDomain | Candidate::Floram);
    case.exists() && (!slow_way || case.link == Link::Loopback || case.n <= SLOW_WAYS_AT_MOST)
}

fn case(candidate: Candidate, ring: RingName, n: u64, link: &Link, scope: &Scope) -> Case {
    Case {
        candidate,
        ring,
        n,
        link: link.clone(),
        threads: scope.threads,
    }
}

impl Experiment for Figure4 {
    fn name(&self) -> &'static str {
        "dvole-figure-4"
    }

    fn about(&self) -> String {
        "Vector OLE from nothing by length, beside Gilboa's multiplication, naive batching and FLORAM".to_owned()
    }

    fn cells(&self, scope: &Scope) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for (link, _) in links() {
            for ring in RingName::ALL {
                for &n in lengths(scope.size) {
                    for candidate in Candidate::VECTOR_OLES {
                        let case = case(candidate, ring, n, &link, scope);
                        if belongs(&case) && case.seconds() <= longest(scope.size) {
                            cells.push(case.cell(scope.timeout)?);
                        }
                    }
                }
            }
        }
        Ok(cells)
    }

    fn section(&self, scope: &Scope, results: &Results) -> Result<Section> {
        let figure = figure();
        let mut section = figure.section(self.name());
        let shown = Lines {
            scope,
            results,
            figure: &figure,
        };
        section.lead_with(shown.findings());
        for (link, _) in links() {
            let caption = format!("Time over {}", in_words(&link));
            section
                .tables
                .push(shown.table(caption, &link, Shown::Milliseconds, &figure.unit));
        }
        for (shown_as, unit) in [(Shown::Bytes, "bytes"), (Shown::Messages, "messages")] {
            let caption = format!("{} of both parties over loopback", capital(unit));
            let table = shown.table(caption, &Link::Loopback, shown_as, unit);
            section.tables.push(table);
        }
        section.tables.push(shown.crossings());
        section.tables.extend(shown.statements());
        section.plots = shown.plots();
        Ok(section)
    }
}

fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

/// The name of a line: of the two slow ways with their security, which is less than that of ours.
fn line_title(candidate: Candidate) -> String {
    let title = candidate.title();
    match candidate {
        Candidate::WholeDomain | Candidate::Floram => format!("{title} (80 bits)"),
        _ => title.to_owned(),
    }
}

/// All that the section shows.
struct Lines<'a> {
    scope: &'a Scope,
    results: &'a Results,
    figure: &'a Figure,
}

impl Lines<'_> {
    fn median(&self, shown: Shown, case: &Case) -> Option<f64> {
        shown.median(self.results, &case.key())
    }

    /// Two protocols at all lengths at which both were measured: the length, the one, the other.
    fn pairs(
        &self,
        shown: Shown,
        [one, other]: [Candidate; 2],
        ring: RingName,
        link: &Link,
    ) -> Vec<Pair> {
        let pair = |&n: &u64| {
            let [one, other] = [one, other]
                .map(|candidate| case(candidate, ring, n, link, self.scope))
                .map(|case| shown.spread(self.results, &case.key()));
            Some((n as f64, one?, other?))
        };
        lengths(self.scope.size).iter().filter_map(pair).collect()
    }

    /// From where on one of ours is ahead of Gilboa's multiplication.
    fn ahead(&self, shown: Shown, ours: Candidate, ring: RingName, link: &Link) -> Ahead {
        Ahead::of(&self.pairs(shown, [Candidate::Gilboa, ours], ring, link))
    }

    /// A line for each length and ring, a column for each protocol.
    fn table(&self, caption: String, link: &Link, shown: Shown, unit: &str) -> Table {
        let mut columns = vec![Column::words("ring"), Column::numbers("entries", "")];
        for candidate in Candidate::VECTOR_OLES {
            columns.push(Column::numbers(candidate.title(), unit));
        }
        let value = |case: Case| match shown.value(self.results, &case.key()) {
            Value::None if belongs(&case) && case.seconds() > longest(self.scope.size) => {
                Value::Skipped {
                    seconds: case.seconds(),
                }
            }
            value => value,
        };
        let mut rows = Vec::new();
        for ring in RingName::ALL {
            for &n in lengths(self.scope.size) {
                let mut row = vec![Value::text(ring.name()), Value::text(n.to_string())];
                let cases = Candidate::VECTOR_OLES
                    .map(|candidate| case(candidate, ring, n, link, self.scope));
                row.extend(cases.map(value));
                rows.push(row);
            }
        }
        let mut notes = vec!["Over z64 there is no protocol against malicious parties.".to_owned()];
        if *link != Link::Loopback {
            notes.push(format!(
                "Over this link naive batching and FLORAM are measured up to {SLOW_WAYS_AT_MOST} entries."
            ));
        }
        Table {
            caption,
            columns,
            rows,
            notes,
        }
    }

    fn crossings(&self) -> Table {
        let mut rows = Vec::new();
        for ours in OURS {
            for (link, column) in links() {
                for ring in RingName::ALL {
                    if !case(ours, ring, 1, &link, self.scope).exists() {
                        continue;
                    }
                    let there = stated(self.figure, Quantity::Crossing, ring.name(), column);
                    let by_time = self.ahead(Shown::Milliseconds, ours, ring, &link);
                    let by_bytes = self.ahead(Shown::Bytes, ours, ring, &link);
                    rows.push(vec![
                        Value::text(ours.title()),
                        Value::text(in_words(&link)),
                        Value::text(ring.name()),
                        by_time.value(there),
                        Value::published(there),
                        by_bytes.value(None),
                    ]);
                }
            }
        }
        let mut notes = sources(self.figure, &[Quantity::Crossing]);
        notes.push(
            "Interpolated between the medians of the lengths measured, by logarithms; two digits. Gilboa's multiplication is semi-honest."
                .to_owned(),
        );
        Table {
            caption: "The length from which on ours takes less than Gilboa's multiplication"
                .to_owned(),
            columns: vec![
                Column::words("protocol"),
                Column::words("link"),
                Column::words("ring"),
                Column::numbers("by time", "entries"),
                Column::numbers("published", "entries"),
                Column::numbers("by bytes", "entries"),
            ],
            rows,
            notes,
        }
    }

    /// The statements of the text at one length, over a field and loopback; `None` if that length
    /// is not measured.
    fn statements(&self) -> Option<Table> {
        if !lengths(self.scope.size).contains(&STATED_LENGTH) {
            return None;
        }
        let ring = RingName::Fp61;
        let there = |quantity| stated(self.figure, quantity, ring.name(), "loopback");
        let of = |shown, candidate| {
            let case = case(candidate, ring, STATED_LENGTH, &Link::Loopback, self.scope);
            self.median(shown, &case)
        };
        let ours = [Candidate::VOLE, Candidate::Paper80];
        let row = |what: &str, quantity, value: &dyn Fn(Candidate, Option<f64>) -> Value| {
            let there = there(quantity);
            let mut row = vec![Value::text(what), Value::published(there)];
            row.extend(ours.map(|ours| value(ours, there)));
            row
        };
        let over =
            |shown| move |ours, there| ratio(of(shown, Candidate::Gilboa), of(shown, ours), there);
        let seconds = |ours, there| {
            let case = case(ours, ring, STATED_LENGTH, &Link::Loopback, self.scope);
            let spread = Shown::Milliseconds.spread(self.results, &case.key());
            Value::measured(spread.map(|spread| spread.times(1e-3)), there)
        };
        let mut columns = vec![Column::words("statement"), Column::numbers("published", "")];
        columns.extend(ours.map(|ours| Column::numbers(ours.title(), "")));
        Some(Table {
            caption: format!("What the text states of {STATED_LENGTH} entries over a prime field"),
            columns,
            rows: vec![
                row("time, s", Quantity::Seconds, &seconds),
                row(
                    "Gilboa's time over it, times",
                    Quantity::GilboaTime,
                    &over(Shown::Milliseconds),
                ),
                row(
                    "Gilboa's bytes over it, times",
                    Quantity::GilboaBytes,
                    &over(Shown::Bytes),
                ),
            ],
            notes: sources(
                self.figure,
                &[
                    Quantity::Seconds,
                    Quantity::GilboaTime,
                    Quantity::GilboaBytes,
                ],
            ),
        })
    }

    /// The paper's three panels; those without a measurement are left out.
    fn plots(&self) -> Vec<Plot> {
        let [(left, _), (middle, _)] = links();
        let unit = &self.figure.unit;
        let all = [
            Candidate::VOLE,
            Candidate::Paper80,
            Candidate::Gilboa,
            Candidate::WholeDomain,
            Candidate::Floram,
        ];
        let few = [Candidate::VOLE, Candidate::Paper80, Candidate::Gilboa];
        let panels = [
            (
                "left",
                "time",
                Shown::Milliseconds,
                unit.as_str(),
                left.clone(),
                &all[..],
            ),
            (
                "middle",
                "time",
                Shown::Milliseconds,
                unit.as_str(),
                middle,
                &few[..],
            ),
            ("right", "traffic", Shown::Bytes, "bytes", left, &few[..]),
        ];
        let panels = panels
            .into_iter()
            .filter_map(|(panel, what, shown, unit, link, lines)| {
                let mut series = self.series(shown, &link, lines);
                if series.is_empty() {
                    return None;
                }
                if panel == "left" {
                    series.extend(self.stated_points());
                }
                Some(Plot {
                    title: format!(
                        "{} over {} (the paper's {panel} panel)",
                        capital(what),
                        in_words(&link)
                    ),
                    x: Axis {
                        label: "length of the vector".to_owned(),
                        unit: "entries".to_owned(),
                        scale: Scale::Log,
                    },
                    y: Axis {
                        label: what.to_owned(),
                        unit: unit.to_owned(),
                        scale: Scale::Log,
                    },
                    series,
                    marks: match shown {
                        Shown::Milliseconds => self.marks(&link),
                        _ => Vec::new(),
                    },
                })
            });
        panels.collect()
    }

    fn series(&self, shown: Shown, link: &Link, candidates: &[Candidate]) -> Vec<Series> {
        let lines = candidates
            .iter()
            .flat_map(|candidate| RingName::ALL.map(|ring| (*candidate, ring)));
        let series = |(candidate, ring): (Candidate, RingName)| {
            let keys = lengths(self.scope.size)
                .iter()
                .map(|&n| (n as f64, case(candidate, ring, n, link, self.scope).key()));
            let name = format!("{}, {}", line_title(candidate), ring.title());
            shown.series(&name, self.results, keys)
        };
        lines.filter_map(series).collect()
    }

    /// Over a field and loopback.
    fn stated_points(&self) -> Vec<Series> {
        let of = |quantity| stated(self.figure, quantity, RingName::Fp61.name(), "loopback");
        let x = STATED_LENGTH as f64;
        let vole = of(Quantity::Seconds).map(|seconds| 1e3 * seconds);
        let gilboa = vole.zip(of(Quantity::GilboaTime));
        let gilboa = gilboa.map(|(time, times)| rounded(time * times));
        [
            (Candidate::Paper80, vole, "stated in"),
            (Candidate::Gilboa, gilboa, "derived from"),
        ]
        .into_iter()
        .filter_map(|(candidate, time, how)| {
            let of = (line_title(candidate), RingName::Fp61.title());
            let name = format!("{}, {}, {how} the text", of.0, of.1);
            Some(Series::published(&name, [(x, time?)]))
        })
        .collect()
    }

    /// The published crossings.
    fn marks(&self, link: &Link) -> Vec<VerticalMark> {
        let links = links();
        let column = links.iter().find(|(have, _)| have == link);
        let mark = |ring: RingName| {
            Some(VerticalMark {
                x: stated(self.figure, Quantity::Crossing, ring.name(), column?.1)?,
                label: format!("published crossing, {}", ring.title()),
            })
        };
        RingName::ALL.into_iter().filter_map(mark).collect()
    }
}
