/** The bus on NATS. Installations may share a server, since every subject carries the log's id. */
import { type Msg, NatsError, type Subscription, headers } from 'nats';
import { within } from '../../lib/async/within.js';
import { type Bus, RemoteError, type Unsubscribe } from '../../ports/bus.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { bodyOf, checkSubject, payloadOf } from '../busPayload.js';
import { connected } from './connection.js';
import { openAsking, openSigns } from './signs.js';

const MAX_FAILURE_LENGTH = 300;
const DRAIN_MS = 5_000;
const PING_MS = 1_000;
const SERVE_MS = 5_000;
const FAILED = 'Gift-Failed';

export interface NatsBusOptions {
  /** `nats://` or `tls://` addresses, comma-separated; the first may contain user and password, or a token. */
  readonly url: string;
  readonly logId: string;
  /** Errors outside requests: handlers of published messages, invalid messages, lost connections. */
  readonly onError: (error: unknown) => void;
}

/** @throws EngineError naming NATS_URL when no server answers, the credentials are refused, or the server is too old */
export async function openNatsBus({ url, logId, onError }: NatsBusOptions): Promise<Bus> {
  const connection = await connected(url);
  const prefix = `gift.${logId}.`;
  const running = new Set<Promise<void>>();
  const subscriptions = new Set<Subscription>();
  let closing: Promise<void> | undefined;
  let online = true;
  const asking = openAsking(connection, () => online);
  const signs = openSigns();

  /** Messages reported while offline: every attempt to reconnect fails with the same message, twice a second. */
  const saidWhileOffline = new Set<string>();
  const report = (message: string): void => {
    if (!online) {
      if (saidWhileOffline.has(message)) return;
      saidWhileOffline.add(message);
    }
    onError(new UnavailableError(message));
  };

  void (async () => {
    for await (const { type, data } of connection.status()) {
      if (type === 'disconnect') online = false;
      if (type === 'reconnect') {
        online = true;
        saidWhileOffline.clear();
      }
      if (type === 'disconnect' || type === 'error') report(`NATS: ${type} (${data as string})`);
    }
    if (closing === undefined) onError(new UnavailableError('NATS: the client has closed the connection for good'));
  })().catch(onError);

  const refuseWhenClosed = (): void => {
    if (closing !== undefined || connection.isClosed()) throw new UnavailableError('the bus is closed');
  };

  const nameOf = (subject: string): string => {
    checkSubject(subject);
    refuseWhenClosed();
    return prefix + subject;
  };

  const received = (message: Msg): unknown => {
    try {
      return payloadOf(message.string(), message.subject.slice(prefix.length));
    } catch (error) {
      onError(error);
      throw error;
    }
  };

  const answer = async (message: Msg, handler: (payload: never) => Promise<object>): Promise<void> => {
    try {
      message.respond(bodyOf(await handler(received(message) as never)));
    } catch (error) {
      const reason = headers();
      reason.set(FAILED, failureText(error));
      message.respond('', { headers: reason });
    }
  };

  const flushed = async (otherwise: string, ms = PING_MS): Promise<void> => {
    const failed = (cause?: unknown): never => {
      throw new UnavailableError(otherwise, { outcomeUnknown: true, cause });
    };
    await within(connection.flush().catch(failed), ms, () => failed());
  };

  const take = async (subscription: Subscription): Promise<Unsubscribe> => {
    subscriptions.add(subscription);
    const stop = async (): Promise<void> => {
      if (!subscriptions.delete(subscription) || connection.isClosed()) return;
      subscription.unsubscribe();
      // An unreachable server has forgotten the subscription already, or is notified when it is reachable again.
      await flushed('NATS did not end the subscription').catch(() => undefined);
    };
    try {
      await flushed('NATS did not take the subscription', SERVE_MS);
    } catch (error) {
      await stop();
      throw error;
    }
    return stop;
  };

  const close = async (): Promise<void> => {
    for (const subscription of subscriptions) subscription.unsubscribe();
    asking.end(new UnavailableError('the bus was closed before an answer came', { outcomeUnknown: true }));
    await within(Promise.all(running), DRAIN_MS, () => undefined);
    // Without a server, draining ends early and leaves the client looking for one.
    const drained = connection.drain().catch(() => undefined);
    await within(drained, PING_MS, () => undefined);
    await connection.close();
  };

  return {
    engine: 'nats',
    async request<R>(subject: string, payload: object, { timeoutMs }: { timeoutMs: number }): Promise<R> {
      const name = nameOf(subject);
      const body = bodyOf(payload);
      try {
        const reply = await asking.request(name, subject, body, timeoutMs);
        const failed = reply.headers?.get(FAILED);
        if (failed !== undefined && failed !== '') throw new RemoteError(failureIn(failed));
        return payloadOf(reply.string(), subject) as R;
      } catch (error) {
        throw error instanceof NatsError
          ? new UnavailableError('NATS did not take the request', { outcomeUnknown: true, cause: error })
          : error;
      }
    },
    async serve(subject, queue, handler) {
      const name = nameOf(subject);
      return take(
        connection.subscribe(name, {
          queue,
          callback(error, message) {
            if (error !== null) return onError(error);
            if (signs.known(message)) return;
            const run: Promise<void> = signs
              .during(message, answer(message, handler))
              .catch(onError)
              .finally(() => running.delete(run));
            running.add(run);
          },
        }),
      );
    },
    async publish(subject, payload) {
      const name = nameOf(subject);
      connection.publish(name, bodyOf(payload));
      await flushed('NATS did not take the message');
    },
    async subscribe(subject, handler) {
      const name = nameOf(subject);
      return take(
        connection.subscribe(name, {
          callback(error, message) {
            if (error !== null) return onError(error);
            try {
              handler(payloadOf(message.string(), subject) as never);
            } catch (thrown) {
              onError(thrown);
            }
          },
        }),
      );
    },
    async ping() {
      refuseWhenClosed();
      await flushed('NATS does not answer');
    },
    close() {
      closing ??= close();
      return closing;
    },
  };
}

function failureText(error: unknown): string {
  const text = (error instanceof Error ? error.message : String(error)).slice(0, MAX_FAILURE_LENGTH);
  // Half a surrogate pair can't be encoded.
  return encodeURIComponent(Buffer.from(text).toString());
}

function failureIn(header: string): string {
  try {
    return decodeURIComponent(header);
  } catch {
    return 'the other side failed to answer';
  }
}
