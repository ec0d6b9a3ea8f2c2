// Figures of a receiver, as `/metrics` has them. Nothing here needs a browser.

/** A figure: its name, its labels as they are written, its value. @typedef {{name: string, labels: string, value: number}} Figure */

/**
 * The lines of an answer for Prometheus, without its comments.
 * @param {string} text
 * @returns {Figure[]}
 */
export function readFigures(text) {
  const found = [];
  for (const line of text.split("\n")) {
    const parts = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line);
    if (parts) found.push({ name: parts[1], labels: parts[2] ?? "", value: Number(parts[3]) });
  }
  return found;
}

/**
 * The value of a figure; 0 where it is not there.
 * @param {Figure[]} figures @param {string} name @param {string} [labels]
 */
export function valueOf(figures, name, labels = "") {
  return figures.find((one) => one.name === name && one.labels === labels)?.value ?? 0;
}

/**
 * The upper bound, in seconds, below which a share of what a histogram counted lies; NaN without any.
 * @param {Figure[]} figures @param {string} name @param {number} share
 */
export function quantile(figures, name, share) {
  const buckets = figures
    .filter((one) => one.name === `${name}_bucket`)
    .map((one) => ({ most: Number(one.labels.replace(/.*le="([^"]*)".*/, "$1").replace("+Inf", "Infinity")), count: one.value }))
    .sort((one, other) => one.most - other.most);
  const count = buckets.at(-1)?.count ?? 0;
  return count ? (buckets.find((one) => one.count >= count * share)?.most ?? NaN) : NaN;
}

/**
 * How fast a figure has grown between two looks, per second.
 * @param {{ms: number, figures: Figure[]}} before @param {{ms: number, figures: Figure[]}} now @param {string} name
 */
export function rate(before, now, name) {
  const s = (now.ms - before.ms) / 1e3;
  return s > 0 ? (valueOf(now.figures, name) - valueOf(before.figures, name)) / s : 0;
}

/**
 * Which part of what is counted has one of some labels, in words; empty where nothing is counted.
 * @param {Figure[]} figures @param {string} name @param {string[]} labels values of a label @param {string} [mode] value of another, of what is looked at
 */
export function share(figures, name, labels, mode = "") {
  const counted = figures.filter((one) => one.name === name && (!mode || one.labels.includes(`="${mode}"`)));
  const sum = (/** @type {Figure[]} */ some) => some.reduce((before, one) => before + one.value, 0);
  const all = sum(counted);
  return all ? `${Math.round((sum(counted.filter((one) => labels.some((label) => one.labels.includes(`="${label}"`)))) / all) * 1000) / 10} %` : "";
}
