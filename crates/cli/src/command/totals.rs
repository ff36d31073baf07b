//! `volery psi --result count` and other totals: one number about the keys that both sides have, or
//! one for each group.

pub(crate) mod text;

use std::path::{Path, PathBuf};
use std::time::Instant;

use volery_channel::Role;
use volery_matching::totals::{
    COLUMN, Driver, GROUP_BY, GROUPS, MAX_DECIMALS, MAX_GROUPS, Options, Outcome, SHARES, Settings,
    Side, TO, To, revealed,
};
use volery_matching::{Divided, Name, RESULT, What};
use volery_pcg::Security;
use volery_tables::{Format, Packing, Table};

use super::matching::{Given, KeyArguments, MatchingArguments, Told, files, names, summary};
use super::options::Reporter;
use super::paths::{check_free, same};
use super::run_local::Workers;
use crate::embed::Matched;
use crate::exit::Failure;
use crate::output::SingleFile;
use crate::page;
use crate::report::{Report, peak_memory};
use crate::said::many;

/// The options of results other than rows.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TotalsArguments {
    /// What the run gives: 'rows', the matching rows; or one number about the keys that both sides
    /// have: 'count', how many there are; 'sum' and 'mean' of a column, which its side names
    /// (sum=COL) and the other does not; 'sum-product=SENDER_COL,RECEIVER_COL'; or 'shares' for
    /// further computation, of which keys are common and of this side's columns (shares=COL,COL)
    #[arg(long, value_name = "WHAT", default_value = "rows", value_parser = what, help_heading = "Output")]
    pub(super) result: What,

    /// Side that gets such a number; the same on both sides [default: receiver]
    #[arg(long, value_name = "SIDE", value_enum, help_heading = "Output")]
    to: Option<To>,

    /// The most that a value of a key may be, without its sign; required for sums and means, the
    /// same on both sides
    #[arg(long, value_name = "B", help_heading = "Input")]
    bound: Option<String>,

    /// Decimal places of values; one with more is an error [default: 0]
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_DECIMALS)), help_heading = "Input")]
    decimals: Option<u32>,

    /// The fewest common keys of which anything is opened, decided without opening the number; the
    /// same on both sides [default: 50; 0 for a count without groups]
    #[arg(long, value_name = "K", value_parser = crate::values::count, help_heading = "Output")]
    minimum: Option<u64>,

    /// Add noise, so that the result is differentially private with this epsilon, such as 0.5; the
    /// same on both sides
    #[arg(long, value_name = "E", help_heading = "Output")]
    epsilon: Option<String>,

    /// Gaussian noise with this delta, such as 1e-9, in place of Laplace noise
    #[arg(long, value_name = "D", help_heading = "Output")]
    delta: Option<String>,

    /// Column of this side whose values are the --groups: one number for each
    #[arg(long, value_name = "COL", help_heading = "Input")]
    group_by: Option<String>,

    /// The groups, in the order of the result; the same on both sides. Rows with another value are
    /// in none. A name with a comma stands in double quotes
    #[arg(long, value_name = "A,B,..", value_parser = groups, help_heading = "Input")]
    groups: Option<Groups>,
}

/// The names of groups.
#[derive(Clone, Debug)]
struct Groups(Vec<String>);

fn groups(text: &str) -> Result<Groups, String> {
    let groups = names(text)?;
    match groups.len() {
        ..=MAX_GROUPS => Ok(Groups(groups)),
        more => Err(format!("{more} groups; a run has at most {MAX_GROUPS}")),
    }
}

/// A result with its columns.
fn what(text: &str) -> Result<What, String> {
    let (name, columns) = match text.split_once('=') {
        None => (text, Vec::new()),
        Some((name, columns)) => (name, names(columns)?),
    };
    What::new(name, columns)
}

impl TotalsArguments {
    /// Refuses options that rows do not have.
    ///
    /// # Errors
    /// If there is one.
    pub(super) fn check_rows(&self) -> Result<(), Failure> {
        let given = [
            ("--to", self.to.is_some()),
            ("--bound", self.bound.is_some()),
            ("--decimals", self.decimals.is_some()),
            ("--minimum", self.minimum.is_some()),
            ("--epsilon", self.epsilon.is_some()),
            ("--delta", self.delta.is_some()),
            ("--group-by", self.group_by.is_some()),
            ("--groups", self.groups.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((option, _)) => Err(Failure::usage(
                option,
                "only with --result count, sum, mean or sum-product",
            )
            .with_hint("rows have no such option; --both gives them to both sides")),
        }
    }

    /// The options of shares; refuses those of totals and of runs for rows.
    ///
    /// # Errors
    /// If there is one.
    pub(super) fn shares(
        &self,
        matching: &MatchingArguments,
        row_order: bool,
    ) -> Result<volery_matching::shares::Options, Failure> {
        let given = [
            ("--to", self.to.is_some()),
            ("--minimum", self.minimum.is_some()),
            ("--epsilon", self.epsilon.is_some()),
            ("--delta", self.delta.is_some()),
            ("--group-by", self.group_by.is_some()),
            ("--groups", self.groups.is_some()),
            ("--both", matching.both),
            ("--link", matching.link.is_some() && !matching.dry_run),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
            let what = "not with --result shares, of which each side has its own";
            return Err(Failure::usage(option, what).with_hint("remove it"));
        }
        Ok(volery_matching::shares::Options {
            name: matching.protocol,
            security: matching.security,
            bound: self.bound.clone(),
            decimals: self.decimals,
            row_order,
        })
    }

    /// The settings of a side whose table is in a cluster, with `protocol` where it is not the
    /// default; nothing for rows.
    ///
    /// # Errors
    /// The option at fault, or a result that workers of a cluster do not give.
    pub(crate) fn of_cluster(
        &self,
        role: Role,
        protocol: Option<Name>,
        security: Option<Security>,
    ) -> Result<Option<Settings>, Failure> {
        match self.result {
            What::Rows => {
                self.check_rows()?;
                return Ok(None);
            }
            What::Shares(_) => return Err(no_shares()),
            _ => {}
        }
        let name = match protocol {
            None | Some(Name::Auto) => Name::Circuit,
            Some(Name::Dh) => return Err(no_dh()),
            Some(name) => name,
        };
        let options = self.options(name, security);
        Ok(Some(Settings::new(self.result.clone(), role, options)?))
    }

    fn options(&self, name: Name, security: Option<Security>) -> Options {
        Options {
            to: self.to,
            both: false,
            name,
            security,
            bound: self.bound.clone(),
            decimals: self.decimals,
            minimum: self.minimum,
            epsilon: self.epsilon.clone(),
            delta: self.delta.clone(),
            group_by: self.group_by.clone(),
            groups: self.groups.clone().map_or_else(Vec::new, |all| all.0),
            link: None,
        }
    }
}

/// The remedy for a setting of a total in which the two sides differ.
pub(super) fn disagreement(field: &str) -> Option<&'static str> {
    Some(match field {
        RESULT => {
            "give the same --result on both sides; of a sum or a mean one side names its column, the other gives the name alone"
        }
        COLUMN => "one side gives sum=COL or mean=COL, the other one sum or mean without a column",
        TO => "the result goes to --to SIDE, which both sides give alike",
        SHARES => {
            "shares of two attempts do not fit together, and nothing was opened: begin a new run, with a new --run and --resume on both sides"
        }
        GROUPS => "give the same --groups in the same order on both sides",
        GROUP_BY => "give --group-by at one side, the one with the column, and --groups at both",
        "--bound" | "--decimals" | "--minimum" | "--epsilon" | "--delta" => {
            "agree on it, and give the same on both sides"
        }
        _ => return None,
    })
}

/// The refusal of a result that workers do not compute.
pub(super) fn no_shares() -> Failure {
    let what = "shares are computed by one process a side, not by workers";
    Failure::usage("--result", what).with_hint("use 'volery psi'")
}

/// The refusal of a protocol that workers do not run.
fn no_dh() -> Failure {
    let what = "workers compute totals by circuit or circuit-low, not by dh";
    Failure::usage("--protocol", what).with_hint("choose --protocol circuit on both sides")
}

/// Refuses several keys.
///
/// # Errors
/// If there are several.
pub(crate) fn check_rules(keys: &KeyArguments, kind: &str) -> Result<(), Failure> {
    if keys.or.is_empty() {
        return Ok(());
    }
    let what = format_args!("a {kind} is of the keys of one --key");
    Err(Failure::usage("--or", what).with_hint("remove --or, or use --result rows"))
}

/// Refuses options of runs for rows.
pub(super) fn check_options(
    arguments: &MatchingArguments,
    kind: &str,
    given: &Given<'_>,
) -> Result<(), Failure> {
    let refuse =
        |option: &str, what: String, hint: &str| Err(Failure::usage(option, what).with_hint(hint));
    if given.workers.is_some() && arguments.protocol == Name::Dh {
        return Err(no_dh());
    }
    check_rules(&arguments.keys, kind)?;
    for (option, there) in [
        (
            "--resume",
            arguments.resume.is_some() && given.workers.is_none(),
        ),
        ("--memory", arguments.memory.is_some()),
        (
            "--buckets",
            arguments.buckets.is_some_and(|buckets| buckets > 1),
        ),
    ] {
        if there {
            let what = format!("a {kind} is computed in memory, at once");
            return refuse(
                option,
                what,
                "remove it; --dry-run says how much memory the run takes",
            );
        }
    }
    if arguments.rule_column.is_some() {
        let what = format!("a {kind} has no rows");
        return refuse("--rule-column", what, "remove it, or use --result rows");
    }
    Ok(())
}

/// The file of the totals.
struct OutputFile {
    file: SingleFile,
    path: PathBuf,
    format: (Format, Packing),
    force: bool,
}

impl OutputFile {
    fn prepare(
        arguments: &MatchingArguments,
        settings: &Settings,
    ) -> Result<Option<Self>, Failure> {
        let Some(path) = &arguments.out else {
            return Ok(None);
        };
        let refuse = |what: String, hint: &str| Err(Failure::usage("--out", what).with_hint(hint));
        if !settings.gets_totals() {
            let what = format!("this side does not get the {}", settings.kind.name());
            return refuse(what, "remove --out; --to says who gets the result");
        }
        if path == Path::new("-") {
            let what = "the numbers are on standard output already".to_owned();
            return refuse(what, "remove --out, or name a file");
        }
        let format = Format::of(path).map_err(|error| {
            let failure = Failure::usage("--out", &error);
            match error.hint() {
                Some(hint) => failure.with_hint(hint),
                None => failure,
            }
        })?;
        if arguments.input.iter().any(|input| same(path, input)) {
            let what = format!("{} is the input file", path.display());
            return refuse(what, "choose another file; the input is never overwritten");
        }
        check_free(path, arguments.force)?;
        Ok(Some(Self {
            file: SingleFile::prepare("--out", path)?,
            path: path.clone(),
            format,
            force: arguments.force,
        }))
    }

    fn write(self, settings: &Settings, outcome: &Outcome) -> Result<(), Failure> {
        let Self {
            file,
            path,
            format,
            force,
        } = self;
        file.write(|file| {
            let written = outcome.write(settings, file, format);
            written.map_err(|problem| files::failure(&path, &problem))?;
            // Another process may have created the file in the meantime.
            check_free(&path, force)
        })
    }
}

/// Runs the subcommand for a total.
///
/// # Errors
/// Any error that ends the run.
pub(super) fn run(
    arguments: &TotalsArguments,
    matching: &MatchingArguments,
    given: Given<'_>,
    reporter: &Reporter,
) -> Result<Matched, Failure> {
    let common = &matching.common;
    check_options(matching, arguments.result.name(), &given)?;
    let role: Role = matching.role;
    let mut options = Options {
        both: matching.both,
        link: matching.link,
        ..arguments.options(matching.protocol, matching.security)
    };
    if given.workers.is_some() && options.name == Name::Auto {
        // Both sides must know the protocol before they meet.
        options.name = Name::Circuit;
    }
    let settings = Settings::new(arguments.result.clone(), role, options)?;
    let workers = given
        .workers
        .map(|workers| Workers::prepare(workers, matching, reporter))
        .transpose()?;
    if workers.is_some() && matching.local().is_complete() {
        let folder = matching.resume.as_deref().unwrap_or_else(|| "".as_ref());
        reporter.say(format_args!(
            "{}: this run is complete; name another folder for a new one",
            folder.display()
        ));
        return Ok(Matched::of(Report::new("psi", reporter).to_json()));
    }
    let endpoint = match matching.dry_run || workers.is_some() {
        true => None,
        false => Some(matching.endpoint.endpoint(given.connection, reporter)?),
    };
    if given.table.is_some() && !matching.input.is_empty() {
        let what = "the table is given in memory, too; remove one of them";
        return Err(Failure::usage("--input", what));
    }
    files::check_names(matching)?;
    let place = OutputFile::prepare(matching, &settings)?.filter(|_| !matching.dry_run);
    let page = matching.html.as_deref();
    let page = page
        .map(|path| SingleFile::prepare("--html", path))
        .transpose()?;
    let report_place = common.prepare_report(reporter)?;
    let pool = common.pool()?;

    let start = Instant::now();
    let mut told = Told::new(reporter);
    let reading = files::reading(matching, None)?;
    let table = match given.table {
        Some(table) => table,
        None => Table::open(&files::inputs(matching))?,
    };
    let side = pool.install(|| Side::read(&table, &reading, &settings, &mut told))?;
    told.end();
    let no_group = side.rows_in_no_group().unwrap_or(0);
    summary::tell_counts(
        reporter,
        &table,
        side.summary(),
        &[(no_group, "in none of the --groups")],
    );
    let divided = match workers {
        Some(_) => Divided::Shards,
        None => Divided::No,
    };
    let revealed = revealed(&settings, divided);
    reporter.tell(format_args!(
        "this side has {}",
        many(side.summary().keys, "different key")
    ));
    for line in &revealed {
        reporter.tell(line);
    }
    if matching.dry_run {
        let (text, report) = text::plan(matching, &side, &revealed, reporter)?;
        reporter.output(&format!("{text}\n"))?;
        return Ok(Matched::of(report_place.write(&report)?));
    }
    let mut report = summary::report(
        matching,
        settings.role,
        (&table, side.summary()),
        text::settings_of(side.settings(), side.rows_in_no_group()),
        &revealed,
        reporter,
    );
    reporter.known().revealed.extend(revealed.iter().cloned());
    let (outcome, kept) = match (endpoint, workers) {
        (Some(endpoint), _) => {
            let mut channel = endpoint.open(common.timeout(), reporter)?;
            let outcome = pool.install(|| side.run(&mut channel, &mut told))?;
            told.end();
            let connection = channel.describe();
            report.result.insert("connection".to_owned(), connection);
            channel.end();
            (outcome, None)
        }
        (None, Some(workers)) => {
            let mut driver = Driver::new(side, workers.folder())?;
            let Some((outcome, run)) = workers.totals(&mut driver, &pool, &mut told)? else {
                return Ok(Matched::of(report_place.write(&report)?));
            };
            report.result.insert("run".to_owned(), run);
            (outcome, Some(driver))
        }
        (None, None) => unreachable!("a run has a peer"),
    };
    text::add_outcome(&mut report, &settings, &outcome);
    if let Some(place) = place {
        place.write(&settings, &outcome)?;
    }
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    report.peak_rss_bytes = peak_memory();
    let report = report.up_to_now(reporter);
    if let Some(page) = page {
        let value = serde_json::to_value(&report).expect("a report serialises");
        page.commit(page::render(&value).as_bytes())?;
    }
    let matched = Matched::of(report_place.write(&report)?);
    if settings.gets_totals() {
        reporter.output(&text::numbers(&settings, &outcome))?;
    }
    if let Some(kept) = kept {
        kept.finish()?;
    }
    for line in text::summary(&settings, &report, &outcome) {
        reporter.say(line);
    }
    Ok(matched)
}
