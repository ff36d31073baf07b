use std::fs;

use clap::{Arg, ArgAction, Command};
use volery_run::failure::{Result, Status};

use super::*;

/// A program with options of each kind.
fn program() -> Command {
    let option = |name: &'static str| Arg::new(name).long(name);
    let common = [
        option("timeout").value_parser(clap::value_parser!(u32)),
        option("quiet").action(ArgAction::SetTrue).conflicts_with("verbose"),
        option("verbose").short('v').action(ArgAction::Count),
        option("listen"),
        option("connect"),
    ];
    add_option(
        Command::new("volery")
            .subcommand(
                Command::new("psi")
                    .args(&common)
                    .arg(option("or").action(ArgAction::Append))
                    .arg(option("key").required(true))
                    .arg(option("point")),
            )
            .subcommand(Command::new("demo").args(&common).arg(option("n")))
            .subcommand(Command::new("params").subcommand(Command::new("list").args(&common))),
    )
}

struct Case {
    folder: tempfile::TempDir,
    environment: Vec<(String, String)>,
}

impl Case {
    fn new(file: &str, environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("v.toml"), file).unwrap();
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        Self { environment: environment.iter().map(owned).collect(), folder }
    }

    fn file(&self) -> String {
        self.folder.path().join("v.toml").display().to_string()
    }

    /// The words of a call, in which `FILE` stands for the file.
    fn run(&self, line: &str) -> Result<Configuration> {
        let words = line.split(' ').map(|word| word.replace("FILE", &self.file()).into());
        configure(&program(), words.collect(), &|name| {
            let found = self.environment.iter().find(|(there, _)| there == name);
            found.map(|(_, value)| value.replace("FILE", &self.file()).into())
        })
    }

    fn words(&self, line: &str) -> String {
        let words = self.run(line).unwrap().words;
        words.join(OsStr::new(" ")).into_string().unwrap().replace(&self.file(), "FILE")
    }
}

#[test]
fn the_command_line_goes_before_the_environment_and_that_before_the_file() {
    let case = Case::new(
        "timeout = 5\nquiet = true\nkey = 'a'\n[psi]\nor = ['b', 'c,d']\ntimeout = 6\n[demo]\nn = 1_000\n",
        &[("VOLERY_KEY", "e"), ("VOLERY_QUIET", "")],
    );
    for (line, expected) in [
        (
            "volery psi --config FILE",
            "volery psi --key=e --quiet --timeout=6 --or=b --or=c,d --config FILE",
        ),
        (
            "volery psi --config=FILE --key x --timeout 9 --or y",
            "volery psi --quiet --config=FILE --key x --timeout 9 --or y",
        ),
        // What excludes a value of a higher level does not come from a lower one.
        (
            "volery psi -v --config FILE --or y",
            "volery psi --key=e --timeout=6 -v --config FILE --or y",
        ),
        ("volery demo --config FILE", "volery demo --timeout=5 --quiet --n=1000 --config FILE"),
        (
            "volery params list --config FILE",
            "volery params list --timeout=5 --quiet --config FILE",
        ),
        ("volery psi", "volery psi --key=e"),
        ("volery demo", "volery demo"),
        // Not a call: the parser says so.
        ("volery", "volery"),
        ("volery nonsense --config FILE", "volery nonsense --config FILE"),
        ("volery psi --help --config /nowhere", "volery psi --help --config /nowhere"),
    ] {
        let mut expected: Vec<_> = expected.split(' ').collect();
        let made = case.words(line);
        let mut made: Vec<_> = made.split(' ').collect();
        assert_eq!(made[..2.min(made.len())], expected[..2.min(expected.len())]);
        made.sort_unstable();
        expected.sort_unstable();
        assert_eq!(made, expected, "{line}");
    }
}

#[test]
fn the_environment_names_the_file_and_lists_one_value_a_line() {
    let case = Case::new(
        "connect = 'b:1'",
        &[
            ("VOLERY_CONFIG", "FILE"),
            ("VOLERY_OR", "a,b\n\nc"),
            ("VOLERY_VERBOSE", "2"),
            ("VOLERY_LISTEN", "l:2"),
        ],
    );
    let words = case.words("volery psi");
    for word in ["--or=a,b", "--or=c", "--verbose --verbose", "--listen=l:2"] {
        assert!(words.contains(word), "{words}");
    }
    // The environment names the other kind of endpoint.
    assert!(!words.contains("connect"), "{words}");
    assert!(case.words("volery psi --connect c:3").ends_with("--connect c:3"));
    assert!(!case.words("volery psi --connect c:3").contains("--listen"));
    let off = Case::new("quiet = true", &[("VOLERY_QUIET", "off")]);
    assert_eq!(off.words("volery demo --config FILE"), "volery demo --config FILE");
}

#[test]
fn wrong_files_and_variables_are_refused_by_name_and_line() {
    for (file, environment, expected) in [
        ("\nkye = 'a'", None, "v.toml:2: kye: there is no such option"),
        ("[psi]\n\nn = 5", None, "v.toml:3: n: there is no such option of psi"),
        ("[params.list]\nkey = 'a'", None, "v.toml:2: key: there is no such option of list"),
        ("[pis]\nkey = 'a'", None, "v.toml:1: [pis]: there is no such subcommand"),
        ("timeout = [1]", None, "v.toml:1: timeout: the option takes one value, not an array"),
        ("timeout = 2026-01-01", None, "timeout: the value has to be a text or a decimal number"),
        ("quiet = 'yes'", None, "quiet: the value has to be true or false"),
        ("verbose = 300", None, "verbose: the number is not from 0 to 255"),
        ("[psi]\nor = ['a', ['b']]", None, "v.toml:2: or: the value has to be a text"),
        ("[psi]\npoint = 3", None, "v.toml:2: point: a private value has no place"),
        ("key = 'a'\nkey = 'b'", None, "v.toml:2: "),
        ("a = = b", None, "v.toml:1: "),
        ("config = 'x'", None, "config: there is no such option"),
        ("", Some(("VOLERY_QUIET", "maybe")), "VOLERY_QUIET: neither true nor false"),
        ("", Some(("VOLERY_VERBOSE", "-1")), "VOLERY_VERBOSE: neither a small number"),
    ] {
        let environment: Vec<_> = environment.into_iter().collect();
        let refused = Case::new(file, &environment).run("volery psi --config FILE").unwrap_err();
        assert_eq!(refused.status(), Status::Usage, "{refused}");
        assert!(refused.to_string().contains(expected), "{expected}: {refused}");
    }
    let refused = Case::new("", &[]).run("volery demo --config /nowhere/v.toml").unwrap_err();
    assert!(refused.to_string().contains("--config: /nowhere/v.toml: No such file"), "{refused}");
}

#[test]
fn a_message_is_traced_to_the_place_of_its_value() {
    let case = Case::new("\nkey = 'people.csv'", &[("VOLERY_LISTEN", "here")]);
    let configured = case.run("volery psi --config FILE --timeout 5").unwrap();
    let line = format!("{}:2", case.file());
    for (message, expected) in [
        ("--listen: 'here' is not HOST:PORT", Some("VOLERY_LISTEN")),
        ("invalid value 'x' for '--key <KEY>'", Some(&*line)),
        ("people.csv: No such file or directory", Some(&*line)),
        ("--keys and --listens are others", None),
        ("--timeout: too short", None),
        ("the peer went away", None),
    ] {
        assert_eq!(configured.origin(message).as_deref(), expected, "{message}");
    }
}
