/** Records the commands of this process's MongoDB clients. */
import { type CommandStartedEvent, type Document, MongoClient } from 'mongodb';

/** A filter on a collection, of a read or a write. */
export interface Question {
  readonly collection: string;
  readonly filter: Document;
  readonly sort?: Document;
  readonly limit?: number;
  readonly skip?: number;
}

/** Records commands. */
export interface Recording {
  /** The filters so far, each kind (collection, keys, operators and order) once. */
  questions(): Question[];
  end(): void;
}

/** The address of a server whose client reports its commands. */
export function telling(url: string): string {
  return `${url}${url.includes('?') ? '&' : '?'}monitorCommands=true`;
}

/** Records commands of clients made from now on, at an address that is `telling`. */
export function recordCommands(): Recording {
  const sent: Document[] = [];
  const { emit } = MongoClient.prototype;
  MongoClient.prototype.emit = function told(this: MongoClient, ...[name, event]: Parameters<typeof emit>) {
    if (name === 'commandStarted') sent.push((event as CommandStartedEvent).command);
    return emit.call(this, name, event as never);
  } as typeof emit;
  return {
    questions: () => [...new Map(sent.flatMap(questionsOf).map((question) => [kindOf(question), question])).values()],
    end() {
      MongoClient.prototype.emit = emit;
    },
  };
}

function questionsOf(command: Document): Question[] {
  if (command['findAndModify'] !== undefined)
    return [{ collection: command['findAndModify'] as string, filter: command['query'] as Document }];
  if (command['find'] !== undefined)
    return [{ ...command, collection: command['find'] as string, filter: (command['filter'] ?? {}) as Document }].map(
      only,
    );
  if (command['aggregate'] !== undefined)
    return [
      {
        collection: command['aggregate'] as string,
        filter: ((command['pipeline'] as Document[])[0]?.['$match'] ?? {}) as Document,
      },
    ];
  if (command['update'] !== undefined)
    return partsOf(command['updates']).map(({ q }) => ({
      collection: command['update'] as string,
      filter: q as Document,
    }));
  if (command['delete'] !== undefined)
    return partsOf(command['deletes']).map(({ q }) => ({
      collection: command['delete'] as string,
      filter: q as Document,
    }));
  return [];
}

/** The parts of a bulk write: the driver sends them as a sequence beside the command. */
function partsOf(parts: unknown): Document[] {
  return Array.isArray(parts) ? (parts as Document[]) : (parts as { readonly documents: Document[] }).documents;
}

function only({ collection, filter, sort, limit, skip }: Question): Question {
  return {
    collection,
    filter,
    ...(sort === undefined ? {} : { sort }),
    ...(limit === undefined ? {} : { limit }),
    ...(skip === undefined ? {} : { skip }),
  };
}

function kindOf({ collection, filter, sort, limit }: Question): string {
  const operators = Object.entries(filter).map(
    ([key, condition]) => `${key} ${isOperators(condition) ? Object.keys(condition).join(' ') : '='}`,
  );
  const order = sort instanceof Map ? [...sort] : Object.entries(sort ?? {});
  return JSON.stringify([collection, operators, order, limit !== undefined]);
}

function isOperators(condition: unknown): condition is Document {
  return (
    typeof condition === 'object' && condition !== null && Object.keys(condition).every((key) => key.startsWith('$'))
  );
}
