//! Makes the two files of `crates/cli/data`, with the same bytes every time.
//!
//! ```text
//! cargo run --example sample_data -- crates/cli/data
//! ```
//!
//! All persons are fictitious: names are drawn from lists, addresses end in domains reserved for
//! examples, and the telephone numbers are in a range that is never assigned.

use std::collections::HashSet;
use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;

/// Rows of `customers.csv` and of `loyalty.csv`.
const ROWS: (usize, usize) = (5000, 4000);

/// E-mail addresses that are in both files.
const COMMON: usize = 1800;

/// Common addresses whose postcode differs between the files.
const MOVED: usize = 150;

/// Addresses in both files that differ only in the case of their letters: they are different keys.
const OTHER_CASE: usize = 40;

const FIRST: [&str; 40] = [
    "Aïcha", "Anna", "Asha", "Béla", "Björn", "Carmen", "Chloé", "Daniel", "Dóra", "Elif", "Emma",
    "Faruk", "Giulia", "Grace", "Håkon", "Inês", "Ivan", "Jürgen", "Kenji", "Lena", "Łukasz",
    "Mária", "Mateo", "Maud", "Ngozi", "Noor", "Olga", "Pádraig", "Pavel", "Quentin", "René",
    "Rosa", "Sándor", "Şirin", "Siobhán", "Tariq", "Thi", "Uwe", "Yara", "Zoë",
];

const LAST: [&str; 40] = [
    "Adeyemi",
    "Andersson",
    "Becker",
    "Bianchi",
    "Çelik",
    "Costa",
    "D'Angelo",
    "de la Cruz",
    "Dubois",
    "Fernández",
    "García",
    "Haddad",
    "Horváth",
    "Ito",
    "Jansen",
    "Johansen",
    "Kowalczyk",
    "Kumar",
    "Lefèvre",
    "Lindqvist",
    "Martin",
    "Moreau",
    "Müller",
    "Nagy",
    "Nakamura",
    "Nguyễn",
    "Novák",
    "O'Brien",
    "Okafor",
    "Papadakis",
    "Pereira",
    "Rossi",
    "Sørensen",
    "Schmidt",
    "Silva",
    "Šimić",
    "Tóth",
    "van den Berg",
    "Weiß",
    "Yılmaz",
];

const CITIES: [(&str, &str); 12] = [
    ("01067", "Dresden"),
    ("02111", "Boston, MA"),
    ("06000", "Nice"),
    ("08001", "Barcelona"),
    ("10115", "Berlin"),
    ("1050-094", "Lisboa"),
    ("20121", "Milano"),
    ("30-001", "Kraków"),
    ("50667", "Köln"),
    ("75011", "Paris"),
    ("8001", "Zürich"),
    ("EC1A 1BB", "London"),
];

const NOTES: [&str; 6] =
    ["", "", "", "prefers post", "birthday, not name day", "asked for the \"gold\" card"];

const DOMAINS: [&str; 4] = ["example.org", "example.com", "mail.example.org", "shop.example.com"];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().collect();
    let [_, folder] = &arguments[..] else {
        return Err("usage: sample_data FOLDER".into());
    };
    for (name, text) in files() {
        fs::write(Path::new(folder).join(name), text)?;
    }
    Ok(())
}

/// Names and contents of the files.
fn files() -> [(&'static str, String); 2] {
    let mut random = Random(2016);
    let (customers, members) = ROWS;
    let people = people(&mut random, customers + members - COMMON);
    let (ours, others) = people.split_at(customers);

    let mut text = "customer_id,name,email,phone,postcode,city,signed_up\n".to_owned();
    for (i, person) in ours.iter().enumerate() {
        // Numbers with leading zeros: they are text and stay text.
        let id = format!("{:06}", 40 + 7 * i);
        let phone = format!("07700 900{:03}", random.below(1000));
        let date = date(&mut random);
        let (postcode, city) = CITIES[person.city];
        row(&mut text, &[&id, &person.name, &person.email, &phone, postcode, city, &date]);
    }
    let customers = text;

    // Every few customers, so that the common ones are spread over the file.
    let spread = |i: usize| &ours[i * ours.len() / (COMMON + OTHER_CASE)];
    let mut list: Vec<(String, usize)> = Vec::new();
    for i in 0..COMMON + OTHER_CASE {
        let person = spread(i);
        let moved = usize::from(i % (COMMON / MOVED) == 5 && i < COMMON);
        let email = match i < COMMON {
            true => person.email.clone(),
            false => capitalized(&person.email),
        };
        list.push((email, (person.city + moved) % CITIES.len()));
    }
    let rest = members - list.len();
    list.extend(others[..rest].iter().map(|person| (person.email.clone(), person.city)));
    random.shuffle(&mut list);

    let mut text = "email,postcode,joined,points,tier,note\n".to_owned();
    for (email, city) in &list {
        let points = random.below(25_000);
        let tier = ["basic", "silver", "gold"][(points / 10_000) as usize];
        let note = NOTES[random.below(NOTES.len() as u64) as usize];
        let (postcode, _) = CITIES[*city];
        let (joined, points) = (date(&mut random), points.to_string());
        row(&mut text, &[email, postcode, &joined, &points, tier, note]);
    }
    [("customers.csv", customers), ("loyalty.csv", text)]
}

struct Person {
    name: String,
    email: String,
    city: usize,
}

/// This many people with different e-mail addresses.
fn people(random: &mut Random, count: usize) -> Vec<Person> {
    let mut taken = HashSet::new();
    let mut people = Vec::with_capacity(count);
    while people.len() < count {
        let first = FIRST[random.below(FIRST.len() as u64) as usize];
        let last = LAST[random.below(LAST.len() as u64) as usize];
        let domain = DOMAINS[random.below(DOMAINS.len() as u64) as usize];
        let number = random.below(100);
        let email = match random.below(4) {
            // Addresses may hold letters of any script, and tags.
            0 => format!("{first}.{last}@{domain}"),
            1 => format!("{first}{number:02}@{domain}"),
            2 => format!("{first}.{last}+{number}@{domain}"),
            _ => format!("{last}_{number:03}@{domain}"),
        };
        let email = email.to_lowercase().replace(' ', ".");
        let name = match random.below(8) {
            0 => format!("{last}, {first}"),
            1 => format!("{first} \"{}\" {last}", &first.chars().take(2).collect::<String>()),
            _ => format!("{first} {last}"),
        };
        let city = random.below(CITIES.len() as u64) as usize;
        if taken.insert(email.clone()) {
            people.push(Person { name, email, city });
        }
    }
    people
}

/// The address with a capital first letter, as some people type it.
fn capitalized(email: &str) -> String {
    let mut rest = email.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    first.chain(rest).collect()
}

/// A day of 2019 to 2024.
fn date(random: &mut Random) -> String {
    let (year, month) = (2019 + random.below(6), 1 + random.below(12));
    format!("{year}-{month:02}-{:02}", 1 + random.below(28))
}

/// Appends a row; fields are quoted only where necessary.
fn row(text: &mut String, fields: &[&str]) {
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        if field.contains([',', '"']) {
            text.push('"');
            text.push_str(&field.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(field);
        }
    }
    text.push('\n');
}

/// Pseudorandom numbers, the same in every run: a counter in steps of an odd constant, mixed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        for _ in 0..3 {
            word = (word ^ word >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        }
        word ^ word >> 32
    }

    /// A number below `bound`, which is far below 2^64.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn the_committed_files_are_these() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
        for (name, text) in files() {
            let committed = fs::read_to_string(folder.join(name)).unwrap();
            assert!(committed == text, "{name} is out of date: make it again");
        }
    }

    #[test]
    fn they_hold_what_the_readme_says() {
        let [(_, customers), (_, loyalty)] = files();
        let emails = |text: &str, column: usize| -> Vec<String> {
            let rows = text.lines().skip(1);
            // A comma within quotes does not end a field.
            let field = |row: &str| {
                let mut quoted = false;
                let ends = row.char_indices().filter(|&(_, c)| {
                    quoted ^= c == '"';
                    c == ',' && !quoted
                });
                let ends: Vec<usize> = ends.map(|(i, _)| i).collect();
                let start = column.checked_sub(1).map_or(0, |before| ends[before] + 1);
                row[start..ends[column]].to_owned()
            };
            rows.map(field).collect()
        };
        let (ours, theirs) = (emails(&customers, 2), emails(&loyalty, 0));
        assert_eq!((ours.len(), theirs.len()), ROWS);
        let ours: HashSet<String> = ours.into_iter().collect();
        let distinct: HashSet<&String> = theirs.iter().collect();
        assert_eq!((ours.len(), distinct.len()), ROWS, "no address twice");
        let common = theirs.iter().filter(|email| ours.contains(*email)).count();
        assert_eq!(common, COMMON);
        let any_case = theirs.iter().filter(|email| ours.contains(&email.to_lowercase()));
        assert_eq!(any_case.count(), COMMON + OTHER_CASE);
    }
}
