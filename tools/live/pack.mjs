// node pack.mjs PYODIDE LAB.ZIP OUT: boots Pyodide under Node and lets pack.py write stdlib.zip and lab.zip into OUT.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [pyodide, lab, out] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(join(pyodide, "pyodide.mjs")));
const python = await loadPyodide({ indexURL: pyodide });
python.unpackArchive(new Uint8Array(readFileSync(lab)), "zip");
python.runPython(readFileSync(new URL("pack.py", import.meta.url), "utf8"));
for (const name of ["stdlib.zip", "lab.zip"]) {
  writeFileSync(join(out, name), python.FS.readFile(name));
}
