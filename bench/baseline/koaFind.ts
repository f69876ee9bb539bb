/**
 * The least that a look-up from MongoDB takes: a Koa server with a router that finds one document by its id. With
 * `EVENTSTORE_URL` each look-up reads the log's last event meanwhile, without which it can't know whether the document
 * shows all that was appended before; simultaneous look-ups could share that. `MONGODB_URL`, `COLLECTION`.
 */
import { BACKWARDS, END, EventStoreDBClient } from '@eventstore/db-client';
import Router from '@koa/router';
import Koa from 'koa';
import { MongoClient } from 'mongodb';
import { serve } from '../support/serve.js';

const client = new MongoClient(process.env['MONGODB_URL'] ?? '');
const eventStoreUrl = process.env['EVENTSTORE_URL'];
const events = eventStoreUrl === undefined ? undefined : EventStoreDBClient.connectionString(eventStoreUrl);
const gifts = client.db().collection<{ readonly _id: string }>(process.env['COLLECTION'] ?? '');

const router = new Router();
router.get('/api/v2/gifts/:giftId', async (ctx) => {
  const [found, end] = await Promise.all([gifts.findOne({ _id: ctx.params['giftId'] as string }), logEnd()]);
  ctx.status = found === null ? 404 : 200;
  ctx.body = { data: found, end };
});

async function logEnd(): Promise<string | undefined> {
  if (events === undefined) return undefined;
  let end: string | undefined;
  for await (const { event } of events.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1 }))
    end = event?.position.commit.toString();
  return end;
}

const app = new Koa();
app.use(router.routes());
await client.connect();
serve(app, () => Promise.all([client.close(), events?.dispose()]));
