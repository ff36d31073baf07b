//! Functions that no member of the cast calls by name, and why.

/// Functions that take a channel and are no protocol, and why.
pub(crate) const NO_PROTOCOL: &[(&str, &[&str])] = &[
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
        "says what the clock said, so that no two transcripts are alike; its own tests have the peers who lie",
        &["channel::pace::meet"],
    ),
    (
        "carries what others say; its own tests have the peers who break its frames",
        &[
            "channel::lanes::Lane::channel",
            "channel::lanes::split",
            "channel::lanes::split_into",
        ],
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
            "bench::parties::Watch::start",
            "bench::parties::Watch::stop",
            "bench::parties::meet",
            "bench::parties::run_both",
            "bench::parties::run_in_pools",
            "experiments::ferret::ends::End::draw_all",
            "experiments::ferret::ends::ReceiverEnd::draw",
            "experiments::ferret::ends::ReceiverEnd::prepare",
            "experiments::ferret::ends::SenderEnd::draw",
            "experiments::ferret::ends::SenderEnd::prepare",
        ],
    ),
];

/// Functions of the table that no member of the cast calls by name, under the file that does.
pub(crate) const WITHIN: &[(&str, &[&str])] = &[
    (
        "ot/softspoken/mod.rs",
        &["ot::softspoken::Sender::setup_for_scalar"],
    ),
    (
        "pcg/bootstrap/shares.rs",
        &[
            "pcg::bootstrap::shares::single::Sender::make_next",
            "pcg::bootstrap::shares::single::Sender::exchange",
            "pcg::bootstrap::shares::single::Receiver::make_next",
            "pcg::bootstrap::shares::single::Receiver::exchange",
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
        "experiments/baselines/gilboa.rs",
        &[
            "experiments::baselines::gilboa::Z64::multiply_receiver",
            "experiments::baselines::gilboa::Z64::multiply_sender",
            "experiments::baselines::gilboa::Z64::setup_receiver",
            "experiments::baselines::gilboa::Z64::setup_sender",
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
