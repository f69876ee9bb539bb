import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { openEmbeddedReadStore } from '../../src/adapters/embedded/readStore/readStore.js';
import { resources } from '../../src/lib/async/resources.js';
import { openChargeOutcomes } from '../../src/commands/chargeOutcomes.js';
import { transactionStream } from '../../src/domain/purchase/events.js';
import { type Bus, NoRespondersError } from '../../src/ports/bus.js';
import { runProcessors } from '../../src/processors/managers.js';
import { giftsProjection } from '../../src/projections/gifts.js';
import { checkpointName } from '../../src/runtime/readmodels/projection.js';
import { startProjector } from '../../src/runtime/readmodels/projector.js';
import { followers } from '../../src/runtime/supervision/followers.js';
import { breakable, FEED_ERRORS } from '../support/faults/breakable.js';
import type { Promised } from '../support/engines/eventStoreEvents.js';
import { append, buy, LEASE_TEST_MS, silent } from '../support/fixtures/projecting.js';
import { DEADLINE_MS, until } from '../support/assertions/until.js';

/** Without workers: a charge is claimed and goes no further. */
const BUS = { request: () => Promise.reject(new NoRespondersError('payments.charge')) } as unknown as Bus;

/** Guarantees of every follower of this engine's log. */
export const FOLLOWER_PROMISES: Readonly<Record<string, Promised>> = {
  async 'process managers, projector and charge outcomes recover from any error of a feed'(store) {
    const dir = mkdtempSync(join(tmpdir(), 'gift-followers-'));
    const { events, breakFeeds } = breakable(store);
    const open = resources();
    const parts = followers({ logger: silent });
    try {
      const reads = open.add(await openEmbeddedReadStore({ dir }));
      const shared = { events, logger: silent, followers: parts, leaseMs: LEASE_TEST_MS };
      const outcomes = open.add(await openChargeOutcomes(events, parts));
      open.add(await startProjector({ ...shared, store: reads, projections: [giftsProjection], holder: 'p' }), (one) =>
        one.close(),
      );
      open.add(
        runProcessors({
          ...shared,
          bus: BUS,
          records: reads.records,
          launchUrl: (id) => id,
          paymentMethod: async () => ({ kind: 'card', prepaid: false, customer: null }),
          contact: async () => undefined,
          numberOf: async () => '+447700900001',
          openText: async () => '',
        }),
      );
      /** That each of the three does its work for a purchase made now. */
      const works = async (): Promise<void> => {
        const { transaction, position } = await buy(store);
        const watch = outcomes.watch(transaction);
        await until(
          async () => (await store.read(transactionStream(transaction))).some(({ type }) => type === 'ChargeStarted'),
          'process managers',
        );
        await append(store, transactionStream(transaction), 'PaymentCharged', {
          provider: 'simulated',
          provider_id: randomUUID(),
          amount: 350,
        });
        assert.ok(await watch.settled(DEADLINE_MS), 'charge outcomes');
        assert.ok(await reads.reached(checkpointName(giftsProjection), position, DEADLINE_MS), 'projector');
        watch.end();
      };
      await works();
      for (const error of FEED_ERRORS) {
        const broken = error();
        await until(() => breakFeeds(broken, 3), 'three feeds');
        await works();
      }
      await until(() => parts.health().every(({ failing }) => !failing), 'health');
      assert.equal(
        parts.health().map(({ part }) => part),
        ['charge outcomes', 'projector', 'process managers'],
      );
    } finally {
      await open.close();
      rmSync(dir, { recursive: true });
    }
  },

  async 'a follower is notified while it waits at the end of an idle log'(store) {
    const ended = new AbortController();
    const told: (Error | undefined)[] = [];
    const following = (async () => {
      for await (const _ of store.follow(
        await store.end(),
        {},
        { signal: ended.signal, onTrouble: (error) => void told.push(error) },
      ));
    })();
    await until(() => told.length > 0, 'word');
    ended.abort();
    await following;
    assert.equal(new Set(told), new Set([undefined]));
  },
};
