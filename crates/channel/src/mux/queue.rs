//! The queue and the windows of one substream.

use std::collections::VecDeque;

/// Bytes in a chunk of a queue.
const CHUNK: usize = 64 << 10;

/// Bytes read before a window update, where a quarter of the window is more: as long as bytes move,
/// a waiting writer is notified.
const STEP: usize = 1 << 20;

/// Bytes in order of arrival. Its memory is that of the bytes, however small the pieces in which
/// they arrived.
#[derive(Default)]
struct Queue {
    chunks: VecDeque<Vec<u8>>,
    /// Bytes of the first chunk already taken.
    taken: usize,
}

impl Queue {
    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.chunks.back().is_none_or(|last| last.len() >= CHUNK) {
                self.chunks.push_back(Vec::new());
            }
            if let Some(last) = self.chunks.back_mut() {
                let now;
                (now, bytes) = bytes.split_at(bytes.len().min(CHUNK - last.len()));
                last.extend_from_slice(now);
            }
        }
    }

    /// Fills `bytes` as far as possible; returns the number of bytes.
    fn take(&mut self, bytes: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < bytes.len()
            && let Some(chunk) = self.chunks.front()
        {
            let count = (bytes.len() - filled).min(chunk.len() - self.taken);
            bytes[filled..][..count].copy_from_slice(&chunk[self.taken..][..count]);
            filled += count;
            self.taken += count;
            if self.taken == chunk.len() {
                self.chunks.pop_front();
                self.taken = 0;
            }
        }
        filled
    }
}

pub(super) struct Incoming {
    /// The bytes received and not yet read.
    queue: Queue,
    /// Bytes read and not yet added to the peer's window.
    consumed: usize,
    /// Bytes that the peer may send.
    granted: usize,
    /// Bytes that this party may send.
    send_window: usize,
    /// Initial window of both directions.
    window: usize,
    /// The peer has stopped sending and reading.
    ended: bool,
    /// This party has stopped reading.
    dropped: bool,
}

impl Incoming {
    pub(super) fn new(window: usize) -> Self {
        Self {
            queue: Queue::default(),
            consumed: 0,
            granted: window,
            send_window: window,
            window,
            ended: false,
            dropped: false,
        }
    }

    /// Bytes read before a window update.
    fn step(&self) -> usize {
        STEP.min(self.window / 4)
    }

    /// Takes received bytes; returns their number and the window update to send; `None` if there
    /// are none.
    pub(super) fn take(&mut self, bytes: &mut [u8]) -> Option<(usize, usize)> {
        let count = self.queue.take(bytes);
        if count == 0 && !self.ended {
            return None;
        }
        self.consumed += count;
        let mut read = 0;
        if self.consumed >= self.step() {
            read = std::mem::take(&mut self.consumed);
        }
        self.granted += read;
        Some((count, read))
    }

    /// Takes up to `wanted` bytes off the send window; `None` if it is empty.
    pub(super) fn take_window(&mut self, wanted: usize) -> Option<usize> {
        let now = wanted.min(self.send_window);
        self.send_window -= now;
        (now > 0).then_some(now)
    }

    /// Handles the header of a data frame of `length` bytes.
    pub(super) fn begin_frame(&mut self, length: usize) -> Result<(), &'static str> {
        // mutant(queue-empty): false
        if length == 0 {
            return Err("it sent an empty data frame");
        }
        // mutant(queue-room): `length` => `0`
        self.granted = self
            .granted
            .checked_sub(length)
            .ok_or("it sent more data than the window of its substream allows")?;
        Ok(())
    }

    /// Queues bytes of an announced frame.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if !self.dropped {
            self.queue.push(bytes);
        }
    }

    /// Handles a window update: the peer has read `length` bytes, so they must have been sent.
    pub(super) fn update_window(&mut self, length: usize) -> Result<(), &'static str> {
        // mutant(queue-give-nothing): false
        if length == 0 {
            return Err("it sent an empty window update");
        }
        let send_window = self.send_window.saturating_add(length);
        // mutant(queue-give): false
        if send_window > self.window {
            return Err("it acknowledged more data than was sent");
        }
        self.send_window = send_window;
        Ok(())
    }

    /// Handles the peer's end of this substream.
    pub(super) const fn end(&mut self) {
        self.ended = true;
    }

    pub(super) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Stops reading this substream.
    pub(super) fn drop_queue(&mut self) {
        self.dropped = true;
        self.queue = Queue::default();
    }

    /// Memory of the queue, in bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let chunks = self.queue.chunks.iter().map(Vec::capacity);
        chunks.sum::<usize>() + self.queue.chunks.capacity() * size_of::<Vec<u8>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that came one by one take as much memory as others: twice their number, and a chunk.
    #[test]
    fn memory_is_that_of_the_bytes() {
        let count = 1_000_000;
        let mut substream = Incoming::new(8 * count);
        let mut came = 0;
        for i in 0..count {
            substream.begin_frame(1).expect("the window is not empty");
            substream.push(&[i as u8]);
            came += 1;
            if i.is_power_of_two() {
                assert!(substream.held() <= 2 * came + CHUNK, "{} for {came}", substream.held());
            }
        }
        assert!(substream.held() <= count + 2 * CHUNK, "{}", substream.held());
        let mut bytes = vec![0; count + 1];
        assert_eq!(substream.take(&mut bytes), Some((count, 0)));
        assert!((0..count).all(|i| bytes[i] == i as u8));
        assert_eq!(substream.take(&mut bytes), None);
    }

    #[test]
    fn credit_is_given_in_steps() {
        for (window, step) in [(64 << 20, 1 << 20), (1 << 20, 1 << 18)] {
            let mut substream = Incoming::new(window);
            substream.begin_frame(window).expect("the window is not empty");
            substream.push(&vec![1; window]);
            assert!(substream.begin_frame(1).is_err());
            let mut bytes = vec![0; step - 1];
            assert_eq!(substream.take(&mut bytes), Some((step - 1, 0)));
            assert_eq!(substream.take(&mut bytes[..1]), Some((1, step)));
            substream.begin_frame(step).expect("the window is not empty");
            assert!(substream.begin_frame(1).is_err());
        }
    }
}
