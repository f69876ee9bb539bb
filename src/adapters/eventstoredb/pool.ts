/**
 * The connections of one event store: one for appends and reads, others for subscriptions, none of them near the 100
 * calls that it can carry.
 */
import type { Connection } from './connection.js';
import { openConnection } from './connection.js';
import { openVetting } from './version.js';

/** Subscriptions of one connection. */
const SUBSCRIPTIONS = 50;

/** A connection with room for one more subscription. */
export interface Lease {
  readonly connection: Connection;
  /** The subscription has ended. */
  readonly release: () => void;
}

/** The connections. */
export interface Pool {
  readonly main: Connection;
  readonly lease: () => Lease;
  readonly close: () => Promise<void>;
}

/** Where the server is, and how it is asked for its version. */
export interface PoolOptions {
  readonly url: string;
  readonly timeoutMs: number;
  /** Told of a server that does not say its version. */
  readonly onUnknownVersion: () => void;
}

/** @throws Error (the client's) when the address can't be read. */
export function openPool({ url, timeoutMs, onUnknownVersion }: PoolOptions): Pool {
  const shared = { url, timeoutMs, vetting: openVetting(onUnknownVersion) };
  const main = openConnection({ ...shared, ordinal: 0 });
  const others: { readonly connection: Connection; leases: number }[] = [];

  return {
    main,
    lease() {
      let place = others.find(({ leases }) => leases < SUBSCRIPTIONS);
      if (place === undefined)
        others.push((place = { connection: openConnection({ ...shared, ordinal: others.length + 1 }), leases: 0 }));
      const { connection } = place;
      const taken = place;
      taken.leases += 1;
      return {
        connection,
        release() {
          taken.leases -= 1;
        },
      };
    },
    async close() {
      await Promise.all(
        [main, ...others.map(({ connection }) => connection)].map(async (connection) => connection.close()),
      );
    },
  };
}
