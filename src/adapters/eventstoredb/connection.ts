/** One connection to EventStoreDB, made anew when it has fallen silent. */
import { EventStoreDBClient } from '@eventstore/db-client';
import streams from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { StreamsClient } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { CallOptions, Channel, ClientDuplexStream, ClientReadableStream, Metadata } from '@grpc/grpc-js';
import { failureOf, isDeadline } from './failures.js';
import type { Vetting } from './version.js';

/** A call to the server that can be heard and given up. */
export type Call = ClientReadableStream<unknown> | ClientDuplexStream<unknown, unknown>;

/**
 * What is used of the client besides its address, discovery and credentials: its connection, for the streams service
 * that it brings along. Its own calls are not used, since they lose what the port promises: appends of all clients of a
 * process sit in one map, so one connection's end rejects another's appends and an answer that comes later ends the
 * process; a subscription tells that it has caught up while events still wait in its buffer; readAll drops its filter.
 */
interface Inside {
  GRPCStreamCreator<T extends Call>(
    service: typeof streams.StreamsClient,
    name: string,
    start: (client: StreamsClient) => Promise<T>,
  ): () => Promise<T>;
  callArguments(options: { requiresLeader: boolean }, call: { deadline: number }): [Metadata, CallOptions];
  handleError: (client: unknown, error: Error) => Promise<void>;
  getChannel(): Promise<Channel>;
  dispose(): Promise<void>;
}

/** Where the server is, and how its connection is kept. */
export interface ConnectionOptions {
  /** `esdb://` or `esdb+discover://`, as the client reads it. */
  readonly url: string;
  /**
   * Sets this connection apart: the client's library lets connections with equal settings share one socket, and so its
   * 100 calls.
   */
  readonly ordinal: number;
  /** Looks at the server before it is asked for anything. */
  readonly vetting: Vetting;
  /** How long the server may take to tell its version, in ms. */
  readonly timeoutMs: number;
}

/**
 * The connection. Calls made over it go to the leader: elsewhere an append that was just answered might not be seen
 * yet.
 */
export interface Connection {
  /**
   * Starts a call, on a server that is one of those used. What it throws, and what the call meets, is the client
   * library's: see `failureOf`.
   * @throws UnsafeServerError for a server of a version that is refused
   */
  call<T extends Call>(
    start: (client: StreamsClient, metadata: Metadata, options: CallOptions) => T,
  ): Promise<Heard<T>>;
  /** Ends the calls that run and frees the socket. */
  close(): Promise<void>;
}

/** A call, with a word on whether the server can still be heard. */
export interface Heard<T extends Call> {
  readonly call: T;
  /**
   * Tells that an answer is overdue since `since` (as `performance.now`). When nothing at all came over the connection
   * since then, it is given up: calls under way end, the next goes over a new socket.
   */
  silent(since: number): void;
}

/** How often an idle connection is asked for a sign of life (ms): the least that the client takes without a warning. */
const KEEP_ALIVE_MS = 10_000;
/** How long the sign of life may take (ms); connections differ by one each. */
const KEEP_ALIVE_ANSWER_MS = 3_000;
/** Each connection may be made anew so often with settings of its own before they come round. */
const RENEWALS = 100;

/** Makes no connection yet: the first call does. @throws Error (the client's) when the address can't be read. */
export function openConnection({ url, ordinal, vetting, timeoutMs }: ConnectionOptions): Connection {
  let generation = 0;
  let heardAt = 0;
  let client = connect();

  function connect(): Inside {
    const made = EventStoreDBClient.connectionString(
      withKeepAlive(url, KEEP_ALIVE_ANSWER_MS + ordinal * RENEWALS + (generation++ % RENEWALS)),
    ) as unknown as Inside;
    // It looks for its next server in the background, and nobody would hear that none was found: that ends the process.
    const { handleError } = made;
    made.handleError = async (...failed) => handleError(...failed).catch(() => undefined);
    return made;
  }

  async function end(ended: Inside): Promise<void> {
    const channel = await ended.getChannel().catch(() => undefined);
    await ended.dispose();
    channel?.close();
  }

  /** Gives up a connection over which nothing came since. */
  function renew(used: Inside, since: number): void {
    if (used !== client || heardAt > since) return;
    client = connect();
    void end(used);
  }

  /** Nothing was asked of the server but its version when this fails. */
  async function vet(used: Inside, service: StreamsClient): Promise<void> {
    const since = performance.now();
    try {
      await vetting.vet(
        service.getChannel() as Channel,
        used.callArguments({ requiresLeader: false }, { deadline: Date.now() + timeoutMs }),
      );
    } catch (error) {
      if (isDeadline(error)) renew(used, since);
      void used.handleError(service, error as Error);
      throw failureOf(error, {});
    }
  }

  return {
    async call(start) {
      const used = client;
      const call = await used.GRPCStreamCreator(streams.StreamsClient, 'call', async (service) => {
        await vet(used, service);
        return start(service, ...used.callArguments({ requiresLeader: true }, { deadline: Number.POSITIVE_INFINITY }));
      })();
      call.on('data', () => {
        heardAt = performance.now();
      });
      return { call, silent: (since) => renew(used, since) };
    },
    close: async () => end(client),
  };
}

/** The address with our keep-alive, where it has none of its own. */
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
