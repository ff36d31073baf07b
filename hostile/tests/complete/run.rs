//! Which member of the cast runs which functions.

/// A member of the cast, and the functions that it runs. Those of a trait's implementation are here as well: they are
/// called through the trait.
pub(crate) const RUN: &[(&str, &[&str])] = &[
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
            "pcg::bootstrap::shares::single::Sender::exchange",
            "pcg::bootstrap::shares::single::Receiver::exchange",
            "pcg::correlation::Cot::key_shares",
            "pcg::correlation::Cot::value_shares",
        ],
    ),
    (
        "vole z64, semi-honest, regular, half",
        &[
            "pcg::bootstrap::shares::single::Sender::make_next",
            "pcg::bootstrap::shares::single::Receiver::make_next",
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
        &[
            "experiments::baselines::dpf::first",
            "experiments::baselines::dpf::second",
        ],
    ),
    (
        "point functions in buckets",
        &[
            "experiments::baselines::floram::key_holder",
            "experiments::baselines::floram::value_holder",
        ],
    ),
    (
        "points by whole trees",
        &[
            "experiments::baselines::whole_domain::key_holder",
            "experiments::baselines::whole_domain::value_holder",
        ],
    ),
    (
        "gilboa, z64",
        &[
            "experiments::baselines::gilboa::send",
            "experiments::baselines::gilboa::receive",
            "experiments::baselines::gilboa::Z64::multiply_receiver",
            "experiments::baselines::gilboa::Z64::multiply_sender",
            "experiments::baselines::gilboa::Z64::setup_receiver",
            "experiments::baselines::gilboa::Z64::setup_sender",
        ],
    ),
    (
        "vector-OLE by point functions",
        &[
            "experiments::baselines::dvole::send",
            "experiments::baselines::dvole::receive",
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
        &[
            "experiments::baselines::naive::send",
            "experiments::baselines::naive::receive",
        ],
    ),
    (
        "1-out-of-256 OT",
        &[
            "experiments::baselines::kk13::Sender::setup",
            "experiments::baselines::kk13::Sender::extend",
            "experiments::baselines::kk13::Receiver::setup",
            "experiments::baselines::kk13::Receiver::extend",
        ],
    ),
    (
        "pssz",
        &[
            "experiments::baselines::pssz::Sender::setup",
            "experiments::baselines::pssz::Sender::run",
            "experiments::baselines::pssz::Receiver::setup",
            "experiments::baselines::pssz::Receiver::run",
        ],
    ),
    (
        "hybrid, by the oprf",
        &[
            "experiments::baselines::hybrid::Sender::setup",
            "experiments::baselines::hybrid::Sender::run",
            "experiments::baselines::hybrid::Receiver::setup",
            "experiments::baselines::hybrid::Receiver::run",
        ],
    ),
];
