// The rows of a run over typed arrays. Nothing here needs a browser.

export const FAILED = 1;
export const ATTEMPT = 2;
const LONGEST_PATTERN = 4;
const FEWEST_REPEATS = 3;

/** The spans of a run in columns, and which of them are shown. */
export class Outline {
  /** @param {any} columns an answer of `/v1/runs/{run}/outline` */
  constructor(columns) {
    this.run = columns.run;
    /** @type {string[]} */
    this.names = columns.names;
    /** @type {string[]} */
    this.ids = columns.span_id;
    this.count = this.ids.length;
    /** Whether all spans of the run are here, not only the first. */
    this.whole = columns.spans === this.count;
    this.name = Int32Array.from(columns.name);
    this.parent = Int32Array.from(columns.parent);
    this.depth = Int32Array.from(columns.depth);
    this.below = Int32Array.from(columns.below);
    this.step = Int32Array.from(columns.step);
    this.flags = Uint8Array.from(columns.flags);
    this.start = Float64Array.from(columns.start_ns);
    this.duration = Float64Array.from(columns.duration_ns);
    this.input = Float64Array.from(columns.input_tokens);
    this.output = Float64Array.from(columns.output_tokens);
    /** Dollars; null where nothing is known. @type {(number | null)[]} */
    this.cost = columns.cost_usd;
    for (let at = 0; at < this.count; at++) this.below[at] = Math.min(this.below[at], this.count - at - 1);
    this.collapsed = new Uint8Array(this.count);
    /** @type {Int32Array | undefined} */
    this.ordered = undefined;
    /** Nanoseconds from the start of the run to the end of its last span. */
    this.end = 1;
    for (let at = 0; at < this.count; at++)
      this.end = Math.max(this.end, this.start[at] + Math.max(0, this.duration[at]));
    /** Rows of the steps, in the order of their numbers. */
    this.steps = Int32Array.from([...this.step.keys()].filter((at) => this.step[at] > 0)).sort(
      (one, other) => this.step[one] - this.step[other],
    );
  }

  /** @param {number} row */
  title(row) {
    return this.names[this.name[row]] || "(no name)";
  }

  /** @param {number} row */
  failed(row) {
    return (this.flags[row] & FAILED) !== 0;
  }

  /** Rows of the attempts of a step. @param {number} row @returns {number[]} */
  attempts(row) {
    const found = [];
    for (let at = row + 1; this.step[row] && at <= row + this.below[row]; at++)
      if (this.flags[at] & ATTEMPT) found.push(at);
    return found;
  }

  /** Rows that are shown as a tree: those below a collapsed one are left out. @returns {Int32Array} */
  tree() {
    const rows = new Int32Array(this.count);
    let found = 0;
    for (let at = 0; at < this.count; at += this.collapsed[at] ? this.below[at] + 1 : 1)
      rows[found++] = at;
    return rows.subarray(0, found);
  }

  /** All rows in the order in which they began. @returns {Int32Array} */
  inTime() {
    this.ordered ??= Int32Array.from({ length: this.count }, (_, at) => at).sort((one, other) => this.start[one] - this.start[other] || one - other);
    return this.ordered;
  }

  /** Show `depth` levels. @param {number} depth */
  expandTo(depth) {
    for (let at = 0; at < this.count; at++)
      this.collapsed[at] = this.below[at] > 0 && this.depth[at] >= depth ? 1 : 0;
  }

  /** Make a row appear: nothing above it is collapsed. @param {number} row */
  reveal(row) {
    for (let at = this.parent[row]; at >= 0; at = this.parent[at]) this.collapsed[at] = 0;
  }

  /** The row of a step's number; -1 where there is none. @param {number} number */
  ofStep(number) {
    const row = this.steps[number - 1];
    return row !== undefined && this.step[row] === number ? row : -1;
  }

  /** The next row that failed, from `row` on in a direction; -1 where there is none. @param {number} row @param {1 | -1} by */
  nextFailed(row, by) {
    for (let at = row + by; at >= 0 && at < this.count; at += by) if (this.failed(at)) return at;
    return -1;
  }

  /** Where a run is opened: at the first failed step, else the first failure, else the last step. */
  opening() {
    const step = this.steps.find((row) => this.failed(row));
    if (step !== undefined) return step;
    const failed = this.nextFailed(-1, 1);
    return failed >= 0 ? failed : (this.steps.at(-1) ?? this.count - 1);
  }
}

/**
 * Repeats among steps: runs of at least three equal patterns of at most four steps, none of which failed.
 * @param {Outline} outline @param {(row: number) => boolean} [stands] whether a step is never folded
 * @returns {{from: number, to: number, times: number}[]} places in `outline.steps`, both inclusive; the first of the equal ones is not in it
 */
export function repeats(outline, stands = () => false) {
  const { steps } = outline;
  /** @param {number} one @param {number} other */
  const same = (one, other) =>
    outline.name[steps[one]] === outline.name[steps[other]] &&
    !outline.failed(steps[one]) &&
    !outline.failed(steps[other]) &&
    !stands(steps[one]) &&
    !stands(steps[other]);
  const found = [];
  for (let at = 0; at < steps.length; ) {
    let best = 0;
    let long = 1;
    for (let length = 1; length <= LONGEST_PATTERN; length++) {
      let end = at + length;
      while (end < steps.length && same(end, end - length)) end++;
      const times = Math.floor((end - at) / length);
      if (times >= FEWEST_REPEATS && times * length > best) {
        best = times * length;
        long = length;
      }
    }
    if (best) found.push({ from: at + long, to: at + best - 1, times: best / long - 1 });
    at += best || 1;
  }
  return found;
}

/**
 * What is drawn of the steps: rows, and for each folded repeat one negative number, -1 - its place in `folds`.
 * @param {Outline} outline
 * @param {{from: number, to: number, times: number}[]} folds
 * @param {Set<number>} opened places in `folds`
 */
export function foldedSteps(outline, folds, opened) {
  const rows = [];
  let fold = 0;
  for (let at = 0; at < outline.steps.length; at++) {
    if (folds[fold]?.from === at) {
      const { to } = folds[fold];
      if (!opened.has(fold)) {
        rows.push(-1 - fold);
        at = to;
        fold++;
        continue;
      }
      fold++;
    }
    rows.push(outline.steps[at]);
  }
  return Int32Array.from(rows);
}
