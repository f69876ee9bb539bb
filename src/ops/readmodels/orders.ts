/** Requests maintenance of read models, and records the start and the end of a request in the log. */
import type { Logger } from 'pino';
import { within } from '../../lib/async/within.js';
import type { StartedOperation } from '../../commands/recordAccess.js';
import type { ReadStore, Records } from '../../ports/readStore.js';
import { type Requested, maintenance, MaintenanceRefusedError, type Order } from '../../runtime/readmodels/index.js';

/** End of work: the number of records that it shows, and whether it is complete; `undefined`: it goes on elsewhere. */
type Ending = readonly [shown: number, complete: boolean] | undefined;

/** Runs work whose start is recorded, and records its end unless it goes on elsewhere. */
export async function recordedWork<T>(
  record: StartedOperation,
  work: () => Promise<T>,
  ending: (result: T) => Ending,
): Promise<T> {
  let result: T;
  try {
    result = await work();
  } catch (error) {
    // Where the end can't be recorded, a record without an end shows the failure, too.
    await record.end(0, null, false).catch(() => undefined);
    throw error;
  }
  const end = ending(result);
  if (end !== undefined) await record.end(end[0], null, end[1]);
  return result;
}

/**
 * The request of a repair. `found`: of the documents that the last verification found to differ.
 * @throws MaintenanceRefusedError where it found none
 */
export async function repairRequest(
  records: Records,
  name: string,
  chosen: readonly string[] | 'found',
): Promise<Order<'repair'>['request']> {
  if (chosen !== 'found') return { ids: chosen };
  const ids = await maintenance.lastFindings(records, name);
  if (ids.length > 0) return { ids, found: true };
  throw new MaintenanceRefusedError(
    `the last verification of ${name} found nothing, or none was made in the last week`,
    { remedy: 'verify' },
  );
}

/** Number of records that an order's result shows. */
export function shownBy({ result }: Order): number {
  if (result === null) return 0;
  if ('found' in result) return result.found.length;
  return 'documents' in result ? result.documents.length : result.length;
}

/** Orders of callers that wait a short time for the end, and come back later. */
export class AwaitedOrders {
  readonly #store: ReadStore;
  readonly #logger: Logger;
  readonly #poll: () => void;
  readonly #closing = new AbortController();
  readonly #watched = new Set<Promise<unknown>>();

  /** @param poll has a projector of this process look for requests at once */
  constructor(store: ReadStore, logger: Logger, poll: () => void) {
    this.#store = store;
    this.#logger = logger;
    this.#poll = poll;
  }

  /**
   * Places an order. `operation`: its recorded start, whose end is recorded once the order has ended.
   * @returns the order after `waitMs` at most
   * @throws MaintenanceRefusedError; what the order failed of within that time; UnavailableError
   */
  async place<K extends Order['kind']>(
    {
      kind,
      projection,
      requested,
      waitMs,
    }: { readonly kind: K; readonly projection: string; readonly requested: Requested; readonly waitMs: number },
    request: () => Promise<Order<K>['request']>,
    operation?: StartedOperation,
  ): Promise<Order<K>> {
    const { records } = this.#store;
    let placed: Order<K> | undefined;
    const watch = async (): Promise<Order<K>> => {
      placed = await maintenance.place(records, kind, projection, await request(), requested);
      this.#poll();
      const order = await maintenance.after(records, placed, this.#closing.signal);
      if (order.state === 'failed') throw maintenance.failureOf(order);
      return order;
    };
    const ending = (order: Order<K>): Ending =>
      order.state === 'running' ? undefined : [shownBy(order), order.state === 'done'];
    const ended = operation === undefined ? watch() : recordedWork(operation, watch, ending);
    const watching = ended
      .catch((error: unknown) => this.#logger.info({ err: error, task: kind, projection }, 'a task failed'))
      .finally(() => this.#watched.delete(watching));
    this.#watched.add(watching);
    return within(ended, waitMs, async () => (placed === undefined ? ended : maintenance.now(records, placed)));
  }

  /** Requests the end of a rebuild. @returns the number of its build. @throws MaintenanceRefusedError */
  async abort(name: string): Promise<number> {
    const target = await maintenance.abort(this.#store, name);
    this.#poll();
    return target;
  }

  /** Orders in progress go on, and their ends are not recorded. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#watched);
  }
}
