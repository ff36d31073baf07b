// The package `volery`: see index.d.ts for what its functions take and return.

import { RING, WORDS } from "./stream.js";

/** The subprotocol of the WebSocket, and what stands before an access token in another one. */
const PROTOCOL = "volery.1";
const TOKEN = "token.";
/** Close codes of a bridge for a peer that is not there, too many connections, silence, and a peer
 *  whose connection broke; others refuse this side. */
const UNREACHABLE = [4000, 4002, 4003, 4004];
/** The cache with the filters of servers. */
const CACHE = "volery";
const TIMEOUT = 60;

export class VoleryError extends Error {
  constructor(kind, message, hint, otherFilter) {
    super(message);
    this.name = "VoleryError";
    this.kind = kind;
    if (hint) this.hint = hint;
    if (otherFilter) this.otherFilter = true;
  }
}

const base = () => globalThis.document?.baseURI ?? location.href;

let address = new URL("./volery_web_bg.wasm", import.meta.url);
let compiled;

export async function init({ module } = {}) {
  if (module) {
    const other = new URL(module, base());
    if (other.href !== address.href) {
      address = other;
      compiled = undefined;
    }
  }
  await load();
}

function load() {
  compiled ??= compile().catch((error) => {
    compiled = undefined;
    throw new VoleryError(
      "network",
      `${address.href}: the module could not be loaded: ${error.message}`,
      "serve volery_web_bg.wasm beside index.js, or name its address: init({ module })",
    );
  });
  return compiled;
}

async function compile() {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`status ${response.status}`);
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("application/wasm")) return WebAssembly.compileStreaming(response);
  return WebAssembly.compile(await response.arrayBuffer());
}

export const match = (options) => call("match", options);

export const count = (options) => call("count", options);

export const lookup = (options) => call("lookup", options);

export async function query({ keep = true, refresh = false, ...options } = {}) {
  const store = keep ? await filters(options.url) : undefined;
  return call("query", options, refresh ? undefined : await store?.get(), store);
}

export async function terms({ call = "match", ...options } = {}) {
  const run = await read(call, options);
  run.end();
  return run.terms;
}

const usage = (message, hint) => new VoleryError("usage", message, hint);
const cancelled = () => new VoleryError("cancelled", "cancelled");

/** The options for the module, as JSON; the others are of this file. */
function worded(kind, options) {
  const { url, token, table, onTerms, onProgress, signal, timeout, key, ...rest } = options;
  const list = key === undefined ? [] : typeof key === "string" ? [key] : [...key];
  const isKept = ([, value]) => value !== undefined && value !== null;
  return JSON.stringify({ call: kind, key: list, ...Object.fromEntries(Object.entries(rest).filter(isKept)) });
}

/** The worker with the table read, and what it says it will reveal. */
async function read(kind, options = {}, store = undefined) {
  const { table, signal, onProgress } = options;
  if (signal?.aborted) throw cancelled();
  const file = table instanceof Blob ? table : undefined;
  const keys = file ? undefined : Array.isArray(table) ? table : undefined;
  if (!file && !keys?.every((one) => typeof one === "string")) {
    throw usage("table: is missing", "give a File or Blob with a text table, or an array of keys");
  }
  const module = await load();
  if (signal?.aborted) throw cancelled();
  const worker = new Worker(new URL("./run.js", import.meta.url), { type: "module", name: "volery" });
  const run = { worker, socket: undefined };
  let fail, answered;
  const failed = new Promise((_, reject) => (fail = reject));
  failed.catch(() => {});
  const abort = () => {
    fail(cancelled());
    run.end();
  };
  signal?.addEventListener("abort", abort);
  run.end = () => {
    signal?.removeEventListener("abort", abort);
    worker.terminate();
    // After a run the worker with the module has ended the connection, behind its last bytes.
    if (!run.ended) run.socket?.postMessage("abort");
  };
  run.fail = fail;
  run.failed = failed;
  run.answer = () => Promise.race([failed, new Promise((resolve) => (answered = resolve))]);
  worker.onmessage = ({ data }) => {
    if (data.progress) onProgress?.(data.progress);
    else if (data.filter) run.kept = store?.put(data.filter);
    else if (data.failure) {
      const { kind, message, hint, otherFilter } = data.failure;
      fail(new VoleryError(kind, message, hint, otherFilter));
    } else answered(data);
  };
  worker.onerror = (event) => {
    event.preventDefault?.();
    fail(
      new VoleryError(
        "network",
        `a worker of the package did not start: ${event.message ?? "its file cannot be loaded"}`,
        "serve run.js, socket.js and stream.js beside index.js, with the headers of the page",
      ),
    );
  };
  try {
    const answer = run.answer();
    worker.postMessage({ step: "read", module, options: worded(kind, options), name: table.name ?? "table.csv", file, keys });
    run.terms = (await answer).terms;
  } catch (error) {
    run.end();
    throw error;
  }
  return run;
}

async function call(kind, options, filter, store) {
  if (!globalThis.crossOriginIsolated) {
    throw usage(
      "this page is not cross-origin isolated, so its workers can share no memory",
      "serve it with 'Cross-Origin-Opener-Policy: same-origin' and 'Cross-Origin-Embedder-Policy: require-corp', over https or from localhost",
    );
  }
  const url = target(options?.url);
  const seconds = options.timeout ?? TIMEOUT;
  if (!(seconds > 0)) throw usage("timeout: is not above zero");
  const run = await read(kind, options, store);
  try {
    if (options.onTerms) {
      const agreed = await Promise.race([run.failed, options.onTerms(run.terms)]);
      if (!agreed) throw cancelled();
    }
    return await meet(run, url, options, seconds * 1000, filter);
  } finally {
    run.end();
  }
}

function target(text) {
  let url;
  try {
    url = new URL(text, base());
  } catch {
    throw usage("url: is not an address", "give the bridge's, such as ws://localhost:8080/");
  }
  if (url.protocol === "http:" || url.protocol === "https:") url.protocol = url.protocol.replace("http", "ws");
  if (url.protocol !== "ws:" && url.protocol !== "wss:") {
    throw usage("url: is no address of a WebSocket", "it begins with ws:// or wss://");
  }
  return url;
}

async function meet(run, url, options, patience, filter) {
  const memory = new SharedArrayBuffer(4 * WORDS + RING);
  const { port1, port2 } = new MessageChannel();
  const protocols = [PROTOCOL];
  if (options.token) protocols.push(TOKEN + base64url(options.token));
  const socket = new Worker(new URL("./socket.js", import.meta.url), { type: "module", name: "volery socket" });
  run.socket = socket;
  socket.onerror = run.worker.onerror;
  let isOpen = false;
  let end;
  const ended = new Promise((resolve) => (end = resolve));
  const opened = new Promise((resolve, reject) => {
    socket.onmessage = ({ data }) => {
      if (data.open) {
        isOpen = true;
        resolve();
        return;
      }
      const reason = ending(data, url, isOpen);
      end(reason);
      reject(reason ?? new VoleryError("network", "the peer closed the connection before the end"));
    };
  });
  opened.catch(() => {});
  options.onProgress?.({ phase: "connecting", done: 0, total: 0 });
  socket.postMessage({ url: url.href, protocols, memory, port: port1, patience }, [port1]);
  await Promise.race([run.failed, opened]);
  let answer;
  try {
    const awaited = run.answer();
    run.worker.postMessage({ step: "run", memory, port: port2, patience, filter }, [port2]);
    answer = await awaited;
  } catch (error) {
    if (error.kind !== "network") throw error;
    // What the module knows as the end of the stream may have a reason, which comes from the other
    // worker.
    const wait = new Promise((resolve) => setTimeout(resolve, 200));
    throw (await Promise.race([ended, wait])) ?? error;
  }
  run.ended = true;
  await run.kept;
  return answer.result;
}

/** The error for the end of a connection; none if it is an ordinary end. */
function ending({ code, reason }, url, wasOpen) {
  const shown = reason.replace(/[\p{Cc}\s]+/gu, " ").trim();
  if (code >= 4000) {
    const kind = UNREACHABLE.includes(code) ? "network" : "peer";
    return new VoleryError(kind, `${url.host}: ${shown || `it refuses with code ${code}`}`);
  }
  if (code === -1) return new VoleryError("peer", `${url.host}: ${shown}`);
  if (code === 0) return new VoleryError("network", `${url.host}: ${shown}`);
  if (wasOpen) {
    return code === 1000 ? undefined : new VoleryError("network", `the connection to ${url.host} broke (code ${code})`);
  }
  return new VoleryError(
    "network",
    `${url.host}: no connection`,
    "check that the bridge of volery is running at this address and lets this page in; a page on https needs wss://",
  );
}

function base64url(text) {
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte));
  return btoa(bytes.join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Where the filter of the server at `url` is kept, in a browser that keeps any. */
async function filters(url) {
  if (!globalThis.caches || url === undefined) return undefined;
  const name = new URL(`/.volery/filter/${encodeURIComponent(String(url))}`, base());
  try {
    const cache = await caches.open(CACHE);
    return {
      async get() {
        const found = await cache.match(name);
        return found && new Uint8Array(await found.arrayBuffer());
      },
      put: (filter) => cache.put(name, new Response(filter)).catch(() => {}),
    };
  } catch {
    return undefined;
  }
}
