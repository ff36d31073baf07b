//! What the commands that repeat the tables of a paper share: the published figures, ours beside them, and what they
//! were measured on.

use std::io::Write;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::calibration::Machine;

/// The version of the form of the data files, and of the JSON that `--json` writes.
pub(super) const SCHEMA: u32 = 1;

/// One table of a paper, from a data file under `experiments`: columns `C`, rows `R`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published<C, R> {
    schema: u32,
    pub(super) paper: String,
    /// The number of the table, or of the figure.
    #[serde(alias = "figure")]
    pub(super) table: u8,
    /// Where the paper discusses it.
    pub(super) section: String,
    pub(super) caption: String,
    /// Of the values.
    pub(super) unit: String,
    /// Of the traffic; none where the table has no such column.
    pub(super) traffic_unit: Option<String>,
    /// How the figures were taken over.
    pub(super) note: String,
    pub(super) columns: Vec<C>,
    pub(super) rows: Vec<R>,
    /// What the paper measured on.
    pub(super) there: String,
    /// What we measure.
    pub(super) ours: Vec<String>,
    /// What keeps the two from being the same.
    pub(super) differences: Vec<String>,
}

impl<C: DeserializeOwned, R: DeserializeOwned> Published<C, R> {
    /// The table of that number among the data files, which are tested.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn find(files: &[(u8, &str)], number: u8) -> Self {
        let (_, text) = files
            .iter()
            .find(|(have, _)| *have == number)
            .expect("a number of a table");
        let table: Self = serde_json::from_str(text).expect("the data files are tested");
        assert_eq!(table.schema, SCHEMA, "the data files are tested");
        table
    }
}

/// The number of a table among the data files, for the command line.
pub(super) fn table_number(files: &[(u8, &str)], text: &str) -> Result<u8, String> {
    let numbers = files.iter().map(|(number, _)| *number);
    let found = numbers.clone().find(|have| text.parse() == Ok(*have));
    found.ok_or_else(|| {
        let numbers: Vec<_> = numbers.map(|number| number.to_string()).collect();
        format!("the tables are {}", numbers.join(", "))
    })
}

/// A table of a paper with our figures, in rows `T`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Compared<T> {
    table: u8,
    section: String,
    paper: String,
    caption: String,
    unit: String,
    pub(super) traffic_unit: Option<String>,
    note: String,
    pub(super) rows: Vec<T>,
    ours: Vec<String>,
    there: String,
    differences: Vec<String>,
}

impl<T> Compared<T> {
    pub(super) fn new<C, R>(published: &Published<C, R>, rows: Vec<T>) -> Self {
        Self {
            table: published.table,
            section: published.section.clone(),
            paper: published.paper.clone(),
            caption: published.caption.clone(),
            unit: published.unit.clone(),
            traffic_unit: published.traffic_unit.clone(),
            note: published.note.clone(),
            rows,
            ours: published.ours.clone(),
            there: published.there.clone(),
            differences: published.differences.clone(),
        }
    }

    /// Prints what stands above the table.
    ///
    /// # Errors
    /// Those of `out`.
    pub(super) fn print_title(&self, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(
            out,
            "Table {} (section {}): {}; {}",
            self.table, self.section, self.caption, self.unit
        )
    }
}

/// A figure of ours.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figure {
    pub(super) median: f64,
    least: f64,
    most: f64,
    /// Ours over the published one.
    ratio: Option<f64>,
    /// Less was made than was asked for, and the time scaled.
    pub(super) extrapolated: bool,
}

impl Figure {
    /// The median of several runs, the mean of the two in the middle if they are even in number; none of no runs.
    pub(super) fn of(mut values: Vec<f64>, published: Option<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let half = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[half]
        } else {
            f64::midpoint(values[half - 1], values[half])
        };
        Some(Self {
            median,
            least,
            most,
            ratio: published
                .filter(|_| median > 0.0)
                .map(|published| median / published),
            extrapolated: false,
        })
    }

    /// The median, the range and the ratio.
    pub(super) fn texts(figure: Option<&Self>) -> [String; 3] {
        let Some(figure) = figure else {
            return ["-"; 3].map(str::to_owned);
        };
        let mark = if figure.extrapolated { "~" } else { "" };
        let [median, least, most] = [figure.median, figure.least, figure.most].map(short);
        [
            format!("{mark}{median}"),
            if least == most {
                String::new()
            } else {
                format!("{least}..{most}")
            },
            figure
                .ratio
                .map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
        ]
    }
}

/// About three digits.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// What the figures were measured on.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Conditions {
    processor: Option<String>,
    machine: Machine,
    load_before_and_after: [Option<f64>; 2],
    threads: usize,
}

impl Conditions {
    /// Measures the machine.
    pub(super) fn before(threads: usize) -> Self {
        Self {
            processor: processor(),
            machine: Machine::measure(),
            load_before_and_after: [load(), None],
            threads,
        }
    }

    /// To be called when the last measurement is done.
    pub(super) fn after(&mut self) {
        self.load_before_and_after[1] = load();
    }

    /// All of it, with what a command has to add to it.
    pub(super) fn with(
        &self,
        more: serde_json::Value,
    ) -> serde_json::Map<String, serde_json::Value> {
        let own = serde_json::to_value(self).expect("strings and numbers");
        let objects = [own, more].into_iter().filter_map(|value| match value {
            serde_json::Value::Object(pairs) => Some(pairs),
            _ => None,
        });
        objects.flatten().collect()
    }

    /// All of it, in a few lines; `runs` says how often what was measured over which links.
    pub(super) fn text(&self, runs: &str) -> String {
        let [before, after] = self
            .load_before_and_after
            .map(|load| load.map_or("?".to_owned(), |load| load.to_string()));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        format!(
            "{}, {cores} cores for both parties, {} thread(s) each; {runs}\nload average {before} before and {after} \
             after: the two parties make 1 to 2, and above that others took their time\nin the same run, one thread, {}: \
             {:.2} ns an AES block, {:.2} ns a random 16-byte read from 2 MiB, {:.1} GB/s copied",
            self.processor.as_deref().unwrap_or("an unnamed processor"),
            self.threads,
            self.machine.cpu,
            self.machine.nanoseconds_aes_block,
            self.machine.nanoseconds_random_read,
            1.0 / self.machine.nanoseconds_copied_byte,
        )
    }
}

/// The processor's name, where the system tells.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The system's load average over a minute, where it tells: how many processes wanted a core.
fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_by_number() {
        let files = [(1, ""), (3, ""), (4, "")];
        assert_eq!(table_number(&files, "4"), Ok(4));
        for bad in ["", "2", "4.5", "300"] {
            assert_eq!(
                table_number(&files, bad),
                Err("the tables are 1, 3, 4".to_owned())
            );
        }
    }

    #[test]
    fn figures_as_text() {
        let figure = Figure {
            median: 12.34,
            least: 10.0,
            most: 14.0,
            ratio: Some(0.5),
            extrapolated: true,
        };
        assert_eq!(
            Figure::texts(Some(&figure)),
            ["~12.3", "10.0..14.0", "0.50"]
        );
        assert_eq!(Figure::texts(None), ["-", "-", "-"]);
        assert_eq!([0.0, 9.876, 123.4].map(short), ["0.00", "9.88", "123"]);
    }

    #[test]
    fn medians() {
        assert!(Figure::of(Vec::new(), None).is_none());
        for (values, median) in [
            (vec![2.0], 2.0),
            (vec![4.0, 1.0], 2.5),
            (vec![9.0, 1.0, 3.0], 3.0),
        ] {
            let figure = Figure::of(values, Some(2.0)).expect("there are values");
            assert!((figure.median - median).abs() < 1e-12);
            assert!(
                figure
                    .ratio
                    .is_some_and(|ratio| (ratio - median / 2.0).abs() < 1e-12)
            );
        }
    }
}
