// A run: its steps or its tree as rows, a timeline behind them, and the span under the cursor.
import { Check, ClipboardCheck, Columns2, Download, FlaskConical, GitFork, LayoutDashboard, Link2, RotateCcw } from "lucide-react";
import { go, here, link, move } from "../address.ts";
import { order } from "../api.ts";
import { useChunkTimes } from "../chunk_times.ts";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { countOf, marksOf, type Mark, whyOf } from "../findings.ts";
import { useLive } from "../live.ts";
import { foldedSteps, Outline, repeats, samplesOf, whatDiffers } from "../outline.ts";
import { useAsked, useKeys, useScheme, Waiting } from "../parts.tsx";
import { FIRST, FIRST_ROWS, pathOf } from "../questions.ts";
import { FIDELITY, useRerun } from "../reruns.ts";
import { drawBars, drawMinimap, ticksOf } from "../timeline.ts";
import { brief, cost, date, shown, took } from "../words.ts";
import { KindIcon } from "../icons.tsx";
import { kindOf } from "../kinds.ts";
import { useSpanTexts } from "../span_texts.ts";
import { startReplay } from "./again.tsx";
import { Control } from "./control.tsx";
import { Findings, MarkOf } from "./findings.tsx";
import { Kept } from "./kept.tsx";
import { Copied, Overview, Status } from "./overview.tsx";
import { useNotes } from "./notes.tsx";
import { exported } from "./picked.tsx";
import { Rerun } from "./rerun.tsx";
import { Step, TABS } from "./step.tsx";

const HEIGHT = 24;
const SPARE = 8;
const TALLEST = 12_000_000;
/** What rows are there: steps with repeats folded; spans as a tree; all spans in the order in which they began. */
const DENSITIES = ["steps", "tree", "everything"];
const DENSITY_NAMES: Record<string, string> = { everything: "all spans" };
/** Panels about the run as a whole, in place of a step. */
const PANELS = ["overview", "findings"];
const MOST_MARKS = 2;

export function Run() {
  const { run = "last" } = here();
  const [columns, setColumns] = useState<any>(null);
  const again = useLive(columns?.run.status === "running", run);
  const begin = useAsked(...FIRST.run({ run }));
  const short = begin.value && begin.value.spans <= FIRST_ROWS;
  const asked = useAsked(begin.value && (!short || again) ? `${pathOf(run)}/outline` : "", {}, again);
  useEffect(() => { if (begin.value && !asked.value) setColumns(begin.value); }, [begin.value]);
  useEffect(() => { if (asked.value) setColumns(asked.value); }, [asked.value]);
  const outline = useMemo(() => (columns ? new Outline(columns) : null), [columns]);
  if (!outline) return <main><Waiting problem={begin.problem || asked.problem} /></main>;
  return <Loaded outline={outline} name={run} heard={again} />;
}

function Loaded({ outline, name, heard }: {outline: Outline, name: string, heard: number}) {
  const place = here();
  const wanted = DENSITIES.includes(place.rows) ? place.rows : "steps";
  const mode = wanted === "steps" && !outline.steps.length ? "tree" : wanted;
  const [version, setVersion] = useState(0);
  const [opened, setOpened] = useState<Set<number>>(new Set());
  const collapsed = useRef<Set<string>>(new Set());
  const rerun = useRerun(place.rerun ?? "");
  const report = rerun.value?.run === outline.run.name ? rerun.value.report : null;
  const folds = useMemo(() => repeats(outline, (row) => (report?.step_fidelity[outline.step[row]] ?? "exact") !== "exact"), [outline, report]);
  useMemo(() => outline.ids.forEach((id, at) => { if (collapsed.current.has(id)) outline.collapsed[at] = 1; }), [outline]);
  const rows = useMemo(
    () => (mode === "tree" ? outline.tree() : mode === "everything" ? outline.inTime() : foldedSteps(outline, folds, opened)),
    [outline, mode, version, opened, folds],
  );
  const cursor = useMemo(() => {
    if (PANELS.includes(place.step)) return -1;
    if (place.step === "end") return outline.whole ? (outline.steps.at(-1) ?? -1) : -1;
    if (place.step === "start") return outline.steps[0] ?? -1;
    const named = place.span ? outline.ids.findIndex((id) => id.startsWith(place.span)) : outline.ofStep(Number(place.step));
    return named >= 0 || !outline.whole ? named : outline.opening();
  }, [outline, place.span, place.step]);
  const work = useMemo(() => outline.work(), [outline]);
  const window = { from: Number(place.from || work.from), to: Number(place.to || work.to) };
  const choose = (row: number) => {
    if (row < 0 || row >= outline.count) return;
    if (mode === "tree") outline.reveal(row);
    move(outline.step[row] ? { step: outline.step[row], span: "" } : { span: outline.ids[row], step: "" });
    setVersion(version + 1);
  };
  const fold = (row: number, on: boolean) => {
    outline.collapsed[row] = on ? 1 : 0;
    on ? collapsed.current.add(outline.ids[row]) : collapsed.current.delete(outline.ids[row]);
    setVersion(version + 1);
  };
  const levels = (depth: number) => {
    outline.expandTo(depth);
    collapsed.current = new Set(outline.ids.filter((_, at) => outline.collapsed[at]));
    setVersion(version + 1);
  };
  const unfold = (at: number) => setOpened(new Set([...opened, at]));
  const zoom = (by: number) => {
    const middle = outline.start[cursor] ?? window.from;
    const from = Math.max(0, middle - (middle - window.from) * by);
    const to = Math.min(outline.end, middle + (window.to - middle) * by);
    if (to - from > 1000) move({ from: Math.round(from), to: Math.round(to) });
  };
  const pan = (by: number) => {
    const long = window.to - window.from;
    const from = Math.max(0, Math.min(outline.end - long, window.from + by * long));
    move({ from: Math.round(from), to: Math.round(from + long) });
  };
  const number = outline.step[cursor];
  const hidden = folds.findIndex(({ from, to }) => number > from && number <= to + 1);
  useEffect(() => { if (hidden >= 0 && !opened.has(hidden)) unfold(hidden); }, [hidden]);
  const at = cursor < 0 ? -1 : rows.indexOf(cursor); // a negative row is a fold
  const near = (by: number) => {
    let next = at < 0 && by < 0 ? rows.length - 1 : at + by;
    while (rows[next] < 0) next += by;
    if (next >= 0 && next < rows.length) choose(rows[next]);
  };
  useKeys((key, event) => {
    const element = (event.target as HTMLElement);
    if (key === "Enter" && element.tagName !== "BODY" && element.getAttribute("role") !== "treegrid") return false;
    if (element.tagName === "PRE" && key.startsWith("Arrow")) return false;
    if (key === "j" || key === "ArrowDown") near(1);
    else if (key === "k" || key === "ArrowUp") near(-1);
    else if (key === "s") choose(outline.ofStep(number + 1));
    else if (key === "S") choose(outline.ofStep(number - 1));
    else if (key === "e" || key === "E") choose(outline.nextFailed(cursor, key === "e" ? 1 : -1));
    else if (key === "n") choose(cursor + outline.below[cursor] + 1);
    else if (key === "f" || key === "F") choose(outline.parent[cursor]);
    else if (key === "g" || key === "G") choose(key === "g" ? rows[0] : rows[rows.length - 1]);
    else if (key === "h" || key === "ArrowLeft") mode === "tree" && outline.below[cursor] && !outline.collapsed[cursor] ? fold(cursor, true) : choose(outline.parent[cursor]);
    else if (key === "l" || key === "ArrowRight") fold(cursor, false);
    else if (key === "t") move({ rows: DENSITIES[(DENSITIES.indexOf(mode) + 1) % DENSITIES.length] });
    else if (key === "-" || key === "_") levels(1);
    else if (key === "*") levels(1e9);
    else if (key === "+" || key === "=") zoom(0.5);
    else if (key === "[" || key === "]") pan(key === "[" ? -0.25 : 0.25);
    else if (key === "0") move({ from: "", to: "" });
    else if (TABS[Number(key) - 1]) move({ tab: TABS[Number(key) - 1] });
    else if (key === "x" || key === "a") move({ tab: "again", act: key === "a" ? "fork" : "", edit: key === "a" ? "request" : "" });
    else if (key === "p" || key === "Enter") go({ view: "playhead", run: name, after: number || 0 });
    else if (key === "o" || key === "i") move({ step: key === "o" ? "overview" : "findings", span: "" });
    else if (key === "y") navigator.clipboard.writeText(location.href);
    else return false;
    return true;
  });
  const sum = outline.run;
  // When the rows are there: what a run means is derived from all of it.
  const findings = useAsked(outline.whole ? `${pathOf(sum.trace_id)}/findings` : "", {}, sum.steps);
  const marks = useMemo(() => (findings.value ? marksOf(findings.value) : new Map()), [findings.value]);
  const book = useNotes(sum.trace_id);
  return <main class="run">
    <div class="bar"><b class="run-name">{brief(name)}</b> <Status status={sum.status} />{sum.status !== "success" && <span class="bad">{brief(whyOf(sum), 60)}</span>}
      <span>{sum.steps} steps, {sum.spans} spans, {took(sum.ended_ns === null ? -1 : sum.ended_ns - sum.started_ns)}, {sum.input_tokens}→{sum.output_tokens} tokens {cost(sum.cost_usd)}</span>
      <span class="group">{DENSITIES.map((one) => <button key={one} aria-pressed={mode === one} onClick={() => move({ rows: one })}>{DENSITY_NAMES[one] ?? one}</button>)}</span>
      {mode === "tree" && <><button onClick={() => levels(1)}>collapse all</button><button onClick={() => levels(1e9)}>expand all</button></>}
      <Within name={name} choose={choose} outline={outline} />
      <Kept name={name} />
      {sum.missing.length > 0 && <span class="problem">{sum.missing.length} gaps: facts are missing</span>}</div>
    <div class="over"><Header run={sum} step={number || 0} panel={cursor >= 0 ? "" : place.step === "findings" ? "findings" : "overview"} found={findings.value} />
      <Rerun found={rerun} run={sum.name} />{sum.status === "running" && <Control name={sum.name} heard={heard} />}</div>
    <div class="strip"><Minimap outline={outline} window={window} cursor={cursor} /><Axis window={window} end={outline.end} /></div>
    <Rows outline={outline} rows={rows} cursor={cursor} at={at} window={window} mode={mode} folds={folds} choose={choose} fold={fold} unfold={unfold} version={version} fidelity={report?.step_fidelity} marks={marks} />
    {cursor < 0 && place.step === "findings" ? <Findings outline={outline} asked={findings} /> : cursor < 0 ? <Overview outline={outline} book={book} /> : <Step outline={outline} row={cursor} book={book} tab={TABS.includes(place.tab) ? place.tab : TABS[0]} />}
  </main>;
}

/** Facts and actions of the run. */
function Header({ run, step, panel, found }: { run: any; step: number; panel: string; found: any }) {
  const [marks, setMarks] = useState<string[]>(run.marks);
  const [problem, setProblem] = useState("");
  const [copied, setCopied] = useState("");
  const share = () => navigator.clipboard.writeText(location.href).then(() => setCopied(location.href), (refused) => setProblem(refused.message));
  const saved = marks.includes("test");
  const save = () => order(saved ? "DELETE" : "PUT", `${pathOf(run.trace_id)}/marks/test`).then((found) => setMarks(found.marks), (refused) => setProblem(refused.message));
  const may = useAsked("reruns").value?.allowed;
  const again = (act: string, edit: string) => move({ tab: "again", act, edit, ...(panel ? { step: step || 1, span: "" } : {}) });
  const replay = () => {
    again("replay", "");
    if (may) startReplay(run.name).catch((refused) => setProblem(refused.message));
  };
  return <div class="bar">
    <button aria-pressed={panel === "overview"} onClick={() => move({ step: "overview", span: "" })}><LayoutDashboard size={14} />Overview</button>
    <button name="findings" aria-pressed={panel === "findings"} title="failures, decisions, states, signals" onClick={() => move({ step: "findings", span: "" })}><ClipboardCheck size={14} />Findings{found && countOf(found) > 0 && <span class="quiet">{countOf(found)}</span>}</button>
    <button name="replay-run" title={may ? "execute the program offline, answered from the recording" : "how to replay this run"} onClick={replay}><RotateCcw size={14} />Replay</button>
    <button name="fork-run" title="edit a request, and continue from there as a new run" onClick={() => again("fork", "form")}><GitFork size={14} />Fork</button>
    <button aria-pressed={saved} onClick={save}><FlaskConical size={14} />{saved ? "Saved as test" : "Save as test"}</button>
    <a class="button" href={link({ view: "compare", left: run.name })}><Columns2 size={14} />Compare</a>
    <button name="share" aria-label={copied === location.href ? "link copied" : "copy a link to what is shown"} title="copy a link to what is shown (y)" onClick={share}>{copied === location.href ? <Check size={14} /> : <Link2 size={14} />}</button>
    <button name="download" aria-label="download this run" title="download this run, for playhead import" onClick={() => exported([run]).catch((refused) => setProblem(refused.message))}><Download size={14} /></button>
    <span class="quiet">{[brief(run.agent, 40), run.version && `version ${run.version.slice(0, 8)}`, `started ${date(run.started_ns)}`].filter(Boolean).join(", ")}</span>
    <span class="quiet trace" title="trace id"><Copied text={run.trace_id} /></span>
    {problem && <span class="problem" role="alert">{shown(problem)}</span>}</div>;
}

/** Times above the bars. */
function Axis({ window, end }: { window: { from: number; to: number }; end: number }) {
  const long = window.to - window.from;
  const cut = window.from > 0 || window.to < end;
  return <><div class="ticks-note">{cut && <>shows {took(window.from)} to {took(window.to)} of {took(end)} <button class="link" onClick={() => move({ from: 0, to: Math.round(end) })}>whole run</button></>}</div>
    <div class="ticks" aria-hidden="true">{ticksOf(window.from, window.to).map((at) => <span key={at} style={{ left: `${((at - window.from) / long) * 100}%` }}>{took(at)}</span>)}</div></>;
}


function Minimap({ outline, window, cursor }: {outline: Outline, window: {from: number, to: number}, cursor: number}) {
  const canvas = useRef<any>(null);
  const held = useRef(-1);
  useScheme();
  useLayoutEffect(() => drawMinimap(canvas.current, outline, window, cursor));
  const time = (event: any) => (event.offsetX / canvas.current.clientWidth) * outline.end;
  const pick = (event: any) => {
    const [from, to] = [held.current, time(event)].sort((one, other) => one - other);
    if (from >= 0) move(to - from > outline.end / 200 ? { from: Math.round(from), to: Math.round(to) } : { from: "", to: "" });
    held.current = -1;
  };
  const turned = (event: any) => {
    event.preventDefault();
    const middle = time(event);
    const by = event.deltaY > 0 ? 1.25 : 0.8;
    const from = Math.max(0, middle - (middle - window.from) * by);
    const to = Math.min(outline.end, middle + (window.to - middle) * by);
    if (to - from > 1000) move({ from: Math.round(from), to: Math.round(to) });
  };
  return <canvas class="minimap" ref={canvas} aria-hidden="true" onPointerDown={(event: any) => { held.current = time(event); }} onPointerUp={pick} onWheel={turned}></canvas>;
}

function Rows({ outline, rows, cursor, at, window, mode, folds, choose, fold, unfold, version, fidelity, marks }: any) {
  const tree = mode === "tree";
  const box = useRef<any>(null);
  const canvas = useRef<any>(null);
  const [top, setTop] = useState(0);
  const [view, setView] = useState(600);
  const scheme = useScheme();
  const whole = rows.length * HEIGHT;
  const tall = Math.min(whole, TALLEST);
  const scale = tall > view ? (whole - view) / (tall - view) : 1;
  const y = Math.max(0, Math.min(whole - view, top * scale));
  const first = Math.max(0, Math.floor(y / HEIGHT));
  const begin = Math.max(0, first - SPARE);
  const end = Math.min(rows.length, first + Math.ceil(view / HEIGHT) + SPARE);
  const texts = useSpanTexts(outline, rows, first, end, (fold) => samplesOf(outline, folds[fold]).flat());
  const chunks = useChunkTimes(outline, rows, { first, end, attempts: mode === "steps" });
  useLayoutEffect(() => {
    const seen = new ResizeObserver(() => setView(box.current.clientHeight));
    seen.observe(box.current);
    setView(box.current.clientHeight);
    return () => seen.disconnect();
  }, []);
  useLayoutEffect(() => {
    const place = at * HEIGHT;
    if (at >= 0 && (place < y || place + HEIGHT > y + view)) box.current.scrollTop = Math.max(0, place - view / 2) / scale;
  }, [cursor, rows, view]);
  useLayoutEffect(() => {
    canvas.current.style.height = `${view}px`;
    canvas.current.style.marginBottom = `-${view}px`;
    drawBars(canvas.current, outline, { rows, first, offset: y - first * HEIGHT, height: HEIGHT, cursor, attempts: mode === "steps" }, window, chunks);
  }, [outline, rows, y, view, cursor, window.from, window.to, version, chunks, scheme]);
  // A row that is drawn as before keeps its element: preact then has nothing to compare. One that comes
  // into sight takes the nodes of one that went.
  const pool = Math.ceil(view / HEIGHT) + 2 * SPARE + 1;
  const kept = useRef({ outline, rows: new Map() });
  const before = kept.current.outline === outline ? kept.current.rows : new Map();
  const drawn = new Map();
  for (let place = begin; place < end; place++) {
    const row = rows[place];
    const shift = place * HEIGHT - y + top;
    const as = `${place} ${pool} ${shift} ${mode} ${row === cursor} ${row < 0 || outline.collapsed[row]} ${fidelity?.[outline.step[row]]} ${marks.get(outline.step[row])?.length} ${row < 0 ? samplesOf(outline, folds[-1 - row]).flat().filter((one) => texts.has(outline.ids[one])).length : texts.has(outline.ids[row])}`;
    const old = before.get(row);
    drawn.set(row, old?.as === as ? old : { as, element: rowAt(row, place, shift) });
  }
  kept.current = { outline, rows: drawn };
  const clicked = (event: any) => {
    const at = event.target.closest(".row");
    if (!at) return;
    const row = Number(at.dataset.row);
    if (row < 0) unfold(-1 - row);
    else if (event.target.closest(".twist")) fold(row, !outline.collapsed[row]);
    else choose(row);
  };

  function rowAt(row: number, place: number, shift: number) {
    const style = { transform: `translateY(${shift}px)` };
    if (row < 0) {
      const { from, to, times } = folds[-1 - row];
      const samples = samplesOf(outline, folds[-1 - row]);
      const told = samples.map((some) => some.map((one) => texts.get(outline.ids[one])).flatMap((one) => [one?.label, one?.text]).filter(Boolean).join(" "));
      const differs = whatDiffers(told).map((one) => brief(one, 40));
      const how = differs.length ? `differ in ${differs.join(" · ")}${times > samples.length ? " · …" : ""}` : samples.flat().every((one) => texts.has(outline.ids[one])) ? `the first ${samples.length} are the same` : "";
      return <div class="row quiet" role="row" data-row={row} aria-level={1} aria-rowindex={place + 1} aria-expanded={false} key={place % pool} style={style} title="click to open"><span role="gridcell" class="title"><span class="fold">▸ Show steps {outline.step[outline.steps[from]]}–{outline.step[outline.steps[to]]}</span> similar ×{times}{how && `: ${how}`}</span>{fidelity && <span role="gridcell" class="tag good">= exact</span>}</div>;
    }
    const open = !outline.collapsed[row];
    const tries = mode === "steps" ? outline.attempts(row).length : 0;
    const how = FIDELITY[fidelity?.[outline.step[row]]];
    const own: Mark[] = outline.step[row] ? (marks.get(outline.step[row]) ?? []) : [];
    const text = texts.get(outline.ids[row]);
    const kind = text?.kind || kindOf(outline.title(row));
    const label = text?.label ?? "";
    const about = [label.startsWith(outline.title(row)) ? label.slice(outline.title(row).length).trim() : outline.title(row).includes(label) ? "" : label, text?.text].filter(Boolean).join("  ");
    const indent = { paddingLeft: `${tree ? Math.min(outline.depth[row], 30) * 12 : 0}px` };
    return <div class="row" role="row" id={`row-${row}`} data-row={row} key={place % pool} aria-level={tree ? outline.depth[row] + 1 : 1} aria-rowindex={place + 1} aria-selected={row === cursor} aria-expanded={tree && outline.below[row] ? open : undefined} style={style}>
      <span role="gridcell" class="title" style={indent}>{tree && outline.below[row] > 0 && <span class="twist">{open ? "▾" : "▸"} </span>}<span class="number">{outline.step[row] || ""}</span> <KindIcon kind={outline.failed(row) ? "error" : kind} /><span class={outline.failed(row) ? "bad" : ""}>{outline.failed(row) ? "✗ " : ""}{brief(outline.title(row), 120)}</span>{about && <> <span class="quiet">{brief(about, 200)}</span></>}{tries > 1 ? <span class="odd">↻{tries}</span> : ""}{tree && !open ? <span class="quiet">+{outline.below[row]}</span> : ""}</span>
      {own.length > 0 && <span role="gridcell" class="marks">{own.slice(0, MOST_MARKS).map((mark) => <MarkOf key={`${mark.kind} ${mark.text}`} mark={mark} />)}{own.length > MOST_MARKS && <span class="quiet">+{own.length - MOST_MARKS}</span>}</span>}
      {how && <span role="gridcell" class={`tag ${how[1]}`}>{how[0]} {fidelity[outline.step[row]]}</span>}
      <span role="gridcell" class="number">{outline.input[row] ? `${outline.input[row]}→${outline.output[row]} ` : ""}{took(outline.duration[row])}</span></div>;
  }
  return <div class="rows" ref={box} role="treegrid" aria-label={mode === "steps" ? "steps" : "spans"} aria-rowcount={rows.length} tabIndex={0} aria-activedescendant={at >= Math.max(0, begin) && at < end ? `row-${cursor}` : undefined} onScroll={(event: any) => setTop(event.currentTarget.scrollTop)}>
    <canvas ref={canvas} aria-hidden="true"></canvas><div class="tall" role="rowgroup" style={{ height: `${tall}px` }} onClick={clicked}>{[...drawn.values()].map((one) => one.element)}</div></div>;
}

/** Search within the run; `>` and `<` go from hit to hit. */
function Within({ name, choose, outline }: {name: string, choose: (row: number) => void, outline: Outline}) {
  const { find = "" } = here();
  const { value, problem } = useAsked(find ? `${pathOf(name)}/places` : "", { text: find, limit: 1000 });
  const [hit, setHit] = useState(0);
  const places = value?.places ?? [];
  const show = (at: number) => {
    if (!places.length) return;
    const next = (at + places.length) % places.length;
    setHit(next);
    choose(outline.ids.indexOf(places[next].span_id));
  };
  useKeys((key) => {
    if (key === ">" || key === "<") show(hit + (key === ">" ? 1 : -1));
    else return false;
    return true;
  });
  return <><input type="search" aria-label="find in this run" placeholder="find" value={find} onChange={(event: any) => { setHit(-1); move({ find: event.target.value }); }} />
    {find && <span class="quiet" role="status">{problem || (value ? `${places.length}${value.truncated ? "+" : ""} matches` : "searching")}</span>}</>;
}
