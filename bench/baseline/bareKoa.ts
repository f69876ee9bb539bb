/** The least that a Koa server can do: a router, and a constant sent as JSON. `BYTES` is the size of the answer. */
import Router from '@koa/router';
import Koa from 'koa';
import { serve } from '../support/serve.js';

const bytes = Number(process.env['BYTES']);
const frame = JSON.stringify({ data: { text: '' } });
const body = frame.replace('""', `"${'x'.repeat(Math.max(0, bytes - frame.length))}"`);

const router = new Router();
router.get('/api/v2/gifts/:giftId', (ctx) => {
  ctx.type = 'application/json';
  ctx.body = body;
});
const app = new Koa();
app.use(router.routes());
serve(app);
