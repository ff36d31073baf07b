//! The frames of substreams.

use std::io;
use std::time::Duration;

use super::queue::Incoming;
use crate::Transport;

/// Bytes before the data of a frame.
pub(super) const HEADER: usize = 8;

/// Bytes read at a time.
const BUFFER: usize = 64 << 10;

const DATA: u16 = 0;
const WINDOW: u16 = 1;
const END: u16 = 2;

/// One frame, with the number of its substream.
pub(super) enum Frame<'a> {
    Data(usize, &'a [u8]),
    Window(usize, usize),
    End(usize),
}

impl Frame<'_> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let (substream, kind, length, data) = match *self {
            Self::Data(substream, data) => (substream, DATA, data.len(), data),
            Self::Window(substream, length) => (substream, WINDOW, length, &[][..]),
            Self::End(substream) => (substream, END, 0, &[][..]),
        };
        out.extend_from_slice(&(substream as u16).to_le_bytes());
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(&(length as u32).to_le_bytes());
        out.extend_from_slice(data);
    }
}

/// Parses frames, wherever the transport cuts them.
#[derive(Default)]
pub(super) struct Reader {
    buffer: Vec<u8>,
    header: [u8; HEADER],
    /// Bytes of the header received so far.
    filled: usize,
    /// The substream whose data follow, and the number of bytes still to come.
    data: (usize, usize),
    /// The substreams of which a frame came since the last call of [`touched`](Self::touched).
    touched: Vec<usize>,
    /// The bytes after the end of the last substream, where the connection goes on.
    rest: Vec<u8>,
}

impl Reader {
    /// The substreams of which something came since the last call.
    pub(super) fn touched(&mut self) -> std::vec::Drain<'_, usize> {
        self.touched.sort_unstable();
        self.touched.dedup();
        self.touched.drain(..)
    }

    /// The bytes after the end of the last substream.
    pub(super) fn into_rest(self) -> Vec<u8> {
        self.rest
    }

    /// Reads the available bytes, at least one; zero at the end.
    pub(super) fn read(
        &mut self,
        transport: &dyn Transport,
        timeout: Option<Duration>,
    ) -> io::Result<usize> {
        let wanted = match self.data {
            _ if transport.reads_ahead() => BUFFER,
            (_, 0) => HEADER - self.filled,
            (_, left) => left.min(BUFFER),
        };
        self.buffer.resize(wanted, 0);
        transport.read(&mut self.buffer, timeout)
    }

    /// Delivers the first `count` bytes that [`read`](Self::read) has read to the substreams.
    ///
    /// # Errors
    /// A protocol violation by the peer; the reader is unusable after that.
    pub(super) fn deliver(
        &mut self,
        count: usize,
        substreams: &mut [Incoming],
    ) -> Result<(), &'static str> {
        let buffer = std::mem::take(&mut self.buffer);
        let result = self.take(&buffer[..count], substreams);
        self.buffer = buffer;
        result
    }

    /// Delivers `bytes` to the substreams.
    ///
    /// # Errors
    /// The errors of [`deliver`](Self::deliver).
    pub(super) fn take(
        &mut self,
        mut bytes: &[u8],
        substreams: &mut [Incoming],
    ) -> Result<(), &'static str> {
        while !bytes.is_empty() {
            let (substream, left) = &mut self.data;
            if *left > 0 {
                let data;
                (data, bytes) = bytes.split_at(bytes.len().min(*left));
                *left -= data.len();
                if self.touched.last() != Some(substream) {
                    self.touched.push(*substream);
                }
                substreams[*substream].push(data);
                continue;
            }
            if self.filled == 0 && substreams.iter().all(Incoming::has_ended) {
                self.rest.extend_from_slice(bytes);
                return Ok(());
            }
            let part;
            (part, bytes) = bytes.split_at(bytes.len().min(HEADER - self.filled));
            self.header[self.filled..][..part.len()].copy_from_slice(part);
            self.filled += part.len();
            if self.filled == HEADER {
                self.filled = 0;
                self.begin(substreams)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, substreams: &mut [Incoming]) -> Result<(), &'static str> {
        let [l0, l1, k0, k1, length @ ..] = self.header;
        let number = usize::from(u16::from_le_bytes([l0, l1]));
        let length = u32::from_le_bytes(length) as usize;
        // mutant(frame-substream): `number` => `0`
        let substream =
            substreams.get_mut(number).ok_or("it sent a frame for an unknown substream")?;
        // mutant(frame-ended): false
        if substream.has_ended() {
            return Err("it sent a frame after the end of its substream");
        }
        self.touched.push(number);
        match u16::from_le_bytes([k0, k1]) {
            DATA => {
                substream.begin_frame(length)?;
                self.data = (number, length);
            }
            WINDOW => substream.update_window(length)?,
            END if length == 0 => substream.end(),
            // mutant(frame-kind): insert `_ if $ON => {}`
            _ => return Err("it sent a frame of an unknown kind"),
        }
        Ok(())
    }
}
