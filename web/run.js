// The worker that runs the module, which blocks it.

import { attach, panickedAt } from "./stream.js";
import load, { Run } from "./volery_web.js";

let run, port;

const progress = (phase) => postMessage({ progress: phase });

function failure(error) {
  if (typeof error === "string") return JSON.parse(error);
  const place = panickedAt();
  return {
    kind: "data",
    message: place
      ? `the module stopped at ${place}`
      : `the module stopped: ${String(error?.message ?? error)}`,
    hint: "if the table is large, close other pages: the memory may be used up; otherwise please report it",
  };
}

const steps = {
  async read({ module, options, name, file, keys }) {
    attach(null, null, progress);
    await load({ module_or_path: module });
    if (file) {
      const bytes = new Uint8Array(await file.arrayBuffer());
      run = Run.file(options, name, bytes);
    } else {
      run = Run.keys(options, keys);
    }
    postMessage({ terms: JSON.parse(run.terms()) });
  },

  run({ memory, patience, filter, ...rest }) {
    port = rest.port;
    attach(memory, port, progress);
    const began = performance.now();
    run.run(patience, filter);
    const seconds = (performance.now() - began) / 1000;
    const [rows, rules, file] = [run.rows(), run.rules(), run.out()];
    const told = JSON.parse(run.told());
    const result = { ...("belowMinimum" in told ? {} : { rows, rules }), ...told, seconds };
    const moved = [rows.buffer, rules.buffer];
    if (file) {
      result.file = new Blob([file], { type: "text/csv" });
    }
    // Behind the last bytes, and before the page ends this worker.
    port.postMessage("end");
    postMessage({ result }, moved);
  },
};

onmessage = async ({ data }) => {
  try {
    await steps[data.step](data);
  } catch (error) {
    port?.postMessage("end");
    postMessage({ failure: failure(error) });
  }
};
