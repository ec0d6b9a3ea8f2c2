// The rows of the list of runs: as many as one scrolls to, of which those in sight are there; widths of columns.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask } from "../api.ts";

const AT_ONCE = 500;
/** Up to this many rows, all are there, so that the browser's own search finds them. */
const FEW = 300;
const SPARE = 20;
/** Height of a row in px, as in the style sheet. */
const HEIGHT = 31;
const NEAR_PX = 900;
const KEPT_WIDTHS = "playhead-widths";
const LEAST_PX = 48;

/**
 * The runs of the first page, and those behind it once they were asked for.
 * @param first an answer of `/v1/runs`, which is asked for again and again @param changed grows when runs were marked or deleted
 * @returns runs, and what asks for more; null where the list ends
 */
export function useLongList(first: any, wanted: Record<string, any>, changed: number): { runs: any[]; more: (() => void) | null } {
  const key = JSON.stringify(wanted);
  const [found, setFound] = useState<{ key: string; runs: any[]; next: string | null }>({ key: "", runs: [], next: null });
  const busy = useRef(false);
  const behind = found.key === key ? found : { runs: [], next: first?.next ?? null };
  const runs = useMemo(() => {
    const ahead = new Set((first?.runs ?? []).map((run: any) => run.trace_id));
    return [...(first?.runs ?? []), ...behind.runs.filter((run: any) => !ahead.has(run.trace_id))];
  }, [first, behind.runs]);
  const follow = async (some: any[], after: string | null, most: number) => {
    if (busy.current) return;
    busy.current = true;
    try {
      while (after !== null && some.length < most) {
        const page: any = await ask("runs", { ...wanted, after, limit: AT_ONCE });
        some = [...some, ...page.runs];
        after = page.next;
      }
      setFound({ key, runs: some, next: after });
    } catch {
      // the end of the list stays in sight, and is asked for when it is scrolled to again
    } finally {
      busy.current = false;
    }
  };
  useEffect(() => { if (changed && found.key === key) follow([], wanted.after ?? "", behind.runs.length); }, [changed]);
  return { runs, more: first && behind.next !== null ? () => follow(runs, behind.next, runs.length + 1) : null };
}

/**
 * The body of the table.
 * @param at the row under the cursor, which is scrolled to @param draw a row
 */
export function Body({ runs, at, draw, more }: { runs: any[]; at: number; draw: (run: any, row: number) => any; more: (() => void) | null }) {
  const box = useRef<any>(null);
  const [sight, setSight] = useState([0, FEW]);
  const asks = useRef(more);
  asks.current = more;
  const was = useRef(at);
  useLayoutEffect(() => {
    const main = box.current.closest("main");
    const look = () => {
      const body = box.current.getBoundingClientRect();
      const within = main.getBoundingClientRect();
      if (body.bottom < within.bottom + NEAR_PX) asks.current?.();
      const from = Math.max(0, Math.floor((within.top - body.top) / HEIGHT) - SPARE);
      const to = from + Math.ceil(within.height / HEIGHT) + 2 * SPARE;
      setSight((before) => (before[0] === from && before[1] === to ? before : [from, to]));
    };
    const seen = new ResizeObserver(look);
    seen.observe(main);
    main.addEventListener("scroll", look, { passive: true });
    return () => { seen.disconnect(); main.removeEventListener("scroll", look); };
  }, []);
  useLayoutEffect(() => {
    if (was.current === at) return;
    was.current = at;
    const main = box.current.closest("main");
    const top = box.current.getBoundingClientRect().top - main.getBoundingClientRect().top + at * HEIGHT;
    if (top < HEIGHT || top + 2 * HEIGHT > main.clientHeight) main.scrollTop += top - main.clientHeight / 2;
  }, [at]);
  const [from, to] = runs.length <= FEW ? [0, runs.length] : [Math.min(sight[0], runs.length), Math.min(sight[1], runs.length)];
  const space = (rows: number) => rows > 0 && <tr class="space" aria-hidden="true"><td style={{ height: `${rows * HEIGHT}px` }}></td></tr>;
  return <tbody ref={box}>{space(from)}{runs.slice(from, to).map((run, place) => draw(run, from + place))}{space(runs.length - to)}</tbody>;
}

/** Widths of columns in px by name, as a person set them, and what sets one. */
export function useWidths(): [Record<string, number>, (name: string, px: number) => void] {
  const [widths, setWidths] = useState<Record<string, number>>(() => {
    try {
      return JSON.parse(localStorage.getItem(KEPT_WIDTHS) ?? "{}");
    } catch {
      return {};
    }
  });
  const set = (name: string, px: number) => setWidths((before) => {
    const after = { ...before, [name]: Math.max(LEAST_PX, Math.round(px)) };
    if (!px) delete after[name];
    localStorage.setItem(KEPT_WIDTHS, JSON.stringify(after));
    return after;
  });
  return [widths, set];
}

/**
 * The right end of a head: it is pulled, moved by the arrow keys, or double-clicked for the width of before.
 * @param px the width; undefined: what is left
 */
export function Grip({ head, name, px, set }: { head: string; name: string; px?: number; set: (name: string, px: number) => void }) {
  const held = useRef(0);
  const wide = (event: any) => event.currentTarget.closest("th").offsetWidth;
  return <span class="grip" role="separator" aria-orientation="vertical" aria-valuenow={px ?? 0} aria-label={`width of ${head}`} tabIndex={0} title="pull to change the width, double-click to reset it"
    onPointerDown={(event: any) => { event.preventDefault(); held.current = event.clientX - wide(event); event.currentTarget.setPointerCapture(event.pointerId); }}
    onPointerMove={(event: any) => { if (event.currentTarget.hasPointerCapture(event.pointerId)) set(name, event.clientX - held.current); }}
    onDblClick={() => set(name, 0)}
    onKeyDown={(event: any) => { if (/^Arrow(Left|Right)$/.test(event.key)) { event.preventDefault(); set(name, wide(event) + (event.key === "ArrowRight" ? 16 : -16)); } }}></span>;
}
