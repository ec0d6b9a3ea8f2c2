// Which values the runs of a query have in common, with counts; a click narrows the query.
import { useState } from "preact/hooks";
import { useAsked, useKept } from "../parts.tsx";
import { narrowed, valueIn } from "../query_words.ts";
import { brief } from "../words.ts";

const NAMES: [string, string][] = [["status", "Status"], ["agent", "Agent"], ["agent_type", "Agent type"], ["failure", "Failure"], ["model", "Model"], ["version", "Version"], ["tool", "Tool"], ["user", "User"], ["tag", "Tag"], ["env", "Environment"], ["release", "Release"], ["prompt", "Prompt"]];
const SHOWN = 6;
const OPEN_FROM = 900;

/** @param found an answer of `/v1/facets` @param again asks again when it changes */
export function Facets({ query, found, again, narrow }: { query: string; found: any; again: number; narrow: (q: string) => void }) {
  const [open, setOpen] = useState(innerWidth > OPEN_FROM);
  return <details class="facets" open={open} onToggle={(event: any) => setOpen(event.currentTarget.open)}><summary>Filters</summary>
    {open && found && NAMES.map(([field, name]) => <Facet key={field} field={field} name={name} query={query} found={found} again={again} narrow={narrow} />)}
    {found?.truncated && <p class="note">of the newest {found.runs.toLocaleString("en-US")} runs</p>}</details>;
}

/** The values of a field. One that the query has already is counted without it, so that another can take its place. */
function Facet({ field, name, query, found, again, narrow }: { field: string; name: string; query: string; found: any; again: number; narrow: (q: string) => void }) {
  const [all, setAll] = useState(false);
  const chosen = valueIn(query, field);
  const others = useKept(useAsked(chosen ? "facets" : "", { q: narrowed(query, field, "") }, again).value);
  const values: { value: string; runs: number }[] = (chosen ? (others ?? found) : found).facets[field] ?? [];
  if (!values.length) return null;
  const most = Math.max(...values.map((one) => one.runs));
  const shown = values.filter(({ value }, at) => all || at < SHOWN || value === chosen);
  return <section aria-label={name}><h2>{name}</h2>
    {shown.map(({ value, runs }) => <button class="share" key={value} aria-pressed={value === chosen} title={brief(value, 200)} onClick={() => narrow(narrowed(query, field, value === chosen ? "" : value))}>
      <span class="bar-of" aria-hidden="true"><span style={{ width: `${(runs / most) * 100}%` }}></span></span><span>{brief(value, 60)}</span><span class="quiet">{runs.toLocaleString("en-US")}</span></button>)}
    {values.length > SHOWN && <button class="link quiet" onClick={() => setAll(!all)}>{all ? "Fewer" : `${values.length - SHOWN} more`}</button>}</section>;
}
