//! The parts of the help that concern all subcommands: groups of options, examples, colours.

use clap::builder::styling::{AnsiColor, Style, Styles};
use clap::{Arg, ArgAction, Command};

/// The headings, each with the options that do not name their own: those of sets do. The help of a
/// subcommand lists them in the order of their first option.
const HEADINGS: [(&str, &str); 5] = [
    ("Peer", "role listen allow wait proxy max-connections idle"),
    ("Browsers", "gateway/to gateway/token"),
    (
        "Workers",
        "gateway step manifest ticket worker rule attempt work with-parent image namespace \
         work-claim identity-secret data-claim config-map pull-secret toleration k8s/memory cpu \
         driver-memory driver-cpu temporary deadline keep-jobs",
    ),
    ("Output", "out force"),
    ("Protocol", "n noise set k t field bits"),
];

/// The heading of all other options.
const OTHERS: &str = "Running";

/// The examples of the subcommands: behind `#` the path of one, and its calls.
const EXAMPLES: &str = include_str!("examples.txt");

/// The examples of a subcommand.
fn examples(path: &str) -> &'static str {
    let mut all = EXAMPLES.split("# ").filter_map(|some| some.split_once('\n'));
    all.find(|(name, _)| *name == path).map_or("", |(_, lines)| lines.trim_end())
}

/// Sets headings, examples and colours of the whole program.
pub(super) fn complete(program: Command) -> Command {
    program.styles(styles()).max_term_width(100).mut_subcommands(|command| below(command, ""))
}

fn below(command: Command, above: &str) -> Command {
    let path = format!("{above} {}", command.get_name()).trim_start().to_owned();
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
    let bold = Style::new().bold();
    let text = examples(&path).replace('\n', "\n  ");
    let own = match command.get_after_help() {
        Some(own) => format!("{own}\n\n"),
        None => String::new(),
    };
    command.after_help(format!("{own}{bold}Examples:{bold:#}\n  {text}"))
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
mod tests {
    use super::super::program;
    use super::*;

    /// All subcommands without others below them, with their paths.
    fn leaves(command: &Command, path: &str, all: &mut Vec<(String, Command)>) {
        for below in command.get_subcommands() {
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
        program().debug_assert();
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
        for path in EXAMPLES.lines().filter_map(|line| line.strip_prefix("# ")) {
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
