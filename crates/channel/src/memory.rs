//! A transport between two threads of one process.

use std::io;
use std::time::Duration;

use volery_os::sync::{Arc, Mutex};
use volery_os::time::Instant;

use crate::Transport;
use crate::pipe::{Chunk, Pipe, lock};

/// One end of a pair of connected transports in memory.
///
/// A write waits only when [`QUEUE_BOUND`](crate::QUEUE_BOUND) bytes are unread. When one end is
/// dropped, the other reads what was written before, then the end of the stream; its writes fail at
/// once.
pub struct Memory {
    outgoing: Arc<Pipe>,
    incoming: Arc<Pipe>,
    /// The chunk being read, and the number of its bytes already read.
    current: Mutex<(Chunk, usize)>,
}

/// A pair of connected ends.
pub fn pair() -> (Memory, Memory) {
    let (there, back) = (Arc::new(Pipe::new()), Arc::new(Pipe::new()));
    (Memory::new(Arc::clone(&there), Arc::clone(&back)), Memory::new(back, there))
}

impl Memory {
    fn new(outgoing: Arc<Pipe>, incoming: Arc<Pipe>) -> Self {
        Self {
            outgoing,
            incoming,
            current: Mutex::new((Chunk { bytes: Vec::new(), due: Instant::now() }, 0)),
        }
    }
}

impl Transport for Memory {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        self.outgoing.push(bytes, timeout)
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        let mut current = lock(&self.current);
        let (chunk, start) = &mut *current;
        if *start == chunk.bytes.len() {
            let Some(next) = self.incoming.take(timeout)? else {
                return Ok(0);
            };
            (*chunk, *start) = (next, 0);
        }
        let count = bytes.len().min(chunk.bytes.len() - *start);
        bytes[..count].copy_from_slice(&chunk.bytes[*start..*start + count]);
        *start += count;
        self.incoming.release(count);
        Ok(count)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.outgoing.close();
        self.incoming.fail(io::ErrorKind::BrokenPipe);
    }
}
