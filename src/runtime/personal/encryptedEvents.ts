/**
 * The event log with the personal fields of events encrypted at rest (docs/design.md#personal-data). Callers append and
 * read events in the clear. The log holds these fields as AES-256-GCM under the data key of a subject, bound to the
 * event's stream, id and type. Where the subject was erased, the fields are read as empty; altered fields throw
 * AlteredDataError when they are read. While the key store is unavailable, the fields of a single stream's events throw
 * UnavailableError: most commands need none of them. Reads and followers of the whole log throw it themselves instead,
 * so that none of them passes over a field. Copies and backups read the store itself.
 */
import type { EncryptedFields, EventBatch, EventStore, NewEvent, RecordedEvent } from '../../ports/eventStore.js';
import { type Seal, sealUnder } from '../../lib/seal.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { AlteredDataError, withFailingFields } from './alteredData.js';
import type { SubjectName, Subjects } from './subjects.js';

/** The personal fields of one event type. */
interface PersonalRule {
  /** The personal top-level fields of the data, each with the value that is read once the subject was erased. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** The subject under whose key the fields are encrypted; `undefined`: the event stays in the clear. */
  readonly subjectOf: (stream: string, data: object) => SubjectName | undefined;
}

/** Personal rules by event type; events of other types are passed on as they are. */
export type PersonalRules = ReadonlyMap<string, PersonalRule>;

/** Data keys by id of their subject, or the error for which a key can't be read. */
type Keys = ReadonlyMap<string, Buffer | UnavailableError>;

export function encryptedEvents(events: EventStore, subjects: Subjects, rules: PersonalRules): EventStore {
  const subjectOf = (stream: string, { type, data }: NewEvent): SubjectName | undefined => {
    const rule = rules.get(type);
    return rule !== undefined && Object.keys(data).some((field) => Object.hasOwn(rule.fields, field))
      ? rule.subjectOf(stream, data)
      : undefined;
  };

  const encryptAll = async (stream: string, clear: readonly NewEvent[]): Promise<NewEvent[]> => {
    const names = new Map<NewEvent, SubjectName>();
    for (const event of clear) {
      const name = subjectOf(stream, event);
      if (name !== undefined) names.set(event, name);
    }
    const ids = await subjects.ids([...names.values()]);
    const keys = await subjects.secrets(ids);
    const idOf = new Map([...names.keys()].map((event, index) => [event, ids[index] as string]));
    return clear.map((event) => {
      const subject = idOf.get(event);
      if (subject === undefined) return event;
      const key = keys.get(subject);
      if (key === undefined) throw new UnavailableError('a subject of personal data is being erased');
      return withEncryptedFields(stream, event, ruleOf(event.type).fields, { subject, seal: sealUnder(key).seal });
    });
  };

  const ruleOf = (type: string): PersonalRule => rules.get(type) as PersonalRule;

  /** The event's encrypted fields. Its type is checked first, so that the metadata of most events is never parsed. */
  const encryptedIn = (event: RecordedEvent): EncryptedFields | undefined =>
    rules.has(event.type) ? event.metadata.personal : undefined;

  /** Keys of subjects, read row by row where one was altered: such a row must not make the others unreadable. */
  const keysOf = async (ids: readonly string[]): Promise<Keys> => {
    try {
      return await subjects.secrets(ids);
    } catch (error) {
      if (!(error instanceof AlteredDataError)) throw error;
    }
    const keys = new Map<string, Buffer | AlteredDataError>();
    for (const id of new Set(ids)) {
      const key = await subjects.secrets([id]).catch((error: unknown) => {
        if (error instanceof AlteredDataError) return error;
        throw error;
      });
      const found = key instanceof AlteredDataError ? key : key.get(id);
      if (found !== undefined) keys.set(id, found);
    }
    return keys;
  };

  const orWhyNot = async (ids: readonly string[]): Promise<Keys> => {
    try {
      return await keysOf(ids);
    } catch (error) {
      if (error instanceof UnavailableError) return new Map(ids.map((id) => [id, error]));
      throw error;
    }
  };

  const decryptAll = async (
    stored: readonly RecordedEvent[],
    keysFor: (ids: readonly string[]) => Promise<Keys>,
  ): Promise<RecordedEvent[]> => {
    const keys = await keysFor(stored.flatMap((event) => encryptedIn(event)?.subject ?? []));
    return stored.map((event) => {
      const encrypted = encryptedIn(event);
      if (encrypted === undefined) return event;
      const { personal: _, ...metadata } = event.metadata;
      const key = keys.get(encrypted.subject);
      const empty = ruleOf(event.type).fields;
      return {
        ...event,
        data: key === undefined ? { ...event.data, ...empty } : decrypt(event, encrypted, key, empty),
        metadata,
      };
    });
  };

  /** Events without encrypted fields are passed on as they are: most are. */
  const clear = <E extends readonly RecordedEvent[]>(stored: E, keysFor = keysOf): Promise<RecordedEvent[]> | E =>
    stored.some((event) => encryptedIn(event) !== undefined) ? decryptAll(stored, keysFor) : stored;

  async function* clearBatches(batches: AsyncIterable<EventBatch>): AsyncGenerator<EventBatch, void> {
    for await (const batch of batches) yield { ...batch, events: await clear(batch.events) };
  }

  // Only copies and verification use these two methods, and they do so on the store itself, with events as stored.
  const { appendInOrder: _, readTexts: __, ...others } = events;
  return {
    ...others,
    append(stream, added, expected) {
      if (!added.some((event) => subjectOf(stream, event) !== undefined)) return events.append(stream, added, expected);
      return encryptAll(stream, added).then((encrypted) => events.append(stream, encrypted, expected));
    },
    read: async (stream, options) => clear(await events.read(stream, options), orWhyNot),
    readAll: (...args) => clearBatches(events.readAll(...args)),
    follow: (...args) => clearBatches(events.follow(...args)),
  };
}

/** The event with its personal fields in a sealed box in its metadata; `seal` uses the subject's data key. */
function withEncryptedFields<E extends NewEvent>(
  stream: string,
  event: E,
  fields: PersonalRule['fields'],
  { subject, seal }: { readonly subject: string; readonly seal: Seal['seal'] },
): E {
  const open: Record<string, unknown> = {};
  const hidden: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(event.data)) (Object.hasOwn(fields, name) ? hidden : open)[name] = value;
  const box = seal(Buffer.from(JSON.stringify(hidden)), bindingOf(stream, event));
  return { ...event, data: open, metadata: { ...event.metadata, personal: { subject, box } } };
}

const bindingOf = (stream: string, { id, type }: NewEvent): string => `${stream}\n${id}\n${type}`;

function decrypt(
  event: RecordedEvent,
  { box }: EncryptedFields,
  key: Buffer | UnavailableError,
  fields: object,
): object {
  const { stream, revision, data } = event;
  const names = Object.keys(fields);
  if (key instanceof UnavailableError && !(key instanceof AlteredDataError)) return withFailingFields(data, names, key);
  try {
    if (key instanceof AlteredDataError) throw key;
    return { ...data, ...(JSON.parse(sealUnder(key).open(box, bindingOf(stream, event)).toString()) as object) };
  } catch (cause) {
    return withFailingFields(
      data,
      names,
      new AlteredDataError(`${names.join(', ')} of event ${revision} of ${stream}`, cause),
    );
  }
}
