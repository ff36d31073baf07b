//! No protocol is forgotten: every public function of the library that talks is run by a member of the cast.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;

use volery_hostile::cast;

/// The source folders of the crates that talk, from the root of the workspace.
const CRATES: [(&str, &str); 5] = [
    ("channel", "crates/channel/src"),
    ("ot", "crates/ot/src"),
    ("pcg", "crates/pcg/src"),
    ("psi", "crates/psi/src"),
    ("experiments", "experiments/src"),
];

/// A member of the cast, and the functions that it runs. Those of a trait's implementation are here as well: they are
/// called through the trait.
const RUN: &[(&str, &[&str])] = &[
    ("handshake", &["channel::handshake::handshake"]),
    ("base OT", &["ot::base::send", "ot::base::receive"]),
    (
        "iknp",
        &[
            "ot::iknp::Sender::setup",
            "ot::iknp::Sender::extend",
            "ot::iknp::Receiver::setup",
            "ot::iknp::Receiver::extend",
        ],
    ),
    (
        "softspoken 8",
        &[
            "ot::softspoken::Sender::setup",
            "ot::softspoken::Sender::extend",
            "ot::softspoken::Receiver::setup",
            "ot::softspoken::Receiver::extend",
        ],
    ),
    (
        "correlated OT",
        &[
            "ot::flavour::Sender::correlated",
            "ot::flavour::Receiver::correlated",
        ],
    ),
    (
        "correlated OT, chosen choices",
        &[
            "ot::flavour::Sender::correlated_chosen",
            "ot::flavour::Receiver::correlated_chosen",
        ],
    ),
    (
        "random OT",
        &[
            "ot::flavour::Sender::random",
            "ot::flavour::Receiver::random",
        ],
    ),
    (
        "random OT, chosen choices",
        &[
            "ot::flavour::Sender::random_chosen",
            "ot::flavour::Receiver::random_chosen",
        ],
    ),
    (
        "OT of chosen blocks",
        &[
            "ot::flavour::Sender::chosen",
            "ot::flavour::Receiver::chosen",
        ],
    ),
    (
        "OT of chosen strings",
        &[
            "ot::flavour::Sender::chosen_bytes",
            "ot::flavour::Receiver::chosen_bytes",
        ],
    ),
    (
        "random OT of n - 1",
        &["pcg::rot::Trees::send", "pcg::rot::receive"],
    ),
    (
        "point function",
        &[
            "pcg::spfss::send",
            "pcg::spfss::receive",
            "pcg::spfss::SenderKey::generate",
            "pcg::spfss::ReceiverKey::generate",
        ],
    ),
    (
        "half-trees, hashed",
        &["pcg::single::send", "pcg::single::receive"],
    ),
    (
        "points anywhere",
        &[
            "pcg::mpfss::send",
            "pcg::mpfss::receive",
            "pcg::correlation::Vole::key_shares",
            "pcg::correlation::Vole::value_shares",
        ],
    ),
    (
        "product, z64",
        &[
            "pcg::gilboa::Sender::setup",
            "pcg::gilboa::Sender::multiply",
            "pcg::gilboa::Receiver::setup",
            "pcg::gilboa::Receiver::multiply",
        ],
    ),
    (
        "checked product, fp61",
        &[
            "pcg::gilboa::Sender::multiply_checked",
            "pcg::gilboa::Receiver::multiply_checked",
        ],
    ),
    (
        "chosen inputs",
        &["pcg::chosen::send", "pcg::chosen::receive"],
    ),
    (
        "chosen input",
        &["pcg::chosen::send_input", "pcg::chosen::receive_input"],
    ),
    (
        "cot, malicious, regular, half",
        &[
            "pcg::cot::Sender::setup",
            "pcg::cot::Sender::prepare",
            "pcg::cot::Sender::extend",
            "pcg::cot::Receiver::setup",
            "pcg::cot::Receiver::prepare",
            "pcg::cot::Receiver::extend",
            "pcg::bootstrap::shares::single::Sender::make_next",
            "pcg::bootstrap::shares::single::Receiver::make_next",
            "pcg::correlation::Cot::key_shares",
            "pcg::correlation::Cot::value_shares",
        ],
    ),
    (
        "vole fp61, malicious, regular, half",
        &[
            "pcg::vole::Sender::setup",
            "pcg::vole::Sender::prepare",
            "pcg::vole::Sender::extend",
            "pcg::vole::Receiver::setup",
            "pcg::vole::Receiver::prepare",
            "pcg::vole::Receiver::extend",
            "pcg::vole::base::GilboaValues::draw",
            "pcg::vole::base::GilboaKey::draw",
        ],
    ),
    (
        "vole gf128, malicious, regular, half",
        &[
            "ot::softspoken::Sender::setup_for_scalar",
            "pcg::vole::base::PackedValues::draw",
            "pcg::vole::base::PackedKey::draw",
        ],
    ),
    (
        "oprf",
        &[
            "psi::oprf::Sender::setup",
            "psi::oprf::Sender::extend",
            "psi::oprf::Receiver::setup",
            "psi::oprf::Receiver::extend",
        ],
    ),
    (
        "intersection",
        &[
            "psi::halves::Sender::setup",
            "psi::halves::Receiver::setup",
            "psi::intersect::Sender::intersect",
            "psi::intersect::Receiver::intersect",
            "psi::oprf::Sender::extend_watched",
            "psi::oprf::Receiver::extend_streamed",
        ],
    ),
    (
        "search",
        &[
            "psi::lookup::Sender::answer",
            "psi::lookup::Receiver::search",
        ],
    ),
    (
        "naive hashing",
        &["experiments::naive::send", "experiments::naive::receive"],
    ),
    (
        "1-out-of-256 OT",
        &[
            "experiments::kk13::Sender::setup",
            "experiments::kk13::Sender::extend",
            "experiments::kk13::Receiver::setup",
            "experiments::kk13::Receiver::extend",
        ],
    ),
    (
        "pssz",
        &[
            "experiments::pssz::Sender::setup",
            "experiments::pssz::Sender::run",
            "experiments::pssz::Receiver::setup",
            "experiments::pssz::Receiver::run",
        ],
    ),
    (
        "hybrid, by the oprf",
        &[
            "experiments::hybrid::Sender::setup",
            "experiments::hybrid::Sender::run",
            "experiments::hybrid::Receiver::setup",
            "experiments::hybrid::Receiver::run",
        ],
    ),
];

/// Functions that take a channel and are no protocol, and why.
const NO_PROTOCOL: &[(&str, &[&str])] = &[
    (
        "runs two parties that it is given",
        &[
            "channel::parties::run_two_parties",
            "channel::parties::run_two_parties_with_stats",
            "channel::parties::run_two_parties_tcp",
            "channel::parties::run_two_channels",
        ],
    ),
    (
        "hands the call on",
        &["ot::&mut C::extend", "ot::Box::extend"],
    ),
    (
        "sends nothing",
        &[
            "ot::ideal::Sender::extend",
            "ot::ideal::Receiver::extend",
            "pcg::stock::Sender::extend",
            "pcg::stock::Receiver::extend",
        ],
    ),
];

#[test]
fn every_function_that_talks_is_in_the_cast() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeSet::new();
    for (name, folder) in CRATES {
        collect(name, &root.join(folder), &mut found);
    }
    // What this scan must see, or it sees nothing.
    assert!(found.contains("pcg::cot::Sender::extend") && found.len() > 80);

    let members: HashSet<_> = cast().into_iter().map(|protocol| protocol.name).collect();
    let mut listed = BTreeSet::new();
    for (member, functions) in RUN {
        assert!(members.contains(*member), "{member:?} is not in the cast");
        listed.extend(functions.iter().map(|function| (*function).to_owned()));
    }
    for (_, functions) in NO_PROTOCOL {
        listed.extend(functions.iter().map(|function| (*function).to_owned()));
    }
    let missing: Vec<_> = found.difference(&listed).collect();
    assert!(
        missing.is_empty(),
        "these functions talk to a peer, and nothing attacks them: {missing:#?}\nAdd a protocol that calls each of them to \
         hostile/src/cast, and a row to the table RUN of this test; or, if it is no protocol, a row with the reason to \
         NO_PROTOCOL."
    );
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(
        gone.is_empty(),
        "these functions are listed here and are nowhere: {gone:#?}\nTake them out of the tables."
    );
}

/// The functions of all files of a folder.
fn collect(module: &str, folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if name == "tests" || name == "cheating" {
            continue;
        }
        let inner = match name.as_str() {
            "lib" | "mod" => module.to_owned(),
            name => format!("{module}::{name}"),
        };
        if path.is_dir() {
            collect(&inner, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            scan(&inner, &fs::read_to_string(&path).unwrap(), found);
        }
    }
}

/// The functions of one file: public ones, and those of a trait's implementation, that take a channel.
///
/// The files are formatted by rustfmt: a module's items begin at the margin, those of an implementation four spaces in,
/// and a test module ends at the margin.
fn scan(module: &str, text: &str, found: &mut BTreeSet<String>) {
    let mut lines = text.lines();
    let mut owner: Option<(String, bool)> = None;
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" {
            let mut skipped = lines.by_ref().skip_while(|line| line.starts_with("#["));
            if skipped.next().is_some_and(|line| line.ends_with('{')) {
                lines.by_ref().find(|line| *line == "}");
            }
        } else if line == "}" {
            owner = None;
        } else if line.starts_with("impl") {
            owner = Some(implementation(&whole(line, &mut lines)));
        } else if let Some((name, public)) = function(line) {
            let of_trait = owner.as_ref().is_some_and(|(_, of_trait)| *of_trait);
            if whole(line, &mut lines).contains("&mut Channel") && (public || of_trait) {
                let owner = owner.as_ref().map(|(owner, _)| format!("{owner}::"));
                found.insert(format!("{module}::{}{name}", owner.unwrap_or_default()));
            }
        }
    }
}

/// The name of a function that begins in this line, and whether it is public.
fn function(line: &str) -> Option<(&str, bool)> {
    let line = line.strip_prefix("    ").unwrap_or(line);
    let (public, rest) = match line.strip_prefix("pub ") {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let rest = rest.strip_prefix("const ").unwrap_or(rest);
    let name = rest.strip_prefix("fn ")?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    Some((&name[..end], public))
}

/// A head that begins with this line, up to its brace or semicolon.
fn whole<'a>(line: &str, lines: &mut impl Iterator<Item = &'a str>) -> String {
    let mut whole = line.to_owned();
    while !whole.ends_with(['{', ';', '}']) {
        whole += " ";
        whole += lines.next().unwrap().trim();
    }
    whole
}

/// The type of an implementation without its parameters, and whether it is one of a trait.
fn implementation(head: &str) -> (String, bool) {
    // The parameters of the implementation itself end where their brackets close.
    let rest = head.strip_prefix("impl").unwrap();
    let mut depth = 0;
    let end = rest
        .find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        })
        .unwrap();
    let rest = rest[end..].trim_start_matches('>').trim();
    let (rest, of_trait) = match rest.split_once(" for ") {
        Some((_, rest)) => (rest, true),
        None => (rest, false),
    };
    let name = rest.trim_end_matches('{').trim();
    let end = name.find('<').unwrap_or(name.len());
    (name[..end].to_owned(), of_trait)
}

#[test]
fn the_scan_reads_what_rustfmt_writes() {
    let text = "\
pub fn free(channel: &mut Channel) {
}
pub(crate) fn inner(channel: &mut Channel) {
}
impl<R: Ring> Sender<R> {
    pub fn long<C>(
        &mut self,
        channel: &mut Channel,
    ) -> Result<()> {
    }
    fn private(&self, channel: &mut Channel) {
    }
    pub fn silent(&self) {
    }
}
#[cfg(test)]
mod cheating;
impl<C: Cot<Item = u8> + ?Sized> Cot for Box<C> {
    fn of_a_trait(&mut self, channel: &mut Channel) {
    }
}
#[cfg(test)]
mod tests {
    pub fn helper(channel: &mut Channel) {
    }
}
pub fn last(channel: &mut Channel) {
}
";
    let mut found = BTreeSet::new();
    scan("m", text, &mut found);
    let expected = [
        "m::Box::of_a_trait",
        "m::Sender::long",
        "m::free",
        "m::last",
    ];
    assert!(found.iter().eq(expected), "{found:?}");
}
