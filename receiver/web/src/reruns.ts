// Replays and forks that the receiver executes: ordered, followed, and what they say of each step.
import { ask } from "./api.ts";
import { useEffect, useState } from "preact/hooks";

const WAIT_S = 1;

/** How true a step of a replay was, in words and for the eye. */
export const FIDELITY: Record<string, [string, string]> = {
  exact: ["=", "good"],
  volatile: ["≈", "good"],
  semantic: ["~", "good"],
  live: ["→", "odd"],
  moved: ["↷", "odd"],
  unused: ["∅", "odd"],
  changed: ["≠", "bad"],
  blocked: ["⊘", "bad"],
};

/**
 * A replay or fork, asked for again until it has ended.
 * @param id empty: none
 */
export function useRerun(id: string): {value: any, problem: string} {
  const [found, setFound] = useState({ id: "", value: null, problem: "" });
  useEffect(() => {
    if (!id) return;
    const stop = new AbortController();
    const follow = async () => {
      let wanted: Record<string, number> = {};
      for (;;) {
        const value = await ask(`reruns/${id}`, wanted, stop.signal);
        setFound({ id, value, problem: "" });
        if (value.state !== "running") return;
        wanted = { after: value.revision, wait_s: WAIT_S };
      }
    };
    follow().catch((problem) => stop.signal.aborted || setFound({ id, value: null, problem: problem.message }));
    return () => stop.abort();
  }, [id]);
  return found.id === id ? found : { value: null, problem: "" };
}
