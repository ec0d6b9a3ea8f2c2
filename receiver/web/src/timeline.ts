// Bars of spans on one canvas, and the whole run on a small one. The rows beside say the same as text.
import { KINDS, kindOf } from "./kinds.ts";
import type { Outline } from "./outline.ts";

let found: Record<string, string> | null = null;

/** Colours as the style sheet says, read once for each scheme. */
function colours(element: Element) {
  if (found) return found;
  addEventListener("scheme", () => (found = null), { once: true });
  const style = getComputedStyle(element);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return (found = { ground: of("--ground"), bar: of("--bar"), bad: of("--bad"), other: of("--faint"), ...Object.fromEntries(KINDS.map((kind) => [kind, of(`--k-${kind}`)])), mark: of("--accent"), line: of("--line") });
}

/** The colour of a bar: of its kind, else of a step or another span. */
function colourOf(outline: Outline, row: number, colour: Record<string, string>) {
  const kind = kindOf(outline.title(row));
  return kind === "other" ? (outline.step[row] ? colour.bar : colour.other) : colour[kind];
}

/** A canvas as large as its place, cleared. */
function cleared(canvas: HTMLCanvasElement) {
  const dots = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * dots) || canvas.height !== Math.round(height * dots)) {
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(height * dots);
  }
  const pen = (canvas.getContext("2d") as CanvasRenderingContext2D);
  pen.setTransform(dots, 0, 0, dots, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, width, height };
}

/** Times of an axis: round numbers, about as many as there is room for. */
export function ticksOf(from: number, to: number, most = 6): number[] {
  const least = (to - from) / most;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  const step = power * ([1, 2, 5].find((one) => one * power >= least) ?? 10);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

const SHORTEST_CUT = 12;
const BETWEEN = 4;

/**
 * Where a bar is cut for the pieces of its answer: pixels, so far apart that the bar stays a bar.
 * @param times in order @param from time at the left edge @param scale pixels a nanosecond
 */
export function notches(times: number[], from: number, scale: number) {
  const found = [];
  for (const time of times) {
    const x = Math.round((time - from) * scale);
    if (!found.length || x >= found[found.length - 1] + BETWEEN) found.push(x);
  }
  return found;
}

/**
 * Bars of the rows in sight.
 *
 *
 * @param sight offset: pixels of the first row above the edge; attempts: whether they are drawn into their steps
 * @param window nanoseconds
 * @param chunks when the pieces of answers came, by span id
 */
export function drawBars(canvas: HTMLCanvasElement, outline: import("./outline.ts").Outline, sight: {rows: Int32Array, first: number, offset: number, height: number, cursor: number, attempts: boolean}, window: {from: number, to: number}, chunks: Map<string, number[]>) {
  const { pen, width, height } = cleared(canvas);
  const colour = colours(canvas);
  const scale = width / Math.max(1, window.to - window.from);
  for (let at = sight.first; at < sight.rows.length; at++) {
    const top = (at - sight.first) * sight.height - sight.offset;
    if (top > height) break;
    const row = sight.rows[at];
    if (row < 0) continue;
    const length = outline.duration[row] < 0 ? outline.end - outline.start[row] : outline.duration[row];
    const left = (outline.start[row] - window.from) * scale;
    pen.globalAlpha = outline.duration[row] < 0 ? 0.5 : 1;
    pen.fillStyle = outline.failed(row) ? colour.bad : colourOf(outline, row, colour);
    const begin = Math.max(0, left);
    const end = Math.min(width, Math.max(left + length * scale, left + 2));
    const attempts = sight.attempts ? outline.attempts(row) : [];
    if (attempts.length > 1) pen.globalAlpha = 0.35;
    const cut = (at: number, long: number) => {
      const times = long >= SHORTEST_CUT ? chunks.get(outline.ids[at]) : undefined;
      pen.fillStyle = colour.ground;
      for (const x of notches(times ?? [], window.from, scale)) if (x >= 0 && x <= width) pen.fillRect(x, top + 6, 1, sight.height - 12);
    };
    if (end > begin) pen.fillRect(begin, top + 6, end - begin, sight.height - 12);
    pen.globalAlpha = 1;
    if (attempts.length < 2) cut(row, end - begin);
    for (const attempt of attempts.length > 1 ? attempts : []) {
      const from = (outline.start[attempt] - window.from) * scale;
      const long = Math.max(2, Math.max(0, outline.duration[attempt]) * scale);
      pen.fillStyle = outline.failed(attempt) ? colour.bad : colourOf(outline, row, colour);
      pen.fillRect(from, top + 6, long, sight.height - 12);
      cut(attempt, long);
    }
    if (row === sight.cursor) {
      pen.strokeStyle = colour.mark;
      pen.strokeRect(0.5, top + 0.5, width - 1, sight.height - 1);
    }
  }
}

/**
 * The whole run: how many spans go on in each column of pixels, failures in red, the window framed.
 *
 *
 *
 * @param cursor row
 */
export function drawMinimap(canvas: HTMLCanvasElement, outline: import("./outline.ts").Outline, window: {from: number, to: number}, cursor: number) {
  const { pen, width, height } = cleared(canvas);
  const colour = colours(canvas);
  const { busy, bad, most } = density(outline, Math.max(1, Math.floor(width)));
  for (let column = 0; column < busy.length; column++) {
    const tall = (busy[column] / most) * (height - 4);
    pen.fillStyle = colour.bar;
    if (tall) pen.fillRect(column, height - Math.max(1, tall), 1, Math.max(1, tall));
    pen.fillStyle = colour.bad;
    if (bad[column]) pen.fillRect(column, 0, 1, 4);
  }
  const scale = width / outline.end;
  pen.strokeStyle = colour.mark;
  pen.strokeRect(window.from * scale + 0.5, 0.5, Math.max(2, (window.to - window.from) * scale - 1), height - 1);
  if (cursor >= 0) {
    pen.fillStyle = colour.mark;
    pen.fillRect(outline.start[cursor] * scale, 0, 2, height);
  }
}

const kept: WeakMap<object, {width: number, made: ReturnType<typeof made>}> = new WeakMap();

/** Spans per column, made once for an outline and a width. */
export function density(outline: import("./outline.ts").Outline, width: number) {
  const before = kept.get(outline);
  if (before?.width === width) return before.made;
  const found = made(outline, width);
  kept.set(outline, { width, made: found });
  return found;
}

function made(outline: import("./outline.ts").Outline, width: number) {
  const change = new Int32Array(width + 1);
  const bad = new Uint8Array(width);
  for (let row = 0; row < outline.count; row++) {
    const length = outline.duration[row] < 0 ? outline.end - outline.start[row] : outline.duration[row];
    const place = (time: number) =>
      Math.min(width - 1, Math.max(0, Math.floor((time / outline.end) * width)));
    const from = place(outline.start[row]);
    change[from]++;
    change[place(outline.start[row] + length) + 1]--;
    if (outline.failed(row)) bad[from] = 1;
  }
  const busy = new Int32Array(width);
  let now = 0;
  let most = 1;
  for (let column = 0; column < width; column++) {
    now += change[column];
    busy[column] = now;
    most = Math.max(most, now);
  }
  return { busy, bad, most };
}

/**
 * When the pieces of an answer came; the larger, the taller.
 * @param times nanoseconds since it was asked @param sizes bytes
 */
export function drawChunks(canvas: HTMLCanvasElement, times: number[], sizes: number[]) {
  const { pen, width, height } = cleared(canvas);
  const most = Math.max(1, ...sizes.map((one) => Math.log2(one + 1)));
  const scale = (width - 2) / Math.max(1, times.at(-1) ?? 1);
  pen.fillStyle = colours(canvas).bar;
  times.forEach((time, at) => {
    const tall = Math.max(3, (Math.log2(sizes[at] + 1) / most) * height);
    pen.fillRect(Math.max(0, time * scale), height - tall, 2, tall);
  });
}
