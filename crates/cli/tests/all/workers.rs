//! Runs with workers at a gateway: results, options that differ, and processes that are killed.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::pair::Folder;
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
        let fingerprints = SIDES.map(|side| common::keygen(&folder.path(side)));
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

    /// Waits at the gateway as worker 0 of a side.
    fn waiting(&self, side: usize, attempt: u64) -> TcpStream {
        let mut stream = self.connected(side, attempt);
        assert_eq!(heard(&mut stream), 0);
        stream
    }

    /// Connects to the gateway as worker 0 of a side.
    fn connected(&self, side: usize, attempt: u64) -> TcpStream {
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
        "id,email,tel\n1,Y@A.org,9\n2,q@a.org,3\n3,q@a.org,8\n4,x@a.org,2\n5,Y@a.org,7\n6,x,1\n",
    );
    let keys = |mail: &'static str, phone: &'static str| ["--key", mail, "--or", phone];
    let left = [&RUN[..], &keys("mail:email", "phone"), &["--value", "city"]].concat();
    let report = place.folder.path("report.json");
    let more = ["--left", "--rule-column", "by", "--malformed", "skip", "--report", &report];
    let right = [&RUN[..], &keys("email:email", "tel"), &more].concat();
    let dh = place.start(0, "lookup", &[&left[..], &["--protocol", "dh"]].concat()).finish();
    dh.assert_refused(2, &["--protocol"]);
    let ended = place.both("lookup", [&left, &right]);
    common::assert_done(&ended, "volery: secure against a malicious peer");
    assert_eq!(
        place.folder.read("out.csv"),
        "id,email,tel,city,by\n1,Y@A.org,9,Oslo,1\n2,q@a.org,3,Bonn,2\n3,q@a.org,8,,\n4,x@a.org,2,Rome,1\n5,Y@a.org,7,Oslo,1\n6,x,1,Rome,2\n"
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
        assert_eq!(place.names(side), ["complete"]);
    }
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

/// A worker, the gateway and a driver are killed: the result is exact, and no session comes twice.
#[test]
fn killed_processes_are_started_again() {
    let mut place = Place::new();
    let (mut a, mut b) = ("id\n".to_owned(), "n,id\n".to_owned());
    let mut expected = b.clone();
    for i in 0..20_000 {
        writeln!(a, "{}", 3 * i).unwrap();
        writeln!(b, "{i},{}", 2 * i).unwrap();
        if (2 * i) % 3 == 0 {
            writeln!(expected, "{i},{}", 2 * i).unwrap();
        }
    }
    place.folder.write("a.csv", a);
    place.folder.write("b.csv", b);
    let more = ["--key", "id", "--run", "k", "--workers", "2", "--shards", "160", "--wait", "60s"];
    let mut sides = [0, 1].map(|side| Some(place.start(side, "psi", &more)));
    let (mut all, mut kills, begin) = ([Vec::new(), Vec::new()], 0, Instant::now());
    while sides.iter().any(Option::is_some) {
        assert!(begin.elapsed() < Duration::from_secs(240), "no progress after {kills} kills");
        // The files of attempts go when the run is complete: they are read up to then.
        for (side, all) in all.iter_mut().enumerate() {
            let now = place.begun(side);
            if now.len() > all.len() {
                *all = now;
            }
        }
        // Shards that the second side has found. One that is killed while the two agree gives up.
        let work = fs::read_dir(place.folder.path("work-b")).into_iter().flatten().flatten();
        let names = work.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let found = names.filter(|name| name.starts_with("found-0-")).count();
        if kills < 3 && found > 30 * kills {
            match kills {
                0 => {
                    let worker = children(sides[0].as_ref().unwrap().id())[0].to_string();
                    let kill = ["-s", "KILL", &worker];
                    let killed = std::process::Command::new("kill").args(kill).status();
                    assert!(killed.unwrap().success());
                }
                1 => {
                    let gateway = place.gateway.take().unwrap();
                    gateway.signal("KILL");
                    drop(gateway.finish());
                    place.start_gateway();
                }
                _ => {
                    let driver = sides[1].take().unwrap();
                    driver.signal("KILL");
                    drop(driver.finish());
                    sides[1] = Some(place.start(1, "psi", &more));
                }
            }
            kills += 1;
        }
        for (number, side) in sides.iter_mut().enumerate() {
            if side.as_mut().is_some_and(RunningProcess::has_ended) {
                let ended = side.take().unwrap().finish();
                // The workers of a driver that was killed may have its folder for a moment.
                let is_held = ended.stderr.contains("another process is using it");
                assert!(is_held || ended.status == Some(0), "after {kills} kills: {ended:?}");
                *side = is_held.then(|| place.start(number, "psi", &more));
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((kills, place.folder.read("out.csv")), (3, expected));
    for all in &all {
        let sessions: HashSet<_> = all.iter().map(|(_, session)| session).collect();
        assert_eq!(sessions.len(), all.len(), "a session came twice");
        let times = |shard: &String| all.iter().filter(|(other, _)| other == shard).count();
        assert!(all.iter().all(|(shard, _)| times(shard) <= 3));
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
             --peer {} --input /data/{name}.csv",
            place.port,
            place.fingerprints[1 - side],
        );
        let rendered = common::run(&common::words(&line));
        assert_eq!(rendered.status, Some(0), "{verb}: {rendered:?}");
        fs::create_dir(place.folder.path(&format!("claim-{name}"))).unwrap();
        let mut jobs = common::names(manifests.as_ref());
        jobs.retain(|name| name.starts_with(|c| ('1'..='9').contains(&c)));
        Self { place, side, jobs }
    }

    /// The calls of the pods of a job. A pod of a worker sees its own part of the work folder.
    fn calls(&self, job: usize) -> Vec<Vec<String>> {
        let (name, job) = (SIDES[self.side], &self.jobs[job]);
        let manifest = self.place.folder.json(&format!("manifests-{name}/{job}"));
        let is_worker = job.contains("match");
        let spec = &manifest["spec"];
        let container = &spec["template"]["spec"]["containers"][0];
        let mounts = container["volumeMounts"].as_array().unwrap();
        let is_secret = |mount: &serde_json::Value| {
            ["identity", "data"].contains(&mount["name"].as_str().unwrap())
        };
        assert_eq!(mounts.iter().any(is_secret), !is_worker);
        let claim = self.place.folder.path(&format!("claim-{name}"));
        let identity = self.place.folder.path(name);
        let pod = |number: u64| -> Vec<String> {
            let fill = |text: &str| text.replace("$(JOB_COMPLETION_INDEX)", &number.to_string());
            let mut work = claim.clone();
            for mount in mounts {
                let part = ["subPathExpr", "subPath"].iter().find_map(|key| mount[key].as_str());
                let Some(part) = part else { continue };
                let seen = format!("{claim}/{}", fill(part));
                if mount["mountPath"] == "/work" {
                    work = seen;
                    continue;
                }
                // The folder within the folder, which is there for it.
                let inner = format!("{work}/matched");
                if fs::symlink_metadata(&inner).unwrap().is_dir() {
                    fs::remove_dir(&inner).unwrap();
                    std::os::unix::fs::symlink(seen, inner).unwrap();
                }
            }
            assert_eq!(work != claim, is_worker);
            let words = container["args"].as_array().unwrap().iter();
            let word = |word: &serde_json::Value| {
                fill(word.as_str().unwrap())
                    .replace("=/work", &format!("={work}"))
                    .replace("=/identity", &format!("={identity}"))
                    .replace("/data/", &format!("{}/", self.place.folder.path("")))
            };
            words.map(word).collect()
        };
        (0..spec["completions"].as_u64().unwrap_or(1)).map(pod).collect()
    }
}

/// Runs the jobs of `volery k8s` of both sides one after the other.
fn run_pods(sides: &[Pods<'_>; 2]) {
    for job in 0..sides[0].jobs.len() {
        let calls = sides.iter().flat_map(|side| side.calls(job));
        let pods: Vec<_> = calls
            .map(|call| RunningProcess::start(&call.iter().map(String::as_str).collect::<Vec<_>>()))
            .collect();
        for pod in pods {
            let ended = pod.finish();
            assert_eq!(ended.status, Some(0), "{ended:?}");
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
    let out = place.folder.path(&format!("claim-{}/out.csv", SIDES[1]));
    let sides = [
        Pods::new(&place, 0, "psi --role sender --or phone"),
        Pods::new(&place, 1, "psi --role receiver --or phone --out=/work/out.csv"),
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
    let address = format!("127.0.0.1:{}", common::free_port());
    refused(call("2", &address, "1s"), "no gateway answered");
    // The same worker, started later, is connected.
    let mut newer = place.waiting(0, 9);
    refused(call("8", &gateway, "60s"), "a newer attempt");
    // One that is newer still takes its place; its peer comes, and the connection breaks.
    let worker = call("10", &gateway, "60s");
    let mut byte = [0];
    while matches!(newer.read(&mut byte), Ok(1)) && byte == [0] {}
    let mut peer = place.connected(1, 2);
    while heard(&mut peer) == 0 {}
    drop(peer);
    refused(worker, "closed the connection");
    // Nobody comes.
    let ended = call("11", &gateway, "10s").finish();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(names().contains(&mark));
}
