// Builds the console's bundle into dist/: one stylesheet, one script, one
// icon, each with gzip and brotli copies, so that the server never compresses
// a static file while somebody waits for it.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "dist");
const files = ["app.css", "app.js", "icon.svg"];

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
writeFileSync(join(dist, ".gitkeep"), ""); // keeps embed.go compiling in a fresh clone

execFileSync(
  join(here, "node_modules", ".bin", "tailwindcss"),
  ["--input", "src/app.css", "--output", "dist/app.css", "--minify"],
  { cwd: here, stdio: ["ignore", "ignore", "inherit"] },
);

await build({
  absWorkingDir: here,
  entryPoints: ["src/app.js"],
  outfile: "dist/app.js",
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  legalComments: "none",
  logLevel: "warning",
});

copyFileSync(join(here, "src", "icon.svg"), join(dist, "icon.svg"));

for (const name of files) {
  const body = readFileSync(join(dist, name));
  const gz = gzipSync(body, { level: 9 });
  const br = brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  writeFileSync(join(dist, `${name}.gz`), gz);
  writeFileSync(join(dist, `${name}.br`), br);
  console.log(`${name}: ${body.length} bytes, ${gz.length} gzip, ${br.length} brotli`);
}
