// The page's requests to the server.

export class Refused extends Error {
  constructor(status, { error, hint }) {
    super(error);
    this.status = status;
    this.hint = hint;
  }
}

const address = (path, parameters = {}) => {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined);
  const query = new URLSearchParams();
  for (const [name, value] of given) for (const one of [value].flat()) query.append(name, one);
  return `/api/${path}${given.length ? `?${query}` : ""}`;
};

async function answer(response) {
  if (response.ok) return response.json();
  let told;
  try {
    told = await response.json();
  } catch {
    told = { error: `the console answered ${response.status}`, hint: "" };
  }
  throw new Refused(response.status, told);
}

export const logPath = (name, rest = "") => `logs/${encodeURIComponent(name)}${rest && `/${rest}`}`;

export const get = async (path, parameters, signal) => answer(await fetch(address(path, parameters), { signal }));

export const post = async (path, body) => answer(await fetch(address(path), {
  method: "POST",
  headers: { "content-type": "application/json", "x-zlog-console": "1" },
  body: JSON.stringify(body),
}));

// Receives events until the last one, or until the returned function is called. The browser
// reconnects by itself if the connection breaks, and `lost` is called.
export function listen(path, parameters, { heard, ended = () => {}, lost = () => {}, endless = false }) {
  const source = new EventSource(address(path, parameters));
  source.onmessage = ({ data }) => {
    const event = JSON.parse(data);
    if (event.end || (event.error && !("changed" in event))) {
      source.close();
      ended(event);
    } else {
      heard(event);
    }
  };
  source.onerror = () => {
    if (!endless) source.close(); // it would restart and send everything again
    lost(source.readyState === EventSource.CLOSED);
  };
  return () => source.close();
}
