/**
 * The least that a decision on EventStoreDB takes: a Koa server with a router that reads a stream of one event with the
 * bare client, and appends a second one at the expected revision. And the least that an append over HTTP takes: one
 * that begins a stream. `EVENTSTORE_URL`.
 */
import { EventStoreDBClient, NO_STREAM } from '@eventstore/db-client';
import Router from '@koa/router';
import Koa from 'koa';
import { benchEvent, benchStream } from '../support/rawEvents.js';
import { serve } from '../support/serve.js';

const events = EventStoreDBClient.connectionString(process.env['EVENTSTORE_URL'] ?? '');

const router = new Router();
router.post('/decisions/:id', async (ctx) => {
  const stream = benchStream(ctx.params['id'] as string);
  let revision: bigint | undefined;
  for await (const { event } of events.readStream(stream)) revision = event?.revision;
  if (revision === undefined) throw new Error(`nothing is in ${stream}`);
  await events.appendToStream(stream, benchEvent(), { expectedRevision: revision });
  ctx.status = 201;
  ctx.body = { data: { stream } };
});
router.post('/appends/:id', async (ctx) => {
  const id = ctx.params['id'] as string;
  const stream = benchStream(id);
  await events.appendToStream(stream, benchEvent(id), { expectedRevision: NO_STREAM });
  ctx.status = 201;
  ctx.body = { data: { stream } };
});
const app = new Koa();
app.use(router.routes());
serve(app, () => events.dispose());
