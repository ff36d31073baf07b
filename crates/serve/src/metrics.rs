//! How the service is, in the text format of Prometheus.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use volery_channel::{Error as ChannelError, Stats};
use volery_os::net::{Socket, TcpListener, accept};
use volery_os::thread;
use volery_os::time::{Instant, wall_clock};
use volery_psi::Error;
use volery_psi::served::{Label, Later};

use crate::clients::RemainingKeys;
use crate::spent::Journal;

/// Upper bounds of the buckets of the histograms, in seconds.
const BUCKETS: [f64; 11] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 60.0, 600.0];

/// How long a reader of the page may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Longest request.
const REQUEST: usize = 4096;

/// Why a client was refused, or its connection ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Its identity is not known.
    Unknown,
    /// It did not show who it is in time.
    Slow,
    /// It speaks something else, or broke the protocol.
    Malformed,
    /// Its settings are others.
    Settings,
    /// It has another filter.
    Version,
    /// Its budget is spent.
    Budget,
    /// It asks for too many keys in a time.
    Rate,
    /// It has too many connections.
    Connections,
    /// There are too many connections.
    Full,
    /// It went away or was silent.
    Gone,
    /// Something went wrong here.
    Internal,
}

impl Reason {
    /// All of them, in their order, each with its name in the metrics and the log.
    const ALL: [(Self, &str); 11] = [
        (Self::Unknown, "unknown"),
        (Self::Slow, "slow"),
        (Self::Malformed, "malformed"),
        (Self::Settings, "settings"),
        (Self::Version, "version"),
        (Self::Budget, "budget"),
        (Self::Rate, "rate"),
        (Self::Connections, "connections"),
        (Self::Full, "full"),
        (Self::Gone, "gone"),
        (Self::Internal, "internal"),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Why a client that had shown who it is was not served to its end.
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::OtherVersion | Error::OtherKey { .. } => Self::Version,
            Error::Budget { .. } => Self::Budget,
            Error::Later { why, .. } => match why {
                Later::Rate => Self::Rate,
                Later::Connections => Self::Connections,
                Later::Full => Self::Full,
                Later::Unavailable => Self::Internal,
            },
            Error::Channel(ChannelError::Mismatch { .. }) => Self::Settings,
            Error::Channel(ChannelError::PeerMisbehaved(_)) => Self::Malformed,
            Error::Channel(ChannelError::Unauthenticated(_)) => Self::Unknown,
            Error::Channel(
                ChannelError::Disconnected
                | ChannelError::TimedOut(_)
                | ChannelError::Io(_)
                | ChannelError::Cancelled,
            ) => Self::Gone,
            _ => Self::Internal,
        }
    }
}

/// Counts of times.
#[derive(Default)]
struct Histogram {
    buckets: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Histogram {
    fn add(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        for (bucket, bound) in self.buckets.iter().zip(BUCKETS) {
            if seconds <= bound {
                add(bucket, 1);
            }
        }
        add(&self.nanoseconds, time.as_nanos() as u64);
        add(&self.count, 1);
    }

    fn write(&self, page: &mut Page, name: &str, help: &str) {
        page.head(name, "histogram", help);
        // The total last, and the largest of all: buckets that grow meanwhile stay below it.
        let buckets: Vec<_> = self.buckets.iter().map(get).collect();
        let (sum, count) = (get(&self.nanoseconds) as f64 / 1e9, get(&self.count));
        for (bound, bucket) in BUCKETS.iter().zip(buckets) {
            let bound = format!("{bound}");
            page.line(&format!("{name}_bucket"), &[("le", &bound)], bucket.min(count));
        }
        page.line(&format!("{name}_bucket"), &[("le", "+Inf")], count);
        page.line(&format!("{name}_sum"), &[], sum);
        page.line(&format!("{name}_count"), &[], count);
    }
}

fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// The counts of the service's work.
pub(crate) struct Metrics {
    start: f64,
    connections: AtomicU64,
    probes: AtomicU64,
    fetches: AtomicU64,
    requests: AtomicU64,
    keys: AtomicU64,
    refusals: [AtomicU64; Reason::ALL.len()],
    sent: AtomicU64,
    received: AtomicU64,
    request_seconds: Histogram,
    connection_seconds: Histogram,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let start = wall_clock().duration_since(UNIX_EPOCH);
        Self {
            start: start.unwrap_or_default().as_secs_f64(),
            connections: AtomicU64::new(0),
            probes: AtomicU64::new(0),
            fetches: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            keys: AtomicU64::new(0),
            refusals: Default::default(),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            request_seconds: Histogram::default(),
            connection_seconds: Histogram::default(),
        }
    }

    /// A client has shown who it is.
    pub(crate) fn connect(&self) {
        add(&self.connections, 1);
    }

    /// A client has left before it has shown who it is.
    pub(crate) fn probe(&self) {
        add(&self.probes, 1);
    }

    pub(crate) fn fetch(&self) {
        add(&self.fetches, 1);
    }

    pub(crate) fn answer(&self, keys: u64, time: Duration) {
        add(&self.requests, 1);
        add(&self.keys, keys);
        self.request_seconds.add(time);
    }

    pub(crate) fn refuse(&self, reason: Reason) {
        add(&self.refusals[reason as usize], 1);
    }

    pub(crate) fn end(&self, traffic: Stats, time: Duration) {
        add(&self.sent, traffic.bytes_sent);
        add(&self.received, traffic.bytes_received);
        self.connection_seconds.add(time);
    }

    /// For the report.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 5] {
        let refused = self.refusals.iter().map(get).sum();
        [
            ("connections", get(&self.connections)),
            ("fetches", get(&self.fetches)),
            ("requests", get(&self.requests)),
            ("keys", get(&self.keys)),
            ("refused", refused),
        ]
    }

    /// The page, with the connections now, the filter with the name of its key and its version,
    /// what is left to each client, and the journal and the ends of the certificates.
    pub(crate) fn page(
        &self,
        connections: usize,
        (label, key, version): (&Label, &str, &str),
        budgets: &[(String, RemainingKeys)],
        (journal, expires): (&Journal, &[(&str, Option<SystemTime>)]),
    ) -> String {
        let mut page = Page(String::new());
        let now = [
            ("volery_connections", "Clients connected now.", connections as f64),
            ("volery_filter_keys", "Different keys of the table.", label.items() as f64),
            ("volery_filter_bytes", "Bytes of the filter.", label.bytes() as f64),
            ("volery_budgets_lost", "--accept-lost-budgets was needed.", journal.lost.into()),
            ("process_start_time_seconds", "Start of the service, since 1970.", self.start),
        ];
        for (name, help, value) in now {
            page.head(name, "gauge", help);
            page.line(name, &[], value);
        }
        if let Some(bytes) = resident_memory() {
            let name = "process_resident_memory_bytes";
            page.head(name, "gauge", "Memory of the process.");
            page.line(name, &[], bytes);
        }
        page.head("volery_filter_info", "gauge", "Key and version of the filter.");
        let labels = [("public_key", key), ("version", version)];
        page.line("volery_filter_info", &labels, 1);
        page.head("volery_build_info", "gauge", "The version of the program.");
        page.line("volery_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        let name = "volery_certificate_expiration_timestamp_seconds";
        page.head(name, "gauge", "The end of the validity of a certificate.");
        for (of, end) in expires {
            if let Some(end) = end.and_then(|end| end.duration_since(UNIX_EPOCH).ok()) {
                page.line(name, &[("use", of)], end.as_secs());
            }
        }
        page.head("volery_budget_left_keys", "gauge", "Keys that a client may still ask for.");
        for (name, left) in budgets {
            for (period, left) in [("all", left.in_all), ("day", left.today)] {
                if let Some(left) = left {
                    let labels = [("client", name.as_str()), ("period", period)];
                    page.line("volery_budget_left_keys", &labels, left);
                }
            }
        }
        let totals = [
            (
                "volery_probes_total",
                "Connections that left before they showed who they are.",
                &self.probes,
            ),
            (
                "volery_journal_errors_total",
                "Failed writes of the journal of spent keys.",
                &journal.errors,
            ),
            (
                "volery_connections_total",
                "Clients that have shown who they are.",
                &self.connections,
            ),
            ("volery_fetches_total", "Filters that were fetched.", &self.fetches),
            ("volery_requests_total", "Requests answered.", &self.requests),
            ("volery_keys_total", "Keys answered.", &self.keys),
            ("volery_sent_bytes_total", "Bytes sent, without TLS.", &self.sent),
            ("volery_received_bytes_total", "Bytes received, without TLS.", &self.received),
        ];
        for (name, help, value) in totals {
            page.head(name, "counter", help);
            page.line(name, &[], get(value));
        }
        let name = "volery_refusals_total";
        page.head(name, "counter", "Clients not served to their end, by reason.");
        for (reason, text) in Reason::ALL {
            page.line(name, &[("reason", text)], get(&self.refusals[reason as usize]));
        }
        let help = "From the payment of a request to its answer.";
        self.request_seconds.write(&mut page, "volery_request_seconds", help);
        let help = "From a client's identity to its end.";
        self.connection_seconds.write(&mut page, "volery_connection_seconds", help);
        page.0
    }
}

/// A page that grows line by line. No name or label of ours needs escapes.
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.0 += name;
        let labels: Vec<_> =
            labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        if !labels.is_empty() {
            let _ = write!(self.0, "{{{}}}", labels.join(","));
        }
        let _ = writeln!(self.0, " {value}");
    }
}

/// Memory of the process in bytes, where the system reports it.
fn resident_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    volery_run::memory::kibibytes(&status, "VmRSS:")
}

/// The page at a path, or why the service is not healthy; `None` where there is no page.
type Pages<'a> = &'a (dyn Fn(&str) -> Option<Result<String, String>> + Sync);

/// Readers at the same time; a new one replaces the oldest.
const READERS: usize = 16;

/// Answers requests for pages until the service has ended. A reader that says nothing, or reads
/// nothing, delays no other.
pub(crate) fn serve(listener: &TcpListener, ended: &AtomicBool, page: Pages<'_>) {
    thread::scope(|scope| {
        let mut readers = VecDeque::<Arc<Socket>>::new();
        while !ended.load(Ordering::SeqCst) {
            let Ok((stream, _)) = accept(listener) else {
                readers.retain(|reader| Arc::strong_count(reader) > 1);
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            if readers.len() == READERS
                && let Some(oldest) = readers.pop_front()
            {
                let _ = oldest.shutdown(Shutdown::Both);
            }
            let stream = Arc::new(stream);
            readers.push_back(Arc::clone(&stream));
            // A reader that goes away does no harm; without a thread it comes again.
            let _ = thread::Builder::new().spawn_scoped(scope, move || answer(&stream, page));
        }
        readers.iter().for_each(|reader| drop(reader.shutdown(Shutdown::Both)));
    });
}

fn answer(mut stream: &Socket, page: Pages<'_>) -> std::io::Result<()> {
    let start = Instant::now();
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let ends = |request: &[u8]| request.windows(4).any(|four| four == b"\r\n\r\n");
    while !ends(&request) {
        let left = PATIENCE.saturating_sub(start.elapsed());
        if left.is_zero() || request.len() > REQUEST {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        let mut bytes = [0; 1024];
        match stream.read(&mut bytes)? {
            0 => return Ok(()),
            count => request.extend_from_slice(&bytes[..count]),
        }
    }
    let first = request.split(|&byte| byte == b'\r').next();
    let first = String::from_utf8_lossy(first.unwrap_or_default()).into_owned();
    let (method, rest) = first.split_once(' ').unwrap_or_default();
    let path = rest.split([' ', '?']).next().unwrap_or_default();
    let (status, mut body) = match (method, page(path)) {
        ("GET" | "HEAD", Some(Ok(page))) => ("200 OK", page),
        ("GET" | "HEAD", Some(Err(why))) => ("503 Service Unavailable", why),
        ("GET" | "HEAD", None) => {
            ("404 Not Found", "there are /metrics, /livez and /readyz\n".to_owned())
        }
        _ => ("405 Method Not Allowed", "only GET and HEAD\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if method == "HEAD" {
        body.clear();
    }
    stream.write_all((head + &body).as_bytes())
}
