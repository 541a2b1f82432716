import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Plugin } from "vite";

const LEAST = 1024;

// Writes FILE.gz and FILE.br beside each asset, so that the server compresses nothing while it answers.
export function compressed(): Plugin {
  return {
    name: "rota-compressed",
    apply: "build",
    writeBundle(options) {
      const folder = join(options.dir ?? "", "assets");
      for (const name of readdirSync(folder)) {
        const content = readFileSync(join(folder, name));
        if (content.length < LEAST) continue;
        writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
        const best = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };
        writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content, best));
      }
    },
  };
}
