/** The bus on NATS. Installations may share a server, since every subject carries the log's id. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createInbox, type Msg, type NatsConnection, NatsError, headers } from 'nats';
import { within } from '../../lib/async/within.js';
import { type Bus, RemoteError, type Unsubscribe } from '../../ports/bus.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { bodyOf, checkSubject, failureText, payloadOf } from '../busPayload.js';
import { connected } from './connection.js';
import { openRefusedMessages, type RefusedMessages } from './refusedMessages.js';
import { type Asking, openAsking, openSigns, type Signs } from './signs.js';
import { type LastingSubscription, openSubscriptions, type Subscriptions } from './subscriptions.js';

const DRAIN_MS = 5_000;
const PING_MS = 1_000;
const SERVE_MS = 5_000;
const FAILED = 'Gift-Failed';
const REFUSED = 'refuses what its user needs (the log says what)';

interface NatsBusOptions {
  /** `nats://` or `tls://` addresses, comma-separated; the first may contain user and password, or a token. */
  readonly url: string;
  readonly logId: string;
  /** Errors outside requests: handlers of published messages, invalid messages, lost connections. */
  readonly onError: (error: unknown) => void;
}

/** The client of a server, and what it has to end when it closes. */
interface Client extends Pick<NatsBusOptions, 'onError'> {
  readonly connection: NatsConnection;
  /** What the subjects of this installation begin with. */
  readonly prefix: string;
  /** Runs of handlers that have not ended. */
  readonly running: Set<Promise<void>>;
  readonly subscriptions: Subscriptions;
  readonly refusedMessages: RefusedMessages;
  readonly asking: Asking;
  readonly signs: Signs;
  online: boolean;
  /** The closing, once it has begun. */
  closing: Promise<void> | undefined;
}

/** @throws EngineError naming NATS_URL when no server answers, the credentials are refused, or the server is too old */
export async function openNatsBus({ url, logId, onError }: NatsBusOptions): Promise<Bus> {
  const prefix = `gift.${logId}.`;
  const connection = await connected(url, `${prefix}start`);
  const online = (): boolean => client.online;
  const subscriptions = openSubscriptions(connection, online);
  const client: Client = {
    connection,
    onError,
    prefix,
    running: new Set(),
    subscriptions,
    refusedMessages: openRefusedMessages(),
    asking: openAsking(connection, subscriptions, online),
    signs: openSigns(),
    online: true,
    closing: undefined,
  };
  void watch(client).catch(onError);
  return {
    engine: 'nats',
    async request<R>(subject: string, payload: object, { timeoutMs }: { timeoutMs: number }): Promise<R> {
      const name = nameOf(client, subject);
      const body = bodyOf(payload);
      try {
        const reply = await client.asking.request(name, subject, body, timeoutMs);
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
      const name = nameOf(client, subject);
      return take(
        client,
        subscriptions.add(name, {
          queue,
          // An error is a refusal, which the connection's status reports too.
          callback(error, message) {
            if (error === null) serveOne(client, message, handler);
          },
        }),
      );
    },
    async publish(subject, payload) {
      const name = nameOf(client, subject);
      connection.publish(name, bodyOf(payload));
      await flushed(client, 'NATS did not take the message');
    },
    async subscribe(subject, handler) {
      const name = nameOf(client, subject);
      return take(
        client,
        subscriptions.add(name, {
          callback(error, message) {
            if (error !== null) return;
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
      refuseWhenClosed(client);
      const refused = subscriptions.refused();
      if (refused !== undefined) throw new UnavailableError(refusedSubscription(refused), { publicReason: REFUSED });
      // Nobody hears these: only a message shows that messages are taken.
      if (client.online) for (const to of [`${prefix}start`, createInbox()]) connection.publish(to);
      await flushed(client, 'NATS does not answer');
      // A refusal comes before the server's answer to the flush, and is passed on within the turn.
      await nextTurn();
      const subject = client.refusedMessages.refused();
      if (subject !== undefined) throw new UnavailableError(refusedMessage(subject), { publicReason: REFUSED });
    },
    close() {
      client.closing ??= close(client);
      return client.closing;
    },
  };
}

/** Follows whether the server is reachable, and reports losses, until the client has closed its connection. */
async function watch(client: Client): Promise<void> {
  /** Messages reported while offline: every attempt to reconnect fails with the same message, twice a second. */
  const saidWhileOffline = new Set<string>();
  for await (const { type, data, permissionContext: refusal } of client.connection.status()) {
    if (type === 'disconnect') client.online = false;
    if (type === 'reconnect') {
      client.online = true;
      saidWhileOffline.clear();
    }
    if (type !== 'disconnect' && type !== 'error') continue;
    if (refusal !== undefined && !isNews(client, refusal)) continue;
    const of = refusal === undefined ? '' : ` of a ${refusal.operation} to ${refusal.subject}`;
    const message = `NATS: ${type} (${data as string}${of})`;
    if (saidWhileOffline.has(message)) continue;
    if (!client.online) saidWhileOffline.add(message);
    client.onError(new UnavailableError(message));
  }
  if (client.closing === undefined)
    client.onError(new UnavailableError('NATS: the client has closed the connection for good'));
}

/** Notes what the server's permissions refuse. @returns whether that was not known */
function isNews(
  { subscriptions, refusedMessages }: Client,
  { operation, subject }: NatsError['permissionContext'] & object,
): boolean {
  return operation === 'subscription' ? subscriptions.refuse(subject) : refusedMessages.note(subject);
}

function refuseWhenClosed({ closing, connection }: Client): void {
  if (closing !== undefined || connection.isClosed()) throw new UnavailableError('the bus is closed');
}

function nameOf(client: Client, subject: string): string {
  checkSubject(subject);
  refuseWhenClosed(client);
  return client.prefix + subject;
}

/** Has a request handled, unless it was sent again and is known. */
function serveOne(client: Client, message: Msg, handler: (payload: never) => Promise<object>): void {
  const { signs, running, onError } = client;
  if (signs.known(message)) return;
  const run: Promise<void> = signs
    .during(message, answer(client, message, handler))
    .catch(onError)
    .finally(() => running.delete(run));
  running.add(run);
}

async function answer(client: Client, message: Msg, handler: (payload: never) => Promise<object>): Promise<void> {
  try {
    message.respond(bodyOf(await handler(received(client, message) as never)));
  } catch (error) {
    const reason = headers();
    reason.set(FAILED, encodeURIComponent(failureText(error)));
    message.respond('', { headers: reason });
  }
}

function received({ prefix, onError }: Client, message: Msg): unknown {
  try {
    return payloadOf(message.string(), message.subject.slice(prefix.length));
  } catch (error) {
    onError(error);
    throw error;
  }
}

/** Resolves when the server has taken all so far. @throws UnavailableError with the message `otherwise` */
async function flushed({ connection }: Client, otherwise: string, ms = PING_MS): Promise<void> {
  const failed = (cause?: unknown): never => {
    throw new UnavailableError(otherwise, { outcomeUnknown: true, cause });
  };
  await within(connection.flush().catch(failed), ms, () => failed());
}

async function take(client: Client, subscription: LastingSubscription): Promise<Unsubscribe> {
  let ended = false;
  const stop = async (): Promise<void> => {
    if (ended || client.connection.isClosed()) return;
    ended = true;
    subscription.end();
    // An unreachable server has forgotten the subscription already, or is notified when it is reachable again.
    await flushed(client, 'NATS did not end the subscription').catch(() => undefined);
  };
  try {
    await flushed(client, 'NATS did not take the subscription', SERVE_MS);
    // The client has closed it, and says so to nobody who waits here.
    if (subscription.refused()) throw new UnavailableError(refusedSubscription(subscription.subject));
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}

const refusedSubscription = (subject: string): string =>
  `NATS refuses a subscription: the user in NATS_URL may not subscribe to ${subject}`;

const refusedMessage = (subject: string): string =>
  `NATS refuses a message: the user in NATS_URL may not publish to ${subject}`;

async function close({ connection, subscriptions, asking, running }: Client): Promise<void> {
  subscriptions.end();
  asking.end(new UnavailableError('the bus was closed before an answer came', { outcomeUnknown: true }));
  await within(Promise.all(running), DRAIN_MS, () => undefined);
  // Without a server, draining ends early and leaves the client looking for one.
  const drained = connection.drain().catch(() => undefined);
  await within(drained, PING_MS, () => undefined);
  await connection.close();
}

function failureIn(header: string): string {
  try {
    return decodeURIComponent(header);
  } catch {
    return 'the other side failed to answer';
  }
}
