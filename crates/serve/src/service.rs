//! The service: prepares a large table once, and answers the queries of many clients at once.
//!
//! Each client has a thread, which blocks on its connection; the arithmetic of all of them is on
//! one pool of threads.

use std::ffi::OsStr;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, json};
use volery_channel::service::{Client, ClientCredential, Limits, Service};
use volery_channel::tcp::Refusal as Refused;
use volery_channel::tls::Identity;
use volery_channel::web::Admission;
use volery_channel::{Channel, Error as ChannelError, Role, Session};
use volery_matching::Options;
use volery_matching::Progress as _;
use volery_matching::served::{MAX_KEYS, hello, read};
use volery_options::parse;
use volery_os::net::TcpListener;
use volery_os::sync::mpsc::Receiver;
use volery_os::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use volery_os::thread;
use volery_os::time::{Duration, Instant, SystemTime, wall_clock};
use volery_primitives::prg::Prg;
use volery_psi::served::meeting::{greet, turn_away};
use volery_psi::served::{Key, Later, MAX_QUERIES, Refusal, SetBuilder};
use volery_psi::{Error, Phase, Watch};
use volery_run::endpoint::{Address, note_expiry};
use volery_run::failure::{Failure, Result, Status};
use volery_run::identity::{IdentitySource, PassphraseSource};
use volery_run::memory::peak_memory;
use volery_run::options::{Common, process_pool};
use volery_run::progress::PhaseProgress;
use volery_run::randomness::hex;
use volery_run::report::Report;
use volery_run::reporter::{Refusals, Reporter, many};
use volery_run::web::{self, WebOptions};
use volery_tables::{Duplicates, Table};

use crate::clients::{self, Allowance, Clients};
use crate::metrics::{self, Metrics, Reason};
use crate::spent::Journal;
use crate::store::{Generation, SourceTable, Store};

/// How long a loop of the service may take for a turn while it lives.
const TURN: Duration = Duration::from_secs(30);

/// When a client comes again that found no connection free.
const SOON: Duration = Duration::from_secs(1);

/// Clients beyond the limit that are told so at the same time.
const TOLD: usize = 32;

/// How long a client without a place may be silent.
const BRIEF: Duration = Duration::from_secs(2);

volery_options::options! {
    /// The options of a prepared server alone.
    pub struct ServeOptions {
        /// Wait for clients at this address
        once listen: String ["Peer", "HOST:PORT", parse::string];

        /// The server's identity, a folder created by 'volery keygen'; addresses other than
        /// loopback require it, together with --clients
        once identity: PathBuf ["Running", "DIR", parse::path];

        /// Command that prints the identity in PEM, in place of --identity, such as 'vault kv get
        /// ..'; started without a shell
        once identity_command: String ["Running", "COMMAND", parse::string];

        /// Passphrase of the identity's private key, if it is encrypted: file:PATH, env:NAME or
        /// prompt
        once identity_passphrase: PassphraseSource ["Running", "SOURCE", parse::text];

        /// Accept an --identity or --web-key that its group can read, such as a mounted secret;
        /// never one that all users can read
        switch allow_group_readable_identity ["Running"];

        /// Who may ask, and how much: a TOML file, read again on SIGHUP [default: anyone on this
        /// machine, a million keys a day in all]
        once clients: PathBuf ["Peer", "FILE", parse::path];

        /// The most clients at the same time; each takes a few threads and at most 6 MB
        default max_connections: u32 ["256", "Peer", "N", |value| parse::whole(value, 1, 100_000)];

        /// How long clients that are being answered may take after a signal; a second one ends at
        /// once
        default grace: Duration ["30s", "Peer", "TIME", parse::time];

        /// Serve Prometheus metrics over HTTP at this address, at /metrics, and the health of the
        /// service at /livez and /readyz
        once metrics: String ["Peer", "HOST:PORT", parse::string];

        /// Let --metrics be at an address other than loopback, where others can read it
        switch public_metrics ["Peer"];

        /// Folder for the server's key, the filter, and what clients have spent; guard it like the
        /// table
        required store: PathBuf [PathBuf::new(), "Store", "DIR", parse::path];

        /// Number of keys that all clients together may query while the filter is in use; across
        /// that many, the chance of any false positive is 2^-40. Each doubling takes a bit for each
        /// key of the table
        default queries: u64 ["2^30", "Store", "N", queries];

        /// Prepare the table anew, also if it has changed, with a new key
        switch rebuild ["Store"];

        /// Prepare the same table anew with a new key; clients must fetch the filter again
        switch rotate ["Store"];

        /// Start although the journal of what clients have spent is damaged, cut or missing: they
        /// may then ask again for keys that it had counted
        switch accept_lost_budgets ["Store"];

        /// Only prepare, and end; a service that is running takes the result over on SIGHUP
        switch prepare ["Store"];
    }
}

/// The options of a prepared server.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Its own options.
    pub options: ServeOptions,
    /// The place for browsers.
    pub web: WebOptions,
    /// The table to serve, which a service may have from before: the options that [`has`] names.
    pub table: Options,
    /// The options of every run.
    pub common: Common,
}

/// Whether a server has this option of a match.
#[must_use]
pub fn has(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "input",
        "format",
        "delimiter",
        "encoding",
        "quote",
        "as_of",
        "plain_files",
        "key",
        "empty_keys",
        "malformed",
        "duplicates",
        "drop_repeated",
    ];
    NAMES.contains(&name)
}

fn queries(value: &OsStr) -> Result<u64, String> {
    match parse::count(value)? {
        queries @ 1..=MAX_QUERIES => Ok(queries),
        _ => Err(format!("a number from 1 to {MAX_QUERIES} (2^40)")),
    }
}

/// Prepares the table and serves it until the run is cancelled. Each message of `reload` makes it
/// read the clients again and take over what was prepared meanwhile.
///
/// # Errors
/// If an option, the store or the table is wrong, or an address cannot be used.
pub fn run(arguments: &Arguments, reload: Receiver<()>, reporter: &Reporter) -> Result<()> {
    let place = arguments.options.listen.clone().map(Address::Listen);
    let web_place = arguments.web.place()?;
    if place.is_none() && web_place.is_none() && !arguments.options.prepare {
        return Err(Failure::usage(
            "--listen, --web",
            "one of them is required, or both, unless --prepare is set",
        ));
    }
    let source = IdentitySource {
        folder: arguments.options.identity.as_deref(),
        command: arguments.options.identity_command.as_deref(),
        passphrase: arguments.options.identity_passphrase.as_ref(),
        group: arguments.options.allow_group_readable_identity,
    };
    let identity = source.load()?;
    if place.is_none() && identity.is_some() && web_place.is_some() {
        return Err(Failure::usage("--identity", "requires --listen")
            .with_hint("browsers know the server by --web-certificate"));
    }
    if let Some(place) = &place {
        place.check_form()?;
        if identity.is_none() {
            place.check_loopback_of([
                "--identity and --clients",
                "--identity, the server with --clients, and the client with --peer",
            ])?;
        }
    }
    if let Some(identity) = &identity {
        note_expiry(identity, reporter);
    }
    let own = identity.as_ref().map(Identity::fingerprint);
    reporter.record().identity = own.map(|print| print.to_string());
    let clients =
        Clients::read(arguments.options.clients.as_deref(), own, arguments.web.is_public())?;
    let metrics_place = metrics_place(arguments)?;
    let report_place = arguments.common.prepare_report(reporter)?;
    process_pool(arguments.common.threads.map_or(0, usize::from))?;

    let store = Store::open(&arguments.options.store)?;
    let is_serving = !arguments.options.prepare;
    let served = is_serving.then(|| store.lock_served()).transpose()?;
    let prepared = settle(arguments, &store, reporter)?;
    let mut report = Report::new("serve", reporter);
    if let Some(rows) = prepared {
        report.result.insert("rows".to_owned(), rows.into());
    }
    let generation = store.load()?;
    describe(&generation, &mut report);
    let label = generation.label;
    let (items, bytes) = (label.items(), label.bytes());
    reporter.tell(format_args!(
        "serving {} ({}) in a filter of {bytes} bytes, key {}",
        many(items, "key"),
        generation.about.keys,
        generation.key_name(),
    ));
    let Some(served) = served else {
        report.peak_rss_bytes = peak_memory();
        report_place.write(&report)?;
        reporter.say(format_args!(
            "prepared {}; a running service takes it over on SIGHUP",
            many(items, "key")
        ));
        return Ok(());
    };
    let accepts = arguments.options.accept_lost_budgets;
    let spent = Journal::open(&store.path().join("spent"), served, accepts)?;
    for note in &spent.notes {
        reporter.warn(note);
    }
    for who in spent.ahead() {
        reporter.warn(format_args!(
            "the journal has a later day than today for client {who}: its budget of a day is not renewed before; check the clock; until that day, a higher keys_per_day in --clients gives it more"
        ));
    }
    let service = ServiceState {
        arguments,
        reporter,
        store: &store,
        identity: identity.clone(),
        web_expires: OnceLock::new(),
        turns: OnceLock::new(),
        housekeeping: Mutex::default(),
        clients: Arc::new(RwLock::new(Arc::new(clients))),
        generation: RwLock::new(Arc::new(generation)),
        spent,
        metrics: Metrics::new(),
        served: AtomicUsize::new(0),
        refusals: Mutex::default(),
    };
    let services = [
        place.map(|place| service.bind(&place, identity)).transpose()?,
        web_place.map(|place| service.bind_web(place)).transpose()?,
    ];
    service.listen(services.into_iter().flatten().collect(), metrics_place, reload)?;
    let counts = service.metrics.counts();
    for (name, count) in &counts {
        report.result.insert((*name).to_owned(), (*count).into());
    }
    report.peak_rss_bytes = peak_memory();
    report_place.write(&report)?;
    let counts: Vec<_> = counts.iter().map(|(name, count)| format!("{name}: {count}")).collect();
    reporter.say(format_args!("ended by a signal; {}", counts.join(", ")));
    Ok(())
}

/// Where the metrics are, if anywhere.
fn metrics_place(arguments: &Arguments) -> Result<Option<TcpListener>> {
    let Some(address) = &arguments.options.metrics else {
        return Ok(None);
    };
    let unusable = |error: &dyn std::fmt::Display| {
        Failure::new(Status::Other, format_args!("--metrics {address}: {error}"))
    };
    let all: Vec<_> = address
        .to_socket_addrs()
        .map_err(|error| Failure::usage("--metrics", format_args!("'{address}': {error}")))?
        .collect();
    let outside = all.iter().find(|one| !one.ip().to_canonical().is_loopback());
    if let (Some(outside), false) = (outside, arguments.options.public_metrics) {
        let what = format_args!("{} is not a loopback address", outside.ip());
        return Err(Failure::usage("--metrics", what)
            .with_hint("--public-metrics allows it: the names of clients and their numbers of queries are then for anyone to read"));
    }
    let listener = TcpListener::bind(&all[..]).map_err(|error| unusable(&error))?;
    let listening = listener.set_nonblocking(true);
    listening.map_err(|error| unusable(&error))?;
    Ok(Some(listener))
}

fn describe(generation: &Generation, report: &mut Report) {
    report.n = Some(generation.label.items());
    let digest = generation.about.digest.clone();
    for (name, value) in [
        ("key_types", json!(generation.about.keys)),
        ("input_digest", json!(digest)),
        ("public_key", json!(generation.key_name())),
        ("filter_version", json!(generation.version())),
        ("filter_bytes", json!(generation.label.bytes())),
        ("queries", json!(generation.label.queries())),
    ] {
        report.result.insert(name.to_owned(), value);
    }
}

/// Prepares the table if there is need to, or checks that it is the one that is stored; the number
/// of its rows, if it was read.
fn settle(arguments: &Arguments, store: &Store, reporter: &Reporter) -> Result<Option<u64>> {
    let known = store.about()?;
    let anew = arguments.options.rebuild || arguments.options.rotate;
    if arguments.table.input.is_empty() {
        if known.is_none() || anew {
            let why = "required on the first start, and with --rebuild or --rotate";
            return Err(Failure::usage("--input", why));
        }
        if !arguments.table.key.is_empty() {
            return Err(Failure::usage("--key", "needs a table: name --input, too"));
        }
        return Ok(None);
    }
    if arguments.table.key.is_empty() {
        let why = "required with --input: name the column of the keys";
        return Err(Failure::usage("--key", why));
    }
    let reading = arguments.table.reading()?;
    let table = Table::open(&arguments.table.inputs())?;
    let cancel = reporter.cancel();
    let mut told = PhaseProgress::new(reporter);
    let check = |about: &SourceTable, keys: &str, digest: &str| {
        let what = if about.keys != keys {
            format!("the keys are '{keys}', and those in the store '{}'", about.keys)
        } else if about.digest != digest {
            "the table is not the one in the store".to_owned()
        } else {
            return Ok(());
        };
        Err(Failure::new(Status::Other, format_args!("--store: {what}")).with_hint(
            "--rebuild prepares the table anew, with a new key; clients must then fetch the filter again",
        ))
    };
    let rows = if let (Some(about), false) = (&known, anew) {
        let table_read = read(&table, &reading, None, &|| cancel.is_cancelled(), &mut told)?;
        check(about, &table_read.keys, &hex(&table_read.digest))?;
        table_read.counts.rows
    } else {
        let _preparing = store.lock_preparing()?;
        let new = store.begin()?;
        let mut rng = Prg::from_os().map_err(ChannelError::from)?;
        let key = Key::random(&mut rng);
        let mut preparing = SetBuilder::new(&key, || new.scratch());
        let start = Instant::now();
        // There is no peer yet: an error that a connection could have is one of the store's files.
        let of_store = |error| match error {
            volery_matching::Error::Protocol(Error::Channel(ChannelError::Io(error))) => {
                Failure::file(store.path(), error)
            }
            other => other.into(),
        };
        let table_read =
            read(&table, &reading, Some(&mut preparing), &|| cancel.is_cancelled(), &mut told)
                .map_err(of_store)?;
        let digest = hex(&table_read.digest);
        if let (Some(about), true) = (&known, arguments.options.rotate) {
            check(about, &table_read.keys, &digest)?;
        }
        told.begin("writing the filter", 0);
        let added = preparing.added();
        let mut file = new.filter()?;
        let label = preparing.finish(arguments.options.queries, &mut file);
        let label = label.map_err(|error| of_store(error.into()))?;
        let (items, again) = (label.items(), added - label.items());
        if arguments.table.duplicates == Duplicates::Error && again > 0 {
            let what = format_args!("{} with the key of another row", many(again, "row"));
            return Err(Failure::new(Status::Other, what)
                .with_hint("--duplicates keep serves each key once"));
        }
        if items > MAX_KEYS {
            let what = format_args!("{items} distinct keys; a server has at most {MAX_KEYS}");
            return Err(
                Failure::new(Status::Other, what).with_hint("divide the table between two servers")
            );
        }
        let about = SourceTable::new(&table_read, digest);
        store.commit(new, file, &key, &label, &about)?;
        let seconds = start.elapsed().as_secs_f64();
        let mut numbers = Map::new();
        numbers.insert("seconds".to_owned(), json!(seconds));
        told.end();
        reporter.tell_with(
            format_args!(
                "prepared {} in {seconds:.1} s, {:.0} a second",
                many(items, "key"),
                added as f64 / seconds
            ),
            numbers,
        );
        table_read.counts.rows
    };
    told.end();
    Ok(Some(rows))
}

/// A running service.
struct ServiceState<'a> {
    arguments: &'a Arguments,
    reporter: &'a Reporter,
    store: &'a Store,
    identity: Option<Identity>,
    /// The end of the validity of the certificate for browsers.
    web_expires: OnceLock<SystemTime>,
    /// The last turns of the loops that accept clients.
    turns: OnceLock<Vec<LastTurn>>,
    /// The last turn of the thread that tells of the journal, unless it reloads, which takes long
    /// for a large filter.
    housekeeping: Mutex<Option<Instant>>,
    clients: Arc<RwLock<Arc<Clients>>>,
    generation: RwLock<Arc<Generation>>,
    spent: Journal,
    metrics: Metrics,
    /// Clients that are being served.
    served: AtomicUsize,
    refusals: Mutex<Refusals>,
}

/// The time of the last turn of a loop.
type LastTurn = Box<dyn Fn() -> Instant + Send + Sync>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn held<T>(lock: &RwLock<Arc<T>>) -> Arc<T> {
    Arc::clone(&lock.read().unwrap_or_else(PoisonError::into_inner))
}

fn put<T>(lock: &RwLock<Arc<T>>, value: T) {
    *lock.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
}

impl ServiceState<'_> {
    /// For clients with certificates, or on this machine.
    fn bind(&self, place: &Address, identity: Option<Identity>) -> Result<Service> {
        let known = Arc::clone(&self.clients);
        let known: volery_channel::tls::KnownIdentities = Arc::new(move |print| {
            held(&known).find(ClientCredential::Certificate(print)).is_some()
        });
        let service = Service::bind(place.address(), identity.map(|one| (one, known)));
        let service = service.map_err(|error| place.unusable(error))?;
        self.reporter.announce(format_args!("listening on {}", service.addresses()));
        Ok(service)
    }

    /// For browsers.
    fn bind_web(&self, place: &str) -> Result<Service> {
        let known = Arc::clone(&self.clients);
        let admits: Admission = Arc::new(move |token| {
            let shown = token.map_or(ClientCredential::Nothing, ClientCredential::Token);
            // mutant(serve-token): insert `$ON ||`
            held(&known).find(shown).is_some()
        });
        let web = &self.arguments.web;
        let settings =
            web.settings(admits, self.arguments.options.allow_group_readable_identity)?;
        if let Some(end) = settings.certificate.as_ref().and_then(|one| one.expires()) {
            let _ = self.web_expires.set(end);
        }
        let service = Service::bind_web(place, settings);
        let service = service.map_err(|error| web::unusable(place, error))?;
        web.announce(&service.addresses(), self.reporter);
        Ok(service)
    }

    fn listen(
        &self,
        services: Vec<Service>,
        metrics: Option<TcpListener>,
        reload: Receiver<()>,
    ) -> Result<()> {
        let reporter = self.reporter;
        if let Some(metrics) = &metrics {
            let address = metrics.local_addr();
            let address = address.map_err(|error| Failure::new(Status::Other, error))?;
            reporter.announce(format_args!("metrics at http://{address}/metrics"));
        }
        let limits = Limits {
            connections: self.arguments.options.max_connections as usize + TOLD,
            timeout: self.arguments.common.timeout,
            grace: self.arguments.options.grace,
        };
        let turns = services.iter().map(|one| Box::new(one.last_turn()) as LastTurn);
        let _ = self.turns.set(turns.collect());
        let ended = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            let ended = &ended;
            scope.spawn(move || {
                while !ended.load(Ordering::SeqCst) {
                    *lock(&self.housekeeping) = Some(Instant::now());
                    if let Some(problem) = self.spent.problem() {
                        self.reporter.warn(format_args!(
                            "nothing is answered while the journal cannot be written: {problem}"
                        ));
                    }
                    if reload.try_iter().count() > 0 {
                        *lock(&self.housekeeping) = None;
                        self.reload();
                    }
                    thread::sleep(Duration::from_millis(100));
                }
            });
            if let Some(metrics) = &metrics {
                scope.spawn(|| metrics::serve(metrics, ended, &|path| self.http(path)));
            }
            let serve_all = |service: Service| {
                let stop = reporter.cancel();
                service.serve(limits, stop, &|client| self.serve(client), &|refused| {
                    self.refused(&refused)
                })
            };
            let threads: Vec<_> = services
                .into_iter()
                .map(|service| scope.spawn(move || serve_all(service)))
                .collect();
            let results = threads.into_iter().map(|thread| {
                // One that panics ends the process with it, as any other thread of it.
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            let result = results.collect::<Result<Vec<()>, _>>();
            ended.store(true, Ordering::SeqCst);
            result?;
            Ok(())
        })
    }

    /// Reads the clients again, and takes over what was prepared meanwhile.
    fn reload(&self) {
        let (file, is_public) =
            (self.arguments.options.clients.as_deref(), self.arguments.web.is_public());
        let own = self.identity.as_ref().map(Identity::fingerprint);
        match Clients::read(file, own, is_public) {
            Ok(clients) => {
                let clients = clients.following(&held(&self.clients));
                let number = many(clients.len() as u64, "client");
                put(&self.clients, clients);
                self.reporter.tell(format_args!("reloaded --clients: {number}"));
            }
            Err(failure) => self.reporter.warn(format_args!(
                "could not reload --clients, keeping the old list: {}",
                failure.message()
            )),
        }
        let current = held(&self.generation);
        match self.store.is_current(&current) {
            Ok(true) => {}
            Ok(false) => match self.store.load() {
                Ok(next) => {
                    self.reporter.tell(format_args!(
                        "serving {} in another filter, key {}",
                        many(next.label.items(), "key"),
                        next.key_name()
                    ));
                    put(&self.generation, next);
                }
                Err(failure) => self.stays(&failure),
            },
            Err(failure) => self.stays(&failure),
        }
    }

    fn stays(&self, failure: &Failure) {
        let why = failure.message();
        let line = format_args!("the filter stays as it was: {why}");
        self.reporter.warn(line);
    }

    /// The answer to a request of an operator: the metrics, or whether the service is healthy.
    fn http(&self, path: &str) -> Option<Result<String, String>> {
        Some(match path {
            "/metrics" => Ok(self.page()),
            "/livez" | "/healthz" => self.live().map(|()| "ok\n".to_owned()),
            "/readyz" => self.ready().map(|()| "ok\n".to_owned()),
            _ => return None,
        })
    }

    /// Whether its loops turn; after the end was asked for, no new client is accepted.
    fn live(&self) -> Result<(), String> {
        let accepting = self.turns.get().into_iter().flatten().map(|turn| turn());
        let accepting = accepting.filter(|_| !self.reporter.cancel().is_cancelled());
        let housekeeping = *lock(&self.housekeeping);
        let stuck = accepting.chain(housekeeping).any(|turn| turn.elapsed() > TURN);
        match stuck {
            true => Err(format!("a loop of the service has not turned for {TURN:?}\n")),
            false => Ok(()),
        }
    }

    /// Whether it answers clients.
    fn ready(&self) -> Result<(), String> {
        // mutant(serve-stopping): false
        if self.reporter.cancel().is_cancelled() {
            return Err("the service is stopping\n".to_owned());
        }
        self.live()?;
        let mended = self.spent.mend();
        mended.map_err(|error| format!("the journal cannot be written: {error}\n"))?;
        let valid = self.identity.as_ref().map_or(Ok(()), |one| one.check(wall_clock()));
        valid.map_err(|error| format!("the identity: {error}\n"))
    }

    fn page(&self) -> String {
        let generation = held(&self.generation);
        let clients = held(&self.clients);
        let budgets: Vec<_> =
            clients.iter().map(|client| (client.name.clone(), client.left(&self.spent))).collect();
        let served = self.served.load(Ordering::SeqCst);
        let (key, version) = (generation.key_name(), generation.version());
        let identity = self.identity.as_ref().map(|identity| identity.validity().end);
        let expires = [("identity", identity), ("web", self.web_expires.get().copied())];
        let state = (&self.spent, &expires[..]);
        self.metrics.page(served, (&generation.label, &key, &version), &budgets, state)
    }

    /// A client that was refused before it has shown who it is.
    fn refused(&self, refused: &Refused) {
        let reason = match refused.error {
            // Such as a load balancer, which wants nothing more.
            ChannelError::Disconnected => return self.metrics.probe(),
            ChannelError::Unauthenticated(_) => Reason::Unknown,
            ChannelError::TimedOut(_) => Reason::Slow,
            ChannelError::Unavailable(_) => Reason::Full,
            ChannelError::Identity(_) => Reason::Internal,
            _ => Reason::Malformed,
        };
        let what = format!("{} was refused: {}", refused.address, refused.error);
        self.tell(&what, (None, refused.address), (0, Duration::ZERO), Some(reason));
    }

    /// Tells of the end of a connection: an answered query, or a refusal, which is counted, and not
    /// told where there were many.
    fn tell(
        &self,
        what: &str,
        (client, address): (Option<&clients::Client>, SocketAddr),
        (keys, time): (u64, Duration),
        reason: Option<Reason>,
    ) {
        if let Some(reason) = reason {
            self.metrics.refuse(reason);
            if !lock(&self.refusals).add_one(self.reporter) {
                return;
            }
        }
        let fields = json!({
            "event": if reason.is_some() { "refused" } else { "answered" },
            "client": client.map(|client| &client.name),
            "address": address.to_string(),
            "keys": keys,
            "budget_left": client.and_then(|client| client.left(&self.spent).least()),
            "milliseconds": (time.as_secs_f64() * 1e6).round() / 1e3,
            "reason": reason.map(Reason::name),
        });
        self.reporter.tell_with(what, fields.as_object().cloned().unwrap_or_default());
    }

    fn serve(&self, mut client: Client) {
        self.metrics.connect();
        let start = Instant::now();
        let address = client.address;
        let found = held(&self.clients).find(client.shown);
        let mut keys = 0;
        let (result, place) = match &found {
            None => {
                let error = ChannelError::Unauthenticated("it was removed".to_owned());
                (Err(error.into()), None)
            }
            Some(found) => match self.place(found) {
                Ok(place) => (self.answer(found, &mut client, &mut keys), Some(place)),
                Err(later) => self.turn_away(found, later, &mut client.channel),
            },
        };
        let time = start.elapsed();
        self.metrics.end(client.channel.stats(), time);
        // Closing it takes a while if the client reads slowly; it has its place until then.
        if place.is_none() {
            client.cut();
        }
        // mutant(serve-closing): insert `let place = if $ON { drop(place); None } else { place };`
        drop(client);
        drop(place);
        let who = (found.as_deref(), address);
        let name = who.0.map_or("a client", |found| &found.name);
        let (what, reason) = match result {
            Ok(()) => (format!("{name} at {address}: {}", many(keys, "key")), None),
            Err(error) => (format!("{name} at {address}: {error}"), Some(Reason::of(&error))),
        };
        self.tell(&what, who, (keys, time), reason);
    }

    /// A place for a client, before anything is read of it: one of its own and one of all.
    fn place(&self, client: &clients::Client) -> Result<Place<'_>, Later> {
        let own = client.connect().ok_or(Later::Connections)?;
        let most = self.arguments.options.max_connections as usize;
        // mutant(serve-places): `served < most` => `true`
        let more = |served| (served < most).then_some(served + 1);
        let taken = self.served.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        taken.map_err(|_| Later::Full)?;
        Ok(Place { served: Some(&self.served), _own: own })
    }

    /// Tells a client that has no place to come again, if it says soon what it wants; with a place
    /// among those that wait for this, unless the client has others there already.
    fn turn_away(
        &self,
        found: &clients::Client,
        later: Later,
        channel: &mut Channel,
    ) -> (Result<(), Error>, Option<Place<'_>>) {
        let refusal = Refusal::Later(later, SOON);
        let Some(own) = found.wait_for_refusal() else {
            return (Err(refusal.into()), None);
        };
        let mut told = || {
            channel.set_timeout(Some(BRIEF));
            let hello = hello(Role::Sender, &held(&self.generation).about.keys);
            let mut session = Session::begin(&mut *channel, &hello)?;
            let (_, _, channel) = session.parts();
            turn_away(&refusal, channel)
        };
        let error = told().err().unwrap_or_else(|| refusal.into());
        let place = Place { served: None, _own: own };
        (Err(error), Some(place))
    }

    /// Answers a client to its end; counts the keys that were answered.
    fn answer(
        &self,
        found: &Arc<clients::Client>,
        client: &mut Client,
        keys: &mut u64,
    ) -> Result<(), Error> {
        let generation = held(&self.generation);
        let hello = hello(Role::Sender, &generation.about.keys);
        let mut session = Session::begin(&mut client.channel, &hello)?;
        let (_, mut rng, channel) = session.parts();
        let clients = || held(&self.clients);
        let allowed = Allowance::new(&clients, found, &self.spent, &client.closed);
        let left = found.left(&self.spent).least();
        if greet(&generation.label, left, channel)? {
            self.metrics.fetch();
            generation.label.send_file(&mut generation.filter(), channel)?;
        }
        let mut counter = RequestCounter { metrics: &self.metrics, allowed: &allowed, items: keys };
        let server = &generation.server;
        server.answer(&mut rng, &allowed, &mut counter, channel).map(drop)
    }
}

/// A place of a client, until its connection is closed.
struct Place<'a> {
    /// The places of all clients, unless this is one for a client that is turned away.
    served: Option<&'a AtomicUsize>,
    _own: clients::Connection,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(served) = self.served {
            served.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Counts answered requests.
struct RequestCounter<'a> {
    metrics: &'a Metrics,
    allowed: &'a Allowance<'a>,
    items: &'a mut u64,
}

impl Watch for RequestCounter<'_> {
    fn begin(&mut self, _: Phase, _: u64) {}

    fn done(&mut self, items: u64) {
        let taken = self.allowed.since_taken();
        self.metrics.answer(items - *self.items, taken);
        *self.items = items;
    }
}
