// Records of a text file, as `volery` reads them: RFC 4180 with any separator, and no blank lines.

/** Characters read for the first rows. */
const FIRST = 1 << 18;

/** The text of a file, decompressed: whole, or about as many of its first bytes. */
async function bytesOf(file, most) {
  let stream = file.stream();
  const head = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  if (head[0] === 0x1f && head[1] === 0x8b) stream = stream.pipeThrough(new DecompressionStream("gzip"));
  if (most === undefined) return new Uint8Array(await new Response(stream).arrayBuffer());
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
export function* records(text) {
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
export function fields(record, delimiter) {
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

/** A field as it stands in a file. */
export const field = (text, delimiter) =>
  /["\r\n]/.test(text) || text.includes(delimiter) ? `"${text.replaceAll('"', '""')}"` : text;

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

/** The header and the rows with these numbers, as text. */
export async function pick(file, numbers) {
  const { text } = decode(await bytesOf(file), true);
  const all = records(text.startsWith("\ufeff") ? text.slice(1) : text);
  const header = all.next().value ?? "";
  const rows = [];
  let at = 0;
  let number = 0;
  for (const record of all) {
    if (at === numbers.length) break;
    if (numbers[at] === number) {
      rows.push(record);
      at += 1;
    }
    number += 1;
  }
  return { header, rows };
}
