import type { Logger } from 'pino';
import type { Bus } from '../../ports/bus.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { RetryPolicy } from './retry.js';
import type { Writer } from './writing.js';

export interface StepDeps {
  readonly events: EventStore;
  readonly bus: Bus;
  readonly logger: Logger;
  /** Present time, milliseconds since the epoch. */
  readonly now: () => number;
  readonly retryPolicy: RetryPolicy;
  readonly writer: Writer;
  /** Throws once this process may no longer act. */
  readonly mayAct: () => void;
  /** Starts the next attempt of the job with this key without a pause, also where the present one fails only later. */
  readonly wake: (key: string) => void;
}
