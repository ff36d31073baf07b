//! Names the commit in reports: `VOLERY_COMMIT` where it is set, else what git says; without either
//! it is unknown.

use std::path::Path;
use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=VOLERY_COMMIT");
    let given = std::env::var("VOLERY_COMMIT").ok();
    let commit = given.or_else(|| {
        // A repository of somebody else, in which this package was unpacked, says nothing.
        let top = git(&["rev-parse", "--show-toplevel"])?;
        Path::new(&top).join("crates/run/build.rs").exists().then_some(())?;
        // The log of HEAD is written at every commit and checkout.
        for name in ["HEAD", "logs/HEAD"] {
            let path = git(&["rev-parse", "--git-path", name])?;
            println!("cargo::rerun-if-changed={path}");
        }
        git(&["describe", "--always", "--abbrev=12"])
    });
    if let Some(commit) = commit {
        println!("cargo::rustc-env=VOLERY_COMMIT={commit}");
    }
}
