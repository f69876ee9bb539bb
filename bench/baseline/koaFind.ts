/**
 * The least that look-ups from MongoDB take: a Koa server with a router that finds one document by its id.
 * `MONGODB_URL`, `COLLECTION`.
 */
import Router from '@koa/router';
import Koa from 'koa';
import { MongoClient } from 'mongodb';
import { serve } from '../support/serve.js';

const client = new MongoClient(process.env['MONGODB_URL'] ?? '');
const gifts = client.db().collection<{ readonly _id: string }>(process.env['COLLECTION'] ?? '');

const router = new Router();
router.get('/api/v2/gifts/:giftId', async (ctx) => {
  const found = await gifts.findOne({ _id: ctx.params['giftId'] as string });
  ctx.status = found === null ? 404 : 200;
  ctx.body = { data: found };
});
const app = new Koa();
app.use(router.routes());
await client.connect();
serve(app, () => client.close());
