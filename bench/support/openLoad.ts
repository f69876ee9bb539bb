/**
 * Open load: requests come at a steady rate, whether earlier ones are answered or not, as those of people do. A latency
 * counts from when its request was due, so that a slow answer is not hidden by the requests that waited for it.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { encodedRequest, isWhole, type LoadRequest } from './load.js';
import { type Latencies, latenciesOf } from './report.js';

export interface OpenLoadPlan {
  /** Of the server: `http://127.0.0.1:3000`. */
  readonly url: string;
  /** A file of `LoadRequest`s, one JSON object a line; those with a body are POSTs. Each is sent once. */
  readonly requests: string;
  readonly perSecond: number;
  /** Connections, opened beforehand; where all are busy a request waits for one, and its latency counts on. */
  readonly connections: number;
}

/** Answers with the same outcome. */
interface Answers extends Latencies {
  readonly answers: number;
}

export interface OpenLoadResult {
  readonly sent: number;
  /** Answers 2xx. */
  readonly accepted: Answers;
  /** Answers 429 and 503. */
  readonly shed: Answers;
  /** Shed answers without `Retry-After`. */
  readonly withoutRetryAfter: number;
  /** Other answers by status, and requests without an answer (`lost`). */
  readonly others: Readonly<Record<string, number>>;
  /** Share of one processor that the clients used. */
  readonly clients: number;
}

/** How long the last answers may take, in milliseconds. */
const LAST_MS = 10_000;
const TICK_MS = 1;
/** Connections that are opened at once. */
const AT_ONCE = 100;

/** Sends what is planned. @throws Error when the process of the clients fails */
export async function openLoad(plan: OpenLoadPlan): Promise<OpenLoadResult> {
  const child = fork(fileURLToPath(import.meta.url), { serialization: 'json' });
  child.send(plan);
  const [[message]] = (await Promise.all([once(child, 'message'), once(child, 'exit')])) as unknown as [
    [OpenLoadResult],
  ];
  return message;
}

interface Connection {
  readonly socket: Socket;
  due: number;
  rest: string;
}

async function run(plan: OpenLoadPlan): Promise<OpenLoadResult> {
  const { hostname, port } = new URL(plan.url);
  const requests = readFileSync(plan.requests, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as LoadRequest)
    .map((request) => encodedRequest(plan.url, request.body === undefined ? 'GET' : 'POST', request));
  const accepted: number[] = [];
  const shed: number[] = [];
  const others: Record<string, number> = {};
  let withoutRetryAfter = 0;
  const idle: Connection[] = [];
  const waiting: { readonly request: Buffer; readonly due: number }[] = [];
  let open = 0;

  const note = (outcome: string): void => void (others[outcome] = (others[outcome] ?? 0) + 1);
  const answered = (connection: Connection, text: string): void => {
    const status = text.slice(9, 12);
    const latency = performance.now() - connection.due;
    open -= 1;
    if (status.startsWith('2')) accepted.push(latency);
    else if (status === '429' || status === '503') {
      shed.push(latency);
      if (!/\r\nretry-after: \d/i.test(text)) withoutRetryAfter += 1;
    } else note(status);
  };
  const send = (connection: Connection, request: Buffer, due: number): void => {
    connection.due = due;
    connection.rest = '';
    connection.socket.write(request);
  };
  const free = (connection: Connection): void => {
    const next = waiting.shift();
    if (next === undefined) idle.push(connection);
    else send(connection, next.request, next.due);
  };
  const connected = async (): Promise<void> => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await once(socket, 'connect');
    const connection: Connection = { socket, due: 0, rest: '' };
    let busy = true;
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      connection.rest += text;
      if (!isWhole(connection.rest)) return;
      answered(connection, connection.rest);
      if (/\r\nconnection: close/i.test(connection.rest)) busy = false;
      else free(connection);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      const at = idle.indexOf(connection);
      if (at >= 0) idle.splice(at, 1);
      else if (busy) {
        open -= 1;
        note('lost');
      }
    });
    idle.push(connection);
  };
  // A server accepts some hundreds at once; others would wait for a second.
  while (idle.length < plan.connections)
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, plan.connections - idle.length) }, connected));
  const began = process.cpuUsage();
  const started = performance.now();
  let next = 0;
  const due = (index: number): number => started + (index * 1_000) / plan.perSecond;
  await new Promise<void>((resolve) => {
    const tick = setInterval(() => {
      const now = performance.now();
      while (next < requests.length && due(next) <= now) {
        const [request, at] = [requests[next] as Buffer, due(next)];
        next += 1;
        open += 1;
        const connection = idle.pop();
        if (connection === undefined) waiting.push({ request, due: at });
        else send(connection, request, at);
      }
      if (next < requests.length || (open > 0 && now < due(requests.length) + LAST_MS)) return;
      clearInterval(tick);
      resolve();
    }, TICK_MS);
  });
  const seconds = (performance.now() - started) / 1_000;
  const { user, system } = process.cpuUsage(began);
  if (open > 0) others['lost'] = (others['lost'] ?? 0) + open;
  return {
    sent: next,
    accepted: { answers: accepted.length, ...latenciesOf(accepted) },
    shed: { answers: shed.length, ...latenciesOf(shed) },
    withoutRetryAfter,
    others,
    clients: (user + system) / 1e6 / seconds,
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.send !== undefined) {
  const [plan] = (await once(process, 'message')) as [OpenLoadPlan];
  process.send(await run(plan), () => process.exit());
}
