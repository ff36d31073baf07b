//! The frames of a connection that is split.

use std::io;
use std::time::Duration;

use super::shared::{Failure, State};
use super::traffic::Traffic;
use crate::Transport;

/// Bytes before the data of a frame.
pub(super) const HEADER: usize = 8;

/// Bytes that are read at a time.
const BUFFER: usize = 64 << 10;

const DATA: u16 = 0;
const ROOM: u16 = 1;
const END: u16 = 2;

/// One frame, with the number of its lane.
pub(super) enum Frame<'a> {
    Data(usize, &'a [u8]),
    Room(usize, usize),
    End(usize),
}

impl Frame<'_> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let (lane, kind, length, data) = match *self {
            Self::Data(lane, data) => (lane, DATA, data.len(), data),
            Self::Room(lane, room) => (lane, ROOM, room, &[][..]),
            Self::End(lane) => (lane, END, 0, &[][..]),
        };
        out.extend_from_slice(&(lane as u16).to_le_bytes());
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(&(length as u32).to_le_bytes());
        out.extend_from_slice(data);
    }
}

/// Takes frames apart, wherever the transport cuts them.
#[derive(Default)]
pub(super) struct Reader {
    buffer: Vec<u8>,
    header: [u8; HEADER],
    /// Bytes of the header that are there.
    filled: usize,
    /// The lane whose data come, and how many bytes are still to come.
    data: (usize, usize),
}

impl Reader {
    /// Reads what is there, at least one byte; none at the end.
    pub(super) fn read(
        &mut self,
        transport: &dyn Transport,
        timeout: Option<Duration>,
    ) -> io::Result<usize> {
        self.buffer.resize(BUFFER, 0);
        transport.read(&mut self.buffer, timeout)
    }

    /// Gives the lanes the first `count` bytes that [`read`](Self::read) has read.
    pub(super) fn deliver(&mut self, count: usize, state: &mut State) {
        let buffer = std::mem::take(&mut self.buffer);
        self.take(&buffer[..count], state);
        self.buffer = buffer;
    }

    /// Gives the lanes what is in `bytes`.
    pub(super) fn take(&mut self, mut bytes: &[u8], state: &mut State) {
        while !bytes.is_empty() && state.failure.is_none() {
            let (lane, left) = &mut self.data;
            if *left > 0 {
                let data;
                (data, bytes) = bytes.split_at(bytes.len().min(*left));
                *left -= data.len();
                state.lanes[*lane].come(data);
                continue;
            }
            let part;
            (part, bytes) = bytes.split_at(bytes.len().min(HEADER - self.filled));
            self.header[self.filled..][..part.len()].copy_from_slice(part);
            self.filled += part.len();
            if self.filled == HEADER {
                self.filled = 0;
                if let Err(what) = self.begin(&mut state.lanes) {
                    state.failure = Some(Failure::Misbehaved(what));
                }
            }
        }
    }

    /// A header is complete.
    fn begin(&mut self, lanes: &mut [Traffic]) -> Result<(), &'static str> {
        let [l0, l1, k0, k1, length @ ..] = self.header;
        let number = usize::from(u16::from_le_bytes([l0, l1]));
        let length = u32::from_le_bytes(length) as usize;
        let lane = lanes
            .get_mut(number)
            .ok_or("it sends on a lane that there is not")?;
        if lane.has_ended() {
            return Err("it sends on a lane that it has ended");
        }
        match u16::from_le_bytes([k0, k1]) {
            DATA => {
                lane.announce(length)?;
                self.data = (number, length);
            }
            ROOM => lane.give(length)?,
            END if length == 0 => lane.end(),
            _ => return Err("its frame is of no kind"),
        }
        Ok(())
    }
}
