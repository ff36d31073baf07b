// The worker that has the WebSocket. It never waits: what comes goes into the ring, or is kept
// until there is space in it.

import { CLOSED, EVENT, FULL, HEAD, READING, RING, TAIL, WORDS } from "./stream.js";

// The most bytes of a message. A bridge takes 2^20, but a peer sees a message only when it is whole:
// on a slow line it would take a long one for silence.
const MESSAGE = 1 << 16;
const MOST = 256 << 20; // bytes that are kept, in either direction
const PIECE = 128; // bytes of memory of a message beside its own
const BEAT = Uint8Array.of(1, 0, 0, 0); // "this side is alive": docs/design/channel.md

let control, ring, socket;
let kept = [];
let bytesKept = 0;
let ended = false;
let sent = 0;
let sentBefore = 0;
let came = false; // data, since the last time for a heartbeat

onmessage = ({ data }) => {
  if (data === "abort") {
    end();
    return;
  }
  const { url, protocols, memory, port, patience } = data;
  control = new Int32Array(memory, 0, WORDS);
  ring = new Uint8Array(memory, 4 * WORDS, RING);
  port.onmessage = ({ data }) => {
    if (data === null) drain();
    else if (data === "end") end();
    else send(data);
  };
  try {
    socket = new WebSocket(url, protocols);
  } catch (error) {
    close(0, error.message);
    return;
  }
  socket.binaryType = "arraybuffer";
  const late = setTimeout(() => {
    close(0, `no connection within ${patience / 1000} s`);
    socket.close();
  }, patience);
  socket.onopen = () => {
    clearTimeout(late);
    setInterval(beat, 1000);
    if (!ended) postMessage({ open: true });
  };
  socket.onmessage = ({ data }) => {
    if (ended) return;
    // A heartbeat of the peer is 4 bytes.
    came ||= data.byteLength > 4;
    if (typeof data === "string" || bytesKept + data.byteLength + PIECE * kept.length > MOST) {
      const what = "it sends what no bridge of volery sends";
      close(-1, what);
      socket.close(1000);
      return;
    }
    if (data.byteLength === 0) return;
    kept.push(new Uint8Array(data));
    bytesKept += data.byteLength;
    drain();
  };
  socket.onclose = ({ code, reason }) => {
    clearTimeout(late);
    close(code, reason);
  };
};

function send(bytes) {
  if (ended || socket.readyState !== WebSocket.OPEN) return;
  sent += 1;
  for (let at = 0; at < bytes.length; at += MESSAGE) socket.send(bytes.subarray(at, at + MESSAGE));
  if (socket.bufferedAmount > MOST) {
    close(0, "the peer does not read");
    socket.close(1000);
  }
}

// The module sends whole frames, so between two of its messages there may be a heartbeat.
function beat() {
  const idle = sent > 0 && sent === sentBefore && socket.bufferedAmount === 0;
  // A peer that has handed a long message to a slow line waits for the answer.
  const busy = came || !Atomics.load(control, READING);
  came = false;
  if (idle && busy && !ended && socket.readyState === WebSocket.OPEN) {
    socket.send(BEAT);
  }
  sentBefore = sent;
}

function drain() {
  while (kept.length > 0) {
    const head = Atomics.load(control, HEAD) >>> 0;
    const space = RING - ((head - (Atomics.load(control, TAIL) >>> 0)) >>> 0);
    if (space === 0) {
      Atomics.store(control, FULL, 1);
      // The module may have read since.
      if ((Atomics.load(control, TAIL) >>> 0) === ((head - RING) >>> 0)) return;
      continue;
    }
    const bytes = kept[0];
    const start = head % RING;
    const count = Math.min(bytes.length, space, RING - start);
    ring.set(bytes.subarray(0, count), start);
    Atomics.store(control, HEAD, (head + count) | 0);
    bytesKept -= count;
    if (count === bytes.length) kept.shift();
    else kept[0] = bytes.subarray(count);
    wake();
  }
  if (ended) finish();
}

function wake() {
  Atomics.add(control, EVENT, 1);
  Atomics.notify(control, EVENT);
}

// The end of the stream: the module still reads what has come.
let finished = false;
function finish() {
  if (finished) return;
  finished = true;
  Atomics.store(control, CLOSED, 1);
  wake();
}

// The first reason counts. Codes below 1000 are of this worker: 0 for the network, -1 for the peer.
function close(code, reason) {
  if (!ended) {
    ended = true;
    postMessage({ closed: true, code, reason });
    drain();
  }
  if (socket === undefined || socket.readyState === WebSocket.CLOSED) setTimeout(self.close);
}

// This side has what it wanted, or wants no more. What was sent before goes out first.
function end() {
  ended = true;
  kept = [];
  finish();
  // One that is still being made is closed when it is there: the browser would tell the console of
  // an error.
  if (socket?.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close(1000);
  else socket?.close(1000);
  if (socket === undefined) self.close();
}
