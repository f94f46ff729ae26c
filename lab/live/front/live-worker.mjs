// Python in a worker: boots Pyodide from `base` and hands settings to lab.live.registry.answer, text in, text out.
let answer = null;

const fail = (error) => postMessage({ failed: String(error?.message ?? error) });

// loadPyodide never settles if one of its files can't be had; so whoever fetches reports. The large ones were packed by
// tools/vendor_pyodide.py, and the type is what WebAssembly asks for.
const TYPES = { wasm: "application/wasm", zip: "application/zip" };
const fetchAnything = self.fetch;
self.fetch = async (what) => {
  try {
    const url = new URL(what, location);
    const type = TYPES[url.pathname.split(".").at(-1)];
    const response = await fetchAnything(type ? `${url}.gzip` : url);
    if (!response.ok) throw new Error(`${response.status} ${url.pathname}`);
    if (!type) return response;
    return new Response(response.body.pipeThrough(new DecompressionStream("gzip")), { headers: { "content-type": type } });
  } catch (error) {
    fail(error);
    throw error;
  }
};

// Nor if its code is refused, or does not arrive whole: it only warns.
const instantiateStreaming = WebAssembly.instantiateStreaming;
WebAssembly.instantiateStreaming = async (...what) => {
  try {
    return await instantiateStreaming(...what);
  } catch (error) {
    fail(error);
    throw error;
  }
};

async function boot(base) {
  const { loadPyodide } = await import(new URL("pyodide.mjs", base));
  const python = await loadPyodide({ indexURL: base, stdLibURL: new URL("python.zip", base).href });
  answer = python.pyimport("lab.live.registry").answer;
}

self.addEventListener("message", async ({ data }) => {
  try {
    if (data.base) {
      await boot(data.base);
      postMessage({ ready: true });
    } else {
      postMessage({ answer: answer(data.figure, data.settings, data.lang, data.width) });
    }
  } catch (error) {
    fail(error);
  }
});
