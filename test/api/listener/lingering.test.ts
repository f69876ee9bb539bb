import type { IncomingMessage } from 'node:http';
import { Duplex } from 'node:stream';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { lingering } from '../../../src/api/listener/lingering.js';

const test = suite('connections whose answer came early');

test('a connection that is kept holds nothing of the requests before', () => {
  const connection = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const open = lingering();
  for (let n = 0; n < 20; n++) open.drain({ socket: connection, complete: false } as IncomingMessage);
  assert.is(connection.listenerCount('close'), 1);
  open.closeAll();
});

test.run();
