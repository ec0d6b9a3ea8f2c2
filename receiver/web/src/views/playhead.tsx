// A scrubber over the run: what was so when a step was over.
import { here, link, move } from "../address.ts";
import { useEffect, useRef } from "preact/hooks";
import { Conversation, Json, LeftOut, Text, useAsked, useKeys, Waiting } from "../parts.tsx";
import { pathOf } from "../questions.ts";
import { brief, size } from "../words.ts";

export function Playhead() {
  const { run = "last", after = "0" } = here();
  const at = Math.max(0, Number(after) || 0);
  const { value, problem } = useAsked(`${pathOf(run)}/moment`, { after: at });
  const shown = useRef<any>(null);
  const before = useRef<any>(null);
  useEffect(() => {
    if (value && value !== shown.current) {
      before.current = shown.current;
      shown.current = value;
    }
  }, [value]);
  const last = (value ?? shown.current)?.steps ?? Infinity;
  const to = (step: number) => move({ after: Math.max(0, Math.min(last, step)) });
  useKeys((key) => {
    if (key === "s" || key === "l" || key === "ArrowRight") to(at + 1);
    else if (key === "S" || key === "h" || key === "ArrowLeft") to(at - 1);
    else if (key === "g") to(0);
    else if (key === "G" && Number.isFinite(last)) to(last);
    else return false;
    return true;
  });
  const stop = value === shown.current ? before.current : shown.current;
  return <main><div class="bar"><button aria-label="previous step" onClick={() => to(at - 1)}>◀</button>
    <input type="range" aria-label="after step" min="0" max={Number.isFinite(last) ? last : at} value={at} onInput={(event: any) => to(Number(event.target.value))} />
    <button aria-label="next step" onClick={() => to(at + 1)}>▶</button><span role="status">after step {at}{Number.isFinite(last) ? ` of ${last}` : ""}</span>
    {at > 0 && <a href={link({ view: "run", run, step: at })}>show this step</a>}</div>
    {value ? <Then now={value} before={stop?.run === value.run ? stop : null} /> : <Waiting problem={problem} />}</main>;
}

/**
 * Names of what differs between two moments.
 */
export function changes(before: any, now: any): string[] {
  const found = [];
  for (const [kind, key] of [["states", "name"], ["files", "path"], ["databases", "path"]]) {
    const old = new Map(before[kind].map((one: any) => [one[key], JSON.stringify(one)]));
    for (const one of now[kind]) {
      if (old.get(one[key]) !== JSON.stringify(one)) found.push(`${kind.slice(0, -1)} ${one[key]}`);
      old.delete(one[key]);
    }
    for (const gone of old.keys()) found.push(`${kind.slice(0, -1)} ${gone} (missing)`);
  }
  for (const name of ["stdout", "stderr"])
    if (before[name] !== now[name]) found.push(`${name}, ${now[name].length - before[name].length} characters`);
  return found;
}

function Then({ now, before }: {now: any, before: any}) {
  const changed = before && before.step !== now.step ? changes(before, now) : [];
  return <div>
    {before && before.step !== now.step && <p class="note">changed since step {before.step}: {changed.length ? brief(changed.join(", "), 500) : "nothing"}</p>}
    <LeftOut sentences={now.left_out} />
    <div class="two"><div>
      {now.conversations.map((one: any, at: number) => <section key={at}><h2>conversation {one.lane ? `of ${brief(one.lane)}, ` : ""}step {one.step}{one.answered ? "" : ", no response yet"}</h2>
        <Conversation messages={one.input_messages} /><Conversation messages={one.output_messages} kind="output" /></section>)}
      {!now.conversations.length && <p class="note">no model has been called yet</p>}
    </div><div>
      {now.states.map((one: any) => <section key={one.name}><h2>{brief(one.name)} <span class="quiet">reported at step {one.step}</span></h2><Json value={one.value} name={one.name} /></section>)}
      {now.files.length > 0 && <h2>files</h2>}
      {now.files.map((one: any) => <details key={one.path}><summary>{brief(one.path)} <span class="quiet">{one.inexact ?? size(one.size_bytes)}</span></summary>
        {one.content ? <Text text={one.content.text ?? `base64 ${one.content.base64}`} /> : <p class="note">the content is unknown or too long to show</p>}</details>)}
      {now.databases.map((one: any) => <Database key={one.path} one={one} />)}
      {["stdout", "stderr"].map((name) => now[name] && <section key={name}><h2>{name}</h2><Text text={now[name]} /></section>)}
    </div></div></div>;
}

/** The tables of a database. */
function Database({ one }: {one: any}) {
  return <section class="database"><h2>{brief(one.path)} <span class="quiet">{one.inexact ?? "database"}</span></h2>
    {one.tables.map((table: any) => <details key={table.name}><summary>{brief(table.name)} <span class="quiet">{table.left_out ?? ""} {rowsOf(table)}</span></summary>
      <div class="wide" tabIndex={0}><table><thead><tr>{table.columns.map((name: string) => <th key={name} scope="col">{brief(name)}</th>)}</tr></thead>
      <tbody>{table.rows.map((row: any[], at: number) => <tr key={at}>{row.map((value, place) => <td key={place}>{cell(value)}</td>)}</tr>)}</tbody></table></div></details>)}</section>;
}

const rowsOf = (table: any) => table.row_count === null ? "" : table.row_count > table.rows.length
  ? `${table.rows.length} of ${table.row_count} rows` : `${table.row_count} rows`;

/** A value of a row as a text. */
const cell = (value: any) => value === null ? <span class="quiet">null</span> : brief(value.base64 === undefined ? String(value) : `base64 ${value.base64}`, 500);
