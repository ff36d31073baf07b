/**
 * Private matching in the browser: this side has a table or a list of keys, and asks a native
 * `volery` over a WebSocket which of them the other side has, too. Nothing but protocol messages
 * leaves the page.
 *
 * The page must be cross-origin isolated (headers `Cross-Origin-Opener-Policy: same-origin` and
 * `Cross-Origin-Embedder-Policy: require-corp`); each call works in two workers of its own.
 */

/** What is wrong, as the exit status of the program and the exceptions of Python tell it. */
export type ErrorKind =
  /** The table cannot be used: a file, a row, a key. */
  | "data"
  /** An option is wrong or missing, or the page is not cross-origin isolated. */
  | "usage"
  /** The peer broke the protocol, a check of its messages failed, or it refused this side. */
  | "peer"
  /** The connection broke, or could not be made, or a time limit passed. */
  | "network"
  /** The two sides were started with different settings. */
  | "settings"
  /** The signal was aborted, or `onTerms` returned false. */
  | "cancelled";

export class VoleryError extends Error {
  readonly kind: ErrorKind;
  /** One line: what happened, and where. No key and no value is in it. */
  readonly message: string;
  /** One line: what to do, where that is known. */
  readonly hint?: string;
  /** Of a query: the server has another version of its filter, or another key, than the filter
   *  that is kept here. */
  readonly otherFilter?: boolean;
}

/** What this side is about to reveal. Nothing was sent yet: there is no connection. */
export interface Terms {
  /** What each side learns, one sentence each, without a full stop. */
  revealed: string[];
  /** Rows of the table. */
  rows: number;
  /** Different keys, by each rule: what the peer learns the number of. */
  keys: number[];
  /** Rows that take no part: without a key, with a malformed one, with a key of too many rows. */
  empty: number;
  malformed: number;
  repeated: number;
  /** Rows with the same key as an earlier row. */
  duplicates: number;
  /** Facts about the table worth telling, one sentence each, such as blank lines left out. */
  notices: string[];
  /** The types and normalisers of the keys, which the handshake compares. */
  keyTypes: string;
  protocol: string;
  security: "malicious" | "semi-honest";
}

export interface Progress {
  /** In words: "reading keys", "exchanging tags", .. */
  phase: string;
  /** Steps done, and steps in all; 0 of 0 where that is unknown. */
  done: number;
  total: number;
}

/** Options of all calls. Names and meanings are those of the program's options. */
export interface Options {
  /** `ws://` or `wss://`: the bridge in front of the peer. */
  url: string | URL;
  /** The access token of the bridge. */
  token?: string;
  /** A text file with a header (a `File` also says its name, and so its format and whether it is
   *  compressed with gzip), or keys, which are then the column `key`. */
  table: Blob | readonly string[];
  /** `COL[:SPEC],..`, as `--key`: "phone:e164=DE", "name:trim+lower,born:date". Required for a
   *  file; "key" for a list of keys, for which ":SPEC" alone is enough. */
  key?: string | readonly string[];
  format?: "csv" | "tsv";
  delimiter?: string;
  /** A label such as "windows-1252": keys are then compared as UTF-8. */
  encoding?: string;
  quote?: "double" | "none";
  emptyKeys?: "error" | "skip";
  malformed?: "error" | "skip";
  duplicates?: "keep" | "error" | "dedup";
  /** Leaves out the rows of each key that more rows than this have; with `or`, they only have no
   *  part in matching on that key. */
  dropRepeated?: number;
  /** Seconds without a sign of life after which a run ends; 60 if not given. */
  timeout?: number;
  /** Asked before there is a connection; the call ends with "cancelled" if it returns false. */
  onTerms?: (terms: Terms) => boolean | Promise<boolean>;
  onProgress?: (progress: Progress) => void;
  /** Ends the call within moments; the peer finds the connection closed. */
  signal?: AbortSignal;
}

/** Options of calls for rows. */
export interface RowOptions extends Options {
  /** The matching rows as a text file, too: `file` of the result. */
  out?: boolean;
}

export interface MatchOptions extends RowOptions {
  /** Other keys by which rows match that do not match by those before, as `--or`. */
  or?: readonly string[];
  /** As `--link`: the link that "auto" chooses for, the same on both sides; measured without it. */
  link?: string;
  protocol?: "auto" | "vole" | "vole-low" | "kkrt" | "kkrt-paper" | "dh";
  security?: "malicious" | "semi-honest";
  /** Both sides set it or none: the sender gets its matching rows as well. */
  both?: boolean;
}

export interface CountOptions extends Options {
  protocol?: "auto" | "dh" | "circuit" | "circuit-low";
  /** Both sides set it or none: the sender gets the number as well. */
  both?: boolean;
  /** The fewest common keys of which the number is opened; the same on both sides. */
  minimum?: number;
  /** Noise, as `--epsilon` and `--delta`: decimal numbers, the same on both sides. */
  epsilon?: string;
  delta?: string;
}

export interface LookupOptions extends MatchOptions {
  /** Names for the columns of the sender, in their order. */
  valueNames?: readonly string[];
}

export interface QueryOptions extends RowOptions {
  /** Keep the filter in the browser's cache, for later queries of the same `url`; true if not
   *  given. */
  keep?: boolean;
  /** Fetch the filter again, although one is kept: after an error with `otherFilter`. It is never
   *  fetched in silence in place of another one, because a server with a filter of its own for a
   *  client would recognize the client. */
  refresh?: boolean;
}

export interface Matched {
  /** Numbers of the matching rows of `table`, counted from 0 without the header, ascending. */
  rows: Uint32Array;
  /** For each of them the number of the key by which it matched: 1 for `key`, 2 for the first
   *  of `or`. */
  rules: Uint8Array;
  /** With `out`: the matching rows with their header and the peer's columns, as the program writes
   *  them. */
  file?: Blob;
  count: number;
  /** Bytes of the protocol in both directions. */
  bytes: number;
  /** From the connection to the result. */
  seconds: number;
  /** Protocol, sizes, assumptions, failure probabilities: as in the program's `--report`. */
  report: Record<string, unknown>;
}

export interface Counted {
  /** Keys that both sides have, with noise if there is any; null below the minimum. */
  count: number | null;
  belowMinimum: boolean;
  bytes: number;
  seconds: number;
  report: Record<string, unknown>;
}

export interface LookedUp extends Matched {
  /** The sender's columns: their names, and the text of each of the matching rows, in the order
   *  of `rows`; null where the sender has none. */
  values: { name: string; cells: (string | null)[] }[];
}

export interface Queried extends Matched {
  /** Whether the filter was fetched in this call. */
  fetched: boolean;
  /** Keys that may still be asked for, as the server says; null without a limit. */
  left: number | null;
}

/** Loads the module ahead of the first call. `module` is the address of `volery_web_bg.wasm`, where
 *  it is not beside `index.js`. */
export function init(options?: { module?: string | URL }): Promise<void>;

/** The matching rows, with a native `volery psi --role sender`. */
export function match(options: MatchOptions): Promise<Matched>;

/** How many keys are common and nothing else, with a native `volery psi --role sender --result
 *  count`. */
export function count(options: CountOptions): Promise<Counted>;

/** The matching rows with columns of a native `volery lookup --role sender`. */
export function lookup(options: LookupOptions): Promise<LookedUp>;

/** The matching rows, of a `volery serve`. */
export function query(options: QueryOptions): Promise<Queried>;

/** Reads the table as a call would, with no connection, and tells what the call would reveal. */
export function terms(
  options: Omit<MatchOptions, "url"> & { call?: "match" | "lookup" | "query" | "count" },
): Promise<Terms>;
