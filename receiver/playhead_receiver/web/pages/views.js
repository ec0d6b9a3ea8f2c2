// Which views there are.

/** How the modules of each come, when it is first looked at. @type {Record<string, () => Promise<() => any>>} */
export const VIEWS = {
  runs: () => import("./views/runs.js").then((module) => module.Runs),
  run: () => import("./views/run.js").then((module) => module.Run),
  transcript: () => import("./views/transcript.js").then((module) => module.Transcript),
  playhead: () => import("./views/playhead.js").then((module) => module.Playhead),
  compare: () => import("./views/compare.js").then((module) => module.Compare),
  find: () => import("./views/find.js").then((module) => module.Find),
  operations: () => import("./views/operations.js").then((module) => module.Operations),
};

/** The view that a place is in. @param {Record<string, string>} place */
export function viewOf(place) {
  return Object.hasOwn(VIEWS, place.view) ? place.view : place.run ? "run" : "runs";
}
