// What views ask first: the path of the query API, and what is wanted of it.
import { part } from "./api.js";

/** Rows that a run shows before all of them have come. */
export const FIRST_ROWS = 300;

/** The path of a run. @param {string} name */
export const pathOf = (name) => `runs/${part(name)}`;

/** By the view that asks it. @type {Record<string, (place: Record<string, string>) => [string, Record<string, string | number>]>} */
export const FIRST = {
  runs: ({ q = "", sort = "started", after = "" }) => ["runs", { q, sort, after }],
  run: ({ run = "last" }) => [`${pathOf(run)}/outline`, { limit: FIRST_ROWS }],
};
