// What runs sum up to by time and by what they have in common, as pictures with the same as tables.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useAsked, useKept, useScheme } from "../parts.tsx";
import { byTime, narrowed, SECONDS, widthOf } from "../query_words.ts";
import { cost, took } from "../words.ts";

const HEIGHT = 110;
const HOUR = 3600;
const DAY = 24 * HOUR;
const MONTH = 28 * DAY;
/** Seconds between ticks of time: none is shorter than what is summed up, or its label would come twice. */
const TICKS = [1, 5, 10, 30, 60, 120, 300, 600, 1800, HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, MONTH, 3 * MONTH, 12 * MONTH];

export function Board({ query, spanNs, again, narrow }: {query: string, spanNs: number, again: number, narrow: (query: string) => void}) {
  const width = widthOf(spanNs);
  const [open, setOpen] = useState(false);
  const times = useKept(useAsked("stats", { q: query, by: width }, again).value);
  if (!times) return <div class="board"></div>;
  const { at, groups } = byTime(times.groups, width);
  const of = (read: (one: any) => any) => groups.map((one) => (one ? read(one) : null));
  const failures = (one: any) => (one.statuses.failure ?? 0) + (one.statuses.interrupted ?? 0);
  const stretch = (from: number, to: number) => {
    const moment = (s: number) => new Date(s * 1000).toISOString().slice(0, 19) + "Z";
    narrow(narrowed(narrowed(query, "since", moment(from)), "until", moment(to)));
  };
  const shared = { at, stretch, step: SECONDS[width] };
  const percents = [50, 90, 99];
  return <div class="board">
    <figure><figcaption>runs by {width}, <span class="bad">failures</span></figcaption><Chart {...shared} bars={true} values={[of((one) => one.runs), of(failures)]} colours={["--bar", "--bad"]} say={String} /></figure>
    <figure><figcaption>cost <b>{cost(times.total.cost_usd)}</b></figcaption><Chart {...shared} bars={true} values={[of((one) => one.cost_usd)]} colours={["--bar"]} say={cost} /></figure>
    <figure><figcaption>duration: <span class="quiet">p50, p90, p99</span></figcaption><Chart {...shared} bars={false} values={percents.map((one) => of((group) => group[`duration_p${one}_ns`]))} colours={["--bar", "--odd", "--bad"]} say={took} /></figure>
    <details class="wide" onToggle={(event: any) => setOpen(event.currentTarget.open)}><summary>as a table</summary>{open && <table><thead><tr><th scope="col">From</th>{["Runs", "Failures", "Cost", ...percents.map((one) => `P${one}`)].map((one) => <th scope="col" class="right" key={one}>{one}</th>)}</tr></thead>
      <tbody>{groups.map((one, place) => one && <tr key={one.key}><th scope="row"><button onClick={() => stretch(at[place], at[place] + SECONDS[width])}>{one.key}</button></th><td class="right">{one.runs}</td><td class="right">{failures(one)}</td><td class="right">{cost(one.cost_usd)}</td>
        {percents.map((percent) => <td class="right" key={percent}>{one[`duration_p${percent}_ns`] === null ? "" : took(one[`duration_p${percent}_ns`])}</td>)}</tr>)}</tbody></table>}</details>
  </div>;
}

/** @param props step: seconds from one of `at` to the next; stretch: told what is marked with the pointer */
export function Chart({ at, step, values, colours, bars, say, stretch = () => undefined }: {at: number[], step: number, values: (number | null)[][], colours: string[], bars: boolean, say: (value: number) => string, stretch?: (from: number, to: number) => void}) {
  const box = useRef<any>(null);
  const plot = useRef<any>(null);
  const [uPlot, setPlot] = useState<any>(null);
  const narrow = useRef(stretch);
  const scheme = useScheme();
  narrow.current = stretch;
  useEffect(() => { uPlotLoaded().then((loaded) => setPlot(() => loaded)); }, []);
  const data = [at, ...values];
  useLayoutEffect(() => {
    if (!uPlot) return;
    const style = getComputedStyle(box.current);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const wide = () => Math.max(80, box.current.clientWidth);
    plot.current = new uPlot({
      width: wide(), height: HEIGHT, legend: { show: false }, cursor: { y: false, points: { show: false }, drag: { x: true, setScale: false } },
      axes: [{ ...axis, size: 20, incrs: TICKS.filter((one) => one >= step), values: (_: any, ticks: number[], __: number, ___: number, apart: number) => ticks.map((s) => moment(s, apart)) }, { ...axis, size: 60, values: (_: any, ticks: number[]) => ticks.map(say) }],
      scales: { x: { range: (self: any) => [self.data[0][0] ?? 0, (self.data[0].at(-1) ?? 0) + step] }, y: { range: (_: any, least: number, most: number) => [bars ? 0 : Math.min(0, least), most || 1] } },
      series: [{}, ...colours.map((name) => ({
        stroke: colour(name), fill: bars ? colour(name) : undefined, spanGaps: false, width: bars ? 0 : 1.5, points: { show: !bars, size: 4 },
        ...(bars ? { paths: uPlot.paths.bars({ size: [0.8, 24, 1], align: 1 }) } : {}),
      }))],
      hooks: { setSelect: [(self: any) => {
        const { left, width } = self.select;
        if (width > 4) narrow.current(self.posToVal(left, "x"), self.posToVal(left + width, "x"));
      }] },
    }, data, box.current);
    const seen = new ResizeObserver(() => plot.current.setSize({ width: wide(), height: HEIGHT }));
    seen.observe(box.current);
    return () => { seen.disconnect(); plot.current.destroy(); };
  }, [uPlot, step, scheme]);
  const drawn = JSON.stringify(data);
  useEffect(() => { plot.current?.setData(data); }, [drawn, uPlot]);
  return <div class="chart" ref={box} aria-hidden="true"></div>;
}

/** A tick of time: the month where they are as far apart, the day where it begins one, else the time of day. @param apart seconds */
function moment(s: number, apart: number) {
  const at = new Date(s * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  if (apart >= MONTH) return `${at.getFullYear()}-${two(at.getMonth() + 1)}`;
  if (apart < 60) return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  const day = `${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return at.getHours() || at.getMinutes() ? `${two(at.getHours())}:${two(at.getMinutes())}` : day;
}

let loading: Promise<any> | undefined;

/** The library that draws, with its style sheet; asked for when it is first needed. */
function uPlotLoaded() {
  loading ??= Promise.all([import("uplot"), import("uplot/dist/uPlot.min.css")]).then(([module]) => module.default);
  return loading;
}
