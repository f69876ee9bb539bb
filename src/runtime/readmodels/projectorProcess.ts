import type { Logger } from 'pino';
import type { EventStore } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';

/** A process that leads, stands by, or does maintenance on read models. */
export interface ProjectorProcess {
  readonly events: EventStore;
  readonly store: ReadStore;
  readonly logger: Logger;
  /** See `LeaseOptions.holder`. */
  readonly holder: string;
  /** Milliseconds that the lease lasts without a renewal; default `LEASE_MS`. */
  readonly leaseMs?: number | undefined;
}
