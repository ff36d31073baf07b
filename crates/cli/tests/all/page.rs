//! Help, the demonstration, pages of reports, options from elsewhere, and what the program tells
//! shells and `man` of itself.

use std::fs;
use std::path::Path;

use volery_primitives::cpu::Cpu;

use crate::common::{ProcessResult, names, run, text, volery};

#[test]
fn a_report_becomes_a_page() {
    let place = tempfile::tempdir().unwrap();
    let [report, page] = ["r.json", "r.html"].map(|name| place.path().join(name));
    let (report, page) = (text(&report), text(&page));
    assert_eq!(run(&["demo", "--n", "10", "-q", "--report", report]).status, Some(0));
    assert_eq!(run(&["report", report, "--out", page]).status, Some(0));
    let made = fs::read_to_string(page).unwrap();
    assert!(made.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
    assert!(made.contains("<h1>The run of demo is done</h1>"), "{made}");
    let shown = run(&["report", report]);
    assert_eq!((shown.status, shown.stdout), (Some(0), made));

    run(&["report", report, "--out", page]).assert_refused(2, &["--out", "exists"]);
    assert_eq!(run(&["report", report, "--out", page, "--force"]).status, Some(0));
    run(&["report", report, "--out", report, "--force"]).assert_refused(2, &["is the report"]);
    run(&["report", page]).assert_refused(1, &["r.html: expected value"]);
    fs::write(report, "{}").unwrap();
    run(&["report", report]).assert_refused(1, &["r.json: is not a report of volery"]);
}

#[test]
fn shells_and_man_know_the_command_line() {
    for (shell, fragment) in [
        ("bash", "complete -F _volery"),
        ("zsh", "#compdef volery"),
        ("fish", "complete -c volery"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "set edit:completion:arg-completer[volery]"),
    ] {
        let made = run(&["completions", shell]);
        assert_eq!(made.status, Some(0), "{made:?}");
        for fragment in [fragment, "empty-keys"] {
            assert!(made.stdout.contains(fragment), "{shell}: {fragment}");
        }
    }
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("man/man1");
    assert_eq!(run(&["man", "--out", text(&out)]).status, Some(0));
    let pages = names(&out);
    for page in ["volery.1", "volery-psi.1", "volery-params-estimate.1"] {
        assert!(pages.iter().any(|there| there == page), "{pages:?}");
    }
    let psi = fs::read_to_string(out.join("volery-psi.1")).unwrap();
    assert!(psi.contains("Examples:") && psi.contains("duplicates"), "{psi}");
}

#[test]
fn options_come_from_the_environment_and_a_file() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("volery.toml");
    fs::write(&file, "timeout = 5\n\n[demo]\nn = 'many'\n").unwrap();
    let call = |words: &[&str], variables: &[(&str, &Path)]| {
        let mut command = volery(words);
        command.envs(variables.iter().copied());
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), stderr)
    };
    let named: (&str, &Path) = ("VOLERY_CONFIG", &file);
    let (status, stderr) = call(&["demo"], &[named]);
    assert_eq!(status, 2);
    let start = format!("error: {}:4: invalid value 'many' for '--n <N>'", file.display());
    assert!(stderr.starts_with(&start), "{stderr}");
    let number: (&str, &Path) = ("VOLERY_N", Path::new("67108865"));
    let (status, stderr) = call(&["demo"], &[named, number]);
    assert_eq!(status, 2);
    assert!(stderr.starts_with("error: VOLERY_N: --n: the demo makes at most"), "{stderr}");
    let quiet: (&str, &Path) = ("VOLERY_QUIET", Path::new("true"));
    assert_eq!(call(&["demo", "--n", "1"], &[named, number, quiet]), (0, String::new()));
    // A misspelt variable may be why an option is missing.
    let nearly: (&str, &Path) = ("VOLERY_KEYY", Path::new("email"));
    for (words, status) in [(&["lint", "a.csv"][..], 2), (&["demo", "--n", "1"], 0)] {
        let (ended, stderr) = call(words, &[nearly]);
        let note = "VOLERY_KEYY is no option; did you mean VOLERY_KEY?";
        assert!(ended == status && stderr.contains(note), "{stderr}");
    }
    assert_eq!(call(&["demo", "--n", "1"], &[nearly, quiet]), (0, String::new()));
    fs::write(&file, "tiemout = 5\n").unwrap();
    let (status, stderr) = call(&["demo"], &[named]);
    assert_eq!(status, 2);
    assert!(stderr.contains("volery.toml:1: tiemout: there is no such option"), "{stderr}");
}

#[test]
fn help_and_version_are_answers_not_errors() {
    for arguments in [&["--help"][..], &["--version"], &["vole", "--help"], &["cot", "--help"]] {
        let finished = run(arguments);
        assert_eq!(finished.status, Some(0));
        assert!(!finished.stdout.is_empty() && finished.stderr.is_empty(), "{finished:?}");
    }
    // Without words the help is the answer, and no success.
    for arguments in [&[][..], &["params"]] {
        let finished = run(arguments);
        assert_eq!(finished.status, Some(2), "{finished:?}");
        assert!(finished.stderr.contains("Usage:"), "{finished:?}");
    }
}

/// Every subcommand, before it does anything.
#[test]
fn an_unknown_level_of_the_processor_is_refused_with_those_it_has() {
    for name in ["avx1024", "PORTABLE"] {
        let mut command = volery(&["demo", "--n", "10"]);
        let output = command.env("VOLERY_CPU", name).output().unwrap();
        let levels = Cpu::available().into_iter().map(Cpu::name);
        let fragments: Vec<_> = std::iter::once("VOLERY_CPU").chain(levels).collect();
        ProcessResult::from(output).assert_refused(2, &fragments);
    }
}

#[test]
fn the_demo_prints_what_it_checked_on_every_level_of_the_processor() {
    // An empty name is none.
    for level in Cpu::available().into_iter().map(Cpu::name).chain([""]) {
        let mut command = volery(&["demo", "--n", "5000"]);
        let demo = ProcessResult::from(command.env("VOLERY_CPU", level).output().unwrap());
        assert_eq!(demo.status, Some(0), "{level}: {demo:?}");
        for fragment in [
            "fp61",
            "z64",
            "f2",
            "5000",
            "malicious, 128 bits",
            "semi-honest, 128 bits",
            "all hold",
            "1800",
            "as a set",
        ] {
            assert!(demo.stdout.contains(fragment), "{level}: {demo:?}");
        }
        assert!(demo.stderr.is_empty(), "{level}: {demo:?}");
    }
}
