//! Polynomial evaluation, a matrix times a vector, and convolutions between two processes, and a
//! comparison with Gilboa's multiplication.
//!
//! ```text
//! (cd lab && cargo build --profile dist --example dense)
//! target/dist/examples/dense left  --listen  127.0.0.1:7000
//! target/dist/examples/dense right --connect 127.0.0.1:7000
//! target/dist/examples/dense bench [--no-gilboa]   # both parties as threads, one thread each
//! ```
//!
//! The left party has the polynomial, the matrix and the images; the right party has the point, the
//! vector and the kernels, and gets the results. The data come from seeds that both know, so that
//! the right party can compare each result with plain computation; real parties have their own
//! data. `left` and `right` may be given `--degree N`, `--rows N` and `--columns N`, both the same.

#![allow(clippy::print_stdout, reason = "the output is its purpose")]

use std::env;
use std::time::{Duration, Instant};

use volery_apps::convolution::{self, Padding};
use volery_apps::linear::{self, Matrix, Output};
use volery_apps::{offline, ope};
use volery_channel::{Channel, Hello, handshake, run_two_parties_tcp, tcp};
use volery_channel::{SessionId, Stats};
use volery_field::{Fp61, Ring};
use volery_ot::{convert, softspoken};
use volery_pcg::{Security, gilboa};
use volery_primitives::{Block, prg::Prg};

type Anything = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Anything>;

/// The run ends if the peer is silent for this long.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Height and width of the images.
const IMAGE: usize = 255;

/// One product of the two parties.
#[derive(Clone, Copy)]
enum Job {
    /// A polynomial of this degree at one point.
    Polynomial(usize),
    /// A matrix, given by rows and columns, times a vector.
    Matrix(usize, usize),
    /// An image and square kernels: input channels, output channels, height of a kernel.
    Convolution(usize, usize, usize),
}

/// The cost of a phase at the right party.
struct Phase {
    time: Duration,
    bytes: u64,
}

impl Job {
    fn name(self) -> String {
        match self {
            Self::Polynomial(degree) => format!("polynomial of degree {degree}"),
            Self::Matrix(rows, columns) => format!("{rows} x {columns} matrix times vector"),
            Self::Convolution(1, 1, size) => {
                format!("{IMAGE} x {IMAGE} image, kernel {size} x {size}")
            }
            Self::Convolution(inputs, outputs, size) => {
                format!("{inputs} x {IMAGE} x {IMAGE} image, {outputs} kernels {size} x {size}")
            }
        }
    }

    /// Number and length of the vector-OLEs.
    fn vector_oles(self) -> (usize, usize) {
        match self {
            Self::Polynomial(degree) => (1, degree),
            Self::Matrix(rows, columns) => (columns, rows),
            Self::Convolution(inputs, outputs, size) => {
                (inputs * outputs * size * size, IMAGE * IMAGE)
            }
        }
    }

    fn left_data(self) -> Vec<Fp61> {
        match self {
            Self::Polynomial(degree) => random(1, degree + 1),
            Self::Matrix(rows, columns) => random(2, rows * columns),
            Self::Convolution(inputs, _, _) => random(3, inputs * IMAGE * IMAGE),
        }
    }

    fn right_data(self) -> Vec<Fp61> {
        match self {
            Self::Polynomial(_) => random(4, 1),
            Self::Matrix(_, columns) => random(5, columns),
            Self::Convolution(inputs, outputs, size) => random(6, inputs * outputs * size * size),
        }
    }

    fn product(self) -> Result<linear::Shape> {
        let (columns, rows) = self.vector_oles();
        Ok(linear::Shape::new(rows, columns, 1)?)
    }

    fn convolution((inputs, outputs, size): (usize, usize, usize)) -> Result<convolution::Shape> {
        let (image, kernels) = ((inputs, IMAGE, IMAGE), (outputs, size, size));
        Ok(convolution::Shape::new(image, kernels, Padding::Same)?)
    }

    fn left(self, source: &mut offline::Sender, channel: &mut Channel) -> Result<()> {
        let data = self.left_data();
        meet(channel)?;
        match self {
            Self::Polynomial(degree) => {
                let sender = ope::Sender::offline(degree, 1, source, channel)?;
                meet(channel)?;
                sender.online(&data, channel)?;
            }
            Self::Matrix(rows, columns) => {
                let matrix = Matrix::from_columns(rows, columns, data)?;
                let shape = self.product()?;
                let sender = linear::Sender::offline(shape, Output::Right, source, channel)?;
                meet(channel)?;
                sender.online(&matrix, channel)?;
            }
            Self::Convolution(inputs, outputs, size) => {
                let shape = Self::convolution((inputs, outputs, size))?;
                let sender = convolution::Sender::offline(shape, Output::Right, source, channel)?;
                meet(channel)?;
                sender.online(&data, channel)?;
            }
        }
        Ok(())
    }

    /// Both phases; fails if the result differs from the plain one.
    fn right(self, source: &mut offline::Receiver, channel: &mut Channel) -> Result<[Phase; 2]> {
        let data = self.right_data();
        meet(channel)?;
        let clock = Clock::start(channel);
        let (offline, online, result, plain);
        match self {
            Self::Polynomial(degree) => {
                let receiver = ope::Receiver::offline(degree, 1, source, channel)?;
                offline = clock.stop(channel);
                let clock = meet_and_start(channel)?;
                result = receiver.online(&data, channel)?.to_vec();
                online = clock.stop(channel);
                plain = vec![ope::evaluate(&self.left_data(), data[0])];
            }
            Self::Matrix(rows, columns) => {
                let shape = self.product()?;
                let receiver = linear::Receiver::offline(shape, Output::Right, source, channel)?;
                let vector = Matrix::column_vector(&data)?;
                offline = clock.stop(channel);
                let clock = meet_and_start(channel)?;
                let product = receiver.online(&vector, channel)?.ok_or("no result")?;
                online = clock.stop(channel);
                result = product.entries().to_vec();
                let matrix = Matrix::from_columns(rows, columns, self.left_data())?;
                plain = matrix.times(&vector)?.entries().to_vec();
            }
            Self::Convolution(inputs, outputs, size) => {
                let shape = Self::convolution((inputs, outputs, size))?;
                let receiver =
                    convolution::Receiver::offline(shape, Output::Right, source, channel)?;
                offline = clock.stop(channel);
                let clock = meet_and_start(channel)?;
                let image = receiver.online(&data, channel)?.ok_or("no result")?;
                online = clock.stop(channel);
                result = image.to_vec();
                plain = convolution::plain(shape, &self.left_data(), &data)?;
            }
        }
        if result != plain {
            return Err(format!("{}: the result differs from the plain one", self.name()).into());
        }
        Ok([offline, online])
    }

    /// The vector-OLEs of the job by Gilboa's multiplication with its check, the OTs from an
    /// extension: the left party.
    fn gilboa_left(self, session: SessionId, channel: &mut Channel) -> Result<()> {
        let (count, length) = self.vector_oles();
        let mut rng = Prg::from_os()?;
        let field = softspoken::SmallField::Bits8;
        meet(channel)?;
        let source = softspoken::Sender::setup(None, field, session, rng.fork("ot"), channel)?;
        let mut ot = convert::Sender::new(source, session);
        for _ in 0..count {
            let mut keys = vec![[Block::ZERO; 2]; Fp61::BITS as usize];
            ot.random_chosen(&mut keys, channel)?;
            let u = random::<Fp61>(7, length);
            let mut v = vec![Fp61::ZERO; length];
            gilboa::Sender::from_ots(&keys).multiply_checked(&u, &mut v, &mut rng, channel)?;
        }
        Ok(())
    }

    /// The same, the right party.
    fn gilboa_right(self, session: SessionId, channel: &mut Channel) -> Result<Phase> {
        let (count, length) = self.vector_oles();
        let mut rng = Prg::from_os()?;
        let field = softspoken::SmallField::Bits8;
        meet(channel)?;
        let clock = Clock::start(channel);
        let source = softspoken::Receiver::setup(field, session, rng.fork("ot"), channel)?;
        let mut ot = convert::Receiver::new(source, session);
        for _ in 0..count {
            let x = Fp61::random(&mut rng);
            let mut keys = vec![Block::ZERO; Fp61::BITS as usize];
            ot.random_chosen(&gilboa::choices(x), &mut keys, channel)?;
            let mut w = vec![Fp61::ZERO; length];
            gilboa::Receiver::from_ots(x, &keys).multiply_checked(&mut w, &mut rng, channel)?;
        }
        Ok(clock.stop(channel))
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let option = |name: &str| {
        let place = arguments.iter().position(|argument| argument == name)?;
        arguments.get(place + 1).cloned()
    };
    let number = |name: &str, default: usize| match option(name) {
        Some(text) => text
            .parse()
            .map_err(|_| format!("{name} takes a number, not '{text}'")),
        None => Ok(default),
    };
    let jobs = [
        Job::Polynomial(number("--degree", 1 << 20)?),
        Job::Matrix(number("--rows", 1 << 20)?, number("--columns", 10)?),
        Job::Convolution(1, 1, 3),
        Job::Convolution(1, 1, 5),
        Job::Convolution(1, 1, 9),
        Job::Convolution(2, 3, 3),
    ];
    match arguments.first().map(String::as_str) {
        Some("left") => {
            let address = option("--listen").ok_or("left takes --listen HOST:PORT")?;
            let mut channel = tcp::listen(address, TIMEOUT)?;
            let session = begin("left", &jobs, &mut channel)?;
            left(&jobs, session, &mut channel)
        }
        Some("right") => {
            let address = option("--connect").ok_or("right takes --connect HOST:PORT")?;
            let mut channel = tcp::connect(address, TIMEOUT)?;
            let session = begin("right", &jobs, &mut channel)?;
            right(&jobs, session, &mut channel)
        }
        Some("bench") => bench(&jobs, !arguments.iter().any(|one| one == "--no-gilboa")),
        _ => Err("usage: dense left --listen HOST:PORT | right --connect HOST:PORT | bench".into()),
    }
}

/// The first message both ways.
fn begin(role: &'static str, jobs: &[Job], channel: &mut Channel) -> Result<SessionId> {
    let names: Vec<String> = jobs.iter().map(|job| job.name()).collect();
    let hello = Hello {
        protocol: "example dense",
        role,
        fields: vec![("jobs", names.join(", "))],
    };
    let mut nonce = [0; 32];
    Prg::from_os()?.fill_bytes(&mut nonce);
    Ok(handshake(channel, &hello, nonce)?)
}

fn left(jobs: &[Job], session: SessionId, channel: &mut Channel) -> Result<()> {
    let mut source =
        offline::Sender::setup(Security::Malicious, session, Prg::from_os()?, channel)?;
    for job in jobs {
        job.left(&mut source, channel)?;
    }
    Ok(())
}

fn right(jobs: &[Job], session: SessionId, channel: &mut Channel) -> Result<()> {
    let clock = Clock::start(channel);
    let mut source =
        offline::Receiver::setup(Security::Malicious, session, Prg::from_os()?, channel)?;
    println!("{:<44} {}", "setup, once", clock.stop(channel).line());
    for job in jobs {
        let [offline, online] = job.right(&mut source, channel)?;
        println!("{:<44} {}", job.name(), offline.line());
        println!("{:<44} {}", "    online", online.line());
    }
    Ok(())
}

/// Both parties over TCP, each in one thread.
fn bench(jobs: &[Job], with_gilboa: bool) -> Result<()> {
    println!(
        "AES-128, counter mode: {:.3} ns a block",
        nanoseconds_aes_block()
    );
    let session = SessionId::from_bytes([1; 32]);
    let parties = run_two_parties_tcp(
        |channel| alone(|| left(jobs, session, channel)),
        |channel| alone(|| right(jobs, session, channel)),
    );
    parties.0?;
    parties.1?;
    for job in jobs.iter().filter(|_| with_gilboa) {
        let parties = run_two_parties_tcp(
            |channel| alone(|| job.gilboa_left(session, channel)),
            |channel| alone(|| job.gilboa_right(session, channel)),
        );
        parties.0?;
        println!(
            "{:<44} {}",
            format!("Gilboa: {}", job.name()),
            parties.1?.line()
        );
    }
    Ok(())
}

/// Runs a party in a pool of one thread.
fn alone<T: Send>(party: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    pool.install(party)
}

/// The fastest of some runs.
fn nanoseconds_aes_block() -> f64 {
    let (mut prg, mut blocks) = (Prg::new(Block::ZERO), vec![Block::ZERO; 1 << 11]);
    let run = |_| {
        let start = Instant::now();
        prg.fill_blocks(std::hint::black_box(&mut blocks));
        start.elapsed().as_secs_f64() * 1e9 / blocks.len() as f64
    };
    (0..2000).map(run).fold(f64::INFINITY, f64::min)
}

/// A byte each way, so that neither party's clock counts the other's preparations.
fn meet(channel: &mut Channel) -> Result<()> {
    channel.send(&[0])?;
    channel.flush()?;
    Ok(channel.recv(&mut [0])?)
}

fn meet_and_start(channel: &mut Channel) -> Result<Clock> {
    meet(channel)?;
    Ok(Clock::start(channel))
}

struct Clock {
    start: Instant,
    before: Stats,
}

impl Clock {
    fn start(channel: &Channel) -> Self {
        Self {
            start: Instant::now(),
            before: channel.stats(),
        }
    }

    fn stop(self, channel: &Channel) -> Phase {
        let stats = channel.stats() - self.before;
        Phase {
            time: self.start.elapsed(),
            bytes: stats.bytes_sent + stats.bytes_received,
        }
    }
}

impl Phase {
    fn line(&self) -> String {
        let (ms, mb) = (self.time.as_secs_f64() * 1e3, self.bytes as f64 / 1e6);
        format!("{ms:>10.1} ms {mb:>10.3} MB")
    }
}

fn random<R: Ring>(seed: u128, n: usize) -> Vec<R> {
    let mut elements = vec![R::ZERO; n];
    R::random_slice(&mut Prg::new(Block::from(seed)), &mut elements);
    elements
}
