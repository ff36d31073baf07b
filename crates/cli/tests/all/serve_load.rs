//! Many clients of a server at once, with faults: connections that are cut at random bytes, clients
//! that stall, and a server that is killed and started again. Every answer is checked against a
//! plain set, and what the journal says was spent is what the clients got, and at most what was cut
//! off on the way.
//!
//! `VOLERY_LOAD=60,200,1000000` makes it a minute, 200 clients and 10^6 keys.
#![allow(clippy::print_stdout, reason = "the numbers of a long run")]

use std::collections::{BTreeMap, HashSet};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::common::pair::Folder;
use crate::common::{RunningProcess, free_port, http, keygen, run, words};
use volery_channel::tls::{self, Fingerprint, Identity};
use volery_channel::{Role, Session};
use volery_matching::served::hello;
use volery_primitives::prg::Prg;
use volery_psi::Error;
use volery_psi::served::meeting::Welcome;
use volery_psi::served::{Client, Filter};
use volery_tables::{Inputs, Item, Reading, Records, Rule, Table};

/// The key columns, as the handshake states them.
const KEYS: &str = "text";

/// The budget of every tenth client; the others have enough.
const SMALL: u64 = 3000;

/// The longest query.
const LONGEST: u64 = 1000;

/// How long after the load a client waits for its first answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Users with these numbers, as rows of a table and as items.
fn users(folder: &Folder, name: &str, numbers: std::ops::Range<usize>) -> Vec<Item> {
    let mut text = "email\n".to_owned();
    for number in numbers {
        text += &format!("u{number}@x.org\n");
    }
    let path = folder.write(name, text);
    let inputs = Inputs { paths: vec![path.into()], ..Inputs::default() };
    let reading = Reading { rules: vec![Rule::parse("email").unwrap()], ..Reading::default() };
    let table = Table::open(&inputs).unwrap();
    let records = Records::read(&table, &reading, &mut |_, _| ()).unwrap();
    records.items(0).to_vec()
}

/// A port that leads to another one, for one connection, until so many bytes have passed.
fn cut_after(to: u16, bytes: u64) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (near, _) = listener.accept().unwrap();
        let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else {
            return;
        };
        let left = AtomicU64::new(bytes);
        let copy = |mut from: &TcpStream, mut to: &TcpStream| {
            let mut buffer = [0; 4096];
            loop {
                let count = from.read(&mut buffer).unwrap_or(0);
                let allowed = left.load(Ordering::SeqCst).min(count as u64);
                left.fetch_sub(allowed, Ordering::SeqCst);
                let sent = to.write_all(&buffer[..allowed as usize]);
                if count == 0 || sent.is_err() || allowed < count as u64 {
                    break;
                }
            }
            // Both ends: the connection is gone.
            let _ = (near.shutdown(Shutdown::Both), far.shutdown(Shutdown::Both));
        };
        thread::scope(|scope| {
            scope.spawn(|| copy(&near, &far));
            copy(&far, &near);
        });
    });
    port
}

/// The results of a client.
#[derive(Clone, Copy, Debug, Default)]
struct ClientResults {
    /// Keys of queries that were answered.
    answered: u64,
    /// Keys of queries that were begun, and not answered.
    uncertain: u64,
    queries: u64,
    faults: u64,
    refused: u64,
    longest: Duration,
}

struct Load<'a> {
    port: u16,
    server: Fingerprint,
    filter: &'a Filter,
    has: &'a [Item],
    others: &'a [Item],
    end: Instant,
}

impl Load<'_> {
    fn connect(&self, port: u16, identity: &Identity) -> Result<Session, Error> {
        let patience =
            tls::Patience { wait: Duration::from_secs(5), ..Duration::from_secs(20).into() };
        let channel = tls::connect(("127.0.0.1", port), identity, self.server, patience)?;
        let mut session = Session::begin(channel, &hello(Role::Receiver, KEYS))?;
        let welcome = Welcome::receive(1 << 31, &mut session)?;
        welcome.keep(self.filter.label(), &mut session)?;
        Ok(session)
    }

    /// One query; whether it was begun goes to `begun`.
    fn ask(
        &self,
        port: u16,
        identity: &Identity,
        items: &[Item],
        begun: &mut bool,
    ) -> Result<Vec<usize>, Error> {
        let mut session = self.connect(port, identity)?;
        *begun = true;
        let (_, rng, channel) = session.parts();
        Ok(Client::new(self.filter, rng).query(items, &mut (), channel)?.common)
    }

    /// Connects, sends a part of a request, and says nothing for a while.
    fn stall(&self, identity: &Identity, rng: &mut Prg) -> Result<(), Error> {
        let mut session = self.connect(self.port, identity)?;
        session.send(self.filter.version())?;
        session.send(&500_u64.to_le_bytes())?;
        session.send(&vec![1; 32 * rng.below(499) as usize])?;
        session.flush()?;
        thread::sleep(Duration::from_millis(rng.below(3000)));
        Ok(())
    }

    /// A client, to the end of the load, and on a busy machine to its first answer.
    fn client(&self, number: usize, identity: &Identity) -> ClientResults {
        let mut rng = Prg::from_os().unwrap();
        let mut seen = ClientResults::default();
        loop {
            let late = Instant::now() >= self.end;
            if late && (seen.queries > 0 || Instant::now() >= self.end + PATIENCE) {
                break seen;
            }
            // Queries of any size, small ones as often as large ones.
            let size = (LONGEST as f64).powf(rng.below(1 << 20) as f64 / f64::from(1 << 20));
            let (mut items, mut expected) = (Vec::new(), Vec::new());
            for i in 0..size as usize {
                let from = match rng.below(2) {
                    0 => {
                        expected.push(i);
                        self.has
                    }
                    _ => self.others,
                };
                items.push(from[rng.below(from.len() as u64) as usize]);
            }
            let fault = !late && number % 2 == 1 && rng.below(3) == 0;
            if fault && rng.below(3) == 0 {
                seen.faults += 1;
                let _ = self.stall(identity, &mut rng);
                continue;
            }
            let port = match fault {
                true => cut_after(self.port, rng.below(6000 + 70 * items.len() as u64)),
                false => self.port,
            };
            seen.faults += u64::from(fault);
            let (start, mut begun) = (Instant::now(), false);
            match self.ask(port, identity, &items, &mut begun) {
                Ok(common) => {
                    assert_eq!(common, expected, "a wrong answer");
                    seen.answered += items.len() as u64;
                    seen.queries += 1;
                    seen.longest = seen.longest.max(start.elapsed());
                }
                Err(Error::Budget { left, .. }) => {
                    assert_eq!(number % 10, 0, "this client has enough");
                    assert!(left < LONGEST);
                    seen.refused += 1;
                    thread::sleep(Duration::from_millis(500));
                }
                Err(Error::Later { .. }) => {
                    seen.refused += 1;
                    thread::sleep(Duration::from_millis(rng.below(1000)));
                }
                Err(_) if begun => seen.uncertain += items.len() as u64,
                Err(_) => {}
            }
            thread::sleep(Duration::from_millis(rng.below(50)));
        }
    }
}

/// A number of the metrics.
fn metric(port: u16, name: &str) -> Option<f64> {
    let page = http(port, "GET /metrics HTTP/1.1\r\n\r\n");
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")))?;
    line.parse().ok()
}

#[test]
fn load() {
    let wanted = std::env::var("VOLERY_LOAD").unwrap_or_else(|_| "6,20,5000".to_owned());
    let numbers: Vec<u64> = wanted.split(',').map(|text| text.parse().unwrap()).collect();
    let [seconds, clients, keys] = numbers[..] else { panic!("VOLERY_LOAD=SECONDS,CLIENTS,KEYS") };
    let folder = Folder::new();
    let has = users(&folder, "big.csv", 0..keys as usize);
    let others = users(&folder, "others.csv", keys as usize..keys as usize + 20_000);
    assert!(others.iter().collect::<HashSet<_>>().is_disjoint(&has.iter().collect()));
    let server: Fingerprint = keygen(&folder.path("server")).parse().unwrap();
    let year = SystemTime::now()..SystemTime::now() + Duration::from_secs(365 * 86_400);
    let identities: Vec<_> = (0..clients)
        .map(|number| Identity::generate(&format!("c{number}"), year.clone()).unwrap())
        .collect();
    let mut text = String::new();
    for (number, identity) in identities.iter().enumerate() {
        let budget = if number % 10 == 0 { SMALL } else { 1 << 40 };
        let print = identity.fingerprint();
        text +=
            &format!("[[client]]\nname = 'c{number}'\nfingerprint = '{print}'\nkeys = {budget}\n");
    }
    let list = folder.write("clients.toml", text);
    let (port, metrics) = (free_port(), free_port());
    let [listen, told] = [port, metrics].map(|port| format!("127.0.0.1:{port}"));
    let (store, identity) = (folder.path("store"), folder.path("server"));
    let call = format!(
        "serve --listen {listen} --metrics {told} --store {store} --identity {identity} --clients \
         {list} --max-connections 150 --timeout 10s --grace 20s"
    );
    let start = || RunningProcess::start(&words(&call));
    let input = folder.path("big.csv");
    let prepare = format!("serve --prepare --store {store} --input {input} --key email");
    let prepared = run(&words(&prepare));
    assert_eq!(prepared.status, Some(0), "{prepared:?}");
    let set = folder.read("store/current");
    let path = folder.path(&format!("store/{}/filter", set.trim()));
    let filter =
        Filter::read(&mut std::io::BufReader::new(std::fs::File::open(path).unwrap()), 1 << 31);
    let filter = filter.unwrap();

    let mut running = Some(start());
    assert_eq!(running.as_ref().unwrap().port(), port);
    let begin = Instant::now();
    let load = Load {
        port,
        server,
        filter: &filter,
        has: &has,
        others: &others,
        end: begin + Duration::from_secs(seconds),
    };
    let mut memory = Vec::new();
    let seen: Vec<ClientResults> = thread::scope(|scope| {
        let threads: Vec<_> = identities
            .iter()
            .enumerate()
            .map(|(number, identity)| {
                let load = &load;
                scope.spawn(move || load.client(number, identity))
            })
            .collect();
        // Killed twice in the first half.
        for part in [6, 3] {
            thread::sleep(
                (begin + Duration::from_secs(seconds) / part).duration_since(Instant::now()),
            );
            let killed = running.take().unwrap();
            killed.signal("KILL");
            killed.finish_within(Duration::from_secs(3600));
            running.insert(start()).port();
        }
        thread::sleep((begin + Duration::from_secs(seconds) / 2).duration_since(Instant::now()));
        while Instant::now() < load.end {
            memory.extend(metric(metrics, "process_resident_memory_bytes"));
            thread::sleep(Duration::from_millis(seconds * 10));
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let running = running.unwrap();
    running.signal("TERM");
    let ended = running.finish_within(Duration::from_secs(3600));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");

    // The journal, read independently.
    let mut spent = BTreeMap::<String, u64>::new();
    for line in folder.read("store/spent").lines().skip(1) {
        let fields: Vec<_> = line.split(' ').collect();
        *spent.entry(fields[0].to_owned()).or_default() += fields[2].parse::<u64>().unwrap();
    }
    let mut all = ClientResults::default();
    for ((number, identity), seen) in identities.iter().enumerate().zip(&seen) {
        let paid = spent.get(&identity.fingerprint().to_string()).copied().unwrap_or(0);
        let most = seen.answered + seen.uncertain;
        assert!((seen.answered..=most).contains(&paid), "{number}: {paid} {seen:?}");
        assert!(number % 10 != 0 || paid <= SMALL, "{number}: {paid}");
        assert!(seen.queries > 0, "{number}: no answer");
        all.answered += seen.answered;
        all.uncertain += seen.uncertain;
        all.queries += seen.queries;
        all.faults += seen.faults;
        all.refused += seen.refused;
        all.longest = all.longest.max(seen.longest);
    }
    assert!(all.faults > 0);
    let paid: u64 = spent.values().sum();
    let quarter = (memory.len() / 4).max(1);
    let largest = |memory: &[f64]| memory.iter().copied().fold(0.0, f64::max) / 1e6;
    let (first, last) = (largest(&memory[..quarter]), largest(&memory[memory.len() - quarter..]));
    println!(
        "{seconds} s, {clients} clients, {keys} keys, 2 kills: paid {paid} keys; {all:?}; memory of the \
         server {first:.1} MB, later {last:.1} MB",
    );
    assert!(last <= 1.25 * first + 16.0, "memory grows: {memory:?}");
}
