//! What `ope` and `matvec` have in common: private numbers of two parties in, the receiver's numbers out.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use volery_apps::Error;
use volery_channel::{Channel, Hello, SessionId, Stats, handshake};
use volery_pcg::vole::{self, VoleRing};
use volery_pcg::{Link, Security};
use volery_primitives::prg::Prg;

use super::endpoint::{Endpoint, EndpointArguments};
use super::options::Common;
use super::paths::{check_free, same};
use crate::exit::{Failure, Status};
use crate::npy::Table;
use crate::output::SingleFile;
use crate::party::{fresh_prg, hex};
use crate::report::{Report, Seconds, peak_memory};

/// The options of both verbs that say with whom and how.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Meeting {
    /// Which side this party takes
    #[arg(long)]
    pub(super) role: Role,

    #[command(flatten)]
    endpoint: EndpointArguments,

    /// Against whom the run is secure [default: malicious; over z64 and for real numbers, which have no such form, semi-honest]
    #[arg(long)]
    security: Option<Security>,

    #[command(flatten)]
    pub(super) common: Common,
}

/// Which side a party takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Role {
    /// Holds the coefficients, or the matrix.
    Sender,
    /// Holds the points, or the vector.
    Receiver,
}

impl Role {
    /// The word for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Channel(error) => error.into(),
            Error::Plan(error) => Self::usage("--security", error)
                .hint("--security semi-honest, if the peer is trusted to follow the protocol"),
            error @ Error::Shape { .. } => Self::new(Status::Mismatch, error)
                .hint("the vector has one entry for each column of the matrix"),
            error => Self::new(Status::Other, error),
        }
    }
}

/// A run between the two parties, from the open channel on.
pub(super) struct Run {
    verb: &'static str,
    role: Role,
    pub(super) security: Security,
    endpoint: Endpoint,
    pub(super) channel: Channel,
    pub(super) session: SessionId,
    pub(super) rng: Prg,
    start: Instant,
    online: Spent,
}

/// Time and traffic of a phase.
#[derive(Clone, Copy, Default)]
struct Spent {
    time: Duration,
    bytes: u64,
}

impl Meeting {
    /// The security asked for, or the best there is.
    pub(super) fn security(&self, malicious_is_there: bool) -> Security {
        self.security.unwrap_or(if malicious_is_there {
            Security::Malicious
        } else {
            Security::SemiHonest
        })
    }

    /// The endpoint, checked.
    ///
    /// # Errors
    /// A usage error.
    pub(super) fn endpoint(&self) -> Result<Endpoint, Failure> {
        self.endpoint.endpoint()
    }

    /// Connects and shakes hands; the peer must say the same in all `fields`.
    ///
    /// # Errors
    /// If there is no peer, or it was started with other settings.
    pub(super) fn begin(
        &self,
        verb: &'static str,
        endpoint: Endpoint,
        security: Security,
        mut fields: Vec<(&'static str, String)>,
    ) -> Result<Run, Failure> {
        let common = &self.common;
        let mut channel = endpoint.open(common.timeout(), common.voice())?;
        let start = Instant::now();
        let mut nonce = [0; 32];
        fresh_prg()?.fill_bytes(&mut nonce);
        fields.push(("--security", security.to_string()));
        let hello = Hello {
            protocol: verb,
            role: self.role.name(),
            fields,
        };
        let session = handshake(&mut channel, &hello, nonce)?;
        Ok(Run {
            verb,
            role: self.role,
            security,
            endpoint,
            channel,
            session,
            rng: fresh_prg()?,
            start,
            online: Spent::default(),
        })
    }
}

impl Run {
    /// Tells the peer a size of this party's and hears the peer's. What it says is public, and accepted only up to the `most`
    /// that the option allows.
    ///
    /// # Errors
    /// If the channel fails, or the peer's size is above.
    pub(super) fn exchange_sizes(
        &mut self,
        ours: u64,
        (option, what, most): (&str, &str, u64),
    ) -> Result<usize, Failure> {
        self.channel.send(&ours.to_le_bytes())?;
        self.channel.flush()?;
        let mut theirs = [0; 8];
        self.channel.recv(&mut theirs)?;
        accept(u64::from_le_bytes(theirs), option, what, most)
    }

    /// A part of the run that depends on the inputs.
    pub(super) fn online<T>(
        &mut self,
        part: impl FnOnce(&mut Channel) -> volery_apps::Result<T>,
    ) -> Result<T, Failure> {
        let (start, before) = (Instant::now(), self.channel.stats());
        let result = part(&mut self.channel)?;
        self.online.time += start.elapsed();
        self.online.bytes += bytes(self.channel.stats() - before);
        Ok(result)
    }

    /// What the run was, made of vector-OLEs over `R` of length `length`.
    ///
    /// # Errors
    /// If there is no such vector-OLE, which the run would have found.
    pub(super) fn report<R: VoleRing>(
        &self,
        ring: &str,
        (n, length): (u64, u64),
        mut result: serde_json::Map<String, serde_json::Value>,
    ) -> Result<Report, Failure> {
        let plan =
            vole::plan::<R>(Some(length), Link::default(), self.security).map_err(Error::from)?;
        let stats = self.channel.stats();
        let total = self.start.elapsed();
        result.insert("session".to_owned(), hex(self.session).into());
        result.insert("bytes_online".to_owned(), self.online.bytes.into());
        let offline = bytes(stats) - self.online.bytes;
        result.insert("bytes_offline".to_owned(), offline.into());
        let connection = self.endpoint.describe(&self.channel);
        result.insert("connection".to_owned(), connection);
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
            peak_rss_bytes: peak_memory(),
            result,
            ..Report::new(self.verb)
        })
    }
}

fn bytes(stats: Stats) -> u64 {
    stats.bytes_sent + stats.bytes_received
}

/// A size that the peer says.
///
/// # Errors
/// If it is more than the option allows.
pub(super) fn accept(size: u64, option: &str, what: &str, most: u64) -> Result<usize, Failure> {
    let refused = || {
        Failure::new(
            Status::Mismatch,
            format_args!("the peer has {size} {what}, more than the {most} of {option}"),
        )
        .hint(format_args!(
            "{option} {size}, if this machine has the memory for it"
        ))
    };
    if size > most {
        return Err(refused());
    }
    usize::try_from(size).map_err(|_| refused())
}

/// An array from a file.
///
/// # Errors
/// If it cannot be read, or is none.
pub(super) fn table(path: &Path) -> Result<Table, Failure> {
    Table::open(path).map_err(|error| not_an_array(path, error))
}

/// A file that is not the array it should be.
pub(super) fn not_an_array(path: &Path, error: impl fmt::Display) -> Failure {
    Failure::file(path, error)
        .hint("numpy.save writes such a file from an array of uint64 or float64")
}

/// A result on its way to its file.
pub(super) struct Place {
    path: PathBuf,
    file: SingleFile,
    force: bool,
}

impl Place {
    /// Makes sure, before anything is done, that the file can be written.
    ///
    /// # Errors
    /// A usage error.
    pub(super) fn prepare(path: &Path, input: Option<&Path>, force: bool) -> Result<Self, Failure> {
        if path.extension().is_none_or(|extension| extension != "npy") {
            return Err(Failure::usage(
                "--out",
                format_args!("{} does not end in .npy", path.display()),
            ));
        }
        if input.is_some_and(|input| same(path, input)) {
            return Err(Failure::usage(
                "--out",
                format_args!("{} is the input file", path.display()),
            )
            .hint("the input is never written to: name another file"));
        }
        check_free(path, force)?;
        Ok(Self {
            path: path.to_owned(),
            file: SingleFile::prepare("--out", path)?,
            force,
        })
    }

    /// Writes it.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn write(
        self,
        write: impl FnOnce(&mut File) -> std::io::Result<()>,
    ) -> Result<PathBuf, Failure> {
        let Self { path, file, force } = self;
        check_free(&path, force)?; // somebody may have been faster
        file.write(|file| write(file).map_err(|error| Failure::file(&path, error)))?;
        Ok(path)
    }
}
