//! Folders and Parquet files of `psi --result shares`: that the shares of both sides fit together.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt8Type, UInt64Type};
use arrow_array::{Array as _, ArrowPrimitiveType};
use volery_channel::Role;
use volery_field::{F2, Ring, Z64};
use volery_matching::totals::decimal;
use volery_os::time::Instant;
use volery_tables::{Format, Inputs, Table};
use zeroize::Zeroizing;

use super::{Arguments, differ};
use crate::failure::{Failure, Result, Status};
use crate::files::file_name;
use crate::npy::{Form, Header, Reader};
use crate::report::Report;
use crate::reporter::Reporter;
use crate::shares::NOTE;
use crate::shares::description::{self, Description};

const DESCRIPTION: &str = "shares.json";

fn has_shares(path: &Path) -> bool {
    path.is_file() || path.join(DESCRIPTION).exists()
}

/// Whether the folders, or files, are those of shares.
pub(crate) fn are_in(sender: &Path, receiver: &Path) -> Result<bool> {
    let [left, right] = [sender, receiver].map(has_shares);
    if left == right {
        return Ok(left);
    }
    let (with, without) = if left { (sender, receiver) } else { (receiver, sender) };
    let what = format_args!("{} holds shares, {} does not", with.display(), without.display());
    Err(Failure::new(Status::Other, what).with_hint("the two folders must come from the same run"))
}

/// A folder or a Parquet file, with its description.
struct Folder<'a> {
    path: &'a Path,
    description: Description,
    table: Option<Table>,
}

impl<'a> Folder<'a> {
    fn open(path: &'a Path, role: Role) -> Result<Self> {
        let (file, bytes, table) = if path.is_file() {
            let inputs = Inputs {
                paths: vec![path.to_owned()],
                format: Some(Format::Parquet),
                ..Inputs::default()
            };
            let table = Table::open(&inputs)?;
            let bytes = table.note(NOTE).map(|note| note.as_bytes().to_vec());
            let bytes = bytes.ok_or_else(|| {
                let what = format!("its metadata has no {NOTE}");
                Failure::file(path, what)
                    .with_hint("give files that volery psi --result shares wrote")
            })?;
            (path.to_owned(), bytes, Some(table))
        } else {
            let file = path.join(DESCRIPTION);
            let bytes = std::fs::read(&file).map_err(|error| Failure::file(&file, error))?;
            (file, bytes, None)
        };
        let parsed = Description::parse(&bytes);
        let description = parsed.map_err(|what| Failure::file(&file, what))?;
        if description.role != role.name() {
            let what = format!("these are the shares of the {}", description.role);
            return Err(Failure::file(path, what).with_hint(
                "give the sender's folder first: volery verify DIR_SENDER DIR_RECEIVER",
            ));
        }
        Ok(Self { path, description, table })
    }

    /// The numbers of an array: those of a file have this form, those of a table are `T`.
    fn array<R: Ring, T: ArrowPrimitiveType>(
        &self,
        name: &str,
        form: Form,
        element: impl Fn(T::Native) -> Option<R>,
    ) -> Result<Zeroizing<Vec<R>>> {
        let n = self.description.places;
        let Some(table) = &self.table else {
            let path = self.path.join(file_name(name));
            let failed = |error| Failure::file(&path, error);
            let mut reader = Reader::open(&path).map_err(failed)?;
            let (expected, header) = (Header { n, form }, reader.header());
            if *header != expected {
                let what = format!("holds {header}, but {DESCRIPTION} implies {expected}");
                return Err(Failure::file(&path, what));
            }
            // The file has this length.
            let mut all = Zeroizing::new(vec![R::ZERO; n as usize]);
            reader.read(&mut all).map_err(failed)?;
            return Ok(all);
        };
        let found = table.schema().column_with_name(name);
        let Some((place, _)) = found.filter(|(_, field)| *field.data_type() == T::DATA_TYPE) else {
            let what = format!("has no column {name} of type {}", T::DATA_TYPE);
            return Err(Failure::file(self.path, what));
        };
        let wrong = |what: &str| Failure::file(self.path, format!("column {name} has {what}"));
        let mut columns = Vec::new();
        let mut scan = table.scan(&[place])?;
        while let Some(batch) = scan.next()? {
            columns.push(Arc::clone(batch.rows.column(0)));
        }
        // Not as many as are announced, but as many as there are.
        let count = columns.iter().map(|column| column.len()).sum();
        let mut all = Zeroizing::new(Vec::with_capacity(count));
        for column in &columns {
            if column.null_count() > 0 {
                return Err(wrong("a place without a number"));
            }
            for number in column.as_primitive::<T>().values() {
                let number = element(*number);
                all.push(number.ok_or_else(|| wrong("a number that is neither 0 nor 1"))?);
            }
        }
        match (count as u64).cmp(&n) {
            Ordering::Equal => Ok(all),
            Ordering::Less => Err(wrong("fewer places than its metadata")),
            Ordering::Greater => Err(wrong(&format!("{count} places or more, its metadata {n}"))),
        }
    }

    /// This side's shares of whether keys are common, and of a column.
    fn bits(&self) -> Result<Zeroizing<Vec<F2>>> {
        let bit = |byte| (byte < 2).then(|| F2::new(byte == 1));
        self.array::<F2, UInt8Type>("match", Form::Bit, bit)
    }

    fn words(&self, name: &str) -> Result<Zeroizing<Vec<Z64>>> {
        self.array::<Z64, UInt64Type>(name, Form::Word, |word| Some(Z64::new(word)))
    }

    /// The numbers of the receiver's rows.
    fn rows(&self) -> Result<Vec<i64>> {
        let signed = |row| Some(Z64::new(row as u64));
        let rows = self.array::<Z64, Int64Type>("row", Form::Signed, signed)?;
        Ok(rows.iter().map(|row| row.value() as i64).collect())
    }
}

/// Names the first thing in which the two sides differ.
fn agree(sender: &Folder<'_>, receiver: &Folder<'_>) -> Result<()> {
    let [left, right] = [sender, receiver].map(|folder| {
        let Description { session, order, places, sender_keys, receiver_keys, columns, .. } =
            &folder.description;
        let columns = columns.iter().map(|column| {
            let description::Column { array, decimals, bound, .. } = column;
            format!("{array} of at most {bound} with {decimals} decimals")
        });
        [
            ("session", session.clone()),
            ("order", order.clone()),
            ("places", places.to_string()),
            ("keys of the sender", sender_keys.to_string()),
            ("keys of the receiver", receiver_keys.to_string()),
            ("columns", columns.collect::<Vec<_>>().join(", ")),
        ]
    });
    let found = left.iter().zip(&right).find(|(left, right)| left != right);
    let Some(((what, left), (_, right))) = found else {
        return Ok(());
    };
    Err(differ([sender.path, receiver.path], what, [left, right]))
}

/// The checks of the places, one after the other.
struct Checks<'a> {
    description: &'a Description,
    rows: Vec<i64>,
    seen: HashSet<i64>,
    common: u64,
}

impl Checks<'_> {
    /// Looks at a place: whether its key is common, and the values of its columns.
    fn place(
        &mut self,
        place: usize,
        common: bool,
        values: impl Iterator<Item = i64>,
    ) -> Option<String> {
        let row = self.rows[place];
        let in_order = self.description.order == "rows";
        if row < -1 || (in_order && row < 0) {
            return Some(format!("its row is {row}"));
        }
        if row >= 0 && !self.seen.insert(row) {
            return Some(format!("its row, {row}, has another place already"));
        }
        if in_order && place > 0 && self.rows[place - 1] > row {
            return Some(format!("its row, {row}, comes after a later one"));
        }
        if common && row < 0 {
            return Some("it has no row, and a common key".to_owned());
        }
        self.common += u64::from(common);
        for (column, value) in self.description.columns.iter().zip(values) {
            let what = &column.array;
            let number = decimal(value, column.decimals);
            if !common && value != 0 {
                return Some(format!("{what} is {number} where no key is common"));
            }
            if value.unsigned_abs() > column.bound {
                return Some(format!("{what} is {number}, beyond its bound"));
            }
        }
        None
    }

    /// Looks at all places together.
    fn all(&self) -> Option<String> {
        let Description { places, sender_keys, receiver_keys, .. } = *self.description;
        let rows = self.seen.len() as u64;
        // Without a key at either side there are no bins.
        if rows != receiver_keys && (places > 0 || sender_keys > 0 && receiver_keys > 0) {
            return Some(format!("{rows} places have a row, of {receiver_keys} keys"));
        }
        let common = self.common;
        (common > sender_keys.min(receiver_keys))
            .then(|| format!("{common} common keys are more than a side has"))
    }
}

/// Verifies two folders or files of shares; returns the report.
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<String> {
    let start = Instant::now();
    if arguments.options.ring.is_some() {
        let what = "the folders hold shares, which have no ring to be named; remove --ring";
        return Err(Failure::usage("--ring", what));
    }
    let place = arguments.common.prepare_report(reporter)?;
    let sender = Folder::open(&arguments.sender, Role::Sender)?;
    let receiver = Folder::open(&arguments.receiver, Role::Receiver)?;
    agree(&sender, &receiver)?;
    let description = &sender.description;
    let n = description.places;
    let (ours, theirs) = (sender.bits()?, receiver.bits()?);
    let columns = description.columns.iter().map(|column| {
        let mut sums = sender.words(&column.array)?;
        Z64::add_slice(&mut sums, &receiver.words(&column.array)?);
        Ok(sums)
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let mut checks =
        Checks { description, rows: receiver.rows()?, seen: HashSet::new(), common: 0 };
    let progress = reporter.progress(n);
    let wrong = (0..ours.len()).find_map(|at| {
        let values = columns.iter().map(|column| column[at].value() as i64);
        let what = checks.place(at, ours[at] != theirs[at], values)?;
        Some((at, what))
    });
    let done = wrong.as_ref().map_or(n, |(at, _)| *at as u64 + 1);
    progress.inc(done);
    progress.finish_and_clear();
    let mut report = Report::new("verify", reporter);
    report.n = Some(n);
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    let whole = wrong.is_none().then(|| checks.all()).flatten();
    report.result = serde_json::Map::from_iter([
        ("command".to_owned(), "shares".into()),
        ("checked".to_owned(), done.into()),
        ("common".to_owned(), wrong.is_none().then_some(checks.common).into()),
        ("first_wrong".to_owned(), wrong.as_ref().map(|(at, _)| *at).into()),
    ]);
    let json = place.write(&report)?;
    let what = match (wrong, whole) {
        (Some((at, what)), _) => format!("the shares do not fit together at place {at}: {what}"),
        (None, Some(what)) => format!("the shares do not fit together: {what}"),
        (None, None) => {
            if !reporter.is_quiet() {
                let text = format!(
                    "ok: shares of {n} places and {} columns fit together; {} common keys\n",
                    description.columns.len(),
                    checks.common
                );
                reporter.output(&text)?;
            }
            return Ok(json);
        }
    };
    Err(Failure::new(Status::Other, what))
}
