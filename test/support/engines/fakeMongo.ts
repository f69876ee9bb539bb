/** A server with MongoDB's wire protocol and scripted answers. */
import { type Socket, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { BSON } from 'mongodb';
import type { Document } from 'mongodb';
import { FORMAT_MARK } from '../../../src/ports/dataFormat.js';

/** The fate of a command: an answer, the connection's end, or silence. */
export type FakeAnswer = Document | 'end' | 'silence';

/** The server. */
export interface FakeMongo {
  readonly url: string;
  /** The names of the commands so far, without those that look after the connection. */
  readonly commands: readonly string[];
  /** Connections now open. */
  connections(): number;
  stop(): Promise<void>;
}

const HEADER_BYTES = 16;
const OP_REPLY = 1;
const OP_QUERY = 2004;
const OP_MSG = 2013;

/** The greeting of a current server. */
export const HELLO: Document = {
  ismaster: true,
  helloOk: true,
  minWireVersion: 0,
  maxWireVersion: 21,
  maxBsonObjectSize: 16_777_216,
  maxMessageSizeBytes: 48_000_000,
  maxWriteBatchSize: 100_000,
  readOnly: false,
};

/** Answers to a store's opening commands, as of a healthy server. */
export function openedWell(command: Document): Document | undefined {
  const batch = (firstBatch: readonly Document[]): Document => ({
    cursor: { id: BSON.Long.ZERO, ns: 'x.records', firstBatch },
  });
  switch (Object.keys(command)[0]) {
    case 'listIndexes':
      return batch([{ v: 2, name: 'e', key: { e: 1 }, expireAfterSeconds: 0 }]);
    case 'listCollections':
      return batch([]);
    case 'find':
      return (command['filter'] as Document)['_id'] === 'format'
        ? batch([{ _id: 'format', ...FORMAT_MARK }])
        : undefined;
    default:
      return undefined;
  }
}

/** Lists of documents that follow a command, by name: kind, size, name, documents. */
function sequencesOf(sections: Buffer): Document {
  const lists: Document = {};
  for (let at = 0; at + 5 < sections.length && sections[at] === 1;) {
    const end = at + 1 + sections.readInt32LE(at + 1);
    const nameEnd = sections.indexOf(0, at + 5);
    const documents: Document[] = [];
    for (let next = nameEnd + 1; next < end; next += sections.readInt32LE(next))
      documents.push(BSON.deserialize(sections.subarray(next, next + sections.readInt32LE(next))));
    lists[sections.toString('utf8', at + 5, nameEnd)] = documents;
    at = end;
  }
  return lists;
}

/** @param answer to each command; `hello` is the server's greeting; while `silent`, it reads nothing. */
export async function startFakeMongo(
  answer: (command: Document) => FakeAnswer,
  hello: Document = HELLO,
  silent: () => boolean = () => false,
): Promise<FakeMongo> {
  const sockets = new Set<Socket>();
  const commands: string[] = [];

  function answerOf(command: Document): FakeAnswer {
    const name = Object.keys(command)[0] as string;
    if (/^(hello|ismaster)$/i.test(name)) return hello;
    if (name === 'endSessions') return {};
    commands.push(name);
    return answer(command);
  }

  function heard(socket: Socket, message: Buffer): void {
    const id = message.readInt32LE(4);
    const query = message.readInt32LE(12) === OP_QUERY;
    // A query: flags, the collection's name, skip and limit come first; a message: flags and the section's kind.
    const start = query ? message.indexOf(0, HEADER_BYTES + 4) + 9 : HEADER_BYTES + 5;
    const end = start + message.readInt32LE(start);
    const command = BSON.deserialize(message.subarray(start, end));
    const found = answerOf(query ? command : { ...command, ...sequencesOf(message.subarray(end)) });
    if (found === 'silence') return;
    if (found === 'end') {
      socket.destroy();
      return;
    }
    const body = BSON.serialize({ ok: 1, ...found });
    const lead = Buffer.alloc(HEADER_BYTES + (query ? 20 : 5));
    lead.writeInt32LE(lead.length + body.length, 0);
    lead.writeInt32LE(id, 8);
    lead.writeInt32LE(query ? OP_REPLY : OP_MSG, 12);
    if (query) lead.writeInt32LE(1, 32);
    socket.write(Buffer.concat([lead, body]));
  }

  const server = createServer((socket) => {
    let pending = Buffer.alloc(0);
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.on('data', (data) => {
      if (silent()) {
        socket.pause();
        return;
      }
      pending = Buffer.concat([pending, data]);
      while (pending.length >= HEADER_BYTES && pending.length >= pending.readInt32LE(0)) {
        const length = pending.readInt32LE(0);
        heard(socket, pending.subarray(0, length));
        pending = pending.subarray(length);
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => {
    server.once('listening', resolve);
  });
  return {
    url: `mongodb://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    commands,
    connections: () => sockets.size,
    async stop() {
      const closed = new Promise((resolve) => {
        server.close(resolve);
      });
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
