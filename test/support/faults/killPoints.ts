/** Loops over every moment at which something can die, many at once: each in a part of the house of its own. */
import * as assert from 'uvu/assert';
import type { Bus } from '../../../src/ports/bus.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import type { Records } from '../../../src/ports/readStore.js';
import type { TestInstallation } from '../service/installation.js';

/** Records of one part alone, among those that all share. */
export function recordsOf(shared: Records, part: string): Records {
  const key = (own: string): string => `${part}/${own}`;
  return {
    get: (own) => shared.get(key(own)),
    put: (own, ...rest) => shared.put(key(own), ...rest),
    delete: (own, ...rest) => shared.delete(key(own), ...rest),
    list: async (prefix) =>
      (await shared.list<never>(key(prefix))).map((one) => ({ ...one, key: one.key.slice(key('').length) })),
  };
}

/**
 * A part of the house: its own process managers, with a lease of their own, alone see what is bought in it.
 * `ownWorkers`: they ask only its own workers.
 */
export function partOf(
  installation: TestInstallation,
  name: string,
  { ownWorkers = false }: { readonly ownWorkers?: boolean } = {},
): TestInstallation {
  const { events: all, records: shared } = installation.deps;
  const events: EventStore = {
    ...all,
    async *follow(...args) {
      for await (const batch of all.follow(...args))
        yield { ...batch, events: batch.events.filter(({ metadata }) => metadata.correlationId === name) };
    },
  };
  const records = recordsOf(shared, name);
  const bus: Bus = !ownWorkers
    ? installation.bus
    : {
        ...installation.bus,
        request: (subject, ...rest) => installation.bus.request(`${subject}.${name}`, ...rest),
        serve: (subject, ...rest) => installation.bus.serve(`${subject}.${name}`, ...rest),
      };
  const own = { events, records, bus };
  return {
    ...installation,
    correlationId: name,
    deps: { ...installation.deps, ...own },
    process: (replaced) => installation.process({ ...own, ...replaced }),
    work: (providers) => installation.work({ bus, ...providers }),
    buy: (receivers, options) => installation.buy(receivers, { ...options, correlationId: name }),
    append: (stream, type, data, at) => installation.append(stream, type, data, at, name),
  };
}

/** Tried side by side. */
const AT_ONCE = 8;
const MANY = 200;

/**
 * Kills it at the first moment, the second, and so on, until it ends alive. `dieAt`: runs the whole in `part`, and
 * tells whether something died at the `at`th moment. @returns the number of moments
 */
export async function everyKillPoint(
  installation: TestInstallation,
  dieAt: (part: TestInstallation, at: number) => Promise<boolean>,
): Promise<number> {
  for (let first = 1; first < MANY; first += AT_ONCE) {
    const died = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, n) => dieAt(partOf(installation, `part-${first + n}`), first + n)),
    );
    const alive = died.indexOf(false);
    if (alive >= 0) return first - 1 + alive;
  }
  assert.unreachable(`it still dies after ${MANY} moments`);
  return MANY;
}
