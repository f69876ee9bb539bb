import type { Logger } from 'pino';
import { inFlight } from '../../lib/inFlight.js';
import {
  type EventStore,
  EventTooLargeError,
  MAX_APPEND_BYTES,
  type NewEvent,
  type StreamAppend,
} from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { type Append, appendsTo } from './appends.js';
import { withRetries } from './attempts.js';
import { openAppender } from './batchAppend.js';
import { feed, type FeedSource } from './feed.js';
import { openLiveTail } from './liveTail.js';
import { establishLog, EventStoreDbError } from './log.js';
import { openPool, type Pool, type PoolOptions } from './pool.js';
import { openReads } from './reads.js';
import { encode, type EncodedEvent, isPosition } from './records.js';
import { openSeal } from './seal.js';
import { readFileSync } from 'node:fs';
import { connect } from 'node:tls';

export { EventStoreDbError } from './log.js';

interface EventStoreDbOptions {
  /**
   * `esdb://HOST:PORT`, `esdb+discover://HOST` or `esdb://HOST,HOST,HOST`, with `?tls=false` for a server without TLS.
   * May contain credentials.
   */
  readonly url: string;
  /** Logs lost and regained connections of readers. */
  readonly logger?: Pick<Logger, 'info' | 'warn'> | undefined;
  /** Longest silence of the server within a call, in ms; default 5,000. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 5_000;

/**
 * Opens a log on EventStoreDB or KurrentDB (23.10 or later), and creates a missing one. Retries failed reads and
 * appends for some seconds, and followers without limit.
 * @throws EventStoreDbError when the address can't be read, or access or the server's version is refused;
 * UnavailableError when the server does not answer
 */
export async function openEventStoreDb({
  url,
  logger,
  timeoutMs = TIMEOUT_MS,
}: EventStoreDbOptions): Promise<EventStore> {
  let warned = false;
  const pool = poolOf({
    url,
    timeoutMs,
    onUnknownVersion() {
      if (!warned)
        logger?.warn(
          'EventStoreDB does not say its version: see to it that it is one of those that docs/deployment.md lists',
        );
      warned = true;
    },
  });
  const reads = openReads(pool.main, timeoutMs);
  const appender = openAppender(pool.main, timeoutMs);
  const seal = openSeal({ appender, reads }, timeoutMs);
  const appendOnce = appendsTo({ appender, reads }, seal.refuseWhenSealed);
  const ending = new AbortController();
  const appending = inFlight<Promise<unknown>>();
  let closing: Promise<void> | undefined;
  const source = {
    lease: pool.lease,
    end: async () => reads.end(),
    timeoutMs,
    closed: ending.signal,
    onTrouble(error) {
      if (error === undefined) logger?.info('the log of EventStoreDB is read again');
      else logger?.warn({ err: error }, 'lost EventStoreDB while reading its log');
    },
  } satisfies Omit<FeedSource, 'tail'>;
  const tail = openLiveTail(source);

  function refuseWhenClosed(): void {
    if (closing !== undefined) throw new UnavailableError('the event store is closed');
  }

  async function repeating<T>(ask: () => Promise<T>): Promise<T> {
    refuseWhenClosed();
    return withRetries(ask, () => closing !== undefined);
  }

  /** Registers a running append, for which `close` waits. */
  async function finished<T>(appended: Promise<T>): Promise<T> {
    const number = appending.put(appended);
    try {
      return await appended;
    } finally {
      void appending.take(number);
    }
  }

  async function close(): Promise<void> {
    await Promise.allSettled(appending.values());
    ending.abort();
    reads.close();
    await pool.close();
  }

  let logId: string;
  try {
    logId = await establishLog({ appender, reads });
    pool.expect(logId);
  } catch (error) {
    await close();
    throw error;
  }

  return {
    logId,
    engine: 'eventstoredb',
    isPosition,

    async append(stream, events, expected) {
      refuseWhenClosed();
      const encoded = encodedAll(events);
      return finished(repeating(async () => appendOnce(stream, encoded, expected)));
    },

    async appendInOrder(appends) {
      refuseWhenClosed();
      await finished(appendGroups(appends, ({ events }) => encodedAll(events), appendOnce));
    },

    read: async (stream, { from = 0, limit = Number.MAX_SAFE_INTEGER } = {}) =>
      repeating(async () => reads.stream(stream, from, limit)),

    readAll(after, filter = {}, options = {}) {
      refuseWhenClosed();
      return feed(after, filter, options, source);
    },

    follow(after, filter = {}, options = {}) {
      refuseWhenClosed();
      return feed(after, filter, options, { ...source, tail });
    },

    hurry: (position) => tail.hurry(position),

    end: async () => repeating(reads.end),

    startOfLast: async (count) => repeating(async () => reads.startOfLast(count)),

    lastOf: async (stream) => repeating(async () => reads.lastOf(stream)),

    reaches: async (position) => repeating(async () => reads.reaches(position)),

    seal: async () => repeating(seal.seal),

    sealed: async () => repeating(seal.sealed),

    async ping() {
      await repeating(reads.end);
    },

    async close() {
      closing ??= close();
      await closing;
    },
  };
}

function poolOf(options: PoolOptions): Pool {
  try {
    return openPool(options);
  } catch (error) {
    throw new EventStoreDbError(
      `the address of EventStoreDB can't be used (esdb://HOST:PORT, with ?tls=false for a server without TLS): ${withoutSecrets(error, options.url)}`,
    );
  }
}

function withoutSecrets(error: unknown, url: string): string {
  const credentials = /:\/\/([^@]*)@/.exec(url)?.[1];
  const message = error instanceof Error ? error.message : String(error);
  return credentials === undefined ? message : 'check it from the host on';
}

/** Encodes the events of one append. @throws RangeError without events; EventTooLargeError */
function encodedAll(events: readonly NewEvent[]): EncodedEvent[] {
  if (events.length === 0) throw new RangeError('an append needs at least one event');
  const encoded = events.map(encode);
  const bytes = encoded.reduce((sum, event) => sum + event.bytes, 0);
  if (bytes > MAX_APPEND_BYTES) throw new EventTooLargeError(bytes);
  return encoded;
}

/**
 * Limits of a group, in unanswered appends and their bytes: behind a slow disk they must not outlast the server's
 * timeout.
 */
const GROUP = { appends: 256, bytes: 4_000_000 };

/**
 * Appends in groups: the server handles the appends of one call in sequence, and each group waits for all answers to
 * the one before. No append is retried, so that no late repeat follows later appends.
 * @throws the error of the first append that failed, after the whole group is answered
 */
export async function appendGroups(
  appends: readonly StreamAppend[],
  encode: (append: StreamAppend) => readonly EncodedEvent[],
  send: Append,
): Promise<void> {
  for (let next = 0; next < appends.length;) {
    const answers: Promise<unknown>[] = [];
    for (let bytes = 0; next < appends.length && answers.length < GROUP.appends && bytes < GROUP.bytes; next++) {
      const one = appends[next]!;
      const events = encode(one);
      for (const { data, metadata } of events) bytes += data.length + metadata.length;
      answers.push(send(one.stream, events, one.expected));
    }
    const failed = (await Promise.allSettled(answers)).find((answer) => answer.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
}

/**
 * Finds the reason of a failed TLS connection: of a cluster's nodes the client reports only that it discovered none.
 */
const WAIT_MS = 3_000;
const DEFAULT_PORT = 2113;

/**
 * Why TLS with a node of the address is refused; `undefined` where it is not, no node answers, or the address disables
 * TLS.
 */
export async function tlsErrorAt(url: string): Promise<Error | undefined> {
  const [, hosts = '', query = ''] =
    /^esdb(?:\+discover)?:\/\/(?:[^@/]*@)?([^/?]+)\/?(?:\?(.*))?$/.exec(url.trim()) ?? [];
  const options = new URLSearchParams(query.replaceAll(/[^&=]+=/g, (name) => name.toLowerCase()));
  if (options.get('tls') === 'false' || options.get('tlsverifycert') === 'false') return undefined;
  const file = options.get('tlscafile');
  const errors = await Promise.all(
    hosts.split(',').map(async (node) => {
      const { hostname, port } = new URL(`https://${node.trim()}`);
      return tried(hostname.replace(/^\[(.*)\]$/, '$1'), Number(port || DEFAULT_PORT), file);
    }),
  );
  return errors.find((error) => error !== undefined);
}

async function tried(host: string, port: number, file: string | null): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port,
      ALPNProtocols: ['h2'],
      timeout: WAIT_MS,
      ...(file === null ? {} : { ca: readFileSync(file) }),
    });
    const end = (error?: Error): void => {
      socket.destroy();
      resolve(error);
    };
    socket.once('secureConnect', () => end());
    socket.once('timeout', () => end());
    socket.once('error', end);
  });
}
