import { shownStream } from '../../../domain/streamName.js';
import { TREE_STREAM } from '../../../domain/treeHeads.js';
import { MASK } from '../../../lib/mask.js';
import type { FirstDifference, PlacedEvent } from './verification.js';

/** Describes a difference for an auditor. */
export function differenceInWords({ change, count, number, event, before, signed }: FirstDifference): string {
  const many = count > 1 ? `${count} events, from number ${number} on, were` : `event ${number} was`;
  const now = event === null ? 'nothing stands there' : `there stands ${eventInWords(event)}`;
  const behind = before === null ? 'at the beginning of the log' : `behind ${eventInWords(before)}`;
  const unsigned = signed ? '' : '; no signed head covers it, its tile tells so';
  switch (change) {
    case 'altered':
      return `${many} altered: ${now}${unsigned}`;
    case 'removed':
      return `${many} removed, ${behind}: ${now}${unsigned}`;
    case 'inserted':
      return `${many} inserted: ${now}${unsigned}`;
    case 'exchanged':
      return `events ${number} and ${number + count} were exchanged: ${now}${unsigned}`;
    case 'cut off':
      return `the log was cut off at its end: ${count} events are missing from number ${number} on, ${behind}${unsigned}`;
    case 'start missing':
      return `the event that the tree was started with (TreeStarted, in the stream ${TREE_STREAM}) is missing: it was removed or cut off, and without it no leaf can be computed`;
    case 'unknown':
      return `one or more of the events ${number} to ${number + count - 1} were altered, removed, inserted or exchanged, and no tile tells which`;
    default:
      return change satisfies never;
  }
}

export function eventInWords({ stream, revision, type, id, at, position }: PlacedEvent): string {
  return `${type} of ${at}, revision ${revision} of ${shownStream(stream, MASK)} (position ${position}, id ${id})`;
}
