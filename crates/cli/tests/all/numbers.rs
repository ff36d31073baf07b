//! Two processes with private numbers: a polynomial and points, a matrix and a vector.

use std::path::Path;

use crate::common::pair::{Folder, pair};
use crate::common::{self, ProcessResult, assert_done, read_npy};

/// 2^61 - 1.
const P: u64 = (1 << 61) - 1;

/// An array in the form NumPy writes.
fn array(code: &str, shape: &[usize], numbers: &[u64]) -> Vec<u8> {
    let sides: Vec<_> = shape.iter().map(usize::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let sides = sides.join(", ");
    let text =
        format!("{{'descr': '{code}', 'fortran_order': False, 'shape': ({sides}{comma}), }}");
    let data = numbers.iter().flat_map(|number| number.to_le_bytes());
    let header = format!("{text:117}\n");
    let length = (header.len() as u16).to_le_bytes();
    let start = [b"\x93NUMPY\x01\0", &length[..], header.as_bytes()].concat();
    start.into_iter().chain(data).collect()
}

fn reals(shape: &[usize], numbers: &[f64]) -> Vec<u8> {
    let bits: Vec<_> = numbers.iter().map(|number| number.to_bits()).collect();
    array("<f8", shape, &bits)
}

/// Numbers that are the same in every run.
fn numbers(n: usize, seed: u64) -> Vec<u64> {
    let next = |state: &u64| {
        Some(state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f))
    };
    let raw = std::iter::successors(Some(seed), next);
    raw.skip(1).take(n).map(|x| x ^ (x >> 29)).collect()
}

fn evaluated(coefficients: &[u64], z: u64) -> u64 {
    coefficients.iter().rev().fold(0, |sum: u64, c| {
        ((u128::from(sum) * u128::from(z) + u128::from(*c)) % u128::from(P)) as u64
    })
}

fn values(folder: &Folder, name: &str) -> Vec<u64> {
    read_npy(Path::new(&folder.path(name))).1
}

#[test]
fn a_polynomial_at_points_in_files() {
    let folder = Folder::new();
    let coefficients: Vec<_> = numbers(3001, 1).iter().map(|x| x % P).collect();
    let points: Vec<_> = numbers(3, 2).iter().map(|x| x % P).collect();
    let poly = folder.write("poly.npy", array("<u8", &[3001], &coefficients));
    let at = folder.write("at.npy", array("<u8", &[3], &points));
    let (out, report) = (folder.path("out.npy"), folder.path("report.json"));
    let left = format!("--input {poly} --report {report}");
    let both = pair("ope", &left, &format!("--points {at} --out {out}"));
    assert_done(&both, "malicious");
    let expected: Vec<_> = points.iter().map(|z| evaluated(&coefficients, *z)).collect();
    assert_eq!(values(&folder, "out.npy"), expected);
    let report = folder.json("report.json");
    assert_eq!(report["command"], "ope");
    let result = &report["result"];
    assert_eq!((&result["degree"], &result["points"]), (&3000.into(), &3.into()));
    // One masked coefficient each, and one point; the online phase sends nothing else.
    assert_eq!(result["bytes_online"], 3 * (3001 * 8 + 8));
    // In text, at one point: 5 - 9 modulo 2^61 - 1.
    let poly = folder
        .write("poly.csv", "name,coefficient\nconstant,5\nlinear,0\nsquare,2305843009213693950\n");
    let two = pair("ope", &format!("--input {poly}"), "--point 3");
    assert_eq!((two[0].status, &two[1].stdout), (Some(0), &format!("{}\n", P - 4)), "{two:?}");
}

#[test]
fn polynomials_and_points_that_are_none() {
    let folder = Folder::new();
    for (file, text, fragment) in [
        ("a.csv", "coefficient\n", "no coefficients"),
        ("b.csv", "value\n1\n", "no column 'coefficient'"),
        ("c.csv", "coefficient\n1\n2305843009213693951\n", "below 2^61 - 1"),
        ("d.csv", "coefficient\n1\n-1\n", "row 2"),
        ("e.csv", "coefficient,x\n1,2\n3\n", "row 2"),
        ("h.csv", "coefficient\n1\n\n2\n", "empty line before row 2"),
        ("f.txt", "coefficient\n1\n", "neither .csv nor .npy"),
        ("g.npy", "coefficient\n1\n", "g.npy"),
        ("zq.csv", "coefficient\nzq7Planted\n", "row 1"),
    ] {
        let path = folder.write(file, text);
        let call = format!("ope --role sender --listen 127.0.0.1:0 --input {path}");
        let refused = common::run(&common::words(&call));
        refused.assert_refused(1, &[file, fragment]);
        assert!(!refused.stderr.contains("Planted"));
    }
    // The peer's announced size is accepted only up to the limit.
    let poly = folder.write("poly.csv", "coefficient\n1\n2\n3\n");
    let left = format!("--input {poly}");
    let two = pair("ope", &left, "--point 3 --max-degree 1");
    two[1].assert_refused(5, &["2", "--max-degree"]);
    assert_eq!(two[0].status, Some(4), "{two:?}");
    // As many values as coefficients would determine the polynomial.
    let points = folder.write("points.csv", "point\n1\n2\n3\n");
    let receiver = format!("--points {points} --out {}", folder.path("out.npy"));
    pair("ope", &left, &receiver)[0].assert_refused(5, &["3 points", "--max-points"]);
    assert_done(&pair("ope", &format!("{left} --max-points 3"), &receiver), "malicious");
    assert_eq!(values(&folder, "out.npy"), [6, 17, 34]);
    // A report path that is the input file.
    let call = format!("ope --role sender --listen 127.0.0.1:0 {left} --report {poly}");
    common::run(&common::words(&call)).assert_refused(2, &["--report", "the input file"]);
}

/// A peer that asks for the product with a matrix, which would reveal the sender's whole matrix.
#[test]
fn a_matrix_in_place_of_the_vector_is_refused() {
    use volery_channel::{Hello, handshake, tcp};

    let folder = Folder::new();
    let matrix = folder.write("matrix.npy", array("<u8", &[2, 2], &[1, 2, 3, 4]));
    let call = format!("matvec --role sender --listen 127.0.0.1:0 --input {matrix}");
    let sender = common::RunningProcess::start(&common::words(&call));
    let patience = std::time::Duration::from_secs(60);
    let mut channel = tcp::connect(("127.0.0.1", sender.port()), patience).unwrap();
    let field = |name: &'static str, value: &str| (name, value.to_owned());
    let hello = Hello {
        protocol: "matvec",
        role: "receiver",
        fields: vec![
            field("--ring", "fp61"),
            field("--result", "receiver"),
            field("--security", "malicious"),
        ],
    };
    handshake(&mut channel, &hello, [7; 32]).unwrap();
    let shape = [2_u64, 2].map(u64::to_le_bytes);
    channel.send(shape.as_flattened()).unwrap();
    channel.flush().unwrap();
    sender.finish().assert_refused(3, &["only a vector"]);
}

/// Both sides; an `out` is a file for the result.
fn multiplied(folder: &Folder, more: &str, outs: [Option<&str>; 2]) -> [ProcessResult; 2] {
    let side = |input: &str, out: Option<&str>| {
        let out = out.map(|name| format!("--out {}", folder.path(name))).unwrap_or_default();
        format!("--input {} {out} {more}", folder.path(input))
    };
    pair("matvec", &side("matrix.npy", outs[0]), &side("vector.npy", outs[1]))
}

#[test]
fn real_numbers_within_the_bound_that_is_reported() {
    let folder = Folder::new();
    let (n, m) = (257, 5);
    let real = |x: &u64| (*x as i64) as f64 / (1_u64 << 54) as f64; // up to 512
    let a: Vec<_> = numbers(n * m, 5).iter().map(real).collect();
    let x: Vec<_> = numbers(m, 6).iter().map(real).collect();
    folder.write("matrix.npy", reals(&[n, m], &a));
    folder.write("vector.npy", reals(&[m], &x));
    let [matrix, vector, out, report] =
        ["matrix.npy", "vector.npy", "y.npy", "report.json"].map(|name| folder.path(name));
    let left = format!("--input {matrix} --result sender --out {out} --report {report}");
    let both = pair("matvec", &left, &format!("--input {vector} --result sender"));
    assert_done(&both, "semi-honest");
    let bytes = std::fs::read(folder.path("y.npy")).unwrap();
    let data = &bytes[bytes.len() - 8 * n..];
    let y: Vec<_> = data.as_chunks().0.iter().map(|real| f64::from_le_bytes(*real)).collect();
    let bound = folder.json("report.json")["result"]["error_bound"].as_f64().unwrap();
    assert!(bound < 0.1, "{bound}");
    for (row, y) in a.chunks(m).zip(&y) {
        let exact: f64 = row.iter().zip(&x).map(|(a, x)| a * x).sum();
        assert!((exact - y).abs() <= bound + 1e-6, "{exact} {y}");
    }
}

#[test]
fn matrices_and_vectors_that_do_not_go() {
    let folder = Folder::new();
    folder.write("matrix.npy", array("<u8", &[4, 3], &[1; 12]));
    folder.write("vector.npy", array("<u8", &[2], &[1; 2]));
    for finished in multiplied(&folder, "", [None, Some("y.npy")]) {
        finished.assert_refused(5, &["4 x 3", "2 x 1"]);
    }
    // Different settings on the two sides.
    let [matrix, vector, out] = ["matrix.npy", "vector.npy", "y.npy"].map(|name| folder.path(name));
    let left = format!("--input {matrix} --ring z64");
    for finished in pair("matvec", &left, &format!("--input {vector} --out {out}")) {
        finished.assert_refused(5, &["z64", "fp61"]);
    }
    folder.write("vector.npy", array("<u8", &[3], &[1; 3]));
    let two = multiplied(&folder, "--max-rows 3", [None, Some("y.npy")]);
    two[1].assert_refused(5, &["4 rows", "--max-rows"]);
    let fortran = array("<u8", &[2, 2], &[1; 4]);
    let at = fortran.windows(5).position(|part| part == b"False").unwrap();
    let mut swapped = fortran.clone();
    swapped[at..][..5].copy_from_slice(b"True ");
    for (bytes, more, status, fragments) in [
        (array("<u8", &[3], &[1; 3]), "", 1, ["(n, m)", ""]),
        (array("<u8", &[0, 3], &[]), "", 1, ["no rows or no columns", ""]),
        (array("<u8", &[3, 0], &[]), "", 1, ["no rows or no columns", ""]),
        (array("<u8", &[1, 2], &[0, P]), "", 1, ["[0, 1]", "canonical"]),
        (array("<u8", &[1, 2], &[0, P]), "--ring real", 2, ["--ring", "float64"]),
        (array("<i8", &[1, 2], &[0, 1]), "", 1, ["dtype", ""]),
        (reals(&[1, 2], &[0.0, f64::NAN]), "", 1, ["entry 1", "NaN"]),
        (reals(&[1, 2], &[0.0, 2000.0]), "", 1, ["entry 1", "beyond the declared bound"]),
        (reals(&[1, 2], &[0.0, 1.0]), "--fraction-bits 40", 2, ["2^63", ""]),
        (swapped, "", 1, ["Fortran order", ""]),
    ] {
        let input = folder.write("other.npy", bytes);
        let call = format!("matvec --role sender --listen 127.0.0.1:0 --input {input} {more}");
        common::run(&common::words(call.trim())).assert_refused(status, &fragments);
    }
}
