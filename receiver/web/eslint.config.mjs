// What eslint asks of the modules of the page; types are tsc's.
import js from "@eslint/js";
import globals from "globals";
import ts from "typescript-eslint";

export default [
  js.configs.recommended,
  ...ts.configs.recommended,
  {
    languageOptions: { ecmaVersion: "latest", sourceType: "module", globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "@typescript-eslint/no-explicit-any": "off", // answers of the API are untyped
      "@typescript-eslint/no-unused-expressions": ["error", { allowShortCircuit: true, allowTernary: true }],
      eqeqeq: "error",
      "no-control-regex": "off", // characters that control are what is looked for
      "no-implied-eval": "error",
      "no-restricted-properties": ["error", ...["innerHTML", "outerHTML"].map((property) => ({ property, message: "text becomes text nodes" }))],
      "no-var": "error",
      "prefer-const": "error",
    },
  },
];
