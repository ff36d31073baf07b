//! The steps of a run, one by one, for a run whose parts several processes do: crate
//! `volery_cluster` takes them apart.

pub use crate::agree::{HandshakeResult, Proposal};
pub use crate::agreement::{Agreement, LocalManifest, parse};
pub use crate::folder::{Folder, MATCHED, RECORD, Spool, is_ours};
pub use crate::keys::{Entry, FRAME, Keys, Rows, buckets};
pub use crate::matches::{RowSet, append};
pub use crate::parts::{Journal, Part, PartCost, Parts, SESSION, conclude, session_of};
pub use crate::progress::Inner;
pub use crate::side::own;
pub use crate::system::{make_private_folder, sync_folder};

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}
