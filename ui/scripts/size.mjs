// Fails if the page loads more than it may: see FIRST and ROUTE. Reads the manifest of the last build.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const FIRST = 200_000;
const ROUTE = 80_000;
const folder = new URL("../../src/rota/api/pages/dashboard/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL("manifest.json", folder), "utf-8"));

function filesOf(key, seen = new Set()) {
  if (seen.has(key)) return new Set();
  seen.add(key);
  const chunk = manifest[key];
  const files = new Set([chunk.file, ...(chunk.css ?? [])]);
  for (const next of chunk.imports ?? []) for (const file of filesOf(next, seen)) files.add(file);
  return files;
}

// A chart or a graph is loaded with a further import(), by the page or by one of its parts; it counts for each page.
function filesOfRoute(key, seen = new Set()) {
  if (seen.has(key)) return new Set();
  seen.add(key);
  const files = filesOf(key);
  const { imports = [], dynamicImports = [] } = manifest[key];
  const further = [...imports.filter((next) => !manifest[next].isEntry), ...dynamicImports];
  for (const next of further) for (const file of filesOfRoute(next, seen)) files.add(file);
  return files;
}

const sizeOf = (file) => gzipSync(readFileSync(new URL(file, folder)), { level: 9 }).length;
const sum = (files) => [...files].reduce((total, file) => total + sizeOf(file), 0);

const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);
const first = filesOf(entry);
const rows = [["first load", sum(first), FIRST]];
for (const key of manifest[entry].dynamicImports ?? []) {
  const further = [...filesOfRoute(key)].filter((file) => !first.has(file));
  rows.push([key, sum(further), ROUTE]);
}
let isTooLarge = false;
for (const [name, size, most] of rows) {
  isTooLarge ||= size > most;
  console.log(`${size > most ? "TOO LARGE " : ""}${name}: ${(size / 1000).toFixed(1)} kB of ${most / 1000} kB (gzip)`);
}
process.exit(isTooLarge ? 1 : 0);
