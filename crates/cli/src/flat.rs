//! Sets of options as arguments of the command line.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use clap::builder::{
    OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser as _,
};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use volery_options::{Arity, Field, OptionSet};

/// A choice of the options of a set.
pub(crate) trait Selection: Clone + fmt::Debug + Send + Sync + 'static {
    /// Whether the option `name` is among them: all are, unless it says otherwise.
    fn has(name: &str) -> bool {
        let _ = name;
        true
    }

    /// Whether an option that the set requires is required here, too.
    const REQUIRES: bool = true;
}

/// All options of a set.
impl Selection for () {}

/// The options of `S` that `W` chooses, as arguments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flat<S, W = ()>(pub(crate) S, PhantomData<W>);

impl<S, W> Flat<S, W> {
    /// The options with these values.
    pub(crate) const fn new(set: S) -> Self {
        Self(set, PhantomData)
    }
}

impl<S, W> Deref for Flat<S, W> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: OptionSet, W: Selection> Args for Flat<S, W> {
    fn augment_args(command: Command) -> Command {
        let fields = S::FIELDS.iter().filter(|field| W::has(field.name));
        let required = |field: &Field<S>| field.required && W::REQUIRES;
        command.args(fields.map(|field| argument(field).required(required(field))))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: OptionSet, W: Selection> FromArgMatches for Flat<S, W> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut options = Self::new(S::default());
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for field in S::FIELDS.iter().filter(|field| W::has(field.name)) {
            if field.arity == Arity::Switch {
                self.put(field, matches.get_flag(field.name).to_string().as_ref())?;
                continue;
            }
            for value in matches.get_raw(field.name).into_iter().flatten() {
                self.put(field, value)?;
            }
        }
        Ok(())
    }
}

impl<S, W> Flat<S, W> {
    /// Sets an option; the parser has tried the value before.
    fn put(&mut self, field: &Field<S>, value: &OsStr) -> Result<(), clap::Error> {
        let put = (field.put)(&mut self.0, value);
        put.map_err(|what| clap::Error::raw(clap::error::ErrorKind::ValueValidation, what))
    }
}

fn argument<S: OptionSet>(field: &'static Field<S>) -> Arg {
    let argument =
        Arg::new(field.name).long(field.long()).help(field.help()).help_heading(field.heading);
    let argument = match field.arity {
        Arity::Switch => return argument.action(ArgAction::SetTrue),
        Arity::Once => argument.action(ArgAction::Set),
        Arity::Many => argument.action(ArgAction::Append),
    };
    let argument = argument.value_name(field.placeholder);
    let argument = match field.default {
        Some(default) => argument.default_value(default),
        None => argument,
    };
    if !field.values.is_empty() {
        let values = field.values.iter().map(|(name, help)| {
            let value = PossibleValue::new(*name);
            match help.is_empty() {
                true => value,
                false => value.help(*help),
            }
        });
        return argument.value_parser(PossibleValuesParser::new(values));
    }
    argument.value_parser(OsStringValueParser::new().try_map(|text: OsString| {
        let tried = (field.put)(&mut S::default(), &text);
        tried.map(|()| text)
    }))
}
