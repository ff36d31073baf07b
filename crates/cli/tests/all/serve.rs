//! A server of a large table and its clients, as processes.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::pair::{Folder, users as table};
use crate::common::{self, ProcessResult, RunningProcess, free_port, http, keygen, run, volery};
use volery_channel::{Channel, Error as ChannelError, Role, Session, tcp};
use volery_matching::served::hello;
use volery_primitives::prg::Prg;
use volery_psi::Error;
use volery_psi::served::meeting::Welcome;
use volery_psi::served::{Client, Filter, Later, QueryAnswer};

/// The key columns of the tests, as the handshake states them.
const KEYS: &str = "text+email/v1";

/// A folder with the table of a server, which has the users below 3000.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("big.csv", table(0..3000));
    folder
}

/// Asks until the answer has this status.
fn until(status: i32, ask: impl Fn() -> ProcessResult) -> ProcessResult {
    let start = Instant::now();
    loop {
        let asked = ask();
        if asked.status == Some(status) {
            return asked;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{asked:?}");
        thread::sleep(Duration::from_millis(100));
    }
}

struct Server(RunningProcess, u16);

impl Server {
    fn start(folder: &Folder, more: &[&str]) -> Self {
        let (big, store) = (folder.path("big.csv"), folder.path("store"));
        let call = ["serve", "--listen", "127.0.0.1:0", "--store", &store];
        let input = ["--input", &big, "--key", "email:email"];
        let running = RunningProcess::start(&[&call[..], &input, more].concat());
        let port = running.port();
        Self(running, port)
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.1)
    }

    /// A query of these users; the result is in `out.csv`.
    fn ask(
        &self,
        folder: &Folder,
        users: impl IntoIterator<Item = usize>,
        more: &[&str],
    ) -> ProcessResult {
        let small = folder.write("small.csv", table(users));
        self.ask_with(folder, &["--input", &small, "--key", "email:email"], more)
    }

    fn ask_with(&self, folder: &Folder, input: &[&str], more: &[&str]) -> ProcessResult {
        let (address, out) = (self.address(), folder.path("out.csv"));
        let call = ["psi", "--role", "receiver", "--protocol", "served"];
        let place = ["--connect", &address, "--out", &out, "--force", "--wait", "5s"];
        run(&[&call[..], &place, input, more].concat())
    }

    fn end(self) -> ProcessResult {
        self.0.signal("TERM");
        let ended = self.0.finish();
        assert_eq!(ended.status, Some(0), "{ended:?}");
        ended
    }

    /// A connection of a client on this machine, as the library makes it.
    fn connect(&self) -> Session {
        connect(&self.address())
    }
}

fn connect(address: &str) -> Session {
    let channel = tcp::connect(address, Duration::from_secs(10)).unwrap();
    Session::begin(channel, &hello(Role::Receiver, KEYS)).unwrap()
}

fn welcome(session: &mut Session) -> Result<Welcome, Error> {
    Welcome::receive(1 << 20, session)
}

/// The items of users are what the tables make of them, so that any bytes are other users.
fn query(filter: &Filter, items: usize, channel: &mut Channel) -> Result<QueryAnswer, Error> {
    let items: Vec<_> = (0..items).map(|i| i.to_le_bytes()).collect();
    Client::new(filter, Prg::from_os().unwrap()).query(&items[..], &mut (), channel)
}

fn assert_found(folder: &Folder, users: impl IntoIterator<Item = usize>) {
    let expected = table(users.into_iter().filter(|user| *user < 3000));
    assert_eq!(folder.read("out.csv"), expected);
}

/// The metrics: names with labels, and the values. Each comes behind its own help and kind.
fn metrics(port: u16) -> BTreeMap<String, f64> {
    let page = http(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    let (mut values, mut current) = (BTreeMap::new(), "");
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let name = rest.split(' ').nth(1).unwrap();
            assert_eq!(rest.starts_with("TYPE "), name == current, "{line}");
            current = name;
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let rest = series.strip_prefix(current).unwrap().split('{').next().unwrap();
        assert!(["", "_bucket", "_sum", "_count"].contains(&rest), "{line}");
        assert!(values.insert(series.to_owned(), value.parse().unwrap()).is_none(), "{line}");
    }
    let all = values["volery_request_seconds_bucket{le=\"+Inf\"}"];
    assert_eq!(all, values["volery_request_seconds_count"]);
    values
}

#[test]
fn a_table_is_prepared_once_and_answers_queries() {
    let folder = folder();
    let (filter, report) = (folder.path("filter"), folder.path("report.json"));
    let port = free_port();
    let metrics_at = format!("127.0.0.1:{port}");
    let server = Server::start(&folder, &["--metrics", &metrics_at]);
    let more = ["--filter", &filter, "--report", &report];
    for (round, fetched) in [(0, true), (1, false), (2, false)] {
        // Some rows twice, and some of neither.
        let users: Vec<_> = (2500..3498).chain([2500, 9999]).collect();
        let asked = server.ask(&folder, users.iter().copied(), &more);
        assert_eq!(asked.status, Some(0), "{asked:?}");
        assert_found(&folder, users);
        let report = folder.json("report.json");
        let result = &report["result"];
        assert_eq!(result["filter_fetched"], fetched);
        assert_eq!(result["protocol"], "served");
        assert_eq!(result["peer_items"], 3000);
        assert_eq!(result["budget_left"], 1_000_000 - 999 * (round + 1));
        let bytes = |name: &str| report[name].as_u64().unwrap();
        let all = bytes("bytes_sent") + bytes("bytes_received");
        assert_eq!(result["bytes_online"], 64 * 999 + 161);
        let limit = if fetched { 70_000 + 3000 * 10 } else { 70_000 };
        assert!(all <= limit, "{all}");
        let seconds = report["seconds"]["online"].as_f64().unwrap();
        assert!(seconds > 0.0);
        assert!(report["revealed"][0].as_str().unwrap().contains("learned"));
    }
    let values = metrics(port);
    for (series, value) in [
        ("volery_connections", 0.0),
        ("volery_connections_total", 3.0),
        ("volery_fetches_total", 1.0),
        ("volery_requests_total", 3.0),
        ("volery_keys_total", 2997.0),
        ("volery_filter_keys", 3000.0),
        ("volery_refusals_total{reason=\"budget\"}", 0.0),
        ("volery_request_seconds_count", 3.0),
        ("volery_connection_seconds_count", 3.0),
    ] {
        assert_eq!(values[series], value, "{series}");
    }
    let left = "volery_budget_left_keys{client=\"loopback\",period=\"day\"}";
    assert_eq!(values[left], 997_003.0);
    // Health probes, at either port.
    drop(TcpStream::connect(server.address()).unwrap());
    let mut probe = TcpStream::connect(server.address()).unwrap();
    probe.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").unwrap();
    let _ = probe.read_to_end(&mut Vec::new());
    let ready = http(port, "HEAD /readyz HTTP/1.1\r\n\r\n");
    assert!(ready.starts_with("HTTP/1.1 200 ") && ready.ends_with("\r\n\r\n"), "{ready}");
    // Readers that say nothing delay nobody.
    let start = Instant::now();
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(("127.0.0.1", port))).collect();
    assert!(silent.iter().all(Result::is_ok));
    for path in ["/livez", "/healthz", "/readyz?verbose"] {
        let page = http(port, &format!("GET {path} HTTP/1.1\r\n\r\n"));
        assert!(page.starts_with("HTTP/1.1 200 ") && page.ends_with("\r\n\r\nok\n"), "{page}");
    }
    let values = loop {
        let values = metrics(port);
        assert!(start.elapsed() < Duration::from_secs(20));
        if values["volery_probes_total"] == 2.0 {
            break values;
        }
    };
    let mut refusals = values.iter().filter(|(name, _)| name.contains("refusals"));
    assert!(refusals.all(|(_, count)| *count == 0.0), "{values:?}");
    assert!(values["process_resident_memory_bytes"] > 1e6);
    assert!(values["volery_sent_bytes_total"] > 3.0 * 32.0 * 999.0);
    assert!(http(port, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(http(port, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    let ended = server.end();
    assert!(ended.stderr.contains("prepared 3000 keys"), "{ended:?}");
    assert!(!ended.stderr.contains("was refused"), "{ended:?}");
    assert!(ended.stderr.contains("connections: 3, fetches: 1"), "{ended:?}");

    // The next start finds it, with the table and without.
    let again = Server::start(&folder, &[]);
    let asked = again.ask(&folder, 0..10, &more);
    assert_eq!(asked.status, Some(0), "{asked:?}");
    assert_eq!(folder.json("report.json")["result"]["filter_fetched"], false);
    assert!(!again.end().stderr.contains("prepared"));
    let store = folder.path("store");
    fs::remove_file(folder.path("store/spent")).unwrap();
    refused_start(&folder, &[], 1, "it is missing, and this store was served before");
    let call = ["serve", "--listen", "127.0.0.1:0", "--store", &store, "--accept-lost-budgets"];
    let bare = RunningProcess::start(&[&call[..], &["--metrics", &metrics_at]].concat());
    let (metrics_port, port) = (port, bare.port());
    let bare = Server(bare, port);
    let asked = bare.ask(&folder, 2998..3002, &more);
    assert_eq!(asked.status, Some(0), "{asked:?}");
    assert_found(&folder, 2998..3002);
    assert_eq!(metrics(metrics_port)["volery_budgets_lost"], 1.0);
    assert!(bare.end().stderr.contains("all begin with full budgets"));
}

/// No other user reads the key, and what a client of another table would see is not there.
#[test]
fn the_store_is_private() {
    let folder = folder();
    Server::start(&folder, &[]).end();
    let mut seen = 0;
    let mut all = vec![std::path::PathBuf::from(folder.path("store"))];
    while let Some(path) = all.pop() {
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        if path.is_dir() {
            assert_eq!(mode, 0o700, "{path:?}");
            all.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            assert_eq!(mode, 0o600, "{path:?}");
            let text = fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&text).into_owned();
            assert!(!text.contains("x.org"), "{path:?}");
        }
        seen += 1;
    }
    assert!(seen >= 8);
    let key = glob(&folder, "key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    refused_start(&folder, &[], 1, "other users can read");
    let hint = run(&["serve", "--listen", "127.0.0.1:0", "--store", &folder.path("store")]);
    assert!(hint.stderr.contains("hint: chmod 600 "), "{hint:?}");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&key, "00".repeat(32)).unwrap();
    refused_start(&folder, &[], 1, "it holds no key");
    fs::write(&key, format!("01{}", "00".repeat(31))).unwrap();
    refused_start(&folder, &[], 1, "not the key of the filter");
    let filter = glob(&folder, "filter");
    let mut bytes = fs::read(&filter).unwrap();
    bytes[3000] ^= 1;
    fs::write(&filter, bytes).unwrap();
    refused_start(&folder, &[], 1, "contents are not those of its version");
    fs::set_permissions(folder.path("store"), fs::Permissions::from_mode(0o770)).unwrap();
    refused_start(&folder, &[], 2, "its mode is 770: other users can change it");
}

/// A file of what is served.
fn glob(folder: &Folder, name: &str) -> String {
    let current = folder.read("store/current");
    folder.path(&format!("store/{}/{name}", current.trim()))
}

fn refused_start(folder: &Folder, more: &[&str], status: i32, fragment: &str) {
    let (big, store) = (folder.path("big.csv"), folder.path("store"));
    let call = ["serve", "--listen", "127.0.0.1:0", "--store", &store, "-q"];
    let input = ["--input", &big, "--key", "email:email"];
    let all = [&call[..], &input, more].concat();
    run(&all).assert_refused(status, &[fragment]);
}

#[test]
fn another_table_needs_another_key() {
    let folder = folder();
    let filter = folder.path("filter");
    let server = Server::start(&folder, &[]);
    assert_eq!(server.ask(&folder, 0..5, &["--filter", &filter]).status, Some(0));
    server.end();
    let key = fs::read(glob(&folder, "key")).unwrap();
    folder.write("big.csv", table(0..3001));
    refused_start(&folder, &[], 1, "the table is not the one in the store");
    refused_start(&folder, &["--rotate"], 1, "the table is not the one in the store");
    folder.write("big.csv", table(0..3000));
    refused_start(&folder, &["--key", "id"], 1, "the keys are");
    folder.write("big.csv", table(0..3001));
    let server = Server::start(&folder, &["--rebuild"]);
    assert_ne!(fs::read(glob(&folder, "key")).unwrap(), key);
    let sets = common::names(folder.path("store").as_ref());
    assert_eq!(sets.iter().filter(|name| name.contains("set-")).count(), 1, "{sets:?}");
    // No filter is fetched in silence in place of the one of another key.
    let before = folder.read("out.csv");
    let asked = server.ask(&folder, [3000], &["--filter", &filter]);
    asked.assert_refused(5, &["the server has another key ("]);
    assert!(asked.stderr.contains("hint: if the operator"), "{asked:?}");
    assert_eq!(folder.read("out.csv"), before);
    let asked = server.ask(&folder, [3000], &["--filter", &filter, "--refresh"]);
    assert_eq!(asked.status, Some(0), "{asked:?}");
    assert_eq!(folder.read("out.csv"), table([3000]));
    server.end();
}

#[test]
fn settings_and_files_of_clients_are_checked() {
    let folder = folder();
    let filter = folder.path("filter");
    let server = Server::start(&folder, &[]);
    let small = folder.write("small.csv", table(0..5));
    let other = server.ask_with(&folder, &["--input", &small, "--key", "email:lower"], &[]);
    other.assert_refused(5, &["the key columns", "text+lower"]);
    let cached = ["--filter", &filter];
    assert_eq!(server.ask(&folder, 0..5, &cached).status, Some(0));
    let good = fs::read(&filter).unwrap();
    let mut changed = good.clone();
    changed[2000] ^= 4;
    for (bytes, fragment) in [
        (&good[..50], "it is cut off"),
        (&[&good[..], &[0]].concat(), "bytes follow its end"),
        (&changed, "its contents are not those of its version"),
    ] {
        fs::write(&filter, bytes).unwrap();
        let asked = server.ask(&folder, 0..5, &cached);
        asked.assert_refused(1, &["--filter", fragment]);
        assert!(asked.stderr.contains("--refresh"), "{asked:?}");
    }
    let again = server.ask(&folder, 0..5, &["--filter", &filter, "--refresh"]);
    assert_eq!(again.status, Some(0), "{again:?}");
    assert!(fs::read(&filter).unwrap() == good);
    let dry = server.ask(&folder, 0..5, &["--filter", &filter, "--dry-run"]);
    assert_eq!(dry.status, Some(0), "{dry:?}");
    assert!(dry.stdout.contains("filter: here, of 3000 keys at the server"), "{dry:?}");
    assert!(dry.stdout.contains("query: 481 bytes"), "{dry:?}");
    assert!(server.end().stderr.contains("connections: 3,"));
}

/// Identities and a file of clients.
struct People {
    folder: Folder,
    prints: [String; 3],
}

impl People {
    fn new() -> Self {
        let folder = folder();
        let prints = ["server", "ann", "eve"].map(|name| keygen(&folder.path(name)));
        Self { folder, prints }
    }

    fn write(&self, lines: &str) -> String {
        let text =
            format!("[[client]]\nname = 'ann'\nfingerprint = '{}'\n{lines}\n", self.prints[1]);
        self.folder.write("clients.toml", text)
    }

    fn start(&self, more: &[&str]) -> Server {
        let (identity, clients) = (self.folder.path("server"), self.folder.path("clients.toml"));
        let own = ["--identity", &identity, "--clients", &clients];
        Server::start(&self.folder, &[&own[..], more].concat())
    }

    fn ask(&self, server: &Server, who: &str, users: std::ops::Range<usize>) -> ProcessResult {
        let (identity, filter) = (self.folder.path(who), self.folder.path("filter"));
        let report = self.folder.path("report.json");
        let more = ["--identity", &identity, "--peer", &self.prints[0]];
        let more = [&more[..], &["--filter", &filter, "--report", &report]].concat();
        server.ask(&self.folder, users, &more)
    }
}

#[test]
fn budgets_hold_over_kills_and_starts() {
    let people = People::new();
    people.write("keys = 2500\nkeys_per_day = 2000");
    let port = free_port();
    let metrics_at = format!("127.0.0.1:{port}");
    let mut server = people.start(&["--metrics", &metrics_at]);
    let eve = people.ask(&server, "eve", 0..5);
    eve.assert_refused(3, &["must pin"]);
    assert!(eve.stderr.contains("hint: give the other party the fingerprint"), "{eve:?}");
    let asked = people.ask(&server, "ann", 0..1000);
    assert_eq!(asked.status, Some(0), "{asked:?}");
    assert_found(&people.folder, 0..1000);
    assert_eq!(people.folder.json("report.json")["result"]["budget_left"], 1000);
    let connection = &people.folder.json("report.json")["result"]["connection"];
    assert!(connection["protection"].as_str().unwrap().contains("TLS 1.3"));
    let values = metrics(port);
    assert_eq!(values["volery_refusals_total{reason=\"unknown\"}"], 1.0);
    let expires = values["volery_certificate_expiration_timestamp_seconds{use=\"identity\"}"];
    let year = Duration::from_secs(365 * 86_400);
    let year = (std::time::SystemTime::now() + year).duration_since(std::time::UNIX_EPOCH).unwrap();
    assert!((year.as_secs_f64() - expires).abs() < 3600.0, "{expires}");
    let left = |period| format!("volery_budget_left_keys{{client=\"ann\",period=\"{period}\"}}");
    assert_eq!(values[&left("all")], 1500.0);
    assert_eq!(values[&left("day")], 1000.0);
    for round in 0..3 {
        let over = people.ask(&server, "ann", 0..1001);
        over.assert_refused(2, &["more items than the 1000 that the client may still ask for"]);
        assert!(over.stderr.contains("or come again in "), "{over:?}");
        assert_eq!(people.folder.json("report.json")["status"], 2);
        server.0.signal(["KILL", "TERM", "KILL"][round]);
        let _ = server.0.finish();
        server = people.start(&[]);
    }
    let asked = people.ask(&server, "ann", 0..1000);
    assert_eq!(asked.status, Some(0), "{asked:?}");
    assert_eq!(people.folder.json("report.json")["result"]["budget_left"], 0);
    people.ask(&server, "ann", 0..1).assert_refused(2, &["than the 0 that"]);
    // The file is read again: first one that is wrong, then a larger budget, then nobody.
    let ask_until = |status: i32| until(status, || people.ask(&server, "ann", 0..600));
    people.write("keys = -1");
    server.0.signal("HUP");
    thread::sleep(Duration::from_millis(500));
    let over = ask_until(2);
    assert!(over.stderr.contains("than the 0 that"), "{over:?}");
    people.write("keys = 2599");
    server.0.signal("HUP");
    thread::sleep(Duration::from_millis(500));
    let over = ask_until(2);
    // Without an end that time brings: no more will come.
    assert!(over.stderr.contains("than the 599 that"), "{over:?}");
    assert!(over.stderr.contains("ask the operator"), "{over:?}");
    people.write("keys = 2600");
    server.0.signal("HUP");
    ask_until(0);
    people.folder.write("clients.toml", "");
    server.0.signal("HUP");
    ask_until(3);
    server.end();
}

/// Unattended, and not back to an earlier key.
#[test]
fn a_rotated_key_is_followed() {
    let people = People::new();
    people.write("keys = 100");
    let folder = &people.folder;
    let pin = folder.write("server.pin", &people.prints[0]);
    let [identity, filter, store, old] =
        ["ann", "filter", "store", "old"].map(|name| folder.path(name));
    let more = ["--identity", &identity, "--peer", &pin, "--follow-key", "--filter", &filter];
    for round in 0..3 {
        let server = people.start(if round == 0 { &[] } else { &["--rotate"][..] });
        let asked = server.ask(folder, 0..5, &more);
        assert_eq!(asked.status, Some(0), "{asked:?}");
        assert_eq!(asked.stderr.contains("the server has a new key"), round > 0, "{asked:?}");
        server.end();
        if round == 0 {
            let copied = std::process::Command::new("cp").args(["-a", &store, &old]).status();
            assert!(copied.unwrap().success());
        }
    }
    fs::remove_dir_all(&store).unwrap();
    fs::rename(&old, &store).unwrap();
    let server = people.start(&[]);
    let asked = server.ask(folder, 0..5, &more);
    asked.assert_refused(5, &["--follow-key: the server is back at an earlier key"]);
    server.end();
}

/// On this machine, with a file of one client that has no fingerprint.
fn local(folder: &Folder, lines: &str) -> String {
    folder.write("clients.toml", format!("[[client]]\nname = 'here'\n{lines}\n"))
}

#[test]
fn a_client_that_asks_too_fast_is_told_when_to_come() {
    let folder = folder();
    let clients = local(&folder, "keys = 100_000\nkeys_per_second = 200");
    let server = Server::start(&folder, &["--clients", &clients]);
    // Three requests, of which the second would wait for more than a minute.
    let late = server.ask(&folder, 0..40_000, &[]);
    late.assert_refused(4, &["does not answer now", "too many items in a time"]);
    assert!(late.stderr.contains("hint: come again in "), "{late:?}");
    server.end();
}

#[test]
fn too_many_connections() {
    let folder = folder();
    let clients = local(&folder, "keys = 1000\nconnections = 2");
    for (more, first, why) in [
        (&["--clients", &clients][..], Later::Connections, "this client"),
        (&["--max-connections", "2"], Later::Full, "there are too many"),
    ] {
        let server = Server::start(&folder, more);
        let mut held: Vec<_> = (0..2).map(|_| server.connect()).collect();
        let filter = welcome(&mut held[0]).unwrap().fetch(&mut held[0]).unwrap();
        welcome(&mut held[1]).unwrap().keep(filter.label(), &mut held[1]).unwrap();
        let refused = welcome(&mut server.connect()).unwrap_err();
        assert!(
            matches!(refused, Error::Later { why, wait } if why == first && wait.as_secs() == 1),
            "{refused}"
        );
        server.ask(&folder, 0..5, &[]).assert_refused(4, &[why]);
        // Both that are there go on, and one that leaves makes way.
        assert_eq!(query(&filter, 5, &mut held[1]).unwrap().common, [0; 0]);
        held.pop();
        until(0, || server.ask(&folder, 0..5, &[]));
        assert_found(&folder, 0..5);
        drop(held);
        server.end();
    }
}

/// A client that asks for the filter, ends its query and does not read has its place until its
/// connection is closed.
#[test]
fn a_client_that_does_not_read_keeps_its_place() {
    // A filter of more than the system holds for a connection.
    const USERS: usize = 600_000;
    let folder = Folder::new();
    folder.write("big.csv", table(0..USERS));
    let clients = local(&folder, "keys = 1000\nconnections = 1");
    let server = Server::start(&folder, &["--clients", &clients]);
    let mut slow = server.connect();
    let label = welcome(&mut slow).unwrap().label;
    assert!(label.bytes() > 5 << 20, "{}", label.bytes());
    slow.send(&[1]).unwrap();
    slow.send(label.version()).unwrap();
    slow.send(&[0; 8]).unwrap();
    slow.flush().unwrap();
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        let refused = welcome(&mut server.connect()).unwrap_err();
        assert!(
            matches!(refused, Error::Later { why, .. } if why == Later::Connections),
            "{refused}"
        );
        thread::sleep(Duration::from_millis(200));
    }
    drop(slow);
    until(0, || server.ask(&folder, 0..5, &[]));
    server.end();
}

/// A client that says nothing after its identity is dropped by --timeout, and keeps no place.
#[test]
fn silent_clients_are_dropped() {
    let folder = folder();
    let server = Server::start(&folder, &["--timeout", "2s", "--max-connections", "1"]);
    let mut silent = server.connect();
    let filter = welcome(&mut silent).unwrap().fetch(&mut silent).unwrap();
    drop(filter);
    // It waits in a read, and so gives no sign of life.
    assert!(silent.recv(&mut [0; 8]).is_err());
    assert_eq!(server.ask(&folder, 0..5, &[]).status, Some(0));
    server.end();
}

#[test]
fn rotation_with_a_running_client() {
    let folder = folder();
    let server = Server::start(&folder, &[]);
    let mut old = server.connect();
    let filter = welcome(&mut old).unwrap().fetch(&mut old).unwrap();
    let fetching = server.connect();
    let mut late = server.connect();
    let before = welcome(&mut late).unwrap();
    let (big, store) = (folder.path("big.csv"), folder.path("store"));
    let call = ["serve", "--prepare", "--store", &store, "--input", &big, "--key", "email:email"];
    let rotate = [&call[..], &["--rotate"]].concat();
    let rotated = run(&rotate);
    assert_eq!(rotated.status, Some(0), "{rotated:?}");
    // Nothing changes before the signal.
    let mut still = server.connect();
    assert_eq!(welcome(&mut still).unwrap().label, *filter.label());
    server.0.signal("HUP");
    let start = Instant::now();
    let next = loop {
        let mut session = server.connect();
        let next = welcome(&mut session).unwrap();
        if next.label != *filter.label() {
            let refused = next.keep(filter.label(), &mut session);
            assert!(matches!(refused, Err(Error::OtherKey { .. })));
            break next;
        }
        assert!(start.elapsed() < Duration::from_secs(20));
    };
    assert_ne!(next.label.public(), filter.public());
    assert_eq!(next.label.items(), 3000);
    // Those that had begun end well with the old one, which they may even fetch.
    assert_eq!(query(&filter, 10, &mut old).unwrap().common, [0; 0]);
    assert_eq!(before.fetch(&mut late).unwrap(), filter);
    assert_eq!(query(&filter, 10, &mut late).unwrap().common, [0; 0]);
    drop((fetching, still));
    assert_eq!(server.ask(&folder, 2990..3010, &[]).status, Some(0));
    assert_found(&folder, 2990..3010);
    // Two processes cannot serve from one folder.
    refused_start(&folder, &[], 1, "another process serves from this folder");
    server.end();
}

#[test]
fn a_signal_lets_queries_finish() {
    let folder = folder();
    let port = free_port();
    let server = Server::start(&folder, &["--metrics", &format!("127.0.0.1:{port}")]);
    let mut session = server.connect();
    let filter = welcome(&mut session).unwrap().fetch(&mut session).unwrap();
    let address = server.address();
    server.0.signal("TERM");
    // No new connections; the system may have taken one before.
    let start = Instant::now();
    while TcpStream::connect(&address).is_ok() {
        assert!(start.elapsed() < Duration::from_secs(4));
        thread::sleep(Duration::from_millis(50));
    }
    let ready = http(port, "GET /readyz HTTP/1.1\r\n\r\n");
    assert!(ready.starts_with("HTTP/1.1 503 ") && ready.contains("stopping"), "{ready}");
    assert_eq!(query(&filter, 20_000, &mut session).unwrap().common, [0; 0]);
    drop(session);
    let ended = server.0.finish();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("keys: 20000"), "{ended:?}");
    assert!(folder.read("store/spent").contains("loopback"));

    // One that does not finish is cut off after --grace.
    let server = Server::start(&folder, &["--grace", "1s"]);
    let mut session = server.connect();
    let welcomed = welcome(&mut session).unwrap();
    welcomed.keep(filter.label(), &mut session).unwrap();
    let start = Instant::now();
    server.0.signal("INT");
    let cut = session.recv(&mut [0]);
    assert!(matches!(cut, Err(ChannelError::Disconnected | ChannelError::Io(_))), "{cut:?}");
    let ended = server.0.finish();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(start.elapsed() > Duration::from_millis(900));

    // A second signal ends at once.
    let server = Server::start(&folder, &["--grace", "60s"]);
    let mut session = server.connect();
    welcome(&mut session).unwrap();
    server.0.signal("TERM");
    thread::sleep(Duration::from_millis(300));
    let start = Instant::now();
    server.0.signal("TERM");
    assert_eq!(server.0.finish().status, Some(1));
    assert!(start.elapsed() < Duration::from_secs(10));
}

/// A preparation that is killed leaves nothing that is served, and the next one removes it.
#[test]
fn a_killed_preparation_leaves_nothing() {
    let folder = Folder::new();
    let (big, store) = (folder.path("big.csv"), folder.path("store"));
    folder.write("big.csv", table(0..400_000));
    let call = ["serve", "--prepare", "--store", &store, "--input", &big, "--key", "email:email"];
    let mut left = None;
    for signal in ["KILL", "TERM"] {
        let mut running = RunningProcess::start(&[&call[..], &["--threads", "1"]].concat());
        let start = Instant::now();
        let is_new = |name: &String| name.starts_with(".new-") && Some(name) != left.as_ref();
        while !fs::exists(&store).unwrap() || !common::names(store.as_ref()).iter().any(is_new) {
            assert!(start.elapsed() < Duration::from_secs(20));
            thread::sleep(Duration::from_millis(5));
        }
        assert!(!running.has_ended());
        running.signal(signal);
        assert_ne!(running.finish().status, Some(0));
        let names: HashSet<_> = common::names(store.as_ref()).into_iter().collect();
        assert!(!names.contains("current"), "{names:?}");
        left = names.iter().find(|name| name.starts_with(".new-")).cloned();
        assert_eq!(left.is_some(), signal == "KILL", "{names:?}");
    }
    let bare = ["serve", "--store", &store, "--listen", "127.0.0.1:0"];
    run(&bare).assert_refused(2, &["--input"]);
    folder.write("big.csv", table(0..30));
    assert_eq!(run(&call).status, Some(0));
    assert!(volery(&bare).arg("--rotate").output().unwrap().status.code() == Some(2));
}
