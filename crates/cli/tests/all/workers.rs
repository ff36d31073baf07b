//! Runs with workers at a gateway: results, options that differ, and processes that are killed.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::pair::{Folder, PLANTED};
use crate::common::{self, ProcessResult, RunningProcess};
use volery_channel::Role;
use volery_channel::gateway::{Ticket, encode_ticket};
use volery_channel::tls::Identity;
use volery_primitives::ro::RandomOracle;

/// Two organisations and a gateway that allows both.
struct Place {
    folder: Folder,
    fingerprints: [String; 2],
    gateway: Option<RunningProcess>,
    port: u16,
}

const SIDES: [&str; 2] = ["a", "b"];

impl Place {
    fn new() -> Self {
        let folder = Folder::new();
        let fingerprints = SIDES.map(|side| {
            let made = common::run(&["keygen", "--out", &folder.path(side)]);
            made.stdout.trim().to_owned()
        });
        let mut place = Self { folder, fingerprints, gateway: None, port: 0 };
        place.start_gateway();
        place
    }

    fn start_gateway(&mut self) {
        let [a, b] = &self.fingerprints;
        let address = format!("127.0.0.1:{}", self.port);
        let call = ["gateway", "--listen", &address, "--allow", a, "--allow", b];
        let gateway = RunningProcess::start(&call);
        self.port = gateway.port();
        self.gateway = Some(gateway);
    }

    /// Starts a side of a run; the receiver is side 1.
    fn start(&self, side: usize, verb: &str, more: &[&str]) -> RunningProcess {
        let name = SIDES[side];
        let gateway = format!("127.0.0.1:{}", self.port);
        let [identity, input, work, out] = [
            self.folder.path(name),
            self.folder.path(&format!("{name}.csv")),
            self.folder.path(&format!("work-{name}")),
            self.folder.path("out.csv"),
        ];
        let role = ["sender", "receiver"][side];
        let mut call = vec!["run-local", verb, "--role", role, "--gateway", &gateway];
        call.extend(["--identity", &identity, "--peer", &self.fingerprints[1 - side]]);
        call.extend(["--input", &input, "--resume", &work, "--timeout", "20s"]);
        if side == 1 {
            call.extend(["--out", &out]);
        }
        call.extend(more);
        RunningProcess::start(&call)
    }

    fn both(&self, verb: &str, more: [&[&str]; 2]) -> [ProcessResult; 2] {
        let sides = [0, 1].map(|side| self.start(side, verb, more[side]));
        sides.map(RunningProcess::finish)
    }

    /// Starts worker 0 of a side that has prepared a run.
    fn worker(&self, side: usize, more: &[&str]) -> RunningProcess {
        let work = self.folder.path(&format!("work-{}/worker-0", SIDES[side]));
        let (manifest, ticket) = (format!("{work}/run.json"), format!("{work}/ticket-0"));
        let mut call = vec!["worker", "--worker", "0", "--timeout", "20s"];
        call.extend(["--manifest", &manifest, "--ticket", &ticket, "--work", &work]);
        call.extend(["--role", ["sender", "receiver"][side]]);
        call.extend(more);
        RunningProcess::start(&call)
    }

    /// The names in the folder of a side.
    fn names(&self, side: usize) -> Vec<String> {
        common::names(self.folder.path(&format!("work-{}", SIDES[side])).as_ref())
    }

    /// Prepares a sum, whose workers, one a side, finish it; what each side is started with.
    fn worked(&self) -> [Vec<&'static str>; 2] {
        self.folder.write("a.csv", "id,paid\n1,3\n2,4\n3,5\n");
        self.folder.write("b.csv", "id\n2\n3\n4\n");
        let run = "--run t --workers 1 --shards 2 --key id --bound 10 --minimum 1";
        let own = ["--result sum=paid", "--result sum"];
        let sides = own.map(|own| [common::words(run), common::words(own)].concat());
        let prepare = ["--step", "prepare", "--wait", "60s"];
        let both = [0, 1].map(|side| [&sides[side][..], &prepare].concat());
        let gateway = format!("127.0.0.1:{}", self.port);
        let first = ["--gateway", &gateway, "--attempt", "1", "--wait", "60s"];
        let prepared = self.both("psi", [&both[0], &both[1]]);
        let worked = [0, 1].map(|side| self.worker(side, &first));
        for ended in prepared.into_iter().chain(worked.map(RunningProcess::finish)) {
            assert_eq!(ended.status, Some(0), "{ended:?}");
        }
        sides
    }

    /// Connects to the gateway as worker 0 of a side, until the gateway says so.
    fn waiting(&self, side: usize, attempt: u64) -> TcpStream {
        let name = SIDES[side];
        let manifest = self.folder.json(&format!("work-{name}/worker-0/run.json"));
        let terms = &manifest["workers"];
        let mut oracle = RandomOracle::new("volery cluster: run");
        oracle.absorb(terms["run"].as_str().unwrap().as_bytes());
        for organisation in terms["organisations"].as_array().unwrap() {
            oracle.absorb(organisation.as_str().unwrap().as_bytes());
        }
        let ticket = Ticket {
            run: oracle.finish32(),
            side: [Role::Sender, Role::Receiver][side],
            worker: Some(0),
            attempt,
        };
        let leaf = self.folder.read(&format!("work-{name}/worker-0/ticket-0"));
        let leaf = Identity::from_pem(&leaf).unwrap();
        let peer = self.fingerprints[1 - side].parse().unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let mut hello = [0; 40];
        stream.read_exact(&mut hello).unwrap();
        let challenge = hello[8..].try_into().unwrap();
        let bytes = encode_ticket(&ticket, &leaf, peer, challenge).unwrap();
        stream.write_all(&bytes).unwrap();
        assert_eq!(heard(&mut stream), 0);
        stream
    }

    /// The sessions that a side began, each with its shard.
    fn begun(&self, side: usize) -> Vec<(String, String)> {
        common::begun(self.folder.path(&format!("work-{}", SIDES[side])).as_ref())
    }
}

/// The next byte of a gateway: 0 for a wait, 1 when the peer has come.
fn heard(stream: &mut TcpStream) -> u8 {
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    byte[0]
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(gateway) = self.gateway.take() {
            gateway.signal("TERM");
            let ended = gateway.finish();
            assert!(!ended.stderr.contains("panicked"), "{ended:?}");
        }
    }
}

const RUN: [&str; 8] = ["--run", "r1", "--workers", "2", "--shards", "5", "--wait", "30s"];

#[test]
fn rows_and_values_are_those_of_a_join() {
    let place = Place::new();
    place
        .folder
        .write("a.csv", "mail,phone,city\nx@a.org,1,Rome\ny@a.org,2,Oslo\nz@a.org,3,Bonn\n");
    place.folder.write(
        "b.csv",
        "id,email,tel\n1,Y@A.org,9\n2,q@a.org,3\n3,q@a.org,8\n4,x@a.org,2\n5,Y@a.org,7\n",
    );
    let keys = |mail: &'static str, phone: &'static str| ["--key", mail, "--or", phone];
    let left = [&RUN[..], &keys("mail:lower", "phone"), &["--value", "city"]].concat();
    let report = place.folder.path("report.json");
    let more = ["--left", "--rule-column", "by", "--report", &report];
    let right = [&RUN[..], &keys("email:lower", "tel"), &more].concat();
    let ended = place.both("lookup", [&left, &right]);
    common::assert_done(&ended, "volery: secure against a malicious peer");
    assert_eq!(
        place.folder.read("out.csv"),
        "id,email,tel,city,by\n1,Y@A.org,9,Oslo,1\n2,q@a.org,3,Bonn,2\n3,q@a.org,8,,\n4,x@a.org,2,Rome,1\n5,Y@a.org,7,Oslo,1\n"
    );
    let report = place.folder.json("report.json");
    let result = &report["result"];
    assert_eq!(result["run"]["shards"], 5);
    assert_eq!(result["run"]["workers"], 2);
    assert_eq!(result["attempts"].as_u64().or(result["buckets"]["attempts"].as_u64()), Some(1));
    assert!(report["bytes_sent"].as_u64().unwrap() > 10_000);
    // The same command does nothing more; and neither folder has a certificate left.
    for side in [0, 1] {
        let again = place.start(side, "lookup", [&left[..], &right[..]][side]).finish();
        assert_eq!(again.status, Some(0), "{again:?}");
        assert!(again.stderr.contains("this run is complete"), "{again:?}");
        let work = place.folder.path(&format!("work-{}", SIDES[side]));
        assert_eq!(common::names(work.as_ref()), ["complete"]);
    }
}

#[test]
fn options_that_are_wrong_or_differ() {
    let place = Place::new();
    for side in SIDES {
        place.folder.write(&format!("{side}.csv"), format!("k\n{PLANTED}\n"));
    }
    let own = |more: &[&'static str]| {
        let run = ["--run", "r", "--key", "k", "--wait", "20s"];
        [&run[..], more].concat()
    };
    for (left, right, field) in [
        (["--workers", "2"], ["--workers", "3"], "--workers"),
        (["--key", "k:lower"], ["--key", "k:trim"], "the key columns"),
    ] {
        let with = |more: [&'static str; 2]| {
            let run = match more[0] {
                "--key" => vec!["--run", "r", "--wait", "20s", "--workers", "2"],
                _ => own(&[]),
            };
            [&run[..], &more].concat()
        };
        for side in place.both("psi", [&with(left), &with(right)]) {
            side.assert_refused(5, &[field]);
            assert!(!side.stderr.contains(PLANTED), "{side:?}");
        }
    }
    let work = place.folder.path("work");
    let gateway = format!("127.0.0.1:{}", place.port);
    let identity = place.folder.path("a");
    let input = place.folder.path("a.csv");
    for (more, status, fragment) in [
        (vec![], 2, "--resume"),
        (vec!["--resume", &work], 2, "--identity, --peer"),
        (
            vec!["--resume", &work, "--listen", "127.0.0.1:0"],
            2,
            "--listen: the two sides meet at --gateway",
        ),
        (vec!["--resume", &work, "--protocol", "dh"], 2, "--protocol"),
    ] {
        let mut call =
            vec!["run-local", "psi", "--role", "sender", "--gateway", &gateway, "--input", &input];
        call.extend(own(&["--workers", "2"]));
        if more.contains(&"--protocol") {
            call.extend(["--identity", &identity, "--peer", &place.fingerprints[1]]);
        }
        call.extend(more);
        common::run(&call).assert_refused(status, &[fragment]);
    }
    // A peer that never comes, and a gateway that is not there.
    let alone =
        place.start(0, "psi", &["--run", "r", "--key", "k", "--workers", "1", "--wait", "1s"]);
    alone.finish().assert_refused(4, &["--gateway"]);
}

#[test]
fn a_table_that_changed_is_refused() {
    let place = Place::new();
    place.folder.write("a.csv", "k\n1\n2\n");
    place.folder.write("b.csv", "k\n2\n3\n");
    let more = [&RUN[..], &["--key", "k"]].concat();
    let mut sides = [0, 1].map(|side| place.start(side, "psi", &more));
    // Killed when the drivers have agreed.
    let started = Instant::now();
    while !place.folder.names().contains(&"work-b".to_owned())
        || !common::names(place.folder.path("work-b").as_ref()).contains(&"run.json".to_owned())
    {
        assert!(started.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(1));
    }
    let was_over = sides[1].has_ended();
    sides[1].signal("KILL");
    sides[0].signal("KILL");
    for side in sides {
        drop(side.finish());
    }
    if was_over {
        return;
    }
    place.folder.write("b.csv", "k\n2\n4\n");
    let refused = place.start(1, "psi", &more).finish();
    refused.assert_refused(1, &["with another table or other settings"]);
}

/// A number that looks random.
fn mix(number: u32) -> u32 {
    let mixed = u64::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 37) as u32
}

/// The processes that a process started.
fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap();
    let id = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let ids = processes.filter_map(|entry| id(entry.ok()?));
    let is_child = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // After the name, which may have spaces: state and parent.
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        rest.split(' ').nth(1) == Some(&parent.to_string())
    };
    ids.filter(is_child).collect()
}

const ROWS: u32 = 20_000;
const KILLS: u32 = 20;

/// Workers, drivers and the gateway are killed: the result is exact, and no session comes twice.
#[test]
fn killed_processes_are_started_again() {
    let mut place = Place::new();
    let (mut a, mut b, mut expected) =
        ("id\n".to_owned(), "n,id\n".to_owned(), "n,id\n".to_owned());
    for i in 0..ROWS {
        writeln!(a, "{}", 3 * i).unwrap();
        writeln!(b, "{i},{}", 2 * i).unwrap();
        if (2 * i) % 3 == 0 {
            writeln!(expected, "{i},{}", 2 * i).unwrap();
        }
    }
    place.folder.write("a.csv", a);
    place.folder.write("b.csv", b);
    let more = ["--key", "id", "--run", "k", "--workers", "2", "--shards", "160", "--wait", "60s"];
    let mut sides = [0, 1].map(|side| place.start(side, "psi", &more));
    // Shards of each worker that are found. A shard is that of the worker with its remainder.
    let found = |place: &Place| {
        let names = fs::read_dir(place.folder.path("work-b"));
        let mut found = [0; 2];
        for entry in names.into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let shard = name.strip_prefix("found-0-");
            if let Some(Ok(shard)) = shard.map(str::parse::<usize>) {
                found[shard % 2] += 1;
            }
        }
        found
    };
    let mut before = [0; 2];
    let mut all = [Vec::new(), Vec::new()];
    let mut killed = [0; 3];
    for kill in 0..KILLS {
        let started = Instant::now();
        // A worker that is killed again and again without a shard in between is given up, and so is
        // a run of which a side is killed while the two agree.
        let goes_on = |now: [u32; 2]| {
            let progress = |worker: usize| now[worker] > before[worker] || now[worker] == 80;
            now[0] + now[1] >= 3 * kill && progress(0) && progress(1)
        };
        while !goes_on(found(&place)) {
            assert!(started.elapsed() < Duration::from_secs(60), "no progress");
            if let Some(side) = sides.iter_mut().position(|side| side.has_ended()) {
                let again = place.start(side, "psi", &more);
                let ended = std::mem::replace(&mut sides[side], again).finish();
                panic!("a side ended before kill {kill}: {ended:?}");
            }
            thread::sleep(Duration::from_millis(2));
        }
        before = found(&place);
        thread::sleep(Duration::from_millis(u64::from(mix(kill) % 60)));
        let side = mix(kill + 100) as usize % 2;
        match mix(kill + 200) % 8 {
            0..5 => {
                if let Some(worker) = children(sides[side].id()).first() {
                    // It may have just ended.
                    let id = worker.to_string();
                    let _ = std::process::Command::new("kill").args(["-s", "KILL", &id]).output();
                    killed[0] += 1;
                }
            }
            5..7 => {
                sides[side].signal("KILL");
                let again = place.start(side, "psi", &more);
                drop(std::mem::replace(&mut sides[side], again).finish());
                killed[1] += 1;
            }
            _ => {
                let gateway = place.gateway.take().unwrap();
                gateway.signal("KILL");
                drop(gateway.finish());
                place.start_gateway();
                killed[2] += 1;
            }
        }
        all = [0, 1].map(|side| place.begun(side));
    }
    assert!(killed.iter().all(|times| *times > 0), "{killed:?}");
    // The files of attempts go when the run is complete: they are read up to then.
    while sides.iter_mut().any(|side| !side.has_ended()) {
        for (side, all) in all.iter_mut().enumerate() {
            let now = place.begun(side);
            if now.len() > all.len() {
                *all = now;
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
    for side in sides {
        let ended = side.finish();
        assert_eq!(ended.status, Some(0), "{ended:?}");
    }
    assert_eq!(place.folder.read("out.csv"), expected);
    for all in &all {
        let sessions: HashSet<_> = all.iter().map(|(_, session)| session).collect();
        assert_eq!(sessions.len(), all.len(), "a session came twice");
        let times = |shard: &String| all.iter().filter(|(other, _)| other == shard).count();
        assert!(all.iter().all(|(shard, _)| times(shard) <= 3));
    }
}

/// Sums by group over two workers, of which some are killed; both sides get them.
#[test]
fn totals_of_workers_are_those_of_the_plain_calculation() {
    let place = Place::new();
    let (mut a, mut b) = ("id,paid\n".to_owned(), "id,arm\n".to_owned());
    let mut sums = [(0, 0); 2];
    for i in 0..600 {
        writeln!(a, "{},{}", 3 * i, i % 7).unwrap();
        writeln!(b, "{},{}", 2 * i, ["x", "y"][i % 2]).unwrap();
        if 2 * i % 3 == 0 && i < 600 {
            sums[i % 2].0 += 1;
            sums[i % 2].1 += 2 * i / 3 % 7;
        }
    }
    place.folder.write("a.csv", a);
    place.folder.write("b.csv", b);
    let run = [
        "--key",
        "id",
        "--run",
        "t",
        "--workers",
        "2",
        "--shards",
        "12",
        "--wait",
        "60s",
        "--bound",
        "10",
        "--minimum",
        "20",
        "--to",
        "receiver",
        "--groups",
        "x,y,none",
    ];
    let report = place.folder.path("report.json");
    let left = [&run[..], &["--result", "mean=paid"]].concat();
    let more = ["--result", "mean", "--group-by", "arm", "--report", &report];
    let right = [&run[..], &more].concat();
    let mut sides = [place.start(0, "psi", &left), place.start(1, "psi", &right)];
    let found = |side: usize| {
        let names = common::names(place.folder.path(&format!("work-{}", SIDES[side])).as_ref());
        names.iter().filter(|name| name.starts_with("found-")).count()
    };
    for (kill, side) in [0, 1, 1].into_iter().enumerate() {
        let started = Instant::now();
        while !place.folder.names().contains(&"work-b".to_owned()) || found(1) < 3 * kill + 1 {
            assert!(started.elapsed() < Duration::from_secs(60), "no progress");
            assert!(sides.iter_mut().all(|side| !side.has_ended()));
            thread::sleep(Duration::from_millis(2));
        }
        if let Some(worker) = children(sides[side].id()).first() {
            let id = worker.to_string();
            let _ = std::process::Command::new("kill").args(["-s", "KILL", &id]).output();
        }
    }
    let ended = sides.map(RunningProcess::finish);
    for side in &ended {
        assert_eq!(side.status, Some(0), "{side:?}");
    }
    let line = |group: &str, (count, sum): (usize, usize)| {
        format!("{group},{count},{sum},{}\n", sum as f64 / count as f64)
    };
    let expected =
        format!("group,count,sum,mean\n{}{}none,,,\n", line("x", sums[0]), line("y", sums[1]));
    assert_eq!(ended[1].stdout, expected);
    assert_eq!(ended[0].stdout, "");
    assert_eq!(place.folder.read("out.csv"), expected);
    let report = place.folder.json("report.json");
    let result = &report["result"];
    assert_eq!(result["run"]["shards"], 12);
    assert_eq!(result["groups"][2]["below_minimum"], true);
    let said = result["reveals"].to_string();
    assert!(said.contains("the shards are filled up to equal sizes"), "{said}");
    assert!(result["statistical_bits"].as_f64().unwrap() >= 39.9);
    for side in [0, 1] {
        let again = place.start(side, "psi", [&left[..], &right[..]][side]).finish();
        assert!(again.stderr.contains("this run is complete"), "{again:?}");
        let work = place.folder.path(&format!("work-{}", SIDES[side]));
        assert_eq!(common::names(work.as_ref()), ["complete"]);
    }
}

/// The commands of a side's pods, run on this machine, and the folders that they see.
struct Pods<'a> {
    place: &'a Place,
    side: usize,
    jobs: Vec<String>,
}

impl<'a> Pods<'a> {
    fn new(place: &'a Place, side: usize, line: &str) -> Self {
        let name = SIDES[side];
        let manifests = place.folder.path(&format!("manifests-{name}"));
        let verb = common::words(line)[0];
        let line = format!(
            "k8s --image i --work-claim w --identity-secret s --data-claim d --out {manifests} -- \
             {line} --run t --workers 2 --shards 4 --wait 60s --key id --gateway 127.0.0.1:{} \
             --peer {} --input {}",
            place.port,
            place.fingerprints[1 - side],
            place.folder.path(&format!("{name}.csv")),
        );
        let rendered = common::run(&common::words(&line));
        assert_eq!(rendered.status, Some(0), "{verb}: {rendered:?}");
        fs::create_dir(place.folder.path(&format!("claim-{name}"))).unwrap();
        let jobs = common::names(manifests.as_ref());
        Self { place, side, jobs }
    }

    /// The calls of the pods of a job. What they see of the work folder is checked.
    fn calls(&self, job: usize) -> Vec<Vec<String>> {
        let (name, job) = (SIDES[self.side], &self.jobs[job]);
        let manifest = self.place.folder.json(&format!("manifests-{name}/{job}"));
        let is_worker = job.contains("match");
        let spec = &manifest["spec"];
        let container = &spec["template"]["spec"]["containers"][0];
        let claim = self.place.folder.path(&format!("claim-{name}"));
        let identity = self.place.folder.path(name);
        let pods = spec["completions"].as_u64().unwrap_or(1);
        let pod = |number: u64| -> Vec<String> {
            let fill = |text: &str| text.replace("$(JOB_COMPLETION_INDEX)", &number.to_string());
            let mounts = container["volumeMounts"].as_array().unwrap();
            let mut work = String::new();
            for mount in mounts {
                let path = mount["mountPath"].as_str().unwrap();
                let part = ["subPathExpr", "subPath"].iter().find_map(|key| mount[key].as_str());
                match (mount["name"].as_str().unwrap(), part) {
                    ("work", None) => {
                        assert!(!is_worker && path == "/work");
                        work.clone_from(&claim);
                    }
                    ("work", Some(part)) => {
                        let seen = format!("{claim}/{}", fill(part));
                        assert!(is_worker && fs::metadata(&seen).unwrap().is_dir(), "{seen}");
                        if path == "/work" {
                            work = seen;
                        } else {
                            // The folder within the folder, which is there for it.
                            let inner = path.replace("/work", &work);
                            if fs::symlink_metadata(&inner).unwrap().is_dir() {
                                fs::remove_dir(&inner).unwrap();
                                std::os::unix::fs::symlink(seen, inner).unwrap();
                            }
                        }
                    }
                    ("temporary", None) => {}
                    ("identity" | "data", None) => assert!(!is_worker),
                    other => panic!("{other:?}"),
                }
            }
            if is_worker {
                self.check_worker(work.as_ref(), number);
            }
            assert_eq!(
                container["env"],
                serde_json::json!([{ "name": "TMPDIR", "value": "/tmp" }])
            );
            let words = container["args"].as_array().unwrap().iter();
            let word = |word: &serde_json::Value| {
                fill(word.as_str().unwrap())
                    .replace("=/work", &format!("={work}"))
                    .replace("=/identity", &format!("={identity}"))
            };
            words.map(word).collect()
        };
        (0..pods).map(pod).collect()
    }

    /// The files of a worker: its own shards, one certificate, no secret of the driver.
    fn check_worker(&self, work: &std::path::Path, number: u64) {
        let secrets = format!("claim-{}/t/driver.json", SIDES[self.side]);
        let secrets = self.place.folder.json(&secrets);
        for name in common::names(work) {
            let numbers: Vec<u64> = name.split('-').filter_map(|part| part.parse().ok()).collect();
            match name.split('-').next().unwrap() {
                "part" | "begun" | "found" => assert_eq!(numbers[1] % 2, number, "{name}"),
                "complete" => assert_eq!(numbers[1], number, "{name}"),
                "ticket" => assert_eq!(numbers, [number]),
                "matched" => {}
                "run.json" => {
                    let text = fs::read_to_string(work.join(&name)).unwrap();
                    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
                    let own = manifest["own"].as_object().unwrap();
                    assert_eq!(own.keys().collect::<Vec<_>>(), ["dedup", "rows"]);
                    assert!(!text.contains(secrets["digest"].as_str().unwrap()));
                }
                other => panic!("{other}"),
            }
        }
    }
}

/// Runs the jobs of `volery k8s` of both sides one after the other; what each pod of the last one
/// prints.
fn run_pods(sides: &[Pods<'_>; 2]) -> Vec<String> {
    let mut said = Vec::new();
    for job in 0..sides[0].jobs.len() {
        said.clear();
        let calls = sides.iter().flat_map(|side| side.calls(job));
        let pods: Vec<_> = calls
            .map(|call| RunningProcess::start(&call.iter().map(String::as_str).collect::<Vec<_>>()))
            .collect();
        for pod in pods {
            let ended = pod.finish();
            assert_eq!(ended.status, Some(0), "{ended:?}");
            said.push(ended.stdout);
        }
        for side in sides {
            // Volumes are not there any more when a pod has gone.
            for worker in 0..2 {
                let name = format!("claim-{}/t/worker-{worker}/matched", SIDES[side.side]);
                let inner = side.place.folder.path(&name);
                if fs::symlink_metadata(&inner).is_ok_and(|data| data.is_symlink()) {
                    fs::remove_file(&inner).unwrap();
                    fs::create_dir(&inner).unwrap();
                }
            }
        }
    }
    said
}

#[test]
fn pods_compute_a_number() {
    let place = Place::new();
    let (mut a, mut b) = ("id,paid\n".to_owned(), "id\n".to_owned());
    for i in 0..90 {
        writeln!(a, "{i},{}.5", i % 7).unwrap();
        writeln!(b, "{}", i + 40).unwrap();
    }
    place.folder.write("a.csv", a);
    place.folder.write("b.csv", b);
    let both = ["sender --result sum=paid", "receiver --result sum"];
    let sides = [0, 1].map(|side| {
        let line = format!("psi --role {} --bound 10 --decimals 1 --minimum 20", both[side]);
        Pods::new(&place, side, &line)
    });
    // The last ones are those that open the sum: 40 to 89 are common.
    let sum: usize = (40..90).map(|i| 10 * (i % 7) + 5).sum();
    let expected = format!("sum {}.{}\n", sum / 10, sum % 10);
    assert_eq!(run_pods(&sides), [String::new(), expected]);
}

/// A row that matched by the first key is left out by whichever pod has its second one.
#[test]
fn pods_match_rows_by_two_keys() {
    let place = Place::new();
    let (mut a, mut b) = ("id,phone\n".to_owned(), "id,phone\n".to_owned());
    let mut expected = b.clone();
    for i in 0..90 {
        writeln!(a, "{i},p{i}").unwrap();
        // The same person, by both keys, by the second one, or by neither.
        let row = [format!("{i},p{i}"), format!("x{i},p{i}"), format!("x{i},y{i}")];
        let row = &row[i % 3];
        writeln!(b, "{row}").unwrap();
        if i % 3 < 2 {
            writeln!(expected, "{row}").unwrap();
        }
    }
    place.folder.write("a.csv", a);
    place.folder.write("b.csv", b);
    let out = place.folder.path("out.csv");
    let sides = [
        Pods::new(&place, 0, "psi --role sender --or phone"),
        Pods::new(&place, 1, &format!("psi --role receiver --or phone --out {out}")),
    ];
    assert_eq!(sides[1].jobs.len(), 4);
    run_pods(&sides);
    assert_eq!(fs::read_to_string(&out).unwrap(), expected);
}

/// A side that knows what was opened, but not that the other one does, stays there for it.
#[test]
fn a_side_waits_for_one_that_has_not_kept_its_number() {
    let place = Place::new();
    let sides = place.worked();
    let collect = |side: usize, wait: &'static str| {
        let step = ["--step", "collect", "--wait", wait];
        place.start(side, "psi", &[&sides[side][..], &step].concat())
    };
    // As after an opening in which the receiver failed to keep the number.
    let opened = r#"[{"below_minimum":false,"count":null,"sum":null}]"#;
    place.folder.write("work-a/totals.json", opened);
    let alone = || {
        let alone = collect(0, "1s").finish();
        alone.assert_refused(4, &["--gateway"]);
        place.names(0)
    };
    let before = alone();
    assert!(before.contains(&"driver.json".to_owned()), "{before:?}");
    assert_eq!(alone(), before);
    let saved = place.folder.path("saved");
    fs::create_dir(&saved).unwrap();
    for name in &before {
        let file = place.folder.path(&format!("work-a/{name}"));
        fs::copy(file, format!("{saved}/{name}")).unwrap();
    }
    // A receiver that has its number gives it, and stays for the sender, too.
    let own = r#"[{"below_minimum":false,"count":null,"sum":7}]"#;
    let file = place.folder.write("work-b/totals.json", own);
    let ended = collect(1, "1s").finish();
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(0), "sum 7\n"));
    assert!(ended.stderr.contains("has not confirmed"), "{ended:?}");
    assert!(place.names(1).contains(&"run.json".to_owned()));
    fs::remove_file(file).unwrap();
    fs::remove_file(place.folder.path("out.csv")).unwrap();
    // The sender is there first, longer than one waits that has nothing to wait for.
    let sender = collect(0, "60s");
    thread::sleep(Duration::from_secs(6));
    let receiver = collect(1, "60s");
    let [sender, receiver] = [sender, receiver].map(RunningProcess::finish);
    assert_eq!(sender.status, Some(0), "{sender:?}");
    assert_eq!(receiver.status, Some(0), "{receiver:?}");
    assert_eq!(receiver.stdout, "sum 9\n");
    for side in [0, 1] {
        assert_eq!(place.names(side), ["complete"]);
    }
    // One that has the other's word ends alone.
    let work = place.folder.path("work-a");
    fs::remove_dir_all(&work).unwrap();
    fs::rename(&saved, &work).unwrap();
    place.folder.write("work-a/totals.told", "");
    let alone = collect(0, "60s").finish();
    assert_eq!(alone.status, Some(0), "{alone:?}");
    assert_eq!(place.names(0), ["complete"]);
}

/// A worker that has all its shares takes the peer for done only where the peer was not there.
#[test]
fn a_worker_with_all_shares_ends_only_if_nobody_came() {
    let place = Place::new();
    place.worked();
    let mark = "complete-0-00000".to_owned();
    let folder = place.folder.path("work-a/worker-0");
    let names = || common::names(folder.as_ref());
    fs::remove_file(place.folder.path(&format!("work-a/worker-0/{mark}"))).unwrap();
    let gateway = format!("127.0.0.1:{}", place.port);
    let call = |attempt: &'static str, gateway: &str, wait: &str| {
        let own = ["--attempt", attempt, "--gateway", gateway, "--wait", wait];
        place.worker(0, &own)
    };
    let refused = |worker: RunningProcess, why: &str| {
        worker.finish().assert_refused(4, &[why]);
        assert!(!names().contains(&mark), "{why}");
    };
    // There is no gateway.
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = unused.local_addr().unwrap().to_string();
    drop(unused);
    refused(call("2", &address, "1s"), "no gateway answered");
    // The same worker, started later, is connected.
    let newer = place.waiting(0, 9);
    refused(call("8", &gateway, "60s"), "a newer attempt");
    drop(newer);
    // The peer is there, and its connection breaks.
    let mut peer = place.waiting(1, 2);
    let worker = call("10", &gateway, "60s");
    while heard(&mut peer) == 0 {}
    drop(peer);
    refused(worker, "closed the connection");
    // Nobody comes.
    let ended = call("11", &gateway, "10s").finish();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(names().contains(&mark));
}
