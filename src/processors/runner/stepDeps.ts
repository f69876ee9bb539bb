/** What every step works with. */
import type { Logger } from 'pino';
import type { Bus } from '../../ports/bus.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { RetryPolicy } from './retry.js';
import type { Writer } from './writing.js';

export interface StepDeps {
  readonly events: EventStore;
  readonly bus: Bus;
  readonly logger: Logger;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly retryPolicy: RetryPolicy;
  readonly writer: Writer;
  /** Throws when this process may not act any more. */
  readonly mayAct: () => void;
  /** Starts the next attempt of this job at once: what it waits for has come. */
  readonly wake: (key: string) => void;
}
