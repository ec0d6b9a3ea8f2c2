// Bars of spans on one canvas, and the whole run on a small one. The rows beside say the same as text.

/** @type {Record<string, string> | null} */
let found = null;

/** Colours as the style sheet says, read once for each scheme. @param {Element} element */
function colours(element) {
  if (found) return found;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (found = null), { once: true });
  const style = getComputedStyle(element);
  const of = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return (found = { ground: of("--ground"), bar: of("--bar"), bad: of("--bad"), tool: of("--faint"), mark: of("--accent"), line: of("--line") });
}

/** A canvas as large as its place, cleared. @param {HTMLCanvasElement} canvas */
function cleared(canvas) {
  const dots = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * dots) || canvas.height !== Math.round(height * dots)) {
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(height * dots);
  }
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(dots, 0, 0, dots, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, width, height };
}

const SHORTEST_CUT = 12;
const BETWEEN = 4;

/**
 * Where a bar is cut for the pieces of its answer: pixels, so far apart that the bar stays a bar.
 * @param {number[]} times in order @param {number} from time at the left edge @param {number} scale pixels a nanosecond
 */
export function notches(times, from, scale) {
  const found = [];
  for (const time of times) {
    const x = Math.round((time - from) * scale);
    if (!found.length || x >= found[found.length - 1] + BETWEEN) found.push(x);
  }
  return found;
}

/**
 * Bars of the rows in sight.
 * @param {HTMLCanvasElement} canvas
 * @param {import("./outline.js").Outline} outline
 * @param {{rows: Int32Array, first: number, offset: number, height: number, cursor: number, attempts: boolean}} sight offset: pixels of the first row above the edge; attempts: whether they are drawn into their steps
 * @param {{from: number, to: number}} window nanoseconds
 * @param {Map<string, number[]>} chunks when the pieces of answers came, by span id
 */
export function drawBars(canvas, outline, sight, window, chunks) {
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
    pen.fillStyle = outline.failed(row) ? colour.bad : outline.step[row] ? colour.bar : colour.tool;
    const begin = Math.max(0, left);
    const end = Math.min(width, Math.max(left + length * scale, left + 2));
    const attempts = sight.attempts ? outline.attempts(row) : [];
    if (attempts.length > 1) pen.globalAlpha = 0.35;
    const cut = (/** @type {number} */ at, /** @type {number} */ long) => {
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
      pen.fillStyle = outline.failed(attempt) ? colour.bad : colour.bar;
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
 * @param {HTMLCanvasElement} canvas
 * @param {import("./outline.js").Outline} outline
 * @param {{from: number, to: number}} window
 * @param {number} cursor row
 */
export function drawMinimap(canvas, outline, window, cursor) {
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

/** @type {WeakMap<object, {width: number, made: ReturnType<typeof made>}>} */
const kept = new WeakMap();

/** Spans per column, made once for an outline and a width. @param {import("./outline.js").Outline} outline @param {number} width */
export function density(outline, width) {
  const before = kept.get(outline);
  if (before?.width === width) return before.made;
  const found = made(outline, width);
  kept.set(outline, { width, made: found });
  return found;
}

/** @param {import("./outline.js").Outline} outline @param {number} width */
function made(outline, width) {
  const change = new Int32Array(width + 1);
  const bad = new Uint8Array(width);
  for (let row = 0; row < outline.count; row++) {
    const length = outline.duration[row] < 0 ? outline.end - outline.start[row] : outline.duration[row];
    const place = (/** @type {number} */ time) =>
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
 * @param {HTMLCanvasElement} canvas @param {number[]} times nanoseconds since it was asked @param {number[]} sizes bytes
 */
export function drawChunks(canvas, times, sizes) {
  const { pen, width, height } = cleared(canvas);
  const most = Math.max(1, ...sizes.map((one) => Math.log2(one + 1)));
  const scale = (width - 2) / Math.max(1, times.at(-1) ?? 1);
  pen.fillStyle = colours(canvas).bar;
  times.forEach((time, at) => {
    const tall = Math.max(3, (Math.log2(sizes[at] + 1) / most) * height);
    pen.fillRect(Math.max(0, time * scale), height - tall, 2, tall);
  });
}
