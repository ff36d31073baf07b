// The first rows of a text file, to be shown: RFC 4180 with any separator, and no blank lines. What is matched, and what
// is in the result, the package reads and writes by itself.

/** Characters read for the first rows. */
const FIRST = 1 << 18;

/** The first bytes of a file, decompressed: about so many. */
async function bytesOf(file, most) {
  let stream = file.stream();
  const head = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  if (head[0] === 0x1f && head[1] === 0x8b) stream = stream.pipeThrough(new DecompressionStream("gzip"));
  const reader = stream.getReader();
  const pieces = [];
  for (let size = 0; size < most; ) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    size += value.length;
  }
  reader.cancel().catch(() => {});
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}

/** The raw text of each record, with the line end; blank lines are none. */
function* records(text) {
  let start = 0;
  let at = 0;
  while (start < text.length) {
    // The end of the line, unless a quoted field goes on.
    let end = text.indexOf("\n", at);
    if (end < 0) end = text.length;
    let quotes = 0;
    for (let quote = text.indexOf('"', start); quote >= 0 && quote < end; quote = text.indexOf('"', quote + 1)) quotes += 1;
    if (quotes % 2 && end < text.length) {
      at = end + 1;
      continue;
    }
    const record = text.slice(start, end);
    if (record !== "" && record !== "\r") yield record.endsWith("\r") ? record.slice(0, -1) : record;
    start = at = end + 1;
  }
}

/** The fields of a record. */
function fields(record, delimiter) {
  const found = [];
  for (let at = 0; at <= record.length; at += 1) {
    let field = "";
    if (record[at] === '"') {
      for (at += 1; at < record.length; at += 1) {
        if (record[at] !== '"') field += record[at];
        else if (record[at + 1] === '"') field += record[(at += 1)];
        else break;
      }
      const end = record.indexOf(delimiter, at);
      at = end < 0 ? record.length : end;
    } else {
      const end = record.indexOf(delimiter, at);
      field = record.slice(at, end < 0 ? record.length : end);
      at = end < 0 ? record.length : end;
    }
    found.push(field);
  }
  return found;
}

function decode(bytes, isWhole) {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: !isWhole }) };
  } catch {
    return { text: new TextDecoder("windows-1252").decode(bytes), encoding: "windows-1252" };
  }
}

/** Names of columns, first rows, separator and encoding of a file. */
export async function look(file) {
  const { text, encoding } = decode(await bytesOf(file, FIRST), file.size < FIRST);
  const all = records(text.slice(0, FIRST));
  const head = all.next().value;
  if (head === undefined) throw new Error("the file is empty");
  const usual = /\.(tsv|tab)(\.gz)?$/i.test(file.name) ? "\t" : ",";
  const counts = [usual, ",", ";", "\t", "|"].map((one) => [fields(head, one).length, one]);
  const [count, best] = counts.reduce((a, b) => (b[0] > a[0] ? b : a));
  const delimiter = count > 1 ? best : usual;
  const rows = [];
  // The last one may be cut.
  for (let next = all.next(), after; !next.done && rows.length < 200; next = after) {
    after = all.next();
    if (!after.done || file.size < FIRST) rows.push(fields(next.value, delimiter));
  }
  return { columns: fields(head, delimiter), rows, delimiter, usual, encoding };
}
