// Which views there are.

/** How the modules of each come, when it is first looked at. */
export const VIEWS: Record<string, () => Promise<() => any>> = {
  runs: () => import("./views/runs.tsx").then((module) => module.Runs),
  run: () => import("./views/run.tsx").then((module) => module.Run),
  transcript: () => import("./views/transcript.tsx").then((module) => module.Transcript),
  playhead: () => import("./views/playhead.tsx").then((module) => module.Playhead),
  compare: () => import("./views/compare.tsx").then((module) => module.Compare),
  sessions: () => import("./views/sessions.tsx").then((module) => module.Sessions),
  live: () => import("./views/live.tsx").then((module) => module.Live),
  flow: () => import("./views/flow.tsx").then((module) => module.Flow),
  find: () => import("./views/find.tsx").then((module) => module.Find),
  operations: () => import("./views/operations.tsx").then((module) => module.Operations),
};

/** The view that a place is in. */
export function viewOf(place: Record<string, string>) {
  return Object.hasOwn(VIEWS, place.view) ? place.view : place.run ? "run" : "runs";
}
