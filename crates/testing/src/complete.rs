//! Completeness: every function of a crate that takes a channel is run by a protocol of a registry.
//!
//! The sources are read as text, formatted by rustfmt: an item of a module, a trait or an
//! implementation is indented four spaces more than its owner, and its owner ends with a brace at
//! the owner's indentation.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::Protocol;

/// Names, each with functions by their paths. A list in braces stands for a path with each of its
/// words, as in `use`.
pub type Rows<'a> = &'a [(&'a str, &'a [&'a str])];

/// The tables about the functions that take a channel.
#[derive(Debug)]
pub struct Coverage<'a> {
    /// The crates by name, and their source folders.
    pub crates: &'a [(String, PathBuf)],
    /// Protocols, and the functions that each runs.
    pub run: Rows<'a>,
    /// Reasons why a function is not a protocol, and those functions.
    pub no_protocol: Rows<'a>,
    /// Files as `crate/path`, and the functions that are called there and not in the registry.
    pub within: Rows<'a>,
    /// The files and folders of the registry.
    pub registry: &'a [PathBuf],
}

impl Coverage<'_> {
    /// The functions of all crates that take a channel.
    #[must_use]
    pub fn functions(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for (name, folder) in self.crates {
            collect(name, folder, &mut found);
        }
        found
    }

    /// Checks that each function is in a table, and that each row of a table names existing
    /// functions.
    ///
    /// # Panics
    /// If a function is in no table, or a row names a protocol or a function that does not exist.
    pub fn assert_listed(&self, protocols: &[Protocol]) {
        let found = self.functions();
        let names: HashSet<_> = protocols.iter().map(|of| of.name.as_str()).collect();
        let mut listed = BTreeSet::new();
        for (name, functions) in self.run {
            assert!(
                names.contains(name),
                "the registry has no protocol {name:?}"
            );
            listed.extend(paths(functions));
        }
        for (_, functions) in self.no_protocol {
            listed.extend(paths(functions));
        }
        let missing: Vec<_> = found.difference(&listed).collect();
        assert!(
            missing.is_empty(),
            "these functions take a channel, and no test attacks them: {missing:#?}\nAdd a protocol that calls each of \
             them to the registry ({:?}), and a row to the table RUN of this test; or, if it is no protocol, a row with \
             the reason to NO_PROTOCOL.",
            self.registry
        );
        let gone: Vec<_> = listed.difference(&found).collect();
        assert!(
            gone.is_empty(),
            "these functions are listed here and do not exist: {gone:#?}\nRemove them from the tables."
        );
    }

    /// Checks that each function of the table is called: a file of the registry calls its name and
    /// mentions the preceding path element, its type or its module. Functions called from within
    /// the library are called in the file named in `within`.
    ///
    /// # Panics
    /// If a function is not called, or needs no row in `within`.
    pub fn assert_called(&self) {
        let texts: Vec<_> = self.registry.iter().flat_map(|path| texts(path)).collect();
        let mut inner = BTreeSet::new();
        for (file, functions) in self.within {
            let (name, rest) = file.split_once('/').unwrap();
            let (_, folder) = self.crates.iter().find(|(of, _)| of == name).unwrap();
            let text = fs::read_to_string(folder.join(rest)).unwrap();
            for function in paths(functions) {
                let name = function.rsplit("::").next().unwrap();
                assert!(calls(&text, name), "{file} does not call {function}");
                inner.insert(function);
            }
        }
        let mut uncalled = Vec::new();
        for function in self.run.iter().flat_map(|(_, functions)| paths(functions)) {
            let mut path = function.rsplit("::");
            let (name, owner) = (path.next().unwrap(), path.next().unwrap());
            let direct = texts
                .iter()
                .any(|text| calls(text, name) && words(text).any(|word| word == owner));
            if !direct && !inner.remove(&function) {
                uncalled.push(function);
            }
        }
        assert!(
            uncalled.is_empty(),
            "no protocol of the registry calls these: {uncalled:#?}"
        );
        assert!(
            inner.is_empty(),
            "these need no row in `within`: {inner:#?}"
        );
    }
}

/// The paths that a row of a table names.
fn paths(row: &[&str]) -> Vec<String> {
    row.iter().flat_map(|path| expand(path)).collect()
}

fn expand(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else {
        return vec![path.to_owned()];
    };
    let (list, after) = rest.split_once('}').unwrap();
    let one = |word: &str| expand(&format!("{before}{word}{after}"));
    list.split(", ").flat_map(one).collect()
}

/// The text of a file, or of the files below a folder.
fn texts(path: &Path) -> Vec<String> {
    if path.is_dir() {
        sources(path).into_iter().map(|(_, text)| text).collect()
    } else {
        vec![fs::read_to_string(path).unwrap()]
    }
}

/// The Rust files below a folder, and their texts.
///
/// # Panics
/// If a file cannot be read.
#[must_use]
pub fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    found
}

/// The words of a text.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_of_a_word(c))
}

fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a text calls a function of this name, beyond declaring it.
fn calls(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        !before.ends_with(is_of_a_word)
            && !before.ends_with("fn ")
            && after.starts_with(['(', ':'])
            && !after.starts_with(": ")
    })
}

/// Adds the functions of all files of a folder that take a channel.
///
/// # Panics
/// If a file cannot be read.
pub fn collect(name: &str, folder: &Path, found: &mut BTreeSet<String>) {
    for (path, text) in sources(folder) {
        let path = path.strip_prefix(folder).unwrap().with_extension("");
        let parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap()).collect();
        // Test modules in their own files.
        if parts
            .iter()
            .any(|part| ["tests", "malicious", "tamper"].contains(part))
        {
            continue;
        }
        let mut module = name.to_owned();
        for part in parts.iter().filter(|part| !["lib", "mod"].contains(part)) {
            module += "::";
            module += part;
        }
        scan(&module, &text, found);
    }
}

/// The owner of the items around a line.
enum Owner {
    Module(String),
    Type(String),
    /// An implementation of a trait for the type.
    OfTrait(String),
    Trait(String),
}

/// The functions of one file that take a channel: public ones, those of a trait implementation, and
/// provided methods of a trait.
fn scan(module: &str, text: &str, found: &mut BTreeSet<String>) {
    let mut lines = text.lines();
    let mut owners: Vec<Owner> = Vec::new();
    while let Some(line) = lines.next() {
        let item = line.trim_start();
        let depth = line.len() - item.len();
        if item == "}" && depth + 4 == 4 * owners.len() {
            owners.pop();
        }
        if depth != 4 * owners.len() {
            continue;
        }
        if item == "#[cfg(test)]" {
            let mut skipped = lines
                .by_ref()
                .skip_while(|line| line.trim_start().starts_with("#["));
            let Some(first) = skipped.next() else { return };
            if whole(first, &mut lines).ends_with('{') {
                let end = format!("{}}}", " ".repeat(depth));
                lines.by_ref().find(|line| *line == end);
            }
            continue;
        }
        let (public, rest) = visibility(item);
        let rest = qualified(rest);
        if let Some(name) = rest
            .strip_prefix("mod ")
            .and_then(|name| name.strip_suffix(" {"))
        {
            owners.push(Owner::Module(name.to_owned()));
        } else if let Some(name) = rest.strip_prefix("trait ") {
            let name = words(name).next().unwrap_or_default().to_owned();
            if whole(line, &mut lines).ends_with('{') {
                owners.push(Owner::Trait(name));
            }
        } else if rest.starts_with("impl ") || rest.starts_with("impl<") {
            let head = whole(rest, &mut lines);
            if head.ends_with('{') {
                owners.push(implementation(&head));
            }
        } else if let Some(name) = rest.strip_prefix("fn ") {
            let name = words(name).next().unwrap_or_default();
            let head = whole(line, &mut lines);
            let body = !head.ends_with(';');
            let seen = public
                || match owners.last() {
                    Some(Owner::OfTrait(_)) => true,
                    Some(Owner::Trait(_)) => body,
                    _ => false,
                };
            if seen && takes_a_channel(&head) {
                let mut path = module.to_owned();
                for owner in &owners {
                    let (Owner::Module(name)
                    | Owner::Type(name)
                    | Owner::OfTrait(name)
                    | Owner::Trait(name)) = owner;
                    path += "::";
                    path += name;
                }
                found.insert(format!("{path}::{name}"));
            }
        } else if rest.contains("Channel as ") {
            // A renamed channel would escape the scan.
            found.insert(format!("{module}: {rest}"));
        }
    }
}

/// Whether an item is visible outside its crate if its module is, and the rest of its line.
fn visibility(item: &str) -> (bool, &str) {
    if let Some(rest) = item.strip_prefix("pub ") {
        return (true, rest);
    }
    let within = item
        .strip_prefix("pub(")
        .and_then(|rest| rest.split_once(") "));
    (false, within.map_or(item, |(_, rest)| rest))
}

/// Removes the qualifiers before the keyword of an item.
fn qualified(mut rest: &str) -> &str {
    loop {
        let short = ["const ", "async ", "unsafe ", "extern "]
            .iter()
            .find_map(|word| rest.strip_prefix(word));
        let Some(short) = short else { return rest };
        // The name of a calling convention.
        rest = match short.strip_prefix('"') {
            Some(name) => name.split_once("\" ").map_or(name, |(_, rest)| rest),
            None => short,
        };
    }
}

/// A channel that can be written to: by a mutable reference of any lifetime, or by value; under any
/// path. A session holds a channel, so a session that can be written to counts too.
fn takes_a_channel(head: &str) -> bool {
    let places = ["Channel", "Session"].map(|name| head.match_indices(name));
    places.into_iter().flatten().any(|(at, name)| {
        let (before, after) = (&head[..at], &head[at + name.len()..]);
        if before.ends_with(is_of_a_word) || after.starts_with(is_of_a_word) {
            return false;
        }
        let mut before = before;
        while let Some(path) = before.strip_suffix("::") {
            before = path.trim_end_matches(is_of_a_word);
        }
        before.ends_with(" mut ") || before.ends_with("&mut ") || before.ends_with(": ")
    })
}

/// The head that begins with this line, up to its brace or semicolon.
fn whole<'a>(line: &str, lines: &mut impl Iterator<Item = &'a str>) -> String {
    let mut whole = line.to_owned();
    while !whole.ends_with(['{', ';', '}']) {
        let Some(next) = lines.next() else { break };
        whole += " ";
        whole += next.trim();
    }
    whole
}

/// The owner that an implementation belongs to: a type without its parameters.
fn implementation(head: &str) -> Owner {
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
    let name = rest.split_once(" where ").map_or(rest, |(name, _)| name);
    let name = name.trim_end_matches('{').trim();
    let end = name.find('<').unwrap_or(name.len());
    let name = name[..end].to_owned();
    if of_trait {
        Owner::OfTrait(name)
    } else {
        Owner::Type(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scan_reads_what_rustfmt_writes() {
        let mut found = BTreeSet::new();
        scan("m", NASTY, &mut found);
        let expected = [
            "m: use volery_channel::Channel as Hidden;",
            "m::Asked::with_body",
            "m::Box::of_a_trait",
            "m::Sender::after_where",
            "m::Sender::long",
            "m::Sender::with_lifetime",
            "m::Tuple::unsafe_trait",
            "m::deferred",
            "m::foreign",
            "m::free",
            "m::in_a_session",
            "m::inline::deep::deepest",
            "m::inline::T::method",
            "m::inline::within",
            "m::last",
            "m::owned",
            "m::with_a_path",
            "m::with_bounds",
        ];
        let expected: BTreeSet<_> = expected.map(str::to_owned).into();
        assert_eq!(found, expected);
        assert!(calls("a.go(1)", "go") && calls("go::<u8>(1)", "go"));
        assert!(!calls("fn go(1)", "go") && !calls("ago(go: u8)", "go"));
    }

    const NASTY: &str = r#"
use volery_channel::Channel as Hidden;
pub fn free(channel: &mut Channel) {
}
pub(crate) fn inner(channel: &mut Channel) {
}
pub fn describes(channel: &Channel, mut what: Channels, of: &mut ChannelError) -> Channel {
}
pub async fn deferred(channel: &mut Channel) {
}
pub unsafe extern "C" fn foreign(channel: &mut crate::Channel) {
}
pub fn in_a_session(session: &mut Session<impl BorrowMut<Channel>>) -> SessionId {
}
pub const unsafe fn with_a_path(channel: &mut ::volery_channel::channel::Channel) {
}
pub fn owned(first: u8, mut channel: Channel) {
}
pub fn with_bounds<F>(party: F)
where
    F: FnOnce(&mut Channel) -> u8,
{
    fn hidden(channel: &mut Channel) {
    }
}
impl<R: Ring> Sender<R> {
    pub fn long<C>(
        &mut self,
        channel: &mut Channel,
    ) -> Result<()> {
    }
    pub fn with_lifetime<'a>(&self, channel: &'a mut Channel) {
    }
    fn private(&self, channel: &mut Channel) {
    }
    pub fn silent(&self) {
    }
}
impl<R> Sender<R>
where
    R: Ring,
{
    pub fn after_where(channel: &mut Channel) {
    }
}
#[cfg(test)]
mod malicious;
impl<C: Cot<Item = u8> + ?Sized> Cot for Box<C> {
    fn of_a_trait(&mut self, channel: &mut Channel) {
    }
}
unsafe impl Send for Nothing {}
unsafe impl Cot for Tuple {
    unsafe fn unsafe_trait(&mut self, channel: &mut Channel) {
    }
}
pub(crate) trait Asked: Send {
    fn required(&mut self, channel: &mut Channel);
    fn with_body(
        &mut self,
        channel: &mut Channel,
    ) {
    }
}
pub mod inline {
    pub fn within(channel: &mut Channel) {
    }
    impl T {
        pub fn method(channel: &mut Channel) {
        }
    }
    #[cfg(test)]
    #[rustfmt::skip]
    mod tests {
        pub fn helper(channel: &mut Channel) {
        }
    }
    mod deep {
        pub fn deepest(channel: &mut Channel) {
        }
    }
}
#[cfg(test)]
pub fn long_and_for_tests(
    channel: &mut Channel,
) {
}
#[cfg(test)]
mod tests {
    pub fn helper(channel: &mut Channel) {
    }
}
pub fn last(channel: &mut Channel) {
}
"#;
}
