//! Long texts on several lines.

/// Lines of words, each at most `room` wide unless it is a single wider word.
pub(super) fn wrap(text: &str, room: f64, width: impl Fn(&str) -> f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one from the beginning");
        let longer = if line.is_empty() {
            word.to_owned()
        } else {
            format!("{line} {word}")
        };
        if line.is_empty() || width(&longer) <= room {
            *line = longer;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// The width of a text in letters of equal width.
#[expect(clippy::cast_precision_loss, reason = "texts are short")]
pub(super) fn letters(text: &str) -> f64 {
    text.chars().count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_long_as_they_may_be() {
        assert_eq!(wrap("a bb  ccc d", 4.0, letters), ["a bb", "ccc", "d"]);
        assert_eq!(wrap("abcdef gh", 3.0, letters), ["abcdef", "gh"]);
        assert_eq!(wrap("ä é ü", 5.0, letters), ["ä é ü"]);
        assert_eq!(wrap("", 5.0, letters), [""]);
    }
}
