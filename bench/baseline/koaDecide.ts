/**
 * The least that a decision on EventStoreDB takes: a Koa server with a router that reads a stream of one event with the
 * bare client, and appends a second one at the expected revision. `EVENTSTORE_URL`.
 */
import type { AddressInfo } from 'node:net';
import { EventStoreDBClient } from '@eventstore/db-client';
import Router from '@koa/router';
import Koa from 'koa';
import { benchEvent, benchStream } from '../support/rawEvents.js';

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
const app = new Koa();
app.use(router.routes());
const server = app.listen(0, '127.0.0.1', () =>
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
);
process.on('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
  void events.dispose();
});
