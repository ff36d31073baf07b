//! Numbers, times and sizes as people write them.

use std::time::Duration;

/// Parses a count: `1000000`, `1_000_000`, `1e6`, `10M`, `1.5k`, `2^20`.
pub fn count(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a count, such as 1000000, 1_000_000, 1e6, 10M or 2^20");
    if let Some((base, exponent)) = text.split_once('^') {
        let exponent = digits(exponent).and_then(|exponent| u32::try_from(exponent).ok());
        let (base, exponent) = digits(base).zip(exponent).ok_or_else(wrong)?;
        return base.checked_pow(exponent).ok_or_else(|| too_large(text));
    }
    let (number, zeros) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 3),
        Some(b'M') => (&text[..text.len() - 1], 6),
        Some(b'G') => (&text[..text.len() - 1], 9),
        _ => match text.split_once(['e', 'E']) {
            Some((number, exponent)) => {
                let exponent = digits(exponent).ok_or_else(wrong)?;
                (number, u32::try_from(exponent).map_err(|_| too_large(text))?)
            }
            None => (text, 0),
        },
    };
    let unit = 10_u64.checked_pow(zeros).ok_or_else(|| too_large(text));
    scaled(number, unit).map_err(|fault| fault.describe(text, wrong))
}

/// Parses a time: `90`, `90s`, `2m30s`, `1h`, `1d`; a plain number is seconds. At least a second.
pub fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a time, such as 90, 90s, 2m30s or 1h");
    let mut rest = text;
    let mut total = 0_u64;
    let mut last = u64::MAX;
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_ascii_alphabetic());
        let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
        let unit = match after.bytes().next() {
            Some(b'd') => 86_400,
            Some(b'h') => 3600,
            Some(b'm') => 60,
            Some(b's') => 1,
            None if last == u64::MAX => 1,
            _ => return Err(wrong()),
        };
        // Units get smaller, so that `1s1h` and `1m1m` are mistakes.
        if unit >= last {
            return Err(wrong());
        }
        last = unit;
        let part = digits(number).ok_or_else(wrong)?.checked_mul(unit);
        total = part
            .and_then(|part| total.checked_add(part))
            .filter(|total| *total <= u64::from(u32::MAX))
            .ok_or_else(|| too_large(text))?;
        rest = after.get(1..).unwrap_or_default();
    }
    match total {
        0 if text.is_empty() => Err(wrong()),
        0 => Err("a time is at least one second".to_owned()),
        seconds => Ok(Duration::from_secs(seconds)),
    }
}

/// Parses a size in bytes: `2GiB`, `500MB` or `500M`, `1.5GB`, `64KiB`, `1000000`.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a size, such as 2GiB, 500MB or 1000000 (bytes)");
    let end = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    scaled(number.trim_end(), Ok(unit)).map_err(|fault| fault.describe(text, wrong))
}

/// Why a number has no value.
enum Fault {
    Form,
    TooLarge,
}

impl Fault {
    fn describe(self, text: &str, wrong: impl Fn() -> String) -> String {
        match self {
            Self::Form => wrong(),
            Self::TooLarge => too_large(text),
        }
    }
}

fn too_large(text: &str) -> String {
    format!("'{text}' is too large")
}

/// A decimal number, perhaps with a fraction, times `unit`; the product is a whole number.
fn scaled(number: &str, unit: Result<u64, String>) -> Result<u64, Fault> {
    let unit = unit.map_err(|_| Fault::TooLarge)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let places = u32::try_from(fraction.len()).map_err(|_| Fault::Form)?;
    let (whole, fraction) = digits(whole).zip(digits(fraction)).ok_or(Fault::Form)?;
    let parts = 10_u64.checked_pow(places).ok_or(Fault::Form)?;
    let product = u128::from(fraction) * u128::from(unit);
    if product % u128::from(parts) != 0 {
        return Err(Fault::Form);
    }
    let small = u64::try_from(product / u128::from(parts)).map_err(|_| Fault::TooLarge)?;
    let large = whole.checked_mul(unit).ok_or(Fault::TooLarge)?;
    large.checked_add(small).ok_or(Fault::TooLarge)
}

/// Decimal digits, with underscores between them.
fn digits(text: &str) -> Option<u64> {
    let is_form = text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    // More digits than fit are no number that anyone means.
    is_form.then(|| text.replace('_', "").parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        for (text, value) in [
            ("0", 0),
            ("10_000_000", 10_000_000),
            ("1e6", 1_000_000),
            ("1E3", 1000),
            ("10M", 10_000_000),
            ("1.5k", 1500),
            ("2.5e1", 25),
            ("3G", 3_000_000_000),
            ("2^20", 1 << 20),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(count(text), Ok(value), "{text}");
        }
        let bad = "_|_1|1_|-1|+1|0x10| 5|1e|e6|M|1.5|1.2345k|2^|^2|2^64|1e30|1e-3|\
                   99999999999999999999G|1m|1 M|1e6k|\u{0661}|1\u{20ac}|";
        for bad in bad.split('|') {
            assert!(count(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times() {
        for (text, seconds) in [
            ("1", 1),
            ("90", 90),
            ("90s", 90),
            ("2m30s", 150),
            ("1h", 3600),
            ("1d2h", 93_600),
            ("4294967295", u32::MAX.into()),
        ] {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        let bad = "0|0s|-1|1.5|1w|s|1s1h|1m1m|1h30|4294967296|99999999999999999999d|1 s|";
        for bad in bad.split('|') {
            assert!(time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("1000", 1000),
            ("2GiB", 2 << 30),
            ("2gib", 2 << 30),
            ("500MB", 500_000_000),
            ("200M", 200_000_000),
            ("2g", 2_000_000_000),
            ("1.5 GB", 1_500_000_000),
            ("64KiB", 65_536),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "GB", "2X", "-1", "1.5", "1e6", "99999999999TB", "2GiBB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
