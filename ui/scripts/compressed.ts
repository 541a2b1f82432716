import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Plugin } from "vite";

const LEAST = 1024;
// The highest, 11, takes ten times as long for a few per cent.
const QUALITY = 9;

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
        const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: QUALITY } };
        writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content, quality));
      }
    },
  };
}
