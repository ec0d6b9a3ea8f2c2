// Figures of a receiver, as `/metrics` has them. Nothing here needs a browser.

/** A figure: its name, its labels as they are written, its value. */
export interface Figure {
  name: string;
  labels: string;
  value: number;
}

/**
 * The lines of an answer for Prometheus, without its comments.
 */
export function readFigures(text: string): Figure[] {
  const found = [];
  for (const line of text.split("\n")) {
    const parts = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line);
    if (parts) found.push({ name: parts[1], labels: parts[2] ?? "", value: Number(parts[3]) });
  }
  return found;
}

/**
 * The value of a figure; 0 where it is not there.
 */
export function valueOf(figures: Figure[], name: string, labels: string = "") {
  return figures.find((one) => one.name === name && one.labels === labels)?.value ?? 0;
}

/**
 * The upper bound, in seconds, below which a share of what a histogram counted lies; NaN without any.
 */
export function quantile(figures: Figure[], name: string, share: number) {
  const buckets = figures
    .filter((one) => one.name === `${name}_bucket`)
    .map((one) => ({ most: Number(one.labels.replace(/.*le="([^"]*)".*/, "$1").replace("+Inf", "Infinity")), count: one.value }))
    .sort((one, other) => one.most - other.most);
  const count = buckets.at(-1)?.count ?? 0;
  return count ? (buckets.find((one) => one.count >= count * share)?.most ?? NaN) : NaN;
}

/**
 * How fast a figure has grown between two looks, per second.
 */
export function rate(before: {ms: number, figures: Figure[]}, now: {ms: number, figures: Figure[]}, name: string) {
  const s = (now.ms - before.ms) / 1e3;
  return s > 0 ? (valueOf(now.figures, name) - valueOf(before.figures, name)) / s : 0;
}

/**
 * Which part of what is counted has one of some labels, in words; empty where nothing is counted.
 * @param labels values of a label @param mode value of another, of what is looked at
 */
export function share(figures: Figure[], name: string, labels: string[], mode: string = "") {
  const counted = figures.filter((one) => one.name === name && (!mode || one.labels.includes(`="${mode}"`)));
  const sum = (some: Figure[]) => some.reduce((before, one) => before + one.value, 0);
  const all = sum(counted);
  return all ? `${Math.round((sum(counted.filter((one) => labels.some((label) => one.labels.includes(`="${label}"`)))) / all) * 1000) / 10} %` : "";
}

/** The figures of a moment. */
export interface Look {
  ms: number;
  figures: Figure[];
}

export interface Health {
  tone: "good" | "odd" | "bad";
  text: string;
}

const LATE = 500;
const amount = (count: number, one: string) => `${count.toLocaleString("en-US")} ${one}${count === 1 ? "" : "s"}`;
const labelOf = (figure: Figure) => /="([^"]*)"/.exec(figure.labels)?.[1] ?? "";

/**
 * How a receiver is, in sentences, the worst first.
 * @param first an earlier look: what grew since then is new
 */
export function healthOf(first: Look, now: Look): Health[] {
  const of = (name: string) => valueOf(now.figures, name);
  const grew = (name: string) => of(name) - valueOf(first.figures, name);
  const all = (name: string) => now.figures.filter((one) => one.name === name && one.value > 0);
  const bad: string[] = [];
  const odd: string[] = [];
  for (const one of all("playhead_housekeeping_failing")) bad.push(`Maintenance fails: ${labelOf(one)}. Older data may be deleted late.`);
  for (const one of all("playhead_forward_stuck"))
    bad.push(`Destination ${labelOf(one)} accepts nothing: ${amount(valueOf(now.figures, "playhead_forward_behind", one.labels), "item")} waiting.`);
  if (grew("playhead_requests_refused_total") > 0) bad.push(`The store refused ${amount(grew("playhead_requests_refused_total"), "request")} since this page was opened; their senders try again.`);
  if (grew("playhead_items_rejected_total") > 0) odd.push(`${amount(grew("playhead_items_rejected_total"), "item")} could not be read since this page was opened and were rejected.`);
  if (of("playhead_search_lag") > LATE) odd.push(`Search is ${amount(of("playhead_search_lag"), "batch").replace("batchs", "batches")} behind: the newest texts are not found yet.`);
  if (of("playhead_runs_set_aside") > 0) odd.push(`${amount(of("playhead_runs_set_aside"), "run")} cannot be summed up: playhead verify says why.`);
  const stuck = all("playhead_runs_stuck").reduce((sum, one) => sum + one.value, 0);
  if (stuck) odd.push(`${amount(stuck, "running agent")} ${stuck === 1 ? "makes" : "make"} no progress.`);
  if (!bad.length && !odd.length) return [{ tone: "good", text: "Everything that arrives is stored and searchable, and nothing waits." }];
  return [...bad.map((text): Health => ({ tone: "bad", text })), ...odd.map((text): Health => ({ tone: "odd", text }))];
}

/** The samples of `/v1/metrics/history` as looks; a figure that was not there then is left out. */
export function looksOf(sampled: { time_ns: number[]; metrics: Record<string, (number | null)[]> }): Look[] {
  return sampled.time_ns.map((ns, at) => ({
    ms: ns / 1e6,
    figures: readFigures(Object.entries(sampled.metrics).map(([name, values]) => (values[at] === null ? "" : `${name} ${values[at]}`)).join("\n")),
  }));
}

/** A figure at each look. */
export const valuesOver = (looks: Look[], name: string, labels: string = "") => looks.map((one) => valueOf(one.figures, name, labels));

/** How fast a figure grew between each look and the one before, per second; null for the first. */
export const ratesOver = (looks: Look[], name: string) => looks.map((now, at) => (at ? Math.max(0, rate(looks[at - 1], now, name)) : null));
