// The rows of a run over typed arrays. Nothing here needs a browser.

export const FAILED = 1;
export const ATTEMPT = 2;
const LONGEST_PATTERN = 4;
const FEWEST_REPEATS = 3;

/** The spans of a run in columns, and which of them are shown. */
export class Outline {
  run: any;
  names: string[];
  ids: string[];
  count: number;
  /** Whether all spans of the run are here, not only the first. */
  whole: boolean;
  name: Int32Array;
  parent: Int32Array;
  depth: Int32Array;
  below: Int32Array;
  step: Int32Array;
  flags: Uint8Array;
  start: Float64Array;
  duration: Float64Array;
  input: Float64Array;
  output: Float64Array;
  /** Dollars; null where nothing is known. */
  cost: (number | null)[];
  collapsed: Uint8Array;
  ordered: Int32Array | undefined;
  /** Nanoseconds from the start of the run to the end of its last span. */
  end: number;
  /** Rows of the steps, in the order of their numbers. */
  steps: Int32Array;

  /** @param columns an answer of `/v1/runs/{run}/outline` */
  constructor(columns: any) {
    this.run = columns.run;
    this.names = columns.names;
    this.ids = columns.span_id;
    this.count = this.ids.length;
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
    this.cost = columns.cost_usd;
    for (let at = 0; at < this.count; at++) this.below[at] = Math.min(this.below[at], this.count - at - 1);
    this.collapsed = new Uint8Array(this.count);
    this.ordered = undefined;
    this.end = 1;
    for (let at = 0; at < this.count; at++)
      this.end = Math.max(this.end, this.start[at] + Math.max(0, this.duration[at]));
    this.steps = Int32Array.from([...this.step.keys()].filter((at) => this.step[at] > 0)).sort(
      (one, other) => this.step[one] - this.step[other],
    );
  }

  title(row: number) {
    return this.names[this.name[row]] || "(no name)";
  }

  failed(row: number) {
    return (this.flags[row] & FAILED) !== 0;
  }

  /** Rows of the attempts of a step. */
  attempts(row: number): number[] {
    const found = [];
    for (let at = row + 1; this.step[row] && at <= row + this.below[row]; at++)
      if (this.flags[at] & ATTEMPT) found.push(at);
    return found;
  }

  /** Rows that are shown as a tree: those below a collapsed one are left out. */
  tree(): Int32Array {
    const rows = new Int32Array(this.count);
    let found = 0;
    for (let at = 0; at < this.count; at += this.collapsed[at] ? this.below[at] + 1 : 1)
      rows[found++] = at;
    return rows.subarray(0, found);
  }

  /** All rows in the order in which they began. */
  inTime(): Int32Array {
    this.ordered ??= Int32Array.from({ length: this.count }, (_, at) => at).sort((one, other) => this.start[one] - this.start[other] || one - other);
    return this.ordered;
  }

  /** Show `depth` levels. */
  expandTo(depth: number) {
    for (let at = 0; at < this.count; at++)
      this.collapsed[at] = this.below[at] > 0 && this.depth[at] >= depth ? 1 : 0;
  }

  /** Make a row appear: nothing above it is collapsed. */
  reveal(row: number) {
    for (let at = this.parent[row]; at >= 0; at = this.parent[at]) this.collapsed[at] = 0;
  }

  /** The row of a step's number; -1 where there is none. */
  ofStep(number: number) {
    const row = this.steps[number - 1];
    return row !== undefined && this.step[row] === number ? row : -1;
  }

  /** The next row that failed, from `row` on in a direction; -1 where there is none. */
  nextFailed(row: number, by: 1 | -1) {
    for (let at = row + by; at >= 0 && at < this.count; at += by) if (this.failed(at)) return at;
    return -1;
  }

  /** Where a run is opened: a failure at its first failed step, else its first failure; other runs at the overview, -1. */
  opening() {
    if (this.run.status !== "failure") return -1;
    return this.steps.find((row) => this.failed(row)) ?? this.nextFailed(-1, 1);
  }

  /** The part of the time that is shown first: that of the steps, if the program took long to start. */
  work(): { from: number; to: number } {
    const first = this.steps.length ? this.start[this.steps[0]] : 0;
    const rest = this.end - first;
    return first > rest / 10 ? { from: Math.round(Math.max(0, first - rest / 25)), to: this.end } : { from: 0, to: this.end };
  }
}

/**
 * Repeats among steps: runs of at least three equal patterns of at most four steps, none of which failed.
 * @param stands whether a step is never folded
 * @returns places in `outline.steps`, both inclusive; the first of the equal ones is not in it
 */
export function repeats(outline: Outline, stands: (row: number) => boolean = () => false): {from: number, to: number, times: number}[] {
  const { steps } = outline;
  const same = (one: number, other: number) =>
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

const MOST_SAMPLES = 3;

/** Rows of some repetitions of a fold, to tell what differs between them. */
export function samplesOf(outline: Outline, { from, to, times }: {from: number, to: number, times: number}): number[][] {
  const long = (to - from + 1) / times;
  return Array.from({ length: Math.min(times, MOST_SAMPLES) }, (_, at) => [...outline.steps.subarray(from + at * long, from + (at + 1) * long)]);
}

/**
 * What differs between repetitions: their texts, without the words that all of them have first and last.
 * @param texts of each repetition
 * @returns empty if they are the same
 */
export function whatDiffers(texts: string[]): string[] {
  const words = texts.map((text) => text.split(/\s+/));
  if (new Set(texts).size < 2) return [];
  const least = Math.min(...words.map((one) => one.length));
  const same = (at: number) => words.every((one) => one.at(at) === words[0].at(at));
  let head = 0;
  while (head < least && same(head)) head++;
  let tail = 0;
  while (tail < least - head && same(-1 - tail)) tail++;
  return [...new Set(words.map((one) => one.slice(head, one.length - tail).join(" ")))].filter(Boolean);
}

/**
 * What is drawn of the steps: rows, and for each folded repeat one negative number, -1 - its place in `folds`.
 *
 *
 * @param opened places in `folds`
 */
export function foldedSteps(outline: Outline, folds: {from: number, to: number, times: number}[], opened: Set<number>) {
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
