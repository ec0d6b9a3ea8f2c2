// When the pieces of answers came, of the rows in sight: asked for when scrolling has come to rest.
import { part } from "./api.ts";
import { useEffect, useRef, useState } from "preact/hooks";
import { ATTEMPT } from "./outline.ts";
import { useAsked, useSettled } from "./parts.tsx";

const MOST = 200;
const REST_MS = 150;

/**
 * Times since the start of the run, by span id; what was asked for once is kept.
 *
 *
 * @param sight places in `rows`; attempts: whether they are drawn into their steps
 * @returns a map of its own for each state of what is known
 */
export function useChunkTimes(outline: import("./outline.ts").Outline, rows: Int32Array, { first, end, attempts }: {first: number, end: number, attempts: boolean}): Map<string, number[]> {
  const [known, setKnown] = useState<Map<string, number[]>>(new Map());
  const asked = useRef<string[]>([]);
  const wanted = [];
  for (let place = first; place < end && wanted.length < MOST; place++) {
    const row = rows[place];
    if (row < 0 || outline.duration[row] < 0 || !(outline.step[row] || outline.flags[row] & ATTEMPT)) continue;
    const tries = attempts ? outline.attempts(row) : [];
    for (const at of tries.length > 1 ? tries : [row])
      if (!known.has(outline.ids[at])) wanted.push(outline.ids[at]);
  }
  const ids = wanted.slice(0, MOST).join();
  const settled = useSettled(ids, REST_MS);
  const { value } = useAsked(ids && ids === settled ? `runs/${part(outline.run.name)}/chunks` : "", { spans: ids });
  if (ids && ids === settled) asked.current = ids.split(",");
  useEffect(() => {
    if (!value) return;
    const times = new Map<string, number[]>(value.span_id.map((id: string, at: number) => [id, value.time_ns[at]]));
    const told = asked.current.filter((id) => times.has(id) || outline.run.status !== "running"); // else it may come yet
    setKnown(new Map([...known, ...told.map((id) => [id, times.get(id) ?? []] as [string, number[]])]));
  }, [value]);
  return known;
}
