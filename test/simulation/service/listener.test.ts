/** The listener without sockets gives answers of every size, as one with sockets does. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { suite } from 'uvu';
import type { RequestHandler } from '../../../src/api/listener/listener.js';
import { eventually } from '../../support/assertions/until.js';
import { type HttpAnswer, simulatedListener } from './listener.js';

const test = suite('simulation/service/listener');

const CHUNKS = Array.from({ length: 50 }, (_, index) => `${index % 10}`.repeat(10_000));

/** The text of the answer to a request that this handler gets. */
async function textOf(handler: RequestHandler): Promise<string | undefined> {
  const listener = simulatedListener(1);
  await listener.open();
  listener.serve(handler);
  let answer: HttpAnswer | undefined;
  const request = { method: 'GET', path: '/', headers: {}, address: '10.0.0.1' };
  listener.take(request, (given) => (answer = given));
  await eventually(async () => answer !== undefined, 'the answer');
  return answer?.text;
}

test('gives a streamed answer of several 100 kB', async () => {
  assert.equal(await textOf((_, response) => Readable.from(CHUNKS).pipe(response)), CHUNKS.join(''));
});

test('gives an answer whose writer waits until there is room', async () => {
  const text = await textOf(async (_, response) => {
    for (const chunk of CHUNKS)
      if (!response.write(chunk)) await new Promise((resume) => response.once('drain', resume));
    response.end();
  });
  assert.equal(text, CHUNKS.join(''));
});

test.run();
