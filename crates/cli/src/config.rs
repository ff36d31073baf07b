//! Options from the environment and from a file, beside those of the command line.
//!
//! A value on the command line goes before one of the environment, and that before one of the file.
//! Values of the two lower levels become words of the command line, so that one parser checks all.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use volery_run::failure::{Failure, Result};

/// The option that names the file.
const FILE: &str = "config";

/// Options whose value is private: the environment of a process and a file of settings are no
/// places for it.
const PRIVATE: [&str; 1] = ["point"];

/// Options of which one run has one, beside those that the parser knows.
const ALTERNATIVES: [[&str; 2]; 1] = [["listen", "connect"]];

/// Adds the option for the file to every subcommand that has options.
pub(crate) fn add_option(command: Command) -> Command {
    let command = command.mut_subcommands(add_option);
    if !command.get_arguments().any(configurable) {
        return command;
    }
    command.arg(
        Arg::new(FILE)
            .long(FILE)
            .value_name("FILE.toml")
            .value_parser(clap::value_parser!(std::path::PathBuf))
            .help(
                "Read from this file any options that the command line does not set. Environment variables override the file: \
                 each option can also be set by a variable, such as VOLERY_TIMEOUT for --timeout",
            ),
    )
}

/// A command line with the values of all levels.
#[derive(Debug)]
pub(crate) struct Configuration {
    /// The words of the command line, with the name of the program.
    pub(crate) words: Vec<OsString>,
    added: Vec<AddedValue>,
}

/// A value that does not stand on the command line.
#[derive(Debug)]
struct AddedValue {
    /// The name of its option, without dashes.
    option: String,
    values: Vec<OsString>,
    /// The variable, or the file with the line.
    origin: String,
}

impl Configuration {
    /// The places that gave the values which a message is about, for a user who does not find them
    /// on the command line.
    pub(crate) fn origin(&self, message: &str) -> Option<String> {
        let named = |added: &&AddedValue| {
            let option = format!("--{}", added.option);
            let ends = |rest: &str| !rest.starts_with(|c: char| c == '-' || c.is_alphanumeric());
            let of_option =
                message.match_indices(&option).any(|(at, _)| ends(&message[at + option.len()..]));
            let of_value = added.values.iter().filter_map(|value| value.to_str());
            of_option
                || of_value.into_iter().any(|value| {
                    let rest = message.strip_prefix(value);
                    !value.is_empty() && rest.is_some_and(|rest| rest.starts_with(':'))
                })
        };
        let origins: Vec<_> = self.added.iter().filter(named).map(|added| &*added.origin).collect();
        (!origins.is_empty()).then(|| origins.join(", "))
    }
}

/// Adds to the words of a command line what the environment and the file set for its subcommand.
///
/// # Errors
/// A usage error that names the variable, or the file, line and key.
pub(crate) fn configure(
    program: &Command,
    words: Vec<OsString>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Configuration> {
    let mut path = vec![program];
    while let Some(next) =
        words.get(path.len()).and_then(|word| path[path.len() - 1].find_subcommand(word))
    {
        path.push(next);
    }
    let depth = path.len();
    let command = path[depth - 1];
    let mut configured = Configuration { words, added: Vec::new() };
    let has_file = command.get_arguments().any(|option| option.get_id() == FILE);
    // The first pass only asks which options there are: the second reports all errors.
    let first = command.clone().ignore_errors(true).no_binary_name(true);
    let Ok(matches) =
        first.try_get_matches_from(&configured.words[depth.min(configured.words.len())..])
    else {
        return Ok(configured);
    };
    if !has_file {
        return Ok(configured);
    }
    let mut given: Vec<&Arg> = command
        .get_arguments()
        .filter(|option| {
            let source = matches.value_source(option.get_id().as_str());
            source == Some(ValueSource::CommandLine)
        })
        .collect();
    let file = match matches.try_get_one::<std::path::PathBuf>(FILE) {
        Ok(Some(file)) => Some(file.as_os_str().to_owned()),
        _ => variable(&variable_name(FILE)).filter(|file| !file.is_empty()),
    };
    let from_file = file.map_or(Ok(Vec::new()), |file| read(Path::new(&file), &path))?;
    for level in [from_environment(command, variable)?, from_file] {
        let higher = given.clone();
        for added in level {
            let option = option_named(command, &added.option);
            let option = option.expect("a level has options of the command only");
            if !higher.iter().any(|higher| replaces(command, higher, option)) {
                configured.added.push(added);
            }
            given.push(option);
        }
    }
    let words = configured.added.iter().flat_map(|added| {
        let flag = option_named(command, &added.option).is_some_and(is_flag);
        added.values.iter().map(move |value| {
            let mut word = OsString::from(format!("--{}", added.option));
            if !flag {
                word.push("=");
                word.push(value);
            }
            word
        })
    });
    let words: Vec<_> = words.collect();
    configured.words.splice(depth..depth, words);
    Ok(configured)
}

/// Whether the option may stand in the environment and the file.
fn configurable(option: &Arg) -> bool {
    let name = option.get_long();
    name.is_some_and(|name| name != FILE && !PRIVATE.contains(&name))
        && !matches!(
            option.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        )
}

fn option_named<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|option| option.get_long() == Some(name))
}

fn is_flag(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::SetTrue | ArgAction::Count)
}

/// Whether one of the two options takes the place of the other: they are the same, or exclude each
/// other.
fn replaces(command: &Command, one: &Arg, other: &Arg) -> bool {
    let declared = |one: &Arg, other: &Arg| command.get_arg_conflicts_with(one).contains(&other);
    let id = |option: &Arg| option.get_id().as_str().to_owned();
    let known = |pair: [&str; 2]| pair.contains(&&*id(one)) && pair.contains(&&*id(other));
    one == other
        || declared(one, other)
        || declared(other, one)
        || ALTERNATIVES.into_iter().any(known)
}

fn variable_name(option: &str) -> String {
    format!("VOLERY_{}", option.to_uppercase().replace('-', "_"))
}

/// Variables that are almost those of options, each with the one that is meant.
pub(crate) fn misspelt(program: &Command, names: impl Iterator<Item = OsString>) -> Vec<String> {
    let mut known = vec![variable_name(FILE), "VOLERY_CPU".to_owned()];
    let mut commands = vec![program];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands());
        known.extend(command.get_arguments().filter_map(Arg::get_long).map(variable_name));
    }
    let names = names.filter_map(|name| name.into_string().ok());
    let ours = names.filter(|name| name.starts_with("VOLERY_") && !known.contains(name));
    let nearest = |name: &str| {
        let near = known.iter().map(|known| (strsim::damerau_levenshtein(name, known), known));
        near.filter(|(errors, _)| *errors <= 1 + name.len() / 16).min()
    };
    let note = |name: String| {
        nearest(&name).map(|(_, meant)| format!("{name} is no option; did you mean {meant}?"))
    };
    ours.filter_map(note).collect()
}

fn from_environment(
    command: &Command,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Vec<AddedValue>> {
    let mut all = Vec::new();
    for option in command.get_arguments().filter(|option| configurable(option)) {
        let name = option.get_long().unwrap_or_default();
        let origin = variable_name(name);
        let Some(value) = variable(&origin).filter(|value| !value.is_empty()) else {
            continue;
        };
        let values = match option.get_action() {
            ArgAction::SetTrue => switch(&value)
                .map(|on| flags(on.into()))
                .ok_or_else(|| Failure::usage(&origin, "neither true nor false"))?,
            ArgAction::Count => value
                .to_str()
                .and_then(|value| value.parse::<u8>().ok())
                .or_else(|| switch(&value).map(u8::from))
                .map(flags)
                .ok_or_else(|| {
                    Failure::usage(&origin, "neither a small number nor true nor false")
                })?,
            ArgAction::Append => match value.to_str() {
                Some(text) => {
                    text.lines().filter(|line| !line.is_empty()).map(OsString::from).collect()
                }
                None => vec![value],
            },
            _ => vec![value],
        };
        all.push(AddedValue { option: name.to_owned(), values, origin });
    }
    Ok(all)
}

/// The value of a flag in the environment.
fn switch(value: &OsStr) -> Option<bool> {
    match value.to_str()?.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// The values of a file for the last command of the path: those at the top, then those of its
/// table. The rest of the file is checked, too.
fn read(file: &Path, path: &[&Command]) -> Result<Vec<AddedValue>> {
    let refuse = |what: &dyn std::fmt::Display| {
        Failure::usage("--config", format_args!("{}: {what}", file.display()))
    };
    let text = std::fs::read_to_string(file).map_err(|error| refuse(&error))?;
    let source = Source { file, text: &text };
    let table = DeTable::parse(&text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        source.refuse(start, error.message())
    })?;
    let mut all = Vec::new();
    source.collect(table.get_ref(), path[0], Some(&path[1..]), &mut all)?;
    Ok(all)
}

/// The file that a message is about.
struct Source<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn origin(&self, at: usize) -> String {
        let before = self.text.as_bytes().iter().take(at);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        format!("{}:{line}", self.file.display())
    }

    fn refuse(&self, at: usize, what: impl std::fmt::Display) -> Failure {
        Failure::usage("--config", format_args!("{}: {what}", self.origin(at)))
    }

    /// Adds the values of a table for the last command of `path`, which begins below `command`;
    /// without a path the table is only checked.
    fn collect(
        &self,
        table: &DeTable<'_>,
        command: &Command,
        path: Option<&[&Command]>,
        all: &mut Vec<AddedValue>,
    ) -> Result<()> {
        let target = path.map(|path| path.last().map_or(command, |last| *last));
        // Tables last: they are more special than what stands above them.
        let (tables, values): (Vec<_>, Vec<_>) =
            table.iter().partition(|(_, value)| value.get_ref().is_table());
        for (key, value) in values.into_iter().chain(tables) {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            if let DeValue::Table(inner) = value.get_ref() {
                let below = command.find_subcommand(name).ok_or_else(|| {
                    self.refuse(at, format_args!("[{name}]: there is no such subcommand"))
                        .with_hint("'volery --help' lists the subcommands")
                })?;
                let path = path
                    .and_then(|path| path.split_first())
                    .filter(|(first, _)| first.get_name() == name)
                    .map(|(_, rest)| rest);
                self.collect(inner, below, path, all)?;
                continue;
            }
            let mut options = Vec::new();
            options_below(command, name, &mut options);
            let Some(first) = options.first() else {
                return Err(self.unknown(at, name, command));
            };
            // A value that one subcommand takes is right, though another may take none like it.
            let mut values = options.iter().map(|option| words(option, value));
            if let Some(Err(what)) =
                values.by_ref().find(Result::is_ok).or_else(|| Some(words(first, value)))
            {
                return Err(self.refuse(value.span().start, format_args!("{name}: {what}")));
            }
            if let Some(option) = target.and_then(|target| option_named(target, name)) {
                let values = words(option, value).map_err(|what| {
                    self.refuse(value.span().start, format_args!("{name}: {what}"))
                })?;
                all.retain(|added| added.option != name);
                all.push(AddedValue { option: name.to_owned(), values, origin: self.origin(at) });
            }
        }
        Ok(())
    }

    fn unknown(&self, at: usize, name: &str, command: &Command) -> Failure {
        if PRIVATE.contains(&name) {
            return self
                .refuse(at, format_args!("{name}: a private value has no place in this file"));
        }
        let of = match command.get_name() {
            "volery" => String::new(),
            name => format!(" of {name}"),
        };
        self.refuse(at, format_args!("{name}: there is no such option{of}"))
            .with_hint("keys are the long names of options, such as empty-keys; 'volery COMMAND --help' lists them")
    }
}

/// The options of this name of a command and of the subcommands below it.
fn options_below<'a>(command: &'a Command, name: &str, all: &mut Vec<&'a Arg>) {
    all.extend(option_named(command, name).filter(|option| configurable(option)));
    for below in command.get_subcommands() {
        options_below(below, name, all);
    }
}

/// The values that a value of a file stands for: those of an option, or one, which is empty, for
/// each time that a flag is given.
fn words(option: &Arg, value: &Spanned<DeValue<'_>>) -> Result<Vec<OsString>, String> {
    match (option.get_action(), value.get_ref()) {
        (ArgAction::SetTrue | ArgAction::Count, DeValue::Boolean(on)) => Ok(flags((*on).into())),
        (ArgAction::SetTrue, _) => Err("the value has to be true or false".to_owned()),
        (ArgAction::Count, DeValue::Integer(times)) => {
            let times = u8::from_str_radix(times.as_str(), times.radix());
            times.map(flags).map_err(|_| "the number is not from 0 to 255".to_owned())
        }
        (ArgAction::Count, _) => Err("the value has to be a number, true or false".to_owned()),
        (ArgAction::Append, DeValue::Array(entries)) => {
            entries.iter().map(|entry| word(entry.get_ref())).collect()
        }
        (_, DeValue::Array(_)) => Err("the option takes one value, not an array".to_owned()),
        (_, value) => word(value).map(|word| vec![word]),
    }
}

/// A flag given some times.
fn flags(times: u8) -> Vec<OsString> {
    vec![OsString::new(); times.into()]
}

fn word(value: &DeValue<'_>) -> Result<OsString, String> {
    match value {
        DeValue::String(text) => Ok(text.as_ref().into()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().into()),
        DeValue::Float(number) => Ok(number.as_str().into()),
        _ => Err("the value has to be a text or a decimal number".to_owned()),
    }
}

#[cfg(test)]
mod tests;
