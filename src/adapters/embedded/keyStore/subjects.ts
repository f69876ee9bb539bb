/** Carries out requests to the key store's writer, within the caller's transaction. */
import type { Database } from 'better-sqlite3';
import type { ErasureRow } from '../../../ports/keyStore.js';
import { takenId } from '../../keyStoreRules.js';
import type { Added, KeyRequest, Row } from './messages.js';

interface Subjects {
  /** Carries out a request. @returns its answer */
  execute(request: KeyRequest): unknown;
}

type Slot = readonly [slot: number, secret: string];

export function openSubjects(database: Database): Subjects {
  const byLookup = database
    .prepare<[string], Row>(
      `SELECT s.id, s.lookup, k.secret, e.id IS NOT NULL FROM subject AS s JOIN secret AS k ON k.slot = s.slot
        LEFT JOIN ended AS e ON e.id = s.id WHERE s.lookup = ?`,
    )
    .raw();
  const slotOf = database
    .prepare<[string], Slot>(
      'SELECT k.slot, k.secret FROM subject AS s JOIN secret AS k ON k.slot = s.slot WHERE s.id = ?',
    )
    .raw();
  const append = database.prepare<[string]>('INSERT INTO secret (secret) VALUES (?)');
  const overwrite = database.prepare<[string, number]>('UPDATE secret SET secret = ? WHERE slot = ?');
  const insert = database.prepare<[string, string, number | bigint]>(
    'INSERT OR IGNORE INTO subject (id, lookup, slot) VALUES (?, ?, ?)',
  );
  const move = database.prepare<[number | bigint, string]>('UPDATE subject SET slot = ? WHERE id = ?');
  const remove = database.prepare<[string]>('DELETE FROM subject WHERE id = ?');
  const isRemoved = database.prepare<[string], number>('SELECT removed FROM ended WHERE id = ?').pluck();
  const fence = database.prepare<[string]>(
    'INSERT OR IGNORE INTO ended (id, removed) SELECT id, 0 FROM subject WHERE id = ?',
  );
  const unfence = database.prepare<[string]>('DELETE FROM ended WHERE id = ? AND removed = 0');
  const end = database.prepare<[string]>(
    'INSERT INTO ended (id, removed) VALUES (?, 1) ON CONFLICT (id) DO UPDATE SET removed = 1',
  );
  const putErasure = database.prepare<[string, string]>(
    'INSERT INTO erasure (id, text) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET text = excluded.text',
  );

  function add(rows: readonly string[]): Added {
    const others: Row[number][] = [];
    const removed: string[] = [];
    for (let at = 0; at < rows.length; at += 3) {
      const [id, lookup, secret] = rows.slice(at, at + 3) as [string, string, string];
      const present = byLookup.get(lookup);
      if (present !== undefined) others.push(...present);
      else if (isRemoved.get(id) === 1) removed.push(id);
      // The lookup is free, so an insert that is ignored has a taken id.
      else if (insert.run(id, lookup, append.run(secret).lastInsertRowid).changes === 0) throw takenId(id);
    }
    return { others, removed };
  }

  function erase([slot, secret]: Slot): void {
    overwrite.run('0'.repeat(Buffer.byteLength(secret)), slot);
  }

  function rewrap(rows: readonly string[]): void {
    for (let at = 0; at < rows.length; at += 2) {
      const [id, secret] = rows.slice(at, at + 2) as [string, string];
      const present = slotOf.get(id);
      if (present === undefined) continue;
      const [slot, before] = present;
      if (Buffer.byteLength(before) === Buffer.byteLength(secret)) overwrite.run(secret, slot);
      else {
        erase(present);
        move.run(append.run(secret).lastInsertRowid, id);
      }
    }
  }

  function removeAll(ids: readonly string[]): void {
    for (const id of ids) {
      end.run(id);
      const present = slotOf.get(id);
      if (present === undefined) continue;
      erase(present);
      remove.run(id);
    }
  }

  function fenceAll(ids: readonly string[]): void {
    for (const id of ids) fence.run(id);
  }

  function unfenceAll(ids: readonly string[]): void {
    for (const id of ids) unfence.run(id);
  }

  function store({ id, text }: ErasureRow): void {
    putErasure.run(id, text);
  }

  return {
    execute(request) {
      switch (request.kind) {
        case 'add':
          return add(request.rows);
        case 'rewrap':
          return rewrap(request.rows);
        case 'fence':
          return fenceAll(request.ids);
        case 'unfence':
          return unfenceAll(request.ids);
        case 'putErasure':
          return store(request.row);
        case 'remove':
          return removeAll(request.ids);
        default:
          return request satisfies never;
      }
    },
  };
}
