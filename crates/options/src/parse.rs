//! Parsers of values: `fn(&OsStr) -> Result<T, String>`.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::values;

/// The text of a value.
pub fn utf8(value: &OsStr) -> Result<&str, String> {
    value.to_str().ok_or_else(|| "is not UTF-8".to_owned())
}

/// A text.
pub fn string(value: &OsStr) -> Result<String, String> {
    utf8(value).map(str::to_owned)
}

/// A path, of any bytes, but no URL.
pub fn path(value: &OsStr) -> Result<PathBuf, String> {
    if value.is_empty() {
        return Err("is empty".to_owned());
    }
    let url = value.to_str().and_then(|text| text.split_once("://"));
    let is_scheme = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let Some((scheme, rest)) = url.filter(|(scheme, _)| is_scheme(scheme)) else {
        return Ok(value.into());
    };
    let command = match scheme {
        "file" => return Err(format!("is a URL; write {rest}")),
        "s3" | "s3a" => format!("aws s3 cp s3://{rest} -"),
        "gs" => format!("gcloud storage cat gs://{rest}"),
        "http" | "https" => format!("curl --fail {scheme}://{rest}"),
        _ => return Err("is a URL; copy it to a file first".to_owned()),
    };
    Err(format!(
        "is a URL, not a file; write '{command} | volery .. --input - --format csv' (or parquet)"
    ))
}

/// A value with a text form.
pub fn text<T: FromStr<Err: Display>>(value: &OsStr) -> Result<T, String> {
    utf8(value)?.parse().map_err(|error: T::Err| error.to_string())
}

/// Whether a switch is on.
pub fn switch(value: &OsStr) -> Result<bool, String> {
    text(value).map_err(|_| "give true or false".to_owned())
}

/// A count; see [`values::count`].
pub fn count(value: &OsStr) -> Result<u64, String> {
    values::count(utf8(value)?)
}

/// A time; see [`values::time`].
pub fn time(value: &OsStr) -> Result<Duration, String> {
    values::time(utf8(value)?)
}

/// A size in bytes; see [`values::size`].
pub fn size(value: &OsStr) -> Result<u64, String> {
    values::size(utf8(value)?)
}

/// A whole number from `least` to `most`.
pub fn whole(value: &OsStr, least: u32, most: u32) -> Result<u32, String> {
    let number = utf8(value)?.parse().ok();
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("give a whole number from {least} to {most}"))
}

/// One of several values, by its name.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_no_path_and_is_answered_with_a_command() {
        for (text, part) in [
            ("s3://b/k.csv", "'aws s3 cp s3://b/k.csv - | volery .. --input -"),
            ("https://a.example/k", "curl --fail https://a.example/k |"),
            ("file:///tmp/k", "write /tmp/k"),
            ("hdfs://n/k", "copy it to a file"),
        ] {
            let refused = path(text.as_ref());
            assert!(refused.as_ref().is_err_and(|what| what.contains(part)), "{refused:?}");
        }
        assert!(path("./s3://b".as_ref()).is_ok());
    }
}
