/** One process's client of the embedded bus. It outlives its connections to the broker. */
import { type Deferred, deferred } from '../../../lib/async/deferred.js';
import { within } from '../../../lib/async/within.js';
import { type Bus, DeadlineError, NoRespondersError, RemoteError, type Unsubscribe } from '../../../ports/bus.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { bodyOf, checkSubject, payloadOf } from '../../busPayload.js';
import type { Frame, Header } from './frames.js';
import { openHandlers } from './handlers.js';
import type { Peer } from './router.js';

const DRAIN_MS = 5_000;
const PING_MS = 1_000;

type BrokerConnection = Pick<Peer, 'send' | 'congested'>;

export interface BusClient extends Pick<Bus, 'request' | 'serve' | 'publish' | 'subscribe' | 'ping'> {
  attach(connection: BrokerConnection): void;
  /** Ends the use of a lost connection: requests sent over it end as unavailable, with an unknown outcome. */
  detach(): void;
  readonly receive: (frame: Frame) => void;
  /** Refuses new work, lets running handlers finish (at most 5 s), then ends open requests. */
  close(): Promise<void>;
}

interface Open {
  readonly subject: string;
  sent: boolean;
  settle(outcome: { body: string } | Error): void;
}

const NOTHING = '';

/** A client's connection, and the requests that wait for an answer. */
interface Client {
  readonly open: Map<number, Open>;
  connection: BrokerConnection | undefined;
  /** Resolves at the next connection. */
  attached: Deferred<BrokerConnection>;
  lastId: number;
  closing: boolean;
}

/** @param onError errors of handlers of published messages, and invalid frames */
export function openBusClient(onError: (error: unknown) => void): BusClient {
  const client: Client = { open: new Map(), connection: undefined, attached: deferred(), lastId: 0, closing: false };
  const handlers = openHandlers((header, body) => sendFrame(client, header, body), onError);

  const announced = async (end: () => boolean): Promise<Unsubscribe> => {
    await taken(client);
    return async () => {
      if (end()) await taken(client);
    };
  };

  return {
    async request<R>(subject: string, payload: object, { timeoutMs }: { timeoutMs: number }): Promise<R> {
      refuseWhenClosed(client);
      checkSubject(subject);
      const header = (i: number): Header => ({ t: 'req', i, s: subject });
      return payloadOf(await ask(client, subject, header, bodyOf(payload), timeoutMs), subject) as R;
    },

    async serve(subject, queue, handler) {
      refuseWhenClosed(client);
      checkSubject(subject);
      checkSubject(queue);
      return announced(handlers.serve(subject, queue, (payload) => handler(payload as never)));
    },

    async publish(subject, payload) {
      refuseWhenClosed(client);
      checkSubject(subject);
      const body = bodyOf(payload);
      const over = uncongested(client) ?? (await within(connectionWithRoom(client), PING_MS, () => undefined));
      if (over === undefined) throw new UnavailableError('no connection to the bus');
      over.send({ header: { t: 'pub', s: subject }, body });
    },

    async subscribe(subject, handler) {
      refuseWhenClosed(client);
      checkSubject(subject);
      return announced(handlers.subscribe(subject, (payload) => handler(payload as never)));
    },

    async ping() {
      for (const deadline = performance.now() + PING_MS; ;) {
        refuseWhenClosed(client);
        try {
          return void (await pingBroker(client));
        } catch (error) {
          // The broker has ended. Another process takes over within a second, which is no failure of the bus.
          const hasEnded = error instanceof UnavailableError && error.outcomeUnknown;
          if (!hasEnded || performance.now() >= deadline) throw error;
        }
      }
    },

    attach(opened) {
      client.connection = opened;
      handlers.announce();
      client.attached.resolve(opened);
    },

    detach() {
      client.connection = undefined;
      client.attached = deferred();
      for (const entry of client.open.values()) {
        if (entry.sent) entry.settle(new UnavailableError('the bus lost its connection', { outcomeUnknown: true }));
      }
    },

    receive(frame) {
      const { header, body } = frame;
      if (header.t === 'ask') return handlers.requested(header, body);
      if (header.t === 'pub') return handlers.heard(header.s, body);
      return answered(client, frame, onError);
    },

    async close() {
      if (client.closing) return;
      client.closing = true;
      await within(handlers.close(), DRAIN_MS, () => undefined);
      for (const entry of client.open.values())
        entry.settle(new UnavailableError('the bus is closed', { outcomeUnknown: entry.sent }));
    },
  };
}

function refuseWhenClosed({ closing }: Client): void {
  if (closing) throw new UnavailableError('the bus is closed');
}

function sendFrame({ connection }: Client, header: Header, body = NOTHING): void {
  connection?.send({ header, body });
}

const uncongested = ({ connection }: Client): BrokerConnection | undefined =>
  connection?.congested() === undefined ? connection : undefined;

async function connectionWithRoom(client: Client): Promise<BrokerConnection> {
  for (;;) {
    const found = client.connection ?? (await client.attached.promise);
    const wait = found.congested();
    if (wait === undefined && found === client.connection) return found;
    await wait;
  }
}

/** Sends a request as soon as a connection has room. @returns the answer's body. @throws DeadlineError and others */
function ask(
  client: Client,
  subject: string,
  header: (id: number) => Header,
  body: string,
  timeoutMs: number,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const { open } = client;
    const id = ++client.lastId;
    const timer = setTimeout(() => {
      if (entry.sent) sendFrame(client, { t: 'drop', i: id });
      entry.settle(
        entry.sent ? new DeadlineError(subject, timeoutMs) : new UnavailableError('no connection to the bus'),
      );
    }, timeoutMs);
    const entry: Open = {
      subject,
      sent: false,
      settle(outcome) {
        clearTimeout(timer);
        open.delete(id);
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome.body);
      },
    };
    open.set(id, entry);
    const send = (over: BrokerConnection): void => {
      if (!open.has(id)) return;
      entry.sent = true;
      over.send({ header: header(id), body });
    };
    const ready = uncongested(client);
    if (ready !== undefined) send(ready);
    else void connectionWithRoom(client).then(send);
  });
}

const pingBroker = (client: Client): Promise<string> =>
  ask(client, 'ping', (i) => ({ t: 'ping', i }), NOTHING, PING_MS);

/**
 * Resolves when the broker has processed all frames so far, or the connection is lost: the next connection announces
 * all services and subscriptions again. A busy broker processes frames later, so a missed deadline is no failure.
 */
async function taken(client: Client): Promise<void> {
  if (client.connection === undefined) return;
  try {
    await pingBroker(client);
  } catch (error) {
    if (!(error instanceof UnavailableError || error instanceof DeadlineError)) throw error;
  }
}

/** Settles the request that a frame of the broker answers. */
function answered({ open }: Client, { header, body }: Frame, onError: (error: unknown) => void): void {
  const entry = 'i' in header ? open.get(header.i) : undefined;
  switch (header.t) {
    case 'rep':
    case 'pong':
      return entry?.settle({ body });
    case 'err':
      return entry?.settle(new RemoteError(header.m));
    case 'none':
      return entry?.settle(new NoRespondersError(entry.subject));
    case 'gone':
      return entry?.settle(new UnavailableError('the process that was asked is gone', { outcomeUnknown: true }));
    default:
      return onError(new Error(`a bus frame that only the broker takes: ${header.t}`));
  }
}
