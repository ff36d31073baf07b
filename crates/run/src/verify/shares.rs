//! Folders and Parquet files of `psi --result shares`: that the shares of both sides fit together.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt8Type, UInt64Type};
use arrow_array::{Array as _, ArrayRef, ArrowPrimitiveType, new_empty_array};
use arrow_schema::DataType;
use volery_channel::Role;
use volery_field::{F2, Ring, Z64};
use volery_matching::totals::decimal;
use volery_tables::{Format, Inputs, Scan, Table};
use zeroize::Zeroizing;

use super::{Arguments, CHUNK};
use crate::failure::{Failure, Status};
use crate::files::file_name;
use crate::memory::peak_memory;
use crate::npy::{Form, Header, Reader, read_signed};
use crate::report::Report;
use crate::reporter::Reporter;
use crate::shares::NOTE;
use crate::shares::description::{self, Description};

/// The description in a folder.
const DESCRIPTION: &str = "shares.json";

/// Whether this is a Parquet file, or a folder of shares.
fn has_shares(path: &Path) -> bool {
    path.is_file() || path.join(DESCRIPTION).exists()
}

/// Whether the folders, or files, are those of shares.
///
/// # Errors
/// If one of them is, and the other one is not.
pub(crate) fn are_in(sender: &Path, receiver: &Path) -> Result<bool, Failure> {
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
    fn open(path: &'a Path, role: Role) -> Result<Self, Failure> {
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

    fn array(&self, name: &str, form: Form) -> Result<Array<'_>, Failure> {
        if let Some(table) = &self.table {
            let kind = match form {
                Form::Bit => DataType::UInt8,
                _ => DataType::UInt64,
            };
            let column = Column::open(self.path, table, name, &kind)?;
            return Ok(Array::Column(Box::new(column)));
        }
        let path = self.path.join(file_name(name));
        let reader = Reader::open(&path).map_err(|error| Failure::file(&path, error))?;
        let n = self.description.places;
        let (expected, header) = (Header { n, form }, reader.header());
        if *header != expected {
            let what = format!("holds {header}, but {DESCRIPTION} implies {expected}");
            return Err(Failure::file(&path, what));
        }
        Ok(Array::File { path, reader })
    }

    /// The numbers of the receiver's rows.
    fn rows(&self) -> Result<Vec<i64>, Failure> {
        let n = self.description.places;
        if let Some(table) = &self.table {
            let mut column = Column::open(self.path, table, "row", &DataType::Int64)?;
            let mut rows = Vec::new();
            // Not as many as are announced, but as many as there are.
            while column.fill()? {
                rows.extend_from_slice(column.rest::<Int64Type>());
                column.at = column.array.len();
            }
            return match rows.len() as u64 == n {
                true => Ok(rows),
                false => Err(column.other_length(rows.len() as u64, n)),
            };
        }
        let path = self.path.join(file_name("row"));
        let rows = read_signed(&path).map_err(|error| Failure::file(&path, error))?;
        if rows.len() as u64 != n {
            let what = format!("holds {} numbers, but {DESCRIPTION} implies {n}", rows.len());
            return Err(Failure::file(&path, what));
        }
        Ok(rows)
    }
}

/// An array being read.
enum Array<'a> {
    File { path: PathBuf, reader: Reader },
    Column(Box<Column<'a>>),
}

impl Array<'_> {
    fn bits(&mut self, out: &mut [F2]) -> Result<(), Failure> {
        let bit = |byte| match byte {
            0 => Some(F2::new(false)),
            1 => Some(F2::new(true)),
            _ => None,
        };
        match self {
            Self::File { path, reader } => {
                reader.read(out).map_err(|error| Failure::file(path, error))
            }
            Self::Column(column) => column.read::<UInt8Type, _>(out, bit),
        }
    }

    fn words(&mut self, out: &mut [Z64]) -> Result<(), Failure> {
        match self {
            Self::File { path, reader } => {
                reader.read(out).map_err(|error| Failure::file(path, error))
            }
            Self::Column(column) => column.read::<UInt64Type, _>(out, |word| Some(Z64::new(word))),
        }
    }

    /// Checks that nothing is left when all places were read.
    fn end(&mut self, n: u64) -> Result<(), Failure> {
        match self {
            // The header has said so.
            Self::File { .. } => Ok(()),
            Self::Column(column) => match column.fill()? {
                false => Ok(()),
                true => Err(column.other_length(n + column.array.len() as u64, n)),
            },
        }
    }
}

/// A column of a Parquet file being read.
struct Column<'a> {
    path: &'a Path,
    name: String,
    scan: Scan<'a>,
    /// The batch at hand, and how much of it was read.
    array: ArrayRef,
    at: usize,
}

impl<'a> Column<'a> {
    fn open(
        path: &'a Path,
        table: &'a Table,
        name: &str,
        kind: &DataType,
    ) -> Result<Self, Failure> {
        let found = table.schema().column_with_name(name);
        let Some((place, _)) = found.filter(|(_, field)| field.data_type() == kind) else {
            let what = format!("has no column {name} of type {kind}");
            return Err(Failure::file(path, what));
        };
        Ok(Self {
            path,
            name: name.to_owned(),
            scan: table.scan(&[place])?,
            array: new_empty_array(kind),
            at: 0,
        })
    }

    /// Whether something is left; reads the next batch where the one at hand was read.
    fn fill(&mut self) -> Result<bool, Failure> {
        if self.at < self.array.len() {
            return Ok(true);
        }
        let Some(batch) = self.scan.next()? else {
            return Ok(false);
        };
        self.array = Arc::clone(batch.rows.column(0));
        self.at = 0;
        if self.array.null_count() > 0 {
            let what = format!("column {} has a place without a number", self.name);
            return Err(Failure::file(self.path, what));
        }
        Ok(true)
    }

    /// The part of the batch at hand that was not read.
    fn rest<T: ArrowPrimitiveType>(&self) -> &[T::Native] {
        &self.array.as_primitive::<T>().values()[self.at..]
    }

    fn read<T: ArrowPrimitiveType, E>(
        &mut self,
        out: &mut [E],
        element: impl Fn(T::Native) -> Option<E>,
    ) -> Result<(), Failure> {
        let mut filled = 0;
        while filled < out.len() {
            if !self.fill()? {
                let what = format!("column {} has fewer places than its metadata", self.name);
                return Err(Failure::file(self.path, what));
            }
            let rest = self.rest::<T>();
            let now = rest.len().min(out.len() - filled);
            for (out, number) in out[filled..].iter_mut().zip(&rest[..now]) {
                *out = element(*number).ok_or_else(|| {
                    let what = format!("column {} has a number that is neither 0 nor 1", self.name);
                    Failure::file(self.path, what)
                })?;
            }
            filled += now;
            self.at += now;
        }
        Ok(())
    }

    fn other_length(&self, found: u64, n: u64) -> Failure {
        let name = &self.name;
        let what = format!("column {name} has {found} places or more, its metadata {n}");
        Failure::file(self.path, what)
    }
}

/// Names the first thing in which the two sides differ.
fn agree(sender: &Folder<'_>, receiver: &Folder<'_>) -> Result<(), Failure> {
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
    let differ = left.iter().zip(&right).find(|(left, right)| left != right);
    let Some(((what, left), (_, right))) = differ else {
        return Ok(());
    };
    let what = format_args!(
        "{} and {} differ in {what}: {left} and {right}",
        sender.path.display(),
        receiver.path.display()
    );
    Err(Failure::new(Status::Other, what).with_hint("the two folders must come from the same run"))
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
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<String, Failure> {
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
    let open = |name: &str, form: Form| -> Result<[Array<'_>; 2], Failure> {
        Ok([sender.array(name, form)?, receiver.array(name, form)?])
    };
    let mut matches = open("match", Form::Bit)?;
    let columns = description.columns.iter();
    let columns = columns.map(|column| open(&column.array, Form::Word));
    let mut columns = columns.collect::<Result<Vec<_>, _>>()?;
    let mut checks =
        Checks { description, rows: receiver.rows()?, seen: HashSet::new(), common: 0 };
    let progress = reporter.progress(n);
    let (mut done, mut wrong) = (0, None);
    let size = usize::try_from(n).unwrap_or(CHUNK).min(CHUNK);
    let [mut ours, mut theirs] = [(); 2].map(|()| Zeroizing::new(vec![F2::new(false); size]));
    let mut sums = vec![Zeroizing::new(vec![Z64::new(0); size]); columns.len()];
    let mut other = Zeroizing::new(vec![Z64::new(0); size]);
    while (done as u64) < n && wrong.is_none() {
        let now = usize::try_from(n - done as u64).unwrap_or(CHUNK).min(CHUNK);
        let [of_sender, of_receiver] = &mut matches;
        of_sender.bits(&mut ours[..now])?;
        of_receiver.bits(&mut theirs[..now])?;
        for ([of_sender, of_receiver], sums) in columns.iter_mut().zip(&mut sums) {
            of_sender.words(&mut sums[..now])?;
            of_receiver.words(&mut other[..now])?;
            Z64::add_slice(&mut sums[..now], &other[..now]);
        }
        wrong = (0..now).find_map(|at| {
            let values = sums.iter().map(|column| column[at].value() as i64);
            let what = checks.place(done + at, ours[at] != theirs[at], values)?;
            Some((done + at, what))
        });
        done += now;
        progress.inc(now as u64);
    }
    progress.finish_and_clear();
    if wrong.is_none() {
        let all = columns.iter_mut().chain([&mut matches]).flatten();
        all.into_iter().try_for_each(|array| array.end(n))?;
    }
    let mut report = Report::new("verify", reporter);
    report.n = Some(n);
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    report.peak_rss_bytes = peak_memory();
    let whole = wrong.is_none().then(|| checks.all()).flatten();
    report.result = serde_json::Map::from_iter([
        ("protocol".to_owned(), "shares".into()),
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
