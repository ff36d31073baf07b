//! One lane's bytes, and how many more may come and go.

use std::collections::VecDeque;

/// Bytes in a piece of a queue.
const CHUNK: usize = 64 << 10;

/// The bytes that are read before the peer is told, where a quarter of the window is more: as long as they move, a writer that
/// waits hears of it.
const STEP: usize = 1 << 20;

/// Bytes in the order in which they came. Its memory is that of the bytes, however small the pieces were in which they came.
#[derive(Default)]
struct Queue {
    chunks: VecDeque<Vec<u8>>,
    /// Bytes of the first chunk that were taken.
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

    /// Fills `bytes` as far as there are bytes, and says how far.
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

/// One lane's bytes.
pub(super) struct Traffic {
    /// What came and was not read.
    queue: Queue,
    /// Bytes that were read and for which the peer was not given room again.
    consumed: usize,
    /// Bytes that the peer may send.
    granted: usize,
    /// Bytes that we may send.
    room: usize,
    /// Bytes that either may send at first.
    window: usize,
    /// The peer sends no more, and reads no more.
    ended: bool,
    /// We read no more.
    dropped: bool,
}

impl Traffic {
    pub(super) fn new(window: usize) -> Self {
        Self {
            queue: Queue::default(),
            consumed: 0,
            granted: window,
            room: window,
            window,
            ended: false,
            dropped: false,
        }
    }

    /// The bytes that are read before the peer is told.
    fn step(&self) -> usize {
        STEP.min(self.window / 4)
    }

    /// Hands out what came, and says how much, and for how much the peer is to be given room; none if nothing is there.
    pub(super) fn take(&mut self, bytes: &mut [u8]) -> Option<(usize, usize)> {
        let count = self.queue.take(bytes);
        if count == 0 && !self.ended {
            return None;
        }
        self.consumed += count;
        let mut room = 0;
        if self.consumed >= self.step() {
            room = std::mem::take(&mut self.consumed);
        }
        self.granted += room;
        Some((count, room))
    }

    /// The bytes of at most `wanted` that may be sent now: they count as sent. None if there is no room.
    pub(super) fn leave(&mut self, wanted: usize) -> Option<usize> {
        let now = wanted.min(self.room);
        self.room -= now;
        (now > 0).then_some(now)
    }

    /// A frame of `length` bytes begins.
    pub(super) fn announce(&mut self, length: usize) -> Result<(), &'static str> {
        if length == 0 {
            return Err("its frame is empty");
        }
        self.granted = self
            .granted
            .checked_sub(length)
            .ok_or("it sends more on a lane than there is room for")?;
        Ok(())
    }

    /// Bytes of a frame that was announced.
    pub(super) fn come(&mut self, bytes: &[u8]) {
        if !self.dropped {
            self.queue.push(bytes);
        }
    }

    /// The peer gives room: as many bytes it has read, so they were sent.
    pub(super) fn give(&mut self, length: usize) -> Result<(), &'static str> {
        if length == 0 {
            return Err("it gives room for nothing");
        }
        let room = self.room.saturating_add(length);
        if room > self.window {
            return Err("it has read more of a lane than was sent");
        }
        self.room = room;
        Ok(())
    }

    /// The peer has ended this lane.
    pub(super) const fn end(&mut self) {
        self.ended = true;
    }

    pub(super) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// We read no more of this lane. Says whether the peer is to be told: not if it is gone, perhaps.
    pub(super) fn drop_queue(&mut self) -> bool {
        self.dropped = true;
        self.queue = Queue::default();
        !self.ended || self.window - self.granted >= self.step()
    }

    /// Whether the peer will still say that it has read more of what was sent, or that it does not want to.
    pub(super) fn is_owed(&self) -> bool {
        !self.ended && self.window - self.room >= self.step()
    }

    /// Bytes of memory that the queue has.
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
        let mut lane = Traffic::new(8 * count);
        let mut came = 0;
        for i in 0..count {
            lane.announce(1).expect("room");
            lane.come(&[i as u8]);
            came += 1;
            if i.is_power_of_two() {
                assert!(
                    lane.held() <= 2 * came + CHUNK,
                    "{} for {came}",
                    lane.held()
                );
            }
        }
        assert!(lane.held() <= count + 2 * CHUNK, "{}", lane.held());
        let mut bytes = vec![0; count + 1];
        assert_eq!(lane.take(&mut bytes), Some((count, 0)));
        assert!((0..count).all(|i| bytes[i] == i as u8));
        assert_eq!(lane.take(&mut bytes), None);
    }

    #[test]
    fn room_is_given_in_steps() {
        for (window, step) in [(64 << 20, 1 << 20), (1 << 20, 1 << 18)] {
            let mut lane = Traffic::new(window);
            lane.announce(window).expect("room");
            lane.come(&vec![1; window]);
            assert!(lane.announce(1).is_err());
            let mut bytes = vec![0; step - 1];
            assert_eq!(lane.take(&mut bytes), Some((step - 1, 0)));
            assert_eq!(lane.take(&mut bytes[..1]), Some((1, step)));
            lane.announce(step).expect("room");
            assert!(lane.announce(1).is_err());
        }
    }
}
