//! `volery matvec`: the product of the sender's matrix and the receiver's vector.

use std::path::{Path, PathBuf};

use volery_apps::Error;
use volery_apps::fixed::Format;
use volery_apps::linear::{Left, Matrix, Output, Right, Shape, Side};
use volery_channel::Role;
use volery_field::{Fp61, Z64};
use volery_options::{NamedValues, parse};
use volery_pcg::vole::VoleRing;
use zeroize::Zeroizing;

use crate::endpoint::Connection;
use crate::failure::{Failure, Result, Status};
use crate::npy::{Table, Values};
use crate::numbers::{
    NumericInputs, PeerArguments, Run, accept, not_an_array, prepare, table, write,
};
use crate::paths::{self, ResultFile};
use crate::reporter::Reporter;

volery_options::options! {
    /// The options of a matrix-vector product alone.
    pub struct MatvecOptions {
        /// Input .npy array: the matrix at the sender, the vector at the receiver
        once input: PathBuf ["Input", "FILE", parse::path];

        /// Output .npy file for the result, at the side that gets it
        once out: PathBuf ["Output", "FILE", parse::path];

        /// Replace an existing output file
        switch force ["Output"];

        /// Type of the numbers [default: fp61 for an array of uint64, real for one of float64]
        once ring: Numbers ["Protocol", "RING", Numbers::of, Numbers::ALLOWED];

        /// Party that gets the result
        default result: Outcome ["receiver", "Running", "RESULT", Outcome::of, Outcome::ALLOWED];

        /// Real numbers: fraction bits of each number
        default fraction_bits: u32 ["16", "Protocol", "BITS", parse::text];

        /// Real numbers: bound on the absolute values of the matrix entries
        default matrix_bound: f64 ["1024", "Protocol", "A", parse::text];

        /// Real numbers: bound on the absolute values of the vector entries
        default vector_bound: f64 ["1024", "Protocol", "X", parse::text];

        /// Receiver: maximum number of matrix rows accepted from the peer; a run takes about 30
        /// bytes of memory for each
        default max_rows: u64 ["67108864", "Protocol", "ROWS", parse::text];
    }
}

/// The options of one side.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Its own options.
    pub options: MatvecOptions,
    /// The peer.
    pub meeting: PeerArguments,
}

volery_options::choices! {
    /// The type of the numbers in the arrays.
    pub enum Numbers {
        /// The integers modulo 2^61 - 1
        Fp61 = "fp61",
        /// The integers modulo 2^64
        Z64 = "z64",
        /// Real numbers, in fixed point modulo 2^64
        Real = "real",
    }
}

volery_options::choices! {
    /// The party that gets the result.
    pub enum Outcome {
        /// The holder of the vector
        Receiver = "receiver",
        /// The holder of the matrix
        Sender = "sender",
        /// Neither: each side gets a uint64 share, and the shares add up to the result in the ring.
        /// Shares of real numbers add up to a signed result with twice the fraction bits
        Shared = "shared",
    }
}

impl Outcome {
    fn output(self) -> Output {
        match self {
            Self::Receiver => Output::Right,
            Self::Sender => Output::Left,
            Self::Shared => Output::Shared,
        }
    }

    /// Whether this side writes a file.
    fn is_for(self, role: Role) -> bool {
        match self {
            Self::Receiver => role == Role::Receiver,
            Self::Sender => role == Role::Sender,
            Self::Shared => true,
        }
    }
}

impl Arguments {
    /// The options of a caller.
    pub(crate) fn by_name(named: &NamedValues) -> Result<Self> {
        let mut options = MatvecOptions::default();
        let meeting = PeerArguments::by_name(named, &mut options)?;
        Ok(Self { options, meeting })
    }

    /// The name of the input in messages.
    fn source(&self) -> &Path {
        self.options.input.as_deref().unwrap_or_else(|| "--input".as_ref())
    }

    /// Rows and columns of this party's input.
    fn shape(&self, table: &Table) -> Result<(usize, usize)> {
        let wrong = |what: &str| {
            let shape = table.shape();
            Err(Failure::file(self.source(), format_args!("its shape is {shape:?}, not {what}")))
        };
        let shape = match (self.meeting.options.role, table.shape()) {
            (Role::Sender, &[rows, columns]) => (rows, columns),
            (Role::Receiver, &[entries]) => (entries, 1),
            (Role::Sender, _) => return wrong("that of a matrix, (n, m)"),
            (Role::Receiver, _) => return wrong("that of a vector, (m,)"),
        };
        if shape.0 == 0 || shape.1 == 0 {
            let what = "the matrix has no rows or no columns, or the vector has no entries";
            return Err(Failure::file(self.source(), what));
        }
        Ok(shape)
    }

    fn numbers(&self, table: &Table) -> Result<Numbers> {
        let own = match table.values() {
            Values::Words(_) => Numbers::Fp61,
            Values::Reals(_) => Numbers::Real,
        };
        let chosen = self.options.ring.unwrap_or(own);
        if (chosen == Numbers::Real) != (own == Numbers::Real) {
            let (holds, wanted) = match own {
                Numbers::Real => ("float64", "uint64"),
                Numbers::Fp61 | Numbers::Z64 => ("uint64", "float64"),
            };
            let what = format_args!(
                "{} takes {wanted}, but --input is an array of {holds}",
                chosen.name()
            );
            return Err(Failure::usage("--ring", what));
        }
        Ok(chosen)
    }

    fn place(&self, is_program: bool) -> Result<Option<ResultFile>> {
        match (&self.options.out, self.options.result.is_for(self.meeting.options.role)) {
            (Some(path), true) => {
                prepare(path, self.options.input.as_ref(), self.options.force).map(Some)
            }
            (None, false) => Ok(None),
            (None, true) if !is_program => Ok(None),
            (Some(_), false) => {
                let what = format_args!(
                    "the result goes to the {}; remove --out",
                    self.options.result.name()
                );
                Err(Failure::usage("--out", what)
                    .with_hint("--result, the same on both sides, selects the party that gets it"))
            }
            (None, true) => Err(Failure::usage("--out", "required: the file for the result")),
        }
    }

    /// Checks, before connecting, that the numbers are within the declared bounds.
    fn format(
        &self,
        table: &Table,
        (rows, columns): (usize, usize),
    ) -> Result<Zeroizing<Vec<Z64>>> {
        let Values::Reals(reals) = table.values() else {
            unreachable!("numbers() selects real numbers only for an array of float64");
        };
        // A sum has one term per matrix column, which is one per vector entry.
        let (side, terms) = match self.meeting.options.role {
            Role::Sender => (Side::Left, columns),
            Role::Receiver => (Side::Right, rows),
        };
        let format = self.fixed(terms)?;
        let matrix = format
            .encode(side, rows, columns, reals)
            .map_err(|error| Failure::file(self.source(), error))?;
        Ok(matrix.to_rows())
    }

    fn fixed(&self, terms: usize) -> Result<Format> {
        Format::new(
            terms,
            self.options.fraction_bits,
            self.options.matrix_bound,
            self.options.vector_bound,
        )
        .map_err(|error| Failure::usage("--fraction-bits, --matrix-bound, --vector-bound", error))
    }

    /// The fields that the handshake compares.
    fn fields(&self, numbers: Numbers) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("--ring", numbers.name().to_owned()),
            ("--result", self.options.result.name().to_owned()),
        ];
        if numbers == Numbers::Real {
            fields.push(("--fraction-bits", self.options.fraction_bits.to_string()));
            fields.push(("--matrix-bound", self.options.matrix_bound.to_string()));
            fields.push(("--vector-bound", self.options.vector_bound.to_string()));
        }
        fields
    }
}

/// Runs one side; returns the report, and the result with its shape at the side that gets it.
pub fn run(
    arguments: &Arguments,
    given: NumericInputs<'_>,
    reporter: &Reporter,
) -> Result<(String, Option<Values>)> {
    let table = match (given.input, &arguments.options.input) {
        (Some(given), None) => given,
        (None, Some(path)) => table(path)?,
        (Some(_), Some(_)) => {
            let what = "the numbers are given as an array, too; remove one of them";
            return Err(Failure::usage("--input", what));
        }
        (None, None) => return Err(Failure::usage("--input", "required")),
    };
    let numbers = arguments.numbers(&table)?;
    let own = arguments.shape(&table)?;
    let elements = |error| not_an_array(arguments.source(), error);
    let side = (arguments, numbers, own);
    let peer = (given.connection, reporter);
    match numbers {
        Numbers::Fp61 => {
            let entries = table.elements::<Fp61>().map_err(elements)?;
            run_over(side, &entries, peer, |_, result| Ok(words(result)))
        }
        Numbers::Z64 => {
            let entries = table.elements::<Z64>().map_err(elements)?;
            run_over(side, &entries, peer, |_, result| Ok(words(result)))
        }
        Numbers::Real => {
            let entries = arguments.format(&table, own)?;
            run_over(side, &entries, peer, |shape, result| {
                if arguments.options.result == Outcome::Shared {
                    return Ok(words(result));
                }
                let reals = arguments.fixed(shape.inner())?.decode(result);
                Ok(Values::Reals(Zeroizing::new(reals.to_vec())))
            })
        }
    }
}

/// The entries of the result unchanged.
fn words<R: VoleRing>(result: &Matrix<R>) -> Values {
    let words = bytemuck::cast_slice::<R, u64>(&result.to_rows()).to_vec();
    Values::Words(Zeroizing::new(words))
}

/// Runs one side, whose input has `own` rows and columns, over a ring.
fn run_over<R: VoleRing>(
    (arguments, numbers, own): (&Arguments, Numbers, (usize, usize)),
    entries: &[R],
    (connection, reporter): (Option<&mut Connection>, &Reporter),
    decode: impl FnOnce(Shape, &Matrix<R>) -> Result<Values>,
) -> Result<(String, Option<Values>)> {
    let meeting = &arguments.meeting;
    let endpoint = meeting.endpoint.endpoint(connection, reporter)?;
    let place = arguments.place(reporter.is_program())?;
    let MatvecOptions { input, out, .. } = &arguments.options;
    let report = meeting.common.report();
    paths::check_report("--report", report, input.as_deref(), out.as_deref())?;
    let report_place = meeting.common.prepare_report(reporter)?;
    let pool = meeting.common.pool()?;

    let security = meeting.security(numbers == Numbers::Fp61);
    let mut run =
        meeting.begin("matvec", endpoint, security, arguments.fields(numbers), reporter)?;
    let matrix = Matrix::from_rows(own.0, own.1, entries)?;
    let side = match meeting.options.role {
        Role::Sender => Side::Left,
        Role::Receiver => Side::Right,
    };
    let shape = Shape::agree_vector(side, own, &mut run.channel).map_err(peer_shape_error)?;
    if meeting.options.role == Role::Receiver {
        accept(shape.rows() as u64, "--max-rows", "rows", arguments.options.max_rows)?;
    }
    let result =
        pool.install(|| multiply(side, shape, arguments.options.result, &matrix, &mut run))?;

    let result = result.map(|result| decode(shape, &result)).transpose()?;
    if let (Some(place), Some(result)) = (place, &result) {
        write(place, result)?;
    }
    let (rows, columns) = (shape.rows(), shape.inner());
    let mut said = serde_json::Map::new();
    said.insert("rows".to_owned(), rows.into());
    said.insert("columns".to_owned(), columns.into());
    said.insert("result".to_owned(), arguments.options.result.name().into());
    if numbers == Numbers::Real {
        said.insert("error_bound".to_owned(), arguments.fixed(columns)?.error().into());
    }
    let length = match shape.vectors() {
        Side::Left => rows,
        Side::Right => 1,
    };
    let report = run.report::<R>(numbers.name(), (rows as u64, length as u64), said)?;
    run.channel.end();
    let json = report_place.write(&report)?;
    reporter.say(format_args!(
        "a matrix of {rows} x {columns} times a vector, {security}, {} bytes sent and {} received",
        report.bytes_sent.unwrap_or_default(),
        report.bytes_received.unwrap_or_default()
    ));
    Ok((json, result))
}

/// The error for mismatched shapes; this side's own shape was checked before.
fn peer_shape_error(error: Error) -> Failure {
    match error {
        Error::Empty(_) | Error::TooLarge { .. } | Error::NotVector { .. } => {
            Failure::new(Status::Peer, format_args!("the peer's input does not fit: {error}"))
        }
        error => error.into(),
    }
}

/// The protocol, offline and online.
fn multiply<R: VoleRing>(
    side: Side,
    shape: Shape,
    result: Outcome,
    own: &Matrix<R>,
    run: &mut Run<'_>,
) -> Result<Option<Matrix<R>>> {
    let seed = run.rng.fork("offline");
    let (security, session, output) = (run.security, run.session, result.output());
    match side {
        Side::Left => {
            let left = Left::offline(shape, output, security, session, seed, &mut run.channel)?;
            run.online(|channel| left.online(own, channel))
        }
        Side::Right => {
            let right = Right::offline(shape, output, security, session, seed, &mut run.channel)?;
            run.online(|channel| right.online(own, channel))
        }
    }
}
