// The page: a table, its key, what is revealed, the run, the result. The package `volery` does the rest.

import { look } from "./csv.js";
import { ERRORS, dateForm, duration, many, number, sentence, size, suggest } from "./words.js";

const $ = (id) => document.getElementById(id);
const PANELS = ["terms", "work", "failed", "result"];

/** What the detail of a way to clean is: its label, a text below it, and the first value. */
const DETAILS = {
  e164: ["Country", "Two letters: numbers without +.. are dialled there.", () => navigator.language.split("-")[1] ?? "DE"],
  date: ["Form", "%d day, %m month, %Y year.", () => dateForm(keys())],
  other: ["Normalisers", "As the program names them, with + between: trim+lower.", () => "trim+lower"],
};

/** The file, and what was seen in it. */
let table;
let run;
let link;

const volery = import("./volery/index.js");
volery.catch(() => fail({
  kind: "network",
  message: "volery/index.js: the package is not there",
  hint: "build it: .ci/web build; then serve the folder target/web/page",
}));

// ------------------------------------------------------------------------------------ the form

/** The other party may give a link with its settings: #call=query&key=:email&token=..; what is
 *  behind # is not sent to the server of the page. */
function readLink() {
  const given = new URLSearchParams(location.hash.slice(1));
  $("url").value = given.get("url") ?? location.origin.replace(/^http/, "ws");
  if (["match", "lookup", "count", "query"].includes(given.get("call"))) $("call").value = given.get("call");
  if (given.has("token")) {
    $("token").value = given.get("token");
    // Not in the history, nor on a screenshot.
    given.delete("token");
    history.replaceState(null, "", `#${given}`);
  }
  return { clean: given.get("key")?.split(":")[1] };
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function grid(columns, rows, marked) {
  const made = document.createElement("table");
  const head = made.createTHead().insertRow();
  columns.forEach((name, i) => {
    const cell = element("th", name, { scope: "col", title: name });
    if (i === marked) cell.classList.add("key");
    head.append(cell);
  });
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    columns.forEach((_, i) => {
      const cell = element("td", row[i] ?? "");
      if (i === marked) cell.classList.add("key");
      line.append(cell);
    });
  }
  return made;
}

async function take(file) {
  show();
  $("key-part").hidden = $("peer-part").hidden = $("preview").hidden = true;
  $("file-said").textContent = "Reading…";
  try {
    table = { file, ...(await look(file)) };
  } catch (error) {
    table = undefined;
    $("file-said").textContent = "With a line of column names. It may be compressed with gzip.";
    return fail({ kind: "data", message: `${file.name}: ${error.message}`, hint: "choose a text file with a line of column names" });
  }
  document.querySelector("#drop .link").textContent = file.name;
  document.querySelector("#drop .wide").textContent = " – choose or drop another";
  $("drop").classList.add("full");
  const said = [size(file.size), many(table.columns.length, "column")];
  if (table.delimiter !== table.usual) said.push(`separated by ${table.delimiter === "\t" ? "tabs" : `'${table.delimiter}'`}`);
  if (table.encoding) said.push("read as windows-1252");
  $("file-said").textContent = sentence(said.join(", "));
  const options = table.columns.map((name, i) => new Option(name || `column ${i + 1}`, String(i)));
  $("column").replaceChildren(...options);
  const best = table.columns.findIndex((_, i) => suggest(keys(i)));
  $("column").value = String(Math.max(best, 0));
  chooseColumn();
  $("key-part").hidden = $("peer-part").hidden = $("preview").hidden = false;
  tell(`${file.name}: ${$("file-said").textContent}`);
}

/** The sample of keys in a column. */
const keys = (column = Number($("column").value)) => table.rows.map((row) => row[column] ?? "");

function chooseColumn() {
  const column = Number($("column").value);
  $("preview").replaceChildren(grid(table.columns, table.rows.slice(0, 4), column));
  const found = suggest(keys());
  const options = [...$("clean").options].map((one) => one.value);
  const [asked, detail] = (link.clean ?? "").split("=");
  if (link.clean !== undefined) {
    $("clean").value = options.includes(asked) ? asked : "other";
    chooseClean($("clean").value === "other" ? link.clean : detail);
    suggestion("The other party's link says how to clean the key.");
  } else {
    $("clean").value = found?.clean ?? "";
    chooseClean();
    suggestion(found && `These look like ${found.words}. The other side has to clean its keys in the same way.`);
  }
}

function suggestion(text) {
  $("suggestion").textContent = text ?? "";
  $("suggestion").hidden = !text;
}

function chooseClean(detail) {
  const known = DETAILS[$("clean").value];
  $("detail-part").hidden = !known;
  if (!known) return;
  const [label, said, first] = known;
  $("detail-label").textContent = label;
  $("detail-said").textContent = said;
  $("detail").value = detail ?? first();
}

/** The key as the package takes it. */
function keyWords() {
  const name = table.columns[Number($("column").value)];
  const clean = $("clean").value;
  const detail = $("detail").value.trim();
  if (clean === "") return name;
  if (clean === "other") return `${name}:${detail}`;
  return `${name}:${clean}${clean in DETAILS ? `=${detail}` : ""}`;
}

// ------------------------------------------------------------------------------------- the run

function show(panel) {
  for (const id of PANELS) $(id).hidden = id !== panel;
  $("choices").disabled = panel === "work" || panel === "terms";
  if (panel) {
    const title = $(panel).querySelector("h2");
    title.focus({ preventScroll: true });
    $(panel).scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  }
}

/** For a screen reader. */
function tell(text) {
  $("status").textContent = text;
}

function fail({ kind, message, hint, otherFilter }) {
  if (kind === "cancelled") {
    show();
    $("start").focus();
    return tell("Cancelled.");
  }
  const [title, remedy] = ERRORS[kind] ?? ["Something went wrong in this page", "Load the page again."];
  $("failed-title").textContent = title;
  $("failed-what").textContent = sentence(message);
  $("failed-hint").textContent = otherFilter
    ? "If the other party confirms that its table or its key is a new one, fetch it and ask again."
    : hint ? sentence(hint) : remedy;
  // A bridge says itself what to do.
  $("failed-hint").hidden = !otherFilter && !hint && /: (ask|try|start) /.test(message);
  $("refresh").hidden = !otherFilter;
  show("failed");
}

async function start(refresh) {
  const kind = $("call").value;
  const { [kind]: call } = await volery;
  run = new AbortController();
  const { file, delimiter, usual, encoding } = table;
  const options = {
    url: $("url").value.trim(),
    token: $("token").value.trim() || undefined,
    table: file,
    key: keyWords(),
    ...(delimiter !== usual && { delimiter: delimiter === "\t" ? "tab" : delimiter }),
    ...(encoding && { encoding }),
    ...(kind !== "count" && { out: true }),
    ...(refresh && { refresh }),
    emptyKeys: "skip",
    malformed: "skip",
    signal: run.signal,
    onTerms: ask,
    onProgress: progress(),
  };
  show("work");
  try {
    const result = await call(options);
    await (kind === "count" ? counted(result) : finish(result, file));
  } catch (error) {
    fail(error);
  }
}

/** Shows what the run reveals; whether the user goes on. */
function ask({ revealed, rows, keys, empty, malformed, duplicates, notices }) {
  $("revealed").replaceChildren(...revealed.map((one) => element("li", sentence(one))));
  const left = [
    empty && `${many(empty, "row")} without a key`,
    malformed && `${many(malformed, "row")} with a key that cannot be read`,
  ].filter(Boolean);
  $("counts").textContent =
    `Your table has ${many(rows, "row")} with ${many(keys[0], "distinct key")}.` +
    (left.length ? ` ${sentence(`${left.join(" and ")} take no part`)}` : "") +
    (duplicates ? ` ${sentence(`${many(duplicates, "row")} ${duplicates === 1 ? "has" : "have"} the key of an earlier row`)}` : "");
  $("to").textContent = `${$("call").selectedOptions[0].text}, from ${new URL($("url").value.trim(), location.href).host}.`;
  $("notices").replaceChildren(...notices.map((one) => element("li", sentence(one))));
  $("notices").hidden = notices.length === 0;
  show("terms");
  return new Promise((resolve) => {
    $("agree").onclick = () => {
      show("work");
      resolve(true);
    };
    $("refuse").onclick = () => resolve(false);
  });
}

/** Shows how far a phase is, and the time that is left of it. */
function progress() {
  let phase;
  let began;
  return ({ phase: now, done, total }) => {
    if (now !== phase) {
      phase = now;
      began = performance.now();
      $("phase").textContent = sentence(phase).replace(/\.$/, "…");
      tell(sentence(phase));
    }
    const seconds = (performance.now() - began) / 1000;
    if (total > 0) {
      $("bar").max = total;
      $("bar").value = done;
      const left = done > 0 && seconds > 1 ? (seconds * (total - done)) / done : undefined;
      $("time").textContent =
        `${number(done)} of ${number(total)}` + (left !== undefined ? `, about ${duration(left)} left` : "");
    } else {
      $("bar").removeAttribute("value");
      $("time").textContent = phase === "connecting" ? `to ${$("url").value.trim()}` : "\u00a0";
    }
  };
}

/** The result of a count. */
function counted({ count, bytes, seconds, report }) {
  $("rows").hidden = $("download").hidden = true;
  $("rows-said").textContent = "";
  offer("report", JSON.stringify(report, null, 2), "application/json");
  shown(count === null ? "Too few keys match to tell how many" : `${many(count, "key")} in common`, seconds, bytes);
}

function shown(title, seconds, bytes) {
  $("result-title").textContent = title;
  $("result-cost").textContent = `In ${duration(seconds)}, with ${size(bytes)} over the network.`;
  show("result");
  tell(`${title}. ${$("result-cost").textContent}`);
}

/** A link to a file of this text. */
function offer(id, text, type) {
  const link = $(id);
  if (link.href) URL.revokeObjectURL(link.href);
  link.href = URL.createObjectURL(new Blob([text], { type }));
}

async function finish({ file, count, bytes, seconds, report, values = [] }, { name }) {
  $("phase").textContent = "Collecting your rows…";
  // As the package wrote it: neither compressed, nor with another encoding.
  const found = await look(new File([file], name.replace(/\.gz$/i, "")));
  offer("download", file, "text/csv");
  offer("report", JSON.stringify(report, null, 2), "application/json");
  $("download").download = `matched-${name.replace(/\.gz$/i, "")}`;
  $("download").hidden = count === 0;
  $("rows").hidden = count === 0;
  $("rows").replaceChildren(grid(found.columns, found.rows.slice(0, 10)));
  $("rows-said").textContent = count > 10 ? `The first 10 of ${number(count)}.` : "";
  if (count > 0 && values.length) {
    $("rows-said").textContent += " The last columns are the other party's: a spreadsheet has to import them as text.";
  }
  shown(count === 0 ? "No row matched" : `${many(count, "row")} matched`, seconds, bytes);
}

// -------------------------------------------------------------------------------------- events

$("file").onchange = () => $("file").files[0] && take($("file").files[0]);
for (const name of ["dragenter", "dragover"]) $("drop").addEventListener(name, () => $("drop").classList.add("over"));
for (const name of ["dragleave", "drop"]) $("drop").addEventListener(name, () => $("drop").classList.remove("over"));
// Anywhere on the page: a file that misses would be opened in its place.
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  const [file] = event.dataTransfer.files;
  if (file && !$("choices").disabled) take(file);
});
$("column").onchange = chooseColumn;
$("clean").onchange = () => chooseClean();
$("form").onsubmit = (event) => {
  event.preventDefault();
  if (table) start();
};
$("refresh").onclick = () => start(true);
$("cancel").onclick = () => run.abort();
$("again").onclick = () => {
  show();
  $("form").scrollIntoView({ block: "start" });
  (table ? $("start") : $("file")).focus();
};
$("anew").onclick = () => {
  show();
  $("file").focus();
  scrollTo(0, 0);
};
addEventListener("beforeunload", (event) => {
  if (!$("work").hidden) event.preventDefault();
});

link = readLink();
