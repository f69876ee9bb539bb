import { workerData } from 'node:worker_threads';
import type { Statement } from 'better-sqlite3';
import { refuseOtherRelease } from '../../../lib/version.js';
import { Sqlite } from '../driver.js';
import { serveThread, type ThreadData } from '../thread.js';
import { openReader } from './file.js';
import type { LookupAnswer, LookupQuestion } from './messages.js';

type Row = readonly [position: string, body: string];

const { file, version } = workerData as ThreadData;
refuseOtherRelease(version);
const database = openReader(file, { openElsewhere: true });
const statements = new Map<string, Statement<[string], Row>>();

function statementOf(table: string): Statement<[string], Row> {
  let prepared = statements.get(table);
  if (prepared === undefined) {
    prepared = database.prepare<[string], Row>(`SELECT position, body FROM ${table} WHERE id = ?`).raw();
    statements.set(table, prepared);
  }
  return prepared;
}

const lookUp = database.transaction((question: LookupQuestion): (string | undefined)[] => {
  const found: (string | undefined)[] = [];
  for (const { table, ids } of question) {
    const statement = statementOf(table);
    for (const id of ids) {
      const row = statement.get(id);
      found.push(row?.[0], row?.[1]);
    }
  }
  return found;
});

/** `undefined` where the engine fails: the asking thread then reads for itself and meets the error. */
function answerTo(question: LookupQuestion): LookupAnswer {
  try {
    return lookUp(question);
  } catch (error) {
    if (error instanceof Sqlite.SqliteError) return undefined;
    throw error;
  }
}

const thread = serveThread<LookupQuestion, LookupAnswer>(
  (question) => thread.answer(answerTo(question)),
  () => void database.close(),
);
thread.ready();
