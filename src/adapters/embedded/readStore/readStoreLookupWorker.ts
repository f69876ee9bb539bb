/** The thread that looks documents up. Each message is answered from one snapshot, taken when the message is there. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Statement } from 'better-sqlite3';
import { Sqlite } from '../driver.js';
import type { ThreadData } from '../thread.js';
import { openReader } from './file.js';
import type { FromLookupThread, ToLookupThread } from './messages.js';

type Row = readonly [position: string, body: string];

const port = parentPort;
if (port === null) throw new Error('readStoreLookupWorker runs as a worker thread only');
const database = openReader((workerData as ThreadData).file, { openElsewhere: true });
const statements = new Map<string, Statement<[string], Row>>();

function statementOf(table: string): Statement<[string], Row> {
  let prepared = statements.get(table);
  if (prepared === undefined) {
    prepared = database.prepare<[string], Row>(`SELECT position, body FROM ${table} WHERE id = ?`).raw();
    statements.set(table, prepared);
  }
  return prepared;
}

const lookUp = database.transaction((asked: Exclude<ToLookupThread, 'close'>): (string | undefined)[] => {
  const found: (string | undefined)[] = [];
  for (const { table, ids } of asked) {
    const statement = statementOf(table);
    for (const id of ids) {
      const row = statement.get(id);
      found.push(row?.[0], row?.[1]);
    }
  }
  return found;
});

/** @returns `undefined` where the engine fails: who asked looks for itself, and tells of it. */
function answerTo(asked: Exclude<ToLookupThread, 'close'>): FromLookupThread {
  try {
    return lookUp(asked);
  } catch (error) {
    if (error instanceof Sqlite.SqliteError) return undefined;
    throw error;
  }
}

port.on('message', (message: ToLookupThread) => {
  if (message !== 'close') return port.postMessage(answerTo(message));
  database.close();
  return port.close();
});
port.postMessage('ready' satisfies FromLookupThread);
