// What the page says.

/** A number as people write it. */
export const number = (value) => value.toLocaleString("en");

export const many = (value, one, more = `${one}s`) => `${number(value)} ${value === 1 ? one : more}`;

export function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB"];
  let unit = 0;
  let value = bytes;
  for (; value >= 1000 && unit < 3; unit += 1) value /= 1000;
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

export function duration(seconds) {
  if (seconds < 1.5) return "1 second";
  if (seconds < 90) return `${Math.round(seconds)} seconds`;
  return many(Math.round(seconds / 60), "minute");
}

/** A sentence of the package: with a capital and a full stop. */
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

/** What the user sees of an error: a title, and what to do where the package does not say it. */
export const ERRORS = {
  data: ["Your table cannot be used", "Mend the row, or choose another column, and try again."],
  usage: ["A setting has to change", "Change it and try again."],
  peer: ["The other side refused, or broke the protocol", "Show this message to the other party."],
  network: ["The connection failed", "Ask the other party whether its side is running, then try again."],
  settings: ["The two sides have different settings", "Agree with the other party on the key and on how it is cleaned, then try again."],
};

/** Shares of sample keys that look like one kind, by which a way to clean them is suggested. */
const KINDS = [
  ["email", /^[^\s@]+@[^\s@]+\.[^\s@]+$/, "e-mail addresses"],
  ["date", /^(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{4})$/, "dates"],
  ["e164", /^(\+|00|\(?0)[\d\s()./-]{6,}$/, "telephone numbers"],
];

/** The way to clean that fits most of these keys: its value and its words. */
export function suggest(keys) {
  const some = keys.map((key) => key.trim()).filter((key) => key !== "");
  const found = KINDS.find(([, form]) => some.length > 0 && some.filter((key) => form.test(key)).length >= 0.8 * some.length);
  return found ? { clean: found[0], words: found[2] } : undefined;
}

/** The form of dates in the keys. */
export function dateForm(keys) {
  const key = keys.map((one) => one.trim()).find((one) => KINDS[1][1].test(one)) ?? "2000-12-31";
  const between = key.match(/[./-]/)[0];
  return (/^\d{4}/.test(key) ? ["%Y", "%m", "%d"] : ["%d", "%m", "%Y"]).join(between);
}
