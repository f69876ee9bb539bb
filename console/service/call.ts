/** Calls of `/ops`, as every other caller makes them. */
import { ENDED, NO_CONNECTION, refresh, session, tokenInUse } from './session.js';

/** A call that did not succeed. `message` is shown as it is: it says what is wrong, and what to do. */
export class Failed extends Error {
  /** 0: there was no answer, or the session has ended; the call is repeated as it was. */
  readonly status: number;

  constructor(message: string, status = 0) {
    super(message);
    this.status = status;
  }
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

interface Options {
  readonly query?: Query | undefined;
  readonly signal?: AbortSignal;
}

interface ErrorBody {
  readonly error?: string;
  readonly errors?: Readonly<Record<string, readonly string[]>>;
}

/** @param path below the service's root, such as `ops/diagnosis` @throws Failed */
export async function get<T>(path: string, options?: Options): Promise<T> {
  return jsonOf<T>(await read(path, options));
}

/** @param key the idempotency key: the same call with the same key has one effect @throws Failed */
export async function post<T>(path: string, body: object, key?: string): Promise<T> {
  const headers = { 'Content-Type': 'application/json', ...(key === undefined ? {} : { 'Idempotency-Key': key }) };
  return jsonOf<T>(await answered(path, { method: 'POST', headers, body: JSON.stringify(body) }));
}

/** @throws Failed where the answer was broken off, or something else answered in the service’s place */
async function jsonOf<T>(response: Response): Promise<T> {
  return response.json().then(
    (answer) => answer as T,
    (error: unknown) => Promise.reject(isAbort(error) ? error : new Failed(NO_CONNECTION)),
  );
}

function textOf(query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  return given.length === 0 ? '' : `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}

/** A whole answer as bytes, which the browser may keep on disk. @throws Failed */
export async function download(path: string, options?: Options): Promise<Blob> {
  const response = await read(path, options);
  return response.blob().catch((error: unknown) => broken(error));
}

/** The lines of an answer in newline-delimited JSON, as they arrive. @throws Failed */
export async function* lines<T>(path: string, options?: Options): AsyncGenerator<T> {
  const { body } = await read(path, options);
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const piece = await reader?.read().catch((error: unknown) => broken(error));
      if (piece === undefined || piece.done) break;
      const whole = (rest + piece.value).split('\n');
      rest = whole.pop() ?? '';
      for (const line of whole) yield JSON.parse(line) as T;
    }
  } finally {
    await reader?.cancel().catch(() => undefined);
  }
}

/** @throws Failed; the error itself where the page has left */
function broken(error: unknown): never {
  if (isAbort(error)) throw error;
  throw new Failed('The answer was broken off. Try again, or take a shorter span of time.');
}

const isAbort = (error: unknown): error is DOMException => error instanceof DOMException && error.name === 'AbortError';

const read = async (path: string, { query, signal }: Options = {}): Promise<Response> =>
  answered(path + textOf(query), { method: 'GET', ...(signal === undefined ? {} : { signal }) });

/** @throws Failed unless the service did what was requested */
async function answered(path: string, init: Init): Promise<Response> {
  const response = await authorized(path, init);
  if (response.ok) return response;
  throw new Failed(await describe(response), response.status);
}

type Init = Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> };

async function authorized(path: string, init: Init, again = true): Promise<Response> {
  if (session.value.state === 'out') throw new Failed(ENDED);
  const headers = { ...init.headers, Authorization: `Bearer ${tokenInUse() ?? ''}` };
  const response = await fetch(path, { ...init, headers }).catch((error: unknown) => {
    if (isAbort(error)) throw error;
    throw new Failed(NO_CONNECTION);
  });
  if (response.status !== 401) return response;
  const renewed = again && (await refresh().catch(({ message }: Error) => Promise.reject(new Failed(message))));
  if (!renewed) throw new Failed(ENDED);
  return authorized(path, init, false);
}

async function describe(response: Response): Promise<string> {
  const { error, errors = {} } = (await response.json().catch(() => ({}))) as ErrorBody;
  const said = [error, ...Object.values(errors).flat()].filter((one) => one !== undefined).join(' ');
  const request = response.headers.get('x-request-id') ?? '';
  if (response.status === 403 && said === 'Forbidden.') return 'Your role does not permit this.';
  if (response.status === 429) return `${said} Wait ${response.headers.get('retry-after') ?? 'some'} seconds.`;
  if (response.status < 500) return said;
  const wait = response.status === 503 ? 'A part of it is away for now: try again in a moment.' : 'Try again.';
  return `The service could not answer (${said || response.status}). ${wait} Request ${request}.`;
}
