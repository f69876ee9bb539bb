/** Every event that is shown, in histories, exports and under `/ops`, passes here (docs/support.md#shown-events). */
import { FIELD_CLASSES, type FieldClasses } from '../../domain/fieldClasses.js';
import { MASK } from '../../lib/mask.js';
import { shownStream } from '../../domain/streamName.js';
import { isOfLaterVersion, type Upcasters } from '../../domain/upcasters.js';
import type { Caller, Position, RecordedEvent } from '../../ports/eventStore.js';

/** An event as it is shown. Secret fields are left out of `data`, personal ones masked (`Sight`). */
export interface EventView {
  readonly position: Position;
  /** Name of the stream, with keyed hashes masked. */
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly id: string;
  /** Time of the event: ISO 8601, UTC, milliseconds. */
  readonly at: string;
  readonly by: Caller;
  readonly request_id: string | null;
  readonly command_id: string;
  readonly causation_id: string | null;
  readonly correlation_id: string;
  readonly data: object;
}

export interface Sight {
  /** Whether personal fields are shown: only after a reason was recorded. */
  readonly personal: boolean;
}

/** Data of an unknown type, or of a later release's version, is left out: it may be secret. */
export function eventView(event: RecordedEvent, sight: Sight, upcasters?: Upcasters): EventView {
  const { position, stream, revision, type, id, at, metadata } = event;
  const { user, client, roles } = metadata.by;
  return {
    position,
    stream: shownStream(stream, MASK),
    revision,
    type,
    id,
    at,
    by: {
      ...(user === undefined ? {} : { user }),
      ...(client === undefined ? {} : { client }),
      ...(roles === undefined ? {} : { roles }),
    },
    request_id: metadata.requestId ?? null,
    command_id: metadata.commandId,
    causation_id: metadata.causationId ?? null,
    correlation_id: metadata.correlationId,
    data: isOfLaterVersion(type, metadata.schema, upcasters) ? {} : dataShown(type, event.data, sight),
  };
}

export function dataShown(type: string, data: object, { personal }: Sight): object {
  const classes = Object.hasOwn(FIELD_CLASSES, type)
    ? (FIELD_CLASSES as Readonly<Record<string, FieldClasses>>)[type]
    : undefined;
  if (classes === undefined) return {};
  let shown: unknown = data;
  for (const path of classes.secret) shown = without(shown, stepsOf(path));
  if (!personal) for (const path of classes.personal) shown = masked(shown, stepsOf(path));
  // The copy makes unreadable fields throw here, where the caller handles the error, and not where the response is
  // written.
  return { ...(shown as object) };
}

/** Steps of a path: `receivers[].phone_number` has `receivers`, `[]`, `phone_number`. */
function stepsOf(path: string): readonly string[] {
  return path.replaceAll('[]', '.[]').split('.');
}

function without(value: unknown, [step, ...rest]: readonly string[]): unknown {
  return changed(value, step, (inner) => (rest.length === 0 ? undefined : without(inner, rest)));
}

function masked(value: unknown, [step, ...rest]: readonly string[]): unknown {
  return changed(value, step, (inner) =>
    rest.length > 0 ? masked(inner, rest) : inner === null || inner === undefined ? inner : MASK,
  );
}

/** A copy with one field, or all items of a list (`[]`), replaced; `undefined` removes the field. */
function changed(value: unknown, step: string | undefined, change: (inner: unknown) => unknown): unknown {
  if (step === '[]') return Array.isArray(value) ? value.map(change) : value;
  if (step === undefined || typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return value;
  const after = change((value as Record<string, unknown>)[step]);
  const { [step]: _, ...others } = value as Record<string, unknown>;
  return after === undefined ? others : { ...value, [step]: after };
}
