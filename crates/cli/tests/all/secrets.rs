//! The secrets of two processes: no message contains a secret at any verbosity, and all files, also
//! while they are written, are readable by their owner only.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::pair::{Folder, PLANTED};
use crate::common::{ProcessResult, RunningProcess, assert_done, read_npy, text, volery};

/// A command in a shell with umask 0; with the `-v` of every run it is as verbose as possible.
fn permissive(arguments: &[&str]) -> RunningProcess {
    let inner = volery(arguments);
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 000 && exec \"$@\"", "sh"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .arg("-vv");
    RunningProcess::spawn(command)
}

/// Runs both sides in the folder and watches every file that appears in it.
fn run(place: &Path, left: &[&str], right: &[&str]) -> [ProcessResult; 2] {
    let before: HashSet<PathBuf> = entries(place).into_iter().collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut seen = HashSet::new();
            while !done.load(Ordering::Relaxed) {
                seen.extend(look(place, &before));
                thread::yield_now();
            }
            seen.extend(look(place, &before));
            seen
        });
        let sender = permissive(&[left, &["--listen", "127.0.0.1:0"]].concat());
        let address = format!("127.0.0.1:{}", sender.port());
        let receiver = permissive(&[right, &["--connect", &address]].concat());
        let both = [sender.finish(), receiver.finish()];
        done.store(true, Ordering::Relaxed);
        let seen = watch.join().unwrap();
        assert!(!seen.is_empty(), "files were made");
        for (path, mode) in seen {
            assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
        }
        both
    })
}

/// All files and folders below a folder.
fn entries(place: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    // Files that are already gone cannot be inspected.
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        all.extend(entries(&entry.path()));
        all.push(entry.path());
    }
    all
}

/// The mode of each new path.
fn look(place: &Path, before: &HashSet<PathBuf>) -> Vec<(PathBuf, u32)> {
    let new = entries(place).into_iter().filter(|path| !before.contains(path));
    new.filter_map(|path| {
        let mode = fs::metadata(&path).ok()?.permissions().mode() & 0o777;
        Some((path, mode))
    })
    .collect()
}

/// The forms in which a log could show the numbers of a file: decimal, hexadecimal, both words as
/// one number, bytes.
fn forms(path: &Path) -> Vec<String> {
    let (shape, words) = read_npy(path);
    let mut forms = Vec::new();
    for &word in &words {
        forms.push(word.to_string());
        forms.push(format!("{word:x}"));
        forms.push(word.to_le_bytes().map(|byte| format!("{byte:02x}")).concat());
        forms.push(format!("{:?}", word.to_le_bytes()).trim_matches(['[', ']']).to_owned());
    }
    if shape.last() == Some(&2) {
        for pair in words.as_chunks::<2>().0 {
            let whole = u128::from(pair[0]) | u128::from(pair[1]) << 64;
            forms.extend([whole.to_string(), format!("{whole:x}")]);
        }
    }
    // Bits and small numbers do not identify their source.
    forms.retain(|form| form.len() >= 10);
    forms
}

/// Fails if a text contains one of the forms.
fn assert_silent(what: &str, text: &str, secrets: &[String]) {
    let text = text.to_lowercase();
    for secret in secrets {
        assert!(!text.contains(secret), "{what} says {secret}: {text}");
    }
}

/// Runs `verb`; neither the terminal nor the report may show the contents of the arrays.
fn assert_numbers_stay(verb: &str, more: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let (s, r) = (place.path().join("s"), place.path().join("r"));
    let side = |role, out| {
        let start = [verb, "--n", "2000", "--role", role, "--out", text(out)];
        [&start[..], more].concat()
    };
    let (left, right) = (&side("sender", &s), &side("receiver", &r));
    let both = run(place.path(), left, right);
    assert_done(&both, "");
    let mut secrets = Vec::new();
    let mut arrays = 0;
    for path in entries(place.path()) {
        if path.extension().is_some_and(|extension| extension == "npy") {
            secrets.extend(forms(&path));
            arrays += 1;
        }
    }
    assert_eq!(arrays, 4, "{verb} makes four arrays");
    assert!(secrets.len() > 4000, "{} forms", secrets.len());
    for (finished, folder) in both.iter().zip([&s, &r]) {
        assert_silent("standard error", &finished.stderr, &secrets);
        assert_silent("standard output", &finished.stdout, &secrets);
        let report = fs::read_to_string(folder.join("report.json")).unwrap();
        assert_silent("the report", &report, &secrets);
    }
}

#[test]
fn correlations_stay_in_their_files() {
    assert_numbers_stay("cot", &[]);
    for ring in ["fp61", "z64", "gf128"] {
        assert_numbers_stay("vole", &["--ring", ring]);
    }
}

/// Two files with common rows; keys, values and the other columns hold text that must not be shown.
fn files(folder: &Folder) -> [String; 2] {
    let rows = |numbers: std::ops::Range<u32>| -> String {
        let row = |i| format!("{PLANTED}{i},{PLANTED}v{i},{PLANTED}w{i}\n");
        "k,v,w\n".to_owned() + &numbers.map(row).collect::<String>()
    };
    [folder.write("a.csv", rows(0..60)), folder.write("b.csv", rows(30..90))]
}

fn assert_rows_stay(verb: &str, left: &[&str]) {
    let folder = Folder::new();
    let [a, b] = files(&folder);
    let [s, r, out] = ["left.json", "right.json", "out.csv"].map(|name| folder.path(name));
    let start = [verb, "--role", "sender", "--input", &a, "--key", "k", "--report", &s];
    let sender = [&start[..], left].concat();
    let receiver = ["--role", "receiver", "--input", &b, "--key", "k", "--report", &r];
    let receiver = [&[verb], &receiver[..], &["--out", &out]].concat();
    let both = run(&PathBuf::from(folder.path(".")), &sender, &receiver);
    assert_done(&both, "malicious");
    assert_eq!(folder.read("out.csv").lines().count(), 31, "30 rows matched");
    let planted = [PLANTED.to_lowercase()];
    for (finished, report) in both.iter().zip(["left.json", "right.json"]) {
        assert_silent("standard error", &finished.stderr, &planted);
        assert_silent("standard output", &finished.stdout, &planted);
        assert_silent("the report", &folder.read(report), &planted);
    }
}

#[test]
fn rows_stay_in_their_files() {
    assert_rows_stay("psi", &[]);
    assert_rows_stay("lookup", &["--value", "v"]);
}

/// The `Debug` output of types that hold a secret and whose crates do not test it.
#[test]
fn debug_shows_nothing() {
    use volery_primitives::{Block, aes::Aes128, cuckoo};
    use volery_tables::{Inputs, Reading, Records, Rule, Table};

    const WORD: u64 = 0x0bad_5eed_0ddc_0ffe;
    let block = Block::from(u128::from(WORD) << 64 | u128::from(WORD));
    let items = [block, Block::from(u128::from(WORD))];
    let table = cuckoo::Table::build(&cuckoo::Hasher::new(block, 8), &items).unwrap();
    let full = cuckoo::Table::build_from(&[[0; 3], [0; 3]], 3).unwrap_err();
    let folder = Folder::new();
    let [path, _] = files(&folder);
    let reading = Reading {
        rules: vec![Rule::parse("k").unwrap()],
        values: vec!["v".to_owned()],
        ..Reading::default()
    };
    let opened = Table::open(&Inputs { paths: vec![path.into()], ..Inputs::default() }).unwrap();
    let records = Records::read(&opened, &reading).unwrap();
    let batch = opened.scan(&[0, 1]).unwrap().next().unwrap().unwrap();
    let held = Table::from_batches(batch.rows.schema(), vec![batch.rows.clone()]).unwrap();
    let shown = [
        format!("{:?} {:?}", zeroize::Zeroizing::new(vec![block]), Aes128::new(block)),
        format!("{table:?} {full:?}"),
        format!("{records:#?} {opened:#?} {batch:#?} {held:#?}"),
    ];
    let bytes = format!("{:?}", WORD.to_le_bytes());
    let secrets = [
        PLANTED.to_lowercase(),
        WORD.to_string(),
        format!("{WORD:x}"),
        bytes.trim_matches(['[', ']']).to_owned(),
        u128::from(block).to_string(),
    ];
    for text in &shown {
        assert_silent("Debug", text, &secrets);
    }
}

/// Another user, where the tests may change the owner of processes and files.
fn another() -> Option<u32> {
    rustix::process::geteuid().is_root().then_some(4242)
}

/// On Linux, root owns the files of a process in `/proc` if the process is not dumpable: then there
/// is no core dump of it, and no other process of its user can read its memory.
#[test]
#[cfg(target_os = "linux")]
fn the_memory_of_a_run_is_for_nobody() {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // A folder where another user can run it: root's own files show nothing.
    let program = place.path().join("volery");
    fs::copy(env!("CARGO_BIN_EXE_volery"), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let user = another().unwrap_or_else(|| rustix::process::getuid().as_raw());
    let of = |process: u32| {
        let memory = format!("/proc/{process}/mem");
        fs::metadata(memory).unwrap().uid()
    };

    let theirs = |command: &mut Command| {
        if let Some(another) = another() {
            command.uid(another).gid(another);
        }
    };

    let mut plain = Command::new("sleep");
    theirs(plain.arg("60"));
    let mut plain = plain.spawn().unwrap();
    let seen = of(plain.id());
    plain.kill().unwrap();
    plain.wait().unwrap();
    assert_eq!(seen, user, "a program without protection is readable");

    let mut command = Command::new(&program);
    command
        .args(["vole", "--role", "sender", "--listen", "127.0.0.1:0"])
        .args(["--timeout", "60", "--n", "5", "--out", "out"])
        .current_dir(place.path());
    theirs(&mut command);
    let running = RunningProcess::spawn(command);
    running.port();
    let seen = of(running.id());
    running.signal("TERM");
    running.finish();
    assert_ne!(seen, user);
}
