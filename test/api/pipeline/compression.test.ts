import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { suite } from 'uvu';
import { compressedStream } from '../../../src/api/pipeline/compression.js';
import { eventually } from '../../support/assertions/until.js';
import { type Service, startService } from '../../support/service/service.js';

const MANY = 400;
/** Long enough to be streamed. */
const LIST = '/api/v2/products';
/** Sent at once. */
const CATEGORY = '/api/v2/product-tags/categories/large';
const SMALL = '/api/v2/products/p1';

const test = suite('compression');
let service: Service;

test.before(async () => {
  service = await startService();
  const ids = Array.from({ length: MANY }, (_, at) => `p${at}`);
  await service.import({
    products: ids.map((id) => ({ id, brand_id: 'bean', name: `Café ${id}`, sale_price: 100 })),
    categories: [{ id: 'large', name: 'Large', products: ids }],
  });
  await eventually(async () => {
    const reply = await service.ask('GET', CATEGORY, { token: await service.clientToken() });
    return reply.status === 200 && reply.json.data.products.length === MANY ? true : undefined;
  });
});
test.after(() => service.close());

/** Without what `fetch` asks for by itself. */
async function raw(
  path: string,
  encoding: string | undefined,
  { method = 'GET', token }: { method?: string; token?: string } = {},
): Promise<{ head: IncomingMessage; bytes: Buffer }> {
  const sent = request(service.url + path, {
    method,
    agent: false,
    headers: {
      authorization: `Bearer ${token ?? (await service.clientToken())}`,
      ...(encoding === undefined ? {} : { 'accept-encoding': encoding }),
    },
  }).end();
  const [head] = (await once(sent, 'response')) as [IncomingMessage];
  return { head, bytes: await buffer(head) };
}

const PLAIN = { br: brotliDecompressSync, gzip: gunzipSync };

test('compresses large answers of the catalogue and the description where asked for', async () => {
  for (const path of [LIST, CATEGORY, '/openapi.json', '/docs/swagger-ui.css']) {
    const plain = await raw(path, undefined);
    assert.equal(plain.head.headers['content-encoding'], undefined);
    assert.match(plain.head.headers.vary ?? '', /Accept-Encoding/);
    for (const [requested, coding] of [
      ['gzip', 'gzip'],
      ['br', 'br'],
      ['br;q=0.5, gzip;q=0.1', 'br'],
    ] as const) {
      const { head, bytes } = await raw(path, requested);
      assert.deepEqual([head.statusCode, head.headers['content-encoding']], [200, coding], `${path} ${requested}`);
      assert.equal(Number(head.headers['content-length'] ?? bytes.length), bytes.length);
      assert.ok(bytes.length < plain.bytes.length / 2, path);
      assert.ok(PLAIN[coding](bytes).equals(plain.bytes), path);
      assert.equal(head.headers.etag, plain.head.headers.etag);
      assert.match(head.headers.vary ?? '', /Accept-Encoding/);
    }
  }
});

test('sends small answers as they are, and all where no known coding is asked for', async () => {
  for (const [path, requested] of [
    [SMALL, 'gzip'],
    [LIST, 'identity'],
    [CATEGORY, 'gzip;q=0, deflate'],
  ] as const) {
    const { head, bytes } = await raw(path, requested);
    assert.deepEqual([head.statusCode, head.headers['content-encoding']], [200, undefined], requested);
    JSON.parse(bytes.toString());
    assert.match(head.headers.vary ?? '', /Accept-Encoding/);
  }
  const { head, bytes } = await raw(LIST, 'gzip', { method: 'HEAD' });
  assert.deepEqual([head.statusCode, head.headers['content-encoding'], bytes.length], [200, undefined, 0]);
});

test('compresses no answer for a single user', async () => {
  const token = await service.userToken('ann');
  for (const path of ['/api/v2/me', '/api/v2/gifts', '/api/v2/events?limit=500']) {
    const { head } = await raw(path, 'gzip, br', { token });
    assert.deepEqual(
      [head.statusCode, head.headers['content-encoding'], head.headers.vary],
      [200, undefined, undefined],
      path,
    );
  }
});

test('passes an error of a streamed answer on, and a caller that leaves', async () => {
  const failing = new Readable({ read: () => undefined });
  const coded = compressedStream(failing, 'gzip');
  const failed = once(coded, 'error');
  failing.destroy(new Error('the store is away'));
  assert.equal(((await failed) as Error[])[0]?.message, 'the store is away');

  const left = new Readable({ read: () => undefined });
  const closed = new Promise((resolve) => left.once('close', resolve));
  compressedStream(left, 'br').destroy();
  await closed;
  assert.ok(left.destroyed);
});

test.run();
