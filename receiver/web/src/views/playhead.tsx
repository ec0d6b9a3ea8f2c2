// The state of a run when a step was over: variables, files, databases, checkpoints, and what the step changed.
import { ChevronLeft, ChevronRight, Database as DatabaseIcon, FileText, Milestone, SquareTerminal, Variable } from "lucide-react";
import { here, link, move } from "../address.ts";
import { useRef, useState } from "preact/hooks";
import { Conversation, Empty, Json, LeftOut, Text, useAsked, useKeys, Waiting } from "../parts.tsx";
import { pathOf } from "../questions.ts";
import { changesOf } from "../state_changes.ts";
import { changedLines } from "../word_difference.ts";
import { brief, date, size } from "../words.ts";
import { Words } from "./compare.tsx";

const MOST_FILES = 200;
const MOST_CHANGES = 100;
const MOST_OPEN = 3;
const MOST_COMPARED = 20_000;
const ICONS: Record<string, any> = { variable: Variable, file: FileText, table: DatabaseIcon, checkpoint: Milestone, output: SquareTerminal };
const TONES: Record<string, string> = { added: "good", changed: "odd", removed: "bad" };

export function Playhead() {
  const { run = "last", after = "" } = here();
  const path = `${pathOf(run)}/moment`;
  const picked = after === "" ? null : Math.max(0, Number(after) || 0);
  const { value, problem } = useAsked(path, picked === null ? {} : { after: picked });
  const before = useAsked(value?.step > 0 ? path : "", { after: (value?.step ?? 1) - 1 }).value;
  const shown = useRef<any>(null);
  if (value) shown.current = value;
  const last = shown.current?.steps ?? Infinity;
  const at = picked ?? shown.current?.step ?? 0;
  const to = (step: number) => move({ after: Math.max(0, Math.min(last, step)) });
  useKeys((key) => {
    if (key === "s" || key === "l" || key === "ArrowRight") to(at + 1);
    else if (key === "S" || key === "h" || key === "ArrowLeft") to(at - 1);
    else if (key === "g") to(0);
    else if (key === "G" && Number.isFinite(last)) to(last);
    else return false;
    return true;
  });
  return <main><div class="bar"><button aria-label="previous step" disabled={at <= 0} onClick={() => to(at - 1)}><ChevronLeft size={14} /></button>
    <input type="range" aria-label="after step" min="0" max={Number.isFinite(last) ? last : at} value={at} onInput={(event: any) => to(Number(event.target.value))} />
    <button aria-label="next step" disabled={at >= last} onClick={() => to(at + 1)}><ChevronRight size={14} /></button><span role="status">{Number.isFinite(last) ? `after step ${at} of ${last}` : "loading"}</span>
    {at > 0 && <a class="button" href={link({ view: "run", run, step: at })}>Show this step</a>}</div>
    {value ? <Then key={value.step} now={value} before={value.step > 0 ? before : null} /> : <Waiting problem={problem} />}</main>;
}

function Then({ now, before }: {now: any, before: any}) {
  const [most, setMost] = useState(MOST_FILES);
  const nothing = !now.states.length && !now.files.length && !now.databases.length && !now.checkpoints.length;
  const level = useAsked(nothing ? `${pathOf(now.run)}/kept` : "").value?.not_kept.files;
  return <div>
    {before && <Changes before={before} now={now} />}
    <LeftOut sentences={now.left_out} />
    <div class="two"><div class="recorded">
      {now.states.map((one: any) => <section key={one.name}><h2><Variable size={14} aria-hidden="true" /> {brief(one.name)} <span class="quiet">reported at step {one.step}</span></h2><Json value={one.value} name={one.name} open /></section>)}
      {now.checkpoints.length > 0 && <section><h2>Checkpoints</h2><table><thead><tr><th scope="col">Name</th><th scope="col">Label</th><th scope="col">Kind</th><th scope="col" class="right">Step</th><th scope="col">Made</th></tr></thead>
        <tbody>{now.checkpoints.slice(-MOST_FILES).reverse().map((one: any) => <tr key={one.name}><td>{one.name}</td><td>{brief(one.label, 60)}</td><td>{brief(one.kind, 20)}</td><td class="right"><a href={link({ ...here(), after: one.step })}>{one.step}</a></td><td>{date(one.time_ns)}</td></tr>)}</tbody></table></section>}
      {now.files.length > 0 && <h2>Files</h2>}
      {now.files.slice(0, most).map((one: any) => <details key={one.path}><summary>{brief(one.path)} <span class="quiet">{one.inexact ?? size(one.size_bytes)}</span></summary>
        {one.content ? <Text text={one.content.text ?? `base64 ${one.content.base64}`} /> : <p class="note">the content is unknown or too long to show</p>}</details>)}
      {now.files.length > most && <button onClick={() => setMost(most * 10)}>{now.files.length - most} more files</button>}
      {now.databases.map((one: any) => <Database key={one.path} one={one} />)}
      {["stdout", "stderr"].map((name) => now[name] && <section key={name}><h2>{name}</h2><Text text={now[name]} /></section>)}
      {nothing && <Empty title={now.step ? "No state was recorded up to this step" : "No state before the first step"} commands={level ? [`playhead record --level ${level} agent.py`] : []}>
        Report a variable in the program with <code>playhead.state("name", value)</code>{level ? ", or record its files and databases:" : "."}</Empty>}
    </div><div>
      {now.conversations.map((one: any, at: number) => <section key={at}><h2>Conversation {one.lane ? `of ${brief(one.lane)}, ` : ""}step {one.step}{one.answered ? "" : ", no response yet"}</h2>
        <Conversation messages={one.input_messages} /><Conversation messages={one.output_messages} kind="output" /></section>)}
      {!now.conversations.length && <p class="note">no model has been called yet</p>}
    </div></div></div>;
}

/** What the step changed; a few changes are open at once. */
function Changes({ before, now }: { before: any; now: any }) {
  const found = changesOf(before, now);
  return <section class="card changes"><h2>Changes in step {now.step} <span class="end quiet">{found.length ? found.length : "none"}</span></h2>
    {found.length > 0 && <div class="in">{found.slice(0, MOST_CHANGES).map((one) => {
      const Icon = ICONS[one.kind];
      const lines = changedLines(one.left, one.right);
      const long = lines.left.length + lines.right.length > MOST_COMPARED;
      const head = <><Icon size={13} aria-hidden="true" /> {one.kind} <b>{brief(one.name)}</b> <span class={TONES[one.how]}>{one.how}</span></>;
      return one.left || one.right
        ? <details key={`${one.kind} ${one.name}`} open={found.length <= MOST_OPEN && !long}><summary>{head}</summary>
          {long ? <p class="note">the change is too long to show word by word</p> : one.left ? <Words left={lines.left} right={lines.right} /> : <Text text={one.right} />}</details>
        : <div key={`${one.kind} ${one.name}`}>{head}</div>;
    })}{found.length > MOST_CHANGES && <p class="note">{found.length - MOST_CHANGES} more</p>}</div>}</section>;
}

/** The tables of a database. */
function Database({ one }: {one: any}) {
  return <section class="database"><h2><DatabaseIcon size={14} aria-hidden="true" /> {brief(one.path)} <span class="quiet">{one.inexact ?? "database"}</span></h2>
    {one.tables.map((table: any) => <details key={table.name}><summary>{brief(table.name)} <span class="quiet">{table.left_out ?? ""} {rowsOf(table)}</span></summary>
      <div class="wide" tabIndex={0}><table><thead><tr>{table.columns.map((name: string) => <th key={name} scope="col">{brief(name)}</th>)}</tr></thead>
      <tbody>{table.rows.map((row: any[], at: number) => <tr key={at}>{row.map((value, place) => <td key={place}>{cell(value)}</td>)}</tr>)}</tbody></table></div></details>)}</section>;
}

const rowsOf = (table: any) => table.row_count === null ? "" : table.row_count > table.rows.length
  ? `${table.rows.length} of ${table.row_count} rows` : `${table.row_count} rows`;

/** A value of a row as a text. */
const cell = (value: any) => value === null ? <span class="quiet">null</span> : brief(value.base64 === undefined ? String(value) : `base64 ${value.base64}`, 500);
