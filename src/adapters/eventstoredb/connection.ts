import { EventStoreDBClient } from '@eventstore/db-client';
import streams from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { StreamsClient } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { CallOptions, Channel, ClientDuplexStream, ClientReadableStream, Metadata } from '@grpc/grpc-js';
import { type InFlight, inFlight } from '../../lib/inFlight.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { failureOf, isDeadline } from './failures.js';
import type { Vetting } from './version.js';

type Call = ClientReadableStream<unknown> | ClientDuplexStream<unknown, unknown>;

/**
 * The parts of the library's client that are used, since its own calls break the port's guarantees. Appends of all
 * clients of a process share one map: the end of one connection rejects another's appends, and a late answer ends the
 * process. A subscription reports that it has caught up while events wait in its buffer. `readAll` drops its filter.
 * The client also retains every call in a `Set` and watches it as a stream: a fifth of the processor time of a short
 * read.
 */
interface Inside {
  getGRPCClient(service: typeof streams.StreamsClient, name: string): Promise<StreamsClient>;
  callArguments(options: { requiresLeader: boolean }, call: { deadline: number }): [Metadata, CallOptions];
  handleError(client: unknown, error: Error): Promise<void>;
}

interface Connected {
  readonly inside: Inside;
  /** Calls for which gRPC has not reported a status; data received before the status may still be read after it. */
  readonly running: InFlight<Call>;
  /** Channel of the last call: the client closes earlier ones. Absent while the client discovers its first node. */
  channel: Channel | undefined;
  ended: boolean;
}

interface ConnectionOptions {
  readonly url: string;
  /**
   * Distinguishes this connection: the library lets connections with equal settings share one socket and its 100 calls.
   */
  readonly ordinal: number;
  readonly vetting: Vetting;
  /** Milliseconds in which the server must report its version, and which log it holds. */
  readonly timeoutMs: number;
}

/** Calls go to the leader: another node may lack an append that was just answered. */
export interface Connection {
  /** Errors are the client library's (see `failureOf`), UnsafeServerError and OtherLogError. */
  call<T extends Call>(
    start: (client: StreamsClient, metadata: Metadata, options: CallOptions) => T,
  ): Promise<Heard<T>>;
  close(): Promise<void>;
}

export interface Heard<T extends Call> {
  readonly call: T;
  /**
   * An answer is overdue since `since` (as `performance.now`). If the connection received nothing since then, it is
   * replaced: its calls end, and the next call opens a new socket.
   */
  silent(since: number): void;
  /** As `silent`, whatever was received: the node lacks events that other nodes have. */
  giveUp(): void;
}

/** Milliseconds between pings of an idle connection: the least that the client accepts without a warning. */
const KEEP_ALIVE_MS = 10_000;
/**
 * Milliseconds in which a ping must be answered. Each connection adds a number of its own, so that no two have equal
 * settings.
 */
const KEEP_ALIVE_ANSWER_MS = 3_000;
/** Replacements of a connection before its settings repeat. */
const RENEWALS = 100;

/** The first call connects. @throws Error (the client's) when the address can't be read */
export function openConnection({ url, ordinal, vetting, timeoutMs }: ConnectionOptions): Connection {
  let generation = 0;
  let heardAt = 0;
  let client = connect();

  function connect(): Connected {
    const inside = EventStoreDBClient.connectionString(
      withKeepAlive(url, KEEP_ALIVE_ANSWER_MS + ordinal * RENEWALS + (generation++ % RENEWALS)),
    ) as unknown as Inside;
    return { inside, running: inFlight(), channel: undefined, ended: false };
  }

  /**
   * Ends a connection without waiting for the discovery of a node, which may last most of a minute. Calls that wait for
   * it start nothing.
   */
  async function end(used: Connected): Promise<void> {
    used.ended = true;
    while (used.running.size() > 0) await Promise.all(used.running.values().map(cancelled));
    used.channel?.close();
  }

  function refuseWhenEnded({ ended }: Connected): void {
    if (ended) throw new UnavailableError('the connection to EventStoreDB was given up');
  }

  async function found(used: Connected): Promise<StreamsClient> {
    const service = await used.inside.getGRPCClient(streams.StreamsClient, 'call');
    used.channel = service.getChannel() as Channel;
    if (used.ended) used.channel.close();
    refuseWhenEnded(used);
    return service;
  }

  /** The client discovers its next server in the background; its unhandled failure would end the process. */
  function failed({ inside }: Connected, service: StreamsClient, error: Error): void {
    inside.handleError(service, error).catch(() => undefined);
  }

  function renew(used: Connected): void {
    if (used !== client) return;
    client = connect();
    void end(used);
  }

  function silent(used: Connected, since: number): void {
    if (heardAt <= since) renew(used);
  }

  /** Checks the server's version and log. A failure ends no call, since nothing else was requested. */
  async function vet(used: Connected, service: StreamsClient): Promise<void> {
    const since = performance.now();
    try {
      await vetting.vet(service.getChannel() as Channel, (options) =>
        used.inside.callArguments(options, { deadline: Date.now() + timeoutMs }),
      );
    } catch (error) {
      if (isDeadline(error)) silent(used, since);
      failed(used, service, error as Error);
      throw failureOf(error, {});
    }
  }

  return {
    async call(start) {
      const used = client;
      const { inside, running } = used;
      const service = await found(used);
      await vet(used, service);
      refuseWhenEnded(used);
      const call = start(
        service,
        ...inside.callArguments({ requiresLeader: true }, { deadline: Number.POSITIVE_INFINITY }),
      );
      const number = running.put(call);
      call.on('data', () => {
        heardAt = performance.now();
      });
      call.on('error', (error) => failed(used, service, error));
      call.on('status', () => running.take(number));
      return { call, silent: (since) => silent(used, since), giveUp: () => renew(used) };
    },
    close: async () => end(client),
  };
}

function cancelled(call: Call): Promise<unknown> {
  const over = new Promise((resolve) => call.once('status', resolve));
  call.cancel();
  return over;
}

function withKeepAlive(url: string, answerMs: number): string {
  let full = url.trim().replace(/\/+$/, '');
  for (const [name, ms] of [
    ['keepAliveInterval', KEEP_ALIVE_MS],
    ['keepAliveTimeout', answerMs],
  ] as const) {
    if (!new RegExp(`[?&]${name}=`, 'i').test(full)) full += `${full.includes('?') ? '&' : '?'}${name}=${ms}`;
  }
  return full;
}
