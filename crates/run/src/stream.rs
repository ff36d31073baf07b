//! The part that `vole` and `cot` share: writes one party's part of n correlations to files, or
//! hands it to a caller.

#[cfg(feature = "gpu")]
pub(crate) mod card;
mod memory;

use std::path::PathBuf;

use volery_channel::{Channel, Link, Role};
use volery_matching::options::link;
use volery_options::{AllowedValue, NamedValues, SetByName, parse};
use volery_os::fs::sync_all;
use volery_os::time::Instant;
use volery_pcg::{Device, Kind, Plan};

use crate::choices::{Choices, Parameters, security_words};
use crate::driver::{self, Outcome};
use crate::endpoint::{Connection, EndpointOptions};
use crate::failure::{Failure, Result};
use crate::files::{Array, Columns, file_name, write_beside};
use crate::negotiation::{AgreedPlan, Request};
use crate::npy::Form;
use crate::options::{Common, count, fill};
use crate::output::Folder;
use crate::party::Party;
use crate::report::{Report, Seconds};
use crate::reporter::{Bar, Reporter, many};
use crate::results::Part;

volery_options::options! {
    /// The options of correlated OTs and of vector OLEs.
    pub struct StreamOptions {
        /// Role of this party
        required role: Role [Role::Receiver, "Peer", "ROLE", parse::text, ROLES];

        /// Number of correlations
        required n: u64 [0, "Protocol", "N", count];

        /// Link that the protocol and its parameters are chosen for: RATE,RTT such as
        /// 100Mbit,20ms; for a slow link the parties compute more and send less [default: the link
        /// that the parties measure]
        once link: Link ["Protocol", "RATE,RTT", link];

        /// What this side computes rounds on: cpu, cuda:N, the CUDA card of that number, or auto,
        /// the first card if it works and suits the plan. A card needs a build with the feature
        /// gpu, and on both sides a set for cards such as --set b11/4; the peer chooses its own
        /// device
        default device: Device ["cpu", "Running", "DEVICE", parse::text];

        /// Output folder for this party's part; appears when the run is complete
        once out: PathBuf ["Output", "DIR", parse::path];

        /// Replace the output folder of an earlier run
        switch force ["Output"];
    }
}

const ROLES: &[AllowedValue] = &[
    ("sender", "Gets u and v of a VOLE; delta and v of a COT"),
    ("receiver", "Gets x and w of a VOLE; u and w of a COT"),
];

/// The options of one side of a stream of correlations.
#[derive(Clone, Debug, Default)]
pub struct StreamArguments {
    /// Its own options.
    pub options: StreamOptions,
    /// The options that determine the parameters.
    pub choices: Choices,
    /// The peer.
    pub endpoint: EndpointOptions,
    /// The options of every run.
    pub common: Common,
}

impl StreamArguments {
    /// The options of a caller, and those of `own`, which one kind of correlation has.
    pub(crate) fn by_name(named: &NamedValues, own: &mut dyn SetByName) -> Result<Self> {
        let mut all = Self::default();
        let mut sets: [&mut dyn SetByName; 6] = [
            &mut all.options,
            own,
            &mut all.choices,
            &mut all.endpoint,
            &mut all.common.run,
            &mut all.common.report,
        ];
        fill(named, &mut sets, &["role", "n"])?;
        Ok(all)
    }

    fn order(&self, kind: Kind) -> Result<Request> {
        if self.options.link.is_some() && self.choices.parameters != Parameters::Default {
            return Err(Failure::usage(
                "--link",
                format_args!(
                    "--parameters {} are the same on every link",
                    self.choices.parameters.name()
                ),
            ));
        }
        Request::new(&self.choices, kind, self.options.n, self.options.link)?
            .on(self.options.device)
    }
}

/// Where the correlations go.
pub enum Destination<'a> {
    /// To the folder of `--out`.
    Folder,
    /// To the caller; in memory of the card if one is named as the device.
    Caller {
        /// The number at a time; `None`: all of them at once.
        chunk: Option<usize>,
        /// Takes them.
        put: &'a mut dyn FnMut(Part) -> Result<()>,
    },
}

/// Makes the correlations of sender `S` and receiver `R`; `key` is the key of the party that has
/// one, `None` for a random one.
/// Returns the report.
pub(crate) fn run<S: Party, R: Party<Ring = S::Ring>>(
    kind: Kind,
    arguments: &StreamArguments,
    key: Option<S::Ring>,
    connection: Option<&mut Connection>,
    destination: Destination<'_>,
    reporter: &Reporter,
) -> Result<String> {
    let order = &arguments.order(kind)?;
    let run = match arguments.options.role {
        Role::Sender => run_party::<S>,
        Role::Receiver => run_party::<R>,
    };
    run(arguments, order, key, connection, destination, reporter)
}

fn run_party<E: Party>(
    arguments: &StreamArguments,
    order: &Request,
    key: Option<E::Ring>,
    connection: Option<&mut Connection>,
    destination: Destination<'_>,
    reporter: &Reporter,
) -> Result<String> {
    let common = &arguments.common;
    let n = order.n;
    let endpoint = arguments.endpoint.endpoint(connection, reporter)?;
    let folder = match (&arguments.options.out, &destination) {
        (Some(out), Destination::Folder) => {
            let folder = Folder::prepare("--out", out, arguments.options.force)?;
            folder.check_space("--n", Columns::<E>::bytes(n))?;
            Some(folder)
        }
        (Some(_), Destination::Caller { .. }) => {
            let what = "the correlations go to the caller; remove it";
            return Err(Failure::usage("--out", what));
        }
        (None, _) => None,
    };
    let place = common.prepare_report(reporter)?;
    let pool = common.pool()?;
    // Before the peer hears of this side.
    order.sample().used_device().map_err(|error| Failure::usage("--device", error))?;

    let mut channel = endpoint.open(common.timeout, reporter)?;
    let start = Instant::now();
    reporter.begin("setup");
    let mut listener = StreamProgress { reporter, n, progress: None };
    let (outcome, agreed) = match (&folder, destination) {
        (_, Destination::Caller { chunk, put }) => {
            let run = |put: &mut memory::Put<'_>| {
                pool.install(|| {
                    let make = match arguments.options.device {
                        #[cfg(feature = "gpu")]
                        Device::Cuda(_) => card::make::<E>,
                        _ => memory::make::<E>,
                    };
                    make(order, key, chunk, &mut channel, &mut listener, put)
                })
            };
            let (outcome, agreed) = memory::hand_over(run, put)?;
            // Only now the caller has all of them.
            (driver::conclude(outcome, &mut channel)?, agreed)
        }
        (Some(folder), Destination::Folder) => {
            pool.install(|| make::<E>(order, key, folder, &mut channel, &mut listener))?
        }
        (None, Destination::Folder) => return Err(Failure::usage("--out", "required")),
    };
    drop(listener);
    reporter.end();

    let mut report = report::<E>(n, &agreed, &outcome, folder.is_some(), reporter);
    let described = channel.describe();
    report.result.insert("connection".to_owned(), described);
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    let mut target = "memory".to_owned();
    if let Some(folder) = folder {
        write_own_report(&folder, &report)?;
        target = folder.target().display().to_string();
        folder.commit()?;
    }
    channel.end();
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    let json = place.write(&report)?;
    reporter.say(summary(&report, &agreed.plan, &outcome, &target));
    Ok(json)
}

/// The run itself, with its arrays.
fn make<E: Party>(
    order: &Request,
    key: Option<E::Ring>,
    folder: &Folder,
    channel: &mut Channel,
    listener: &mut StreamProgress<'_>,
) -> Result<(Outcome, AgreedPlan)> {
    let mut key_array =
        E::KEY.map(|letter| Array::<E::Ring>::create(folder, letter, 1)).transpose()?;
    let columns = Columns::<E>::create(folder, order.n)?;
    let ((outcome, agreed), columns) = write_beside(order.n, columns, |put| {
        driver::run::<E>(order, key, channel, listener, |key, step| {
            if let (Some(key), Some(mut array)) = (key, key_array.take()) {
                array.write(&[key])?;
                array.finish()?;
            }
            put(step)
        })
    })?;
    let outcome = driver::conclude(outcome, channel)?;
    columns.finish()?;
    Ok((outcome, agreed))
}

/// Reports the phases and moves the progress bar.
struct StreamProgress<'a> {
    reporter: &'a Reporter,
    n: u64,
    progress: Option<Bar>,
}

impl driver::Listener for StreamProgress<'_> {
    fn phase(&mut self, what: &str) {
        match &self.progress {
            Some(bar) => bar.explain(what),
            None => self.reporter.explain(what),
        }
    }

    fn set_up(&mut self) {
        self.progress = Some(self.reporter.phase("correlations", self.n));
    }

    fn done(&mut self, count: usize) {
        if let Some(bar) = &self.progress {
            bar.inc(count as u64);
        }
    }
}

fn report<E: Party>(
    n: u64,
    agreed: &AgreedPlan,
    outcome: &Outcome,
    in_files: bool,
    reporter: &Reporter,
) -> Report {
    let plan = &agreed.plan;
    let traffic = outcome.traffic;
    let form = Form::of::<E::Ring>();
    let arrays = [
        E::KEY.map(|letter| (letter, form, 1)),
        E::VALUES.map(|letter| (letter, Form::of::<E::Base>(), n)),
        Some((E::COLUMN, form, n)),
    ];
    let arrays = arrays.into_iter().flatten().map(|(letter, form, n)| {
        let mut entry = serde_json::Map::new();
        if in_files {
            entry.insert("file".to_owned(), file_name(letter).into());
        }
        entry.insert("dtype".to_owned(), form.dtype().into());
        entry.insert("shape".to_owned(), form.shape(n).into());
        (letter.to_owned(), entry.into())
    });
    let mut result = serde_json::Map::from_iter([
        ("session".to_owned(), crate::randomness::hex(outcome.session.as_bytes()).into()),
        ("security_bits".to_owned(), plan.claimed_bits().into()),
        ("statistical_bits".to_owned(), plan.statistical_bits().into()),
        ("setup_bytes_sent".to_owned(), outcome.setup_traffic.bytes_sent.into()),
        ("setup_bytes_received".to_owned(), outcome.setup_traffic.bytes_received.into()),
        ("arrays".to_owned(), serde_json::Value::Object(arrays.collect())),
    ]);
    result.insert("protocol".to_owned(), plan.name().into());
    result.insert("device".to_owned(), agreed.device.to_string().into());
    if let Some(choice) = &agreed.choice {
        result.insert("choice".to_owned(), choice.to_json());
    }
    if plan.kind() == Kind::Cot && !E::IS_HASHED {
        result.insert("delta_bits".to_owned(), DELTA_BITS.into());
        result.insert("note".to_owned(), CARRIER_NOTE.into());
    }
    Report {
        role: Some(E::ROLE.to_string()),
        n: Some(n),
        ring: Some(plan.kind().field().name().to_owned()),
        security: Some(plan.security().to_string()),
        noise: Some(plan.noise().to_string()),
        parameters: Some(plan.describe()),
        assumption: Some(plan.assumption()),
        bytes_sent: Some(traffic.bytes_sent),
        bytes_received: Some(traffic.bytes_received),
        messages: Some(traffic.messages_sent + traffic.messages_received),
        seconds: Seconds {
            setup: Some(outcome.setup.as_secs_f64()),
            extend: Some(outcome.extend.as_secs_f64()),
            ..Seconds::default()
        },
        result,
        ..Report::new(E::PROTOCOL, reporter)
    }
}

/// Bits of `delta` that the receiver does not know.
const DELTA_BITS: u32 = 127;

/// A warning to every user of the blocks of a COT.
const CARRIER_NOTE: &str = "one bit of every block carries the choice bit: the receiver knows which, that it is set in \
                            delta, and that it is zero in v; hash w before it becomes a key";

/// Puts the report beside the arrays: the arrays alone do not tell their ring.
fn write_own_report(folder: &Folder, report: &Report) -> Result<()> {
    use std::io::Write as _;
    let mut file = folder.create("report.json")?;
    file.write_all(report.to_json().as_bytes())
        .and_then(|()| sync_all(&file))
        .map_err(|error| Failure::file(&folder.target().join("report.json"), error))
}

/// The last line of a run.
fn summary(report: &Report, plan: &Plan, outcome: &Outcome, target: &str) -> String {
    let n = report.n.unwrap_or_default();
    let traffic = outcome.traffic;
    let each = |value: f64| if n == 0 { 0.0 } else { value / n as f64 };
    let bytes = traffic.bytes_sent + traffic.bytes_received;
    let what = match report.ring.as_deref() {
        Some("f2") | None => many(n, "correlated OT"),
        Some(ring) => format!("{} over {ring}", many(n, "correlation")),
    };
    format!(
        "{}: {what} by {}, {}, in {:.3} s ({:.1} ns each), {} bytes sent, {} received ({:.2} bits each), in {target}",
        report.role.as_deref().unwrap_or_default(),
        plan.name(),
        security_words(plan),
        report.seconds.total.unwrap_or_default(),
        each(outcome.total().as_secs_f64() * 1e9),
        traffic.bytes_sent,
        traffic.bytes_received,
        each(8.0 * bytes as f64),
    )
}
