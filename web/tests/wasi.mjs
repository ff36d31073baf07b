#!/usr/bin/env -S node --no-warnings
// Runs a test program for wasm32-wasip1.

import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const [program, ...words] = process.argv.slice(2);
const env = { ...process.env, RUST_TEST_THREADS: "1" };
const wasi = new WASI({ version: "preview1", args: [program, ...words], env, preopens: { "/": "/" } });
const module = await WebAssembly.compile(await readFile(program));
process.exitCode = wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
