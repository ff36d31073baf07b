//! `volery verify`: are two output folders correlated as they claim?

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use volery_field::Ring;

use super::options::{Common, RingName, with_ring};
use crate::exit::{Failure, Status};
use crate::npy::{Header, Reader};
use crate::report::{Report, peak_memory};

/// Elements of each array in memory at a time.
const CHUNK: usize = 1 << 16;

/// Check that two output folders of `vole` are correlated: w = u*x + v for every index
///
/// Whoever can run this has both halves: it is for tests, on one machine.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The sender's folder: u.npy and v.npy
    sender: PathBuf,

    /// The receiver's folder: x.npy and w.npy
    receiver: PathBuf,

    /// The ring, where the folders have no report.json that says it
    #[arg(long)]
    ring: Option<RingName>,

    #[command(flatten)]
    common: Common,
}

/// What a verification found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Correlations checked.
    pub(crate) checked: u64,
    /// Those that do not hold.
    pub(crate) wrong: u64,
    /// The index of the first that does not.
    pub(crate) first_wrong: Option<u64>,
}

impl Findings {
    /// Checks `w = u*x + v` on the next elements; `v` is spent.
    pub(crate) fn check<R: Ring>(&mut self, x: R, u: &[R], v: &mut [R], w: &[R]) {
        R::axpy(v, x, u);
        for (index, (left, right)) in w.iter().zip(&*v).enumerate() {
            if left != right {
                self.wrong += 1;
                self.first_wrong.get_or_insert(self.checked + index as u64);
            }
        }
        self.checked += w.len() as u64;
    }

    /// The failure to report, if a correlation does not hold.
    pub(crate) fn verdict(&self) -> Result<(), Failure> {
        let Some(first) = self.first_wrong else {
            return Ok(());
        };
        Err(Failure::new(
            Status::Other,
            format_args!(
                "w = u*x + v does not hold for {} of {} correlations, the first at index {first}",
                self.wrong, self.checked
            ),
        ))
    }
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let place = arguments.common.prepare_report()?;
    let sender = Half::open(&arguments.sender, "sender", ["u.npy", "v.npy"])?;
    let receiver = Half::open(&arguments.receiver, "receiver", ["x.npy", "w.npy"])?;
    let ring = agreed_ring(&sender, &receiver, arguments.ring)?;
    let progress = arguments
        .common
        .voice()
        .progress(sender.arrays[0].header().n);
    let findings = with_ring!(ring, R => check_folders::<R>(sender, receiver, &progress))?;
    progress.finish_and_clear();

    let mut report = Report::new("verify");
    report.n = Some(findings.checked);
    report.ring = Some(ring.to_string());
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    report.peak_rss_bytes = peak_memory();
    report.result = serde_json::Map::from_iter([
        ("checked".to_owned(), findings.checked.into()),
        ("wrong".to_owned(), findings.wrong.into()),
        ("first_wrong".to_owned(), findings.first_wrong.into()),
    ]);
    place.write(&report)?;
    findings.verdict()?;
    if !arguments.common.quiet {
        writeln!(
            std::io::stdout(),
            "ok: w = u*x + v holds for all {} correlations over {ring}",
            findings.checked
        )
        .map_err(|error| Failure::new(Status::Other, format_args!("standard output: {error}")))?;
    }
    Ok(())
}

/// One output folder, opened.
struct Half {
    folder: PathBuf,
    arrays: [Reader; 2],
    report: Option<Report>,
}

impl Half {
    fn open(folder: &Path, role: &str, names: [&str; 2]) -> Result<Self, Failure> {
        let report_path = folder.join("report.json");
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
                folder,
                format_args!(
                    "the folder of a {}, not of a {role}",
                    report.role.as_deref().unwrap_or("run without a role")
                ),
            )
            .hint("the order is: volery verify DIR_SENDER DIR_RECEIVER"));
        }
        let open = |name: &str| {
            let path = folder.join(name);
            File::open(&path)
                .and_then(Reader::new)
                .map_err(|error| Failure::file(&path, error))
        };
        Ok(Self {
            folder: folder.to_owned(),
            arrays: [open(names[0])?, open(names[1])?],
            report,
        })
    }

    fn claims(&self, what: impl Fn(&Report) -> Option<String>) -> Option<String> {
        self.report.as_ref().and_then(what)
    }
}

/// The ring of both folders, after checking that what they say of themselves fits together.
fn agreed_ring(
    sender: &Half,
    receiver: &Half,
    given: Option<RingName>,
) -> Result<RingName, Failure> {
    let differ = |what: &str, left: &dyn std::fmt::Display, right: &dyn std::fmt::Display| {
        Failure::new(
            Status::Other,
            format_args!(
                "{} and {} differ in {what}: {left} and {right}",
                sender.folder.display(),
                receiver.folder.display()
            ),
        )
    };
    let session = |report: &Report| Some(report.result.get("session")?.as_str()?.to_owned());
    for (what, left, right) in [
        (
            "ring",
            sender.claims(|r| r.ring.clone()),
            receiver.claims(|r| r.ring.clone()),
        ),
        (
            "protocol",
            sender.claims(|r| Some(r.protocol.clone())),
            receiver.claims(|r| Some(r.protocol.clone())),
        ),
        ("session", sender.claims(session), receiver.claims(session)),
    ] {
        if let (Some(left), Some(right)) = (left, right)
            && left != right
        {
            return Err(
                differ(what, &left, &right).hint("the two folders must come from the same run")
            );
        }
    }
    let [u, v] = &sender.arrays;
    let [x, w] = &receiver.arrays;
    for (what, left, right) in [
        ("the shapes of u and v", u.header(), v.header()),
        ("the shapes of u and w", u.header(), w.header()),
    ] {
        if left != right {
            return Err(differ(what, left, right));
        }
    }
    if *x.header()
        != (Header {
            n: 1,
            words: u.header().words,
        })
    {
        return Err(Failure::file(
            &receiver.folder.join("x.npy"),
            format_args!("holds {}, not one element of the ring of u", x.header()),
        ));
    }
    let claimed = sender
        .claims(|r| r.ring.clone())
        .or(receiver.claims(|r| r.ring.clone()))
        .map(|name| {
            <RingName as clap::ValueEnum>::from_str(&name, false).map_err(|_| {
                Failure::file(
                    &sender.folder.join("report.json"),
                    "names a ring that is not known",
                )
            })
        })
        .transpose()?;
    let ring = match (claimed, given) {
        (Some(claimed), Some(given)) if claimed != given => {
            return Err(Failure::usage(
                "--ring",
                format_args!("{given}, but the folders hold {claimed}"),
            ));
        }
        (Some(ring), _) | (None, Some(ring)) => ring,
        (None, None) if u.header().words == 2 => RingName::Gf128,
        (None, None) => {
            return Err(
                Failure::usage("--ring", "the folders have no report.json that names it")
                    .hint("give --ring fp61 or --ring z64"),
            );
        }
    };
    let words = if ring == RingName::Gf128 { 2 } else { 1 };
    if u.header().words != words {
        return Err(Failure::file(
            &sender.folder.join("u.npy"),
            format_args!("{} is not an array over {ring}", u.header()),
        ));
    }
    Ok(ring)
}

fn check_folders<R: Ring>(
    sender: Half,
    receiver: Half,
    progress: &indicatif::ProgressBar,
) -> Result<Findings, Failure> {
    let [mut u_file, mut v_file] = sender.arrays;
    let [mut x_file, mut w_file] = receiver.arrays;
    let read = |file: &mut Reader, folder: &Path, name: &str, out: &mut [R]| {
        file.read(out)
            .map_err(|error| Failure::file(&folder.join(name), error))
    };
    let mut x = [R::ZERO];
    read(&mut x_file, &receiver.folder, "x.npy", &mut x)?;
    let n = u_file.header().n;
    let size = usize::try_from(n).unwrap_or(CHUNK).min(CHUNK);
    let [mut u, mut v, mut w] = [(); 3].map(|()| vec![R::ZERO; size]);
    let mut findings = Findings::default();
    while findings.checked < n {
        let now = usize::try_from(n - findings.checked)
            .unwrap_or(CHUNK)
            .min(CHUNK);
        let (u, v, w) = (&mut u[..now], &mut v[..now], &mut w[..now]);
        read(&mut u_file, &sender.folder, "u.npy", u)?;
        read(&mut v_file, &sender.folder, "v.npy", v)?;
        read(&mut w_file, &receiver.folder, "w.npy", w)?;
        findings.check(x[0], u, v, w);
        progress.inc(now as u64);
    }
    Ok(findings)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use std::fs;

    use volery_field::{Fp61, Gf128, Z64};
    use volery_primitives::{Block, prg::Prg};

    use super::*;
    use crate::npy::Writer;

    /// Two folders with `n` correlations that hold, without reports.
    fn folders<R: Ring>(place: &Path, n: usize) -> Arguments {
        let mut prg = Prg::new(Block::from_words(n as u64, 5));
        let x = R::random(&mut prg);
        let [mut u, mut v] = [(); 2].map(|()| vec![R::ZERO; n]);
        R::random_slice(&mut prg, &mut u);
        R::random_slice(&mut prg, &mut v);
        let w: Vec<R> = u.iter().zip(&v).map(|(&u, &v)| u * x + v).collect();
        let arguments = Arguments {
            sender: place.join("s"),
            receiver: place.join("r"),
            ring: None,
            common: Common {
                report: None,
                threads: None,
                timeout: 1,
                quiet: true,
                verbose: false,
            },
        };
        fs::create_dir(&arguments.sender).unwrap();
        fs::create_dir(&arguments.receiver).unwrap();
        for (folder, name, values) in [
            (&arguments.sender, "u.npy", &u),
            (&arguments.sender, "v.npy", &v),
            (&arguments.receiver, "x.npy", &vec![x]),
            (&arguments.receiver, "w.npy", &w),
        ] {
            let file = File::create(folder.join(name)).unwrap();
            let mut writer = Writer::new(file, values.len() as u64).unwrap();
            writer.write(values).unwrap();
            writer.finish().unwrap();
        }
        arguments
    }

    fn write_reports(arguments: &Arguments, change: impl Fn(&mut Report, &mut Report)) {
        let mut reports = ["sender", "receiver"].map(|role| {
            let mut report = Report::new("vole");
            report.role = Some(role.to_owned());
            report.ring = Some("fp61".to_owned());
            report.result.insert("session".into(), "12".into());
            report
        });
        let [sender, receiver] = &mut reports;
        change(sender, receiver);
        fs::write(arguments.sender.join("report.json"), sender.to_json()).unwrap();
        fs::write(arguments.receiver.join("report.json"), receiver.to_json()).unwrap();
    }

    /// Flips a bit of the last byte of a file.
    fn flip(path: &Path) {
        let mut bytes = fs::read(path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(path, bytes).unwrap();
    }

    fn holds<R: Ring>(ring: RingName) {
        for n in [0, 1, 1009, CHUNK, CHUNK + 1] {
            let place = tempfile::tempdir().unwrap();
            let mut arguments = folders::<R>(place.path(), n);
            arguments.ring = Some(ring);
            run(&arguments).unwrap();
        }
    }

    #[test]
    fn what_holds_is_accepted() {
        holds::<Fp61>(RingName::Fp61);
        holds::<Z64>(RingName::Z64);
        holds::<Gf128>(RingName::Gf128);
    }

    #[test]
    fn one_wrong_bit_is_found_and_named() {
        for (folder, name, text) in [
            (
                "s",
                "u.npy",
                "1 of 65537 correlations, the first at index 65536",
            ),
            (
                "s",
                "v.npy",
                "1 of 65537 correlations, the first at index 65536",
            ),
            (
                "r",
                "w.npy",
                "1 of 65537 correlations, the first at index 65536",
            ),
            ("r", "x.npy", "of 65537 correlations, the first at index 0"),
        ] {
            let place = tempfile::tempdir().unwrap();
            let mut arguments = folders::<Gf128>(place.path(), CHUNK + 1);
            let report = place.path().join("found.json");
            arguments.common.report = Some(report.clone());
            flip(&place.path().join(folder).join(name));
            let failure = run(&arguments).unwrap_err();
            assert_eq!(failure.status(), Status::Other);
            assert!(failure.to_string().contains(text), "{failure}");
            let report: Report = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
            assert_ne!(report.result["wrong"], 0);
        }
    }

    #[test]
    fn the_ring_comes_from_the_reports_or_the_option() {
        let place = tempfile::tempdir().unwrap();
        let mut arguments = folders::<Fp61>(place.path(), 10);
        let complaint = run(&arguments).unwrap_err();
        assert_eq!(complaint.status(), Status::Usage);
        assert!(complaint.to_string().contains("--ring"), "{complaint}");

        write_reports(&arguments, |_, _| {});
        run(&arguments).unwrap();
        arguments.ring = Some(RingName::Z64);
        assert!(
            run(&arguments)
                .unwrap_err()
                .to_string()
                .contains("hold fp61")
        );
        arguments.ring = None;

        write_reports(&arguments, |sender, _| sender.ring = Some("z64".into()));
        assert!(
            run(&arguments)
                .unwrap_err()
                .to_string()
                .contains("differ in ring")
        );
        write_reports(&arguments, |sender, _| {
            sender.result.insert("session".into(), "34".into());
        });
        assert!(
            run(&arguments)
                .unwrap_err()
                .to_string()
                .contains("differ in session")
        );
        write_reports(&arguments, std::mem::swap);
        assert!(
            run(&arguments)
                .unwrap_err()
                .to_string()
                .contains("DIR_SENDER DIR_RECEIVER")
        );
        write_reports(&arguments, |sender, receiver| {
            sender.ring = Some("gf128".into());
            receiver.ring = Some("gf128".into());
        });
        assert!(
            run(&arguments)
                .unwrap_err()
                .to_string()
                .contains("not an array over gf128")
        );
    }

    #[test]
    fn residues_must_be_canonical_and_sizes_must_agree() {
        let place = tempfile::tempdir().unwrap();
        let mut arguments = folders::<Z64>(place.path(), 10);
        arguments.ring = Some(RingName::Fp61);
        assert!(
            run(&arguments)
                .unwrap_err()
                .to_string()
                .contains("not a canonical value of fp61")
        );

        let place = tempfile::tempdir().unwrap();
        let mut arguments = folders::<Z64>(place.path(), 10);
        arguments.ring = Some(RingName::Z64);
        fs::copy(
            arguments.receiver.join("x.npy"),
            arguments.receiver.join("w.npy"),
        )
        .unwrap();
        assert!(
            run(&arguments)
                .unwrap_err()
                .to_string()
                .contains("shapes of u and w")
        );
        fs::remove_file(arguments.receiver.join("w.npy")).unwrap();
        assert!(
            run(&arguments)
                .unwrap_err()
                .to_string()
                .contains("w.npy: No such file")
        );
    }
}
