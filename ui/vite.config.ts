import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { compressed } from "./scripts/compressed.ts";
import { tokens } from "./scripts/tokens.ts";

// The server answers with the page and its files; there is no other host, and no inline script.
export default defineConfig({
  plugins: [react(), tokens(), compressed()],
  html: { cspNonce: "ROTA_NONCE" },
  server: { proxy: { "/api": "http://127.0.0.1:8080" } },
  build: {
    outDir: "../src/rota/api/pages/dashboard",
    emptyOutDir: true,
    manifest: "manifest.json",
    // The texts that the licences of the bundled libraries ask for.
    license: { fileName: "LICENSES.md" },
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
  },
});
