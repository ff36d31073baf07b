//! Functions that no member of the registry calls by name, and why.

/// Functions that take a channel and are no protocol, and why.
pub(super) const NO_PROTOCOL: &[(&str, &[&str])] = &[
    (
        "runs two parties given by the caller",
        &[
            "channel::parties::{run_two_parties, run_two_parties_with_stats}",
            "channel::parties::{run_two_parties_tcp, run_two_channels, run_two_unchecked}",
        ],
    ),
    (
        "hands out the channel of a session, or of a run",
        &[
            "channel::session::Session::{deref_mut, parts}",
            "cli::command::endpoint::Met::deref_mut",
        ],
    ),
    (
        "calls `setup` with the parts of a session",
        &[
            "pcg::cot::Receiver::start",
            "pcg::cot::Sender::start",
            "pcg::vole::Receiver::start",
            "pcg::vole::Sender::start",
            "psi::count::Receiver::start",
            "psi::count::Sender::start",
            "psi::circuit::Receiver::start",
            "psi::circuit::Sender::start",
            "psi::dh::Receiver::start",
            "psi::dh::Sender::start",
            "psi::session::Receiver::start",
            "psi::session::Sender::start",
            "psi::vole::Receiver::start",
            "psi::vole::Sender::start",
        ],
    ),
    (
        "forwards the call",
        &[
            "ot::&mut C::extend",
            "ot::Box::extend",
            "pcg::cot::Box::draw",
            "pcg::stream::Pointer::draw",
            "pcg::stream::Pointer::exchange",
            "pcg::stream::Pointer::next_round",
        ],
    ),
    (
        "calls the methods of its protocol, by the interface to all protocols for matching",
        &[
            "psi::circuit::protocol::Circuit::run",
            "psi::count::protocol::Count::run",
            "psi::dh::protocol::Dh::run",
            "psi::kkrt::Kkrt::run",
            "psi::vole::protocol::Vole::run",
        ],
    ),
    (
        "moves elements for the protocol that calls it",
        &["pcg::wire::{recv, send}"],
    ),
    (
        "sends measured times, so that transcripts differ; its own tests have the malicious peers",
        &[
            "channel::link::handshake_and_estimate",
            "channel::link::estimate",
        ],
    ),
    (
        "runs the protocols of psi on tables; its own tests have a malicious peer for each message",
        &[
            "matching::driver::Side::agree_on_workers",
            "matching::driver::agree",
            "matching::run::Side::run",
            "matching::served::Side::ask",
            "matching::shares::run::Running::next",
            "matching::shares::run::Side::start",
            "matching::totals::run::Side::run",
            "matching::totals::workers::Driver::agree",
            "matching::totals::workers::Driver::open",
            "matching::totals::workers::agree",
            "matching::totals::workers::open_shards",
            "matching::worker::Worker::run",
        ],
    ),
    (
        "sends a constant, or what `Filter::send` sends; its own tests have a peer that differs",
        &[
            "psi::served::filter::Label::send_file",
            "psi::served::meeting::Welcome::keep",
            "psi::served::meeting::turn_away",
        ],
    ),
    (
        "calls the same function of what it wraps",
        &[
            "cli::command::cluster::Side::agree",
            "cli::command::cluster::totals::Driver::agree",
            "matching::totals::compute::Party::at_least",
            "matching::totals::compute::Party::open",
            "web::run::Prepared::run",
        ],
    ),
    (
        "carries the bytes of other protocols; its own tests have peers that send malformed frames",
        &[
            "channel::mux::Substream::channel",
            "channel::mux::{split, split_into}",
        ],
    ),
    (
        "sends nothing",
        &[
            "ot::ideal::{Sender, Receiver}::extend",
            "pcg::cot_buffer::{Sender, Receiver}::extend",
        ],
    ),
    (
        "the program's names for parties of the library",
        &["cli::party::{cot, vole}::{Receiver, Sender}::{draw, setup}"],
    ),
    (
        "the program's run of a stream; the program's own tests have the malicious peers",
        &[
            "cli::driver::{both, conclude, run, run_into}",
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
            "pcg::stream::{primal, dual}::{KeyHolder, ValueHolder}::{draw, exchange, next_round}",
            "pcg::vole::Drawn::draw",
        ],
    ),
    (
        "pcg/stream/shares.rs",
        &["pcg::stream::shares::spcot::{Sender, Receiver}::{make_next, exchange}"],
    ),
    (
        "pcg/mpcot/mod.rs",
        &["pcg::correlation::{Cot, Vole}::{key_shares, value_shares}"],
    ),
    (
        "pcg/vole.rs",
        &["pcg::vole::base::{GilboaKey, GilboaValues, PackedKey, PackedValues}::draw"],
    ),
    (
        "apps/offline.rs",
        &["pcg::vole::{Sender, Receiver}::setup_with"],
    ),
    ("apps/ope.rs", &["apps::offline::Sender::stream"]),
    ("apps/linear.rs", &["apps::offline::Receiver::stream"]),
    (
        "pcg/vole/base.rs",
        &["ot::softspoken::fork::{Sender, Receiver}::setup_from_ots"],
    ),
    (
        "psi/circuit.rs",
        &["psi::circuit::gmw::{Sender, Receiver}::and"],
    ),
    (
        "psi/session.rs",
        &[
            "psi::oprf::Receiver::extend_streamed",
            "psi::oprf::Sender::extend_watched",
        ],
    ),
];
