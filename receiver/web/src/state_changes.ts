// What differs between the states of a run at two steps. Nothing here needs a browser.

export interface StateChange {
  kind: "variable" | "file" | "table" | "checkpoint" | "output";
  name: string;
  how: "added" | "changed" | "removed";
  left: string;
  right: string;
}

/** Everything of a moment that has a name and a text, by kind. */
function named(moment: any): [StateChange["kind"], Map<string, string>][] {
  const tables = moment.databases.flatMap((one: any) => one.tables.map((table: any) => [`${one.path}: ${table.name}`, table.rows.map((row: any) => JSON.stringify(row)).join("\n")]));
  return [
    ["variable", new Map(moment.states.map((one: any) => [one.name, JSON.stringify(one.value, null, 2) ?? ""]))],
    ["file", new Map(moment.files.map((one: any) => [one.path, one.content?.text ?? one.content?.base64 ?? one.inexact ?? `${one.size_bytes} bytes`]))],
    ["table", new Map(tables)],
    ["checkpoint", new Map(moment.checkpoints.map((one: any) => [[one.name, one.label].filter(Boolean).join(" "), ""]))],
    ["output", new Map(["stdout", "stderr"].filter((name) => moment[name]).map((name) => [name, moment[name]]))],
  ];
}

/**
 * What a step changed.
 * @param before an answer of `/v1/runs/{run}/moment` @param now one of a later step
 */
export function changesOf(before: any, now: any): StateChange[] {
  const old = new Map(named(before));
  return named(now).flatMap(([kind, texts]) => {
    const earlier = old.get(kind) ?? new Map<string, string>();
    const all = [...new Set([...texts.keys(), ...earlier.keys()])];
    return all.flatMap((name): StateChange[] => {
      const [left, right] = [earlier.get(name), texts.get(name)];
      if (left === right) return [];
      return [{ kind, name, how: left === undefined ? "added" : right === undefined ? "removed" : "changed", left: left ?? "", right: right ?? "" }];
    });
  });
}
