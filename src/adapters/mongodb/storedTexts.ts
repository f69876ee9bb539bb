import type { Filter } from 'mongodb';
import type { StoredText } from '../../ports/readStore.js';
import { BULK_MS, type Connection } from './connection.js';
import { ANSWER, sortedFind } from './finds.js';

interface Stored {
  readonly _id: string;
  readonly [field: string]: unknown;
}

/** Every document of every collection of the database, whatever it is for. */
export async function* storedTexts(connection: Connection): AsyncGenerator<readonly StoredText[], void> {
  const collections = await connection.read(({ db }) => db.listCollections({}, { nameOnly: true }).toArray());
  for (const { name } of collections)
    for (let after: string | undefined; ;) {
      const filter: Filter<Stored> = after === undefined ? {} : { _id: { $gt: after } };
      const page = await connection.read(
        (database) =>
          sortedFind(database.collection<Stored>(name), filter, { sort: { _id: 1 }, limit: ANSWER }, (document) => ({
            id: document._id,
            text: Object.values(document)
              .map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
              .join('\n'),
          })),
        BULK_MS,
      );
      yield page.map(({ id, text }) => ({ place: `${name} ${id}`, text }));
      after = page.at(-1)?.id;
      if (after === undefined || page.length < ANSWER) break;
    }
}
