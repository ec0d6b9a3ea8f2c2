// How numbers, times and untrusted text are written.

/** Characters that control, reverse or hide others; not the newline. */
export const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{d800}-\u{dfff}]|[\u{e0000}-\u{e007f}]/gu;

/**
 * Text with characters that control, reverse or hide others spelt out: `\u202e`. Newlines stay.
 */
export function shown(text: unknown): string {
  return String(text ?? "").replace(HIDDEN, (found) =>
    [...Array(found.length).keys()]
      .map((at) => "\\u" + found.charCodeAt(at).toString(16).padStart(4, "0"))
      .join(""),
  );
}

/** As `shown`, of at most `most` characters and in one line. */
export function brief(text: unknown, most: number = 200) {
  const whole = String(text ?? "");
  const line = shown(whole.slice(0, most)).replace(/\s+/g, " ");
  return whole.length > most ? line + "…" : line;
}

/** A duration. */
export function took(ns: number) {
  if (ns < 0) return "running";
  if (ns < 1e6) return `${Math.round(ns / 1e3)} µs`;
  if (ns < 1e9) return `${(ns / 1e6).toFixed(ns < 1e7 ? 1 : 0)} ms`;
  if (ns < 6e10) return `${(ns / 1e9).toFixed(1)} s`;
  return `${Math.floor(ns / 6e10)}m${String(Math.floor((ns % 6e10) / 1e9)).padStart(2, "0")}s`;
}

/** How long ago. @param ns since 1970 */
export function age(ns: number, nowMs: number = Date.now()) {
  const s = Math.max(0, nowMs / 1e3 - ns / 1e9);
  if (s < 60) return `${Math.floor(s)}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  return s < 86400 ? `${Math.floor(s / 3600)}h` : `${Math.floor(s / 86400)}d`;
}

/** Date and time of day. */
export function date(ns: number) {
  const at = new Date(ns / 1e6);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** A time of the query language, as a field for date and time has it; empty: it is none. */
export function localTime(text: string) {
  const ms = /^\d{4}-/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(ms) ? "" : date(ms * 1e6).replace(" ", "T");
}

/** What a field for date and time has, as a time of the query language. */
export function utcTime(text: string) {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? "" : `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** Money; an empty text where it is not known. */
export function cost(usd: number | null | undefined) {
  if (usd === null || usd === undefined) return "";
  const digits = usd && usd < 0.01 ? { maximumSignificantDigits: 2, minimumSignificantDigits: 2 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return `$${usd.toLocaleString("en-US", digits)}`;
}

/** A size. */
export function size(bytes: number | null) {
  if (bytes === null) return "unknown size";
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
