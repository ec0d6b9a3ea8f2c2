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
