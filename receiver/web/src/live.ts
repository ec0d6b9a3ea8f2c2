// What comes in, as it comes in.
import { stream } from "./api.ts";
import { useEffect, useState } from "preact/hooks";

const RETRY_MS = 2000;

/**
 * A number that grows whenever something has come in, and now and then without that: a reason to ask again.
 * A page that nobody sees does not listen, as a browser has few connections.
 *
 * @param run only what concerns it; empty: every run
 */
export function useLive(on: boolean, run: string = "") {
  const [heard, setHeard] = useState(0);
  const [seen, setSeen] = useState(!document.hidden);
  useEffect(() => {
    const changed = () => setSeen(!document.hidden);
    document.addEventListener("visibilitychange", changed);
    return () => document.removeEventListener("visibilitychange", changed);
  }, []);
  useEffect(() => {
    if (!on || !seen) return;
    const stop = new AbortController();
    listen(run, () => setHeard((before) => before + 1), stop.signal);
    return () => stop.abort();
  }, [on, seen, run]);
  return heard;
}

async function listen(run: string, heard: () => void, signal: AbortSignal) {
  while (!signal.aborted) {
    try {
      const reader = await stream("live", run ? { run } : {}, signal);
      heard(); // what came before the stream began
      while (!(await reader.read()).done) heard();
    } catch {
      // refused, as too many listen, or cut: asked again below
    }
    await new Promise((done) => setTimeout(done, RETRY_MS));
    if (!signal.aborted) heard();
  }
}
