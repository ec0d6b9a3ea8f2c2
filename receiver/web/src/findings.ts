// What a run means, by step: marks of rows. Nothing here needs a browser.

export type MarkKind = "failure" | "recovered" | "loop" | "signal" | "decision" | "state";

export interface Mark {
  kind: MarkKind;
  text: string;
}

/** The most important first. */
const ORDER: MarkKind[] = ["failure", "recovered", "loop", "signal", "decision", "state"];
/** Derived signals that a failure, or the row itself, says already. */
const SAID_ALREADY = new Set(["tool_success", "tool_failure", "retry_occurred", "empty_retrieval"]);

/** An identifier as words. */
export const inWords = (code: unknown) => String(code ?? "").replaceAll("_", " ");

/** The step of a place: `3` and `3.1` are of step 3. */
export const stepOf = (place: unknown) => Number.parseInt(String(place), 10) || 0;

/** Signals that are worth a look: those of programs, and the derived ones that nothing else says. */
export function signalsOf(found: any): any[] {
  const reported = found.reports.filter((one: any) => one.kind === "signal").map((one: any) => ({ ...one.fields, step: one.step, place: one.step, name: "", evidence: "", derived: false }));
  return [...reported, ...found.signals.filter((one: any) => !SAID_ALREADY.has(one.type) && !(one.type === "schema_valid" && one.value))];
}

/** Messages to other agents. */
export const messagesOf = (found: any): any[] => found.reports.filter((one: any) => one.kind === "message");

/** Repeats that count as loops: their rounds had the same results. */
export const loopsOf = (found: any): any[] => found.loops.filter((one: any) => one.same_result);

/**
 * Marks by the number of their step.
 * @param found an answer of `/v1/runs/{run}/findings`
 */
export function marksOf(found: any): Map<number, Mark[]> {
  const marks = new Map<number, Mark[]>();
  const add = (step: number, kind: MarkKind, text: string) => {
    if (step > 0) marks.set(step, [...(marks.get(step) ?? []), { kind, text }]);
  };
  for (const one of found.failures) add(one.step, one.recovered ? "recovered" : "failure", inWords(one.code));
  for (const one of loopsOf(found)) add(stepOf(one.first), "loop", `loop ×${one.times}`);
  for (const one of signalsOf(found)) add(one.step, "signal", inWords(one.type));
  for (const one of found.decisions) if (!one.derived) add(one.step, "decision", one.chosen);
  for (const one of found.transitions) if (one.source !== "steps" && one.state) add(one.step, "state", one.state);
  for (const some of marks.values()) some.sort((one, other) => ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind));
  return marks;
}

/** How many findings there are that a person looks at. */
export function countOf(found: any): number {
  return found.failures.length + loopsOf(found).length + signalsOf(found).length + found.decisions.length + messagesOf(found).length;
}

export interface TimeInState {
  state: string;
  ns: number;
  times: number;
}

/** How long a run was in each state, the longest first. @param nowNs for the state that it is in */
export function timeInStates(transitions: any[], nowNs: number): TimeInState[] {
  const found = new Map<string, TimeInState>();
  for (const one of transitions) {
    if (!one.state) continue;
    const before = found.get(one.state) ?? { state: one.state, ns: 0, times: 0 };
    found.set(one.state, { ...before, ns: before.ns + (one.lasted_ns ?? Math.max(0, nowNs - one.time_ns)), times: before.times + 1 });
  }
  return [...found.values()].sort((one, other) => other.ns - one.ns);
}

/** Why a run failed: the derived codes without their types, else the names of its errors. */
export const whyOf = (run: any) => (run.failure_codes.length ? [...new Set(run.failure_codes.map((one: string) => inWords(one.split("/").at(-1) ?? "")))] : run.error_types).join(", ");
