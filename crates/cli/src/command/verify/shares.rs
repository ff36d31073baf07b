//! Folders of `psi --result shares`: that the shares of both sides fit together.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use volery_channel::Role;
use volery_field::{F2, Ring, Z64};
use volery_matching::totals::decimal;
use zeroize::Zeroizing;

use super::{Arguments, CHUNK};
use crate::command::files::file_name;
use crate::command::options::Reporter;
use crate::command::shares::description::{Column, Description};
use crate::exit::{Failure, Status};
use crate::npy::{Form, Header, Reader, read_signed};
use crate::report::{Report, peak_memory};

/// The description in a folder.
const DESCRIPTION: &str = "shares.json";

/// Whether the folders are those of shares.
///
/// # Errors
/// If one of them is, and the other one is not.
pub(super) fn are_in(sender: &Path, receiver: &Path) -> Result<bool, Failure> {
    let [left, right] = [sender, receiver].map(|folder| folder.join(DESCRIPTION).exists());
    if left == right {
        return Ok(left);
    }
    let (with, without) = if left {
        (sender, receiver)
    } else {
        (receiver, sender)
    };
    let what = format_args!(
        "{} holds shares, {} does not",
        with.display(),
        without.display()
    );
    Err(Failure::new(Status::Other, what).with_hint("the two folders must come from the same run"))
}

/// A folder with its description.
struct Folder<'a> {
    path: &'a Path,
    description: Description,
}

impl<'a> Folder<'a> {
    fn open(path: &'a Path, role: Role) -> Result<Self, Failure> {
        let file = path.join(DESCRIPTION);
        let bytes = std::fs::read(&file).map_err(|error| Failure::file(&file, error))?;
        let parsed = Description::parse(&bytes);
        let description = parsed.map_err(|what| Failure::file(&file, what))?;
        if description.role != role.name() {
            let what = format!("these are the shares of the {}", description.role);
            return Err(Failure::file(path, what).with_hint(
                "give the sender's folder first: volery verify DIR_SENDER DIR_RECEIVER",
            ));
        }
        Ok(Self { path, description })
    }

    fn array(&self, name: &str, form: Form) -> Result<Array, Failure> {
        let path = self.path.join(file_name(name));
        let reader = Reader::open(&path).map_err(|error| Failure::file(&path, error))?;
        let n = self.description.places;
        let (expected, header) = (Header { n, form }, reader.header());
        if *header != expected {
            let what = format!("holds {header}, but {DESCRIPTION} implies {expected}");
            return Err(Failure::file(&path, what));
        }
        Ok(Array { path, reader })
    }
}

/// An array being read.
struct Array {
    path: PathBuf,
    reader: Reader,
}

impl Array {
    fn read<R: Ring>(&mut self, out: &mut [R]) -> Result<(), Failure> {
        let read = self.reader.read(out);
        read.map_err(|error| Failure::file(&self.path, error))
    }
}

/// Names the first thing in which the two sides differ.
fn agree(sender: &Folder<'_>, receiver: &Folder<'_>) -> Result<(), Failure> {
    let [left, right] = [sender, receiver].map(|folder| {
        let Description {
            session,
            order,
            places,
            sender_keys,
            receiver_keys,
            columns,
            ..
        } = &folder.description;
        let columns = columns.iter().map(|column| {
            let Column {
                array,
                decimals,
                bound,
                ..
            } = column;
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

/// What is wrong at a place, if anything.
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
        let Description {
            places,
            sender_keys,
            receiver_keys,
            ..
        } = *self.description;
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

/// Verifies two folders of shares; returns the report.
pub(super) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<String, Failure> {
    let start = Instant::now();
    if arguments.ring.is_some() {
        let what = "the folders hold shares, which have no ring to be named; remove --ring";
        return Err(Failure::usage("--ring", what));
    }
    let place = arguments.common.prepare_report(reporter)?;
    let sender = Folder::open(&arguments.sender, Role::Sender)?;
    let receiver = Folder::open(&arguments.receiver, Role::Receiver)?;
    agree(&sender, &receiver)?;
    let description = &sender.description;
    let n = description.places;
    let open = |name: &str, form: Form| -> Result<[Array; 2], Failure> {
        Ok([sender.array(name, form)?, receiver.array(name, form)?])
    };
    let mut matches = open("match", Form::Bit)?;
    let columns = description.columns.iter();
    let columns = columns.map(|column| open(&column.array, Form::Word));
    let mut columns = columns.collect::<Result<Vec<_>, _>>()?;
    let path = receiver.path.join(file_name("row"));
    let rows = read_signed(&path).map_err(|error| Failure::file(&path, error))?;
    if rows.len() as u64 != n {
        let what = format!(
            "holds {} numbers, but {DESCRIPTION} implies {n}",
            rows.len()
        );
        return Err(Failure::file(&path, what));
    }
    let mut checks = Checks {
        description,
        rows,
        seen: HashSet::new(),
        common: 0,
    };
    let progress = reporter.progress(n);
    let (mut done, mut wrong) = (0, None);
    let size = usize::try_from(n).unwrap_or(CHUNK).min(CHUNK);
    let [mut ours, mut theirs] = [(); 2].map(|()| Zeroizing::new(vec![F2::new(false); size]));
    let mut sums = vec![Zeroizing::new(vec![Z64::new(0); size]); columns.len()];
    let mut other = Zeroizing::new(vec![Z64::new(0); size]);
    while (done as u64) < n && wrong.is_none() {
        let now = usize::try_from(n - done as u64).unwrap_or(CHUNK).min(CHUNK);
        let [of_sender, of_receiver] = &mut matches;
        of_sender.read(&mut ours[..now])?;
        of_receiver.read(&mut theirs[..now])?;
        for ([of_sender, of_receiver], sums) in columns.iter_mut().zip(&mut sums) {
            of_sender.read(&mut sums[..now])?;
            of_receiver.read(&mut other[..now])?;
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
    let mut report = Report::new("verify", reporter);
    report.n = Some(n);
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    report.peak_rss_bytes = peak_memory();
    let whole = wrong.is_none().then(|| checks.all()).flatten();
    report.result = serde_json::Map::from_iter([
        ("protocol".to_owned(), "shares".into()),
        ("checked".to_owned(), done.into()),
        (
            "common".to_owned(),
            wrong.is_none().then_some(checks.common).into(),
        ),
        (
            "first_wrong".to_owned(),
            wrong.as_ref().map(|(at, _)| *at).into(),
        ),
    ]);
    let json = place.write(&report)?;
    let what = match (wrong, whole) {
        (Some((at, what)), _) => format!("the shares do not fit together at place {at}: {what}"),
        (None, Some(what)) => format!("the shares do not fit together: {what}"),
        (None, None) => {
            if !arguments.common.quiet {
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
