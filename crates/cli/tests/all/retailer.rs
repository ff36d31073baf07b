//! A retailer and its partner match messy exports. A plain join of the clean values gives what is
//! expected: the generator knows them, and the command only the messy ones.

use std::path::Path;
use std::process::Command;

use crate::common::pair::{Folder, assert_matched, iso, line, pair, store};
use crate::common::table::{self, optional};
use parquet::data_type::ByteArray;
use parquet::record::Field;

/// A person as a clean table has it.
#[derive(Clone)]
struct Person {
    email: Option<String>,
    phone: Option<String>,
    name: String,
    /// Days since 1970-01-01.
    born: i32,
}

fn letters(mut number: u32) -> String {
    let mut text = String::new();
    for _ in 0..3 {
        text.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
    }
    text
}

fn person(i: u32) -> Person {
    let first = ["Zoë", "Jürgen", "Ana-María", "François", "Ada"][i as usize % 5];
    Person {
        email: Some(format!("kunde.{i}@example.org")),
        phone: Some(format!("+49151{}", 12_345_678 + 97 * i)),
        name: format!("{first} Müller-{}", letters(i)),
        born: 4000 + (37 * i % 9000) as i32,
    }
}

/// The text with its accents apart from their letters.
fn decomposed(text: &str) -> String {
    let pairs = [("ü", "u\u{308}"), ("ë", "e\u{308}"), ("í", "i\u{301}"), ("ç", "c\u{327}")];
    pairs.iter().fold(text.to_owned(), |text, (one, two)| text.replace(one, two))
}

/// How people write it.
fn messy(person: &Person, kind: u32) -> [String; 3] {
    let email = person.email.clone().unwrap_or_default();
    let email = match kind % 3 {
        0 => email,
        1 => email.to_uppercase(),
        _ => format!(" {} ", email.replace("kunde", "Kunde")),
    };
    let email = if email.trim().is_empty() { String::new() } else { email };
    let phone = person.phone.as_ref().map_or(String::new(), |phone| {
        let (area, rest) = phone[3..].split_at(3);
        match kind % 4 {
            0 => format!("+49 {area} {rest}"),
            1 => format!("0049 (0){area} {}-{}", &rest[..4], &rest[4..]),
            2 => format!("(0){area} / {rest}"),
            _ => format!("0{area}{rest}"),
        }
    });
    let name = match kind % 3 {
        0 => decomposed(&person.name),
        1 => format!("  {} ", person.name.to_uppercase()),
        _ => person.name.replace(' ', "  "),
    };
    [email, phone, name]
}

/// A customer of the partner.
struct Member {
    person: Person,
    score: i64,
    since: Option<i32>,
}

/// Three orders each of persons 0 to 89.
fn orders() -> Vec<Person> {
    let order = |i: u32| {
        let mut person = person(i % 90);
        // Some customers have left out one or the other.
        if i % 7 == 3 {
            person.email = None;
        }
        if i % 11 == 5 {
            person.phone = None;
        }
        person
    };
    (0..270).map(order).collect()
}

/// Persons 60 to 149, of whom the two tables know different things, some twice.
fn members() -> Vec<Member> {
    let member = |i: u32| {
        let number = 60 + i % 90;
        let (mut person, other) = (person(number), person(number + 1000));
        match number % 5 {
            0 => {}
            1 => person.email = other.email,
            2 => (person.email, person.phone) = (None, other.phone),
            3 => person.phone = None,
            _ => person = other,
        }
        Member {
            person,
            score: i64::from(i) - 50,
            since: (!i.is_multiple_of(4)).then_some(15_000 + i as i32),
        }
    };
    (0..120).map(member).collect()
}

/// Writes the partner's folder, a file for each region, and returns the members in its order.
fn write_members(folder: &Folder) -> (String, Vec<Member>) {
    let root = folder.path("members");
    let (north, south): (Vec<_>, Vec<_>) =
        members().into_iter().enumerate().partition(|(i, _)| i % 3 > 0);
    let mut all = Vec::new();
    for (region, members) in [("north", north), ("south", south)] {
        let place = format!("{root}/region={region}");
        std::fs::create_dir_all(&place).unwrap();
        let members: Vec<Member> = members.into_iter().map(|(_, member)| member).collect();
        let fields: Vec<_> = (0..).zip(&members).map(|(i, m)| messy(&m.person, i + 1)).collect();
        let text = |name: &str, column: usize| {
            let values = fields.iter().map(|fields| {
                let field = &fields[column];
                (!field.is_empty()).then(|| ByteArray::from(field.as_str()))
            });
            optional(&format!("binary {name} (STRING)"), values)
        };
        let columns = [
            text("mail", 0),
            text("tel", 1),
            text("full_name", 2),
            optional("int32 birthday (DATE)", members.iter().map(|m| Some(m.person.born))),
            optional("int64 score", members.iter().map(|m| Some(m.score))),
            optional("int32 since (DATE)", members.iter().map(|m| m.since)),
        ];
        store(&format!("{place}/part-0.parquet"), &columns);
        all.extend(members);
    }
    (root, all)
}

/// For each order the row of the member that it matches: by e-mail address, else by telephone, else
/// by name and birthday.
fn joined(orders: &[Person], members: &[Member]) -> Vec<Option<usize>> {
    let first = |same: &dyn Fn(&Person) -> bool| members.iter().position(|m| same(&m.person));
    let of = |order: &Person| {
        first(&|m| order.email.is_some() && m.email == order.email)
            .or_else(|| first(&|m| order.phone.is_some() && m.phone == order.phone))
            .or_else(|| first(&|m| (&m.name, m.born) == (&order.name, order.born)))
    };
    orders.iter().map(of).collect()
}

#[test]
fn a_retailer_finds_its_customers() {
    let folder = Folder::new();
    let (members_folder, members) = write_members(&folder);
    let orders = orders();
    let mut text = "order,email,phone,name,born\n".to_owned();
    let mut rows = Vec::new();
    for (i, order) in orders.iter().enumerate() {
        let [email, phone, name] = messy(order, i as u32);
        let fields = [i.to_string(), email, phone, name, iso(order.born)];
        text += &line(&fields, ',');
        rows.push(fields);
    }
    let input = folder.write("orders.csv", text);
    assert!(Command::new("gzip").arg(&input).status().unwrap().success());
    let input = format!("{input}.gz");

    let matched = joined(&orders, &members);
    for kind in [0, 1] {
        // Each key finds somebody.
        let same = |i: usize, j: usize| match kind {
            0 => orders[i].email.is_some() && orders[i].email == members[j].person.email,
            _ => orders[i].phone.is_some() && orders[i].phone == members[j].person.phone,
        };
        let found = (0..).zip(&matched).filter_map(|(i, j)| j.map(|j| same(i, j)));
        let found: Vec<_> = found.collect();
        assert!(found.contains(&true) && found.contains(&false));
    }
    assert!(matched.contains(&None));
    let value = |i: usize| {
        let member = matched[i].map(|row| &members[row]);
        let since = member.and_then(|member| member.since).map_or(String::new(), iso);
        [member.map_or(String::new(), |member| member.score.to_string()), since]
    };
    let expected: Vec<Vec<String>> = rows
        .iter()
        .enumerate()
        .map(|(i, fields)| fields.iter().cloned().chain(value(i)).collect())
        .collect();

    let sender = [
        "--input",
        &members_folder,
        "--key",
        "mail:email",
        "--or",
        "tel:e164=DE",
        "--or",
        "full_name:name,birthday:date",
        "--value",
        "score,since",
    ];
    for name in ["out.csv", "out.parquet"] {
        let out = folder.path(name);
        let receiver = [
            "--input",
            &input,
            "--key",
            "email:email",
            "--or",
            "phone:e164=DE",
            "--or",
            "name:name,born:date",
            "--left",
            "--out",
            &out,
        ];
        assert_matched(&pair("lookup", &sender, &receiver));
    }
    let mut csv = "order,email,phone,name,born,score,since\n".to_owned();
    csv.extend(expected.iter().map(|fields| line(fields, ',')));
    assert_eq!(folder.read("out.csv"), csv);

    let (columns, found) = table::load(Path::new(&folder.path("out.parquet")));
    assert_eq!(columns.len(), 7);
    assert!(
        columns[5].contains("INT64 score") && columns[6].contains("INT32 since (DATE)"),
        "{columns:?}"
    );
    let shown = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Long(number) => number.to_string(),
        Field::Date(day) => iso(*day),
        Field::Str(text) => text.clone(),
        Field::Bytes(bytes) => String::from_utf8(bytes.data().to_vec()).unwrap(),
        other => panic!("no {other:?} was written"),
    };
    let found: Vec<Vec<_>> = found
        .iter()
        .map(|row| row.get_column_iter().map(|(_, field)| shown(field)).collect())
        .collect();
    assert_eq!(found, expected);
}
