import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { Waiting } from '../../src/deliveries/backlog.js';
import { type EndpointOverview, endpointsOverview } from '../../src/deliveries/overview.js';
import { firstProgress, type Progress, progressRecord } from '../../src/deliveries/progress.js';
import type { EndpointDocument } from '../../src/projections/webhookEndpoints.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import type { Subjects } from '../../src/runtime/personal/index.js';
import { memoryRecords } from '../support/engines/memoryRecords.js';

const test = suite('deliveries/overview');

const LOG = 'log';
const CREATED = '2026-05-04T12:00:00.000Z';

const endpoint = (id: string, changed: Partial<EndpointDocument> = {}): EndpointDocument => ({
  endpoint_id: id,
  url: 'https://hooks.example',
  types: null,
  description: null,
  owner: 'client:app',
  state: 'enabled',
  created_at: CREATED,
  secrets: [],
  from: '1',
  enabled_at: CREATED,
  ...changed,
});
const waiting = (position: string, at: string, tries: number): Waiting => ({ position, key: position, at, tries });

async function overview(
  documents: readonly EndpointDocument[],
  stored: Readonly<Record<string, Partial<Progress>>> = {},
  subjects: Pick<Subjects, 'secrets'> = { secrets: async () => new Map() },
): Promise<EndpointOverview[]> {
  const records = memoryRecords(Date.now);
  for (const [id, progress] of Object.entries(stored))
    await records.put(progressRecord(id), { ...firstProgress(endpoint(id), LOG), ...progress });
  const found = documents.map((body) => ({ id: body.endpoint_id, position: '1', body }));
  return endpointsOverview({ endpoints: { find: async () => found }, records, subjects, logId: LOG });
}

test('tells the oldest event that waits untried and that failed, and whether the endpoint fails', async () => {
  const [one] = await overview([endpoint('a')], {
    a: {
      failures: 5,
      waiting: [
        waiting('4', '2026-05-04T12:04:00.000Z', 0),
        waiting('3', '2026-05-04T12:03:00.000Z', 0),
        waiting('2', '2026-05-04T12:02:00.000Z', 3),
      ],
    },
  });
  assert.deepEqual(one, {
    endpoint_id: 'a',
    owner: 'client:app',
    secretLost: false,
    failing: true,
    failures: 5,
    waiting: 3,
    oldest: { untried: '2026-05-04T12:03:00.000Z', failed: '2026-05-04T12:02:00.000Z' },
  });
});

test('shows a new endpoint, and one whose progress is of another log, as working', async () => {
  const shown = await overview([endpoint('a'), endpoint('b')], { b: { logId: 'other', failures: 9 } });
  for (const { failing, failures, oldest } of shown) assert.deepEqual([failing, failures, oldest], [false, 0, {}]);
  assert.equal(shown.length, 2);
});

test('tells of an endpoint whose present secret the key store lacks, not where it does not answer', async () => {
  const secrets = [{ id: 'new' }, { id: 'old', until: CREATED }];
  const lost = async (found: Subjects['secrets']): Promise<boolean | undefined> =>
    (await overview([endpoint('a', { secrets })], {}, { secrets: found }))[0]?.secretLost;
  assert.equal(await lost(async () => new Map([['new', Buffer.of(1)]])), false);
  assert.equal(await lost(async () => new Map([['old', Buffer.of(1)]])), true);
  const away = async (): Promise<never> => {
    throw new UnavailableError('the key store is away');
  };
  assert.equal(await lost(away), false);
});

test('tells who disabled an endpoint, unless its owner did', async () => {
  const at = '2026-05-05T12:00:00.000Z';
  const disabled = (id: string, by: 'owner' | 'failures'): EndpointDocument =>
    endpoint(id, { state: 'disabled', disabled_by: by, disabled_at: at });
  const shown = await overview([disabled('a', 'owner'), disabled('b', 'failures')]);
  assert.deepEqual(
    shown.map(({ endpoint_id: id, disabled: of }) => [id, of]),
    [['b', { by: 'failures', at }]],
  );
});

test.run();
