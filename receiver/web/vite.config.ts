// Builds the page: sources in src, the result in playhead_receiver/web/pages.
import { defineConfig } from "vite";

export default defineConfig({
  base: "/web/",
  build: {
    outDir: "../playhead_receiver/web/pages",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy loads no data: addresses
    manifest: "manifest.json",
    modulePreload: { polyfill: false },
    target: "es2022",
    rollupOptions: {
      input: { index: "index.html", ahead: "src/ahead.ts" },
      onLog: (level, log, handle) => { if (log.code !== "MODULE_LEVEL_DIRECTIVE") handle(level, log); },
    },
  },
});
