//! The published figures and ours, side by side, as a section.

use crate::Result;
use crate::measurement::{Spread, Term, Told};
use crate::page::{Column, Section, Table, Value};
use crate::results::Results;

use super::candidate::Candidate;
use super::cells::{Extent, Measured};
use super::measure::Parts;
use super::published::{Part, Published, PublishedRow, Rate};
use super::{findings, plots};

/// A table of the paper, and the part of a run that it shows.
pub(super) struct Shown {
    pub(super) name: &'static str,
    pub(super) published: Published,
    /// A figure in the table's unit; none if the run has no such part.
    pub(super) figure: fn(&Parts, Part) -> Option<Term>,
    /// The traffic in the table's unit; none if it has no such column.
    pub(super) traffic: Option<fn(&Parts) -> f64>,
    /// The number of outputs of a time that is scaled from the actual number.
    pub(super) scaled: Option<Whole>,
    /// The quantity on the second axis of its plots; `None` if it has none.
    pub(super) plotted: Option<&'static str>,
}

/// The number of correlated OTs of a time; it is scaled where fewer were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    /// As many as were requested.
    Asked,
    /// This number.
    Of(u64),
}

impl Whole {
    fn cots(self, extent: &Extent) -> u64 {
        match self {
            Self::Asked => extent.n,
            Self::Of(cots) => cots,
        }
    }
}

/// A row of the paper with two of ours: the paper's own protocol, or the baseline that replaces it,
/// and the default.
pub(super) struct Line {
    pub(super) row: PublishedRow,
    pub(super) beside: [Option<Candidate>; 2],
    /// Over all links together.
    pub(super) traffic: [Value; 2],
    /// Over each requested link.
    pub(super) times: Vec<Times>,
}

/// Figures over one link.
pub(super) struct Times {
    pub(super) rate: Rate,
    pub(super) published: f64,
    pub(super) ours: [Value; 2],
}

/// Nanoseconds of a correlated OT; of a checked main round alone where the part is one of its own.
pub(super) fn nanoseconds(parts: &Parts, part: Part) -> Option<Term> {
    let (seconds, cots) = match part {
        Part::Trees => (parts.round?.trees_seconds, parts.round?.cots),
        Part::Lpn => (Term::measured(parts.round?.lpn_seconds), parts.round?.cots),
        Part::Total | Part::Extra => (Term::measured(parts.seconds), parts.cots),
    };
    Some(seconds.times(1e9 / cots as f64))
}

/// Bits of a correlated OT, both ways.
pub(super) fn bits(parts: &Parts) -> f64 {
    parts.bytes as f64 * 8.0 / parts.cots as f64
}

impl Shown {
    /// All that is shown of the table.
    ///
    /// # Errors
    /// If there are no parameters for one of the protocols.
    pub(super) fn section(&self, extent: &Extent, results: &Results) -> Result<Section> {
        let lines = self.lines(extent, results)?;
        let mut section = self.published.section(self.name);
        section.lead_with(findings::sentences(&self.published, &lines));
        section.tables.push(self.times(extent, &lines));
        section.tables.extend(self.traffics(&lines));
        section.tables.push(self.plans(extent, results)?);
        if let Some(label) = self.plotted {
            section.plots = plots::plots(&self.published, label, &lines);
        }
        Ok(section)
    }

    /// The rows of the paper with ours.
    ///
    /// # Errors
    /// As [`Self::section`].
    pub(super) fn lines(&self, extent: &Extent, results: &Results) -> Result<Vec<Line>> {
        let rows = self.published.rows.iter();
        rows.map(|row| self.line(row, extent, results)).collect()
    }

    fn line(&self, row: &PublishedRow, extent: &Extent, results: &Results) -> Result<Line> {
        let beside = Candidate::beside(row.protocol, row.security());
        let find = |candidate: Candidate, rate| extent.find(results, candidate, rate);
        let mut times = Vec::new();
        let mut traffics = [Vec::new(), Vec::new()];
        for (rate, published) in self.published.columns.iter().zip(&row.values) {
            if !extent.rates.contains(rate) {
                continue;
            }
            let published = *published;
            let mut ours = [Value::None, Value::None];
            for (place, candidate) in beside.into_iter().enumerate() {
                let Some(candidate) = candidate else { continue };
                let Some(measured) = find(candidate, *rate)? else {
                    continue;
                };
                let all = measured.parts.iter().flatten();
                if let Some(traffic) = self.traffic {
                    traffics[place].extend(all.map(traffic));
                }
                let less = match row.part {
                    Part::Extra => match find(candidate.with_regular_noise(), *rate)? {
                        None => continue,
                        less => less,
                    },
                    _ => None,
                };
                let beside = Some(published).filter(|_| !row.about);
                let mut value = self.value(row.part, &measured, less.as_ref(), beside);
                if let (Value::Measured { extrapolated, .. }, Some(whole)) =
                    (&mut value, self.scaled)
                {
                    *extrapolated = measured.fewest < Some(whole.cots(extent));
                }
                ours[place] = value;
            }
            times.push(Times {
                rate: *rate,
                published,
                ours,
            });
        }
        let traffic = traffics.map(|values| Value::measured(Spread::of(values), row.traffic));
        Ok(Line {
            row: row.clone(),
            beside,
            traffic,
            times,
        })
    }

    /// A figure of the runs; the totals of `less` are subtracted, run by run. The difference may be
    /// less than zero.
    fn value(
        &self,
        part: Part,
        measured: &Measured,
        less: Option<&Measured>,
        published: Option<f64>,
    ) -> Value {
        if let Some(seconds) = measured.skipped_seconds {
            return Value::Skipped { seconds };
        }
        let figure = |parts: &Option<Parts>, part| (self.figure)(parts.as_ref()?, part);
        let Some(less) = less else {
            let figures = measured.parts.iter().filter_map(|run| figure(run, part));
            return Value::told(Told::of(&figures.collect::<Vec<_>>()), published);
        };
        let runs = measured.parts.iter().zip(&less.parts);
        let figures = runs.filter_map(|(run, less)| {
            Some(figure(run, part)?.whole - figure(less, Part::Total)?.whole)
        });
        let spread = Spread::of(figures.collect());
        // A difference that is lost in the spread has no ratio.
        let told = spread.is_some_and(|spread| spread.least > 0.0);
        Value::measured(spread, published.filter(|_| told))
    }

    fn times(&self, extent: &Extent, lines: &[Line]) -> Table {
        let unit = &self.published.unit;
        let rows = lines.iter().flat_map(|line| {
            line.times.iter().map(|times| {
                let [security, protocol] = words(line);
                let link = Value::text(times.rate.name());
                let published = line.row.said(times.published);
                let [here, volery] = times.ours.clone();
                vec![security, protocol, link, published, here, volery]
            })
        });
        let mut notes = Vec::new();
        if let Some(whole) = self.scaled {
            notes.push(format!(
                "A run makes {} correlated OTs or more, in whole rounds, and fewer only where that is marked; figures are \
                 scaled from what it made.",
                whole.cots(extent)
            ));
        }
        if extent.costliest != extent.rates {
            notes.push(
                "To be quick, not all links are asked for, and Ferret-Uni with the paper's own sets over one of them only."
                    .to_owned(),
            );
        }
        Table {
            caption: format!(
                "{}: {}, {unit}",
                self.published.what, self.published.caption
            ),
            columns: vec![
                Column::words("security"),
                Column::words("protocol"),
                Column::words("link"),
                Column::numbers("published", unit),
                Column::numbers("here", unit),
                Column::numbers("volery", unit),
            ],
            rows: rows.collect(),
            notes,
        }
    }

    fn traffics(&self, lines: &[Line]) -> Option<Table> {
        let unit = self.published.traffic_unit.as_ref()?;
        let rows = lines.iter().map(|line| {
            let [security, protocol] = words(line);
            let published = Value::published(line.row.traffic);
            let [here, volery] = line.traffic.clone();
            vec![security, protocol, published, here, volery]
        });
        Some(Table {
            caption: format!("{}: traffic, {unit}", self.published.what),
            columns: vec![
                Column::words("security"),
                Column::words("protocol"),
                Column::numbers("published", unit),
                Column::numbers("here", unit),
                Column::numbers("volery", unit),
            ],
            rows: rows.collect(),
            notes: vec![
                "Both ways. The range is over the runs and the links: the default takes other sets over other links."
                    .to_owned(),
            ],
        })
    }

    /// The parameters of each protocol: of the measurements or, where there are none yet, of the
    /// planned ones.
    fn plans(&self, extent: &Extent, results: &Results) -> Result<Table> {
        let mut all: Vec<Parameters> = Vec::new();
        for (candidate, rate) in extent.candidates(&self.published) {
            let plan = match extent.find(results, candidate, rate)? {
                Some(measured) => measured.plan,
                None => extent.parameters(candidate, rate)?,
            };
            let Some(plan) = plan else { continue };
            let same = |have: &&mut Parameters| (have.candidate, &have.plan) == (candidate, &plan);
            match all.iter_mut().find(same) {
                Some(have) => have.rates.push(rate),
                None => all.push(Parameters {
                    candidate,
                    plan,
                    rates: vec![rate],
                }),
            }
        }
        Ok(Table {
            caption: format!("{}: parameters", self.published.what),
            columns: vec![
                Column::words("protocol"),
                Column::words("parameters"),
                Column::numbers("claimed", "bits"),
                Column::words("links"),
            ],
            rows: all.into_iter().map(Parameters::row).collect(),
            notes: vec![
                "Parameters: the OT extension of the base, the trees where they are not half-trees, and the LPN sets in the order of \
                 their use, each with its number of trees; the last repeats. Claimed: against all attacks of the estimator, by \
                 the weakest set."
                    .to_owned(),
            ],
        })
    }
}

/// The parameters of a protocol over some links.
struct Parameters {
    candidate: Candidate,
    /// In words, and the bits that they claim.
    plan: (String, u32),
    rates: Vec<Rate>,
}

impl Parameters {
    fn row(self) -> Vec<Value> {
        let (plan, bits) = self.plan;
        let mut rates = self.rates;
        rates.sort_unstable();
        let rates: Vec<_> = rates.into_iter().map(Rate::name).collect();
        vec![
            Value::text(self.candidate.name()),
            Value::text(plan),
            Value::computed(f64::from(bits), None),
            Value::text(rates.join(" ")),
        ]
    }
}

fn words(line: &Line) -> [Value; 2] {
    [line.row.security().to_string(), line.row.name()].map(Value::text)
}
