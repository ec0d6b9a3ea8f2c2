// Elements from templates. Every value becomes a text node or a property, never HTML.
import { h } from "preact";
import htm from "htm";

export { render } from "preact";
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "hooks";
export const html = htm.bind(h);
