// What runs sum up to by time and by what they have in common, as pictures with the same as tables.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { useAsked } from "../parts.js";
import { byTime, narrowed, SECONDS, widthOf } from "../query_words.js";
import { brief, cost, took } from "../words.js";

const HEIGHT = 110;
const MOST_SHOWN = 7;
const HOUR = 3600;
const DAY = 24 * HOUR;
const MONTH = 28 * DAY;
/** Seconds between ticks of time: none is shorter than what is summed up, or its label would come twice. */
const TICKS = [60, 120, 300, 600, 1800, HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, MONTH, 3 * MONTH, 12 * MONTH];
const WAYS = ["agent", "status", "model", "tool", "error", "user", "tag", "prompt", "provider", "version", "release", "environment"];
const FIELD = /** @type {Record<string, string>} */ ({ environment: "env" });

/** @param {{query: string, spanNs: number, again: number, by: string, choose: (by: string) => void, narrow: (query: string) => void}} props */
export function Board({ query, spanNs, again, by, choose, narrow }) {
  const width = widthOf(spanNs);
  const [open, setOpen] = useState(false);
  const times = useKept(useAsked("stats", { q: query, by: width }, again).value);
  const found = useKept(useAsked("stats", { q: query, by }, again).value);
  if (!times) return html`<div class="board"></div>`;
  const { at, groups } = byTime(times.groups, width);
  const of = (/** @type {(one: any) => any} */ read) => groups.map((one) => (one ? read(one) : null));
  const failures = (/** @type {any} */ one) => (one.statuses.failure ?? 0) + (one.statuses.interrupted ?? 0);
  const stretch = (/** @type {number} */ from, /** @type {number} */ to) => {
    const moment = (/** @type {number} */ s) => new Date(s * 1000).toISOString().slice(0, 19) + "Z";
    narrow(narrowed(narrowed(query, "since", moment(from)), "until", moment(to)));
  };
  const shared = { at, stretch, step: SECONDS[width] };
  const percents = [50, 90, 99];
  return html`<div class="board">
    <figure><figcaption>runs by ${width}, <span class="bad">failures</span></figcaption><${Chart} ...${shared} bars=${true} values=${[of((one) => one.runs), of(failures)]} colours=${["--bar", "--bad"]} say=${String} /></figure>
    <figure><figcaption>cost <b>${cost(times.total.cost_usd)}</b></figcaption><${Chart} ...${shared} bars=${true} values=${[of((one) => one.cost_usd)]} colours=${["--bar"]} say=${cost} /></figure>
    <figure><figcaption>duration: <span class="quiet">p50, p90, p99</span></figcaption><${Chart} ...${shared} bars=${false} values=${percents.map((one) => of((group) => group[`duration_p${one}_ns`]))} colours=${["--bar", "--odd", "--bad"]} say=${took} /></figure>
    <${Shares} found=${found} by=${by} choose=${choose} narrow=${(/** @type {string} */ value) => narrow(narrowed(query, FIELD[by] ?? by, value))} />
    <details class="wide" onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}><summary>as a table</summary>${open && html`<table><thead><tr><th scope="col">From</th>${["Runs", "Failures", "Cost", ...percents.map((one) => `P${one}`)].map((one) => html`<th scope="col" class="right" key=${one}>${one}</th>`)}</tr></thead>
      <tbody>${groups.map((one, place) => one && html`<tr key=${one.key}><th scope="row"><button onClick=${() => stretch(at[place], at[place] + SECONDS[width])}>${one.key}</button></th><td class="right">${one.runs}</td><td class="right">${failures(one)}</td><td class="right">${cost(one.cost_usd)}</td>
        ${percents.map((percent) => html`<td class="right" key=${percent}>${one[`duration_p${percent}_ns`] === null ? "" : took(one[`duration_p${percent}_ns`])}</td>`)}</tr>`)}</tbody></table>`}</details>
  </div>`;
}

/** The last answer until the next has come, so that nothing blinks. @template T @param {T | null} value */
function useKept(value) {
  const kept = useRef(value);
  if (value) kept.current = value;
  return kept.current;
}

/** How many runs have what in common; a click narrows. @param {{found: any, by: string, choose: (by: string) => void, narrow: (value: string) => void}} props */
function Shares({ found, by, choose, narrow }) {
  const groups = found?.groups ?? [];
  const most = Math.max(1, ...groups.map((/** @type {any} */ one) => one.runs));
  return html`<figure><figcaption><label>by <select name="shares" value=${by} onChange=${(/** @type {any} */ event) => choose(event.target.value)}>${WAYS.map((one) => html`<option key=${one}>${one}</option>`)}</select></label></figcaption>
    ${groups.slice(0, MOST_SHOWN).map((/** @type {any} */ one) => html`<button class="share" key=${one.key} onClick=${() => narrow(one.key)}><span class="bar-of" aria-hidden="true"><span style=${{ width: `${(one.runs / most) * 100}%` }}></span></span><span>${brief(one.key, 40) || "none"}</span><span class="quiet">${one.runs}</span></button>`)}
    ${groups.length > MOST_SHOWN && html`<span class="quiet">${groups.length - MOST_SHOWN} more</span>`}</figure>`;
}

/** @param {{at: number[], step: number, values: (number | null)[][], colours: string[], bars: boolean, say: (value: number) => string, stretch: (from: number, to: number) => void}} props step: seconds from one of `at` to the next */
function Chart({ at, step, values, colours, bars, say, stretch }) {
  const box = useRef(/** @type {any} */ (null));
  const plot = useRef(/** @type {any} */ (null));
  const [uPlot, setPlot] = useState(/** @type {any} */ (null));
  const narrow = useRef(stretch);
  narrow.current = stretch;
  useEffect(() => { uPlotLoaded().then((loaded) => setPlot(() => loaded)); }, []);
  const data = [at, ...values];
  useLayoutEffect(() => {
    if (!uPlot) return;
    const style = getComputedStyle(box.current);
    const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const wide = () => Math.max(80, box.current.clientWidth);
    plot.current = new uPlot({
      width: wide(), height: HEIGHT, legend: { show: false }, cursor: { y: false, points: { show: false }, drag: { x: true, setScale: false } },
      axes: [{ ...axis, size: 20, incrs: TICKS.filter((one) => one >= step), values: (/** @type {any} */ _, /** @type {number[]} */ ticks, /** @type {number} */ __, /** @type {number} */ ___, /** @type {number} */ apart) => ticks.map((s) => moment(s, apart)) }, { ...axis, size: 52, values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map(say) }],
      scales: { x: { range: (/** @type {any} */ self) => [self.data[0][0] ?? 0, (self.data[0].at(-1) ?? 0) + step] }, y: { range: (/** @type {any} */ _, /** @type {number} */ least, /** @type {number} */ most) => [bars ? 0 : Math.min(0, least), most || 1] } },
      series: [{}, ...colours.map((name) => ({
        stroke: colour(name), fill: bars ? colour(name) : undefined, spanGaps: false, width: bars ? 0 : 1.5, points: { show: !bars, size: 4 },
        ...(bars ? { paths: uPlot.paths.bars({ size: [0.8, 24, 1], align: 1 }) } : {}),
      }))],
      hooks: { setSelect: [(/** @type {any} */ self) => {
        const { left, width } = self.select;
        if (width > 4) narrow.current(self.posToVal(left, "x"), self.posToVal(left + width, "x"));
      }] },
    }, data, box.current);
    const seen = new ResizeObserver(() => plot.current.setSize({ width: wide(), height: HEIGHT }));
    seen.observe(box.current);
    return () => { seen.disconnect(); plot.current.destroy(); };
  }, [uPlot, step]);
  const drawn = JSON.stringify(data);
  useEffect(() => { plot.current?.setData(data); }, [drawn, uPlot]);
  return html`<div class="chart" ref=${box} aria-hidden="true"></div>`;
}

/** A tick of time: the month where they are as far apart, the day where it begins one, else the time of day. @param {number} s @param {number} apart seconds */
function moment(s, apart) {
  const at = new Date(s * 1000);
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  if (apart >= MONTH) return `${at.getFullYear()}-${two(at.getMonth() + 1)}`;
  const day = `${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return at.getHours() || at.getMinutes() ? `${two(at.getHours())}:${two(at.getMinutes())}` : day;
}

/** @type {Promise<any> | undefined} */
let loading;

/** The library that draws, with its style sheet; asked for when it is first needed. */
function uPlotLoaded() {
  loading ??= new Promise((done) => {
    const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL("../lib/uplot.css", import.meta.url).href });
    document.head.append(sheet);
    import("uplot").then((module) => done(module.default));
  });
  return loading;
}
