//! Browsers at a gateway and at a server, as processes. A browser is a program over TCP behind a
//! port that speaks WebSocket for it.

#[path = "../../../channel/tests/all/web/browser.rs"]
mod browser;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;

use crate::common::pair::{Folder, users as table};
use crate::common::{ProcessResult, RunningProcess, http, keygen, run, words};
use serde_json::Value;

fn local(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

/// A token in a file, and its fingerprint.
fn token(folder: &Folder, name: &str) -> (String, String) {
    let path = folder.path(name);
    let made = run(&["keygen", "--token", "--out", &path]);
    assert_eq!(made.status, Some(0), "{made:?}");
    let text = folder.read(name).trim().to_owned();
    assert_eq!(text.len(), 43);
    assert!(!format!("{made:?}").contains(&text));
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    (text, made.stdout.trim().to_owned())
}

/// A receiver that comes as a browser to `web`; its rows are in `out.csv`.
fn receive(folder: &Folder, web: u16, token: Option<&str>, more: &[&str]) -> ProcessResult {
    let (port, passing) = browser::through(local(web), token.map(str::to_owned));
    let (input, out) = (folder.path("small.csv"), folder.path("out.csv"));
    let address = format!("127.0.0.1:{port}");
    // A browser that is refused is closed before it has heard the other side: nobody comes later.
    let call = ["psi", "--role", "receiver", "--connect", &address, "--wait", "2s", "--force"];
    let files = ["--input", &input, "--key", "email:email", "--out", &out];
    let finished = run(&[&call[..], &files, more].concat());
    passing.join().unwrap();
    finished
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("big.csv", table(0..3000));
    folder.write("small.csv", table(2900..3100));
    folder
}

/// A sender that waits for a receiver.
fn sender(folder: &Folder, more: &[&str]) -> (RunningProcess, String) {
    let input = folder.path("big.csv");
    let call = ["psi", "--role", "sender", "--listen", "127.0.0.1:0"];
    let files = ["--input", &input, "--key", "email:email"];
    let running = RunningProcess::start(&[&call[..], &files, more].concat());
    let address = format!("127.0.0.1:{}", running.port());
    (running, address)
}

fn end(running: RunningProcess) -> ProcessResult {
    running.signal("TERM");
    let ended = running.finish();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    ended
}

#[test]
fn a_browser_matches_with_a_party_behind_a_gateway() {
    let folder = folder();
    fs::create_dir(folder.path("page")).unwrap();
    folder.write("page/index.html", "<title>Match</title>");
    let (native, to) = sender(&folder, &[]);
    let (page, report) = (folder.path("page"), folder.path("report.json"));
    let (text, print) = token(&folder, "token");
    let call = format!(
        "gateway --web 127.0.0.1:0 --to {to} --web-files {page} --token {print} --report {report}"
    );
    let gateway = RunningProcess::start(&words(&call));
    let web = gateway.port();
    let get = |target| http(web, &format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert!(get("/").ends_with("<title>Match</title>"));
    assert!(get("/report.json").starts_with("HTTP/1.1 404"));
    let refused = receive(&folder, web, None, &[]);
    assert_eq!(refused.status, Some(4), "{refused:?}");
    let done = receive(&folder, web, Some(&text), &[]);
    assert_eq!(done.status, Some(0), "{done:?}");
    assert_eq!(folder.read("out.csv"), table(2900..3000));
    let done = native.finish();
    assert_eq!(done.status, Some(0), "{done:?}");
    // The party has ended, and listens no more: the page is told so.
    let mut late = browser::own(local(web), Some(&text));
    let (_, frame) = browser::until_close(&mut late);
    assert!(frame.unwrap().reason.contains("not there"));
    drop(late);
    let ended = end(gateway);
    let at = format!("(token {print})");
    for part in [
        "was refused: the other side is not authenticated: it has no access token",
        &format!("{at} is connected"),
        &format!("{at} ended after"),
        "was refused: timed out: no peer started to listen",
        "browsers that were connected: 1",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
    }
    assert!(!ended.stderr.contains(&text), "{ended:?}");
    let report: Value = serde_json::from_str(&folder.read("report.json")).unwrap();
    assert_eq!(report["result"]["met"], 1);
    assert_eq!(report["result"]["refused"], 2);
    assert!(report["result"]["bytes"].as_u64().unwrap() > 10_000);
}

#[test]
fn a_gateway_reaches_a_party_by_tls() {
    let folder = folder();
    let [own, party] = ["gate", "alice"].map(|name| {
        let out = folder.path(name);
        let print = keygen(&out);
        (out, print)
    });
    let (native, to) = sender(&folder, &["--identity", &party.0, "--peer", &own.1]);
    let call = ["gateway", "--web", "127.0.0.1:0", "--to", &to];
    let secured = ["--identity", &own.0, "--peer", &party.1];
    let gateway = RunningProcess::start(&[&call[..], &secured].concat());
    let web = gateway.port();
    let done = receive(&folder, web, None, &[]);
    assert_eq!(done.status, Some(0), "{done:?}");
    assert_eq!(folder.read("out.csv"), table(2900..3000));
    assert_eq!(native.finish().status, Some(0));
    end(gateway);
}

#[test]
fn a_server_counts_what_browsers_ask_for() {
    let folder = folder();
    let (bob, bob_print) = token(&folder, "bob.token");
    let (eve, _) = token(&folder, "eve.token");
    let (ann, ann_print) = token(&folder, "ann.token");
    let clients = folder.write(
        "clients.toml",
        format!(
            "[[client]]\nname = 'bob'\ntoken = '{bob_print}'\nkeys = 500\n\
             [[client]]\nname = 'ann'\ntoken = '{ann_print}'\nkeys = 250\n"
        ),
    );
    let (big, store) = (folder.path("big.csv"), folder.path("store"));
    let call = format!(
        "serve --web 127.0.0.1:0 --metrics 127.0.0.1:0 --store {store} --input {big} --key \
         email:email --clients {clients}"
    );
    let server = RunningProcess::start(&words(&call));
    let web = server.port();
    let filter = folder.path("filter");
    let ask = |token: Option<&str>| {
        let more = ["--protocol", "served", "--filter", &filter];
        receive(&folder, web, token, &more)
    };
    for _ in 0..2 {
        let done = ask(Some(&bob));
        assert_eq!(done.status, Some(0), "{done:?}");
        assert_eq!(folder.read("out.csv"), table(2900..3000));
    }
    // 400 of 500 are spent, and 200 more are asked for.
    let refused = ask(Some(&bob));
    assert_eq!(refused.status, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("100"), "{refused:?}");
    // Another one has a budget of its own.
    assert_eq!(ask(Some(&ann)).status, Some(0));
    assert_eq!(ask(Some(&ann)).status, Some(2));
    for unknown in [None, Some(&*eve), Some("x")] {
        assert_eq!(ask(unknown).status, Some(4));
    }
    // One that is removed is not let in any more.
    let less = format!("[[client]]\nname = 'ann'\ntoken = '{ann_print}'\nkeys = 450\n");
    folder.write("clients.toml", less);
    server.signal("HUP");
    let start = std::time::Instant::now();
    while ask(Some(&bob)).status != Some(4) {
        assert!(start.elapsed().as_secs() < 60);
    }
    assert_eq!(ask(Some(&ann)).status, Some(0));
    let ended = end(server);
    for token in [&bob, &eve, &ann] {
        assert!(!ended.stderr.contains(&**token), "{ended:?}");
    }
    for part in ["keys: 800", "bob at 127.0.0.1", "no access token that is known"] {
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
    }
    let journal = folder.read("store/spent");
    let sum = |print: &str| -> u64 {
        let lines = journal.lines().filter_map(|line| {
            let rest = line.strip_prefix(&format!("token:{print} "))?;
            rest.split(' ').nth(1)?.parse::<u64>().ok()
        });
        lines.sum()
    };
    assert_eq!((sum(&bob_print), sum(&ann_print)), (400, 400), "{journal}");
}
