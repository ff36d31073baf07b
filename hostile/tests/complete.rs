//! No protocol is forgotten: every public function of the library that talks is run by a member of the cast.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "complete/scan.rs"]
mod scan;

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use scan::{collect, sources, words};
use volery_hostile::cast;

/// The crates that do not talk: the word `Channel` is nowhere in them.
const SILENT: [&str; 3] = ["field", "primitives", "records"];

/// The crates of the workspace by name, but for this one, and their source folders.
fn crates() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let members = r#"members = ["crates/*", "experiments", "hostile"]"#;
    assert!(manifest.contains(members), "other members: scan them, too");
    let mut folders = vec![root.join("experiments")];
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        folders.push(entry.unwrap().path());
    }
    folders.retain(|folder| folder.join("Cargo.toml").exists());
    let name = |folder: &Path| folder.file_name().unwrap().to_str().unwrap().to_owned();
    folders
        .into_iter()
        .map(|folder| (name(&folder), folder.join("src")))
        .collect()
}

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
        "OT of all but one",
        &["pcg::all_but_one::send", "pcg::all_but_one::receive"],
    ),
    (
        "random OT of all but one",
        &[
            "pcg::all_but_one::send_random",
            "pcg::all_but_one::receive_random",
        ],
    ),
    (
        "random OT of n - 1, arity 4",
        &["pcg::rot::kary::send", "pcg::rot::kary::receive"],
    ),
    (
        "point functions, arity 4",
        &["pcg::spfss::kary::send", "pcg::spfss::kary::receive"],
    ),
    (
        "punctured key",
        &["pcg::pprf::Key::deal", "pcg::pprf::PuncturedKey::obtain"],
    ),
    (
        "products with bits",
        &["pcg::products::Sender::new", "pcg::products::Receiver::new"],
    ),
    (
        "permutation",
        &["pcg::switching::send", "pcg::switching::receive"],
    ),
    (
        "points and shared values, dropping",
        &["pcg::mpfss::general::send", "pcg::mpfss::general::receive"],
    ),
    (
        "batch of vector-OLEs",
        &[
            "pcg::vole::Sender::setup_with",
            "pcg::vole::Receiver::setup_with",
            "pcg::vole::kit::Sender::setup",
            "pcg::vole::kit::Receiver::setup",
            "apps::offline::Sender::setup",
            "apps::offline::Sender::stream",
            "apps::offline::Sender::batch",
            "apps::offline::Receiver::setup",
            "apps::offline::Receiver::stream",
            "apps::offline::Receiver::batch",
        ],
    ),
    (
        "polynomial at points",
        &[
            "apps::ope::Sender::offline",
            "apps::ope::Sender::online",
            "apps::ope::Receiver::offline",
            "apps::ope::Receiver::online",
        ],
    ),
    (
        "shape of a matrix and a vector",
        &["apps::linear::shape::Shape::agree_vector"],
    ),
    (
        "shapes of a product",
        &["apps::linear::shape::Shape::agree"],
    ),
    ("formats of real numbers", &["apps::fixed::Format::agree"]),
    (
        "matrix product, fp61",
        &[
            "apps::linear::Sender::offline",
            "apps::linear::Sender::online",
            "apps::linear::Receiver::offline",
            "apps::linear::Receiver::online",
        ],
    ),
    (
        "matrix product, z64, shared",
        &[
            "apps::linear::product::Left::offline",
            "apps::linear::product::Left::online",
            "apps::linear::product::Right::offline",
            "apps::linear::product::Right::online",
        ],
    ),
    (
        "convolution",
        &[
            "apps::convolution::Sender::offline",
            "apps::convolution::Sender::online",
            "apps::convolution::Receiver::offline",
            "apps::convolution::Receiver::online",
        ],
    ),
    (
        "scatter, Add",
        &["apps::scatter::send", "apps::scatter::receive"],
    ),
    (
        "gather",
        &[
            "apps::scatter::gather::send",
            "apps::scatter::gather::receive",
        ],
    ),
    (
        "elementwise product",
        &["apps::sparse::ole::send", "apps::sparse::ole::receive"],
    ),
    (
        "sparse product, Plain",
        &["apps::sparse::send", "apps::sparse::receive"],
    ),
    (
        "array",
        &[
            "apps::array::Partner::read",
            "apps::array::Partner::open",
            "apps::array::Partner::write",
            "apps::array::Partner::add",
            "apps::array::Holder::read",
            "apps::array::Holder::open",
            "apps::array::Holder::write",
            "apps::array::Holder::add",
            "apps::array::Holder::replace",
        ],
    ),
    (
        "loaded array",
        &["apps::array::Partner::load", "apps::array::Holder::load"],
    ),
    (
        "additions to a vector",
        &[
            "apps::array::dense::Partner::add",
            "apps::array::dense::Partner::replace",
            "apps::array::dense::Holder::add",
            "apps::array::dense::Holder::replace",
        ],
    ),
    (
        "distributed point functions",
        &["experiments::dpf::first", "experiments::dpf::second"],
    ),
    (
        "point functions in buckets",
        &[
            "experiments::floram::key_holder",
            "experiments::floram::value_holder",
        ],
    ),
    (
        "points by whole trees",
        &[
            "experiments::whole_domain::key_holder",
            "experiments::whole_domain::value_holder",
        ],
    ),
    (
        "gilboa, z64",
        &[
            "experiments::gilboa::send",
            "experiments::gilboa::receive",
            "experiments::gilboa::Z64::multiply_receiver",
            "experiments::gilboa::Z64::multiply_sender",
            "experiments::gilboa::Z64::setup_receiver",
            "experiments::gilboa::Z64::setup_sender",
        ],
    ),
    (
        "vector-OLE by point functions",
        &["experiments::dvole::send", "experiments::dvole::receive"],
    ),
    (
        "batch of vector-OLEs, gf128",
        &[
            "ot::softspoken::fork::Sender::setup_from_ots",
            "ot::softspoken::fork::Receiver::setup_from_ots",
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
        "moves elements for the protocol that calls it",
        &["pcg::wire::recv", "pcg::wire::send"],
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
    (
        "the program's names for parties of the library",
        &[
            "cli::ends::cot::Receiver::draw",
            "cli::ends::cot::Receiver::setup",
            "cli::ends::cot::Sender::draw",
            "cli::ends::cot::Sender::setup",
            "cli::ends::vole::Receiver::draw",
            "cli::ends::vole::Receiver::setup",
            "cli::ends::vole::Sender::draw",
            "cli::ends::vole::Sender::setup",
        ],
    ),
    (
        "measures both parties in one process",
        &[
            "cli::command::ferret::measure::End::draw_all",
            "cli::command::ferret::measure::ReceiverEnd::draw",
            "cli::command::ferret::measure::ReceiverEnd::prepare",
            "cli::command::ferret::measure::SenderEnd::draw",
            "cli::command::ferret::measure::SenderEnd::prepare",
        ],
    ),
];

/// Functions of the table that no member of the cast calls by name, under the file that does.
const WITHIN: &[(&str, &[&str])] = &[
    (
        "ot/softspoken/mod.rs",
        &["ot::softspoken::Sender::setup_for_scalar"],
    ),
    (
        "pcg/bootstrap/shares.rs",
        &[
            "pcg::bootstrap::shares::single::Sender::make_next",
            "pcg::bootstrap::shares::single::Receiver::make_next",
        ],
    ),
    (
        "pcg/mpfss/mod.rs",
        &[
            "pcg::correlation::Cot::key_shares",
            "pcg::correlation::Cot::value_shares",
            "pcg::correlation::Vole::key_shares",
            "pcg::correlation::Vole::value_shares",
        ],
    ),
    (
        "pcg/vole.rs",
        &[
            "pcg::vole::base::GilboaKey::draw",
            "pcg::vole::base::GilboaValues::draw",
            "pcg::vole::base::PackedKey::draw",
            "pcg::vole::base::PackedValues::draw",
        ],
    ),
    (
        "apps/offline.rs",
        &[
            "pcg::vole::Sender::setup_with",
            "pcg::vole::Receiver::setup_with",
        ],
    ),
    ("apps/ope.rs", &["apps::offline::Sender::stream"]),
    ("apps/linear.rs", &["apps::offline::Receiver::stream"]),
    (
        "pcg/vole/base.rs",
        &[
            "ot::softspoken::fork::Sender::setup_from_ots",
            "ot::softspoken::fork::Receiver::setup_from_ots",
        ],
    ),
    (
        "experiments/gilboa.rs",
        &[
            "experiments::gilboa::Z64::multiply_receiver",
            "experiments::gilboa::Z64::multiply_sender",
            "experiments::gilboa::Z64::setup_receiver",
            "experiments::gilboa::Z64::setup_sender",
        ],
    ),
    (
        "psi/halves.rs",
        &[
            "psi::oprf::Receiver::extend_streamed",
            "psi::oprf::Sender::extend_watched",
        ],
    ),
];

#[test]
fn every_function_that_talks_is_in_the_cast() {
    let mut found = BTreeSet::new();
    for (name, folder) in crates() {
        if !SILENT.contains(&name.as_str()) {
            collect(&name, &folder, &mut found);
        }
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

#[test]
fn silent_crates_do_not_know_the_channel() {
    let crates = crates();
    for name in SILENT {
        let (_, folder) = crates.iter().find(|(of, _)| of == name).unwrap();
        for (path, text) in sources(folder) {
            assert!(!words(&text).any(|word| word == "Channel"), "{path:?}");
        }
    }
}

/// A function of the table is called: a file of the cast calls its name and has the one before it, of its type or its
/// module. Those that are called from within are called in the file that is named.
#[test]
fn what_is_listed_is_called() {
    let hostile = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut texts: Vec<_> = sources(&hostile.join("cast"))
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    texts.push(fs::read_to_string(hostile.join("cast.rs")).unwrap());
    let crates = crates();
    let mut inner: BTreeSet<&str> = BTreeSet::new();
    for (file, functions) in WITHIN {
        let (name, rest) = file.split_once('/').unwrap();
        let (_, folder) = crates.iter().find(|(of, _)| of == name).unwrap();
        let text = fs::read_to_string(folder.join(rest)).unwrap();
        for function in *functions {
            let name = function.rsplit("::").next().unwrap();
            assert!(scan::calls(&text, name), "{file} does not call {function}");
            inner.insert(function);
        }
    }
    let mut uncalled = Vec::new();
    for function in RUN.iter().flat_map(|(_, functions)| *functions) {
        let mut path = function.rsplit("::");
        let (name, owner) = (path.next().unwrap(), path.next().unwrap());
        let direct = texts
            .iter()
            .any(|text| scan::calls(text, name) && words(text).any(|word| word == owner));
        if !direct && !inner.remove(function) {
            uncalled.push(function);
        }
    }
    assert!(
        uncalled.is_empty(),
        "no member of the cast calls these: {uncalled:#?}"
    );
    assert!(inner.is_empty(), "these need no row in WITHIN: {inner:#?}");
}
