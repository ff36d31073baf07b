//! The functions that each member of the registry runs.

/// A member of the registry, and the functions that it runs. Methods of trait implementations are
/// included: they are called through the trait.
pub(super) const RUN: &[(&str, &[&str])] = &[
    ("handshake", &["channel::handshake::handshake"]),
    ("base OT", &["ot::base::{send, receive}"]),
    ("iknp", &["ot::iknp::{Sender, Receiver}::{setup, extend}"]),
    (
        "softspoken 8",
        &["ot::softspoken::{Sender, Receiver}::{setup, extend}"],
    ),
    (
        "correlated OT",
        &["ot::convert::{Sender, Receiver}::correlated"],
    ),
    (
        "correlated OT, chosen choices",
        &["ot::convert::{Sender, Receiver}::correlated_chosen"],
    ),
    ("random OT", &["ot::convert::{Sender, Receiver}::random"]),
    (
        "random OT, chosen choices",
        &["ot::convert::{Sender, Receiver}::random_chosen"],
    ),
    (
        "OT of chosen blocks",
        &["ot::convert::{Sender, Receiver}::chosen"],
    ),
    (
        "OT of chosen strings",
        &["ot::convert::{Sender, Receiver}::chosen_bytes"],
    ),
    (
        "random OT of n - 1",
        &[
            "pcg::punctured_ot::Trees::send",
            "pcg::punctured_ot::receive",
        ],
    ),
    (
        "point function",
        &[
            "pcg::spfss::{send, receive}",
            "pcg::spfss::{SenderKey, ReceiverKey}::generate",
        ],
    ),
    ("half-trees, hashed", &["pcg::spcot::{send, receive}"]),
    (
        "points anywhere",
        &[
            "pcg::mpcot::{send, receive}",
            "pcg::correlation::Vole::{key_shares, value_shares}",
        ],
    ),
    (
        "product, z64",
        &["pcg::gilboa::{Sender, Receiver}::{setup, multiply}"],
    ),
    (
        "checked product, fp61",
        &["pcg::gilboa::{Sender, Receiver}::multiply_checked"],
    ),
    ("chosen inputs", &["pcg::derandomize::{send, receive}"]),
    (
        "chosen input",
        &["pcg::derandomize::{send_input, receive_input}"],
    ),
    (
        "cot, malicious, regular, half",
        &[
            "pcg::cot::{Sender, Receiver}::{setup, prepare, extend}",
            "pcg::stream::primal::{KeyHolder, ValueHolder}::{draw, exchange, next_round}",
            "pcg::stream::shares::spcot::{Sender, Receiver}::exchange",
            "pcg::correlation::Cot::{key_shares, value_shares}",
        ],
    ),
    (
        "cot, malicious, low-communication",
        &["pcg::stream::dual::{KeyHolder, ValueHolder}::{draw, exchange, next_round}"],
    ),
    (
        "vole z64, semi-honest, regular, half",
        &["pcg::stream::shares::spcot::{Sender, Receiver}::make_next"],
    ),
    (
        "vole fp61, malicious, regular, half",
        &[
            "pcg::vole::Drawn::draw",
            "pcg::vole::{Sender, Receiver}::{setup, prepare, extend}",
            "pcg::vole::base::{GilboaValues, GilboaKey}::draw",
        ],
    ),
    (
        "vole gf128, malicious, regular, half",
        &[
            "ot::softspoken::Sender::setup_for_scalar",
            "pcg::vole::base::{PackedValues, PackedKey}::draw",
        ],
    ),
    (
        "punctured key",
        &["pcg::pprf::Key::deal", "pcg::pprf::PuncturedKey::obtain"],
    ),
    (
        "products with bits",
        &["apps::ring_cot::{Sender, Receiver}::new"],
    ),
    ("permutation", &["apps::switching::{send, receive}"]),
    (
        "points and shared values, dropping",
        &["apps::mpfss::{send, receive}"],
    ),
    (
        "batch of vector-OLEs",
        &[
            "pcg::vole::{Sender, Receiver}::setup_with",
            "pcg::vole::shared_setup::{Sender, Receiver}::setup",
            "apps::offline::{Sender, Receiver}::{setup, stream, batch}",
        ],
    ),
    (
        "polynomial at points",
        &["apps::ope::{Sender, Receiver}::{offline, online}"],
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
        &["apps::linear::{Sender, Receiver}::{offline, online}"],
    ),
    (
        "matrix product, z64, shared",
        &["apps::linear::product::{Left, Right}::{offline, online}"],
    ),
    (
        "convolution",
        &["apps::convolution::{Sender, Receiver}::{offline, online}"],
    ),
    ("scatter, Add", &["apps::scatter::{send, receive}"]),
    ("gather", &["apps::scatter::gather::{send, receive}"]),
    (
        "elementwise product",
        &["apps::sparse::ole::{send, receive}"],
    ),
    ("sparse product, Plain", &["apps::sparse::{send, receive}"]),
    (
        "array",
        &[
            "apps::array::{Partner, Holder}::{read, open, write, add}",
            "apps::array::Holder::replace",
        ],
    ),
    ("loaded array", &["apps::array::{Partner, Holder}::load"]),
    (
        "additions to a vector",
        &["apps::array::dense::{Partner, Holder}::{add, replace}"],
    ),
    (
        "batch of vector-OLEs, gf128",
        &["ot::softspoken::fork::{Sender, Receiver}::setup_from_ots"],
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
            "psi::session::Sender::setup",
            "psi::session::Receiver::setup",
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
        "circuit, fast",
        &[
            "psi::circuit::{Sender, Receiver}::{setup, next, multiply, select, at_least, open}",
            "psi::circuit::gmw::{Sender, Receiver}::and",
        ],
    ),
    (
        "circuit opening",
        &["psi::circuit::opening::{Sender, Receiver}::{setup, at_least, open}"],
    ),
    (
        "dh intersection",
        &["psi::dh::Sender::intersect", "psi::dh::Receiver::intersect"],
    ),
    (
        "dh search",
        &["psi::dh::Sender::answer", "psi::dh::Receiver::search"],
    ),
    (
        "count",
        &["psi::count::Sender::count", "psi::count::Receiver::count"],
    ),
    (
        "served query",
        &[
            "psi::served::Server::answer",
            "psi::served::Client::query",
            "psi::served::filter::Filter::send",
            "psi::served::filter::Filter::receive",
            "psi::served::meeting::greet",
            "psi::served::meeting::Welcome::receive",
            "psi::served::meeting::Welcome::fetch",
        ],
    ),
    (
        "vole intersection, malicious",
        &[
            "psi::vole::intersect::Sender::intersect",
            "psi::vole::intersect::Receiver::intersect",
        ],
    ),
    (
        "vole search, malicious",
        &[
            "psi::vole::lookup::Sender::answer",
            "psi::vole::lookup::Receiver::search",
        ],
    ),
    (
        "vole oprf, malicious",
        &[
            "psi::vole::oprf::Sender::keys",
            "psi::vole::oprf::Receiver::outputs",
        ],
    ),
];
