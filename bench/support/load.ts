/**
 * A closed set of clients: each sends its next request when the last is answered, or all of them together at a steady
 * rate. They run in a process of their own, so that clients and server don't share a core, and speak no more HTTP than
 * it takes: a client that works harder than the server would measure itself.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type Latencies, latenciesOf } from './report.js';
import type { Server } from './server.js';

/** One request of a file of requests. */
export interface LoadRequest {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What is to be sent. */
export interface LoadPlan {
  /** Of the server: `http://127.0.0.1:3000`. */
  readonly url: string;
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly connections: number;
  /** A file of `LoadRequest`s, one JSON object a line. */
  readonly requests: string;
  /** `random`: any of them, for `seconds`. `once`: each of them one time, from `skip` on, `amount` in all. */
  readonly pick:
    | { readonly kind: 'random'; readonly seconds: number }
    | { readonly kind: 'once'; readonly skip: number; readonly amount: number };
  /**
   * Together so many a second, and no more. One that all clients were too busy to send in time counts from when it was
   * due.
   */
  readonly perSecond?: number;
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The status that every answer must have. */
  readonly expect: number;
  /** A file for one `SentRequest` an answer, one JSON object a line. */
  readonly sent?: string;
}

/** When a request was sent and what its answer named. */
export interface SentRequest {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly location: string;
}

/** What came of it. */
export interface LoadResult extends Latencies {
  readonly requests: number;
  readonly perSecond: number;
  /** Share of one processor that the clients used: near 1 they, not the server, were the limit. */
  readonly clients: number;
}

export interface MeasuredLoad extends LoadResult {
  /** Processor time of the server a request, in microseconds, all processes and threads. */
  readonly cpu: number;
}

/** So many different requests does a client repeat, where they are picked at random. */
const REQUESTS_A_CLIENT = 2_000;

/** Sends what is planned. @throws Error when an answer has another status, or none comes */
export async function load(plan: LoadPlan): Promise<LoadResult> {
  const child = fork(fileURLToPath(import.meta.url), { serialization: 'json' });
  child.send(plan);
  const [[message]] = (await Promise.all([once(child, 'message'), once(child, 'exit')])) as unknown as [
    [{ result?: LoadResult; fault?: string }],
  ];
  if (message.result === undefined) throw new Error(message.fault ?? 'the load ended without a result');
  return message.result;
}

/** Sends what is planned, and measures what it costs the server. @throws as `load` */
export async function measuredLoad(server: Server, plan: Omit<LoadPlan, 'url'>): Promise<MeasuredLoad> {
  const before = server.cpuSeconds();
  const result = await load({ ...plan, url: server.url });
  return { ...result, cpu: ((server.cpuSeconds() - before) / result.requests) * 1e6 };
}

async function run(plan: LoadPlan): Promise<LoadResult> {
  const lines = readFileSync(plan.requests, 'utf8').trimEnd().split('\n');
  const { pick, connections } = plan;
  const { hostname, port } = new URL(plan.url);
  const encoded = (line: string): Buffer => {
    const request = JSON.parse(line) as LoadRequest;
    return encodedRequest(plan.url, plan.method, { ...request, headers: { ...plan.headers, ...request.headers } });
  };
  // Made before the clock runs.
  const chosen =
    pick.kind === 'once'
      ? lines.slice(pick.skip, pick.skip + pick.amount)
      : Array.from(
          { length: connections * REQUESTS_A_CLIENT },
          () => lines[Math.floor(Math.random() * lines.length)] as string,
        );
  const requests = chosen.map(encoded);
  const latencies: number[] = [];
  const statuses = new Map<string, number>();
  const sentRequests: string[] = [];
  const sockets = await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      await once(socket, 'connect');
      return socket;
    }),
  );
  let next = 0;
  const began = process.cpuUsage();
  const started = performance.now();
  const until = pick.kind === 'random' ? started + pick.seconds * 1000 : Infinity;
  await Promise.all(
    sockets.map(
      (socket) =>
        new Promise<void>((resolve, reject) => {
          let sent = 0;
          let done = false;
          let rest = '';
          const send = (): void => {
            const now = performance.now();
            const due = plan.perSecond === undefined ? now : started + (next * 1_000) / plan.perSecond;
            if ((pick.kind === 'once' && next >= requests.length) || due > until) {
              done = true;
              socket.destroy();
              return;
            }
            const request = requests[next++ % requests.length] as Buffer;
            const write = (at: number): void => {
              sent = at;
              socket.write(request);
            };
            // A timer that is late is the client's own fault.
            if (due > now) setTimeout(() => write(performance.now()), due - now);
            else write(due);
          };
          socket.setEncoding('latin1');
          socket.on('data', (text: string) => {
            rest = rest === '' ? text : rest + text;
            if (!isWhole(rest)) return;
            const status = rest.slice(9, 12);
            statuses.set(status, (statuses.get(status) ?? 0) + 1);
            if (plan.sent !== undefined) {
              const location = /\r\nlocation: (\S+)/i.exec(rest)?.[1] ?? '';
              sentRequests.push(JSON.stringify({ at: performance.timeOrigin + sent, location } satisfies SentRequest));
            }
            rest = '';
            latencies.push(performance.now() - sent);
            send();
          });
          socket.once('error', reject);
          socket.once('close', () => (done ? resolve() : reject(new Error('the server closed a connection'))));
          send();
        }),
    ),
  );
  const seconds = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(began);
  const answered = latencies.length;
  if (
    answered === 0 ||
    statuses.get(String(plan.expect)) !== answered ||
    (pick.kind === 'once' && answered !== requests.length)
  ) {
    throw new Error(`of ${answered} answers, by status: ${JSON.stringify(Object.fromEntries(statuses))}`);
  }
  if (plan.sent !== undefined) writeFileSync(plan.sent, sentRequests.join('\n'));
  return {
    requests: answered,
    perSecond: answered / seconds,
    ...latenciesOf(latencies),
    clients: (user + system) / 1e6 / seconds,
  };
}

/** A request as it is sent. @param url of the server */
export function encodedRequest(url: string, method: LoadPlan['method'], request: LoadRequest): Buffer {
  const { path, headers, body = '' } = request;
  const all = {
    Host: new URL(url).host,
    ...headers,
    ...(method === 'GET' ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }),
  };
  return Buffer.from(
    `${method} ${path} HTTP/1.1\r\n${Object.entries(all)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')}\r\n${body}`,
  );
}

/**
 * Whether an answer has all arrived. The servers that are measured send a length with short answers and chunks with
 * long ones.
 */
export function isWhole(answer: string): boolean {
  const head = answer.indexOf('\r\n\r\n');
  if (head < 0) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(answer.slice(0, head))?.[1];
  return length === undefined ? answer.endsWith('\r\n0\r\n\r\n') : answer.length >= head + 4 + Number(length);
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.send !== undefined) {
  const [plan] = (await once(process, 'message')) as [LoadPlan];
  const answer = await run(plan).then(
    (result) => ({ result }),
    (error: unknown) => ({ fault: error instanceof Error ? error.message : String(error) }),
  );
  process.send(answer);
  process.disconnect();
}
