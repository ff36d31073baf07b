//! One step of gradient descent for logistic regression on sparse data, between two processes.
//!
//! ```text
//! (cd lab && cargo build --profile dist --example logistic)
//! target/dist/examples/logistic holder --listen  127.0.0.1:7000 \
//!     --shape 20000x10000 --entries 200000 --data train.svm
//! target/dist/examples/logistic helper --connect 127.0.0.1:7000 \
//!     --shape 20000x10000 --entries 200000 [--model theta.npy] [--rate 1.0] --out stepped.npy
//! ```
//!
//! The holder has the examples, a sparse matrix `X` with a label `y` for each of its `n` rows, in a
//! file in svmlight format; labels above zero count as 1, others as 0. The helper has the model
//! `theta`, a number for each column (zeros, if no file is given). In the end the helper has the
//! updated model and the holder nothing:
//!
//! ```text
//! z = X theta                      a sparse product, shared
//! e = 1/2 + 37/256 z - y           on the shares: the activation is linear
//! g = X^T e                        a sparse product, shared; the helper gets the holder's share
//! theta' = theta - rate/n g        by the helper alone
//! ```
//!
//! `1/2 + 37/256 z` approximates the logistic function: its error is at most 0.101 for `z` in [-4,
//! 4], about the least of any line there, and it needs no comparison and no product of shared
//! values.
//!
//! Leakage: the helper learns the gradient `g`, which depends on the data; both learn the shape,
//! `--entries` (a bound of the number of entries of `X`) and the constants below; the holder learns
//! nothing about the model. Semi-honest.
//!
//! # Numbers
//!
//! Elements of `z64`, with 12 fraction bits for `X` and 16 for `theta`, so that `z` has 28, `e` 36
//! and `g` 48 of them. Nothing is truncated on the way, so the rounding of `X` and `theta` is the
//! only error. With `|theta| <= T`, in row `i` with `k_i` entries that add up to `l_i` in absolute
//! value:
//!
//! ```text
//! |error of e_i| <= d_i = 37/256 (l_i 2^-17 + k_i (T 2^-13 + 2^-30))
//! |error of g_j| <= the sum over the entries of column j of |x_ij| d_i + 2^-13 (|e_i| + d_i)
//! ```
//!
//! Entries of `X` are at least -8 and below 8, those of `theta` between -8 and 8; the holder
//! refuses data for which `g` could exceed 64 bits. `logistic_check.py` creates suitable data, runs
//! both parties, and compares with NumPy.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::fs;
use std::time::{Duration, Instant};

use npyz::NpyFile;
use volery_apps::sparse::{self, Factor, Matrix, Shape};
use volery_channel::{Channel, Hello, SessionId, handshake, tcp};
use volery_field::{Ring, Z64};
use volery_ot::convert;
use volery_pcg::{Link, Plan, Security, cot, wire};
use volery_primitives::prg::Prg;

type Failure = Box<dyn Error>;

/// The run ends if the peer is silent for this long.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Fraction bits of the entries of `X`.
const X_FRACTION: u32 = 12;
/// Entries of `X` are below 2^3 in absolute value.
const X_BITS: u32 = X_FRACTION + 3;
/// Fraction bits of the model.
const THETA_FRACTION: u32 = 16;
/// The largest absolute value in the model.
const THETA_BOUND: f64 = 8.0;
/// The slope of the activation, times 2^8.
const SLOPE: u64 = 37;
const SLOPE_FRACTION: u32 = 8;
/// Fraction bits of `e`.
const E_FRACTION: u32 = X_FRACTION + THETA_FRACTION + SLOPE_FRACTION;

fn main() -> Result<(), String> {
    run().map_err(|error| error.to_string())
}

fn run() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (role, options) = arguments
        .split_first()
        .ok_or("the role is holder or helper")?;
    let options = options
        .chunks(2)
        .map(|pair| match pair {
            [name, value] if name.starts_with("--") => Ok((name.as_str(), value.as_str())),
            _ => Err(format!("{} takes the form --name value", pair.join(" "))),
        })
        .collect::<Result<HashMap<_, _>, _>>()?;
    let known: &[&str] = match role.as_str() {
        "holder" => &["--listen", "--connect", "--shape", "--entries", "--data"],
        "helper" => &[
            "--listen",
            "--connect",
            "--shape",
            "--entries",
            "--model",
            "--rate",
            "--out",
        ],
        _ => return Err(format!("the role is holder or helper, not {role}").into()),
    };
    if let Some(name) = options.keys().find(|name| !known.contains(name)) {
        return Err(format!("the {role} has no option {name}").into());
    }
    let wanted = |name: &str| {
        options
            .get(name)
            .copied()
            .ok_or(format!("{role} needs {name}"))
    };
    let shape = shape(wanted("--shape")?, wanted("--entries")?)?;
    let open = || match (options.get("--listen"), options.get("--connect")) {
        (Some(address), None) => Ok(tcp::listen(*address, TIMEOUT)?),
        (None, Some(address)) => Ok(tcp::connect(*address, TIMEOUT)?),
        _ => Err(Failure::from("give --listen or --connect, with HOST:PORT")),
    };
    match role.as_str() {
        "holder" => {
            let data = Data::read(wanted("--data")?, shape)?;
            holder(&data, open()?)
        }
        _ => {
            let rate: f64 = options.get("--rate").unwrap_or(&"1").parse()?;
            let model = model(options.get("--model").copied(), shape.columns)?;
            let out = wanted("--out")?;
            npyz::to_file_1d(out, helper(shape, &model, rate, open()?)?)?;
            Ok(())
        }
    }
}

fn shape(shape: &str, entries: &str) -> Result<Shape, Failure> {
    let (rows, columns) = shape
        .split_once('x')
        .ok_or_else(|| format!("the shape is ROWSxCOLUMNS, not {shape}"))?;
    let number = |text: &str| text.parse().map_err(|error| format!("{text}: {error}"));
    let shape = Shape {
        rows: number(rows)?,
        columns: number(columns)?,
        entries: number(entries)?,
        bits: X_BITS,
    };
    shape.check()?;
    Ok(shape)
}

/// The number with `fraction` fraction bits, rounded to the nearest.
fn fixed(value: f64, fraction: u32) -> Z64 {
    Z64::new((value * f64::from(fraction).exp2()).round() as i64 as u64)
}

/// The holder's examples.
struct Data {
    matrix: Matrix<Z64>,
    /// Whether the label of each row is above zero.
    labels: Vec<bool>,
}

impl Data {
    fn read(path: &str, shape: Shape) -> Result<Self, Failure> {
        let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        let examples: Result<Vec<_>, _> = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or("").trim())
            .zip(1..)
            .filter(|(line, _)| !line.is_empty())
            .map(example)
            .collect();
        examples
            .and_then(|examples| Self::new(&examples, shape))
            .map_err(|error| format!("{path}: {error}").into())
    }

    fn new(examples: &[Example], shape: Shape) -> Result<Self, Failure> {
        if examples.len() != shape.rows {
            let rows = examples.len();
            return Err(format!("{rows} examples, but --shape says {}", shape.rows).into());
        }
        let mut entries = Vec::new();
        for (row, (_, features)) in examples.iter().enumerate() {
            for &(number, value) in features {
                let column = number
                    .checked_sub(1)
                    .ok_or("features are numbered from 1")?;
                let scaled = (value * f64::from(X_FRACTION).exp2()).round();
                let bound = f64::from(X_BITS).exp2();
                // NaN is in no range.
                if !(-bound..bound).contains(&scaled) {
                    let example = row + 1;
                    return Err(format!(
                        "a feature of example {example} is not at least -8 and below 8: scale the features"
                    )
                    .into());
                }
                entries.push((row, column, fixed(value, X_FRACTION)));
            }
        }
        let matrix = Matrix::new(shape, &entries)?;
        refuse_overflow(examples, shape)?;
        let labels = examples.iter().map(|(label, _)| *label > 0.0).collect();
        Ok(Self { matrix, labels })
    }
}

/// The label of an example, and the numbers and values of its features.
type Example = (f64, Vec<(usize, f64)>);

/// An example in the format of LIBSVM: `LABEL NUMBER:VALUE ..`.
fn example((line, number): (&str, usize)) -> Result<Example, Failure> {
    let wrong = || format!("line {number} is no example of the form LABEL NUMBER:VALUE ..");
    let mut words = line.split_whitespace();
    let label = words.next().and_then(|label| label.parse().ok());
    let feature = |word: &str| {
        let (number, value) = word.split_once(':')?;
        Some((number.parse().ok()?, value.parse().ok()?))
    };
    let features = words.map(feature).collect::<Option<_>>();
    Ok((label.ok_or_else(wrong)?, features.ok_or_else(wrong)?))
}

/// Whether `g` stays below 2^63 for every model within its bound; with a margin for rounding.
fn refuse_overflow(examples: &[Example], shape: Shape) -> Result<(), Failure> {
    let mut columns = vec![0.0; shape.columns];
    let mut largest = 0.0f64;
    for (_, features) in examples {
        let row: f64 = features.iter().map(|(_, value)| value.abs()).sum();
        let slope = SLOPE as f64 / f64::from(SLOPE_FRACTION).exp2();
        let e = 0.5 + slope * THETA_BOUND * row;
        for (number, value) in features {
            columns[number - 1] += value.abs() * e;
            largest = largest.max(columns[number - 1]);
        }
    }
    let limit = f64::from(62 - E_FRACTION - X_FRACTION).exp2();
    if largest > limit {
        return Err(format!(
            "an entry of the gradient could be above {limit}: scale the features, or take fewer examples"
        )
        .into());
    }
    Ok(())
}

/// The helper's model.
fn model(path: Option<&str>, columns: usize) -> Result<Vec<f64>, Failure> {
    let Some(path) = path else {
        return Ok(vec![0.0; columns]);
    };
    let file = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let model = NpyFile::new(&file[..]).and_then(NpyFile::into_vec::<f64>);
    let model = model.map_err(|error| format!("{path}: {error}"))?;
    if model.len() != columns {
        return Err(format!("{path}: {} numbers for {columns} columns", model.len()).into());
    }
    match model
        .iter()
        .position(|value| !(-THETA_BOUND..=THETA_BOUND).contains(value))
    {
        Some(place) => {
            Err(format!("{path}: entry {place} (counted from 0) is not between -8 and 8").into())
        }
        None => Ok(model),
    }
}

/// P2: computes the gradient and sends its share.
fn holder(data: &Data, mut channel: Channel) -> Result<(), Failure> {
    let shape = data.matrix.shape();
    let (plan, session) = begin(&mut channel, "holder", shape)?;
    let mut report = Report::new();
    let cot = cot::Receiver::setup(&plan, session, Prg::from_os()?, &mut channel)?;
    let mut ot = convert::Receiver::new(cot, session);
    let rng = &mut Prg::from_os()?;
    report.line("setup", &channel);
    let zeros = vec![Z64::ZERO; shape.columns];
    let z = sparse::receive(
        &data.matrix,
        Factor::Plain,
        &zeros,
        rng,
        &mut ot,
        &mut channel,
    )?;
    report.line("X theta", &channel);
    let e = z.iter().zip(&data.labels).map(|(z, label)| {
        let residual = if *label { -0.5 } else { 0.5 };
        Z64::new(SLOPE) * *z + fixed(residual, E_FRACTION)
    });
    let e: Vec<_> = e.collect();
    let g = sparse::receive(
        &data.matrix,
        Factor::Transposed,
        &e,
        rng,
        &mut ot,
        &mut channel,
    )?;
    wire::send(&g, &mut channel)?;
    channel.flush()?;
    report.line("X^T e", &channel);
    Ok(())
}

/// P1: returns the updated model.
fn helper(
    shape: Shape,
    model: &[f64],
    rate: f64,
    mut channel: Channel,
) -> Result<Vec<f64>, Failure> {
    let (plan, session) = begin(&mut channel, "helper", shape)?;
    let mut report = Report::new();
    let cot = cot::Sender::setup(&plan, None, session, Prg::from_os()?, &mut channel)?;
    let mut ot = convert::Sender::new(cot, session);
    let rng = &mut Prg::from_os()?;
    report.line("setup", &channel);
    let theta: Vec<_> = model
        .iter()
        .map(|value| fixed(*value, THETA_FRACTION))
        .collect();
    let z = sparse::send(shape, Factor::Plain, &theta, rng, &mut ot, &mut channel)?;
    report.line("X theta", &channel);
    let e: Vec<_> = z.iter().map(|z| Z64::new(SLOPE) * *z).collect();
    let g = sparse::send(shape, Factor::Transposed, &e, rng, &mut ot, &mut channel)?;
    let mut other = vec![Z64::ZERO; g.len()];
    wire::recv(
        &mut other,
        "a share of the gradient is not an element of the ring",
        &mut channel,
    )?;
    report.line("X^T e", &channel);
    let step = rate / shape.rows as f64 / f64::from(E_FRACTION + X_FRACTION).exp2();
    let stepped = model
        .iter()
        .zip(g.iter().zip(&other))
        .map(|(theta, (ours, theirs))| theta - step * (*ours + *theirs).value() as i64 as f64);
    Ok(stepped.collect())
}

/// The first message both ways: it checks that both sides run the same protocol.
fn begin(
    channel: &mut Channel,
    role: &'static str,
    shape: Shape,
) -> Result<(Plan, SessionId), Failure> {
    let total = shape.products::<Z64>(Factor::Plain) + shape.products::<Z64>(Factor::Transposed);
    let plan = cot::plan(Some(total as u64), Link::default(), Security::Malicious);
    let hello = Hello {
        protocol: "example logistic over z64",
        role,
        fields: vec![
            ("security", "semi-honest".to_owned()),
            ("shape", format!("{}x{}", shape.rows, shape.columns)),
            ("entries", shape.entries.to_string()),
            ("parameters", plan.describe()),
        ],
    };
    let mut nonce = [0; 32];
    Prg::from_os()?.fill_bytes(&mut nonce);
    let session = handshake(channel, &hello, nonce)?;
    Ok((plan, session))
}

/// Time and bytes of each part.
struct Report {
    start: Instant,
    bytes: u64,
}

impl Report {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            bytes: 0,
        }
    }

    #[expect(clippy::print_stderr, reason = "an example prints its progress")]
    fn line(&mut self, part: &str, channel: &Channel) {
        let stats = channel.stats();
        let bytes = stats.bytes_sent + stats.bytes_received;
        eprintln!(
            "{part:8} {:7.2} s {:8.1} MB",
            self.start.elapsed().as_secs_f64(),
            (bytes - self.bytes) as f64 / 1e6
        );
        (self.start, self.bytes) = (Instant::now(), bytes);
    }
}
