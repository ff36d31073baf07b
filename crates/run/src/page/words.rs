//! Numbers as people read them.

/// A whole number with a comma between groups of three digits.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun, which is one word in the singular; the plural ends in s.
pub(crate) fn things(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {noun}{s}", count(number))
}

/// A number of bytes with three digits, in decimal units.
pub(crate) fn bytes(number: u64) -> String {
    if number < 1000 {
        return things(number, "byte");
    }
    let mut value = number as f64;
    for unit in ["kB", "MB", "GB", "TB", "PB"] {
        value /= 1000.0;
        if value < 999.5 || unit == "PB" {
            return format!("{} {unit}", digits(value));
        }
    }
    unreachable!("the last unit takes every number")
}

/// A time with three digits.
pub(crate) fn seconds(value: f64) -> String {
    let whole = value.round() as u64;
    match value {
        ..0.0005 => "0 ms".to_owned(),
        ..0.9995 => format!("{:.0} ms", value * 1000.0),
        ..120.0 => format!("{} s", digits(value)),
        ..7200.0 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", count(whole / 3600), whole % 3600 / 60),
    }
}

/// A part of a whole, in percent.
pub(crate) fn share(part: f64, whole: f64) -> String {
    let percent = 100.0 * part / whole;
    match percent {
        _ if whole <= 0.0 => "–".to_owned(),
        ..=0.0 => "0 %".to_owned(),
        ..0.1 => "< 0.1 %".to_owned(),
        ..9.95 => format!("{percent:.1} %"),
        99.5..100.0 => "> 99 %".to_owned(),
        _ => format!("{percent:.0} %"),
    }
}

/// A probability of 2^log2 as one in so many.
pub(crate) fn one_in(log2: f64) -> String {
    if log2 >= 0.0 {
        return "no bound".to_owned();
    }
    let log10 = -log2 * std::f64::consts::LOG10_2;
    for (power, name) in [(15.0, ""), (12.0, " trillion"), (9.0, " billion"), (6.0, " million")] {
        if log10 >= power {
            return if name.is_empty() {
                format!("1 in 10^{log10:.0}")
            } else {
                format!("1 in {}{name}", digits(10_f64.powf(log10 - power)))
            };
        }
    }
    format!("1 in {}", count(10_f64.powf(log10).floor() as u64))
}

/// A number with three digits, or with all those before the point.
pub(crate) fn digits(value: f64) -> String {
    match value {
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        _ => count(value.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_people() {
        for (made, expected) in [
            (count(0), "0"),
            (count(999), "999"),
            (count(1000), "1,000"),
            (count(1_234_567), "1,234,567"),
            (count(u64::MAX), "18,446,744,073,709,551,615"),
            (things(1, "row"), "1 row"),
            (things(0, "row"), "0 rows"),
            (bytes(1), "1 byte"),
            (bytes(999), "999 bytes"),
            (bytes(1000), "1.00 kB"),
            (bytes(27_349_000), "27.3 MB"),
            (bytes(999_999), "1.00 MB"),
            (bytes(u64::MAX), "18,447 PB"),
            (seconds(0.0), "0 ms"),
            (seconds(0.0126), "13 ms"),
            (seconds(1.5), "1.50 s"),
            (seconds(119.9), "120 s"),
            (seconds(125.4), "2 min 5 s"),
            (seconds(7261.0), "2 h 1 min"),
            (share(0.0, 5.0), "0 %"),
            (share(1.0, 3.0), "33 %"),
            (share(1.0, 30_000.0), "< 0.1 %"),
            (share(4999.0, 5000.0), "> 99 %"),
            (share(5000.0, 5000.0), "100 %"),
            (share(1.0, 0.0), "–"),
            (one_in(-10.0), "1 in 1,024"),
            (one_in(-40.0), "1 in 1.10 trillion"),
            (one_in(-128.0), "1 in 10^39"),
            (one_in(0.0), "no bound"),
        ] {
            assert_eq!(made, expected);
        }
    }
}
