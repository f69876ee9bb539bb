/** Subscriptions have their own connections, each far below its 100 calls. */
import { type Connection, openConnection } from './connection.js';
import { openVetting } from './version.js';

const SUBSCRIPTIONS = 50;

interface Lease {
  readonly connection: Connection;
  readonly release: () => void;
}

export interface Pool {
  readonly main: Connection;
  readonly lease: () => Lease;
  /** As `Vetting.expect`, for all connections. */
  readonly expect: (logId: string) => void;
  readonly close: () => Promise<void>;
}

export interface PoolOptions {
  readonly url: string;
  readonly timeoutMs: number;
  readonly onUnknownVersion: () => void;
}

export function openPool({ url, timeoutMs, onUnknownVersion }: PoolOptions): Pool {
  const vetting = openVetting(onUnknownVersion);
  const shared = { url, timeoutMs, vetting };
  const main = openConnection({ ...shared, ordinal: 0 });
  const others: { readonly connection: Connection; leases: number }[] = [];

  return {
    main,
    expect: vetting.expect,
    lease() {
      let slot = others.find(({ leases }) => leases < SUBSCRIPTIONS);
      if (slot === undefined)
        others.push((slot = { connection: openConnection({ ...shared, ordinal: others.length + 1 }), leases: 0 }));
      const { connection } = slot;
      const taken = slot;
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
