/** The latest signed heads, over HTTP and on the command line. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { accessStream } from '../../../src/domain/access.js';
import { eventually } from '../../support/assertions/until.js';
import { gift } from '../../support/service/cli.js';
import { refused } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';

const test = suite('api/ops/evidence');
let service: Service;

test.before(async () => {
  service = await startService({ env: { SEAL_EVERY_MS: '100', PUBLIC_URL: 'https://gifts.example/' } });
});
test.after(() => service.close());

const ask = async (user = 'aud'): Promise<Reply> =>
  service.ask('GET', '/ops/evidence', { token: await service.userToken(user) });

test('shows the published head, and earlier ones', async () => {
  const { data, published, checkpoint } = await eventually(async () => {
    const { text } = await service.ask('GET', '/checkpoint', { token: await service.userToken('aud') });
    const [, events = '', rootOf = ''] = text.split('\n');
    const { json } = await ask();
    const found = (json.data.heads as Json[]).find((head) => head.published as boolean);
    return String(found?.size) === events && { data: json.data, published: found, checkpoint: rootOf };
  });
  assert.equal(data.origin, `gifts.example/log/${service.events.logId}`);
  const { at, size, root, position, cosigned_by } = published;
  assert.equal(root, checkpoint);
  assert.ok(size > 0 && service.events.isPosition(position as string) && at <= new Date().toISOString());
  assert.deepEqual([cosigned_by, data.not_cosigned_by], [[], []]);
  const times = data.heads.map((head: Json) => head.at as string) as string[];
  assert.deepEqual(times, times.toSorted().toReversed());
});

test('is recorded, and for users with a role', async () => {
  assert.equal((await ask('sue')).status, 200);
  const records = (await service.events.read(accessStream(new Date().toISOString()))) as Json[];
  assert.ok(records.some(({ data, metadata }) => data.what === 'GET /ops/evidence' && metadata.by.user === 'sue'));
  for (const user of ['ann', 'till-coffee']) refused(await ask(user), 403, 'Forbidden.');
});

test('shows who last found the whole log as it was signed', async () => {
  assert.equal((await ask()).json.data.last_verified, null);
  const verified = await eventually(async () => {
    const { code, records } = await gift(service.settings, ['audit', 'verify', '--json']);
    return code === 0 && (records() as Json[])[0];
  });
  const { at, by, ...last } = (await ask()).json.data.last_verified;
  assert.deepEqual(last, { events: verified.events });
  assert.ok(at <= new Date().toISOString() && by.startsWith('cli:'));
  assert.match((await gift(service.settings, ['audit', 'evidence'])).out, /found\s+as\s+it\s+was\s+signed\s+at\s+\d/);
});

test('shows the same on the command line', async () => {
  const said = await gift(service.settings, ['audit', 'evidence', '--json']);
  const [shown] = said.records() as Json[];
  assert.deepEqual([said.code, shown.origin], [0, `gifts.example/log/${service.events.logId}`]);
  assert.match(
    (await gift(service.settings, ['audit', 'evidence'])).out,
    /^signed +events +root +cosigned by\n[-\s]+\n\d{4}-[\s\S]*next: gift audit verify\n$/,
  );
});

test.run();
