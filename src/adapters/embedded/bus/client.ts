/** One process's client of the embedded bus. It outlives its connections to the broker. */
import { deferred } from '../../../lib/async/deferred.js';
import { within } from '../../../lib/async/within.js';
import { type Bus, DeadlineError, NoRespondersError, RemoteError, type Unsubscribe } from '../../../ports/bus.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { bodyOf, checkSubject, payloadOf } from '../../busPayload.js';
import type { Frame, Header } from './frames.js';
import { openHandlers } from './handlers.js';
import type { Peer } from './router.js';

const DRAIN_MS = 5_000;
const PING_MS = 1_000;

export type BrokerConnection = Pick<Peer, 'send' | 'congested'>;

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

/** @param onError errors of handlers of published messages, and invalid frames */
export function openBusClient(onError: (error: unknown) => void): BusClient {
  const open = new Map<number, Open>();
  let connection: BrokerConnection | undefined;
  let attached = deferred<BrokerConnection>();
  let lastId = 0;
  let closing = false;

  const tell = (header: Header, body = NOTHING): void => connection?.send({ header, body });
  const handlers = openHandlers(tell, onError);

  const uncongested = (): BrokerConnection | undefined =>
    connection?.congested() === undefined ? connection : undefined;

  const connectionWithRoom = async (): Promise<BrokerConnection> => {
    for (;;) {
      const found = connection ?? (await attached.promise);
      const wait = found.congested();
      if (wait === undefined && found === connection) return found;
      await wait;
    }
  };

  const ask = (subject: string, header: (id: number) => Header, body: string, timeoutMs: number): Promise<string> =>
    new Promise((resolve, reject) => {
      const id = ++lastId;
      const timer = setTimeout(() => {
        if (entry.sent) tell({ t: 'drop', i: id });
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
      const ready = uncongested();
      if (ready !== undefined) send(ready);
      else void connectionWithRoom().then(send);
    });

  const pingBroker = (): Promise<string> => ask('ping', (i) => ({ t: 'ping', i }), NOTHING, PING_MS);

  /**
   * Resolves when the broker has processed all frames so far, or the connection is lost: the next connection announces
   * all services and subscriptions again. A busy broker processes frames later, so a missed deadline is no failure.
   */
  const taken = async (): Promise<void> => {
    if (connection === undefined) return;
    try {
      await pingBroker();
    } catch (error) {
      if (!(error instanceof UnavailableError || error instanceof DeadlineError)) throw error;
    }
  };

  const announced = async (end: () => boolean): Promise<Unsubscribe> => {
    await taken();
    return async () => {
      if (end()) await taken();
    };
  };

  const refuseWhenClosed = (): void => {
    if (closing) throw new UnavailableError('the bus is closed');
  };

  return {
    async request<R>(subject: string, payload: object, { timeoutMs }: { timeoutMs: number }): Promise<R> {
      refuseWhenClosed();
      checkSubject(subject);
      return payloadOf(
        await ask(subject, (i) => ({ t: 'req', i, s: subject }), bodyOf(payload), timeoutMs),
        subject,
      ) as R;
    },

    async serve(subject, queue, handler) {
      refuseWhenClosed();
      checkSubject(subject);
      checkSubject(queue);
      return announced(handlers.serve(subject, queue, (payload) => handler(payload as never)));
    },

    async publish(subject, payload) {
      refuseWhenClosed();
      checkSubject(subject);
      const body = bodyOf(payload);
      const over = uncongested() ?? (await within(connectionWithRoom(), PING_MS, () => undefined));
      if (over === undefined) throw new UnavailableError('no connection to the bus');
      over.send({ header: { t: 'pub', s: subject }, body });
    },

    async subscribe(subject, handler) {
      refuseWhenClosed();
      checkSubject(subject);
      return announced(handlers.subscribe(subject, (payload) => handler(payload as never)));
    },

    async ping() {
      refuseWhenClosed();
      if (connection === undefined) throw new UnavailableError('no connection to the bus');
      await pingBroker();
    },

    attach(opened) {
      connection = opened;
      handlers.announce();
      attached.resolve(opened);
    },

    detach() {
      connection = undefined;
      attached = deferred();
      for (const entry of open.values()) {
        if (entry.sent) entry.settle(new UnavailableError('the bus lost its connection', { outcomeUnknown: true }));
      }
    },

    receive({ header, body }) {
      if (header.t === 'ask') return handlers.asked(header, body);
      if (header.t === 'pub') return handlers.heard(header.s, body);
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
    },

    async close() {
      if (closing) return;
      closing = true;
      await within(handlers.close(), DRAIN_MS, () => undefined);
      for (const entry of open.values())
        entry.settle(new UnavailableError('the bus is closed', { outcomeUnknown: entry.sent }));
    },
  };
}
