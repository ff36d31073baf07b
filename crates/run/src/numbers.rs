//! The part that `ope` and `matvec` share: private numbers of two parties as input, numbers for the
//! receiver as output.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use volery_apps::Error;
use volery_channel::{Channel, Hello, Role, SessionId, Stats, handshake};
use volery_field::Z64;
use volery_options::{AllowedValue, NamedValues, SetByName, parse};
use volery_os::time::{Duration, Instant};
use volery_pcg::vole::{self, VoleRing};
use volery_pcg::{Link, Security};
use volery_primitives::prg::Prg;

use crate::endpoint::{Connection, Endpoint, EndpointOptions, RunChannel};
use crate::failure::{Failure, Result, Status};
use crate::npy::{Table, Values, Writer, write_reals};
use crate::options::{Common, fill};
use crate::paths::ResultFile;
use crate::randomness::{fresh_prg, hex};
use crate::report::{Report, Seconds};
use crate::reporter::Reporter;

/// The inputs that a caller gives to a run.
#[derive(Default)]
pub struct NumericInputs<'a> {
    /// This side's numbers, in place of a file.
    pub input: Option<Table>,
    /// The connection, in place of an address.
    pub connection: Option<&'a mut Connection>,
}

volery_options::options! {
    /// The options of both calls.
    pub struct NumbersOptions {
        /// Role of this party
        required role: Role [Role::Receiver, "Peer", "ROLE", parse::text, ROLES];

        /// Kind of peer to be secure against [default: malicious; semi-honest over z64 and for real
        /// numbers, which are never secure against a malicious peer]
        once security: Security ["Protocol", "SECURITY", parse::text];
    }
}

const ROLES: &[AllowedValue] = &[
    ("sender", "Holds the coefficients, or the matrix"),
    ("receiver", "Holds the points, or the vector"),
];

/// The options of one side that are the same in both calls.
#[derive(Clone, Debug, Default)]
pub struct PeerArguments {
    /// Role and security.
    pub options: NumbersOptions,
    /// The peer.
    pub endpoint: EndpointOptions,
    /// The options of every run.
    pub common: Common,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Channel(error) => error.into(),
            Error::Plan(error) => Self::usage("--security", error).with_hint(
                "use --security semi-honest if the peer is trusted to follow the protocol",
            ),
            error @ Error::Shape { .. } => Self::new(Status::Mismatch, error)
                .with_hint("the vector has one entry for each column of the matrix"),
            error => Self::new(Status::Other, error),
        }
    }
}

/// A run between the two parties, from the open channel on.
pub(crate) struct Run<'a> {
    verb: &'static str,
    role: Role,
    pub(crate) security: Security,
    reporter: &'a Reporter,
    pub(crate) channel: RunChannel<'a>,
    pub(crate) session: SessionId,
    pub(crate) rng: Prg,
    start: Instant,
    online: PhaseCost,
}

/// Time and traffic of a phase.
#[derive(Clone, Copy, Default)]
struct PhaseCost {
    time: Duration,
    bytes: u64,
}

impl PeerArguments {
    /// The options of a caller, and those of `own`, which one of the calls has.
    pub(crate) fn by_name(named: &NamedValues, own: &mut dyn SetByName) -> Result<Self> {
        let mut all = Self::default();
        let mut sets: [&mut dyn SetByName; 5] =
            [own, &mut all.options, &mut all.endpoint, &mut all.common.run, &mut all.common.report];
        fill(named, &mut sets, &["role"])?;
        Ok(all)
    }

    /// The requested security, or the strongest available.
    pub(crate) fn security(&self, malicious_available: bool) -> Security {
        self.options.security.unwrap_or(if malicious_available {
            Security::Malicious
        } else {
            Security::SemiHonest
        })
    }

    /// Connects and runs the handshake; the peer must have the same values in all `fields`.
    ///
    /// # Errors
    /// If there is no peer, or it was started with other settings.
    pub(crate) fn begin<'a>(
        &self,
        verb: &'static str,
        endpoint: Endpoint<'a>,
        security: Security,
        mut fields: Vec<(&'static str, String)>,
        reporter: &'a Reporter,
    ) -> Result<Run<'a>> {
        let common = &self.common;
        let mut channel = endpoint.open(common.timeout, reporter)?;
        let start = Instant::now();
        reporter.begin("setup and evaluation");
        let mut nonce = [0; 32];
        fresh_prg()?.fill_bytes(&mut nonce);
        fields.push(("--security", security.to_string()));
        let hello = Hello { protocol: verb, role: self.options.role.name(), fields };
        let session = handshake(&mut channel, &hello, nonce)?;
        Ok(Run {
            verb,
            role: self.options.role,
            security,
            reporter,
            channel,
            session,
            rng: fresh_prg()?,
            start,
            online: PhaseCost::default(),
        })
    }
}

impl Run<'_> {
    /// Sends a size of this party's input and receives the peer's. Both sizes are public. The
    /// peer's is accepted only up to `most`, which the option sets.
    ///
    /// # Errors
    /// If the channel fails, or the peer's size is above `most`.
    pub(crate) fn exchange_sizes(
        &mut self,
        ours: u64,
        (option, what, most): (&str, &str, u64),
    ) -> Result<usize> {
        let learned = format!("the peer learned the size of this side's input: {ours}");
        self.reporter.record().revealed.push(learned);
        self.channel.send(&ours.to_le_bytes())?;
        self.channel.flush()?;
        let mut theirs = [0; 8];
        self.channel.recv(&mut theirs)?;
        accept(u64::from_le_bytes(theirs), option, what, most)
    }

    /// Runs a phase that depends on the inputs.
    pub(crate) fn online<T>(
        &mut self,
        part: impl FnOnce(&mut Channel) -> volery_apps::Result<T>,
    ) -> Result<T> {
        let (start, before) = (Instant::now(), self.channel.stats());
        let result = part(&mut self.channel)?;
        self.online.time += start.elapsed();
        self.online.bytes += bytes(self.channel.stats() - before);
        Ok(result)
    }

    /// The report of a run made of vector OLEs over `R` of length `length`.
    pub(crate) fn report<R: VoleRing>(
        &self,
        ring: &str,
        (n, length): (u64, u64),
        mut result: serde_json::Map<String, serde_json::Value>,
    ) -> Result<Report> {
        self.reporter.end();
        let plan =
            vole::plan::<R>(Some(length), Link::default(), self.security).map_err(Error::from)?;
        let stats = self.channel.stats();
        let total = self.start.elapsed();
        result.insert("session".to_owned(), hex(self.session.as_bytes()).into());
        result.insert("bytes_online".to_owned(), self.online.bytes.into());
        let offline = bytes(stats) - self.online.bytes;
        result.insert("bytes_offline".to_owned(), offline.into());
        result.insert("connection".to_owned(), self.channel.describe());
        Ok(Report {
            role: Some(self.role.name().to_owned()),
            n: Some(n),
            ring: Some(ring.to_owned()),
            security: Some(self.security.to_string()),
            noise: Some(plan.noise().to_string()),
            parameters: Some(plan.describe()),
            assumption: Some(plan.assumption()),
            bytes_sent: Some(stats.bytes_sent),
            bytes_received: Some(stats.bytes_received),
            messages: Some(stats.messages_sent + stats.messages_received),
            seconds: Seconds {
                setup: Some((total - self.online.time).as_secs_f64()),
                online: Some(self.online.time.as_secs_f64()),
                total: Some(total.as_secs_f64()),
                ..Seconds::default()
            },
            result,
            ..Report::new(self.verb, self.reporter)
        })
    }
}

fn bytes(stats: Stats) -> u64 {
    stats.bytes_sent + stats.bytes_received
}

/// Checks a size announced by the peer.
pub(crate) fn accept(size: u64, option: &str, what: &str, most: u64) -> Result<usize> {
    let refused = || {
        Failure::new(
            Status::Mismatch,
            format_args!(
                "the peer has {size} {what}, more than the limit of {most} set by {option}"
            ),
        )
        .with_hint(format_args!("use {option} {size} if this machine has the memory for it"))
    };
    // mutant(cli-size): false
    if size > most {
        return Err(refused());
    }
    usize::try_from(size).map_err(|_| refused())
}

/// Reads an array from a file.
pub(crate) fn table(path: &Path) -> Result<Table> {
    Table::open(path).map_err(|error| not_an_array(path, error))
}

pub(crate) fn not_an_array(path: &Path, error: impl fmt::Display) -> Failure {
    Failure::file(path, error)
        .with_hint("numpy.save writes such a file from an array of uint64 or float64")
}

/// Checks, before any work, that the file of a result can be written.
pub(crate) fn prepare(path: &Path, input: Option<&PathBuf>, force: bool) -> Result<ResultFile> {
    if path.extension().is_none_or(|extension| extension != "npy") {
        let what = format_args!("{} does not end in .npy", path.display());
        return Err(Failure::usage("--out", what));
    }
    ResultFile::prepare(path, input.map_or(&[], std::slice::from_ref), force)
}

pub(crate) fn write(file: ResultFile, values: &Values) -> Result<()> {
    let path = file.path().to_owned();
    let write = |file: &mut File| match values {
        Values::Words(words) => {
            let mut writer = Writer::new(file.try_clone()?, words.len() as u64)?;
            writer.write(bytemuck::cast_slice::<u64, Z64>(words))?;
            writer.finish()
        }
        Values::Reals(reals) => write_reals(file, reals),
    };
    file.write(|file| write(file).map_err(|error| Failure::file(&path, error)))
}
