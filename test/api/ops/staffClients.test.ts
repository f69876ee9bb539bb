/** Through which clients staff have their roles, and on which port `/ops` is answered (docs/support.md#ops-roles). */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { eventually } from '../../support/assertions/until.js';
import { freePort } from '../../support/engines/serverProcess.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { request, type Service, startService } from '../../support/service/service.js';

const test = suite('clients of staff, and a port for /ops');
let service: Service;
let ops: string;

test.before(async () => {
  const port = await freePort();
  ops = `http://127.0.0.1:${port}`;
  service = await startService({ env: { OPS_PORT: String(port) } });
  await service.import({
    clients: [
      ...CATALOGUE.clients,
      { id: 'shop', name: 'Shop', secret: 'shop-secret', staff: false },
      { id: 'desk', name: 'Desk', secret: 'desk-secret', staff: true },
    ],
  });
});
test.after(() => service.close());

const STAFF = { sue: '/ops/parked', aud: '/ops/access?from=2026-03-01&to=2026-03-01' } as const;

test('gives staff their roles through clients that say so or nothing, and through no other', async () => {
  for (const [user, path] of Object.entries(STAFF))
    for (const [client, status, count] of [
      ['app', 200, 1],
      ['desk', 200, 1],
      ['shop', 403, 0],
    ] as const) {
      const token = await service.userToken(user, client);
      assert.equal((await request(ops + path, 'GET', { token })).status, status, `${user} through ${client}`);
      const me = await service.ask('GET', '/api/v2/me', { token });
      assert.deepEqual([me.status, me.json.data.roles.length], [200, count]);
    }
});

test('serves the console, and its sign-in, on the port of /ops alone', async () => {
  await service.import({ clients: [{ id: 'console', name: 'Console', secret: 'console-secret', staff: true }] });
  assert.equal((await request(`${ops}/console`, 'GET')).status, 200);
  const body = { username: 'sue@test.example', password: 'sue-password' };
  const reply = await eventually(async () => {
    const tried = await request(`${ops}/console/session/start`, 'POST', { body });
    return tried.status === 409 ? undefined : tried;
  });
  const { access_token } = reply.json.data;
  assert.equal((await request(`${ops}/ops/parked`, 'GET', { token: access_token })).status, 200);
  assert.equal((await service.ask('POST', '/console/session/start', { body })).status, 404);
});

test('answers /ops and its description on a port of its own alone, and nothing else there', async () => {
  const token = await service.userToken('sue', 'desk');
  for (const path of ['/ops/parked', '/ops/projections', '/ops/nothing', '/console', '/console/console.js']) {
    const reply = await service.ask('GET', path, { token });
    assert.deepEqual([reply.status, reply.json], [404, { error: 'Not found.' }], path);
  }
  for (const path of ['/api/v2/me', '/oauth/token', '/healthz', '/metrics'])
    assert.equal((await request(ops + path, 'GET', { token })).status, 404, path);
  const pathsOf = async (url: string): Promise<readonly string[]> => {
    const { servers, paths } = (await request(`${url}/openapi.json`, 'GET')).json;
    const at = [servers as { url: string }[]].flat().map((server) => new URL(server.url, url).href);
    assert.deepEqual(at, [`${url}/`]);
    return Object.keys(paths as object);
  };
  const { servers: onOps } = (await request(`${ops}/openapi.json`, 'GET')).json;
  assert.deepEqual(onOps, [{ url: '/' }], 'by whatever address the port is reached');
  assert.ok((await pathsOf(ops)).every((path) => /^\/(ops|console)\//.test(path)));
  assert.ok((await pathsOf(service.url)).every((path) => !path.startsWith('/ops/')));
});

test.run();
