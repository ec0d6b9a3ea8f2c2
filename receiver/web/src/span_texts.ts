// What rows show of spans besides their names: asked for when scrolling has come to rest.
import { useEffect, useRef, useState } from "preact/hooks";
import { part } from "./api.ts";
import type { Outline } from "./outline.ts";
import { useAsked, useSettled } from "./parts.tsx";

const MOST = 200;
const REST_MS = 80;

export interface SpanText {
  kind: string;
  label: string;
  text: string;
}

/**
 * Texts of the rows in sight, by span id; what was asked for once is kept.
 * @param samples rows behind one that stands for a fold
 * @returns a map of its own for each state of what is known
 */
export function useSpanTexts(outline: Outline, rows: Int32Array, first: number, end: number, samples: (fold: number) => number[]): Map<string, SpanText | null> {
  const [known, setKnown] = useState<Map<string, SpanText | null>>(new Map());
  const asked = useRef<string[]>([]);
  const wanted: string[] = [];
  for (let place = first; place < end && wanted.length < MOST; place++) {
    for (const row of rows[place] >= 0 ? [rows[place]] : samples(-1 - rows[place]))
      if (outline.duration[row] >= 0 && !known.has(outline.ids[row]) && wanted.length < MOST) wanted.push(outline.ids[row]);
  }
  const ids = wanted.join();
  const settled = useSettled(ids, REST_MS);
  const { value } = useAsked(ids && ids === settled ? `runs/${part(outline.run.name)}/texts` : "", { spans: ids });
  if (ids && ids === settled) asked.current = wanted;
  useEffect(() => {
    if (!value) return;
    const found = new Map<string, SpanText | null>(asked.current.map((id) => [id, null]));
    value.span_id.forEach((id: string, at: number) => found.set(id, { kind: value.kind[at], label: value.label[at], text: value.text[at] }));
    setKnown(new Map([...known, ...found]));
  }, [value]);
  return known;
}
