// What the recording of a run left out, and which level keeps it.
import { useAsked } from "../parts.tsx";
import { pathOf } from "../questions.ts";
import { brief } from "../words.ts";

export function Kept({ name }: {name: string}) {
  const { value } = useAsked(`${pathOf(name)}/kept`);
  if (!value) return null;
  const levels = new Map();
  for (const [boundary, level] of Object.entries(value.not_kept)) levels.set(level, [...(levels.get(level) ?? []), boundary]);
  if (value.level === null) return <span class="quiet">spans only: no tape, so no replay</span>;
  return levels.size === 0
    ? <span class="quiet">level {value.level}</span>
    : <details class="menu"><summary class="quiet">level {value.level}, {Object.keys(value.not_kept).length} not recorded</summary><div class="list">{[...levels].map(([level, boundaries]) => <p key={level}>{brief(boundaries.join(", "), 400)}: recorded at level {level}</p>)}</div></details>;
}
