//! Decimal numbers in fixed point: integers that count units of the last place.

use std::fmt::Write as _;

/// The most decimal places.
pub const MAX_DECIMALS: u32 = 18;

/// The reason why a text is no number in fixed point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecimalError {
    /// Not digits, with a point and digits or not, with a sign or not.
    NotANumber,
    /// More decimal places than there are.
    Places,
    /// Beyond 64 bits.
    Large,
}

/// The number of units of `10^-decimals` in a decimal number. Zeros behind its last place are no
/// places.
pub(crate) fn parse(text: &[u8], decimals: u32) -> Result<i64, DecimalError> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let point = digits.iter().position(|byte| *byte == b'.');
    let (whole, part) = match point {
        None => (digits, None),
        Some(point) => (&digits[..point], Some(&digits[point + 1..])),
    };
    let is_number = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if !is_number(whole) || !part.is_none_or(is_number) {
        return Err(DecimalError::NotANumber);
    }
    let part = part.unwrap_or_default();
    let used = part.iter().rposition(|byte| *byte != b'0');
    let part = &part[..used.map_or(0, |last| last + 1)];
    if part.len() > decimals as usize {
        return Err(DecimalError::Places);
    }
    let zeros = decimals as usize - part.len();
    let mut units = 0_i128;
    for digit in whole.iter().chain(part).map(|byte| byte - b'0') {
        units = units * 10 + i128::from(digit);
        if units > i128::from(i64::MAX) {
            return Err(DecimalError::Large);
        }
    }
    let units = 10_i128.pow(zeros as u32) * units;
    let units = i64::try_from(units).map_err(|_| DecimalError::Large)?;
    Ok(if negative { -units } else { units })
}

/// A number of units of `10^-decimals` as a decimal number, with all its places.
pub fn decimal(units: i64, decimals: u32) -> String {
    let mut text = String::new();
    if units < 0 {
        text.push('-');
    }
    let width = decimals as usize + 1;
    let digits = format!("{:0>width$}", units.unsigned_abs());
    let (whole, part) = digits.split_at(digits.len() - decimals as usize);
    text += whole;
    if !part.is_empty() {
        let _ = write!(text, ".{part}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_or_refused() {
        for (text, decimals, units) in [
            ("0", 0, Ok(0)),
            ("-0", 2, Ok(0)),
            ("+12", 2, Ok(1200)),
            ("-3.5", 1, Ok(-35)),
            ("3.50", 1, Ok(35)),
            ("3.05", 2, Ok(305)),
            ("007.000", 0, Ok(7)),
            ("9223372036854775807", 0, Ok(i64::MAX)),
            ("-9.223372036854775807", 18, Ok(-i64::MAX)),
            ("3.51", 1, Err(DecimalError::Places)),
            ("0.0000001", 6, Err(DecimalError::Places)),
            ("9223372036854775808", 0, Err(DecimalError::Large)),
            ("10", 18, Err(DecimalError::Large)),
            ("99999999999999999999999999999999999999999999", 0, Err(DecimalError::Large)),
            ("", 0, Err(DecimalError::NotANumber)),
            ("-", 0, Err(DecimalError::NotANumber)),
            (".5", 1, Err(DecimalError::NotANumber)),
            ("5.", 1, Err(DecimalError::NotANumber)),
            ("1e3", 0, Err(DecimalError::NotANumber)),
            (" 1", 0, Err(DecimalError::NotANumber)),
            ("1,000", 0, Err(DecimalError::NotANumber)),
            ("NaN", 0, Err(DecimalError::NotANumber)),
            ("--1", 0, Err(DecimalError::NotANumber)),
        ] {
            assert_eq!(parse(text.as_bytes(), decimals), units, "{text}");
        }
    }

    #[test]
    fn text_and_units_are_inverse() {
        for (units, decimals, text) in [
            (0, 0, "0"),
            (0, 2, "0.00"),
            (-5, 2, "-0.05"),
            (12_345, 2, "123.45"),
            (i64::MIN, 1, "-922337203685477580.8"),
            (i64::MAX, 18, "9.223372036854775807"),
        ] {
            assert_eq!(decimal(units, decimals), text);
            if units != i64::MIN {
                assert_eq!(parse(text.as_bytes(), decimals), Ok(units));
            }
        }
    }
}
