//! Functions that no member of the registry calls by name, and why.

/// Functions that take a channel and are no protocol, and why.
pub(super) const NO_PROTOCOL: &[(&str, &[&str])] = &[
    (
        "runs two parties given by the caller",
        &[
            "channel::parties::run_two_parties",
            "channel::parties::run_two_parties_with_stats",
            "channel::parties::run_two_parties_tcp",
            "channel::parties::run_two_channels",
        ],
    ),
    (
        "hands out the channel of a session",
        &[
            "channel::session::Session::deref_mut",
            "channel::session::Session::parts",
        ],
    ),
    (
        "calls `setup` with the parts of a session",
        &[
            "pcg::cot::Receiver::start",
            "pcg::cot::Sender::start",
            "pcg::vole::Receiver::start",
            "pcg::vole::Sender::start",
            "psi::session::Receiver::start",
            "psi::session::Sender::start",
        ],
    ),
    (
        "forwards the call",
        &[
            "ot::&mut C::extend",
            "ot::Box::extend",
            "pcg::cot::Box::draw",
            "pcg::stream::Box::draw",
            "pcg::stream::Box::exchange",
            "pcg::stream::Box::next_round",
        ],
    ),
    (
        "moves elements for the protocol that calls it",
        &["pcg::wire::recv", "pcg::wire::send"],
    ),
    (
        "sends measured times, so that transcripts differ; its own tests have the malicious peers",
        &[
            "channel::link::handshake_and_estimate",
            "channel::link::estimate",
        ],
    ),
    (
        "carries the bytes of other protocols; its own tests have peers that send malformed frames",
        &[
            "channel::mux::Substream::channel",
            "channel::mux::split",
            "channel::mux::split_into",
        ],
    ),
    (
        "sends nothing",
        &[
            "ot::ideal::Sender::extend",
            "ot::ideal::Receiver::extend",
            "pcg::cot_buffer::Sender::extend",
            "pcg::cot_buffer::Receiver::extend",
        ],
    ),
    (
        "the program's names for parties of the library",
        &[
            "cli::party::cot::Receiver::draw",
            "cli::party::cot::Receiver::setup",
            "cli::party::cot::Sender::draw",
            "cli::party::cot::Sender::setup",
            "cli::party::vole::Receiver::draw",
            "cli::party::vole::Receiver::setup",
            "cli::party::vole::Sender::draw",
            "cli::party::vole::Sender::setup",
        ],
    ),
    (
        "the program's run of a stream; the program's own tests have the malicious peers",
        &[
            "cli::driver::both",
            "cli::driver::conclude",
            "cli::driver::run",
            "cli::negotiation::Request::settle",
        ],
    ),
];

/// Functions of the table that no member of the registry calls by name, under the file that does.
pub(super) const WITHIN: &[(&str, &[&str])] = &[
    (
        "ot/softspoken/mod.rs",
        &["ot::softspoken::Sender::setup_for_scalar"],
    ),
    (
        "pcg/stream/mod.rs",
        &[
            "pcg::stream::primal::KeyHolder::draw",
            "pcg::stream::primal::KeyHolder::exchange",
            "pcg::stream::primal::KeyHolder::next_round",
            "pcg::stream::primal::ValueHolder::draw",
            "pcg::stream::primal::ValueHolder::exchange",
            "pcg::stream::primal::ValueHolder::next_round",
            "pcg::stream::dual::KeyHolder::draw",
            "pcg::stream::dual::KeyHolder::exchange",
            "pcg::stream::dual::KeyHolder::next_round",
            "pcg::stream::dual::ValueHolder::draw",
            "pcg::stream::dual::ValueHolder::exchange",
            "pcg::stream::dual::ValueHolder::next_round",
            "pcg::vole::Drawn::draw",
        ],
    ),
    (
        "pcg/stream/shares.rs",
        &[
            "pcg::stream::shares::spcot::Sender::make_next",
            "pcg::stream::shares::spcot::Sender::exchange",
            "pcg::stream::shares::spcot::Receiver::make_next",
            "pcg::stream::shares::spcot::Receiver::exchange",
        ],
    ),
    (
        "pcg/mpcot/mod.rs",
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
        "psi/session.rs",
        &[
            "psi::oprf::Receiver::extend_streamed",
            "psi::oprf::Sender::extend_watched",
        ],
    ),
];
