//! Starts the command and reads its files independently of it.

pub(crate) mod pair;
mod process;
#[path = "../../../tables/tests/all/table.rs"]
#[expect(dead_code, reason = "the tests of the tables use the rest")]
pub(crate) mod table;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub(crate) use process::{ProcessResult, names, text};

/// A command of this build.
pub(crate) fn volery(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_volery"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn run(arguments: &[&str]) -> ProcessResult {
    let output = volery(arguments).output().unwrap();
    ProcessResult::from(output)
}

/// Makes an identity in a folder; returns its fingerprint.
pub(crate) fn keygen(out: &str) -> String {
    let made = run(&["keygen", "--out", out]);
    assert_eq!(made.status, Some(0), "{made:?}");
    made.stdout.trim().to_owned()
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The answer of an HTTP server of this machine.
pub(crate) fn http(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

impl ProcessResult {
    /// Fails unless it ended with `status` and one `error:` line that contains every fragment.
    pub(crate) fn assert_refused(&self, status: i32, fragments: &[&str]) {
        let error = self.refusal(status);
        for fragment in fragments {
            assert!(error.contains(fragment), "{fragment:?} is not in {self:?}");
        }
        for line in self.stderr.lines() {
            let known = ["error: ", "hint: ", "note: ", "volery: "];
            assert!(known.iter().any(|start| line.starts_with(start)), "{line:?}");
        }
    }
}

/// A process that runs beside the test.
pub(crate) struct RunningProcess {
    child: Child,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
    /// The ports it listens on, once reported.
    port: mpsc::Receiver<u16>,
    started: Instant,
}

impl RunningProcess {
    /// Starts the command; `-v` is added, so that it reports its port.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::spawn(volery(arguments))
    }

    /// Starts a prepared command, like [`start`](Self::start).
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child =
            command.arg("-v").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (said, port) = mpsc::channel();
        Self {
            child,
            stdout: thread::spawn(move || {
                let mut text = String::new();
                stdout.read_to_string(&mut text).unwrap();
                text
            }),
            stderr: thread::spawn(move || {
                let mut text = String::new();
                for line in stderr.lines() {
                    let line = line.unwrap();
                    let address = line.strip_prefix("volery: listening on ");
                    let web = || line.strip_prefix("volery: browsers connect to ");
                    if let Some(address) = address.or_else(web) {
                        let (_, port) = address.rsplit_once(':').unwrap();
                        said.send(port.parse().unwrap()).unwrap();
                    }
                    text += &line;
                    text.push('\n');
                }
                text
            }),
            port,
            started: Instant::now(),
        }
    }

    /// The port it listens on; a second call is for the next one that it reports.
    pub(crate) fn port(&self) -> u16 {
        // A server first prepares its table, beside other tests.
        self.port.recv_timeout(Duration::from_secs(180)).unwrap()
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end, at most for `limit` from its start.
    pub(crate) fn finish_within(mut self, limit: Duration) -> ProcessResult {
        while self.child.try_wait().unwrap().is_none() {
            if self.started.elapsed() > limit {
                self.child.kill().unwrap();
                panic!("still running after {limit:?}: {}", self.stderr.join().unwrap());
            }
            thread::sleep(Duration::from_millis(5));
        }
        ProcessResult {
            status: self.child.wait().unwrap().code(),
            stdout: self.stdout.join().unwrap(),
            stderr: self.stderr.join().unwrap(),
        }
    }

    /// Waits for its end.
    pub(crate) fn finish(self) -> ProcessResult {
        self.finish_within(Duration::from_secs(300))
    }
}

/// Fails unless all succeeded and each reported its security model.
pub(crate) fn assert_done(all: &[ProcessResult], security: &str) {
    for finished in all {
        assert_eq!(finished.status, Some(0), "{finished:?}");
        assert!(finished.stdout.is_empty(), "{finished:?}");
        assert!(finished.stderr.contains(security), "{finished:?}");
    }
}

/// The words of a command line, in which no path has a space.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// The parts that were begun, by the files of a work folder: each with its session, as often as it
/// was.
pub(crate) fn begun(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let read = |path: std::path::PathBuf| {
        let name = text(path.file_name()?.as_ref()).strip_prefix("begun-")?.to_owned();
        let session = std::fs::read_to_string(&path).ok()?;
        let (part, _) = name.rsplit_once('-')?;
        (session.len() == 64).then(|| (part.to_owned(), session))
    };
    paths.filter_map(read).collect()
}

/// An array as NumPy would read it: its shape, and its numbers in file order. Written for the tests
/// only, from the description of the format.
pub(crate) fn read_npy(path: &Path) -> (Vec<u64>, Vec<u64>) {
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let data = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert_eq!(data % 16, 0, "the data is aligned");
    let header = std::str::from_utf8(&bytes[10..data]).unwrap();
    assert!(header.ends_with('\n'));
    let value_of = |key: &str| {
        let (_, rest) = header.split_once(&format!("'{key}':")).unwrap();
        rest.trim_start().to_owned()
    };
    let width = match &value_of("descr")[..5] {
        "'<u8'" | "'<i8'" => 8,
        "'|u1'" => 1,
        _ => panic!("{header}"),
    };
    assert!(value_of("fortran_order").starts_with("False"), "{header}");
    let shape = value_of("shape");
    let shape = &shape[1..shape.find(')').unwrap()];
    let shape: Vec<u64> = shape
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().unwrap())
        .collect();
    assert_eq!((bytes.len() - data) % width, 0);
    let numbers: Vec<u64> = bytes[data..]
        .chunks(width)
        .map(|number| number.iter().rfold(0, |sum, byte| sum << 8 | u64::from(*byte)))
        .collect();
    assert_eq!(shape.iter().product::<u64>(), numbers.len() as u64);
    (shape, numbers)
}
