//! The functions that each member of the registry runs.

/// A member of the registry, and the functions that it runs. Methods of trait implementations are
/// included: they are called through the trait.
pub(super) const RUN: &[(&str, &[&str])] = &[
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
            "ot::convert::Sender::correlated",
            "ot::convert::Receiver::correlated",
        ],
    ),
    (
        "correlated OT, chosen choices",
        &[
            "ot::convert::Sender::correlated_chosen",
            "ot::convert::Receiver::correlated_chosen",
        ],
    ),
    (
        "random OT",
        &[
            "ot::convert::Sender::random",
            "ot::convert::Receiver::random",
        ],
    ),
    (
        "random OT, chosen choices",
        &[
            "ot::convert::Sender::random_chosen",
            "ot::convert::Receiver::random_chosen",
        ],
    ),
    (
        "OT of chosen blocks",
        &[
            "ot::convert::Sender::chosen",
            "ot::convert::Receiver::chosen",
        ],
    ),
    (
        "OT of chosen strings",
        &[
            "ot::convert::Sender::chosen_bytes",
            "ot::convert::Receiver::chosen_bytes",
        ],
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
            "pcg::spfss::send",
            "pcg::spfss::receive",
            "pcg::spfss::SenderKey::generate",
            "pcg::spfss::ReceiverKey::generate",
        ],
    ),
    (
        "half-trees, hashed",
        &["pcg::spcot::send", "pcg::spcot::receive"],
    ),
    (
        "points anywhere",
        &[
            "pcg::mpcot::send",
            "pcg::mpcot::receive",
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
        &["pcg::derandomize::send", "pcg::derandomize::receive"],
    ),
    (
        "chosen input",
        &[
            "pcg::derandomize::send_input",
            "pcg::derandomize::receive_input",
        ],
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
            "pcg::stream::primal::KeyHolder::draw",
            "pcg::stream::primal::KeyHolder::exchange",
            "pcg::stream::primal::KeyHolder::next_round",
            "pcg::stream::primal::ValueHolder::draw",
            "pcg::stream::primal::ValueHolder::exchange",
            "pcg::stream::primal::ValueHolder::next_round",
            "pcg::stream::shares::spcot::Sender::exchange",
            "pcg::stream::shares::spcot::Receiver::exchange",
            "pcg::correlation::Cot::key_shares",
            "pcg::correlation::Cot::value_shares",
        ],
    ),
    (
        "cot, malicious, low communication",
        &[
            "pcg::stream::dual::KeyHolder::draw",
            "pcg::stream::dual::KeyHolder::exchange",
            "pcg::stream::dual::KeyHolder::next_round",
            "pcg::stream::dual::ValueHolder::draw",
            "pcg::stream::dual::ValueHolder::exchange",
            "pcg::stream::dual::ValueHolder::next_round",
        ],
    ),
    (
        "vole z64, semi-honest, regular, half",
        &[
            "pcg::stream::shares::spcot::Sender::make_next",
            "pcg::stream::shares::spcot::Receiver::make_next",
        ],
    ),
    (
        "vole fp61, malicious, regular, half",
        &[
            "pcg::vole::Drawn::draw",
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
        &[
            "pcg::punctured_ot::kary::send",
            "pcg::punctured_ot::kary::receive",
        ],
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
        &[
            "apps::ring_cot::Sender::new",
            "apps::ring_cot::Receiver::new",
        ],
    ),
    (
        "permutation",
        &["apps::switching::send", "apps::switching::receive"],
    ),
    (
        "points and shared values, dropping",
        &["apps::mpfss::send", "apps::mpfss::receive"],
    ),
    (
        "batch of vector-OLEs",
        &[
            "pcg::vole::Sender::setup_with",
            "pcg::vole::Receiver::setup_with",
            "pcg::vole::shared_setup::Sender::setup",
            "pcg::vole::shared_setup::Receiver::setup",
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
