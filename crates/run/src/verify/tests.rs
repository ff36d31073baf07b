//! Verification of folders made by hand, valid and corrupted.

use std::fs::{self, File};

use volery_field::{F2, Fp61, Gf128, Z64};
use volery_primitives::{Block, prg::Prg};

use super::*;
use crate::npy::Writer;

/// Arguments for two folders, still empty.
fn arguments(place: &Path) -> Arguments {
    let common = Common::default();
    let arguments = Arguments {
        sender: place.join("s"),
        receiver: place.join("r"),
        options: VerifyOptions::default(),
        common,
    };
    fs::create_dir(&arguments.sender).unwrap();
    fs::create_dir(&arguments.receiver).unwrap();
    arguments
}

fn write<R: Ring>(folder: &Path, name: &str, values: &[R]) {
    let file = File::create(folder.join(name)).unwrap();
    let mut writer = Writer::new(file, values.len() as u64).unwrap();
    writer.write(values).unwrap();
    writer.finish().unwrap();
}

/// Two folders with `n` valid correlations, without reports.
fn folders<R: Ring>(place: &Path, n: usize) -> Arguments {
    let mut prg = Prg::new(Block::from_words(n as u64, 5));
    let x = R::random(&mut prg);
    let [mut u, mut v] = [(); 2].map(|()| vec![R::ZERO; n]);
    R::random_slice(&mut prg, &mut u);
    R::random_slice(&mut prg, &mut v);
    let w: Vec<R> = u.iter().zip(&v).map(|(&u, &v)| u * x + v).collect();
    let arguments = arguments(place);
    for (folder, name, values) in [
        (&arguments.sender, "u.npy", &u),
        (&arguments.sender, "v.npy", &v),
        (&arguments.receiver, "x.npy", &vec![x]),
        (&arguments.receiver, "w.npy", &w),
    ] {
        write(folder, name, values);
    }
    arguments
}

fn write_reports(arguments: &Arguments, change: impl Fn(&mut Report, &mut Report)) {
    let mut reports = ["sender", "receiver"].map(|role| {
        let mut report = Report::new("vole", &Reporter::for_tests());
        report.role = Some(role.to_owned());
        report.ring = Some("fp61".to_owned());
        report.result.insert("session".into(), "12".into());
        report
    });
    let [sender, receiver] = &mut reports;
    change(sender, receiver);
    fs::write(arguments.sender.join("report.json"), sender.to_json()).unwrap();
    fs::write(arguments.receiver.join("report.json"), receiver.to_json()).unwrap();
}

/// Fails unless the error contains `text`.
fn refused(arguments: &Arguments, text: &str) {
    let failure = verified(arguments).unwrap_err().to_string();
    assert!(failure.contains(text), "{failure}");
}

/// Flips a bit of the last byte of a file.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(path, bytes).unwrap();
}

fn holds<R: Ring>(ring: RingName) {
    for n in [0, 1, 1009, CHUNK, CHUNK + 1] {
        let place = tempfile::tempdir().unwrap();
        let mut arguments = folders::<R>(place.path(), n);
        arguments.options.ring = Some(ring);
        verified(&arguments).unwrap();
    }
}

fn verified(arguments: &Arguments) -> Result<String, Failure> {
    run(arguments, &Reporter::for_tests())
}

#[test]
fn valid_correlations_are_accepted() {
    holds::<Fp61>(RingName::Fp61);
    holds::<Z64>(RingName::Z64);
    holds::<Gf128>(RingName::Gf128);
}

#[test]
fn one_wrong_bit_is_found_and_named() {
    let last = "1 of 65537 correlations, the first at index 65536";
    for (name, text) in [
        ("s/u.npy", last),
        ("s/v.npy", last),
        ("r/w.npy", last),
        ("r/x.npy", "of 65537 correlations, the first at index 0"),
    ] {
        let place = tempfile::tempdir().unwrap();
        let mut arguments = folders::<Gf128>(place.path(), CHUNK + 1);
        let report = place.path().join("found.json");
        arguments.common.report.report = Some(report.clone());
        flip(&place.path().join(name));
        let failure = verified(&arguments).unwrap_err();
        assert_eq!(failure.status(), Status::Other);
        assert!(failure.to_string().contains(text), "{failure}");
        let report: Report = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
        assert_ne!(report.result["wrong"], 0);
    }
}

#[test]
fn the_ring_comes_from_the_reports_or_the_option() {
    let place = tempfile::tempdir().unwrap();
    let mut arguments = folders::<Fp61>(place.path(), 10);
    let complaint = verified(&arguments).unwrap_err();
    assert_eq!(complaint.status(), Status::Usage);
    assert!(complaint.to_string().contains("--ring"), "{complaint}");

    write_reports(&arguments, |_, _| {});
    verified(&arguments).unwrap();
    arguments.options.ring = Some(RingName::Z64);
    refused(&arguments, "hold fp61");
    arguments.options.ring = None;

    write_reports(&arguments, |sender, _| sender.ring = Some("z64".into()));
    refused(&arguments, "differ in ring");
    write_reports(&arguments, |sender, _| {
        sender.result.insert("session".into(), "34".into());
    });
    refused(&arguments, "differ in session");
    write_reports(&arguments, std::mem::swap);
    refused(&arguments, "DIR_SENDER DIR_RECEIVER");
    write_reports(&arguments, |sender, receiver| {
        sender.ring = Some("gf128".into());
        receiver.ring = Some("gf128".into());
    });
    refused(&arguments, "not an array over gf128");
}

#[test]
fn residues_must_be_canonical_and_sizes_must_agree() {
    let place = tempfile::tempdir().unwrap();
    let mut arguments = folders::<Z64>(place.path(), 10);
    arguments.options.ring = Some(RingName::Fp61);
    refused(&arguments, "not a canonical value of fp61");

    let place = tempfile::tempdir().unwrap();
    let mut arguments = folders::<Z64>(place.path(), 10);
    arguments.options.ring = Some(RingName::Z64);
    fs::copy(arguments.receiver.join("x.npy"), arguments.receiver.join("w.npy")).unwrap();
    refused(&arguments, "w.npy: holds (1,)");
    fs::remove_file(arguments.receiver.join("w.npy")).unwrap();
    refused(&arguments, "w.npy: No such file");
}

/// Two folders with `n` valid correlated OTs, without reports.
fn cot_folders(place: &Path, n: usize) -> Arguments {
    let arguments = arguments(place);
    let mut prg = Prg::new(Block::from_words(n as u64, 6));
    let delta = Gf128::random(&mut prg);
    let mut u = vec![F2::ZERO; n];
    let mut v = vec![Gf128::ZERO; n];
    F2::random_slice(&mut prg, &mut u);
    Gf128::random_slice(&mut prg, &mut v);
    let w: Vec<_> = (0..n).map(|i| v[i] + delta.mul_base(u[i])).collect();
    write(&arguments.sender, "delta.npy", &[delta]);
    write(&arguments.sender, "v.npy", &v);
    write(&arguments.receiver, "u.npy", &u);
    write(&arguments.receiver, "w.npy", &w);
    arguments
}

#[test]
fn valid_cots_are_accepted() {
    for n in [0, 1, 1009, CHUNK, CHUNK + 1] {
        let place = tempfile::tempdir().unwrap();
        verified(&cot_folders(place.path(), n)).unwrap();
    }
}

#[test]
fn every_corruption_of_cots_is_found_and_named() {
    let last = "1 of 65537 correlations, the first at index 65536";
    for (name, text) in [
        ("r/u.npy", last),
        ("s/v.npy", last),
        ("r/w.npy", last),
        ("s/delta.npy", "of 65537 correlations, the first at index "),
    ] {
        let place = tempfile::tempdir().unwrap();
        let arguments = cot_folders(place.path(), CHUNK + 1);
        flip(&place.path().join(name));
        let failure = verified(&arguments).unwrap_err();
        assert_eq!(failure.status(), Status::Other);
        assert!(failure.to_string().contains("w = v + u*delta"), "{failure}");
        assert!(failure.to_string().contains(text), "{failure}");
    }
}

#[test]
fn invalid_cots_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let arguments = cot_folders(place.path(), 10);
    let complaint = |arguments: &Arguments| {
        let failure = verified(arguments).unwrap_err();
        assert_eq!(failure.status(), Status::Other);
        failure.to_string()
    };
    let (s, r) = (&arguments.sender, &arguments.receiver);

    let good = fs::read(s.join("delta.npy")).unwrap();
    write(s, "delta.npy", &[Gf128::ZERO]);
    assert!(complaint(&arguments).contains("delta.npy: delta is zero"));
    write(s, "delta.npy", &[Gf128::ONE; 2]);
    assert!(complaint(&arguments).contains("delta.npy: holds (2, 2)"));
    write(s, "delta.npy", &[Z64::ONE; 2]);
    assert!(complaint(&arguments).contains("delta.npy: holds (2,)"));
    fs::write(s.join("delta.npy"), good).unwrap();

    let good = fs::read(r.join("u.npy")).unwrap();
    let mut bad = good.clone();
    bad[good.len() - 3] = 2;
    fs::write(r.join("u.npy"), bad).unwrap();
    assert!(complaint(&arguments).contains("element 7 is neither 0 nor 1"));
    write(r, "u.npy", &[Z64::ONE; 10]);
    assert!(complaint(&arguments).contains("u.npy: (10,) is not an array over f2"));
    write(r, "u.npy", &[F2::ONE; 9]);
    assert!(complaint(&arguments).contains("v.npy: holds (10, 2), but"));
    fs::write(r.join("u.npy"), good).unwrap();

    let other_way = Arguments { sender: r.clone(), receiver: s.clone(), ..arguments.clone() };
    assert!(complaint(&other_way).contains("delta.npy: No such file"));
    let with_ring =
        Arguments { options: VerifyOptions { ring: Some(RingName::Gf128) }, ..arguments.clone() };
    assert_eq!(verified(&with_ring).unwrap_err().status(), Status::Usage);
    verified(&arguments).unwrap();
}
