// The words of the query language, completed while they are typed; and time in it. Nothing here needs a browser.

/** Fields whose values are those of the runs here, with what `/v1/stats` calls them. */
export const OF_RUNS: Record<string, string> = { agent: "agent", agent_type: "agent_type", model: "model", tool: "tool", error: "error", provider: "provider", version: "version", env: "environment", user: "user", session: "conversation", conversation: "conversation", tag: "tag", prompt: "prompt", prompt_version: "prompt_version", release: "release", failure: "failure" };

/** Fields with values that are known. */
const KNOWN: Record<string, string[]> = {
  status: ["running", "success", "failure", "partial", "interrupted"],
  mode: ["record", "fork", "resume", "replay", "service", "all"],
  errors: ["yes", "no"],
  loop: ["yes", "no"],
  stuck: ["yes", "no", "loop", "silent_stream", "hung_tool", "no_answer", "no_progress"],
  mark: ["held", "flagged", "test"],
  since: ["1h", "1d", "7d", "30d"],
  until: ["1h", "1d", "7d"],
};
const BOUNDS = ["cost", "duration", "tokens", "steps"].flatMap((name) => [`${name}>=`, `${name}<`]);
const MOST = 30;

/** The word under way, and what stands before it. */
function parted(text: string) {
  const word = /(?:[\w.-]+:"[^"]*|"[^"]*|\S*)$/.exec(text)?.[0] ?? "";
  return { before: text.slice(0, text.length - word.length), word };
}

/** The field whose value is being typed; empty: none. */
export function fieldAt(text: string) {
  return /^([a-z_]+):/.exec(parted(text).word)?.[1] ?? "";
}

/**
 * Whole queries that go on from a text.
 * @param values those of the field under way, of the runs here
 */
export function completions(text: string, values: string[] = []): string[] {
  const { before, word } = parted(text);
  const field = fieldAt(text);
  const offered = field
    ? (KNOWN[field] ?? values).map((value) => `${field}:${quoted(value)}`)
    : [...Object.keys(OF_RUNS), ...Object.keys(KNOWN)].map((name) => `${name}:`).concat(BOUNDS);
  return offered.filter((one) => one.startsWith(word) && one !== word).slice(0, MOST).map((one) => before + one);
}

/**
 * A query narrowed to a value of a field; a value that the field has there already is replaced.
 * @param value empty: the field is left out
 */
export function narrowed(query: string, field: string, value: string) {
  const kept = (query.match(/[\w.-]+(?::|>=|<=|>|<)(?:"[^"]*"|\S*)|"[^"]*"\*?|\S+/g) ?? []).filter((word) => !word.startsWith(`${field}:`));
  return [...kept, ...(value ? [`${field}:${quoted(value)}`] : [])].join(" ");
}

/** The value that a field has in a query; empty: none. */
export function valueIn(query: string, field: string) {
  for (const [, name, value] of query.matchAll(/(?:^|\s)([\w.-]+):("[^"]*"|\S*)/g)) if (name === field) return value.replace(/^"|"$/g, "");
  return "";
}

function quoted(value: string) {
  return /[\s"]/.test(value) || !value ? `"${value.replaceAll('"', "")}"` : value;
}

/**
 * How wide the parts of a stretch of time are, so that there are not too many of them.
 * @param ns how long it is
 */
export function widthOf(ns: number): "minute" | "hour" | "day" {
  if (ns < 3 * 3600e9) return "minute";
  return ns < 7 * 86400e9 ? "hour" : "day";
}

/** Seconds of a part of time. */
export const SECONDS = { minute: 60, hour: 3600, day: 86400 };
const MOST_PARTS = 2000;

/**
 * Sums by time, with those parts of it filled in in which nothing began.
 * @param groups of `/v1/stats`, by minute, hour or day
 * @returns seconds since 1970, in order; null where nothing began
 */
export function byTime(groups: any[], width: "minute" | "hour" | "day"): {at: number[], groups: any[]} {
  const found = new Map(groups.map((one) => [Date.parse(one.key) / 1000, one]));
  const times = [...found.keys()].filter(Number.isFinite).sort((one, other) => one - other);
  if (!times.length) return { at: [], groups: [] };
  const step = SECONDS[width];
  const first = Math.max(times[0], (times.at(-1) ?? 0) - MOST_PARTS * step);
  const at = [];
  for (let time = first; time <= (times.at(-1) as number); time += step) at.push(time);
  return { at, groups: at.map((time) => found.get(time) ?? null) };
}
