//! The parts of the help that concern all subcommands: groups of options, examples, colours.

use clap::builder::styling::{AnsiColor, Style, Styles};
use clap::{Arg, ArgAction, Command};

/// The headings, each with the options that do not name their own: those of sets do. The help of a
/// subcommand lists them in the order of their first option.
const HEADINGS: [(&str, &str); 5] = [
    ("Peer", "role listen allow wait max-connections idle"),
    ("Browsers", "gateway/to gateway/token"),
    (
        "Workers",
        "gateway step manifest ticket worker rule attempt work with-parent image work-claim \
         identity-secret data-claim cpu",
    ),
    ("Output", "out force"),
    ("Protocol", "n noise set k t field bits"),
];

/// The heading of all other options.
const OTHERS: &str = "Running";

/// The examples of each subcommand, named by its path.
const EXAMPLES: [(&str, &[&str]); 21] = [
    ("demo", &["volery demo", "volery demo --n 10_000_000 --threads 4"]),
    (
        "vole",
        &[
            "volery vole --role sender --listen 127.0.0.1:7000 --n 10_000_000 --out sender",
            "volery vole --role receiver --connect 127.0.0.1:7000 --n 10_000_000 --out receiver",
        ],
    ),
    (
        "cot",
        &[
            "volery cot --role sender --listen 127.0.0.1:7000 --n 10_000_000 --out cot-sender",
            "volery cot --role receiver --connect 127.0.0.1:7000 --n 10_000_000 --out cot-receiver",
        ],
    ),
    (
        "psi",
        &[
            "volery psi --role sender --listen 127.0.0.1:7000 --input customers.csv --key email",
            "volery psi --role receiver --connect 127.0.0.1:7000 --input loyalty.csv --key email \\\n  --out common.csv",
            "volery psi --role receiver --connect 127.0.0.1:7000 --protocol served --filter filter \\\n  --input loyalty.csv --key email:email --out common.csv",
            "volery psi --role receiver --connect alice.example.org:7000 --identity bob \\\n  --peer qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8 --input loyalty.csv --key email \\\n  --out common.csv",
            "volery psi --role receiver --connect 127.0.0.1:7000 --input loyalty.csv --key email \\\n  --result shares=spend --bound 100000 --decimals 2 --out shares",
        ],
    ),
    (
        "lookup",
        &[
            "volery lookup --role sender --listen 127.0.0.1:7000 --input customers.csv --key email \\\n  --value city",
            "volery lookup --role receiver --connect 127.0.0.1:7000 --input loyalty.csv --key email \\\n  --out found.csv",
        ],
    ),
    (
        "run-local psi",
        &[
            "volery run-local psi --workers 4 --run 2026-11-lift --gateway match.example.org:7443 \\\n  --identity bob --peer qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8 --resume work \\\n  --role receiver --input loyalty.parquet \\\n  --key email:email --out common.parquet",
        ],
    ),
    (
        "run-local lookup",
        &[
            "volery run-local lookup --workers 4 --run 2026-11-lift --gateway match.example.org:7443 \\\n  --identity alice --peer qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8 --resume work \\\n  --role sender --input customers.parquet \\\n  --key email:email --value segment",
        ],
    ),
    (
        "worker",
        &[
            "volery worker --manifest work/worker-3/run.json --ticket work/worker-3/ticket-3 \\\n  --role receiver --gateway match.example.org:7443 --worker 3 --work work/worker-3",
        ],
    ),
    (
        "k8s",
        &[
            "volery k8s --image registry.example.org/volery --work-claim volery --identity-secret volery \\\n  --out manifests -- psi --workers 16 --run 2026-11-lift --gateway match.example.org:7443 \\\n  --peer qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8 --role sender \\\n  --input /data/customers.parquet --key email:email",
        ],
    ),
    (
        "lint",
        &[
            "volery lint customers.csv --key email:email",
            "volery lint customers.csv --key email:email --or name:name,postcode:alnum --strict",
        ],
    ),
    (
        "ope",
        &[
            "volery ope --role sender --listen 127.0.0.1:7000 --input polynomial.csv",
            "volery ope --role receiver --connect 127.0.0.1:7000 --points points.csv --out values.npy",
        ],
    ),
    (
        "matvec",
        &[
            "volery matvec --role sender --listen 127.0.0.1:7000 --input matrix.npy",
            "volery matvec --role receiver --connect 127.0.0.1:7000 --input vector.npy --out product.npy",
        ],
    ),
    ("verify", &["volery verify sender receiver"]),
    ("params list", &["volery params list"]),
    (
        "params estimate",
        &["volery params estimate --n 10_000_000 --k 500_000 --t 1_300 --field f2 --noise regular"],
    ),
    (
        "keygen",
        &["volery keygen --out alice --name alice", "volery keygen --token --out bob.token"],
    ),
    (
        "gateway",
        &[
            "volery gateway --listen 0.0.0.0:7443 \\\n  --allow qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8 \\\n  --allow dhv2-ep5f-2e5k-cjpk-4bpd-tsk7-fzr1-5dnj-2h4m",
            "volery gateway --web 127.0.0.1:8080 --to 127.0.0.1:7000 --web-files examples/web",
        ],
    ),
    (
        "serve",
        &[
            "volery serve --listen 127.0.0.1:7000 --input customers.csv --key email:email --store store",
            "volery serve --listen 0.0.0.0:7000 --identity alice --clients clients.toml --store store",
            "volery serve --web 127.0.0.1:8080 --web-files examples/web --clients clients.toml \\\n  --store store",
            "volery serve --prepare --rotate --input customers.csv --key email:email --store store",
        ],
    ),
    ("report", &["volery report report.json --out report.html"]),
    (
        "completions",
        &["volery completions bash > ~/.local/share/bash-completion/completions/volery"],
    ),
    ("man", &["volery man --out ~/.local/share/man/man1"]),
];

/// Sets headings, examples and colours of the whole program.
pub(super) fn complete(program: Command) -> Command {
    program.styles(styles()).max_term_width(100).mut_subcommands(|command| below(command, ""))
}

fn below(command: Command, above: &str) -> Command {
    let path = format!("{above} {}", command.get_name()).trim_start().to_owned();
    if command.is_hide_set() {
        return command;
    }
    if command.has_subcommands() {
        return command.mut_subcommands(|command| below(command, &path));
    }
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help).help("Print help");
    let command = command.disable_help_flag(true).arg(help).mut_args(|option| {
        match (option.get_long(), option.get_help_heading()) {
            (Some(long), None) => {
                let heading = heading(&path, long);
                option.help_heading(heading)
            }
            _ => option,
        }
    });
    let found = EXAMPLES.iter().find(|(name, _)| *name == path);
    let lines = found.map_or(&[][..], |(_, lines)| lines);
    let bold = Style::new().bold();
    let text = lines
        .iter()
        .map(|line| format!("\n  {}", line.replace('\n', "\n    ")))
        .collect::<String>();
    let own = match command.get_after_help() {
        Some(own) => format!("{own}\n\n"),
        None => String::new(),
    };
    command.after_help(format!("{own}{bold}Examples:{bold:#}{text}"))
}

/// The heading of an option: of this subcommand, if it has one of its own there.
fn heading(path: &str, option: &str) -> &'static str {
    let command = path.rsplit(' ').next().unwrap_or_default();
    let own = format!("{command}/{option}");
    let find = |wanted: &str| {
        let mut all = HEADINGS.iter();
        all.find(|(_, options)| options.split(' ').any(|there| there == wanted))
    };
    find(&own).or_else(|| find(option)).map_or(OTHERS, |(heading, _)| *heading)
}

fn styles() -> Styles {
    Styles::styled()
        .header(Style::new().bold())
        .usage(Style::new().bold())
        .literal(AnsiColor::Cyan.on_default())
        .placeholder(AnsiColor::Green.on_default())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::super::program;
    use super::*;

    /// All visible subcommands without others below them, with their paths.
    fn leaves(command: &Command, path: &str, all: &mut Vec<(String, Command)>) {
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            let path = format!("{path} {}", below.get_name()).trim_start().to_owned();
            if below.has_subcommands() {
                leaves(below, &path, all);
            } else {
                all.push((path, below.clone()));
            }
        }
    }

    #[test]
    fn headings_and_examples_name_what_there_is() {
        let mut all = Vec::new();
        leaves(&program(), "", &mut all);
        let has = |option: &str| {
            let own = option.split_once('/');
            all.iter().any(|(path, command)| {
                let of = own.is_none_or(|(name, _)| command.get_name() == name && !path.is_empty());
                let long = own.map_or(option, |(_, long)| long);
                of && command.get_arguments().any(|there| there.get_long() == Some(long))
            })
        };
        for option in HEADINGS.iter().flat_map(|(_, options)| options.split(' ')) {
            assert!(has(option), "there is no --{option}: remove it from HEADINGS");
        }
        let names: Vec<_> = all.iter().map(|(path, _)| path.as_str()).collect();
        for (path, _) in EXAMPLES {
            assert!(names.contains(&path), "{path}");
        }
    }

    #[test]
    fn every_subcommand_has_examples_and_each_is_a_call_of_it() {
        let mut all = Vec::new();
        leaves(&program(), "", &mut all);
        for (path, mut command) in all {
            let help = command.render_help().to_string();
            let (_, examples) = help.split_once("Examples:\n").unwrap();
            assert!(!examples.trim().is_empty(), "{path}");
            let examples = examples.replace("\\\n", "");
            assert!(help.lines().all(|line| line.len() <= 100), "{help}");
            for line in examples.lines().map(str::trim).filter(|line| !line.is_empty()) {
                assert!(line.starts_with(&format!("volery {path}")), "{line}");
                let call = line.split_once(" > ").map_or(line, |(call, _)| call);
                let parsed = program().try_get_matches_from(call.split_whitespace());
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }
}
