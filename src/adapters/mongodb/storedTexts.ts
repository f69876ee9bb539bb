import type { StoredText } from '../../ports/readStore.js';
import type { Connection } from './connection.js';
import { pagesById } from './finds.js';

interface Stored {
  readonly _id: string;
  readonly [field: string]: unknown;
}

/** Yields the text of every document in every collection of the database, whatever its purpose. */
export async function* storedTexts(connection: Connection): AsyncGenerator<readonly StoredText[], void> {
  const collections = await connection.read(({ db }) => db.listCollections({}, { nameOnly: true }).toArray());
  for (const { name } of collections)
    for await (const page of pagesById<Stored>(connection, name))
      yield page.map(({ _id, ...rest }) => ({
        place: `${name} ${_id}`,
        text: [_id, ...Object.values(rest)]
          .map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
          .join('\n'),
      }));
}
