//! Protocols at the same time over one connection, which goes on afterwards: [`side_by_side`].
//!
//! Each task has a substream: a channel of its own. A substream that waits does not block the
//! others. A substream's number is the index of its task.
//!
//! ```text
//! frames, each of one substream:
//!     substream (2 bytes), kind (2), length (4), little endian
//!     data:   length bytes of the substream, not 0
//!     window: the peer may send length more bytes on this substream, not 0
//!     end:    no more data comes or is read on this substream; length 0
//! ```
//!
//! A substream queues up to [`QUEUE_BOUND`](crate::QUEUE_BOUND)`/(substreams + 1)` bytes that the
//! peer has not read; then a write waits, as on every transport. The waiting threads take turns
//! reading for all substreams.
//!
//! A substream times out when no byte of any substream moves for its timeout. After a failed write,
//! nothing more is written on any substream, and bytes that arrived before can be read.
//!
//! Security: that of the connection; a party that can read one substream can read all. Data beyond
//! the window, an unknown substream or an empty frame ends all substreams. Memory is bounded by the
//! granted windows: at most twice that, in frames of any size.
//!
//! Cost: 8 bytes a frame of at most 64 KiB, and 8 for each MiB that was read, or each quarter of a
//! substream's queue if that is less; 8 each way for the end of a substream.

mod beside;
mod frame;
mod queue;
mod shared;

use std::io;
use std::time::Duration;

use volery_os::sync::Arc;
use volery_primitives::Wiped;

use crate::Transport;
pub use beside::side_by_side;
use frame::Frame;
pub(crate) use shared::Shared;
use shared::Waits;

/// Maximum number of substreams of a connection.
pub const MAX_SUBSTREAMS: usize = 256;

/// Maximum bytes of a substream that are sent before another substream has its turn.
const PIECE: usize = 64 << 10;

/// One substream, as a transport.
struct End {
    shared: Arc<Wiped<Shared>>,
    number: usize,
}

impl Transport for End {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let wanted = rest.len().min(PIECE);
            let now = self.shared.wait(self.number, Waits::ToWrite, timeout, |substream| {
                if substream.has_ended() {
                    // no mutant: the peer has ended the substream
                    return Some(Err(io::ErrorKind::BrokenPipe.into()));
                }
                substream.take_window(wanted).map(Ok)
            })?;
            let data;
            (data, rest) = rest.split_at(now);
            self.shared.send(Frame::Data(self.number, data), timeout)?;
        }
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        let (count, read) = self
            .shared
            .wait(self.number, Waits::ToRead, timeout, |substream| substream.take(bytes).map(Ok))?;
        if read > 0 {
            // The peer may have sent its last bytes and closed. A later read finds the end.
            let _ = self.shared.send(Frame::Window(self.number, read), timeout);
        }
        Ok(count)
    }

    fn round_trip(&self) -> Option<Duration> {
        self.shared.round_trip()
    }
}
