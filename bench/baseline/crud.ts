/**
 * Redeeming as an ordinary CRUD service does it: one table, one UPDATE a request, committed to disk before 201 (WAL,
 * synchronous=FULL). No tokens, no events, no history. `DATABASE` is its file, `GIFTS` a file with the ids of its
 * gifts, one a line.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import Router from '@koa/router';
import Koa from 'koa';
import bodyParser from 'koa-bodyparser';
import { Sqlite } from '../../src/adapters/embedded/driver.js';
import { serve } from '../support/serve.js';

const database = new Sqlite(process.env['DATABASE'] ?? '');
database.pragma('journal_mode = WAL');
database.pragma('synchronous = FULL');
database.exec(
  'CREATE TABLE gifts (id TEXT PRIMARY KEY, redeemed INTEGER NOT NULL DEFAULT 0, redemption_id TEXT, location_id TEXT, redeemed_at TEXT)',
);
database.transaction(() => {
  const insert = database.prepare('INSERT INTO gifts (id) VALUES (?)');
  for (const id of readFileSync(process.env['GIFTS'] ?? '', 'utf8').split('\n')) insert.run(id);
})();
const redeem = database.prepare(
  'UPDATE gifts SET redeemed = 1, redemption_id = ?, location_id = ?, redeemed_at = ? WHERE id = ? AND redeemed = 0',
);
const find = database.prepare('SELECT redeemed FROM gifts WHERE id = ?');

const router = new Router();
router.post('/api/v2/gifts/:id/redemptions', (ctx) => {
  const { location_id } = ctx.request.body as { location_id?: unknown };
  const { id } = ctx.params as { id: string };
  if (typeof location_id !== 'string') {
    ctx.status = 422;
    ctx.body = { error: 'location_id is required' };
    return;
  }
  const now = new Date().toISOString();
  const redemption = randomUUID();
  if (redeem.run(redemption, location_id, now, id).changes === 1) {
    ctx.status = 201;
    ctx.body = {
      data: { id: redemption, gift_id: id, redeemed: true, creation_at: now, updated_at: now, location_id },
    };
    return;
  }
  const known = find.get(id) !== undefined;
  ctx.status = known ? 405 : 404;
  ctx.body = { error: known ? 'gift already redeemed.' : 'gift not found' };
});
const app = new Koa();
app.use(bodyParser());
app.use(router.routes());
serve(app, () => database.close());
