// Python in a worker: boots Pyodide from `base` and hands settings to lab.live.registry.answer, text in, text out.
let answer = null;

const fail = (error) => postMessage({ failed: String(error?.message ?? error) });

// loadPyodide never settles if one of its files can't be had; so whoever fetches reports.
const fetchAnything = self.fetch;
self.fetch = async (...what) => {
  try {
    const response = await fetchAnything(...what);
    if (!response.ok) throw new Error(`${response.status} ${new URL(response.url).pathname}`);
    return response;
  } catch (error) {
    fail(error);
    throw error;
  }
};

// It takes only what is served as application/wasm, which not every server knows.
const instantiateStreaming = WebAssembly.instantiateStreaming;
WebAssembly.instantiateStreaming = async (source, imports) => {
  try {
    const response = await source;
    if (response.headers.get("content-type") === "application/wasm") return await instantiateStreaming(response, imports);
    return await WebAssembly.instantiate(await response.arrayBuffer(), imports);
  } catch (error) {
    fail(error);
    throw error;
  }
};

async function boot(base) {
  const { loadPyodide } = await import(new URL("pyodide.mjs", base));
  const [python, lab] = await Promise.all([
    loadPyodide({ indexURL: base, stdLibURL: new URL("stdlib.zip", base).href }),
    fetch(new URL("lab.zip", base)).then((response) => response.arrayBuffer()),
  ]);
  python.unpackArchive(lab, "zip");
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
