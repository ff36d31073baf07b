//! The memory of a run, predicted.

use volery_channel::Role;
use volery_psi::params::MAX_ITEMS;

use crate::protocol_choice::ProtocolChoice;
use crate::settings::{Operation, Settings};

/// Bytes of a process that has read nothing yet, with its threads and the tables of the vector OLE.
pub(crate) const FIXED: u64 = 96 << 20;

/// Bytes of memory of a run, predicted for `rows` distinct keys on both sides.
pub(crate) fn peak(settings: &Settings, rows: u64, buckets: u32, longest: usize) -> u64 {
    let each = rows.div_ceil(buckets.into());
    // Buckets are not equally full.
    let each = (each + each / 50 + 64).min(MAX_ITEMS);
    let search = settings.verb == Operation::Lookup;
    // Of all protocols for large sets it takes the most.
    let vole = ProtocolChoice::Vole.protocol(settings.security, &settings.output());
    let protocol = vole.map_or(0, |vole| {
        let parameters = vole.parameters(&settings.task([each, each]), 1);
        parameters.memory(settings.role, &settings.output())
    });
    // The entries and where each key begins; the set; the payload with its frame, twice.
    let sorted = each * (24 + 4 + 4);
    let payload = match (search, settings.role) {
        (true, Role::Sender) => each * (2 * longest as u64 + 40),
        (true, Role::Receiver) => each * (longest as u64 + 32),
        (false, _) => 0,
    };
    FIXED + rows / 8 + sorted + payload + protocol
}
