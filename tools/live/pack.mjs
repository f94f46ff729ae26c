// node pack.mjs PYODIDE LAB.ZIP PYTHON.ZIP: boots Pyodide under Node and lets pack.py write what the page's Python imports.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [pyodide, lab, packed] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(join(pyodide, "pyodide.mjs")));
// Without columns in line tables, a quarter of the bytes: nobody reads a traceback there.
const python = await loadPyodide({ indexURL: pyodide, env: { PYTHONNODEBUGRANGES: "1" } });
python.unpackArchive(new Uint8Array(readFileSync(lab)), "zip");
python.runPython(readFileSync(new URL("pack.py", import.meta.url), "utf8"));
writeFileSync(packed, python.FS.readFile("python.zip"));
