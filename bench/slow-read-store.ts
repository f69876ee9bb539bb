/**
 * What others notice of a purchase of 10,000 receivers on a slow read store. They buy, look up, redeem and look up again,
 * and are refused a product that is not sold, while the bulk is folded ahead of all that they do. The projector is a
 * process of its own whose writes take `--document-ms` for each document; the rest is the service as it is shipped.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { pino } from 'pino';
import { openEmbeddedReadStore } from '../src/adapters/embedded/readStore/readStore.js';
import { giftsProjection } from '../src/projections/gifts.js';
import { checkpointName } from '../src/runtime/readmodels/projection.js';
import { startApp } from '../src/service/app.js';
import { loadConfig } from '../src/service/config.js';
import { buyer, importCatalogue, scratch, tokensOf } from './support/data.js';
import { table, verdict } from './support/report.js';
import { startService } from './support/server.js';

const { values } = parseArgs({
  options: {
    'document-ms': { type: 'string', default: '0.5' },
    clients: { type: 'string', default: '12' },
    projector: { type: 'string' },
  },
});
const DOCUMENT_MS = Number(values['document-ms']);
const RECEIVERS = 10_000;
/** Between two requests of one client. */
const PAUSE_MS = 100;
/** How long others are watched before the bulk. */
const BEFORE_MS = 10_000;
/** How long at most after it. */
const MOST_MS = 300_000;

/** The slowed projector, in a process of its own. */
async function project(dir: string): Promise<void> {
  const config = loadConfig({ DATA_DIR: dir, ROLES: 'projector', LOG_LEVEL: 'silent', HEALTH_PORT: '0' });
  const app = await startApp(config, pino({ level: 'silent' }), {
    through: (engines) => ({
      ...engines,
      store: {
        ...engines.store,
        async write(batches) {
          const documents = batches.reduce((sum, batch) => sum + batch.documents.length, 0);
          await wait(documents * DOCUMENT_MS);
          await engines.store.write(batches);
        },
      },
    }),
  });
  await once(process, 'SIGTERM');
  await app.close();
}

interface Body {
  readonly data?: { readonly id?: string; readonly gifts?: readonly string[]; readonly redeemed_id?: string };
}

interface Requested {
  readonly what: string;
  readonly ms: number;
  readonly status: number;
  readonly atBulk: boolean;
}

async function bench(): Promise<void> {
  const dir = scratch('slow-read-store');
  importCatalogue(dir);
  const projector = spawn(
    process.execPath,
    ['--enable-source-maps', fileURLToPath(import.meta.url), `--projector=${dir}`, `--document-ms=${DOCUMENT_MS}`],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  );
  process.once('exit', () => projector.kill('SIGKILL'));
  const service = await startService(dir, { roles: 'api,worker,processor' });
  // Of the product's merchant (`support/data.ts`).
  const till = { username: 'till1', location: 's1' };
  const tokens = await tokensOf(service.url, [buyer.username, till.username]);
  const requested: Requested[] = [];
  let atBulk = false;
  let over = false;

  const ask = async (
    what: string,
    method: string,
    path: string,
    user: string,
    body?: object,
  ): Promise<{ readonly status: number; readonly json: Body; readonly position: string }> => {
    const beside = atBulk;
    const began = performance.now();
    const response = await fetch(service.url + path, {
      method,
      headers: { Authorization: `Bearer ${tokens.get(user) ?? ''}`, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    requested.push({ what, ms: performance.now() - began, status: response.status, atBulk: beside });
    await wait(PAUSE_MS);
    const position = (response.headers.get('gift-position') ?? '').replace(/^.*:/, '');
    return { status: response.status, json: JSON.parse(text) as Body, position };
  };
  const purchase = (receivers: readonly object[], product = 'p1'): object => ({
    payment: { method: 'card', reference: buyer.card },
    purchase: { type: 'gift', reference: product, receivers },
  });
  const wrong: string[] = [];
  const expect = (what: string, is: unknown, wanted: unknown): void => {
    if (is !== wanted) wrong.push(`${what}: ${String(is)}, not ${String(wanted)}`);
  };

  async function other(n: number): Promise<void> {
    while (!over) {
      const bought = await ask('buy', 'POST', '/api/v2/transactions', buyer.username, purchase([{ user_id: `u${n}` }]));
      expect('buy', bought.status, 201);
      const gift = bought.json.data?.gifts?.[0] ?? '';
      const id = bought.json.data?.id ?? '';
      const look = `/api/v2/gifts/${gift}?embed[]=message&embed[]=voucher&embed[]=redeemed&embed[]=purchase`;
      expect('look-up', (await ask('look-up', 'GET', look, buyer.username)).json.data?.id, gift);
      expect('page', (await ask('page', 'GET', `/api/v2/transactions/${id}`, buyer.username)).json.data?.id, id);
      const redemption = { location_id: till.location };
      const redeemed = await ask('redeem', 'POST', `/api/v2/gifts/${gift}/redemptions`, till.username, redemption);
      expect('redeem', redeemed.status, 201);
      const { data } = (await ask('look-up', 'GET', look, buyer.username)).json;
      expect('look-up of a redeemed gift', data?.redeemed_id, redeemed.json.data?.id);
      const refused = await ask('refusal', 'POST', '/api/v2/transactions', buyer.username, purchase([{}], 'unknown'));
      expect('refusal', refused.status, 422);
    }
  }

  const others = Array.from({ length: Number(values.clients) }, async (_, n) => other(n));
  await wait(BEFORE_MS);
  atBulk = true;
  const receivers = Array.from({ length: RECEIVERS }, (_, n) => ({ user_id: `u${n % 1_000}` }));
  const began = performance.now();
  const bulk = await ask('bulk', 'POST', '/api/v2/transactions', buyer.username, purchase(receivers));
  const store = await openEmbeddedReadStore({ dir });
  const folded = await store.reached(checkpointName(giftsProjection), bulk.position, MOST_MS);
  const behind = performance.now() - began;
  over = true;
  await Promise.all(others);
  await store.close();
  await service.stop();
  projector.kill('SIGTERM');
  await once(projector, 'exit');
  rmSync(dir, { recursive: true });

  const p99 = (all: readonly Requested[]): number =>
    all.map(({ ms }) => ms).sort((one, next) => one - next)[Math.ceil(all.length * 0.99) - 1] ?? Number.NaN;
  const rows = [...new Set(requested.map(({ what }) => what))].filter((what) => what !== 'bulk');
  const of = (what: string, beside: boolean): Requested[] =>
    requested.filter((one) => one.what === what && one.atBulk === beside);
  table(
    rows.map((what) => ({
      what,
      requests: of(what, true).length,
      'p99 ms': p99(of(what, true)),
      'p99 ms before': p99(of(what, false)),
    })),
  );
  const beside = requested.filter((one) => one.atBulk && one.what !== 'bulk');
  for (const line of new Set(wrong)) console.log(line);
  if (!folded) throw new Error('the bulk was not folded in time');
  verdict('gifts of the bulk were not folded for', behind / 1_000, { atLeast: 3 }, ' s');
  verdict('others beside the bulk, p99', p99(beside), { atMost: 300 }, ' ms');
  verdict('answers of 503', beside.filter(({ status }) => status === 503).length, { atMost: 0 });
  verdict('wrong answers', wrong.length, { atMost: 0 });
}

await (values.projector === undefined ? bench() : project(values.projector));
