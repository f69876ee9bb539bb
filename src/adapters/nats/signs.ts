/**
 * Requests whose handlers send signals. A frozen or disconnected process stays in its queue group for minutes, and its
 * requests would wait until their deadline. So a running handler signals, and a request without answer or signal is
 * sent again.
 */
import { LRUCache } from 'lru-cache';
import { createInbox, headers, type Msg, type NatsConnection } from 'nats';
import { DeadlineError, NoRespondersError } from '../../ports/bus.js';
import type { Subscriptions } from './subscriptions.js';

/** Milliseconds until a running handler signals: first, and after each signal. */
const SIGN_MS = { first: 100, next: 500 };
/** Milliseconds without answer or signal after which the queue group gets the request again. */
const AGAIN_MS = 400;
/** Milliseconds after its last signal when a handler counts as dead. */
const SILENT_MS = 2_000;
const TICK_MS = 50;
/** How many requests a handler's process remembers, to recognise them when they are sent again. */
const RECOGNISED = 10_000;
const WORKING = 'Gift-Working';

export interface Asking {
  /** @throws NoRespondersError, DeadlineError; NatsError when the connection is closed; the error of `end` */
  request(name: string, subject: string, body: string, timeoutMs: number): Promise<Msg>;
  end(error: Error): void;
}

interface Pending {
  readonly again: () => void;
  readonly settle: (outcome: Msg | Error) => void;
  readonly subject: string;
  readonly timeoutMs: number;
  readonly until: number;
  askedAt: number;
  requested: number;
  heardAt: number | undefined;
}

/** @param connected whether messages leave at once */
export function openAsking(
  connection: Pick<NatsConnection, 'publish'>,
  subscriptions: Pick<Subscriptions, 'add'>,
  connected: () => boolean,
): Asking {
  const inbox = createInbox();
  const open = new Map<string, Pending>();
  let last = 0;
  let ticker: NodeJS.Timeout | undefined;
  const subscription = subscriptions.add(`${inbox}.*`, {
    callback(error, message) {
      const pending = open.get(message.subject);
      if (error !== null || pending === undefined) return;
      if (message.headers?.get(WORKING) !== undefined && message.headers.get(WORKING) !== '') {
        pending.heardAt = performance.now();
      } else if (message.headers?.code === 503) {
        // After an earlier delivery the outcome is unknown.
        pending.settle(
          pending.requested === 1
            ? new NoRespondersError(pending.subject)
            : new DeadlineError(pending.subject, pending.timeoutMs),
        );
      } else pending.settle(message);
    },
  });

  const tick = (): void => {
    const now = performance.now();
    for (const pending of open.values()) {
      const { heardAt, askedAt, until, subject, timeoutMs } = pending;
      if (now >= until || (heardAt !== undefined && now - heardAt > SILENT_MS))
        pending.settle(new DeadlineError(subject, timeoutMs));
      else if (heardAt === undefined && now - askedAt > AGAIN_MS && connected()) pending.again();
    }
  };

  return {
    request: (name, subject, body, timeoutMs) =>
      new Promise((resolve, reject) => {
        const reply = `${inbox}.${++last}`;
        const ask = (): void => {
          pending.requested += 1;
          pending.askedAt = performance.now();
          connection.publish(name, body, { reply });
        };
        const pending: Pending = {
          subject,
          timeoutMs,
          until: performance.now() + timeoutMs,
          askedAt: 0,
          requested: 0,
          heardAt: undefined,
          again() {
            try {
              ask();
            } catch (error) {
              pending.settle(error as Error);
            }
          },
          settle(outcome) {
            open.delete(reply);
            if (open.size === 0) {
              clearInterval(ticker);
              ticker = undefined;
            }
            if (outcome instanceof Error) reject(outcome);
            else resolve(outcome);
          },
        };
        open.set(reply, pending);
        ticker ??= setInterval(tick, TICK_MS);
        pending.again();
      }),
    end(error) {
      for (const pending of open.values()) pending.settle(error);
      subscription.end();
    },
  };
}

export interface Signs {
  known(message: Msg): boolean;
  during(message: Msg, work: Promise<void>): Promise<void>;
}

export function openSigns(): Signs {
  const taken = new LRUCache<string, true>({ max: RECOGNISED });
  return {
    known(message) {
      const reply = message.reply ?? '';
      // Without a reply address a message is never sent again.
      if (reply === '') return false;
      const again = taken.has(reply);
      taken.set(reply, true);
      return again;
    },
    async during(message, work) {
      let timer: NodeJS.Timeout;
      const sign = (): void => {
        const said = headers();
        said.set(WORKING, '1');
        message.respond('', { headers: said });
        timer = setTimeout(sign, SIGN_MS.next);
      };
      timer = setTimeout(sign, SIGN_MS.first);
      try {
        await work;
      } finally {
        clearTimeout(timer);
      }
    },
  };
}
