/** After an erasure and a restart nothing of a person is in the memory of the service, its logs and its traces. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { byteSearch } from '../../src/lib/files/byteSearch.js';
import { eventually } from '../support/assertions/until.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { openCollector } from '../support/providers/collector.js';
import { gift } from '../support/service/cli.js';
import { SID } from '../support/service/erasures.js';
import { purchaseOf } from '../support/service/giftFlow.js';
import { memoryCanBeRead, searchMemory } from '../support/service/processMemory.js';
import {
  type Asking,
  type Json,
  type Reply,
  request,
  startProcess,
  untilReady,
  userTokenOf,
} from '../support/service/service.js';

const test = suite<{ dir: string }>('memory after an erasure');
test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-memory-'));
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true, force: true }));

const PERSON = {
  id: 'zoe',
  username: 'zoe-remembered@test.example',
  password: 'zoe-password',
  name: 'Name-that-is-remembered',
  phone_number: '+447700900163',
  device_tokens: ['device-that-is-remembered'],
};
const CUSTOMER = 'cus-that-is-remembered';
const MESSAGE = 'message-that-is-remembered';
const REASON = 'reason-that-is-remembered';
const VALUES = ['oe-remembered', PERSON.name, '7700900163', 'device-that-is', CUSTOMER, MESSAGE, REASON];

const looked = await memoryCanBeRead();
const remembers = looked ? test : test.skip;
if (!looked) console.log('skipped: memory after an erasure: this system shows no memory of processes');

remembers(
  'nothing of a person is in memory, logs and traces once they are erased and the process is new',
  async ({ dir }) => {
    const collector = await openCollector();
    const file = join(dir, 'file.json');
    const users = [...(CATALOGUE.users as readonly object[]), ...SID.users, PERSON];
    const methods = [
      ...((CATALOGUE as Json).payment_methods as readonly object[]),
      { reference: 'pm_zoe', kind: 'card', users: ['zoe'], customer: CUSTOMER },
    ];
    writeFileSync(file, JSON.stringify({ ...CATALOGUE, users, payment_methods: methods }));
    const env = {
      DATA_DIR: join(dir, 'data'),
      PORT: '0',
      LOG_LEVEL: 'debug',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    };
    const imported = await gift({ DATA_DIR: env.DATA_DIR }, ['import', file]);
    assert.equal(imported.code, 0, imported.err);
    rmSync(file);
    const search = byteSearch(VALUES.map((value) => [value]));
    const valuesIn = (found: ReadonlySet<number>): string[] => [...found].map((index) => VALUES[index] ?? '');
    const requested = async (
      url: string,
      user: string,
      method: string,
      path: string,
      asking: Asking = {},
    ): Promise<Reply> => request(`${url}${path}`, method, { token: await userTokenOf(url, user), ...asking });

    const before = await startProcess(env);
    const lines: string[] = [];
    let bought = '';
    try {
      const url = before.url ?? '';
      await untilReady(url);
      const body = purchaseOf('latte', [{ phone_number: PERSON.phone_number }], { message: MESSAGE });
      const purchase = await requested(url, 'ann', 'POST', '/api/v2/transactions', { body, key: 'remembered' });
      assert.equal(purchase.status, 201, purchase.text);
      bought = (purchase.json['data']['gifts'] as string[])[0] ?? '';
      await eventually(async () => {
        const { json } = await requested(url, 'ann', 'GET', `/api/v2/gifts/${bought}?embed[]=message`);
        return json['data']?.['gift_status'] === 'sent';
      });
      const blocked = await requested(url, 'sue', 'POST', `/ops/gifts/${bought}/block`, { body: { reason: REASON } });
      assert.equal(blocked.status, 200, blocked.text);
      const query = `phone_number=${encodeURIComponent(PERSON.phone_number)}&reason=${REASON}`;
      assert.equal((await requested(url, 'sue', 'GET', `/ops/people?${query}`)).status, 200);
      assert.notEqual(
        valuesIn(await searchMemory(before.child.pid ?? 0, search)).length,
        0,
        'the search finds what is there',
      );
      for (const [user, step, status] of [
        ['sue', '', 202],
        ['sid', '/approve', 200],
      ] as const) {
        const reply = await requested(url, user, 'POST', `/ops/people/zoe/erasure${step}`, {
          body: { reason: 'asked for it' },
        });
        assert.equal(reply.status, status, reply.text);
      }
    } finally {
      await before.end();
      lines.push(...before.lines);
    }

    const after = await startProcess(env);
    try {
      const url = after.url ?? '';
      await untilReady(url);
      for (const path of ['', `/${bought}?embed[]=message`])
        assert.equal((await requested(url, 'ann', 'GET', `/api/v2/gifts${path}`)).status, 200);
      const kept = await requested(url, 'sue', 'GET', '/ops/people/zoe/export?reason=a%20test');
      assert.equal(kept.status, 200, kept.text);
      assert.deepEqual(valuesIn(await searchMemory(after.child.pid ?? 0, search)), []);
    } finally {
      await after.end();
      lines.push(...after.lines);
      await collector.close();
    }
    for (const line of lines) assert.deepEqual(search.in(Buffer.from(line)), [], line);
    assert.notEqual(collector.spans.length, 0);
    assert.deepEqual(search.in(Buffer.from(collector.text)), []);
  },
);

test.run();
