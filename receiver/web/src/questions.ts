// What views ask first: the path of the query API, and what is wanted of it.
import { part } from "./api.ts";

/** Rows that a run shows before all of them have come. */
export const FIRST_ROWS = 300;

/** The path of a run. */
export const pathOf = (name: string) => `runs/${part(name)}`;

/** By the view that asks it. */
export const FIRST: Record<string, (place: Record<string, string>) => [string, Record<string, string | number>]> = {
  runs: ({ q = "", sort = "started", order = "", after = "" }) => ["runs", { q, sort, after, ...(order ? { order } : {}) }],
  run: ({ run = "last" }) => [`${pathOf(run)}/outline`, { limit: FIRST_ROWS }],
};
