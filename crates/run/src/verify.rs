//! Verification: checks that two output folders hold the correlations or the shares they claim.

mod shares;

use std::path::{Path, PathBuf};

use volery_field::{ExtensionOf, Ring};
use volery_options::{NamedValues, SetByName};
use volery_os::time::Instant;
use zeroize::Zeroizing;

use crate::failure::{Failure, Result, Status};
use crate::files::file_name;
use crate::npy::{Form, Header, Reader};
use crate::options::{Common, fill};
use crate::party::{Correlation, Cot, Party, Vole};
use crate::report::Report;
use crate::reporter::{Bar, Reporter};
use crate::ring::{RingName, with_ring};

/// Elements of each array in memory at a time.
const CHUNK: usize = 1 << 16;

volery_options::options! {
    /// The options of a verification alone.
    pub struct VerifyOptions {
        /// Ring of folders of 'vole' that have no report.json
        once ring: RingName ["Protocol", "RING", RingName::of, RingName::ALLOWED];
    }
}

/// The folders to verify, and the options.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// The sender's folder.
    pub sender: PathBuf,
    /// The receiver's folder.
    pub receiver: PathBuf,
    /// Its own options.
    pub options: VerifyOptions,
    /// The options of every run.
    pub common: Common,
}

impl Arguments {
    /// The options of a caller for the folders of sender and receiver.
    pub(crate) fn by_name([sender, receiver]: [PathBuf; 2], named: &NamedValues) -> Result<Self> {
        let mut all = Self { sender, receiver, ..Self::default() };
        let mut sets: [&mut dyn SetByName; 3] =
            [&mut all.options, &mut all.common.run, &mut all.common.report];
        fill(named, &mut sets, &[])?;
        Ok(all)
    }
}

/// The findings of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Number of correlations checked.
    pub checked: u64,
    /// Number of correlations that do not hold.
    pub wrong: u64,
    /// Index of the first that does not hold.
    pub first_wrong: Option<u64>,
}

impl Findings {
    /// Checks for the next elements that the key holder's column equals `u` times the key plus the
    /// other column, which is overwritten.
    pub fn check<B: Ring, R: ExtensionOf<B>>(
        &mut self,
        key: R,
        u: &[B],
        other: &mut [R],
        of_key_holder: &[R],
    ) {
        R::axpy_base(other, key, u);
        for (index, (left, right)) in of_key_holder.iter().zip(&*other).enumerate() {
            if left != right {
                self.wrong += 1;
                self.first_wrong.get_or_insert(self.checked + index as u64);
            }
        }
        self.checked += of_key_holder.len() as u64;
    }

    /// Checks that the relation held everywhere.
    pub fn verdict(&self, relation: &str) -> Result<()> {
        let Some(first) = self.first_wrong else {
            return Ok(());
        };
        Err(Failure::new(
            Status::Other,
            format_args!(
                "{relation} does not hold for {} of {} correlations, the first at index {first}",
                self.wrong, self.checked
            ),
        ))
    }
}

/// Verifies two folders; returns the report.
///
/// # Errors
/// Any error that ends the verification; so is a relation that does not hold.
pub fn run(arguments: &Arguments, reporter: &Reporter) -> Result<String> {
    if shares::are_in(&arguments.sender, &arguments.receiver)? {
        return shares::run(arguments, reporter);
    }
    let folders = Folders {
        sender: Folder::open(&arguments.sender, "sender")?,
        receiver: Folder::open(&arguments.receiver, "receiver")?,
    };
    folders.agree()?;
    if folders.hold_cot() {
        if arguments.options.ring.is_some() {
            let what = "the folders hold correlated OT, which has a fixed ring; remove --ring";
            return Err(Failure::usage("--ring", what));
        }
        return verify::<Cot>(arguments, &folders, reporter);
    }
    let ring = folders.ring(arguments.options.ring)?;
    with_ring!(ring, R => verify::<Vole<R>>(arguments, &folders, reporter))
}

/// Verifies folders that hold the correlations `K`.
fn verify<K: Correlation>(
    arguments: &Arguments,
    folders: &Folders<'_>,
    reporter: &Reporter,
) -> Result<String> {
    let start = Instant::now();
    let place = arguments.common.prepare_report(reporter)?;
    let whole = Arrays::open::<K>(folders)?;
    let progress = reporter.progress(whole.n());
    let findings = whole.check::<K::Base, K::Ring>(&progress)?;
    progress.finish_and_clear();

    let mut report = Report::new("verify", reporter);
    report.n = Some(findings.checked);
    report.ring = Some(K::Base::NAME.to_owned());
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    report.result = serde_json::Map::from_iter([
        ("command".to_owned(), K::Sender::PROTOCOL.into()),
        ("checked".to_owned(), findings.checked.into()),
        ("wrong".to_owned(), findings.wrong.into()),
        ("first_wrong".to_owned(), findings.first_wrong.into()),
    ]);
    let json = place.write(&report)?;
    findings.verdict(K::RELATION)?;
    if !reporter.is_quiet() {
        let what = match K::Base::BITS {
            1 => "correlated OTs".to_owned(),
            _ => format!("correlations over {}", K::Base::NAME),
        };
        let (relation, n) = (K::RELATION, findings.checked);
        reporter.output(&format!("ok: {relation} holds for all {n} {what}\n"))?;
    }
    Ok(json)
}

/// One output folder and its report.
struct Folder<'a> {
    path: &'a Path,
    report: Option<Report>,
}

impl<'a> Folder<'a> {
    fn open(path: &'a Path, role: &str) -> Result<Self> {
        let report_path = path.join("report.json");
        let report: Option<Report> = match std::fs::read(&report_path) {
            Ok(bytes) => Some(serde_json::from_slice(&bytes).map_err(|error| {
                Failure::file(&report_path, format_args!("not a report: {error}"))
            })?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(Failure::file(&report_path, error)),
        };
        if let Some(report) = &report
            && report.role.as_deref() != Some(role)
        {
            return Err(Failure::file(
                path,
                format_args!(
                    "this is the folder of a {}, not of a {role}",
                    report.role.as_deref().unwrap_or("run without a role")
                ),
            )
            .with_hint("give the sender's folder first: volery verify DIR_SENDER DIR_RECEIVER"));
        }
        Ok(Self { path, report })
    }

    fn claims(&self, what: impl Fn(&Report) -> Option<String>) -> Option<String> {
        self.report.as_ref().and_then(what)
    }
}

/// Both folders.
struct Folders<'a> {
    sender: Folder<'a>,
    receiver: Folder<'a>,
}

impl Folders<'_> {
    /// Checks that the two reports are consistent.
    fn agree(&self) -> Result<()> {
        let session = |report: &Report| Some(report.result.get("session")?.as_str()?.to_owned());
        for (what, left, right) in [
            (
                "command",
                self.sender.claims(|r| Some(r.command.clone())),
                self.receiver.claims(|r| Some(r.command.clone())),
            ),
            (
                "ring",
                self.sender.claims(|r| r.ring.clone()),
                self.receiver.claims(|r| r.ring.clone()),
            ),
            ("session", self.sender.claims(session), self.receiver.claims(session)),
        ] {
            if let (Some(left), Some(right)) = (left, right)
                && left != right
            {
                return Err(differ([self.sender.path, self.receiver.path], what, [&left, &right]));
            }
        }
        Ok(())
    }

    /// Whether the folders hold correlated OT: by their reports, or without reports by the file
    /// that only COT has.
    fn hold_cot(&self) -> bool {
        let folders = [&self.sender, &self.receiver];
        let claim =
            folders.iter().find_map(|folder| folder.claims(|report| Some(report.command.clone())));
        let delta = |folder: &&Folder<'_>| folder.path.join(file_name("delta")).exists();
        claim.map_or_else(|| folders.iter().any(delta), |claim| claim == "cot")
    }

    /// The ring of a VOLE, after checking the option against the folders.
    fn ring(&self, given: Option<RingName>) -> Result<RingName> {
        let claimed = self
            .sender
            .claims(|r| r.ring.clone())
            .or(self.receiver.claims(|r| r.ring.clone()))
            .map(|name| {
                RingName::of(name.as_ref()).map_err(|_| {
                    Failure::file(&self.sender.path.join("report.json"), "names an unknown ring")
                })
            })
            .transpose()?;
        match (claimed, given) {
            (Some(claimed), Some(given)) if claimed != given => Err(Failure::usage(
                "--ring",
                format_args!("{}, but the folders hold {}", given.name(), claimed.name()),
            )),
            (Some(ring), _) | (None, Some(ring)) => Ok(ring),
            (None, None) => match Array::open(&self.sender, "u")?.reader.header().form {
                Form::Pair => Ok(RingName::Gf128),
                _ => Err(Failure::usage(
                    "--ring",
                    "required: the folders have no report.json that names the ring",
                )
                .with_hint("give --ring fp61 or --ring z64")),
            },
        }
    }
}

/// The failure of two folders that are not of one run.
fn differ([one, other]: [&Path; 2], what: &str, [left, right]: [&str; 2]) -> Failure {
    let (one, other) = (one.display(), other.display());
    let what = format_args!("{one} and {other} differ in {what}: {left} and {right}");
    Failure::new(Status::Other, what).with_hint("the two folders must come from the same run")
}

/// An array being read, with its path for error messages.
struct Array {
    path: PathBuf,
    reader: Reader,
}

impl Array {
    fn open(folder: &Folder<'_>, letter: &str) -> Result<Self> {
        let path = folder.path.join(file_name(letter));
        let reader = Reader::open(&path).map_err(|error| Failure::file(&path, error))?;
        Ok(Self { path, reader })
    }

    /// The two arrays of one party: its key or its values, and its column.
    fn both<E: Party>(folder: &Folder<'_>) -> Result<(Self, Self)> {
        let own = E::KEY.or(E::VALUES).unwrap_or_default();
        Ok((Self::open(folder, own)?, Self::open(folder, E::COLUMN)?))
    }

    fn read<R: Ring>(&mut self, out: &mut [R]) -> Result<()> {
        self.reader.read(out).map_err(|error| Failure::file(&self.path, error))
    }
}

/// All arrays of a run, with consistent headers.
struct Arrays {
    key: Array,
    values: Array,
    /// The columns of the key holder and of the other party.
    columns: [Array; 2],
}

impl Arrays {
    fn open<K: Correlation>(folders: &Folders<'_>) -> Result<Self> {
        let sender = Array::both::<K::Sender>(&folders.sender)?;
        let receiver = Array::both::<K::Receiver>(&folders.receiver)?;
        let [(key, of_key_holder), (values, other)] = match K::Sender::KEY {
            Some(_) => [sender, receiver],
            None => [receiver, sender],
        };
        let whole = Self { key, values, columns: [of_key_holder, other] };
        let header = whole.values.reader.header();
        if header.form != Form::of::<K::Base>() {
            return Err(Failure::file(
                &whole.values.path,
                format_args!("{header} is not an array over {}", K::Base::NAME),
            ));
        }
        let (n, form) = (header.n, Form::of::<K::Ring>());
        for (array, form, n) in
            [(&whole.columns[0], form, n), (&whole.columns[1], form, n), (&whole.key, form, 1)]
        {
            let (expected, header) = (Header { n, form }, array.reader.header());
            if *header != expected {
                return Err(Failure::file(
                    &array.path,
                    format_args!(
                        "holds {header}, but {} implies {expected}",
                        whole.values.path.display()
                    ),
                ));
            }
        }
        Ok(whole)
    }

    fn n(&self) -> u64 {
        self.values.reader.header().n
    }

    fn check<B: Ring, R: ExtensionOf<B>>(mut self, progress: &Bar) -> Result<Findings> {
        let n = self.n();
        let mut key = Zeroizing::new([R::ZERO]);
        self.key.read(&mut key[..])?;
        if B::BITS == 1 && key[0] == R::ZERO {
            return Err(Failure::file(&self.key.path, "delta is zero, which hides nothing"));
        }
        let size = usize::try_from(n).unwrap_or(CHUNK).min(CHUNK);
        let mut u = Zeroizing::new(vec![B::ZERO; size]);
        let [mut ours, mut other] = [(); 2].map(|()| Zeroizing::new(vec![R::ZERO; size]));
        let mut findings = Findings::default();
        while findings.checked < n {
            let now = usize::try_from(n - findings.checked).unwrap_or(CHUNK).min(CHUNK);
            self.values.read(&mut u[..now])?;
            self.columns[0].read(&mut ours[..now])?;
            self.columns[1].read(&mut other[..now])?;
            findings.check(key[0], &u[..now], &mut other[..now], &ours[..now]);
            progress.inc(now as u64);
        }
        Ok(findings)
    }
}

#[cfg(test)]
mod tests;
