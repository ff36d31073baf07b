// The connection as the module sees it: bytes out by messages to the worker that has the
// WebSocket, bytes in from a ring in shared memory. Only this side waits.

// Places in the control words. Bytes `TAIL..HEAD` of the ring, both counted without end, have come
// and were not read. EVENT changes with whatever a reader may wait for.
export const [EVENT, HEAD, TAIL, CLOSED, READING, FULL] = [0, 1, 2, 3, 4, 5];
export const WORDS = 8;
// A power of two, so that the counters may overflow.
export const RING = 1 << 22;

let control, ring, port, report;
let place = "";

/// Connects to the worker at `to`; `tell` takes phases.
export function attach(memory, to, tell) {
  if (memory) {
    control = new Int32Array(memory, 0, WORDS);
    ring = new Uint8Array(memory, 4 * WORDS, RING);
  }
  port = to;
  report = tell;
}

/// Where the module panicked, if it did.
export const panickedAt = () => place;

export function panicked(where) {
  place = where;
}

export function progress(phase, done, total) {
  report({ phase, done, total });
}

export function keep(filter) {
  postMessage({ filter: filter.slice() });
}

export function write(bytes) {
  // The memory of the module cannot be handed over.
  const copy = bytes.slice();
  port.postMessage(copy, [copy.buffer]);
}

export function read(into, milliseconds) {
  const end = milliseconds < 0 ? Infinity : performance.now() + milliseconds;
  for (;;) {
    const event = Atomics.load(control, EVENT);
    const closed = Atomics.load(control, CLOSED);
    const tail = Atomics.load(control, TAIL) >>> 0;
    const come = ((Atomics.load(control, HEAD) >>> 0) - tail) >>> 0;
    if (come > 0) {
      const start = tail % RING;
      const count = Math.min(come, into.length, RING - start);
      into.set(ring.subarray(start, start + count));
      Atomics.store(control, TAIL, (tail + count) | 0);
      if (Atomics.exchange(control, FULL, 0)) port.postMessage(null);
      return count;
    }
    if (closed) return 0;
    const left = end - performance.now();
    if (left <= 0) return -1;
    Atomics.store(control, READING, 1);
    Atomics.wait(control, EVENT, event, left);
    Atomics.store(control, READING, 0);
  }
}
