//! An option: a field of a struct, with its type, default, allowed values and one sentence.
//!
//! [`options!`] defines a struct and the table [`OptionSet::FIELDS`] of its options. A front end
//! (command line, Python, browser) reads the table and sets options by name and text, so that an
//! option is written once.
//!
//! ```
//! use volery_options::{Arity, OptionSet as _, parse};
//!
//! volery_options::options! {
//!     /// The options of a greeting.
//!     pub struct Greeting {
//!         /// Name to greet
//!         required name: String [String::new(), "Input", "NAME", parse::string];
//!         /// Number of greetings
//!         default times: u32 ["1", "Output", "N", parse::text];
//!         /// Greet in capital letters
//!         switch loud ["Output"];
//!     }
//! }
//!
//! let mut greeting = Greeting::default();
//! greeting.set("name", "ada".as_ref())?;
//! assert_eq!((&*greeting.name, greeting.times, greeting.loud), ("ada", 1, false));
//! assert!(greeting.set("times", "many".as_ref()).is_err());
//! assert_eq!(Greeting::FIELDS[0].help(), "Name to greet");
//! assert_eq!(Greeting::describe()[2].arity, Arity::Switch);
//! # Ok::<(), String>(())
//! ```
#![forbid(unsafe_code)]

pub mod parse;
pub mod values;

use std::ffi::{OsStr, OsString};

/// How often an option may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Once, without a value.
    Switch,
    /// Once, with a value.
    Once,
    /// Any number of times, each with a value.
    Many,
}

/// An allowed value of an option, and its help, which may be empty.
pub type AllowedValue = (&'static str, &'static str);

/// The definition of one option of the set `S`.
#[derive(Debug)]
pub struct Field<S> {
    /// The name of the field, in snake case: `rule_column`.
    pub name: &'static str,
    /// How often it may be given.
    pub arity: Arity,
    /// Whether it must be given.
    pub required: bool,
    /// The value without it, as text.
    pub default: Option<&'static str>,
    /// The heading under which the help lists it.
    pub heading: &'static str,
    /// The word that stands for a value in the help; empty for a switch.
    pub placeholder: &'static str,
    /// The allowed values; empty if they cannot be listed.
    pub values: &'static [AllowedValue],
    #[doc(hidden)]
    pub lines: &'static [&'static str],
    #[doc(hidden)]
    pub put: fn(&mut S, &OsStr) -> Result<(), String>,
}

impl<S> Field<S> {
    /// The help in one line, without a final full stop.
    pub fn help(&self) -> String {
        let lines: Vec<_> = self.lines.iter().map(|line| line.trim()).collect();
        lines.join(" ")
    }

    /// The name with hyphens, as on the command line: `rule-column`.
    pub fn long(&self) -> String {
        self.name.replace('_', "-")
    }
}

/// An option of any set, for a front end that lists options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The option's [`Field::name`].
    pub name: &'static str,
    /// The option's [`Field::arity`].
    pub arity: Arity,
    /// The option's [`Field::required`].
    pub required: bool,
    /// The option's [`Field::default`].
    pub default: Option<&'static str>,
    /// The option's [`Field::heading`].
    pub heading: &'static str,
    /// The names of the allowed values; empty if they cannot be listed.
    pub values: Vec<&'static str>,
    /// The option's [`Field::help`].
    pub help: String,
}

/// A struct whose fields are options. Made by [`options!`].
pub trait OptionSet: Clone + Default + Send + Sync + 'static {
    /// The options, in the order of the fields.
    const FIELDS: &'static [Field<Self>];

    /// The options, in the order of the fields.
    fn describe() -> Vec<Description> {
        let describe = |field: &Field<Self>| Description {
            name: field.name,
            arity: field.arity,
            required: field.required,
            default: field.default,
            heading: field.heading,
            values: field.values.iter().map(|(name, _)| *name).collect(),
            help: field.help(),
        };
        Self::FIELDS.iter().map(describe).collect()
    }

    /// Sets the option `name` from text; a switch takes `true` or `false`. An option of
    /// [`Arity::Many`] gets one more value. Returns whether the set has this option.
    ///
    /// # Errors
    /// The reason for which `value` is none of this option.
    fn set(&mut self, name: &str, value: &OsStr) -> Result<bool, String> {
        match Self::FIELDS.iter().find(|field| field.name == name) {
            Some(field) => (field.put)(self, value).map(|()| true),
            None => Ok(false),
        }
    }
}

/// Options by their names, each with a value: `("rule_column", "key")`. A switch has `true` or
/// `false`; an option of [`Arity::Many`] may come several times.
pub type NamedValues = [(String, OsString)];

/// Several sets of options that are filled together.
pub trait SetByName {
    /// Sets an option as [`OptionSet::set`] does.
    fn set_by_name(&mut self, name: &str, value: &OsStr) -> Result<bool, String>;
}

impl<S: OptionSet> SetByName for S {
    fn set_by_name(&mut self, name: &str, value: &OsStr) -> Result<bool, String> {
        self.set(name, value)
    }
}

/// Sets all of `named`, each in the first of `sets` that has it.
///
/// # Errors
/// The name of an option that no set has or whose value is none, and what is wrong.
pub fn fill<'a>(
    named: &'a NamedValues,
    sets: &mut [&mut dyn SetByName],
) -> Result<(), (&'a str, String)> {
    for (name, value) in named {
        let mut found = false;
        for set in &mut *sets {
            let done = set.set_by_name(name, value);
            found = done.map_err(|what| {
                let what = format!("invalid value '{}': {what}", value.display());
                (&**name, what)
            })?;
            if found {
                break;
            }
        }
        if !found {
            return Err((name, "there is no such option".to_owned()));
        }
    }
    Ok(())
}

/// Defines a struct of options and its table.
///
/// A field is `KIND NAME: TYPE [..];` under its help. The kinds:
///
/// * `required NAME: T [START, HEADING, PLACEHOLDER, PARSE]`: must be given; `START` is the value
///   before.
/// * `default NAME: T [TEXT, HEADING, PLACEHOLDER, PARSE]`: `TEXT` parsed, unless it is given.
/// * `once NAME: T [HEADING, PLACEHOLDER, PARSE]`: an `Option<T>`.
/// * `many NAME: T [HEADING, PLACEHOLDER, PARSE]`: a `Vec<T>`; `some` if one is required.
/// * `switch NAME [HEADING]`: a `bool`.
///
/// `PARSE` is a `fn(&OsStr) -> Result<T, String>`. A table of [`AllowedValue`]s may follow it.
#[macro_export]
macro_rules! options {
    ($(#[$meta:meta])* $vis:vis struct $Set:ident {
        $($(#[doc = $doc:literal])+ $kind:ident $field:ident $(: $type:ty)? [$($rest:tt)*];)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        $vis struct $Set {
            $($(#[doc = $doc])+ pub $field: $crate::option_type!($kind $($type)?),)*
        }

        impl Default for $Set {
            fn default() -> Self {
                Self { $($field: $crate::option_start!($kind [$($rest)*]),)* }
            }
        }

        impl $crate::OptionSet for $Set {
            const FIELDS: &'static [$crate::Field<Self>] = &[
                $($crate::option_field!($kind $Set $field [$($doc),+] [$($rest)*]),)*
            ];
        }
    };
}

/// Defines an enumeration of the allowed values of an option. A value is `VALUE = NAME,` under its
/// help, which has no final full stop.
#[macro_export]
macro_rules! choices {
    ($(#[$meta:meta])* $vis:vis enum $Choice:ident {
        $($(#[doc = $doc:literal])+ $Value:ident = $name:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $Choice {
            $($(#[doc = $doc])+ $Value,)+
        }

        impl $Choice {
            /// All names, with their help.
            pub const ALLOWED: &'static [$crate::AllowedValue] =
                &[$(($name, concat!($($doc),+).trim_ascii())),+];

            /// The value of this name.
            pub fn of(name: &::std::ffi::OsStr) -> Result<Self, String> {
                $crate::parse::choice(name, &[$(($name, Self::$Value)),+])
            }

            /// The name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Value => $name),+
                }
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! option_type {
    (switch) => { bool };
    (once $type:ty) => { Option<$type> };
    (many $type:ty) => { Vec<$type> };
    (some $type:ty) => { Vec<$type> };
    ($kind:ident $type:ty) => { $type };
}

#[doc(hidden)]
#[macro_export]
macro_rules! option_start {
    (required [$start:expr, $($rest:tt)*]) => {
        $start
    };
    (default [$text:literal, $heading:literal, $placeholder:literal, $parse:expr $(, $values:expr)?]) => {
        match ($parse)(::std::ffi::OsStr::new($text)) {
            Ok(value) => value,
            Err(error) => panic!("the default '{}': {error}", $text),
        }
    };
    ($kind:ident [$($rest:tt)*]) => {
        Default::default()
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! option_field {
    (switch $Set:ident $field:ident $docs:tt [$heading:literal]) => {
        $crate::option_field!(@ $field, Switch, false, None, $docs, $heading, "", [],
            |set: &mut $Set, value| {
                set.$field = $crate::parse::switch(value)?;
                Ok(())
            })
    };
    (once $Set:ident $field:ident $docs:tt
        [$heading:literal, $placeholder:literal, $parse:expr $(, $values:expr)?]) => {
        $crate::option_field!(@ $field, Once, false, None, $docs, $heading, $placeholder,
            [$($values)?], |set: &mut $Set, value| {
                set.$field = Some(($parse)(value)?);
                Ok(())
            })
    };
    (many $Set:ident $field:ident $docs:tt [$heading:literal, $placeholder:literal, $parse:expr]) => {
        $crate::option_field!(@ $field, Many, false, None, $docs, $heading, $placeholder, [],
            |set: &mut $Set, value| {
                set.$field.push(($parse)(value)?);
                Ok(())
            })
    };
    (some $Set:ident $field:ident $docs:tt [$heading:literal, $placeholder:literal, $parse:expr]) => {
        $crate::option_field!(@ $field, Many, true, None, $docs, $heading, $placeholder, [],
            |set: &mut $Set, value| {
                set.$field.push(($parse)(value)?);
                Ok(())
            })
    };
    (required $Set:ident $field:ident $docs:tt
        [$start:expr, $heading:literal, $placeholder:literal, $parse:expr $(, $values:expr)?]) => {
        $crate::option_field!(@ $field, Once, true, None, $docs, $heading, $placeholder,
            [$($values)?], |set: &mut $Set, value| {
                set.$field = ($parse)(value)?;
                Ok(())
            })
    };
    (default $Set:ident $field:ident $docs:tt
        [$text:literal, $heading:literal, $placeholder:literal, $parse:expr $(, $values:expr)?]) => {
        $crate::option_field!(@ $field, Once, false, Some($text), $docs, $heading, $placeholder,
            [$($values)?], |set: &mut $Set, value| {
                set.$field = ($parse)(value)?;
                Ok(())
            })
    };
    (@ $field:ident, $arity:ident, $required:literal, $default:expr, [$($doc:literal),+],
        $heading:literal, $placeholder:literal, [$($values:expr)?], $put:expr) => {
        $crate::Field {
            name: stringify!($field),
            arity: $crate::Arity::$arity,
            required: $required,
            default: $default,
            heading: $heading,
            placeholder: $placeholder,
            values: {
                const VALUES: &[$crate::AllowedValue] = $crate::option_values!($($values)?);
                VALUES
            },
            lines: &[$($doc),+],
            put: $put,
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! option_values {
    () => {
        &[]
    };
    ($values:expr) => {
        $values
    };
}
