/** Look-ups by id, gathered: those that come while others are under way go to the server as one request. */
import type { Link } from './connection.js';
import type { MongoDocument } from './layout.js';

/**
 * Looks up one document of a collection, as it is after the call; `undefined`: there is none. @throws UnavailableError
 */
export type LookUp = (collection: string, id: string) => Promise<MongoDocument | undefined>;

/** Requests under way at once for one collection: others wait meanwhile and go together. */
const UNDER_WAY = 2;
/** The most documents of one request: they are parsed in one turn of the event loop. */
const MOST = 100;

interface Asked {
  readonly id: string;
  readonly resolve: (document: MongoDocument | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** The look-ups of one collection. */
interface Line {
  readonly waiting: Asked[];
  underWay: number;
  /** Those of this turn of the event loop are being gathered. */
  gathering: boolean;
}

/** @param link to the server. */
export function gatheredLookUps(link: Pick<Link, 'read'>): LookUp {
  const lines = new Map<string, Line>();

  async function send(collection: string, asked: readonly Asked[]): Promise<void> {
    try {
      const found = await read(collection, [...new Set(asked.map(({ id }) => id))]);
      for (const { id, resolve } of asked) resolve(found.get(id));
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
  }

  async function read(collection: string, ids: readonly string[]): Promise<ReadonlyMap<string, MongoDocument>> {
    const documents = await link.read(async (database) => {
      const all = database.collection<MongoDocument>(collection);
      if (ids.length === 1) return [await all.findOne({ _id: ids[0] as string })];
      return all.find({ _id: { $in: [...ids] } }, { batchSize: ids.length + 1 }).toArray();
    });
    return new Map(documents.flatMap((document) => (document === null ? [] : [[document._id, document] as const])));
  }

  function advance(collection: string, line: Line): void {
    while (line.waiting.length > 0 && line.underWay < UNDER_WAY) {
      line.underWay += 1;
      void send(collection, line.waiting.splice(0, MOST)).then(() => {
        line.underWay -= 1;
        advance(collection, line);
      });
    }
    if (line.waiting.length === 0 && line.underWay === 0 && !line.gathering) lines.delete(collection);
  }

  return (collection, id) =>
    new Promise((resolve, reject) => {
      let line = lines.get(collection);
      if (line === undefined) lines.set(collection, (line = { waiting: [], underWay: 0, gathering: false }));
      line.waiting.push({ id, resolve, reject });
      if (line.gathering) return;
      line.gathering = true;
      const gathered = line;
      setImmediate(() => {
        gathered.gathering = false;
        advance(collection, gathered);
      });
    });
}
