/**
 * Subscriptions that last. The client drops a subscription that the server's permissions refuse, also one that was
 * served before, and never makes it again: without this, a change of permissions that is taken back would leave the
 * process deaf until it is started again.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { NatsConnection, Subscription, SubscriptionOptions } from 'nats';

/** Milliseconds after which a refused subscription is made again. */
const AGAIN_MS = 1_000;

export interface LastingSubscription {
  readonly subject: string;
  refused(): boolean;
  end(): void;
}

export interface Subscriptions {
  add(subject: string, options: SubscriptionOptions): LastingSubscription;
  /** Notes that the server refuses a subject. @returns whether that was not known */
  refuse(subject: string): boolean;
  /** A subject that the server refuses at present. */
  refused(): string | undefined;
  end(): void;
}

interface Entry {
  readonly subject: string;
  readonly options: SubscriptionOptions;
  subscription: Subscription;
  refused: boolean;
  refusals: number;
}

/** @param online whether the server is reachable */
export function openSubscriptions(connection: NatsConnection, online: () => boolean): Subscriptions {
  const entries = new Set<Entry>();
  let timer: NodeJS.Timeout | undefined;

  const refusedNow = (): Entry | undefined => [...entries].find(({ refused }) => refused);

  function unsubscribe({ subscription }: Entry): void {
    if (!subscription.isClosed() && !connection.isClosed()) subscription.unsubscribe();
  }

  /** A refusal comes before the server's answer to the flush, and is passed on within the turn. */
  async function renew(): Promise<void> {
    const again = [...entries].filter(({ refused }) => refused).map((entry) => [entry, entry.refusals] as const);
    for (const [entry] of again) {
      // The server has dropped it, though the client may still hold it.
      unsubscribe(entry);
      entry.subscription = connection.subscribe(entry.subject, entry.options);
    }
    await connection.flush();
    await nextTurn();
    for (const [entry, refusals] of again) entry.refused = entry.refusals !== refusals;
  }

  function renewLater(): void {
    timer ??= setTimeout(() => {
      // A failure is one of the connection: the entries stay refused, and are tried again.
      const renewed = online() ? renew().catch(() => undefined) : Promise.resolve();
      void renewed.then(() => {
        timer = undefined;
        if (refusedNow() !== undefined) renewLater();
      });
    }, AGAIN_MS).unref();
  }

  return {
    add(subject, options) {
      const subscription = connection.subscribe(subject, options);
      const entry: Entry = { subject, options, subscription, refused: false, refusals: 0 };
      entries.add(entry);
      return {
        subject,
        refused: () => entry.refused || entry.subscription.isClosed(),
        end() {
          if (entries.delete(entry)) unsubscribe(entry);
        },
      };
    },
    refuse(subject) {
      let isNew = true;
      for (const entry of entries) {
        if (entry.subject !== subject) continue;
        isNew &&= !entry.refused;
        entry.refused = true;
        entry.refusals += 1;
        renewLater();
      }
      return isNew;
    },
    refused: () => refusedNow()?.subject,
    end() {
      for (const entry of entries) unsubscribe(entry);
      entries.clear();
    },
  };
}
