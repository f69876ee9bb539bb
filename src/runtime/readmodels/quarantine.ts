/**
 * Documents whose fold failed. The stored body is only a marker: no condition on a field matches it, nothing
 * half-folded is shown, and later events leave it alone. A record lists it for support.
 */
import type { RecordedEvent } from '../../ports/eventStore.js';
import type { Body, Records, StoredDocument, UnreadableBody } from '../../ports/readStore.js';
import { raiseEdition } from './edition.js';
import { checkpointName, type Projection } from './projection.js';

export interface Quarantined {
  /** Absent if the event does not say which documents it touches. */
  readonly documentId?: string;
  /** Absent if the store could not read the document. */
  readonly eventId?: string;
  readonly type?: string;
  readonly stream?: string;
  readonly position: string;
  /** Error message of the fold or of the store. */
  readonly cause: string;
}

interface QuarantineBody {
  readonly $quarantined: Quarantined;
}

export function isQuarantined(body: Body): body is QuarantineBody {
  return '$quarantined' in body;
}

/**
 * Whether the store can't read the document, which is listed once it is read (`damagedDocuments`) or touched by an
 * event.
 */
export function isUnreadable(body: Body): body is UnreadableBody {
  return '$unreadable' in body;
}

export function isOutOfService(body: Body): boolean {
  return isQuarantined(body) || isUnreadable(body);
}

export function quarantineOf(event: RecordedEvent, documentId: string | undefined, error: unknown): Quarantined {
  return {
    ...(documentId === undefined ? {} : { documentId }),
    eventId: event.id,
    type: event.type,
    stream: event.stream,
    position: event.position,
    cause: error instanceof Error ? error.message : String(error),
  };
}

export function quarantineDocument(id: string, quarantined: Quarantined): StoredDocument {
  return { id, position: quarantined.position, body: { $quarantined: quarantined } satisfies QuarantineBody };
}

const prefix = (projection: Pick<Projection, 'name' | 'version'>): string =>
  `quarantine/${checkpointName(projection)}/`;

export async function recordQuarantine(
  records: Records,
  projection: Pick<Projection, 'name' | 'version'>,
  quarantined: Quarantined,
): Promise<void> {
  await records.put(prefix(projection) + (quarantined.documentId ?? `event/${quarantined.eventId}`), quarantined);
  await raiseEdition({ records }, projection.name);
}

interface DamagedDocuments {
  /**
   * Records a damaged document, once in each process and in the background. After a failure the next read tries again.
   */
  note(collection: Pick<Projection, 'name' | 'version'>, document: StoredDocument<UnreadableBody>): void;
}

export function damagedDocuments(records: Records): DamagedDocuments {
  const noted = new Set<string>();
  return {
    note({ name, version }, { id, position, body }) {
      const key = `${checkpointName({ name, version })}/${id}/${position}`;
      if (noted.has(key)) return;
      noted.add(key);
      recordQuarantine(records, { name, version }, { documentId: id, position, cause: body.$unreadable }).catch(() =>
        noted.delete(key),
      );
    },
  };
}

export async function listQuarantined(
  records: Records,
  projection: Pick<Projection, 'name' | 'version'>,
): Promise<Quarantined[]> {
  return (await records.list<Quarantined>(prefix(projection))).map((record) => record.value);
}

export async function forgetQuarantine(
  records: Records,
  projection: Pick<Projection, 'name' | 'version'>,
  documentId: string,
): Promise<void> {
  await records.delete(prefix(projection) + documentId);
}

export async function forgetQuarantined(
  records: Records,
  projection: Pick<Projection, 'name' | 'version'>,
): Promise<void> {
  for (const { key } of await records.list(prefix(projection))) await records.delete(key);
}
