//! HTML that is well-formed and escaped by construction.

use std::fmt::Write as _;

/// A piece of HTML. Text enters through `From`, which escapes it; tags through [`element`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Markup(String);

impl Markup {
    /// The HTML text.
    pub(crate) fn into_string(self) -> String {
        self.0
    }

    /// A style sheet: the only text that is not escaped, hence a constant of the program.
    pub(crate) fn style(sheet: &'static str) -> Self {
        Self(format!("<style>{sheet}</style>"))
    }
}

impl From<&str> for Markup {
    /// The text, escaped. Characters that are invisible or change the direction of other text, as
    /// in a file name that pretends to be another, are written as their code points.
    fn from(text: &str) -> Self {
        let mut out = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                '\'' => out.push_str("&#39;"),
                '\n' => out.push('\n'),
                '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}' => {
                    let _ = write!(out, "{}", character.escape_unicode());
                }
                character if character.is_control() => {
                    let _ = write!(out, "{}", character.escape_unicode());
                }
                character => out.push(character),
            }
        }
        Self(out)
    }
}

impl From<String> for Markup {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl<const N: usize> From<[Self; N]> for Markup {
    fn from(parts: [Self; N]) -> Self {
        parts.into_iter().collect()
    }
}

impl FromIterator<Self> for Markup {
    fn from_iter<I: IntoIterator<Item = Self>>(parts: I) -> Self {
        parts.into_iter().fold(Self::default(), |mut all, part| {
            all.0.push_str(&part.0);
            all
        })
    }
}

/// An element with attributes and content.
pub(crate) fn element(
    name: &'static str,
    attributes: &[(&'static str, &str)],
    content: impl Into<Markup>,
) -> Markup {
    let content = content.into();
    Markup(format!("{}{}</{name}>", open(name, attributes), content.0))
}

/// An element that has no content and no end tag.
pub(crate) fn void(name: &'static str, attributes: &[(&'static str, &str)]) -> Markup {
    Markup(open(name, attributes))
}

fn open(name: &str, attributes: &[(&str, &str)]) -> String {
    let attributes =
        attributes.iter().map(|(name, value)| format!(" {name}=\"{}\"", Markup::from(*value).0));
    format!("<{name}{}>", attributes.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_are_escaped() {
        let made = element("b", &[("title", "\"><i>")], "<script>&'\u{202e}\u{7}");
        assert_eq!(
            made.into_string(),
            "<b title=\"&quot;&gt;&lt;i&gt;\">&lt;script&gt;&amp;&#39;\\u{202e}\\u{7}</b>"
        );
    }
}
