/** Differences between a served document and the log's, field by field, with secrets masked. */
import { isDeepStrictEqual } from 'node:util';
import { MASK } from '../../../lib/mask.js';
import type { Position } from '../../../ports/eventStore.js';
import type { StoredDocument } from '../../../ports/readStore.js';
import type { Projection } from '../projection.js';
import { isOutOfService, isQuarantined } from '../quarantine.js';

/** Absent values are left out; secret and personal ones are masked. */
interface FieldDifference {
  /** Path of the field, for example `redemption.redeemed` or `receivers.0`. */
  readonly field: string;
  readonly served?: unknown;
  readonly log?: unknown;
}

/** A difference, as fronts show it. */
export interface Difference {
  readonly id: string;
  /**
   * `missing`: only the log has the document; `extra`: only readers see it; `quarantined`: out of service;
   * `unfoldable`: served, but the log can't be folded.
   */
  readonly kind: 'missing' | 'extra' | 'different' | 'quarantined' | 'unfoldable';
  readonly served_at?: Position;
  readonly log_at?: Position;
  readonly fields: readonly FieldDifference[];
}

/**
 * The difference between a served document and the log's; `undefined` for either: no such document. Values of `hidden`
 * fields are masked. A document that is out of service always differs, also where the log can't be folded into a better
 * one: nothing else names it.
 * @param misindexed lists find the served document by other values than it has, or miss it
 */
export function differenceOf(
  hidden: Projection['hidden'],
  id: string,
  served: StoredDocument | undefined,
  log: StoredDocument | undefined,
  misindexed = false,
): Difference | undefined {
  if (!misindexed && !(served !== undefined && isOutOfService(served.body)) && isDeepStrictEqual(served, log))
    return undefined;
  const places = {
    ...(served === undefined ? {} : { served_at: served.position }),
    ...(log === undefined ? {} : { log_at: log.position }),
  };
  const kind = kindOf(served, log);
  if (kind !== 'different') return { id, kind, ...places, fields: [] };
  const fields: FieldDifference[] = [];
  if (served?.position !== log?.position)
    fields.push({ field: '(position)', served: served?.position, log: log?.position });
  compare(served?.body, log?.body, [], (path, one, other) => {
    const hides = (name: string): boolean => hidden.has(name);
    const masks = path.some(hides);
    const shown = (value: unknown): unknown => (masks && value !== null ? MASK : maskedWithin(value, hides));
    fields.push({
      field: path.join('.'),
      ...(one === undefined ? {} : { served: shown(one) }),
      ...(other === undefined ? {} : { log: shown(other) }),
    });
  });
  // The values are left out, since they may be personal.
  if (misindexed)
    fields.push({ field: '(lists)', served: 'found by other values than its own', log: 'found by its own' });
  return { id, kind, ...places, fields };
}

/** Masks the hidden fields of a container whose opposite value is of another kind. */
function maskedWithin(value: unknown, hides: (name: string) => boolean): unknown {
  if (!isContainer(value)) return value;
  return JSON.parse(
    JSON.stringify(value, (name, inner: unknown) => (hides(name) && inner !== null ? MASK : inner)),
  ) as unknown;
}

function kindOf(served: StoredDocument | undefined, log: StoredDocument | undefined): Difference['kind'] {
  if (served === undefined) return 'missing';
  if (isOutOfService(served.body)) return 'quarantined';
  if (log === undefined) return 'extra';
  return isQuarantined(log.body) ? 'unfoldable' : 'different';
}

/** Calls `differs` for each leaf, and for each value that only one side has. */
function compare(
  one: unknown,
  other: unknown,
  path: readonly string[],
  differs: (path: readonly string[], one: unknown, other: unknown) => void,
): void {
  if (isDeepStrictEqual(one, other)) return;
  // A value on one side only is compared leaf by leaf, since some leaves may be hidden.
  const [left, right] = [partsOf(one, other), partsOf(other, one)];
  const keys =
    left === undefined || right === undefined ? [] : [...new Set([...Object.keys(left), ...Object.keys(right)])];
  for (const key of keys) compare(left?.[key], right?.[key], [...path, key], differs);
  if (keys.length === 0) differs(path, one, other);
}

function partsOf(value: unknown, other: unknown): Readonly<Record<string, unknown>> | undefined {
  if (value === undefined && isContainer(other)) return {};
  return isContainer(value) &&
    (other === undefined || (isContainer(other) && Array.isArray(value) === Array.isArray(other)))
    ? value
    : undefined;
}

function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
