//! Lists what a run would find in the keys of a table.

use std::collections::BTreeMap;

use super::*;

/// The first rows that a finding names.
pub const NAMED_ROWS: usize = 5;

/// The most frequent keys whose rows a finding names.
const NAMED_KEYS: usize = 3;

/// The findings about a table. No field is in them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lint {
    /// All rows except headers.
    pub rows: u64,
    /// The findings by each rule.
    pub rules: Vec<RuleLint>,
}

/// The findings by one rule. Each row is in one of `keys`, `empty`, `malformed` and `repeated` of
/// `counts`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleLint {
    /// The types and normalisers of the rule, as the other party must have them.
    pub description: String,
    /// The rows with a key, without one, and with a changed one.
    pub counts: RuleCounts,
    /// The distinct keys.
    pub distinct: u64,
    /// The keys that stand in several rows, ...
    pub repeated: u64,
    /// ... and the rows in which they stand.
    pub repeated_rows: u64,
    /// The number of rows of the keys that stand in most, of at most three, and the first of them.
    pub frequent: Vec<(u64, Vec<u64>)>,
    /// The key columns, in their order.
    pub columns: Vec<ColumnLint>,
    /// The rows without a key, and those with a placeholder in a key column, by their causes.
    pub findings: Vec<Finding>,
}

/// The findings about a key column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnLint {
    /// Its name.
    pub name: String,
    /// Its type in the key.
    pub kind: KeyType,
    /// Its normalisers with their versions, and for each the rows in which it changed a text.
    pub changed: Vec<(String, u64)>,
}

/// Rows of one kind; rows are counted from 0 over all files: [`Table::place`] says where one is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `empty`, `malformed` or `placeholder`.
    pub kind: &'static str,
    /// The name of the key column.
    pub column: String,
    /// The type, or the normaliser with its version, that refuses malformed fields.
    pub by: Option<String>,
    /// The cause for which fields are malformed, or the placeholder.
    pub cause: Option<&'static str>,
    /// The number of rows.
    pub count: u64,
    /// The first of them.
    pub rows: Vec<u64>,
}

/// Texts that stand for a key that is not known, in lower case. Those of addresses end in `@`.
const PLACEHOLDERS: [&str; 19] = [
    "null",
    "none",
    "nil",
    "nan",
    "na",
    "n/a",
    "#n/a",
    "\\n",
    "-",
    "--",
    ".",
    "?",
    "unknown",
    "undefined",
    "missing",
    "unknown@",
    "none@",
    "noreply@",
    "test@",
];

fn placeholder(field: &[u8]) -> Option<&'static str> {
    let text = std::str::from_utf8(field).ok()?.trim();
    let name = match text.split_once('@') {
        Some((local, _)) => &text[..=local.len()],
        None => text,
    };
    PLACEHOLDERS.into_iter().find(|placeholder| placeholder.eq_ignore_ascii_case(name))
}

/// By each rule the items that more than `most` rows have, ascending.
pub(super) fn repeated(reader: &Reader<'_>, most: u64) -> Result<Vec<Vec<Item>>, Error> {
    let found = reader.findings(&mut |_| {})?.1.into_iter().map(|mut found| {
        found.items.par_sort_unstable();
        let runs = found.items.chunk_by(|a, b| a.0 == b.0);
        runs.filter(|run| run.len() as u64 > most).map(|run| run[0].0).collect()
    });
    Ok(found.collect())
}

impl Lint {
    /// Reads the keys of a table by the rules of `reading`, without the keys that its
    /// `drop_repeated` leaves out; `progress` gets the bytes read. The items of all rows are in
    /// memory, 24 bytes for each row and rule.
    ///
    /// # Errors
    /// If a file violates a rule of [the crate's documentation](crate#rules) other than those for
    /// empty, malformed and duplicate keys, or a rule does not fit the table.
    pub fn of(
        table: &Table,
        reading: &Reading,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, Error> {
        let reader = Reader::new(table, reading)?;
        let (rows, findings) = reader.findings(progress)?;
        let rules = reader.rules.iter().zip(findings);
        let rules = rules.map(|(keys, found)| found.finish(keys, table)).collect();
        Ok(Self { rows, rules })
    }
}

/// The number of rows of each kind, and the first of them.
type Kinds<K> = BTreeMap<K, (u64, Vec<u64>)>;

fn add<K: Ord>(all: &mut Kinds<K>, kind: K, count: u64, rows: &[u64]) {
    let (sum, first) = all.entry(kind).or_default();
    *sum += count;
    let missing = NAMED_ROWS - first.len();
    first.extend(rows.iter().take(missing));
}

/// The findings by one rule in some rows.
#[derive(Default)]
struct RuleFindings {
    /// The item of each row with a key, and the row.
    items: Vec<(Item, u64)>,
    counts: RuleCounts,
    /// The rows that each normaliser of each column changed.
    changed: Vec<Vec<u64>>,
    refused: Kinds<KeyError>,
    /// By column and placeholder.
    placeholders: Kinds<(usize, &'static str)>,
}

impl RuleFindings {
    fn new(keys: &[KeyColumn]) -> Self {
        let changed = keys.iter().map(|key| vec![0; key.normalisers.len()]);
        Self { changed: changed.collect(), ..Self::default() }
    }

    fn refuse(&mut self, row: u64, refused: KeyError) {
        match refused {
            KeyError::Empty(_) => self.counts.empty += 1,
            _ => self.counts.malformed += 1,
        }
        add(&mut self.refused, refused, 1, &[row]);
    }

    fn finish(mut self, keys: &[KeyColumn], table: &Table) -> RuleLint {
        self.items.par_sort_unstable();
        let mut lint = RuleLint {
            description: rule::describe(&[keys.to_vec()]),
            counts: self.counts,
            ..RuleLint::default()
        };
        for run in self.items.chunk_by(|a, b| a.0 == b.0) {
            let rows = run.len() as u64;
            lint.distinct += 1;
            if rows > 1 {
                lint.repeated += 1;
                lint.repeated_rows += rows;
                let place = lint.frequent.partition_point(|(most, _)| *most >= rows);
                if place < NAMED_KEYS {
                    let first = run.iter().take(NAMED_ROWS).map(|(_, row)| *row).collect();
                    lint.frequent.insert(place, (rows, first));
                    lint.frequent.truncate(NAMED_KEYS);
                }
            }
        }
        let name = |key: usize| table.schema().field(keys[key].column).name().clone();
        let refused = self.refused.into_iter().map(|(refused, (count, rows))| {
            let (kind, key, by, cause) = match refused {
                KeyError::Empty(key) => ("empty", key, None, None),
                KeyError::Unreadable(key) => {
                    ("malformed", key, Some(keys[key].kind.to_string()), None)
                }
                KeyError::NotNormal(key, n, cause) => {
                    ("malformed", key, Some(keys[key].normalisers[n].name()), Some(cause))
                }
            };
            Finding { kind, column: name(key), by, cause, count, rows }
        });
        let placeholders = self.placeholders.into_iter().map(|((key, text), (count, rows))| {
            let (column, cause) = (name(key), Some(text));
            Finding { kind: "placeholder", column, by: None, cause, count, rows }
        });
        lint.findings = refused.chain(placeholders).collect();
        let columns = keys.iter().zip(self.changed).enumerate();
        lint.columns = columns
            .map(|(i, (key, changed))| ColumnLint {
                name: name(i),
                kind: key.kind,
                changed: key.normalisers.iter().map(Normaliser::name).zip(changed).collect(),
            })
            .collect();
        lint
    }
}

/// Adds what was found in the rows that follow.
impl AddAssign for RuleFindings {
    fn add_assign(&mut self, next: Self) {
        self.items.extend(next.items);
        self.counts += next.counts;
        for (sum, more) in self.changed.iter_mut().flatten().zip(next.changed.iter().flatten()) {
            *sum += more;
        }
        for (kind, (count, rows)) in next.refused {
            add(&mut self.refused, kind, count, &rows);
        }
        for (kind, (count, rows)) in next.placeholders {
            add(&mut self.placeholders, kind, count, &rows);
        }
    }
}

impl Reader<'_> {
    /// The number of rows, and the findings by each rule; `progress` gets the bytes read.
    fn findings(&self, progress: &mut dyn FnMut(u64)) -> Result<(u64, Vec<RuleFindings>), Error> {
        let mut findings: Vec<_> = self.rules.iter().map(|keys| RuleFindings::new(keys)).collect();
        let mut rows = 0;
        let mut scan = self.table.scan(&self.columns())?;
        while let Some(batch) = scan.next()? {
            for (rule, found) in findings.iter_mut().enumerate() {
                *found += self.find(rule, &batch)?;
            }
            rows += batch.rows.num_rows() as u64;
            progress(batch.done_bytes);
        }
        Ok((rows, findings))
    }

    fn find(&self, rule: usize, batch: &Batch) -> Result<RuleFindings, Error> {
        let (keys, dropped) = (&self.rules[rule], &self.dropped[rule]);
        let columns = keys.iter().map(|key| column(batch, key.column, None));
        let columns: Vec<(FieldRef, ArrayRef)> = columns
            .collect::<Result<_, _>>()
            .map_err(|problem| self.table.error(batch, problem))?;
        let rows = batch.rows.num_rows();
        let chunks: Vec<RuleFindings> = (0..rows.div_ceil(ROWS))
            .into_par_iter()
            .map(|chunk| {
                let mut found = RuleFindings::new(keys);
                let mut scratch = Scratch::default();
                for row in chunk * ROWS..rows.min((chunk + 1) * ROWS) {
                    let number = batch.row_number(row);
                    let key = scratch.key(keys, &columns, row);
                    let item = scratch.item();
                    if key.is_ok() && dropped.binary_search(&item).is_ok() {
                        found.counts.repeated += 1;
                        continue;
                    }
                    for &(column, normaliser) in &scratch.changes {
                        found.changed[column][normaliser] += 1;
                    }
                    match key {
                        Ok(()) => {
                            found.items.push((item, number));
                            found.counts += scratch.counts();
                            for (key, (field, array)) in columns.iter().enumerate() {
                                if let Some(Cell::Bytes(bytes)) = cell(field, array, row)
                                    && let Some(text) = placeholder(bytes)
                                {
                                    add(&mut found.placeholders, (key, text), 1, &[number]);
                                }
                            }
                        }
                        Err(refused) => found.refuse(number, refused),
                    }
                }
                found
            })
            .collect();
        let mut all = RuleFindings::new(keys);
        chunks.into_iter().for_each(|found| all += found);
        Ok(all)
    }
}
