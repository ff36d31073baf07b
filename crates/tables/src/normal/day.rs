//! `date`: days in a given format.

use std::fmt;

use chrono::NaiveDate;

/// A format: the text it was written as, and its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Literal(char),
    Number(Field),
    /// The English name of a month: in full, or its first three letters.
    MonthName {
        full: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

impl Format {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut characters = text.chars();
        while let Some(c) = characters.next() {
            parts.push(match (c, characters.clone().next()) {
                ('%', Some(letter)) => {
                    characters.next();
                    conversion(letter)?
                }
                ('%', None) => return Err(format!("the date format '{text}' ends in '%'")),
                _ => Part::Literal(c),
            });
        }
        let count = |field| parts.iter().filter(|part| part.field() == Some(field)).count();
        if [Field::Year, Field::Month, Field::Day].map(count) != [1; 3] {
            return Err(format!(
                "the date format '{text}' does not have the year (%Y), the month (%m, or %b for \
                 Jan, or %B for January) and the day (%d) once each, as in date=%d.%m.%Y"
            ));
        }
        let text = text.to_owned();
        Ok(Self { text, parts })
    }

    /// Appends the day, as `YYYY-MM-DD`.
    pub(super) fn apply(&self, text: &str, out: &mut String) -> Option<()> {
        let mut rest = text.trim();
        let (mut year, mut month, mut day) = (0, 0, 0);
        for (i, &part) in self.parts.iter().enumerate() {
            let value = match part {
                Part::Literal(c) => {
                    rest = rest.strip_prefix(c)?;
                    continue;
                }
                Part::MonthName { full } => month_name(&mut rest, full)?,
                Part::Number(field) => {
                    // Numbers side by side, as in %Y%m%d, have all their digits.
                    let mut beside = [i.wrapping_sub(1), i + 1].into_iter();
                    let is_number = |i| matches!(self.parts.get(i), Some(Part::Number(_)));
                    let fixed = field == Field::Year || beside.any(is_number);
                    number(&mut rest, field, fixed)?
                }
            };
            match part.field()? {
                Field::Year => year = value,
                Field::Month => month = value,
                Field::Day => day = value,
                Field::Hour if value > 23 => return None,
                // A leap second is the last of its minute.
                Field::Minute if value > 59 => return None,
                Field::Second if value > 60 => return None,
                Field::Hour | Field::Minute | Field::Second => {}
            }
        }
        if !rest.is_empty() || year == 0 {
            return None;
        }
        let day = NaiveDate::from_ymd_opt(year.try_into().ok()?, month, day)?;
        out.push_str(&day.to_string());
        Some(())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Part {
    fn field(self) -> Option<Field> {
        match self {
            Self::Literal(_) => None,
            Self::Number(field) => Some(field),
            Self::MonthName { .. } => Some(Field::Month),
        }
    }
}

fn conversion(letter: char) -> Result<Part, String> {
    Ok(match letter {
        'Y' => Part::Number(Field::Year),
        'm' => Part::Number(Field::Month),
        'd' => Part::Number(Field::Day),
        'H' => Part::Number(Field::Hour),
        'M' => Part::Number(Field::Minute),
        'S' => Part::Number(Field::Second),
        'b' => Part::MonthName { full: false },
        'B' => Part::MonthName { full: true },
        '%' => Part::Literal('%'),
        'y' => {
            return Err("'%y' leaves the century open: write years in full and use '%Y'".to_owned());
        }
        _ => {
            return Err(format!(
                "there is no '%{letter}' in date formats; there are %d %m %b %B %Y %H %M %S %%"
            ));
        }
    })
}

/// Takes a number of the digits that `field` has: as many as it can have where `fixed`, otherwise
/// one at least.
fn number(rest: &mut &str, field: Field, fixed: bool) -> Option<u32> {
    let most = if field == Field::Year { 4 } else { 2 };
    let found = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if found == 0 || fixed && found < most {
        return None;
    }
    let (digits, after) = rest.split_at(found);
    *rest = after;
    digits.parse().ok()
}

/// Takes the English name of a month, in any case of letters, and gives its number.
fn month_name(rest: &mut &str, full: bool) -> Option<u32> {
    for (number, name) in (1..).zip(MONTHS) {
        let name = if full { name } else { &name[..3] };
        if let Some((head, after)) = rest.split_at_checked(name.len())
            && head.eq_ignore_ascii_case(name)
        {
            *rest = after;
            return Some(number);
        }
    }
    None
}
