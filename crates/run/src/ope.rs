//! `volery ope`: oblivious polynomial evaluation, the sender's polynomial at the receiver's points.

use std::path::{Path, PathBuf};

use volery_apps::{offline, ope};
use volery_channel::Role;
use volery_field::Fp61;
use volery_options::{NamedValues, parse};
use zeroize::Zeroizing;

use crate::failure::{Failure, Result};
use crate::npy::{Table, Values};
use crate::numbers::{self, NumericInputs, PeerArguments, Run, not_an_array, table};
use crate::paths::{self, ResultFile};
use crate::reporter::Reporter;

volery_options::options! {
    /// The options of a polynomial evaluation alone.
    pub struct OpeOptions {
        /// Sender: file of coefficients, .csv or .npy
        once input: PathBuf ["Input", "FILE", parse::path];

        /// Receiver: a single point, a number below 2^61 - 1. Other users of this machine may see
        /// it in the process list; points in a file stay hidden
        once point: u64 ["Input", "Z", parse::text];

        /// Receiver: the points, a .csv file with the header 'point', or an .npy array of uint64
        once points: PathBuf ["Input", "FILE", parse::path];

        /// Receiver: output file for the values, .npy [default with --point: standard output]
        once out: PathBuf ["Output", "FILE", parse::path];

        /// Replace an existing output file
        switch force ["Output"];

        /// Receiver: the largest degree accepted from the peer; a run takes about 20 bytes of
        /// memory for each
        default max_degree: u64 ["67108864", "Protocol", "D", parse::text];

        /// Sender: the most points accepted from the peer; each takes as long as a run with one
        /// point. One more point than the degree determines the whole polynomial [default: the
        /// degree, at most 65536]
        once max_points: u64 ["Protocol", "K", parse::text];
    }
}

/// The options of one side.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Its own options.
    pub options: OpeOptions,
    /// The peer.
    pub meeting: PeerArguments,
}

/// The input of this party.
enum Part {
    Sender(Zeroizing<Vec<Fp61>>),
    Receiver(Zeroizing<Vec<Fp61>>, Option<ResultFile>),
}

impl Arguments {
    /// The options of a caller.
    pub(crate) fn by_name(named: &NamedValues) -> Result<Self> {
        let mut options = OpeOptions::default();
        let meeting = PeerArguments::by_name(named, &mut options)?;
        Ok(Self { options, meeting })
    }

    /// Reads and checks this party's input and prepares its output file.
    fn part(&self, given: Option<Table>, is_program: bool) -> Result<Part> {
        let refuse = |given: bool, option: &str, whose: &str| {
            if given {
                let what = format_args!("only for the {whose}; remove it");
                return Err(Failure::usage(option, what));
            }
            Ok(())
        };
        match self.meeting.options.role {
            Role::Sender => {
                refuse(self.options.point.is_some(), "--point", "receiver")?;
                refuse(self.options.points.is_some(), "--points", "receiver")?;
                refuse(self.options.out.is_some(), "--out", "receiver")?;
                let (input, coefficients) = match (given, self.options.input.as_deref()) {
                    (Some(given), None) => (GIVEN.as_ref(), elements(&given, GIVEN.as_ref())?),
                    (None, Some(input)) => (input, read(input, "coefficient")?),
                    (None, None) => {
                        let what = "required at the sender: a file of coefficients";
                        return Err(Failure::usage("--input", what));
                    }
                    (Some(_), Some(_)) => return Err(Failure::usage("--input", TWICE)),
                };
                if coefficients.is_empty() {
                    return Err(Failure::file(input, "there are no coefficients")
                        .with_hint("the zero polynomial has the single coefficient 0"));
                }
                Ok(Part::Sender(coefficients))
            }
            Role::Receiver => {
                refuse(self.options.input.is_some(), "--input", "sender")?;
                let points = match (given, self.options.point, self.options.points.as_deref()) {
                    (Some(given), None, None) => elements(&given, GIVEN.as_ref())?,
                    (Some(_), ..) => return Err(Failure::usage("--point, --points", TWICE)),
                    (None, Some(z), _) => {
                        let z = Fp61::new(z).ok_or_else(|| {
                            let what = format_args!("{z} is not below 2^61 - 1");
                            Failure::usage("--point", what)
                        })?;
                        Zeroizing::new(vec![z])
                    }
                    (None, None, Some(path)) => read(path, "point")?,
                    (None, None, None) => {
                        return Err(Failure::usage(
                            "--point, --points",
                            "exactly one of them is required at the receiver",
                        ));
                    }
                };
                let place = match &self.options.out {
                    Some(path) => {
                        let options = &self.options;
                        Some(numbers::prepare(path, options.points.as_ref(), options.force)?)
                    }
                    None if self.options.point.is_some() || !is_program => None,
                    None => {
                        return Err(Failure::usage("--out", "required: a file for the values"));
                    }
                };
                if points.is_empty() {
                    return Err(Failure::usage("--points", "there are no points"));
                }
                Ok(Part::Receiver(points, place))
            }
        }
    }
}

/// The name of numbers that a caller gives, in messages.
const GIVEN: &str = "the array";

/// Numbers from a file and from a caller.
const TWICE: &str = "the numbers are given as an array, too; remove one of them";

/// Runs one side; returns the report, and the values at the receiver.
pub fn run(
    arguments: &Arguments,
    given: NumericInputs<'_>,
    reporter: &Reporter,
) -> Result<(String, Option<Vec<u64>>)> {
    let meeting = &arguments.meeting;
    let endpoint = meeting.endpoint.endpoint(given.connection, reporter)?;
    let OpeOptions { input, points, out, .. } = &arguments.options;
    let (report, input) = (meeting.common.report(), input.as_deref().or(points.as_deref()));
    paths::check_report("--report", report, input, out.as_deref())?;
    let report_place = meeting.common.prepare_report(reporter)?;
    let part = arguments.part(given.input, reporter.is_program())?;
    let pool = meeting.common.pool()?;

    let security = meeting.security(true);
    let ring = ("ring", "fp61".to_owned());
    let mut run = meeting.begin("ope", endpoint, security, vec![ring], reporter)?;
    let (degree, points, values) = match part {
        Part::Sender(coefficients) => {
            let degree = coefficients.len() - 1;
            // The values at one more point would determine the polynomial. A constant polynomial is
            // determined by any one point.
            let few = (degree as u64).clamp(1, 1 << 16);
            let most = arguments.options.max_points.unwrap_or(few);
            let limit = ("--max-points", "points", most);
            let points = run.exchange_sizes(degree as u64, limit)?;
            pool.install(|| send(&coefficients, points, &mut run))?;
            (degree, points, None)
        }
        Part::Receiver(points, place) => {
            let limit = ("--max-degree", "as the degree", arguments.options.max_degree);
            let degree = run.exchange_sizes(points.len() as u64, limit)?;
            let values = pool.install(|| receive(&points, degree, &mut run))?;
            let values = bytemuck::cast_slice::<Fp61, u64>(&values).to_vec();
            let values = Values::Words(Zeroizing::new(values));
            write(&values, place, reporter)?;
            (degree, points.len(), Some(values))
        }
    };
    let result = [("degree", degree), ("points", points)];
    let result = result.map(|(name, value)| (name.to_owned(), value.into()));
    let sizes = (points as u64, degree as u64);
    let report = run.report::<Fp61>("fp61", sizes, result.into_iter().collect())?;
    run.channel.end();
    let json = report_place.write(&report)?;
    reporter.say(format_args!(
        "a polynomial of degree {degree} at {points} points, {security}, {} bytes sent and {} received",
        report.bytes_sent.unwrap_or_default(),
        report.bytes_received.unwrap_or_default()
    ));
    let values = values.map(|values| match values {
        Values::Words(mut words) => std::mem::take(&mut *words),
        Values::Reals(_) => Vec::new(),
    });
    Ok((json, values))
}

/// The sender's run: one point after another, so that memory does not grow with their number.
fn send(coefficients: &[Fp61], points: usize, run: &mut Run<'_>) -> Result<()> {
    let seed = run.rng.fork("offline");
    let mut source = offline::Sender::setup(run.security, run.session, seed, &mut run.channel)?;
    for _ in 0..points {
        let degree = coefficients.len() - 1;
        let sender = ope::Sender::offline(degree, 1, &mut source, &mut run.channel)?;
        run.online(|channel| sender.online(coefficients, channel))?;
    }
    Ok(())
}

/// The receiver's run.
fn receive(points: &[Fp61], degree: usize, run: &mut Run<'_>) -> Result<Zeroizing<Vec<Fp61>>> {
    let seed = run.rng.fork("offline");
    let mut source = offline::Receiver::setup(run.security, run.session, seed, &mut run.channel)?;
    let mut values = Zeroizing::new(Vec::with_capacity(points.len()));
    for point in points {
        let receiver = ope::Receiver::offline(degree, 1, &mut source, &mut run.channel)?;
        let value = run.online(|channel| receiver.online(&[*point], channel))?;
        values.extend_from_slice(&value);
    }
    Ok(values)
}

/// Writes the values to their file, or a single value to standard output.
fn write(values: &Values, place: Option<ResultFile>, reporter: &Reporter) -> Result<()> {
    match (place, values) {
        (Some(place), _) => numbers::write(place, values),
        (None, Values::Words(words)) if reporter.is_program() => {
            words.iter().try_for_each(|word| reporter.output(&format!("{word}\n")))
        }
        (None, _) => Ok(()),
    }
}

/// The elements in a file: the named column of a .csv, or an array in an .npy.
fn read(path: &Path, column: &str) -> Result<Zeroizing<Vec<Fp61>>> {
    let is = |wanted: &str| path.extension().is_some_and(|extension| extension == wanted);
    if is("npy") {
        return elements(&table(path)?, path);
    }
    if !is("csv") {
        return Err(Failure::file(path, "the file name ends in neither .csv nor .npy"));
    }
    from_csv(path, column).map_err(|what| {
        Failure::file(path, what).with_hint(format_args!(
            "the file must have the header line '{column}', then one decimal number below 2^61 - 1 per line"
        ))
    })
}

fn elements(table: &Table, path: &Path) -> Result<Zeroizing<Vec<Fp61>>> {
    if table.shape().len() != 1 {
        let shape = table.shape();
        let what = format_args!("its shape is {shape:?}, not (n,)");
        return Err(Failure::file(path, what));
    }
    table.elements().map_err(|error| not_an_array(path, error))
}

/// The numbers of a column, or a message saying what is wrong, which never contains a value.
fn from_csv(path: &Path, column: &str) -> Result<Zeroizing<Vec<Fp61>>, String> {
    let mut reader = csv::Reader::from_path(path).map_err(|error| error.to_string())?;
    let headers = reader.byte_headers().map_err(|error| error.to_string())?;
    let place = headers
        .iter()
        .position(|name| name == column.as_bytes())
        .ok_or_else(|| format!("there is no column '{column}'"))?;
    let mut numbers = Zeroizing::new(Vec::new());
    let mut record = csv::ByteRecord::new();
    let mut line = reader.position().line();
    loop {
        let row = numbers.len() + 1;
        let more =
            reader.read_byte_record(&mut record).map_err(|error| format!("row {row}: {error}"))?;
        if !more {
            return Ok(numbers);
        }
        // The reader skips empty lines: a missing number would shift all later ones.
        let inside = record.as_slice().iter().filter(|byte| **byte == b'\n');
        let lines = 1 + inside.count() as u64;
        if reader.position().line() > line + lines {
            return Err(format!("there is an empty line before row {row}"));
        }
        line = reader.position().line();
        let number = record
            .get(place)
            .and_then(|field| std::str::from_utf8(field).ok())
            .and_then(|field| field.trim().parse().ok())
            .and_then(Fp61::new)
            .ok_or_else(|| format!("row {row} has no number below 2^61 - 1 in '{column}'"))?;
        numbers.push(number);
    }
}
