/**
 * A closed set of clients: each sends its next request when the last is answered. It runs in a process of its own, so that clients and
 * server don't share a core. Its main part forks this very file.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';

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
  readonly method: 'GET' | 'POST';
  readonly connections: number;
  /** A file of `LoadRequest`s, one JSON object a line. */
  readonly requests: string;
  /** `random`: any of them, for `seconds`. `once`: each of them one time, from `skip` on, `amount` in all; a multiple of `connections`. */
  readonly pick: { readonly kind: 'random'; readonly seconds: number } | { readonly kind: 'once'; readonly skip: number; readonly amount: number };
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The status that every answer must have. */
  readonly expect: number;
}

/** What came of it. Latencies are milliseconds. */
export interface LoadResult {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** Share of one processor that the clients used: near 1 they, not the server, were the limit. */
  readonly clients: number;
}

/** So many different requests does a client repeat, where they are picked at random. */
const REQUESTS_A_CLIENT = 2_000;

/** Sends what is planned. @throws Error when an answer has another status, or none comes */
export async function load(plan: LoadPlan): Promise<LoadResult> {
  const child = fork(fileURLToPath(import.meta.url), { serialization: 'json' });
  child.send(plan);
  const [[message]] = (await Promise.all([once(child, 'message'), once(child, 'exit')])) as unknown as [[{ result?: LoadResult; fault?: string }]];
  if (message.result === undefined) throw new Error(message.fault ?? 'the load ended without a result');
  return message.result;
}

async function run(plan: LoadPlan): Promise<LoadResult> {
  const lines = readFileSync(plan.requests, 'utf8').trimEnd().split('\n');
  const requests = lines.map((line) => JSON.parse(line) as LoadRequest);
  const { pick, connections } = plan;
  // Every client has its own requests, made before the clock runs: clients that are busy making requests would be measured too.
  const shares = Array.from({ length: connections }, (_, client): LoadRequest[] => {
    if (pick.kind === 'random') return Array.from({ length: REQUESTS_A_CLIENT }, () => requests[Math.floor(Math.random() * requests.length)] as LoadRequest);
    const end = pick.skip + pick.amount;
    return requests.slice(pick.skip, end).filter((_one, index) => index % connections === client);
  });
  let client = 0;
  const began = process.cpuUsage();
  const started = performance.now();
  const result = await autocannon({
    url: plan.url,
    connections,
    ...(pick.kind === 'once' ? { amount: pick.amount } : { duration: pick.seconds }),
    setupClient: (one) => {
      const share = shares[client++ % connections] ?? [];
      one.setRequests(share.map(({ path, headers, body }) => ({ method: plan.method, path, headers: { ...plan.headers, ...headers }, ...(body === undefined ? {} : { body }) })));
    },
  });
  const seconds = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(began);
  const counts = (result as unknown as { statusCodeStats: Readonly<Record<string, { readonly count: number }>> }).statusCodeStats;
  const answered = Object.values(counts).reduce((sum, { count }) => sum + count, 0);
  const expected = counts[String(plan.expect)]?.count ?? 0;
  if (result.errors > 0 || expected !== answered || answered === 0) {
    throw new Error(`${result.errors} requests failed; answers by status: ${JSON.stringify(counts)}`);
  }
  const elapsed = pick.kind === 'once' ? seconds : result.duration;
  return { requests: answered, perSecond: answered / elapsed, p50: result.latency.p50, p99: result.latency.p99, max: result.latency.max, clients: (user + system) / 1e6 / seconds };
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
