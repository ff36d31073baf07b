//! Verification of folders made by hand, valid and corrupted.

use std::fs::{self, File};

use volery_field::{F2, Fp61, Gf128, Z64};
use volery_primitives::{Block, prg::Prg};

use super::*;
use crate::npy::Writer;

fn write<R: Ring>(folder: &Path, name: &str, values: &[R]) {
    let file = File::create(folder.join(name)).unwrap();
    let mut writer = Writer::new(file, values.len() as u64).unwrap();
    writer.write(values).unwrap();
    writer.finish().unwrap();
}

/// Two folders with `n` valid correlations, without reports: of bits, correlated OTs.
fn folders<B: Ring, R: ExtensionOf<B>>(place: &Path, n: usize) -> Arguments {
    let mut prg = Prg::new(Block::from_words(n as u64, 5));
    let key = R::random(&mut prg);
    let (mut u, mut v) = (vec![B::ZERO; n], vec![R::ZERO; n]);
    B::random_slice(&mut prg, &mut u);
    R::random_slice(&mut prg, &mut v);
    let mut w = v.clone();
    R::axpy_base(&mut w, key, &u);
    let [sender, receiver] = ["s", "r"].map(|name| place.join(name));
    fs::create_dir(&sender).unwrap();
    fs::create_dir(&receiver).unwrap();
    let (name, of_key, of_values) = match B::BITS {
        1 => ("delta.npy", &sender, &receiver),
        _ => ("x.npy", &receiver, &sender),
    };
    write(of_key, name, &[key]);
    write(of_values, "u.npy", &u);
    write(&sender, "v.npy", &v);
    write(&receiver, "w.npy", &w);
    Arguments { sender, receiver, ..Arguments::default() }
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

fn verified(arguments: &Arguments) -> Result<String> {
    run(arguments, &Reporter::for_tests())
}

/// Fails unless the error contains `text`.
fn refused(arguments: &Arguments, text: &str) {
    let failure = verified(arguments).unwrap_err().to_string();
    assert!(failure.contains(text), "{failure}");
}

#[test]
fn one_wrong_bit_is_found_and_named() {
    let last = "does not hold for 1 of 65537 correlations, the first at index 65536";
    let many = "of 65537 correlations, the first at index ";
    let vole = [("s/u.npy", last), ("s/v.npy", last), ("r/w.npy", last), ("r/x.npy", many)];
    let cot = [("r/u.npy", last), ("s/v.npy", last), ("r/w.npy", last), ("s/delta.npy", many)];
    for (is_cot, (name, text)) in
        vole.map(|row| (false, row)).into_iter().chain(cot.map(|row| (true, row)))
    {
        let place = tempfile::tempdir().unwrap();
        let mut arguments = match is_cot {
            true => folders::<F2, Gf128>(place.path(), CHUNK + 1),
            false => folders::<Gf128, Gf128>(place.path(), CHUNK + 1),
        };
        let report = place.path().join("found.json");
        arguments.common.report.report = Some(report.clone());
        let path = place.path().join(name);
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(path, bytes).unwrap();
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
    let mut arguments = folders::<Fp61, Fp61>(place.path(), 10);
    let complaint = verified(&arguments).unwrap_err();
    assert_eq!(complaint.status(), Status::Usage);
    assert!(complaint.to_string().contains("--ring"), "{complaint}");

    write_reports(&arguments, |_, _| {});
    verified(&arguments).unwrap();
    // As the field was called before.
    for folder in [&arguments.sender, &arguments.receiver] {
        let report = fs::read_to_string(folder.join("report.json")).unwrap();
        let old = report.replace("\"command\"", "\"protocol\"");
        assert_ne!(old, report);
        fs::write(folder.join("report.json"), old).unwrap();
    }
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
fn arrays_of_other_forms_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let mut arguments = folders::<Z64, Z64>(place.path(), 10);
    arguments.options.ring = Some(RingName::Fp61);
    refused(&arguments, "not a canonical value of fp61");
    arguments.options.ring = Some(RingName::Z64);
    fs::copy(arguments.receiver.join("x.npy"), arguments.receiver.join("w.npy")).unwrap();
    refused(&arguments, "w.npy: holds (1,)");
    fs::remove_file(arguments.receiver.join("w.npy")).unwrap();
    refused(&arguments, "w.npy: No such file");

    let place = tempfile::tempdir().unwrap();
    let arguments = folders::<F2, Gf128>(place.path(), 10);
    let (s, r) = (&arguments.sender, &arguments.receiver);
    let good = fs::read(s.join("delta.npy")).unwrap();
    write(s, "delta.npy", &[Gf128::ZERO]);
    refused(&arguments, "delta.npy: delta is zero");
    write(s, "delta.npy", &[Gf128::ONE; 2]);
    refused(&arguments, "delta.npy: holds (2, 2)");
    write(s, "delta.npy", &[Z64::ONE; 2]);
    refused(&arguments, "delta.npy: holds (2,)");
    fs::write(s.join("delta.npy"), good).unwrap();

    let good = fs::read(r.join("u.npy")).unwrap();
    let mut bad = good.clone();
    bad[good.len() - 3] = 2;
    fs::write(r.join("u.npy"), bad).unwrap();
    refused(&arguments, "element 7 is neither 0 nor 1");
    write(r, "u.npy", &[Z64::ONE; 10]);
    refused(&arguments, "u.npy: (10,) is not an array over f2");
    write(r, "u.npy", &[F2::ONE; 9]);
    refused(&arguments, "v.npy: holds (10, 2), but");
    fs::write(r.join("u.npy"), good).unwrap();

    let other_way = Arguments { sender: r.clone(), receiver: s.clone(), ..arguments.clone() };
    refused(&other_way, "delta.npy: No such file");
    let options = VerifyOptions { ring: Some(RingName::Gf128) };
    let with_ring = Arguments { options, ..arguments.clone() };
    assert_eq!(verified(&with_ring).unwrap_err().status(), Status::Usage);
    verified(&arguments).unwrap();
}
