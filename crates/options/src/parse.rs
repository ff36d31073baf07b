//! Parsers of values: `fn(&OsStr) -> Result<T, String>`.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::values;

/// The text of a value.
///
/// # Errors
/// If it is not UTF-8.
pub fn utf8(value: &OsStr) -> Result<&str, String> {
    value.to_str().ok_or_else(|| "is not UTF-8".to_owned())
}

/// A text.
///
/// # Errors
/// If it is not UTF-8.
pub fn string(value: &OsStr) -> Result<String, String> {
    utf8(value).map(str::to_owned)
}

/// A path, of any bytes.
///
/// # Errors
/// If it is empty.
pub fn path(value: &OsStr) -> Result<PathBuf, String> {
    match value.is_empty() {
        true => Err("is empty".to_owned()),
        false => Ok(value.into()),
    }
}

/// A value with a text form.
///
/// # Errors
/// The error of its type.
pub fn text<T: FromStr<Err: Display>>(value: &OsStr) -> Result<T, String> {
    utf8(value)?.parse().map_err(|error: T::Err| error.to_string())
}

/// Whether a switch is on.
///
/// # Errors
/// If it is neither `true` nor `false`.
pub fn switch(value: &OsStr) -> Result<bool, String> {
    text(value).map_err(|_| "give true or false".to_owned())
}

/// A count; see [`values::count`].
///
/// # Errors
/// If it is none.
pub fn count(value: &OsStr) -> Result<u64, String> {
    values::count(utf8(value)?)
}

/// A time; see [`values::time`].
///
/// # Errors
/// If it is none.
pub fn time(value: &OsStr) -> Result<Duration, String> {
    values::time(utf8(value)?)
}

/// A size in bytes; see [`values::size`].
///
/// # Errors
/// If it is none.
pub fn size(value: &OsStr) -> Result<u64, String> {
    values::size(utf8(value)?)
}

/// A whole number from `least` to `most`.
///
/// # Errors
/// If it is another one.
pub fn whole(value: &OsStr, least: u32, most: u32) -> Result<u32, String> {
    let number = utf8(value)?.parse().ok();
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("give a whole number from {least} to {most}"))
}

/// One of several values, by its name.
///
/// # Errors
/// The names, if it is none of them.
pub fn choice<T: Copy>(value: &OsStr, all: &[(&str, T)]) -> Result<T, String> {
    let found = all.iter().find(|(name, _)| value == *name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
        match &names[..] {
            [first @ .., last] if !first.is_empty() => {
                format!("choose {} or {last}", first.join(", "))
            }
            names => format!("choose {}", names.join("")),
        }
    })
}
