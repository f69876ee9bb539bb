import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  BSON,
  MongoBulkWriteError,
  MongoClient,
  MongoError,
  MongoInvalidArgumentError,
  MongoNetworkError,
  MongoServerError,
  MongoServerSelectionError,
} from 'mongodb';
import type { BulkWriteResult, Document, TopologyDescription } from 'mongodb';
import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { READ_STORE } from '../../../src/adapters/mongodb/address.js';
import {
  duplicateIdsOf,
  duplicatesOf,
  failureOf,
  isDuplicateId,
  isMissing,
  isPresent,
  LateError,
} from '../../../src/adapters/mongodb/failures.js';
import { openConnection } from '../../../src/adapters/mongodb/connection.js';
import type { Connection } from '../../../src/adapters/mongodb/connection.js';
import { writeGuarded } from '../../../src/adapters/mongodb/guarded.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { HELLO, startFakeMongo } from '../../support/engines/fakeMongo.js';
import { rejectionOf } from '../../support/engines/readStoreDocuments.js';
import { until } from '../../support/assertions/until.js';

const test = suite('MongoDB: calls and their failures');

const NOWHERE = 'mongodb://127.0.0.1:1/';
const notFound = (): MongoServerSelectionError =>
  new MongoServerSelectionError('nobody there', {} as TopologyDescription);

/** A connection whose clients are counted. */
function counting(): {
  readonly connection: Connection;
  readonly clients: MongoClient[];
  readonly closed: MongoClient[];
  readonly warned: string[];
} {
  const clients: MongoClient[] = [];
  const closed: MongoClient[] = [];
  const warned: string[] = [];
  const newClient = (): MongoClient => {
    const client = new MongoClient(NOWHERE);
    clients.push(client);
    const close = client.close.bind(client);
    client.close = async (force) => {
      closed.push(client);
      await close(force);
    };
    return client;
  };
  const logger = pino({}, { write: (line) => warned.push((JSON.parse(line) as { msg: string }).msg) });
  return {
    connection: openConnection({ store: READ_STORE, newClient, database: 'test', logger }),
    clients,
    closed,
    warned,
  };
}

/** The rejection of a bulk write. */
function bulkError(about: {
  readonly errors?: readonly { readonly index: number; readonly code: number; readonly errmsg: string }[];
  readonly concern?: boolean;
  readonly cause?: Error;
}): MongoBulkWriteError {
  const result = {
    getWriteConcernError: () => (about.concern === true ? {} : undefined),
  } as BulkWriteResult;
  const { errors, cause } = about;
  return new MongoBulkWriteError(
    cause ?? {
      message: errors?.[0]?.errmsg ?? 'trouble',
      code: errors?.[0]?.code ?? 64,
      ...(errors === undefined ? {} : { writeErrors: errors as never }),
    },
    result,
  );
}

const taken = (
  index: number,
  name = '_id_',
): { readonly index: number; readonly code: number; readonly errmsg: string } => ({
  index,
  code: 11_000,
  errmsg: `E11000 duplicate key error collection: gift.doc_index_1 index: ${name} dup key: { x: "index: _id_ " }`,
});

test('ends an unanswered call at its deadline, with an unknown outcome where it writes', async () => {
  const { connection } = counting();
  const never = (): Promise<void> => new Promise(() => undefined);
  const [read, write] = await Promise.all([
    rejectionOf(connection.read(never, 30)),
    rejectionOf(connection.write(never, 30)),
  ]);
  assert.instance(read, UnavailableError);
  assert.instance(read.cause, LateError);
  assert.equal([(read as UnavailableError).outcomeUnknown, (write as UnavailableError).outcomeUnknown], [false, true]);
  await connection.close();
});

test('ignores an answer after the deadline', async () => {
  const { connection } = counting();
  await rejectionOf(connection.read(() => sleep(40).then(() => Promise.reject(new Error('late'))), 10));
  await sleep(50);
  await connection.close();
});

test('replaces and closes a client that finds no server any more', async () => {
  const { connection, clients, closed, warned } = counting();
  const miss = (): Promise<Error> => rejectionOf(connection.read(() => Promise.reject(notFound())));
  for (let n = 0; n < 5; n++) await miss();
  assert.is(clients.length, 1, 'it is given time');
  await sleep(2_000);
  await connection.read(async () => 1);
  await miss();
  assert.is(clients.length, 1, 'once is nothing');
  const slow = connection.read(() => sleep(50).then(() => closed.length));
  const error = await miss();
  assert.instance(error, UnavailableError);
  assert.not.ok((error as UnavailableError).outcomeUnknown, 'nothing was sent');
  assert.is(clients.length, 2);
  assert.equal(warned, ['the read store is not found: connecting anew']);
  assert.is(await connection.read(async ({ db }) => db.client), clients[1]);
  assert.is(await slow, 0, 'what the old one is asked may finish');
  await until(() => closed.length > 0, 'the end of the old one');
  assert.equal(closed, [clients[0]]);
  for (let n = 0; n < 5; n++) await miss();
  assert.is(clients.length, 2, 'the new one is given time too');
  await connection.close();
  assert.equal(closed, clients);
});

test('replaces a client that the driver closed after its first connection failed', async () => {
  const server = await startFakeMongo(() => ({ n: 1 }));
  const read = (connection: Connection): Promise<unknown> => connection.read(({ db }) => db.command({ ping: 1 }));
  const write = (connection: Connection): Promise<unknown> =>
    connection.write((database) => database.collection('x').bulkWrite([{ insertOne: { document: {} } }]));
  try {
    for (const ask of [read, write]) {
      const urls = [NOWHERE];
      const connection = openConnection({
        store: READ_STORE,
        newClient: () => new MongoClient(urls.pop() ?? server.url, { serverSelectionTimeoutMS: 2_100 }),
        database: 'test',
      });
      try {
        assert.instance(await rejectionOf(ask(connection)), UnavailableError);
        const closed = await rejectionOf(ask(connection));
        assert.instance(closed, UnavailableError);
        assert.match(closed.message, 'Topology is closed');
        await ask(connection);
      } finally {
        await connection.close();
      }
    }
  } finally {
    await server.stop();
  }
});

test('keeps its client when the server refuses a command, or a command is invalid', async () => {
  const { connection, clients } = counting();
  await sleep(2_050);
  const errors = [
    new MongoServerError({ code: 1, errmsg: 'x' }),
    new MongoNetworkError('lost'),
    new TypeError('mistake'),
  ];
  for (const error of [...errors, ...errors]) await rejectionOf(connection.write(() => Promise.reject(error)));
  assert.is(clients.length, 1);
  await connection.close();
});

test('fails a command soon when the driver gives up its connection while sending', async () => {
  // The kernel buffers some MB of a command for a stalled receiver; the rest waits in the driver.
  const more = 16_000_000;
  let silent = false;
  const server = await startFakeMongo(
    () => ({}),
    HELLO,
    () => silent,
  );
  const newClient = (): MongoClient =>
    new MongoClient(server.url, { heartbeatFrequencyMS: 500, connectTimeoutMS: 500, serverSelectionTimeoutMS: 500 });
  const connection = openConnection({ store: READ_STORE, newClient, database: 'test' });
  await connection.write(({ db }) => db.command({ ping: 1 }));
  silent = true;
  const error = await rejectionOf(
    connection.write(({ db }) => db.command({ ping: 1, text: 'x'.repeat(more) }), 20_000),
  );
  assert.instance(error, UnavailableError);
  assert.ok((error as UnavailableError).outcomeUnknown);
  await connection.close();
  await server.stop();
});

test('lets calls under way finish when it closes, and refuses others', async () => {
  const { connection } = counting();
  const running = connection.read(() => sleep(60).then(() => 'done'));
  const closing = connection.close();
  assert.instance(await rejectionOf(connection.read(async () => 1)), UnavailableError);
  assert.is(await running, 'done');
  await Promise.all([closing, connection.close()]);
});

test("takes a failure for the engine's unless the command itself is wrong", () => {
  const server = (code: number | undefined): MongoServerError =>
    new MongoServerError({ ...(code === undefined ? {} : { code }), errmsg: 'x' });
  const troubles = [
    server(1),
    server(13),
    server(91),
    server(10_107),
    server(14_031),
    server(undefined),
    new MongoNetworkError('lost'),
    notFound(),
    new LateError(1),
    new MongoError('other'),
    bulkError({}),
    bulkError({ errors: [taken(0)], concern: true }),
    bulkError({ errors: [taken(0), { index: 1, code: 11_602, errmsg: 'interrupted: the server steps down' }] }),
  ];
  for (const trouble of troubles) {
    const failure = failureOf(trouble, 'read store', true);
    assert.instance(failure, UnavailableError);
    assert.is((failure as UnavailableError).outcomeUnknown, trouble !== troubles[7]);
    assert.is((failure as UnavailableError).cause, trouble);
  }
  for (const fault of [
    server(2),
    server(86),
    server(11_000),
    new MongoInvalidArgumentError('x'),
    new BSON.BSONError('x'),
    new TypeError('x'),
    bulkError({ errors: [taken(0), taken(1, 'other')] }),
    new UnavailableError('x'),
  ]) {
    assert.is(failureOf(fault, 'read store', true), fault);
  }
});

test("takes the socket's error of a connection that the server has just closed for the engine's", async () => {
  const server = createServer((socket) => socket.end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').resume();
  const ended = once(socket, 'end');
  await ended;
  const error = await new Promise<NodeJS.ErrnoException>((resolve) => {
    socket.on('error', resolve).write('x');
  });
  server.close();
  assert.is(error.code, 'EPIPE');
  for (const lost of [
    error,
    Object.assign(new Error('gone'), { code: 'ECONNRESET' }),
    Object.assign(new Error('gone'), { code: 'ERR_STREAM_DESTROYED' }),
  ]) {
    const [read, written] = [failureOf(lost, 'read store', false), failureOf(lost, 'read store', true)];
    assert.instance(read, UnavailableError);
    assert.equal(
      [
        (read as UnavailableError).outcomeUnknown,
        (written as UnavailableError).outcomeUnknown,
        (read as UnavailableError).cause,
      ],
      [false, true, lost],
    );
  }
  const ours = Object.assign(new TypeError('not an id'), { code: 'ERR_INVALID_ARG_TYPE' });
  assert.is(failureOf(ours, 'read store', true), ours, 'a mistake of ours is none of its troubles');
});

test('leaves the outcome of a bulk write unknown whose connection was lost', () => {
  const lost = bulkError({ cause: new MongoNetworkError('connection 1 to 127.0.0.1 closed') });
  assert.equal([lost.code, lost.writeErrors], [undefined, []]);
  assert.is(duplicateIdsOf(lost), undefined);
  assert.ok((failureOf(lost, 'read store', true) as UnavailableError).outcomeUnknown);
  const unfound = bulkError({ cause: notFound() });
  assert.not.ok(
    (failureOf(unfound, 'read store', true) as UnavailableError).outcomeUnknown,
    'nobody was found to send it to',
  );
});

test('distinguishes a taken _id from another taken value, whatever the value', () => {
  assert.equal(duplicateIdsOf(bulkError({ errors: [taken(3), taken(5)] })), [3, 5]);
  assert.equal(
    duplicateIdsOf(
      bulkError({
        errors: [
          { index: 1, code: 11_000, errmsg: "Duplicate key violation on the requested collection: Index '_id_'" },
        ],
      }),
    ),
    [1],
  );
  for (const errors of [
    [taken(3), taken(5, 'other')],
    [taken(1, 'x_id_')],
    [{ index: 0, code: 1, errmsg: 'index: _id_' }],
  ])
    assert.is(duplicateIdsOf(bulkError({ errors })), undefined);
  assert.is(duplicateIdsOf(bulkError({ errors: [taken(3)], concern: true })), undefined, 'not yet safe');
  assert.equal(duplicatesOf(bulkError({ errors: [taken(3), taken(5, 'other')] })), [3, 5]);
  assert.is(duplicatesOf(bulkError({ errors: [taken(3), { index: 0, code: 1, errmsg: 'x' }] })), undefined);
  assert.is(duplicateIdsOf(new MongoServerError(taken(0))), undefined);
  assert.equal(
    [
      isDuplicateId(new MongoServerError(taken(0))),
      isDuplicateId(new MongoServerError(taken(0, 'other'))),
      isDuplicateId(new MongoServerError({ code: 1, errmsg: 'index: _id_' })),
      isDuplicateId(new Error('index: _id_')),
    ],
    [true, false, false, false],
  );
  assert.equal(
    [
      new MongoServerError({ code: 26 }),
      new MongoServerError({ errmsg: 'ns not found' }),
      new MongoServerError({ code: 48 }),
    ].map((error) => [isMissing(error), isPresent(error)]),
    [
      [true, false],
      [true, false],
      [false, true],
    ],
  );
});

/** A connection whose bulk writes are answered in turn, with the documents written. */
function bulkConnection(answers: readonly (Error | undefined)[]): {
  readonly connection: Connection;
  readonly sent: Document[][];
} {
  const sent: Document[][] = [];
  const collection = {
    async bulkWrite(operations: Document[]) {
      const answer = answers[sent.length];
      sent.push(operations.map(({ replaceOne }) => replaceOne as Document));
      if (answer !== undefined) throw answer;
    },
  };
  return {
    sent,
    connection: {
      store: READ_STORE,
      read: () => Promise.reject(new Error('not asked')),
      write: (work) => work({ collection: () => collection } as never),
      guard: () => undefined,
      checkAgain: () => undefined,
      close: async () => undefined,
    },
  };
}

test('writes documents by id, and again those another client wrote first at that moment', async () => {
  const documents = ['c', 'a', 'd', 'b'].map((_id, n) => ({ _id, p: `${n}`, b: '{}' }));
  const { connection, sent } = bulkConnection([bulkError({ errors: [taken(1), taken(3)] }), undefined]);
  await writeGuarded(connection, 'x', documents);
  assert.equal(
    sent[0]?.map(({ filter, upsert }) => [filter, upsert]),
    [
      [{ _id: 'a', p: { $lt: '1' } }, true],
      [{ _id: 'b', p: { $lt: '3' } }, true],
      [{ _id: 'c', p: { $lt: '0' } }, true],
      [{ _id: 'd', p: { $lt: '2' } }, true],
    ],
  );
  assert.equal(sent[1], [
    { filter: { _id: 'b', p: { $lt: '3' } }, replacement: { p: '3', b: '{}' }, upsert: false },
    { filter: { _id: 'd', p: { $lt: '2' } }, replacement: { p: '2', b: '{}' }, upsert: false },
  ]);
  assert.is(sent.length, 2);
  const other = bulkError({ errors: [taken(0), taken(1, 'other')] });
  assert.is(await rejectionOf(writeGuarded(bulkConnection([other]).connection, 'x', documents)), other);
});

test.run();
