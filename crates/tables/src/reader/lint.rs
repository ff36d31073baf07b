//! Lists what a run would find in the keys of a table.

use std::ops::AddAssign;

use super::*;

/// The first rows of each kind that a finding names.
pub const NAMED_ROWS: usize = 5;

/// The findings about a table. No field is in them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lint {
    /// All rows except headers.
    pub rows: u64,
    /// The findings by each rule.
    pub rules: Vec<RuleLint>,
}

/// The findings by one rule. Each row is in one of `counts.keys`, `counts.empty` and
/// `counts.malformed`.
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
    /// ... the rows in which they stand, ...
    pub repeated_rows: u64,
    /// ... and the rows of the key that stands in most.
    pub most_rows: u64,
    /// The key columns, in their order.
    pub columns: Vec<ColumnLint>,
    /// The first rows with an empty key column.
    pub first_empty: Vec<Refusal>,
    /// The first rows with a malformed key column.
    pub first_malformed: Vec<Refusal>,
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

/// A row without a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The row, counted from 0 over all files: [`Table::place`] says where it is.
    pub row: u64,
    /// The name of the key column.
    pub column: String,
    /// The type, or the normaliser with its version, that refuses a malformed field.
    pub by: Option<String>,
}

impl Lint {
    /// Reads the keys of a table by these rules; `progress` gets the bytes read. The items of all
    /// rows are in memory, 16 bytes for each row and rule.
    ///
    /// # Errors
    /// If a file violates a rule of [the crate's documentation](crate#rules) other than those for
    /// empty, malformed and duplicate keys, or a rule does not fit the table.
    pub fn of(table: &Table, rules: &[Rule], progress: &mut dyn FnMut(u64)) -> Result<Self, Error> {
        let reading = Reading {
            rules: rules.to_vec(),
            empty_keys: EmptyKeys::Skip,
            malformed: Malformed::Skip,
            ..Reading::default()
        };
        let reader = Reader::new(table, &reading)?;
        let columns = reader.columns();
        let mut findings: Vec<_> =
            reader.rules.iter().map(|keys| RuleFindings::new(keys)).collect();
        let mut rows = 0;
        let mut scan = table.scan(&columns)?;
        while let Some(batch) = scan.next()? {
            for (keys, found) in reader.rules.iter().zip(&mut findings) {
                *found += reader.find(keys, &batch)?;
            }
            rows += batch.rows.num_rows() as u64;
            progress(batch.done_bytes);
        }
        let rules = reader.rules.iter().zip(findings);
        let rules = rules.map(|(keys, found)| found.finish(keys, table)).collect();
        Ok(Self { rows, rules })
    }
}

/// The findings by one rule in some rows.
#[derive(Default)]
struct RuleFindings {
    items: Vec<Item>,
    counts: RuleCounts,
    /// The rows that each normaliser of each column changed.
    changed: Vec<Vec<u64>>,
    first_empty: Vec<(u64, KeyError)>,
    first_malformed: Vec<(u64, KeyError)>,
}

impl RuleFindings {
    fn new(keys: &[KeyColumn]) -> Self {
        let changed = keys.iter().map(|key| vec![0; key.normalisers.len()]);
        Self { changed: changed.collect(), ..Self::default() }
    }

    fn refuse(&mut self, row: u64, refused: KeyError) {
        let (count, first) = match refused {
            KeyError::Empty(_) => (&mut self.counts.empty, &mut self.first_empty),
            _ => (&mut self.counts.malformed, &mut self.first_malformed),
        };
        *count += 1;
        if first.len() < NAMED_ROWS {
            first.push((row, refused));
        }
    }

    fn finish(mut self, keys: &[KeyColumn], table: &Table) -> RuleLint {
        self.items.par_sort_unstable();
        let runs = self.items.chunk_by(|a, b| a == b).map(|run| run.len() as u64);
        let mut lint = RuleLint {
            description: rule::describe(&[keys.to_vec()]),
            counts: self.counts,
            ..RuleLint::default()
        };
        for rows in runs {
            lint.distinct += 1;
            lint.most_rows = lint.most_rows.max(rows);
            if rows > 1 {
                lint.repeated += 1;
                lint.repeated_rows += rows;
            }
        }
        let name = |key: usize| table.schema().field(keys[key].column).name().clone();
        let refusals = |first: Vec<(u64, KeyError)>| {
            let refusal = |(row, refused)| match refused {
                KeyError::Empty(key) => (row, key, None),
                KeyError::Unreadable(key) => (row, key, Some(keys[key].kind.to_string())),
                KeyError::NotNormal(key, n) => (row, key, Some(keys[key].normalisers[n].name())),
            };
            let refusal = |found| {
                let (row, key, by) = refusal(found);
                let column = name(key);
                Refusal { row, column, by }
            };
            first.into_iter().map(refusal).collect()
        };
        lint.first_empty = refusals(self.first_empty);
        lint.first_malformed = refusals(self.first_malformed);
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
        self.counts.keys += next.counts.keys;
        self.counts.empty += next.counts.empty;
        self.counts.malformed += next.counts.malformed;
        self.counts.changed += next.counts.changed;
        for (sum, more) in self.changed.iter_mut().flatten().zip(next.changed.iter().flatten()) {
            *sum += more;
        }
        for (first, more) in [
            (&mut self.first_empty, next.first_empty),
            (&mut self.first_malformed, next.first_malformed),
        ] {
            let missing = NAMED_ROWS - first.len();
            first.extend(more.into_iter().take(missing));
        }
    }
}

impl Reader<'_> {
    /// The findings in a batch.
    fn find(&self, keys: &[KeyColumn], batch: &Batch) -> Result<RuleFindings, Error> {
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
                    let key = scratch.key(keys, &columns, row);
                    for &(column, normaliser) in &scratch.changes {
                        found.changed[column][normaliser] += 1;
                    }
                    match key {
                        Ok(changed) => {
                            found.items.push(scratch.item());
                            found.counts.keys += 1;
                            found.counts.changed += u64::from(changed);
                        }
                        Err(refused) => found.refuse(batch.row_number(row), refused),
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
