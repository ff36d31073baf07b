//! The examples between two processes: each checks its own results, except the regression step,
//! which is checked here.
//!
//! `cargo test` builds the examples; with `--test all` alone they must have been built before.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use npyz::NpyFile;

/// The path of an example of this build, next to the folder of the tests.
fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().unwrap().parent().unwrap();
    let path = built.join("examples").join(name);
    assert!(
        path.exists(),
        "cargo build --examples makes {}",
        path.display()
    );
    path
}

/// Runs both sides; returns the output of the connecting one.
fn pair(name: &str, listening: &[&str], connecting: &[&str]) -> String {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let address = format!("127.0.0.1:{port}");
    let command = |way: &str, arguments: &[&str]| {
        let mut command = Command::new(example(name));
        command
            .args([arguments[0], way, &address])
            .args(&arguments[1..]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let listener = command("--listen", listening).spawn().unwrap();
    let connected = command("--connect", connecting).output().unwrap();
    let listened = listener.wait_with_output().unwrap();
    let fine = |output: &Output| assert!(output.status.success(), "{name}: {output:?}");
    fine(&connected);
    fine(&listened);
    String::from_utf8(connected.stdout).unwrap()
}

#[test]
fn polynomials_matrices_and_images() {
    let small = ["--degree", "5000", "--rows", "3000", "--columns", "3"];
    let [left, right] = ["left", "right"].map(|role| [&[role][..], &small].concat());
    let said = pair("dense", &left, &right);
    assert!(said.contains("polynomial of degree 5000"), "{said}");
}

#[test]
fn an_array() {
    let said = pair(
        "array",
        &["partner", "5000", "100"],
        &["holder", "5000", "100"],
    );
    assert!(
        said.contains("100 accesses, all equal to those of a plain array"),
        "{said}"
    );
}

#[test]
fn values_at_private_indices() {
    for sizes in [["20000", "50"], ["300", "700"]] {
        let [helper, holder] = ["helper", "holder"].map(|role| [&[role][..], &sizes].concat());
        let said = pair("scatter", &helper, &holder);
        assert!(said.contains("the shares add up to the vector"), "{said}");
    }
}

/// 40 examples of 25 features, a few of them each.
fn features(row: usize) -> Vec<(usize, f64)> {
    (0..25)
        .filter(|column| (row * 7 + column * 5) % 11 < 2)
        .map(|column| (column, ((row * 31 + column * 17) % 29) as f64 / 8.0 - 1.75))
        .collect()
}

#[test]
fn a_step_of_logistic_regression() {
    const ROWS: usize = 40;
    let folder = std::env::temp_dir().join(format!("volery-examples-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (data, out) = (path("train.svm"), path("stepped.npy"));
    let mut text = String::new();
    for row in 0..ROWS {
        let label = if row % 3 == 0 { 1 } else { -1 };
        write!(text, "{label}").unwrap();
        for (column, value) in features(row) {
            write!(text, " {}:{value}", column + 1).unwrap();
        }
        text.push('\n');
    }
    std::fs::write(&data, text).unwrap();
    let entries: usize = (0..ROWS).map(|row| features(row).len()).sum();
    let entries = entries.to_string();
    let public = ["--shape", "40x25", "--entries", &entries];
    let holder = [&["holder"][..], &public, &["--data", &data]].concat();
    let helper = [&["helper"][..], &public, &["--rate", "2", "--out", &out]].concat();
    pair("logistic", &holder, &helper);
    let stepped = stepped(Path::new(&out));
    std::fs::remove_dir_all(&folder).unwrap();

    // For the zero model z is zero, so e = 1/2 - y.
    let mut gradient = [0.0; 25];
    for row in 0..ROWS {
        let e = if row % 3 == 0 { -0.5 } else { 0.5 };
        for (column, value) in features(row) {
            gradient[column] += e * value;
        }
    }
    assert_eq!(stepped.len(), 25);
    for (column, stepped) in stepped.iter().enumerate() {
        let plain = -2.0 / ROWS as f64 * gradient[column];
        assert!(
            (stepped - plain).abs() < 1e-3,
            "feature {column}: {stepped}, {plain}"
        );
        assert!(gradient[column] == 0.0 || *stepped != 0.0);
    }
}

fn stepped(path: &Path) -> Vec<f64> {
    let file = std::fs::read(path).unwrap();
    NpyFile::new(&file[..]).unwrap().into_vec().unwrap()
}
